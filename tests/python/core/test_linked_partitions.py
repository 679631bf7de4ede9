"""Partition directories to which a data directory has a symbolic link, as after a move to another disk.

A broker follows the link: the files of the data directory, and its lock, are beside the link.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import corpus
import pytest
from commands import cordwood

import cordwood as cw

HOLD = """import fcntl, sys
file = open(sys.argv[1], "w")
fcntl.lockf(file, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data directory whose `cities-1`, which begins at offset 31, is a link to a directory of another name."""
    path = tmp_path / "data"
    shutil.copytree(corpus.GOLDEN / "16-data-dir", path)
    (tmp_path / "disk2").mkdir()
    (path / "cities-1").rename(tmp_path / "disk2" / "moved")
    (path / "cities-1").symlink_to(tmp_path / "disk2" / "moved")
    return path


@contextmanager
def broker_lock(data: Path) -> Iterator[None]:
    """Hold the lock of a data directory as a broker does: in another process."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, data / ".lock"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        yield
        holder.kill()


def test_a_linked_partition_begins_where_its_data_directory_says(data: Path, tmp_path: Path) -> None:
    assert cw.Log(data / "cities-1").log_start_offset == 31
    assert next(iter(cw.Log(data / "cities-1").records())).offset == 31
    assert cw.LogDir(data)["cities-1"].log_start_offset == 31
    cw.copy(data / "cities-1", tmp_path / "backup")
    assert cw.Log(tmp_path / "backup").log_start_offset == 31
    # the target by its own path is in no data directory
    assert cw.Log(tmp_path / "disk2" / "moved").log_start_offset == 0


def test_nothing_writes_to_a_linked_partition_beside_a_broker(data: Path) -> None:
    before = {file: file.read_bytes() for file in (data / "cities-1").iterdir()}
    with broker_lock(data):
        with pytest.raises(cw.LockedError):
            cw.LogWriter(data / "cities-1")
        for command in ("repair --policy salvage --apply", "truncate --to 100 --yes", "recover --yes", "reindex --yes"):
            name, *options = command.split()
            ran = cordwood(name, str(data / "cities-1"), *options)
            assert ran.returncode != 0, ran.stdout
            assert b"lock" in ran.stderr, ran.stderr
    assert {file: file.read_bytes() for file in (data / "cities-1").iterdir()} == before


def test_a_writer_of_a_linked_partition_changes_the_files_of_its_data_directory(data: Path) -> None:
    (data / ".kafka_cleanshutdown").write_text('{"version":0,"brokerEpoch":5}')
    with cw.LogWriter(data / "cities-1") as writer:
        end = writer.append(b"new").first_offset
    assert not (data / ".kafka_cleanshutdown").exists()
    assert f"cities 1 {end + 1}" in (data / "recovery-point-offset-checkpoint").read_text().splitlines()
    assert not [file.name for file in (data.parent / "disk2").iterdir() if file.name != "moved"]


def test_a_link_into_another_data_directory_is_not_written_to(data: Path) -> None:
    shutil.copy(data / "meta.properties", data.parent / "disk2")
    with pytest.raises(cw.ConfigError, match="a symbolic link to a partition of a data directory"):
        cw.LogWriter(data / "cities-1")
    assert cw.Log(data / "cities-1").log_start_offset == 31
