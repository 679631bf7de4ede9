"""Queries that fail or are ended early, in one application.

Arguments: a data directory, a damaged one, a folder with the partition big-0, settings.
"""

from __future__ import annotations

import itertools
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from gates import Gate, until
from pyspark.sql import DataFrame
from steps import load, session, step

DATA, DAMAGED, FOLDER = sys.argv[1], sys.argv[2], Path(sys.argv[3])
BIG = FOLDER / "big-0"
LOGS = FOLDER / "logs"
# of a process
MAX_LOGS = 64

spark = session()
context = spark.sparkContext
jvm: Any = context._jvm  # noqa: SLF001
process = jvm.java.lang.ProcessHandle.current().pid()


def values(log: Path) -> DataFrame:
    return load(spark, log, maxBatchRows=100).select("value")


def truncate(path: Path) -> None:
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 2 + 10)


def changed(name: str, change: Callable[[Path], None], place: int) -> int:
    """Change a segment of a copy while the first one is read, by one task."""
    log = Path(shutil.copytree(BIG, FOLDER / name / "big-0"))
    gate = Gate(FOLDER, name)
    query = gate.through(values(log).coalesce(1))
    return int(gate.during(query.count, lambda: change(sorted(log.glob("*.log"))[place])))


def cancelled(name: str, cancel: Callable[[], Any], log: Path = BIG) -> int:
    gate = Gate(FOLDER, name)
    query = gate.through(values(log))

    def run() -> int:
        context.setJobGroup(name, name)
        return query.count()

    def end() -> None:
        cancel()
        # the tasks end later
        until(lambda: not context.statusTracker().getActiveJobsIds())

    return int(gate.during(run, end))


def open_logs() -> dict[str, int]:
    """The number of files that the JVM has open in each folder of LOGS."""
    jvm.java.lang.System.gc()
    found: dict[str, int] = {}
    for entry in Path(f"/proc/{process}/fd").iterdir():
        with suppress(FileNotFoundError):
            target = entry.readlink()
            if target.is_relative_to(LOGS):
                name = target.relative_to(LOGS).parts[0]
                found[name] = found.get(name, 0) + 1
    return found


def linked(name: str, source: Path | str) -> Path:
    """A log of its own with the files of another."""
    return Path(shutil.copytree(source, LOGS / name / Path(source).name, copy_function=os.link))


def finish(name: str) -> None:
    values(linked(name, f"{DATA}/cities-0")).collect()


def limit(name: str) -> None:
    values(linked(name, BIG)).limit(1).collect()


def fail(name: str) -> None:
    with suppress(Exception):
        values(linked(name, f"{DAMAGED}/cities-0")).collect()


def abandon(name: str) -> None:
    """Python ends before the rows do."""

    def first(batches: Iterator[Any]) -> Iterator[Any]:
        yield next(batches)

    frame = values(linked(name, BIG))
    frame.mapInArrow(first, frame.schema).collect()


def cancel(name: str) -> None:
    with suppress(Exception):
        cancelled(name, context.cancelAllJobs, linked(name, BIG))


def after_the_cache() -> list[tuple[str, int]]:
    """Open files of logs that were read in each way, and of logs of other queries since."""
    for action in (finish, limit, fail, abandon, cancel):
        for number in range(3):
            action(f"{action.__name__}-{number}")
    for number in range(MAX_LOGS):
        finish(f"later-{number}")
    found: dict[str, int] = {}

    def closed() -> bool:
        found.clear()
        found.update(open_logs())
        return all(name.startswith("later-") for name in found)

    with suppress(AssertionError):
        until(closed, seconds=10)
    return sorted(found.items())


def many(queries: int) -> list[tuple[int, int]]:
    """Open files, and the resident memory in KiB, after each tenth of some queries."""
    log = linked("often", BIG)
    ways: Iterator[Callable[[], Any]] = itertools.cycle(
        [
            lambda: load(spark, log).selectExpr("sum(length(value))", "max(key)").collect(),
            # it ends with a batch in memory, because the source does not know this filter
            lambda: load(spark, log).where("length(value) > 0").select("value").limit(1).collect(),
            lambda: load(spark, log).where("key = '0001'").select("offset").collect(),
            lambda: load(spark, log).selectExpr("count(*)").collect(),
        ]
    )
    found = []
    for number in range(queries):
        next(ways)()
        if (number + 1) % (queries // 10) == 0:
            found.append((open_logs().get("often", 0), resident()))
    return found


def resident() -> int:
    lines = Path(f"/proc/{process}/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))


def charged() -> int:
    """The largest number of bytes that tasks had from Spark's off-heap memory, as the heartbeats tell it."""
    store = spark._jsparkSession.sharedState().sparkContext().statusStore()  # noqa: SLF001

    def peak() -> int:
        metrics = store.executorList(True).apply(0).peakMemoryMetrics()
        return int(metrics.get().getMetricValue("OffHeapExecutionMemory")) if metrics.isDefined() else 0

    gate = Gate(FOLDER, "charged")
    with suppress(AssertionError):
        gate.during(gate.through(values(BIG)).count, lambda: until(lambda: peak() > 0, seconds=20))
    return peak()


def all_is_well() -> list[int]:
    return [len(load(spark, DATA).select("value").collect()), len(values(BIG).collect())]


step("before", all_is_well)
step("shortened", lambda: changed("shortened", truncate, 0))
step("after shortened", all_is_well)
step("deleted", lambda: changed("deleted", Path.unlink, 1))
step("after deleted", all_is_well)
step("damaged", lambda: load(spark, DAMAGED).select("value").collect())
step("after damaged", all_is_well)
step("all jobs cancelled", lambda: cancelled("all", context.cancelAllJobs))
step("group cancelled", lambda: cancelled("group", lambda: context.cancelJobGroup("group")))
step("after cancelled", all_is_well)
step("charged", charged)
step("open files", after_the_cache)
step("many", lambda: many(200))
step("after all", all_is_well)
spark.stop()
