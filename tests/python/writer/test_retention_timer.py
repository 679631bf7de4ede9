"""`retention_timer`: retention in a thread, and its shutdown. Every call of a writer while other threads append."""

from __future__ import annotations

import itertools
import logging
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from scripts import run, write_script

import cordwood as cw

OLD = 1_000
SMALL = cw.LogConfig(segment_bytes=500, retention_ms=60_000)


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.001)


def append_old(writer: cw.LogWriter, count: int = 20) -> None:
    """Records that have expired."""
    for _ in range(count):
        writer.append(b"x" * 50, timestamp=OLD)


def timers() -> int:
    return sum(thread.name == "cordwood-retention" for thread in threading.enumerate())


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "orders-0"


def test_a_timer_deletes_at_its_start_and_then_at_intervals(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "cordwood")
    with cw.LogWriter(path, config=SMALL) as writer:
        append_old(writer)
        timer = cw.retention_timer(writer, every=0.02)
        assert (timer.is_running, timer.last_error, timers()) == (False, None, 0)
        assert writer.log_start_offset == 0
        with timer as entered:
            assert entered is timer
            until(lambda: writer.log_start_offset == 20)
            append_old(writer)
            until(lambda: writer.log_start_offset == 40)
            assert (timer.is_running, timers()) == (True, 1)
        assert (timer.is_running, timers(), timer.last_error) == (False, 0, None)
        append_old(writer)
        assert writer.log_start_offset == 40
        # a stopped timer starts again, and a second start does nothing
        timer.start()
        timer.start()
        assert timers() == 1
        until(lambda: writer.log_start_offset == 60)
        timer.stop()
        timer.stop()
        assert timers() == 0
    messages = [record.getMessage() for record in caplog.records]
    assert [message.partition(" segments ")[2] for message in messages][-1] == "below offset 60"
    assert all("retention deleted" in message for message in messages)


def test_a_timer_compacts_a_log_whose_policy_says_so(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "cordwood")
    config = cw.LogConfig(segment_bytes=500, cleanup_policy="compact,delete", retention_ms=-1)
    with cw.LogWriter(path, config=config) as writer:
        for number in range(40):
            writer.append(b"%d" % number, key=b"%d" % (number % 2))
        with cw.retention_timer(writer, every=3600) as timer:
            until(lambda: any("compaction cleaned" in record.getMessage() for record in caplog.records))
        assert timer.last_error is None
        log = writer.reader()
        assert len(list(log.records())) < 20
        last = {record.key: record.value for record in log.records()}
        assert last == {b"0": b"38", b"1": b"39"}


def test_a_stop_waits_for_a_run_and_not_for_the_interval(path: Path) -> None:
    with cw.LogWriter(path, config=SMALL) as writer:
        begun = time.monotonic()
        with cw.retention_timer(writer, every=3600):
            append_old(writer)
        assert time.monotonic() - begun < 60


def test_an_error_of_a_run_is_kept_and_logged_and_the_timer_goes_on(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with cw.LogWriter(path, config=SMALL) as writer:
        append_old(writer)
        segment = path / f"{0:020d}.log"
        # a damaged batch, whose timestamp decides; one byte at a time, so that the timer never sees an empty
        # file
        with segment.open("r+b") as file:
            file.seek(16)
            good = file.read(1)
            file.seek(16)
            file.write(b"\x09")
        with cw.retention_timer(writer, every=0.01) as timer:
            until(lambda: timer.last_error)
            assert isinstance(timer.last_error, cw.CorruptLogError)
            assert writer.log_start_offset == 0
            with segment.open("r+b") as file:
                file.seek(16)
                file.write(good)
            # a health check sees that the log is well again
            until(lambda: timer.last_error is None)
            assert writer.log_start_offset == 20
    record = next(record for record in caplog.records if record.levelname == "ERROR")
    assert (record.name, str(path) in record.getMessage()) == ("cordwood", True)
    assert record.exc_info is not None


def test_a_timer_ends_when_its_writer_is_closed(path: Path) -> None:
    writer = cw.LogWriter(path, config=SMALL)
    timer = cw.retention_timer(writer, every=0.01)
    timer.start()
    writer.close()
    until(lambda: not timer.is_running)
    assert timer.last_error is None
    timer.stop()
    with pytest.raises(cw.ClosedError):
        timer.start()
    assert timers() == 0
    cw.LogWriter(path).close()


def test_a_handler_of_the_logger_may_stop_the_timer(path: Path) -> None:
    class _Stops(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            del record
            timer.stop()

    logger, handler = logging.getLogger("cordwood"), _Stops()
    logger.addHandler(handler)
    level = logger.level
    logger.setLevel(logging.INFO)
    try:
        with cw.LogWriter(path, config=SMALL) as writer:
            append_old(writer)
            timer = cw.retention_timer(writer, every=0.01)
            timer.start()
            until(lambda: not timer.is_running)
            assert writer.log_start_offset == 20
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)


@pytest.mark.parametrize(
    ("every", "error", "words"),
    [
        (0, cw.ConfigError, "every: expected a number of seconds above 0, found 0"),
        (-1.5, cw.ConfigError, "found -1.5"),
        (float("nan"), cw.ConfigError, "found nan"),
        (float("inf"), cw.ConfigError, "found inf"),
        (1e300, cw.ConfigError, "found 1e"),
        ("5m", TypeError, "every: expected a number of seconds above 0, found str"),
        (True, TypeError, "found bool"),
        (None, TypeError, "found NoneType"),
    ],
)
def test_a_wrong_interval_is_named(path: Path, every: Any, error: type[Exception], words: str) -> None:
    with cw.LogWriter(path) as writer, pytest.raises(error, match=words):
        cw.retention_timer(writer, every=every)


@pytest.mark.parametrize("writer", [None, "orders-0"])
def test_a_timer_needs_a_writer(writer: Any) -> None:
    with pytest.raises(TypeError, match="writer: expected a LogWriter, found"):
        cw.retention_timer(writer, every=1)


EXITING = """
import sys
import cordwood as cw

writer = cw.LogWriter(sys.argv[1], config=cw.LogConfig(segment_bytes=500, retention_ms=1000), flush="none")
timer = cw.retention_timer(writer, every=float(sys.argv[2]))
timer.start()
for _ in range(100):
    writer.append(b"x" * 50, timestamp=1)
if sys.argv[3] == "raise":
    raise SystemExit(0)
print("fine")
"""


@pytest.mark.parametrize(("every", "how"), [(0.0001, "end"), (3600, "raise")])
def test_a_timer_that_is_not_stopped_does_not_hold_up_the_exit(
    path: Path, tmp_path: Path, every: float, how: str, script_environment: dict[str, str]
) -> None:
    done = run(write_script(tmp_path, EXITING), path, every, how, env=script_environment, timeout=60)
    assert done.stderr == ""
    with cw.LogWriter(path) as writer:
        assert writer.log_end_offset == 100


FORKED = """
import os, sys
import cordwood as cw

writer = cw.LogWriter(sys.argv[1])
timer = cw.retention_timer(writer, every=0.0001)
timer.start()
for _ in range(20):
    child = os.fork()
    if child == 0:
        assert not timer.is_running
        timer.stop()
        try:
            timer.start()
        except cw.ForkedHandleError:
            sys.exit(0)
        os._exit(3)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert timer.is_running and timer.last_error is None
timer.stop()
writer.close()
print("fine")
"""


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_has_no_timer(path: Path, tmp_path: Path, script_environment: dict[str, str]) -> None:
    script = write_script(tmp_path, FORKED)
    done = run(script, path, env={**script_environment, "PYTHONWARNINGS": "ignore"}, timeout=60)
    assert done.stdout.split() == ["fine"]


def test_every_call_of_a_writer_is_safe_while_other_threads_append(path: Path, tmp_path: Path) -> None:
    """Nothing that is acknowledged is lost, and the records of each thread keep their order."""
    config = cw.LogConfig(segment_bytes=4000, retention_bytes=100_000, retention_ms=-1)
    appended: list[list[int]] = [[] for _ in range(3)]
    failures: list[BaseException] = []
    done = threading.Event()
    with cw.LogWriter(path, config=config, flush="none") as writer:

        def append(thread: int) -> None:
            try:
                for number in range(1000):
                    appended[thread].append(writer.append(b"%d/%d" % (thread, number)).first_offset)
            except BaseException as error:  # noqa: BLE001  (a thread's exception would be lost)
                failures.append(error)

        def change() -> None:
            try:
                turn = 0
                while not done.is_set():
                    turn += 1
                    end = writer.log_end_offset
                    writer.roll()
                    writer.flush()
                    assert writer.durable_offset >= end
                    writer.apply_retention()
                    writer.delete_before(max(writer.log_start_offset, end - 1500))
                    assert writer.truncate_to(2**62) is False
                    assert writer.last_stable_offset >= writer.log_start_offset
                    assert writer.leader_epochs[0][0] == 0
                    reader = writer.reader()
                    # retention may have deleted the last record before `end` meanwhile
                    first = max(reader.log_start_offset, end - 1)
                    assert end == 0 or sum(1 for _ in reader.records(start_offset=first)) >= 1
                    report = writer.backup(tmp_path / f"backup-{turn}")
                    assert report.end_offset is not None
                    assert report.end_offset >= end
            except BaseException as error:  # noqa: BLE001
                failures.append(error)

        threads = [threading.Thread(target=append, args=(number,)) for number in range(3)]
        changing = threading.Thread(target=change)
        with cw.retention_timer(writer, every=0.001) as timer:
            for thread in [*threads, changing]:
                thread.start()
            for thread in threads:
                thread.join()
            done.set()
            changing.join()
        assert failures == []
        assert timer.last_error is None
        start = writer.log_start_offset
    assert sorted(itertools.chain(*appended)) == list(range(3000))
    # not all of them: a part was deleted meanwhile
    assert 0 < start < 3000
    found = {record.offset: record.value for record in cw.Log(path).records()}
    for thread, offsets in enumerate(appended):
        assert offsets == sorted(offsets)
        kept = {offset: b"%d/%d" % (thread, number) for number, offset in enumerate(offsets) if offset >= start}
        assert kept.items() <= found.items()
    assert len(found) == 3000 - start


def test_a_timer_is_stopped_also_if_the_writer_could_not_be_closed(tmp_path: Path) -> None:
    path = tmp_path / "orders-0"
    writer = cw.LogWriter(path)
    writer.append(b"v")
    with cw.retention_timer(writer, every=60) as timer:
        # the first call of the timer may write a file meanwhile
        while path.exists():
            shutil.rmtree(path, ignore_errors=True)
        with pytest.raises((OSError, cw.CordwoodError)):
            writer.close()
        with pytest.raises(cw.PoisonedError):
            _ = writer.log_end_offset
    assert not timer.is_running
