"""Every record of every intact partition through the data source: in every split, each once and as Kafka read it."""

from __future__ import annotations

from typing import Any

import corpus
import pytest
from corpus import Partition
from tables import first_difference, or_minus_one

from spark.reading import (
    KAFKA,
    again,
    kafka_rows,
    offsets,
    plan,
    read,
    refuses,
    source,
    struct,
    table_rows,
    values,
)

every_partition = pytest.mark.parametrize("part", corpus.partitions(), ids=str)
WITH_HEADERS = [*KAFKA, "headers"]


@every_partition
@pytest.mark.parametrize(
    "split",
    [{}, {"minPartitions": 3}, {"maxPartitionBytes": 4096}, {"maxRecordsPerPartition": 50}],
    ids=["whole", "three", "bytes", "records"],
)
def test_the_rows_equal_kafkas_in_every_split(part: Partition, split: dict[str, int]) -> None:
    """Each record once; within a split in offset order."""
    pieces = plan(part.path, includeHeaders=True, **split).pieces()
    place = WITH_HEADERS.index("offset")
    for piece in pieces:
        found = [row[place] for row in piece]
        assert found == sorted(found)
    rows = sorted((row for piece in pieces for row in piece), key=lambda row: row[place])
    assert first_difference(rows, kafka_rows(part, corpus.visible(part), WITH_HEADERS)) == ""


@every_partition
def test_one_split_is_enough_for_a_small_partition(part: Partition) -> None:
    assert len(plan(part.path).splits) == 1


LARGER = [part for part in corpus.partitions() if len(corpus.batches(part)) >= 30]


@pytest.mark.parametrize("part", LARGER, ids=str)
def test_min_partitions_are_planned_if_there_are_enough_batches(part: Partition) -> None:
    assert len(plan(part.path, minPartitions=3).splits) >= 3


@every_partition
def test_splits_by_bytes_have_whole_batches_and_about_the_requested_size(part: Partition) -> None:
    wanted = 4096
    sizes = {(b["segment"], b["position"]): b["size"] for b in corpus.batches(part)}
    found = plan(part.path, columns="offset,segmentBaseOffset,position", maxPartitionBytes=wanted)
    pieces = [{row[1:] for row in table_rows(table)} for table in found.tables()]
    owned = [batch for piece in pieces for batch in piece]
    assert len(owned) == len(set(owned))
    largest = max(sizes.values(), default=0)
    assert [
        sum(sizes[batch] for batch in piece) for piece in pieces if sum(map(sizes.get, piece)) > 2 * wanted + largest
    ] == []
    if len(sizes) > 10 and sum(sizes.values()) > 8 * wanted and largest < wanted:
        assert len([piece for piece in pieces if piece]) >= 3


def test_a_segment_is_cut_inside() -> None:
    """Two splits have records of one segment; the batches on both sides of the cut are read once."""
    part = corpus.partition("01-plain")
    found = plan(part.path, columns="offset,segmentBaseOffset", maxPartitionBytes=20_000)
    spans = [(row[0][0], row[-1][0], row[0][1]) for table in found.tables() if (row := table_rows(table))]
    inside = [first for first, _, segment in spans if first != segment]
    assert len(inside) >= 4
    assert [last + 1 for _, last, _ in sorted(spans)[:-1]] == [first for first, _, _ in sorted(spans)[1:]]
    owners: dict[int, int] = {}
    for _, _, segment in spans:
        owners[segment] = owners.get(segment, 0) + 1
    assert max(owners.values()) >= 2


@every_partition
def test_no_split_has_more_records_than_requested(part: Partition) -> None:
    pieces = plan(part.path, schema=struct("offset"), maxRecordsPerPartition=50).pieces()
    assert max(len(piece) for piece in pieces) <= 50
    # sparse offsets must not lead to empty splits
    assert len(pieces) <= len(corpus.visible(part)) + 1


def test_min_partitions_is_shared_among_partitions_by_their_size() -> None:
    """The large one gets most of the splits."""
    big, small = corpus.partition("01-plain"), corpus.partition("15-one-record")
    found = plan(big.path, small.path, schema=struct("topic", "partition", "offset"), minPartitions=9)
    topics = [{row[0] for row in piece} for piece in found.pieces()]
    assert len(topics) >= 8
    assert topics.count({small.topic}) == 1
    assert topics.count({big.topic}) >= 7


@every_partition
@pytest.mark.parametrize("option", ["isolationLevel", "kafka.isolation.level"])
def test_read_committed_shows_what_the_markers_allow(part: Partition, option: str) -> None:
    wanted = kafka_rows(part, corpus.committed(part, part.opened["logEndOffset"]))
    assert first_difference(read(part.path, **{option: "read_committed"}), wanted) == ""


TRANSACTIONAL = ["11-transactions", "12-compacted-empty", "14-killed-transactions", "21-follower", "21-replica-leader"]


@pytest.mark.parametrize("case", TRANSACTIONAL)
@pytest.mark.parametrize("split", [{"maxPartitionBytes": 1000}, {"maxRecordsPerPartition": 7}, {"minPartitions": 40}])
def test_a_split_may_lie_inside_an_aborted_transaction(case: str, split: dict[str, int]) -> None:
    part = corpus.partition(case)
    wanted = kafka_rows(part, corpus.committed(part, part.opened["logEndOffset"]))
    found = plan(part.path, isolationLevel="read_committed", **split)
    assert len(found.splits) > 3
    assert first_difference(found.rows(), wanted) == ""


@pytest.mark.parametrize("case", TRANSACTIONAL)
def test_consumers_of_the_broker_and_the_data_source_agree_on_what_is_committed(case: str) -> None:
    part = corpus.partition(case)
    for answer in part.lines("client.jsonl"):
        if answer["type"] == "consumer":
            got = offsets(part.path, isolationLevel=answer["isolation"], maxPartitionBytes=3000)
            assert got == corpus.offsets_of_ranges(answer["offsets"])


def test_two_isolation_levels_that_disagree_are_refused() -> None:
    part = corpus.partition("11-transactions")
    options = {"isolationLevel": "read_committed", "kafka.isolation.level": "read_uncommitted"}
    with refuses("CORDWOOD_BAD_OPTION", "isolation"):
        source(part.path, **options).schema()


@every_partition
@pytest.mark.parametrize("io", ["auto", "mmap", "pread"])
def test_every_way_of_reading_the_files_gives_the_same_rows(part: Partition, io: str) -> None:
    names = ("offset", "value")
    rows = read(part.path, schema=struct(*names), io=io, maxPartitionBytes=30_000)
    assert first_difference(rows, kafka_rows(part, corpus.visible(part), names)) == ""


@pytest.mark.parametrize("rows", [1, 7, 100])
def test_record_batches_have_at_most_the_requested_rows(rows: int) -> None:
    part = corpus.partition("06-mixed-codecs")
    found = plan(part.path, schema=struct("offset"), maxBatchRows=rows, endingOffsets={part.topic: {"0": 300}})
    batches = [batch for split in found.splits for batch in found.batches(split)]
    assert max(batch.num_rows for batch in batches) <= rows
    assert sorted(o for batch in batches for o in batch.column(0).to_pylist()) == list(range(300))


def test_arrow_batches_are_bounded_in_bytes() -> None:
    """No batch is much larger than the maximum, unless it has one record."""
    part = corpus.partition("01-plain")
    longest = max(len(r.value or b"") + len(r.key or b"") for r in corpus.visible(part))
    found = plan(part.path, schema=struct("key", "value"), maxBatchBytes=10_000)
    batches = [batch for split in found.splits for batch in found.batches(split)]
    assert len(batches) > 10
    assert max(batch.nbytes for batch in batches) <= 2 * 10_000 + longest
    assert sum(batch.num_rows for batch in batches) == 1500


def test_a_record_larger_than_the_maximum_batch_is_returned_alone() -> None:
    part = corpus.partition("07-edge-values")
    found = plan(part.path, schema=struct("offset", "value"), maxBatchBytes=1)
    batches = [batch for split in found.splits for batch in found.batches(split)]
    assert [row for batch in batches for row in batch.column(0).to_pylist()] == [r.offset for r in corpus.visible(part)]


def test_a_split_can_be_read_again() -> None:
    """A cluster repeats a task whose first attempt failed."""
    found = plan(corpus.partition("04-lz4").path, maxPartitionBytes=20_000)
    for split in found.splits:
        assert found.table(split).equals(found.table(split))


@pytest.mark.parametrize("case", ["15-empty", "15-one-record", "12-compacted-empty"])
def test_a_plan_without_records_is_one_explicit_empty_split(case: str) -> None:
    """Spark would call `read(InputPartition(None))` for an empty list."""
    part = corpus.partition(case)
    end = part.opened["logEndOffset"]
    found = plan(part.path, startingOffsets={part.topic: {str(part.number): end}}, minPartitions=5)
    assert len(found.splits) == 1
    assert found.pieces() == [[]]


def test_the_end_is_fixed_when_the_plan_is_made(copied: Any) -> None:
    """A log that grows during a query is read up to its end at the start, in every split."""
    part = corpus.partition("01-plain")
    path = copied(part.path)
    last = path / "00000000000000001217.log"
    whole = last.read_bytes()
    cut = next(b["position"] for b in corpus.batches(part) if b["baseOffset"] > 1400)
    end = next(b["baseOffset"] for b in corpus.batches(part) if b["baseOffset"] > 1400)
    last.write_bytes(whole[:cut])
    for file in path.glob("*1217.*index"):
        file.unlink()
    found = plan(path, schema=struct("offset"), maxPartitionBytes=30_000)
    last.write_bytes(whole)
    assert [row[0] for row in found.rows()] == list(range(end))


def test_every_further_column_is_that_of_the_batch_that_holds_the_record() -> None:
    """All columns at once, in the cases that have values for them."""
    names = [
        "offset",
        "leaderEpoch",
        "producerId",
        "producerEpoch",
        "sequence",
        "isTransactional",
        "isControl",
        "codec",
        "magic",
        "batchBaseOffset",
        "position",
        "segmentBaseOffset",
        "keySize",
        "valueSize",
    ]
    for case in ("07-edge-values", "11-transactions", "17-raised-and-lowered", "18-leaps", "19-leader-epochs"):
        part = corpus.partition(case)
        found = plan(part.path, columns=",".join(names))
        assert found.schema.fieldNames() == names
        (table,) = found.tables()
        wanted = corpus.visible(part)
        batches = [r.batch for r in wanted]
        got = {name: or_minus_one(values(table, name)) for name in names}
        assert got["offset"] == [r.offset for r in wanted]
        assert got["leaderEpoch"] == [b["leaderEpoch"] for b in batches]
        assert got["producerId"] == [b["producerId"] for b in batches]
        assert got["producerEpoch"] == [b["producerEpoch"] for b in batches]
        assert got["sequence"] == [r.sequence for r in wanted]
        assert got["isTransactional"] == [b["transactional"] for b in batches]
        assert got["isControl"] == [False] * len(wanted)
        assert got["codec"] == [b["codec"] for b in batches]
        assert got["magic"] == [b["magic"] for b in batches]
        assert got["batchBaseOffset"] == [b["baseOffset"] for b in batches]
        assert got["position"] == [b["position"] for b in batches]
        assert got["segmentBaseOffset"] == [b["segment"] for b in batches]
        assert got["keySize"] == [-1 if r.key is None else len(r.key) for r in wanted]
        assert got["valueSize"] == [-1 if r.value is None else len(r.value) for r in wanted]


@every_partition
def test_the_table_of_batches_has_a_row_for_each_batch(part: Partition) -> None:
    found = plan(part.path, table="batches")
    rows = [row for table in found.tables() for row in table.to_pylist()]
    start = part.log_start
    wanted = [b for b in corpus.batches(part) if b["lastOffset"] >= start]
    key = ["baseOffset", "lastOffset", "position", "size", "segmentBaseOffset", "magic", "codec", "isControl"]
    got = sorted([row[name] for name in key] for row in rows)
    names = ["baseOffset", "lastOffset", "position", "size", "segment", "magic", "codec", "control"]
    assert got == sorted([b[name] for name in names] for b in wanted)
    assert {(row["topic"], row["partition"]) for row in rows} <= {(part.topic, part.number)}


@pytest.mark.parametrize("split", [{"maxPartitionBytes": 2000}, {"minPartitions": 9}, {"maxRecordsPerPartition": 40}])
@pytest.mark.parametrize("case", ["01-plain", "11-transactions", "17-upgraded", "18-leaps", "20-many-segments"])
def test_the_tables_of_batches_and_segments_have_each_row_once_however_they_are_split(
    case: str, split: dict[str, int]
) -> None:
    part = corpus.partition(case)
    batches = [row for table in plan(part.path, table="batches", **split).tables() for row in table.to_pylist()]
    wanted = sorted((b["segment"], b["position"]) for b in corpus.batches(part))
    assert sorted((row["segmentBaseOffset"], row["position"]) for row in batches) == wanted
    segments = [row for table in plan(part.path, table="segments", **split).tables() for row in table.to_pylist()]
    assert sorted(row["segmentBaseOffset"] for row in segments) == sorted(part.bases)


@every_partition
def test_the_table_of_segments_has_a_row_for_each_segment(part: Partition) -> None:
    found = plan(part.path, table="segments")
    rows = [row for table in found.tables() for row in table.to_pylist()]
    assert sorted(row["segmentBaseOffset"] for row in rows) == sorted(part.bases)
    ends = {b["segment"]: b["lastOffset"] + 1 for b in corpus.batches(part)}
    assert {row["segmentBaseOffset"]: row["endOffset"] for row in rows} == {
        base: ends.get(base, base) for base in part.bases
    }
    counts = {base: len([b for b in corpus.batches(part) if b["segment"] == base]) for base in part.bases}
    if part.log_start == part.first_base:
        assert {row["segmentBaseOffset"]: row["batches"] for row in rows} == counts
    assert {(row["topic"], row["partition"]) for row in rows} == {(part.topic, part.number)}


def test_a_source_and_its_reader_pickle_before_and_after_planning() -> None:
    data = again(source(corpus.partition("01-small").path))
    reader = again(data.reader(schema=struct()))
    splits = again(reader).partitions()
    assert sum(batch.num_rows for split in splits for batch in again(reader).read(again(split))) == 370
    assert sum(batch.num_rows for split in splits for batch in reader.read(split)) == 370
