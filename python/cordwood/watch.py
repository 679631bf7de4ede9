"""Waiting for changes of files in directories."""

import os
import select
import struct
import threading
import time
import weakref
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Self

from cordwood._core import _watch_directories

__all__ = ["Watch"]

_POLL_SECONDS = 0.25
_CHECK_SECONDS = 2.0
"""Also with inotify: it does not report changes that another host makes on a network file system."""
_EVENT = struct.Struct("iIII")
_EVENT_BYTES = 64 << 10


class Watch:
    """Waits until files in directories change: by inotify, or by time where the system allows no more watches."""

    def __init__(self, paths: Iterable[Path]) -> None:
        """Watch these directories from now on."""
        self._paths = list(paths)
        self._last_check = time.monotonic()
        self._lock = threading.RLock()
        self._waker: int | None = None
        self._inotify: int | None = None
        self._of_number: dict[int, Path] = {}
        with suppress(OSError):
            self._waker = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
            self._inotify, numbers = _watch_directories(self._paths)
            self._of_number = dict(zip(numbers, self._paths, strict=False))
        _WATCHES.add(self)

    @property
    def descriptors(self) -> list[int]:
        """The descriptors that become readable at a change, and at `wake`."""
        return [descriptor for descriptor in (self._inotify, self._waker) if descriptor is not None]

    @property
    def seconds(self) -> float:
        """The longest time between two looks at a directory."""
        return _POLL_SECONDS if self._inotify is None else _CHECK_SECONDS

    def wait(self, seconds: float | None = None, output: int | None = None) -> bool:
        """Wait for a change, at most these and `Watch.seconds`; return false if the reader of *output* closed it."""
        poll = select.poll()
        for descriptor in self.descriptors:
            poll.register(descriptor, select.POLLIN)
        if output is not None:
            # without events it reports only that the reader has closed it
            poll.register(output, 0)
        ready = dict(poll.poll(1000 * (self.seconds if seconds is None else min(seconds, self.seconds))))
        return output is None or not ready.get(output, 0) & (select.POLLERR | select.POLLNVAL)

    def changed(self) -> list[Path]:
        """Return the directories that have changed, and from time to time all of them."""
        numbers = self._numbers()
        now = time.monotonic()
        if self._inotify is None or now - self._last_check > _CHECK_SECONDS or not numbers:
            self._last_check = now
            return self._paths
        return [path for number, path in self._of_number.items() if number in numbers]

    def _numbers(self) -> set[int]:
        """Read the events: the numbers of the directories that have changed; none if events were lost."""
        numbers: set[int] = set()
        while self._inotify is not None:
            try:
                events = os.read(self._inotify, _EVENT_BYTES)
            except BlockingIOError:
                break
            start = 0
            while start < len(events):
                number, _, _, length = _EVENT.unpack_from(events, start)
                start += _EVENT.size + length
                numbers.add(number)
        # -1: the queue of events was full
        return set() if -1 in numbers else numbers

    def wake(self) -> None:
        """End a wait, of this thread or of another one."""
        with self._lock:
            if self._waker is not None:
                os.eventfd_write(self._waker, 1)

    def close(self) -> None:
        """Close the descriptors, which no thread may be waiting for."""
        with self._lock:
            descriptors, self._inotify, self._waker = self.descriptors, None, None
        for descriptor in descriptors:
            os.close(descriptor)

    def __enter__(self) -> Self:
        """Return the watch."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()


_WATCHES: weakref.WeakSet[Watch] = weakref.WeakSet()


def _close_after_fork() -> None:
    """Close the copies of a forked child: it would read the events of its parent."""
    for watch in list(_WATCHES):
        # a thread that does not exist in the child may have held it
        watch._lock = threading.RLock()  # noqa: SLF001
        watch.close()


os.register_at_fork(after_in_child=_close_after_fork)
