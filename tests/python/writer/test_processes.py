"""The writer with threads, forks, locks, kills and concurrent readers."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from scripts import run, write_script

import cordwood as cw
from writer.appending import APPENDER, check_recovered, start

T = 1_700_000_000_000
KILLS = int(os.environ.get("CORDWOOD_KILLS", "10"))


@pytest.mark.parametrize("flush", ["always", cw.FlushMode.group(ms=1), "none"])
def test_many_threads_append_at_once(tmp_path: Path, flush: str) -> None:
    """Every offset is assigned once, a thread's records keep their order, and all records reported as durable are."""
    path = tmp_path / "orders-0"
    said: list[tuple[int, int, bytes, bool]] = []
    failures: list[BaseException] = []
    barrier = threading.Barrier(8)
    with cw.LogWriter(path, flush=flush, config=cw.LogConfig(segment_bytes=20_000)) as writer:

        def work(thread: int) -> None:
            try:
                barrier.wait()
                for number in range(40):
                    value = b"%d/%d" % (thread, number)
                    pair = [value, value + b"/b"]
                    appended = writer.append(value) if number % 4 else writer.append_many(pair)
                    if appended.durable:
                        assert writer.durable_offset > appended.last_offset
                    said.append((appended.first_offset, appended.last_offset, value, appended.durable))
                    if number % 10 == 9:
                        writer.wait_durable(appended.last_offset)
                        assert writer.reader().log_end_offset > appended.last_offset
            except BaseException as error:  # noqa: BLE001  (a thread's exception would be lost)
                failures.append(error)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failures == []
        assert all(durable for *_, durable in said) or flush == "none"
    found = {record.offset: record.value for record in cw.Log(path).records()}
    assert sorted(found) == list(range(8 * 50))
    assert {first: value for first, _, value, _ in said}.items() <= found.items()
    assert sum(last - first + 1 for first, last, *_ in said) == len(found)
    for thread in range(8):
        own = [value for _, value in sorted(found.items()) if value and value.startswith(b"%d/" % thread)]
        numbers = [int(value.split(b"/")[1]) for value in own]
        assert numbers == sorted(numbers)


def test_other_threads_run_while_an_append_waits_for_the_disk(tmp_path: Path) -> None:
    """An append that waits for its group does not block appends of other threads, or readers."""
    with cw.LogWriter(tmp_path / "orders-0", flush=cw.FlushMode.group(ms=10_000, bytes=2000)) as writer:
        waiting = threading.Thread(target=writer.append, args=(b"first",))
        waiting.start()
        while writer.log_end_offset == 0:
            pass
        assert writer.durable_offset == 0
        assert [record.value for record in writer.reader().records()] == [b"first"]
        # this append fills the group, which ends both waits long before the ten seconds
        assert writer.append(b"x" * 3000).durable
        waiting.join()
        assert writer.durable_offset == 2


FORK = """
import gc, os, sys
import cordwood as cw

path = sys.argv[1]
writer = cw.LogWriter(path, flush="none")
writer.append(b"parent")
uses = [
    lambda: writer.append(b"child"), lambda: writer.append_many([b"child"]), lambda: writer.append_batches(b""),
    lambda: writer.append_arrow(writer), lambda: writer.flush(), lambda: writer.wait_durable(0), lambda: writer.roll(),
    lambda: writer.durable_offset, lambda: writer.log_end_offset, lambda: writer.log_start_offset,
    lambda: writer.leader_epochs, lambda: writer.end_offset_for(0), lambda: writer.truncate_to(0),
    lambda: writer.truncate_fully_and_start_at(7), lambda: writer.delete_before(1), lambda: writer.apply_retention(),
    lambda: writer.reader(), lambda: writer.close(), lambda: writer.__enter__(),
    lambda: writer.__exit__(None, None, None),
]
names = sorted(os.listdir(path))
held = [open(os.path.join(path, name), "rb").read() for name in names if not os.path.isdir(os.path.join(path, name))]
child = os.fork()
if child == 0:
    code = 0
    for number, use in enumerate(uses):
        try:
            use()
            code = 10 + number
        except cw.ForkedHandleError as error:
            if "fork" not in str(error):
                code = 8
    assert "another process" in repr(writer)
    uses.clear()
    del writer, use
    gc.collect()
    os._exit(code)
code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
assert code == 0, code
assert names == sorted(os.listdir(path))
assert held == [open(os.path.join(path, n), "rb").read() for n in names if not os.path.isdir(os.path.join(path, n))]
# the parent still has the lock, and its writer continues
try:
    cw.LogWriter(path)
    sys.exit("a second writer was let in")
except cw.LockedError:
    pass
assert writer.append(b"parent again").first_offset == 1
child = os.fork()
if child == 0:
    # the child's interpreter exits while the writer is open
    sys.exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert writer.append(b"and again").first_offset == 2
writer.close()
assert [r.value for r in cw.Log(path).records()] == [b"parent", b"parent again", b"and again"]

# a child that outlives the parent's writer does not keep the lock
writer = cw.LogWriter(path)
reads, writes = os.pipe()
child = os.fork()
if child == 0:
    os.close(writes)
    os.read(reads, 1)
    os._exit(0)
writer.close()
cw.LogWriter(path).close()
os.close(writes)
os.waitpid(child, 0)
print("fine")
"""


def test_a_forked_child_is_refused_and_harms_nothing(tmp_path: Path, script_environment: dict[str, str]) -> None:
    script = write_script(tmp_path, FORK)
    assert run(script, tmp_path / "orders-0", env=script_environment).stdout.split() == ["fine"]


THREADS_AND_FORKS = """
import os, sys, threading
import cordwood as cw

writer = cw.LogWriter(sys.argv[1], flush="group(ms=1)")
stop = threading.Event()

def work():
    while not stop.is_set():
        writer.append(b"x" * 100)
        writer.log_start_offset

threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads:
    thread.start()
for _ in range(20):
    # the child must not wait for a lock that a thread holds at this moment
    child = os.fork()
    if child == 0:
        try:
            writer.append(b"child")
        except cw.ForkedHandleError:
            try:
                writer.close()
            except cw.ForkedHandleError:
                os._exit(0)
        os._exit(3)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
stop.set()
for thread in threads:
    thread.join()
writer.close()
print("fine")
"""


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_child_forked_during_appends_does_not_block(tmp_path: Path, script_environment: dict[str, str]) -> None:
    script = write_script(tmp_path, THREADS_AND_FORKS)
    done = run(script, tmp_path / "orders-0", env={**script_environment, "PYTHONWARNINGS": "ignore"})
    assert done.stdout.split() == ["fine"]


SECOND = """
import sys
import cordwood as cw

try:
    cw.LogWriter(sys.argv[1])
except cw.LockedError as error:
    assert isinstance(error, OSError)
    print("locked", error.code, error)
"""


def test_a_second_writer_is_refused_in_this_process_and_in_another(
    tmp_path: Path, script_environment: dict[str, str]
) -> None:
    path = tmp_path / "orders-0"
    script = write_script(tmp_path, SECOND)
    with cw.LogWriter(path) as writer:
        writer.append(b"x")
        with pytest.raises(cw.LockedError, match=r"only one writer") as raised:
            cw.LogWriter(path)
        assert raised.value.code == "locked"
        assert raised.value.file == str(path / ".cordwood.lock")
        said = run(script, path, env=script_environment).stdout
        assert said.startswith("locked locked")
        assert str(os.getpid()) in said
        # the refused writers changed nothing
        with pytest.raises(cw.LockedError):
            cw.LogWriter(path)
    assert run(script, path, env=script_environment).stdout == ""
    cw.LogWriter(path).close()


@pytest.mark.parametrize("kill", range(KILLS))
def test_acknowledged_records_survive_a_kill(tmp_path: Path, kill: int, script_environment: dict[str, str]) -> None:
    """A child process is killed during appends; the log has all acknowledged records, and none that were not appended.

    Twice on the same log, so that the second one continues after a recovery.
    """
    choose = random.Random(kill)
    path = tmp_path / "orders-0"
    script = write_script(tmp_path, APPENDER)
    told = b""
    for generation in range(2):
        flush = choose.choice(["always", cw.FlushMode.group(ms=1), "none", cw.FlushMode.interval(messages=50)])
        codec = choose.choice(["producer", "producer", "zstd", "lz4"])
        threads = choose.choice([1, 1, 4])
        how = {"flush": flush, "codec": codec, "generation": generation, "threads": threads}
        with start(script, path, **how, env=script_environment) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            for _ in range(choose.randrange(1, 60)):
                told += process.stdout.readline()
            process.send_signal(signal.SIGKILL)
            told += process.stdout.read()
            assert process.stderr.read() == b""
        assert check_recovered(path, told) > 0


def whole_groups(log: cw.Log, start: int) -> int:
    """Read a log from an offset to its end: no offset is missing, and the last batch is whole. Return the end."""
    end = log.log_end_offset
    records = list(log.records(start_offset=max(log.log_start_offset, start)))
    assert [record.offset for record in records] == list(range(records[0].offset, end))
    last = records[-1].value
    assert last is not None
    _, place, size = last.split(b"/")[:3]
    assert int(place) == int(size), last
    return end


def test_a_reader_during_writing_never_returns_a_torn_batch(tmp_path: Path) -> None:
    """Readers are refreshed repeatedly while batches are appended and segments rolled and deleted."""
    path = tmp_path / "orders-0"
    config = cw.LogConfig(segment_bytes=50_000, index_interval_bytes=256)
    failures: list[BaseException] = []
    done = threading.Event()
    with cw.LogWriter(path, config=config, flush="none") as writer:
        writer.append_many([b"0/0/0"])

        def look(refreshed: Callable[[], cw.Log]) -> None:
            try:
                end, turns = 0, 0
                while not done.is_set() or turns == 0:
                    log = refreshed()
                    # a segment deleted in the meantime is an error, also the last one if the writer has
                    # rolled since
                    with suppress(cw.LogChangedError, cw.OffsetOutOfRangeError):
                        assert log.log_end_offset >= end
                        end = whole_groups(log, end - 300)
                        turns += 1
            except BaseException as error:  # noqa: BLE001  (a thread's exception would be lost)
                failures.append(error)

        beside = cw.Log(path)
        threads = [threading.Thread(target=look, args=(refreshed,)) for refreshed in (writer.reader, beside.refresh)]
        for thread in threads:
            thread.start()
        choose = random.Random(5)
        for group in range(1, 600):
            last = choose.choice([0, 3, 30])
            filling = b"y" * choose.choice([0, 50, 500])
            writer.append_many([b"%d/%d/%d/" % (group, place, last) + filling for place in range(last + 1)])
            if group % 100 == 0:
                writer.delete_before(writer.log_end_offset - 400)
            if failures:
                break
        done.set()
        for thread in threads:
            thread.join()
    if failures:
        raise failures[0]


INTERRUPTED = """
import sys
import cordwood as cw
import pyarrow as pa

writer = cw.LogWriter(sys.argv[1], flush="none")
schema = pa.schema([("value", pa.binary())])
batch = pa.record_batch([pa.array([b"x" * 100] * 1000)], schema=schema)

def batches():
    print("begun", flush=True)
    while True:
        yield batch

try:
    with writer:
        writer.append_arrow(pa.RecordBatchReader.from_batches(schema, batches()))
except (KeyboardInterrupt, cw.ConfigError) as error:
    print(type(error).__name__, writer.closed)
"""


def test_an_interrupt_ends_a_long_append(tmp_path: Path, script_environment: dict[str, str]) -> None:
    script = write_script(tmp_path, INTERRUPTED)
    path = tmp_path / "orders-0"
    with subprocess.Popen(
        [sys.executable, str(script), str(path)], stdout=subprocess.PIPE, env=script_environment
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"begun\n"
        process.send_signal(signal.SIGINT)
        said = process.stdout.read().split()
    assert said in ([b"KeyboardInterrupt", b"True"], [b"ConfigError", b"True"])
    with cw.LogWriter(path) as writer:
        assert writer.log_end_offset % 1000 == 0
