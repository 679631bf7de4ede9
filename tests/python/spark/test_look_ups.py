"""The UDFs in a real Spark: large columns of offsets and times, and handles that are opened once."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import corpus
import needs_pyspark  # noqa: F401
import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import functions as f
from pyspark.sql.types import LongType, StringType, StructType, TimestampType

from cordwood.spark import errors, locate, offset_for_time

pytestmark = pytest.mark.spark

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
PLAIN = corpus.partition("01-plain")
LEAPS = corpus.partition("18-leaps")
HOUR = 3_600_000_000
KINDS = [(kind, iterator) for kind in ("pandas", "arrow") for iterator in (False, True)]


def place(part: corpus.Partition, offset: int | None) -> tuple[int, ...] | None:
    if offset is None or not part.log_start <= offset < part.opened["logEndOffset"]:
        return None
    b = next(b for b in corpus.batches(part) if b["lastOffset"] >= offset)
    return (b["segment"], b["baseOffset"], b["position"], b["size"])


def test_locate_returns_the_same_for_every_kind(spark: Any) -> None:
    """Null, negative and unknown offsets among the others, in several Arrow batches and tasks."""
    offsets = [None if n % 17 == 0 else n - 40 for n in range(1700)]
    table = pa.table({"n": pa.array(range(1700), pa.int64()), "o": pa.array(offsets, pa.int64())})
    wanted = [place(PLAIN, offset) for offset in offsets]
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "200")
    try:
        frame = spark.createDataFrame(table).repartition(2, "n").cache()
        for kind, iterator in KINDS:
            at = locate(str(PLAIN.path), kind=kind, iterator=iterator)("o").alias("at")
            found = sorted(frame.select("n", at).collect())
            assert [row.at and tuple(row.at) for row in found] == wanted, (kind, iterator)
    finally:
        spark.conf.unset("spark.sql.execution.arrow.maxRecordsPerBatch")


def test_look_ups_have_the_documented_types(spark: Any) -> None:
    frame = spark.range(1).select("id", f.lit(EPOCH).alias("t"))
    for kind in ("pandas", "arrow"):
        schema = frame.select(
            locate(str(PLAIN.path), kind=kind)("id").alias("l"),
            offset_for_time(str(PLAIN.path), kind=kind)("t").alias("o"),
        ).schema
        assert schema["l"].dataType.simpleString() == (
            "struct<segment_base_offset:bigint,batch_base_offset:bigint,position:int,size:int>"
        )
        assert schema["o"].dataType.simpleString() == "struct<timestamp:timestamp,offset:bigint>"
        assert all(field.nullable for field in schema)


def test_offset_for_time_returns_the_same_for_every_kind_in_another_time_zone(spark: Any) -> None:
    """It includes an hour that a clock change repeats: local times without a zone would be ambiguous."""
    part = corpus.partition("08-late")
    known = [r.timestamp * 1000 + step for r in corpus.visible(part)[::25] for step in (-1, 0, 1)]
    repeated = [int(datetime(2023, 11, 5, hour, 30, tzinfo=UTC).timestamp() * 1_000_000) for hour in (4, 5, 6, 7)]
    micros = [None, -1000, 0, *known, *repeated, 4_000_000_000_000_000, 253_402_300_799_999_999]
    table = pa.table(
        {"n": pa.array(range(len(micros)), pa.int64()), "t": pa.array(micros, pa.timestamp("us", tz="UTC"))}
    )
    wanted = []
    for time in micros:
        first = None
        if time is not None and time >= 0:
            first = corpus.first_at_or_after(corpus.visible(part), -(-time // 1000))
        wanted.append(first and (EPOCH + timedelta(milliseconds=first.timestamp), first.offset))
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        frame = spark.createDataFrame(table)
        for kind, iterator in KINDS:
            look_up = offset_for_time(str(part.path), kind=kind, iterator=iterator)("t")
            found = sorted(frame.select("n", look_up.alias("at")).toArrow().to_pylist(), key=lambda row: row["n"])
            got = [row["at"] and (row["at"]["timestamp"].astimezone(UTC), row["at"]["offset"]) for row in found]
            assert got == wanted, (kind, iterator)
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


def first_offset(part: corpus.Partition, micros: int) -> int | None:
    found = corpus.first_at_or_after(corpus.visible(part), -(-micros // 1000))
    return found and found.offset


def test_a_time_without_a_zone_is_in_the_zone_of_the_session(spark: Any) -> None:
    """As in Spark's own cast and comparisons; in a repeated hour it is the first."""
    part = corpus.partition("08-late")
    times = ["2023-11-14 17:13:30", "2023-11-05 01:30:00", "2023-03-12 02:30:00", "1969-12-31 19:00:00.001"]
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        frame = spark.createDataFrame([(time,) for time in times], "t string").select(
            f.col("t").cast("timestamp_ntz").alias("naive"), f.col("t").cast("timestamp").alias("zoned")
        )
        assert dict(frame.dtypes) == {"naive": "timestamp_ntz", "zoned": "timestamp"}
        micros = [row.m for row in frame.select(f.unix_micros("zoned").alias("m")).collect()]
        # in UTC, the same local times are earlier
        zoned, unzoned = ([first_offset(part, m - hours * HOUR) for m in micros] for hours in (0, 5))
        assert zoned != unzoned
        for kind, iterator in KINDS:
            look_up = offset_for_time(str(part.path), kind=kind, iterator=iterator)
            rows = frame.select(look_up("naive").alias("n"), look_up("zoned").alias("z")).collect()
            assert [row.n.offset for row in rows] == [row.z.offset for row in rows] == zoned, (kind, iterator)
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


REFUSED = [
    (locate, "5.0D", "double"),
    (locate, "5.5BD", "decimal(2,1)"),
    (locate, "'5'", "string"),
    (locate, "timestamp'2023-11-14 17:13:30'", "timestamp"),
    (offset_for_time, "1700000010000L", "bigint"),
    (offset_for_time, "'2023-11-14 17:13:30'", "string"),
    (offset_for_time, "date'2023-11-14'", "date"),
]


@pytest.mark.parametrize(("make", "value", "found"), REFUSED, ids=lambda given: str(getattr(given, "__name__", given)))
def test_a_column_with_an_ambiguous_type_is_refused(spark: Any, make: Any, value: str, found: str) -> None:
    frame = spark.range(1).select(f.expr(value).alias("v"), f.lit(str(PLAIN.path)).alias("path"))
    for look_up, columns in ((make(PLAIN.path), ["v"]), (make(kind="arrow"), ["path", "v"])):
        with pytest.raises(PySparkException) as raised:
            frame.select(look_up(*columns)).collect()
        told = errors.parse(raised.value)
        assert told.code == "CORDWOOD_BAD_OPTION"
        assert told.reason.startswith(f"{make.__name__}: expected a column of type ")
        assert f"found {found}" in told.reason


def test_smaller_integer_types_and_void_are_accepted_and_columns_keep_their_names(spark: Any) -> None:
    frame = spark.sql("SELECT 5L AS bigint, 5 AS int, 5S AS smallint, 5Y AS tinyint, NULL AS void")
    for kind in ("pandas", "arrow"):
        look_up = locate(str(PLAIN.path), kind=kind)
        row = frame.select(*(look_up(name) for name in frame.columns)).collect()[0]
        assert row.asDict() == {
            f"locate({name})": None if name == "void" else place(PLAIN, 5) for name in frame.columns
        }
        assert frame.where(look_up(f.col("int") + 1)["position"] == 0).count() == 1


def test_a_path_column_looks_up_each_row_in_its_own_log(spark: Any) -> None:
    asks = [(part, offset) for part in (PLAIN, LEAPS) for offset in (-1, 0, 5, 160, 1499, 1500, 4_294_967_299)]
    schema = StructType().add("path", StringType()).add("offset", LongType())
    rows = [(str(part.path), offset) for part, offset in asks]
    frame = spark.createDataFrame([*rows, (None, 5), (str(PLAIN.path), None)], schema).coalesce(1)
    wanted = {(str(part.path), offset): place(part, offset) for part, offset in asks}
    for kind, iterator in KINDS:
        found = frame.select(
            "path", "offset", locate(kind=kind, iterator=iterator)("path", "offset").alias("at")
        ).collect()
        got = {(row.path, row.offset): row.at and tuple(row.at) for row in found}
        assert got == {**wanted, (None, 5): None, (str(PLAIN.path), None): None}, (kind, iterator)


def test_on_missing_error_fails_the_query_with_its_code(spark: Any) -> None:
    offsets = locate(str(PLAIN.path), kind="arrow", on_missing="error")
    assert spark.range(1500).select(offsets("id").alias("l")).where("l IS NULL").count() == 0
    with pytest.raises(PySparkException) as raised:
        spark.range(1501).select(offsets("id")).toArrow()
    told = errors.parse(raised.value)
    assert (told.code, told.topic, told.partition) == ("CORDWOOD_OFFSET_OUT_OF_RANGE", "orders", 0)
    schema = StructType().add("t", TimestampType())
    late = spark.createDataFrame([(datetime(2090, 1, 1, tzinfo=UTC),), (None,)], schema)
    with pytest.raises(PySparkException) as raised:
        late.select(offset_for_time(str(PLAIN.path), kind="pandas", on_missing="error")("t")).toArrow()
    assert errors.parse(raised.value).code == "CORDWOOD_TIME_NOT_FOUND"


def test_each_worker_opens_a_log_once_for_all_tasks_batches_and_queries(spark: Any) -> None:
    """The caches of the workers are inspected in the workers themselves."""
    path = str(corpus.partition("02-gzip").path)

    def look(_: int) -> str:
        from cordwood._core import _logs_opened, _open_log

        _open_log(path)
        return f"{os.getpid()} {_logs_opened()}"

    ask = f.udf(look, "string", useArrow=False)
    frame = spark.range(0, 1600, 1, 4)
    seen = set()
    for _ in range(2):
        found = frame.select(locate(path, kind="arrow")("id").alias("at"), ask("id").alias("who")).collect()
        assert [row for row in found if row.at is None] == []
        seen |= {row.who for row in found}
        spark.read.format("cordwood").load(path).count()
    workers = {who.split()[0] for who in seen}
    assert str(os.getpid()) not in workers
    assert len(seen) == len(workers)


def test_a_relative_path_is_resolved_in_the_driver(spark: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A worker may have another working directory than the driver at the creation of the UDF."""
    monkeypatch.chdir(PLAIN.path.parent)
    look_up = locate(PLAIN.path.name, kind="arrow")
    monkeypatch.chdir(tmp_path)
    assert tuple(spark.range(5, 6).select(look_up("id").alias("at")).collect()[0].at) == place(PLAIN, 5)
