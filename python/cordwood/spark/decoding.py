"""The UDF `decode_batches`: batches as bytes in a column, decoded to records."""

from collections.abc import Callable, Iterator
from typing import Any, Literal, TypeAlias

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as sql
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from cordwood import ConfigError
from cordwood._core import _decode_batches
from cordwood.spark.errors import BATCH_TOO_LARGE, CORRUPT_BATCH, UNSUPPORTED, SparkLogError, bad_option
from cordwood.spark.workers import freeze_modules

__all__ = ["decode_batches"]

OnDamage: TypeAlias = Literal["raise", "null"]

_HEADER = StructType([StructField("key", StringType()), StructField("value", BinaryType())])
_RECORDS = ArrayType(
    StructType(
        [
            StructField("offset", LongType()),
            StructField("timestamp", TimestampType()),
            StructField("timestamp_type", IntegerType()),
            StructField("key", BinaryType()),
            StructField("value", BinaryType()),
            StructField("headers", ArrayType(_HEADER)),
        ]
    )
)

_CODES = {"damaged": CORRUPT_BATCH, "unsupported": UNSUPPORTED, "too_large": BATCH_TOO_LARGE}

# the maximum size of the records in memory at a time, apart from the records of one cell
_MAX_BYTES = 16 << 20


def decode_batches(
    *, on_damage: OnDamage = "raise", max_log_batch_bytes: int = 134217728
) -> Callable[[Column | str], Column]:
    """Return a UDF from batches of Kafka's format (binary) to their records.

    A cell has any number of batches, of any version, as in a `.log` file or in the response to a fetch. A part of a
    batch at its end, as such a response may have, is ignored, as clients do. The UDF returns
    `array<struct<offset bigint, timestamp timestamp, timestamp_type int, key binary, value binary, headers
    array<struct<key string, value binary>>>>`: null for null, empty for a cell without a whole batch. `timestamp` and
    `headers` are null for a record without them; `timestamp_type` is -1, 0 (CreateTime) or 1 (LogAppendTime). Control
    records are left out. Checksums are verified.

        from pyspark.sql.functions import explode
        df.select(explode(decode_batches()("batch")).alias("record")).select("record.*")

    *on_damage*: `"raise"`: a cell that cannot be decoded fails the query with `CORDWOOD_CORRUPT_BATCH`, or, if it is
    of a later version, with `CORDWOOD_UNSUPPORTED`; `"null"`: its result is null. *max_log_batch_bytes*: the largest
    batch, as stored and decompressed, and the largest sum of the decompressed batches of a cell. A cell has at most one
    record for each 64 bytes of it: 128 MiB and 2,097,152 records by default. A larger cell is not damaged: it fails the
    query with `CORDWOOD_BATCH_TOO_LARGE`, whatever *on_damage* is. The records of a cell are below 2 GiB, and must fit
    into the memory of a Python worker. *Cost*: no Python object is made for a record.
    """
    given: object = on_damage
    if given not in {"raise", "null"}:
        raise ConfigError(f"on_damage: expected 'raise' or 'null', found {given!r}")
    limit: object = max_log_batch_bytes
    if not isinstance(limit, int) or isinstance(limit, bool) or limit < 1:
        raise ConfigError(f"max_log_batch_bytes: expected a number of bytes, 1 or more, found {limit!r}")
    # Spark's stubs do not know it
    make: Any = sql.arrow_udf  # type: ignore[attr-defined]
    udf: Callable[..., Column] = make(
        _decoder(is_strict=on_damage == "raise", max_log_batch_bytes=max_log_batch_bytes), _RECORDS
    )

    def decode(batches: Column | str) -> Column:
        name = batches if isinstance(batches, str) else str(batches).removeprefix("Column<'").removesuffix("'>")
        return udf(batches).alias(f"decode_batches({name})")

    return decode


def _decoder(*, is_strict: bool, max_log_batch_bytes: int) -> Callable[[Iterator[pa.Array]], Iterator[pa.Array]]:
    def decode(batches: Iterator[pa.Array]) -> Iterator[pa.Array]:
        freeze_modules()
        for cells in batches:
            yield from _decoded(cells, is_strict=is_strict, max_log_batch_bytes=max_log_batch_bytes)

    decode.__annotations__ = {"batches": Iterator[pa.Array], "return": Iterator[pa.Array]}
    decode.__name__ = "decode_batches"
    return decode


def _decoded(cells: pa.Array, *, is_strict: bool, max_log_batch_bytes: int) -> Iterator[pa.Array]:
    """Decode some cells at a time: the records of a few may fill the memory."""
    kind = cells.type
    if not (pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_null(kind)):
        raise bad_option("decode_batches", "a column of type binary", str(kind))
    cells = cells.cast(pa.binary())
    while True:
        decoded = _decode_batches(pa.Table.from_arrays([cells], ["batches"]), _MAX_BYTES, max_log_batch_bytes)
        error = _error(decoded, is_strict=is_strict)
        if error is not None:
            raise error
        yield decoded.column("records")
        cells = cells.slice(decoded.num_rows)
        if not len(cells):
            return


def _error(decoded: pa.RecordBatch, *, is_strict: bool) -> SparkLogError | None:
    """Return the error of the first cell that fails the query. One that is too large is intact: it always does."""
    columns = (decoded.column(name).to_pylist() for name in ("kind", "reason", "position"))
    for kind, reason, position in zip(*columns, strict=True):
        if kind is None or (kind != "too_large" and not is_strict):
            continue
        advice = "on_damage='null' gives null for such batches"
        if kind == "too_large":
            advice = "raise max_log_batch_bytes, if the memory is there, or read files with the format cordwood"
        text = f"decode_batches: a batch at byte {position} of a cell: {reason}; {advice}"
        return SparkLogError(_CODES[kind], text, position=position)
    return None
