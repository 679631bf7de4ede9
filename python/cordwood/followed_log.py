"""A log that is read as it grows, for `Log.follow` and `cordwood cat --follow`."""

import time
from contextlib import suppress
from typing import Any, NoReturn

from cordwood._core import Log, _is_being_truncated, _LogPosition
from cordwood.errors import ConfigError, LogChangedError, OffsetOutOfRangeError

__all__ = ["FollowedLog", "durable_offset"]

_MAX_ATTEMPTS = 10
"""To look at a log that changes while it is looked at."""
_TRUNCATION_S = 1.0
"""The longest wait for the end of a truncation. One that a crash has interrupted ends when a writer opens the log."""


def durable_offset(log: Log) -> int:
    """Return the durable offset. *Errors*: `ConfigError` if it is not known: nobody would raise it."""
    if (durable := log.durable_offset) is not None:
        return durable
    wanted, path = "a log that a LogWriter has opened, and that no broker writes", log.path
    text = f"durable: expected {wanted}, found {path}"
    raise ConfigError(text, code="config", argument="durable", expected=wanted, found=path)


class FollowedLog:
    """A log that is read again and again. What was read of it must stay."""

    def __init__(self, log: Log, start_offset: int | None, *, committed: bool, durable: bool = False) -> None:
        """Follow a log from an offset; `None`: from its start.

        *committed*: up to the last stable offset; *durable*: up to what its writer has synced.
        """
        self.log = log
        self.next_offset = start_offset
        self._committed = committed
        self._durable = durable
        self.positions: list[tuple[int, _LogPosition]] = []
        """Of the last reading; and of an unfinished one, if some of its records were returned."""

    @property
    def end_offset(self) -> int:
        """The end of what can be read now, exclusive."""
        end = self.log.last_stable_offset if self._committed else self.log.log_end_offset
        return min(end, durable_offset(self.log)) if self._durable else end

    def position(self, end: int) -> tuple[int, _LogPosition]:
        """Return the position at an offset of the log as it is, from before the records below it are read.

        If they are replaced meanwhile, it differs from what is there later.
        """
        return end, _LogPosition(self.log, end)

    def finish(self, position: tuple[int, _LogPosition]) -> None:
        """Note that everything below a position was read."""
        self.next_offset = max(position[0], self.next_offset or 0)
        self.positions = [position]

    def refresh(self) -> bool:
        """Read the directory again; return whether the log has changed.

        *Errors*: as for `withdrawn` and `deleted`; `LogNotFoundError`.
        """
        log = self.log.refresh()
        return log is not self.log and self._changed_to(log)

    def _changed_to(self, log: Log) -> bool:
        """Continue with the log as it is now; see `refresh`."""
        self.log, end, difference = self._state(log)
        if end < (self.next_offset or 0):
            # an error follows: it names the end after the truncation
            self.log, end, difference = self._state(_after_truncation(log))
        if self.next_offset is None:
            return True
        if end < self.next_offset:
            why = f"the log was truncated and ends at offset {end} now"
            # what is below the end now may have been appended since
            self.withdrawn(f"at least {_records(end, self.next_offset)}", end, why)
        self._refuse(difference)
        start = self.log.log_start_offset
        if start > self.next_offset:
            self.deleted(start)
        return True

    def check_end(self) -> None:
        """Raise an error if valid batches may follow the end of the log as it was last looked at."""
        with suppress(LogChangedError):
            next(iter(self.log.records(start_offset=self.log.log_end_offset)), None)

    def check_unchanged(self) -> None:
        """Raise an error if records of the log as it was last looked at were replaced in its files."""
        self._refuse(self._difference(self.log))

    def _refuse(self, difference: tuple[int, str] | None) -> None:
        if difference is not None:
            offset, why = difference
            self.withdrawn(f"records below offset {offset} were", offset, why)

    def _state(self, log: Log) -> tuple[Log, int, tuple[int, str] | None]:
        """Return the log as it is now, its end, and how it differs from what was read."""
        for _ in range(_MAX_ATTEMPTS):
            with suppress(LogChangedError):
                return log, log.log_end_offset, self._difference(log)
            # again, since the refresh
            log = log.refresh()
        return log, log.log_end_offset, self._difference(log)

    def _difference(self, log: Log) -> tuple[int, str] | None:
        """Return a position that a log does not have, and how it differs there; `None` if it has all of them."""
        for offset, position in self.positions:
            if log.log_start_offset <= offset <= log.log_end_offset:
                difference = position.mismatch(log)
                if difference is not None:
                    return offset, difference
        return None

    def withdrawn(self, records: str, offset: int, why: str) -> NoReturn:
        """Raise an error: records that were read are no longer in the log, the first at this offset or below it."""
        raise LogChangedError(
            f"{self.log.path}: {records} withdrawn after being read: {why}",
            **self._numbers(offset),
            code="log_changed",
            expected="a log that keeps the records that were read",
            found=why,
            advice="records below this offset may have been replaced, too: follow the log again from an offset "
            "below which they are the same",
        )

    def deleted(self, start: int) -> None:
        """Raise an error: records were deleted before they were read. The log starts at this offset now."""
        raise OffsetOutOfRangeError(
            f"{self.log.path}: {self.deleted_records(start)} deleted before being read: the log starts at offset "
            f"{start} now",
            **self._numbers(self.next_offset),
            code="offset_out_of_range",
            expected=f"{start} <= offset",
            found=str(self.next_offset),
            advice=f"follow the log again from offset {start}",
        )

    def deleted_records(self, start: int) -> str:
        """Name the records before the log start offset that were not read, as the subject of a sentence."""
        return _records(self.next_offset or 0, start)

    def _numbers(self, offset: int | None) -> dict[str, Any]:
        log = self.log
        return {
            "file": log.path,
            "offset": offset,
            "log_start_offset": log.log_start_offset,
            "log_end_offset": log.log_end_offset,
        }


def _after_truncation(log: Log) -> Log:
    """Return the log after a truncation that it shows in part: the newest segments are removed one by one.

    A truncation that began while the segments were listed is not in the count of this log, but in that of the next.
    """
    deadline = time.monotonic() + _TRUNCATION_S
    while time.monotonic() < deadline:
        with suppress(LogChangedError):
            log = log.refresh()
            if not _is_being_truncated(log):
                break
        time.sleep(0.002)
    return log


def _records(start: int, end: int) -> str:
    """Name the records of a range of offsets, as the subject of a sentence."""
    if end - start == 1:
        return f"the record at offset {start} was"
    return f"the records from offset {start} to {end - 1} were"
