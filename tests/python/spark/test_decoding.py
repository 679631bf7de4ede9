"""`decode_batches`: batches as bytes in a column, decoded to records."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import corpus
import needs_pyspark  # noqa: F401
import pyarrow as pa
import pytest
from batches import GZIP, NONE, Rec, batch
from pyspark.errors import PySparkException

import cordwood as cw
from cordwood._core import _decode_batches
from cordwood.spark import decode_batches, decoding, errors
from spark.reading import refuses

pytestmark = pytest.mark.python_source

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def cells_of(part: corpus.Partition) -> list[bytes]:
    """The batches of a partition, as stored."""
    log = cw.Log(part.path)
    files = {segment.base_offset: Path(segment.path).read_bytes() for segment in log.segments}
    names = ("segment_base_offset", "position", "size")
    columns = log.batches().to_arrow()
    places = zip(*(columns.column(name).to_pylist() for name in names), strict=True)
    return [files[segment][position : position + size] for segment, position, size in places]


def pieces_of(cells: pa.Array, *, is_strict: bool = True, max_log_batch_bytes: int = 128 << 20) -> Iterator[pa.Array]:
    return decoding._decoded(cells, is_strict=is_strict, max_log_batch_bytes=max_log_batch_bytes)  # noqa: SLF001


def decoded(cells: list[bytes | None], *, is_strict: bool = True, max_log_batch_bytes: int = 128 << 20) -> list[Any]:
    """What the UDF returns for a column."""
    pieces = pieces_of(pa.array(cells, pa.binary()), is_strict=is_strict, max_log_batch_bytes=max_log_batch_bytes)
    return [cell for piece in pieces for cell in piece.to_pylist()]


def row(record: cw.Record) -> tuple[Any, ...]:
    when = None if record.timestamp < 0 else EPOCH + timedelta(milliseconds=record.timestamp)
    return (
        record.offset,
        when,
        int(record.timestamp_type),
        record.key,
        record.value,
        [{"key": key, "value": value} for key, value in record.headers] or None,
    )


def rows(found: list[Any]) -> list[tuple[Any, ...]]:
    return [tuple(record.values()) for cell in found if cell is not None for record in cell]


@pytest.mark.parametrize("part", corpus.partitions(), ids=lambda part: f"{part.case}-{part.name}")
def test_all_batches_of_the_corpus_are_decoded_to_the_records_of_the_log(part: corpus.Partition) -> None:
    wanted = [row(record) for record in cw.Log(part.path, log_start_offset=None).records()]
    found = rows(decoded(cells_of(part)))
    start = cw.Log(part.path).log_start_offset
    assert [one for one in found if one[0] >= start] == wanted


def test_a_cell_may_have_several_batches_or_none() -> None:
    first, second = (batch(base, [Rec(b"v%d" % base)]) for base in (3, 9))
    found = decoded([first + second, b"", None, second])
    assert [cell if cell is None else [record["value"] for record in cell] for cell in found] == [
        [b"v3", b"v9"],
        [],
        None,
        [b"v9"],
    ]


def test_few_records_are_in_memory_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoding, "_MAX_BYTES", 1)
    raw = batch(0, [Rec(b"v")])
    pieces = list(pieces_of(pa.array([raw, None, b"", raw])))
    assert [len(piece) for piece in pieces] == [1, 3]


def test_damage_is_an_error_or_null() -> None:
    raw = batch(0, [Rec(b"value")])
    flipped = bytearray(raw)
    flipped[-3] ^= 1
    zeros = bytes(len(raw))
    for cell in (bytes(flipped), raw + bytes(flipped), bytes(flipped) + raw, raw + zeros, zeros[:12]):
        with refuses("CORDWOOD_CORRUPT_BATCH", "decode_batches"):
            decoded([raw, cell])
        assert decoded([raw, cell, raw], is_strict=False)[1] is None
        assert len(rows(decoded([raw, cell, raw], is_strict=False))) == 2


@pytest.mark.parametrize("part", [corpus.partition("01-plain"), corpus.partition("17-v1-gzip")], ids=str)
def test_a_part_of_a_batch_at_the_end_is_ignored_as_in_the_response_to_a_fetch(part: corpus.Partition) -> None:
    """A response ends after a number of bytes, which may be within a batch, also within the first one."""
    first, second, third = cells_of(part)[:3]
    whole = [rows(decoded([raw])) for raw in (first, second)]
    cells: list[bytes | None] = [(first + second + third)[:size] for size in range(len(first + second + third))]
    for size, found in enumerate(decoded(cells)):
        ends = [len(first), len(first + second)]
        assert rows([found]) == [
            one for records, end in zip(whole, ends, strict=True) if end <= size for one in records
        ]


def test_no_change_of_a_byte_is_decoded_to_other_records() -> None:
    """With the exception of the fields that the checksum does not cover."""
    raw = batch(5, [Rec(b"value", key=b"key", headers=((b"h", b"x"),)), Rec(None)])
    intact = rows(decoded([raw]))
    cells: list[bytes | None] = []
    for place in range(len(raw)):
        for bit in range(8):
            changed = bytearray(raw)
            changed[place] ^= 1 << bit
            cells.append(bytes(changed))
    for cell, found in zip(cells, decoded(cells, is_strict=False), strict=True):
        if found == []:
            # by its length it is a part of a batch, which clients ignore
            assert int.from_bytes((cell or b"")[8:12]) > len(raw) - 12
            continue
        assert found is None or (cell or b"")[8:12] + (cell or b"")[16:] == raw[8:12] + raw[16:]
        if found is not None:
            # only the base offset and the leader epoch may differ
            assert [one[1:] for one in rows([found])] == [one[1:] for one in intact]


def test_random_bytes_never_crash() -> None:
    chance = random.Random(7)
    intact = [raw for part in corpus.partitions()[:12] for raw in cells_of(part)[:3]]

    def mutated() -> bytes:
        raw = bytearray(chance.choice(intact))
        for _ in range(chance.randrange(1, 6)):
            raw[chance.randrange(len(raw))] = chance.randrange(256)
        return bytes(raw[: chance.randrange(len(raw) + 1)] if chance.random() < 0.3 else raw)

    cells = [chance.randbytes(chance.randrange(200)) for _ in range(500)] + [mutated() for _ in range(3000)]
    assert len(decoded(list(cells), is_strict=False)) == len(cells)


def test_a_cell_with_too_many_records_is_refused(root: Path) -> None:
    """A few kilobytes that decompress to millions of records."""
    small = pa.table({"value": pa.nulls(150_000, pa.binary()), "timestamp": pa.repeat(0, 150_000)})
    config = cw.LogConfig(compression_type="zstd", max_message_bytes=1 << 30)
    with cw.LogWriter(root / "x-0", config=config, flush="none") as writer:
        for _ in range(15):
            writer.append_arrow(small)
    raw = (root / "x-0" / "00000000000000000000.log").read_bytes()
    assert len(raw) < 4 << 20
    for is_strict in (True, False):
        with refuses("CORDWOOD_BATCH_TOO_LARGE", "2097152 records"):
            decoded([raw], is_strict=is_strict)
    (piece,) = pieces_of(pa.array([raw]), max_log_batch_bytes=15 * 150_000 * 64)
    assert len(piece.flatten()) == 15 * 150_000


@pytest.mark.parametrize("codec", [NONE, GZIP], ids=["stored", "decompressed"])
def test_a_larger_batch_is_refused_with_every_on_damage_and_read_with_a_higher_limit(codec: int) -> None:
    small, large = batch(0, [Rec(b"small")]), batch(1, [Rec(b"x" * 10_000)], codec=codec)
    for is_strict in (True, False):
        with refuses("CORDWOOD_BATCH_TOO_LARGE", "raise max_log_batch_bytes") as raised:
            decoded([small, small + large], is_strict=is_strict, max_log_batch_bytes=5_000)
        assert raised.value.position == len(small)
        assert "on_damage" not in str(raised.value)
    found = decoded([small, small + large], max_log_batch_bytes=20_000)
    assert [one[0] for one in rows(found)] == [0, 0, 1]


def test_an_old_wrapper_above_the_limit_is_refused() -> None:
    (raw, *_) = cells_of(corpus.partition("17-v1-gzip"))
    with refuses("CORDWOOD_BATCH_TOO_LARGE", "max_log_batch_bytes"):
        decoded([raw], max_log_batch_bytes=len(raw) - 1)
    assert rows(decoded([raw], max_log_batch_bytes=1 << 20)) == rows(decoded([raw]))


@pytest.mark.parametrize(
    "arguments",
    [
        (1, 1, 1),
        (pa.table({"x": [1]}), 1, 1),
        (pa.table({"x": [b""]}), -1, 1),
        (pa.table({"x": [b""]}), 1, 0),
        (None, None, None),
    ],
)
def test_the_function_of_the_core_names_invalid_arguments(arguments: tuple[Any, Any, Any]) -> None:
    with pytest.raises((TypeError, cw.ConfigError), match=r"table|max_bytes|batches|max_batch_bytes"):
        _decode_batches(*arguments)


def test_invalid_options_and_columns_are_refused() -> None:
    with pytest.raises(cw.ConfigError, match="on_damage"):
        decode_batches(on_damage="skip")  # type: ignore[arg-type]
    for limit in (0, -1, "1"):
        with pytest.raises(cw.ConfigError, match="max_log_batch_bytes"):
            decode_batches(max_log_batch_bytes=limit)  # type: ignore[arg-type]
    with refuses("CORDWOOD_BAD_OPTION", "string"):
        list(pieces_of(pa.array(["x"])))


@pytest.mark.long
def test_a_query_decodes_a_column(spark: Any) -> None:
    part = corpus.partition("01-plain")
    cells = cells_of(part)
    frame = spark.createDataFrame([(cell,) for cell in cells], "batch binary")
    found = frame.select(decode_batches()("batch").alias("records")).selectExpr("explode(records) AS record")
    wanted = [(one.offset, one.key, one.value) for one in cw.Log(part.path).records()]
    read = found.select("record.offset", "record.key", "record.value").orderBy("offset").collect()
    assert [(one[0], *(None if cell is None else bytes(cell) for cell in one[1:])) for one in read] == wanted
    # more than one piece for a batch of Spark's
    large = spark.createDataFrame([(cells[0],)], "batch binary").selectExpr("explode(sequence(1, 8000)) AS n", "batch")
    counts = large.select(decode_batches()("batch").alias("records")).selectExpr("size(records) AS n")
    size = len(rows(decoded([cells[0]])))
    assert [tuple(one) for one in counts.groupBy("n").count().collect()] == [(size, 8000)]
    # damage
    flipped = cells[0][:-1] + bytes([cells[0][-1] ^ 1])
    broken = spark.createDataFrame([(cells[0],), (flipped,), (None,)], "batch binary")
    null = broken.select(decode_batches(on_damage="null")("batch").alias("records"))
    assert sorted(one[0] or 0 for one in null.selectExpr("size(records) AS n").collect()) == [0, 0, size]
    with pytest.raises(PySparkException) as raised:
        broken.select(decode_batches()("batch")).collect()
    assert errors.parse(raised.value).code == "CORDWOOD_CORRUPT_BATCH"
    with pytest.raises(PySparkException) as raised:
        frame.select(decode_batches(on_damage="null", max_log_batch_bytes=10)("batch")).collect()
    assert errors.parse(raised.value).code == "CORDWOOD_BATCH_TOO_LARGE"
