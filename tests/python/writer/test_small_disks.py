"""The disk space of a log, and full disks."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

import cordwood as cw
from writer.loop_devices import make_image, mounted, needs

INDEX_BYTES = 10 << 20


def allocated(path: Path) -> int:
    return sum(file.stat().st_blocks * 512 for file in path.iterdir())


def fill(mount: Path) -> Path:
    """Fill the disk; return the file."""
    filling = mount / "filling"
    with filling.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(bytes(1024))
    return filling


def test_a_log_with_one_record_uses_little_space(tmp_path: Path) -> None:
    path = tmp_path / "orders-0"
    with cw.LogWriter(path) as writer:
        writer.append(b"v")
        # as in Kafka: full length, and blocks only for the contents
        assert (path / f"{0:020}.index").stat().st_size == INDEX_BYTES
        assert (path / f"{0:020}.timeindex").stat().st_size == INDEX_BYTES // 12 * 12
        assert allocated(path) <= 256 << 10
    assert allocated(path) <= 64 << 10


def test_a_log_fits_on_a_disk_of_five_megabytes(tmp_path: Path) -> None:
    needs("ext4")
    make_image("ext4", tmp_path / "disk.image", 5 << 20)
    with mounted("ext4", tmp_path / "disk.image") as mount:
        for number in range(20):
            with cw.LogWriter(mount / f"orders-{number}") as writer:
                assert writer.append(b"v").durable
        assert [len(log) for log in map(list, (log.records() for log in cw.LogDir(mount).values()))] == [1] * 20


def test_creating_a_log_on_a_full_disk_leaves_nothing_or_a_whole_log(tmp_path: Path) -> None:
    needs("ext4")
    make_image("ext4", tmp_path / "disk.image", 5 << 20)
    seen = set()
    with mounted("ext4", tmp_path / "disk.image") as mount:
        filling = fill(mount)
        for free in range(0, 96 << 10, 4 << 10):
            if free:
                os.truncate(filling, filling.stat().st_size - (4 << 10))
            path = mount / "orders-0"
            appended = False
            try:
                with cw.LogWriter(path) as writer:
                    appended = writer.append(b"v").durable
            except OSError as error:
                assert error.errno == errno.ENOSPC  # noqa: PT017
            if path.exists():
                # the log was opened, and has all acknowledged records
                records = [record.value for record in cw.Log(path).records()]
                assert records == ([b"v"] if appended else [])
                seen.add("record" if appended else "empty")
                for file_left in path.iterdir():
                    file_left.unlink()
                path.rmdir()
            else:
                assert not appended
                seen.add("nothing")
    assert {"nothing", "record"} <= seen


CALLS: dict[str, Callable[[cw.LogWriter], object]] = {
    "truncate_to, in the active segment": lambda writer: writer.truncate_to(28),
    "truncate_to, in another one": lambda writer: writer.truncate_to(14),
    "truncate_to, below the log start": lambda writer: writer.truncate_to(2),
    "truncate_fully_and_start_at, below": lambda writer: writer.truncate_fully_and_start_at(3),
    "truncate_fully_and_start_at, inside": lambda writer: writer.truncate_fully_and_start_at(20),
    "truncate_fully_and_start_at, beyond": lambda writer: writer.truncate_fully_and_start_at(100),
    "delete_before": lambda writer: writer.delete_before(20),
}


@pytest.mark.parametrize("call", CALLS)
def test_a_call_on_a_full_disk_changes_nothing_and_succeeds_once_there_is_space(call: str, tmp_path: Path) -> None:
    needs("ext4")
    make_image("ext4", tmp_path / "disk.image", 5 << 20)
    with mounted("ext4", tmp_path / "disk.image") as mount:
        # the data directory of a broker, whose checkpoints are also rewritten
        (mount / "meta.properties").write_text("version=1\n")
        path = mount / "orders-0"
        config = cw.LogConfig(segment_bytes=1000, index_interval_bytes=100)

        def values(log: cw.Log) -> list[bytes | None]:
            return [record.value for record in log.records()]

        with cw.LogWriter(path, config=config) as writer:
            for number in range(30):
                writer.append(b"%d" % number, timestamp=number)
            writer.delete_before(7)
            before = (writer.log_start_offset, writer.log_end_offset, values(writer.reader()))
            filling = fill(mount)
            for _ in range(2):
                with pytest.raises(OSError, match="No space"):
                    CALLS[call](writer)
                assert (writer.log_start_offset, writer.log_end_offset, values(writer.reader())) == before
            filling.unlink()
            CALLS[call](writer)
            offset = writer.append(b"after").first_offset
            after = (writer.log_start_offset, writer.log_end_offset, values(writer.reader()))
        with cw.LogWriter(path, config=config) as writer:
            assert (writer.log_start_offset, writer.log_end_offset, values(writer.reader())) == after
            assert after[2][-1] == b"after"
            assert writer.log_end_offset == offset + 1
        lines = (mount / "log-start-offset-checkpoint").read_text().splitlines()
        assert lines[2:] == [f"orders 0 {after[0]}"]
