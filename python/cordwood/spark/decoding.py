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
from cordwood.spark.errors import CORRUPT_BATCH, UNSUPPORTED, SparkLogError, bad_option
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

# the maximum size of the records in memory at a time, apart from the records of one cell
_MAX_BYTES = 16 << 20


def decode_batches(*, on_damage: OnDamage = "raise") -> Callable[[Column | str], Column]:
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
    of a later version or too large, with `CORDWOOD_UNSUPPORTED`; `"null"`: its result is null. A cell has at most
    2,097,152 records, with 128 MiB of keys, values and headers. *Cost*: no Python object is made for a record.
    """
    given: object = on_damage
    if given not in {"raise", "null"}:
        raise ConfigError(f"on_damage: expected 'raise' or 'null', found {given!r}")
    # Spark's stubs do not know it
    make: Any = sql.arrow_udf  # type: ignore[attr-defined]
    udf: Callable[..., Column] = make(_decoder(is_strict=on_damage == "raise"), _RECORDS)

    def decode(batches: Column | str) -> Column:
        name = batches if isinstance(batches, str) else str(batches).removeprefix("Column<'").removesuffix("'>")
        return udf(batches).alias(f"decode_batches({name})")

    return decode


def _decoder(*, is_strict: bool) -> Callable[[Iterator[pa.Array]], Iterator[pa.Array]]:
    def decode(batches: Iterator[pa.Array]) -> Iterator[pa.Array]:
        freeze_modules()
        for cells in batches:
            yield from _decoded(cells, is_strict=is_strict)

    decode.__annotations__ = {"batches": Iterator[pa.Array], "return": Iterator[pa.Array]}
    decode.__name__ = "decode_batches"
    return decode


def _decoded(cells: pa.Array, *, is_strict: bool) -> Iterator[pa.Array]:
    """Decode some cells at a time: the records of a few may fill the memory."""
    kind = cells.type
    if not (pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_null(kind)):
        raise bad_option("decode_batches", "a column of type binary", str(kind))
    cells = cells.cast(pa.binary())
    while True:
        decoded = _decode_batches(pa.Table.from_arrays([cells], ["batches"]), _MAX_BYTES)
        if is_strict and decoded.column("reason").null_count < decoded.num_rows:
            raise _error(decoded)
        yield decoded.column("records")
        cells = cells.slice(decoded.num_rows)
        if not len(cells):
            return


def _error(decoded: pa.RecordBatch) -> SparkLogError:
    reason, position, is_unsupported = next(
        (reason, position, is_unsupported)
        for reason, position, is_unsupported in zip(
            *(decoded.column(name).to_pylist() for name in ("reason", "position", "is_unsupported")), strict=True
        )
        if reason is not None
    )
    advice = "on_damage='null' gives null for such batches"
    text = f"decode_batches: a batch at byte {position} of a cell: {reason}; {advice}"
    return SparkLogError(UNSUPPORTED if is_unsupported else CORRUPT_BATCH, text, position=position)
