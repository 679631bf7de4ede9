"""Log handles that live as long as their process: a Spark worker serves many tasks, and opens each log once.

It is a module of its own because Spark pickles functions by reference to their module: what lies here is there once in
a process, while globals of a user's script and closures are fresh in each task.
"""

import functools
import gc
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

import cordwood as cw
from cordwood.spark.partitions import absolute

__all__ = ["CacheInfo", "cache_info", "open_cached", "spare_collector"]

Fingerprint: TypeAlias = tuple[tuple[int, ...] | None, ...]

MOST = 64
"""How many logs are kept; each may keep 64 MiB of tables for look-ups."""

# of each, so that all of them together stay below the usual limit of 1,024
_MAX_OPEN_FILES = 12

# far more than a tick of any file system's clock
_TICK_NS = 2_000_000_000


@dataclass
class CacheInfo:
    """What `open_cached` did in this process: `opened` logs, `refreshed` ones that had changed, and `hits`."""

    opened: int = 0
    refreshed: int = 0
    hits: int = 0


_info = CacheInfo()
_logs: dict[tuple[str, str], tuple[cw.Log, Fingerprint]] = {}
_lock = threading.Lock()


def cache_info() -> CacheInfo:
    """Return what was done so far in this process."""
    with _lock:
        return CacheInfo(_info.opened, _info.refreshed, _info.hits)


def open_cached(path: str, *, io: Literal["auto", "mmap", "pread"] = "pread") -> cw.Log:
    """Give the log of a partition directory as it is now, opened once in a process.

    A log whose directory, last segment or checkpoint changed since is refreshed, which shares what is unchanged. A
    `Log` reopens itself in a forked child. *Errors*: those of `cordwood.Log`.
    """
    key = (absolute(path), io)
    with _lock:
        log, known = _logs.pop(key, (None, None))
        if log is None or known is None or not _is_there(log, known):
            known = None
            log = cw.Log(key[0], io=io, max_open_files=_MAX_OPEN_FILES)
            _info.opened += 1
        # taken before the log looks at the directory (again): what changes from here on is seen as a change
        now = _fingerprint(log)
        if now == known and not _is_fresh(now):
            _info.hits += 1
        else:
            log = log.refresh()
            _info.refreshed += known is not None
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


def _fingerprint(log: cw.Log) -> Fingerprint:
    """Look at what tells that a directory changed: files come and go, and the last segment grows."""
    directory = Path(log.path)
    checkpoint = directory.parent / "log-start-offset-checkpoint"
    return tuple(_state(path) for path in (directory, Path(log.segments[-1].path), checkpoint))


def _is_fresh(fingerprint: Fingerprint) -> bool:
    """Whether anything was written just now.

    The clock of file times ticks in milliseconds: of two changes within a tick, the second would not be seen where no
    size shows it, as in a directory or in a preallocated file.
    """
    now = time.time_ns()
    return any(state is not None and now - state[-1] < _TICK_NS for state in fingerprint)


def _is_there(log: cw.Log, known: Fingerprint) -> bool:
    """Whether the path still leads to the directory that was opened; while it is open no other has its number."""
    opened, now = known[0], _state(Path(log.path))
    return opened is not None and now is not None and opened[:2] == now[:2]


def _state(path: Path) -> tuple[int, ...] | None:
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)
