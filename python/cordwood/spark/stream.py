"""The reader of streams: `spark.readStream`.

A stream does not allow an end (`endingOffsets`, `endingTimestamp`, `endingOffsetsByTimestamp`) or a `table` other than
`records`: `CORDWOOD_BAD_OPTION` when the query starts. The other options have the same meaning as in a batch query.

An offset of the stream contains for each partition the next offset to read, and fields of the batch before it, which
detect a replaced log. The first micro-batch of a query is empty, and ends at the start.
"""

import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from cordwood._core import _Query, _Stream
from cordwood.spark.batch import LogPartition, read_task

__all__ = ["LogStreamReader"]


class LogStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans micro-batches in one process for the lifetime of the query; pickled copies of it read in the workers."""

    def __init__(self, query: _Query) -> None:
        """Check the options. This is when the query starts: before that, it is not known to be a stream."""
        self.query = query
        self._stream = _Stream(query)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the query."""
        return (type(self), (self.query,))

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802  (Spark's name, as those below)
        """Return the start of a new query: by default `latest`.

        Spark calls this twice, and again if the first micro-batch failed.
        """
        return _read(self._stream.initial_offset())

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """Return the maximum size of a micro-batch."""
        max_rows = self._stream.max_offsets_per_trigger
        return ReadAllAvailable() if max_rows is None else ReadMaxRows(max_rows)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        """Return the end of the next micro-batch; `start` if there is nothing, or not enough, to read."""
        max_offsets = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        return _read(self._stream.latest_offset(json.dumps(start), max_offsets))

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Store the current ends: the query ends when it has read up to them."""
        self._stream.prepare_available_now()

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802
        """Return the ends of the logs, for the query's progress."""
        latest = self._stream.report_latest_offset()
        return None if latest is None else _read(latest)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """Plan a micro-batch. It may be one of an earlier run that is repeated."""
        return [LogPartition(task) for task in self._stream.plan(json.dumps(start), json.dumps(end))]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read a task, in a worker."""
        return read_task(self.query, partition)


def _read(offset: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(offset)
    return found
