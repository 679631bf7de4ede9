"""Reading once: `spark.read`."""

import logging
from collections.abc import Iterable, Iterator

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition
from pyspark.sql.types import StructType

from cordwood.spark.bounds import Bounds, check_start, resolve
from cordwood.spark.filters import Pruning
from cordwood.spark.options import SparkLogOptions
from cordwood.spark.read import read_pieces
from cordwood.spark.schema import Shape, check_schema
from cordwood.spark.split import Piece, plan_splits

_logger = logging.getLogger("cordwood")

# Spark's Kafka source passes over the same ones in a batch
_STREAMS_ONLY = ("maxOffsetsPerTrigger", "minOffsetsPerTrigger", "maxTriggerDelay")

__all__ = ["LogPartition", "LogReader", "PushingLogReader"]


class LogPartition(InputPartition):
    """What one task reads: pieces, without a handle."""

    def __init__(self, pieces: tuple[Piece, ...]) -> None:
        """Take the pieces."""
        super().__init__(pieces)


def partitions_of(bounds: Iterable[Bounds], options: SparkLogOptions) -> list[InputPartition]:
    """Cut ranges into tasks. Where nothing is left, that is one empty task: for none Spark would make one up."""
    return [LogPartition(task) for task in plan_splits(bounds, options)] or [LogPartition(())]


class LogReader(DataSourceReader):
    """Plans in the driver, and reads in the workers, to which it goes as a pickle: options and schema."""

    def __init__(self, options: SparkLogOptions, schema: StructType) -> None:
        """Check the schema, which may be the user's own."""
        check_schema(schema, options)
        check_start(options)
        idle = [name for name in _STREAMS_ONLY if name in options.to_options()]
        if idle:
            _logger.warning("without effect, because this is no stream: %s", ", ".join(idle))
        self.options = options
        self.shape = Shape(schema, options.table)

    def bounds(self) -> Iterator[Bounds]:
        """Find what to read, as the logs are now."""
        return resolve(self.options)

    def partitions(self) -> list[InputPartition]:
        """Plan the tasks. Spark asks anew for every action."""
        return partitions_of(self.bounds(), self.options)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read a task, in a worker."""
        return read_pieces(partition.value, self.options, self.shape)


class PushingLogReader(LogReader):
    """The same, and what Spark's filters rule out is not read.

    It is a class of its own because Spark refuses every query of a reader that takes filters where its setting
    `spark.sql.python.filterPushdown.enabled` is off.
    """

    def __init__(self, options: SparkLogOptions, schema: StructType) -> None:
        """Begin without filters."""
        super().__init__(options, schema)
        self.pruning = Pruning()

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802  (Spark's name)
        """Remember what the filters rule out, and give all of them back to be evaluated by Spark."""
        if self.options.table == "records":
            pruning = Pruning.of(filters)
            # a row about damage is where the damage begins, which may be before a range that it reaches into
            self.pruning = pruning.without_ranges() if self.options.mode == "PERMISSIVE" else pruning
        return filters

    def bounds(self) -> Iterator[Bounds]:
        """Find what to read: what the options choose and no filter rules out."""
        return self.pruning.apply(super().bounds())
