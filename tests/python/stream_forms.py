"""Every form of a compressed stream: what a broker's decoder reads, and what it refuses."""

from __future__ import annotations

import gzip
import struct
import zlib
from collections.abc import Callable, Sequence

import pyarrow as pa
from batches import GZIP, NONE, Rec, batch

SNAPPY, LZ4, ZSTD = 2, 3, 4
XERIAL = b"\x82SNAPPY\0"
MASK = 0xFFFFFFFF
ZSTD_READ = 131_075  # the bytes of a zstd stream that Java reads at a time

Form = tuple[bytes, str]
"""A stream, and its name."""


def plain(payload: bytes) -> list[Form]:
    return [(payload, "")]


HAS_ALL = 2 | 4 | 8 | 16  # a header checksum, an extra field, a name, a comment


def gzip_stream(payload: bytes) -> list[Form]:
    half = len(payload) // 2
    whole = gzip.compress(payload, mtime=0)

    def flagged(flags: int, fields: bytes = b"", of: bytes = whole) -> bytes:
        head = of[:3] + bytes([flags]) + of[4:10] + fields
        checksum = struct.pack("<H", zlib.crc32(head) & 0xFFFF) if flags & HAS_ALL == HAS_ALL else b""
        return head + checksum + of[10:]

    fields = struct.pack("<H", 5) + b"extra" + b"name\0" + b"comment\0"
    return [
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
        (flagged(0xE0), "reserved flags"),
        (flagged(0xE0 | HAS_ALL, fields), "reserved flags and all fields"),
        (flagged(8, b"n" * 70_000 + b"\0"), "a long name"),
        (whole + flagged(0xE0, of=gzip.compress(b"", mtime=0)), "an empty member with reserved flags"),
        (whole + flagged(8, b"a name without an end", of=whole[:10]), "a cut header after"),
        (whole + flagged(2, b"\1\2" + bytes(20), of=whole[:10]), "a wrong header checksum after"),
        (whole + b"\x1f\x8b\7" + bytes(30), "another method after"),
        (whole + gzip.compress(b"more", mtime=0)[:-1], "a cut member after"),
        (whole + gzip.compress(b"", mtime=0)[:-8] + b"\1" * 8, "a member with a wrong trailer after"),
    ]


def snappy_block(payload: bytes) -> bytes:
    compressed: bytes = pa.Codec("snappy").compress(payload, asbytes=True)
    return compressed


def snappy_stream(payload: bytes) -> list[Form]:
    def framed(chunks: Sequence[bytes], version: int = 1, compatible: int = 1) -> bytes:
        sized = b"".join(struct.pack(">i", len(chunk)) + chunk for chunk in chunks)
        return XERIAL + struct.pack(">ii", version, compatible) + sized

    half = len(payload) // 2
    whole = snappy_block(payload)
    halves = [snappy_block(payload[:half]), snappy_block(payload[half:])]
    return [
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
        (framed([whole]) + framed([], 0), "a further stream of version 0"),
        (framed([whole]) + framed([])[:-1], "a cut header after"),
        (framed([whole]) + XERIAL[:4] + b"\1" * 12, "what begins like a header after"),
    ]


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


def lz4_stream(payload: bytes) -> list[Form]:
    whole = lz4_frame(payload)
    half = len(payload) // 2
    return [
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
        (lz4_frame(payload, end=False) + b"\0\0\0\x80", "the end mark of a stored block"),
        (lz4_frame(payload, end=False) + b"\0\0\0\x80bytes", "bytes after such a mark"),
        (lz4_frame(payload, 0x64)[:-1], "a cut content checksum"),
        (lz4_frame(payload, end=False) + b"\1\0\0\0\0" + b"\0\0\0\0", "an empty block"),
    ]


def zstd_stream(payload: bytes) -> list[Form]:
    def frame(data: bytes) -> bytes:
        compressed: bytes = pa.Codec("zstd").compress(data, asbytes=True)
        return compressed

    half = len(payload) // 2
    whole = frame(payload)
    skippable = struct.pack("<II", 0x184D2A50, 4) + b"skip"

    def up_to(end: int) -> bytes:
        """The stream with a skippable frame that ends there."""
        return whole + struct.pack("<II", 0x184D2A50, end - len(whole) - 8) + bytes(end - len(whole) - 8)

    return [
        (whole, "usual"),
        (frame(payload[:half]) + frame(payload[half:]), "two frames"),
        (whole + frame(b""), "an empty frame"),
        (frame(b"") + whole, "an empty frame first"),
        (whole + skippable, "a skippable frame"),
        (skippable + whole, "a skippable frame first"),
        (whole + b"\0\0\0\0", "zeros after"),
        (whole + b"garbage", "bytes after"),
        (whole[:-1], "cut"),
        (whole + whole[:2], "half a magic after"),
        (whole + whole[:4], "a magic after"),
        (whole + skippable[:-1], "a cut skippable frame after"),
        (whole + frame(b"")[:-1], "a cut empty frame after"),
        (whole + frame(b"more")[:-1], "a cut frame with bytes after"),
        (whole + whole[:2] + b"no", "half a magic and bytes after"),
        (frame(payload[:half]) + checked_frame(payload[half:])[:-1], "two frames and half a checksum"),
        (checked_frame(payload)[:-1], "half a checksum"),
        *((up_to(end) + whole[:2], f"half a magic at byte {end}") for end in range(ZSTD_READ - 3, ZSTD_READ + 2)),
    ]


def checked_frame(payload: bytes) -> bytes:
    """A zstd frame of stored blocks, with a wrong checksum."""
    out = struct.pack("<IBB", 0xFD2FB528, 0x04, 0x58)
    parts = [payload[at : at + 100_000] for at in range(0, len(payload), 100_000)] or [b""]
    for number, part in enumerate(parts):
        is_last = number == len(parts) - 1
        out += struct.pack("<I", len(part) << 3 | is_last)[:3] + part
    return out + b"\1\2\3\4"


STREAMS: dict[int, Callable[[bytes], list[Form]]] = {
    NONE: plain,
    GZIP: gzip_stream,
    SNAPPY: snappy_stream,
    LZ4: lz4_stream,
    ZSTD: zstd_stream,
}

# records of which a stream is made
RECORDS = {
    "small": [Rec(b"value %d" % n) for n in range(3)],
    "large": [Rec(bytes((n * at * at) % 251 for at in range(40_000))) for n in range(3)],
}

# the forms with which a broker refuses a batch, and of which a consumer reads no record
REFUSED: dict[int, set[str]] = {
    NONE: set(),
    GZIP: {
        "no trailer",
        "a wrong size",
        "a wrong checksum",
        "a wrong header checksum",
        "a cut member after",
        "a member with a wrong trailer after",
    },
    SNAPPY: {
        "a chunk of no bytes",
        "a cut chunk",
        "bytes after a raw block",
        "a further stream of version 0",
        "a cut header after",
    },
    LZ4: {
        "no end mark",
        "half an end mark",
        "two frames",
        "wrong block checksums",
        "no content checksum",
        "a cut content checksum",
        "a wrong header checksum",
        "dependent blocks",
        "a dictionary flag",
        "a reserved flag",
        "a reserved bit",
        "block size 3",
    },
    ZSTD: {
        "zeros after",
        "bytes after",
        "cut",
        "a cut frame with bytes after",
        "half a magic and bytes after",
        "half a checksum",
        "half a magic at byte 131074",
        "half a magic at byte 131075",
    },
}


def payload_of(records: list[Rec]) -> bytes:
    """The records as a batch has them, without compression."""
    return batch(0, records)[61:]
