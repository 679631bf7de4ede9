"""Streams called as Spark's engine calls them, and a log that grows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import corpus
import needs_pyspark  # noqa: F401
from batches import Rec, batch, name
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit
from pyspark.sql.types import StructField, StructType

from spark.reading import DAMAGE, NAMES, Plan, Row, again, kafka_rows, source, struct

ALL = ReadAllAvailable()
EARLIEST = {"startingOffsets": "earliest"}


def through_json(offset: dict[str, Any]) -> dict[str, Any]:
    """Spark stores offsets as text."""
    return dict(json.loads(json.dumps(offset)))


def offsets_of(at: dict[str, Any]) -> dict[str, dict[str, int]]:
    """The offsets in a stream's positions, as Spark's Kafka source writes them."""
    return {topic: {number: at["offset"] for number, at in numbers.items()} for topic, numbers in at.items()}


class Engine:
    """One run of a query: the calls of Spark's engine to a stream reader, in order.

    `at` is its position, as Spark stores it; `offsets` are the offsets in it. A new query has run its first
    micro-batch, which is empty, unless `begin=False`.
    """

    columns: tuple[str, ...] = NAMES

    def __init__(
        self, *paths: Path | str, checkpoint: dict[str, Any] | None = None, begin: bool = True, **options: Any
    ) -> None:
        self.data = again(source(*paths, **options))
        self.schema = struct(*self.columns)
        if options.get("mode") == "PERMISSIVE":
            self.schema = StructType([*self.schema.fields, StructField("_error", DAMAGE)])
        self.reader = self.data.streamReader(schema=self.schema)
        self.limit: ReadLimit = self.reader.getDefaultReadLimit()
        # Spark does not call initialOffset for a query that is started again
        self.at = through_json(self.reader.initialOffset()) if checkpoint is None else checkpoint
        if checkpoint is None and begin:
            end = self.latest()
            # Spark calls it again, and runs the first micro-batch even if it is empty
            assert self.read(through_json(self.reader.initialOffset()), end) == []
            assert end == self.at
            self.reader.commit(end)

    @property
    def offsets(self) -> dict[str, dict[str, int]]:
        return offsets_of(self.at)

    def latest(self, limit: ReadLimit | None = None) -> dict[str, Any]:
        return through_json(self.reader.latestOffset(self.at, self.limit if limit is None else limit))

    def read(self, start: dict[str, Any], end: dict[str, Any]) -> list[Row]:
        """The rows between two offsets; every task has its own reader."""
        splits = self.reader.partitions(start, end)
        assert isinstance(splits, list)
        found = Plan(self.data, self.schema, self.reader, splits)
        return [row for piece in found.pieces() for row in piece]

    def batch(self, limit: ReadLimit | None = None) -> list[Row] | None:
        """One micro-batch; `None` if there is nothing new, which Spark detects by comparing the text."""
        end = self.latest(limit)
        if json.dumps(end) == json.dumps(self.at):
            return None
        rows = self.read(self.at, end)
        self.reader.commit(end)
        self.at = end
        return rows

    def all(self, most: int = 500) -> list[list[Row]]:
        found = []
        while (rows := self.batch()) is not None:
            found.append(rows)
            assert len(found) <= most
        return found


def flat(found: list[list[Row]]) -> list[Row]:
    return sorted(row for rows in found for row in rows)


def expected(*parts: corpus.Partition) -> list[Row]:
    return sorted(row for part in parts for row in kafka_rows(part, corpus.visible(part), NAMES))


def grow(path: Path, base: int, first: int, count: int, *, tail: int | None = None) -> bytes:
    """Append batches of three records to the segment `base`, or create it; `tail` cuts off the last bytes."""
    raws = [
        batch(first + 3 * n, [Rec(b"v%d" % (first + 3 * n + i), timestamp=first + 3 * n + i) for i in range(3)])
        for n in range(count)
    ]
    data = b"".join(raws)
    path.mkdir(parents=True, exist_ok=True)
    with (path / name(base)).open("ab") as file:
        file.write(data[:tail])
    return data if tail is None else data[tail:]


def rows_of(topic: str, number: int, offsets: range) -> list[Row]:
    return [(topic, number, offset) for offset in offsets]
