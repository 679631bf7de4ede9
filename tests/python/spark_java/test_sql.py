"""Tables in SQL: `USING cordwood` in Spark's catalog, and paths in a catalog of their own."""

# ruff: noqa: S608  (the queries are the tests' own)

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import corpus
import needs_pyspark  # noqa: F401
import pytest
from core.test_damaged import EXACT
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from spark.reading import CITIES, DATA, KAFKA

from cordwood.spark import errors

PLAIN = corpus.partition("01-plain")
TABLE = "logged"
LENGTHS = [len(corpus.visible(part)) for part in CITIES]


@pytest.fixture(autouse=True)
def no_table(spark: SparkSession) -> Iterator[None]:
    yield
    spark.sql(f"DROP TABLE IF EXISTS {TABLE}")


def create(spark: SparkSession, rest: str, columns: str = "") -> None:
    spark.sql(f"CREATE TABLE {TABLE} {columns} USING cordwood {rest}")


def rows(spark: SparkSession, text: str) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in spark.sql(text).collect()]


def count(spark: SparkSession, source: str) -> int:
    return int(rows(spark, f"SELECT count(*) FROM {source}")[0][0])


def test_a_table_has_the_rows_of_its_path_and_options(spark: SparkSession) -> None:
    create(spark, f"OPTIONS (path '{DATA}', subscribe 'cities')")
    assert spark.table(TABLE).columns == KAFKA
    found = rows(
        spark, f"SELECT partition, count(*) FROM {TABLE} WHERE offset >= 0 GROUP BY partition ORDER BY partition"
    )
    assert found == list(enumerate(LENGTHS))
    joined = f"SELECT count(*) FROM {TABLE} a JOIN {TABLE} b USING (partition, offset) WHERE partition = 0"
    assert rows(spark, joined) == [(LENGTHS[0],)]


def test_a_table_with_a_location(spark: SparkSession) -> None:
    create(spark, f"LOCATION '{PLAIN.path}'")
    assert count(spark, f"{TABLE} WHERE offset < 10") == 10


def test_a_table_with_a_schema_has_these_columns_in_this_order(spark: SparkSession) -> None:
    create(spark, f"OPTIONS (path '{PLAIN.path}')", "(value BINARY, offset BIGINT, topic STRING)")
    assert spark.table(TABLE).columns == ["value", "offset", "topic"]
    first = corpus.visible(PLAIN)[0]
    assert rows(spark, f"SELECT * FROM {TABLE} WHERE offset = 0") == [(first.value, 0, "orders")]


def test_a_table_with_many_paths(spark: SparkSession) -> None:
    paths = ",".join(f'"{part.path}"' for part in CITIES)
    create(spark, f"OPTIONS (paths '[{paths}]')")
    assert count(spark, TABLE) == sum(LENGTHS)


def test_describe_and_show_create_table_repeat_the_definition(spark: SparkSession) -> None:
    options = f"path '{DATA}', subscribe 'cities', includeHeaders 'true'"
    create(spark, f"OPTIONS ({options}) COMMENT 'a comment' TBLPROPERTIES ('k' = 'v')")
    described = {name: kind for name, kind, _ in rows(spark, f"DESCRIBE EXTENDED {TABLE}")}
    assert (described["offset"], described["key"], described["Provider"]) == ("bigint", "binary", "cordwood")
    assert described["headers"] == "array<struct<key:string,value:binary>>"
    ((text,),) = rows(spark, f"SHOW CREATE TABLE {TABLE}")
    assert "USING cordwood" in text
    for part in ("subscribe", "cities", "'k' = 'v'", str(DATA)):
        assert part in text


def test_show_create_table_creates_the_same_table(spark: SparkSession) -> None:
    create(spark, f"OPTIONS (path '{DATA}', subscribe 'cities')")
    ((text,),) = rows(spark, f"SHOW CREATE TABLE {TABLE}")
    spark.sql(f"DROP TABLE {TABLE}")
    spark.sql(text)
    assert count(spark, TABLE) == sum(LENGTHS)
    assert rows(spark, f"SHOW CREATE TABLE {TABLE}") == [(text,)]


def test_properties_and_comments_are_not_options(spark: SparkSession) -> None:
    """`subscribe` would select no partition, and `unknown` would be refused."""
    create(
        spark,
        f"OPTIONS (path '{PLAIN.path}') COMMENT 'subscribe' TBLPROPERTIES ('subscribe' = 'nothing', 'unknown' = '1')",
    )
    assert count(spark, TABLE) == 1500
    spark.sql(f"ALTER TABLE {TABLE} SET TBLPROPERTIES ('unknown' = '2', 'endingOffsets' = 'wrong')")
    assert count(spark, TABLE) == 1500


def test_a_table_whose_directory_is_gone_can_be_described_and_dropped(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "orders-0"
    shutil.copytree(PLAIN.path, path)
    create(spark, f"OPTIONS (path '{path}')")
    assert count(spark, TABLE) == 1500
    shutil.rmtree(path)
    with fails("CORDWOOD_NOT_FOUND"):
        count(spark, TABLE)
    assert ("offset", "bigint", None) in rows(spark, f"DESCRIBE {TABLE}")
    assert path.name in rows(spark, f"SHOW CREATE TABLE {TABLE}")[0][0]
    spark.sql(f"DROP TABLE {TABLE}")
    assert not spark.catalog.tableExists(TABLE)


def test_a_table_in_sql_is_read_only(spark: SparkSession) -> None:
    create(spark, f"OPTIONS (path '{PLAIN.path}')", "(offset BIGINT)")
    for text in (f"INSERT INTO {TABLE} VALUES (1)", f"DELETE FROM {TABLE}", f"TRUNCATE TABLE {TABLE}"):
        with pytest.raises(PySparkException):
            spark.sql(text)
    assert count(spark, TABLE) == 1500


WRONG = [
    ("OPTIONS (path '/nowhere')", "CORDWOOD_NOT_FOUND", "/nowhere"),
    ("OPTIONS (path '{path}', subscribes 'a')", "CORDWOOD_BAD_OPTION", "did you mean subscribe?"),
    ("OPTIONS (path '{path}', startingOffset 'earliest')", "CORDWOOD_BAD_OPTION", "did you mean startingOffsets?"),
    ("OPTIONS (path '{path}', mode 'strict')", "CORDWOOD_BAD_OPTION", "FAILFAST"),
    ("", "CORDWOOD_BAD_OPTION", "path"),
]


@contextmanager
def fails(code: str, *words: str) -> Iterator[list[errors.SparkLogError]]:
    """The block raises an error in which `errors.parse` finds this code; it is in the list after the block."""
    found: list[errors.SparkLogError] = []
    with pytest.raises(Exception, match=code) as raised:
        yield found
    parsed = errors.parse(raised.value)
    assert parsed is not None, str(raised.value)
    assert parsed.code == code
    assert [word for word in words if word not in str(parsed)] == []
    found.append(parsed)


@pytest.mark.parametrize(("rest", "code", "word"), WRONG, ids=[word for *_, word in WRONG])
def test_a_wrong_definition_is_refused_when_it_is_made(spark: SparkSession, rest: str, code: str, word: str) -> None:
    with fails(code, word):
        create(spark, rest.format(path=PLAIN.path))
    assert not spark.catalog.tableExists(TABLE)


def test_a_column_of_a_wrong_type_is_refused_when_it_is_read(spark: SparkSession) -> None:
    create(spark, f"OPTIONS (path '{PLAIN.path}')", "(offset INT)")
    with fails("CORDWOOD_BAD_OPTION", "offset"):
        count(spark, TABLE)


def test_a_path_is_a_table_of_the_catalog(spark: SparkSession) -> None:
    assert count(spark, f"cordwood.`{PLAIN.path}`") == 1500
    assert spark.table(f"cordwood.`{PLAIN.path}`").columns == KAFKA
    found = rows(spark, f"SELECT topic, max(offset) FROM cordwood.`{DATA}` WHERE topic = 'cities' GROUP BY topic")
    assert found == [("cities", max(corpus.visible(part)[-1].offset for part in CITIES))]


def test_options_of_a_query_in_the_catalog(spark: SparkSession) -> None:
    path = f"cordwood.`{DATA}`"
    assert count(spark, f"{path} WITH ('subscribe' = 'cities')") == sum(LENGTHS)
    assert count(spark, f"{path} WITH ('assign' = '{{\"cities\": [1]}}')") == LENGTHS[1]
    both = f"SELECT count(*) FROM (SELECT * FROM {path} WITH ('subscribe' = 'cities') UNION ALL SELECT * FROM {path})"
    assert rows(spark, both) == [(sum(LENGTHS) + count(spark, path),)]
    with fails("CORDWOOD_BAD_OPTION", "did you mean subscribe?"):
        count(spark, f"{path} WITH ('subscribee' = 'cities')")


@pytest.mark.parametrize(
    "options", ["'mode' = 'PERMISSIVE'", "'includeHeaders' = 'true'", "'columns' = 'offset'", "'table' = 'batches'"]
)
def test_options_of_a_query_that_change_the_columns_are_refused(spark: SparkSession, options: str) -> None:
    """Spark asks for the columns before it has the options of the query."""
    with fails("CORDWOOD_BAD_OPTION", "leave the columns of the table as they are"):
        count(spark, f"cordwood.`{PLAIN.path}` WITH ({options})")


def test_a_catalog_with_options_of_all_its_tables(spark: SparkSession) -> None:
    spark.conf.set("spark.sql.catalog.towns", "io.cordwood.spark.LogCatalog")
    spark.conf.set("spark.sql.catalog.towns.subscribe", "cities")
    assert count(spark, f"towns.`{DATA}`") == sum(LENGTHS)


def test_a_view_over_a_path(spark: SparkSession) -> None:
    spark.sql(f"CREATE TEMPORARY VIEW few AS SELECT offset FROM cordwood.`{PLAIN.path}` WHERE offset < 3")
    assert rows(spark, "SELECT * FROM few ORDER BY offset") == [(0,), (1,), (2,)]
    spark.catalog.dropTempView("few")


def test_a_wrong_path_is_an_error(spark: SparkSession) -> None:
    with fails("CORDWOOD_NOT_FOUND", "/nowhere"):
        spark.sql("SELECT * FROM cordwood.`/nowhere`").collect()
    with pytest.raises(PySparkException, match="TABLE_OR_VIEW_NOT_FOUND"):
        spark.sql(f"SELECT * FROM cordwood.x.`{PLAIN.path}`").collect()


REFUSED = [
    "DROP TABLE {path}",
    "ALTER TABLE {path} ADD COLUMN x INT",
    "ALTER TABLE {path} SET TBLPROPERTIES ('a' = 'b')",
    "ALTER TABLE {path} RENAME TO other",
]
CREATES = ["CREATE TABLE cordwood.other (a INT)", "CREATE TABLE cordwood.other AS SELECT 1 AS a"]
ADVICE = r"only reads paths; CREATE TABLE … USING cordwood OPTIONS \(path"


@pytest.mark.parametrize("text", REFUSED)
def test_the_catalog_refuses_to_change_tables_with_advice(spark: SparkSession, text: str) -> None:
    with pytest.raises(Exception, match=ADVICE):
        spark.sql(text.format(path=f"cordwood.`{PLAIN.path}`"))
    assert count(spark, f"cordwood.`{PLAIN.path}`") == 1500


@pytest.mark.parametrize("text", CREATES)
def test_the_catalog_refuses_to_create_tables_with_advice(spark: SparkSession, text: str) -> None:
    with pytest.raises(Exception, match=ADVICE):
        spark.sql(text)


@pytest.mark.parametrize(
    "text", ["INSERT INTO {path} SELECT * FROM {path}", "DELETE FROM {path}", "TRUNCATE TABLE {path}"]
)
def test_rows_of_the_catalog_cannot_be_written(spark: SparkSession, text: str) -> None:
    with pytest.raises(PySparkException):
        spark.sql(text.format(path=f"cordwood.`{PLAIN.path}`"))


def test_a_dataframe_cannot_be_written(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(PySparkException):
        spark.range(1).write.format("cordwood").mode("append").save(str(tmp_path / "out-0"))


ACTIONS: list[Callable[[Any], Any]] = [
    lambda df: df.collect(),
    lambda df: df.where("length(value) > 2").count(),
    lambda df: df.toPandas(),
    lambda df: df.write.format("noop").mode("overwrite").save(),
]


@pytest.mark.parametrize("action", ACTIONS, ids=["collect", "count", "toPandas", "write"])
def test_the_error_of_an_executor_has_code_and_place(spark: SparkSession, action: Any) -> None:
    (damage,) = [one for one in EXACT if one.name == "flip-record"]
    df = spark.read.format("cordwood").load(str(damage.path))
    with fails("CORDWOOD_CORRUPT_BATCH", "mode=DROPMALFORMED") as raised:
        action(df)
    (found,) = raised
    assert (found.topic, found.partition, found.segment) == (damage.source.topic, damage.source.number, damage.segment)
    assert found.position == damage.hit[0]["position"]


def test_the_error_of_the_driver_has_a_code(spark: SparkSession) -> None:
    df = spark.read.format("cordwood").option("startingOffsets", '{"orders": {"0": 99999}}').load(str(PLAIN.path))
    with fails("CORDWOOD_OFFSET_OUT_OF_RANGE", "99999") as raised:
        df.collect()
    assert (raised[0].topic, raised[0].partition) == ("orders", 0)
    with fails("CORDWOOD_BAD_OPTION", "did you mean minPartitions?"):
        spark.read.format("cordwood").option("minPartition", 2).load(str(PLAIN.path))
