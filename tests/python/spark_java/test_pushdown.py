"""What Spark leaves to the source in Java: columns, filters, limits and aggregates, by plans and metrics."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import corpus
import needs_pyspark  # noqa: F401
import pytest
from core.test_damaged import EXACT
from corpus import Partition
from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from spark.reading import CITIES, DATA, KAFKA

from spark_java.plans import METRICS, Scan, filters, names, optimized, scan, scans

PLAIN = corpus.partition("01-plain")
ZSTD = corpus.partition("05-zstd")
APPENDED = corpus.partition("09-append-time")
COMPACTED = corpus.partition("12-compacted-codecs")


def load(spark: Any, path: Path | str, **options: Any) -> DataFrame:
    return spark.read.format("cordwood").options(**options).load(str(path))  # type: ignore[no-any-return]


def offsets(frame: DataFrame) -> list[int]:
    return sorted(row.offset for row in frame.select("offset").collect())


def times(part: Partition) -> list[int]:
    return [record.timestamp for record in corpus.visible(part)]


def sizes(part: Partition) -> int:
    return sum(batch["size"] for batch in corpus.batches(part))


SELECTIONS: list[tuple[Any, list[str]]] = [
    (lambda df: df.select("offset"), ["offset"]),
    (lambda df: df.select("timestamp", "partition"), ["partition", "timestamp"]),
    (lambda df: df.select(f.lit(1)), []),
    (lambda df: df.select(f.length("value")), ["value"]),
    (lambda df: df.where("key IS NOT NULL").select("offset"), ["key", "offset"]),
    (lambda df: df.where("offset > 5 AND topic = 'orders'").select("key"), ["key"]),
    (lambda df: df.groupBy("topic").agg(f.sum("offset")), ["topic", "offset"]),
    (lambda df: df.orderBy("timestamp").limit(3).select("offset"), ["offset", "timestamp"]),
    (lambda df: df, KAFKA),
]


@pytest.mark.parametrize(("query", "columns"), SELECTIONS, ids=range(len(SELECTIONS)))
def test_only_the_columns_of_the_query_are_read(spark: Any, query: Any, columns: list[str]) -> None:
    found = scan(query(load(spark, PLAIN.path)))
    assert sorted(found.columns) == sorted(columns)
    assert f"cordwood records [{', '.join(found.columns)}] from" in found.description


def test_headers_are_read_only_if_they_are_selected(spark: Any) -> None:
    df = load(spark, corpus.partition("07-edge-values").path, includeHeaders=True)
    assert scan(df.select("headers.key")).columns == ["headers"]
    assert scan(df.select("offset")).columns == ["offset"]


LATE = times(PLAIN)[1490]
FILTERS = [
    ("offset >= 1490", ["offset >= 1490"], lambda r: r.offset >= 1490),
    ("1490 <= offset", ["offset >= 1490"], lambda r: r.offset >= 1490),
    ("offset < 10", ["offset < 10"], lambda r: r.offset < 10),
    ("10 > offset", ["offset < 10"], lambda r: r.offset < 10),
    ("offset = 700", ["offset = 700"], lambda r: r.offset == 700),
    ("offset <=> 700", ["offset <=> 700"], lambda r: r.offset == 700),
    ("offset > 700 AND offset <= 702", ["offset > 700", "offset <= 702"], lambda r: 700 < r.offset <= 702),
    ("offset BETWEEN 700 AND 702", ["offset >= 700", "offset <= 702"], lambda r: 700 <= r.offset <= 702),
    ("offset IN (700, 702)", ["offset in [700,702]"], lambda r: r.offset in {700, 702}),
    ("NOT (offset < 1490)", ["offset >= 1490"], lambda r: r.offset >= 1490),
    ("offset < 9.5", ["offset < 10"], lambda r: r.offset < 10),
    (f"timestamp >= timestamp_millis({LATE})", [f"timestamp >= {LATE}000"], lambda r: r.timestamp >= LATE),
    (f"timestamp = timestamp_millis({LATE})", [f"timestamp = {LATE}000"], lambda r: r.timestamp == LATE),
    (f"timestamp > timestamp_micros({LATE}000 - 1)", [f"timestamp > {LATE - 1}999"], lambda r: r.timestamp >= LATE),
]


@pytest.mark.parametrize(("text", "pushed", "keeps"), FILTERS, ids=[text for text, *_ in FILTERS])
def test_filters_on_offset_and_timestamp_skip_batches(spark: Any, text: str, pushed: list[str], keeps: Any) -> None:
    """Without any setting, in the operators and the order of operands that Spark writes."""
    df = load(spark, PLAIN.path).where(text).select("offset")
    found = scan(df)
    assert filters(found) == pushed
    assert offsets(df) == [record.offset for record in corpus.visible(PLAIN) if keeps(record)]
    assert found.metrics["recordsRead"] <= 250
    assert found.metrics["batchesRead"] <= 30


EXACT_ONES = [
    "offset >= 1490",
    "offset = 700 AND partition = 0",
    "topic = 'orders'",
    f"timestamp >= timestamp_millis({LATE})",
]
OTHERS = ["offset IN (700, 702)", "key = X'00'", "offset % 2 = 0", "offset < 10 OR offset > 1490", "timestampType = 0"]


@pytest.mark.parametrize("text", [*EXACT_ONES, *OTHERS])
def test_spark_evaluates_only_filters_again_that_are_not_exact(spark: Any, text: str) -> None:
    df = load(spark, PLAIN.path).where(text)
    assert ("FilterExec" in names(df)) == (text in OTHERS)


DIRECTORIES = [
    ("topic = 'cities'", ["cities-0", "cities-1"]),
    ("topic = 'cities' AND partition = 1", ["cities-1"]),
    ("partition IN (1, 2)", ["cities-1"]),
    ("startswith(topic, '__c')", ["__cluster_metadata-0", "__consumer_offsets-0"]),
    ("topic LIKE 'ci%'", ["cities-0", "cities-1"]),
    ("startswith(topic, 'river')", ["rivers.compact-0"]),
    ("topic > 'cities'", ["rivers.compact-0"]),
    ("topic = 'nowhere'", []),
]


@pytest.mark.parametrize(("text", "read"), DIRECTORIES, ids=[text for text, _ in DIRECTORIES])
def test_filters_on_topic_and_partition_choose_directories(spark: Any, text: str, read: list[str]) -> None:
    df = load(spark, DATA).where(text).select("offset")
    wanted = [part for part in corpus.partitions() if part.case == "16-data-dir" and part.name in read]
    found = scan(df)
    assert filters(found) != []
    assert offsets(df) == sorted(r.offset for part in wanted for r in corpus.visible(part))
    assert found.metrics["recordsRead"] <= sum(len(corpus.records(part)) for part in wanted)


WITH_NULL = ["coalesce(offset < NULL OR offset > 1490, false)", "NOT coalesce(offset < NULL AND offset > 9, false)"]


@pytest.mark.parametrize("text", WITH_NULL)
def test_a_condition_that_is_null_inside_another(spark: Any, text: str) -> None:
    assert offsets(load(spark, PLAIN.path).where(text)) == (
        list(range(1491, 1500)) if "OR" in text else list(range(1500))
    )


def test_a_filter_of_one_query_has_no_effect_on_another(spark: Any) -> None:
    """In one plan and in several, in any order; the queries of `test_reuse.py` count the rows."""
    df = load(spark, PLAIN.path)
    both = (
        df.where("offset < 10")
        .select("offset")
        .unionAll(df.select("offset"))
        .unionAll(df.where("offset > 1490").select("offset"))
    )
    assert both.count() == 10 + 1500 + 9
    assert [filters(one) for one in scans(both)] == [["offset < 10"], [], ["offset > 1490"]]
    assert filters(scan(df)) == []
    assert filters(scan(df.where("offset = 3"))) == ["offset = 3"]
    assert filters(scan(df)) == []
    assert df.count() == 1500


def test_a_limit_reduces_what_is_read(spark: Any) -> None:
    df = load(spark, PLAIN.path, maxPartitionBytes=1 << 40)
    limited = df.select("offset").limit(7)
    found = scan(limited)
    assert ", limit of a task: 7" in found.description
    assert found.metrics["recordsRead"] < 100
    assert offsets(limited) == list(range(7))
    assert len(df.where("offset >= 100").limit(5).collect()) == 5
    assert "limit of a task" not in scan(df.where("offset % 2 = 1").limit(5)).description
    assert df.limit(0).count() == 0
    assert df.limit(5000).count() == 1500
    assert df.select("offset").offset(1495).count() == 5


def aggregated(df: DataFrame, *texts: str) -> tuple[tuple[Any, ...], Scan]:
    found = df.selectExpr(*texts)
    (row,) = found.collect()
    (one,) = scans(found)
    return tuple(row), one


def micros(column: str) -> str:
    return f"unix_micros({column})"


@pytest.mark.parametrize("part", [ZSTD, APPENDED, PLAIN, COMPACTED, corpus.partition("17-v1-gzip")], ids=str)
@pytest.mark.parametrize("text", ["offset >= 0", "offset >= 7 AND offset < 300", "offset > 100000"])
def test_aggregates_are_those_of_the_records(spark: Any, part: Partition, text: str) -> None:
    texts = ["count(*)", "min(offset)", "max(offset)", micros("min(timestamp)"), micros("max(timestamp)")]
    row, found = aggregated(load(spark, part.path).where(text), *texts)
    low, high = {"offset >= 0": (0, 1 << 62), "offset > 100000": (100_001, 1 << 62)}.get(text, (7, 300))
    kept = [r for r in corpus.visible(part) if low <= r.offset < high]
    at = [r.offset for r in kept]
    when = [r.timestamp * 1000 for r in kept]
    assert row == ((len(kept), min(at), max(at), min(when), max(when)) if kept else (0, None, None, None, None))
    assert "[count(*), min(offset), max(offset), min(timestamp), max(timestamp)]" in found.description


FROM_HEADERS = [
    (ZSTD, ["count(*)", "min(offset)", "max(offset)", "max(timestamp)"]),
    (APPENDED, ["min(timestamp)", "count(1)"]),
]


@pytest.mark.parametrize(("part", "texts"), FROM_HEADERS, ids=str)
def test_aggregates_of_whole_batches_decompress_nothing(spark: Any, part: Partition, texts: list[str]) -> None:
    """The smallest time is in the headers only if the broker stamped the times."""
    df = load(spark, part.path)
    for frame in (df, df.where(f"topic = '{part.topic}' AND partition >= 0"), df.where("offset >= 0")):
        found = aggregated(frame, *texts)[1]
        assert (found.decompressed, found.metrics["recordsRead"]) == (0, 0)
        assert found.metrics["batchesRead"] + found.metrics["batchesSkipped"] == len(corpus.batches(part))
    assert aggregated(df, "sum(offset)")[1].metrics["recordsRead"] == len(corpus.visible(part))


def test_only_the_first_and_last_batches_of_a_range_are_decompressed_for_a_count(spark: Any) -> None:
    row, found = aggregated(
        load(spark, ZSTD.path, maxPartitionBytes=1 << 40).where("offset > 70 AND offset < 1501"), "count(*)"
    )
    assert row == (1430,)
    assert 1 <= found.decompressed <= 2


NOT_PUSHED = [
    ("count(key)", None),
    ("max(partition)", None),
    ("max(value)", None),
    ("sum(offset)", None),
    ("count(DISTINCT offset)", None),
    ("max(offset + 1)", None),
    ("count(*)", "offset % 2 = 0"),
    ("count(*)", "offset IN (3, 5)"),
    ("max(offset)", "key IS NOT NULL"),
]


@pytest.mark.parametrize(("text", "condition"), NOT_PUSHED)
def test_other_aggregates_are_computed_by_spark(spark: Any, text: str, condition: str | None) -> None:
    df = load(spark, PLAIN.path)
    row, found = aggregated(df if condition is None else df.where(condition), text)
    assert "(" not in found.description.partition("[")[2].partition("]")[0]
    assert row[0] is not None


def test_groups_are_computed_by_spark(spark: Any) -> None:
    df = load(spark, DATA, subscribe="cities")
    found = sorted(tuple(row) for row in df.groupBy("partition").agg(f.count("*"), f.max("offset")).collect())
    assert found == [(p.number, len(corpus.visible(p)), corpus.visible(p)[-1].offset) for p in CITIES]


def test_nothing_is_aggregated_from_headers_if_damage_has_rows(spark: Any) -> None:
    (damage,) = [one for one in EXACT if one.name == "flip-record"]
    df = load(spark, damage.path, mode="PERMISSIVE")
    row, found = aggregated(df, "count(*)", "max(offset)")
    assert row == (len(damage.survivors) + 1, damage.survivors[-1].offset)
    assert "count(*)" not in found.description
    assert found.metrics["recordsRead"] == len(damage.survivors)
    assert aggregated(load(spark, damage.path, mode="DROPMALFORMED"), "count(*)")[0] == (len(damage.survivors),)


def test_the_size_is_estimated_from_the_batches_of_the_query(spark: Any) -> None:
    def size(df: DataFrame) -> int:
        return int(str(optimized(df).stats().sizeInBytes()))

    df = load(spark, PLAIN.path)
    assert sizes(PLAIN) // 2 <= size(df) <= 2 * sizes(PLAIN)
    assert size(df.where("offset >= 1400")) < sizes(PLAIN) // 4
    assert size(df.where("topic = 'nowhere'")) <= 1


@pytest.mark.parametrize(
    ("condition", "join"), [("offset >= 0", "SortMergeJoinExec"), ("offset > 1480", "BroadcastHashJoinExec")]
)
def test_a_join_broadcasts_a_log_that_is_estimated_small(spark: Any, condition: str, join: str) -> None:
    session = spark.newSession()
    session.conf.set("spark.sql.autoBroadcastJoinThreshold", sizes(PLAIN) // 10)
    session.conf.set("spark.sql.adaptive.enabled", "false")
    numbers, log = session.range(1 << 40), load(session, PLAIN.path).where(condition)
    assert join in names(numbers.join(log, numbers["id"] == log["offset"]))


def test_metrics_are_those_of_what_was_read(spark: Any) -> None:
    for part in (PLAIN, ZSTD):
        found = scan(load(spark, part.path, maxPartitionBytes=1 << 40))
        batches = len(corpus.batches(part))
        assert set(METRICS) <= set(found.metrics)
        assert found.metrics["batchesRead"] == batches
        assert found.metrics["batchesSkipped"] == 0
        assert found.decompressed == (batches if part is ZSTD else 0)
        assert found.metrics["bytesRead"] == sizes(part)
        assert found.metrics["recordsRead"] == len(corpus.visible(part))
    middle = scan(load(spark, ZSTD.path, maxPartitionBytes=1 << 40).where("offset = 800"))
    assert middle.metrics["batchesSkipped"] > 0
    assert middle.metrics["batchesRead"] + middle.metrics["batchesSkipped"] <= len(corpus.batches(ZSTD))
