"""Index entries, look-ups, positions, ends and aborted transactions equal the results of Kafka's own classes."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import corpus
import pyarrow as pa
import pytest
from corpus import KILLED, Partition

import cordwood as cw

every_partition = pytest.mark.parametrize("part", corpus.partitions(), ids=str)
with_clean_indexes = pytest.mark.parametrize("part", [p for p in corpus.partitions() if p.case not in KILLED], ids=str)
killed = pytest.mark.parametrize("part", [p for p in corpus.partitions() if p.case in KILLED], ids=str)

METHODS = (None, "binary", "warm", "learned")


def entries(part: Partition, kind: str) -> dict[int, list[tuple[int, int]]]:
    """The entries of each segment's index file, (offset, position) or (timestamp, offset)."""
    names = ("offset", "position") if kind == "offset-entry" else ("timestamp", "offset")
    found: dict[int, list[tuple[int, int]]] = {base: [] for base in part.bases}
    for line in part.lines("index.jsonl.gz"):
        if line["type"] == kind:
            found[line["segment"]].append((line[names[0]], line[names[1]]))
    return found


def without_zero_tail(part: Partition, kind: str) -> dict[int, list[tuple[int, int]]]:
    """The entries without the zeros of a preallocated file of a killed broker."""
    found = {}
    for base, slots in entries(part, kind).items():
        zero = (base, 0) if kind == "offset-entry" else (0, base)
        kept = len(slots)
        while kept and slots[kept - 1] == zero:
            kept -= 1
        found[base] = slots[:kept]
    return found


def as_pair(entry: Any, kind: str) -> tuple[int, int]:
    return (entry.offset, entry.position) if kind == "offset-entry" else (entry.timestamp, entry.offset)


def index_of(segment: Any, kind: str) -> Any:
    return segment.offset_index if kind == "offset-entry" else segment.time_index


@every_partition
@pytest.mark.parametrize("kind", ["offset-entry", "time-entry"])
def test_entries_of_every_index_are_those_of_the_file(part: Partition, kind: str) -> None:
    suffix = ".index" if kind == "offset-entry" else ".timeindex"
    wanted = without_zero_tail(part, kind)
    seen = 0
    for segment in cw.Log(part.path).segments:
        if not (part.path / f"{segment.base_offset:020d}{suffix}").exists():
            continue
        index = index_of(segment, kind)
        slots = wanted[segment.base_offset]
        assert [as_pair(entry, kind) for entry in index] == slots
        assert (len(index), index.entries) == (len(slots), len(slots))
        assert [as_pair(index.entry(n), kind) for n in range(len(slots))] == slots
        nothing = (segment.base_offset, 0) if kind == "offset-entry" else (-1, segment.base_offset)
        assert as_pair(index.last_entry, kind) == (slots[-1] if slots else nothing)
        assert index.base_offset == segment.base_offset
        assert index.entry_size == (8 if kind == "offset-entry" else 12)
        seen += len(slots)
    assert seen == sum(map(len, wanted.values()))


@with_clean_indexes
@pytest.mark.parametrize("kind", ["lookup", "timelookup"])
def test_index_lookups_equal_kafkas(part: Partition, kind: str) -> None:
    shape = "offset-entry" if kind == "lookup" else "time-entry"
    asked: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for line in part.lines("lookups.jsonl.gz"):
        if line["type"] == kind:
            asked[line["segment"]].append(line)
    log = cw.Log(part.path)
    assert bool(asked) == any(part.path.glob("*.index" if kind == "lookup" else "*.timeindex"))
    for base, lines in asked.items():
        index = index_of(log.segments.floor(base), shape)
        for line in lines:
            wanted = (line["offset"], line["position"]) if kind == "lookup" else (line["timestamp"], line["offset"])
            for method in METHODS:
                assert as_pair(index.lookup(line["target"], method=method), shape) == wanted, (line, method)


@killed
@pytest.mark.parametrize("kind", ["lookup", "timelookup"])
def test_index_look_ups_in_files_of_a_killed_broker_ignore_the_zeros(part: Partition, kind: str) -> None:
    shape = "offset-entry" if kind == "lookup" else "time-entry"
    real = without_zero_tail(part, shape)
    log = cw.Log(part.path)
    for line in part.lines("lookups.jsonl.gz"):
        if line["type"] != kind:
            continue
        base, target = line["segment"], line["target"]
        below = [entry for entry in real[base] if entry[0] <= target]
        wanted = below[-1] if below else (base, 0) if kind == "lookup" else (-1, base)
        for method in METHODS:
            got = index_of(log.segments.floor(base), shape).lookup(target, method=method)
            assert as_pair(got, shape) == wanted, (line, method)


def positions(part: Partition) -> dict[int, tuple[int, int, int, int] | None]:
    """By target: (segment, base offset of the batch, position, size), or `None` if Kafka finds nothing."""
    held = {(b["segment"], b["position"]): b for b in corpus.batches(part)}
    found: dict[int, tuple[int, int, int, int] | None] = {}
    for line in part.lines("lookups.jsonl.gz"):
        if line["type"] == "position" and line["found"]:
            batch = held[line["segment"], line["position"]]
            found[line["target"]] = (line["segment"], batch["baseOffset"], line["position"], line["size"])
        elif line["type"] == "position":
            found[line["target"]] = None
    return found


def as_tuple(place: Any) -> tuple[int, int, int, int] | None:
    return None if place is None else (place.segment_base_offset, place.batch_base_offset, place.position, place.size)


@every_partition
def test_positions_equal_those_of_kafkas_translation(part: Partition) -> None:
    log = cw.Log(part.path, **part.overrides)
    for target, wanted in positions(part).items():
        if wanted is None:
            assert not log.log_start_offset <= target < log.log_end_offset
            with pytest.raises(cw.OffsetOutOfRangeError):
                log.locate(target)
        else:
            assert as_tuple(log.locate(target)) == wanted, target


@every_partition
def test_locate_finds_the_batch_of_every_record(part: Partition) -> None:
    log = cw.Log(part.path)
    for record in corpus.visible(part, control=True):
        b = record.batch
        assert as_tuple(log.locate(record.offset)) == (b["segment"], b["baseOffset"], b["position"], b["size"])


@every_partition
def test_many_positions_equal_the_positions_one_by_one(part: Partition) -> None:
    """Unsorted, with repetitions, and with nulls for targets for which the single look-up raises."""
    log = cw.Log(part.path, **part.overrides)
    targets = list(positions(part)) + [r.offset for r in corpus.records(part)][::-3] + [2**62, -5]
    wanted = []
    for target in targets:
        inside = log.log_start_offset <= target < log.log_end_offset
        wanted.append(as_tuple(log.locate(target)) if inside else None)
    columns = log.locate_many(targets)
    assert columns.column_names == ["segment_base_offset", "batch_base_offset", "position", "size"]
    got = [None if row["segment_base_offset"] is None else tuple(row.values()) for row in columns.to_pylist()]
    assert got == wanted
    assert log.locate_many(pa.array(targets, pa.int64())).equals(columns)


@every_partition
def test_ends_and_segments_equal_those_that_kafka_opens(part: Partition) -> None:
    """After a clean open; for directories of killed brokers, after recovery."""
    log, opened = cw.Log(part.path), part.opened
    assert log.log_end_offset == opened["logEndOffset"]
    assert log.log_start_offset == opened["logStartOffset"]
    assert log.last_stable_offset == opened["lastStableOffset"]
    told = {segment["base"]: segment for segment in opened["segments"]}
    assert [segment.base_offset for segment in log.segments] == sorted(told)
    dated = {base for base, slots in without_zero_tail(part, "time-entry").items() if slots}
    for segment in log.segments:
        if segment.base_offset in dated and part.case not in KILLED:
            assert segment.largest_timestamp == told[segment.base_offset]["largestTimestamp"]


@every_partition
def test_segments_are_found_by_floor_higher_and_between(part: Partition) -> None:
    segments = cw.Log(part.path, **part.overrides).segments
    bases = sorted(part.bases)
    assert len(segments) == len(bases)
    assert [segments[n].base_offset for n in range(len(bases))] == bases
    assert segments[-1].base_offset == bases[-1]
    for target in sorted({base + step for base in bases for step in (-1, 0, 1)}):
        floor, higher = segments.floor(target), segments.higher(target)
        assert (floor and floor.base_offset) == max((b for b in bases if b <= target), default=None)
        assert (higher and higher.base_offset) == min((b for b in bases if b > target), default=None)
    for start in bases[:: max(1, len(bases) // 7)]:
        for end in bases[:: max(1, len(bases) // 5)]:
            if start < end:
                found = [s.base_offset for s in segments.between(start, end)]
                assert found == [b for b in bases if start <= b < end]


@every_partition
def test_aborted_transactions_equal_the_transaction_index(part: Partition) -> None:
    wanted: dict[int, list[tuple[int, int, int, int]]] = defaultdict(list)
    for line in part.lines("state.jsonl"):
        if line["type"] == "aborted":
            wanted[line["segment"]].append(
                (line["producerId"], line["firstOffset"], line["lastOffset"], line["lastStableOffset"])
            )
    files = {int(p.stem) for p in part.path.glob("*.txnindex")}
    assert set(wanted) <= files
    for segment in cw.Log(part.path).segments:
        index = segment.transaction_index
        got = [] if index is None else list(index)
        assert [(e.producer_id, e.first_offset, e.last_offset, e.last_stable_offset) for e in got] == wanted[
            segment.base_offset
        ]
        assert all(e.version == 0 for e in got)


def test_an_offset_below_the_log_start_is_out_of_range_even_if_its_batch_exists() -> None:
    """Records were deleted up to an offset inside a batch; only the checkpoint in the data directory has it."""
    part = corpus.partition("13-delete-records")
    log = cw.Log(part.path)
    assert log.log_start_offset == 437
    for offset in (436, 234, 0, -1):
        with pytest.raises(cw.OffsetOutOfRangeError):
            log.locate(offset)
    held = next(b for b in corpus.batches(part) if b["baseOffset"] <= 437 <= b["lastOffset"])
    assert held["baseOffset"] < 437
    assert as_tuple(log.locate(437)) == (held["segment"], held["baseOffset"], held["position"], held["size"])
