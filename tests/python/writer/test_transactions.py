"""`LogWriter.transaction`: the `with` block, fencing, and committed readers in other processes beside a writer."""

from __future__ import annotations

import asyncio
import logging
import queue
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from scripts import write_script

import cordwood as cw
from cordwood.async_transactions import TransactionBlock


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "orders-0"


def committed(path: Path) -> list[bytes | None]:
    return [record.value for record in cw.Log(path).records(isolation_level="read_committed")]


def call_all(*calls: Callable[[], object]) -> None:
    for call in calls:
        call()


def fail_after(*calls: Callable[[], object]) -> None:
    call_all(*calls)
    raise ZeroDivisionError


def test_a_block_commits_at_its_end_and_aborts_by_an_exception(path: Path) -> None:
    with cw.LogWriter(path) as writer:
        with writer.transaction("billing") as transaction:
            assert (transaction.transactional_id, transaction.first_offset) == ("billing", None)
            assert transaction.append("a", key="k").durable is False
            transaction.append_many(["b", cw.Record("c")])
            assert (transaction.first_offset, transaction.is_open, writer.last_stable_offset) == (0, True, 0)
            assert committed(path) == []
        assert (transaction.is_open, writer.last_stable_offset, writer.durable_offset) == (False, 4, 4)
        with pytest.raises(ZeroDivisionError), writer.transaction("billing") as transaction:
            fail_after(lambda: transaction.append("d"))
        assert not transaction.is_open
        with pytest.raises(cw.ClosedError):
            transaction.append("e")
        # ended in the block
        with writer.transaction("billing") as transaction:
            transaction.append("f")
            marker = transaction.commit()
            assert (marker.first_offset, marker.durable) == (7, True)
        with writer.transaction("billing") as transaction:
            transaction.append("g")
            transaction.abort()
        with writer.transaction("billing", version=1):
            pass
        assert writer.log_end_offset == 10
        assert repr(transaction) == f'<Transaction "billing" ({transaction.producer_id}) of {path}>'
    assert committed(path) == [b"a", b"b", b"c", b"f"]
    assert [record.value for record in cw.Log(path).records()] == [b"a", b"b", b"c", b"d", b"f", b"g"]


def test_an_error_of_the_abort_does_not_replace_the_exception_of_the_block(path: Path) -> None:
    with cw.LogWriter(path) as writer:
        with pytest.raises(ZeroDivisionError), writer.transaction("billing") as old:
            fail_after(lambda: old.append("a"), lambda: writer.abort_transaction(old.producer_id))
        with pytest.raises(cw.InvalidProducerEpochError), writer.transaction("billing") as old:
            call_all(lambda: old.append("b"), lambda: writer.abort_transaction(old.producer_id))
    with cw.LogWriter(path) as writer:
        with pytest.raises(ZeroDivisionError), writer.transaction("billing") as transaction:
            fail_after(lambda: transaction.append("a"), writer.close)
        with pytest.raises(cw.ClosedError):
            writer.transaction("billing")
        with pytest.raises(cw.ClosedError), transaction:
            pass


def test_blocks_of_threads_with_the_same_id_take_turns(path: Path) -> None:
    threads, turns = 8, 12
    inside: list[int] = []

    def work(thread: int) -> None:
        for turn in range(turns):
            with writer.transaction("orders", version=1 + turn % 2) as transaction:
                inside.append(thread)
                transaction.append(f"{thread} {turn} first")
                transaction.append(f"{thread} {turn} second")
                assert inside == [thread]
                inside.clear()
                # a thread may end it before the end of the block
                if turn % 3 == 0:
                    transaction.commit()

    with cw.LogWriter(path, flush="none") as writer, ThreadPoolExecutor(threads) as pool:
        for done in [pool.submit(work, thread) for thread in range(threads)]:
            done.result()
    values = [value.decode().split() for value in committed(path) if value]
    assert sorted(values) == sorted(
        [str(thread), str(turn), part]
        for thread in range(threads)
        for turn in range(turns)
        for part in ("first", "second")
    )
    assert all(first[:2] == second[:2] for first, second in zip(values[::2], values[1::2], strict=True))


@pytest.mark.long
def test_a_thread_that_waits_long_for_the_block_of_another_one_says_so(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The block may wait for that thread: then neither ends."""
    told = threading.Event()

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if "waiting for 10 s" in record.getMessage() and "'billing'" in record.getMessage().replace('"', "'"):
                told.set()

    handler = Handler()
    logging.getLogger("cordwood").addHandler(handler)
    try:
        with cw.LogWriter(path) as writer, ThreadPoolExecutor(1) as pool:
            with writer.transaction("billing") as transaction:
                other = pool.submit(writer.transaction, "billing")
                assert told.wait(60)
                transaction.append("a")
            other.result().abort()
    finally:
        logging.getLogger("cordwood").removeHandler(handler)
    assert sum("waiting for" in record.getMessage() for record in caplog.records) == 1
    assert committed(path) == [b"a"]


def test_a_block_inside_a_block_of_the_same_thread_and_id_is_an_error_and_no_deadlock(path: Path) -> None:
    with cw.LogWriter(path) as writer, writer.transaction("orders") as outer:
        outer.append("a")
        with pytest.raises(cw.ConfigError, match=r'^transactional_id: .*"orders", whose block has not ended'):
            writer.transaction("orders")
        with pytest.raises(cw.ConfigError, match=r"^transactional_id: "), outer:
            pass
        with writer.transaction("others") as inner:
            inner.append("b")
        outer.append("c")
        outer.commit()
        with writer.transaction("orders") as following:
            following.append("d")
    assert committed(path) == [b"a", b"b", b"c", b"d"]


def test_a_block_that_waits_begins_after_an_abort_and_ends_with_the_writer(path: Path) -> None:
    writer = cw.LogWriter(path)
    begun: queue.SimpleQueue[object] = queue.SimpleQueue()

    def wait() -> None:
        with writer.transaction("orders") as transaction:
            transaction.append("b")
            begun.put(transaction.first_offset)

    thread = threading.Thread(target=wait)
    with pytest.raises(ZeroDivisionError), writer.transaction("orders") as transaction:
        fail_after(lambda: transaction.append("a"), thread.start, lambda: begun.empty() or fail_after())
    assert begun.get(timeout=30) == 2
    thread.join()
    assert committed(path) == [b"b"]
    with pytest.raises(cw.ClosedError), writer.transaction("orders") as transaction:
        call_all(lambda: transaction.append("c"), writer.close)


def test_tasks_with_the_same_id_take_turns_with_each_other_and_with_threads(path: Path) -> None:
    async def pay(writer: cw.LogWriter, name: str) -> None:
        async with writer.transaction_async("orders") as transaction:
            transaction.append(f"{name} 1")
            await asyncio.sleep(0)
            appended = await transaction.append_async(f"{name} 2")
            assert not appended.durable
            await transaction.append_many_async([f"{name} 3"])

    async def fail_in_a_block(writer: cw.LogWriter) -> None:
        async with writer.transaction_async("orders", version=1) as transaction:
            fail_after(lambda: transaction.append("aborted"))

    async def nest(writer: cw.LogWriter) -> None:
        async with writer.transaction_async("orders"):
            pass

    async def main(writer: cw.LogWriter) -> None:
        in_thread = asyncio.to_thread(lambda: pay_in_thread(writer))
        await asyncio.gather(*(pay(writer, f"task{number}") for number in range(20)), in_thread)
        with pytest.raises(ZeroDivisionError):
            await fail_in_a_block(writer)
        async with writer.transaction_async("orders") as transaction:
            transaction.append("by hand 1")
            marker = await transaction.commit_async()
            assert marker.durable
            with pytest.raises(cw.ClosedError):
                await transaction.append_async("too late")
        async with writer.transaction_async("orders") as transaction:
            with pytest.raises(cw.ConfigError, match="whose block has not ended"):
                await nest(writer)
            with pytest.raises(cw.ConfigError, match="whose block has not ended"):
                writer.transaction("orders")
            await transaction.abort_async()

    def pay_in_thread(writer: cw.LogWriter) -> None:
        for number in range(20):
            with writer.transaction("orders") as transaction:
                transaction.append_many([f"thread{number} {part}" for part in (1, 2, 3)])

    with cw.LogWriter(path) as writer:
        asyncio.run(main(writer))
    values = [value.decode() for value in committed(path) if value]
    assert values.pop() == "by hand 1"
    assert len(values) == 120
    for one, two, three in zip(values[::3], values[1::3], values[2::3], strict=True):
        assert [one.split()[0]] * 2 == [two.split()[0], three.split()[0]]


class CountedBegins:
    """A writer as `TransactionBlock` sees it, which counts the attempts to begin."""

    def __init__(self, writer: cw.LogWriter) -> None:
        self.writer, self.attempts = writer, 0

    def _begin_in_task(self, transactional_id: str, version: int, task: int) -> cw.Transaction | None:
        self.attempts += 1
        return self.writer._begin_in_task(transactional_id, version, task)  # noqa: SLF001


def test_tasks_get_their_turns_in_order_without_asking_again_and_again(path: Path) -> None:
    began: list[int] = []

    async def pay(counted: Any, number: int) -> None:
        async with TransactionBlock(counted, "orders", 2) as transaction:
            began.append(number)
            await asyncio.sleep(0.005)
            transaction.append(f"{number}")

    async def main(writer: cw.LogWriter) -> int:
        counted = CountedBegins(writer)
        tasks = [asyncio.create_task(pay(counted, number)) for number in range(50)]
        await asyncio.sleep(0.02)
        # the place of a task that is cancelled while it waits goes to the next one
        tasks[40].cancel()
        ended = await asyncio.gather(*tasks, return_exceptions=True)
        assert [type(error) for error in ended if error is not None] == [asyncio.CancelledError]
        return counted.attempts

    with cw.LogWriter(path, flush="none") as writer:
        assert asyncio.run(main(writer)) == 49
    assert began == [number for number in range(50) if number != 40]
    assert committed(path) == [b"%d" % number for number in began]


def test_a_transactional_id_for_each_request_does_not_make_the_log_remember_all(path: Path) -> None:
    with cw.LogWriter(path, flush="none") as writer:
        left = writer.transaction("left")
        left.append("aborted")
        for request in range(1000):
            with writer.transaction(f"request-{request}") as transaction:
                transaction.append(f"{request}")
        assert len(cw.Log(path).scan(columns=["producer_id"]).to_arrow()["producer_id"].unique()) <= 258
        assert len((path / ".cordwood.producers").read_text().splitlines()) <= 260
    with cw.LogWriter(path, flush="none") as writer:
        # one that was left open is not forgotten
        with writer.transaction("left") as transaction:
            assert transaction.producer_id == left.producer_id
        with writer.transaction("request-0") as transaction:
            transaction.append("again")
    assert committed(path) == [*(b"%d" % request for request in range(1000)), b"again"]
    assert cw.verify(path).findings == []


def test_a_transaction_left_open_is_listed_and_aborted_by_its_producer_id(path: Path) -> None:
    with cw.LogWriter(path) as writer:
        transaction = writer.transaction("billing")
        transaction.append("a")
    with pytest.raises(cw.ClosedError):
        transaction.commit()
    rows = cw.open_transactions(path).to_dicts()
    assert [(row["producer_id"], row["first_offset"]) for row in rows] == [(transaction.producer_id, 0)]
    with cw.LogWriter(path) as writer:
        writer.append("b")
        assert (writer.last_stable_offset, committed(path)) == (0, [])
        with pytest.raises(cw.ConfigError, match=r"^producer_id: expected the id of a producer with an open"):
            writer.abort_transaction(5)
        assert writer.abort_transaction(transaction.producer_id).first_offset == 2
        assert writer.last_stable_offset == 3
    assert cw.open_transactions(path).to_dicts() == []
    assert committed(path) == [b"b"]


# Writes transactions of two ids at once, of three values and an end, with plain records between; aborts some.
WRITER = """
import random
import sys
import cordwood as cw

path, seed, flush = sys.argv[1], int(sys.argv[2]), sys.argv[3]
rng = random.Random(seed)
writer = cw.LogWriter(path, flush=flush, config=cw.LogConfig(segment_bytes=4000, retention_ms=-1))
print("open", flush=True)
for _ in range(int(sys.argv[4])):
    one, other = (writer.transaction(name, version=rng.choice([1, 2])) for name in ("one", "other"))
    for part in range(3):
        for transaction, name in ((one, "one"), (other, "other")):
            transaction.append(f"{name} {transaction.first_offset} {part}", key=name)
        writer.append("plain")
    for transaction in rng.sample([one, other], 2):
        if rng.random() < 0.3:
            transaction.append("bad")
            transaction.abort()
        elif rng.random() < 0.1:
            # left open: the next one aborts it
            transaction.append("bad")
        else:
            transaction.append("end", key=transaction.transactional_id)
            transaction.commit()
if sys.argv[5] == "close":
    for name in ("one", "other"):
        writer.transaction(name).abort()
    writer.close()
"""


class Checker:
    """Checks that the committed records are whole transactions: three parts in order, then an end, of each id."""

    def __init__(self) -> None:
        self.parts = {"one": 0, "other": 0}
        self.seen = 0

    def take(self, record: cw.Record) -> None:
        assert record.value is not None
        value = record.value.decode()
        assert value != "bad", "a record of an aborted transaction"
        self.seen += 1
        if value == "plain":
            return
        assert record.key is not None
        name = record.key.decode()
        if value == "end":
            assert self.parts[name] == 3, (record, self.parts)
            self.parts[name] = 0
        else:
            assert int(value.split()[2]) == self.parts[name], (record, self.parts)
            self.parts[name] += 1

    def end(self) -> None:
        """At a stable end, no transaction is there in part."""
        assert self.parts == {"one": 0, "other": 0}


def check_whole(path: Path) -> int:
    checker = Checker()
    for record in cw.Log(path).records(isolation_level="read_committed"):
        checker.take(record)
    return checker.seen


def run(path: Path, seed: int, flush: str, rounds: int, how: str) -> subprocess.Popen[str]:
    script = write_script(path.parent, WRITER)
    command = [sys.executable, script, path, str(seed), flush, str(rounds), how]
    process = subprocess.Popen([str(part) for part in command], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "open\n"
    return process


def test_committed_readers_in_other_processes_see_whole_transactions_only(path: Path) -> None:
    with run(path, 1, "none", 150, "close") as process:
        follower, failures = Checker(), []

        def follow() -> None:
            try:
                with cw.Log(path).follow(timeout=2, isolation_level="read_committed") as records:
                    for record in records:
                        follower.take(record)
            except BaseException as error:  # noqa: BLE001  (a thread's exception would be lost)
                failures.append(error)

        thread = threading.Thread(target=follow)
        thread.start()
        passes = 0
        while process.poll() is None:
            check_whole(path)
            passes += 1
        thread.join()
    assert (process.returncode, failures) == (0, [])
    follower.end()
    assert follower.seen == check_whole(path) > 450
    assert passes > 3


def test_after_a_kill_what_was_open_stays_invisible_and_is_aborted_by_the_next(path: Path) -> None:
    rng = random.Random(3)
    for seed in range(5):
        with run(path, seed, "none", 10_000, "never") as process:
            time.sleep(rng.uniform(0.05, 0.3))
            assert process.poll() is None
            process.send_signal(signal.SIGKILL)
        check_whole(path)
    with run(path, 9, "always", 2, "close") as process:
        assert process.wait() == 0
    assert cw.open_transactions(path).to_dicts() == []
    log = cw.Log(path)
    assert log.last_stable_offset == log.log_end_offset
    checker = Checker()
    for record in log.records(isolation_level="read_committed"):
        checker.take(record)
    checker.end()
