"""Random logs with batches as old clients wrote them: the offsets of their records are not those of their headers.

Brokers stored them uncompressed, with a right checksum. What a consumer returns is `cordwood.Log.records`, which
`interop/test_odd_batches.py` compares with a real one; here it is compared with sums and ranges.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path

from batches import GZIP, NONE, Rec, batch, write_partition

import cordwood as cw

DAY = 86_400_000


@dataclass(frozen=True)
class Stored:
    """A record, and where ranges of offsets have it."""

    offset: int
    place: int
    """Its offset, or the last offset of its batch if that is lower."""
    timestamp: int
    value: bytes


def write_odd_log(path: Path, seed: int) -> list[Stored]:
    """Write a partition; return the records that a consumer returns, in the order of the log."""
    draw = random.Random(seed)
    next_offset = draw.choice((0, 0, 5, 1 << 40))
    segments: list[tuple[int, list[bytes]]] = []
    last_offsets: list[tuple[int, int]] = []
    number = 0
    for _ in range(draw.choice((1, 2, 3))):
        built = []
        base = next_offset
        for _ in range(draw.choice((1, 2, 4))):
            count = draw.choice((1, 1, 2, 3, 6))
            deltas, last_delta = offset_deltas(draw, count)
            in_order = deltas == list(range(count))
            records = [
                Rec(
                    b"%d" % (number + n),
                    draw.choice((None, b"k")),
                    draw.choice((-1, 0, draw.randrange(3 * DAY))),
                    (),
                    d,
                )
                for n, d in enumerate(deltas)
            ]
            codec = draw.choice((NONE, GZIP)) if in_order else NONE
            built.append(batch(next_offset, records, codec=codec, last_offset_delta=last_delta))
            last_offsets.append((number + count, next_offset + last_delta))
            number += count
            next_offset += last_delta + 1
        segments.append((base, built))
    write_partition(path, segments)

    def place(offset: int, value: bytes) -> int:
        return min(offset, next(last for end, last in last_offsets if int(value) < end))

    found = cw.Log(path).records()
    return [Stored(r.offset, place(r.offset, r.value or b""), r.timestamp, r.value or b"") for r in found]


def offset_deltas(draw: random.Random, count: int) -> tuple[list[int], int]:
    """Offset deltas, and that of the header."""
    in_order = list(range(count))
    kinds = [
        (in_order, count - 1),
        (in_order, count - 1),
        (in_order, count + 2),
        ([0] * count, 0),
        ([0] * count, count - 1),
        (in_order, 0),
        (in_order, count // 2),
        ([9 * n for n in in_order], count - 1),
        ([2 * n for n in in_order], 2 * count),
        (in_order[::-1], count - 1),
    ]
    return draw.choice(kinds)
