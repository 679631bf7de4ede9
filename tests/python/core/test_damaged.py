"""Partitions damaged by a known recipe: the allowed and the required results of a reader.

The affected batches are derived here from the recipe and the expected records of the undamaged source.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import corpus
import pyarrow as pa
import pytest
from corpus import Partition
from tables import column, expected_rows, first_difference, offsets, rows

import cordwood as cw

MODES = ("raise", "skip", "report")
HINTS = ("index-", "both-", "timeindex-", "txnindex-", "snapshot", "epochs-", "foreign-", "short-name")
LEFTOVERS = ("cleaned-", "deleted-", "swap-", "start-beyond-end")
LEGAL = ("batch-removed", "segment-removed")
TAILS = ("torn-after-header", "torn-in-header", "torn-in-prefix", "torn-last-byte", "torn-legacy", "torn-zstd")
ZERO_TAILS = ("zero-tail-page", "zero-tail-short")


@dataclass(frozen=True)
class Damage:
    """A damaged case: its path, its source, and the damaged bytes of the source."""

    name: str
    path: Path
    source: Partition
    segment: int
    start: int
    end: int

    def __str__(self) -> str:
        return self.name

    @property
    def file(self) -> str:
        return f"{self.segment:020d}.log"

    @property
    def hit(self) -> list[dict[str, Any]]:
        """The source's batches that overlap the damaged bytes."""
        return [
            b
            for b in corpus.batches(self.source)
            if b["segment"] == self.segment and b["position"] < self.end and b["position"] + b["size"] > self.start
        ]

    @property
    def survivors(self) -> list[corpus.Expected]:
        hit = {(b["segment"], b["position"]) for b in self.hit}
        return [r for r in corpus.visible(self.source) if (r.batch["segment"], r.batch["position"]) not in hit]

    def open(self) -> cw.Log:
        start = {"log_start_offset": 2000} if self.name == "start-beyond-end" else {}
        return cw.Log(self.path, **start)


def touched(step: dict[str, Any], source: Partition) -> tuple[int, int, int]:
    """The segment, and the byte range [start, end) of the source's log, that a step of a recipe damages."""
    file = step.get("file") or step["files"][0]
    segment = int(file.split(".")[0])
    ends = [b["position"] + b["size"] for b in corpus.batches(source) if b["segment"] == segment]
    at = step.get("position", 0)
    after = at + step.get("size", 0)
    first, *rest = step.get("positions", [0])
    ranges = {
        "flip a bit": (at, at + 1),
        "set batchLength": (at, at + 4),
        "truncate": (step.get("to"), ends[-1]),
        "remove a batch": (at, after),
        "repeat a batch after itself": (after, after),
        "swap two neighbouring batches": (first, (rest or [0])[0] + 1),
        "append zeros": (ends[-1], ends[-1]),
        "delete": (0, ends[-1]),
    }
    return segment, *ranges[step["do"]]


def damages(*prefixes: str, but: bool = False) -> list[Damage]:
    """The damaged cases whose names begin with a prefix; with `but`, all the others."""
    found = []
    for full, case in corpus.cases().items():
        name = full.removeprefix("damaged/")
        if full == name or name.startswith(prefixes) == but:
            continue
        source = corpus.partition(case["from"])
        harmless = name.startswith(HINTS + LEFTOVERS)
        segment, start, end = (0, 0, 0) if harmless else touched(case["recipe"][0], source)
        found.append(Damage(name, corpus.GOLDEN / full / case["dir"], source, segment, start, end))
    return found


HARMLESS = damages(*HINTS, *LEFTOVERS)
LAWFUL = damages(*LEGAL)
ENDS = damages(*TAILS, *ZERO_TAILS)
BROKEN = damages(*HINTS, *LEFTOVERS, *LEGAL, *TAILS, *ZERO_TAILS, but=True)
# A flipped bit increased an unprotected field, or two batches were swapped: only the next batch shows it.
SEEN_AT_THE_NEXT = (
    "flip-base-offset-high",
    "flip-legacy-offset",
    "flip-leader-epoch",
    "batches-swapped",
    "batch-repeated",
)
EXACT = [d for d in BROKEN if d.name != "batches-swapped"]


def test_every_damaged_case_belongs_to_one_group() -> None:
    groups = [HARMLESS, LAWFUL, ENDS, BROKEN]
    assert [len(group) for group in groups] == [29, 2, 8, 23]
    assert len({d.name for group in groups for d in group}) == 62


def test_the_hit_batches_are_those_that_the_recipes_name() -> None:
    """The derivation above is compared with the descriptions in the recipes."""
    hit = {d.name: [(b["baseOffset"], b["position"]) for b in d.hit] for d in LAWFUL + ENDS + BROKEN}
    assert hit["flip-record"] == [(302, 2126)]
    assert hit["length-spans-two"] == [(303, 2296)]
    assert hit["torn-middle-segment"] == [(182, 10927)]
    assert hit["torn-legacy"] == [(399, 3171)]
    assert hit["batches-swapped"] == [(302, 2126), (303, 2296)]
    assert hit["flip-legacy"] == hit["flip-legacy-offset"] == [(21, 988)]
    assert hit["batch-repeated"] == hit["zero-tail-page"] == []
    assert len(hit["segment-removed"]) > 10


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("damage", HARMLESS, ids=str)
def test_damage_in_other_files_than_the_log_loses_no_record(damage: Damage, mode: str) -> None:
    log = damage.open()
    scan = log.scan(on_damage=mode)
    table = scan.to_arrow()
    names = [n for n in table.column_names if n != "error"]
    assert first_difference(rows(table, names), expected_rows(corpus.visible(damage.source))) == ""
    assert list(scan.damaged_ranges) == []
    assert log.log_end_offset == damage.source.opened["logEndOffset"]


@pytest.mark.parametrize("damage", HARMLESS, ids=str)
def test_damage_in_other_files_than_the_log_changes_no_look_up(damage: Damage) -> None:
    """Look-ups by offset and by time, and committed reads, which use the damaged files."""
    log = damage.open()
    everything = corpus.visible(damage.source, control=True)
    for record in everything:
        place, b = log.locate(record.offset), record.batch
        assert place is not None
        got = (place.segment_base_offset, place.batch_base_offset, place.position, place.size)
        assert got == (b["segment"], b["baseOffset"], b["position"], b["size"]), record.offset
    for line in damage.source.lines("times.jsonl.gz")[::7]:
        if line["target"] < 0:
            continue
        wanted = corpus.first_at_or_after(everything, line["target"])
        found = log.offset_for_time(line["target"])
        assert (found and found.offset) == (wanted and wanted.offset), line["target"]
    committed = corpus.committed(damage.source, damage.source.opened["logEndOffset"])
    got = offsets(log.scan(isolation_level="read_committed", columns=["offset"]).to_arrow())
    assert got == [r.offset for r in committed]


@pytest.mark.parametrize("name", ["index-garbage", "start-beyond-end", "swap-complete", "swap-originals-gone"])
def test_an_ignored_or_substituted_file_is_a_warning(name: str) -> None:
    (damage,) = damages(name)
    log = damage.open()
    log.scan().to_arrow()
    for offset in range(0, 370, 3):
        log.locate(offset)
    assert log.warnings
    assert all(isinstance(text, str) for text in log.warnings)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("damage", LAWFUL, ids=str)
def test_a_gap_in_offsets_is_valid_and_counted(damage: Damage, mode: str) -> None:
    scan = damage.open().scan(on_damage=mode)
    table = scan.to_arrow()
    names = [n for n in table.column_names if n != "error"]
    assert first_difference(rows(table, names), expected_rows(damage.survivors)) == ""
    assert list(scan.damaged_ranges) == []
    assert scan.stats.offset_gaps == 1


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("damage", ENDS, ids=str)
def test_a_torn_or_zero_tail_is_the_end_of_the_data_with_a_warning(damage: Damage, mode: str) -> None:
    log = damage.open()
    table = log.scan(on_damage=mode).to_arrow()
    if mode == "report":
        table = table.filter(table["error"].is_null())
    names = [n for n in table.column_names if n != "error"]
    assert first_difference(rows(table, names), expected_rows(damage.survivors)) == ""
    assert any(damage.file in text for text in log.warnings)
    assert log.log_end_offset == damage.survivors[-1].offset + 1


@pytest.mark.parametrize("damage", EXACT, ids=str)
def test_skip_returns_everything_but_the_damaged_batches(damage: Damage) -> None:
    scan = damage.open().scan(on_damage="skip")
    assert first_difference(rows(scan.to_arrow()), expected_rows(damage.survivors)) == ""


@pytest.mark.parametrize("damage", EXACT, ids=str)
def test_each_damaged_range_names_file_positions_offsets_and_reason(damage: Damage) -> None:
    scan = damage.open().scan(on_damage="skip")
    got = set(offsets(scan.to_arrow()))
    gaps = list(scan.damaged_ranges)
    assert gaps
    for gap in gaps:
        assert Path(gap.file).name == damage.file
        assert 0 <= gap.start_position <= gap.end_position
        assert gap.reason
    missing = {r.offset for r in corpus.visible(damage.source)} - got
    named = {offset for gap in gaps for offset in range(gap.start_offset, gap.end_offset)}
    assert missing <= named
    for b in damage.hit:
        assert any(g.start_position < b["position"] + b["size"] and g.end_position > b["position"] for g in gaps)
    if damage.hit:
        assert not named & got


@pytest.mark.parametrize("damage", BROKEN, ids=str)
def test_raise_stops_at_the_file_and_position_of_the_damage(damage: Damage) -> None:
    with pytest.raises(cw.CorruptLogError) as raised:
        damage.open().scan().to_arrow()
    assert Path(raised.value.file).name == damage.file
    batches = [b for b in corpus.batches(damage.source) if b["segment"] == damage.segment]
    first = damage.hit[0]["position"] if damage.hit else damage.start
    last = damage.hit[-1]["position"] + damage.hit[-1]["size"] - 1 if damage.hit else damage.start
    if damage.name in SEEN_AT_THE_NEXT:
        last = next((b["position"] + b["size"] for b in batches if b["position"] > last), last)
    assert first <= raised.value.position <= last
    assert damage.file in str(raised.value)


@pytest.mark.parametrize("damage", BROKEN, ids=str)
def test_only_original_records_are_returned_before_the_error(damage: Damage) -> None:
    """Small record batches, so that some are returned before the error; they have only original records."""
    got: list[tuple[Any, ...]] = []

    def consume() -> None:
        for part in damage.open().scan(max_rows=1):
            got.extend(rows(pa.Table.from_batches([part])))

    with pytest.raises(cw.CorruptLogError):
        consume()
    wanted = expected_rows(damage.survivors)
    if damage.name == "batches-swapped":
        wanted = [row for row in expected_rows(corpus.visible(damage.source)) if row[0] != 302]
    if damage.name == "flip-leader-epoch" and got != wanted[: len(got)]:
        wanted = expected_rows(corpus.visible(damage.source))  # its records are whole; only their epoch is wrong
    assert got == wanted[: len(got)]


@pytest.mark.parametrize("damage", EXACT, ids=str)
def test_report_adds_a_row_with_an_error_for_each_damaged_range(damage: Damage) -> None:
    scan = damage.open().scan(on_damage="report")
    table = scan.to_arrow()
    errors = column(table, "error")
    assert len([e for e in errors if e is not None]) == len(list(scan.damaged_ranges)) > 0
    clean = table.filter(table["error"].is_null())
    names = [n for n in table.column_names if n != "error"]
    assert first_difference(rows(clean, names), expected_rows(damage.survivors)) == ""


@pytest.mark.parametrize("mode", ["skip", "report"])
def test_swapped_batches_give_only_original_records(mode: str) -> None:
    """A reader cannot know which of the two moved: it may keep either, but not both, and must report damage."""
    (damage,) = damages("batches-swapped")
    scan = damage.open().scan(on_damage=mode)
    table = scan.to_arrow()
    if mode == "report":
        table = table.filter(table["error"].is_null())
    got = rows(table, [n for n in table.column_names if n != "error"])
    wanted = expected_rows(corpus.visible(damage.source))
    found = [row[0] for row in got]
    assert found == sorted(set(found))
    assert all(row in wanted for row in got[285:330])
    assert set(found) >= {r.offset for r in damage.survivors}
    assert 302 not in found or not set(range(303, 308)) & set(found)
    assert any(Path(gap.file).name == damage.file for gap in scan.damaged_ranges)


@pytest.mark.parametrize("damage", BROKEN, ids=str)
def test_damage_in_one_segment_leaves_ranges_in_the_others_alone(damage: Damage) -> None:
    log = damage.open()
    assert log.log_end_offset == damage.source.opened["logEndOffset"]
    bases = sorted(damage.source.bases)
    for base, end in zip(bases, [*bases[1:], log.log_end_offset], strict=True):
        if base == damage.segment:
            continue
        got = rows(log.scan(start_offset=base, end_offset=end).to_arrow())
        assert got == expected_rows(r for r in corpus.visible(damage.source) if base <= r.offset < end)


@pytest.mark.parametrize("damage", BROKEN, ids=str)
def test_records_one_by_one_raise_and_skip_like_the_scan(damage: Damage) -> None:
    with pytest.raises(cw.CorruptLogError):
        list(damage.open().records())
    got = [r.offset for r in damage.open().records(on_damage="skip")]
    assert got == offsets(damage.open().scan(on_damage="skip", columns=["offset"]).to_arrow())


@pytest.mark.parametrize("damage", BROKEN, ids=str)
def test_lookups_in_a_damaged_segment_are_right_or_raise(damage: Damage) -> None:
    """A look-up either finds the right batch or raises; it never returns a wrong one."""
    log = damage.open()
    places = {r.offset: r.batch for r in corpus.visible(damage.source)}
    shift = damage.name in ("batch-repeated", "batches-swapped")
    blamed: set[str] = set()
    for offset, b in places.items():
        if b["segment"] != damage.segment:
            continue
        try:
            place = log.locate(offset)
        except cw.CorruptLogError as error:
            blamed.add(Path(error.file).name)
            continue
        assert place is not None
        assert place.segment_base_offset == b["segment"]
        if not shift and b not in damage.hit:
            assert (place.batch_base_offset, place.position, place.size) == (b["baseOffset"], b["position"], b["size"])
    assert blamed <= {damage.file}


@pytest.mark.parametrize("damage", BROKEN, ids=str)
def test_times_of_a_damaged_partition_are_right_or_raise(damage: Damage) -> None:
    log = damage.open()
    everything = corpus.visible(damage.source)
    alive = {r.offset for r in damage.survivors}
    blamed: set[str] = set()
    for record in everything[::3]:
        wanted = corpus.first_at_or_after(everything, record.timestamp)
        try:
            found = log.offset_for_time(record.timestamp)
        except cw.CorruptLogError as error:
            blamed.add(Path(error.file).name)
            continue
        assert wanted is not None
        if wanted.offset in alive:
            assert found is not None
            assert (found.timestamp, found.offset) == (wanted.timestamp, wanted.offset)
    assert blamed <= {damage.file}


@pytest.mark.parametrize("damage", BROKEN, ids=str)
def test_records_have_damaged_ranges_and_counts(damage: Damage) -> None:
    scan = damage.open().scan(on_damage="skip")
    wanted = offsets(scan.to_arrow())
    records = damage.open().records(on_damage="skip")
    assert iter(records) is records
    assert isinstance(records.damaged_ranges, list)
    assert isinstance(records.stats, cw.ScanStats)
    assert [record.offset for record in records] == wanted
    assert len(records.damaged_ranges) > 0
    assert all(isinstance(gap, cw.DamagedRange) for gap in records.damaged_ranges)
    assert [str(gap) for gap in records.damaged_ranges] == [str(gap) for gap in scan.damaged_ranges]
    assert records.stats.records == len(wanted)
    assert records.stats.offset_gaps == scan.stats.offset_gaps


def test_damaged_ranges_and_counts_grow_as_records_are_read() -> None:
    records = cw.Log(corpus.partition("01-small").path).records()
    assert (records.damaged_ranges, records.stats.records) == ([], 0)
    next(records)
    next(records)
    assert 2 <= records.stats.records < 370  # a few are read ahead
    assert sum(1 for _ in records) == 368
    assert (records.damaged_ranges, records.stats.records) == ([], 370)
