"""The start of a stream is recorded before anything is read, so that the first micro-batch may fail."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import needs_pyspark  # noqa: F401
import pytest
from batches import name

from spark.reading import Row, refuses
from spark.streaming import EARLIEST, Engine, flat, grow, offsets_of, rows_of


def interrupted(path: Path, change: Callable[[], object], **options: Any) -> tuple[list[Row], Engine]:
    """Run a query whose first micro-batch is recorded and fails; return the rows of its repetition, and the query.

    Spark requests the start again, because it has recorded only the end of the micro-batch.
    """
    first = Engine(path, begin=False, **options)
    end = first.latest()
    change()
    second = Engine(path, begin=False, **options)
    rows = second.read(second.at, end)
    second.reader.commit(end)
    second.at = end
    return rows, second


@pytest.mark.parametrize(
    ("options", "start"),
    [
        ({}, 6),
        (EARLIEST, 0),
        ({"startingOffsets": {"t": {"0": 4}}}, 4),
        ({"startingTimestamp": 5}, 5),
        ({"startingTimestamp": 7, "startingOffsetsByTimestampStrategy": "latest"}, 6),
    ],
    ids=str,
)
def test_a_repeated_first_micro_batch_loses_no_record(tmp_path: Path, options: dict[str, Any], start: int) -> None:
    path = tmp_path / "t-0"
    grow(path, 0, 0, 2)
    rows, engine = interrupted(path, partial(grow, path, 0, 6, 2), **options)
    assert rows + flat(engine.all()) == rows_of("t", 0, range(start, 12))


def test_a_repeated_first_micro_batch_is_followed_by_one_with_records(tmp_path: Path) -> None:
    """There are no new records: if the next offset were the start again, `availableNow` would end there."""
    path = tmp_path / "t-0"
    grow(path, 0, 0, 2)
    _, engine = interrupted(path, lambda: None, **EARLIEST)
    assert engine.batch() == rows_of("t", 0, range(6))


def test_retention_after_a_failed_first_micro_batch_is_data_loss(tmp_path: Path) -> None:
    path = tmp_path / "t-0"
    for base in (0, 6, 12):
        grow(path, base, base, 2)
    rows, engine = interrupted(path, (path / name(0)).unlink, **EARLIEST)
    assert rows == []
    with refuses("CORDWOOD_SEGMENT_GONE", "t-0", "offset 0", "the log now begins at offset 6"):
        engine.batch()


def test_retention_after_a_failed_first_micro_batch_is_skipped_if_loss_is_allowed(tmp_path: Path) -> None:
    path = tmp_path / "t-0"
    for base in (0, 6, 12):
        grow(path, base, base, 2)
    _, engine = interrupted(path, (path / name(0)).unlink, failOnDataLoss=False, **EARLIEST)
    assert flat(engine.all()) == rows_of("t", 0, range(6, 18))


def test_the_first_micro_batch_is_empty_and_ends_at_the_start(tmp_path: Path) -> None:
    grow(tmp_path / "t-0", 0, 0, 2)
    engine = Engine(tmp_path, begin=False, maxOffsetsPerTrigger=2, **EARLIEST)
    start, end = engine.at, engine.latest()
    assert offsets_of(end) == {"t": {"0": 0}}
    assert end == start
    assert engine.read(start, end) == []
    assert [len(rows) for rows in engine.all()] == [2, 2, 2]
