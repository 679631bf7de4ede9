"""A small writer and a reader of magic 2 record batches, for generated logs.

It shares no code with the library: layout, variable-length integers and CRC-32C are implemented here, and
`test_batches.py` compares them with published vectors.
"""

from __future__ import annotations

import gzip
import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

NONE, GZIP = 0, 1
LOG_APPEND_TIME, TRANSACTIONAL, CONTROL, DELETE_HORIZON = 8, 16, 32, 64
HEADER = struct.Struct(">qiiBIhiqqqhii")


def _table() -> tuple[int, ...]:
    entries = []
    for number in range(256):
        crc = number
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
        entries.append(crc)
    return tuple(entries)


_TABLE = _table()


def crc32c(data: bytes) -> int:
    """The Castagnoli checksum of `data`."""
    crc = 0xFFFFFFFF
    table = _TABLE
    for byte in data:
        crc = table[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    return crc ^ 0xFFFFFFFF


def varint(number: int) -> bytes:
    """Zigzag, base 128, little groups first; any width up to 64 bits."""
    rest = (number << 1) ^ (number >> 63)
    out = bytearray()
    while rest & ~0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)


@dataclass(frozen=True)
class Rec:
    """A record to write; `offset_delta` defaults to its place in the batch."""

    value: bytes | None = None
    key: bytes | None = None
    timestamp: int = 0
    headers: tuple[tuple[bytes, bytes | None], ...] = ()
    offset_delta: int | None = None


def _bytes(data: bytes | None) -> bytes:
    return varint(-1) if data is None else varint(len(data)) + data


def record(rec: Rec, delta: int, base_timestamp: int) -> bytes:
    """One encoded record, its length included."""
    body = b"\0" + varint(rec.timestamp - base_timestamp) + varint(delta) + _bytes(rec.key) + _bytes(rec.value)
    body += varint(len(rec.headers)) + b"".join(varint(len(n)) + n + _bytes(v) for n, v in rec.headers)
    return varint(len(body)) + body


def batch(
    base_offset: int,
    records: Sequence[Rec],
    *,
    leader_epoch: int = 0,
    codec: int = NONE,
    attributes: int = 0,
    last_offset_delta: int | None = None,
    base_timestamp: int | None = None,
    max_timestamp: int | None = None,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    count: int | None = None,
    payload: bytes | None = None,
) -> bytes:
    """One batch. `count`, `payload` and other fields may be inconsistent; the CRC is always valid."""
    if base_timestamp is None:
        base_timestamp = records[0].timestamp if records else -1
    deltas = [i if r.offset_delta is None else r.offset_delta for i, r in enumerate(records)]
    if payload is None:
        payload = b"".join(record(r, d, base_timestamp) for r, d in zip(records, deltas, strict=True))
        if codec == GZIP:
            payload = gzip.compress(payload, mtime=0)
    if last_offset_delta is None:
        last_offset_delta = max(deltas, default=0)
    if max_timestamp is None:
        max_timestamp = max((r.timestamp for r in records), default=-1)
    covered = (
        struct.pack(
            ">hiqqqhii",
            attributes | codec,
            last_offset_delta,
            base_timestamp,
            max_timestamp,
            producer_id,
            producer_epoch,
            base_sequence,
            len(records) if count is None else count,
        )
        + payload
    )
    head = struct.pack(">qiiBI", base_offset, 9 + len(covered), leader_epoch, 2, crc32c(covered))
    return head + covered


def marker(
    base_offset: int,
    producer_id: int,
    producer_epoch: int = 0,
    *,
    commit: bool,
    timestamp: int = 0,
    leader_epoch: int = 0,
    coordinator_epoch: int = 0,
) -> bytes:
    """A transaction marker."""
    rec = Rec(
        key=struct.pack(">hh", 0, 1 if commit else 0),
        value=struct.pack(">hi", 0, coordinator_epoch),
        timestamp=timestamp,
    )
    return batch(
        base_offset,
        [rec],
        leader_epoch=leader_epoch,
        attributes=TRANSACTIONAL | CONTROL,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
    )


def moved(raw: bytes, base_offset: int) -> bytes:
    """The same batch at another base offset, which the CRC does not cover."""
    return struct.pack(">q", base_offset) + raw[8:]


def name(base: int, suffix: str = ".log") -> str:
    """The file name of a segment's base offset."""
    return f"{base:020d}{suffix}"


def read_records(raw: bytes) -> Iterator[tuple[int, int, Rec]]:
    """The offset, the timestamp type and the contents of each record of a segment; uncompressed, or with gzip."""
    at = 0
    while at < len(raw):
        base_offset, length, _, magic, crc, attributes, _, base, largest, _, _, _, count = HEADER.unpack_from(raw, at)
        end = at + 12 + length
        assert magic == 2
        assert attributes & 7 in (NONE, GZIP)
        assert crc == crc32c(raw[at + 21 : end])
        payload = raw[at + HEADER.size : end]
        source = _Source(gzip.decompress(payload) if attributes & 7 == GZIP else payload)
        type_ = 1 if attributes & LOG_APPEND_TIME else 0
        for _ in range(count):
            delta, rec = source.record(base)
            yield base_offset + delta, type_, replace(rec, timestamp=largest) if type_ else rec
        assert source.at == len(source.data)
        at = end


@dataclass
class _Source:
    data: bytes
    at: int = 0

    def number(self) -> int:
        value = shift = 0
        while True:
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return (value >> 1) ^ -(value & 1)

    def bytes(self) -> bytes | None:
        length = self.number()
        if length < 0:
            return None
        self.at += length
        return self.data[self.at - length : self.at]

    def record(self, base_timestamp: int) -> tuple[int, Rec]:
        """The offset delta and the contents; no `offset_delta`, so that it equals what was given to `batch`."""
        end = self.number() + self.at
        self.at += 1
        timestamp, delta = base_timestamp + self.number(), self.number()
        key, value = self.bytes(), self.bytes()
        headers = tuple((self.bytes() or b"", self.bytes()) for _ in range(self.number()))
        assert self.at == end
        return delta, Rec(value, key, timestamp, headers)


def write_partition(path: Path, segments: Iterable[tuple[int, Sequence[bytes]]]) -> Path:
    """A partition directory of (base offset, batches), without any files other than the logs."""
    path.mkdir(parents=True)
    for base, raws in segments:
        (path / name(base)).write_bytes(b"".join(raws))
    return path


def write_big_partition(path: Path, size: int, values: int = 60, value_bytes: int = 1000) -> int:
    """Write at least `size` bytes of one repeated batch in two segments; return the number of records."""
    records = [Rec(value=bytes([i % 251]) * value_bytes, key=b"%04d" % i, timestamp=1_000 + i) for i in range(values)]
    tail = batch(0, records)[8:]
    copies = -(-size // (len(tail) + 8))
    path.mkdir(parents=True)
    half = copies // 2
    for first, last in ((0, half), (half, copies)):
        with (path / name(first * values)).open("wb", buffering=1 << 20) as file:
            for number in range(first, last):
                file.write(struct.pack(">q", number * values) + tail)
    return copies * values
