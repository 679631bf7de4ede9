"""Ranges by time.

The oracle looks for the first record that is late enough, markers of transactions included, as Kafka's own search does.
"""

from __future__ import annotations

from typing import Any

import corpus
import pytest
from corpus import Partition
from hypothesis import given, settings
from hypothesis import strategies as st

from spark.reading import CITIES, DATA, expected, got, offsets, plan, refuses


def offset_at(part: Partition, time: int) -> int | None:
    """The first record, including markers, at or after the log start and at or after the time."""
    found = corpus.first_at_or_after(corpus.visible(part, control=True), time)
    return None if found is None else found.offset


TIMED = [
    corpus.partition(case) for case in ("01-plain", "08-late", "09-append-time", "11-transactions", "13-delete-records")
]


def times_of(part: Partition) -> st.SearchStrategy[int]:
    known = [r.timestamp for r in corpus.visible(part, control=True) if r.timestamp >= 0]
    return st.builds(lambda time, step: max(0, time + step), st.sampled_from(known), st.integers(-1, 1))


@settings(max_examples=20)
@given(st.data())
@pytest.mark.parametrize("part", TIMED, ids=str)
@pytest.mark.parametrize("by", ["global", "partition"])
def test_starts_and_ends_by_time_are_resolved_to_offsets(part: Partition, by: str, data: st.DataObject) -> None:
    """Later records with earlier times belong to the range, as in Kafka; an end without a match is the log end."""
    early, late = sorted([data.draw(times_of(part)), data.draw(times_of(part))])
    start, end = offset_at(part, early), offset_at(part, late)
    assert start is not None
    if by == "global":
        options: dict[str, Any] = {"startingTimestamp": early, "endingTimestamp": late}
    else:
        at = str(part.number)
        options = {
            "startingOffsetsByTimestamp": {part.topic: {at: early}},
            "endingOffsetsByTimestamp": {part.topic: {at: late}},
        }
    wanted = [r.offset for r in corpus.visible(part) if start <= r.offset < (1 << 62 if end is None else end)]
    assert offsets(part.path, **options) == wanted


@pytest.mark.parametrize(
    "text", ["2023-11-14T22:13:30.038Z", "2023-11-14 23:13:30.038+01:00", "1700000010038", "1700000010038000us"]
)
def test_a_time_may_be_a_text(text: str) -> None:
    part, time = corpus.partition("01-plain"), 1_700_000_010_038
    for name in ("startingTimestamp", "endingTimestamp"):
        assert offsets(part.path, **{name: text}) == offsets(part.path, **{name: time})
    for name in ("startingOffsetsByTimestamp", "endingOffsetsByTimestamp"):
        by_text, by_number = ({name: {part.topic: {str(part.number): given}}} for given in (text, time))
        assert offsets(part.path, **by_text) == offsets(part.path, **by_number)


def test_a_date_is_midnight_in_utc_and_a_duration_is_before_now() -> None:
    part = corpus.partition("01-plain")
    everything = [record.offset for record in corpus.visible(part)]
    assert offsets(part.path, startingTimestamp="2023-11-14") == everything
    assert offsets(part.path, endingTimestamp="2023-11-15") == everything
    assert offsets(part.path, endingTimestamp="2023-11-14") == []
    assert offsets(part.path, endingTimestamp="-1h") == everything
    with refuses("CORDWOOD_TIME_NOT_FOUND"):
        plan(part.path, startingTimestamp="-1h")


@pytest.mark.parametrize(
    ("time", "words"),
    [
        (1_700_000_010, "in seconds it is 1700000010s"),
        (1_700_000_010_038_000, "in microseconds it is 1700000010038000us"),
        (1_700_000_010_038_000_000, "in nanoseconds it is 1700000010038000000ns"),
        ("2023-11-14T22:13", "add Z for UTC (2023-11-14T22:13Z)"),
    ],
)
def test_a_time_in_another_unit_or_without_a_zone_is_refused(time: Any, words: str) -> None:
    part = corpus.partition("01-plain")
    by_partition = {part.topic: {str(part.number): time}}
    for options in (
        {"startingTimestamp": time},
        {"endingTimestamp": time},
        {"startingOffsetsByTimestamp": by_partition},
        {"endingOffsetsByTimestamp": by_partition},
    ):
        with refuses("CORDWOOD_BAD_OPTION", next(iter(options)), words):
            plan(part.path, **options)


FAR = 4_000_000_000_000


def test_an_end_time_after_all_records_is_the_end_of_the_log() -> None:
    assert got(DATA, subscribe="cities", endingTimestamp=FAR) == expected(CITIES)


@pytest.mark.parametrize(
    "options",
    [{"startingTimestamp": FAR}, {"startingOffsetsByTimestamp": {"cities": {"0": 0, "1": FAR}}}],
    ids=["global", "partition"],
)
def test_a_start_time_after_all_records_is_an_error_or_the_latest(options: dict[str, Any]) -> None:
    with refuses("CORDWOOD_TIME_NOT_FOUND", "cities-"):
        plan(DATA, subscribe="cities", **options)
    with refuses("CORDWOOD_TIME_NOT_FOUND"):
        plan(DATA, subscribe="cities", startingOffsetsByTimestampStrategy="error", **options)
    latest = got(DATA, subscribe="cities", startingOffsetsByTimestampStrategy="latest", **options)
    assert latest == (expected([CITIES[0]]) if "startingOffsetsByTimestamp" in options else [])


def test_records_without_timestamps_are_not_found_by_a_start_time() -> None:
    part = corpus.partition("17-v0-none")
    with refuses("CORDWOOD_TIME_NOT_FOUND", "old.v0.none-0"):
        plan(part.path, startingTimestamp=0)
    assert len(offsets(part.path, endingTimestamp=0)) == 400


def test_the_precedence_of_start_options() -> None:
    """startingTimestamp, then startingOffsetsByTimestamp, then startingOffsets; for the ends the same."""
    part = corpus.partition("01-plain")
    times = [r.timestamp for r in corpus.visible(part)]
    starts = {
        "startingTimestamp": times[300],
        "startingOffsetsByTimestamp": {"orders": {"0": times[200]}},
        "startingOffsets": {"orders": {"0": 100}},
    }
    ends = {
        "endingTimestamp": times[1300],
        "endingOffsetsByTimestamp": {"orders": {"0": times[1200]}},
        "endingOffsets": {"orders": {"0": 1100}},
    }
    for names, first in ((list(starts), 300), (list(starts)[1:], 200), (list(starts)[2:], 100)):
        found = offsets(part.path, **{name: starts[name] for name in names})
        assert found[0] == (100 if first == 100 else offset_at(part, times[first]))
    for names, last in ((list(ends), 1300), (list(ends)[1:], 1200), (list(ends)[2:], 1100)):
        found = offsets(part.path, **{name: ends[name] for name in names})
        end = 1100 if last == 1100 else offset_at(part, times[last])
        assert end is not None
        assert found[-1] == end - 1
    first, last = offset_at(part, times[300]), offset_at(part, times[1300])
    assert offsets(part.path, **starts, **ends) == list(range(first or 0, last or 0))
