"""Random batches of magic 2 that follow the format's letter loosely, in every form of a compressed stream."""

from __future__ import annotations

import random
from collections.abc import Callable

from batches import GZIP, NONE, Rec, batch, varint
from stream_forms import LZ4, SNAPPY, STREAMS, ZSTD

GO_ZERO = -62_135_596_800_000
NOW = 1_700_000_000_000


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
    payload, of_stream = draw.choice(STREAMS[codec](payload))
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
