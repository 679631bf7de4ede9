"""Damaged partitions in the three modes, in one split and in many; and files that change during a query."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import corpus
import needs_pyspark  # noqa: F401
import pytest
from batches import Rec, batch, name, write_partition
from core.test_damaged import BROKEN, ENDS, EXACT, HARMLESS, LAWFUL, SEEN_AT_THE_NEXT, Damage
from pyspark import cloudpickle
from scripts import run, write_script
from tables import first_difference

import cordwood as cw
from cordwood.spark import errors
from spark.reading import KAFKA, again, kafka_rows, plan, refuses, struct, table_rows

MODES = ["FAILFAST", "DROPMALFORMED", "PERMISSIVE"]
SPLITS = [{}, {"maxPartitionBytes": 700}, {"minPartitions": 11}, {"maxRecordsPerPartition": 12}]
in_every_mode = pytest.mark.parametrize("mode", MODES)
however_split = pytest.mark.parametrize("split", SPLITS, ids=["whole", "bytes", "number", "records"])
ERROR = len(KAFKA)
KEY, VALUE, TOPIC, PARTITION, OFFSET = range(5)


def rows(damage: Damage, mode: str, **split: Any) -> tuple[list[Any], list[Any]]:
    """The rows of records and the rows with an error."""
    found = plan(damage.path, mode=mode, **split).rows()
    if mode != "PERMISSIVE":
        return found, []
    return [row[:ERROR] for row in found if row[ERROR] is None], [row for row in found if row[ERROR] is not None]


def as_struct(damage: cw.DamagedRange) -> dict[str, Any]:
    """A damaged range as the value of the column `_error`."""
    return {
        "file": damage.file,
        "startPosition": damage.start_position,
        "endPosition": damage.end_position,
        "startOffset": damage.start_offset,
        "endOffset": damage.end_offset,
        "reason": damage.reason,
    }


def survivors(damage: Damage) -> list[Any]:
    return kafka_rows(damage.source, damage.survivors)


@in_every_mode
@pytest.mark.parametrize("damage", HARMLESS, ids=str)
def test_damage_in_other_files_than_the_log_loses_no_row(damage: Damage, mode: str) -> None:
    for split in ({}, {"maxPartitionBytes": 3000}) if mode == "FAILFAST" else ({"maxPartitionBytes": 3000},):
        good, bad = rows(damage, mode, **split)
        assert first_difference(good, kafka_rows(damage.source, corpus.visible(damage.source))) == ""
        assert bad == []


@pytest.mark.parametrize("damage", HARMLESS, ids=str)
def test_starts_and_ends_by_time_do_not_trust_the_indexes(damage: Damage) -> None:
    everything = corpus.visible(damage.source, control=True)
    for target in [r.timestamp for r in everything[3::90]]:
        found = corpus.first_at_or_after(everything, target)
        assert found is not None
        late = plan(damage.path, schema=struct("offset"), startingTimestamp=target).rows()
        early = plan(damage.path, schema=struct("offset"), endingTimestamp=target).rows()
        shown = [r.offset for r in corpus.visible(damage.source)]
        assert [row[0] for row in late] == [o for o in shown if o >= found.offset]
        assert [row[0] for row in early] == [o for o in shown if o < found.offset]


@in_every_mode
@pytest.mark.parametrize("damage", LAWFUL, ids=str)
def test_missing_offsets_are_not_damage(damage: Damage, mode: str) -> None:
    """Between segments they are lost data, unless the log is compacted: see `test_offset_gaps.py`."""
    for split in SPLITS:
        good, bad = rows(damage, mode, cleanupPolicy="compact", **split)
        assert first_difference(good, survivors(damage)) == ""
        assert bad == []


@in_every_mode
@pytest.mark.parametrize("damage", ENDS, ids=str)
def test_a_torn_tail_is_the_end_of_the_data(damage: Damage, mode: str) -> None:
    for split in SPLITS[:2]:
        good, _ = rows(damage, mode, **split)
        assert first_difference(good, survivors(damage)) == ""


@however_split
@pytest.mark.parametrize("damage", BROKEN, ids=str)
def test_failfast_names_partition_segment_and_position(damage: Damage, split: dict[str, int]) -> None:
    with refuses("CORDWOOD_CORRUPT_BATCH", damage.path.name) as raised:
        plan(damage.path, **split).rows()
    told = errors.parse(raised.value)
    assert (told.topic, told.partition, told.segment) == (damage.source.topic, damage.source.number, damage.segment)
    batches = [b for b in corpus.batches(damage.source) if b["segment"] == damage.segment]
    first = damage.hit[0]["position"] if damage.hit else damage.start
    last = damage.hit[-1]["position"] + damage.hit[-1]["size"] - 1 if damage.hit else damage.start
    if damage.name in SEEN_AT_THE_NEXT:
        last = next((b["position"] + b["size"] for b in batches if b["position"] > last), last)
    assert first <= told.position <= last


@pytest.mark.parametrize("damage", BROKEN, ids=str)
def test_failfast_fails_also_if_data_loss_is_allowed(damage: Damage) -> None:
    """Damage is not data loss by retention."""
    with refuses("CORDWOOD_CORRUPT_BATCH", damage.path.name):
        plan(damage.path, failOnDataLoss=False, maxPartitionBytes=5000).rows()


@pytest.mark.parametrize("damage", BROKEN, ids=str)
def test_splits_return_only_original_rows(damage: Damage) -> None:
    """Every split either returns what Kafka wrote or fails with the code; the one with the damage fails."""
    try:
        found = plan(damage.path, maxPartitionBytes=700)
    except Exception as error:  # noqa: BLE001 - a planner that reads headers may see it first
        assert str(error).startswith("[CORDWOOD_CORRUPT_BATCH]")  # noqa: PT017
        return
    true = {row[OFFSET]: row for row in kafka_rows(damage.source, corpus.visible(damage.source))}
    failed = 0
    for split in found.splits:
        try:
            got = table_rows(found.table(split))
        except Exception as error:  # noqa: BLE001 - looked at
            # of swapped batches, the split of one has a gap, and the split of the other the damage
            assert str(error).startswith(("[CORDWOOD_CORRUPT_BATCH]", "[CORDWOOD_SEGMENT_GONE]"))  # noqa: PT017
            failed += 1
        else:
            assert [row for row in got if true.get(row[OFFSET]) != row] == []
    assert failed >= 1


@however_split
@pytest.mark.parametrize("damage", EXACT, ids=str)
def test_dropmalformed_returns_all_but_the_damaged_batches(damage: Damage, split: dict[str, int]) -> None:
    good, _ = rows(damage, "DROPMALFORMED", **split)
    assert first_difference(good, survivors(damage)) == ""


@however_split
@pytest.mark.parametrize("damage", EXACT, ids=str)
def test_permissive_adds_one_row_for_the_damaged_range_in_every_split(damage: Damage, split: dict[str, int]) -> None:
    """Each of these cases has exactly one damaged range."""
    good, bad = rows(damage, "PERMISSIVE", **split)
    assert first_difference(good, survivors(damage)) == ""
    ((key, value, topic, number, *_, error),) = bad
    assert (key, value) == (None, None)
    assert (topic, number) == (damage.source.topic, damage.source.number)
    scan = damage.open().scan(on_damage="skip")
    scan.to_arrow()
    assert error == as_struct(*scan.damaged_ranges)


@pytest.mark.parametrize("damage", EXACT, ids=str)
def test_damaged_ranges_are_reported_once_also_if_data_loss_is_allowed(damage: Damage) -> None:
    for split in SPLITS[:2]:
        good, bad = rows(damage, "PERMISSIVE", failOnDataLoss=False, **split)
        assert first_difference(good, survivors(damage)) == ""
        assert len(bad) == 1


@pytest.mark.parametrize("damage", EXACT, ids=str)
def test_ranges_around_the_damage_return_all_other_rows(damage: Damage) -> None:
    """From just before, inside and just after the damage to the end, and from the beginning to these offsets."""
    hit = damage.hit or [b for b in corpus.batches(damage.source) if b["position"] + b["size"] == damage.start]
    topic, number = damage.source.topic, str(damage.source.number)
    end = damage.source.opened["logEndOffset"]
    for offset in sorted({o + step for b in hit for o in (b["baseOffset"], b["lastOffset"]) for step in (-1, 0, 1)}):
        at = {topic: {number: min(max(offset, 0), end)}}
        before, _ = rows(damage, "PERMISSIVE", endingOffsets=at)
        after, _ = rows(damage, "PERMISSIVE", startingOffsets=at)
        assert first_difference(before + after, survivors(damage)) == ""


@in_every_mode
@pytest.mark.parametrize("damage", BROKEN, ids=str)
def test_damage_outside_the_range_is_ignored(damage: Damage, mode: str) -> None:
    bases = sorted(damage.source.bases)
    end = damage.source.opened["logEndOffset"]
    for base, stop in zip(bases, [*bases[1:], end], strict=True):
        if base == damage.segment:
            continue
        at = {damage.source.topic: {str(damage.source.number): base}}
        to = {damage.source.topic: {str(damage.source.number): stop}}
        found = plan(damage.path, schema=struct("offset"), mode=mode, startingOffsets=at, endingOffsets=to).rows()
        assert found == [(r.offset,) for r in corpus.visible(damage.source) if base <= r.offset < stop]


@in_every_mode
def test_swapped_batches_give_only_original_rows_and_none_twice(mode: str) -> None:
    (damage,) = [d for d in BROKEN if d.name == "batches-swapped"]
    if mode == "FAILFAST":
        with refuses("CORDWOOD_CORRUPT_BATCH"):
            plan(damage.path, maxPartitionBytes=700).rows()
        return
    true = {row[OFFSET]: row for row in kafka_rows(damage.source, corpus.visible(damage.source))}
    for split in SPLITS:
        good, bad = rows(damage, mode, **split)
        found = [row[OFFSET] for row in good]
        assert found == sorted(set(found))
        assert [row for row in good if true[row[OFFSET]] != row] == []
        assert set(found) >= {r.offset for r in damage.survivors}
        assert 302 not in found or not set(range(303, 308)) & set(found)
        assert len(bad) == (1 if mode == "PERMISSIVE" else 0)


@in_every_mode
def test_an_unknown_codec_is_refused_in_every_mode(tmp_path: Path, mode: str) -> None:
    """An unknown codec is not damage: skipping it would lose data that a later release can read."""
    raws = [batch(0, [Rec(b"a")]), batch(1, [Rec(b"b")], codec=6), batch(2, [Rec(b"c")])]
    path = write_partition(tmp_path / "new-0", [(0, raws)])
    with refuses("CORDWOOD_UNSUPPORTED", "new-0"):
        plan(path, mode=mode).rows()


def test_two_damaged_ranges_are_two_rows(copied: Any) -> None:
    part = corpus.partition("01-small")
    path = copied(part.path)
    file = path / "00000000000000000000.log"
    data = bytearray(file.read_bytes())
    hit = [b for b in corpus.batches(part) if b["segment"] == 0 and not b["control"]][2:8:4]
    for b in hit:
        data[b["position"] + b["size"] - 1] ^= 0x10
    file.write_bytes(data)
    lost = {r.offset for r in corpus.visible(part) for b in hit if b["baseOffset"] <= r.offset <= b["lastOffset"]}
    for split in SPLITS:
        found = plan(path, mode="PERMISSIVE", **split).rows()
        good = [row[:ERROR] for row in found if row[ERROR] is None]
        bad = [row for row in found if row[ERROR] is not None]
        assert (
            first_difference(good, [row for row in kafka_rows(part, corpus.visible(part)) if row[OFFSET] not in lost])
            == ""
        )
        assert [row[ERROR]["startPosition"] for row in bad] == [b["position"] for b in hit]
        assert [row[OFFSET] for row in bad] == [b["baseOffset"] for b in hit]


@pytest.mark.parametrize("case", ["12-compacted", "11-transactions", "17-raised-and-lowered", "18-leaps"])
def test_any_damaged_batch_is_reported_once_in_every_split(copied: Any, case: str) -> None:
    """Also if its offsets are sparse, so that it is cut inside."""
    part = corpus.partition(case)
    path = copied(part.path)
    shown = kafka_rows(part, corpus.visible(part))
    # the last batch of the last segment would be a torn tail
    splits: list[dict[str, int]] = [{}, {"maxPartitionBytes": 700}, {"maxRecordsPerPartition": 17}]
    for number, b in enumerate(corpus.batches(part)[:-1][:: max(1, len(corpus.batches(part)) // 15)]):
        file = path / name(b["segment"])
        whole = file.read_bytes()
        data = bytearray(whole)
        data[b["position"] + b["size"] - 1] ^= 0x10
        file.write_bytes(data)
        # each batch with one of them
        split = splits[number % 3]
        found = plan(path, mode="PERMISSIVE", **split).rows()
        good = [row[:ERROR] for row in found if row[ERROR] is None]
        left = [row for row in shown if not b["baseOffset"] <= row[OFFSET] <= b["lastOffset"]]
        assert first_difference(good, left) == ""
        places = [row[ERROR]["startPosition"] for row in found if row[ERROR] is not None]
        assert places == [b["position"]], split
        file.write_bytes(whole)


@pytest.mark.parametrize("mode", ["DROPMALFORMED", "PERMISSIVE"])
def test_batches_whose_marker_was_lost_are_reported_once_in_every_split(copied: Any, mode: str) -> None:
    """It is unknown whether they were committed: they are left out, each with a row about it."""
    part = corpus.partition("11-transactions")
    path = copied(part.path)
    file = path / name(356)
    data = bytearray(file.read_bytes())
    data[589] ^= 1
    file.write_bytes(data)
    whole = plan(path, mode=mode, isolationLevel="read_committed").rows()
    committed = {r.offset: r.batch["baseOffset"] for r in corpus.committed(part, part.opened["logEndOffset"])}
    reported = {row[OFFSET] for row in whole if row[ERROR:] not in ((), (None,))}
    shown = {row[OFFSET] for row in whole if row[ERROR:] in ((), (None,))}
    assert shown < set(committed)
    assert mode != "PERMISSIVE" or {committed[offset] for offset in set(committed) - shown} <= reported
    for split in ({"maxRecordsPerPartition": 3}, {"maxPartitionBytes": 500}, {"minPartitions": 90}):
        assert first_difference(plan(path, mode=mode, isolationLevel="read_committed", **split).rows(), whole) == ""


# ---------------------------------------------------------------- between plan and read


def planned(path: Path, **given: Any) -> Any:
    return plan(path, maxPartitionBytes=20_000, **given)


def outcome(found: Any) -> tuple[list[int], list[str]]:
    """The offsets and the errors' codes of all splits, each read as a task of its own."""
    got, codes = [], []
    for split in found.splits:
        try:
            table = found.table(again(split))
        except Exception as error:  # noqa: BLE001 - looked at by the caller
            codes.append(errors.parse(error).code)
        else:
            got += table["offset"].to_pylist()
    return sorted(got), codes


@pytest.mark.parametrize("io", ["auto", "mmap", "pread"])
def test_a_segment_that_was_removed_after_planning_has_an_error_code(copied: Any, io: str) -> None:
    path = copied(corpus.partition("01-plain").path)
    found = planned(path, io=io)
    for file in path.glob("00000000000000000400.*"):
        file.unlink()
    got, codes = outcome(found)
    assert set(codes) == {"CORDWOOD_SEGMENT_GONE"}
    assert set(got) <= {*range(400), *range(807, 1500)}


@pytest.mark.parametrize("segment", ["00000000000000000400", "00000000000000001217"])
@pytest.mark.parametrize("size", [0, 5000])
def test_a_file_that_was_shortened_after_planning_has_an_error_code(copied: Any, segment: str, size: int) -> None:
    path = copied(corpus.partition("01-plain").path)
    found = planned(path)
    with (path / f"{segment}.log").open("r+b") as file:
        file.truncate(size)
    got, codes = outcome(found)
    assert codes
    assert set(codes) <= {"CORDWOOD_SEGMENT_GONE", "CORDWOOD_CORRUPT_BATCH"}
    assert got == sorted(set(got))


SHORTENED = """
import os, pickle, sys
with open(sys.argv[1], "rb") as file:
    reader, splits = pickle.load(file)

def rows():
    return sum(batch.num_rows for split in splits for batch in reader.read(split))

if sys.argv[4] == "planned":
    splits = reader.partitions()
    print("planned")
else:
    print(rows())
os.truncate(sys.argv[2], int(sys.argv[3]))
try:
    print(rows())
except Exception as error:
    print(error)
"""


@pytest.mark.python_source
@pytest.mark.parametrize(
    ("io", "base", "size", "before"),
    [("auto", 400, 0, "planned"), ("auto", 400, 5000, "1500"), ("auto", 1217, 0, "1500"), ("pread", 400, 0, "1500")],
)
def test_a_segment_that_was_shortened_under_an_open_handle_has_an_error_code(
    copied: Any, script_environment: dict[str, str], *, io: str, base: int, size: int, before: str
) -> None:
    """A worker keeps handles between queries. In a separate process, because a signal would terminate it."""
    path = copied(corpus.partition("01-plain").path)
    found = planned(path, io=io)
    jobs = path.parent / "jobs"
    jobs.write_bytes(cloudpickle.dumps((found.reader, found.splits)))
    script = write_script(path.parent, SHORTENED)
    done = run(script, jobs, path / name(base), size, before, env=script_environment)
    first, second = done.stdout.splitlines()
    assert first == before
    assert errors.parse(second).code in ("CORDWOOD_SEGMENT_GONE", "CORDWOOD_CORRUPT_BATCH")


def test_a_partition_that_was_moved_after_planning_has_an_error_code(copied: Any) -> None:
    path = copied(corpus.partition("01-plain").path)
    found = planned(path)
    path.rename(path.parent / "elsewhere")
    got, codes = outcome(found)
    assert got == []
    assert len(codes) == len(found.splits)
    assert set(codes) <= {"CORDWOOD_SEGMENT_GONE", "CORDWOOD_NOT_FOUND"}


def test_without_fail_on_data_loss_a_removed_segment_is_skipped(copied: Any) -> None:
    path = copied(corpus.partition("01-plain").path)
    found = planned(path, failOnDataLoss=False)
    for file in path.glob("00000000000000000400.*"):
        file.unlink()
    got, codes = outcome(found)
    assert codes == []
    assert set(got) <= {*range(400), *range(807, 1500)}
    assert set(got) >= {*range(300), *range(900, 1500)}


@pytest.mark.parametrize("start", [100, 400, 900])
def test_records_that_were_deleted_after_planning_are_data_loss_and_no_others(copied: Any, start: int) -> None:
    """As Kafka's DeleteRecords does it: by a line in the data directory's checkpoint."""
    path = copied(corpus.partition("01-plain").path)
    strict, lenient = planned(path), planned(path, failOnDataLoss=False)
    (path.parent / "log-start-offset-checkpoint").write_text(f"0\n1\norders 0 {start}\n")
    assert set(outcome(strict)[1]) <= {"CORDWOOD_SEGMENT_GONE", "CORDWOOD_OFFSET_OUT_OF_RANGE"}
    assert outcome(strict)[1]
    got, codes = outcome(lenient)
    assert codes == []
    assert first_difference(got, list(range(start, 1500))) == ""


def test_without_fail_on_data_loss_the_rest_of_a_shortened_segment_is_read(copied: Any) -> None:
    """Compaction makes segments shorter, and a new leader cuts them."""
    part = corpus.partition("01-plain")
    path = copied(part.path)
    strict, lenient = planned(path), planned(path, failOnDataLoss=False)
    cut = next(b for b in corpus.batches(part) if b["baseOffset"] > 500)
    with (path / name(400)).open("r+b") as file:
        file.truncate(cut["position"])
    for index in path.glob("00000000000000000400.*index"):
        index.unlink()
    assert set(outcome(strict)[1]) == {"CORDWOOD_SEGMENT_GONE"}
    got, codes = outcome(lenient)
    assert codes == []
    assert first_difference(got, [*range(cut["baseOffset"]), *range(807, 1500)]) == ""


def test_without_fail_on_data_loss_segments_that_compaction_merged_are_read(copied: Any) -> None:
    """The cleaner writes several segments into the first of them."""
    path = copied(corpus.partition("01-plain").path)
    strict, lenient = planned(path), planned(path, failOnDataLoss=False)
    merged = (path / name(0)).read_bytes() + (path / name(400)).read_bytes()
    for file in [*path.glob("00000000000000000000.*"), *path.glob("00000000000000000400.*")]:
        file.unlink()
    (path / name(0)).write_bytes(merged)
    assert set(outcome(strict)[1]) <= {"CORDWOOD_SEGMENT_GONE"}
    got, codes = outcome(lenient)
    assert codes == []
    assert first_difference(got, list(range(1500))) == ""


def test_without_fail_on_data_loss_segments_that_retention_deleted_are_skipped(copied: Any) -> None:
    path = copied(corpus.partition("01-plain").path)
    found = planned(path, failOnDataLoss=False)
    for base in (0, 400):
        for file in path.glob(f"{base:020d}.*"):
            file.unlink()
    assert outcome(found) == (list(range(807, 1500)), [])
