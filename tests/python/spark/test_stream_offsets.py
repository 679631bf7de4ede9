"""Offsets of a stream: its start, their format, and options that do not apply to streams."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import corpus
import pytest

from spark.reading import DATA, refuses
from spark.streaming import EARLIEST, Engine, grow, offsets_of, rows_of, through_json


def test_offsets_are_those_of_sparks_kafka_source() -> None:
    engine = Engine(DATA, subscribe="cities", **EARLIEST)
    assert engine.offsets == {"cities": {"0": 0, "1": 31}}
    assert offsets_of(engine.latest()) == {"cities": {"0": 268, "1": 150}}


def test_a_stream_starts_at_the_latest_offset_by_default() -> None:
    assert Engine(DATA, subscribe="cities").offsets == {"cities": {"0": 268, "1": 150}}
    assert Engine(DATA, subscribe="cities").batch() is None
    offsets = {"cities": {"0": -1, "1": -2}}
    assert Engine(DATA, subscribe="cities", startingOffsets=offsets).offsets == {"cities": {"0": 268, "1": 31}}
    offsets = {"cities": {"0": 7, "1": 149}}
    assert Engine(DATA, subscribe="cities", startingOffsets=offsets).offsets == offsets


def test_a_stream_may_begin_at_a_time() -> None:
    part = corpus.partition("01-plain")
    time = corpus.visible(part)[700].timestamp
    found = corpus.first_at_or_after(corpus.visible(part), time)
    assert found is not None
    assert Engine(part.path, startingTimestamp=time).offsets == {"orders": {"0": found.offset}}
    by_partition = {"orders": {"0": time}}
    assert Engine(part.path, startingOffsetsByTimestamp=by_partition).offsets == {"orders": {"0": found.offset}}
    late = {"startingTimestamp": 4_000_000_000_000}
    assert Engine(part.path, startingOffsetsByTimestampStrategy="latest", **late).offsets == {"orders": {"0": 1500}}
    with refuses("CORDWOOD_TIME_NOT_FOUND"):
        Engine(part.path, **late)


def test_starting_offsets_do_not_prevent_a_restart(tmp_path: Path) -> None:
    """The options of a restarted query are the same, but the partitions may differ."""
    grow(tmp_path / "t-0", 0, 0, 4)
    options = {"startingOffsets": {"t": {"0": 6}}}
    engine = Engine(tmp_path, **options)
    assert engine.batch() == rows_of("t", 0, range(6, 12))
    grow(tmp_path / "t-1", 0, 0, 1)
    resumed = Engine(tmp_path, checkpoint=engine.at, **options)
    assert resumed.batch() == []
    assert resumed.batch() == rows_of("t", 1, range(3))
    with refuses("CORDWOOD_BAD_OPTION", "startingOffsets", "t-1"):
        Engine(tmp_path, **options)


@pytest.mark.parametrize("offset", [13, 5])
def test_a_start_outside_the_log_is_data_loss(tmp_path: Path, offset: int) -> None:
    grow(tmp_path / "t-0", 6, 6, 2)
    options = {"startingOffsets": {"t": {"0": offset}}}
    with refuses("CORDWOOD_OFFSET_OUT_OF_RANGE", "t-0"):
        Engine(tmp_path, **options)
    wanted = {"t": {"0": 12 if offset == 13 else 6}}
    assert Engine(tmp_path, failOnDataLoss=False, **options).offsets == wanted


def test_the_text_of_an_offset_does_not_depend_on_the_order_of_discovery(tmp_path: Path) -> None:
    """Spark compares the text: another order of the keys would cause an endless series of empty micro-batches."""
    for number in range(12):
        grow(tmp_path / f"disk{number % 2}" / f"t-{number}", 0, 0, 1)
        grow(tmp_path / f"disk{number % 2}" / f"b-{number}", 0, 0, 1)
    disks = [tmp_path / "disk0", tmp_path / "disk1"]
    one, other = Engine(*disks, **EARLIEST), Engine(*reversed(disks), **EARLIEST)
    assert json.dumps(one.at) == json.dumps(other.at)
    assert json.dumps(one.latest()) == json.dumps(other.latest())
    assert list(one.at) == ["b", "t"]
    rows = one.batch()
    assert rows is not None
    assert len(rows) == 72
    assert json.dumps(one.latest()) == json.dumps(one.at)
    resumed = Engine(*reversed(disks), checkpoint=one.at, **EARLIEST)
    assert resumed.batch() is None
    grow(tmp_path / "disk1" / "a-1", 0, 0, 1)
    resumed.batch()
    grow(tmp_path / "disk1" / "a-0", 0, 0, 1)
    resumed.batch()
    assert list(resumed.at) == ["a", "b", "t"]
    assert list(resumed.at["a"]) == ["0", "1"]


@pytest.mark.parametrize(
    "options",
    [
        {"endingOffsets": "latest"},
        {"endingOffsets": {"cities": {"0": 5, "1": 40}}},
        {"endingTimestamp": 5},
        {"endingOffsetsByTimestamp": {"cities": {"0": 5, "1": 40}}},
        {"minOffsetsPerTrigger": 5, "maxOffsetsPerTrigger": 2},
        {"maxOffsetsPerTrigger": 0},
        {"startingOffsets": {"cities": {"0": 5}}},
        {"table": "batches"},
        {"startingOfsets": "earliest"},
    ],
    ids=str,
)
def test_options_that_do_not_apply_to_a_stream_are_refused(options: dict[str, Any]) -> None:
    with refuses("CORDWOOD_BAD_OPTION"):
        Engine(DATA, subscribe="cities", **options)


def test_a_missing_path_is_refused_before_the_stream_begins() -> None:
    with refuses("CORDWOOD_NOT_FOUND"):
        Engine("/nowhere/at/all")


def test_the_latest_offset_is_reported_for_the_progress() -> None:
    engine = Engine(DATA, subscribe="cities", maxOffsetsPerTrigger=10, **EARLIEST)
    engine.batch()
    assert offsets_of(through_json(engine.reader.reportLatestOffset())) == {"cities": {"0": 268, "1": 150}}
