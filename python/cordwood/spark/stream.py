"""The reader of streams: `spark.readStream`.

A stream does not allow an end (`endingOffsets`, `endingTimestamp`, `endingOffsetsByTimestamp`) or a `table` other than
`records`: `CORDWOOD_BAD_OPTION` when the query starts. The other options have the same meaning as in a batch query.

An offset of the stream contains for each partition the next offset to read, and fields of the batch before it
(`position`), which detect a replaced log. Spark compares offsets as text, so topics and partitions are always in the
same order.

Spark records where a micro-batch ends, but not where the first one starts: if the first micro-batch of a query fails,
Spark requests the start again, which may have changed. So the first micro-batch is empty, and ends at the start. A
partition that appears later is treated in the same way. The deprecated `Trigger.Once` runs one micro-batch, so its
first run reads nothing; `availableNow` continues.
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
from cordwood.spark.bounds import Bounds, check_names, end_of, open_log, starting_offset, with_codes
from cordwood.spark.errors import BAD_OPTION, SEGMENT_GONE, SparkLogError, bad_option
from cordwood.spark.offset_gaps import is_compacted
from cordwood.spark.option_parsing import Offsets, PartitionName
from cordwood.spark.options import SparkLogOptions
from cordwood.spark.partitions import PartitionDirectory, find_partitions, log_warning
from cordwood.spark.position import Position, StreamOffset, read_positions, write_positions
from cordwood.spark.read import read_pieces
from cordwood.spark.schema import Shape, check_schema

__all__ = ["LogStreamReader"]

_ADVICE = "; failOnDataLoss=false continues with the existing data, a new checkpointLocation starts again"


class LogStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans micro-batches in one process for the lifetime of the query; pickled copies of it read in the workers."""

    def __init__(self, options: SparkLogOptions, schema: StructType) -> None:
        """Check the options. This is when the query starts: before that, it is not known to be a stream."""
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
        # with Trigger.AvailableNow, where the query ends
        self._target: Offsets | None = None
        self._latest: Offsets = {}
        self._last_trigger: float | None = None
        self._warned: set[str] = set()

    def initialOffset(self) -> StreamOffset:  # noqa: N802  (Spark's name, as those below)
        """Return the start of a new query: by default `latest`.

        Spark calls this twice, and again if the first micro-batch failed.
        """
        if self._initial is None:
            chosen = self._partitions()
            check_names(self.options, chosen.values())
            self._initial = write_positions({name: self._start(directory) for name, directory in chosen.items()})
            self._is_first = True
        return self._initial

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """Return the maximum size of a micro-batch."""
        max_rows = self.options.max_offsets_per_trigger
        return ReadAllAvailable() if max_rows is None else ReadMaxRows(max_rows)

    def latestOffset(self, start: StreamOffset, limit: ReadLimit) -> StreamOffset:  # noqa: N802
        """Return the end of the next micro-batch; `start` if there is nothing, or not enough, to read."""
        partitions = self._partitions()
        self._latest = self._ends(partitions)
        if self._is_first:
            self._is_first = False
            return start
        ends = self._latest
        if self._target is not None:
            ends = {name: min(end, self._target[name]) for name, end in ends.items() if name in self._target}
        # a missing partition keeps its position, so that nothing is read twice if it reappears
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
            reached[name] = with_codes(partitions[name], partial(Position.of, log, log.log_start_offset))
        if any(waiting.values()) and not self._should_wait(sum(waiting.values())):
            self._last_trigger = time.monotonic()
            for name, share in _shares(waiting, limit.max_rows if isinstance(limit, ReadMaxRows) else None).items():
                if share:
                    log = open_log(partitions[name], self.options, refresh=False)
                    position_at = partial(Position.of, log, reached[name].offset + share)
                    reached[name] = with_codes(partitions[name], position_at)
        return start if reached == begin else write_positions(reached)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Store the current ends: the query ends when it has read up to them."""
        self._target = self._ends(self._partitions())

    def reportLatestOffset(self) -> StreamOffset | None:  # noqa: N802
        """Return the ends of the logs, for the query's progress."""
        return write_positions({name: Position(end) for name, end in self._latest.items()}) or None

    def partitions(self, start: StreamOffset, end: StreamOffset) -> list[InputPartition]:
        """Plan a micro-batch. It may be one of an earlier run that is repeated."""
        self._is_first = False
        begin, stop = read_positions(start), read_positions(end)
        # A new partition is only in `end`, which is its start. If the first micro-batch is repeated, its start may be
        # above its end.
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

        return with_codes(directory, find)

    def _ends(self, partitions: Mapping[PartitionName, PartitionDirectory]) -> Offsets:
        ends = {}
        for name, directory in partitions.items():
            log = open_log(directory, self.options)
            ends[name] = with_codes(directory, partial(end_of, log, self.options))
        return ends

    def _bounds(
        self,
        name: PartitionName,
        partitions: Mapping[PartitionName, PartitionDirectory],
        begin: Position,
        stop: Position,
    ) -> Bounds | None:
        """Return the range between two positions of a partition, without offsets that no longer exist."""
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
            self._lost(name, position, "the partition is missing")
        return partitions.get(name)

    def _checked(self, directory: PartitionDirectory, log: cw.Log, position: Position) -> Position:
        """Return the position in the current log: the same one, unless its data is lost."""

        def compare() -> tuple[Position, str | None]:
            first, last = log.log_start_offset, log.log_end_offset
            if position.offset < first:
                return Position.of(log, first), f"the log now begins at offset {first}"
            if position.offset > last:
                # it was truncated or created again: continue from its end
                return Position.of(log, last), f"the log now ends at offset {last}"
            now = Position.of(log, position.offset)
            changed = position.mismatch(now, partial(is_compacted, log, self.options))
            return (position, None) if changed is None else (now, changed)

        now, found = with_codes(directory, compare)
        if found is not None:
            self._lost((directory.topic or "", directory.partition or 0), position, found)
        return now

    def _lost(self, name: PartitionName, position: Position, found: str) -> None:
        topic, partition = name
        reason = f"expected to continue from offset {position.offset}, found that {found}"
        if self.options.fail_on_data_loss:
            raise SparkLogError(SEGMENT_GONE, reason + _ADVICE, topic=topic, partition=partition)
        self._warn_once(SparkLogError(SEGMENT_GONE, reason, topic=topic, partition=partition))

    def _warn_once(self, error: SparkLogError) -> None:
        """Warn of a loss once per query: otherwise each micro-batch would repeat the warning."""
        if str(error) not in self._warned:
            self._warned.add(str(error))
            log_warning(error)

    def _should_wait(self, waiting: int) -> bool:
        """Whether to wait for more offsets: for at most `maxTriggerDelay`, and not with Trigger.AvailableNow."""
        minimum = self.options.min_offsets_per_trigger
        if minimum is None or waiting >= minimum or self._target is not None or self._last_trigger is None:
            return False
        return (time.monotonic() - self._last_trigger) * 1000 < self.options.max_trigger_delay_ms


def _shares(waiting: Offsets, max_offsets: int | None) -> Offsets:
    """Distribute `max_offsets` in proportion to the waiting offsets, at least one to each partition that has some."""
    total = sum(waiting.values())
    if max_offsets is None or total <= max_offsets:
        return waiting
    return {name: min(size, max(1, max_offsets * size // total)) if size else 0 for name, size in waiting.items()}
