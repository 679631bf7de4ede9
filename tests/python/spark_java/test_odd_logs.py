"""Aggregates, filters and splits of logs whose records are not at the offsets of their headers, in Java."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import needs_pyspark  # noqa: F401
import pytest
from odd_logs import Stored, write_odd_log
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from spark_java.plans import scan

LOGS = int(os.environ.get("CORDWOOD_ODD_LOGS", "16"))
SPLITS: list[dict[str, Any]] = [{}, {"minPartitions": 4}, {"maxRecordsPerPartition": 1}, {"maxPartitionBytes": 1}]


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[list[Stored]]]:
    folder = tmp_path_factory.mktemp("odd")
    return folder, [write_odd_log(folder / f"odd-{seed}", seed) for seed in range(LOGS)]


def aggregated(frame: DataFrame) -> list[int | None]:
    times = [f.unix_millis(fold("timestamp")) for fold in (f.min, f.max)]
    (row,) = frame.agg(f.count("*"), f.min("offset"), f.max("offset"), *times).collect()
    return list(row)


def naive(records: list[Stored]) -> list[int | None]:
    offsets, times = [one.offset for one in records], [one.timestamp for one in records]
    if not records:
        return [0, None, None, None, None]
    return [len(records), min(offsets), max(offsets), min(times), max(times)]


@pytest.mark.parametrize("seed", range(LOGS))
def test_aggregates_filters_and_splits_agree_with_the_records(
    spark: Any, logs: tuple[Path, list[list[Stored]]], seed: int
) -> None:
    folder, records = logs[0], logs[1][seed]
    draw = random.Random(seed)
    frame = spark.read.format("cordwood").options(**SPLITS[seed % len(SPLITS)]).load(str(folder / f"odd-{seed}"))
    assert aggregated(frame) == naive(records)
    rows = [(row.offset, bytes(row.value)) for row in frame.select("offset", "value").collect()]
    assert sorted(rows) == sorted((one.offset, one.value) for one in records)
    for _ in range(3):
        least, most = sorted(draw.choice(records).offset + draw.choice((-1, 0, 1)) for _ in range(2))
        some = frame.where(f"offset >= {least} AND offset < {most}")
        inside = [one for one in records if least <= one.offset < most]
        found = [(row.offset, bytes(row.value)) for row in some.select("offset", "value").collect()]
        assert sorted(found) == sorted((one.offset, one.value) for one in inside), (least, most)
        assert aggregated(some) == naive(inside), (least, most)
        time = draw.choice(records).timestamp
        later = frame.where(f.col("timestamp") >= f.timestamp_millis(f.lit(time)))
        assert aggregated(later) == naive([one for one in records if one.timestamp >= time]), time


def test_the_aggregates_are_computed_by_the_source(spark: Any, logs: tuple[Path, list[list[Stored]]]) -> None:
    frame = spark.read.format("cordwood").load(str(logs[0] / "odd-0"))
    assert "count(*)" in scan(frame.agg(f.count("*"))).description
