"""Look-ups by the million: `locate` and `offset_for_time` as UDFs over a column.

A worker opens each log once and asks it for a whole Arrow batch at a time (`Log.locate_many`, `Log.offsets_for_times`);
no Python object is made for a row.
"""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column
from pyspark.sql import functions as sql
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import IntegerType, LongType, StructField, StructType, TimestampType

import cordwood as cw
from cordwood.spark.errors import NOT_FOUND, OFFSET_OUT_OF_RANGE, TIME_NOT_FOUND, SparkLogError
from cordwood.spark.partitions import PartitionDirectory, absolute, has_segments, local_path
from cordwood.spark.scalars import scalar
from cordwood.spark.worker import open_cached

__all__ = ["LookUp", "locate", "offset_for_time"]

Kind: TypeAlias = Literal["pandas", "arrow"]
OnMissing: TypeAlias = Literal["null", "error"]

_LOCATION = StructType(
    [
        StructField("segment", LongType()),
        StructField("batch_base_offset", LongType()),
        StructField("position", IntegerType()),
        StructField("size", IntegerType()),
    ]
)
_TIMESTAMP_OFFSET = StructType([StructField("timestamp", TimestampType()), StructField("offset", LongType())])

# pandas has no null among integers, and would make floats of all of them
_NULL = -(1 << 63)


def locate(
    path: str | os.PathLike[str] | None = None,
    *,
    kind: Kind = "pandas",
    iterator: bool = False,
    on_missing: OnMissing = "null",
) -> "LookUp":
    """Make a UDF from an offset (bigint) to the batch that holds it, as `Log.locate`.

    *path*: a partition directory; without it the UDF takes two columns, a path and the offset. *kind*: a `pandas_udf`
    or an `arrow_udf`, which needs no pandas and less CPU; *iterator*: of the kind that Spark calls once a task, not
    once a batch. The answers are the same: `struct<segment bigint, batch_base_offset bigint, position int, size int>`,
    null for a null, a negative and an unknown offset. With `on_missing="error"` the latter two are
    `CORDWOOD_OFFSET_OUT_OF_RANGE`.

        df.select(locate("data/orders-0")("offset"))
        df.select(locate(kind="arrow")("path", "offset"))

    *Errors*: `CORDWOOD_NOT_FOUND` where there is no partition at *path*.
    """
    return LookUp(_Question("locate", _path(path), on_missing), kind, iterator)


def offset_for_time(
    path: str | os.PathLike[str] | None = None,
    *,
    kind: Kind = "pandas",
    iterator: bool = False,
    on_missing: OnMissing = "null",
) -> "LookUp":
    """Make a UDF from a time (timestamp) to the first record that is not older, as `Log.offset_for_time`.

    The parameters are those of `locate`. The answer is `struct<timestamp timestamp, offset bigint>`, null for a null,
    for a time before 1970 and where no record is that late; with `on_missing="error"` the latter two are
    `CORDWOOD_TIME_NOT_FOUND`. For milliseconds in a bigint: `timestamp_millis("ms")`.

        df.select(offset_for_time("data/orders-0")("timestamp"))
    """
    return LookUp(_Question("offset_for_time", _path(path), on_missing), kind, iterator)


class LookUp:
    """A look-up to be applied to columns; `udf` is the bare UDF, for `spark.udf.register` (of kind `arrow`)."""

    def __init__(self, question: "_Question", kind: Kind, iterator: bool) -> None:
        """Make the UDF."""
        if kind not in ("pandas", "arrow") or question.on_missing not in ("null", "error"):
            raise cw.ConfigError(
                f"expected kind 'pandas' or 'arrow' and on_missing 'null' or 'error', "
                f"found {kind!r} and {question.on_missing!r}"
            )
        self._question = question
        self._first = question.returns.names[0]
        self._kind = kind
        self.udf = _udf(question, kind, iterator)

    def __call__(self, *columns: Column | str) -> Column:
        """Apply it: to the value, or where it was made without a path to a path and the value."""
        wanted = 1 if self._question.path else 2
        if len(columns) != wanted:
            raise TypeError(f"{self._question.name} takes {wanted} column(s) here, not {len(columns)}")
        *paths, value = columns
        if self._question.name == "offset_for_time":
            # exact, where pandas would get local times without their zone
            value = sql.unix_micros(value)
        if self._kind == "arrow":
            return self.udf(*paths, value)
        found = self.udf(*paths, sql.coalesce(value, sql.lit(_NULL)))
        # a pandas UDF cannot give a null struct, only one of nulls
        return sql.when(found[self._first].isNotNull(), found)


@dataclass(frozen=True)
class _Question:
    """What a UDF asks, without a handle: it goes to the workers as a pickle."""

    name: Literal["locate", "offset_for_time"]
    path: str | None
    on_missing: OnMissing

    @property
    def returns(self) -> StructType:
        """What an answer looks like."""
        return _LOCATION if self.name == "locate" else _TIMESTAMP_OFFSET

    def answer(self, *columns: pa.Array) -> pa.StructArray:
        """Answer a batch: the values, or paths and values."""
        *paths, values = (_array(column) for column in columns)
        return self._ask_each(paths[0], values) if paths else self.ask(self.path or "", values)

    def _ask_each(self, paths: pa.Array, values: pa.Array) -> pa.StructArray:
        """Ask each log once for all its values, and put the answers back in the order of the rows."""
        answers = [pa.nulls(0, _arrow_type(self.returns))]
        rows = [pa.nulls(0, pa.uint64())]
        for path in pc.unique(paths).to_pylist():
            # without a path there is nothing to ask, whatever the value
            at = pc.indices_nonzero(paths.is_null() if path is None else pc.equal(paths, scalar(path, pa.string())))
            run = values.take(at)
            answers.append(pa.nulls(len(run), _arrow_type(self.returns)) if path is None else self.ask(path, run))
            rows.append(at)
        return pa.concat_arrays(answers).take(pc.sort_indices(pa.concat_arrays(rows)))

    def ask(self, path: str, values: pa.Array) -> pa.StructArray:
        """Answer values of one log."""
        try:
            log = open_cached(local_path(path))
            if self.name == "locate":
                found, code = _locations(log, values), OFFSET_OUT_OF_RANGE
            else:
                found, code = _timestamp_offsets(log, values), TIME_NOT_FOUND
        except (cw.CordwoodError, OSError) as error:
            directory = PartitionDirectory.at(path)
            raise SparkLogError.of(error, topic=directory.topic, partition=directory.partition) from error
        if self.on_missing == "error" and found.null_count > values.null_count:
            directory = PartitionDirectory.at(path)
            missing = values.filter(pc.and_(found.is_null(), values.is_valid()))
            what = f"{len(missing)} values in the log, found none for the first, {missing[0]}"
            raise SparkLogError(code, f"expected {what}", topic=directory.topic, partition=directory.partition)
        return found


def _locations(log: cw.Log, offsets: pa.Array) -> pa.StructArray:
    table = log.locate_many(offsets.cast(pa.int64()))
    columns = [table.column(name).combine_chunks() for name in ("segment", "batch_base_offset", "position", "size")]
    columns[2] = columns[2].cast(pa.int32())
    return _struct(columns, _LOCATION)


def _timestamp_offsets(log: cw.Log, times: pa.Array) -> pa.StructArray:
    if pa.types.is_timestamp(times.type):
        times = times.cast(pa.timestamp("us", tz="UTC"))
    # the first record at or after a time, whose clock counts milliseconds
    microseconds = times.cast(pa.int64())
    milliseconds = pc.divide(pc.add(microseconds, _long(999)), _long(1000))
    # a time before 1970 is rounded towards it
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


def _array(column: Any) -> pa.Array:  # noqa: ANN401  (pandas or Arrow)
    if isinstance(column, pa.Array):
        return column
    array = pa.array(column, from_pandas=True)
    if pa.types.is_int64(array.type):
        return pc.if_else(pc.equal(array, _NULL), pa.scalar(None, pa.int64()), array)
    if pa.types.is_floating(array.type):
        # of the bare UDF: Spark gives floats where there are nulls, exact up to 2^53
        largest = pc.max(pc.abs(array)).as_py() or 0
        if largest >= 1 << 53:
            raise cw.ConfigError('offsets of 2^53 and more beside nulls lose digits in pandas: use kind="arrow"')
        array = array.cast(pa.int64())
    return array


def _path(path: str | os.PathLike[str] | None) -> str | None:
    if path is None:
        return None
    try:
        local = local_path(os.fspath(path))
        if has_segments(local):
            return absolute(local)
        found = "a directory without a segment (a .log named by 20 digits)"
    except OSError as error:
        found = str(error)
    raise SparkLogError(NOT_FOUND, f"{path}: expected a partition directory, such as data/orders-0, found {found}")


def _udf(question: _Question, kind: Kind, iterator: bool) -> Callable[..., Column]:
    """Make the UDF; Spark learns its kind from the types of its signature."""
    given: Any = pa.Array
    back: Any = pa.Array
    give: Callable[[pa.StructArray], Any] = _same
    make: Any = getattr(sql, f"{kind}_udf")
    if kind == "pandas":
        import pandas as pd  # noqa: PLC0415  (the Arrow kind needs none)

        given, back, give = pd.Series, pd.DataFrame, _frame

    def each(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            yield give(question.answer(*((batch,) if question.path else batch)))

    def of_value(values: Any) -> Any:  # noqa: ANN401  (pandas or Arrow)
        return give(question.answer(values))

    def of_path_and_value(paths: Any, values: Any) -> Any:  # noqa: ANN401
        return give(question.answer(paths, values))

    if iterator:
        batch: Any = given if question.path else tuple[given, given]
        function: Any = each
        function.__annotations__ = {"batches": Iterator[batch], "return": Iterator[back]}
    elif question.path:
        function = of_value
        function.__annotations__ = {"values": given, "return": back}
    else:
        function = of_path_and_value
        function.__annotations__ = {"paths": given, "values": given, "return": back}
    function.__name__ = question.name
    udf: Callable[..., Column] = make(function, question.returns)
    return udf


def _same(answers: pa.StructArray) -> pa.StructArray:
    return answers


def _frame(answers: pa.StructArray) -> Any:  # noqa: ANN401  (a pandas.DataFrame)
    """Give the fields of the answers as a pandas frame; where there are nulls, floats would lose digits."""
    import pandas as pd  # noqa: PLC0415

    types = {pa.int64(): pd.Int64Dtype(), pa.int32(): pd.Int32Dtype()} if answers.null_count else {}
    return pa.Table.from_struct_array(answers).to_pandas(types_mapper=types.get)
