"""Pickles, forks and spawned workers."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import corpus
import pytest
from scripts import run, write_script
from tables import offsets, rows

import cordwood as cw

PLAIN = corpus.partition("01-plain")


def again(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_a_log_pickles_as_a_recipe(protocol: int) -> None:
    log = cw.Log(PLAIN.path, io="pread", log_start_offset=450, topic="renamed", partition=9)
    data = pickle.dumps(log, protocol)
    assert len(data) < 2000
    other = pickle.loads(data)
    assert (other.log_start_offset, other.topic, other.partition) == (450, "renamed", 9)
    assert (other.log_end_offset, str(other.path)) == (1500, str(log.path))
    assert rows(other.scan().to_arrow()) == rows(log.scan().to_arrow())


def test_a_log_of_a_relative_path_pickles_its_absolute_path(copied: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    path = copied(corpus.partition("01-small").path)
    monkeypatch.chdir(path.parent)
    data = pickle.dumps(cw.Log("tickets-0"))
    monkeypatch.chdir("/")
    assert pickle.loads(data).log_end_offset == 370


def test_a_scan_pickles_with_its_arguments() -> None:
    scan = cw.Log(PLAIN.path).scan(
        start_offset=7,
        end_offset=900,
        start_time=1_700_000_003_000,
        columns=["offset", "key"],
        max_rows=10,
        timestamp_unit="us",
    )
    wanted = scan.to_arrow()
    assert again(scan).to_arrow().equals(wanted)
    assert again(again(scan)).schema == scan.schema


def test_a_scan_of_a_split_pickles() -> None:
    log = cw.Log(PLAIN.path)
    got = [o for split in log.plan(9000) for o in offsets(again(log.scan(split=split, columns=["offset"])).to_arrow())]
    assert got == list(range(1500))


def test_a_split_is_small_frozen_and_pickles() -> None:
    split = cw.Log(PLAIN.path).plan(50_000)[1]
    data = pickle.dumps(split)
    assert len(data) < 1000
    other = pickle.loads(data)
    names = ("start_offset", "end_offset", "size")
    assert [getattr(other, n) for n in names] == [getattr(split, n) for n in names]
    assert str(other.path) == str(split.path) == str(PLAIN.path)
    assert other == split
    assert copy.copy(split) == split
    with pytest.raises(AttributeError):
        split.start_offset = 3


def test_results_are_frozen_and_not_tuples() -> None:
    log = cw.Log(PLAIN.path)
    record = next(iter(log.records()))
    for result, field in ((log.locate(5), "position"), (log.offset_for_time(0), "offset"), (record, "offset")):
        assert not isinstance(result, tuple)
        with pytest.raises(AttributeError):
            setattr(result, field, 3)


def test_errors_pickle_with_all_attributes() -> None:
    damaged = corpus.GOLDEN / "damaged/flip-record/tickets-0"
    with pytest.raises(cw.CorruptLogError) as raised:
        cw.Log(damaged).scan().to_arrow()
    error = raised.value
    other = again(error)
    assert type(other) is cw.CorruptLogError
    assert str(other) == str(error)
    for name in ("code", "file", "position", "offset", "expected", "found"):
        assert getattr(other, name) == getattr(error, name)
    assert (Path(error.file).name, error.position) == ("00000000000000000285.log", 2126)
    assert error.code
    with pytest.raises(cw.OffsetOutOfRangeError) as out:
        cw.Log(PLAIN.path).locate(1500)
    assert str(again(out.value)) == str(out.value)
    assert out.value.offset == 1500
    with pytest.raises(cw.LogNotFoundError) as missing:
        cw.Log("/nowhere/at-0")
    assert isinstance(again(missing.value), FileNotFoundError)


def test_the_base_classes_of_the_errors() -> None:
    for error in (
        cw.CorruptLogError,
        cw.BatchTooLargeError,
        cw.OffsetOutOfRangeError,
        cw.UnsupportedFormatError,
        cw.LogChangedError,
        cw.LogNotFoundError,
        cw.LockedError,
        cw.ForkedHandleError,
        cw.PoisonedError,
        cw.ClosedError,
        cw.InvalidRecordError,
        cw.RecordTooLargeError,
        cw.ConfigError,
        cw.InternalError,
    ):
        assert issubclass(error, cw.CordwoodError)
    assert issubclass(cw.LogNotFoundError, FileNotFoundError)
    assert issubclass(cw.LockedError, OSError)
    assert issubclass(cw.ConfigError, ValueError)
    assert issubclass(cw.CordwoodError, Exception)


FORK = """
import os, sys
import cordwood as cw

path, io = sys.argv[1:]
log = cw.Log(path, io=io)
before = log.scan(columns=["offset"]).to_arrow().num_rows
scan = log.scan(columns=["offset"])
index = log.segments[0].offset_index
place = log.locate(700).position
log.offset_for_time(1_700_000_009_000)
children = []
for _ in range(3):
    child = os.fork()
    if child == 0:
        good = log.locate(700).position == place and log.locate(1499).segment_base_offset == 1217
        rows = sum(b.num_rows for b in log.scan(columns=["offset"], threads=1))
        good = good and rows == before == 1500 and sum(b.num_rows for b in scan) == 1500
        good = good and log.offset_for_time(1_700_000_009_000).offset > 0 and len(log.refresh().segments) == 4
        os._exit(0 if good else 3)
    children.append(child)
assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0, 0, 0]
assert log.scan(columns=["offset"]).to_arrow().num_rows == before
print("fine")
"""


@pytest.mark.parametrize("io", ["auto", "mmap", "pread"])
def test_a_forked_child_uses_the_log_of_its_parent(tmp_path: Path, io: str, script_environment: dict[str, str]) -> None:
    """The child reopens the files; the parent's handles remain valid."""
    script = write_script(tmp_path, FORK)
    assert run(script, PLAIN.path, io, env=script_environment).stdout.split() == ["fine"]


FORKED_TABLES = """
import os, sys, threading
import cordwood as cw

path, io = sys.argv[1:]
times = range(1_700_000_000_000, 1_700_000_009_000, 150)

def find(log):
    return [log.locate(n).position for n in range(0, 1500, 7)], [log.offset_for_time(time).offset for time in times]

right = find(cw.Log(path, io=io))
warm = cw.Log(path, io=io)
for _ in range(20):
    assert find(warm) == right
for _ in range(5):
    # another thread builds the tables of this log while the process forks
    log = cw.Log(path, io=io)
    thread = threading.Thread(target=lambda: [find(log) for _ in range(20)])
    thread.start()
    child = os.fork()
    if child == 0:
        os._exit(0 if all(find(log) == find(warm) == right for _ in range(20)) else 3)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    thread.join()
    assert find(log) == right
print("fine")
"""


@pytest.mark.parametrize("io", ["mmap", "pread"])
def test_a_forked_child_finds_the_same_as_its_parent_with_tables(
    tmp_path: Path, io: str, script_environment: dict[str, str]
) -> None:
    script = write_script(tmp_path, FORKED_TABLES)
    assert run(script, PLAIN.path, io, env=script_environment).stdout.split() == ["fine"]


SPAWN = """
import multiprocessing as mp
import sys
import cordwood as cw

def work(job):
    log, split = job
    return sum(log.scan(split=split, columns=["offset"]).to_arrow()["offset"].to_pylist())

def count(scan):
    return scan.to_arrow().num_rows

if __name__ == "__main__":
    log = cw.Log(sys.argv[1])
    jobs = [(log, split) for split in log.plan(100_000)]
    with mp.get_context("spawn").Pool(2) as pool:
        total = sum(pool.map(work, jobs))
        rows = pool.map(count, [log.scan(end_offset=10), log.scan(start_offset=1400)])
    assert len(jobs) > 1
    print(total, *rows)
"""


def test_spawned_workers_accept_logs_scans_and_splits(tmp_path: Path, script_environment: dict[str, str]) -> None:
    script = write_script(tmp_path, SPAWN)
    done = run(script, PLAIN.path, env=script_environment)
    assert done.stdout.split() == [str(sum(range(1500))), "10", "100"]


def test_a_created_record_has_the_fields_of_a_read_record() -> None:
    record = next(iter(cw.Log(PLAIN.path).records()))
    assert record.timestamp_type.name == "CreateTime"
    assert isinstance(record.timestamp, int)
    assert isinstance(record.value, bytes)
    assert record.headers == []
    assert "offset" in repr(record)
