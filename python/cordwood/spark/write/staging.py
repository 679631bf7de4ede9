"""The staged log of a task: its rows as batches, each for one partition. Does not use Spark."""

import os
import shutil
import uuid
import zlib
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa

from cordwood import Log, LogConfig, LogWriter, TimestampType
from cordwood.spark.write.journal import Journal
from cordwood.spark.write.options import TopicConfigs
from cordwood.spark.write.refused_row import REFUSALS, refusal

__all__ = ["Fingerprint", "LogBatches", "Run", "Staged", "StagingLog"]

# rows are collected up to this size, so that each partition gets large batches
_BUFFER_BYTES = 32 << 20

_CHUNK_BYTES = 8 << 20

_NO_LIMIT = (1 << 63) - 1

# In the header of a batch of v2, what an append does not change: all but the offset, the epoch, the checksum
# and, in a topic with the time of the append, the attributes and the largest timestamp.
_UNSTAMPED_FIELDS = slice(23, 35)
_STAMPED_END = 43


@dataclass(frozen=True)
class Run:
    """Consecutive records of a staged log that are for one partition."""

    topic: str
    partition: int
    start_offset: int
    """The first offset in the staged log."""

    end_offset: int
    """The offset after the last one (exclusive)."""


@dataclass(frozen=True)
class Staged:
    """What an attempt of a task has staged."""

    place: str
    """The path of the staged log, relative to the data directory."""

    runs: list[Run]
    """Its records, in order."""


class StagingLog:
    """The staged logs of one attempt of a task, under construction: one for all topics with the same settings."""

    def __init__(self, configs: TopicConfigs, root: str, write: str, task: int) -> None:
        """Create nothing yet. *write*: the id of the write."""
        self._journal = Journal(root)
        self._configs = configs
        self._write = write
        # unique, because attempts of a task, also of a run that died, may write at the same time
        self._task = f"task-{task}.{uuid.uuid4().hex}"
        self._logs: dict[LogConfig, _Log] = {}
        self._buffer: dict[tuple[str, int], list[pa.RecordBatch]] = {}
        self._buffered = 0

    def append(self, topic: str, partition: int, rows: pa.RecordBatch) -> None:
        """Add rows for a partition."""
        if rows.num_rows:
            self._buffer.setdefault((topic, partition), []).append(rows)
            self._buffered += rows.nbytes
            if self._buffered >= _BUFFER_BYTES:
                self._write_buffer()

    def finish(self) -> list[Staged]:
        """Make the staged logs durable and close them. Returns none if there was no row."""
        self._write_buffer()
        return [log.finish(self._journal.root) for log in self._logs.values()]

    def discard(self) -> None:
        """Remove the staged logs."""
        for log in self._logs.values():
            shutil.rmtree(log.place, ignore_errors=True)
        self._logs.clear()

    def _write_buffer(self) -> None:
        for (topic, partition), rows in self._buffer.items():
            config = _of_staged(self._configs.of(topic))
            if config not in self._logs:
                task = f"{self._task}.{len(self._logs)}" if self._logs else self._task
                place = self._journal.make_staging(f"{topic}-{partition}", self._write, task)
                self._logs[config] = _Log(place, LogWriter(place, config=config, flush="none"))
            # one record batch, because each becomes at least one batch of the log
            log = self._logs[config]
            table = pa.Table.from_batches(rows).combine_chunks()
            try:
                appended = log.writer.append_arrow(table)
            except REFUSALS as error:
                before = log.rows_of(topic, partition)
                raise refusal(error, log.writer, table, topic=topic, partition=partition, first_row=before) from error
            log.runs.append(Run(topic, partition, appended.first_offset, appended.last_offset + 1))
        self._buffer.clear()
        self._buffered = 0


@dataclass
class _Log:
    """A staged log, under construction."""

    place: Path
    writer: LogWriter
    runs: list[Run] = field(default_factory=list)

    def rows_of(self, topic: str, partition: int) -> int:
        """Count the rows so far for a partition."""
        own = (run for run in self.runs if (run.topic, run.partition) == (topic, partition))
        return sum(run.end_offset - run.start_offset for run in own)

    def finish(self, root: Path) -> Staged:
        self.writer.close()
        place = self.place.relative_to(root)
        # the names of the directories above, down from the data directory
        for folder in reversed(place.parents):
            _sync(root / folder)
        return Staged(str(place), self.runs)


def _of_staged(config: LogConfig) -> LogConfig:
    """Return the settings of a staged log: as a producer's, its batches never have the time of the append."""
    if config.message_timestamp_type is TimestampType.CreateTime:
        return config
    return replace(
        config,
        message_timestamp_type=TimestampType.CreateTime,
        message_timestamp_before_max_ms=_NO_LIMIT,
        message_timestamp_after_max_ms=_NO_LIMIT,
    )


class LogBatches:
    """The batches of a log that nothing changes: a staged log that is complete, or one whose lock is held."""

    def __init__(self, log: Log, start_offset: int | None = None) -> None:
        """Read the headers of the batches; of those from an offset on."""
        self._log = log
        columns = log.batches(start_offset=start_offset).to_arrow()
        names = ("base_offset", "segment_base_offset", "position", "size", "count")
        self._base_offsets, self._segments, self._positions, self._sizes, self._counts = (
            columns.column(name).to_pylist() for name in names
        )
        self._files = {segment.base_offset: segment.path for segment in self._log.segments}

    @property
    def end_offset(self) -> int:
        """The log end offset."""
        return self._log.log_end_offset

    def fingerprints(self, start_offset: int, end_offset: int) -> Iterator["Fingerprint"]:
        """Return what identifies each batch of a run; the first one may begin before it."""
        for number in self._between(start_offset, end_offset):
            with Path(self._files[self._segments[number]]).open("rb") as file:
                file.seek(self._positions[number])
                header, rest = file.read(_STAMPED_END), file.read(self._sizes[number] - _STAMPED_END)
            checksum = zlib.crc32(rest, zlib.crc32(header[_UNSTAMPED_FIELDS]))
            yield Fingerprint(self._base_offsets[number], self._counts[number], checksum)

    def chunks(self, start_offset: int, end_offset: int) -> Iterator[bytes]:
        """Return the bytes of the batches of a run, several batches at a time."""
        numbers = self._between(start_offset, end_offset)
        first = numbers.start
        while first < numbers.stop:
            last, size = first, 0
            # batches that follow each other in a segment also do in its file
            while last < numbers.stop and self._segments[last] == self._segments[first]:
                if size and size + self._sizes[last] > _CHUNK_BYTES:
                    break
                size += self._sizes[last]
                last += 1
            with Path(self._files[self._segments[first]]).open("rb") as file:
                file.seek(self._positions[first])
                yield file.read(size)
            first = last

    def _between(self, start_offset: int, end_offset: int) -> range:
        """Return the numbers of the batches of a run."""
        first = bisect_right(self._base_offsets, start_offset) - 1
        return range(max(first, 0), bisect_left(self._base_offsets, end_offset))


@dataclass(frozen=True)
class Fingerprint:
    """What identifies a batch of a log."""

    base_offset: int
    count: int
    """The number of its records."""

    checksum: int
    """Of all that an append does not change."""


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
