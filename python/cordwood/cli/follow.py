"""Waiting for new records: the option `--follow` of `cordwood cat`."""

import os
import select
import struct
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from cordwood import Log, LogChangedError, LogNotFoundError
from cordwood._core import _LogPosition, _watch_directories
from cordwood.cli.exit_codes import FailedError, NothingFoundError, say, sentence

__all__ = ["Follower", "WithdrawnError", "follow"]

Write = Callable[[Log, "Follower"], None]
"""Writes the records of a log from `Follower.next_offset` to `Follower.end_offset`, and sets `Follower.next_offset`."""

_POLL_SECONDS = 0.25
_CHECK_SECONDS = 2.0
"""Also with inotify: it does not report changes that another host makes on a network file system."""
_PAUSE_SECONDS = 0.02
"""Between two rounds, so that a busy writer does not cause one for each append."""
_EVENT = struct.Struct("iIII")
_EVENT_BYTES = 64 << 10


class WithdrawnError(ValueError):
    """Records that were written out are no longer in the log."""


class Follower:
    """One log that is followed."""

    def __init__(self, log: Log, start_offset: int | None, *, committed: bool, is_new: bool) -> None:
        """Follow a log from an offset; `None`: from its start. *is_new*: it was created after the command began."""
        self.log = log
        self.is_new = is_new
        self.next_offset = start_offset
        self.is_first = True
        self._committed = committed
        # from the last reading; and while a reading is unfinished, from that one, too
        self._positions: list[tuple[int, _LogPosition]] = []

    @property
    def end_offset(self) -> int:
        """The end of what can be read now, exclusive."""
        return self.log.last_stable_offset if self._committed else self.log.log_end_offset

    def read(self, write: Write) -> None:
        """Write the records that are new in the log as it is."""
        while True:
            try:
                end = self.end_offset
                if not self.is_first and self.next_offset is not None and self.next_offset >= end:
                    return
                # before the records: if they are replaced meanwhile, this differs from what is there later
                position = (end, _LogPosition(self.log, end))
                self._positions.append(position)
                write(self.log, self)
            except LogChangedError:
                # retention, or a truncation, which the refreshed log shows
                if not self.refresh():
                    raise
            else:
                self.next_offset = max(end, self.next_offset or 0)
                self.is_first = False
                self._positions = [position]
                return

    def refresh(self) -> bool:
        """Read the directory again; return whether the log has changed.

        *Errors*: `WithdrawnError`, `LogNotFoundError`.
        """
        log = self.log.refresh()
        if log is self.log:
            return False
        self.log = log
        if self.next_offset is None:
            return True
        end, start = log.log_end_offset, log.log_start_offset
        if end < self.next_offset:
            raise WithdrawnError(
                f"{log.path}: {_records(end, self.next_offset)} withdrawn after being written out: the log was "
                f"truncated and ends at offset {end} now"
            )
        for offset, position in self._positions:
            difference = position.mismatch(log) if start <= offset <= end else None
            if difference is not None:
                raise WithdrawnError(
                    f"{log.path}: records below offset {offset} were withdrawn after being written out: {difference}"
                )
        if start > self.next_offset:
            say(
                f"{log.path}: {_records(self.next_offset, start)} deleted before being read; continuing at offset "
                f"{start}, where the log starts now"
            )
            self.next_offset = start
        return True


def _records(start: int, end: int) -> str:
    """Name the records of a range of offsets, as the subject of a sentence."""
    if end - start == 1:
        return f"the record at offset {start} was"
    return f"the records from offset {start} to {end - 1} were"


def follow(
    followers: dict[Path, Follower],
    write: Write,
    out: BinaryIO,
    created: Callable[[Collection[Path]], dict[Path, Follower]],
    *,
    is_alone: bool,
) -> None:
    """Write new records until the reader of the output closes it, or Ctrl-C.

    *created* returns the partitions that exist and are not among those that it is given. *is_alone*: a single partition
    was named by its path; then its end is the error. Otherwise a partition that was deleted is no longer followed, and
    one that has replaced it is a new one.
    *Errors*: `WithdrawnError`; `NothingFoundError` if no partition is left; those of reading.
    """
    while followers:
        # before the logs are read: no change between the two is lost
        with _watching(list(followers)) as watch:
            changed = list(followers)
            gone: set[Path] = set()
            new: dict[Path, Follower] = {}
            while not gone and not new:
                gone = _read(followers, changed, write, is_alone=is_alone)
                if len(changed) == len(followers):
                    new = created(followers.keys())
                    if new:
                        break
                if not watch.wait(out):
                    return
                changed = watch.changed()
        followers |= new
        for path in gone:
            del followers[path]
        if not followers:
            # they may have been replaced
            with suppress(NothingFoundError):
                followers |= created(())
    raise NothingFoundError("every partition that was followed was deleted")


def _read(followers: dict[Path, Follower], changed: Iterable[Path], write: Write, *, is_alone: bool) -> set[Path]:
    """Write what is new in these logs; return those that were deleted."""
    gone = set()
    for path in changed:
        follower = followers[path]
        try:
            if follower.is_first or follower.refresh():
                follower.read(write)
        except LogNotFoundError as error:
            said = sentence(error, "cat")
            if is_alone:
                say(said)
                raise FailedError from None
            say(f"no longer followed: {said}")
            gone.add(path)
    return gone


class _Watch:
    """Waits until a directory changes: by inotify, or by time where the system allows no more watches."""

    def __init__(self, paths: list[Path], descriptor: int | None, numbers: list[int]) -> None:
        self._paths = paths
        self._descriptor = descriptor
        self._of_number = dict(zip(numbers, paths, strict=False))
        self._last_check = time.monotonic()

    def wait(self, out: BinaryIO) -> bool:
        """Wait for a change, or for a short time; return false if the reader of the output has closed it."""
        time.sleep(_PAUSE_SECONDS)
        poll = select.poll()
        # without events it reports only that the reader has closed it
        poll.register(out.fileno(), 0)
        if self._descriptor is not None:
            poll.register(self._descriptor, select.POLLIN)
        seconds = _POLL_SECONDS if self._descriptor is None else _CHECK_SECONDS
        ready = dict(poll.poll(seconds * 1000))
        return not ready.get(out.fileno(), 0) & (select.POLLERR | select.POLLNVAL)

    def changed(self) -> list[Path]:
        """Return the directories that have changed, and from time to time all of them."""
        numbers = self._numbers()
        now = time.monotonic()
        is_due = now - self._last_check > _CHECK_SECONDS
        if self._descriptor is None or is_due or not numbers:
            self._last_check = now
            return self._paths
        return [path for number, path in self._of_number.items() if number in numbers]

    def _numbers(self) -> set[int]:
        """Read the events: the numbers of the directories that have changed; none if events were lost."""
        numbers: set[int] = set()
        while self._descriptor is not None:
            try:
                events = os.read(self._descriptor, _EVENT_BYTES)
            except BlockingIOError:
                break
            start = 0
            while start < len(events):
                number, _, _, length = _EVENT.unpack_from(events, start)
                start += _EVENT.size + length
                numbers.add(number)
        # -1: the queue of events was full
        return set() if -1 in numbers else numbers


@contextmanager
def _watching(paths: list[Path]) -> Iterator[_Watch]:
    try:
        descriptor, numbers = _watch_directories(paths)
    except OSError:
        yield _Watch(paths, None, [])
        return
    try:
        yield _Watch(paths, descriptor, numbers)
    finally:
        os.close(descriptor)
