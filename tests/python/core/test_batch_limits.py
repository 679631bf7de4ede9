"""`max_batch_bytes`: a larger batch is a limit and no damage, in every call that reads records."""

from __future__ import annotations

import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import batches
import pytest
from batches import GZIP, Rec, batch, write_partition

import cordwood as cw

LIMIT = 10_000
DEFAULT = 134_217_728


def values(offset: int, size: int) -> list[Rec]:
    return [Rec(b"x" * size, key=b"k%d" % (offset + n), timestamp=1000 + offset + n) for n in range(2)]


@pytest.fixture(params=["stored", "decompressed"])
def partition(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Offsets 0 and 1, then 2 and 3 in a large batch, then 4 and 5."""
    codec = batches.NONE if request.param == "stored" else GZIP
    built = [
        batch(offset, values(offset, size), codec=codec, leader_epoch=-1)
        for offset, size in ((0, 10), (2, 8_000), (4, 10))
    ]
    return write_partition(tmp_path / "orders-0", [(0, built)])


def offsets(log: cw.Log, **keywords: Any) -> list[int]:
    return [record.offset for record in log.records(**keywords)]


READS: dict[str, Callable[[cw.Log], Any]] = {
    "records": lambda log: list(log.records()),
    "skip": lambda log: log.scan(on_damage="skip").to_arrow(),
    "report": lambda log: log.scan(on_damage="report").to_arrow(),
    "count_skip": lambda log: log.scan(on_damage="skip", start_time=1003).count(),
    "committed": lambda log: log.scan(isolation_level="read_committed").to_arrow(),
    "unverified": lambda log: log.scan(check_crcs=False).to_arrow(),
    "threads": lambda log: log.scan(threads=2).to_arrow(),
    "time": lambda log: log.offset_for_time(1003),
    "split": lambda log: log.scan(split=log.plan(1 << 30)[0]).to_arrow(),
}


@pytest.mark.parametrize("read", READS.values(), ids=READS)
@pytest.mark.parametrize("io", ["mmap", "pread"])
def test_every_read_of_a_larger_batch_names_the_limit(read: Callable[[cw.Log], Any], io: Any, partition: Path) -> None:
    with pytest.raises(cw.BatchTooLargeError) as raised:
        read(cw.Log(partition, io=io, max_batch_bytes=LIMIT))
    error = raised.value
    assert (error.code, error.offset, Path(error.file or "").name) == ("batch_too_large", 2, f"{0:020d}.log")
    assert error.position == cw.Log(partition).locate(2).position  # type: ignore[union-attr]
    for part in ("offsets 2 to 3", str(LIMIT), "max_batch_bytes"):
        assert part in str(error)
    assert not isinstance(error, cw.CorruptLogError | cw.UnsupportedFormatError)
    assert offsets(cw.Log(partition, io=io, max_batch_bytes=20_000)) == [*range(6)]


def test_what_needs_no_record_of_it_works(partition: Path, request: pytest.FixtureRequest) -> None:
    log = cw.Log(partition, max_batch_bytes=LIMIT)
    assert (log.log_end_offset, log.last_stable_offset, log.locate(3).batch_base_offset) == (6, 6, 2)  # type: ignore[union-attr]
    assert offsets(log, end_offset=2) == [0, 1]
    assert offsets(log, start_offset=4) == [4, 5]
    if "stored" in request.node.name:
        # of an uncompressed batch, the header alone does not count the records that a consumer returns
        with pytest.raises(cw.BatchTooLargeError):
            log.scan().count()
    else:
        assert log.scan().count() == 6
    assert log.offset_for_time(1005).offset == 5  # type: ignore[union-attr]
    assert log.warnings == []


def test_pickles_and_partitions_of_a_directory_keep_the_limit(partition: Path) -> None:
    directory = cw.LogDir(partition.parent, max_batch_bytes=LIMIT)
    log = cw.Log(partition, max_batch_bytes=LIMIT)
    handles: list[Any] = [log, log.scan(), directory, directory.scan()]
    for handle in handles:
        again = pickle.loads(pickle.dumps(handle))
        reads: Callable[[], Any] = {
            "Log": lambda again=again: again.scan().to_arrow(),
            "Scan": lambda again=again: again.to_arrow(),
            "LogDir": lambda again=again: again["orders-0"].scan().to_arrow(),
        }[type(again).__name__]
        with pytest.raises(cw.BatchTooLargeError):
            reads()


def test_verify_warns_and_counts_the_log_as_intact(partition: Path) -> None:
    cw.rebuild_indexes(partition, dry_run=False)
    found = cw.verify(partition, deep=True, max_batch_bytes=LIMIT)
    assert [(finding.severity, finding.code, finding.start_offset) for finding in found.findings] == [
        ("warning", "batch_too_large", 2)
    ]
    assert found.is_intact
    assert "max_batch_bytes" in found.findings[0].advice
    assert cw.verify(partition, deep=True, max_batch_bytes=20_000).findings == []


def test_a_copy_keeps_it_and_a_comparison_and_a_dump_name_the_limit(partition: Path, tmp_path: Path) -> None:
    report = cw.copy(partition, tmp_path / "copied-0", on_damage="skip", max_batch_bytes=20_000)
    assert (report.end_offset, report.damaged_ranges) == (6, [])
    assert offsets(cw.Log(report.path)) == [*range(6)]
    text = cw.dump(partition, print_data_log=True, max_batch_bytes=20_000).text()
    assert "x" * 8_000 in text
    for call in (
        lambda: cw.dump(partition, print_data_log=True, max_batch_bytes=LIMIT).text(),
        lambda: list(cw.dump(partition, deep_iteration=True, max_batch_bytes=LIMIT).rows()),
    ):
        with pytest.raises(cw.BatchTooLargeError, match=str(LIMIT)):
            call()
    other = write_partition(tmp_path / "other-0", [(0, [batch(o, values(o, 8_000)) for o in (0, 2, 4)])])
    with pytest.raises(cw.BatchTooLargeError):
        cw.diff(partition, other, max_batch_bytes=5_000)


def test_a_writer_keeps_it_and_its_readers_have_the_limit(partition: Path) -> None:
    log, before = partition / f"{0:020d}.log", (partition / f"{0:020d}.log").read_bytes()
    config = cw.LogConfig(
        cleanup_policy="compact", min_cleanable_dirty_ratio=0, message_timestamp_before_max_ms=1 << 62
    )
    for limit in (LIMIT, 20_000):
        with cw.LogWriter(partition, config=config, max_batch_bytes=limit) as writer:
            assert writer.log_end_offset == 6
            if limit == LIMIT:
                with pytest.raises(cw.BatchTooLargeError):
                    list(writer.reader().records())
                writer.roll()
                with pytest.raises(cw.BatchTooLargeError):
                    writer.compact()
                assert log.read_bytes() == before
            else:
                assert offsets(writer.reader()) == [*range(6)]
                assert writer.compact().is_due
    assert offsets(cw.Log(partition)) == [*range(6)]
    assert not (partition / "quarantine").exists()


def test_a_batch_that_expands_to_200_mb_is_above_the_default(tmp_path: Path) -> None:
    size = 200_000_000
    path = write_partition(
        tmp_path / "zeros-0",
        [(0, [batch(0, [Rec(b"first")]), batch(1, [Rec(bytes(size))], codec=GZIP), batch(2, [Rec(b"last")])])],
    )
    log = cw.Log(path)
    assert log.log_end_offset == 3
    with pytest.raises(cw.BatchTooLargeError, match=f"at most {DEFAULT} bytes") as raised:
        log.scan(on_damage="skip").to_arrow()
    assert (raised.value.offset, raised.value.advice) == (1, "raise max_batch_bytes, if the memory is there")
    whole = cw.Log(path, max_batch_bytes=1 << 28)
    assert [len(record.value or b"") for record in whole.records()] == [5, size, 4]
    mended = cw.repair(path, policy="salvage", dry_run=False)
    assert (mended.log_end_offset, mended.lost_ranges) == (3, [])
    assert not [action for action in mended.actions if action.file.endswith(".log")]
    shutil.rmtree(path)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_compaction_with_a_raised_limit_reads_batches_above_the_default(tmp_path: Path, threads: int) -> None:
    large = batch(0, [Rec(bytes(140_000_000), key=b"k", timestamp=1000)], codec=GZIP, leader_epoch=-1)
    newer = batch(1, [Rec(b"newer", key=b"k", timestamp=1001)], leader_epoch=-1)
    path = write_partition(tmp_path / "zeros-0", [(0, [large]), (1, [newer])])
    config = cw.LogConfig(cleanup_policy="compact", min_cleanable_dirty_ratio=0)
    with cw.LogWriter(path, config=config, max_batch_bytes=150_000_000) as writer:
        writer.roll()
        assert writer.compact(threads=threads).is_complete
    assert [record.value for record in cw.Log(path).records()] == [b"newer"]
