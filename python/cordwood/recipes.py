"""Functions that unpickle handles: a handle is pickled as the arguments that open it again.

A recipe is the result of `__reduce__`: a function and its arguments.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from cordwood._core import Log, LogDir, Scan, Segment
from cordwood.errors import LogChangedError

__all__ = ["open_directory", "open_log", "scan_batches", "scan_directory", "scan_log", "segment"]

_Recipe = tuple[Callable[..., Any], tuple[Any, ...]]


def open_log(path: str, options: Mapping[str, Any]) -> Log:
    """Open a log."""
    return Log(path, **options)


def open_directory(path: str, options: Mapping[str, Any]) -> LogDir:
    """Open a data directory."""
    return LogDir(path, **options)


def segment(log: _Recipe, base_offset: int) -> Segment:
    """Open a log and return one of its segments."""
    opened: Log = log[0](*log[1])
    found = opened.segments.floor(base_offset)
    if found is None or found.base_offset != base_offset:
        raise LogChangedError(
            f"{opened.path}: the segment with base offset {base_offset} was deleted since it was pickled",
            file=opened.path,
            code="log_changed",
            expected=f"a segment with base offset {base_offset}",
            found="none",
        )
    return found


def scan_log(log: _Recipe, options: Mapping[str, Any]) -> Scan:
    """Open a log and make a scan of it."""
    scan: Scan = log[0](*log[1]).scan(**options)
    return scan


def scan_batches(log: _Recipe, options: Mapping[str, Any]) -> Scan:
    """Open a log and make a scan of its batches."""
    scan: Scan = log[0](*log[1]).batches(**options)
    return scan


def scan_directory(directory: _Recipe, topics: Sequence[str] | None, options: Mapping[str, Any]) -> Scan:
    """Open a data directory and make a scan of some of its topics."""
    scan: Scan = directory[0](*directory[1]).scan(topics, **options)
    return scan
