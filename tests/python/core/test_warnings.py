"""`Log.warnings`: empty for an intact log, otherwise one sentence for each problem."""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path
from typing import Any

import corpus
import pyarrow as pa
import pytest
from batches import Rec, batch, moved, name, write_partition
from corpus import Partition

import cordwood as cw

WITH_REASON = {"13-delete-records/trimmed-0", "16-data-dir/cities-1", "14-killed-preallocated-log/crashed-prealloc-0"}


def used(log: cw.Log) -> cw.Log:
    """Make every kind of call, so that every index is opened and every header is read."""
    log.scan().to_arrow()
    log.scan(isolation_level="read_committed").to_arrow()
    log.batches().to_arrow()
    log.offset_for_time(0)
    log.offset_for_time(2**62)
    end, start = log.log_end_offset, log.log_start_offset
    for step in range(20):
        if start < end:
            log.locate(start + (end - start) * step // 20)
    for segment in log.segments:
        for index in (segment.offset_index, segment.time_index, segment.transaction_index):
            if index is not None:
                list(index)
    return log


@pytest.mark.parametrize("part", [p for p in corpus.partitions() if str(p) not in WITH_REASON], ids=str)
def test_an_intact_partition_gives_no_warning(part: Partition) -> None:
    """Preallocated indexes, entries of old releases, remains of deletions and missing time indexes are valid."""
    assert used(cw.Log(part.path)).warnings == []


@pytest.mark.parametrize(
    ("case", "dir_name", "start"), [("13-delete-records", "trimmed-0", 437), ("16-data-dir", "cities-1", 31)]
)
def test_records_hidden_below_the_log_start_are_named(case: str, dir_name: str, start: int) -> None:
    warnings = used(cw.Log(corpus.partition(case, dir_name).path)).warnings
    assert len(warnings) == 1
    assert isinstance(warnings[0], str)
    assert str(start) in warnings[0]


def test_the_zeros_after_the_last_batch_of_a_preallocated_log_are_named() -> None:
    part = corpus.partition("14-killed-preallocated-log")
    warnings = used(cw.Log(part.path)).warnings
    assert len(warnings) == 1
    assert name(465) in warnings[0]
    assert "4917" in warnings[0]


def test_a_log_start_inside_the_log_is_used_and_the_hidden_records_are_named() -> None:
    log = cw.Log(corpus.partition("01-plain").path, log_start_offset=450)
    assert log.log_start_offset == 450
    assert log.scan().to_arrow()["offset"][0].as_py() == 450
    assert len(log.warnings) == 1


@pytest.mark.parametrize("start", [-1, 1501, 2**62])
def test_a_log_start_outside_the_log_is_ignored_with_a_warning_or_refused(start: int) -> None:
    """Above the end it is a stale checkpoint; below zero it is a mistake of the caller."""
    path = corpus.partition("01-plain").path
    if start < 0:
        try:
            log = cw.Log(path, log_start_offset=start)
        except ValueError:
            return
    else:
        log = cw.Log(path, log_start_offset=start)
    assert (log.log_start_offset, log.log_end_offset) == (0, 1500)
    assert len(log.warnings) == 1


def test_a_log_start_at_the_end_leaves_an_empty_log() -> None:
    log = cw.Log(corpus.partition("01-plain").path, log_start_offset=1500)
    assert log.log_start_offset == log.log_end_offset == 1500
    assert log.scan().to_arrow().num_rows == 0
    with pytest.raises(cw.OffsetOutOfRangeError):
        log.locate(1499)


@pytest.mark.parametrize(
    "text", ["", "0\n", "0\n1\n", "0\n1\ntickets 0 5000\n", "not a checkpoint", "0\n1\ntickets zero 5\n"]
)
def test_an_invalid_checkpoint_hides_no_record(copied: Any, text: str) -> None:
    path = copied(corpus.partition("01-small").path)
    (path.parent / "log-start-offset-checkpoint").write_text(text)
    log = cw.Log(path)
    assert log.log_start_offset == 0
    assert log.scan(columns=["offset"]).to_arrow().num_rows == 370


def test_the_checkpoint_of_another_partition_or_topic_is_ignored(copied: Any) -> None:
    path = copied(corpus.partition("01-small").path)
    (path.parent / "log-start-offset-checkpoint").write_text("0\n3\ntickets 1 100\ntickets-0 0 100\nticket 0 100\n")
    log = cw.Log(path)
    assert log.log_start_offset == 0
    assert log.warnings == []
    (path.parent / "log-start-offset-checkpoint").write_text("0\n2\ntickets 1 100\ntickets 0 101\n")
    assert cw.Log(path).log_start_offset == 101


def test_an_argument_takes_precedence_over_the_checkpoint() -> None:
    log = cw.Log(corpus.partition("13-delete-records").path, log_start_offset=500)
    assert log.log_start_offset == 500


def test_a_directory_that_is_not_named_after_a_partition_has_no_topic(copied: Any, tmp_path: Path) -> None:
    path = copied(corpus.partition("01-small").path)
    plain = tmp_path / "restored"
    path.rename(plain)
    log = cw.Log(plain)
    assert (log.topic, log.partition) == (None, None)
    assert log.scan(columns=["topic", "partition"], max_rows=5).to_arrow().slice(0, 1).to_pylist() == [
        {"topic": None, "partition": None}
    ]
    named = cw.Log(plain, topic="tickets", partition=7)
    assert (named.topic, named.partition) == ("tickets", 7)
    assert named.scan(columns=["topic", "partition"]).to_arrow().slice(0, 1).to_pylist() == [
        {"topic": "tickets", "partition": 7}
    ]


@pytest.mark.parametrize("tail", [b"\0", b"\0" * 11, b"\0" * 5000, b"\xff" * 40, b"garbage that is no batch at all"])
def test_a_tail_after_which_no_batch_follows_is_the_end_with_a_warning(tmp_path: Path, tail: bytes) -> None:
    raws = [batch(0, [Rec(value=b"a")]), batch(1, [Rec(value=b"b")])]
    path = write_partition(tmp_path / "made-0", [(0, raws)])
    clean = cw.Log(path)
    clean.scan().to_arrow()
    assert clean.warnings == []
    with (path / name(0)).open("ab") as file:
        file.write(tail)
    log = cw.Log(path)
    assert log.scan().to_arrow()["offset"].to_pylist() == [0, 1]
    assert log.log_end_offset == 2
    assert len(log.warnings) == 1
    assert name(0) in log.warnings[0]


def test_the_same_tail_in_an_earlier_segment_is_damage(tmp_path: Path) -> None:
    first = batch(0, [Rec(value=b"a")])
    path = write_partition(tmp_path / "made-0", [(0, [first, b"\0" * 11]), (1, [batch(1, [Rec(value=b"b")])])])
    with pytest.raises(cw.CorruptLogError) as raised:
        cw.Log(path).scan().to_arrow()
    assert Path(raised.value.file).name == name(0)
    assert raised.value.position == len(first)
    assert cw.Log(path).scan(on_damage="skip").to_arrow()["offset"].to_pylist() == [0, 1]


def logged(caplog: pytest.LogCaptureFixture) -> list[str]:
    assert {(record.name, record.levelname) for record in caplog.records} <= {("cordwood", "WARNING")}
    return [record.getMessage() for record in caplog.records]


@pytest.mark.parametrize("part", corpus.partitions(), ids=str)
def test_each_warning_of_a_log_is_logged_once(part: Partition, caplog: pytest.LogCaptureFixture) -> None:
    log = used(cw.Log(part.path))
    expected = [warning for warning in log.warnings if "hidden below the log start offset" not in warning]
    assert logged(caplog) == expected
    used(log.refresh())
    assert logged(caplog) == expected


def without_a_segment(path: Path) -> None:
    bases = corpus.partition("01-plain").bases
    for file in path.glob(f"{bases[len(bases) // 2]:020d}.*"):
        file.unlink()


def test_a_warning_of_a_stream_is_logged(copied: Any, caplog: pytest.LogCaptureFixture) -> None:
    path = copied(corpus.partition("01-plain").path)
    without_a_segment(path)
    log = cw.Log(path)
    scan = log.scan()
    assert logged(caplog) == []
    pa.RecordBatchReader.from_stream(scan).read_all()
    [warning] = logged(caplog)
    assert "are missing" in warning
    assert warning in log.warnings


def test_a_log_that_ends_below_its_recovery_point_is_logged(copied: Any, caplog: pytest.LogCaptureFixture) -> None:
    path = copied(corpus.partition("01-small").path)
    (path.parent / "recovery-point-offset-checkpoint").write_text("0\n1\ntickets 0 371\n")
    log = cw.Log(path)
    assert logged(caplog) == []
    assert log.log_end_offset == 370
    assert log.log_end_offset == 370
    assert logged(caplog) == log.warnings
    assert len(log.warnings) == 1


def test_the_reader_of_a_writer_logs(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with cw.LogWriter(tmp_path / "made-0") as writer:
        writer.append(b"a")
        (tmp_path / "made-0" / f"{7:020d}.log").mkdir()
        log = writer.reader()
        assert logged(caplog) == log.warnings


def test_a_handler_may_use_the_log(copied: Any) -> None:
    path = copied(corpus.partition("01-plain").path)
    without_a_segment(path)
    log = cw.Log(path)
    seen: list[int] = []

    class _Reads(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            del record
            seen.append(log.scan().to_arrow().num_rows)

    handler, logger = _Reads(), logging.getLogger("cordwood")
    logger.addHandler(handler)
    try:
        rows = log.scan().to_arrow().num_rows
    finally:
        logger.removeHandler(handler)
    assert seen == [rows]


def test_a_handler_that_fails_does_not_fail_the_call(copied: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    path = copied(corpus.partition("01-plain").path)
    without_a_segment(path)

    class _Fails(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            raise ValueError(record.getMessage())

    unraisable: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", unraisable.append)
    handler, logger = _Fails(), logging.getLogger("cordwood")
    logger.addHandler(handler)
    try:
        assert cw.Log(path).scan().to_arrow().num_rows > 0
    finally:
        logger.removeHandler(handler)
    assert [type(failed.exc_value) for failed in unraisable] == [ValueError]


@pytest.mark.parametrize("threads", [1, 4])
def test_warnings_that_threads_of_a_scan_find_are_logged(
    tmp_path: Path, threads: int, caplog: pytest.LogCaptureFixture
) -> None:
    """Each thread reads a split of several segments; every tenth segment is missing."""
    one = batch(0, [Rec(value=bytes(1 << 20))])
    segments = [(base, [moved(one, base)]) for base in range(40) if base % 10 != 5]
    log = cw.Log(write_partition(tmp_path / "made-0", segments))
    log.scan(threads=threads).to_arrow()
    assert len(log.warnings) == 4
    assert sorted(logged(caplog)) == sorted(log.warnings)


def test_a_new_warning_of_a_refresh_is_logged(copied: Any, caplog: pytest.LogCaptureFixture) -> None:
    path = copied(corpus.partition("01-small").path)
    log = cw.Log(path)
    (path.parent / "log-start-offset-checkpoint").write_text("not a checkpoint")
    for _ in range(3):
        log = log.refresh()
    [warning] = log.warnings
    assert logged(caplog) == [warning]


def test_ctrl_c_during_a_handler_is_raised(copied: Any) -> None:
    path = copied(corpus.partition("01-plain").path)
    without_a_segment(path)

    class _Interrupts(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            raise KeyboardInterrupt(record.getMessage())

    handler, logger = _Interrupts(), logging.getLogger("cordwood")
    logger.addHandler(handler)
    try:
        with pytest.raises(KeyboardInterrupt, match="are missing"):
            cw.Log(path).scan().to_arrow()
    finally:
        logger.removeHandler(handler)


def test_a_damaged_end_of_a_log_that_is_open_is_reported_unless_it_was_just_written(tmp_path: Path) -> None:
    path = tmp_path / "t-0"
    file = path / name(0)
    with cw.LogWriter(path, flush="none") as writer:
        writer.append(b"first")
        writer.append(b"last")
        raw = bytearray(file.read_bytes())
        raw[-3] ^= 1
        file.write_bytes(raw)
        for age, is_damage in ((0, False), (30 * 24 * 3600, True)):
            then = file.stat().st_mtime - age
            os.utime(file, (then, then))
            log = cw.Log(path)
            scan = log.scan(on_damage="skip")
            assert scan.to_arrow()["value"].to_pylist() == [b"first"]
            assert (len(scan.damaged_ranges), len(log.warnings)) == (is_damage, is_damage)
            report = cw.verify(path)
            severities = {finding.severity for finding in report.findings if finding.code == "torn_tail"}
            assert severities == {"error" if is_damage else "info"}
