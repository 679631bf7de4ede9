"""Batches with right checksums that repeat offsets, as a leader has written them: consumers pass over them."""

from __future__ import annotations

import contextlib
import gzip
import itertools
import struct
from pathlib import Path

import batches
import pytest
from batches import Rec
from interop.odd_files import message

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


def wrapper(base: int, count: int, magic: int) -> bytes:
    """Build a compressed entry of v0 or v1."""
    first = 0 if magic else base
    inner = b"".join(message(first + n, b"%d" % (base + n), magic=magic, timestamp=NOW) for n in range(count))
    return message(base + count - 1, gzip.compress(inner, mtime=0), magic=magic, attributes=1, timestamp=NOW)


NOW = 1_700_000_000_000


def over(start: int, end: int) -> bytes:
    """Build a batch whose records below 40 are repeated."""
    values = [b"again %d" % offset if offset < 40 else b"first %d" % offset for offset in range(start, end)]
    return batches.batch(start, [Rec(value, key=b"k") for value in values])


def in_epoch(raw: bytes, epoch: int) -> bytes:
    """Give batches a leader epoch, which is in no checksum."""
    changed, start = bytearray(raw), 0
    while start < len(raw):
        struct.pack_into(">i", changed, start + 12, epoch)
        start += 12 + struct.unpack_from(">i", raw, start + 8)[0]
    return bytes(changed)


AGAIN = run(20, 40, name="again")
LOGS = {
    "inside a segment": {0: run(0, 40) + AGAIN + run(40, 70)},
    "before a roll": {0: run(0, 40) + AGAIN, 40: run(40, 70)},
    "up to a batch that goes on": {
        0: run(0, 20) + run(20, 40, 20) + run(20, 30, 10, "again") + over(30, 46) + run(46, 70)
    },
    "with a lower leader epoch": {0: in_epoch(run(0, 40), 5) + in_epoch(AGAIN, 3) + in_epoch(run(40, 70), 5)},
    "with a leader epoch that falls": {0: in_epoch(run(0, 40), 5) + in_epoch(AGAIN + run(40, 70), 3)},
    "at the end, with a lower leader epoch": {0: in_epoch(run(0, 70), 5) + in_epoch(run(50, 70, name="again"), 3)},
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
        cw.rebuild_indexes(partition, config=cw.LogConfig(index_interval_bytes=100), dry_run=False)
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
        assert location == log.locate(offset)
        if name not in {"batches of three", "up to a batch that goes on"}:
            assert location.batch_base_offset == offset
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


def codes_with_entries(partition: Path, *entries: tuple[int, int]) -> set[str]:
    index = b"".join(struct.pack(">ii", *entry) for entry in entries)
    (partition / f"{0:020}.index").write_bytes(index)
    return {f.code for f in cw.verify(partition).findings if f.code.startswith("index_entry")}


def test_an_index_entry_of_a_repeated_batch_is_a_warning(tmp_path: Path) -> None:
    """Kafka adds an entry for any batch whose last offset is above that of the entry before, and look-ups use it."""
    raw = run(0, 40) + AGAIN + run(40, 70)
    partition = written(tmp_path / "orders-0", {0: raw})
    first, again = raw.find(batch(39)), raw.find(batch(35, name="again"))
    after = (50, raw.find(batch(50)))
    assert codes_with_entries(partition, (10, raw.find(batch(10))), (35, again), after) == {"index_entry_repeated"}
    assert [record.value for record in cw.Log(partition).records(start_offset=35, limit=1)] == [b"again 35"]
    cw.rebuild_indexes(partition, dry_run=False)
    assert [record.value for record in cw.Log(partition).records(start_offset=35, limit=1)] == [b"first 35"]
    for wrong in ((39, first + 5), (35, again + 3)):
        assert codes_with_entries(partition, wrong, (60, raw.find(batch(60)))) == {"index_entry_wrong"}, wrong


@pytest.mark.parametrize(
    "log",
    [
        pytest.param({0: run(0, 20) + batch(19) + run(20, 30)}, id="one batch"),
        pytest.param({0: run(0, 20) + run(5, 10) + run(20, 30)}, id="ends below the end"),
        pytest.param({0: run(0, 20) + run(10, 20) + run(25, 30)}, id="gap after it"),
        pytest.param({0: run(0, 20) + run(10, 14) + run(15, 20) + run(20, 30)}, id="gap inside it"),
        pytest.param({0: run(0, 40) + run(50, 60) + run(40, 60) + run(60, 70)}, id="batches at a wrong place"),
        pytest.param(
            {0: run(0, 30) + batches.batch(30, [Rec(b"30")], last_offset_delta=9) + run(31, 40) + run(40, 45)},
            id="records that were missing",
        ),
    ],
)
def test_other_batches_below_the_end_are_damage(tmp_path: Path, log: dict[int, bytes]) -> None:
    partition = written(tmp_path / "orders-0", log)
    with pytest.raises(cw.CorruptLogError):
        list(cw.Log(partition).records())


@pytest.mark.long
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


@pytest.mark.long
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


def test_two_flipped_offsets_do_not_hide_the_batches_after_them(tmp_path: Path) -> None:
    raw = bytearray(run(0, 150))
    for offset in (5, 6):
        at = raw.find(batch(offset))
        raw[at : at + 8] = (offset + 64).to_bytes(8, "big")
    with pytest.raises(cw.CorruptLogError):
        list(cw.Log(written(tmp_path / "orders-0", {0: bytes(raw)})).records())


@pytest.mark.long
@pytest.mark.parametrize("bit", range(7))
def test_no_flipped_offset_of_an_old_format_hides_entries(tmp_path: Path, bit: int) -> None:
    """No checksum covers the offset of an entry of v0 or v1, which is the last one of its wrapper."""
    for magic, flipped in itertools.product((0, 1), range(8, 24, 2)):
        built = [wrapper(base, 2, magic) for base in range(0, 200, 2)]
        raw = bytearray(b"".join(built))
        raw[raw.find(built[flipped // 2]) + 7] ^= 1 << bit
        log = cw.Log(written(tmp_path / f"orders-{len(list(tmp_path.iterdir()))}", {0: bytes(raw)}))
        with contextlib.suppress(cw.CorruptLogError):
            assert [record.offset for record in log.records()] == list(range(200))


def test_a_repeated_batch_of_a_transaction_is_not_passed_over(tmp_path: Path) -> None:
    """Kafka replays its marker."""
    data = batches.batch(
        39, [Rec(b"39")], producer_id=7, producer_epoch=0, base_sequence=0, attributes=batches.TRANSACTIONAL
    )
    raw = run(0, 39) + data + run(30, 39, name="again") + batches.marker(39, 7, commit=True) + run(40, 45)
    with pytest.raises(cw.CorruptLogError):
        list(cw.Log(written(tmp_path / "orders-0", {0: raw})).records())


def test_a_batch_before_repeated_ones_that_cannot_be_decoded_is_reported(tmp_path: Path) -> None:
    broken = batches.batch(39, [Rec(b"first 39")], codec=batches.GZIP, payload=b"no gzip stream")
    log = cw.Log(written(tmp_path / "orders-0", {0: run(0, 39) + broken + AGAIN + run(40, 50)}))
    with pytest.raises(cw.CorruptLogError):
        list(log.records())
    scan = log.scan(on_damage="skip")
    assert scan.to_arrow()["offset"].to_pylist() == [offset for offset in range(50) if offset != 39]
    assert [(lost.start_offset, lost.end_offset) for lost in scan.damaged_ranges] == [(39, 40)]


@pytest.mark.parametrize("byte", [8, 9, 10, 11])
def test_a_damaged_length_before_repeated_batches_cuts_nothing(tmp_path: Path, byte: int) -> None:
    raw = bytearray(run(0, 40) + AGAIN + run(40, 60))
    raw[raw.find(batch(39)) + byte] ^= 2
    partition = written(tmp_path / "orders-0", {0: bytes(raw)})
    with pytest.raises(cw.CorruptLogError):
        list(cw.Log(partition).records())
    offsets = [record.offset for record in cw.Log(partition).records(on_damage="skip")]
    assert [offset for offset in offsets if offset != 39] == [offset for offset in range(60) if offset != 39]
    with pytest.raises(cw.CorruptLogError):
        cw.LogWriter(partition)
    assert (partition / f"{0:020}.log").read_bytes() == raw
