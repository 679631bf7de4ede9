"""The staged log of a task: its rows as batches, each for one partition. Does not use Spark."""

import os
import shutil
import uuid
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from cordwood import Log, LogConfig, LogWriter
from cordwood.spark.write.journal import Journal

__all__ = ["Run", "Staged", "StagedBatches", "StagingLog"]

# rows are collected up to this size, so that each partition gets large batches
_BUFFER_BYTES = 32 << 20

_CHUNK_BYTES = 8 << 20


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
    """The staged log of one attempt of a task, under construction."""

    def __init__(self, root: str, config: LogConfig, write: str, task: int) -> None:
        """Create nothing yet. *write*: the id of the write."""
        self._journal = Journal(root)
        self._config = config
        self._write = write
        # unique, because attempts of a task, also of a run that died, may write at the same time
        self._task = f"task-{task}.{uuid.uuid4().hex}"
        self._place: Path | None = None
        self._writer: LogWriter | None = None
        self._buffer: dict[tuple[str, int], list[pa.RecordBatch]] = {}
        self._buffered = 0
        self._runs: list[Run] = []

    def append(self, topic: str, partition: int, rows: pa.RecordBatch) -> None:
        """Add rows for a partition."""
        if rows.num_rows:
            self._buffer.setdefault((topic, partition), []).append(rows)
            self._buffered += rows.nbytes
            if self._buffered >= _BUFFER_BYTES:
                self._write_buffer()

    def finish(self) -> list[Staged]:
        """Make the staged log durable and close it. Returns none if there was no row."""
        self._write_buffer()
        if self._writer is None or self._place is None:
            return []
        self._writer.close()
        place = self._place.relative_to(self._journal.root)
        # the names of the directories above, down from the data directory
        for folder in reversed(place.parents):
            _sync(self._journal.root / folder)
        return [Staged(str(place), self._runs)]

    def discard(self) -> None:
        """Remove the staged log."""
        self._writer = None
        if self._place is not None:
            shutil.rmtree(self._place, ignore_errors=True)

    def _write_buffer(self) -> None:
        for (topic, partition), rows in self._buffer.items():
            if self._writer is None:
                self._place = self._journal.make_staging(f"{topic}-{partition}", self._write, self._task)
                self._writer = LogWriter(self._place, config=self._config, flush="none")
            # one record batch, because each becomes at least one batch of the log
            appended = self._writer.append_arrow(pa.Table.from_batches(rows).combine_chunks())
            self._runs.append(Run(topic, partition, appended.first_offset, appended.last_offset + 1))
        self._buffer.clear()
        self._buffered = 0


class StagedBatches:
    """The batches of a staged log that is complete."""

    def __init__(self, directory: Path) -> None:
        """Read the headers of all batches."""
        self._log = Log(directory)
        columns = self._log.batches().to_arrow()
        names = ("base_offset", "segment_base_offset", "position", "size", "count", "crc")
        self._base_offsets, self._segments, self._positions, self._sizes, self._counts, self._checksums = (
            columns.column(name).to_pylist() for name in names
        )
        self._files = {segment.base_offset: segment.path for segment in self._log.segments}

    @property
    def end_offset(self) -> int:
        """The number of records."""
        return self._log.log_end_offset

    def fingerprints(self, start_offset: int, end_offset: int) -> list[tuple[int, int, int]]:
        """Return the count, the size and the checksum of the batches of a run: what an append does not change."""
        numbers = self._between(start_offset, end_offset)
        return [(self._counts[n], self._sizes[n], self._checksums[n]) for n in numbers]

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
        return range(bisect_left(self._base_offsets, start_offset), bisect_left(self._base_offsets, end_offset))


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
