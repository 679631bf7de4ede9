"""The batches of a reader have exactly the types that Spark expects, for all columns in any order."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import corpus
import pytest
from batches import Rec, batch, write_partition
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    DataType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)
from tables import first_difference

from cordwood import CordwoodError
from spark.reading import DAMAGE, KAFKA, TYPES, kafka_row, made, plan, read, refuses, source, struct

EDGE = corpus.partition("07-edge-values")
FURTHER = [
    "leaderEpoch",
    "producerId",
    "producerEpoch",
    "sequence",
    "isTransactional",
    "isControl",
    "codec",
    "magic",
    "batchBaseOffset",
    "position",
    "segmentBaseOffset",
    "keySize",
    "valueSize",
]
SUBSETS = [names for size in range(1, len(TYPES) + 1) for names in itertools.combinations(TYPES, size)]


def test_the_schema_is_that_of_sparks_kafka_source() -> None:
    assert source(EDGE.path).schema() == struct()
    assert source(EDGE.path, includeHeaders=False).schema() == struct()
    assert source(EDGE.path, includeHeaders=True).schema() == struct(*KAFKA, "headers")
    permissive = source(EDGE.path, mode="PERMISSIVE").schema()
    assert permissive == StructType([*struct().fields, StructField("_error", DAMAGE)])


@pytest.mark.parametrize("size", range(1, len(TYPES) + 1))
def test_every_subset_of_the_columns_keeps_types_and_values(size: int) -> None:
    """The reader's batches are compared with Spark's own Arrow schema in `Plan.batches`."""
    wanted = [kafka_row(EDGE, record) for record in corpus.visible(EDGE)]
    subsets = [names for names in SUBSETS if len(names) == size]
    assert subsets
    for names in subsets:
        rows = read(EDGE.path, schema=struct(*names))
        key = names.index("offset") if "offset" in names else None
        rows = rows if key is None else sorted(rows, key=lambda row: row[key])
        assert first_difference(rows, [tuple(row[name] for name in names) for row in wanted]) == "", names


@given(st.lists(st.sampled_from(sorted(TYPES)), unique=True, min_size=1))
def test_columns_come_in_the_order_of_the_users_schema(names: list[str]) -> None:
    part = corpus.partition("15-one-record")
    (record,) = corpus.visible(part)
    row = kafka_row(part, record)
    assert read(part.path, schema=struct(*names)) == [tuple(row[name] for name in names)]


@given(st.lists(st.sampled_from([*TYPES, *FURTHER]), unique=True, min_size=1))
def test_columns_come_in_the_order_of_the_option(names: list[str]) -> None:
    part = corpus.partition("11-transactions")
    found = plan(part.path, columns=" , ".join(names), endingOffsets={"payments": {"0": 20}})
    assert found.schema.fieldNames() == names
    assert all(field.nullable for field in found.schema)
    tables = found.tables()
    assert sum(table.num_rows for table in tables) == len([r for r in corpus.visible(part) if r.offset < 20])


@pytest.mark.parametrize("rows", [1, 20_000])
@pytest.mark.parametrize("name", FURTHER)
def test_a_further_column_has_one_type_in_every_batch(name: str, rows: int) -> None:
    part = corpus.partition("17-raised-and-lowered")
    found = plan(part.path, columns=name, maxBatchRows=rows, endingOffsets={part.topic: {"0": 30}})
    wanted = to_arrow_schema(found.schema, timezone="UTC")
    batches = [batch for split in found.splits for batch in found.reader.read(split)]
    assert sum(batch.num_rows for batch in batches) == 30
    assert {batch.schema.equals(wanted) for batch in batches} == {True}


def test_the_users_schema_may_name_further_columns_too() -> None:
    schema = StructType([StructField("codec", StringType()), StructField("segmentBaseOffset", LongType())])
    part = corpus.partition("06-mixed-codecs")
    wanted = [(r.batch["codec"], r.batch["segment"]) for r in corpus.visible(part)]
    assert sorted(read(part.path, schema=schema)) == sorted(wanted)


def test_headers_are_null_and_not_empty_for_a_record_without_any() -> None:
    rows = read(EDGE.path, schema=struct("headers"))
    assert [row[0] for row in rows].count(None) == len([r for r in corpus.visible(EDGE) if not r.headers]) > 0
    assert [row for row in rows if row[0] == []] == []


def test_a_column_that_is_asked_for_by_name_needs_no_include_headers() -> None:
    assert read(EDGE.path, columns="headers", includeHeaders=False) == read(EDGE.path, schema=struct("headers"))


@pytest.mark.parametrize("mode", ["FAILFAST", "DROPMALFORMED", "PERMISSIVE"])
def test_the_users_schema_may_leave_the_error_out(mode: str) -> None:
    part = corpus.partition("15-one-record")
    assert read(part.path, schema=struct("offset"), mode=mode) == [(0,)]


@pytest.mark.parametrize("mode", ["FAILFAST", "PERMISSIVE"])
def test_an_equal_schema_and_columns_may_both_be_given(mode: str) -> None:
    part = corpus.partition("15-one-record")
    assert read(part.path, schema=struct("offset", "partition"), columns="offset,partition", mode=mode) == [(0, 0)]


@pytest.mark.parametrize(
    ("columns", "names"),
    [("offset,value", ["offset"]), ("offset", ["offset", "value"]), ("offset,value", ["value", "offset"])],
)
def test_a_schema_and_columns_that_differ_are_refused_with_both(columns: str, names: list[str]) -> None:
    with refuses("CORDWOOD_BAD_OPTION", "schema", f"columns, {columns} ", f'found "{",".join(names)}"'):
        source(EDGE.path, columns=columns).reader(schema=struct(*names))
    with refuses("CORDWOOD_BAD_OPTION", "schema", columns):
        source(EDGE.path, columns=columns).streamReader(schema=struct(*names))


def wrong(name: str, kind: DataType) -> StructType:
    return StructType([StructField("value", BinaryType()), StructField(name, kind)])


WRONG: list[tuple[str, DataType]] = [
    ("offset", IntegerType()),
    ("offset", StringType()),
    ("key", StringType()),
    ("timestamp", LongType()),
    ("timestamp", TimestampNTZType()),
    ("partition", LongType()),
    ("timestampType", ShortType()),
    ("headers", StringType()),
    ("isTransactional", StringType()),
    ("colour", StringType()),
    ("Offset_", LongType()),
    ("_error", BooleanType()),
    ("_error", StringType()),
]


@pytest.mark.parametrize(("name", "kind"), WRONG, ids=[f"{name}-{kind.simpleString()}" for name, kind in WRONG])
def test_a_column_of_another_name_or_type_is_refused_by_name(name: str, kind: DataType) -> None:
    """There is no implicit cast: Spark would fail during the query with an error about Arrow."""
    with refuses("CORDWOOD_BAD_OPTION", name):
        source(EDGE.path, mode="PERMISSIVE").reader(schema=wrong(name, kind))


def test_an_error_column_is_refused_in_a_mode_without_one() -> None:
    with refuses("CORDWOOD_BAD_OPTION", "_error"):
        source(EDGE.path).reader(schema=wrong("_error", DAMAGE))


def test_a_column_that_is_declared_not_null_is_read_or_refused() -> None:
    """In both cases Spark must not fail during the query because of the schema."""
    schema = StructType([StructField("offset", LongType(), nullable=False), StructField("timestamp", TimestampType())])
    try:
        found = made(source(corpus.partition("15-one-record").path), schema)
    except Exception as error:  # noqa: BLE001 - any error will do that has a code
        assert str(error).startswith("[CORDWOOD_BAD_OPTION]")  # noqa: PT017
    else:
        assert [row[0] for row in found.rows()] == [0]


def test_times_beyond_a_thousand_years_keep_their_microseconds() -> None:
    part = corpus.partition("08-late")
    rows: list[Any] = read(part.path, schema=struct("offset", "timestamp"))
    assert max(row[1] for row in rows) == 32_503_680_000_000_000
    assert min(row[1] for row in rows) == 0


def test_a_time_beyond_microseconds_is_an_error_that_names_the_record(tmp_path: Path) -> None:
    """Spark cannot represent the time; the record's other columns can be read."""
    raws = [batch(100, [Rec(b"a", timestamp=5)]), batch(101, [Rec(b"b", timestamp=1 << 60)])]
    path = write_partition(tmp_path / "late-0", [(100, raws)])
    assert read(path, schema=struct("offset", "value")) == [(100, b"a"), (101, b"b")]
    with pytest.raises(CordwoodError, match=r"^\[CORDWOOD_(?!BAD_OPTION).*\] late-0\b.*\b101\b"):
        read(path, schema=struct("offset", "timestamp"))
