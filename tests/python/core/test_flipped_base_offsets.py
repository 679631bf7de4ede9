"""Every bit of every base offset, which no checksum covers, flipped: no reader loses records in silence."""

from __future__ import annotations

import struct
from pathlib import Path

import batches
import pytest
from batches import Rec

import cordwood as cw

# base offset and number of records of each batch
LAYOUTS = {
    "without gaps": [(0, 2), (2, 2), (4, 2), (6, 2), (8, 2), (10, 2)],
    "of unlike sizes": [(100, 5), (105, 4), (109, 1), (110, 2), (112, 8), (120, 1)],
    "with gaps": [(0, 2), (2, 2), (6, 2), (10, 2), (14, 2), (18, 2)],
    "with one gap": [(0, 2), (2, 2), (4, 2), (6, 2), (12, 2), (14, 2)],
}


def values(base: int, count: int) -> list[bytes]:
    return [b"%d" % offset for offset in range(base, base + count)]


def consumed(layout: list[tuple[int, int]], bases: list[int]) -> list[bytes]:
    """Return what a consumer of Kafka gets: it passes over the records below its position."""
    position, got = 0, []
    for (base, count), stored in zip(layout, bases, strict=True):
        for delta, value in enumerate(values(base, count)):
            if stored + delta >= position:
                got.append(value)
                position = stored + delta + 1
    return got


def build(directory: Path, layout: list[tuple[int, int]], *, indexed: bool, later: bool) -> list[int]:
    """Write the log, with an index entry for each batch but the first. Return the positions of the batches."""
    raw = [batches.batch(base, [Rec(value) for value in values(base, count)]) for base, count in layout]
    positions = [sum(map(len, raw[:number])) for number in range(len(raw))]
    first, end = layout[0][0], sum(layout[-1])
    directory.mkdir()
    (directory / f"{first:020}.log").write_bytes(b"".join(raw))
    if indexed:
        entries = [
            struct.pack(">ii", base + count - 1 - first, position)
            for (base, count), position in zip(layout, positions, strict=True)
        ]
        (directory / f"{first:020}.index").write_bytes(b"".join(entries[1:]))
    if later:
        (directory / f"{end:020}.log").write_bytes(batches.batch(end, [Rec(b"later")]))
    return positions


@pytest.mark.long
@pytest.mark.parametrize("later", [False, True], ids=["last segment", "before a segment"])
@pytest.mark.parametrize("indexed", [False, True], ids=["no index", "index"])
@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS.keys())
def test_a_flipped_base_offset_loses_no_record_of_other_batches_in_silence(
    tmp_path: Path, layout: list[tuple[int, int]], indexed: bool, later: bool
) -> None:
    partition = tmp_path / "t-0"
    positions = build(partition, layout, indexed=indexed, later=later)
    log = partition / f"{layout[0][0]:020}.log"
    intact, tail = log.read_bytes(), [b"later"] if later else []
    everything = [value for base, count in layout for value in values(base, count)] + tail
    for number, position in enumerate(positions):
        for bit in range(64):
            damaged = bytearray(intact)
            damaged[position + bit // 8] ^= 0x80 >> bit % 8
            log.write_bytes(damaged)
            case = f"batch {number}, bit {bit}"
            codes = {finding.code for finding in cw.verify(partition).findings}
            damage = {"damaged_batch", "torn_tail"} if position == positions[-1] else {"damaged_batch"}
            assert codes & {*damage, "overlapping_batch", "offset_gap", "far_offsets"}, case
            try:
                got = [record.value for record in cw.Log(partition).records()]
            except cw.CorruptLogError:
                assert codes & damage, case
                continue
            bases = [struct.unpack_from(">q", damaged, at)[0] for at in positions]
            if got != everything:
                assert got == consumed(layout, bases) + tail, case
                assert "overlapping_batch" in codes, case


@pytest.mark.parametrize("base", [8, 16, 24, 100])
def test_the_second_one_of_two_equal_batches_is_the_damaged_one_also_after_a_gap(tmp_path: Path, base: int) -> None:
    layout = [(0, 4), (base, 4), (base, 4), (base + 4, 2)]
    raw = [batches.batch(start, [Rec(value) for value in values(start, count)]) for start, count in layout]
    partition = tmp_path / "t-0"
    partition.mkdir()
    (partition / f"{0:020}.log").write_bytes(b"".join(raw))
    errors = [(f.code, f.position) for f in cw.verify(partition).findings if f.severity == "error"]
    assert errors == [("damaged_batch", len(raw[0] + raw[1]))]
    expected = values(0, 4) + values(base, 6)
    assert [record.value for record in cw.Log(partition).records(on_damage="skip")] == expected
