"""`LogWriter.append_async` and `append_many_async`: appends of an event loop."""

from __future__ import annotations

import asyncio
import gc
import random
import threading
import warnings
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest
from scripts import run, write_script

import cordwood as cw
from cordwood import async_appends

# a flush that begins after this many bytes; a roll or a close ends the wait for it
HELD = cw.FlushMode.group(ms=600_000, bytes=1 << 16)
ENOUGH = b"x" * (1 << 16)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "orders-0"


def values(path: Path) -> list[bytes | None]:
    return [record.value for record in cw.Log(path).records()]


async def turns(count: int = 5) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


def test_an_await_returns_what_the_append_returns(path: Path) -> None:
    async def main(writer: cw.LogWriter) -> None:
        one = await writer.append_async("a", key=b"k", headers={"h": b"1"}, timestamp=5)
        assert repr(one) == "Appended(first_offset=0, last_offset=0, max_timestamp=5, durable=True)"
        many = await writer.append_many_async([cw.Record("b", timestamp=7), b"c"])
        assert (many.first_offset, many.last_offset, many.durable) == (1, 2, True)
        none = await writer.append_many_async([])
        assert none == writer.append_many([])
        assert writer.durable_offset == 3

    with cw.LogWriter(path) as writer:
        asyncio.run(main(writer))
        [record] = writer.reader().records(end_offset=1)
        assert (record.value, record.key, record.headers, record.timestamp) == (b"a", b"k", [("h", b"1")], 5)
    assert values(path) == [b"a", b"b", b"c"]


@pytest.mark.parametrize("flush", ["none", cw.FlushMode.interval(messages=1000)])
def test_an_append_that_need_not_wait_is_not_durable_and_suspends_no_task(
    path: Path, flush: str | cw.FlushMode
) -> None:
    with cw.LogWriter(path, flush=flush) as writer:
        awaited = writer.append_async(b"a")
        # a coroutine that does not suspend ends when it is sent its first value
        with pytest.raises(StopIteration) as ended:
            awaited.send(None)
        assert not ended.value.value.durable


def test_the_flush_that_is_due_after_an_interval_is_awaited(path: Path) -> None:
    async def main(writer: cw.LogWriter) -> list[bool]:
        return [(await writer.append_async(b"x")).durable for _ in range(7)]

    with cw.LogWriter(path, flush=cw.FlushMode.interval(messages=3)) as writer:
        assert asyncio.run(main(writer)) == [False, False, True, False, False, True, False]


def test_the_order_of_the_calls_is_the_order_in_the_log(path: Path) -> None:
    async def main(writer: cw.LogWriter) -> None:
        calls = [writer.append_async(b"%d" % number) for number in range(100)]
        appended = await asyncio.gather(*reversed(calls))
        assert [one.first_offset for one in appended] == list(reversed(range(100)))
        async with asyncio.TaskGroup() as group:
            for number in range(100, 200):
                group.create_task(writer.append_async(b"%d" % number))

    with cw.LogWriter(path) as writer:
        asyncio.run(main(writer))
    assert values(path) == [b"%d" % number for number in range(200)]


def test_tasks_that_wait_share_one_thread(path: Path) -> None:
    async def main(writer: cw.LogWriter) -> None:
        assert (await writer.append_async(ENOUGH)).durable
        threads = threading.active_count()
        for _ in range(5):
            tasks = [asyncio.create_task(writer.append_async(b"x")) for _ in range(200)]
            await turns()
            assert not any(task.done() for task in tasks)
            await writer.append_async(ENOUGH)
            assert all(one.durable for one in await asyncio.gather(*tasks))
            # a thread of an earlier append may not have ended, so that another one begins
            assert threading.active_count() <= threads + 2

    with cw.LogWriter(path, flush=HELD) as writer:
        asyncio.run(main(writer))


def test_a_cancelled_task_leaves_its_record_and_the_other_tasks(path: Path) -> None:
    async def main(writer: cw.LogWriter) -> None:
        tasks = [asyncio.create_task(writer.append_async(b"%d" % number)) for number in range(3)]
        await turns()
        tasks[0].cancel()
        tasks[2].cancel()
        await turns()
        assert [task.done() for task in tasks] == [True, False, True]
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(writer.append_async(b"3"), 0.01)
        assert writer.durable_offset == 0
        await asyncio.to_thread(writer.roll)
        assert (await tasks[1]).durable
        # a flush in which all tasks were cancelled ends, too
        task = asyncio.create_task(writer.append_async(b"4"))
        await turns()
        task.cancel()
        await asyncio.to_thread(writer.roll)
        last = asyncio.create_task(writer.append_async(b"5"))
        await turns()
        await asyncio.to_thread(writer.roll)
        assert (await last).durable

    with cw.LogWriter(path, flush=HELD) as writer:
        asyncio.run(main(writer))
    assert values(path) == [b"0", b"1", b"2", b"3", b"4", b"5"]


def test_a_close_makes_the_appends_durable_that_tasks_wait_for(path: Path) -> None:
    async def main(writer: cw.LogWriter) -> None:
        waiting = asyncio.create_task(writer.append_async(b"a"))
        await turns()
        writer.close()
        assert (await waiting).durable
        later = writer.append_async(b"b")
        with pytest.raises(cw.ClosedError):
            await later

    asyncio.run(main(cw.LogWriter(path, flush=HELD)))
    assert values(path) == [b"a"]


def test_a_truncation_ends_the_wait_for_the_records_that_it_removes(path: Path) -> None:
    async def main(writer: cw.LogWriter) -> None:
        removed = [asyncio.create_task(writer.append_async(b"a")) for _ in range(2)]
        await turns()
        writer.truncate_to(0)
        stays = asyncio.create_task(writer.append_async(b"b"))
        assert [(await task).durable for task in removed] == [False, False]
        await turns()
        await asyncio.to_thread(writer.roll)
        assert (await stays).durable

    with cw.LogWriter(path, flush=HELD) as writer:
        asyncio.run(main(writer))
    assert values(path) == [b"b"]


async def act(writer: cw.LogWriter, choose: random.Random) -> tuple[list[bytes], list[bytes]]:
    """Append, truncate, cancel and let tasks run, at random. Return the records that are left, and the durable ones."""
    left: list[bytes] = []
    waits: list[tuple[bytes, asyncio.Task[cw.Appended]]] = []
    for number in range(300):
        match choose.choice("aaaaaatwwc"):
            case "a":
                left.append(b"%d" % number)
                waits.append((left[-1], asyncio.create_task(writer.append_async(left[-1]))))
            case "t" if choose.random() < 0.3:
                writer.truncate_to(end := choose.randrange(len(left) + 1))
                del left[end:]
            case "w":
                await asyncio.sleep(0)
            case "c" if waits:
                choose.choice(waits)[1].cancel()
    await turns()
    await asyncio.to_thread(writer.roll)
    ended = await asyncio.wait_for(asyncio.gather(*(task for _, task in waits), return_exceptions=True), 60)
    pairs = zip(waits, ended, strict=True)
    return left, [value for (value, _), one in pairs if isinstance(one, cw.Appended) and one.durable]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("flush", ["always", HELD, cw.FlushMode.group(ms=1), cw.FlushMode.interval(messages=7)])
def test_every_wait_ends_whatever_is_appended_truncated_and_cancelled(
    path: Path, seed: int, flush: str | cw.FlushMode
) -> None:
    with cw.LogWriter(path, config=cw.LogConfig(segment_bytes=2000), flush=flush) as writer:
        left, durable = asyncio.run(act(writer, random.Random(seed)))
        assert writer.durable_offset == writer.log_end_offset == len(left)
    assert values(path) == left
    assert len(durable) >= 20
    assert async_appends._State.running == {}  # noqa: SLF001


def test_errors_are_raised_by_the_await(path: Path) -> None:
    config = cw.LogConfig(max_message_bytes=100)

    async def main(writer: cw.LogWriter) -> None:
        wrong: list[tuple[Coroutine[Any, Any, cw.Appended], type[Exception]]] = [
            (writer.append_async(5), TypeError),  # type: ignore[arg-type]
            (writer.append_async(b"x" * 200), cw.RecordTooLargeError),
            (writer.append_async(b"", timestamp=-5), cw.ConfigError),
            (writer.append_many_async([b"", 5]), TypeError),  # type: ignore[list-item]
        ]
        found = await asyncio.gather(*(call for call, _ in wrong), return_exceptions=True)
        assert [type(error) for error in found] == [kind for _, kind in wrong]
        assert writer.log_end_offset == 0

    with cw.LogWriter(path, config=config) as writer:
        asyncio.run(main(writer))


def test_event_loops_of_several_threads_share_a_writer(path: Path) -> None:
    found: list[int] = []

    async def main(writer: cw.LogWriter) -> None:
        for _ in range(10):
            appended = await asyncio.gather(*(writer.append_async(b"x") for _ in range(50)))
            assert all(one.durable for one in appended)
            found.extend(one.first_offset for one in appended)

    with cw.LogWriter(path) as writer:
        threads = [threading.Thread(target=lambda: asyncio.run(main(writer))) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert writer.durable_offset == 2000
    assert sorted(found) == list(range(2000))


def test_an_event_loop_that_is_closed_during_a_flush_is_forgotten(path: Path) -> None:
    with cw.LogWriter(path, flush=HELD) as writer:
        # a loop of which a callback remains, and one that is closed when the flush ends
        for end_first in (True, False):
            loop = asyncio.new_event_loop()
            task = loop.create_task(writer.append_async(b"a"))
            loop.run_until_complete(turns())
            assert not task.done()
            if end_first:
                writer.roll()
            task.cancel()
            loop.run_until_complete(asyncio.gather(task, return_exceptions=True))
            loop.close()
            writer.roll()
        roll = threading.Timer(0.05, writer.roll)
        roll.start()
        assert asyncio.run(asyncio.wait_for(writer.append_async(b"b"), 60)).durable
        roll.join()
        assert async_appends._State.running == {}  # noqa: SLF001
    assert values(path) == [b"a", b"a", b"b"]


def test_a_writer_that_is_dropped_while_a_task_waits_releases_the_log(path: Path) -> None:
    async def main() -> asyncio.Task[cw.Appended]:
        task = asyncio.create_task(cw.LogWriter(path, flush=cw.FlushMode.group(ms=1)).append_async(b"a"))
        await task
        return task

    asyncio.run(main())
    gc.collect()
    with cw.LogWriter(path) as writer:
        assert writer.recovery is None or writer.recovery.cuts == []
        assert writer.log_end_offset == 1


def test_a_call_that_is_not_awaited_has_appended_its_record(path: Path) -> None:
    with cw.LogWriter(path) as writer:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            writer.append_async(b"a")  # type: ignore[unused-coroutine]
            gc.collect()
        assert "never awaited" in str(caught[0].message)
        assert writer.log_end_offset == 1


FORKED = """
import asyncio, os, sys, threading
import cordwood as cw

async def main(awaited):
    return (await awaited).durable

writer = cw.LogWriter(sys.argv[1])
assert asyncio.run(main(writer.append_async(b"parent")))
before = writer.append_async(b"before the fork")
child = os.fork()
if child == 0:
    for awaited in (before, writer.append_async(b"child")):
        try:
            asyncio.run(main(awaited))
            os._exit(3)
        except cw.ForkedHandleError:
            pass
    # a log of the child's own has a thread of its own
    with cw.LogWriter(sys.argv[1] + "1") as own:
        assert asyncio.run(main(own.append_async(b"child")))
    os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert asyncio.run(main(before))
assert writer.log_end_offset == 2
print("fine")
"""


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_is_refused(path: Path, script_environment: dict[str, str], tmp_path: Path) -> None:
    script = write_script(tmp_path, FORKED)
    assert run(script, path, env={**script_environment, "PYTHONWARNINGS": "ignore"}).stdout.split() == ["fine"]


EXITING = """
import asyncio, sys
import cordwood as cw

async def main():
    asyncio.create_task(writer.append_async(b"last"))
    await asyncio.sleep(0.01)

writer = cw.LogWriter(sys.argv[1], flush=cw.FlushMode.group(ms=200))
asyncio.run(main())
print(writer.durable_offset)
"""


def test_an_exit_of_the_interpreter_waits_for_the_flush(
    path: Path, script_environment: dict[str, str], tmp_path: Path
) -> None:
    done = run(write_script(tmp_path, EXITING), path, env=script_environment)
    assert (done.stdout, done.stderr) == ("0\n", "")
    plan = cw.LogWriter.plan_recovery(path)
    assert (plan.log_end_offset, plan.closed_cleanly, plan.cuts) == (1, False, [])
    with (path / ".cordwood.durable").open("rb") as durable:
        assert int.from_bytes(durable.read(8), "big") == 1
