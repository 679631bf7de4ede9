"""The program with Spark of the folder `examples`, in the shared session."""

from __future__ import annotations

import runpy
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import corpus
import needs_pyspark  # noqa: F401
import pytest

pytestmark = pytest.mark.spark

PROGRAM = Path(__file__).resolve().parents[3] / "examples" / "spark_hourly_counts.py"


def test_records_are_counted_by_hour(spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main = runpy.run_path(str(PROGRAM))["main"]
    assert PROGRAM.stem == "spark_hourly_counts"
    zone = spark.conf.get("spark.sql.session.timeZone")
    with warnings.catch_warnings():
        # getOrCreate returns the shared session and warns about its settings
        warnings.simplefilter("ignore")
        main(str(corpus.GOLDEN / "16-data-dir"), "cities", str(tmp_path / "hours"))
    spark.conf.set("spark.sql.session.timeZone", zone)
    parts = [corpus.partition("16-data-dir", f"cities-{number}") for number in range(2)]
    counted = Counter(
        (record.timestamp // 3_600_000, number) for number, part in enumerate(parts) for record in corpus.visible(part)
    )
    rows = spark.read.parquet(str(tmp_path / "hours")).collect()
    assert {(int(row.hour.timestamp()) // 3600, row.partition): row.records for row in rows} == counted
    assert len(capsys.readouterr().out.splitlines()) == len(counted)
