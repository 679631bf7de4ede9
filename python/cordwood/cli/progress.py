"""A progress line on stderr for long operations, if stderr is a terminal."""

import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

__all__ = ["byte_progress", "counted", "elapsed"]

_T = TypeVar("_T")

_QUIET_SECONDS = 2.0
_EVERY = 1024


def counted(items: Iterable[_T], rows: Callable[[_T], int], *, to_file: bool, noun: str = "records") -> Iterator[_T]:
    """Yield the items. After two seconds show the number of rows, unless the rows go to the same terminal."""
    # a closed stderr is None
    is_shown = sys.stderr is not None and sys.stderr.isatty()
    if not is_shown or (sys.stdout.isatty() and not to_file):
        yield from items
        return
    from rich.console import Console  # noqa: PLC0415  (only a terminal needs it)
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn  # noqa: PLC0415

    columns = (SpinnerColumn(), TextColumn("{task.completed:,.0f} " + noun), TimeElapsedColumn())
    console = Console(file=sys.stderr)
    # stdout carries the data; warnings on stderr are written above the progress
    progress = Progress(*columns, console=console, transient=True, redirect_stdout=False)
    task = progress.add_task("", total=None)
    start, shown, pending = time.monotonic(), False, 0
    try:
        for item in items:
            yield item
            pending += rows(item)
            if pending < _EVERY:
                continue
            progress.advance(task, pending)
            pending = 0
            if not shown and time.monotonic() - start > _QUIET_SECONDS:
                shown = True
                progress.start()
    finally:
        if shown:
            progress.stop()


@contextmanager
def byte_progress(total: int | None, *, to_file: bool) -> Iterator[Callable[..., None]]:
    """Return a function that is called with the number of bytes done so far, of *total*.

    If *total* is `None`, the function is also called with the total, which may grow.
    After two seconds it shows them, unless the output goes to the same terminal.
    """
    is_shown = sys.stderr is not None and sys.stderr.isatty()
    if not is_shown or (sys.stdout.isatty() and not to_file):
        yield lambda _done, _total=None: None
        return
    from rich.console import Console  # noqa: PLC0415  (only a terminal needs it)
    from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn  # noqa: PLC0415

    columns = (BarColumn(), DownloadColumn(binary_units=True), TimeRemainingColumn())
    progress = Progress(*columns, console=Console(file=sys.stderr), transient=True, redirect_stdout=False)
    task = progress.add_task("", total=total)
    start = time.monotonic()

    def show(done: int, total: int | None = total) -> None:
        progress.update(task, completed=done, total=total)
        if not progress.live.is_started and time.monotonic() - start > _QUIET_SECONDS:
            progress.start()

    try:
        yield show
    finally:
        progress.stop()


@contextmanager
def elapsed(doing: str) -> Iterator[None]:
    """After two seconds show *doing* and the time so far. For one call that tells nothing else until it ends."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield
        return
    from rich.console import Console  # noqa: PLC0415  (only a terminal needs it)
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn  # noqa: PLC0415

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    progress = Progress(*columns, console=Console(file=sys.stderr), transient=True, redirect_stdout=False)
    progress.add_task(doing, total=None)
    timer = threading.Timer(_QUIET_SECONDS, progress.start)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        # so that it does not start after it was stopped
        timer.join()
        progress.stop()
