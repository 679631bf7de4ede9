"""Every record and batch of every intact partition equals the result of Kafka's own classes."""

from __future__ import annotations

import hashlib

import corpus
import pytest
from corpus import Partition
from tables import DEFAULT_COLUMNS, MORE_COLUMNS, column, expected_rows, first_difference, or_minus_one, rows

import cordwood as cw

every_partition = pytest.mark.parametrize("part", corpus.partitions(), ids=str)


def everything(part: Partition) -> cw.Log:
    """The log with no record hidden below a log start offset."""
    return cw.Log(part.path, **part.overrides)


def test_the_manifest_has_all_cases_and_partitions() -> None:
    intact = {part.case for part in corpus.partitions()}
    assert len(intact) == 47
    assert len(corpus.partitions()) == 52
    assert len([case for case in corpus.cases() if case.startswith("damaged/")]) == 62


@pytest.mark.parametrize("case", corpus.cases())
def test_every_file_of_the_corpus_has_the_size_and_hash_of_the_manifest(case: str) -> None:
    """A checkout that changed line endings or lost an empty file would invalidate all other results."""
    for file in corpus.cases()[case]["files"]:
        data = (corpus.GOLDEN / case / file["path"]).read_bytes()
        assert (len(data), hashlib.sha256(data).hexdigest()) == (file["bytes"], file["sha256"]), file["path"]


def test_the_corpus_has_31191_data_records() -> None:
    total = sum(everything(part).scan(columns=["offset"]).to_arrow().num_rows for part in corpus.partitions())
    assert total == 31_191


@every_partition
def test_scan_equals_the_expected_records(part: Partition) -> None:
    table = cw.Log(part.path).scan().to_arrow()
    assert table.column_names == DEFAULT_COLUMNS
    assert first_difference(rows(table), expected_rows(corpus.visible(part))) == ""


@every_partition
def test_scan_with_control_records_equals_every_record_of_the_files(part: Partition) -> None:
    table = everything(part).scan(include_control=True).to_arrow()
    assert first_difference(rows(table), expected_rows(corpus.records(part))) == ""


@every_partition
def test_records_equal_the_expected_records(part: Partition) -> None:
    got = [
        (r.offset, r.timestamp, r.timestamp_type.name, r.key, r.value, [tuple(h) for h in r.headers])
        for r in cw.Log(part.path).records()
    ]
    names = {number: name for name, number in corpus.TIMESTAMP_TYPES.items()}
    wanted = [
        (r.offset, r.timestamp, names[r.timestamp_type], r.key, r.value, list(r.headers)) for r in corpus.visible(part)
    ]
    assert first_difference(got, wanted) == ""


@every_partition
def test_records_with_control_include_the_markers(part: Partition) -> None:
    got = [(r.offset, r.key, r.value) for r in everything(part).records(include_control=True)]
    assert first_difference(got, [(r.offset, r.key, r.value) for r in corpus.records(part)]) == ""


@every_partition
def test_every_optional_column_equals_the_batch_that_holds_the_record(part: Partition) -> None:
    table = everything(part).scan(columns=["offset", *MORE_COLUMNS], include_control=True).to_arrow()
    wanted = corpus.records(part)
    batches = [r.batch for r in wanted]
    assert column(table, "offset") == [r.offset for r in wanted]
    assert column(table, "topic") == [part.topic] * len(wanted)
    assert column(table, "partition") == [part.number] * len(wanted)
    assert or_minus_one(column(table, "leader_epoch")) == [b["leaderEpoch"] for b in batches]
    assert or_minus_one(column(table, "producer_id")) == [b["producerId"] for b in batches]
    assert or_minus_one(column(table, "producer_epoch")) == [b["producerEpoch"] for b in batches]
    assert or_minus_one(column(table, "sequence")) == [r.sequence for r in wanted]
    assert column(table, "is_transactional") == [b["transactional"] for b in batches]
    assert column(table, "is_control") == [b["control"] for b in batches]
    assert column(table, "codec") == [b["codec"] for b in batches]
    assert column(table, "magic") == [b["magic"] for b in batches]
    assert column(table, "batch_base_offset") == [b["baseOffset"] for b in batches]
    assert column(table, "position") == [b["position"] for b in batches]
    assert column(table, "segment_base_offset") == [b["segment"] for b in batches]
    assert or_minus_one(column(table, "key_size")) == [-1 if r.key is None else len(r.key) for r in wanted]
    assert or_minus_one(column(table, "value_size")) == [-1 if r.value is None else len(r.value) for r in wanted]


@every_partition
def test_sizes_without_the_bytes_are_the_same_sizes(part: Partition) -> None:
    """Keys and values that are not selected are not copied; their sizes must be the same."""
    table = cw.Log(part.path).scan(columns=["value_size", "key_size"]).to_arrow()
    wanted = corpus.visible(part)
    assert table.column_names == ["value_size", "key_size"]
    assert or_minus_one(column(table, "key_size")) == [-1 if r.key is None else len(r.key) for r in wanted]
    assert or_minus_one(column(table, "value_size")) == [-1 if r.value is None else len(r.value) for r in wanted]


SAME_NAMES = {
    "base_offset": "baseOffset",
    "last_offset": "lastOffset",
    "position": "position",
    "size": "size",
    "magic": "magic",
    "codec": "codec",
    "count": "count",
    "is_transactional": "transactional",
    "is_control": "control",
    "segment_base_offset": "segment",
    "crc": "crc",
    "delete_horizon": "deleteHorizon",
}
MINUS_ONE_NAMES = {
    "max_timestamp": "maxTimestamp",
    "leader_epoch": "leaderEpoch",
    "producer_id": "producerId",
    "producer_epoch": "producerEpoch",
    "base_sequence": "baseSequence",
    "last_sequence": "lastSequence",
}


@every_partition
def test_batches_equal_the_expected_batches(part: Partition) -> None:
    table = everything(part).batches().to_arrow()
    wanted = corpus.batches(part)
    assert table.num_rows == len(wanted)
    for ours, theirs in SAME_NAMES.items():
        assert first_difference(column(table, ours), [b[theirs] for b in wanted]) == "", ours
    for ours, theirs in MINUS_ONE_NAMES.items():
        assert first_difference(or_minus_one(column(table, ours)), [b[theirs] for b in wanted]) == "", ours
    types = [corpus.TIMESTAMP_TYPES[b["timestampType"]] for b in wanted]
    assert column(table, "timestamp_type") == types


@every_partition
def test_base_timestamps_of_batches_are_the_raw_field(part: Partition) -> None:
    """Null before magic 2; the field contains the delete horizon if the batch has one."""
    table = everything(part).batches().to_arrow()
    got, wanted = column(table, "base_timestamp"), corpus.batches(part)
    assert or_minus_one(got) == or_minus_one(b["baseTimestamp"] for b in wanted)
    assert [value for value, b in zip(got, wanted, strict=True) if b["magic"] < 2 and value not in (None, -1)] == []


@every_partition
def test_counts_of_a_scan_are_those_of_the_manifest(part: Partition) -> None:
    case = corpus.cases()[part.case]
    told = next(p for p in case["partitions"] if p["dir"] == part.name)
    scan = everything(part).scan(include_control=True)
    assert scan.to_arrow().num_rows == told["records"]
    assert scan.stats.records == told["records"]
    assert scan.stats.batches == told["batches"]
    assert everything(part).batches().to_arrow().num_rows == told["batches"]


@every_partition
def test_the_name_offsets_and_size_of_a_log(part: Partition) -> None:
    log = cw.Log(part.path)
    assert (log.topic, log.partition) == (part.topic, part.number)
    assert log.log_start_offset == part.opened["logStartOffset"]
    assert log.log_end_offset == part.opened["logEndOffset"]
    assert str(log.path) == str(part.path)
    logs = list(part.path.glob("*.log"))
    assert [segment.base_offset for segment in log.segments] == sorted(int(p.stem) for p in logs)
    if part.case != "14-killed-preallocated-log":
        assert log.size == sum(p.stat().st_size for p in logs)


@every_partition
@pytest.mark.parametrize("io", ["auto", "mmap", "pread"])
def test_every_way_of_reading_the_files_gives_the_same_records(part: Partition, io: str) -> None:
    table = cw.Log(part.path, io=io).scan(columns=["offset", "value"]).to_arrow()
    wanted = [(r.offset, r.value) for r in corpus.visible(part)]
    assert first_difference(rows(table), wanted) == ""


@every_partition
def test_segments_end_after_their_last_batch(part: Partition) -> None:
    log = everything(part)
    ends: dict[int, int] = {}
    for batch in corpus.batches(part):
        ends[batch["segment"]] = batch["lastOffset"] + 1
    assert [(s.base_offset, s.end_offset) for s in log.segments] == [
        (base, ends.get(base, base)) for base in sorted(part.bases)
    ]
    for segment in log.segments:
        assert int(str(segment.path).rpartition("/")[2].split(".")[0]) == segment.base_offset
