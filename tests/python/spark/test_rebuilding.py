"""The job that rebuilds indexes, in a real Spark."""

from __future__ import annotations

import shutil
from pathlib import Path

import corpus
import needs_pyspark  # noqa: F401
import pytest
from pyspark.sql import SparkSession

import cordwood as cw
from cordwood.spark import jobs

pytestmark = [pytest.mark.spark, pytest.mark.long]

INDEX = "00000000000000000400.index"


def test_each_partition_is_compared_once_and_rebuilt_only_if_asked(spark: SparkSession, tmp_path: Path) -> None:
    orders, tickets = (
        Path(shutil.copytree(corpus.partition(case).path, tmp_path / name))
        for case, name in [("01-plain", "orders-0"), ("01-small", "tickets-0")]
    )
    damaged = Path(shutil.copytree(corpus.GOLDEN / "damaged" / "flip-record" / "tickets-0", tmp_path / "tickets-1"))
    right = (orders / INDEX).read_bytes()
    (orders / INDEX).write_bytes(right[:-8])
    rows = jobs.rebuild_indexes(spark, tmp_path).collect()
    expected = {
        (file.file, file.reason, file.old_size, file.new_size)
        for path in (orders, tickets)
        for file in cw.rebuild_indexes(path).files
    }
    assert {(row.file, row.reason, row.oldSize, row.newSize) for row in rows if row.error is None} == expected
    assert len(rows) == len(expected) + 1
    (failed,) = (row for row in rows if row.error is not None)
    assert (failed.topic, failed.partition, failed.file, failed.reason) == ("tickets", 1, str(damaged), None)
    assert "is damaged at position" in failed.error
    assert (orders / INDEX).read_bytes() == right[:-8]
    given = {"index.interval.bytes": "1024"}
    done = jobs.rebuild_indexes(spark, tmp_path, config=given, dry_run=False, subscribe="orders").collect()
    (row,) = (row for row in done if row.reason != "unchanged")
    assert row.file == str(orders / INDEX)
    assert Path(row.quarantine).read_bytes() == right[:-8]
    assert (orders / INDEX).read_bytes() == right
    with pytest.raises(cw.ConfigError, match=r"index\.interval\.bytes"):
        jobs.rebuild_indexes(spark, tmp_path, config={"index.interval.bytes": "-1"})
