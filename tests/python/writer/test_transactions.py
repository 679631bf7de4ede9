"""`LogWriter.transaction`: the `with` block, fencing, and committed readers in other processes beside a writer."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from scripts import write_script

import cordwood as cw


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "orders-0"


def committed(path: Path) -> list[bytes | None]:
    return [record.value for record in cw.Log(path).records(isolation_level="read_committed")]


def fail_after(*calls: Callable[[], object]) -> None:
    for call in calls:
        call()
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
            fail_after(lambda: old.append("a"), lambda: writer.transaction("billing"))
        with pytest.raises(cw.InvalidProducerEpochError), writer.transaction("billing") as old:
            writer.transaction("billing")
    with cw.LogWriter(path) as writer:
        with pytest.raises(ZeroDivisionError), writer.transaction("billing") as transaction:
            fail_after(lambda: transaction.append("a"), writer.close)
        with pytest.raises(cw.ClosedError):
            writer.transaction("billing")
        with pytest.raises(cw.ClosedError), transaction:
            pass


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
