"""Queries as descriptions, which are applied to a DataFrame of each source."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

Step = tuple[str, Any]


@dataclass
class Query:
    """Steps from a DataFrame to the result; `limit` and `skip` are those of rows in any order."""

    steps: list[Step]
    is_ordered: bool = False
    limit: int | None = None
    skip: int = 0


@dataclass
class Applied:
    """What applying queries leaves in the session."""

    session: SparkSession
    cached: list[DataFrame] = field(default_factory=list)
    views: list[str] = field(default_factory=list)

    def clear(self) -> None:
        for frame in self.cached:
            frame.unpersist()
        for view in self.views:
            self.session.catalog.dropTempView(view)


def apply(query: Query, base: DataFrame, left: Applied, *, with_limit: bool) -> DataFrame:
    """The query's DataFrame. Without its limit it has all the rows from which the limit chooses."""
    frame = base
    for name, argument in query.steps:
        frame = STEPS[name](frame, argument, base, left)
    if with_limit and query.limit is not None:
        frame = frame.offset(query.skip) if query.skip else frame
        frame = frame.limit(query.limit)
    return frame


def _cache(frame: DataFrame, _: Any, __: DataFrame, left: Applied) -> DataFrame:
    left.cached.append(frame.persist())
    return frame


def _view(frame: DataFrame, condition: str, _: DataFrame, left: Applied) -> DataFrame:
    name = f"view_{len(left.views)}_{id(left)}"
    frame.createOrReplaceTempView(name)
    left.views.append(name)
    return left.session.sql(f"SELECT * FROM {name} WHERE ({condition})")  # noqa: S608  (the test's own text)


def _join(frame: DataFrame, argument: Any, base: DataFrame, _: Applied) -> DataFrame:
    condition, kind = argument
    return frame.join(
        base.where(condition).select("topic", "partition", "offset"), ["topic", "partition", "offset"], kind
    )


def _combine(frame: DataFrame, argument: Any, base: DataFrame, _: Applied) -> DataFrame:
    operation, condition, names = argument
    found: DataFrame = getattr(frame, operation)(base.where(condition).select(*names))
    return found


def _look_up(frame: DataFrame, argument: Any, base: DataFrame, _: Applied) -> DataFrame:
    aggregate, condition = argument
    at = base.where(condition).agg(f.expr(f"{aggregate} AS at"))
    return frame.join(at, frame["offset"] <= at["at"], "left_semi")


STEPS: dict[str, Callable[[DataFrame, Any, DataFrame, Applied], DataFrame]] = {
    "where": lambda frame, text, *_: frame.where(text),
    "select": lambda frame, names, *_: frame.select(*names) if names else frame.selectExpr("1 AS one"),
    "selectExpr": lambda frame, texts, *_: frame.selectExpr(*texts),
    "agg": lambda frame, texts, *_: frame.agg(*(f.expr(text) for text in texts)),
    "group": lambda frame, argument, *_: frame.groupBy(*(f.expr(key) for key in argument[0].split(", "))).agg(
        *(f.expr(text) for text in argument[1])
    ),
    "distinct": lambda frame, *_: frame.distinct(),
    "order": lambda frame, keys, *_: frame.orderBy(*(f.expr(key) if " " not in key else _key(key) for key in keys)),
    "limit": lambda frame, rows, *_: frame.limit(rows),
    "offset": lambda frame, rows, *_: frame.offset(rows),
    "cache": _cache,
    "view": _view,
    "join": _join,
    "combine": _combine,
    "lookUp": _look_up,
}


def _key(text: str) -> Any:
    name, direction = text.split(" ", 1)
    methods = {"ASC": "asc", "DESC": "desc", "DESC NULLS FIRST": "desc_nulls_first", "ASC NULLS LAST": "asc_nulls_last"}
    return getattr(f.col(name), methods[direction])()
