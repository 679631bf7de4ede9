"""Waiting for new records: the option `--follow` of `cordwood cat`."""

import resource
import time
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, NoReturn

from cordwood import Log, LogChangedError, LogNotFoundError
from cordwood.cli.exit_codes import FailedError, NothingFoundError, say, sentence
from cordwood.followed_log import FollowedLog
from cordwood.watch import Watch

__all__ = ["Follower", "WithdrawnError", "follow", "max_open_logs"]

Write = Callable[[Log, "Follower"], None]
"""Writes the records of a log from `Follower.next_offset` to `Follower.end_offset`, and sets `Follower.next_offset`."""

_PAUSE_SECONDS = 0.02
"""Between two rounds, so that a busy writer does not cause one for each append."""


class WithdrawnError(ValueError):
    """Records that were written out are no longer in the log."""


class Follower(FollowedLog):
    """One log that is followed."""

    def __init__(
        self, path: Path, start_offset: int | None, *, committed: bool, is_new: bool, max_batch_bytes: int
    ) -> None:
        """Follow a log from an offset; `None`: from its start. *is_new*: it was created after the command began."""
        self._path = path
        self._max_batch_bytes = max_batch_bytes
        self._opened: Log | None = None
        self._directory = _identity(path)
        super().__init__(self.log, start_offset, committed=committed)
        self.is_new = is_new
        self.is_first = True

    @property
    def log(self) -> Log:
        """The log, which is opened again after `release`."""
        if self._opened is None:
            self._opened = Log(self._path, max_batch_bytes=self._max_batch_bytes)
        return self._opened

    @log.setter
    def log(self, log: Log) -> None:
        self._opened = log

    def release(self) -> None:
        """Close the log until it is looked at again."""
        self._opened = None

    def refresh(self) -> bool:
        """Read the directory again; return whether the log may have changed. *Errors*: as `FollowedLog.refresh`."""
        if self._opened is not None:
            return super().refresh()
        if _identity(self._path) != self._directory:
            raise LogNotFoundError(
                f"{self._path}: another directory has replaced the one that was followed",
                file=str(self._path),
                code="log_not_found",
                expected="the directory that was followed",
                found="another one, or none",
            )
        return self._changed_to(self.log)

    def read(self, write: Write) -> None:
        """Write the records that are new in the log as it is."""
        while True:
            try:
                end = self.end_offset
                if not self.is_first and self.next_offset is not None and self.next_offset >= end:
                    return
                position = self.position(end)
                self.positions.append(position)
                write(self.log, self)
            except LogChangedError:
                # retention, or a truncation, which the refreshed log shows
                if not self.refresh():
                    raise
            else:
                self.finish(position)
                self.is_first = False
                return

    def withdrawn(self, records: str, offset: int, why: str) -> NoReturn:  # noqa: ARG002
        """End the command."""
        raise WithdrawnError(f"{self.log.path}: {records} withdrawn after being written out: {why}")

    def deleted(self, start: int) -> None:
        """Continue at the log start offset."""
        say(
            f"{self.log.path}: {self.deleted_records(start)} deleted before being read; continuing at offset "
            f"{start}, where the log starts now"
        )
        self.next_offset = start


def _identity(path: Path) -> tuple[int, int] | None:
    """Return what differs between a directory and one that replaces it; `None` if there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def max_open_logs() -> int:
    """Return the number of logs that stay open: each takes up to two descriptors, and files of its segments."""
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 8


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
    *Errors*: `WithdrawnError`; `NothingFoundError` if no partition is left; the errors of reading.
    """
    while followers:
        # before the logs are read: no change between the two is lost
        with Watch(followers) as watch:
            changed = list(followers)
            gone: set[Path] = set()
            new: dict[Path, Follower] = {}
            while not gone and not new:
                gone = _read(followers, changed, write, is_alone=is_alone)
                if len(changed) == len(followers):
                    new = created(followers.keys())
                    if new:
                        break
                time.sleep(_PAUSE_SECONDS)
                if not watch.wait(output=out.fileno()):
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
            if len(followers) > max_open_logs():
                follower.release()
        except LogNotFoundError as error:
            said = sentence(error, "cat")
            if is_alone:
                say(said)
                raise FailedError from None
            say(f"no longer followed: {said}")
            gone.add(path)
    return gone
