"""Which files are mapped with each `io`, from the process's memory map."""

import fcntl
import shutil
import subprocess
import sys
from pathlib import Path

import corpus
import pytest

READS = """
import sys
import cordwood as cw
log = cw.Log(sys.argv[1], io=sys.argv[2])
for offset in range(0, log.log_end_offset, 100):
    log.locate(offset)
    log.offset_for_time(1700000000000 + 20 * offset)
assert log.scan().to_arrow().num_rows == 1500
with open("/proc/self/maps") as maps:
    print(*sorted({line.split("/")[-1].strip() for line in maps if sys.argv[1] in line}))
"""


@pytest.fixture
def partition(tmp_path: Path) -> Path:
    """A partition in a data directory with a lock file that nobody has locked."""
    copy = tmp_path / "data" / "orders-0"
    shutil.copytree(corpus.partition("01-plain").path, copy)
    (copy.parent / ".lock").touch()
    return copy


def mapped(partition: Path, io: str) -> set[str]:
    """The files that another process has mapped after reading the whole partition."""
    command = [sys.executable, "-c", READS, str(partition), io]
    return set(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split())


LAST = "00000000000000001217"


def test_mmap_maps_all_files_even_under_the_lock_of_a_broker(partition: Path) -> None:
    with (partition.parent / ".lock").open("w") as lock:
        # the JVM's FileLock is an fcntl lock over the whole file
        fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        files = mapped(partition, "mmap")
    assert {"00000000000000000000.log", "00000000000000000400.index", "00000000000000000807.timeindex"} <= files
    assert {f"{LAST}.log", f"{LAST}.index", f"{LAST}.timeindex"} <= files


@pytest.mark.parametrize("io", ["auto", "pread"])
def test_only_mmap_maps_files(partition: Path, io: str) -> None:
    assert mapped(partition, io) == set()
