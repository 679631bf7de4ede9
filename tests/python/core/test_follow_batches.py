"""`Follow.batches`, `follow(durable=True)` and `Log.durable_offset`, and what `follow` holds of a log that expands."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import tracemalloc
from pathlib import Path

import pytest
from scripts import write_script

import cordwood as cw
from core.following import append, later, new_log

# Appends without a flush, flushes when told to, and prints what is durable.
WRITER = """
import sys
import cordwood as cw

writer = cw.LogWriter(sys.argv[1], flush="none")
for line in sys.stdin:
    writer.append_many(["v"] * int(line)) if int(line) else writer.flush()
    print(writer.log_end_offset, writer.durable_offset, flush=True)
"""

# Holds the lock of a data directory as a broker does, until its input ends.
HOLDER = """
import fcntl, sys
file = open(sys.argv[1], "r+")
fcntl.lockf(file, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


def test_a_list_has_all_records_that_are_there_and_the_commit_follows(tmp_path: Path) -> None:
    path = tmp_path / "t-0"
    with new_log(path, 10) as writer, cw.Log(path).follow(timeout=30) as follow:
        position, batches = cw.Log(path).position("billing"), follow.batches()
        assert [record.offset for record in next(batches)] == list(range(10))
        position.commit(follow.next_offset)
        assert position.offset == 10
        with later(lambda: append(writer, 3)):
            seen = [record.offset for record in next(batches)]
        while len(seen) < 3:
            seen += [record.offset for record in next(batches)]
        assert seen == [10, 11, 12]
        # records that were read ahead of a single one come next
        append(writer, 5)
        assert next(follow).offset == 13
        assert [record.offset for record in next(batches)] == [14, 15, 16, 17]
        follow.close()
        assert list(batches) == []


def test_lists_are_bounded_and_complete(tmp_path: Path) -> None:
    path = tmp_path / "t-0"
    with cw.LogWriter(path, flush="none") as writer:
        writer.append_many([b"v"] * 10_000)
    lists = list(cw.Log(path).follow(timeout=0).batches())
    assert [record.offset for records in lists for record in records] == list(range(10_000))
    assert max(map(len, lists)) <= 4096


def test_lists_in_an_event_loop(tmp_path: Path) -> None:
    path = tmp_path / "t-0"
    seen: list[int] = []

    async def read() -> None:
        async for records in cw.Log(path).follow(timeout=30).batches():
            seen.extend(record.offset for record in records)
            if len(seen) == 200:
                break

    async def main(writer: cw.LogWriter) -> None:
        reading = asyncio.create_task(read())
        for _ in range(20):
            append(writer, 10)
            await asyncio.sleep(0)
        await reading

    with new_log(path, 0) as writer:
        asyncio.run(main(writer))
    assert seen == list(range(200))


def test_the_values_that_are_read_ahead_are_bounded(tmp_path: Path) -> None:
    path, value = tmp_path / "t-0", b"\0" * (1 << 20)
    config = cw.LogConfig(compression_type="zstd", max_message_bytes=1 << 30)
    with cw.LogWriter(path, flush="none", config=config) as writer:
        for _ in range(20):
            writer.append_many([value] * 8)
    assert cw.Log(path).size < 1 << 20
    follow, seen, largest = cw.Log(path).follow(timeout=0), 0, 0
    tracemalloc.start()
    try:
        for record in follow:
            assert record.offset == seen
            seen += 1
            largest = max(largest, tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    assert seen == 160
    assert largest < 80 << 20


def test_another_process_follows_only_what_is_durable(tmp_path: Path, script_environment: dict[str, str]) -> None:
    path = tmp_path / "t-0"
    words = [sys.executable, str(write_script(tmp_path, WRITER)), str(path)]
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=script_environment, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None

        def tell(count: int) -> tuple[int, int]:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(f"{count}\n")
            process.stdin.flush()
            end, durable = process.stdout.readline().split()
            return int(end), int(durable)

        assert tell(3) == (3, 0)
        log = cw.Log(path)
        assert (log.log_end_offset, log.durable_offset) == (3, 0)
        with log.follow(timeout=0, durable=True) as none, log.follow(timeout=0) as all_of_it:
            assert (list(none), len(list(all_of_it))) == ([], 3)
        with log.follow(timeout=30, durable=True) as follow:
            flush = threading.Timer(0.1, lambda: tell(0))
            flush.start()
            assert [record.offset for record in next(follow.batches())] == [0, 1, 2]
            flush.join()
            assert log.durable_offset == 3
            assert tell(2) == (5, 3)
            assert (cw.Log(path).log_end_offset, cw.Log(path).durable_offset) == (5, 3)
            assert tell(0) == (5, 5)
            assert [next(follow).offset for _ in range(2)] == [3, 4]
        process.stdin.close()


def test_the_durable_offset_is_unknown_while_a_broker_has_the_data_directory(tmp_path: Path) -> None:
    """What it appends is not recorded in the file of the writer that has gone."""
    path = tmp_path / "t-0"
    (tmp_path / ".lock").touch()
    with cw.LogWriter(path) as writer:
        writer.append_many(["a", "b"])
        assert cw.Log(path).durable_offset == 2
    log = cw.Log(path)
    follow = log.follow(timeout=30, durable=True)
    assert [next(follow).offset for _ in range(2)] == [0, 1]
    words = [sys.executable, "-c", HOLDER, str(tmp_path / ".lock")]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as broker:
        assert broker.stdout is not None
        assert broker.stdout.readline() == b"held\n"
        assert log.durable_offset is None
        with pytest.raises(cw.ConfigError, match="no broker"):
            log.follow(durable=True)
        with pytest.raises(cw.ConfigError, match="no broker"):
            next(follow)
        broker.communicate()
    assert log.durable_offset == 2


def test_the_durable_offset_is_unknown_without_a_writer_and_lowered_by_a_truncation(tmp_path: Path) -> None:
    golden = cw.Log("tests/golden/01-plain/orders-0")
    assert golden.durable_offset is None
    with pytest.raises(cw.ConfigError, match=r"^durable: expected a log that a LogWriter has opened"):
        golden.follow(durable=True)
    path = tmp_path / "t-0"
    with cw.LogWriter(path) as writer:
        append(writer, 10)
        assert cw.Log(path).durable_offset == 10
        writer.truncate_to(4)
        assert cw.Log(path).durable_offset == 4
    assert cw.Log(path).durable_offset == 4


def test_other_tasks_run_before_each_list(tmp_path: Path) -> None:
    path = tmp_path / "t-0"
    with cw.LogWriter(path, flush="none") as writer:
        for _ in range(20):
            writer.append_many([b"v"] * 4096)

    async def main() -> None:
        turns, lists = 0, 0

        async def count() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        counting = asyncio.create_task(count())
        async for _ in cw.Log(path).follow(timeout=0).batches():
            lists += 1
            assert turns >= lists
        counting.cancel()
        assert lists >= 20

    asyncio.run(main())
