"""A process that reads many logs stays within its limit of descriptors."""

from __future__ import annotations

from pathlib import Path

import pytest
from batches import Rec, batch, write_partition
from scripts import run, write_script

import cordwood as cw

SCRIPT = """
import os, resource, sys
import cordwood as cw

limit = int(sys.argv[1])
io = sys.argv[2]
resource.setrlimit(resource.RLIMIT_NOFILE, (limit, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
logs = [cw.Log(path, io=io) for path in sys.argv[3:]]
most = 0
readings = [log.records() for log in logs]
# every log in turn, so that all of them are in use
for number in range(200):
    for reading in readings:
        record = next(reading)
        assert record.offset == number, (record, number)
    most = max(most, len(os.listdir("/proc/self/fd")))
    for log in logs:
        assert log.locate((number * 37) % 200).batch_base_offset == (number * 37) % 200
        assert log.offset_for_time(1000 + number).offset == number
for log in logs:
    assert log.scan().to_arrow().num_rows == 200
    assert log.warnings == [], log.warnings
assert most <= limit, most
readings.clear()
del readings, reading, logs, log
assert len(os.listdir("/proc/self/fd")) < 20, os.listdir("/proc/self/fd")
print(most)
"""


@pytest.mark.parametrize("io", ["auto", "mmap", "pread"])
def test_readers_of_many_segments_share_the_descriptors_of_the_process(
    tmp_path: Path, io: str, script_environment: dict[str, str]
) -> None:
    paths = []
    for number in range(8):
        segments = [(base, [batch(base, [Rec(b"v", timestamp=1000 + base)])]) for base in range(200)]
        paths.append(write_partition(tmp_path / f"t-{number}", segments))
        for base in range(200):
            (paths[-1] / f"{base:020d}.index").touch()
            (paths[-1] / f"{base:020d}.timeindex").touch()
    run(write_script(tmp_path, SCRIPT), 64, io, *paths, env=script_environment)


TAKE_ALL = """
import os, resource, sys
import cordwood as cw

resource.setrlimit(resource.RLIMIT_NOFILE, (64, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
log = cw.Log(sys.argv[1], io="pread")
# open as many files as are cached, and then use all other descriptors
assert log.scan().to_arrow().num_rows == 40
taken = []
try:
    while True:
        taken.append(os.open("/dev/null", os.O_RDONLY))
except OSError:
    pass
"""


def test_a_process_without_a_free_descriptor_closes_cached_files(
    tmp_path: Path, script_environment: dict[str, str]
) -> None:
    path = write_partition(tmp_path / "t-0", [(base, [batch(base, [Rec(b"v")])]) for base in range(40)])
    script = write_script(tmp_path, TAKE_ALL + "assert log.scan().to_arrow().num_rows == 40\n")
    run(script, path, env=script_environment)


MANY_LOGS = """
import os, resource, sys
import cordwood as cw

resource.setrlimit(resource.RLIMIT_NOFILE, (1024, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
logs = []
for path in sys.argv[1:]:
    log = cw.Log(path, io="pread")
    assert log.scan().to_arrow().num_rows == 3
    logs.append(log)
# the program can open its own files besides the directories of 800 logs
own = [os.open("/dev/null", os.O_RDONLY) for _ in range(150)]
for log in logs:
    assert log.scan().to_arrow().num_rows == 3
"""


def test_the_directories_of_many_logs_count_as_open_files(tmp_path: Path, script_environment: dict[str, str]) -> None:
    paths = [
        write_partition(tmp_path / f"t-{number}", [(base, [batch(base, [Rec(b"v")])]) for base in range(3)])
        for number in range(800)
    ]
    run(write_script(tmp_path, MANY_LOGS), *paths, env=script_environment)


def test_a_log_can_be_opened_if_cached_files_use_the_last_descriptors(
    tmp_path: Path, script_environment: dict[str, str]
) -> None:
    """The directory, the checkpoints and the listing each need a descriptor."""
    path = write_partition(tmp_path / "t-0", [(base, [batch(base, [Rec(b"v")])]) for base in range(40)])
    other = write_partition(tmp_path / "u-0", [(0, [batch(base, [Rec(b"v")]) for base in range(3)])])
    (tmp_path / "log-start-offset-checkpoint").write_text("0\n1\nu 0 2\n")
    opened = """
other = cw.Log(sys.argv[2], io="pread")
assert (other.log_start_offset, other.log_end_offset, other.scan().to_arrow().num_rows) == (2, 3, 1)
"""
    run(write_script(tmp_path, TAKE_ALL + opened), path, other, env=script_environment)


FORKS = """
import os, signal, sys, threading
import cordwood as cw

path = sys.argv[1]
stop = threading.Event()

def open_and_drop():
    while not stop.is_set():
        cw.Log(path)

# with more logs, opening one holds the lock of the budget for longer
held = [cw.Log(path) for _ in range(4000)]
threads = [threading.Thread(target=open_and_drop) for _ in range(4)]
for thread in threads:
    thread.start()
codes = []
for _ in range(200):
    child = os.fork()
    if child == 0:
        signal.alarm(5)
        os._exit(0 if cw.Log(path).log_end_offset == 1 else 3)
    codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    if codes[-1] != 0:
        break
stop.set()
for thread in threads:
    thread.join()
assert set(codes) == {0}, codes
"""


def test_a_child_forked_while_another_thread_opens_logs_can_open_one(
    tmp_path: Path, script_environment: dict[str, str]
) -> None:
    path = write_partition(tmp_path / "t-0", [(0, [batch(0, [Rec(b"v")])])])
    run(write_script(tmp_path, FORKS), path, env=script_environment)


def test_a_log_that_is_refreshed_while_it_grows_closes_the_files_of_segments_it_has_replaced(tmp_path: Path) -> None:
    path = tmp_path / "t-0"
    with cw.LogWriter(path, flush="none") as writer:
        log = cw.Log(path)
        for number in range(40):
            writer.append(b"v")
            log = log.refresh()
            assert log.locate(number) is not None
            assert log.log_end_offset == number + 1
        opened = [file.readlink() for file in Path("/proc/self/fd").iterdir() if file.is_symlink() and file.exists()]
        # one is the writer's, and one is the reader's
        assert opened.count(path / "00000000000000000000.log") == 2
