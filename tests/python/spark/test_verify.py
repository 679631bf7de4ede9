"""`jobs.verify` in a real Spark: the findings of `cordwood.verify`, as rows."""

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

PLAIN = corpus.GOLDEN / "01-plain" / "orders-0"
DAMAGED = corpus.GOLDEN / "damaged"


def test_the_rows_are_the_findings_of_each_partition(spark: SparkSession, tmp_path: Path) -> None:
    for case in ("flip-record", "index-missing", "timeindex-disorder", "torn-last-byte"):
        shutil.copytree(DAMAGED / case / "tickets-0", tmp_path / f"{case}-0")
    shutil.copytree(PLAIN, tmp_path / "orders-0")
    (tmp_path / "recovery-point-offset-checkpoint").write_text("0\n9\n")
    rows = [row.asDict() for row in jobs.verify(spark, tmp_path).collect()]
    found = cw.verify(tmp_path).findings
    fields = [name for name in rows[0] if name != "path"]
    expected = {tuple(map(str, (getattr(finding, name) for name in fields))) for finding in found}
    assert {tuple(map(str, (row[name] for name in fields))) for row in rows} == expected
    assert len(rows) == len(found)
    of_data_directory = [row for row in rows if row["path"] is None]
    assert [row["code"] for row in of_data_directory] == ["checkpoint_unreadable"]
    assert {Path(row["path"]).name for row in rows if row["path"]} == {
        "flip-record-0",
        "index-missing-0",
        "timeindex-disorder-0",
        "torn-last-byte-0",
    }


def test_an_intact_partition_has_no_row(spark: SparkSession) -> None:
    assert jobs.verify(spark, PLAIN, deep=True).collect() == []
