"""Queries in a real Spark: the whole corpus, splits, schemas, damage, and the errors that a user gets."""

from __future__ import annotations

import json
import shutil
from itertools import pairwise
from pathlib import Path
from typing import Any

import corpus
import needs_pyspark  # noqa: F401
import pytest
from core.test_damaged import EXACT
from corpus import Partition
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from tables import first_difference

from cordwood.spark import errors
from spark.reading import FAILURES, KAFKA, data_parts, in_java, kafka_row, kafka_rows, struct, table_rows

pytestmark = pytest.mark.spark

DATA = corpus.GOLDEN / "16-data-dir"
PLAIN = corpus.partition("01-plain")
WITH_HEADERS = [*KAFKA, "headers"]


def rows(found: DataFrame) -> list[tuple[Any, ...]]:
    """All rows, sorted by topic, partition and offset if these columns exist."""
    places = [found.columns.index(name) for name in ("topic", "partition", "offset") if name in found.columns]
    return sorted(table_rows(found.toArrow()), key=lambda row: [row[place] for place in places])


def load(spark: Any, *paths: Path | str, schema: str | None = None, **options: Any) -> DataFrame:
    reader = spark.read.format("cordwood").options(**options)
    if schema is not None:
        reader = reader.schema(schema)
    return reader.load(str(paths[0]) if len(paths) == 1 else [str(path) for path in paths])


def wanted_rows(parts: list[Partition], names: list[str] = WITH_HEADERS) -> list[tuple[Any, ...]]:
    found = [(r, part) for part in parts for r in corpus.visible(part)]
    found.sort(key=lambda pair: (pair[1].topic, pair[1].number, pair[0].offset))
    return [tuple(kafka_row(part, r)[name] for name in names) for r, part in found]


@pytest.mark.parametrize(("options", "least"), [({}, 2), ({"maxPartitionBytes": 80_000}, 40)], ids=["few", "many"])
def test_every_record_of_the_corpus_in_one_query(
    spark: Any, everything: tuple[Path, list[Partition]], options: dict[str, int], least: int
) -> None:
    folder, parts = everything
    found = load(spark, folder, includeHeaders=True, **options)
    assert found.schema == struct(*WITH_HEADERS)
    assert first_difference(rows(found), wanted_rows(parts)) == ""
    assert found.rdd.getNumPartitions() >= least


def test_committed_records_of_the_corpus_in_one_query(spark: Any, everything: tuple[Path, list[Partition]]) -> None:
    folder, parts = everything
    found = load(
        spark, folder, schema="topic string, partition int, offset long", **{"kafka.isolation.level": "read_committed"}
    )
    committed = [(p, r) for p in parts for r in corpus.committed(p, p.opened["logEndOffset"])]
    assert rows(found) == sorted((p.topic, p.number, r.offset) for p, r in committed)


def test_splits_are_cut_inside_segments_and_hold_each_record_once(spark: Any) -> None:
    """By the task that returned each offset."""
    found = load(spark, PLAIN.path, columns="offset,segmentBaseOffset", maxPartitionBytes=30_000)
    by_task = found.groupBy(f.spark_partition_id().alias("task")).agg(
        f.min("offset"), f.max("offset"), f.count("*"), f.min("segmentBaseOffset"), f.max("segmentBaseOffset")
    )
    spans = sorted(tuple(row)[1:] for row in by_task.collect())
    assert len(spans) >= 6
    assert sum(count for _, _, count, _, _ in spans) == 1500
    assert [low for low, *_ in spans] == [0, *(high + 1 for _, high, *_ in spans[:-1])]
    inside = [low for low, _, _, segment, _ in spans if low != segment]
    assert len(inside) >= 3
    assert any(left[4] == right[3] for left, right in pairwise(spans))


SCHEMAS = [
    "offset long",
    "value binary, key binary",
    "timestamp timestamp, offset long, timestampType int",
    "partition int, topic string",
    "headers array<struct<key:string,value:binary>>, offset long",
    "key binary, value binary, topic string, partition int, offset long, timestamp timestamp, timestampType int",
]


def test_the_users_schema_is_a_projection(spark: Any) -> None:
    part = corpus.partition("07-edge-values")
    for schema in SCHEMAS:
        found = load(spark, part.path, schema=schema)
        names = [field.split()[0] for field in schema.replace("key:string,value", "").split(", ")]
        assert found.columns == names
        assert first_difference(rows(found), wanted_rows([part], names)) == ""


def test_columns_of_the_batch_and_count_without_columns(spark: Any) -> None:
    part = corpus.partition("06-mixed-codecs")
    found = load(spark, part.path, columns="codec,offset,batchBaseOffset,valueSize,magic,producerEpoch")
    wanted = [
        (
            r.batch["codec"],
            r.offset,
            r.batch["baseOffset"],
            len(r.value or b""),
            r.batch["magic"],
            r.batch["producerEpoch"],
        )
        for r in corpus.visible(part)
    ]
    assert [tuple(row) for row in found.orderBy("offset").collect()] == wanted
    assert found.count() == len(wanted)
    assert found.select(f.lit(1)).distinct().count() == 1


def test_an_empty_range_is_an_empty_dataframe(spark: Any) -> None:
    at = json.dumps({"orders": {"0": 700}})
    found = load(spark, PLAIN.path, startingOffsets=at, endingOffsets=at)
    assert found.schema == struct()
    assert (found.count(), found.collect(), found.rdd.getNumPartitions()) == (0, [], 1)
    assert load(spark, corpus.partition("15-empty").path).agg(f.count("*"), f.max("offset")).collect()[0] == (0, None)


def test_several_paths_globs_views_and_joins(spark: Any, tmp_path: Path) -> None:
    shutil.copytree(corpus.partition("15-one-record").path, tmp_path / "one.record-5")
    found = load(spark, DATA / "cities-*", tmp_path, schema="topic string, partition int, offset long")
    parts = [data_parts()["cities-0"], data_parts()["cities-1"]]
    assert rows(found) == [*wanted_rows(parts, ["topic", "partition", "offset"]), ("one.record", 5, 0)]
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW logs USING cordwood OPTIONS (path '{DATA}', subscribe 'cities')")
    one, other = spark.table("logs").alias("a"), spark.table("logs").alias("b")
    joined = one.join(other, f.expr("a.offset = b.offset AND a.partition < b.partition"))
    both = {r.offset for r in corpus.visible(parts[0])} & {r.offset for r in corpus.visible(parts[1])}
    assert tuple(joined.agg(f.count("*"), f.countDistinct("a.offset")).collect()[0]) == (len(both), len(both))
    spark.catalog.dropTempView("logs")


def test_a_session_that_registered_nothing_finds_the_source(spark: Any) -> None:
    fresh = spark.newSession()
    found = fresh.read.format("cordwood").load(str(corpus.partition("15-one-record").path))
    assert found.count() == 1


AT_LOAD = [
    ("CORDWOOD_NOT_FOUND", "/nowhere/at/all", {}, "/nowhere/at/all"),
    ("CORDWOOD_BAD_OPTION", DATA, {"startingOfsets": "earliest"}, "startingOffsets"),
    ("CORDWOOD_BAD_OPTION", DATA, {"columns": "colour"}, "colour"),
]


def test_invalid_options_fail_at_load_with_their_code(spark: Any) -> None:
    for code, path, options, word in AT_LOAD:
        with pytest.raises(PySparkException) as raised:
            load(spark, path, **options)
        told = errors.parse(raised.value)
        assert (told.code, word in str(raised.value)) == (code, True)


def failure(found: Any) -> tuple[Any, str]:
    """The parsed error of an action, and the whole text of Spark's exception."""
    with pytest.raises(FAILURES) as raised:
        found()
    text = f"{raised.value} {getattr(raised.value, 'getMessageParameters', dict)()}"
    # with the source in Java, a Python worker that reads its rows ends so
    assert in_java() or "exited unexpectedly" not in text
    told = errors.parse(raised.value)
    assert told is not None, text
    return told, text


def test_a_corrupt_batch_and_a_missing_time_fail_the_query_with_code_and_place(spark: Any) -> None:
    damaged = corpus.GOLDEN / "damaged" / "flip-record" / "tickets-0"
    told, _ = failure(load(spark, damaged).toArrow)
    assert (told.code, told.topic, told.partition) == ("CORDWOOD_CORRUPT_BATCH", "tickets", 0)
    assert (told.segment, told.position) == (285, 2126)
    told, _ = failure(lambda: load(spark, PLAIN.path, startingTimestamp=4_000_000_000_000).count())
    assert (told.code, told.topic, told.partition) == ("CORDWOOD_TIME_NOT_FOUND", "orders", 0)
    beyond = json.dumps({"orders": {"0": 1501}})
    told, _ = failure(lambda: load(spark, PLAIN.path, endingOffsets=beyond).count())
    assert (told.code, told.topic, told.partition) == ("CORDWOOD_OFFSET_OUT_OF_RANGE", "orders", 0)


@pytest.mark.parametrize("mode", ["DROPMALFORMED", "PERMISSIVE"])
def test_damaged_partitions_in_one_query_lose_only_the_damaged_batches(spark: Any, tmp_path: Path, mode: str) -> None:
    """Each of these has one damaged range."""
    wanted = []
    for damage in EXACT:
        shutil.copytree(damage.path, tmp_path / f"{damage.name}.{damage.path.name}")
        wanted += kafka_rows(damage.source, damage.survivors, topic=f"{damage.name}.{damage.source.topic}")
    table = load(spark, tmp_path, mode=mode).toArrow()
    names = [name for name in table.column_names if name != "_error"]
    good = table if mode == "DROPMALFORMED" else table.filter(table["_error"].is_null())
    assert (
        first_difference(
            sorted(table_rows(good.select(names)), key=lambda row: row[2:5]), sorted(wanted, key=lambda row: row[2:5])
        )
        == ""
    )
    if mode == "PERMISSIVE":
        bad = table.filter(table["_error"].is_valid()).to_pylist()
        assert sorted(row["topic"] for row in bad) == sorted(f"{d.name}.{d.source.topic}" for d in EXACT)
        assert {(row["key"], row["value"]) for row in bad} == {(None, None)}
        assert [Path(row["_error"]["file"]).name for row in sorted(bad, key=lambda row: str(row["topic"]))] == [
            d.file for d in sorted(EXACT, key=lambda d: f"{d.name}.{d.source.topic}")
        ]
        assert all(row["_error"]["startPosition"] < row["_error"]["endPosition"] for row in bad)
        assert all(row["_error"]["startOffset"] == row["offset"] for row in bad)


def test_files_that_change_under_a_planned_query_fail_it_with_a_code(spark: Any, copied: Any) -> None:
    """The plan of an RDD is fixed; its files are removed before its tasks start."""
    path = copied(PLAIN.path)
    planned = load(spark, path, schema="offset long, value binary", maxPartitionBytes=60_000)
    vanished, shortened, untouched = planned.rdd, planned.rdd, planned.where("offset >= 0").rdd
    for rdd in (vanished, shortened, untouched):
        assert rdd.getNumPartitions() >= 4
    assert untouched.count() == 1500
    with (path / "00000000000000001217.log").open("r+b") as file:
        file.truncate(3000)
    told, _ = failure(shortened.count)
    assert told.code in ("CORDWOOD_SEGMENT_GONE", "CORDWOOD_CORRUPT_BATCH")
    for file_of_segment in path.glob("00000000000000000400.*"):
        file_of_segment.unlink()
    told, _ = failure(vanished.count)
    assert (told.code, told.topic, told.partition) == ("CORDWOOD_SEGMENT_GONE", "orders", 0)
    shutil.rmtree(path)
    told, _ = failure(vanished.count)
    assert told.code in ("CORDWOOD_SEGMENT_GONE", "CORDWOOD_NOT_FOUND")
