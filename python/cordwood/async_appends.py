"""Waiting for the flushes of `LogWriter.append_async` in an event loop.

An append of an event loop does not wait for the disk. A flush runs in a thread, one at a time for each event loop and
writer. Its end wakes the tasks whose records it made durable. If records were appended meanwhile, the next flush makes
all of them durable.
"""

import asyncio
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import NoReturn

from cordwood._core import Appended, _Unflushed
from cordwood.errors import CordwoodError

__all__ = ["acknowledged", "failed", "in_thread"]

_MAX_THREADS = 32
"""The number of writers that flush at the same time for event loops."""


async def acknowledged(append: _Unflushed) -> Appended:
    """Return what was appended once it is acknowledged."""
    if append.must_wait:
        await _Flushes.of(append).wait(append)
    return append.appended()


async def in_thread(call: Callable[[int], None], argument: int) -> None:
    """Call in a thread, for what waits for the disk."""
    await asyncio.get_running_loop().run_in_executor(_threads(), call, argument)


async def failed(error: Exception) -> NoReturn:
    """Raise the error of an append."""
    raise error


class _Flushes:
    """The tasks of one event loop that wait for flushes of one writer. It exists while a flush runs."""

    def __init__(self, loop: asyncio.AbstractEventLoop, writer: int) -> None:
        self._loop = loop
        self._writer = writer
        self._waiting: list[tuple[_Unflushed, asyncio.Future[None]]] = []
        """Not empty while a flush runs, also if all of these tasks were cancelled."""

    @classmethod
    def of(cls, append: _Unflushed) -> "_Flushes":
        """Return the flushes of the running event loop and the append's writer."""
        loop = asyncio.get_running_loop()
        with _State.lock:
            found = _State.running.get((loop, append.writer))
            if found is None:
                # an event loop that was closed during a flush did not run its end
                for key in [key for key in _State.running if key[0].is_closed()]:
                    del _State.running[key]
                found = _State.running[loop, append.writer] = cls(loop, append.writer)
            return found

    async def wait(self, append: _Unflushed) -> None:
        """Wait until an append is acknowledged. A task that is cancelled meanwhile ends no flush."""
        is_first = not self._waiting
        done = self._loop.create_future()
        self._waiting.append((append, done))
        if is_first:
            # after the tasks that are about to append, too
            self._loop.call_soon(self._start)
        await done

    def _start(self) -> None:
        """Start a flush for the tasks that wait now."""
        last = max((append for append, _ in self._waiting), key=lambda append: append.order)
        try:
            _threads().submit(self._flush, last)
        except RuntimeError as error:
            # no thread can be started, as at the exit of the interpreter
            self._finish(last, error)

    def _flush(self, last: _Unflushed) -> None:
        """Flush. Runs in a thread."""
        error = None
        try:
            last.wait()
        except BaseException as raised:  # noqa: BLE001  (the tasks raise it)
            error = raised
        try:
            self._loop.call_soon_threadsafe(self._finish, last, error)
        except RuntimeError:
            # the event loop was closed
            self._forget()

    def _finish(self, last: _Unflushed, error: BaseException | None) -> None:
        """Wake the tasks whose appends a flush has acknowledged. Start the next flush for the others."""
        waiting, self._waiting = self._waiting, []
        for append, done in waiting:
            if done.done():
                # the task was cancelled
                continue
            if error is not None:
                done.set_exception(error)
                error = _next_error(append, error)
            elif append.order <= last.order or not append.must_wait:
                done.set_result(None)
            else:
                self._waiting.append((append, done))
        if self._waiting:
            self._loop.call_soon(self._start)
        else:
            self._forget()

    def _forget(self) -> None:
        with _State.lock:
            _State.running.pop((self._loop, self._writer), None)


def _next_error(append: _Unflushed, error: BaseException) -> BaseException:
    """Return the error of the appends after the one that raised the error of a flush."""
    try:
        append.appended()
    except CordwoodError as poisoned:
        return poisoned
    return error


class _State:
    """What all event loops of this process share."""

    lock: threading.Lock
    running: dict[tuple[asyncio.AbstractEventLoop, int], _Flushes]
    threads: ThreadPoolExecutor | None


def _threads() -> ThreadPoolExecutor:
    with _State.lock:
        if _State.threads is None:
            _State.threads = ThreadPoolExecutor(_MAX_THREADS, "cordwood-flush")
        return _State.threads


def _reset() -> None:
    """Forget the threads of the parent of a forked process: one of them may hold the lock."""
    _State.lock, _State.running, _State.threads = threading.Lock(), {}, None


_reset()
os.register_at_fork(after_in_child=_reset)
