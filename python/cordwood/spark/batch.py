"""The reader of batch queries: `spark.read`."""

import logging
from collections.abc import Iterable, Iterator

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from cordwood.spark.bounds import Bounds, check_start, resolve
from cordwood.spark.options import SparkLogOptions
from cordwood.spark.read import read_pieces
from cordwood.spark.schema import Shape, check_schema
from cordwood.spark.split import Piece, plan_splits

_logger = logging.getLogger("cordwood")

# Spark's Kafka source ignores the same options in a batch query
_STREAMS_ONLY = ("maxOffsetsPerTrigger", "minOffsetsPerTrigger", "maxTriggerDelay")

__all__ = ["LogPartition", "LogReader"]


class LogPartition(InputPartition):
    """The input of one task: pieces, without open handles."""

    def __init__(self, pieces: tuple[Piece, ...]) -> None:
        """Store the pieces."""
        super().__init__(pieces)


def partitions_of(bounds: Iterable[Bounds], options: SparkLogOptions) -> list[InputPartition]:
    """Cut ranges into tasks. An empty plan has one empty task, because Spark would replace an empty list."""
    return [LogPartition(task) for task in plan_splits(bounds, options)] or [LogPartition(())]


class LogReader(DataSourceReader):
    """Plans in the driver and reads in the workers. It is pickled for them: only options and schema.

    It does not implement `pushFilters`. Spark 4.2 and 4.3 keep the plan of a filtered query in the source, which all
    queries of a DataFrame share (`PythonScanBuilder.pushFilters`), and return its rows to the other queries.
    """

    def __init__(self, options: SparkLogOptions, schema: StructType) -> None:
        """Check the schema, which the user may have given."""
        check_schema(schema, options)
        check_start(options)
        ignored = [name for name in _STREAMS_ONLY if name in options.to_options()]
        if ignored:
            _logger.warning("ignored, because this is not a stream: %s", ", ".join(ignored))
        self.options = options
        self.shape = Shape(schema, options.table)

    def partitions(self) -> list[InputPartition]:
        """Plan the tasks from the current logs. Spark calls this once per DataFrame; all its queries use that plan."""
        return partitions_of(resolve(self.options), self.options)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read a task, in a worker."""
        return read_pieces(partition.value, self.options, self.shape)
