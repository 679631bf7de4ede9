"""How many records there are, without moving them."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Literal, TypeAlias

import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  (as everybody calls it)

from cordwood import CordwoodError, Log, LogNotFoundError
from cordwood.spark.errors import SparkLogError
from cordwood.spark.jobs.ranges import Io, Range, cut
from cordwood.spark.jobs.reading import Option, Paths, checked, load, parallelism, ranges_of
from cordwood.spark.options import SparkLogOptions
from cordwood.spark.worker import open_cached

__all__ = ["By", "count", "count_ranges", "records_between"]

By: TypeAlias = Literal["partition", "key", "hour"]

_PIECE_BYTES = 256 << 20
_TASKS_A_CORE = 4
_MICROS_AN_HOUR = 3_600_000_000
_NO_TIMESTAMP_MICROS = -1_000
_PIECE = "topic string, partition int, path string, start bigint, end bigint"


def count(spark: SparkSession, path: Paths, by: By = "partition", **options: Option) -> DataFrame:
    """Count records: a row a partition, a key, or a topic and hour (UTC), with the column `records`.

    These are true counts, not differences of offsets: what compaction removed is not in them, nor are control records,
    nor, with `isolationLevel="read_committed"`, what was aborted. A damaged stretch has no records. The hour is null
    for records that have no timestamp.

    *by*: `"partition"` gives `topic partition records`, also for empty partitions; `"key"` gives `key records`;
    `"hour"` gives `topic hour records`. *Cost*: by partition, the batch headers are read, and the records only of
    batches whose header does not tell (cut by the range, of formats v0 and v1, of transactions when only what was
    committed counts, and all of them in a `mode` that passes over damage). By key and by hour every record is read,
    but only that column.
    """
    given = checked(path, options)
    match by:
        case "partition":
            return count_ranges(spark, ranges_of(given), given)
        case "key":
            return _column(spark, given, "key").groupBy("key").agg(_records())
        case "hour":
            return _column(spark, given, "topic", "timestamp").groupBy("topic", _hour()).agg(_records())
    raise ValueError(f"by={by!r}: records are counted by 'partition', 'key' or 'hour'")


def count_ranges(spark: SparkSession, ranges: Iterable[Range], options: SparkLogOptions) -> DataFrame:
    """Count the records of ranges: `topic partition records`. The executors open the ranges' own paths."""
    # an empty range stays, so that its partition has a row
    pieces = [piece for whole in ranges for piece in [*cut(whole, _PIECE_BYTES, options.io)] or [whole]]
    pieces.sort(key=lambda piece: -piece.size)
    rows = [(piece.topic, piece.partition, piece.path, piece.start_offset, piece.end_offset) for piece in pieces]
    # a row is a large piece of work: how it reaches Python does not matter
    counted = F.udf(_count_piece, "bigint", useArrow=False)(
        *("topic", "partition", "path", "start", "end"),
        F.lit(options.isolation_level),
        F.lit("raise" if options.mode == "FAILFAST" else "skip"),
        F.lit(options.io),
        F.lit(options.fail_on_data_loss),
    )
    return (
        spark.createDataFrame(rows, _PIECE)
        .repartition(max(1, min(len(rows), _TASKS_A_CORE * parallelism(spark))))
        .select("topic", "partition", counted.alias("records"))
        .groupBy("topic", "partition")
        .agg(F.sum("records").alias("records"))
    )


def _count_piece(  # noqa: PLR0913, PLR0917  (columns of a row, which have no names there)
    topic: str | None,
    partition: int | None,
    path: str,
    start: int,
    end: int,
    isolation_level: str,
    on_damage: str,
    io: Io,
    fail_on_data_loss: bool,
) -> int:
    try:
        log = open_cached(path, io=io)
        if not fail_on_data_loss:
            start, end = max(start, log.log_start_offset), min(end, log.log_end_offset)
        return records_between(log, start, end, isolation_level, on_damage)
    except (CordwoodError, OSError) as error:
        if isinstance(error, LogNotFoundError) and not fail_on_data_loss:
            return 0
        raise SparkLogError.of(error, topic=topic, partition=partition) from error


def records_between(log: Log, start: int, end: int, isolation_level: str, on_damage: str) -> int:
    """Count the records in `[start, end)`, by the batch headers wherever they say it exactly.

    >>> log = Log("tests/golden/01-plain/orders-0")
    >>> records_between(log, 10, 1490, "read_uncommitted", "raise")
    1480
    """
    if start >= end:
        return 0
    if on_damage != "raise":
        # of a batch that is passed over, the header would be counted
        return _scanned(log, start, end, isolation_level, on_damage)
    records = 0
    unsure: list[tuple[int, int]] = []
    for batch in log.batches(start_offset=start, end_offset=end):
        first, last = batch.column("base_offset"), batch.column("last_offset")
        exact = pc.and_(pc.is_valid(batch.column("count")), pc.and_(pc.greater_equal(first, start), pc.less(last, end)))
        if isolation_level == "read_committed":
            exact = pc.and_not(exact, batch.column("is_transactional"))
        data = pc.invert(batch.column("is_control"))
        records += pc.sum(batch.column("count").filter(pc.and_(exact, data)), min_count=0).as_py()
        rest = pc.and_not(data, exact)
        unsure += zip(first.filter(rest).to_pylist(), last.filter(rest).to_pylist(), strict=True)
    for low, high in _joined(unsure):
        records += _scanned(log, max(low, start), min(high, end), isolation_level, on_damage)
    return records


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


def _scanned(log: Log, start: int, end: int, isolation_level: str, on_damage: str) -> int:
    request: Any = {"isolation_level": isolation_level, "on_damage": on_damage}
    return sum(b.num_rows for b in log.scan(start_offset=start, end_offset=end, columns=["offset"], **request))


def _column(spark: SparkSession, options: SparkLogOptions, *columns: str) -> DataFrame:
    # the rows of PERMISSIVE about damage are no records
    mode = "DROPMALFORMED" if options.mode == "PERMISSIVE" else options.mode
    return load(spark, replace(options, table="records", columns=columns, include_headers=False, mode=mode))


def _records() -> Column:
    return F.count(F.lit(1)).alias("records")


def _hour() -> Column:
    # by arithmetic: the session's time zone may lie half an hour off
    micros = F.unix_micros("timestamp")
    start = F.timestamp_micros(micros - F.pmod(micros, F.lit(_MICROS_AN_HOUR)))
    return F.when(micros != _NO_TIMESTAMP_MICROS, start).alias("hour")
