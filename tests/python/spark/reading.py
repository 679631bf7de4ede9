"""The data source called as Spark calls it, without a JVM.

`plan` and `Plan.read` do what PySpark's own workers do: options are strings with lower-case names, the reader and each
split are passed as a cloudpickle, and the result of `read` is checked by PySpark's own code. The oracle is the corpus:
`kafka_rows` returns the rows that Spark's Kafka source would return for its records.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import corpus
import needs_pyspark  # noqa: F401
import pyarrow as pa
import pytest
from corpus import Expected, Partition
from py4j.protocol import Py4JJavaError
from pyspark import cloudpickle
from pyspark.errors import PySparkException
from pyspark.sql.datasource import CaseInsensitiveDict, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)
from pyspark.sql.worker.plan_data_source_read import records_to_arrow_batches

from cordwood.spark import errors
from cordwood.spark.source import LogDataSource

Row = tuple[Any, ...]

HEADER = StructType([StructField("key", StringType()), StructField("value", BinaryType())])
DAMAGE = StructType(
    [
        StructField("file", StringType()),
        StructField("startPosition", LongType()),
        StructField("endPosition", LongType()),
        StructField("startOffset", LongType()),
        StructField("endOffset", LongType()),
        StructField("reason", StringType()),
    ]
)
TYPES: dict[str, DataType] = {
    "key": BinaryType(),
    "value": BinaryType(),
    "topic": StringType(),
    "partition": IntegerType(),
    "offset": LongType(),
    "timestamp": TimestampType(),
    "timestampType": IntegerType(),
    "headers": ArrayType(HEADER),
}
KAFKA = [name for name in TYPES if name != "headers"]


def struct(*names: str) -> StructType:
    """Columns of Spark's Kafka source, all nullable; by default its seven columns."""
    return StructType([StructField(name, TYPES[name]) for name in names or KAFKA])


FAILURES = (PySparkException, Py4JJavaError)
"""What an action raises if a task fails: the first with the source in Python, the second with the one in Java."""


def in_java() -> bool:
    """Whether the tests run with the source in Java."""
    return os.environ.get("CORDWOOD_SPARK_SOURCE") == "java"


def text_of(value: Any) -> str:
    """An option's value as Spark passes it."""
    if isinstance(value, bool):
        return str(value).lower()
    return json.dumps(value) if isinstance(value, dict) else str(value)


def source(*paths: Path | str, **options: Any) -> Any:
    """The data source as `.options(**options).load(*paths)` creates it: that in Python or that in Java."""
    given = CaseInsensitiveDict()
    for name, value in options.items():
        given[name] = text_of(value)
    if len(paths) == 1:
        given["path"] = str(paths[0])
    elif paths:
        given["paths"] = json.dumps([str(path) for path in paths])
    if in_java():
        from spark.java_objects import JvmSource

        return JvmSource(dict(given))
    return LogDataSource(options=given)


def again(value: Any) -> Any:
    """A copy through a pickle, as for another process."""
    return cloudpickle.loads(cloudpickle.dumps(value))


@dataclass
class Plan:
    """A reader and its splits."""

    source: Any
    schema: StructType
    reader: Any
    splits: list[InputPartition]

    @cached_property
    def pickled(self) -> bytes:
        """The reader as every task gets it."""
        return bytes(cloudpickle.dumps(self.reader))

    @cached_property
    def arrow(self) -> pa.Schema:
        return to_arrow_schema(self.schema, timezone="UTC")

    def batches(self, split: InputPartition) -> Iterator[pa.RecordBatch]:
        """The batches that a task with this split returns to Spark."""
        found = cloudpickle.loads(self.pickled).read(again(split))
        assert isinstance(found, Iterator)
        for batch in records_to_arrow_batches(found, 10_000, self.schema, self.source):
            assert batch.schema.equals(self.arrow)
            yield batch

    def table(self, split: InputPartition) -> pa.Table:
        return pa.Table.from_batches(self.batches(split), schema=self.arrow)

    def tables(self) -> list[pa.Table]:
        return [self.table(split) for split in self.splits]

    def pieces(self) -> list[list[Row]]:
        """The rows of each split, in the order of the schema."""
        return [table_rows(table) for table in self.tables()]

    def rows(self) -> list[Row]:
        """The rows of all splits, sorted by topic, partition and offset if the schema has them."""
        found = [row for piece in self.pieces() for row in piece]
        names = self.schema.fieldNames()
        places = [names.index(name) for name in ("topic", "partition", "offset") if name in names]
        return sorted(found, key=lambda row: [row[place] for place in places])


def made(data: Any, schema: StructType | None = None) -> Plan:
    """A plan of this source."""
    if schema is None:
        schema = data.schema()
        assert isinstance(schema, StructType)
    reader = again(data).reader(schema=schema)
    splits = reader.partitions()
    checked(splits)
    return Plan(data, schema, reader, splits)


def checked(splits: Any) -> None:
    """Check the result of `partitions`. For an empty list Spark would call `read(None)`."""
    assert isinstance(splits, list)
    assert splits
    assert all(isinstance(split, InputPartition) for split in splits)


def plan(*paths: Path | str, schema: StructType | None = None, **options: Any) -> Plan:
    return made(source(*paths, **options), schema)


def read(*paths: Path | str, schema: StructType | None = None, **options: Any) -> list[Row]:
    """All rows, sorted."""
    return plan(*paths, schema=schema, **options).rows()


def offsets(*paths: Path | str, **options: Any) -> list[int]:
    """All offsets, sorted by topic, partition and offset."""
    return [row[-1] for row in read(*paths, schema=struct("topic", "partition", "offset"), **options)]


def values(table: pa.Table, name: str) -> list[Any]:
    """A column as plain values; timestamps as int microseconds, headers as pairs."""
    column = table[name]
    if pa.types.is_timestamp(column.type):
        return column.cast(pa.int64()).to_pylist()
    found = column.to_pylist()
    if name == "headers":
        return [None if row is None else [(h["key"], h["value"]) for h in row] for row in found]
    return found


def table_rows(table: pa.Table) -> list[Row]:
    columns = [values(table, name) for name in table.column_names]
    return list(zip(*columns, strict=True)) if table.num_rows else []


def kafka_row(part: Partition, record: Expected, topic: str | None = None) -> dict[str, Any]:
    """The row of Spark's Kafka source for a record; the time in microseconds, -1 ms if there is none."""
    return {
        "key": record.key,
        "value": record.value,
        "topic": part.topic if topic is None else topic,
        "partition": part.number,
        "offset": record.offset,
        "timestamp": record.timestamp * 1000,
        "timestampType": record.timestamp_type,
        "headers": list(record.headers) or None,
    }


def kafka_rows(
    part: Partition, records: Iterable[Expected], names: Sequence[str] = KAFKA, topic: str | None = None
) -> list[Row]:
    rows = (kafka_row(part, record, topic) for record in records)
    return [tuple(row[name] for name in names) for row in rows]


@contextmanager
def refuses(code: str, *words: str) -> Iterator[pytest.ExceptionInfo[Exception]]:
    """The block raises an error that begins with this code, contains these words and can be parsed."""
    with pytest.raises(Exception, match=re.escape(f"[{code}]")) as raised:
        yield raised
    message = str(raised.value)
    assert message.startswith(f"[{code}]")
    assert [word for word in words if word not in message] == []
    assert errors.parse(raised.value).code == code
    assert errors.parse(message).code == code


def data_parts() -> dict[str, Partition]:
    """The partitions of the corpus's data directory, by name."""
    return {part.name: part for part in corpus.partitions() if part.case == "16-data-dir"}


DATA = corpus.GOLDEN / "16-data-dir"
PARTS = data_parts()
CITIES = [PARTS["cities-0"], PARTS["cities-1"]]
NAMES = ("topic", "partition", "offset")


def expected(
    parts: list[Partition], bounds: dict[tuple[str, int], tuple[int, int]] | None = None
) -> list[tuple[Any, ...]]:
    """(topic, partition, offset) of the visible records, within [start, end) if bounds are given."""
    found = []
    for part in parts:
        start, end = (bounds or {}).get((part.topic, part.number), (0, 1 << 62))
        found += [(part.topic, part.number, r.offset) for r in corpus.visible(part) if start <= r.offset < end]
    return sorted(found)


def got(*paths: Path | str, **options: Any) -> list[tuple[Any, ...]]:
    """(topic, partition, offset) of all rows, sorted."""
    return read(*paths, schema=struct(*NAMES), **options)
