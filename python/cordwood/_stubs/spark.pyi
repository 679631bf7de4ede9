"""Plans of queries over many logs, for `cordwood.spark`. Their errors are `cordwood.spark.errors.SparkLogError`."""

from collections.abc import Iterator, Mapping
from typing import Any, Literal, final

import pyarrow as pa

from cordwood._stubs.arguments import ArrowStream, FilePath
from cordwood._stubs.log import Log

def _open_log(path: FilePath, *, io: Literal["auto", "mmap", "pread"] = "pread", refresh: bool = True) -> Log:
    """Return the current log of a partition directory. Each is opened once per process.

    Without *refresh* a log that is open is returned as it is. *Errors*: as for `Log`.
    """

def _logs_opened() -> int:
    """Return how many logs were opened so far, and not taken from those that are open."""

def _local_path(path: str) -> str:
    """Return a path without the scheme of a `file:` URL; another scheme is `CORDWOOD_BAD_OPTION`."""

def _partition_directory(path: str) -> tuple[str, str | None, int | None]:
    """Return the absolute path, the topic and the partition of a directory. The path may be a `file:` URL."""

def _partitions_of_keys(keys: ArrowStream, partitions: int) -> list[int | None]:
    """Return the partition of each key, as Kafka's producer chooses it; `None` for null. *keys*: one binary column.

    *Source*: Kafka `BuiltInPartitioner.partitionForKey`.
    """

def _decode_batches(batches: ArrowStream, max_bytes: int, max_batch_bytes: int) -> pa.RecordBatch:
    """Decode the first cells of a binary column until their records take *max_bytes*, at least one cell.

    Return a row for each of these cells: `records`, null if the cell is null or cannot be decoded, and why it cannot:
    `reason`, `position` (of the batch in the cell, bytes) and `kind` (`damaged`, `unsupported` or `too_large`). A cell
    has any number of batches. Records of control batches are left out, and a part of a batch at the end of a cell.
    *max_batch_bytes* is the `max_log_batch_bytes` of `decode_batches`.
    """

@final
class _SourceOptions:
    """The checked options of a source."""

    def __new__(cls, texts: Mapping[str, str]) -> _SourceOptions: ...
    @property
    def texts(self) -> dict[str, str]:
        """The options as strings, without those that have their default values. Paths are in `paths`, as JSON."""
    def replaced(self, changes: Mapping[str, str | None]) -> _SourceOptions:
        """Return these options with some replaced; `None` removes one. Names are as in `texts`."""
    def check(self) -> None:
        """Check the options together with the paths, as when a table is loaded."""
    @property
    def paths(self) -> list[str]:
        """Data directories and partition directories, or globs of them."""
    @property
    def table(self) -> Literal["records", "batches", "segments"]:
        """The rows."""
    @property
    def columns(self) -> list[str] | None:
        """The option `columns`; `None` if it is not given."""
    @property
    def mode(self) -> Literal["FAILFAST", "DROPMALFORMED", "PERMISSIVE"]:
        """What to do with damage."""
    @property
    def isolation_level(self) -> Literal["read_uncommitted", "read_committed"]:
        """Which records of transactions are returned."""
    @property
    def io(self) -> Literal["auto", "mmap", "pread"]:
        """Which files are mapped."""
    @property
    def max_partition_bytes(self) -> int | None:
        """The size of a task; `None` if it is not given."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...

@final
class _Query:
    """A checked query: options, and the columns of its rows."""

    def __new__(cls, options: _SourceOptions, schema: str | None = None, *, is_stream: bool = False) -> _Query: ...
    @property
    def options(self) -> _SourceOptions:
        """The options."""
    @property
    def schema(self) -> str:
        """The schema of the rows, as the JSON of Spark's `StructType`."""
    def plan(self) -> tuple[list[_Piece], list[_Task]]:
        """Plan the query from the current logs: the range of each partition, and the tasks, one or more."""
    def ranges(self) -> list[_Piece]:
        """Return the range of each partition, up to the last row."""
    def read(self, task: _Task) -> _TaskReader:
        """Read a task."""
    def count(self, task: _Task) -> int:
        """Count the rows of a task, from the batch headers where these are exact."""
    def offset_gap(self, piece: _Piece) -> int:
        """Count the offsets of a piece that are in gaps between segments."""
    @classmethod
    def _restored(cls, options: _SourceOptions, schema: str | None, is_stream: bool) -> _Query: ...

@final
class _Task:
    """What one task reads, in order. It is small, has no open handle, and is valid on every machine."""

    def __new__(cls, content: bytes) -> _Task: ...
    @property
    def size(self) -> int:
        """The approximate number of bytes of the logs that it reads."""
    @property
    def pieces(self) -> list[_Piece]:
        """The parts of partitions."""
    def __bytes__(self) -> bytes: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...

@final
class _Piece:
    """A part of one partition: offsets `[start_offset, end_offset)`."""

    @property
    def topic(self) -> str | None:
        """The topic; `None` if the directory is not named topic-partition."""
    @property
    def partition(self) -> int | None:
        """The partition; `None` if the directory is not named topic-partition."""
    @property
    def path(self) -> str:
        """The partition directory, absolute."""
    @property
    def start_offset(self) -> int:
        """The first offset (inclusive)."""
    @property
    def end_offset(self) -> int:
        """The end (exclusive)."""
    @property
    def size(self) -> int:
        """The approximate number of bytes of the log; 0 for a range that was not planned."""
    @property
    def task(self) -> _Task:
        """A task that reads only this piece."""
    @classmethod
    def _restored(cls, task: _Task) -> _Piece: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...

@final
class _TaskReader:
    """An iterator of `pyarrow` record batches in the schema of the query."""

    def __iter__(self) -> Iterator[Any]: ...
    def __next__(self) -> Any: ...  # noqa: ANN401  (pyarrow is optional)

@final
class _Stream:
    """The driver's side of a stream. Offsets are JSON: by topic and partition, in a fixed order."""

    def __new__(cls, query: _Query) -> _Stream: ...
    @property
    def max_offsets_per_trigger(self) -> int | None:
        """The maximum number of offsets of a micro-batch; `None`: no limit."""
    def initial_offset(self) -> str:
        """Return the start of a new query. It does not change when it is called again."""
    def latest_offset(self, start: str, max_offsets: int | None = None) -> str:
        """Return the end of the next micro-batch; *start* if there is nothing, or not enough, to read."""
    def prepare_available_now(self) -> None:
        """Store the current ends: the query ends when it has read up to them."""
    def report_latest_offset(self) -> str | None:
        """Return the ends of the logs at the last trigger; `None` before the first."""
    def plan(self, start: str, end: str) -> list[_Task]:
        """Plan a micro-batch."""
