"""Records above the last offset of their batch: each way to read a part, beside a list of all records."""

from __future__ import annotations

import gzip
import itertools
import json
import random
import struct
import typing
import zlib
from pathlib import Path

import batches
import pyarrow as pa
import pytest
from batches import Rec
from commands import cordwood

import cordwood as cw


class Row(typing.NamedTuple):
    """A record, and the offset at which it counts in ranges."""

    place: int
    offset: int
    key: bytes
    value: bytes


def odd_log(partition: Path, seed: int) -> list[Row]:
    """Write a log of several segments with odd and usual batches; return the records that a consumer sees."""
    rng = random.Random(seed)
    partition.mkdir()
    rows: list[Row] = []
    segment, base, raw = 0, 0, b""
    for number in range(rng.randint(2, 12)):
        if raw and rng.random() < 0.4:
            (partition / f"{segment:020}.log").write_bytes(raw)
            segment, raw = base, b""
        base += rng.choice([0, 0, 0, 2])
        deltas = rng.choice([(0,), (0, 1, 2), (0, 1, 2), (0, 9), (0, 0, 0), (1, 0), (0, 2, 1)])
        span = rng.randint(1, len(deltas)) if rng.random() < 0.5 else len(deltas)
        records = [
            Rec(b"%d/%d" % (number, n), key=b"k%d" % rng.randint(0, 3), offset_delta=delta)
            for n, delta in enumerate(deltas)
        ]
        raw += batches.batch(base, records, last_offset_delta=span - 1)
        before = -1
        for record, delta in zip(records, deltas, strict=True):
            if delta > before:
                before = delta
                rows.append(Row(base + min(delta, span - 1), base + delta, record.key or b"", record.value or b""))
        base += span
    (partition / f"{segment:020}.log").write_bytes(raw)
    assert cw.Log(partition).log_end_offset == base
    return rows


def values(table: pa.Table) -> list[bytes]:
    found: list[bytes] = table["value"].to_pylist()
    return found


@pytest.mark.parametrize("seed", range(60))
def test_every_part_of_a_log_with_odd_offsets_has_its_records(tmp_path: Path, seed: int) -> None:
    rows = odd_log(tmp_path / "orders-0", seed)
    log = cw.Log(tmp_path / "orders-0")
    everything = [row.value for row in rows]
    assert [record.value for record in log.records()] == everything
    end = log.log_end_offset
    assert [record.offset for record in log.records(end_offset=end + 10)] == [row.offset for row in rows]
    for max_bytes in (1, 100, 200, 500):
        splits = log.plan(max_bytes)
        assert [value for split in splits for value in values(log.scan(split=split).to_arrow())] == everything
    for start, stop in itertools.combinations(range(end + 1), 2):
        expected = [row.value for row in rows if start <= row.place < stop]
        assert [record.value for record in log.records(start_offset=start, end_offset=stop)] == expected
        assert values(log.scan(start_offset=start, end_offset=stop).to_arrow()) == expected
        assert log.scan(start_offset=start, end_offset=stop).count() == len(expected)
    assert values(log.scan(threads=2).to_arrow()) == everything
    assert [record.value for record in log.follow(start_offset=0, timeout=0)] == everything


@pytest.mark.parametrize("seed", range(60))
def test_the_last_records_of_a_log_with_odd_offsets(tmp_path: Path, seed: int) -> None:
    rows = odd_log(tmp_path / "orders-0", seed)
    log = cw.Log(tmp_path / "orders-0")
    for count in range(1, len(rows) + 2):
        expected = [row.value for row in rows[-count:]]
        assert [record.value for record in log.records(last=count)] == expected
        assert values(log.scan(last=count).to_arrow()) == expected
        for key in (b"k0", b"k1"):
            of_key = [row.value for row in rows if row.key == key]
            assert [record.value for record in log.records(last=count, key=key)] == of_key[-count:]
    printed = cordwood("cat", log.path, "--last", "2", "--format", "jsonl")
    assert [json.loads(line)["offset"] for line in printed.stdout.splitlines()] == [row.offset for row in rows[-2:]]


@pytest.mark.parametrize("seed", range(60))
def test_the_latest_record_of_a_key_with_odd_offsets(tmp_path: Path, seed: int) -> None:
    rows = odd_log(tmp_path / "orders-0", seed)
    log = cw.Log(tmp_path / "orders-0")
    for key in {row.key for row in rows}:
        found = log.latest(key)
        assert found is not None
        assert found.value == [row.value for row in rows if row.key == key][-1]
    newest = {row.key: row.value for row in rows}
    assert sorted(values(log.scan(latest=True).to_arrow())) == sorted(newest.values())
    assert log.latest(b"none") is None


def test_follow_returns_the_records_before_damage_and_then_fails(tmp_path: Path) -> None:
    """Also those above the last offset of their batch, which are above the damage."""
    usual = batches.batch(0, [Rec(b"%d" % n) for n in range(3)])
    odd = batches.batch(3, [Rec(b"3"), Rec(b"far", offset_delta=9000)], last_offset_delta=1)
    damaged = bytearray(batches.batch(5, [Rec(b"lost"), Rec(b"lost")]))
    damaged[-3] ^= 1
    partition = tmp_path / "orders-0"
    partition.mkdir()
    after = batches.batch(7, [Rec(b"after")])
    (partition / f"{0:020}.log").write_bytes(usual + odd + bytes(damaged) + after)
    found: list[bytes | None] = []
    with pytest.raises(cw.CorruptLogError):
        found.extend(record.value for record in cw.Log(partition).follow(start_offset=0, timeout=0))
    assert found == [b"0", b"1", b"2", b"3", b"far"]


def message(offset: int, value: bytes, attributes: int = 0) -> bytes:
    body = struct.pack(">bbqii", 1, attributes, 1700000000000, -1, len(value)) + value
    return struct.pack(">qiI", offset, 4 + len(body), zlib.crc32(body)) + body


def test_the_largest_offset_in_a_wrapper_is_carved(tmp_path: Path) -> None:
    wrapper = message(0, gzip.compress(message(2**63 - 1, b"a")), attributes=1)
    image = tmp_path / "disk.img"
    image.write_bytes(bytes(5000) + batches.batch(0, [Rec(b"0")]) + wrapper + batches.batch(7, [Rec(b"7")]))
    report = cw.carve(image)
    assert sum(run.records for run in report.runs) >= 2


@pytest.mark.parametrize("policy", ["torn_tail", "kafka", "salvage"])
@pytest.mark.parametrize("count", [3, 4])
def test_a_batch_with_the_largest_offset_is_no_defect_of_a_repair(tmp_path: Path, policy: str, count: int) -> None:
    path = tmp_path / "orders-0"
    path.mkdir()
    base = 2**63 - 4
    raw = batches.batch(base, [Rec(b"%d" % number) for number in range(count)])
    (path / f"{base:020}.log").write_bytes(raw)
    try:
        plan = cw.repair(path, policy=policy)
    except cw.CorruptLogError:
        return
    assert plan.kept_batches + len(plan.lost_ranges) >= 1
