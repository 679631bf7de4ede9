"""Ranges by offset and by time, columns, batch sizes and splits, compared with a linear search."""

from __future__ import annotations

import pickle
from itertools import pairwise
from typing import Any

import corpus
import pyarrow as pa
import pytest
from corpus import Expected
from hypothesis import given, settings
from hypothesis import strategies as st
from tables import DEFAULT_COLUMNS, column, expected_rows, first_difference, offsets, rows

import cordwood as cw

CASES = [
    "01-plain",
    "02-gzip",
    "06-mixed-codecs",
    "08-late",
    "08-late-lz4",
    "08-no-timestamps",
    "11-transactions",
    "12-compacted",
    "12-compacted-empty",
    "13-delete-records",
    "14-killed-preallocated-log",
    "17-raised-and-lowered",
    "17-upgraded",
    "18-leaps",
    "20-many-segments",
    "23-truncated",
]
LOGS = {case: corpus.partition(case) for case in CASES}
in_every_case = pytest.mark.parametrize("case", CASES)


def inside(
    records: list[Expected],
    start_offset: int | None = None,
    end_offset: int | None = None,
    start_time: int | None = None,
    end_time: int | None = None,
) -> list[Expected]:
    """The records of a range, by a linear search."""
    timed = start_time is not None or end_time is not None
    return [
        r
        for r in records
        if (start_offset is None or r.offset >= start_offset)
        and (end_offset is None or r.offset < end_offset)
        and (not timed or r.timestamp >= 0)
        and (start_time is None or r.timestamp >= start_time)
        and (end_time is None or r.timestamp < end_time)
    ]


def read(case: str, **ranges: Any) -> list[tuple[Any, ...]]:
    return rows(cw.Log(LOGS[case].path).scan(**ranges).to_arrow())


@st.composite
def ranges_of(draw: st.DrawFn, case: str) -> dict[str, int]:
    """Offsets and times equal to, just before and just after those that occur; ends may be above the log end."""
    part = LOGS[case]
    records = corpus.visible(part, control=True)
    end = part.opened["logEndOffset"]
    step = st.integers(-2, 2)
    offset = st.builds(lambda r, s: min(max(r.offset + s, part.log_start), end), st.sampled_from(records), step)
    time = st.builds(lambda r, s: max(r.timestamp + s, 0), st.sampled_from(records), step)
    chosen: dict[str, int] = {}
    first, last = sorted((draw(offset), draw(offset)))
    if draw(st.booleans()):
        chosen["start_offset"] = first
    if draw(st.booleans()):
        chosen["end_offset"] = last if draw(st.booleans()) else end + 1000
    early, late = sorted((draw(time), draw(time)))
    if draw(st.booleans()):
        chosen["start_time"] = early
    if draw(st.booleans()):
        chosen["end_time"] = late
    return chosen


@in_every_case
@settings(max_examples=15)
@given(data=st.data())
def test_a_range_has_every_record_inside_and_none_outside(case: str, data: st.DataObject) -> None:
    chosen = data.draw(ranges_of(case))
    wanted = expected_rows(inside(corpus.visible(LOGS[case]), **chosen))
    assert first_difference(read(case, **chosen), wanted) == "", chosen


@in_every_case
@settings(max_examples=10)
@given(data=st.data())
def test_records_of_a_range_are_those_of_the_scan(case: str, data: st.DataObject) -> None:
    chosen = data.draw(ranges_of(case))
    got = [r.offset for r in cw.Log(LOGS[case].path).records(**chosen)]
    assert got == [r.offset for r in inside(corpus.visible(LOGS[case]), **chosen)], chosen


@in_every_case
@settings(max_examples=8)
@given(data=st.data(), max_bytes=st.sampled_from([1000, 4096, 30_000, 1 << 30]))
def test_every_record_of_a_range_is_in_exactly_one_split(case: str, data: st.DataObject, max_bytes: int) -> None:
    """Splits are cut at batch boundaries, so they may contain neighbours of the range; never a record twice."""
    chosen = data.draw(ranges_of(case))
    log = cw.Log(LOGS[case].path)
    got: list[int] = []
    for split in log.plan(max_bytes, **chosen):
        got += offsets(log.scan(split=split, columns=["offset"]).to_arrow())
    assert len(got) == len(set(got))
    wanted = [r.offset for r in inside(corpus.visible(LOGS[case]), **chosen)]
    assert [o for o in sorted(got) if o in set(wanted)] == wanted, chosen


@in_every_case
@pytest.mark.parametrize("max_bytes", [1, 700, 5000, 1 << 20])
def test_the_splits_of_a_log_cover_it(case: str, max_bytes: int) -> None:
    log = cw.Log(LOGS[case].path)
    splits = log.plan(max_bytes)
    got: list[tuple[Any, ...]] = []
    for split in splits:
        got += rows(log.scan(split=pickle.loads(pickle.dumps(split))).to_arrow())
    assert first_difference(got, expected_rows(corpus.visible(LOGS[case]))) == ""
    edges = [(split.start_offset, split.end_offset) for split in splits]
    assert edges == sorted(edges)
    assert all(start < end for start, end in edges)
    assert all(left[1] <= right[0] for left, right in pairwise(edges))


def test_splits_are_no_larger_than_asked_unless_a_batch_is() -> None:
    part = LOGS["01-plain"]
    largest = max(b["size"] for b in corpus.batches(part))
    splits = cw.Log(part.path).plan(10_000)
    assert largest < 10_000
    assert all(0 < split.size <= 10_000 for split in splits)
    assert sum(split.size for split in splits) == sum(b["size"] for b in corpus.batches(part))
    assert len(splits) >= 22
    assert all(str(split.path) == str(part.path) for split in splits)


def test_an_empty_log_and_an_empty_range_have_no_splits_with_records() -> None:
    empty = cw.Log(corpus.partition("15-empty").path)
    assert sum(empty.scan(split=s).to_arrow().num_rows for s in empty.plan(1000)) == 0
    log = cw.Log(LOGS["01-plain"].path)
    assert sum(split.size for split in log.plan(1000, start_offset=700, end_offset=700)) == 0


@in_every_case
def test_two_threads_read_what_one_reads(case: str) -> None:
    log = cw.Log(LOGS[case].path)
    assert rows(log.scan(threads=2).to_arrow()) == rows(log.scan(threads=1).to_arrow())


@in_every_case
@pytest.mark.parametrize("max_rows", [1, 7, 1000])
def test_record_batches_have_at_most_max_rows(case: str, max_rows: int) -> None:
    parts = list(cw.Log(LOGS[case].path).scan(max_rows=max_rows))
    assert all(isinstance(part, pa.RecordBatch) for part in parts)
    assert max(part.num_rows for part in parts) <= max_rows
    assert rows(pa.Table.from_batches(parts)) == expected_rows(corpus.visible(LOGS[case]))


@pytest.mark.parametrize(("max_bytes", "at_least"), [(1, 100), (2000, 50), (40_000, 4)])
def test_record_batches_are_also_limited_by_bytes(max_bytes: int, at_least: int) -> None:
    parts = list(cw.Log(LOGS["01-plain"].path).scan(max_bytes=max_bytes))
    assert len(parts) >= at_least
    assert rows(pa.Table.from_batches(parts)) == expected_rows(corpus.visible(LOGS["01-plain"]))


def test_an_end_beyond_the_log_is_clipped() -> None:
    assert len(read("01-plain", start_offset=1490, end_offset=2**62)) == 10
    assert len(read("01-plain", end_offset=1501)) == 1500


def test_a_start_at_the_end_of_the_log_is_empty_and_one_beyond_is_an_error() -> None:
    assert read("01-plain", start_offset=1500) == []
    for start in (1501, 2**62):
        with pytest.raises(cw.OffsetOutOfRangeError):
            read("01-plain", start_offset=start)


def test_a_start_below_the_log_start_is_an_error() -> None:
    for start in (436, 0, -1):
        with pytest.raises(cw.OffsetOutOfRangeError):
            read("13-delete-records", start_offset=start)
    assert len(read("13-delete-records", start_offset=437)) == 363


def test_equal_ends_are_empty_and_reversed_ends_are_a_value_error() -> None:
    assert read("01-plain", start_offset=5, end_offset=5) == []
    assert read("01-plain", start_time=1_700_000_001_000, end_time=1_700_000_001_000) == []
    with pytest.raises(ValueError):
        read("01-plain", start_offset=6, end_offset=5)
    with pytest.raises(ValueError):
        read("01-plain", start_time=1_700_000_001_001, end_time=1_700_000_001_000)


def test_records_without_a_time_are_outside_every_time_range() -> None:
    part = LOGS["08-no-timestamps"]
    timeless = [r for r in corpus.visible(part) if r.timestamp == -1]
    assert timeless
    got = read("08-no-timestamps", start_time=0)
    assert len(got) == len(corpus.visible(part)) - len(timeless)
    assert read("17-upgraded", end_time=2**62) == expected_rows(
        r for r in corpus.visible(LOGS["17-upgraded"]) if r.timestamp >= 0
    )
    assert cw.Log(corpus.partition("17-v0-gzip").path).scan(start_time=0).to_arrow().num_rows == 0


@pytest.mark.parametrize("case", ["08-late", "08-late-lz4"])
def test_late_records_are_found_in_the_ranges_of_their_time(case: str) -> None:
    """In consecutive time ranges, each record is in exactly one, in any order of the timestamps."""
    records = corpus.visible(LOGS[case])
    times = sorted({r.timestamp for r in records})
    edges = [*times[:: len(times) // 40], times[-1] + 1]
    total = 0
    for start, end in pairwise(edges):
        got = read(case, start_time=start, end_time=end)
        assert got == expected_rows(inside(records, start_time=start, end_time=end))
        total += len(got)
    assert total == len(records)


@in_every_case
def test_batches_of_an_offset_range_are_those_that_overlap_it(case: str) -> None:
    part = LOGS[case]
    start, end = part.log_start, part.opened["logEndOffset"]
    first, last = start + (end - start) // 3, start + 2 * (end - start) // 3
    got = column(cw.Log(part.path).batches(start_offset=first, end_offset=last).to_arrow(), "base_offset")
    wanted = [b["baseOffset"] for b in corpus.batches(part) if b["lastOffset"] >= first and b["baseOffset"] < last]
    assert got == wanted


@pytest.mark.parametrize(
    "columns",
    [["offset"], ["value", "offset"], ["headers", "key"], ["magic", "timestamp", "codec"], DEFAULT_COLUMNS[::-1]],
)
def test_columns_are_in_the_requested_order(columns: list[str]) -> None:
    table = cw.Log(LOGS["11-transactions"].path).scan(columns=columns).to_arrow()
    assert table.column_names == columns
    default = cw.Log(LOGS["11-transactions"].path).scan().to_arrow()
    for name in set(columns) & set(DEFAULT_COLUMNS):
        assert table[name].to_pylist() == default[name].to_pylist()


def test_header_keys_as_bytes_and_times_in_microseconds() -> None:
    part = corpus.partition("07-edge-values")
    table = cw.Log(part.path).scan(header_keys="binary", timestamp_unit="us").to_arrow()
    wanted = [[(n.encode(), v) for n, v in r.headers] or None for r in corpus.visible(part)]
    assert column(table, "headers") == wanted
    assert table.schema.field("timestamp").type == pa.timestamp("us", tz="UTC")
    assert column(table, "timestamp") == [r.timestamp for r in corpus.visible(part)]


def test_a_pruned_scan_opens_and_decompresses_nothing_outside_its_range() -> None:
    part = LOGS["02-gzip"]
    inner = [b for b in corpus.batches(part) if b["segment"] == part.bases[1]]
    target = inner[len(inner) // 2]
    scan = cw.Log(part.path).scan(start_offset=target["baseOffset"], end_offset=target["lastOffset"] + 1)
    assert scan.to_arrow().num_rows == target["count"]
    assert (scan.stats.batches_decompressed, scan.stats.segments_opened) == (1, 1)
    assert scan.stats.records == target["count"]
    assert scan.stats.bytes_read <= part.path.joinpath(f"{part.bases[1]:020d}.log").stat().st_size


def test_a_time_range_decompresses_only_batches_that_reach_its_start() -> None:
    part = LOGS["02-gzip"]
    last = corpus.batches(part)[-1]
    scan = cw.Log(part.path).scan(start_time=last["maxTimestamp"])
    assert scan.to_arrow().num_rows >= 1
    reach = [b for b in corpus.batches(part) if b["maxTimestamp"] >= last["maxTimestamp"]]
    assert scan.stats.batches_decompressed == len(reach)
    none = cw.Log(part.path).scan(start_time=last["maxTimestamp"] + 1)
    assert none.to_arrow().num_rows == 0
    assert none.stats.batches_decompressed == 0


def test_counting_offsets_of_a_batch_listing_decompresses_nothing() -> None:
    scan = cw.Log(LOGS["06-mixed-codecs"].path).batches()
    assert scan.to_arrow().num_rows == 90
    assert scan.stats.batches_decompressed == 0


@pytest.mark.parametrize(("case", "gaps"), [("01-plain", False), ("12-compacted", True), ("18-leaps", True)])
def test_gaps_between_batches_are_counted(case: str, gaps: bool) -> None:
    scan = cw.Log(LOGS[case].path).scan()
    scan.to_arrow()
    assert (scan.stats.offset_gaps > 0) == gaps
    assert list(scan.damaged_ranges) == []
