"""Records that are lost during a stream: by retention, and in partitions that are deleted, truncated or recreated."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import needs_pyspark  # noqa: F401
import pytest
from batches import name
from pyspark.sql.streaming.datasource import ReadAllAvailable

from spark.reading import Plan, refuses
from spark.streaming import EARLIEST, Engine, flat, grow, offsets_of, rows_of


def test_a_repeated_micro_batch_detects_retention_of_a_new_partition(tmp_path: Path) -> None:
    grow(tmp_path / "t-0", 0, 0, 1)
    engine = Engine(tmp_path, **EARLIEST)
    engine.batch()
    grow(tmp_path / "t-1", 0, 0, 1)
    grow(tmp_path / "t-1", 3, 3, 1)
    # its start is recorded before it is read
    assert engine.batch() == []
    assert engine.offsets == {"t": {"0": 3, "1": 0}}
    end = engine.reader.latestOffset(engine.at, ReadAllAvailable())
    assert offsets_of(end) == {"t": {"0": 3, "1": 6}}
    (tmp_path / "t-1" / name(0)).unlink()
    again = Engine(tmp_path, checkpoint=engine.at, **EARLIEST)
    with refuses("CORDWOOD_SEGMENT_GONE", "t-1", "0"):
        again.reader.partitions(engine.at, end)


def test_a_recreated_log_continues_from_its_end_if_data_loss_is_allowed(tmp_path: Path) -> None:
    grow(tmp_path / "t-0", 0, 0, 4)
    engine = Engine(tmp_path, checkpoint={"t": {"0": 5000}}, failOnDataLoss=False, **EARLIEST)
    engine.batch()
    grow(tmp_path / "t-0", 0, 12, 1)
    assert engine.batch() == rows_of("t", 0, range(12, 15))


def retained(path: Path) -> None:
    """Remove the oldest segment, as retention does."""
    (path / name(0)).unlink()


@pytest.fixture
def rolled(tmp_path: Path) -> Iterator[Path]:
    """Three segments of six records."""
    path = tmp_path / "data" / "t-0"
    for base in (0, 6, 12):
        grow(path, base, base, 2)
    yield path
    shutil.rmtree(path, ignore_errors=True)


def test_retention_that_overtakes_the_stream_is_data_loss(rolled: Path) -> None:
    engine = Engine(rolled, maxOffsetsPerTrigger=4, **EARLIEST)
    assert engine.batch() == rows_of("t", 0, range(4))
    retained(rolled)
    with pytest.raises(Exception, match=r"^\[CORDWOOD_(OFFSET_OUT_OF_RANGE|SEGMENT_GONE)\] t-0"):
        engine.batch()
    with pytest.raises(Exception, match=r"^\[CORDWOOD_(OFFSET_OUT_OF_RANGE|SEGMENT_GONE)\] t-0"):
        Engine(rolled, checkpoint=engine.at, **EARLIEST).batch()


def test_without_fail_on_data_loss_the_stream_continues_at_the_log_start(rolled: Path) -> None:
    engine = Engine(rolled, maxOffsetsPerTrigger=4, failOnDataLoss=False, **EARLIEST)
    assert engine.batch() == rows_of("t", 0, range(4))
    retained(rolled)
    assert flat(engine.all()) == rows_of("t", 0, range(6, 18))


def test_retention_between_planning_and_reading_is_data_loss_too(rolled: Path) -> None:
    plans = []
    for lenient in (False, True):
        engine = Engine(rolled, failOnDataLoss=not lenient, **EARLIEST)
        splits = engine.reader.partitions(engine.at, engine.latest())
        plans.append(Plan(engine.data, engine.schema, engine.reader, splits))
    retained(rolled)
    strict, lenient_plan = plans
    with pytest.raises(Exception, match=r"^\[CORDWOOD_(OFFSET_OUT_OF_RANGE|SEGMENT_GONE)\] t-0"):
        strict.pieces()
    assert [row for piece in lenient_plan.pieces() for row in piece] == rows_of("t", 0, range(6, 18))


@pytest.mark.parametrize("lenient", [False, True])
def test_a_partition_that_is_deleted_under_a_stream_is_data_loss(tmp_path: Path, lenient: bool) -> None:
    for number in range(2):
        grow(tmp_path / f"t-{number}", 0, 0, 4)
    engine = Engine(tmp_path, maxOffsetsPerTrigger=6, failOnDataLoss=not lenient, **EARLIEST)
    got = engine.batch() or []
    shutil.rmtree(tmp_path / "t-1")
    grow(tmp_path / "t-0", 0, 12, 1)
    if not lenient:
        with pytest.raises(Exception, match=r"^\[CORDWOOD_(NOT_FOUND|SEGMENT_GONE)\]"):
            engine.all()
        return
    got += flat(engine.all())
    assert [row for row in sorted(got) if row[1] == 0] == rows_of("t", 0, range(15))
    assert len(got) == len(set(got))


def test_a_partition_that_reappears_continues_at_its_position(tmp_path: Path) -> None:
    """Such as a disk that was not mounted: nothing is read twice when it is mounted again."""
    for number in range(2):
        grow(tmp_path / f"t-{number}", 0, 0, 2)
    engine = Engine(tmp_path, failOnDataLoss=False, **EARLIEST)
    assert len(engine.batch() or []) == 12
    (tmp_path / "t-1").rename(tmp_path / "away")
    grow(tmp_path / "t-0", 0, 6, 1)
    assert engine.batch() == rows_of("t", 0, range(6, 9))
    (tmp_path / "away").rename(tmp_path / "t-1")
    grow(tmp_path / "t-1", 0, 6, 1)
    assert engine.batch() == rows_of("t", 1, range(6, 9))


def test_a_log_that_was_truncated_below_the_position_is_data_loss(tmp_path: Path) -> None:
    """A new leader may have fewer records; other records are written at those offsets next."""
    path = tmp_path / "t-0"
    grow(path, 0, 0, 4)
    engine = Engine(path, **EARLIEST)
    assert engine.batch() == rows_of("t", 0, range(12))
    shutil.rmtree(path)
    grow(path, 0, 0, 2)
    with pytest.raises(Exception, match=r"^\[CORDWOOD_(OFFSET_OUT_OF_RANGE|SEGMENT_GONE)\] t-0"):
        engine.batch()
