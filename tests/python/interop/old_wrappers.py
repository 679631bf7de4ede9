"""Compressed batches of magic 0 and 1 with right checksums, and three offsets: some that Kafka cannot decode."""

from __future__ import annotations

import gzip
import struct
from collections.abc import Iterator

from interop.odd_files import message


def lz4_frame(content: bytes, header_checksum: int) -> bytes:
    """A frame of one stored block."""
    block = struct.pack("<I", len(content) | 1 << 31) + content
    return bytes([0x04, 0x22, 0x4D, 0x18, 0x60, 0x40, header_checksum]) + block + bytes(4)


def wrappers(first: int, magic: int) -> Iterator[tuple[str, bytes]]:
    """Names, and batches of the offsets from `first` on."""
    start = 0 if magic else first
    inner = [message(start + n, b"%d" % n, magic=magic) for n in range(3)]
    last = first + 2

    def wrapper(value: bytes | None, codec: int = 1, offset: int = last) -> bytes:
        return message(offset, value, magic=magic, attributes=codec)

    whole = gzip.compress(b"".join(inner), mtime=0)
    yield "usual", wrapper(whole)
    yield "compressed twice", wrapper(gzip.compress(message(start + 2, whole, magic=magic, attributes=1)))
    yield "a compressed one after others", wrapper(gzip.compress(inner[0] + wrapper(whole)))
    yield "no messages", wrapper(gzip.compress(b""))
    yield "a part of a message", wrapper(gzip.compress(inner[0][:-1]))
    yield "a message of five bytes", wrapper(gzip.compress(struct.pack(">qi", start, 5) + bytes(20)))
    yield "a null value", wrapper(None)
    yield "a cut stream", wrapper(whole[:-12])
    yield "the other magic inside", wrapper(gzip.compress(message(start, b"x", magic=1 - magic)))
    for codec in (1, 2, 3, 4, 7):
        yield f"no stream of codec {codec}", wrapper(b"nonsense, of more than a few bytes", codec)
    # the checksum that old clients wrote, over the magic of the frame too, is right in magic 0 only
    yield "an lz4 frame", wrapper(lz4_frame(b"".join(inner), 0x82), 3)
    yield "an lz4 frame with a wrong checksum", wrapper(lz4_frame(b"".join(inner), 0x83), 3)
    if magic and first:
        yield "offset zero", wrapper(whole, offset=0)
    yield "an offset below those in it", wrapper(whole, offset=max(first, 1))
