"""Batches with a right checksum, stored by brokers and read by consumers, with odd counts, offsets or times."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import batches
import pyarrow as pa
import pytest
from batches import Rec
from commands import cordwood
from scripts import Command

import cordwood as cw

GO_ZERO = -62_135_596_800_000


@pytest.fixture
def short_counted(tmp_path: Path) -> Path:
    """Two batches of three records and one offset each; brokers 0.11 to 1.0 derived the base offset from the last."""
    records = [Rec(b"%d" % n, timestamp=1_700_000_000_000) for n in range(3)]
    partition = tmp_path / "orders-0"
    partition.mkdir()
    written = [batches.batch(base, records, last_offset_delta=0) for base in (2, 5)]
    (partition / f"{0:020}.log").write_bytes(b"".join(written))
    return partition


def test_more_records_than_offsets_are_read(short_counted: Path) -> None:
    log = cw.Log(short_counted)
    assert log.log_end_offset == 6
    assert [record.offset for record in log.records()] == [2, 3, 4, 5, 6, 7]
    for on_damage in ("raise", "skip"):
        scan = log.scan(on_damage=on_damage)
        assert scan.to_arrow()["offset"].to_pylist() == [2, 3, 4, 5, 6, 7]
        assert list(scan.damaged_ranges) == []
    splits = log.plan(1)
    assert [n for split in splits for n in log.scan(split=split).to_arrow()["offset"].to_pylist()] == list(range(2, 8))


def test_offsets_that_records_beyond_those_of_their_batch_have_are_not_missing(short_counted: Path) -> None:
    log = cw.Log(short_counted)
    scan = log.scan()
    assert scan.to_arrow().num_rows == 6
    assert scan.stats.lost_gaps == 0
    assert not [warning for warning in log.warnings if "missing" in warning]


def test_more_records_than_offsets_are_a_warning_of_verify(short_counted: Path) -> None:
    found = {(finding.code, finding.severity) for finding in cw.verify(short_counted, deep=True).findings}
    assert ("offsets_out_of_place", "warning") in found
    assert "error" not in {severity for _, severity in found}


def test_a_writer_and_repair_keep_more_records_than_offsets(short_counted: Path) -> None:
    before = next(short_counted.glob("*.log")).read_bytes()
    assert cw.LogWriter.plan_recovery(short_counted).log_end_offset == 6
    with cw.LogWriter(short_counted) as writer:
        assert writer.log_end_offset == 6
        assert writer.append(b"next", timestamp=1_700_000_000_001).first_offset == 6
    after = next(short_counted.glob("*.log")).read_bytes()
    assert after.startswith(before)
    assert [record.value for record in cw.Log(short_counted).records(start_offset=6)][-1] == b"next"


def test_a_flipped_bit_of_the_count_is_damage(short_counted: Path) -> None:
    path = next(short_counted.glob("*.log"))
    raw = bytearray(path.read_bytes())
    raw[60] ^= 4
    path.write_bytes(raw)
    scan = cw.Log(short_counted).scan(on_damage="skip")
    assert scan.to_arrow()["offset"].to_pylist() == [5, 6, 7]
    assert len(scan.damaged_ranges) == 1


@pytest.mark.parametrize("unit", ["ms", "us"])
def test_times_below_minus_one_are_values(tmp_path: Path, unit: str) -> None:
    partition = tmp_path / "orders-0"
    partition.mkdir()
    times = [GO_ZERO, -2, -1, 0, 5]
    records = [Rec(b"", timestamp=time) for time in times]
    (partition / f"{0:020}.log").write_bytes(batches.batch(0, records, base_timestamp=0))
    log = cw.Log(partition)
    assert [record.timestamp for record in log.records()] == times
    column = log.scan(timestamp_unit=unit).to_arrow()["timestamp"].cast(pa.int64()).to_pylist()
    factor = 1000 if unit == "us" else 1
    assert column == [None if time == -1 else time * factor for time in times]


def test_a_largest_time_of_none_is_right_where_all_are_below_minus_one(tmp_path: Path) -> None:
    partition = tmp_path / "orders-0"
    partition.mkdir()
    written = batches.batch(0, [Rec(b"", timestamp=GO_ZERO)], max_timestamp=-1)
    (partition / f"{0:020}.log").write_bytes(written)
    assert struct.unpack_from(">q", written, 35) == (-1,)
    assert [f.code for f in cw.verify(partition, deep=True).findings if f.severity == "error"] == []


@pytest.mark.parametrize("records_per_batch", [1, 3])
def test_times_below_minus_one_are_times_in_ranges_counts_and_texts(
    tmp_path: Path, records_per_batch: int, command: Command
) -> None:
    partition = tmp_path / "orders-0"
    partition.mkdir()
    times = [GO_ZERO, -2, -1, 0, 5, 86_400_000]
    built = []
    for base in range(0, len(times), records_per_batch):
        some = times[base : base + records_per_batch]
        # as a broker stamps it
        largest = max(-1, *some)
        records = [Rec(b"", timestamp=time) for time in some]
        built.append(batches.batch(base, records, base_timestamp=some[0], max_timestamp=largest))
    (partition / f"{0:020}.log").write_bytes(b"".join(built))
    log = cw.Log(partition)
    for limits in ({}, {"end_time": "1970-01-02"}, {"start_time": 0, "end_time": "1970-01-02"}, {"start_time": 5}):
        low, high = (0 if "start_time" in limits else None), limits.get("end_time") and 86_400_000
        low = limits.get("start_time", low)
        wanted = [
            n
            for n, time in enumerate(times)
            if not limits or (time != -1 and (low is None or time >= low) and (high is None or time < high))
        ]
        assert [record.offset for record in log.records(**limits)] == wanted
        assert log.scan(**limits).to_arrow()["offset"].to_pylist() == wanted
        assert log.scan(**limits).count() == len(wanted)
    _, lines, _ = command("cat", partition, "--format", "jsonl")
    assert [json.loads(line)["timestamp"] for line in lines.splitlines()] == [
        None if time == -1 else time for time in times
    ]
    _, rows, _ = command("cat", partition, "--format", "csv", "--columns", "timestamp")
    assert rows.splitlines()[1:4] == ["0001-01-01 00:00:00.000Z", "1969-12-31 23:59:59.998Z", ""]
    _, counted, _ = command("count", partition, "--by", "day", "--json")
    assert counted.count("0001-01-01") == 1


def written(tmp_path: Path, *raws: bytes) -> Path:
    partition = tmp_path / "orders-0"
    partition.mkdir()
    (partition / f"{0:020}.log").write_bytes(b"".join(raws))
    return partition


@pytest.mark.parametrize("deltas", [(0, 0, 0), (0, 2, 1), (0, 9, 18), (1, 0, 5)], ids=str)
def test_counts_are_of_the_records_that_are_returned(tmp_path: Path, deltas: tuple[int, ...]) -> None:
    records = [Rec(b"%d" % n, offset_delta=delta) for n, delta in enumerate(deltas)]
    odd = batches.batch(3, records, last_offset_delta=2)
    usual = [batches.batch(base, [Rec(b"usual")] * 3) for base in (0, 30)]
    log = cw.Log(written(tmp_path, usual[0], odd, usual[1]))
    expected = len(list(log.records()))
    assert log.scan().count() == expected == log.scan().to_arrow().num_rows
    assert log.scan(start_offset=3, end_offset=6).count() == len(list(log.records(start_offset=3, end_offset=6)))
    counted = cordwood("count", log.path, "--json")
    assert json.loads(counted.stdout)["records"] == expected


def test_counts_of_short_counted_batches_agree(short_counted: Path) -> None:
    log = cw.Log(short_counted)
    assert log.scan().count() == 6
    assert log.scan(start_offset=3).count() == len(list(log.records(start_offset=3)))


@pytest.mark.parametrize(
    ("oddity", "fields"),
    [
        ("leader epoch -2", {"leader_epoch": -2}),
        ("last offset 2", {"last_offset_delta": -1}),
        ("last offset -4", {"last_offset_delta": -7}),
    ],
)
def test_an_odd_header_with_a_right_checksum_is_read_and_kept(
    tmp_path: Path, oddity: str, fields: dict[str, int]
) -> None:
    records = [Rec(b"%d" % n) for n in range(3)]
    partition = written(tmp_path, batches.batch(0, records), batches.batch(3, records, **fields))
    before = next(partition.glob("*.log")).read_bytes()
    assert [record.offset for record in cw.Log(partition).records()] == list(range(6))
    (found,) = (f for f in cw.verify(partition).findings if f.code == "odd_header")
    assert (found.severity, found.found) == ("warning", oddity)
    with cw.LogWriter(partition):
        pass
    assert next(partition.glob("*.log")).read_bytes() == before


def test_a_negative_count_is_kept_and_not_read(tmp_path: Path) -> None:
    records = [Rec(b"%d" % n) for n in range(3)]
    partition = written(tmp_path, batches.batch(0, records), batches.batch(3, records, count=-1))
    before = next(partition.glob("*.log")).read_bytes()
    log = cw.Log(partition)
    assert log.log_end_offset == 6
    for read in (lambda: list(log.records()), lambda: log.scan().to_arrow(), lambda: log.scan().count()):
        with pytest.raises(cw.CorruptLogError, match="a count of records from 0 up"):
            read()
    with cw.LogWriter(partition) as writer:
        assert writer.log_end_offset == 6
    assert next(partition.glob("*.log")).read_bytes() == before


def test_the_payload_of_a_torn_batch_with_an_odd_count_is_no_batch(tmp_path: Path) -> None:
    """Three records and one offset, cut within a value that holds whole batches."""
    value = b"".join(batches.batch(base, [Rec(b"within")]) for base in (1000, 1001))
    torn = batches.batch(1, [Rec(value), Rec(b"x"), Rec(b"y" * 50)], last_offset_delta=0)[:-10]
    log = cw.Log(written(tmp_path, batches.batch(0, [Rec(b"first")]), torn))
    assert log.log_end_offset == 1
    assert log.scan(on_damage="skip").to_arrow()["offset"].to_pylist() == [0]


@pytest.mark.parametrize("deltas", [(0, 0, 0), (2, 1, 0), (0, 9, 18)], ids=str)
def test_a_follower_appends_records_out_of_place(tmp_path: Path, deltas: tuple[int, ...]) -> None:
    records = [Rec(b"%d" % n, offset_delta=delta) for n, delta in enumerate(deltas)]
    for last in (0, 2):
        odd = batches.batch(0, records, last_offset_delta=last)
        with cw.LogWriter(tmp_path / f"orders{last}-0") as writer:
            writer.append_batches(odd, keep_offsets=True)
            assert writer.log_end_offset == last + 1
        assert (tmp_path / f"orders{last}-0" / f"{0:020}.log").read_bytes() == odd


def test_an_odd_batch_above_the_limit_is_too_large_and_kept(tmp_path: Path) -> None:
    usual = [batches.batch(base, [Rec(b"usual")]) for base in (0, 1)]
    odd = batches.batch(2, [Rec(b"x" * 700)] * 3, last_offset_delta=0)
    partition = written(tmp_path, *usual, odd)
    before = next(partition.glob("*.log")).read_bytes()
    log = cw.Log(partition, max_batch_bytes=1000)
    assert log.log_end_offset == 3
    for on_damage in ("raise", "skip"):
        with pytest.raises(cw.BatchTooLargeError):
            list(log.records(on_damage=on_damage))
    with cw.LogWriter(partition, max_batch_bytes=1000) as writer:
        assert writer.log_end_offset == 3
    assert next(partition.glob("*.log")).read_bytes() == before
