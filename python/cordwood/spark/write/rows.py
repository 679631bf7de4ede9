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
from cordwood.spark.write.journal import is_log
from cordwood.spark.write.options import SinkOptions

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
    existing: Mapping[str, tuple[int, ...]]
    """The partitions that each topic had when the write began, ascending. Tasks must not look for themselves: other
    tasks and other writes create partitions meanwhile."""

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

    def partitions_of(self, topic: str) -> int:
        """Return the number of partitions of a topic.

        *Errors*: `CORDWOOD_BAD_OPTION` if it is not known, and if the topic has another number than the option says.
        """
        existing, wanted = self.existing.get(topic, ()), self.options.partitions
        if wanted is not None:
            self.options.check_count(topic, existing)
            return wanted
        if existing != tuple(range(len(existing))):
            numbers = ", ".join(map(str, existing))
            raise _refused(
                f"numPartitions: expected the number of partitions of the topic {topic}, of which only the directories "
                f"of {numbers} are here; or use the column partition"
            )
        return len(existing) or 1

    def _of_topic(self, topic: str, batch: pa.RecordBatch, default: int) -> Iterator[tuple[str, int, pa.RecordBatch]]:
        numbers = self._numbers(topic, batch, default)
        records = batch.select([name for name in batch.schema.names if name in _OF_RECORDS])
        distinct = pc.unique(numbers).to_pylist()
        for number in distinct:
            yield topic, number, records if len(distinct) == 1 else _where(records, numbers, number)

    def _numbers(self, topic: str, batch: pa.RecordBatch, default: int) -> pa.Array:
        """Return the partition of each row: that of its column, or else that of its key, as Kafka's producer does."""
        rows = batch.num_rows
        if self.options.partition is not None:
            return _repeated(self.options.partition, rows)
        given = batch.column("partition") if "partition" in batch.schema.names else pa.nulls(rows, pa.int32())
        self._check(topic, given)
        if given.null_count == 0:
            return given
        count = self.partitions_of(topic)
        if count == 1:
            return pc.coalesce(given, _repeated(0, rows))
        keys = batch.column("key").cast(pa.binary()) if "key" in batch.schema.names else pa.nulls(rows, pa.binary())
        by_key = pa.array(_partitions_of_keys(pa.RecordBatch.from_arrays([keys], ["key"]), count), pa.int32())
        return pc.coalesce(given, by_key, _repeated(default % count, rows))

    def _check(self, topic: str, numbers: pa.Array) -> None:
        """Check the partitions that rows name: a write adds none to a topic."""
        wanted = [number for number in pc.unique(numbers).to_pylist() if number is not None]
        if not wanted:
            return
        existing, count = self.existing.get(topic, ()), self.options.partitions
        if count is not None:
            self.partitions_of(topic)
        known = range(count) if count is not None else existing or range(1)
        for number in wanted:
            # of a stream, the topic may have got it since the query began
            if number not in known and not (count is None and is_log(self.options.directory(topic, number))):
                raise _refused(f"column partition: {self._reason(topic, number)}")

    def _reason(self, topic: str, number: int) -> str:
        """Say why a topic has no partition of this number."""
        existing, count = self.existing.get(topic, ()), self.options.partitions
        found = f"found {number} in a row of {topic}"
        if count is not None:
            return f"expected 0 to {count - 1}, because of numPartitions={count}, {found}"
        if not existing:
            advice = "give the option numPartitions, or drop the column, so that the keys choose the partitions"
            return f"expected 0, because the new topic {topic} gets 1 partition, {found}; {advice}"
        there = ", ".join(map(str, existing))
        are_all = existing == tuple(range(len(existing)))
        if len(existing) > 1 and are_all:
            there = f"0 to {len(existing) - 1}"
        noun = "partition" if len(existing) == 1 else "partitions"
        advice = f"to add a partition to the topic, write to its path first: {self.options.directory(topic, number)}"
        if number < 0:
            advice = "leave it null to choose the partition by the key"
        elif are_all and number > len(existing):
            # alone it would leave gaps, and then no partition can be chosen by a key
            first, last = self.options.directory(topic, len(existing)), self.options.directory(topic, number)
            advice = f"to add partitions to the topic, write to the path of each first, from {first} to {last}"
        return f"expected {there}, because the topic {topic} has {len(existing)} {noun} here, {found}; {advice}"


def _where(batch: pa.RecordBatch, column: pa.Array, value: str | int) -> pa.RecordBatch:
    return batch.filter(pc.equal(column, scalar(value, column.type)))


def _repeated(number: int, rows: int) -> pa.Array:
    return pa.repeat(scalar(number, pa.int32()), rows)


def _refused(reason: str) -> SparkLogError:
    return SparkLogError(BAD_OPTION, reason)
