"""A cache of log handles for the lifetime of a process: a Spark worker runs many tasks, and opens each log once.

It is a separate module because Spark pickles functions by reference to their module: the globals of a module exist
once per process, while closures and the globals of a user's script are new in each task.
"""

import functools
import gc
import threading
from pathlib import Path
from typing import Literal

import cordwood as cw
from cordwood.spark.partitions import absolute

__all__ = ["freeze_modules", "open_cached"]

MAX_LOGS = 64
"""Maximum number of cached logs; each may keep 64 MiB of tables for look-ups."""

# of each log, so that all of them together stay below the usual limit of 1,024
_MAX_OPEN_FILES = 12

# device and inode of the directory
_Identity = tuple[int, int]

_logs: dict[tuple[str, str], tuple[cw.Log, _Identity | None]] = {}
_lock = threading.Lock()


def open_cached(path: str, *, io: Literal["auto", "mmap", "pread"] = "pread", refresh: bool = True) -> cw.Log:
    """Return the current log of a partition directory. It is opened once per process.

    `Log.refresh` lists the directory and shares the segments whose inode, size, modification time and change time are
    unchanged. A `Log` reopens itself in a forked child. Without *refresh* a cached log is returned as it is, for
    further calls within the same plan or task. *Cost*: about 20 ms with 5,000 segments.
    *Errors*: those of `cordwood.Log`.
    """
    key = (absolute(path), io)
    with _lock:
        log, known = _logs.pop(key, (None, None))
        # read before the directory is opened: a directory that replaces it later has another inode
        now = _identity(key[0]) if refresh or log is None else known
        if log is None or now is None or now != known:
            log = cw.Log(key[0], io=io, max_open_files=_MAX_OPEN_FILES)
        elif refresh:
            log = log.refresh()
        _logs[key] = (log, now)
        while len(_logs) > MAX_LOGS:
            del _logs[next(iter(_logs))]
        return log


@functools.cache
def freeze_modules() -> None:
    """Exclude the existing objects, mostly modules, from Python's garbage collector.

    Spark's worker runs a full collection after every task, which traverses all objects: 35 ms with pandas and pyarrow,
    compared with half a second for a task of 128 MiB. Reference counting still frees them.
    """
    gc.collect()
    gc.freeze()


def _identity(path: str) -> _Identity | None:
    """Return the identity of the directory at a path; no other directory has the same while it is open."""
    try:
        found = Path(path).stat()
    except OSError:
        return None
    return (found.st_dev, found.st_ino)
