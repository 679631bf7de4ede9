"""A writer of one partition, in NumPy: gibibytes of magic 2 batches, their indexes, and what was written.

It shares no code with the library or with the builder of the Rust benches. All batches of a log have the same number of
records, with the same sizes, so a batch is a template in which offset, times, keys, values and the checksum are filled
in, thousands of batches at once. No two records have the same key or value. The same shape gives the same
bytes.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import google_crc32c
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

KEY_BYTES, VALUE_BYTES = 16, 200
# 72 records of 224 to 228 bytes are a batch of 16 KiB
BATCH_RECORDS = 72
START_TIMESTAMP = 1_700_000_000_000
# every four records share a millisecond; a batch spans 18
RECORDS_PER_MS = 4
INDEX_INTERVAL = 4096
GIB, MIB = 1 << 30, 1 << 20

_HEADER = struct.Struct(">qiiBIhiqqqhii")
_CRC_AT, _ATTRIBUTES_AT = 17, 21
# codecs and their bits in the attributes
_CODECS = {"none": 0, "lz4": 3, "zstd": 4}
# a chunk is filled at once, and is a row group of the Parquet file
_CHUNK_BATCHES = 1_736
_WORDS = 512


@dataclass(frozen=True)
class Shape:
    """What to write."""

    batches: int
    codec: str = "none"
    segment_bytes: int = GIB

    @property
    def rows(self) -> int:
        """Records of the log, and its log end offset."""
        return self.batches * BATCH_RECORDS


@dataclass
class Written:
    """The contents of a written log: the expected answers of queries."""

    path: str
    rows: int = 0
    bytes: int = 0
    segments: int = 0
    batch_bytes: int = 0
    """Bytes of a batch before compression."""
    first_timestamp: int = START_TIMESTAMP
    last_timestamp: int = START_TIMESTAMP
    value_bytes: int = 0
    value_crcs: int = 0
    """Sum of the CRC-32 of each value."""
    key_crcs: int = 0
    timestamps: int = 0
    """Sum of the timestamps, ms, each less the first."""

    def as_dict(self) -> dict[str, object]:
        """The contents of the JSON file beside the log."""
        return asdict(self)


def timestamp_of(offset: int) -> int:
    """The time of the record at `offset`, ms."""
    return START_TIMESTAMP + offset // RECORDS_PER_MS


def _varint(number: int) -> bytes:
    rest = number << 1 ^ number >> 63
    out = bytearray()
    while rest & ~0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)


def _template() -> tuple[bytes, list[int], list[int]]:
    """A batch with empty keys and values, and their positions."""
    records, keys, values = bytearray(), [], []
    for i in range(BATCH_RECORDS):
        front = b"\0" + _varint(i // RECORDS_PER_MS) + _varint(i) + _varint(KEY_BYTES)
        middle = _varint(VALUE_BYTES)
        length = _varint(len(front) + KEY_BYTES + len(middle) + VALUE_BYTES + 1)
        keys.append(_HEADER.size + len(records) + len(length) + len(front))
        values.append(keys[-1] + KEY_BYTES + len(middle))
        records += length + front + bytes(KEY_BYTES) + middle + bytes(VALUE_BYTES) + b"\0"
    size = _HEADER.size + len(records)
    header = _HEADER.pack(0, size - 12, 0, 2, 0, 0, BATCH_RECORDS - 1, 0, 0, -1, -1, -1, BATCH_RECORDS)
    return header + bytes(records), keys, values


class _Contents:
    """Keys of 16 hexadecimal digits, values of 25 words of eight letters and digits: zstd reduces them to a third."""

    def __init__(self) -> None:
        self.random = np.random.default_rng(7)
        digits = np.frombuffer(b"0123456789abcdef", dtype=np.uint8)
        numbers = np.arange(1 << 16)
        self.quads = digits[(numbers[:, None] >> np.array([12, 8, 4, 0])) & 15].copy().view(np.uint32).ravel()
        letters = np.frombuffer(b"abcdefghijklmnopqrstuvwxyz0123456789", dtype=np.uint8)
        self.words = letters[self.random.integers(0, len(letters), (_WORDS, 8))].copy().view(np.uint64).ravel()

    def _hex(self, numbers: np.ndarray) -> np.ndarray:
        """16 digits per number, as four words of 32 bits."""
        return self.quads[(numbers[:, None] >> np.array([48, 32, 16, 0], dtype=np.uint64)).astype(np.uint16)]

    def chunk(self, offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Keys and values of the records at `offsets`, one row of bytes each."""
        # multiplication by an odd number is a bijection: no two keys are equal, and they are unsorted
        keys = self._hex(offsets.astype(np.uint64) * np.uint64(0x9E37_79B9_7F4A_7C15))
        values = self.words[self.random.integers(0, _WORDS, (len(offsets), VALUE_BYTES // 8), dtype=np.uint16)]
        # the offset in the first two words: no two values are equal
        values[:, :2] = self._hex(offsets.astype(np.uint64)).view(np.uint64)
        return keys.view(np.uint8), values.view(np.uint8)


class _Segments:
    """Segment files of batches of any size, rolled and indexed as in Kafka, one batch per append."""

    def __init__(self, path: Path, segment_bytes: int) -> None:
        self.path, self.segment_bytes = path, segment_bytes
        self.base, self.position, self.count = 0, 0, 0
        self.since_entry = 0
        self.offsets: list[bytes] = []
        self.times: list[bytes] = []
        path.mkdir(parents=True)
        self.file = self._create(".log")

    def _create(self, suffix: str):  # noqa: ANN202 - a buffered writer
        self.count += suffix == ".log"
        return (self.path / f"{self.base:020d}{suffix}").open("wb", buffering=8 * MIB)

    def append(self, batch: memoryview | bytes, base_offset: int) -> None:
        """One batch."""
        if self.position + len(batch) > self.segment_bytes:
            self.close()
            self.base, self.position, self.since_entry = base_offset, 0, 0
            self.file = self._create(".log")
        last = base_offset + BATCH_RECORDS - 1
        if self.since_entry > INDEX_INTERVAL:
            self.offsets.append(struct.pack(">ii", last - self.base, self.position))
            self._time_entry(last)
            self.since_entry = 0
        self.since_entry += len(batch)
        self.position += len(batch)
        self.last = last
        self.file.write(batch)

    def _time_entry(self, last: int) -> None:
        entry = struct.pack(">qi", timestamp_of(last), last - self.base)
        if not self.times or self.times[-1] != entry:
            self.times.append(entry)

    def close(self) -> None:
        """The closing time entry, and both indexes."""
        self._time_entry(self.last)
        self.file.close()
        for suffix, entries in ((".index", self.offsets), (".timeindex", self.times)):
            with self._create(suffix) as file:
                file.write(b"".join(entries))
            entries.clear()


def _chunks(shape: Shape) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    contents = _Contents()
    for first in range(0, shape.batches, _CHUNK_BATCHES):
        last = min(first + _CHUNK_BATCHES, shape.batches)
        offsets = np.arange(first * BATCH_RECORDS, last * BATCH_RECORDS, dtype=np.int64)
        yield offsets, *contents.chunk(offsets)


def _record_batch(offsets: np.ndarray, keys: np.ndarray, values: np.ndarray) -> pa.RecordBatch:
    def binary(rows: np.ndarray) -> pa.Array:
        ends = np.arange(len(rows) + 1, dtype=np.int32) * np.int32(rows.shape[1])
        return pa.Array.from_buffers(pa.binary(), len(rows), [None, pa.py_buffer(ends), pa.py_buffer(rows)])

    times = (START_TIMESTAMP + offsets // RECORDS_PER_MS) * 1000
    columns = {
        "key": binary(keys),
        "value": binary(values),
        "offset": pa.array(offsets),
        "timestamp": pa.array(times).cast(pa.timestamp("us", tz="UTC")),
    }
    return pa.RecordBatch.from_pydict(columns)


def write_parquet(shape: Shape, path: Path, compression: str) -> None:
    """Write the same rows as one Parquet file.

    Without dictionaries, which would be given up anyway: no two keys, values or offsets are equal.
    """
    writer = None
    for chunk in _chunks(shape):
        batch = _record_batch(*chunk)
        writer = writer or pq.ParquetWriter(path, batch.schema, compression=compression, use_dictionary=False)
        writer.write_batch(batch)
    assert writer is not None
    writer.close()


def write_log(shape: Shape, path: Path, *, checksums: bool = True) -> Written:
    """Write the partition. `checksums`: compute those of the expected answers, which takes some time."""
    written = Written(str(path), rows=shape.rows)
    template, key_at, value_at = _template()
    written.batch_bytes = len(template)
    codec = None if shape.codec == "none" else pa.Codec(shape.codec)
    segments = _Segments(path, shape.segment_bytes)
    block = np.empty((_CHUNK_BATCHES, len(template)), dtype=np.uint8)
    block[:] = np.frombuffer(template, dtype=np.uint8)
    for offsets, keys, values in _chunks(shape):
        count = len(offsets) // BATCH_RECORDS
        batches = block[:count]
        times = START_TIMESTAMP + offsets // RECORDS_PER_MS
        for at, numbers in ((0, offsets[::BATCH_RECORDS]), (27, times[::BATCH_RECORDS])):
            batches[:, at : at + 8] = numbers.astype(">i8")[:, None].view(np.uint8)
        batches[:, 35:43] = times[BATCH_RECORDS - 1 :: BATCH_RECORDS].astype(">i8")[:, None].view(np.uint8)
        by_batch = (count, BATCH_RECORDS, -1)
        for places, size, rows in ((key_at, KEY_BYTES, keys), (value_at, VALUE_BYTES, values)):
            for i, at in enumerate(places):
                batches[:, at : at + size] = rows.reshape(by_batch)[:, i]
        for row, base in zip(batches, offsets[::BATCH_RECORDS].tolist(), strict=True):
            segments.append(_sealed(row, codec), base)
        written.timestamps += int((times - START_TIMESTAMP).sum())
        if checksums:
            written.key_crcs += sum(map(zlib.crc32, keys))
            written.value_crcs += sum(map(zlib.crc32, values))
    segments.close()
    written.last_timestamp = timestamp_of(shape.rows - 1)
    written.value_bytes = shape.rows * VALUE_BYTES
    written.bytes = sum(file.stat().st_size for file in path.glob("*.log"))
    written.segments = segments.count
    return written


def check(written: Written, *, contents: bool = True) -> None:
    """Compare what cordwood reads with what was written. Without `contents`, only offsets, times and sizes."""
    import cordwood as cw  # noqa: PLC0415 - not needed to write a log

    read = Written(written.path, segments=written.segments, batch_bytes=written.batch_bytes)
    columns = ["key", "value", "offset", "timestamp"] if contents else ["offset", "timestamp", "value_size"]
    log = cw.Log(written.path)
    for batch in pa.RecordBatchReader.from_stream(log.scan(columns=columns)):
        offsets, times = batch["offset"].to_numpy(), batch["timestamp"].cast(pa.int64()).to_numpy()
        if not np.array_equal(offsets, np.arange(read.rows, read.rows + len(offsets))):
            raise ValueError(f"{written.path}: offsets are not {read.rows} and on")
        if not np.array_equal(times, START_TIMESTAMP + offsets // RECORDS_PER_MS):
            raise ValueError(f"{written.path}: times from offset {read.rows} are not those written")
        read.rows += len(offsets)
        read.timestamps += int((times - START_TIMESTAMP).sum())
        if contents:
            read.value_bytes += int(pc.sum(pc.binary_length(batch["value"])).as_py())
            read.value_crcs += sum(zlib.crc32(value.as_buffer()) for value in batch["value"])
            read.key_crcs += sum(zlib.crc32(key.as_buffer()) for key in batch["key"])
        else:
            read.value_bytes += int(pc.sum(batch["value_size"]).as_py())
    read.last_timestamp = timestamp_of(read.rows - 1)
    read.bytes = log.size
    if read != written or log.warnings:
        raise ValueError(f"written: {written}\nread: {read}\nwarnings: {log.warnings}")


def _sealed(batch: np.ndarray, codec: pa.Codec | None) -> bytes:
    """The batch, compressed if required, with its checksum."""
    raw = bytearray(batch.tobytes())
    if codec is not None:
        raw[_HEADER.size :] = codec.compress(raw[_HEADER.size :], asbytes=True)
        struct.pack_into(">i", raw, 8, len(raw) - 12)
        struct.pack_into(">h", raw, _ATTRIBUTES_AT, _CODECS[codec.name])
    struct.pack_into(">I", raw, _CRC_AT, google_crc32c.value(bytes(raw[_ATTRIBUTES_AT:])))
    return bytes(raw)


def batch_bytes() -> int:
    """Bytes of a batch before compression."""
    return len(_template()[0])
