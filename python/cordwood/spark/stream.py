"""Reading on and on: `spark.readStream`.

A stream has neither an end (`endingOffsets`, `endingTimestamp`, `endingOffsetsByTimestamp`) nor another `table` than
`records`: `CORDWOOD_BAD_OPTION` when the query starts. The other options mean what they mean for a batch.

An offset of the stream says of each partition the next offset to read, and what lies before it (`position`), so that a
log that was replaced is noticed. Spark compares offsets as text, so topics and partitions are always in the same order.

Spark writes down where a micro-batch ends, and never where the first one starts: a query whose first micro-batch fails
is asked for its start again, which may be another one by then. So the first micro-batch is empty, and ends at the
start. A partition that appears later is treated in the same way. With `Trigger.Once`, which is deprecated and runs one
micro-batch, the first run therefore reads nothing; `availableNow` reads on.
"""

import time
from collections.abc import Iterator, Mapping
from functools import partial

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

import cordwood as cw
from cordwood.spark.batch import partitions_of
from cordwood.spark.bounds import Bounds, check_names, coded, end_of, open_log, starting_offset
from cordwood.spark.errors import BAD_OPTION, SEGMENT_GONE, SparkLogError, bad_option
from cordwood.spark.offset_gaps import is_compacted
from cordwood.spark.option_parsing import Offsets, PartitionName
from cordwood.spark.options import SparkLogOptions
from cordwood.spark.partitions import PartitionDirectory, find_partitions, log_warning
from cordwood.spark.position import Position, StreamOffset, read_positions, write_positions
from cordwood.spark.read import read_pieces
from cordwood.spark.schema import Shape, check_schema

__all__ = ["LogStreamReader"]

_ADVICE = "; failOnDataLoss=false goes on with what is there, a new checkpointLocation starts again"


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
        self._is_first = False
        # where a query that reads what is there and ends has to end
        self._target: Offsets | None = None
        self._latest: Offsets = {}
        self._last_trigger: float | None = None
        self._warned: set[str] = set()

    def initialOffset(self) -> StreamOffset:  # noqa: N802  (Spark's name, as those below)
        """Say where a new query begins: `latest`, unless the options say otherwise.

        Spark asks twice, and again where the first micro-batch did not end.
        """
        if self._initial is None:
            chosen = self._partitions()
            check_names(self.options, chosen.values())
            self._initial = write_positions({name: self._start(directory) for name, directory in chosen.items()})
            self._is_first = True
        return self._initial

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """Say how much a micro-batch may hold."""
        most = self.options.max_offsets_per_trigger
        return ReadAllAvailable() if most is None else ReadMaxRows(most)

    def latestOffset(self, start: StreamOffset, limit: ReadLimit) -> StreamOffset:  # noqa: N802
        """Say how far the next micro-batch goes; `start` itself where there is nothing (or not enough) to read."""
        partitions = self._partitions()
        self._latest = self._ends(partitions)
        if self._is_first:
            self._is_first = False
            return start
        ends = self._latest
        if self._target is not None:
            ends = {name: min(end, self._target[name]) for name, end in ends.items() if name in self._target}
        # what is gone keeps its place, so that nothing is read twice should it come back
        begin = read_positions(start)
        reached = dict(begin)
        waiting: Offsets = {}
        for name, position in sorted(begin.items()):
            if (directory := self._directory(name, partitions, position)) is not None:
                log = open_log(directory, self.options, refresh=False)
                reached[name] = self._checked(directory, log, position)
                waiting[name] = max(0, ends.get(name, 0) - reached[name].offset)
        for name in ends.keys() - reached.keys():
            log = open_log(partitions[name], self.options, refresh=False)
            reached[name] = coded(partitions[name], partial(Position.of, log, log.log_start_offset))
        if any(waiting.values()) and not self._waits(sum(waiting.values())):
            self._last_trigger = time.monotonic()
            for name, share in _shares(waiting, limit.max_rows if isinstance(limit, ReadMaxRows) else None).items():
                if share:
                    log = open_log(partitions[name], self.options, refresh=False)
                    reached[name] = coded(partitions[name], partial(Position.of, log, reached[name].offset + share))
        return start if reached == begin else write_positions(reached)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Remember what is there now: the query ends when that is read."""
        self._target = self._ends(self._partitions())

    def reportLatestOffset(self) -> StreamOffset | None:  # noqa: N802
        """Say where the logs end, for the query's progress."""
        return write_positions({name: Position(end) for name, end in self._latest.items()}) or None

    def partitions(self, start: StreamOffset, end: StreamOffset) -> list[InputPartition]:
        """Plan a micro-batch; it may be one of an earlier run, that is done again."""
        self._is_first = False
        begin, stop = read_positions(start), read_positions(end)
        # a partition that appeared is in `end` alone, which says where it starts; of a first micro-batch that is done
        # again the start may lie behind the end
        names = sorted(name for name in begin.keys() & stop.keys() if begin[name].offset < stop[name].offset)
        partitions = self._partitions() if names else {}
        bounds = [self._bounds(name, partitions, begin[name], stop[name]) for name in names]
        return partitions_of((bound for bound in bounds if bound is not None), self.options)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read a task, in a worker."""
        return read_pieces(partition.value, self.options, self.shape, _ADVICE)

    def _partitions(self) -> dict[PartitionName, PartitionDirectory]:
        found = {}
        for directory in find_partitions(self.options, self._warn_once):
            if directory.topic is None or directory.partition is None:
                reason = f"path: expected directories named topic-partition for a stream, found {directory.path}"
                raise SparkLogError(BAD_OPTION, reason)
            found[directory.topic, directory.partition] = directory
        return found

    def _start(self, directory: PartitionDirectory) -> Position:
        log = open_log(directory, self.options)

        def find() -> Position:
            return Position.of(log, starting_offset(log, directory, self.options, "latest"))

        return coded(directory, find)

    def _ends(self, partitions: Mapping[PartitionName, PartitionDirectory]) -> Offsets:
        ends = {}
        for name, directory in partitions.items():
            log = open_log(directory, self.options)
            ends[name] = coded(directory, partial(end_of, log, self.options))
        return ends

    def _bounds(
        self,
        name: PartitionName,
        partitions: Mapping[PartitionName, PartitionDirectory],
        begin: Position,
        stop: Position,
    ) -> Bounds | None:
        """Give what lies between two positions of a partition, as far as it is still there."""
        directory = self._directory(name, partitions, begin)
        if directory is None:
            return None
        log = open_log(directory, self.options)
        start = self._checked(directory, log, begin).offset
        end = self._checked(directory, log, stop).offset
        return Bounds(directory, start, max(start, end), continues=start > log.log_start_offset)

    def _directory(
        self, name: PartitionName, partitions: Mapping[PartitionName, PartitionDirectory], position: Position
    ) -> PartitionDirectory | None:
        if name not in partitions:
            self._lost(name, position, "the partition is gone")
        return partitions.get(name)

    def _checked(self, directory: PartitionDirectory, log: cw.Log, position: Position) -> Position:
        """Give the position in the log as it is now: the same one, unless what lay there is lost."""

        def compare() -> tuple[Position, str | None]:
            first, last = log.log_start_offset, log.log_end_offset
            if position.offset < first:
                return Position.of(log, first), f"the log begins at offset {first} now"
            if position.offset > last:
                # it was cut back, or made anew, and goes on from its end
                return Position.of(log, last), f"the log ends at offset {last} now"
            now = Position.of(log, position.offset)
            changed = position.mismatch(now, partial(is_compacted, log, self.options))
            return (position, None) if changed is None else (now, changed)

        now, found = coded(directory, compare)
        if found is not None:
            self._lost((directory.topic or "", directory.partition or 0), position, found)
        return now

    def _lost(self, name: PartitionName, position: Position, found: str) -> None:
        topic, partition = name
        reason = f"expected to go on from offset {position.offset}, found that {found}"
        if self.options.fail_on_data_loss:
            raise SparkLogError(SEGMENT_GONE, reason + _ADVICE, topic=topic, partition=partition)
        self._warn_once(SparkLogError(SEGMENT_GONE, reason, topic=topic, partition=partition))

    def _warn_once(self, error: SparkLogError) -> None:
        """Warn of a loss once for a query: each micro-batch is sized and planned, and finds it again."""
        if str(error) not in self._warned:
            self._warned.add(str(error))
            log_warning(error)

    def _waits(self, waiting: int) -> bool:
        """Whether to wait for more: not for longer than `maxTriggerDelay`, and not where the query is to end."""
        least = self.options.min_offsets_per_trigger
        if least is None or waiting >= least or self._target is not None or self._last_trigger is None:
            return False
        return (time.monotonic() - self._last_trigger) * 1000 < self.options.max_trigger_delay_ms


def _shares(waiting: Offsets, most: int | None) -> Offsets:
    """Share out `most` in proportion to what waits; whoever has something waiting gets at least one."""
    total = sum(waiting.values())
    if most is None or total <= most:
        return waiting
    return {name: min(size, max(1, most * size // total)) if size else 0 for name, size in waiting.items()}
