"""Queries that share a source: each returns its own rows, independent of filters of the DataFrame's other queries."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import corpus
import needs_pyspark  # noqa: F401
import pytest
from pyspark.sql import DataFrame

from cordwood.spark import LogDataSource
from spark.reading import in_java

pytestmark = pytest.mark.spark

PLAIN = corpus.partition("01-plain")
ALL = [record.offset for record in corpus.visible(PLAIN)]
SETTING = "spark.sql.python.filterPushdown.enabled"


def offsets(frame: DataFrame) -> list[int]:
    return sorted(row.offset for row in frame.select("offset").collect())


def below(limit: int) -> list[int]:
    return [offset for offset in ALL if offset < limit]


def reused(df: DataFrame) -> None:
    assert df.where("offset < 1000").count() == 1000
    assert df.count() == len(ALL)
    assert offsets(df.where("offset >= 1490")) == ALL[1490:]
    assert offsets(df) == ALL


def all_first(df: DataFrame) -> None:
    assert df.count() == len(ALL)
    assert df.where("offset < 10").count() == 10
    assert df.count() == len(ALL)


def union(df: DataFrame) -> None:
    assert offsets(df.unionAll(df.where("offset < 10"))) == sorted([*ALL, *below(10)])
    assert offsets(df.where("offset < 2").unionAll(df.where("offset >= 1498"))) == [0, 1, 1498, 1499]


def difference(df: DataFrame) -> None:
    assert offsets(df.select("offset").exceptAll(df.where("offset < 10").select("offset"))) == ALL[10:]


def self_join(df: DataFrame) -> None:
    late, early = df.where("offset >= 50").alias("late"), df.where("offset < 60").alias("early")
    assert offsets(late.join(early, "offset").select("offset")) == list(range(50, 60))
    everything = df.alias("everything").join(df.where("offset < 10").alias("few"), "offset", "left")
    assert offsets(everything.select("offset")) == ALL


def cached_filter(df: DataFrame) -> None:
    few = df.where("offset < 10").cache()
    assert few.count() == 10
    assert df.count() == len(ALL)
    assert few.count() == 10
    few.unpersist()


def cached_whole(df: DataFrame) -> None:
    assert df.where("offset < 10").count() == 10
    df.cache()
    assert df.count() == len(ALL)
    assert df.where("offset < 10").count() == 10
    df.unpersist()


def view(df: DataFrame) -> None:
    session = df.sparkSession
    df.createOrReplaceTempView("orders")
    few = session.sql("SELECT count(*) FROM orders WHERE offset < 10 AND topic = 'orders'").first()
    whole = session.sql("SELECT count(*) FROM orders").first()
    assert (few, whole) == ((10,), (len(ALL),))
    session.catalog.dropTempView("orders")


QUERIES = [reused, all_first, union, difference, self_join, cached_filter, cached_whole, view]


@pytest.fixture(params=["false", "true"])
def load(request: pytest.FixtureRequest, spark: Any) -> Callable[[Path], DataFrame]:
    """Loads a DataFrame in a session with Spark's setting for filters off and on."""
    session = spark.newSession()
    session.conf.set(SETTING, request.param)
    if not in_java():
        session.dataSource.register(LogDataSource)
    return lambda path: session.read.format("cordwood").option("columns", "offset,topic").load(str(path))


@pytest.mark.long
@pytest.mark.parametrize("query", QUERIES, ids=lambda query: query.__name__)
def test_queries_of_one_dataframe_do_not_see_each_others_filters(
    load: Callable[[Path], DataFrame], query: Callable[[DataFrame], None]
) -> None:
    """Spark 4.2 and 4.3 return the rows of a pushed filter to all queries of a DataFrame, so none may be pushed."""
    query(load(PLAIN.path))
