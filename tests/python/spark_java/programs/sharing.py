"""Readers whose batches other threads read, and whose memory other operators need.

Arguments: a partition directory of some hundred MiB, settings with a small off-heap memory.
"""

from __future__ import annotations

import sys

from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from steps import session, step

LOG = sys.argv[1]

spark = session()
# one task, whose batches are large
OPTIONS = {"maxBatchBytes": str(64 << 20), "maxBatchRows": "1000000", "maxPartitionBytes": str(1 << 30)}


def load(**options: str) -> DataFrame:
    """The rows of the log."""
    return spark.read.format("cordwood").options(**options).load(LOG)


load(**OPTIONS).createOrReplaceTempView("log")
SCRIPT = "SELECT TRANSFORM(offset, value) USING 'cat' AS (a, b) FROM log"


def stopped_early() -> int:
    """The task ends while the thread that feeds the script reads a batch."""
    return sum(len(spark.sql(SCRIPT).limit(1).collect()) for _ in range(20))


step("stopped early", stopped_early)
for name, options in (("default batches", {}), ("large batches", OPTIONS)):
    rows = load(**options)
    step(f"sorted: {name}", lambda rows=rows: rows.sortWithinPartitions("value").agg(f.count("value")).first()[0])  # type: ignore[misc]
    step(f"grouped: {name}", lambda rows=rows: rows.groupBy("offset").agg(f.max("value")).count())  # type: ignore[misc]
step("afterwards", lambda: load().count())
