"""Counts of records, computed by the executors."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal, TypeAlias

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  (as everybody calls it)
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType

from cordwood._core import _SourceOptions, _Task
from cordwood.spark.batch import LogPartition, LogReader
from cordwood.spark.jobs.reading import Option, Paths, checked, load
from cordwood.spark.schema import query_of
from cordwood.spark.source import LogDataSource

__all__ = ["By", "count", "counts"]

By: TypeAlias = Literal["partition", "key", "hour"]

_MICROS_AN_HOUR = 3_600_000_000
_NO_TIMESTAMP_MICROS = -1_000
_COUNTS = StructType(
    [
        StructField("topic", StringType()),
        StructField("partition", IntegerType()),
        StructField("records", LongType()),
        StructField("offsetGap", LongType()),
    ]
)


def count(spark: SparkSession, path: Paths, by: By = "partition", **options: Option) -> DataFrame:
    """Count records: a row for each partition, each key, or each topic and hour (UTC), with the column `records`.

    These are exact counts, not differences of offsets: records that compaction removed, control records and, with
    `isolationLevel="read_committed"`, aborted records are not counted. A damaged range has no records. The hour is null
    for records without a timestamp.

    *by*: `"partition"` returns `topic partition records offsetGap`, also for empty partitions; `"key"` returns `key
    records`; `"hour"` returns `topic hour records`. `offsetGap` is the number of offsets between segments that are in
    no segment: 0, unless compaction removed them, or data is lost and `failOnDataLoss=false` allows the count to
    continue.

    *Cost*: by partition, the batch headers are read. Records are read only where the header is not enough: batches cut
    by the range, formats v0 and v1, transactions with read_committed, and all batches in a `mode` that skips damage. By
    key and by hour every record is read, but only that column.
    """
    given = checked(path, options)
    match by:
        case "partition":
            return counts(spark, given.replaced({"table": None, "columns": None}))
        case "key":
            return _column(spark, given, "key").groupBy("key").agg(_records())
        case "hour":
            return _column(spark, given, "topic", "timestamp").groupBy("topic", _hour()).agg(_records())
    raise ValueError(f"by={by!r}: records are counted by 'partition', 'key' or 'hour'")


def counts(spark: SparkSession, options: _SourceOptions, *, warns: bool = True) -> DataFrame:
    """Count the records that the options select: `topic partition records offsetGap`.

    Without *warns* there is no warning about damage or lost data: for a second count of the same range.
    """
    sums = [F.sum(name).alias(name) for name in ("records", "offsetGap")]
    return load(spark, options, CountSource if warns else _RecountSource).groupBy("topic", "partition").agg(*sums)


class CountSource(LogDataSource):
    """The source with counts instead of rows, with the same plan and the same errors."""

    @classmethod
    def name(cls) -> str:
        """Return the format's name."""
        return "cordwood_counts"

    def schema(self) -> StructType:
        """Return the columns: a row is the count of a part of a partition."""
        super().schema()
        return _COUNTS

    def reader(self, schema: StructType) -> DataSourceReader:  # noqa: ARG002  (there is one schema)
        """Return the reader of a count."""
        return _CountReader(query_of(self.log_options))


class _RecountSource(CountSource):
    @classmethod
    def name(cls) -> str:
        return "cordwood_recounts"

    def reader(self, schema: StructType) -> DataSourceReader:  # noqa: ARG002
        return _RecountReader(query_of(self.log_options))


class _CountReader(LogReader):
    def partitions(self) -> list[InputPartition]:
        ranges, tasks = self.query.plan()
        # every partition has a row, also one with an empty range
        return [*map(LogPartition, tasks), LogPartition([(one.topic, one.partition) for one in ranges])]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if isinstance(partition.value, _Task):
            for piece in partition.value.pieces:
                count, gap = self.query.count(piece.task), self.query.offset_gap(piece)
                yield _row(piece.topic, piece.partition, count, gap)
        else:
            for topic, number in partition.value:
                yield _row(topic, number, 0, 0)


def _row(topic: str | None, partition: int | None, records: int, offset_gap: int) -> pa.RecordBatch:
    row = {"topic": topic, "partition": partition, "records": records, "offsetGap": offset_gap}
    return pa.RecordBatch.from_pylist([row], schema=to_arrow_schema(_COUNTS))


class _RecountReader(_CountReader):
    def partitions(self) -> list[InputPartition]:
        with _silence():
            return super().partitions()

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        with _silence():
            yield from super().read(partition)


@contextmanager
def _silence() -> Iterator[None]:
    """Suppress warnings of this process, which does nothing else in the meantime."""
    logger = logging.getLogger("cordwood")
    was, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = was


def _column(spark: SparkSession, options: _SourceOptions, *columns: str) -> DataFrame:
    # rows for damage are not records
    mode = "DROPMALFORMED" if options.mode == "PERMISSIVE" else options.mode
    changes = {"mode": mode, "table": None, "columns": ",".join(columns), "includeHeaders": None}
    return load(spark, options.replaced(changes))


def _records() -> Column:
    return F.count(F.lit(1)).alias("records")


def _hour() -> Column:
    # by arithmetic: the session's time zone may have an offset of half an hour
    micros = F.unix_micros("timestamp")
    start = F.timestamp_micros(micros - F.pmod(micros, F.lit(_MICROS_AN_HOUR)))
    return F.when(micros != _NO_TIMESTAMP_MICROS, start).alias("hour")
