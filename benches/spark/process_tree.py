"""CPU seconds of a process and its descendants, by program; and of the machine. Linux."""

from __future__ import annotations

import os
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")
# fields of /proc/<pid>/stat after the name, which may contain any character
_PARENT, _UTIME, _STIME, _CUTIME, _CSTIME = 1, 11, 12, 13, 14
_BUSY, _IDLE = (0, 1, 2, 5, 6, 7), (3, 4)


@dataclass(frozen=True)
class Usage:
    """The CPU time used so far."""

    jvm: float
    """CPU seconds of the JVM itself."""
    python: float
    """CPU seconds of everything else: the driver, Spark's daemon and its workers, with those that have ended."""
    processes: frozenset[int]
    machine_busy: float
    machine_idle: float
    """Of all cores, in seconds; busy includes all processes."""

    @property
    def cpu(self) -> float:
        """CPU seconds of the tree."""
        return self.jvm + self.python


def usage(root: int) -> Usage:
    """The CPU time of `root` and its descendants so far.

    The times of children that were waited for are included in their parent's, so nothing is lost when one ends, with
    one exception: pyspark's daemon ignores SIGCHLD, and a child that the kernel reaps is counted nowhere. Hence the set
    of processes: if one of them is missing later, its time is missing, too.
    """
    stats: dict[int, tuple[str, list[int]]] = {}
    children: dict[int, list[int]] = defaultdict(list)
    for directory in Path("/proc").iterdir():
        if not directory.name.isdigit():
            continue
        try:
            text = (directory / "stat").read_text()
        except OSError:  # it ended just now
            continue
        name, _, rest = text.partition("(")[2].rpartition(")")
        fields = [int(word) if word.lstrip("-").isdigit() else 0 for word in rest.split()]
        stats[int(directory.name)] = (name, fields)
        children[fields[_PARENT]].append(int(directory.name))
    tree, rest_of_tree = [], [root]
    while rest_of_tree:
        pid = rest_of_tree.pop()
        tree.append(pid)
        rest_of_tree += children[pid]
    jvm = python = 0
    for pid in tree:
        name, fields = stats[pid]
        own, reaped = fields[_UTIME] + fields[_STIME], fields[_CUTIME] + fields[_CSTIME]
        if name == "java":
            jvm += own
            python += reaped
        else:
            python += own + reaped
    machine = [int(word) for word in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]]
    return Usage(
        jvm=jvm / _TICKS,
        python=python / _TICKS,
        processes=frozenset(tree),
        machine_busy=sum(machine[i] for i in _BUSY) / _TICKS,
        machine_idle=sum(machine[i] for i in _IDLE) / _TICKS,
    )
