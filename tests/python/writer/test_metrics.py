"""`LogWriter.metrics`: counts that agree with the log, and times that only grow."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import cordwood as cw


def test_the_counts_are_those_of_the_log(tmp_path: Path) -> None:
    path = tmp_path / "orders-0"
    with cw.LogWriter(path, flush="none", config=cw.LogConfig(segment_bytes=1000)) as writer:
        assert repr(writer.metrics()).startswith("WriterMetrics(appends=0, records=0, bytes=0, append_ns=0,")
        for _ in range(30):
            writer.append_many(["value"] * 3)
        producer = writer.producer("import")
        producer.append("once", sequence=0)
        assert producer.append("once", sequence=0).is_duplicate
        with writer.transaction("t") as transaction:
            transaction.append("value")
        with pytest.raises(cw.RecordTooLargeError):
            writer.append(b"x" * 2000)
        metrics = writer.metrics()
        table = writer.reader().batches().to_arrow()
        assert (metrics.appends, metrics.records) == (33, 93)
        assert (metrics.appends, metrics.bytes) == (table.num_rows, sum(table["size"].to_pylist()))
        assert (metrics.segments, metrics.rolls) == (len(writer.reader().segments), metrics.segments - 1)
        assert metrics.segments > 3
        assert 0 < metrics.max_append_ns <= metrics.append_ns
        assert (metrics.flushes, metrics.flush_ns) == (0, 0)
        writer.flush()
        assert (writer.metrics().flushes, writer.metrics() == metrics) == (1, False)
        writer.truncate_to(0)
        assert (writer.metrics().segments, writer.metrics().records) == (1, 93)
    with pytest.raises(cw.ClosedError):
        writer.metrics()


def test_appends_of_threads_share_flushes(tmp_path: Path) -> None:
    with cw.LogWriter(tmp_path / "orders-0") as writer, ThreadPoolExecutor(8) as pool:
        for done in [pool.submit(writer.append, "value") for _ in range(200)]:
            done.result()
        metrics = writer.metrics()
        assert metrics.appends == 200
        assert 1 <= metrics.flushes <= 200
        assert 0 < metrics.max_flush_ns <= metrics.flush_ns


def test_metrics_and_producers_do_not_wait_for_a_compaction(tmp_path: Path) -> None:
    config = cw.LogConfig(cleanup_policy="compact", segment_bytes=1 << 20, compression_type="gzip")
    values = [cw.Record(b"%d" % (number % 1000) * 20, key=b"%d" % (number % 50_000)) for number in range(200_000)]
    with cw.LogWriter(tmp_path / "orders-0", flush="none", config=config) as writer, ThreadPoolExecutor(1) as pool:
        for start in range(0, len(values), 1000):
            writer.append_many(values[start : start + 1000])
        writer.roll()
        compacting = pool.submit(writer.compact)
        asked = 0
        while not compacting.done():
            assert writer.metrics().records == 200_000
            assert writer.producers == []
            assert writer.last_stable_offset == 200_000
            # only if the compaction has not ended meanwhile
            asked += not compacting.done()
        assert asked > 0
        assert compacting.result().is_complete


def test_a_missing_parent_folder_is_named(tmp_path: Path) -> None:
    path = tmp_path / "data" / "kafka" / "orders-0"
    for missing in (tmp_path / "data", path.parent):
        with pytest.raises(cw.LogNotFoundError, match="parent") as raised:
            cw.LogWriter(path)
        assert str(missing) in str(raised.value)
        missing.mkdir()
    with cw.LogWriter(path) as writer:
        assert writer.append("value").last_offset == 0
