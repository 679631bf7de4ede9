"""Searches by time equal Kafka's results, and a linear search if Kafka gave up."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import corpus
import pyarrow as pa
import pytest
from corpus import Partition

import cordwood as cw

every_partition = pytest.mark.parametrize("part", corpus.partitions(), ids=str)


def asked(part: Partition) -> list[dict[str, Any]]:
    """Kafka's results; targets below zero are its special requests, not times."""
    return [line for line in part.lines("times.jsonl.gz") if line["target"] >= 0]


def as_pair(found: Any) -> tuple[int, int] | None:
    return None if found is None else (found.timestamp, found.offset)


def by_reading(part: Partition, target: int) -> tuple[int, int] | None:
    found = corpus.first_at_or_after(corpus.visible(part, control=True), target)
    return None if found is None else (found.timestamp, found.offset)


def test_the_corpus_has_35404_answers() -> None:
    assert sum(len(asked(part)) for part in corpus.partitions()) == 35_404


@every_partition
def test_look_ups_that_kafka_answered_have_the_same_result(part: Partition) -> None:
    log = cw.Log(part.path)
    for line in asked(part):
        if line["found"]:
            got = as_pair(log.offset_for_time(line["target"]))
            assert got == (line["timestamp"], line["offset"]), line["target"]


@every_partition
def test_look_ups_that_kafka_gave_up_equal_a_linear_search(part: Partition) -> None:
    log = cw.Log(part.path)
    given_up = [line["target"] for line in asked(part) if not line["found"]]
    assert given_up
    for target in given_up:
        assert as_pair(log.offset_for_time(target)) == by_reading(part, target), target


def test_kafka_gave_up_look_ups_that_have_a_result() -> None:
    """The two cases of the test above: no time index at all, and an emptied segment."""
    found = {
        str(part): sum(by_reading(part, line["target"]) is not None for line in asked(part) if not line["found"])
        for part in corpus.partitions()
    }
    assert {name: count for name, count in found.items() if count} == {
        "16-data-dir/rivers.compact-0": 48,
        "17-upgraded/old.up-0": 787,
    }


@every_partition
def test_many_times_equal_the_times_one_by_one(part: Partition) -> None:
    """In the given order, sorted or not; null if nothing is found."""
    log = cw.Log(part.path)
    targets = [line["target"] for line in asked(part)]
    targets = targets[::2] + targets[1::2][::-1] + targets[:3]
    table = log.offsets_for_times(targets)
    assert table.column_names == ["timestamp", "offset"]
    wanted = [as_pair(log.offset_for_time(target)) for target in targets]
    got = [None if row["offset"] is None else row["offset"] for row in table.to_pylist()]
    assert got == [None if pair is None else pair[1] for pair in wanted]
    times = table["timestamp"]
    if pa.types.is_timestamp(times.type):
        times = times.cast(pa.int64())
    assert times.to_pylist() == [None if pair is None else pair[0] for pair in wanted]


@every_partition
def test_the_answer_is_the_same_without_any_index(part: Partition, copied: Any) -> None:
    """Indexes only shorten a search."""
    path = copied(part.path)
    for file in [*path.glob("*index"), *path.glob("*.snapshot"), path / "leader-epoch-checkpoint"]:
        file.unlink(missing_ok=True)
    log = cw.Log(path, log_start_offset=part.log_start)
    targets = [line["target"] for line in asked(part)]
    for target in targets[:: max(1, len(targets) // 60)]:
        assert as_pair(log.offset_for_time(target)) == by_reading(part, target), target


def test_a_deleted_head_is_not_found_by_time() -> None:
    """The broker found nothing for time 0 while the first segment was still on disk."""
    log = cw.Log(corpus.partition("13-delete-records").path)
    found = log.offset_for_time(0)
    assert found is not None
    assert found.offset == 437


def test_a_record_at_time_zero_and_one_in_the_year_3000_are_found() -> None:
    part = corpus.partition("08-late")
    log = cw.Log(part.path)
    records = corpus.visible(part)
    latest = max(records, key=lambda r: r.timestamp)
    assert latest.timestamp > 32_000_000_000_000
    assert as_pair(log.offset_for_time(latest.timestamp)) == (latest.timestamp, latest.offset)
    assert log.offset_for_time(latest.timestamp + 1) is None
    assert as_pair(log.offset_for_time(0)) == (records[0].timestamp, records[0].offset)


def test_an_aware_datetime_is_the_same_as_its_milliseconds() -> None:
    part = corpus.partition("01-plain")
    log = cw.Log(part.path)
    for target in (1_700_000_008_358, 1_700_000_016_533, 1_700_000_020_001):
        moment = datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=target)
        assert as_pair(log.offset_for_time(moment)) == as_pair(log.offset_for_time(target)) == by_reading(part, target)
        elsewhere = moment.astimezone(timezone(timedelta(hours=-7)))
        assert as_pair(log.offset_for_time(elsewhere)) == by_reading(part, target)


@every_partition
def test_beyond_every_timestamp_nothing_is_found(part: Partition) -> None:
    log = cw.Log(part.path)
    latest = max((r.timestamp for r in corpus.visible(part, control=True)), default=-1)
    assert log.offset_for_time(latest + 1) is None
    assert log.offset_for_time(2**63 - 1) is None


def test_a_negative_time_is_a_value_error() -> None:
    log = cw.Log(corpus.partition("01-plain").path)
    for target in (-1, -2, -3, -(2**63)):
        with pytest.raises(ValueError):
            log.offset_for_time(target)
        # in a bulk look-up it is a null row, as an offset out of range is
        assert log.offsets_for_times([1, target, None]).column("offset").to_pylist() == [0, None, None]


def test_seconds_that_milliseconds_cannot_represent_have_no_result() -> None:
    log = cw.Log(corpus.partition("01-plain").path)
    first, last = (record.timestamp // 1000 for record in (next(log.records()), list(log.records())[-1]))
    seconds = [first, 1 << 62, None, -(1 << 62), (1 << 63) - 1, -1, last, 0]
    found = log.offsets_for_times(pa.array(seconds, pa.timestamp("s", "UTC")))["offset"].to_pylist()
    expected = [None if s is None or s < 0 or s > 1 << 61 else log.offset_for_time(s * 1000) for s in seconds]
    assert found == [None if one is None else one.offset for one in expected]
    assert sum(offset is not None for offset in found) == 3


def test_seconds_beyond_the_range_of_milliseconds_do_not_find_the_maximum_timestamp(tmp_path: Path) -> None:
    last = (1 << 63) - 1
    with cw.LogWriter(tmp_path / "end-0", config=cw.LogConfig(message_timestamp_after_max_ms=last)) as writer:
        writer.append(b"at the end", timestamp=last)
    seconds = pa.array([last // 1000, last // 1000 + 1, last], pa.timestamp("s", "UTC"))
    found = cw.Log(tmp_path / "end-0").offsets_for_times(seconds)["offset"]
    assert found.to_pylist() == [0, None, None]
