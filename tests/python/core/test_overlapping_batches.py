"""Batches with right checksums that begin below the end of those before them: read as consumers do, and never cut."""

from __future__ import annotations

import itertools
import random
from pathlib import Path

import batches
import pytest
from batches import Rec

import cordwood as cw


def batch(base: int, count: int) -> bytes:
    return batches.batch(base, [Rec(b"%d+%d" % (base, n), key=b"k") for n in range(count)])


def written(partition: Path, segments: dict[int, bytes]) -> Path:
    partition.mkdir()
    for base, raw in segments.items():
        (partition / f"{base:020}.log").write_bytes(raw)
    return partition


def overlapping(partition: Path, seed: int) -> list[tuple[int, bytes]]:
    """Write a log; return the offsets and values that a consumer gets."""
    rng = random.Random(seed)
    segments: dict[int, bytes] = {}
    rows: list[tuple[int, bytes]] = []
    segment, end = 0, 0
    raw = batch(0, 5)
    rows, end = [(n, b"0+%d" % n) for n in range(5)], 5
    lowest = 0
    for _ in range(rng.randint(1, 6)):
        if rng.random() < 0.3:
            segments[segment] = raw
            segment, raw, lowest = end, b"", end
        below = min(rng.choice([0, 0, 1, 3, 5]), end - lowest)
        base, count = end - below, below + rng.randint(1, 6)
        raw += batch(base, count)
        rows += [(base + n, b"%d+%d" % (base, n)) for n in range(below, count)]
        end = base + count
    raw += batch(end, 2)
    rows += [(end + n, b"%d+%d" % (end, n)) for n in range(2)]
    segments[segment] = raw
    written(partition, segments)
    return rows


@pytest.mark.parametrize("seed", range(40))
def test_a_log_with_overlapping_batches_has_the_records_of_a_consumer(tmp_path: Path, seed: int) -> None:
    rows = overlapping(tmp_path / "orders-0", seed)
    if seed % 2:
        cw.rebuild_indexes(tmp_path / "orders-0", config=cw.LogConfig(index_interval_bytes=100), dry_run=False)
    log = cw.Log(tmp_path / "orders-0")
    end = rows[-1][0] + 1
    assert log.log_end_offset == end
    assert [(record.offset, record.value) for record in log.records()] == rows
    assert log.scan().to_arrow()["value"].to_pylist() == [value for _, value in rows]
    assert log.scan(threads=2).count() == log.scan(check_crcs=False).to_arrow().num_rows == len(rows)
    for max_bytes in (1, 150, 400):
        splits = log.plan(max_bytes)
        offsets = [n for split in splits for n in log.scan(split=split).to_arrow()["offset"].to_pylist()]
        assert offsets == [offset for offset, _ in rows]
    for start, stop in itertools.combinations(range(end + 1), 2):
        wanted = [value for offset, value in rows if start <= offset < stop]
        assert [record.value for record in log.records(start_offset=start, end_offset=stop)] == wanted
        assert log.scan(start_offset=start, end_offset=stop).count() == len(wanted)
    assert [record.offset for record in log.follow(start_offset=0, timeout=0)] == [offset for offset, _ in rows]
    for count in range(1, len(rows)):
        assert [record.value for record in log.records(last=count)] == [value for _, value in rows[-count:]]
    assert not [finding for finding in cw.verify(log.path, deep=True).findings if finding.severity == "error"]


@pytest.mark.parametrize("last", [batch(7, 20), batch(3, 20)])
def test_a_last_batch_that_begins_below_the_end_is_read_and_kept(tmp_path: Path, last: bytes) -> None:
    partition = written(tmp_path / "orders-0", {0: batch(0, 5) + batch(5, 5) + last})
    raw = (partition / f"{0:020}.log").read_bytes()
    end = 27 if last == batch(7, 20) else 23
    log = cw.Log(partition)
    assert [record.offset for record in log.records()] == list(range(end))
    assert cw.copy(partition, tmp_path / "copy").end_offset == end
    assert not cw.repair(partition, policy="salvage").lost_ranges
    assert {finding.code for finding in cw.verify(partition).findings if finding.severity == "warning"} >= {
        "overlapping_batch"
    }
    with cw.LogWriter(partition) as writer:
        assert writer.append(b"next").first_offset == end
    assert (partition / f"{0:020}.log").read_bytes().startswith(raw)


@pytest.mark.parametrize("bit", [1, 2, 3])
def test_a_flipped_bit_of_the_last_base_offset_is_an_error_and_nothing_is_cut(tmp_path: Path, bit: int) -> None:
    moved = bytearray(batch(30, 20))
    moved[7] ^= 1 << bit
    partition = written(tmp_path / "orders-0", {0: batch(0, 30) + bytes(moved)})
    raw = (partition / f"{0:020}.log").read_bytes()
    with pytest.raises(cw.CorruptLogError):
        list(cw.Log(partition).records())
    with pytest.raises(cw.CorruptLogError):
        cw.LogWriter(partition)
    assert (partition / f"{0:020}.log").read_bytes() == raw


def test_a_last_segment_with_the_name_of_another_is_not_cut(tmp_path: Path) -> None:
    partition = written(tmp_path / "orders-0", {0: batch(0, 5), 20: batch(5, 5)})
    with pytest.raises(cw.CorruptLogError):
        cw.LogWriter(partition)
    assert (partition / f"{20:020}.log").read_bytes() == batch(5, 5)


def test_a_last_batch_with_a_negative_base_offset_is_not_cut(tmp_path: Path) -> None:
    negative = (-5).to_bytes(8, "big", signed=True) + batch(5, 5)[8:]
    partition = written(tmp_path / "orders-0", {0: batch(0, 5) + negative})
    with pytest.raises(cw.CorruptLogError):
        list(cw.Log(partition).records())
    with pytest.raises(cw.CorruptLogError):
        cw.LogWriter(partition)
    assert (partition / f"{0:020}.log").read_bytes() == batch(0, 5) + negative


def test_a_compaction_refuses_overlaps(tmp_path: Path) -> None:
    partition = written(tmp_path / "orders-0", {0: batch(0, 5) + batch(3, 4), 7: batch(7, 2)})
    before = {path.name: path.read_bytes() for path in partition.glob("*.log")}
    config = cw.LogConfig(cleanup_policy="compact", min_cleanable_dirty_ratio=0.0)
    with (
        cw.LogWriter(partition, config=config) as writer,
        pytest.raises(cw.UnsupportedFormatError, match="starts above offset 4"),
    ):
        writer.compact()
    assert {path.name: path.read_bytes() for path in partition.glob("*.log")} == before
