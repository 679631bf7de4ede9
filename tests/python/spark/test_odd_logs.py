"""Logs whose records are not at the offsets of their headers: rows and counts agree, however tasks are cut."""

from __future__ import annotations

import os
import random
from itertools import pairwise
from pathlib import Path
from typing import Any

import needs_pyspark  # noqa: F401
import pytest
from odd_logs import Stored, write_odd_log

from cordwood._core import _Query, _SourceOptions
from spark.reading import plan, struct

LOGS = int(os.environ.get("CORDWOOD_ODD_LOGS", "60"))
SPLITS: list[dict[str, Any]] = [
    {},
    {"minPartitions": 3},
    {"minPartitions": 50},
    {"maxRecordsPerPartition": 1},
    {"maxRecordsPerPartition": 3},
    {"maxPartitionBytes": 1},
    {"maxPartitionBytes": 300},
    {"maxBatchRows": 1},
]


def rows_of(path: Path, **options: Any) -> list[tuple[Any, ...]]:
    return sorted(plan(path, schema=struct("offset", "timestamp", "value"), **options).rows())


def wanted(records: list[Stored]) -> list[tuple[Any, ...]]:
    return sorted((record.offset, record.timestamp * 1000, record.value) for record in records)


def counted(path: Path, **options: Any) -> int:
    """As `jobs.count`: from the headers where these are enough."""
    given = {name: str(value) for name, value in options.items()}
    query = _Query(_SourceOptions({"path": str(path), **given}))
    return sum(query.count(piece.task) for task in query.plan()[1] for piece in task.pieces)


@pytest.mark.parametrize("seed", range(LOGS))
def test_every_record_is_read_and_counted_once(tmp_path: Path, seed: int) -> None:
    path = tmp_path / "odd-0"
    records = write_odd_log(path, seed)
    for options in SPLITS:
        assert rows_of(path, **options) == wanted(records), options
        assert counted(path, **options) == len(records), options


@pytest.mark.parametrize("seed", range(LOGS))
def test_adjacent_ranges_share_out_all_records(tmp_path: Path, seed: int) -> None:
    path = tmp_path / "odd-0"
    records = write_odd_log(path, seed)
    draw = random.Random(seed)
    first, end = min(record.place for record in records), max(record.place for record in records) + 1
    edges = sorted({first, end, *(draw.randrange(first, end + 1) for _ in range(3))})
    for low, high in pairwise(edges):
        given = {f"{name}Offsets": f'{{"odd":{{"0":{edge}}}}}' for name, edge in (("starting", low), ("ending", high))}
        inside = [record for record in records if low <= record.place < high]
        for options in (SPLITS[0], draw.choice(SPLITS[1:])):
            assert rows_of(path, **given, **options) == wanted(inside), (low, high, options)
            assert counted(path, **given, **options) == len(inside), (low, high, options)
