"""One arm in a new process and JVM: reads a JSON object, then one command per line; writes one line of JSON for each.

`run` times every query once; `check` returns the values to compare. Arms take turns, so that other load on the machine
affects all of them equally. Only the action is timed: the data frame exists, and each action plans it again.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

import session
from generate import BATCH_RECORDS, RECORDS_PER_MS, START_TIMESTAMP
from look_ups import STRIDE, function, native
from process_tree import usage

Action = Callable[[], object]
MAX_TRIES = 5


def timed(action: Action, *, has_jvm: bool) -> dict[str, Any]:
    """Wall and CPU time of a run. Repeats a run during which a process ended, because its CPU time would be missing."""
    for _ in range(MAX_TRIES):
        before, start_cpu, start = usage(os.getpid()), time.process_time(), time.perf_counter()
        answer = action()
        wall, own, after = time.perf_counter() - start, time.process_time() - start_cpu, usage(os.getpid())
        if before.processes <= after.processes:
            break
    busy, idle = after.machine_busy - before.machine_busy, after.machine_idle - before.machine_idle
    return {
        "wall": wall,
        # a single process has a clock with more digits
        "cpu": after.cpu - before.cpu if has_jvm else own,
        "jvm": after.jvm - before.jvm,
        "python": after.python - before.python if has_jvm else own,
        "idle": idle / (busy + idle) if busy + idle else 0.0,
        "answer": answer,
    }


def read_frame(spark: SparkSession, spec: dict[str, Any]) -> DataFrame:
    """The rows of one format."""
    columns, options = spec["columns"], spec.get("options", {})
    match spec["format"]:
        case "parquet":
            return spark.read.parquet(spec["path"]).select(*columns.split(","))
        case "kafka":
            return spark.read.format("kafka").options(**options).load().select(*columns.split(","))
        case "java":
            return spark.read.format("cordwood").options(**options).load(spec["path"]).select(*columns.split(","))
        case "zero-cost":
            from zero_cost import ZeroCost  # noqa: PLC0415 - not for the other arms

            spark.dataSource.register(ZeroCost)
            reader = spark.read.option("columns", columns).option("rows", spec["rows"])
            return reader.format("zero-cost").option("splits", spec["splits"]).load()
    from cordwood.spark import LogDataSource  # noqa: PLC0415 - the same

    spark.dataSource.register(LogDataSource)
    return spark.read.format("cordwood").option("columns", columns).options(**options).load(spec["path"])


def read(spark: SparkSession, spec: dict[str, Any]) -> tuple[dict[str, Action], Action]:
    """`noop`: discards every row. `aggregate`: the length of all values and the largest offset. `count`: rows.

    With a range of timestamps only its rows are read.
    """
    frame = read_frame(spark, spec)
    if "range" in spec:
        start, end = spec["range"]
        frame = frame.where(f"timestamp >= timestamp_millis({start}) AND timestamp < timestamp_millis({end})")

    def aggregate() -> list[int]:
        row = frame.agg(sf.sum(sf.length("value")), sf.max("offset")).first()
        assert row is not None
        return list(row)

    def check() -> dict[str, Any]:
        sums = {
            "rows": sf.count(sf.lit(1)),
            "last_offset": sf.max("offset"),
            "timestamps": sf.sum(sf.unix_millis("timestamp") - START_TIMESTAMP),
        }
        if "value" in frame.columns:
            sums["value_bytes"] = sf.sum(sf.length("value"))
            sums["value_crcs"] = sf.sum(sf.crc32("value"))
            sums["key_crcs"] = sf.sum(sf.crc32("key"))
        row = frame.agg(*(column.alias(name) for name, column in sums.items())).first()
        assert row is not None
        return row.asDict() | {"splits": frame.rdd.getNumPartitions()}

    actions: dict[str, Action] = {"noop": _to_noop(frame), "aggregate": aggregate, "count": lambda: [frame.count()]}
    return {"": actions[spec["sink"]]}, check


def _to_noop(frame: DataFrame) -> Action:
    return lambda: frame.write.format("noop").mode("overwrite").save()


def targets(spark: SparkSession, spec: dict[str, Any], order: str) -> DataFrame:
    """A column of targets."""
    many = spec["rows"] if spec["function"] == "locate" else spec["rows"] // RECORDS_PER_MS
    n = spec["lookups"]
    place = f"id * {many} div {n}" if order == "sorted" else f"id * {STRIDE} % {many}"
    frame = spark.range(0, n, 1, spec["splits"])
    if spec["function"] == "locate":
        return frame.selectExpr(f"{place} AS target")
    return frame.selectExpr(f"timestamp_millis({START_TIMESTAMP} + {place}) AS target")


def look_up(spark: SparkSession, spec: dict[str, Any]) -> tuple[dict[str, Action], Action]:
    """A UDF over targets, sorted and unsorted; and the targets alone."""
    udf = function(spec)
    actions = {}
    for order in ("sorted", "random"):
        frame = targets(spark, spec, order)
        actions[f"{order}/targets"] = _to_noop(frame)
        actions[order] = _to_noop(frame.select(udf("target")))

    def check() -> dict[str, int]:
        right = {}
        for order in ("sorted", "random"):
            frame = targets(spark, spec, order).select("target", udf("target").alias("found"))
            if spec["variant"] == "zero-cost":
                condition = "found.segment_base_offset = target"
            elif spec["function"] == "locate":
                base, size = f"target div {BATCH_RECORDS} * {BATCH_RECORDS}", spec["batch_bytes"]
                position = f"({base} - found.segment_base_offset) div {BATCH_RECORDS} * {size}"
                condition = f"found.batch_base_offset = {base} AND found.position = {position} AND found.size = {size}"
            else:
                offset = f"(unix_millis(target) - {START_TIMESTAMP}) * {RECORDS_PER_MS}"
                condition = f"found.offset = {offset} AND found.timestamp = target"
            right[order] = frame.where(condition).count()
        return right

    return actions, check


def main() -> None:
    """Run the commands of the standard input on the workload of the argument."""
    spec = json.loads(sys.argv[1])
    # before the JVM starts, which counts its cores once
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: spec["cores"]])
    spark = None
    check: Action
    if spec["kind"] == "native":
        actions, check = native(spec), dict
    else:
        spark = session.start(spec["cores"], spec.get("settings", {}))
        actions, check = {"read": read, "look-up": look_up}[spec["kind"]](spark, spec)
    answers = {
        "run": lambda: {name: timed(action, has_jvm=spark is not None) for name, action in actions.items()},
        "check": check,
    }
    print("RESULT {}", flush=True)
    for line in sys.stdin:
        print("RESULT " + json.dumps(answers[line.strip()]()), flush=True)
    if spark is not None:
        spark.stop()


if __name__ == "__main__":
    main()
