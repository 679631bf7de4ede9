"""Counts of records, computed by the executors."""

import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Literal, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  (as everybody calls it)
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import BooleanType, IntegerType, LongType, StringType, StructField, StructType

import cordwood as cw
from cordwood.spark.batch import LogPartition, LogReader, partitions_of
from cordwood.spark.bounds import open_log, resolve, with_codes
from cordwood.spark.jobs.reading import Option, Paths, checked, load
from cordwood.spark.offset_gaps import offsets_in_gaps
from cordwood.spark.options import SparkLogOptions
from cordwood.spark.read import read_pieces
from cordwood.spark.schema import Shape
from cordwood.spark.source import LogDataSource
from cordwood.spark.split import Piece, narrowed, part_of

__all__ = ["By", "count", "counts", "records_of"]

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
_HEADERS = Shape(
    StructType(
        [
            StructField("baseOffset", LongType()),
            StructField("lastOffset", LongType()),
            StructField("count", IntegerType()),
            StructField("isTransactional", BooleanType()),
            StructField("isControl", BooleanType()),
        ]
    ),
    "batches",
)
_OFFSETS = Shape(StructType([StructField("offset", LongType())]), "records")


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
            return counts(spark, replace(given, table="records", columns=None))
        case "key":
            return _column(spark, given, "key").groupBy("key").agg(_records())
        case "hour":
            return _column(spark, given, "topic", "timestamp").groupBy("topic", _hour()).agg(_records())
    raise ValueError(f"by={by!r}: records are counted by 'partition', 'key' or 'hour'")


def counts(spark: SparkSession, options: SparkLogOptions, *, warns: bool = True) -> DataFrame:
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
        return _CountReader(self.log_options, super().schema())


class _RecountSource(CountSource):
    @classmethod
    def name(cls) -> str:
        return "cordwood_recounts"

    def reader(self, schema: StructType) -> DataSourceReader:  # noqa: ARG002
        return _RecountReader(self.log_options, LogDataSource.schema(self))


class _CountReader(LogReader):
    def partitions(self) -> list[InputPartition]:
        # every partition has a row, also one with an empty range
        bounds = list(resolve(self.options))
        none = (Piece(bound.directory, cw.Split(bound.path, 0, 0)) for bound in bounds)
        return [*partitions_of(bounds, self.options), LogPartition(tuple(none))]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        for piece in partition.value:
            of = piece.directory
            row = {
                "topic": of.topic,
                "partition": of.partition,
                "records": records_of(piece, self.options),
                "offsetGap": _offset_gap(piece, self.options),
            }
            yield pa.RecordBatch.from_pylist([row], schema=to_arrow_schema(_COUNTS))


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


def _offset_gap(piece: Piece, options: SparkLogOptions) -> int:
    start, end = piece.split.start_offset, piece.split.end_offset
    if start >= end:
        return 0
    # the log as it was when it was counted
    log = open_log(piece.directory, options, refresh=False)
    return with_codes(piece.directory, partial(offsets_in_gaps, log, start, end))


def records_of(piece: Piece, options: SparkLogOptions) -> int:
    """Count the records of a piece, from the batch headers where these are exact.

    *Errors*: those of `read_pieces`.
    """
    start, end = piece.split.start_offset, piece.split.end_offset
    if start >= end:
        return 0
    if options.mode != "FAILFAST":
        # a skipped batch would be counted by its header
        return _scanned(piece, options)
    records = 0
    inexact: list[tuple[int, int]] = []
    # if the range may begin later than planned, the first batch may have lost records
    is_whole = options.fail_on_data_loss
    for batch in read_pieces((piece,), replace(options, table="batches"), _HEADERS):
        first, last, count, is_transactional, is_control = batch.columns
        exact = pc.and_(pc.is_valid(count), pc.and_(pc.greater_equal(first, start), pc.less(last, end)))
        if options.isolation_level == "read_committed":
            exact = pc.and_not(exact, is_transactional)
        if not is_whole:
            exact = pc.and_(exact, pc.greater(first, first[0]))
            is_whole = True
        records += pc.sum(count.filter(pc.and_not(exact, is_control)), min_count=0).as_py()
        # control batches may be included, which joins the ranges on both sides; a scan skips them
        rest = pc.invert(exact)
        inexact += zip(first.filter(rest).to_pylist(), last.filter(rest).to_pylist(), strict=True)
    parts = (part_of(piece.split, max(low, start), min(high, end), 0) for low, high in _joined(inexact))
    return records + sum(_scanned(narrowed(piece, part), options) for part in parts)


def _joined(batches: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Join neighbouring batches, (first, last), to half-open ranges.

    >>> _joined([(0, 4), (5, 9), (12, 12)])
    [(0, 10), (12, 13)]
    """
    ranges: list[tuple[int, int]] = []
    for first, last in batches:
        if ranges and ranges[-1][1] == first:
            ranges[-1] = (ranges[-1][0], last + 1)
        else:
            ranges.append((first, last + 1))
    return ranges


def _scanned(piece: Piece, options: SparkLogOptions) -> int:
    return sum(batch.num_rows for batch in read_pieces((piece,), _without_damage(options), _OFFSETS))


def _without_damage(options: SparkLogOptions) -> SparkLogOptions:
    # rows for damage with PERMISSIVE are not records
    return replace(options, mode="DROPMALFORMED") if options.mode == "PERMISSIVE" else options


def _column(spark: SparkSession, options: SparkLogOptions, *columns: str) -> DataFrame:
    given = _without_damage(options)
    return load(spark, replace(given, table="records", columns=columns, include_headers=False))


def _records() -> Column:
    return F.count(F.lit(1)).alias("records")


def _hour() -> Column:
    # by arithmetic: the session's time zone may have an offset of half an hour
    micros = F.unix_micros("timestamp")
    start = F.timestamp_micros(micros - F.pmod(micros, F.lit(_MICROS_AN_HOUR)))
    return F.when(micros != _NO_TIMESTAMP_MICROS, start).alias("hour")
