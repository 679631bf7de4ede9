"""Bulk look-ups: `locate` and `offset_for_time` as UDFs over a column.

A worker opens each log once and looks up a whole Arrow batch at a time (`Log.locate_many`, `Log.offsets_for_times`). No
Python object is created for a row.
"""

import os
from collections.abc import Callable, Iterator
from typing import Any, Literal, TypeAlias

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as sql

import cordwood as cw
from cordwood._core import _has_segments, _partition_directory
from cordwood.spark.errors import BAD_OPTION, NOT_FOUND, SparkLogError
from cordwood.spark.lookup import ACCEPTED_TYPES, NULL, LookupSpec, OnMissing, expected_type

__all__ = ["LookUp", "locate", "offset_for_time"]

Kind: TypeAlias = Literal["pandas", "arrow"]


def locate(
    path: str | os.PathLike[str] | None = None,
    *,
    kind: Kind = "pandas",
    iterator: bool = False,
    on_missing: OnMissing = "null",
) -> "LookUp":
    """Return a UDF from an offset (bigint) to the batch that contains it, as `Log.locate`.

    *path*: a partition directory; without it the UDF takes two columns, a path and the offset. *kind*: a `pandas_udf`,
    or an `arrow_udf`, which needs no pandas and less CPU. *iterator*: Spark calls the UDF once per task instead of once
    per batch. All kinds return `struct<segment_base_offset bigint, batch_base_offset bigint, position int, size int>`,
    and null for a null, a negative or an unknown offset. With `on_missing="error"` the last two are
    `CORDWOOD_OFFSET_OUT_OF_RANGE`.

        df.select(locate("data/orders-0")("offset"))
        df.select(locate(kind="arrow")("path", "offset"))

    *Errors*: `CORDWOOD_NOT_FOUND` if there is no partition at *path*; in the query, `CORDWOOD_BAD_OPTION` for offsets
    of another type than bigint, int, smallint or tinyint. Cast them first.
    """
    return LookUp(LookupSpec("locate", _path(path), on_missing), kind, iterator)


def offset_for_time(
    path: str | os.PathLike[str] | None = None,
    *,
    kind: Kind = "pandas",
    iterator: bool = False,
    on_missing: OnMissing = "null",
) -> "LookUp":
    """Return a UDF from a time (timestamp) to the first record at or after it, as `Log.offset_for_time`.

    The parameters are as for `locate`. The UDF returns `struct<timestamp timestamp, offset bigint>`, and null for a
    null, for a time before 1970 and for a time after the last record; with `on_missing="error"` the last two are
    `CORDWOOD_TIME_NOT_FOUND`. A timestamp_ntz is cast to timestamp by Spark: it is a time in the session's zone. Other
    types are `CORDWOOD_BAD_OPTION` in the query. For milliseconds in a bigint, use `timestamp_millis("ms")`.

        df.select(offset_for_time("data/orders-0")("timestamp"))
    """
    return LookUp(LookupSpec("offset_for_time", _path(path), on_missing), kind, iterator)


class LookUp:
    """A look-up over columns. `udf` is the bare UDF, for `spark.udf.register` (of kind `arrow`)."""

    def __init__(self, spec: LookupSpec, kind: Kind, iterator: bool) -> None:
        """Create the UDF."""
        if kind not in ("pandas", "arrow") or spec.on_missing not in ("null", "error"):
            raise cw.ConfigError(
                f"expected kind 'pandas' or 'arrow' and on_missing 'null' or 'error', "
                f"found {kind!r} and {spec.on_missing!r}"
            )
        self._spec = spec
        self._first = spec.returns.names[0]
        self._kind = kind
        self.udf = _udf(spec, kind, iterator)

    def __call__(self, *columns: Column | str) -> Column:
        """Apply it to the value or, if it was created without a path, to a path and the value."""
        expected = 1 if self._spec.path else 2
        if len(columns) != expected:
            raise TypeError(f"{self._spec.name} takes {expected} column(s) here, not {len(columns)}")
        *paths, given = columns
        value = _accepted(self._spec.name, given)
        if self._kind == "arrow":
            found = self.udf(*paths, value)
        else:
            if self._spec.name == "offset_for_time":
                # exact: pandas would get local times without a zone
                value = sql.unix_micros(value)
            result = self.udf(*paths, sql.coalesce(value, sql.lit(NULL)))
            # a pandas UDF cannot return a null struct, only a struct of nulls
            found = sql.when(result[self._first].isNotNull(), result)
        return found.alias(f"{self._spec.name}({', '.join(map(_name, columns))})")


def _accepted(name: str, given: Column | str) -> Column:
    """Cast a column to the type of the look-up; a type that is not accepted fails the query."""
    value = sql.col(given) if isinstance(given, str) else given
    wanted, types = ACCEPTED_TYPES[name]
    # constant when the query is planned: only the cast or the error is left
    kind = sql.typeof(value)
    is_accepted = kind.isin(*types, "void")
    # the JVM puts the type of the column into the text of the error
    error = SparkLogError(BAD_OPTION, f"{name}: expected {expected_type(name)}, found \0")
    before, _, after = str(error).partition("\0")
    refusal = sql.concat(sql.lit(before), kind, sql.lit(after))
    return sql.when(is_accepted, value.cast(wanted)).otherwise(sql.raise_error(refusal))


def _name(column: Column | str) -> str:
    return column if isinstance(column, str) else str(column).removeprefix("Column<'").removesuffix("'>")


def _path(path: str | os.PathLike[str] | None) -> str | None:
    if path is None:
        return None
    try:
        directory, _, _ = _partition_directory(os.fspath(path))
        if _has_segments(directory):
            return directory
        found = "a directory without a segment (a .log named by 20 digits)"
    except OSError as error:
        found = str(error)
    raise SparkLogError(NOT_FOUND, f"{path}: expected a partition directory, such as data/orders-0, found {found}")


def _udf(spec: LookupSpec, kind: Kind, iterator: bool) -> Callable[..., Column]:
    """Create the UDF. Spark takes its kind from the annotations."""
    given: Any = pa.Array
    back: Any = pa.Array
    give: Callable[[pa.StructArray], Any] = _same
    make: Any = getattr(sql, f"{kind}_udf")
    if kind == "pandas":
        import pandas as pd  # noqa: PLC0415  (the Arrow kind does not need it)

        given, back, give = pd.Series, pd.DataFrame, _frame

    def each(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            yield give(spec.evaluate(*((batch,) if spec.path else batch)))

    def of_value(values: Any) -> Any:  # noqa: ANN401  (pandas or Arrow)
        return give(spec.evaluate(values))

    def of_path_and_value(paths: Any, values: Any) -> Any:  # noqa: ANN401
        return give(spec.evaluate(paths, values))

    if iterator:
        batch: Any = given if spec.path else tuple[given, given]
        function: Any = each
        function.__annotations__ = {"batches": Iterator[batch], "return": Iterator[back]}
    elif spec.path:
        function = of_value
        function.__annotations__ = {"values": given, "return": back}
    else:
        function = of_path_and_value
        function.__annotations__ = {"paths": given, "values": given, "return": back}
    function.__name__ = spec.name
    udf: Callable[..., Column] = make(function, spec.returns)
    return udf


def _same(results: pa.StructArray) -> pa.StructArray:
    return results


def _frame(results: pa.StructArray) -> Any:  # noqa: ANN401  (a pandas.DataFrame)
    """Convert the results to a pandas frame. Nulls need nullable integers, because floats would lose digits."""
    import pandas as pd  # noqa: PLC0415

    types = {pa.int64(): pd.Int64Dtype(), pa.int32(): pd.Int32Dtype()} if results.null_count else {}
    return pa.Table.from_struct_array(results).to_pandas(types_mapper=types.get)
