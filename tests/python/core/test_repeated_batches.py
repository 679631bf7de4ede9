"""Batches with right checksums that repeat offsets, as a leader has written them: consumers pass over them."""

from __future__ import annotations

import itertools
from pathlib import Path

import batches
import pytest
from batches import Rec

import cordwood as cw


def batch(base: int, count: int = 1, name: str = "first") -> bytes:
    return batches.batch(base, [Rec(b"%s %d" % (name.encode(), base + n), key=b"k") for n in range(count)])


def written(partition: Path, segments: dict[int, bytes]) -> Path:
    partition.mkdir()
    for base, raw in segments.items():
        (partition / f"{base:020}.log").write_bytes(raw)
    return partition


def run(start: int, end: int, step: int = 1, name: str = "first") -> bytes:
    return b"".join(batch(base, min(step, end - base), name) for base in range(start, end, step))


AGAIN = run(20, 40, name="again")
LOGS = {
    "inside a segment": {0: run(0, 40) + AGAIN + run(40, 70)},
    "before a roll": {0: run(0, 40) + AGAIN, 40: run(40, 70)},
    "at the end": {0: run(0, 70) + run(50, 70, name="again")},
    "batches of three": {0: run(0, 39, 3) + run(21, 39, 3, "again") + run(39, 70, 3)},
    "in the second segment": {0: run(0, 10), 10: run(10, 40) + AGAIN + run(40, 70)},
    "twice": {0: run(0, 40) + AGAIN + run(40, 70) + run(60, 70, name="again")},
    "before a torn batch": {0: run(0, 70) + run(50, 70, name="again") + batch(70, 5)[:-9]},
}


@pytest.mark.parametrize("is_indexed", [False, True])
@pytest.mark.parametrize("name", LOGS)
def test_a_log_with_repeated_batches_has_the_records_of_a_consumer(tmp_path: Path, name: str, is_indexed: bool) -> None:
    partition = written(tmp_path / "orders-0", LOGS[name])
    raw = {path.name: path.read_bytes() for path in partition.glob("*.log")}
    values = [b"first %d" % offset for offset in range(70)]
    if is_indexed:
        cw.rebuild_indexes(partition, config=cw.LogConfig(index_interval_bytes=100))
    log = cw.Log(partition)
    assert log.log_end_offset == 70
    assert [record.value for record in log.records()] == values
    for options in ({}, {"threads": 2}, {"check_crcs": False}, {"isolation_level": "read_committed"}):
        assert log.scan(**options).to_arrow()["value"].to_pylist() == values
    assert log.scan().count() == 70
    for max_bytes in (1, 500):
        splits = log.plan(max_bytes)
        assert [v for split in splits for v in log.scan(split=split).to_arrow()["value"].to_pylist()] == values
    for start, end in itertools.combinations(range(0, 71, 5), 2):
        assert [r.value for r in log.records(start_offset=start, end_offset=end)] == values[start:end]
    for offset in range(70):
        location = cw.Log(partition).locate(offset)
        base = offset - offset % (3 if name == "batches of three" and offset != 69 else 1)
        assert (location.batch_base_offset, log.locate(offset)) == (base, location)
    assert [record.value for record in log.records(last=25)] == values[-25:]
    assert [record.value for record in log.follow(start_offset=0, timeout=0)] == values
    findings = cw.verify(partition, deep=True).findings
    assert "repeated_batches" in {finding.code for finding in findings}
    if name != "before a torn batch":
        assert not [finding for finding in findings if finding.severity == "error"]
        for policy in ("torn_tail", "salvage", "kafka"):
            assert not cw.repair(partition, policy=policy).lost_ranges
    report = cw.copy(partition, tmp_path / "copy")
    assert report.end_offset == 70
    assert [record.value for record in cw.Log(tmp_path / "copy").records()] == values
    assert "repeated_batches" not in {finding.code for finding in cw.verify(tmp_path / "copy").findings}
    with cw.LogWriter(partition, config=cw.LogConfig(cleanup_policy="compact")) as writer:
        writer.roll()
        with pytest.raises(cw.UnsupportedFormatError):
            writer.compact()
        assert writer.append(b"next", key=b"k").first_offset == 70
    for file, content in raw.items():
        whole = content[: content.rfind(batch(70, 5)[:20])] if name == "before a torn batch" else content
        assert (partition / file).read_bytes().startswith(whole)
    assert [record.value for record in cw.Log(partition).records()] == [*values, b"next"]


@pytest.mark.parametrize(
    "log",
    [
        pytest.param({0: run(0, 20) + batch(19) + run(20, 30)}, id="one batch"),
        pytest.param({0: run(0, 20) + run(5, 10) + run(20, 30)}, id="ends below the end"),
        pytest.param({0: run(0, 20) + run(10, 20) + run(25, 30)}, id="gap after it"),
        pytest.param({0: run(0, 20) + run(10, 14) + run(15, 20) + run(20, 30)}, id="gap inside it"),
    ],
)
def test_other_batches_below_the_end_are_damage(tmp_path: Path, log: dict[int, bytes]) -> None:
    partition = written(tmp_path / "orders-0", log)
    with pytest.raises(cw.CorruptLogError):
        list(cw.Log(partition).records())


@pytest.mark.parametrize("bit", range(7))
def test_no_flipped_bit_of_an_offset_makes_batches_repeated(tmp_path: Path, bit: int) -> None:
    """A batch whose base offset rises lets those after it seem to repeat offsets up to it."""
    for flipped in range(60):
        raw = bytearray(run(0, 150))
        size = len(batch(0))
        at = raw.find(batch(flipped))
        assert at >= flipped * size
        raw[at + 7] ^= 1 << bit
        partition = written(tmp_path / f"orders-{flipped}", {0: bytes(raw)})
        with pytest.raises(cw.CorruptLogError):
            list(cw.Log(partition).records())
        offsets = [record.offset for record in cw.Log(partition).records(on_damage="skip")]
        assert offsets == [offset for offset in range(150) if offset != flipped]


@pytest.mark.parametrize("bit", range(8))
def test_no_flipped_bit_of_a_last_offset_makes_batches_repeated(tmp_path: Path, bit: int) -> None:
    """Also for a reader that reads headers only, such as a look-up."""
    for flipped in range(0, 60, 3):
        raw = bytearray(run(0, 300, 3))
        at = raw.find(batch(flipped, 3))
        raw[at + 26] ^= 1 << bit
        partition = written(tmp_path / f"orders-{flipped}", {0: bytes(raw)})
        log = cw.Log(partition)
        with pytest.raises(cw.CorruptLogError):
            list(log.records())
        for offset in (*range(flipped), *range(flipped + 3, 300)):
            found = [record.offset for record in log.records(start_offset=offset, limit=1, on_damage="skip")]
            assert found == [offset]
