"""Readers close the files of segments that were deleted: until then these take space on the disk."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

import cordwood as cw

RECORDS = 60


def held(path: Path) -> list[str]:
    """The deleted files of a partition that this process has open or mapped."""
    links = []
    for descriptor in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):
            links.append(str(descriptor.readlink()))
    lines = Path("/proc/self/maps").read_text(encoding="utf-8").splitlines()
    names = [*links, *(line.split(maxsplit=5)[-1] for line in lines)]
    return sorted(name for name in names if name.startswith(f"{path}/") and name.endswith(" (deleted)"))


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[cw.LogWriter]:
    config = cw.LogConfig(segment_bytes=4096, index_interval_bytes=100, retention_ms=1000)
    with cw.LogWriter(tmp_path / "jobs-0", config=config, flush="none") as writer:
        for number in range(RECORDS):
            writer.append(bytes(1000), timestamp=1_700_000_000_000 + number)
        assert len(list(Path(writer.path).glob("*.log"))) > 10
        yield writer


def read_all(log: cw.Log) -> None:
    """Opens the `.log` and the indexes of each segment."""
    assert sum(1 for _ in log.records()) == RECORDS
    for offset in range(RECORDS):
        log.locate(offset)
        log.offset_for_time(1_700_000_000_000 + offset)
    for segment in log.segments:
        assert segment.offset_index is not None


def delete_two_segments(log: cw.Log) -> int:
    """Deletes the two oldest segments, as another process does; returns the new log start offset."""
    for segment in list(log.segments)[:2]:
        for file in Path(log.path).glob(f"{segment.base_offset:020d}.*"):
            file.unlink()
    return log.segments[2].base_offset


@pytest.mark.parametrize("io", ["auto", "mmap", "pread"])
def test_retention_frees_the_space_of_files_that_readers_of_the_process_hold(writer: cw.LogWriter, io: str) -> None:
    path = Path(writer.path)
    log = cw.Log(path, io=io)
    reader = writer.reader()
    position = log.position("billing")
    with log.follow(0) as follow:
        read_all(log)
        read_all(reader)
        next(follow)
        position.commit(1)
        assert len(list(path.glob("*.log"))) > 10
        plan = writer.apply_retention(now=1_800_000_000_000)
        assert plan.log_start_offset > 50
        assert held(path) == []
        # what is left is read as before
        assert [record.offset for record in writer.reader().records()] == list(range(plan.log_start_offset, RECORDS))
        assert log.refresh().log_start_offset == plan.log_start_offset


def test_a_deletion_and_a_truncation_free_the_space_of_files_that_readers_have_open(writer: cw.LogWriter) -> None:
    log = cw.Log(writer.path)
    read_all(log)
    writer.delete_before(20)
    assert held(Path(writer.path)) == []
    log.refresh().locate(50)
    writer.truncate_to(30)
    assert held(Path(writer.path)) == []


LOOKS: dict[str, Callable[[cw.Log, cw.Position, cw.Follow, int], object]] = {
    "refresh": lambda log, _position, _follow, _start: log.refresh(),
    "commit": lambda _log, position, _follow, start: position.commit(start),
    "follow": lambda _log, _position, follow, _start: next(follow),
}


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("io", ["auto", "mmap"])
def test_the_next_look_closes_files_that_another_process_deleted(writer: cw.LogWriter, look: str, io: str) -> None:
    path = Path(writer.path)
    writer.close()
    log = cw.Log(path, io=io)
    position = log.position("billing")
    with log.follow(RECORDS, timeout=0) as follow:
        read_all(log)
        start = delete_two_segments(log)
        assert held(path) != []
        with suppress(StopIteration):
            LOOKS[look](log, position, follow, start)
        assert held(path) == []


def test_compaction_frees_the_space_of_segments_that_readers_have_open(tmp_path: Path) -> None:
    config = cw.LogConfig(segment_bytes=4096, cleanup_policy="compact", min_cleanable_dirty_ratio=0.0)
    with cw.LogWriter(tmp_path / "keyed-0", config=config, flush="none") as writer:
        for number in range(RECORDS):
            writer.append(bytes(500), key=bytes([number % 3]))
        log = cw.Log(writer.path)
        assert sum(1 for _ in log.records()) == RECORDS
        before = log.size
        writer.compact()
        # the open log is what it was, until its next refresh
        assert sum(1 for _ in log.records()) == RECORDS
        assert log.refresh().size < before
        # the writer itself refreshes with its next reader, or its next retention
        assert writer.reader().log_end_offset == RECORDS
        assert held(Path(writer.path)) == []
