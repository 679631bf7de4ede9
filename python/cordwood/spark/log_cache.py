"""Log handles that live as long as their process: a Spark worker serves many tasks, and opens each log once.

It is a module of its own because Spark pickles functions by reference to their module: what lies here is there once in
a process, while globals of a user's script and closures are fresh in each task.
"""

import functools
import gc
import threading
from pathlib import Path
from typing import Literal

import cordwood as cw
from cordwood.spark.partitions import absolute

__all__ = ["open_cached", "spare_collector"]

MOST = 64
"""How many logs are kept; each may keep 64 MiB of tables for look-ups."""

# of each, so that all of them together stay below the usual limit of 1,024
_MAX_OPEN_FILES = 12

# device and inode of the directory
_Identity = tuple[int, int]

_logs: dict[tuple[str, str], tuple[cw.Log, _Identity | None]] = {}
_lock = threading.Lock()


def open_cached(path: str, *, io: Literal["auto", "mmap", "pread"] = "pread", refresh: bool = True) -> cw.Log:
    """Give the log of a partition directory as it is now, opened once in a process.

    `Log.refresh` lists the directory and shares the segments whose inode, size, modification time and change time are
    unchanged. A `Log` reopens itself in a forked child. Without *refresh* the log is as this process last saw it, where
    it still has it: for a further question about the same plan, or of the same task. *Cost*: with 5,000 segments about
    20 ms.
    *Errors*: those of `cordwood.Log`.
    """
    key = (absolute(path), io)
    with _lock:
        log, known = _logs.pop(key, (None, None))
        # read before the directory is opened: one that takes its place later has another number
        now = _identity(key[0]) if refresh or log is None else known
        if log is None or now is None or now != known:
            log = cw.Log(key[0], io=io, max_open_files=_MAX_OPEN_FILES)
        elif refresh:
            log = log.refresh()
        _logs[key] = (log, now)
        while len(_logs) > MOST:
            del _logs[next(iter(_logs))]
        return log


@functools.cache
def spare_collector() -> None:
    """Let Python's cyclic collector leave alone what is there by now: modules, above all.

    Spark's worker runs a full collection behind every task, which looks through all of them each time: 35 ms with
    pandas and pyarrow, where a task of 128 MiB takes half a second. What they refer to is freed as before.
    """
    gc.collect()
    gc.freeze()


def _identity(path: str) -> _Identity | None:
    """Say which directory a path leads to; while it is open no other has its number."""
    try:
        found = Path(path).stat()
    except OSError:
        return None
    return (found.st_dev, found.st_ino)
