"""Random batches of magic 2 that follow the format's letter loosely, in every form of a compressed stream."""

from __future__ import annotations

import gzip
import random
import struct
from collections.abc import Callable, Sequence

import pyarrow as pa
from batches import NONE, Rec, batch, varint

GZIP, SNAPPY, LZ4, ZSTD = 1, 2, 3, 4
GO_ZERO = -62_135_596_800_000
NOW = 1_700_000_000_000
XERIAL = b"\x82SNAPPY\0"
MASK = 0xFFFFFFFF


def odd_batch(seed: int) -> tuple[str, bytes]:
    """One batch, and what is odd about it."""
    draw = random.Random(seed)
    count = draw.choice((1, 1, 2, 3, 5))
    deltas, of_deltas = offset_deltas(draw, count)
    times = timestamps(draw, count)
    records = [
        Rec(value_of(draw, n), draw.choice((None, b"", b"key")), time, headers_of(draw), delta)
        for n, (time, delta) in enumerate(zip(times, deltas, strict=True))
    ]
    base = draw.choice((times[0], times[0], min(times), 0))
    bodies = [record_bytes(draw, record, base) for record in records]
    payload = b"".join(body for body, _ in bodies) + draw.choice((b"",) * 30 + (b"\0", b"more"))
    codec = draw.choice((NONE, NONE, NONE, GZIP, SNAPPY, LZ4, ZSTD))
    payload, of_stream = STREAMS[codec](draw, payload)
    of_records = "/".join(sorted({name for _, name in bodies}))
    producer = {}
    if draw.random() < 0.1:
        sequence = draw.choice((0, 0, 5, 2**31 - 2))
        producer = {"producer_id": 10_000 + seed, "producer_epoch": 0, "base_sequence": sequence}
    raw = batch(
        0,
        records,
        leader_epoch=draw.choice((-1, 0, 7)),
        codec=codec,
        attributes=draw.choice((0,) * 10 + (8, 0x80, 0x100)),
        last_offset_delta=count - 1 if draw.random() < 0.95 else draw.choice((0, count, 70)),
        base_timestamp=base,
        max_timestamp=draw.choice((None, None, None, -1, 5)),
        payload=payload,
        **producer,
    )
    return f"deltas {of_deltas}, records {of_records}, codec {codec} {of_stream}", raw


def offset_deltas(draw: random.Random, count: int) -> tuple[list[int], str]:
    in_order = list(range(count))
    if draw.random() < 0.6:
        return in_order, "in order"
    kinds: list[tuple[list[int], str]] = [
        ([0] * count, "zero"),
        (in_order[::-1], "descending"),
        ([9 * n for n in in_order], "wide"),
        ([n - 1 for n in in_order], "negative"),
        ([draw.randrange(count) for _ in in_order], "random"),
        ([2 * n for n in in_order], "doubled"),
    ]
    return draw.choice(kinds)


def timestamps(draw: random.Random, count: int) -> list[int]:
    kind = draw.randrange(6)
    if kind < 3:
        return [NOW + n for n in range(count)]
    some = (-1, -1, 0, 1, -2, GO_ZERO, NOW, -(2**53))
    return [some[draw.randrange(len(some))] for _ in range(count)]


def value_of(draw: random.Random, number: int) -> bytes | None:
    return draw.choice((None, b"", b"value %d" % number, b"value %d " % number * 30))


def headers_of(draw: random.Random) -> tuple[tuple[bytes, bytes | None], ...]:
    return draw.choice(((), (), (), ((b"h", b"1"),), ((b"", None), (b"h", b""), (b"h", None))))


def record_bytes(draw: random.Random, rec: Rec, base_timestamp: int) -> tuple[bytes, str]:
    """A record in an unusual encoding now and then."""
    kind = draw.choice(("usual",) * 12 + ("attributes", "long varints", "null lengths", "header count", "bytes after"))
    long = kind == "long varints"
    number: Callable[[int], bytes] = padded_varint if long else varint
    null = -5 if kind == "null lengths" else -1

    def sized(data: bytes | None) -> bytes:
        return number(null) if data is None else number(len(data)) + data

    assert rec.offset_delta is not None
    body = b"\x7f" if kind == "attributes" else b"\0"
    body += number(rec.timestamp - base_timestamp) + number(rec.offset_delta) + sized(rec.key) + sized(rec.value)
    body += number(-1) if kind == "header count" else number(len(rec.headers))
    if kind != "header count":
        body += b"".join(number(len(name)) + name + sized(value) for name, value in rec.headers)
    if kind == "bytes after":
        body += b"\0"
    return number(len(body)) + body, kind


def padded_varint(value: int) -> bytes:
    """With one group more than needed, if five groups are enough for it."""
    raw = varint(value)
    return raw if len(raw) >= 5 else raw[:-1] + bytes([raw[-1] | 0x80, 0])


# ---- streams ------------------------------------------------------------------------------------------------------


def plain(_: random.Random, payload: bytes) -> tuple[bytes, str]:
    return payload, ""


def gzip_stream(draw: random.Random, payload: bytes) -> tuple[bytes, str]:
    half = len(payload) // 2
    whole = gzip.compress(payload, mtime=0)
    return draw.choice(
        (
            (whole, "usual"),
            (gzip.compress(payload[:half], mtime=0) + gzip.compress(payload[half:], mtime=0), "two members"),
            (whole + gzip.compress(b"", mtime=0), "an empty member"),
            (gzip.compress(b"", mtime=0) + whole, "an empty member first"),
            (whole + b"\0" * 8, "zeros after"),
            (whole + b"garbage", "bytes after"),
            (whole[:-8], "no trailer"),
            (whole[:-4] + b"\1\2\3\4", "a wrong size"),
            (whole[:-8] + b"\1\2\3\4" + whole[-4:], "a wrong checksum"),
            (whole[:3] + b"\x08" + whole[4:10] + b"name\0" + whole[10:], "a name"),
            (whole[:3] + b"\x02" + whole[4:10] + b"\1\2" + whole[10:], "a wrong header checksum"),
        )
    )


def snappy_block(payload: bytes) -> bytes:
    compressed: bytes = pa.Codec("snappy").compress(payload, asbytes=True)
    return compressed


def snappy_stream(draw: random.Random, payload: bytes) -> tuple[bytes, str]:
    def framed(chunks: Sequence[bytes], version: int = 1, compatible: int = 1) -> bytes:
        sized = b"".join(struct.pack(">i", len(chunk)) + chunk for chunk in chunks)
        return XERIAL + struct.pack(">ii", version, compatible) + sized

    half = len(payload) // 2
    whole = snappy_block(payload)
    halves = [snappy_block(payload[:half]), snappy_block(payload[half:])]
    return draw.choice(
        (
            (framed([whole]), "usual"),
            (whole, "a raw block"),
            (framed(halves), "two chunks"),
            (framed([whole, snappy_block(b"")]), "an empty chunk"),
            (framed([whole], 7, 3), "a later version"),
            (framed([whole], 0, 0), "version 0"),
            (framed([whole], -1, 1), "version -1"),
            (framed(halves[:1]) + framed(halves[1:]), "two streams"),
            (framed([whole]) + b"\0\0", "two bytes after"),
            (framed([whole]) + b"\0\0\0\0", "a chunk of no bytes"),
            (framed([whole]) + b"\0\0\0\x09ab", "a cut chunk"),
            (whole + b"xy", "bytes after a raw block"),
        )
    )


def xxh32(data: bytes) -> int:
    """xxHash32 with seed 0."""
    one, two, three, four, five = 2654435761, 2246822519, 3266489917, 668265263, 374761393

    def rotate(number: int, bits: int) -> int:
        return (number << bits | number >> (32 - bits)) & MASK

    at, size = 0, len(data)
    if size >= 16:
        lanes = [(one + two) & MASK, two, 0, -one & MASK]
        while at + 16 <= size:
            words = struct.unpack_from("<4I", data, at)
            lanes = [rotate((n + w * two) & MASK, 13) * one & MASK for n, w in zip(lanes, words, strict=True)]
            at += 16
        total = sum(rotate(n, bits) for n, bits in zip(lanes, (1, 7, 12, 18), strict=True))
    else:
        total = five
    total = (total + size) & MASK
    while at + 4 <= size:
        total = rotate((total + struct.unpack_from("<I", data, at)[0] * three) & MASK, 17) * four & MASK
        at += 4
    for byte in data[at:]:
        total = rotate((total + byte * five) & MASK, 11) * one & MASK
    total = (total ^ total >> 15) * two & MASK
    total = (total ^ total >> 13) * three & MASK
    return total ^ total >> 16


def lz4_frame(payload: bytes, flags: int = 0x60, descriptor: int = 0x40, *, end: bool = True, wrong: str = "") -> bytes:
    head = bytes([flags, descriptor])
    if flags & 8:
        head += struct.pack("<Q", len(payload) + (wrong == "content size"))
    checksum = xxh32(head) >> 8 & 0xFF
    out = b"\x04\x22\x4d\x18" + head + bytes([checksum ^ (wrong == "header checksum")])
    for part in (payload[: len(payload) // 2], payload[len(payload) // 2 :]):
        if part:
            data: bytes = pa.Codec("lz4_raw").compress(part, asbytes=True)
            stored = len(data) >= len(part)
            data = part if stored else data
            out += struct.pack("<I", len(data) | stored << 31) + data
            if flags & 0x10:
                out += struct.pack("<I", xxh32(data) ^ (wrong == "block checksum"))
    if end:
        out += b"\0\0\0\0"
        if flags & 4:
            out += struct.pack("<I", xxh32(payload) ^ (wrong == "content checksum"))
    return out


def lz4_stream(draw: random.Random, payload: bytes) -> tuple[bytes, str]:
    whole = lz4_frame(payload)
    half = len(payload) // 2
    return draw.choice(
        (
            (whole, "usual"),
            (lz4_frame(payload, end=False), "no end mark"),
            (whole[:-2], "half an end mark"),
            (whole + b"bytes", "bytes after"),
            (lz4_frame(payload[:half]) + lz4_frame(payload[half:]), "two frames"),
            (lz4_frame(payload, 0x70), "block checksums"),
            (lz4_frame(payload, 0x70, wrong="block checksum"), "wrong block checksums"),
            (lz4_frame(payload, 0x64), "a content checksum"),
            (lz4_frame(payload, 0x64, wrong="content checksum"), "a wrong content checksum"),
            (lz4_frame(payload, 0x64)[:-4], "no content checksum"),
            (lz4_frame(payload, 0x68), "a content size"),
            (lz4_frame(payload, 0x68, wrong="content size"), "a wrong content size"),
            (lz4_frame(payload, wrong="header checksum"), "a wrong header checksum"),
            (lz4_frame(payload, 0x40), "dependent blocks"),
            (lz4_frame(payload, 0x61), "a dictionary flag"),
            (lz4_frame(payload, 0x62), "a reserved flag"),
            (lz4_frame(payload, 0x60, 0x41), "a reserved bit"),
            (lz4_frame(payload, 0x60, 0x70), "large blocks"),
            (lz4_frame(payload, 0x60, 0x30), "block size 3"),
        )
    )


def zstd_stream(draw: random.Random, payload: bytes) -> tuple[bytes, str]:
    def frame(data: bytes) -> bytes:
        compressed: bytes = pa.Codec("zstd").compress(data, asbytes=True)
        return compressed

    half = len(payload) // 2
    whole = frame(payload)
    skippable = struct.pack("<II", 0x184D2A50, 4) + b"skip"
    return draw.choice(
        (
            (whole, "usual"),
            (frame(payload[:half]) + frame(payload[half:]), "two frames"),
            (whole + frame(b""), "an empty frame"),
            (frame(b"") + whole, "an empty frame first"),
            (whole + skippable, "a skippable frame"),
            (skippable + whole, "a skippable frame first"),
            (whole + b"\0\0\0\0", "zeros after"),
            (whole + b"garbage", "bytes after"),
            (whole[:-1], "cut"),
        )
    )


STREAMS: dict[int, Callable[[random.Random, bytes], tuple[bytes, str]]] = {
    NONE: plain,
    GZIP: gzip_stream,
    SNAPPY: snappy_stream,
    LZ4: lz4_stream,
    ZSTD: zstd_stream,
}
