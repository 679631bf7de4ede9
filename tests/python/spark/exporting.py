"""Exports without a Spark session: the shipped code, with a replacement for the writer of the steps.

`go` starts an export of a generated plan, whose steps `write_step` writes as a Spark job would. `begin_by_hand` starts
an export of real logs, which fails after planning. `seen` is the result of another reader.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import corpus
import needs_pyspark  # noqa: F401
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from cordwood.spark.jobs.export_run import Export, Progress, carry_out
from cordwood.spark.jobs.exporting import export
from cordwood.spark.jobs.journal import Counts, Journal, Plan
from cordwood.spark.jobs.ranges import Range, Step

PLAIN = corpus.partition("01-plain")
DATES = ("2024-05-01", "2024-05-02")


def a_plan(steps: int = 3, partitions: tuple[int, ...] = (0, 1)) -> Plan:
    """Partitions of a topic; a step has ten offsets of each."""
    ranges = [
        tuple(Range("orders", p, f"/data/orders-{p}", 10 * n, 10 * n + 10, size=100) for p in partitions)
        for n in range(steps)
    ]
    return Plan(["/data"], {}, {}, "{}", "{}", [Step(n, parts) for n, parts in enumerate(ranges)])


def write_step(step: Step, staging: Path) -> None:
    """Write a file for each partition and date, and the additional files of a Spark job."""
    for part, (n, date) in itertools.product(step.ranges, enumerate(DATES)):
        folder = staging / f"topic={part.topic}" / f"date={date}"
        folder.mkdir(parents=True, exist_ok=True)
        offsets = [o for o in range(part.start_offset, part.end_offset) if o % len(DATES) == n]
        table = pa.table({"partition": pa.array([part.partition] * len(offsets), pa.int32()), "offset": offsets})
        pq.write_table(table, folder / f"part-{part.partition}-{n}.c000.zstd.parquet")
        (folder / f".part-{part.partition}-{n}.c000.zstd.parquet.crc").write_bytes(b"crc")
    (staging / "_SUCCESS").touch()


def count_step(step: Step) -> Counts:
    return {(str(p.topic), p.partition or 0): p.end_offset - p.start_offset for p in step.ranges}


def silent(_: Progress) -> None:
    pass


def go(output: Path, plan: Plan, *, write: Callable[[Step, Path], None] = write_step) -> Export:
    """Start an export, as `export` does."""
    output.mkdir(exist_ok=True)
    journal = Journal(output)
    with journal.locked():
        if journal.plan() is None:
            journal.begin(plan)
        return carry_out(journal, plan, write, count_step, silent)


def seen(output: Path) -> Counter[tuple[int, int]]:
    """How often another reader finds each record."""
    if not any(output.glob("topic=*/*/*.parquet")):
        return Counter()
    table = ds.dataset(output, format="parquet", partitioning="hive").to_table(columns=["partition", "offset"])
    return Counter(zip(table["partition"].to_pylist(), table["offset"].to_pylist(), strict=True))


def wanted(plan: Plan) -> Counter[tuple[int, int]]:
    return Counter(
        (part.partition or 0, offset)
        for step in plan.steps
        for part in step.ranges
        for offset in range(part.start_offset, part.end_offset)
    )


def tree(folder: Path) -> dict[str, tuple[int, int]]:
    return {
        str(path.relative_to(folder)): (path.stat().st_mtime_ns, path.stat().st_size)
        for path in folder.rglob("*")
        if path.is_file()
    }


def begin_by_hand(path: Path | str, output: Path | str, **options: Any) -> None:
    """Start an export that fails before its first step, because there is no session."""
    with pytest.raises(AttributeError):
        export(None, path, output, step_bytes=1 << 20, **options)  # type: ignore[arg-type]
    assert (Path(str(output).removeprefix("file:")) / "_cordwood/export.json").exists()
