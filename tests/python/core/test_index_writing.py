"""`OffsetIndexWriter`, `TimeIndexWriter` and `TransactionIndexWriter`."""

from __future__ import annotations

import datetime as dt
import fcntl
import itertools
import os
import struct
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import cordwood as cw

MOST = 2**31 - 1


def offset_bytes(entries: list[tuple[int, int]], base: int = 0) -> bytes:
    return b"".join(struct.pack(">ii", offset - base, position) for offset, position in entries)


def time_bytes(entries: list[tuple[int, int]], base: int = 0) -> bytes:
    return b"".join(struct.pack(">qi", timestamp, offset - base) for timestamp, offset in entries)


def test_sizes_are_rounded_down_to_whole_entries(tmp_path: Path) -> None:
    with cw.OffsetIndexWriter(tmp_path / "32.index", max_index_size=67) as offsets:
        assert (offsets.max_entries, offsets.max_index_size) == (8, 64)
        offsets.append(35, 700)
        assert struct.unpack(">ii", (tmp_path / "32.index").read_bytes()[:8]) == (3, 700)
    with cw.TimeIndexWriter(tmp_path / "32.timeindex", max_index_size=67) as times:
        assert (times.max_entries, times.max_index_size) == (5, 60)
    with cw.OffsetIndexWriter(tmp_path / "0.index") as offsets:
        assert (offsets.max_index_size, offsets.max_entries) == (10485760, 1310720)
    with cw.TimeIndexWriter(tmp_path / "0.timeindex") as times:
        assert (times.max_index_size, times.max_entries) == (10485756, 873813)


def test_a_full_index_refuses_entries(tmp_path: Path) -> None:
    with cw.OffsetIndexWriter(tmp_path / "0.index", max_index_size=8) as offsets:
        offsets.append(1, 1)
        with pytest.raises(cw.ConfigError, match="1 entries of 1") as caught:
            offsets.append(2, 2)
        assert caught.value.code == "config"
    with cw.TimeIndexWriter(tmp_path / "0.timeindex", max_index_size=24) as times:
        assert times.maybe_append(1, 1)
        with pytest.raises(cw.ConfigError, match="1 entries of 2"):
            times.maybe_append(2, 2)
        assert times.maybe_append(2, 2, skip_full_check=True)


def test_an_offset_that_is_not_above_the_last_is_refused(tmp_path: Path) -> None:
    with cw.OffsetIndexWriter(tmp_path / "0.index") as index:
        index.append(5, 1)
        for offset in (5, 4):
            with pytest.raises(cw.ConfigError, match=rf"^offset: expected above 5.*found {offset}$"):
                index.append(offset, 2)


def test_a_relative_offset_outside_31_bits_is_refused_before_a_byte_is_written(tmp_path: Path) -> None:
    path = tmp_path / "9.timeindex"
    with cw.TimeIndexWriter(path, max_index_size=48) as times:
        for offset in (8, 9 + MOST + 1):
            with pytest.raises(cw.ConfigError, match=r"^offset:"):
                times.maybe_append(1, offset)
            assert path.read_bytes() == bytes(48)
        assert times.maybe_append(1, 9 + MOST)
    with cw.OffsetIndexWriter(tmp_path / "9.index", max_index_size=48) as offsets:
        for offset in (8, 9 + MOST + 1):
            with pytest.raises(cw.ConfigError, match=r"^offset:"):
                offsets.append(offset, 1)
        offsets.append(9 + MOST, 1)


def test_times_may_be_datetimes(tmp_path: Path) -> None:
    with cw.TimeIndexWriter(tmp_path / "0.timeindex") as index:
        assert index.maybe_append(dt.datetime(2023, 11, 14, 22, 13, 20, tzinfo=dt.UTC), 7)
        assert index.last_entry.timestamp == 1_700_000_000_000
        assert not index.maybe_append(1_700_000_000_000, 9)
        with pytest.raises(cw.ConfigError, match=r"^timestamp: expected 1700000000000"):
            index.maybe_append(1_699_999_999_999, 9)
        with pytest.raises(cw.ConfigError, match=r"^offset: expected 7 or above"):
            index.maybe_append(1_700_000_000_001, 6)


def test_an_aborted_transaction_is_created_and_appended(tmp_path: Path) -> None:
    path = tmp_path / "0.txnindex"
    entry = cw.AbortedTransaction(producer_id=1, first_offset=0, last_offset=29, last_stable_offset=8)
    with cw.TransactionIndexWriter(path) as index:
        assert not path.exists()
        index.append(entry)
        index.append(producer_id=2, first_offset=3, last_offset=30, last_stable_offset=9)
        assert index.entry(0) == entry
        assert hash(index.entry(0)) == hash(entry)
        with pytest.raises(cw.ConfigError, match=r"^last_offset: expected above 30"):
            index.append(entry)
        index.flush()
    assert path.read_bytes()[:34].hex() == "000000000000000000010000000000000000000000000000001d0000000000000008"
    append: Any = cw.TransactionIndexWriter(path).append
    for arguments, keywords in [((), {}), ((entry,), {"producer_id": 1}), ((), {"producer_id": 1}), ((1,), {})]:
        with pytest.raises(TypeError):
            append(*arguments, **keywords)


WRITERS: list[tuple[Any, Any, str, set[str]]] = [
    (cw.OffsetIndexWriter, cw.OffsetIndex, "0.index", {"append", "resize", "trim", "truncate_to", "reset", "flush"}),
    (
        cw.TimeIndexWriter,
        cw.TimeIndex,
        "0.timeindex",
        {"maybe_append", "resize", "trim", "truncate_to", "reset", "flush"},
    ),
    (cw.TransactionIndexWriter, cw.TransactionIndex, "0.txnindex", {"append", "truncate_to", "reset", "flush"}),
]


@pytest.mark.parametrize(("writer", "reader", "file", "changing"), WRITERS)
def test_a_writer_has_what_its_index_has_and_the_calls_that_change_the_file(
    writer: Any, reader: Any, file: str, changing: set[str], tmp_path: Path
) -> None:
    added = {name for name in dir(writer) if name not in dir(reader)}
    assert added == changing
    (tmp_path / file).write_bytes(b"")
    with reader(tmp_path / file) as index:
        assert type(index) is reader
        assert repr(index).startswith(f"<{reader.__name__} ")
    with writer(tmp_path / file) as index:
        assert isinstance(index, reader)
        assert repr(index) == f"<{writer.__name__} {tmp_path / file} with 0 entries>"
        index.reset()
    for call in (index.reset, index.flush, lambda: index.truncate_to(1), lambda: index.entries):
        with pytest.raises(ValueError, match="closed"):
            call()
    assert repr(index) == f"<{writer.__name__}, closed>"


def test_an_invalid_size_or_base_offset_is_refused(tmp_path: Path) -> None:
    with pytest.raises(cw.ConfigError, match="max_index_size"):
        cw.OffsetIndexWriter(tmp_path / "1.index", max_index_size=-1)
    with pytest.raises(cw.ConfigError, match="base_offset"):
        cw.OffsetIndexWriter(tmp_path / "x.index")
    with pytest.raises(cw.ConfigError, match="base_offset"):
        cw.OffsetIndexWriter(tmp_path / "x.index", base_offset=-1)
    with pytest.raises(cw.LogNotFoundError):
        cw.OffsetIndexWriter(tmp_path / "missing" / "0.index")
    assert not (tmp_path / "1.index").exists()
    assert not (tmp_path / "x.index").exists()


def test_a_file_has_one_writer(tmp_path: Path) -> None:
    path = tmp_path / "0.index"
    first = cw.OffsetIndexWriter(path)
    entries = iter(first)
    with pytest.raises(cw.LockedError):
        cw.OffsetIndexWriter(path)
    # other files of the segment are not locked
    cw.TimeIndexWriter(tmp_path / "0.timeindex").close()
    first.close()
    cw.OffsetIndexWriter(path).close()
    assert list(entries) == []


def test_a_running_broker_keeps_writers_out(tmp_path: Path) -> None:
    partition = tmp_path / "orders-0"
    partition.mkdir()
    with (tmp_path / ".lock").open("w") as lock:
        fcntl.lockf(lock, fcntl.LOCK_EX)
        # an fcntl lock belongs to a process, so only another process is blocked
        child = os.fork()
        if child == 0:
            try:
                cw.OffsetIndexWriter(partition / "0.index")
            except cw.LockedError:
                os._exit(7)
            finally:
                os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert not (partition / "0.index").exists()


def test_a_forked_child_is_refused_and_harms_nothing(tmp_path: Path) -> None:
    path = tmp_path / "0.index"
    index = cw.OffsetIndexWriter(path, max_index_size=80)
    index.append(1, 1)
    child = os.fork()
    if child == 0:
        refused = 0
        for use in (lambda: index.append(2, 2), lambda: index.entries, lambda: index.lookup(1), index.trim):
            try:
                use()
            except cw.ForkedHandleError:
                refused += 1
        repr(index)
        index.close()
        os._exit(refused)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 4
    assert path.stat().st_size == 80
    index.append(2, 2)
    index.close()
    assert path.read_bytes() == offset_bytes([(1, 1), (2, 2)])


def test_threads_append_and_look_up_on_one_handle(tmp_path: Path) -> None:
    rounds = 3_000
    with cw.OffsetIndexWriter(tmp_path / "0.index") as index, ThreadPoolExecutor(3) as threads:

        def append() -> None:
            for n in range(1, rounds + 1):
                index.append(n, 10 * n)
                if n % 500 == 0:
                    index.flush()

        def read() -> None:
            for target in itertools.cycle(range(1, rounds, 37)):
                entry = index.lookup(target)
                assert entry.position == 10 * entry.offset <= 10 * target
                if index.entries == rounds:
                    return

        for work in [threads.submit(append), threads.submit(read), threads.submit(read)]:
            work.result(timeout=60)
        assert len(index) == rounds


def test_a_dropped_handle_keeps_its_entries(tmp_path: Path) -> None:
    path = tmp_path / "0.timeindex"
    index = cw.TimeIndexWriter(path, max_index_size=120)
    index.maybe_append(5, 5)
    assert "with 1 entries" in repr(index)
    del index
    assert path.read_bytes() == time_bytes([(5, 5)]).ljust(120, b"\0")
    with cw.TimeIndex(path) as reader:
        assert len(reader) == 1


def test_an_index_writer_keeps_a_broker_out_without_a_lock_file(tmp_path: Path) -> None:
    """A broker that stops deletes `.lock`; one that starts takes it exclusively."""
    (tmp_path / "meta.properties").write_text("version=0\nbroker.id=1\n")
    partition = tmp_path / "t-0"
    partition.mkdir()
    with (
        cw.OffsetIndexWriter(partition / f"{0:020d}.index"),
        (tmp_path / ".lock").open("r+") as lock,
        pytest.raises(BlockingIOError),
    ):
        fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    with (tmp_path / ".lock").open("r+") as lock:
        fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_a_refused_base_offset_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(cw.ConfigError):
        cw.OffsetIndexWriter(tmp_path / "no-number.index")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("suffix", ["log", "index", "timeindex", "txnindex", "snapshot", "log.swap", "index.deleted"])
@pytest.mark.parametrize(
    ("reader", "writer", "kind"),
    [
        (cw.OffsetIndex, cw.OffsetIndexWriter, "index"),
        (cw.TimeIndex, cw.TimeIndexWriter, "timeindex"),
        (cw.TransactionIndex, cw.TransactionIndexWriter, "txnindex"),
    ],
)
def test_a_file_of_another_kind_is_refused_and_stays_as_it_is(
    tmp_path: Path, reader: Any, writer: Any, kind: str, suffix: str
) -> None:
    """A writer would cut a `.log` to a multiple of its entry size."""
    path = tmp_path / f"{0:020d}.{suffix}"
    path.write_bytes(bytes(range(1, 102)))
    if suffix.partition(".")[0] == kind:
        reader(path)
        return
    for open_file in (reader, writer):
        with pytest.raises(cw.ConfigError, match=rf"^path: expected a \.{kind} file, found {path}"):
            open_file(path)
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == {path.name: bytes(range(1, 102))}
