"""The tables of internal topics where the logs are damaged or incomplete."""

from __future__ import annotations

import shutil
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import corpus
import pytest
from batches import CONTROL, GZIP, TRANSACTIONAL, Rec, batch, marker, name, write_partition
from scripts import run, write_script

import cordwood as cw

DATA = corpus.GOLDEN / "16-data-dir"
METADATA = DATA / "__cluster_metadata-0"
LOG = (METADATA / name(0)).read_bytes()
TABLES = (
    *("topics", "partitions", "brokers", "controllers", "configs", "features", "acls", "client_quotas"),
    *("scram_credentials", "delegation_tokens", "producer_ids", "errors"),
)


def batches_of(log: bytes) -> list[tuple[int, bytes]]:
    """The batches of a log with their base offsets."""
    found = []
    position = 0
    while position < len(log):
        base, length = struct.unpack_from(">qi", log, position)
        found.append((base, log[position : position + 12 + length]))
        position += 12 + length
    return found


def broken(raw: bytes, place: int = -3) -> bytes:
    damaged = bytearray(raw)
    damaged[place] ^= 1
    return bytes(damaged)


def topic_batch() -> int:
    """The place of the batch with the record of the first topic."""
    offset = next(row["offset"] for row in cw.metadata_records(METADATA).to_dicts() if row["type"] == "TOPIC_RECORD")
    return max(at for at, (base, _) in enumerate(batches_of(LOG)) if base <= offset)


def metadata_log(path: Path, raws: Sequence[bytes], base: int = 0, snapshot: str | None = None) -> Path:
    partition = write_partition(path / "__cluster_metadata-0", [(base, raws)])
    if snapshot is not None:
        shutil.copy(METADATA / snapshot, partition)
    return partition


@pytest.mark.parametrize("on_damage", ["skip", "report"])
def test_damage_of_the_metadata_is_told_with_every_table(tmp_path: Path, on_damage: Literal["skip", "report"]) -> None:
    at, batches = topic_batch(), batches_of(LOG)
    raws = [broken(raw) if place == at else raw for place, (_, raw) in enumerate(batches)]
    found = cw.metadata(metadata_log(tmp_path, raws), on_damage=on_damage)
    for table in TABLES:
        assert [damage.start_offset for damage in getattr(found, table).damaged_ranges] == [batches[at][0]], table
    first = found.errors.to_dicts()[0]
    assert first["offset"] == batches[at][0]
    assert "is damaged at position" in first["error"]
    # one row for it: what it covers is not missing in addition
    assert not any("missing" in row["error"] for row in found.errors.to_dicts())


def test_offsets_that_are_missing_in_the_metadata_are_errors(tmp_path: Path) -> None:
    at, batches = topic_batch(), batches_of(LOG)
    start, end = batches[at][0], batches[at + 1][0]
    gap = metadata_log(tmp_path / "gap", [raw for place, (_, raw) in enumerate(batches) if place != at])
    row = {"offset": start, "error": f"offsets {start} to {end - 1} are missing in the log"}
    assert row in cw.metadata(gap).errors.to_dicts()
    assert next(row for row in cw.metadata_records(gap).to_dicts() if row["error"])["offset"] == start
    assert cw.metadata(gap).offset == 98
    # a log that begins after its snapshot, and one without a snapshot
    later = [(base, raw) for base, raw in batches if base >= 41]
    raws, base = [raw for _, raw in later], later[0][0]
    after = metadata_log(tmp_path / "after", raws, base, "00000000000000000038-0000000001.checkpoint")
    assert cw.metadata(after).errors.to_dicts()[0]["offset"] == 38
    alone = metadata_log(tmp_path / "alone", raws, base)
    assert cw.metadata(alone).errors.to_dicts()[0] == {
        "offset": 0,
        "error": f"offsets 0 to {base - 1} are missing in the log",
    }
    assert not any(row["error"] for row in cw.metadata_records(alone).to_dicts())
    # a snapshot makes up for what is missing below its end
    whole = metadata_log(tmp_path / "whole", raws, base, "00000000000000000068-0000000001.checkpoint")
    assert not len(cw.metadata(whole).errors)


def uvarint(number: int) -> bytes:
    out = b""
    while number > 127:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


def metadata_record(kind: int, body: bytes) -> Rec:
    return Rec(value=b"\1" + uvarint(kind) + b"\0" + body)


def topic(letter: str) -> Rec:
    return metadata_record(2, b"\2" + letter.encode() + letter.encode() * 16 + b"\0")


BEGIN, END, ABORT = (metadata_record(kind, body) for kind, body in ((23, b"\0"), (24, b"\0"), (25, b"\0")))
NO_RECORD = Rec(value=b"\1\x7f\0")


@pytest.mark.parametrize(
    ("records", "topics", "errors"),
    [
        ([topic("a"), BEGIN, topic("b"), END], "ab", []),
        ([topic("a"), BEGIN, topic("b"), ABORT], "a", []),
        # open at the end of the log, as beside a running controller
        ([topic("a"), BEGIN, topic("b")], "a", []),
        ([topic("a"), END], "a", [(1, "a transaction ends that has not begun")]),
        ([topic("a"), ABORT], "a", [(1, "a transaction ends that has not begun")]),
        ([BEGIN, END, ABORT], "", [(2, "a transaction ends that has not begun")]),
        (
            [BEGIN, topic("a"), BEGIN, topic("b"), END],
            "ab",
            [(2, "a transaction begins within the one that began at offset 0")],
        ),
        # what has no end that can be read is not applied, and not silent
        (
            [BEGIN, topic("a"), NO_RECORD, topic("b")],
            "",
            [(2, None), (0, "the transaction that began here has no end: its 2 records are left out")],
        ),
    ],
)
def test_metadata_transactions_out_of_order_are_errors(
    tmp_path: Path, records: list[Rec], topics: str, errors: list[tuple[int, str | None]]
) -> None:
    found = cw.metadata(metadata_log(tmp_path, [batch(at, [record]) for at, record in enumerate(records)]))
    assert "".join(row["topic"] for row in found.topics.to_dicts()) == topics
    rows = found.errors.to_dicts()
    assert [row["offset"] for row in rows] == [offset for offset, _ in errors]
    assert all(text in {None, row["error"]} for row, (_, text) in zip(rows, errors, strict=True))


def test_errors_beyond_a_thousand_are_counted(tmp_path: Path) -> None:
    metadata = metadata_log(tmp_path, [batch(at, [NO_RECORD]) for at in range(1003)])
    offsets = write_partition(
        tmp_path / "__consumer_offsets-0", [(0, [batch(0, [Rec(key=None, value=b"x") for _ in range(1003)])])]
    )
    states = write_partition(
        tmp_path / "__transaction_state-0", [(0, [batch(0, [Rec(key=None, value=b"x") for _ in range(1003)])])]
    )
    for table, place in (
        (cw.metadata(metadata).errors, "offset"),
        (cw.consumer_offsets(offsets), "record_offset"),
        (cw.consumer_groups(offsets), "record_offset"),
        (cw.transactions(states), "record_offset"),
    ):
        rows = table.to_dicts()
        assert [row[place] for row in rows] == [*range(1000), None]
        assert rows[-1]["error"] == "3 more errors"


def text(value: str) -> bytes:
    return struct.pack(">h", len(value)) + value.encode()


def commit(place: int, partition: int, offset: int, producer: int | None = None) -> bytes:
    """A batch with a commit of group "g"."""
    key = struct.pack(">h", 1) + text("g") + text("orders") + struct.pack(">i", partition)
    value = struct.pack(">hqi", 3, offset, -1) + text("m") + struct.pack(">q", 1000 + offset)
    records = [Rec(key=key, value=value)]
    if producer is None:
        return batch(place, records)
    return batch(place, records, attributes=TRANSACTIONAL, producer_id=producer, producer_epoch=0)


UNKNOWN = "a transaction of producer 7 has no known outcome: its marker may be in damage after it"


@pytest.mark.parametrize(
    ("raws", "rows"),
    [
        # the next transaction's marker does not commit what the lost marker may have aborted
        (
            [commit(0, 0, 100, 7), broken(marker(1, 7, commit=False)), commit(2, 1, 5, 7), marker(3, 7, commit=True)],
            [(0, None, 100, UNKNOWN), (1, 5, None, None)],
        ),
        (
            [commit(0, 0, 100, 7), broken(marker(1, 7, commit=True)), commit(2, 1, 5, 7), marker(3, 7, commit=False)],
            [(0, None, 100, UNKNOWN)],
        ),
        # the one before it may have been replaced
        (
            [commit(0, 0, 1), commit(1, 0, 100, 7), broken(marker(2, 7, commit=True)), commit(3, 1, 2)],
            [(0, 1, 100, UNKNOWN), (1, 2, None, None)],
        ),
        # an offset that is committed after it counts whatever became of it
        (
            [commit(0, 0, 100, 7), broken(marker(1, 7, commit=True)), commit(2, 0, 9)],
            [(0, 9, None, None)],
        ),
        (
            [commit(0, 0, 100, 7), broken(marker(1, 7, commit=True)), commit(2, 0, 9, 7), marker(3, 7, commit=True)],
            [(0, 9, None, None)],
        ),
        # a transaction that begins after the damage, and one that ends before it
        (
            [broken(commit(0, 0, 1)), commit(1, 0, 100, 7), marker(2, 7, commit=True), commit(3, 1, 4, 7)],
            [(0, 100, None, None), (1, None, 4, None)],
        ),
        (
            [commit(0, 0, 100, 7), marker(1, 7, commit=True), broken(commit(2, 1, 1)), commit(3, 2, 1)],
            [(0, 100, None, None), (2, 1, None, None)],
        ),
    ],
)
def test_offsets_of_a_transaction_whose_marker_may_be_lost_are_uncertain(
    tmp_path: Path, raws: list[bytes], rows: list[tuple[int, int | None, int | None, str | None]]
) -> None:
    path = write_partition(tmp_path / "__consumer_offsets-0", [(0, raws)])
    for on_damage in ("skip", "report"):
        found = cw.consumer_offsets(path, on_damage=on_damage)
        shown = [row for row in found.to_dicts() if row["group"] is not None]
        assert [(row["partition"], row["offset"], row["pending_offset"], row["error"]) for row in shown] == rows
        assert len(found.damaged_ranges) == 1
        assert len(found) - len(shown) == (on_damage == "report")
        assert [row["group"] for row in cw.consumer_groups(path, on_damage=on_damage).to_dicts()][:1] == ["g"]


def test_transactions_whose_marker_may_be_lost_may_have_ended(tmp_path: Path) -> None:
    def data(place: int, producer: int) -> bytes:
        return batch(place, [Rec(value=b"x")], attributes=TRANSACTIONAL, producer_id=producer, producer_epoch=0)

    # the walk of the headers sees a magic that does not exist
    lost = broken(marker(2, 7, commit=True), 16)
    path = write_partition(tmp_path / "orders-0", [(0, [data(0, 7), data(1, 8), lost, data(3, 8), data(4, 9)])])
    error = "it may have ended: its marker may be in the damage at offset 2"
    expected = [(0, error), (1, error), (4, None)]
    skipped = cw.open_transactions(path, on_damage="skip")
    assert [(row["first_offset"], row["error"]) for row in skipped.to_dicts()] == expected
    *opened, damage = cw.open_transactions(path, on_damage="report").to_dicts()
    assert [(row["first_offset"], row["error"]) for row in opened] == expected
    assert (damage["topic"], damage["first_offset"], damage["producer_id"]) == ("orders", 2, None)
    assert "is damaged at position" in damage["error"]
    ended = write_partition(tmp_path / "ended-0", [(0, [data(0, 7), marker(1, 7, commit=True), lost, data(3, 8)])])
    assert [row["error"] for row in cw.open_transactions(ended, on_damage="skip").to_dicts()] == [None]


def test_a_control_record_of_another_type_ends_no_transaction(tmp_path: Path) -> None:
    fields = {"producer_id": 7, "producer_epoch": 0}
    data = batch(0, [Rec(b"x")], attributes=TRANSACTIONAL, base_sequence=0, **fields)
    for number, key in enumerate((bytes([0, 0, 0, 77]), bytes([0, 0]))):
        other = batch(1, [Rec(bytes(6), key)], attributes=CONTROL | TRANSACTIONAL, **fields)
        path = write_partition(tmp_path / f"orders-{number}", [(0, [data, other, batch(2, [Rec(b"y")])])])
        (row,) = cw.open_transactions(path).to_dicts()
        assert (row["producer_id"], row["first_offset"], row["records"], row["records_behind"]) == (7, 0, 1, 2)
        assert ("may have ended" in (row["error"] or "")) == (number == 1)
    assert cw.Log(tmp_path / "orders-0").last_stable_offset == 0


def test_a_log_that_is_lost_hides_nothing_else(tmp_path: Path) -> None:
    data = tmp_path / "data"
    shutil.copytree(DATA, data)
    for file in (data / "cities-0").glob("*.log"):
        file.unlink()
    # its lag is not known, and all others are as before
    expected = cw.consumer_offsets(DATA).to_dicts()
    rows = cw.consumer_offsets(data).to_dicts()
    assert [row["offset"] for row in rows] == [row["offset"] for row in expected]
    for row, whole in zip(rows, expected, strict=True):
        if (row["topic"], row["partition"]) == ("cities", 0):
            assert (row["lag"], row["log_end_offset"]) == (None, None)
            assert str(data / "cities-0") in row["error"]
            assert row["error"].startswith("the lag is not known: ")
        else:
            assert row == whole
    for damage in ("raise", "skip", "report"):
        [lost] = cw.open_transactions(data, on_damage=damage).to_dicts()  # type: ignore[arg-type]
        assert str(data / "cities-0") in lost["error"]
        assert (lost["topic"], lost["partition"], lost["producer_id"]) == ("cities", 0, None)
    # a partition of the internal topic itself
    shutil.copytree(data / "__consumer_offsets-0", data / "__consumer_offsets-1")
    for file in (data / "__consumer_offsets-1").glob("*.log"):
        file.unlink()
    for read in (cw.consumer_offsets, cw.consumer_groups):
        with pytest.raises(cw.CorruptLogError):
            read(data)
        *whole_rows, error = read(data, on_damage="skip").to_dicts()
        assert whole_rows == read(data / "__consumer_offsets-0").to_dicts()
        assert str(data / "__consumer_offsets-1") in error["error"]


MANY_VALUES = """
import sys
from scripts import run, write_script

import cordwood as cw

def peak():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM:")) >> 10

before = peak()
log, way = sys.argv[1:]
if way == "dump":
    found = cw.dump(log, cluster_metadata_decoder=True).text().splitlines()[-1]
else:
    found = cw.metadata(log).errors.to_dicts()
print(peak() - before)
print(found)
"""


@pytest.mark.parametrize("way", ["dump", "metadata"])
def test_a_record_of_many_small_values_does_not_fill_the_memory(
    tmp_path: Path, script_environment: dict[str, str], way: str
) -> None:
    def quota(entities: int) -> Rec:
        """A quota whose entities have a byte each of type and name, and of tagged fields."""
        return metadata_record(14, uvarint(entities + 1) + b"\1\0\0" * entities + b"\2k" + bytes(8) + b"\0\0")

    # 12 MB of three-byte structures, which compress to 12 KB
    path = metadata_log(tmp_path, [batch(0, [quota(4_000_000)], codec=GZIP)])
    assert (path / name(0)).stat().st_size < 20_000
    log = path / name(0) if way == "dump" else path
    grown, found = run(write_script(tmp_path, MANY_VALUES), log, way, env=script_environment).stdout.split("\n", 1)
    assert "the message has more than 1000000 values" in found
    assert int(grown) < 200
    # one that a broker could have written
    small = metadata_log(tmp_path / "small", [batch(0, [quota(100_000)], codec=GZIP)])
    assert not len(cw.metadata(small).errors)
    assert len(cw.metadata(small).client_quotas) == 1
