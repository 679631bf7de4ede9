"""Look-ups by the million: `locate` and `offset_for_time` as UDFs over a column.

A worker opens each log once and asks it for a whole Arrow batch at a time (`Log.locate_many`, `Log.offsets_for_times`);
no Python object is made for a row.
"""

import os
from collections.abc import Callable, Iterator
from typing import Any, Literal, TypeAlias

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as sql

import cordwood as cw
from cordwood.spark.errors import BAD_OPTION, NOT_FOUND, SparkLogError
from cordwood.spark.lookup import NULL, TAKEN, OnMissing, Question, expected_type
from cordwood.spark.partitions import absolute, has_segments, local_path

__all__ = ["LookUp", "locate", "offset_for_time"]

Kind: TypeAlias = Literal["pandas", "arrow"]


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

    *Errors*: `CORDWOOD_NOT_FOUND` where there is no partition at *path*; in the query `CORDWOOD_BAD_OPTION` for offsets
    of another type than bigint, int, smallint or tinyint, which are to be cast.
    """
    return LookUp(Question("locate", _path(path), on_missing), kind, iterator)


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
    `CORDWOOD_TIME_NOT_FOUND`. A timestamp_ntz means what Spark's cast to timestamp makes of it: a time in the session's
    zone. Other types are `CORDWOOD_BAD_OPTION` in the query; for milliseconds in a bigint: `timestamp_millis("ms")`.

        df.select(offset_for_time("data/orders-0")("timestamp"))
    """
    return LookUp(Question("offset_for_time", _path(path), on_missing), kind, iterator)


class LookUp:
    """A look-up to be applied to columns; `udf` is the bare UDF, for `spark.udf.register` (of kind `arrow`)."""

    def __init__(self, question: Question, kind: Kind, iterator: bool) -> None:
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
        *paths, given = columns
        value = _taken(self._question.name, given)
        if self._kind == "arrow":
            found = self.udf(*paths, value)
        else:
            if self._question.name == "offset_for_time":
                # exact, where pandas would get local times without their zone
                value = sql.unix_micros(value)
            answer = self.udf(*paths, sql.coalesce(value, sql.lit(NULL)))
            # a pandas UDF cannot give a null struct, only one of nulls
            found = sql.when(answer[self._first].isNotNull(), answer)
        return found.alias(f"{self._question.name}({', '.join(map(_name, columns))})")


def _taken(name: str, given: Column | str) -> Column:
    """Bring a column to the type that is asked with, and fail the query for one that would have to be guessed."""
    value = sql.col(given) if isinstance(given, str) else given
    wanted, types = TAKEN[name]
    # known when the query is planned: what is left of it is the cast, or the error
    kind = sql.typeof(value)
    is_taken = kind.isin(*types, "void")
    # the JVM puts the type of the column into the text of the error
    error = SparkLogError(BAD_OPTION, f"{name}: expected {expected_type(name)}, found \0")
    before, _, after = str(error).partition("\0")
    refusal = sql.concat(sql.lit(before), kind, sql.lit(after))
    return sql.when(is_taken, value.cast(wanted)).otherwise(sql.raise_error(refusal))


def _name(column: Column | str) -> str:
    return column if isinstance(column, str) else str(column).removeprefix("Column<'").removesuffix("'>")


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


def _udf(question: Question, kind: Kind, iterator: bool) -> Callable[..., Column]:
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
