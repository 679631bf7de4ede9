"""Writes with the source in Java, which only reads, and beside it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException

import cordwood as cw
from cordwood.spark import errors, register

DATA = "tests/golden/16-data-dir"


def refusal(write: Callable[[], object]) -> errors.SparkLogError:
    with pytest.raises(PySparkException) as raised:
        write()
    found = errors.parse(raised.value)
    assert found is not None, raised.value
    return found


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_a_write_is_refused_with_advice(spark: Any, tmp_path: Path, mode: str) -> None:
    rows = spark.createDataFrame([("v",)], "value string")
    told = refusal(lambda: rows.write.format("cordwood").mode(mode).option("topic", "orders").save(str(tmp_path)))
    assert told.code == "CORDWOOD_UNSUPPORTED"
    assert 'format("cordwood_sink")' in told.reason
    assert list(tmp_path.iterdir()) == []


def test_a_stream_is_refused_with_advice(spark: Any, tmp_path: Path) -> None:
    rows = spark.readStream.format("rate").load().selectExpr("CAST(value AS STRING) AS value")
    writer = rows.writeStream.format("cordwood").option("checkpointLocation", str(tmp_path / "checkpoint"))

    def run() -> None:
        query = writer.option("topic", "orders").start(str(tmp_path / "data"))
        query.awaitTermination(60)

    assert 'format("cordwood_sink")' in refusal(run).reason
    assert not (tmp_path / "data").exists()


def test_an_insert_is_refused_with_advice(spark: Any) -> None:
    told = refusal(lambda: spark.sql(f"INSERT INTO cordwood.`{DATA}/cities-0` SELECT 'v' AS value"))
    assert 'format("cordwood_sink")' in told.reason


def test_the_sink_is_registered_beside_the_source_in_java(spark: Any, tmp_path: Path) -> None:
    register(spark)
    rows = spark.createDataFrame([("v",)], "value string")
    rows.write.format("cordwood_sink").mode("append").option("topic", "orders").save(str(tmp_path))
    assert [record.value for record in cw.Log(tmp_path / "orders-0").records()] == [b"v"]
    assert spark.read.format("cordwood").load(str(tmp_path)).count() == 1
