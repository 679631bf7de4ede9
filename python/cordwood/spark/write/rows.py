"""The rows of a write: their columns, and the partition of each."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from cordwood._core import _is_topic, _partitions_of_keys
from cordwood.spark.arrow_scalars import scalar
from cordwood.spark.errors import BAD_OPTION, SparkLogError
from cordwood.spark.write.options import SinkOptions
from cordwood.spark.write.partitions import Partitions

__all__ = ["COLUMNS", "RowLayout", "check_columns"]

_HEADERS = ArrayType(StructType([StructField("key", StringType()), StructField("value", BinaryType())]))

# the columns of Spark's Kafka sink, and `timestamp`
_TYPES: dict[str, tuple[DataType, ...]] = {
    "key": (BinaryType(), StringType()),
    "value": (BinaryType(), StringType()),
    "headers": (_HEADERS,),
    "topic": (StringType(),),
    "partition": (IntegerType(),),
    "timestamp": (TimestampType(),),
}
COLUMNS = tuple(_TYPES)

# columns of the source that a log gives to its records
_IGNORED = ("offset", "timestampType")
_OF_RECORDS = ("key", "value", "headers", "timestamp")


def check_columns(schema: StructType) -> None:
    """Check the columns of the rows. *Errors*: `CORDWOOD_BAD_OPTION`, which names a column."""
    names = [field.name for field in schema.fields]
    for field in schema.fields:
        if field.name in _IGNORED:
            continue
        if field.name not in _TYPES or names.count(field.name) > 1:
            expected = f"the columns {', '.join(_TYPES)}, each at most once ({' and '.join(_IGNORED)} are ignored)"
            raise _refused(f"column {field.name}: expected {expected}; drop others before the write")
        allowed = _TYPES[field.name]
        if not any(_is_same(field.dataType, one) for one in allowed):
            kinds = " or ".join(one.simpleString() for one in allowed)
            found = field.dataType.simpleString()
            raise _refused(f"column {field.name}: expected the type {kinds}, found {found}; cast it before the write")
    if "value" not in names:
        raise _refused(f"columns: expected a column value, found {', '.join(names) or 'none'}")


def _is_same(found: DataType, wanted: DataType) -> bool:
    """Whether types are the same, apart from nullability and from the collation of strings."""
    if isinstance(wanted, StringType):
        return isinstance(found, StringType)
    return found.simpleString() == wanted.simpleString()


@dataclass(frozen=True)
class RowLayout:
    """How the rows of a task are divided among partitions. It is pickled for the tasks."""

    options: SinkOptions
    existing: Mapping[str, Partitions]
    """The partitions that each topic had when the write began. Tasks must not look for themselves: other tasks and
    other writes create partitions meanwhile."""

    def split(self, batch: pa.RecordBatch, default: int) -> Iterator[tuple[str, int, pa.RecordBatch]]:
        """Return the rows for each partition, in their order. *default* chooses the partition of rows without a key."""
        if self.options.topic is not None:
            yield from self._of_topic(self.options.topic, batch, default)
            return
        # Spark passes large strings with spark.sql.execution.arrow.useLargeVarTypes
        topics = batch.column("topic").cast(pa.string())
        for topic in pc.unique(topics).to_pylist():
            if topic is None:
                raise _refused("column topic: expected a topic in each row, found null; or use the option topic")
            if not _is_topic(topic):
                expected = "1 to 249 characters of a-z, A-Z, 0-9, '.', '_' and '-'"
                raise _refused(f"column topic: expected {expected}, found {topic!r}")
            yield from self._of_topic(topic, _where(batch, topics, topic), default)

    def partitions_of(self, topic: str) -> Partitions:
        """Return the partitions of a topic, which may be new."""
        return self.existing.get(topic) or Partitions(self.options.root, topic)

    def _of_topic(self, topic: str, batch: pa.RecordBatch, default: int) -> Iterator[tuple[str, int, pa.RecordBatch]]:
        numbers = self._numbers(self.partitions_of(topic), batch, default)
        records = batch.select([name for name in batch.schema.names if name in _OF_RECORDS])
        distinct = pc.unique(numbers).to_pylist()
        for number in distinct:
            yield topic, number, records if len(distinct) == 1 else _where(records, numbers, number)

    def _numbers(self, partitions: Partitions, batch: pa.RecordBatch, default: int) -> pa.Array:
        """Return the partition of each row: that of its column, or else that of its key, as Kafka's producer does."""
        rows = batch.num_rows
        if self.options.partition is not None:
            return _repeated(self.options.partition, rows)
        given = batch.column("partition") if "partition" in batch.schema.names else pa.nulls(rows, pa.int32())
        for number in pc.unique(given.drop_null()).to_pylist():
            partitions.check_row(number, self.options.partitions)
        numbers = given if given.null_count == 0 else self._chosen(partitions, batch, given, default)
        for number in pc.unique(numbers).to_pylist():
            partitions.check_here(number)
        return numbers

    def _chosen(self, partitions: Partitions, batch: pa.RecordBatch, given: pa.Array, default: int) -> pa.Array:
        """Choose a partition for each row that names none."""
        rows = batch.num_rows
        count = partitions.count(self.options.partitions)
        if count == 1:
            return pc.coalesce(given, _repeated(0, rows))
        keys = batch.column("key").cast(pa.binary()) if "key" in batch.schema.names else pa.nulls(rows, pa.binary())
        by_key = pa.array(_partitions_of_keys(pa.RecordBatch.from_arrays([keys], ["key"]), count), pa.int32())
        return pc.coalesce(given, by_key, _repeated(partitions.without_key(default, count), rows))


def _where(batch: pa.RecordBatch, column: pa.Array, value: str | int) -> pa.RecordBatch:
    return batch.filter(pc.equal(column, scalar(value, column.type)))


def _repeated(number: int, rows: int) -> pa.Array:
    return pa.repeat(scalar(number, pa.int32()), rows)


def _refused(reason: str) -> SparkLogError:
    return SparkLogError(BAD_OPTION, reason)
