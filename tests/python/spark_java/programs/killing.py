"""Kills an executor during a query.

Arguments: a data directory, a folder with the partition big-0, settings.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from gates import Gate, until
from steps import load, session, step

DATA, FOLDER = sys.argv[1], Path(sys.argv[2])

spark = session()


def parent(process: int) -> int:
    """The parent of a process, 0 if it has ended."""
    try:
        stat = Path(f"/proc/{process}/stat").read_text(encoding="utf-8")
    except OSError:
        return 0
    return int(stat.rpartition(")")[2].split()[1])


def is_mine(process: int) -> bool:
    while process > 1:
        if process == os.getpid():
            return True
        process = parent(process)
    return False


def executors() -> list[int]:
    """The processes of the executors that this application has started."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and is_mine(int(entry.name)):
            command = (entry / "cmdline").read_bytes().split(b"\0")
            if b"org.apache.spark.executor.CoarseGrainedExecutorBackend" in command:
                found.append(int(entry.name))
    return sorted(found)


def killed() -> list[int]:
    """The number of rows, and whether an executor replaced the one that was killed."""
    before = executors()
    gate = Gate(FOLDER, "killed")
    rows = gate.through(load(spark, FOLDER / "big-0", maxBatchRows=100, minPartitions=8).select("value"))

    def kill() -> None:
        # each of them runs a task
        os.kill(before[0], signal.SIGKILL)
        until(lambda: not Path(f"/proc/{before[0]}/cwd").exists())

    found = gate.during(rows.count, kill)
    until(lambda: len(executors()) == len(before))
    return [found, len(set(executors()) - set(before))]


step("executors", lambda: len(executors()))
step("killed", killed)
step("afterwards", lambda: len(load(spark, DATA).select("value").collect()))
spark.stop()
