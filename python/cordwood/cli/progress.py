"""A line on stderr for work that takes a while, where somebody is looking."""

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
    """Pass the items on; after two seconds say on the terminal how many rows went by, unless they go there too."""
    if not sys.stderr.isatty() or (sys.stdout.isatty() and not to_file):
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
