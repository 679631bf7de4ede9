"""Reading a log as it grows: the iterator of `Log.follow`."""

import os
import threading
import time
from collections import deque
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from cordwood._core import Log, Record, _LogPosition
from cordwood.errors import CordwoodError, ForkedHandleError, LogChangedError
from cordwood.followed_log import FollowedLog, durable_offset
from cordwood.watch import Watch

__all__ = ["Follow", "FollowedBatches"]

_PAUSE_SECONDS = 0.005
"""Between two looks at the directory, so that a busy writer does not cause one for each append."""
_READ_OFFSETS = 4096
_READ_BYTES = 1 << 20
"""The maximum numbers of offsets and of bytes of a log that are read at once."""
_READ_EXPANDED_BYTES = 32 << 20
"""The bytes of keys and values after which no more is read: a compressed log may expand to many times its size."""
_TURN_RECORDS = 256
"""The number of records after which `async for` lets other tasks run."""


class Follow:
    """The records of a log in order, and then new ones as they are appended. Made by `Log.follow`.

    An iterator for `for` and for `async for`. Threads may share it: each record is returned once. It ends at the
    timeout, at an error, at Ctrl-C, and after `close()`, which any thread may call. In a forked child it is a
    `ForkedHandleError`.

    From the first wait until the end it has two open descriptors, which `with` or `close()` free early.
    """

    _watch: Watch | None = None
    """Also of an object that could not be made, for `__del__`."""

    def __init__(
        self,
        log: Log,
        start_offset: int | None,
        timeout: float | None,
        isolation_level: Any,  # noqa: ANN401
        durable: bool,
    ) -> None:
        """See `Log.follow`, which checks the arguments."""
        self._is_closed = False
        log = log.refresh()
        if durable:
            durable_offset(log)
        if start_offset is not None:
            # fails if it is outside the log
            log.records(start_offset=start_offset)
        self._isolation_level = isolation_level
        committed = isolation_level == "read_committed"
        self._log = FollowedLog(log, start_offset, committed=committed, durable=durable)
        self._timeout = timeout
        self._ready: deque[Record] = deque()
        self._lock = threading.RLock()
        self._is_awaited = False
        self._last_look = 0.0
        self._turn = 0
        self._process = os.getpid()

    @property
    def next_offset(self) -> int:
        """The offset from which the iteration continues: that of the next record, or of the end of what was read.

        It is what a consumer commits, `position.commit(follow.next_offset)`, once all records returned so far are
        processed, also after the end. It is not for a `finally`: a record that an exception interrupted is below it.
        It is above the last record's offset plus 1 if the marker of a transaction follows that record.
        """
        with suppress(IndexError):
            return self._ready[0].offset
        following = self._log.next_offset
        return self._log.log.log_start_offset if following is None else following

    def __iter__(self) -> Self:
        """Return the iterator."""
        return self

    def __next__(self) -> Record:
        """Return the next record, and wait for it if necessary."""
        self._check_process()
        with self._lock:
            # not from before other threads have waited
            deadline = self._deadline()
            try:
                while True:
                    record = self._next()
                    if record is not None:
                        return record
                    seconds = self._seconds_left(deadline)
                    if seconds == 0:
                        break
                    if self._watch is None:
                        # a change from now on is noticed; one before it is found by looking again
                        self._watch = Watch([Path(self._log.log.path)])
                    else:
                        self._watch.wait(seconds)
                        time.sleep(self._pause())
            except BaseException:
                self.close()
                raise
            self.close()
        raise StopIteration

    def __aiter__(self) -> Self:
        """Return the iterator."""
        return self

    async def __anext__(self) -> Record:
        """Return the next record; other tasks run while there is none."""
        import asyncio  # noqa: PLC0415  (it takes longer to import than all else)

        self._check_process()
        deadline = self._deadline()
        self._turn = (self._turn + 1) % _TURN_RECORDS
        if self._turn == 0:
            await asyncio.sleep(0)
        while True:
            try:
                with self._lock:
                    record = self._next()
                if record is not None:
                    return record
                seconds = self._seconds_left(deadline)
                if seconds == 0:
                    break
                if self._watch is None:
                    self._watch = Watch([Path(self._log.log.path)])
                    continue
            except BaseException:
                self.close()
                raise
            # a task that is cancelled while it waits may continue with the next record
            await self._wait(seconds)
        self.close()
        raise StopAsyncIteration

    def batches(self) -> "FollowedBatches":
        """Return an iterator, also for `async for`, of lists of records: those that are there, at least one.

        A list has up to 4,096 records and 32 MiB of keys and values. After one is processed, commit `next_offset`.

        >>> import shutil, tempfile
        >>> import cordwood as cw
        >>> log = cw.Log(shutil.copytree("tests/golden/01-plain/orders-0", tempfile.mkdtemp() + "/orders-0"))
        >>> position, follow = log.position("billing"), log.follow(timeout=0)
        >>> for records in follow.batches():
        ...     position.commit(follow.next_offset)
        >>> records[-1].offset, position.offset
        (1499, 1500)
        """
        return FollowedBatches(self)

    def _with_ready(self, first: Record) -> list[Record]:
        """Return a record and those after it that were read already."""
        with self._lock:
            records = [first, *self._ready]
            self._ready.clear()
            return records

    async def _wait(self, seconds: float | None) -> None:
        """Wait for a change; the event loop watches the descriptors."""
        import asyncio  # noqa: PLC0415

        if self._is_awaited:
            raise RuntimeError("another task is waiting for the next record")
        with self._lock:
            watch = None if self._is_closed else self._watch
            if watch is None:
                return
            # from now on `close` leaves the descriptors to this task
            self._is_awaited = True
        loop = asyncio.get_running_loop()
        woken = loop.create_future()

        def wake() -> None:
            if not woken.done():
                woken.set_result(None)

        descriptors = watch.descriptors
        timer = loop.call_later(watch.seconds if seconds is None else min(seconds, watch.seconds), wake)
        try:
            for descriptor in descriptors:
                loop.add_reader(descriptor, wake)
            await woken
        finally:
            timer.cancel()
            # not of a loop that was closed
            with suppress(RuntimeError):
                for descriptor in descriptors:
                    loop.remove_reader(descriptor)
            self._is_awaited = False
            if self._is_closed:
                self.close()
        await asyncio.sleep(self._pause())

    def close(self) -> None:
        """End the iteration and close its descriptors; a `for` that waits in another thread ends."""
        self._is_closed = True
        watch = self._watch
        if watch is None or self._process != os.getpid():
            return
        watch.wake()
        with self._lock:
            # a waiting task closes them itself when it runs again
            if not self._is_awaited:
                watch.close()

    def __enter__(self) -> Self:
        """Return the iterator."""
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc_value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close it."""
        self.close()

    def __del__(self) -> None:
        """Close the descriptors."""
        if self._watch is not None:
            self._watch.close()

    def __repr__(self) -> str:
        """Return the path and the next offset."""
        state = " closed" if self._is_closed else ""
        return f"<Follow {self._log.log.path} next offset {self.next_offset}{state}>"

    def _check_process(self) -> None:
        if self._process != os.getpid():
            raise ForkedHandleError(
                "Follow was opened before a fork and belongs to the parent; open one in the child",
                code="forked_handle",
                expected="a handle that this process opened",
                found="a handle that the parent process opened",
            )

    def _deadline(self) -> float | None:
        return None if self._timeout is None else time.monotonic() + self._timeout

    def _seconds_left(self, deadline: float | None) -> float | None:
        """Return the time to wait; `None` for no limit, 0 if the iteration ends."""
        if self._is_closed:
            return 0
        return None if deadline is None else max(0, deadline - time.monotonic())

    def _pause(self) -> float:
        """Return the time until the directory may be looked at again, and forget the changes until now."""
        if self._is_closed or self._watch is None:
            return 0
        self._watch.changed()
        return max(0, self._last_look + _PAUSE_SECONDS - time.monotonic())

    def _next(self) -> Record | None:
        """Return the next record of the log as it is now; `None` if there is none, and once it is closed."""
        has_looked = False
        while not self._is_closed:
            if self._ready:
                return self._ready.popleft()
            if self._read():
                continue
            # a file that was modified within the last seconds counts as changed each time
            if has_looked:
                self._log.check_end()
                return None
            has_looked, self._last_look = True, time.monotonic()
            self._log.refresh()
        return None

    def _read(self) -> bool:
        """Read a part of what is new in the log as it was last looked at; return false if nothing is.

        A part is read as a whole before its first record is returned. So what was returned always ends at an offset
        whose position is known, and a later look shows whether it was truncated and written again.
        """
        followed = self._log
        try:
            end = followed.end_offset
            start = followed.log.log_start_offset if followed.next_offset is None else followed.next_offset
            if start >= end:
                return False
            end = min(end, start + _READ_OFFSETS)
            splits = followed.log.plan(_READ_BYTES, start_offset=start, end_offset=end)
            if len(splits) > 1:
                end = splits[0].end_offset
            position, found = self._part(start, end)
        except LogChangedError:
            # retention, or a truncation, which the refreshed log shows
            if not followed.refresh():
                raise
            return True
        # first: at no moment is `next_offset` above a record that was not returned
        self._ready.extend(found)
        followed.finish(position)
        return True

    def _part(self, start: int, end: int) -> tuple[tuple[int, _LogPosition], list[Record]]:
        """Read a part; return the position at its end, and its records. It ends before damage, if records precede that.

        *Errors*: `LogChangedError`; that of damage at its start.
        """
        followed, found = self._log, list[Record]()
        position = followed.position(end)
        # what was returned may have been replaced since: this part would hide it
        followed.check_unchanged()
        size = 0
        try:
            for record in followed.log.records(
                start_offset=start, end_offset=end, isolation_level=self._isolation_level
            ):
                found.append(record)
                size += len(record.key or b"") + len(record.value or b"")
                size += sum(len(name) + len(value or b"") for name, value in record.headers)
                # a record above the last offset of its batch may be above the end, and more of the part may
                # follow it
                if size > _READ_EXPANDED_BYTES and record.offset + 1 < end:
                    break
            else:
                return position, found
        except LogChangedError:
            raise
        except CordwoodError as error:
            if not found:
                raise
            # not that of the last record, which may be above the last offset of its batch
            damaged = start if error.offset is None else error.offset
            before = damaged if start < damaged <= end else found[-1].offset + 1
        else:
            before = found[-1].offset + 1
        # again: the position at the end of what is returned must be from before it is read
        return self._part(start, before) if before < end else (position, found)


class FollowedBatches:
    """Lists of the records of a `Follow`. Made by `Follow.batches`."""

    def __init__(self, follow: Follow) -> None:
        """See `Follow.batches`."""
        self._follow = follow

    def __iter__(self) -> Self:
        """Return the iterator."""
        return self

    def __next__(self) -> list[Record]:
        """Return the records that are there, and wait for one if necessary."""
        follow = self._follow
        with follow._lock:  # noqa: SLF001
            return follow._with_ready(next(follow))  # noqa: SLF001

    def __aiter__(self) -> Self:
        """Return the iterator."""
        return self

    async def __anext__(self) -> list[Record]:
        """Return the records that are there; other tasks run before, and while there is none."""
        import asyncio  # noqa: PLC0415  (it takes longer to import than all else)

        await asyncio.sleep(0)
        return self._follow._with_ready(await anext(self._follow))  # noqa: SLF001
