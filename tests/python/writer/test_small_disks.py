"""The disk space of a log, and full disks."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from scripts import write_script

import cordwood as cw
from writer.loop_devices import make_image, mounted, needs

INDEX_BYTES = 10 << 20
SPARE = ".cordwood.spare"
# of a disk, by file system
SIZES = {"ext4": 5 << 20, "xfs": 300 << 20}
CONFIG = cw.LogConfig(segment_bytes=1000, index_interval_bytes=100, retention_ms=7 * 86_400_000)


def allocated(path: Path) -> int:
    return sum(file.stat().st_blocks * 512 for file in path.iterdir())


def fill(mount: Path) -> Path:
    """Fill the disk to the last byte; return the file."""
    filling = mount / "filling"
    with filling.open("ab", buffering=0) as file:
        if os.statvfs(mount).f_bavail > 10_000:
            os.posix_fallocate(
                file.fileno(), file.tell(), os.statvfs(mount).f_bavail // 10 * 9 * os.statvfs(mount).f_bsize
            )
            file.seek(0, os.SEEK_END)
        size = -1
        # space that was only set aside may be free again after a sync
        while size < (size := file.tell()):
            for piece in (64 << 10, 1 << 10, 1):
                with suppress(OSError):
                    while True:
                        file.write(bytes(piece))
            os.fsync(file.fileno())
    return filling


def append_until_full(writer: cw.LogWriter) -> None:
    with suppress(OSError):
        for _ in range(10_000):
            writer.append(b"x" * 500)
        pytest.fail("the disk is not full")


@contextmanager
def disk(tmp_path: Path, kind: str = "ext4") -> Iterator[Path]:
    """Mount a small disk with the data directory of a broker, whose checkpoints a writer also rewrites."""
    needs(kind)
    image = tmp_path / "disk.image"
    make_image(kind, image, SIZES[kind])
    with mounted(kind, image) as mount:
        (mount / "meta.properties").write_text("version=1\nnode.id=1\ncluster.id=aFsHoJ8mSkaI5w7rWQb5Qg\n")
        yield mount


def values(log: cw.Log) -> list[bytes | None]:
    return [record.value for record in log.records()]


def test_a_log_with_one_record_uses_little_space(tmp_path: Path) -> None:
    path = tmp_path / "orders-0"
    with cw.LogWriter(path) as writer:
        writer.append(b"v")
        # as in Kafka: full length, and blocks only for the contents
        assert (path / f"{0:020}.index").stat().st_size == INDEX_BYTES
        assert (path / f"{0:020}.timeindex").stat().st_size == INDEX_BYTES // 12 * 12
        assert allocated(path) <= 256 << 10
    spare = (path / SPARE).stat()
    # reserved beyond the end of an empty file
    assert spare.st_size == 0
    assert allocated(path) - spare.st_blocks * 512 <= 64 << 10


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


CALLS |= {
    "delete_before, inside a segment": lambda writer: writer.delete_before(8),
    "delete_before, everything": lambda writer: writer.delete_before(writer.log_end_offset),
    # the segments with older records
    "apply_retention": lambda writer: writer.apply_retention(now=f"{CONFIG.retention_ms + 21}ms"),
}


def log_with_segments(path: Path) -> cw.LogWriter:
    writer = cw.LogWriter(path, config=CONFIG, flush="none")
    for number in range(30):
        writer.append(b"%d" % number, timestamp=number)
    writer.delete_before(7)
    return writer


def test_a_call_without_space_and_spare_file_changes_nothing_and_succeeds_once_there_is_space(tmp_path: Path) -> None:
    with disk(tmp_path) as mount:
        for number, (call, run) in list(enumerate(CALLS.items()))[::3]:
            path = mount / f"orders-{number}"
            with log_with_segments(path) as writer:
                before = (writer.log_start_offset, writer.log_end_offset, values(writer.reader()))
                (path / SPARE).unlink()
                filling = fill(mount)
                for _ in range(2):
                    with pytest.raises(OSError, match="No space"):
                        run(writer)
                    after = (writer.log_start_offset, writer.log_end_offset, values(writer.reader()))
                    assert after == before, call
                filling.unlink()
                run(writer)
                assert (path / SPARE).exists(), call
                offset = writer.append(b"after").first_offset
                after = (writer.log_start_offset, writer.log_end_offset, values(writer.reader()))
            with cw.LogWriter(path, config=CONFIG) as writer:
                found = (writer.log_start_offset, writer.log_end_offset, values(writer.reader()))
                assert found == after, call
                assert after[2][-1] == b"after"
                assert writer.log_end_offset == offset + 1
            lines = (mount / "log-start-offset-checkpoint").read_text().splitlines()
            assert f"orders {number} {after[0]}" in lines


@pytest.mark.parametrize("kind", SIZES)
def test_a_call_that_frees_space_succeeds_on_a_full_disk(kind: str, tmp_path: Path) -> None:
    with disk(tmp_path, kind) as mount:
        for number, (call, run) in list(enumerate(CALLS.items()))[:: 1 if kind == "ext4" else 3]:
            twin, path = mount / f"twin-{number}", mount / f"orders-{number}"
            with log_with_segments(twin) as writer:
                run(writer)
                expected = (writer.log_start_offset, writer.log_end_offset, values(writer.reader()))
            with log_with_segments(path) as writer:
                fill(mount)
                run(writer)
                found = (writer.log_start_offset, writer.log_end_offset, values(writer.reader()))
                assert found == expected, call
                # again, without the space that the call has freed, and once more when the log is closed and
                # opened
                fill(mount)
                writer.truncate_fully_and_start_at(40)
                fill(mount)
            fill(mount)
            with cw.LogWriter(path, config=CONFIG) as writer:
                assert writer.recovery is None, call
                assert (writer.log_start_offset, writer.log_end_offset) == (40, 40)
                (mount / "filling").unlink()
                assert writer.append(b"after").durable
            assert values(cw.Log(path)) == [b"after"]


def test_a_full_disk_is_emptied_in_many_steps(tmp_path: Path) -> None:
    with disk(tmp_path) as mount:
        with cw.LogWriter(mount / "orders-0", config=CONFIG) as writer:
            names = [f"import-{number}" for number in range(20)]
            for name in names:
                writer.producer(name).append_many([b"x" * 100] * 3)
            with writer.transaction("billing") as transaction:
                transaction.append(b"committed")
            end = writer.log_end_offset
            fill(mount)
            append_until_full(writer)
            # a deleted segment has the last records of some producers, whose states are kept in another file
            for offset in range(1, end):
                assert writer.delete_before(offset)
                fill(mount)
            assert values(writer.reader().refresh())[0] is not None
        fill(mount)
        with cw.LogWriter(mount / "orders-0", config=CONFIG) as writer:
            assert writer.log_start_offset == end - 1
            (mount / "filling").unlink()
            assert [writer.producer(name).next_sequence for name in names] == [3] * 20


def test_large_checkpoints_of_a_data_directory_are_replaced_on_a_full_disk(tmp_path: Path) -> None:
    with disk(tmp_path) as mount:
        lines = "".join(f"topic-of-another-log {number} 7\n" for number in range(4000))
        names = ["recovery-point-offset-checkpoint", "log-start-offset-checkpoint"]
        for name in names:
            (mount / name).write_text(f"0\n4000\n{lines}")
        with log_with_segments(mount / "orders-0") as writer:
            fill(mount)
            assert writer.delete_before(20)
        assert [len((mount / name).read_text().splitlines()) for name in names] == [4003, 4003]


# Appends until the disk is full, prints the log end offset, and ends as by `kill -9`.
KILLED = """
import os, signal, sys
import cordwood as cw

writer = cw.LogWriter(sys.argv[1], config=cw.LogConfig(index_interval_bytes=int(sys.argv[2])), flush="none")
producer = writer.producer("import")
transaction = writer.transaction("billing")
transaction.append(b"open", timestamp=0)
try:
    for number in range(int(sys.argv[3])):
        producer.append(b"%d" % number, timestamp=number)
except OSError:
    print("full", end=" ")
print(writer.log_end_offset, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def killed(tmp_path: Path, path: Path, interval: int, records: int, env: dict[str, str]) -> tuple[bool, int]:
    """Run it; return whether the disk was full, and the log end offset."""
    command = [sys.executable, str(write_script(tmp_path, KILLED)), str(path), str(interval), str(records)]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == -signal.SIGKILL, done.stderr
    *full, end = done.stdout.split()
    return full == ["full"], int(end)


@pytest.mark.parametrize("kind", SIZES)
def test_the_log_of_a_process_killed_on_a_full_disk_is_recovered_on_it(
    kind: str, tmp_path: Path, script_environment: dict[str, str]
) -> None:
    with disk(tmp_path, kind) as mount:
        path = mount / "orders-0"
        with cw.LogWriter(path) as writer:
            writer.append(b"first")
        filling = fill(mount)
        os.truncate(filling, filling.stat().st_size - (200 << 10))
        is_full, end = killed(tmp_path, path, 4096, 100_000, script_environment)
        assert is_full
        fill(mount)
        with cw.LogWriter(path) as writer:
            assert writer.recovery is not None
            assert (writer.log_start_offset, writer.log_end_offset) == (0, end)
            fill(mount)
            writer.delete_before(end)
            assert values(writer.reader()) == []


def test_large_indexes_are_rebuilt_on_a_full_disk(tmp_path: Path, script_environment: dict[str, str]) -> None:
    with disk(tmp_path) as mount:
        path = mount / "orders-0"
        is_full, end = killed(tmp_path, path, 1, 10_000, script_environment)
        assert not is_full
        # more than the spare file reserves
        assert sum((path / f"{0:020}{kind}").stat().st_blocks for kind in (".index", ".timeindex")) * 512 > 150 << 10
        fill(mount)
        with cw.LogWriter(path, config=cw.LogConfig(index_interval_bytes=1)) as writer:
            assert writer.recovery is not None
            rebuilt = {Path(rebuilt.file).suffix for rebuilt in writer.recovery.rebuilt_indexes}
            assert rebuilt == {".index", ".timeindex"}
            assert writer.log_end_offset == end
            fill(mount)
            assert writer.delete_before(end)
            fill(mount)


def test_a_torn_write_larger_than_the_spare_file_is_cut_only_once_there_is_space_to_keep_it(tmp_path: Path) -> None:
    with disk(tmp_path) as mount:
        path = mount / "orders-0"
        writer = cw.LogWriter(path, config=CONFIG)
        writer.append(b"first")
        # zeros at the end are not kept
        torn = os.urandom(200 << 10) + b"\1"
        with (path / f"{0:020}.log").open("ab") as file:
            file.write(torn)
        (path / ".cordwood.durable").unlink()
        del writer
        filling = fill(mount)
        for _ in range(2):
            with pytest.raises(OSError, match="No space"):
                cw.LogWriter(path, config=CONFIG)
            assert (path / f"{0:020}.log").read_bytes().endswith(torn)
            assert not list((path / "quarantine").iterdir())
        filling.unlink()
        with cw.LogWriter(path, config=CONFIG) as writer:
            assert values(writer.reader()) == [b"first"]
        assert [file.read_bytes() for file in (path / "quarantine").iterdir()] == [torn]


def test_appends_and_copies_do_not_use_the_spare_file(tmp_path: Path) -> None:
    with disk(tmp_path) as mount:
        path = mount / "orders-0"
        with cw.LogWriter(path, config=CONFIG) as writer:
            writer.append(b"first")
            spare = (path / SPARE).stat().st_blocks
            assert spare * 512 >= 64 << 10
            fill(mount)
            append_until_full(writer)
            assert (path / SPARE).stat().st_blocks == spare
            (mount / "filling").unlink()
        assert cw.verify(path).findings == []
        cw.copy(path, tmp_path / "copy-0")
        assert (tmp_path / "copy-0" / f"{0:020}.log").exists()
        assert not (tmp_path / "copy-0" / SPARE).exists()
