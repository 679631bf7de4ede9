"""Look-ups by offset or time, evaluated by a worker for a whole Arrow batch at a time."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import IntegerType, LongType, StructField, StructType, TimestampType

import cordwood as cw
from cordwood._core import _open_log, _partition_directory
from cordwood.spark.arrow_scalars import scalar
from cordwood.spark.errors import OFFSET_OUT_OF_RANGE, TIME_NOT_FOUND, SparkLogError, bad_option

__all__ = ["ACCEPTED_TYPES", "NULL", "LookupSpec", "OnMissing", "expected_type"]

OnMissing: TypeAlias = Literal["null", "error"]

# represents null in a pandas Series: pandas has no null integer, and would convert the Series to floats
NULL = -(1 << 63)

# The type that a look-up uses, and the Spark types that are cast to it. Other types must be cast by the
# caller: an implicit cast would convert the offset 5.7 to 5, and read a number of milliseconds as seconds.
ACCEPTED_TYPES: dict[str, tuple[str, list[str]]] = {
    "locate": ("bigint", ["bigint", "int", "smallint", "tinyint"]),
    "offset_for_time": ("timestamp", ["timestamp", "timestamp_ntz"]),
}

_LOCATION = StructType(
    [
        StructField("segment_base_offset", LongType()),
        StructField("batch_base_offset", LongType()),
        StructField("position", IntegerType()),
        StructField("size", IntegerType()),
    ]
)
_TIMESTAMP_OFFSET = StructType([StructField("timestamp", TimestampType()), StructField("offset", LongType())])

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class LookupSpec:
    """The look-up of a UDF. It has no open handle, because it is pickled for the workers."""

    name: Literal["locate", "offset_for_time"]
    path: str | None
    on_missing: OnMissing

    @property
    def returns(self) -> StructType:
        """The type of a result."""
        return _LOCATION if self.name == "locate" else _TIMESTAMP_OFFSET

    def evaluate(self, *columns: pa.Array) -> pa.StructArray:
        """Look up a batch: values, or paths and values."""
        *paths, values = columns
        values = self._values(values)
        return self._look_up_each(self._paths(paths[0]), values) if paths else self.look_up(self.path or "", values)

    def _values(self, column: Any) -> pa.Array:  # noqa: ANN401  (pandas or Arrow)
        """Convert the values to 64-bit integers, times to microseconds. The bare UDF may be called with any type.

        A timestamp without a time zone is refused, because the session's zone is not known here.
        """
        values = column if isinstance(column, pa.Array) else _of_pandas(column, self.name)
        kind = values.type
        # a number is a time only in the pandas kind, which converts timestamps to numbers before
        is_whole = pa.types.is_integer(kind) and (self.name == "locate" or values is not column)
        if is_whole or pa.types.is_null(kind):
            return values.cast(pa.int64())
        if self.name == "offset_for_time" and pa.types.is_timestamp(kind) and kind.tz is not None:
            return values.cast(pa.timestamp("us", tz="UTC")).cast(pa.int64())
        is_naive = pa.types.is_timestamp(kind)
        expected = "a column of type timestamp (cast timestamp_ntz to it)" if is_naive else expected_type(self.name)
        raise bad_option(self.name, expected, str(kind))

    def _paths(self, column: Any) -> pa.Array:  # noqa: ANN401  (pandas or Arrow)
        paths = column if isinstance(column, pa.Array) else pa.array(column, from_pandas=True)
        # with spark.sql.execution.arrow.useLargeVarTypes, strings are large strings
        if pa.types.is_null(paths.type) or pa.types.is_string(paths.type) or pa.types.is_large_string(paths.type):
            return paths.cast(pa.string())
        raise bad_option(self.name, "a path (string) in the first of two columns", str(paths.type))

    def _look_up_each(self, paths: pa.Array, values: pa.Array) -> pa.StructArray:
        """Look up the values of each log with one call, and return the results in the order of the rows."""
        results = [pa.nulls(0, _arrow_type(self.returns))]
        rows = [pa.nulls(0, pa.uint64())]
        for path in pc.unique(paths).to_pylist():
            # the result for a null path is null
            at = pc.indices_nonzero(paths.is_null() if path is None else pc.equal(paths, scalar(path, pa.string())))
            run = values.take(at)
            results.append(pa.nulls(len(run), _arrow_type(self.returns)) if path is None else self.look_up(path, run))
            rows.append(at)
        return pa.concat_arrays(results).take(pc.sort_indices(pa.concat_arrays(rows)))

    def look_up(self, path: str, values: pa.Array) -> pa.StructArray:
        """Look up values in one log."""
        directory, topic, partition = _partition_directory(path)
        try:
            log = _log(directory)
            if self.name == "locate":
                found, code = _locations(log, values), OFFSET_OUT_OF_RANGE
            else:
                found, code = _timestamp_offsets(log, values), TIME_NOT_FOUND
        except (cw.CordwoodError, OSError) as error:
            raise SparkLogError.of(error, topic=topic, partition=partition) from error
        if self.on_missing == "error" and found.null_count > values.null_count:
            missing = values.filter(pc.and_(found.is_null(), values.is_valid()))
            expected = f"offsets {log.log_start_offset} to {log.log_end_offset} (exclusive)"
            first = str(missing[0])
            if self.name == "offset_for_time":
                expected, first = "times from 1970 to the latest of the log", _in_words(missing[0].as_py())
            values_found = first if len(missing) == 1 else f"{len(missing)} others, the first {first}"
            reason = f"{self.name}: expected {expected}, found {values_found}"
            raise SparkLogError(code, reason, topic=topic, partition=partition)
        return found


# the logs used by the current task, which reads each log as it was at the first batch of rows
_seen: set[str] = set()
_seen_by: int | None = None


def _log(path: str) -> cw.Log:
    global _seen_by  # noqa: PLW0603  (a process works on one task at a time)
    context = TaskContext.get()
    task = None if context is None else context.taskAttemptId()
    if task is None or task != _seen_by:
        _seen.clear()
        _seen_by = task
    log = _open_log(path, refresh=path not in _seen)
    _seen.add(path)
    return log


def expected_type(name: str) -> str:
    """Return the accepted types, for a message."""
    wanted, types = ACCEPTED_TYPES[name]
    return f"a column of type {', '.join(types[:-1])} or {types[-1]} (cast it to {wanted})"


def _in_words(microseconds: int) -> str:
    """Format a time for a message, with its milliseconds."""
    milliseconds = f"{-(-microseconds // 1000)} ms"
    try:
        moment = _EPOCH + timedelta(microseconds=microseconds)
    except OverflowError:
        return milliseconds
    precision = "milliseconds" if microseconds % 1000 == 0 else "microseconds"
    return f"{moment.isoformat(timespec=precision).replace('+00:00', 'Z')} ({milliseconds})"


def _locations(log: cw.Log, offsets: pa.Array) -> pa.StructArray:
    table = log.locate_many(offsets)
    columns = [table.column(name).combine_chunks() for name in _LOCATION.names]
    columns[2] = columns[2].cast(pa.int32())
    return _struct(columns, _LOCATION)


def _timestamp_offsets(log: cw.Log, microseconds: pa.Array) -> pa.StructArray:
    # rounded up to milliseconds: the first record at or after the time
    milliseconds = pc.divide(pc.add(microseconds, _long(999)), _long(1000))
    # the division rounds a time before 1970 up to 0, which would be found
    milliseconds = pc.if_else(pc.less(microseconds, _long(0)), _long(-1), milliseconds)
    table = log.offsets_for_times(milliseconds)
    try:
        timestamps = pc.multiply_checked(table.column("timestamp").combine_chunks(), _long(1000))
    except pa.ArrowInvalid as error:
        raise cw.UnsupportedFormatError(
            f"{log.path}: a record's time is beyond Spark's microseconds: {error}"
        ) from error
    return _struct(
        [timestamps.cast(pa.timestamp("us", tz="UTC")), table.column("offset").combine_chunks()], _TIMESTAMP_OFFSET
    )


def _long(value: int) -> pa.Scalar:
    return scalar(value, pa.int64())


def _struct(columns: list[pa.Array], returns: StructType) -> pa.StructArray:
    mask = columns[0].is_null() if columns[0].null_count else None
    return pa.StructArray.from_arrays(columns, fields=list(_arrow_type(returns)), mask=mask)


def _arrow_type(returns: StructType) -> pa.StructType:
    return to_arrow_type(returns, timezone="UTC")


def _of_pandas(column: Any, name: str) -> pa.Array:  # noqa: ANN401  (a pandas.Series)
    array = pa.array(column, from_pandas=True)
    if pa.types.is_int64(array.type):
        return pc.if_else(pc.equal(array, NULL), pa.scalar(None, pa.int64()), array)
    if pa.types.is_floating(array.type):
        # the bare UDF: Spark passes floats if there are nulls, exact up to 2^53
        largest = pc.max(pc.abs(array)).as_py() or 0
        if largest >= 1 << 53:
            raise bad_option(name, 'kind="arrow" for nulls together with 2^53 and above: pandas loses digits', largest)
        try:
            array = array.cast(pa.int64())
        except pa.ArrowInvalid:
            raise bad_option(name, expected_type(name), str(array.type)) from None
    return array
