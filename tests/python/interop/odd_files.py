"""Batches that no broker writes, with right checksums, as files: one field of each is odd."""

from __future__ import annotations

import gzip
import struct
import zlib
from collections.abc import Iterator
from typing import Any

from batches import CONTROL, GZIP, TRANSACTIONAL, Rec, batch, marker

NOW = 1_700_000_000_000
LEAST32, MOST32 = -(2**31), 2**31 - 1
LEAST64, MOST64 = -(2**63), 2**63 - 1
BASE = 3
"""The base offset of the odd batch: one of three records is before it."""


def three(base: int, **fields: Any) -> bytes:
    """A batch of three records."""
    records = [Rec(b"%d" % (base + n), b"key", NOW + base + n) for n in range(3)]
    return batch(base, records, **fields)


def headers() -> Iterator[tuple[str, bytes]]:
    """Names and batches: each field of a header."""
    for epoch in (-2, LEAST32):
        yield f"leader epoch {epoch}", three(BASE, leader_epoch=epoch)
    for delta in (-1, -2, LEAST32, 0, 1, 4, MOST32):
        yield f"last offset delta {delta}", three(BASE, last_offset_delta=delta)
    for count in (-1, LEAST32, 0, 2, 4, MOST32):
        yield f"count {count}", three(BASE, count=count)
        yield f"compressed count {count}", three(BASE, count=count, codec=GZIP)
    for attributes in (5, 7, 0x80, 0x4000, -0x8000, 0x40, TRANSACTIONAL, CONTROL):
        yield f"attributes {attributes}", three(BASE, attributes=attributes)
    for time in (LEAST64, -2, 0, MOST64):
        yield f"base timestamp {time}", shifted(time)
        yield f"largest timestamp {time}", three(BASE, max_timestamp=time)
    for producer in (LEAST64, -2, 0, MOST64):
        yield f"producer id {producer}", three(BASE, producer_id=producer, producer_epoch=0, base_sequence=0)
    for epoch in (-(2**15), -2, -1):
        yield f"producer epoch {epoch}", three(BASE, producer_id=7, producer_epoch=epoch, base_sequence=0)
    for sequence in (LEAST32, -2, -1, MOST32):
        yield f"base sequence {sequence}", three(BASE, producer_id=7, producer_epoch=0, base_sequence=sequence)
        yield f"base sequence {sequence} without a producer", three(BASE, base_sequence=sequence)


def shifted(base_timestamp: int) -> bytes:
    """The base timestamp of a batch, with the deltas of another one."""
    raw = three(BASE)
    return batch(BASE, [Rec()] * 3, base_timestamp=base_timestamp, max_timestamp=NOW, payload=raw[61:])


def control_batches() -> Iterator[tuple[str, bytes]]:
    """Names and batches: markers."""
    keys = {
        "usual": struct.pack(">hh", 0, 1),
        "an abort": struct.pack(">hh", 0, 0),
        "a short key": b"\0\0",
        "no key": None,
        "a long key": struct.pack(">hhh", 0, 1, 9),
        "a later version": struct.pack(">hh", 9, 1),
        "a negative version": struct.pack(">hh", -1, 1),
        "type 2": struct.pack(">hh", 0, 2),
        "type 99": struct.pack(">hh", 0, 99),
        "a negative type": struct.pack(">hh", 0, -1),
    }
    usual = struct.pack(">hi", 0, 5)
    values = {"no value": None, "an empty value": b"", "a short value": usual[:4], "a long value": usual + b"more"}
    values |= {"a later value": struct.pack(">hi", 7, 5), "a negative value": struct.pack(">hi", -1, 5)}
    cases = [(f"marker with {name}", key, usual) for name, key in keys.items()]
    cases += [(f"marker with {name}", keys["usual"], value) for name, value in values.items()]
    for name, key, value in cases:
        for producer in (7, -1):
            fields = {"producer_id": producer, "producer_epoch": 0 if producer >= 0 else -1}
            attributes = TRANSACTIONAL | CONTROL if producer >= 0 else CONTROL
            raw = batch(BASE, [Rec(value, key, NOW)], attributes=attributes, **fields)
            yield f"{name}, producer {producer}", raw
    rec = Rec(usual, keys["usual"], NOW)
    fields = {"producer_id": 7, "producer_epoch": 0}
    yield "two markers", batch(BASE, [rec, rec], attributes=TRANSACTIONAL | CONTROL, **fields)
    yield "a compressed marker", batch(BASE, [rec], attributes=TRANSACTIONAL | CONTROL, codec=GZIP, **fields)
    yield "a marker without records", batch(BASE, [], attributes=TRANSACTIONAL | CONTROL, last_offset_delta=0, **fields)
    yield "a marker outside a transaction", batch(BASE, [rec], attributes=CONTROL, **fields)
    yield (
        "a marker of two offsets",
        batch(BASE, [rec], attributes=TRANSACTIONAL | CONTROL, last_offset_delta=1, **fields),
    )
    yield "an ordinary marker", marker(BASE, 7, commit=True, timestamp=NOW)


def message(
    offset: int, value: bytes | None, *, magic: int, attributes: int = 0, timestamp: int = NOW, after: bytes = b""
) -> bytes:
    """An entry of magic 0 or 1, with bytes after its value."""

    def sized(data: bytes | None) -> bytes:
        return struct.pack(">i", -1) if data is None else struct.pack(">i", len(data)) + data

    body = bytes([magic, attributes]) + (struct.pack(">q", timestamp) if magic else b"") + sized(b"key") + sized(value)
    body += after
    body = struct.pack(">I", zlib.crc32(body)) + body
    return struct.pack(">qi", offset, len(body)) + body


def old_entries() -> Iterator[tuple[str, bytes]]:
    """Names and entries of magic 0 and 1; three offsets, or one."""
    for magic in (0, 1):
        for attributes in (0, 0x08, 0x10, 0x80, 0xF0, 4, 5, 7):
            yield f"v{magic} attributes {attributes}", message(BASE, b"v", magic=magic, attributes=attributes)
        for time in (-1, -2, 0, LEAST64, MOST64) if magic else ():
            yield f"v{magic} timestamp {time}", message(BASE, b"v", magic=magic, timestamp=time)
        yield f"v{magic} bytes after the value", message(BASE, b"v", magic=magic, after=b"more")
        yield f"v{magic} null", message(BASE, None, magic=magic)
        relative = (0, 1, 2) if magic else (BASE, BASE + 1, BASE + 2)
        inner = [message(n, b"%d" % n, magic=magic, timestamp=NOW + n) for n in relative]
        streams = {
            "usual": b"".join(inner),
            "descending": b"".join(inner[::-1]),
            "repeated": inner[0] * 3,
            "one": inner[-1],
            "no entries": b"",
            "a part at the end": b"".join(inner)[:-5],
            "bytes after": b"".join(inner) + b"\0\0\0",
            "bytes after a value": message(relative[0], b"v", magic=magic, after=b"more") + inner[2],
            "gaps": inner[0] + inner[2],
            "the other magic": b"".join(message(n, b"%d" % n, magic=1 - magic) for n in relative),
            "both magics": inner[0] + message(relative[1], b"v", magic=1 - magic, timestamp=NOW + 50) + inner[2],
            "magic 2 inside": message(relative[0], b"x", magic=2) + inner[2],
            "an inner wrapper": inner[0] + message(relative[2], gzip.compress(inner[1]), magic=magic, attributes=1),
            "a wrong inner checksum": inner[0] + inner[1][:-1] + b"?" + inner[2],
            "an inner append time": b"".join(message(n, b"v", magic=magic, attributes=8) for n in relative),
        }
        for name, stream in streams.items():
            packed = gzip.compress(stream, mtime=0)
            yield f"v{magic} wrapper, {name}", message(BASE + 2, packed, magic=magic, attributes=1)
            if name in ("the other magic", "magic 2 inside", "both magics"):
                stamped = message(BASE + 2, packed, magic=magic, attributes=9, timestamp=NOW + 99)
                yield f"v{magic} wrapper, {name}, append time", stamped
        packed = gzip.compress(streams["usual"], mtime=0)
        for offset in (BASE, BASE + 1, BASE + 4):
            yield f"v{magic} wrapper at {offset}", message(offset, packed, magic=magic, attributes=1)
        yield f"v{magic} wrapper, append time", message(BASE + 2, packed, magic=magic, attributes=9, timestamp=NOW + 99)
        yield f"v{magic} wrapper, null", message(BASE + 2, None, magic=magic, attributes=1)
        yield f"v{magic} wrapper, time below", message(BASE + 2, packed, magic=magic, attributes=1, timestamp=5)


def partitions() -> Iterator[tuple[str, list[bytes]]]:
    """Names and batches of a log: the odd batch at its end, and before another one."""
    for name, raw in [*headers(), *control_batches(), *old_entries()]:
        before = three(0, leader_epoch=0) if raw[16] == 2 else message(0, b"before", magic=raw[16])
        after = three(BASE + 6, leader_epoch=0) if raw[16] == 2 else message(BASE + 6, b"after", magic=raw[16])
        yield f"{name}, last", [before, raw]
        yield f"{name}, in the middle", [before, raw, after]
    for name, raws in overlaps():
        yield name, raws


def overlaps() -> Iterator[tuple[str, list[bytes]]]:
    """Names and batches of logs in which a batch begins below the end of those before it."""

    def counted(base: int, count: int) -> bytes:
        return batch(base, [Rec(b"%d+%d" % (base, n), b"key", NOW + n) for n in range(count)])

    first = [counted(0, 5), counted(5, 5)]
    yield "overlap, last", [*first, counted(7, 20)]
    yield "overlap of all, last", [*first, counted(0, 20)]
    yield "overlap, in the middle", [*first, counted(7, 20), counted(27, 3)]
    yield "overlap of one, in the middle", [*first, counted(9, 2), counted(11, 3)]
    yield "overlaps, one after another", [*first, counted(7, 20), counted(20, 20), counted(38, 6), counted(44, 1)]
    inner = b"".join(message(n, b"%d" % n, magic=0) for n in range(3))
    wrappers = [message(last, gzip.compress(inner), magic=0, attributes=1) for last in (2, 5, 8)]
    yield "overlap, v0 wrappers with offsets of their own", wrappers
