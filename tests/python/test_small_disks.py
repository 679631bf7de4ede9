"""What a log takes of a disk, and what is left where a disk has no room for it."""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from pathlib import Path

from loop_devices import make_image, mounted, needs

import cordwood as cw

INDEX_BYTES = 10 << 20


def allocated(path: Path) -> int:
    return sum(file.stat().st_blocks * 512 for file in path.iterdir())


def test_a_log_with_one_record_takes_little_of_the_disk(tmp_path: Path) -> None:
    path = tmp_path / "orders-0"
    with cw.LogWriter(path) as writer:
        writer.append(b"v")
        # as Kafka's: full length, and blocks for what is in them
        assert (path / f"{0:020}.index").stat().st_size == INDEX_BYTES
        assert (path / f"{0:020}.timeindex").stat().st_size == INDEX_BYTES // 12 * 12
        assert allocated(path) <= 256 << 10
    assert allocated(path) <= 64 << 10


def test_a_disk_of_five_megabytes_holds_a_log(tmp_path: Path) -> None:
    needs("ext4")
    make_image("ext4", tmp_path / "disk.image", 5 << 20)
    with mounted("ext4", tmp_path / "disk.image") as mount:
        for number in range(20):
            with cw.LogWriter(mount / f"orders-{number}") as writer:
                assert writer.append(b"v").durable
        assert [len(log) for log in map(list, (log.records() for log in cw.LogDir(mount).values()))] == [1] * 20


def test_a_log_for_which_there_is_no_room_leaves_nothing_or_is_a_whole_log(tmp_path: Path) -> None:
    needs("ext4")
    make_image("ext4", tmp_path / "disk.image", 5 << 20)
    seen = set()
    with mounted("ext4", tmp_path / "disk.image") as mount:
        filling = mount / "filling"
        with filling.open("wb", buffering=0) as file, suppress(OSError):
            while True:
                file.write(bytes(1024))
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
                # opened: and what was acknowledged is there
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
