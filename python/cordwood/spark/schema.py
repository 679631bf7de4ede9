"""The schema of each table, in Spark and in Arrow.

Every field is nullable, as in Spark's Kafka source. Spark accepts the batches of a worker only if their Arrow schema
is exactly the expected one, so `Shape` casts the columns of the core that have another type.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DoubleType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from cordwood._core import _nearest
from cordwood.spark.arrow_scalars import scalar
from cordwood.spark.errors import bad_option
from cordwood.spark.options import SparkLogOptions

__all__ = ["Shape", "check_schema", "table_schema"]

ERROR = "_error"
"""The column that `mode=PERMISSIVE` adds: the damaged range of a row, null for records."""

_KEY_AND_VALUE: list[tuple[str, str, DataType]] = [("key", "key", BinaryType()), ("value", "value", BinaryType())]
_ORIGIN: list[tuple[str, str, DataType]] = [("topic", "topic", StringType()), ("partition", "partition", IntegerType())]
_HEADERS = ArrayType(StructType([StructField("key", StringType()), StructField("value", BinaryType())]))
# in the order of the core's column `error`
_DAMAGE = StructType(
    [
        StructField("file", StringType()),
        StructField("startPosition", LongType()),
        StructField("endPosition", LongType()),
        StructField("startOffset", LongType()),
        StructField("endOffset", LongType()),
        StructField("reason", StringType()),
    ]
)

# the name in Spark, the name in the core, the type
_RECORDS: list[tuple[str, str, DataType]] = [
    *_KEY_AND_VALUE,
    *_ORIGIN,
    ("offset", "offset", LongType()),
    ("timestamp", "timestamp", TimestampType()),
    ("timestampType", "timestamp_type", IntegerType()),
    ("headers", "headers", _HEADERS),
    ("leaderEpoch", "leader_epoch", IntegerType()),
    ("producerId", "producer_id", LongType()),
    ("producerEpoch", "producer_epoch", ShortType()),
    ("sequence", "sequence", IntegerType()),
    ("isTransactional", "is_transactional", BooleanType()),
    ("isControl", "is_control", BooleanType()),
    ("codec", "codec", StringType()),
    ("magic", "magic", ByteType()),
    ("batchBaseOffset", "batch_base_offset", LongType()),
    ("position", "position", LongType()),
    ("segmentBaseOffset", "segment_base_offset", LongType()),
    ("keySize", "key_size", IntegerType()),
    ("valueSize", "value_size", IntegerType()),
]

_BATCHES: list[tuple[str, str, DataType]] = [
    *_ORIGIN,
    ("segmentBaseOffset", "segment_base_offset", LongType()),
    ("position", "position", LongType()),
    ("size", "size", IntegerType()),
    ("baseOffset", "base_offset", LongType()),
    ("lastOffset", "last_offset", LongType()),
    ("count", "count", IntegerType()),
    ("codec", "codec", StringType()),
    ("timestampType", "timestamp_type", IntegerType()),
    ("baseTimestamp", "base_timestamp", TimestampType()),
    ("maxTimestamp", "max_timestamp", TimestampType()),
    ("leaderEpoch", "leader_epoch", IntegerType()),
    ("producerId", "producer_id", LongType()),
    ("producerEpoch", "producer_epoch", ShortType()),
    ("baseSequence", "base_sequence", IntegerType()),
    ("lastSequence", "last_sequence", IntegerType()),
    ("isTransactional", "is_transactional", BooleanType()),
    ("isControl", "is_control", BooleanType()),
    ("deleteHorizon", "delete_horizon", TimestampType()),
    ("crc", "crc", LongType()),
    ("magic", "magic", ByteType()),
]

_SEGMENTS: list[tuple[str, str, DataType]] = [
    *_ORIGIN,
    ("segmentBaseOffset", "segment_base_offset", LongType()),
    ("endOffset", "end_offset", LongType()),
    ("offsetGap", "offset_gap", LongType()),
    ("bytes", "bytes", LongType()),
    ("batches", "batches", LongType()),
    ("records", "records", LongType()),
    ("firstTimestamp", "first_timestamp", TimestampType()),
    ("largestTimestamp", "largest_timestamp", TimestampType()),
    ("codecs", "codecs", ArrayType(StringType())),
    ("indexEntries", "index_entries", LongType()),
    ("timeIndexEntries", "time_index_entries", LongType()),
    ("bytesPerIndexEntry", "bytes_per_index_entry", DoubleType()),
    ("indexState", "index_state", StringType()),
    ("damagedBytes", "damaged_bytes", LongType()),
]

_TABLES = {"records": _RECORDS, "batches": _BATCHES, "segments": _SEGMENTS}
_TYPES = {table: {name: kind for name, _, kind in columns} for table, columns in _TABLES.items()}
_CORE_NAMES = {table: {name: core for name, core, _ in columns} for table, columns in _TABLES.items()}

_SEVEN = [name for name, _, _ in _RECORDS[:7]]


def table_schema(options: SparkLogOptions) -> StructType:
    """Return the schema of the options: `columns`, or by default the columns of Spark's Kafka source.

    *Errors*: `CORDWOOD_BAD_OPTION` for a column that is not known (with the nearest name) or that is selected twice.
    """
    names: Iterable[str] = _TYPES[options.table]
    if options.table == "records":
        names = options.columns or _SEVEN + ["headers"] * options.include_headers
        if options.include_headers and "headers" not in names:
            names = [*names, "headers"]
        if options.mode == "PERMISSIVE" and ERROR not in names:
            names = [*names, ERROR]
    return StructType([StructField(name, _type_of(options, name)) for name in _once(names)])


def check_schema(schema: StructType, options: SparkLogOptions) -> None:
    """Check a user's schema: every column is known, has the type of the table, and is nullable.

    The columns may be a subset of the table's, in any order, as in the option `columns`. If both are given, they must
    be equal.

    *Errors*: `CORDWOOD_BAD_OPTION`.
    """
    _once(field.name for field in schema)
    for field in schema:
        wanted = _type_of(options, field.name)
        if field.dataType != wanted or not field.nullable:
            expected = f"{field.name} {wanted.simpleString()}, nullable"
            found = field.dataType.simpleString() + ("" if field.nullable else " not null")
            raise bad_option("schema", expected, found)
    if options.columns is None:
        return
    names, chosen = schema.fieldNames(), table_schema(options).fieldNames()
    # the column that reports damage is optional
    if names != chosen and names != [name for name in chosen if name != ERROR]:
        expected = f"the columns of the option columns, {','.join(chosen)} (set only one of the two)"
        raise bad_option("schema", expected, ",".join(names))


def _once(names: Iterable[str]) -> list[str]:
    found = list(names)
    for name in found:
        if found.count(name) > 1:
            raise bad_option("columns", "each column once", name)
    return found


def _type_of(options: SparkLogOptions, name: str) -> DataType:
    known = _TYPES[options.table]
    if name == ERROR and options.table == "records" and options.mode == "PERMISSIVE":
        return _DAMAGE
    if name not in known:
        meant = _nearest(name, list(known))
        hint = f" (did you mean {meant}?)" if meant else ""
        raise bad_option("columns", f"one of {', '.join(known)}{hint}", name)
    return known[name]


@dataclass(frozen=True)
class Shape:
    """A schema, and the conversion of the core's batches to it."""

    schema: StructType
    table: str

    @cached_property
    def arrow(self) -> pa.Schema:
        """The schema in Arrow, as Spark requires it."""
        return to_arrow_schema(self.schema, timezone="UTC")

    @cached_property
    def core_columns(self) -> list[str]:
        """The columns to read from the core: at least one, so that a batch has a number of rows."""
        names = [field.name for field in self.schema if field.name not in ("topic", "partition", ERROR)]
        return [_CORE_NAMES[self.table][name] for name in names] or ["offset"]

    def fill(self, batch: pa.RecordBatch, topic: str | None, partition: int | None) -> pa.RecordBatch:
        """Convert a batch of one log to the names, the order and the types of the schema."""
        rows = batch.num_rows
        core_names = _CORE_NAMES[self.table]
        arrays = []
        for field in self.arrow:
            if field.name == "topic":
                array = _repeated(topic, field.type, rows)
            elif field.name == "partition":
                array = _repeated(partition, field.type, rows)
            else:
                array = batch.column(core_names.get(field.name, "error"))
            if field.name == "timestamp" and array.null_count:
                array = _no_time(array, batch)
            arrays.append(array if array.type == field.type else _cast(array, field.type))
        return pa.RecordBatch.from_arrays(arrays, schema=self.arrow)


def _repeated(value: str | int | None, type_: pa.DataType, rows: int) -> pa.Array:
    return pa.nulls(rows, type_) if value is None else pa.repeat(scalar(value, type_), rows)


def _no_time(times: pa.Array, batch: pa.RecordBatch) -> pa.Array:
    """Replace a missing time by -1 ms, as Spark's Kafka source does; it stays null in a row that reports damage."""
    none = scalar(-1000, times.type)
    if "error" not in batch.schema.names:
        return pc.fill_null(times, none)
    return pc.if_else(pc.and_(pc.is_null(times), pc.is_null(batch.column("error"))), none, times)


def _cast(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    if pa.types.is_struct(wanted):
        return _struct(array, wanted)
    if pa.types.is_list(wanted) and pa.types.is_struct(wanted.value_type):
        structs = _struct(array.values, wanted.value_type)
        return pa.ListArray.from_arrays(array.offsets, structs, type=wanted, mask=pc.is_null(array))
    return array.cast(wanted)


def _struct(array: pa.StructArray, wanted: pa.StructType) -> pa.StructArray:
    """Rename the fields of a struct and make them nullable, which a cast cannot do. The buffers are shared."""
    fields = [array.field(index) for index in range(array.type.num_fields)]
    mask = pc.is_null(array) if array.null_count else None
    return pa.StructArray.from_arrays(fields, fields=list(wanted), mask=mask)
