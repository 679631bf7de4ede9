"""A disk that disappears during writing is an error, does not terminate the process, and loses nothing acknowledged."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from scripts import run, write_script

import cordwood as cw
from writer.appending import APPENDER, check_recovered, start
from writer.loop_devices import KINDS, bound, make_image, mounted, needs, shut_down

CUTS = int(os.environ.get("CORDWOOD_CUTS", "3"))
# ext4 also makes itself read-only if its journal fails
ERRORS = {"ext4": ("Input/output error", "Read-only file system"), "xfs": ("Input/output error",)}


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    kind: str = request.param
    needs(kind)
    return kind


@pytest.fixture
def disk(tmp_path: Path, kind: str) -> Iterator[Path]:
    make_image(kind, tmp_path / "disk.image")
    with mounted(kind, tmp_path / "disk.image") as mount:
        yield mount


DOOMED = """
import errno, os, sys
from pathlib import Path
import cordwood as cw
from writer.loop_devices import shut_down

mount, call = Path(sys.argv[1]), sys.argv[2]
writer = cw.LogWriter(mount / "orders-0", flush="none")
writer.append(b"v")
# pages that were written back cannot be written again without the disk
for file in (mount / "orders-0").iterdir():
    descriptor = os.open(file, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)
shut_down(mount)
calls = {
    "append": lambda: writer.append(b"v"),
    "append_many": lambda: writer.append_many([b"v" * 100] * 1000),
    "flush": writer.flush,
    "roll": writer.roll,
    "close": writer.close,
}
for name in [call, call, "append", "close"]:
    try:
        print(name, calls[name]())
    except cw.PoisonedError:
        print(name, "poisoned")
    except OSError as error:
        print(name, errno.errorcode[error.errno])
"""


@pytest.mark.parametrize("call", ["append", "append_many", "flush", "roll", "close"])
def test_a_removed_disk_is_an_error_and_poisons_the_writer(
    call: str, disk: Path, tmp_path: Path, script_environment: dict[str, str]
) -> None:
    script = write_script(tmp_path, DOOMED)
    said = run(script, disk, call, env=script_environment).stdout.splitlines()
    assert said == [f"{call} EIO", f"{call} poisoned", "append poisoned", "close poisoned"]


# Only the index is on the disk that fails: appends continue, because the records are on another one.
INDEX_IS_GONE = """
import errno, os, sys
from pathlib import Path
import cordwood as cw
from writer.loop_devices import shut_down

path, mount = Path(sys.argv[1]), Path(sys.argv[2])
writer = cw.LogWriter(path, config=cw.LogConfig(index_interval_bytes=0), flush="none")
for number in range(100):
    writer.append(b"v", timestamp=number)
writer.flush()
for file in mount.iterdir():
    descriptor = os.open(file, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)
shut_down(mount)
for number in range(100, 2000):
    writer.append(b"v", timestamp=number)
writer.append_many([cw.Record(value=b"v" * 100, timestamp=number)] * 1000)
writer.flush()
print(writer.durable_offset)
try:
    writer.close()
except OSError as error:
    print(errno.errorcode[error.errno])
"""


@pytest.mark.parametrize("extension", ["index", "timeindex"])
def test_appends_succeed_if_the_disk_of_an_index_is_removed(
    extension: str, disk: Path, tmp_path: Path, script_environment: dict[str, str]
) -> None:
    path = tmp_path / "orders-0"
    with cw.LogWriter(path) as writer:
        writer.append(b"first", timestamp=0)
    index = path / f"{0:020}.{extension}"
    (disk / index.name).write_bytes(index.read_bytes())
    script = write_script(tmp_path, INDEX_IS_GONE)
    with bound(disk / index.name, index):
        said = run(script, path, disk, env=script_environment).stdout.split()
    assert said == ["3001", "EIO"]
    with cw.LogWriter(path) as writer:
        assert writer.log_end_offset == 3001
        assert sum(1 for _ in writer.reader().records()) == 3001


def public_index(kind: type[cw.OffsetIndexWriter | cw.TimeIndexWriter]) -> str:
    name, add = ("0.index", "append") if kind is cw.OffsetIndexWriter else ("0.timeindex", "maybe_append")
    return f"""
import errno, os, sys
from pathlib import Path
import cordwood as cw
from writer.loop_devices import shut_down

mount = Path(sys.argv[1])
index = cw.{kind.__name__}(mount / "{name}")
for number in range(1, 100):
    index.{add}(number, number)
index.flush()
shut_down(mount)
for call in [lambda: index.{add}(100, 100), index.flush, lambda: index.truncate_to(5), index.trim, index.close]:
    try:
        call()
        print("went well")
    except OSError as error:
        print(errno.errorcode[error.errno])
"""


@pytest.mark.parametrize("index", [cw.OffsetIndexWriter, cw.TimeIndexWriter])
def test_an_index_writer_raises_if_its_disk_is_gone(
    index: type[cw.OffsetIndexWriter | cw.TimeIndexWriter],
    disk: Path,
    tmp_path: Path,
    script_environment: dict[str, str],
) -> None:
    script = write_script(tmp_path, public_index(index))
    assert run(script, disk, env=script_environment).stdout.split() == ["EIO"] * 5


@pytest.mark.parametrize("cut", range(CUTS))
def test_a_disk_removed_at_any_moment_loses_nothing_acknowledged(
    cut: int, kind: str, tmp_path: Path, script_environment: dict[str, str]
) -> None:
    """Two threads append and roll when the disk fails, twice; each time the log is recovered."""
    choose = random.Random(f"{kind} {cut}")
    script = write_script(tmp_path, APPENDER)
    image = tmp_path / "disk.image"
    make_image(kind, image)
    told = b""
    for generation in range(2):
        with mounted(kind, image) as mount:
            flush = choose.choice(["always", cw.FlushMode.group(ms=0)])
            how = {"flush": flush, "codec": "producer", "generation": generation, "threads": 2}
            with start(script, mount / "orders-0", **how, env=script_environment) as process:
                assert process.stdout is not None
                assert process.stderr is not None
                told += process.stdout.readline()
                time.sleep(choose.random() / 4)
                shut_down(mount)
                told += process.stdout.read()
                words = process.stderr.read().decode()
        assert process.returncode == 0, f"{process.returncode}: {words}"
        assert any(error in words for error in ERRORS[kind]), words
        with mounted(kind, image) as mount:
            # a copy: the next generation continues with the contents of this disk
            assert check_recovered(mount / "orders-0", told) > 0
