"""The tables of internal topics, on files of a real broker and on logs that are built here."""

from __future__ import annotations

import itertools
import json
import shutil
import struct
from pathlib import Path

import corpus
import pytest
from batches import TRANSACTIONAL, Rec, batch, marker, write_partition

import cordwood as cw

DATA = corpus.GOLDEN / "16-data-dir"
METADATA = DATA / "__cluster_metadata-0"
NAMES = (
    *("topics", "partitions", "brokers", "controllers", "configs", "features", "acls", "client_quotas"),
    *("scram_credentials", "delegation_tokens", "producer_ids"),
)


def tables(found: cw.ClusterMetadata) -> dict[str, list[dict[str, object]]]:
    return {name: getattr(found, name).to_dicts() for name in NAMES}


def test_a_replay_of_the_log_is_the_state_in_kafkas_snapshots(tmp_path: Path) -> None:
    # the broker wrote each snapshot from its own state as of the offset in the name
    log = (METADATA / "00000000000000000000.log").read_bytes()
    snapshots = sorted(METADATA.glob("*.checkpoint"))
    assert len(snapshots) == 3
    for snapshot in snapshots:
        end = int(snapshot.name[:20])
        position = 0
        while position < len(log):
            base, length = struct.unpack_from(">qi", log, position)
            if base >= end:
                break
            position += 12 + length
        partition = tmp_path / snapshot.stem / "__cluster_metadata-0"
        partition.mkdir(parents=True)
        (partition / "00000000000000000000.log").write_bytes(log[:position])
        replayed, written = cw.metadata(partition), cw.metadata(snapshot)
        assert (replayed.offset, written.offset) == (end, end)
        assert tables(replayed) == tables(written)
        assert not len(replayed.errors)
        assert len(replayed.topics) > 0 or snapshot == snapshots[0]


def test_the_last_snapshot_and_the_log_after_it_are_the_whole_log(tmp_path: Path) -> None:
    whole = cw.metadata(DATA)
    assert whole.snapshot == str(METADATA.absolute() / "00000000000000000084-0000000001.checkpoint")
    partition = tmp_path / "__cluster_metadata-0"
    shutil.copytree(METADATA, partition, ignore=shutil.ignore_patterns("*.checkpoint"))
    assert tables(cw.metadata(partition)) == tables(whole)
    assert whole.offset == cw.Log(METADATA).log_end_offset == 98
    assert len(cw.metadata_records(DATA)) == 98


def test_topics_and_partitions_are_those_of_the_data_directory() -> None:
    metadata = cw.metadata(DATA)
    found = {(row["topic"], row["partition"]): row for row in metadata.partitions.to_dicts()}
    logs = {(log.topic, log.partition): log for log in cw.LogDir(DATA).values() if log.topic != "__cluster_metadata"}
    assert found.keys() == logs.keys()
    ids = {row["topic"]: row["topic_id"] for row in metadata.topics.to_dicts()}
    assert ids == {topic: log.topic_id for (topic, _), log in logs.items()}
    assert all(row["replicas"] == [1] for row in found.values())
    only = cw.metadata(DATA, topics=["cities"])
    assert [row["partition"] for row in only.partitions.to_dicts()] == [0, 1]
    assert {row["resource"] for row in only.configs.to_dicts()} <= {"cities"}


def test_a_damaged_snapshot_is_an_error_or_left_out(tmp_path: Path) -> None:
    partition = tmp_path / "__cluster_metadata-0"
    shutil.copytree(METADATA, partition)
    last = max(partition.glob("*.checkpoint"))
    whole = last.read_bytes()
    for damaged in (whole[:-1], whole[:-80], whole[:200] + b"\xff" + whole[201:]):
        last.write_bytes(damaged)
        with pytest.raises(cw.CorruptLogError) as error:
            cw.metadata(partition)
        assert error.value.file == str(last)
        found = cw.metadata(partition, on_damage="skip")
        assert tables(found) == tables(cw.metadata(DATA))
        assert found.snapshot not in {None, str(last)}
        assert len(found.errors) == 1


def test_the_offsets_of_a_broker() -> None:
    table = cw.consumer_offsets(DATA)
    rows = {(row["group"], row["topic"], row["partition"]): (row["offset"], row["lag"]) for row in table.to_dicts()}
    # each group read its topic to the end
    assert rows == {
        ("readers", "cities", 0): (268, 0),
        ("readers", "cities", 1): (150, 0),
        ("readers-2", "rivers.compact", 0): (634, 0),
    }
    assert len(cw.consumer_offsets(DATA, groups=["readers"])) == 2
    assert len(cw.consumer_offsets(DATA, groups=["readers"], topics=["rivers.compact"])) == 0
    assert cw.consumer_offsets(DATA / "__consumer_offsets-0").to_dicts() == table.to_dicts()
    groups = {row["group"]: row for row in cw.consumer_groups(DATA).to_dicts()}
    assert {name: (row["type"], row["state"]) for name, row in groups.items()} == {
        "readers": ("classic", "Empty"),
        "readers-2": ("classic", "Empty"),
    }
    arrow = table.to_arrow()
    assert arrow.num_rows == 3
    assert table.to_polars()["offset"].to_list() == arrow["offset"].to_pylist()
    assert str(arrow.schema.field("commit_time").type) == "timestamp[ms, tz=UTC]"


def test_a_path_that_is_not_of_the_topic_is_named() -> None:
    for function in (cw.consumer_offsets, cw.consumer_groups, cw.transactions, cw.metadata, cw.metadata_records):
        with pytest.raises(cw.ConfigError, match=r"path: expected a partition directory of __"):
            function(DATA / "cities-0")
        with pytest.raises(cw.ConfigError, match="which has none"):
            function(corpus.GOLDEN / "01-plain")
        with pytest.raises(cw.LogNotFoundError):
            function(corpus.GOLDEN / "missing")


def text(value: str) -> bytes:
    return struct.pack(">h", len(value)) + value.encode()


def commit_key(group: str, partition: int) -> bytes:
    return struct.pack(">h", 1) + text(group) + text("orders") + struct.pack(">i", partition)


def commit(offset: int) -> bytes:
    return struct.pack(">hqi", 3, offset, -1) + text("m") + struct.pack(">q", 1000 + offset)


class OffsetsLog:
    """Builds a partition of `__consumer_offsets`, and replays it by the rules of the group coordinator."""

    def __init__(self) -> None:
        self.batches: list[bytes] = []
        self.committed: dict[tuple[str, int], tuple[int, int]] = {}
        self.pending: dict[int, dict[tuple[str, int], tuple[int, int]]] = {}

    def add(self, group: str, partition: int, offset: int | None, producer: int = -1) -> None:
        place = len(self.batches)
        value = None if offset is None else commit(offset)
        attributes = TRANSACTIONAL if producer >= 0 else 0
        records = [Rec(key=commit_key(group, partition), value=value)]
        self.batches.append(
            batch(place, records, attributes=attributes, producer_id=producer, producer_epoch=min(producer, 0))
        )
        key = (group, partition)
        if offset is None:
            self.committed.pop(key, None)
            for pending in self.pending.values():
                pending.pop(key, None)
        elif producer < 0:
            self.committed[key] = (offset, place)
        else:
            self.pending.setdefault(producer, {})[key] = (offset, place)

    def end(self, producer: int, *, is_committed: bool) -> None:
        self.batches.append(marker(len(self.batches), producer, commit=is_committed))
        for key, (offset, place) in self.pending.pop(producer, {}).items():
            if is_committed and self.committed.get(key, (0, -1))[1] < place:
                self.committed[key] = (offset, place)

    def expected(self) -> dict[tuple[str, int], tuple[int | None, int | None]]:
        keys = {*self.committed, *itertools.chain.from_iterable(self.pending.values())}
        pending = {
            key: max((place, offset) for of in self.pending.values() for k, (offset, place) in of.items() if k == key)[
                1
            ]
            for key in keys
            if any(key in of for of in self.pending.values())
        }
        return {key: (self.committed.get(key, (None, None))[0], pending.get(key)) for key in keys}


def test_offsets_of_transactions_count_when_they_are_committed(tmp_path: Path) -> None:
    log = OffsetsLog()
    state = 12345
    for _ in range(900):
        state = (state * 1103515245 + 12345) % 2**31
        action, group, partition, producer = state >> 8 & 15, f"g{state >> 12 & 1}", state >> 13 & 3, state >> 15 & 3
        if action < 5:
            log.add(group, partition, state % 1000)
        elif action < 11:
            log.add(group, partition, state % 1000, producer)
        elif action < 13:
            log.add(group, partition, None)
        else:
            log.end(producer, is_committed=action < 15)
        if len(log.batches) % 100 == 0:
            partition_dir = write_partition(
                tmp_path / str(len(log.batches)) / "__consumer_offsets-7", [(0, log.batches)]
            )
            rows = cw.consumer_offsets(partition_dir).to_dicts()
            found = {(row["group"], row["partition"]): (row["offset"], row["pending_offset"]) for row in rows}
            assert found == log.expected()
            assert len(rows) == len(found)
            assert all(row["coordinator_partition"] == 7 and row["lag"] is None for row in rows)
    assert any(pending is not None for _, pending in log.expected().values())


def test_records_that_are_not_decodable_are_rows_with_an_error(tmp_path: Path) -> None:
    records = [
        Rec(key=commit_key("g", 0), value=commit(5)),
        Rec(key=commit_key("g", 1), value=b"\0"),
        Rec(key=commit_key("g", 2), value=struct.pack(">h", 77)),
        Rec(key=b"\0\x63", value=b"x"),
        Rec(key=b"\0\x01\x7f\xff", value=b"x"),
        Rec(key=None, value=b"x"),
        Rec(key=b"", value=None),
    ]
    path = write_partition(tmp_path / "__consumer_offsets-0", [(0, [batch(0, records)])])
    rows = cw.consumer_offsets(path).to_dicts()
    assert [(row["partition"], row["offset"], row["record_offset"], row["error"]) for row in rows] == [
        (0, 5, 0, None),
        (1, None, 1, "Could not read version from value's buffer."),
        (2, None, 2, "Found an unknown record version 77 for 1 type"),
        (None, None, 3, "Found an unknown record type 99"),
        (None, None, 4, rows[4]["error"]),
        (None, None, 5, "the record has no key"),
        (None, None, 6, "Could not read version from key's buffer."),
    ]
    assert "only 0 byte(s) available" in rows[4]["error"]


def test_damage_of_the_log_is_raised_left_out_or_a_row(tmp_path: Path) -> None:
    batches = [batch(n, [Rec(key=commit_key("g", n), value=commit(n))]) for n in range(3)]
    broken = bytearray(batches[1])
    broken[-3] ^= 1
    path = write_partition(tmp_path / "__consumer_offsets-0", [(0, [batches[0], bytes(broken), batches[2]])])
    with pytest.raises(cw.CorruptLogError):
        cw.consumer_offsets(path)
    skipped = cw.consumer_offsets(path, on_damage="skip")
    assert [row["partition"] for row in skipped.to_dicts()] == [0, 2]
    assert [damage.start_offset for damage in skipped.damaged_ranges] == [1]
    reported = cw.consumer_offsets(path, on_damage="report").to_dicts()
    assert [row["partition"] for row in reported] == [0, 2, None]
    assert "is damaged at position" in reported[2]["error"]


def test_transactional_ids_of_a_broker() -> None:
    rows = cw.transactions(DATA).to_dicts()
    assert [(row["transactional_id"], row["producer_id"], row["producer_epoch"], row["state"]) for row in rows] == [
        ("city-0", 3, 1, "CompleteCommit"),
        ("city-1", 4, 2, "CompleteAbort"),
    ]
    assert cw.transactions(DATA, transactional_ids=["city-1"]).to_dicts() == rows[1:]
    # the producer ids in the logs are those of the transactional ids
    used = {
        record.producer_id
        for record in cw.LogDir(DATA)["cities-0"].scan(columns=["producer_id"]).to_arrow().to_pandas().itertuples()
    }
    assert used - {-1} <= {row["producer_id"] for row in rows} | {0, 1, 2}


@pytest.mark.parametrize("case", ["11-transactions", "14-killed-transactions", "21-follower"])
def test_open_transactions_are_those_of_kafkas_producer_state(case: str) -> None:
    partition = corpus.partition(case)
    opened = corpus.lines(partition.expected / "open.jsonl.gz")[0]
    expected = {
        producer["producerId"]: producer["currentTxnFirstOffset"]
        for producer in opened["producers"]
        if producer["currentTxnFirstOffset"] is not None
    }
    assert opened["logEndOffset"] == cw.Log(partition.path).log_end_offset
    rows = cw.open_transactions(partition.path).to_dicts()
    assert {row["producer_id"]: row["first_offset"] for row in rows} == expected
    assert expected


def test_every_row_is_json() -> None:
    for table in (cw.consumer_groups(DATA), cw.metadata(DATA).brokers, cw.metadata_records(DATA)):
        rows = json.loads(json.dumps(table.to_dicts()))
        assert len(rows) == len(table) > 0
        assert list(rows[0]) == table.column_names
        assert table.to_arrow().column_names == table.column_names
    for row in cw.metadata_records(DATA).to_dicts():
        assert isinstance(json.loads(row["data"]), dict)
