"""Every one-bit flip and every truncation of a small log: detected, or without effect on the result."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from batches import Rec, batch, name, write_partition
from tables import rows

import cordwood as cw

RAWS = [
    batch(0, [Rec(value=b"one", key=b"a", timestamp=1000)], leader_epoch=5),
    batch(1, [Rec(value=b"two", timestamp=1010), Rec(value=None, key=b"b", timestamp=1005)], leader_epoch=5),
    batch(3, [Rec(value=b"four", timestamp=1020, headers=((b"h", None),))], leader_epoch=5),
]
STARTS = [sum(map(len, RAWS[:n])) for n in range(len(RAWS) + 1)]
RECORDS = [1, 2, 1]
COLUMNS = ["offset", "timestamp", "key", "value", "headers"]


def hit(position: int) -> tuple[int, int]:
    """The batch that contains a byte of the log, and the byte's position in it."""
    number = max(n for n in range(len(RAWS)) if STARTS[n] <= position)
    return number, position - STARTS[number]


@pytest.fixture
def small(tmp_path: Path) -> Path:
    return write_partition(tmp_path / "small-0", [(0, RAWS)])


def overwrite(path: Path, data: bytes) -> None:
    with (path / name(0)).open("r+b") as file:
        file.write(data)
        file.truncate()


def outcome(log: cw.Log, whole: list[tuple[Any, ...]]) -> tuple[str, list[tuple[Any, ...]]]:
    try:
        got = rows(log.scan(columns=COLUMNS).to_arrow())
    except cw.CorruptLogError:
        return "raised", []
    except cw.UnsupportedFormatError:
        return "later format", []
    if got == whole:
        return "warned" if log.warnings else "unseen", got
    if len(got) == len(whole) and got[:-1] == whole[:-1] and got[-1][0] > whole[-1][0] and log.warnings:
        return "gap", got
    return ("ended" if log.warnings else "differs"), got


def test_every_flipped_bit_is_detected_or_harmless(small: Path) -> None:
    """Only a leader epoch that increased, or that falls at an end of the log, is undetected, and counted.

    An increased offset of the last batch leaves a gap.
    """
    whole = rows(cw.Log(small).scan(columns=COLUMNS).to_arrow())
    assert len(whole) == sum(RECORDS)
    data = b"".join(RAWS)
    unseen: Counter[int] = Counter()
    for bit in range(len(data) * 8):
        changed = bytearray(data)
        changed[bit // 8] ^= 1 << (bit % 8)
        overwrite(small, bytes(changed))
        number, at = hit(bit // 8)
        log = cw.Log(small)
        kind, got = outcome(log, whole)
        where = f"bit {bit}: byte {at} of batch {number}: {kind}"
        last = number == len(RAWS) - 1
        if kind == "later format":  # no batch follows that would say that the magic was another one
            assert last, where
            assert at == 16, where
        elif kind == "ended":
            assert last, where
            assert got == whole[: sum(RECORDS[:number])], where
        elif kind == "unseen":
            assert 12 <= at < 16, where
            unseen[number] += 1
        elif kind == "gap":  # a warning names the offsets that are missing before it
            assert last, where
            assert at < 8, where
            assert got[-1][1:] == whole[-1][1:], where
        else:
            assert kind in {"raised", "warned"}, where
        survivors = rows(cw.Log(small).scan(columns=COLUMNS, on_damage="skip").to_arrow())
        if at < 8:  # of two batches that claim the same offsets a reader may believe either, but not both
            assert [row[0] for row in survivors] == sorted({row[0] for row in survivors}), where
        else:
            true = set(map(repr, whole))
            assert all(repr(row) in true for row in survivors), where
    # between others only the sign, without which a batch has no epoch
    assert unseen == {0: 32, 1: 1, 2: 32}


def test_look_ups_with_any_flipped_bit_are_right_or_raise(small: Path) -> None:
    whole = cw.Log(small)
    places = {o: whole.locate(o).position for o in range(4)}
    data = b"".join(RAWS)
    for bit in range(len(data) * 8):
        number, at = hit(bit // 8)
        if number == len(RAWS) - 1 and at < 8:
            continue  # an upward base offset of the last batch moves its record without a trace
        changed = bytearray(data)
        changed[bit // 8] ^= 1 << (bit % 8)
        overwrite(small, bytes(changed))
        log = cw.Log(small)
        for offset, position in places.items():
            try:
                found = log.locate(offset)
            except (cw.CorruptLogError, cw.OffsetOutOfRangeError):
                assert number == len(RAWS) - 1 or log.log_end_offset == 4
                continue
            except cw.UnsupportedFormatError:  # the magic of the last batch: as with a scan
                assert (number, at) == (len(RAWS) - 1, 16)
                continue
            assert found is not None
            if offset < sum(RECORDS[:number]) or offset >= sum(RECORDS[: number + 1]):
                assert found.position == position, (bit, offset)
        try:
            first = log.offset_for_time(1006)
        except cw.CorruptLogError:
            continue
        if number != 1:
            assert first is not None
            assert first.offset == 1, bit


@pytest.mark.parametrize("io", ["pread", "mmap"])
def test_every_truncation_ends_at_the_last_whole_batch(small: Path, io: str) -> None:
    whole = rows(cw.Log(small).scan(columns=COLUMNS).to_arrow())
    size = STARTS[-1]
    for length in range(size, -1, -1):
        os.truncate(small / name(0), length)
        log = cw.Log(small, io=io)
        batches = sum(length >= end for end in STARTS[1:])
        assert rows(log.scan(columns=COLUMNS).to_arrow()) == whole[: sum(RECORDS[:batches])], length
        assert log.log_end_offset == sum(RECORDS[:batches])
        assert bool(log.warnings) == (length not in STARTS), length
