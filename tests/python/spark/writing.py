"""Writes called as Spark calls them, without a JVM.

The writer and each message of a task pass through a pickle, and then there is a commit or an abort.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import needs_pyspark  # noqa: F401
import pyarrow as pa
import pytest
from pyspark.sql.datasource import CaseInsensitiveDict
from pyspark.sql.types import IntegerType, StringType, StructField, StructType, TimestampType

import cordwood as cw
from cordwood.spark.source import LogDataSource
from cordwood.spark.write import writers
from spark.reading import HEADER, TYPES, again, text_of

QUERY = "7b3f9a52-0000-4000-8000-0123456789ab"

Rows = Sequence[dict[str, Any]]


def columns(*names: str) -> StructType:
    """Columns of a write by name; `key:string` gives one another type."""
    kinds = {**TYPES, "partition": IntegerType(), "timestamp": TimestampType()}
    fields = []
    for name in names:
        bare, _, kind = name.partition(":")
        fields.append(StructField(bare, StringType() if kind == "string" else kinds[bare]))
    return StructType(fields)


def arrow(schema: StructType, rows: Rows) -> pa.RecordBatch:
    """Rows as Spark passes them."""
    from pyspark.sql.pandas.types import to_arrow_schema

    return pa.RecordBatch.from_pylist(
        [{name: row.get(name) for name in schema.names} for row in rows], schema=to_arrow_schema(schema, timezone="UTC")
    )


class Task:
    """What a task knows of itself."""

    def __init__(self, number: int, properties: dict[str, str]) -> None:
        self.number = number
        self.properties = properties

    def partitionId(self) -> int:  # noqa: N802  (Spark's name)
        return self.number

    def getLocalProperty(self, name: str) -> str:  # noqa: N802
        return self.properties[name]


@contextmanager
def task(number: int, **properties: str) -> Iterator[None]:
    """Run a task with this number."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writers, "_context", lambda: Task(number, properties))
        yield


class Sink:
    """One write: a batch, or the micro-batch `batch` of a query."""

    def __init__(
        self,
        path: Path,
        /,
        *names: str,
        overwrite: bool = False,
        batch: int | None = None,
        query: str = QUERY,
        **options: Any,
    ) -> None:
        given = CaseInsensitiveDict()
        for name, value in {"path": str(path), **options}.items():
            given[name.replace("__", ".")] = text_of(value)
        self.schema = columns(*(names or ("key", "value")))
        self.overwrite, self.batch = overwrite, batch
        self.properties = {"sql.streaming.queryId": query, "streaming.sql.batchId": str(batch)}
        self.data = LogDataSource(options=given)
        self.writer = again(self._made())

    def _made(self) -> Any:
        make = self.data.writer if self.batch is None else self.data.streamWriter
        return make(schema=self.schema, overwrite=self.overwrite)

    def stage(self, number: int, *batches: Rows) -> Any:
        """One attempt of a task."""
        with task(number, **self.properties):
            return again(again(self.writer).write(arrow(self.schema, rows) for rows in batches))

    def commit(self, messages: Sequence[Any]) -> None:
        if self.batch is None:
            again(self.writer).commit(messages)
        else:
            # Spark makes a new one for each commit
            self._made().commit(messages, self.batch)

    def abort(self, messages: Sequence[Any]) -> None:
        if self.batch is None:
            again(self.writer).abort(messages)
        else:
            self._made().abort(messages, self.batch)

    def run(self, *tasks: Rows) -> None:
        """The whole write: each task has one batch of rows."""
        self.commit([self.stage(number, rows) for number, rows in enumerate(tasks)])


def values(*texts: str, **others: Any) -> list[dict[str, Any]]:
    """Rows with these values and without keys."""
    return [{"value": text.encode(), **others} for text in texts]


def records(path: Path) -> list[cw.Record]:
    """The records of a partition; none if there is no log."""
    return list(cw.Log(path).records()) if any(path.glob("*.log")) else []


def texts(path: Path) -> list[str]:
    """The values of a partition, in the order of the log."""
    return [(record.value or b"").decode() for record in records(path)]


def all_texts(root: Path) -> Counter[str]:
    """How often each value is in the logs of a data directory."""
    return Counter(text for path in root.iterdir() if path.is_dir() for text in texts(path))


def left(root: Path) -> list[str]:
    """What writes have left beside the logs, without the numbers of micro-batches."""
    found = [str(path.relative_to(root)) for path in root.glob("*/.cordwood.spark/*/*")]
    return [path for path in found if "/finished/" not in path]


def header(key: str, value: bytes | None) -> dict[str, Any]:
    return dict(zip(HEADER.names, (key, value), strict=True))
