"""A progress line on stderr for long operations, if stderr is a terminal."""

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

__all__ = ["counted"]

_T = TypeVar("_T")

_QUIET_SECONDS = 2.0
_EVERY = 1024


def counted(items: Iterable[_T], rows: Callable[[_T], int], *, to_file: bool) -> Iterator[_T]:
    """Yield the items. After two seconds show the number of rows, unless the rows go to the same terminal."""
    # a closed stderr is None
    is_shown = sys.stderr is not None and sys.stderr.isatty()
    if not is_shown or (sys.stdout.isatty() and not to_file):
        yield from items
        return
    columns = (SpinnerColumn(), TextColumn("{task.completed:,.0f} records"), TimeElapsedColumn())
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
