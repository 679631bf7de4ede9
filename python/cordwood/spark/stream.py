"""Reading on and on: `spark.readStream`.

A stream has neither an end (`endingOffsets`, `endingTimestamp`, `endingOffsetsByTimestamp`) nor another `table` than
`records`: `CORDWOOD_BAD_OPTION` when the query starts. The other options mean what they mean for a batch.

An offset of the stream is what Spark's Kafka source writes, `{"orders":{"0":123}}`: of each partition the next offset
to read. Spark compares offsets as text, so topics and partitions are always in the same order.
"""

import logging
import time
from collections.abc import Iterable, Iterator
from functools import partial
from typing import TypeAlias

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

import cordwood as cw
from cordwood.spark.batch import partitions_of
from cordwood.spark.bounds import Bounds, check_names, coded, end_of, open_log, starting_offset
from cordwood.spark.errors import BAD_OPTION, SEGMENT_GONE, SparkLogError, bad_option
from cordwood.spark.option_text import Offsets, PartitionName, by_topic
from cordwood.spark.options import SparkLogOptions
from cordwood.spark.partitions import PartitionDirectory, find_partitions
from cordwood.spark.read import PLAN_AGAIN, read_pieces
from cordwood.spark.schema import Shape, check_schema

__all__ = ["LogStreamReader"]

_logger = logging.getLogger("cordwood")

StreamOffset: TypeAlias = dict[str, dict[str, int]]


class LogStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans micro-batches in one process that lives as long as the query; copies of it read in the workers."""

    def __init__(self, options: SparkLogOptions, schema: StructType) -> None:
        """Refuse what a stream must not have. That is when the query starts: until then it may still be a batch."""
        check_schema(schema, options)
        for name, value in (
            ("endingOffsets", options.ending_offsets),
            ("endingTimestamp", options.ending_timestamp),
            ("endingOffsetsByTimestamp", options.ending_offsets_by_timestamp),
        ):
            if value is not None:
                raise bad_option(name, "no end for a stream", value)
        if options.table != "records":
            raise bad_option("table", "records for a stream", options.table)
        self.options = options
        self.shape = Shape(schema, options.table)
        self._initial: StreamOffset | None = None
        # where a query that reads what is there and ends has to end
        self._target: Offsets | None = None
        self._latest: Offsets = {}
        self._last_trigger: float | None = None

    def initialOffset(self) -> StreamOffset:  # noqa: N802  (Spark's name, as those below)
        """Say where a new query begins: `latest`, unless the options say otherwise. Spark asks twice."""
        if self._initial is None:
            chosen = self._partitions()
            check_names(self.options, chosen.values())
            starts = {}
            for name, directory in chosen.items():
                log = open_log(directory, self.options)
                find = partial(starting_offset, log, directory, self.options, "latest")
                starts[name] = coded(directory, find)
            self._initial = by_topic(starts)
        return self._initial

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """Say how much a micro-batch may hold."""
        most = self.options.max_offsets_per_trigger
        return ReadAllAvailable() if most is None else ReadMaxRows(most)

    def latestOffset(self, start: StreamOffset, limit: ReadLimit) -> StreamOffset:  # noqa: N802
        """Say how far the next micro-batch goes; `start` itself where there is nothing (or not enough) to read."""
        begin = _from_json(start)
        self._latest = self._ends()
        known = self._latest
        if self._target is not None:
            known = {name: min(end, self._target[name]) for name, end in known.items() if name in self._target}
        bounds = {bound_name(bound): bound for bound in self._bounds(begin, known)}
        # a partition that appeared is named first, and read by the next micro-batch: then its start is on record, and
        # what retention takes of it meanwhile is noticed
        fresh = self._starts(known.keys() - begin.keys()) if known.keys() - begin.keys() else {}
        # what is gone keeps its place, so that nothing is read twice should it come back
        reached = begin | fresh | {name: bound.start_offset for name, bound in bounds.items()}
        waiting = {name: bound.end_offset - bound.start_offset for name, bound in bounds.items()}
        if not any(waiting.values()) or self._waits(sum(waiting.values())):
            return by_topic(reached)
        self._last_trigger = time.monotonic()
        shares = _shares(waiting, limit.max_rows if isinstance(limit, ReadMaxRows) else None)
        return by_topic({name: offset + shares.get(name, 0) for name, offset in reached.items()})

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Remember what is there now: the query ends when that is read."""
        self._target = self._ends()

    def reportLatestOffset(self) -> StreamOffset | None:  # noqa: N802
        """Say where the logs end, for the query's progress."""
        return by_topic(self._latest) if self._latest else None

    def partitions(self, start: StreamOffset, end: StreamOffset) -> list[InputPartition]:
        """Plan a micro-batch; it may be one of an earlier run, that is done again."""
        return partitions_of(self._bounds(_from_json(start), _from_json(end)), self.options)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read a task, in a worker."""
        return read_pieces(partition.value, self.options, self.shape)

    def _partitions(self) -> dict[PartitionName, PartitionDirectory]:
        found = {}
        for directory in find_partitions(self.options):
            if directory.topic is None or directory.partition is None:
                reason = f"path: expected directories named topic-partition for a stream, found {directory.path}"
                raise SparkLogError(BAD_OPTION, reason)
            found[directory.topic, directory.partition] = directory
        return found

    def _ends(self) -> Offsets:
        ends = {}
        for name, directory in self._partitions().items():
            log = open_log(directory, self.options)
            ends[name] = coded(directory, partial(end_of, log, self.options))
        return ends

    def _starts(self, names: Iterable[PartitionName]) -> Offsets:
        here = self._partitions()
        return {name: open_log(here[name], self.options).log_start_offset for name in names if name in here}

    def _bounds(self, start: Offsets, end: Offsets) -> list[Bounds]:
        """Give what lies between two offsets of the stream, as far as it is still there.

        Of a partition that appeared since `start`, that is nothing: `end` says where it begins.
        """
        here = self._partitions()
        bounds = []
        for name in sorted(start.keys() | end.keys()):
            directory = here.get(name)
            if directory is None:
                self._lost(name, start.get(name), "the partition is gone")
                continue
            if name not in end or name not in start:
                continue
            log = open_log(directory, self.options)
            first, last = coded(directory, partial(_extent, log))
            begin, stop = start[name], end[name]
            if begin < first:
                self._lost(name, begin, f"the log begins at offset {first} now")
            if max(begin, stop) > last:
                self._lost(name, max(begin, stop), f"the log ends at offset {last} now")
            # a log that was cut back, or made anew, goes on from where it ends
            begin, stop = min(max(begin, first), last), min(stop, last)
            bounds.append(Bounds(directory, begin, max(begin, stop), continues=begin > first))
        return bounds

    def _lost(self, name: PartitionName, offset: int | None, found: str) -> None:
        topic, partition = name
        reason = f"expected to go on from offset {offset}, found that {found}"
        error = SparkLogError(SEGMENT_GONE, reason + PLAN_AGAIN, topic=topic, partition=partition)
        if self.options.fail_on_data_loss:
            raise error
        _logger.warning("%s", error)

    def _waits(self, waiting: int) -> bool:
        """Whether to wait for more: not for longer than `maxTriggerDelay`, and not where the query is to end."""
        least = self.options.min_offsets_per_trigger
        if least is None or waiting >= least or self._target is not None or self._last_trigger is None:
            return False
        return (time.monotonic() - self._last_trigger) * 1000 < self.options.max_trigger_delay_ms


def bound_name(bound: Bounds) -> PartitionName:
    """Name the partition of a range, which in a stream always has a name."""
    return (bound.topic or "", bound.partition or 0)


def _shares(waiting: Offsets, most: int | None) -> Offsets:
    """Share out `most` in proportion to what waits; whoever has something waiting gets at least one."""
    total = sum(waiting.values())
    if most is None or total <= most:
        return waiting
    return {name: min(size, max(1, most * size // total)) if size else 0 for name, size in waiting.items()}


def _extent(log: cw.Log) -> tuple[int, int]:
    return log.log_start_offset, log.log_end_offset


def _from_json(offsets: StreamOffset) -> Offsets:
    return {(topic, int(number)): offset for topic, numbers in offsets.items() for number, offset in numbers.items()}
