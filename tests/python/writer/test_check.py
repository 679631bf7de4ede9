"""`LogWriter.check` refuses what opening a writer refuses, by the same error, and changes nothing; nor do dry runs."""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import corpus
import pytest
from scripts import BECOME_NOBODY, run, write_script

import cordwood as cw

Prepare = Callable[[Path, ExitStack], None]


def state(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    """Names, modes, times and contents of everything."""
    found = {}
    for path in sorted(folder.rglob("*")):
        status = path.lstat()
        content = path.read_bytes() if stat.S_ISREG(status.st_mode) else b""
        found[str(path.relative_to(folder))] = (status.st_mode, status.st_mtime_ns, content)
    return found


def written(path: Path) -> None:
    with cw.LogWriter(path, config=cw.LogConfig(segment_bytes=300)) as writer:
        for number in range(20):
            writer.append(b"x" * 50, timestamp=1_700_000_000_000 + number)


@contextmanager
def lock(path: Path) -> Iterator[None]:
    """An exclusive lock as a broker's JVM has, in a process of its own."""
    script = (
        "import fcntl, struct, sys; f = open(sys.argv[1], 'a'); "
        "fcntl.lockf(f, fcntl.LOCK_EX); print('held', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        assert process.stdout.readline() == b"held\n"
        yield
        process.stdin.close()


def producers(path: Path, _: ExitStack) -> None:
    shutil.rmtree(path)
    shutil.copytree(corpus.partition("10-idempotent").path, path)


def other_writer(path: Path, stack: ExitStack) -> None:
    written(path)
    stack.enter_context(cw.LogWriter(path))


def broker(path: Path, stack: ExitStack) -> None:
    written(path)
    (path.parent / "meta.properties").write_bytes(b"version=1\nbroker.id=1\n")
    stack.enter_context(lock(path.parent / ".lock"))


def damaged(path: Path, _: ExitStack) -> None:
    written(path)
    first = min(path.glob("*.log"))
    data = bytearray(first.read_bytes())
    data[70] ^= 1
    first.write_bytes(data)
    (path / ".cordwood.clean").unlink()
    (path / ".cordwood.checkpoint").unlink()


def truncated(path: Path, _: ExitStack) -> None:
    written(path)
    last = max(path.glob("*.log"))
    os.truncate(last, 0)


def segment_gone(path: Path, _: ExitStack) -> None:
    written(path)
    sorted(path.glob("*.log"))[2].unlink()


def compacting(path: Path, _: ExitStack) -> None:
    written(path)
    (path / "00000000000000000000.log.swap").write_bytes(b"")


def checkpoint(path: Path, _: ExitStack) -> None:
    written(path)
    (path / ".cordwood.checkpoint").write_bytes(b"garbage")


def topic_id(path: Path, _: ExitStack) -> None:
    written(path)
    (path / "partition.metadata").write_bytes(b"garbage")


def strange_name(path: Path, _: ExitStack) -> None:
    (path.parent / "meta.properties").write_bytes(b"version=1\nbroker.id=1\n")
    path.rename(path.parent / "strange")


def no_directory(path: Path, _: ExitStack) -> None:
    shutil.rmtree(path)
    path.write_bytes(b"a file")


REFUSED: list[Prepare] = [
    producers, other_writer, broker, damaged, truncated, segment_gone, compacting, checkpoint, topic_id, no_directory,
]  # fmt: skip


def failure(call: Callable[[], object]) -> tuple[type, str, str | None]:
    with pytest.raises((cw.CordwoodError, OSError)) as raised:
        call()
    # what to do about a path that is no directory depends on whether one would be made
    facts = str(raised.value).partition("; ")[0]
    return type(raised.value), facts, getattr(raised.value, "code", None)


def outcome(call: Callable[[], object]) -> tuple[type, str] | None:
    try:
        call()
    except cw.CordwoodError as error:
        return type(error), str(error)
    return None


@pytest.mark.parametrize("prepare", REFUSED, ids=lambda prepare: prepare.__name__)
def test_what_an_opening_refuses_is_refused_by_the_same_error(tmp_path: Path, prepare: Prepare) -> None:
    path = tmp_path / "orders-0"
    path.mkdir()
    with ExitStack() as stack:
        prepare(path, stack)
        before = state(tmp_path)
        found = failure(lambda: cw.LogWriter.check(path))
        assert state(tmp_path) == before
        assert found == failure(lambda: cw.LogWriter(path))


def test_a_name_that_kafka_does_not_take_is_refused_by_the_same_error(tmp_path: Path) -> None:
    path = tmp_path / "orders-0"
    path.mkdir()
    strange_name(path, ExitStack())
    strange = tmp_path / "strange"
    assert failure(lambda: cw.LogWriter.check(strange)) == failure(lambda: cw.LogWriter(strange))


def test_settings_that_an_opening_refuses_are_refused(tmp_path: Path) -> None:
    written(tmp_path / "orders-0")
    config = cw.LogConfig(segment_index_bytes=8)
    check = failure(lambda: cw.LogWriter.check(tmp_path / "orders-0", config=config))
    assert check == failure(lambda: cw.LogWriter(tmp_path / "orders-0", config=config))
    assert check[0] is cw.ConfigError


@pytest.mark.parametrize("part", corpus.partitions(), ids=str)
def test_of_every_golden_log_it_says_what_the_opening_of_a_copy_says(part: corpus.Partition, tmp_path: Path) -> None:
    copy = tmp_path / part.name
    shutil.copytree(part.path, copy)
    for index in copy.glob("*index"):
        index.unlink()
    before = state(tmp_path)
    told = outcome(lambda: cw.LogWriter.check(copy))
    assert state(tmp_path) == before
    assert told == outcome(lambda: cw.LogWriter(copy).close())


def test_a_lock_is_asked_for_and_not_taken(tmp_path: Path) -> None:
    path = tmp_path / "orders-0"
    written(path)
    cw.LogWriter.check(path)
    with (path / ".cordwood.lock").open("r+b") as file:
        # an OFD lock that somebody else holds would refuse this one
        fcntl.fcntl(file, 37, struct.pack("hhqqi", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))
        assert failure(lambda: cw.LogWriter.check(path))[0] is cw.LockedError
    with cw.LogWriter(path):
        pass


def test_a_directory_that_may_not_be_written_is_refused(script_environment: dict[str, str]) -> None:
    """As an unprivileged user; the error is the system's, as that of an opening is."""
    top = Path(tempfile.mkdtemp(prefix="cordwood-"))
    top.chmod(0o755)
    written(top / "orders-0")
    script = write_script(
        top,
        "import sys\nimport cordwood as cw\n"
        "try:\n    cw.Log('/nowhere')\nexcept OSError:\n    pass\n"
        + BECOME_NOBODY
        + "for call in (cw.LogWriter.check, cw.LogWriter):\n"
        + "    try:\n        call(sys.argv[1])\n        print('opened')\n"
        + "    except PermissionError as error:\n        print('denied', sys.argv[1] in error.filename)\n",
    )
    try:
        assert run(script, top / "orders-0", env=script_environment).stdout.splitlines() == ["denied True"] * 2
    finally:
        shutil.rmtree(top)
