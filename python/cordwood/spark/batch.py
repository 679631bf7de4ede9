"""Reading once: `spark.read`."""

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

# Spark's Kafka source passes over the same ones in a batch
_STREAMS_ONLY = ("maxOffsetsPerTrigger", "minOffsetsPerTrigger", "maxTriggerDelay")

__all__ = ["LogPartition", "LogReader"]


class LogPartition(InputPartition):
    """What one task reads: pieces, without a handle."""

    def __init__(self, pieces: tuple[Piece, ...]) -> None:
        """Take the pieces."""
        super().__init__(pieces)


def partitions_of(bounds: Iterable[Bounds], options: SparkLogOptions) -> list[InputPartition]:
    """Cut ranges into tasks. Where nothing is left, that is one empty task: for none Spark would make one up."""
    return [LogPartition(task) for task in plan_splits(bounds, options)] or [LogPartition(())]


class LogReader(DataSourceReader):
    """Plans in the driver, and reads in the workers, to which it goes as a pickle: options and schema.

    It takes no filters (`pushFilters`). Spark 4.2 and 4.3 keep the plan of a filtered query in the source that all
    queries of a DataFrame share (`PythonScanBuilder.pushFilters`), and give its rows to the others.
    """

    def __init__(self, options: SparkLogOptions, schema: StructType) -> None:
        """Check the schema, which may be the user's own."""
        check_schema(schema, options)
        check_start(options)
        idle = [name for name in _STREAMS_ONLY if name in options.to_options()]
        if idle:
            _logger.warning("without effect, because this is no stream: %s", ", ".join(idle))
        self.options = options
        self.shape = Shape(schema, options.table)

    def partitions(self) -> list[InputPartition]:
        """Plan the tasks, as the logs are now. Spark asks once for a DataFrame; all its queries read that plan."""
        return partitions_of(resolve(self.options), self.options)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read a task, in a worker."""
        return read_pieces(partition.value, self.options, self.shape)
