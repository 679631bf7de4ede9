"""A writer beside a `Log.follow`, and what the follower has open."""

from __future__ import annotations

import errno
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

import cordwood as cw
import cordwood.watch


def new_log(path: Path, records: int) -> cw.LogWriter:
    writer = cw.LogWriter(path, flush="none")
    for number in range(records):
        writer.append(b"%d" % number)
    return writer


def append(writer: cw.LogWriter, count: int) -> None:
    for _ in range(count):
        writer.append(b"%d" % writer.log_end_offset)


def taken(records: Iterator[cw.Record], count: int) -> list[int]:
    found = [next(records) for _ in range(count)]
    assert all(record.value == b"%d" % record.offset for record in found)
    return [record.offset for record in found]


def descriptors() -> list[str]:
    """What the open descriptors of this process refer to."""
    found = []
    for descriptor in Path("/proc/self/fd").iterdir():
        # that of the listing itself is closed
        with suppress(FileNotFoundError):
            found.append(str(descriptor.readlink()))
    return found


def open_watches() -> int:
    return sum(name in {"anon_inode:inotify", "anon_inode:[eventfd]"} for name in descriptors())


@contextmanager
def later(call: Callable[[], object], seconds: float = 0.1) -> Iterator[None]:
    thread = threading.Timer(seconds, call)
    thread.start()
    yield
    thread.join()


def without_inotify(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(_: list[Path]) -> None:
        raise OSError(errno.ENOSPC, "no more watches")

    monkeypatch.setattr(cordwood.watch, "_watch_directories", none)
