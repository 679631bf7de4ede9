"""`retention_timer`: retention and compaction at intervals, in a thread of the caller's process."""

import atexit
import logging
import math
import os
import threading
import time
from types import TracebackType
from typing import Self

from cordwood._core import LogWriter
from cordwood.errors import ClosedError, ConfigError, ForkedHandleError

__all__ = ["RetentionTimer", "retention_timer"]

_LOGGER = logging.getLogger("cordwood")


def retention_timer(writer: LogWriter, *, every: float) -> "RetentionTimer":
    """Return a timer that calls `writer.apply_retention()` now and every *every* seconds. It is not started yet.

    If `cleanup.policy` has `compact`, it then calls `writer.compact()`, which does nothing unless a pass is due.

    The settings are the writer's, such as `retention.ms` and `min.cleanable.dirty.ratio`. In a Kafka data
    directory, each run ends with a `ConfigError` if neither the `LogConfig` nor the metadata states `retention.ms`.
    Nothing else in cordwood starts a thread that outlives a call: without a timer, retention and compaction run only
    when a program calls them.

    *Errors*: `TypeError`; `ConfigError` for an interval that is not above 0.

    >>> import tempfile
    >>> import cordwood as cw
    >>> with tempfile.TemporaryDirectory() as folder, cw.LogWriter(f"{folder}/orders-0") as writer:
    ...     with cw.retention_timer(writer, every=60) as timer:
    ...         writer.append("paid").durable, timer.is_running
    (True, True)
    """
    if not isinstance(writer, LogWriter):
        raise TypeError(f"writer: expected a LogWriter, found {type(writer).__name__}")
    wanted = "a number of seconds above 0"
    if isinstance(every, bool) or not isinstance(every, int | float):
        raise TypeError(f"every: expected {wanted}, found {type(every).__name__}")
    try:
        seconds = float(every)
    except OverflowError:
        seconds = math.inf
    if not 0 < seconds <= threading.TIMEOUT_MAX:
        found = f"{seconds:g}"
        raise ConfigError(
            f"every: expected {wanted}, found {found}", code="config", argument="every", expected=wanted, found=found
        )
    return RetentionTimer(writer, seconds)


class RetentionTimer:
    """Applies retention to a log at intervals, and compacts it. Made by `retention_timer`.

    `start()`, or `with`, starts its thread; `stop()`, or the end of the `with` block, ends it, after a run that has
    begun. It also ends when the writer is closed, and when the interpreter exits. A forked child has no timer: there,
    `start()` raises a `ForkedHandleError`, and `stop()` does nothing.

    An error of a run is logged by the logger `cordwood` and kept in `last_error` until a run is completed; the next run
    follows in time. The deletion of segments and each pass of compaction are logged with the level `INFO`.
    """

    def __init__(self, writer: LogWriter, every: float) -> None:
        """See `retention_timer`, which checks the arguments."""
        self._writer = writer
        self._every = every
        self._last_error: Exception | None = None
        self._thread: threading.Thread | None = None
        self._stopped = threading.Event()
        self._lock = threading.Lock()
        self._process = os.getpid()

    @property
    def is_running(self) -> bool:
        """Whether the thread runs."""
        return self._thread is not None and self._thread.is_alive()

    @property
    def last_error(self) -> Exception | None:
        """The error of the last run; `None` if it was completed, or if there was none yet."""
        return self._last_error

    def start(self) -> None:
        """Start the thread, which applies retention at once. Does nothing if it runs. A stopped timer can start again.

        *Errors*: `ClosedError` and `ForkedHandleError` of the writer.
        """
        if self._process != os.getpid():
            raise ForkedHandleError(
                "RetentionTimer was made before a fork and belongs to the parent; make one in the child",
                code="forked_handle",
                expected="a handle that this process opened",
                found="a handle that the parent process opened",
            )
        # raises the error of a closed writer
        self._writer.log_end_offset  # noqa: B018
        with self._lock:
            if self.is_running:
                return
            self._stopped = threading.Event()
            # a daemon: the interpreter does not wait for it before it calls `stop`
            self._thread = threading.Thread(
                target=self._run, args=(self._stopped,), name="cordwood-retention", daemon=True
            )
            self._thread.start()
            atexit.register(self.stop)

    def stop(self) -> None:
        """End the thread, and return when it has ended. Does nothing if it does not run.

        Called by the thread itself, as from a handler of the logger, it only ends the runs. So it does if a handler of
        a signal calls it inside a call of the writer, for which the thread may wait.
        """
        if self._process != os.getpid():
            return
        thread = self._thread
        self._stopped.set()
        may_wait_for_this = self._writer._has_interrupted_call()  # noqa: SLF001
        if thread is not None and thread is not threading.current_thread() and not may_wait_for_this:
            thread.join()

    def _run(self, stopped: threading.Event) -> None:
        """Apply retention until the timer is stopped. Runs in a thread."""
        try:
            while True:
                begun = time.monotonic()
                try:
                    self._apply()
                    self._last_error = None
                except ClosedError:
                    return
                except Exception as error:
                    self._last_error = error
                    _LOGGER.exception("%s: retention failed; it is tried again in %g s", self._writer.path, self._every)
                # a run that takes longer than the interval is not followed by two
                if stopped.wait(max(0, begun + self._every - time.monotonic())):
                    return
        finally:
            atexit.unregister(self.stop)

    def _apply(self) -> None:
        plan = self._writer.apply_retention()
        if plan.segments:
            start = plan.log_start_offset
            _LOGGER.info(
                "%s: retention deleted %d segments below offset %d", self._writer.path, len(plan.segments), start
            )
        if "compact" in self._writer.config.cleanup_policy.split(","):
            self._compact()

    def _compact(self) -> None:
        compaction = self._writer.compact()
        if compaction.is_due:
            _LOGGER.info("%s: compaction cleaned the records below offset %d", self._writer.path, compaction.end_offset)

    def __enter__(self) -> Self:
        """Start the thread and return the timer."""
        self.start()
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc_value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Stop it."""
        self.stop()

    def __repr__(self) -> str:
        """Return the path, the interval and the state."""
        state = "running" if self.is_running else "stopped"
        return f"<RetentionTimer of {self._writer.path} every {self._every:g} s, {state}>"
