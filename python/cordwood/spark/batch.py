"""The reader of batch queries: `spark.read`."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from cordwood._core import _Query
from cordwood.spark.workers import freeze_modules

__all__ = ["LogPartition", "LogReader", "read_task"]


class LogPartition(InputPartition):
    """The input of one task, without open handles."""

    def __init__(self, value: Any) -> None:  # noqa: ANN401  (a job has values of its own)
        """Store it: a `_Task`."""
        super().__init__(value)


def read_task(query: _Query, partition: InputPartition) -> Iterator[pa.RecordBatch]:
    """Read a task, in a worker."""
    freeze_modules()
    return iter(query.read(partition.value))


class LogReader(DataSourceReader):
    """Plans in the driver and reads in the workers. It is pickled for them: only the query.

    It does not implement `pushFilters`. Spark 4.2 and 4.3 keep the plan of a filtered query in the source, which all
    queries of a DataFrame share (`PythonScanBuilder.pushFilters`), and return its rows to the other queries.
    """

    def __init__(self, query: _Query) -> None:
        """Store the query."""
        self.query = query

    def partitions(self) -> list[InputPartition]:
        """Plan the tasks from the current logs. Spark calls this once per DataFrame; all its queries use that plan."""
        _, tasks = self.query.plan()
        return [LogPartition(task) for task in tasks]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read a task, in a worker."""
        return read_task(self.query, partition)
