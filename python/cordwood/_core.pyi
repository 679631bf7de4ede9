"""The Rust half of cordwood.

Words used everywhere: an *offset* is logical and absolute; a *position* is bytes from the start of a `.log` (or of the
file that is named beside it); a *timestamp* is milliseconds since the epoch, -1 where there is none. Ranges are
half-open, `[start, end)`. Results are frozen objects with attributes. Reading never writes a byte; only `LogWriter`
writes.

The examples run from the root of the repository; `cw` is `cordwood`.
"""

from collections.abc import ItemsView, Iterable, Iterator, KeysView, Mapping, Sequence, ValuesView
from datetime import datetime
from os import PathLike
from types import TracebackType
from typing import Any, Literal, Protocol, Self, TypeAlias, TypeVar, final, overload

import pandas as pd
import polars as pl
import pyarrow as pa
from typing_extensions import Buffer, disjoint_base

from cordwood.config import LogConfig
from cordwood.types import TimestampType

__all__ = [
    "AbortedTransaction",
    "Appended",
    "DamagedRange",
    "FileChange",
    "FlushMode",
    "Location",
    "Log",
    "LogDir",
    "LogWriter",
    "OffsetGap",
    "OffsetIndex",
    "OffsetIndexWriter",
    "OffsetPosition",
    "PathInfo",
    "PlannedSegment",
    "RebuiltIndex",
    "Record",
    "Records",
    "RecoveryCut",
    "RecoveryPlan",
    "RetentionPlan",
    "Scan",
    "ScanStats",
    "Segment",
    "SegmentSplit",
    "Segments",
    "Split",
    "TimeIndex",
    "TimeIndexWriter",
    "TimestampOffset",
    "TransactionIndex",
    "TransactionIndexWriter",
    "_has_segments",
    "_is_segment_file",
    "_log_config_checked",
    "_log_config_from_properties",
    "_log_config_to_properties",
    "_nearest",
    "_partition_name",
    "classify",
    "plan_retention",
]

_T = TypeVar("_T")

class _ArrowArray(Protocol):
    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]: ...

class _ArrowStream(Protocol):
    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...

_Path: TypeAlias = str | PathLike[str]
_Time: TypeAlias = int | datetime | str
_Integers: TypeAlias = Sequence[int] | Buffer | _ArrowArray | _ArrowStream
_Times: TypeAlias = Sequence[int] | Sequence[datetime] | Buffer | _ArrowArray | _ArrowStream
_Io: TypeAlias = Literal["auto", "mmap", "pread"]
_IsolationLevel: TypeAlias = Literal["read_uncommitted", "read_committed"]
_OnDamage: TypeAlias = Literal["raise", "skip", "report"]
_HeaderKeys: TypeAlias = Literal["utf8", "binary"]
_TimestampUnit: TypeAlias = Literal["ms", "us"]
_Method: TypeAlias = Literal["binary", "warm"]
_Bytes: TypeAlias = Buffer | str
_Headers: TypeAlias = Iterable[Sequence[_Bytes | None]] | Mapping[str, _Bytes | None] | Mapping[bytes, _Bytes | None]

class _Settings(Protocol):
    def to_properties(self) -> dict[str, str]: ...

@final
class Log:
    """A partition directory, opened for reading, fixed as of its opening.

    It needs read permission only, takes no lock and writes nothing; indexes, checkpoints and snapshots may be missing
    or wrong. `refresh()` sees what was appended since. (Of a preallocated last segment that grows meanwhile, what
    counts is settled by the first question about its end.) Threads may share a `Log`; in a forked child it reopens
    itself; it pickles as a recipe with its absolute path.

    *io*: `"auto"` maps nothing while a broker holds the data directory's lock or a writer the partition's, else
    everything but the last segment's files; `"mmap"` maps everything (you say that the directory is at rest);
    `"pread"` maps nothing.
    *log_start_offset* overrides the data directory's checkpoint; *topic* and *partition* override the directory's name.
    *max_open_files* bounds the files and mappings that the log keeps open. All logs of the process together keep no
    more than half of its soft limit of open files. A descriptor of the directory is open as long as the log, beside
    these.

    *Errors*: `LogNotFoundError`, `ConfigError`, `CorruptLogError` (a base offset that no segment can have), `OSError`.

    >>> log = cw.Log("tests/golden/01-plain/orders-0")
    >>> log.topic, log.partition, len(log.segments)
    ('orders', 0, 4)
    """

    def __new__(
        cls,
        path: _Path,
        *,
        io: _Io = "auto",
        log_start_offset: int | None = None,
        topic: str | None = None,
        partition: int | None = None,
        max_open_files: int = 256,
    ) -> Self: ...
    @property
    def path(self) -> str:
        """The partition directory, absolute."""
    @property
    def topic(self) -> str | None:
        """From the directory's name, or as given; `None` where the name is not `topic-partition`."""
    @property
    def partition(self) -> int | None:
        """From the directory's name, or as given; `None` where the name is not `topic-partition`."""
    @property
    def log_start_offset(self) -> int:
        """The first offset that readers may ask for (inclusive)."""
    @property
    def log_end_offset(self) -> int:
        """The offset that the next record would get (exclusive end)."""
    @property
    def last_stable_offset(self) -> int:
        """Where `read_committed` ends: the first offset of the oldest open transaction, else the log end offset.

        *Cost*: the first question walks all headers of the log. *Errors*: `CorruptLogError` where damage may have
        swallowed a transaction's marker.

        >>> log = cw.Log("tests/golden/11-transactions/payments-0")
        >>> log.last_stable_offset < log.log_end_offset
        True
        """
    @property
    def topic_id(self) -> str | None:
        """The topic's id in `partition.metadata`, read anew each time; `None` where there is no readable one.

        >>> cw.Log("tests/golden/16-data-dir/cities-0").topic_id
        '6sc1tPBuS4ODmV6YKUWCjg'
        """
    @property
    def size(self) -> int:
        """Bytes of all batches: of the `.log` files, without preallocated space."""
    @property
    def segments(self) -> Segments:
        """The segments in order, the active one last."""
    @property
    def warnings(self) -> list[str]:
        """What was wrong and did not matter: an index that lied, a torn tail, an ignored checkpoint. Sentences."""
    @property
    def is_compacted(self) -> bool:
        """Whether the files show that the log is compacted, so that a gap between segments need not be lost data.

        They do where the data directory's `cleaner-offset-checkpoint` names the partition; where records are missing
        inside a batch or a batch has a delete horizon; and where offsets are missing between two batches of one leader
        epoch (not where a `LogWriter` has had the log, which truncates inside a batch). A topic's settings are not on
        disk, so a compacted log may not show it. *Cost*: where nothing shows it, the headers of the oldest segments are
        walked, up to 1 GiB.

        >>> data = cw.LogDir("tests/golden/16-data-dir")
        >>> data["rivers.compact-0"].is_compacted, data["cities-0"].is_compacted
        (True, False)
        """
    def offset_gaps(self, start_offset: int | None = None, end_offset: int | None = None) -> list[OffsetGap]:
        """Return the offsets of a range that lie between two segments, in none of them.

        In a log that is not compacted a segment is missing there, or was cut. A damaged end of a segment is no gap.
        *Cost*: the end of each segment in the range is looked up. *Errors*: `LogChangedError` where a segment lies in a
        gap by now.

        >>> cw.Log("tests/golden/01-plain/orders-0").offset_gaps()
        []
        >>> cw.Log("tests/golden/12-compacted/profiles-0").offset_gaps()
        [OffsetGap(start_offset=2894, end_offset=2941, segment_base_offset=2706, next_base_offset=2941)]
        """
    def refresh(self) -> Log:
        """Open the same directory as it is now; what is unchanged is shared with this `Log`, which stays as it is.

        Where nothing has changed, the result is this `Log`.
        Segments are compared by their files' names, and those that were read by inode, size, modification time and
        change time.
        *Cost*: a listing of the directory, and a system call for each segment that was read.
        """
    def locate(self, offset: int) -> Location | None:
        """Find the batch that holds `offset`, or in a gap the next batch. `None` only if nothing follows.

        *Errors*: `OffsetOutOfRangeError` outside `[log_start_offset, log_end_offset)`.
        *Source*: Kafka `LogSegment.translateOffset`.

        >>> log = cw.Log("tests/golden/01-plain/orders-0")
        >>> at = log.locate(20)
        >>> at.segment_base_offset, at.batch_base_offset, at.position
        (0, 18, 2904)
        """
    def locate_many(self, offsets: _Integers) -> pa.Table:
        """Find many offsets at once, a row for each target, in the order of the targets.

        Columns: `segment_base_offset batch_base_offset position size`. Any integers will do: a list,
        NumPy, a column of Arrow, pandas or Polars. The row is null where `locate` would
        raise or answer `None`, and where there is no target, or one beyond 64 bits. *Errors*: `TypeError` for what are
        no integers; floats are none.
        *Cost*: single look-ups at first; a segment that was asked much is walked once, and its batches are then kept in
        memory: at most 64 MiB for a log, with what `offsets_for_times` keeps.

        >>> log = cw.Log("tests/golden/01-plain/orders-0")
        >>> log.locate_many([20, 5000]).column("position").to_pylist()
        [2904, None]
        """
    def offset_for_time(self, timestamp: _Time) -> TimestampOffset | None:
        """Find the first record at or after the log start whose timestamp is at least `timestamp`; `None` if none is.

        Exact, whatever the order of the times; control records count, as in Kafka. `timestamp`: as the times of `scan`.
        *Errors*: `ValueError` for a negative time or a naive datetime.
        *Source*: Kafka `UnifiedLog.fetchOffsetByTimestamp`; where Kafka gives up for want of an index, this goes on.

        >>> log = cw.Log("tests/golden/01-plain/orders-0")
        >>> log.offset_for_time(1700000000025).offset
        1
        """
    def offsets_for_times(self, timestamps: _Times) -> pa.Table:
        """Find many at once: columns `timestamp offset`, a row for each target; null where no record is that late.

        Integers, as for `locate_many`, or datetimes with a time zone. *Errors*: `TypeError` for anything else,
        `ConfigError` for datetimes without a zone.
        *Cost*: single look-ups at first; a segment that was asked much is read once, and its times are then kept in
        memory, within the 64 MiB of `locate_many`.

        >>> log = cw.Log("tests/golden/01-plain/orders-0")
        >>> log.offsets_for_times([1700000000025, 4000000000000]).column("offset").to_pylist()
        [1, None]
        """
    def scan(
        self,
        *,
        start_offset: int | None = None,
        end_offset: int | None = None,
        start_time: _Time | None = None,
        end_time: _Time | None = None,
        columns: Sequence[str] | None = None,
        isolation_level: _IsolationLevel = "read_uncommitted",
        include_control: bool = False,
        on_damage: _OnDamage = "raise",
        header_keys: _HeaderKeys = "utf8",
        timestamp_unit: _TimestampUnit = "ms",
        max_rows: int = 65_536,
        max_bytes: int = 16_777_216,
        split: Split | None = None,
        threads: int = 1,
        limit: int | None = None,
    ) -> Scan:
        """Read a range of records as columns.

        Offsets and times intersect; a record without a time is outside every time range. A time range is exact however
        disordered the timestamps. *columns*: by default `offset timestamp timestamp_type key value headers`; also
        `topic partition leader_epoch producer_id producer_epoch sequence is_transactional is_control codec magic
        batch_base_offset position segment_base_offset key_size value_size`; with an empty list the rows have no columns
        and can only be counted. *on_damage*: `"raise"` stops with a `CorruptLogError` at the place, `"skip"` leaves out
        a damaged range and lists it in `damaged_ranges`, `"report"` also gives it a row: the column `error` is a struct
        with the fields of `DamagedRange`, null for records. *max_rows* and *max_bytes* bound a record batch. *split*:
        one of `plan()`. *limit*: the most rows in all; the scan stops reading there, and one thread reads.

        A time is int ms since the epoch, an aware datetime, or a text as the command line takes it:
        `"2024-05-01T10:00Z"`, `"2024-05-01"`, `"-2h"` (two hours ago), `"now"`.

        *Errors*: `LogChangedError` where a segment that *split* was planned from is gone, shortened or replaced;
        `OffsetOutOfRangeError` for a start below the log start or above the log end (an end beyond is clipped);
        `ConfigError` for a name that is not a column; damage is raised while reading. A codec that this
        version does not know is no damage: `UnsupportedFormatError`, whatever *on_damage* says.

        >>> log = cw.Log("tests/golden/01-plain/orders-0")
        >>> log.scan(start_offset=10, end_offset=13, columns=["offset", "key"]).to_arrow().num_rows
        3
        >>> log.scan(start_time="2023-11-14T22:13:21Z", columns=["offset"], limit=2).to_arrow().to_pydict()
        {'offset': [48, 49]}
        """
    def records(
        self,
        *,
        start_offset: int | None = None,
        end_offset: int | None = None,
        start_time: _Time | None = None,
        end_time: _Time | None = None,
        isolation_level: _IsolationLevel = "read_uncommitted",
        include_control: bool = False,
        on_damage: _OnDamage = "raise",
    ) -> Records:
        """Read a range one record at a time. Convenient; `scan` is many times faster.

        With `on_damage="skip"` or `"report"` the damaged stretches passed over are in the iterator's `damaged_ranges`.

        >>> log = cw.Log("tests/golden/01-plain/orders-0")
        >>> [record.offset for record in log.records(start_offset=7, end_offset=9)]
        [7, 8]
        """
    def batches(
        self,
        *,
        start_offset: int | None = None,
        end_offset: int | None = None,
        start_time: _Time | None = None,
        end_time: _Time | None = None,
        on_damage: _OnDamage = "raise",
    ) -> Scan:
        """Read a range's batch headers: a row a batch, with its position and size; nothing is decompressed.

        Columns: `base_offset last_offset count codec timestamp_type base_timestamp max_timestamp leader_epoch
        producer_id producer_epoch base_sequence last_sequence is_transactional is_control delete_horizon crc magic
        segment_base_offset position size`. `base_timestamp` is the raw field, which a delete horizon replaces; `count`
        is null for magic 0 and 1. A v0 or v1 wrapper states its last offset only: its base offset is read from inside
        it. Control batches are included. A time range includes the batches whose largest timestamp reaches the start.

        >>> log = cw.Log("tests/golden/01-plain/orders-0")
        >>> log.batches().to_arrow().num_rows
        138
        """
    def plan(
        self,
        max_bytes: int,
        *,
        start_offset: int | None = None,
        end_offset: int | None = None,
        start_time: _Time | None = None,
        end_time: _Time | None = None,
        isolation_level: _IsolationLevel = "read_uncommitted",
    ) -> list[Split]:
        """Cut a range at batch boundaries into pieces of about `max_bytes`, for `scan(split=…)` elsewhere.

        Every record of the range is in exactly one piece. With `isolation_level="read_committed"` the last piece ends
        at the last stable offset.

        >>> log = cw.Log("tests/golden/01-plain/orders-0")
        >>> sum(log.scan(split=split).to_arrow().num_rows for split in log.plan(100_000))
        1500
        """

@final
class LogDir:
    """A broker's data directory: a mapping from a partition's directory name to its `Log`, in the names' order.

    Partitions on their way in or out are left out unless asked for: *include* takes `"delete"`, `"future"`, `"stray"`.
    Logs are opened when they are first asked for. It writes nothing and takes no lock.

    *Errors*: `LogNotFoundError`, `OSError`; `ConfigError`, also for the path of a partition; `KeyError` for a partition
    that is not there. A partition that Kafka has just created is there, and has no segment yet: to open it is a
    `LogNotFoundError`, and a scan of the directory finds no record in it. `CorruptLogError` where one has lost its
    segments.

    >>> directory = cw.LogDir("tests/golden/16-data-dir")
    >>> directory["cities-1"].log_start_offset
    31
    """

    def __new__(
        cls,
        path: _Path,
        *,
        io: _Io = "auto",
        max_open_files: int = 256,
        include: Sequence[Literal["delete", "future", "stray"]] | None = None,
    ) -> Self: ...
    @property
    def path(self) -> str:
        """The data directory, absolute."""
    @property
    def topics(self) -> list[str]:
        """The topics that have a partition here, in order.

        >>> cw.LogDir("tests/golden/16-data-dir").topics
        ['__cluster_metadata', '__consumer_offsets', '__transaction_state', 'cities', 'rivers.compact']
        """
    def scan(
        self,
        topics: Sequence[str] | None = None,
        *,
        start_offset: int | None = None,
        end_offset: int | None = None,
        start_time: _Time | None = None,
        end_time: _Time | None = None,
        columns: Sequence[str] | None = None,
        isolation_level: _IsolationLevel = "read_uncommitted",
        include_control: bool = False,
        on_damage: _OnDamage = "raise",
        header_keys: _HeaderKeys = "utf8",
        timestamp_unit: _TimestampUnit = "ms",
        max_rows: int = 65_536,
        max_bytes: int = 16_777_216,
        threads: int = 1,
        limit: int | None = None,
    ) -> Scan:
        """Read the partitions of `topics` (`None`: all) one after the other, as `Log.scan` does.

        *topics*: names, or globs with `*`, `?` and `[…]`, as `fnmatch` reads them.
        By default the columns `topic` and `partition` come before those of `Log.scan`. Offsets apply to each partition
        separately; *limit* applies to all partitions together. *Errors*: `ConfigError` for a topic that is not here,
        and for a glob that matches none; those of opening and reading a log come while reading.

        >>> cw.LogDir("tests/golden/16-data-dir").scan(["cit*"]).schema.names[:3]
        ['topic', 'partition', 'offset']
        """
    def __getitem__(self, key: str, /) -> Log: ...
    def __contains__(self, key: object, /) -> bool: ...
    def __iter__(self) -> Iterator[str]: ...
    def __len__(self) -> int: ...
    @overload
    def get(self, key: str) -> Log | None: ...
    @overload
    def get(self, key: str, default: _T) -> Log | _T:
        """Open a partition by its directory's name; *default* where there is none of that name."""
    def keys(self) -> KeysView[str]:
        """Return the partitions' directory names."""
    def values(self) -> ValuesView[Log]:
        """Return the partitions."""
    def items(self) -> ItemsView[str, Log]:
        """Return names and partitions."""

@final
class Scan:
    """A range of a log, to be read as Arrow columns: `__arrow_c_stream__` is what every dataframe library takes.

    Nothing is read before it is asked for, and each reading starts from the beginning. Memory is bounded by `max_rows`
    and `max_bytes` of the call that made it; no Python object is made for a record; other threads run meanwhile;
    Ctrl-C ends it. Iterating, `to_arrow()` and the like raise this module's errors; a library that reads
    `__arrow_c_stream__` by itself makes errors of its own of them (pyarrow: `ArrowInvalid`, also for Ctrl-C).

    >>> scan = cw.Log("tests/golden/01-plain/orders-0").scan(start_offset=1400)
    >>> sum(batch.num_rows for batch in scan)
    100
    """

    @property
    def schema(self) -> pa.Schema:
        """The columns' names and types. Needs the extra `arrow`."""
    @property
    def damaged_ranges(self) -> list[DamagedRange]:
        """The damaged stretches that the last reading left out; empty with `on_damage="raise"`."""
    @property
    def stats(self) -> ScanStats:
        """What the last reading did, so far."""
    @property
    def first_uncommitted(self) -> tuple[str, int] | None:
        """The first record that the last reading returned and `read_committed` leaves out: its partition and offset.

        That is one of a transaction that was aborted, or has not ended. `None` where there is none. *Cost*: where what
        was read ends within a transaction, the log is read on up to its marker.

        >>> scan = cw.Log("tests/golden/11-transactions/payments-0").scan(columns=["offset"])
        >>> scan.to_arrow().num_rows, scan.first_uncommitted[1]
        (889, 36)
        """
    def to_arrow(self) -> pa.Table:
        """Read it all into a `pyarrow.Table`. Needs the extra `arrow`."""
    def to_pandas(self) -> pd.DataFrame:
        """Read it all into a `pandas.DataFrame`. Needs the extra `pandas`."""
    def to_polars(self) -> pl.DataFrame:
        """Read it all into a `polars.DataFrame`. Needs the extra `polars`."""
    def _repr_html_(self) -> str:
        """Return the first rows as an HTML table, for a notebook. An error is shown as its text."""
    def __iter__(self) -> Iterator[pa.RecordBatch]: ...
    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...

@final
class Records(Iterator[Record]):
    """Records one at a time, as `Log.records()` gives them; read ahead by a few hundred."""

    @property
    def damaged_ranges(self) -> list[DamagedRange]:
        """The damaged stretches left out so far; empty with `on_damage="raise"`."""
    @property
    def stats(self) -> ScanStats:
        """What was done so far."""
    @property
    def first_uncommitted(self) -> tuple[str, int] | None:
        """As `Scan.first_uncommitted`, of the records read so far, which are a few more than were returned."""
    def __iter__(self) -> Self: ...
    def __next__(self) -> Record: ...

@final
class ScanStats:
    """What a reading did."""

    @property
    def records(self) -> int:
        """Records returned."""
    @property
    def batches(self) -> int:
        """Batches whose records (for `Log.batches`: headers) were returned."""
    @property
    def batches_skipped(self) -> int:
        """Batches passed over on their header alone: never decompressed."""
    @property
    def batches_decompressed(self) -> int:
        """Batches that had to be decompressed."""
    @property
    def segments_opened(self) -> int:
        """Segments of which the `.log` was read."""
    @property
    def bytes_read(self) -> int:
        """Bytes of the batches whose checksum was verified."""
    @property
    def offset_gaps(self) -> int:
        """Forward gaps between batches. Legal: compaction and aborted producers leave them."""

@final
class DamagedRange:
    """A damaged range of a segment, which a scan left out."""

    @property
    def file(self) -> str:
        """The `.log`."""
    @property
    def start_position(self) -> int:
        """Its first byte (inclusive)."""
    @property
    def end_position(self) -> int:
        """Its end (exclusive)."""
    @property
    def start_offset(self) -> int:
        """The first offset that may be missing (inclusive)."""
    @property
    def end_offset(self) -> int | None:
        """The end of the offsets that may be missing (exclusive); `None` at the end of the log."""
    @property
    def is_tail(self) -> bool:
        """Whether this is a torn tail: the range reaches the end of the log, and no valid batch follows."""
    @property
    def reason(self) -> str:
        """The cause: what was expected and what was found."""

@final
class Split:
    """A piece of a range, from `plan()`: small, frozen, picklable; give it to `scan(split=…)`."""

    def __new__(
        cls,
        path: _Path,
        start_offset: int,
        end_offset: int,
        start_time: int | None = None,
        end_time: int | None = None,
        size: int = 0,
        aborted: Sequence[tuple[int, int, int]] | None = None,
        segments: Sequence[PlannedSegment] | None = None,
    ) -> Self: ...
    @property
    def path(self) -> str:
        """The partition directory, absolute."""
    @property
    def start_offset(self) -> int:
        """Inclusive."""
    @property
    def end_offset(self) -> int:
        """Exclusive."""
    @property
    def start_time(self) -> int | None:
        """Milliseconds since the epoch, inclusive; `None` where the plan had none."""
    @property
    def end_time(self) -> int | None:
        """Milliseconds since the epoch, exclusive; `None` where the plan had none."""
    @property
    def size(self) -> int:
        """About how many bytes of `.log` files it covers."""
    @property
    def aborted(self) -> list[tuple[int, int, int]] | None:
        """The aborted transactions that overlap it: producer id, first and last offset (inclusive).

        With them a `read_committed` scan of the split opens no other segment. `None` where the plan was not made with
        `isolation_level="read_committed"`, where damage leaves one in doubt, and where they are more than 10,000.
        """
    @property
    def segments(self) -> list[PlannedSegment]:
        """The segments that hold the range, in order, as they were when the split was planned.

        `scan(split=…)` compares the log with them and raises `LogChangedError` where one is gone, shortened or
        replaced. With an empty list nothing is compared.

        >>> log = cw.Log("tests/golden/01-plain/orders-0")
        >>> [segment.base_offset for split in log.plan(100_000) for segment in split.segments]
        [0, 400, 807, 1217]
        """

@final
class PlannedSegment:
    """The state of one segment when a `Split` was planned. It holds for copies of the log and on other machines."""

    def __new__(
        cls, base_offset: int, size: int, first_batch_crc: int | None = None, is_last: bool = False
    ) -> Self: ...
    @property
    def base_offset(self) -> int:
        """The offset in the files' names."""
    @property
    def size(self) -> int:
        """Bytes of its batches."""
    @property
    def first_batch_crc(self) -> int | None:
        """The checksum of its first batch; `None` where it has no batch, or a damaged header: it is not compared."""
    @property
    def is_last(self) -> bool:
        """Whether it was the last segment of the log, which may grow."""

@final
class Segment:
    """One `.log` and its indexes. The indexes open when they are first used."""

    @property
    def base_offset(self) -> int:
        """The offset in the files' names; no record of the segment has a lower one."""
    @property
    def end_offset(self) -> int:
        """The offset after the last batch (exclusive); the base offset where there is none."""
    @property
    def size(self) -> int:
        """Bytes of its batches: of the `.log`, without preallocated space."""
    @property
    def largest_timestamp(self) -> int:
        """The largest timestamp of its records; where none has one, the file's modification time, as in Kafka."""
    @property
    def largest_record_timestamp(self) -> int:
        """The largest timestamp of its records, ms; -1 where none has one."""
    @property
    def path(self) -> str:
        """The `.log`, absolute."""
    @property
    def offset_index(self) -> OffsetIndex | None:
        """The `.index`; `None` where there is none."""
    @property
    def time_index(self) -> TimeIndex | None:
        """The `.timeindex`; `None` where there is none."""
    @property
    def transaction_index(self) -> TransactionIndex | None:
        """The `.txnindex`; `None` where there is none: nothing was aborted, or the file was lost."""

@final
class Segments:
    """A log's segments by base offset: a sequence, and a map that finds the nearest.

    >>> segments = cw.Log("tests/golden/01-plain/orders-0").segments
    >>> [segment.base_offset for segment in segments]
    [0, 400, 807, 1217]
    >>> segments.floor(806).base_offset, segments.higher(806).base_offset
    (400, 807)
    """

    def floor(self, offset: int) -> Segment | None:
        """Return the segment with the greatest base offset <= `offset`; `None` below the first."""
    def higher(self, offset: int) -> Segment | None:
        """Return the segment with the smallest base offset > `offset`; `None` at or above the last."""
    def between(self, start: int, end: int) -> list[Segment]:
        """Return the segments with a base in `[floor(start), end)`; with no floor, all with a base below `end`.

        None where `start == end`. *Source*: Kafka `LogSegments.values(from, to)`.

        >>> segments = cw.Log("tests/golden/01-plain/orders-0").segments
        >>> [segment.base_offset for segment in segments.between(500, 1217)]
        [400, 807]
        """
    @overload
    def __getitem__(self, key: int, /) -> Segment: ...
    @overload
    def __getitem__(self, key: slice, /) -> list[Segment]: ...
    def __contains__(self, key: object, /) -> bool: ...
    def __iter__(self) -> Iterator[Segment]: ...
    def __reversed__(self) -> Iterator[Segment]: ...
    def __len__(self) -> int: ...
    def index(self, value: Segment) -> int:
        """Return the place of a segment, by base offset. *Errors*: `ValueError` where it is not there."""
    def count(self, value: Segment) -> int:
        """Return 1 if the segment is there, else 0."""

@final
class Location:
    """Where the batch that holds an offset lies."""

    @property
    def segment_base_offset(self) -> int:
        """The segment's base offset."""
    @property
    def batch_base_offset(self) -> int:
        """The batch's base offset."""
    @property
    def position(self) -> int:
        """Bytes from the start of the segment's `.log`."""
    @property
    def size(self) -> int:
        """Bytes of the whole batch."""

@final
class OffsetGap:
    """Offsets that lie between two segments of a log, in none of them."""

    @property
    def start_offset(self) -> int:
        """The first of them."""
    @property
    def end_offset(self) -> int:
        """Exclusive."""
    @property
    def segment_base_offset(self) -> int:
        """Base offset of the segment before them."""
    @property
    def next_base_offset(self) -> int:
        """Base offset of the segment after them."""

@final
class TimestampOffset:
    """A timestamp and the offset that it belongs to."""

    @property
    def timestamp(self) -> int:
        """Milliseconds since the epoch, -1 = none."""
    @property
    def offset(self) -> int:
        """Absolute."""

@final
class OffsetPosition:
    """An offset and a position in its segment's `.log`."""

    @property
    def offset(self) -> int:
        """Absolute."""
    @property
    def position(self) -> int:
        """Bytes from the start of the `.log`."""

@final
class AbortedTransaction:
    """An entry of a transaction index."""

    def __new__(cls, *, producer_id: int, first_offset: int, last_offset: int, last_stable_offset: int) -> Self: ...
    @property
    def version(self) -> int:
        """The entry's format; 0."""
    @property
    def producer_id(self) -> int:
        """Whose transaction."""
    @property
    def first_offset(self) -> int:
        """Its first record's offset."""
    @property
    def last_offset(self) -> int:
        """The offset of its ABORT marker."""
    @property
    def last_stable_offset(self) -> int:
        """The last stable offset at the time of the abort."""

@final
class Record:
    """One record, as `Log.records()` gives it, and as `LogWriter.append_many` takes it.

    *value* and *key*: bytes of any kind, text (as UTF-8) or `None`. *headers*: pairs of a name and a value, or a
    mapping. *timestamp*: int ms, an aware datetime, a text such as `"-2h"`, -1 for none; by default the time at which
    the record is made.

    >>> record = cw.Record("paid", key="order-7", headers={"trace": b"1"}, timestamp=1700000000000)
    >>> record.value, record.headers, record.offset
    (b'paid', [('trace', b'1')], -1)
    """

    def __new__(
        cls,
        value: _Bytes | None,
        key: _Bytes | None = None,
        headers: _Headers = (),
        timestamp: _Time | None = None,
    ) -> Self: ...
    @property
    def offset(self) -> int:
        """Absolute; -1 for a record that a program made."""
    @property
    def timestamp(self) -> int:
        """Milliseconds since the epoch, -1 = none."""
    @property
    def timestamp_type(self) -> TimestampType:
        """What the timestamp means."""
    @property
    def key(self) -> bytes | None:
        """`None` is not the same as empty."""
    @property
    def value(self) -> bytes | None:
        """`None` is not the same as empty; in a compacted topic it deletes the key."""
    @property
    def headers(self) -> list[tuple[str, bytes | None]]:
        """In their order, duplicates kept; keys decoded as Kafka's client does."""

@final
class LogWriter:
    """The one writer of a partition directory, which it makes where there is none: a durable log.

    What it writes is what Kafka writes: any broker, tool, or `Log` opens it. After an unclean stop the log is recovered
    when it is opened: nothing that was acknowledged is lost, and only a torn last write is cut, and kept in
    `quarantine/`.

    *config*: a `LogConfig`. *topic_id*: 22 letters, as Kafka prints it, for `partition.metadata`. *leader_epoch*: what
    batches are stamped with, not below the latest epoch of the log; by default that one, and 0 in a new log. *flush*
    says when an append is acknowledged:

    - `"always"`: every append returns when its records are durable; appends of several threads share one flush.
    - `cw.FlushMode.group(ms=2, bytes=1 << 20)`: the same, but the first of several appends waits for others: fewer
      flushes, and on a disk that flushes fast fewer appends too.
    - `cw.FlushMode.interval(messages=…, ms=…)`: an append returns at once, and every so often one flushes first. What
      came after the last flush may be lost with the machine (not with the process).
    - `"none"`: only `flush()`, a roll and `close()` make records durable.

    A signal's handler runs while an append waits for others, or another thread's flush: Ctrl-C ends it within a tenth
    of a second by `KeyboardInterrupt`. Its records are appended then, and not known to be durable.

    Threads may share it. `close()`, or the end of a `with` block, ends the log in order; one that is dropped without is
    recovered when it is opened again. In a forked child every call is a `ForkedHandleError`; it cannot be pickled.

    *Errors*: `LockedError` where another writer or a broker has it; `CorruptLogError` where it is damaged other than by
    a torn write, or a segment is gone: nothing is changed then; `UnsupportedFormatError` where its batches have
    producer ids; `ConfigError`, also for a name that Kafka would delete or not start with, in a data directory of a
    broker's; `OSError`. After a write, a flush or a `close()` that failed, `PoisonedError`: open it again. After
    `close()`: `ClosedError`.

    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> with cw.LogWriter(f"{folder.name}/orders-0") as writer:
    ...     appended = writer.append("paid", key="order-7", timestamp=1700000000000)
    >>> appended
    Appended(first_offset=0, last_offset=0, max_timestamp=1700000000000, durable=True)
    >>> [record.value for record in cw.Log(f"{folder.name}/orders-0").records()]
    [b'paid']
    >>> folder.cleanup()
    """

    def __new__(
        cls,
        path: _Path,
        *,
        config: _Settings | None = None,
        flush: str | FlushMode = "always",
        topic_id: str | None = None,
        leader_epoch: int | None = None,
    ) -> Self: ...
    @staticmethod
    def plan_recovery(path: _Path, *, config: _Settings | None = None) -> RecoveryPlan:
        """Return what opening a `LogWriter` would change to recover the log; change nothing.

        All checks of an opening are made: the locks of other writers and of a broker, permissions, damage, producer
        ids. No lock is taken: another process may take one before the log is opened. The directory has to exist.

        *Cost*: reads what an opening reads. *Errors*: those of an opening, and `LogNotFoundError` where the directory
        does not exist.

        The settings decide the entries of an index: with another `index.interval.bytes` than the log was written with,
        its indexes are rebuilt.

        >>> settings = cw.LogConfig(index_interval_bytes=1024)
        >>> plan = cw.LogWriter.plan_recovery("tests/golden/01-plain/orders-0", config=settings)
        >>> plan.is_clean, plan.log_end_offset
        (True, 1500)
        >>> try:
        ...     cw.LogWriter.plan_recovery("tests/golden/11-transactions/payments-0")
        ... except cw.UnsupportedFormatError as error:
        ...     print(error.code)
        unsupported_format
        """
    @property
    def recovery(self) -> RecoveryPlan | None:
        """What opening the log changed to recover it; `None` where it changed nothing.

        Each change is also written to the logger `cordwood`: level `WARNING` where data was cut, else `INFO`.
        """
    @property
    def path(self) -> str:
        """The partition directory, absolute."""
    @property
    def config(self) -> LogConfig:
        """The settings, as they were given."""
    @property
    def flush_mode(self) -> str:
        """When an append is acknowledged, as a text that `flush` takes."""
    @property
    def closed(self) -> bool:
        """Whether `close()` was called."""
    @property
    def log_start_offset(self) -> int:
        """The lowest offset that is still there (inclusive)."""
    @property
    def log_end_offset(self) -> int:
        """The offset that the next record gets."""
    @property
    def durable_offset(self) -> int:
        """Everything below survives a power loss. *Source*: Kafka's recovery point."""
    @property
    def leader_epochs(self) -> list[tuple[int, int]]:
        """The history of leader epochs: epoch and the offset that it began at, both rising."""
    def end_offset_for(self, epoch: int) -> tuple[int, int] | None:
        """Return where an epoch's records end: the epoch that answers, and the offset after its last record.

        That is the largest known epoch <= `epoch`; `None` where the history says nothing of it.
        *Source*: Kafka `LeaderEpochFileCache.endOffsetFor`.
        """
    def append(
        self,
        value: _Bytes | None,
        key: _Bytes | None = None,
        headers: _Headers = (),
        timestamp: _Time | None = None,
    ) -> Appended:
        """Append one record, as a batch of its own; nothing is held back.

        `None` is null (as a value: a tombstone), which is not the same as empty. *timestamp*: int ms, an aware datetime
        (a fraction of a millisecond is rounded up), a text, -1 for none; by default now.

        *Errors*: `RecordTooLargeError`; `InvalidRecordError` for a time that is too far from the clock and for a
        missing key in a compacted log; `OSError` where it could not be written: it is not in the log then;
        `PoisonedError`; `ClosedError`.
        """
    def append_many(self, records: Iterable[Record | _Bytes]) -> Appended:
        """Append records, or bare values: as one batch if they fit, else as several.

        What fits is said by `max.message.bytes`, `segment.bytes` and the 128 MiB that a batch has at most, before it is
        compressed. All of them are held in memory, and one flush makes them durable. A record is refused before any is
        appended (but one that compression might have made fit, when its batch is made). A batch is there as a whole or
        not at all; where writing a later one fails, those before it stay: `log_end_offset` says.

        >>> import tempfile
        >>> folder = tempfile.TemporaryDirectory()
        >>> with cw.LogWriter(f"{folder.name}/orders-0") as writer:
        ...     appended = writer.append_many([cw.Record("a", key="1"), b"b", "c"])
        >>> appended.first_offset, appended.last_offset
        (0, 2)
        >>> folder.cleanup()
        """
    def append_arrow(self, table: _ArrowStream) -> Appended:
        """Append the rows of anything with `__arrow_c_stream__`: a `pyarrow` table or reader, a Polars frame, a scan.

        Columns: `value`, and if wanted `key` (both binary or string, small, large or views), `timestamp` (with a time
        zone, of any unit, or int64 ms; null and -1 ms are none, without the column it is now) and `headers` (a list of
        structs of key and value, or a map). `offset` and `timestamp_type` are passed over, so that what a scan gave can
        be appended; another column is a `ConfigError` that names it. *Cost*: no Python object is made for a record, and
        one record batch at a time is in memory; each is one `append_many`. Where a later one fails, those before it
        stay. Needs no pyarrow.

        >>> import tempfile
        >>> folder = tempfile.TemporaryDirectory()
        >>> with cw.LogWriter(f"{folder.name}/copy-0") as writer:
        ...     appended = writer.append_arrow(cw.Log("tests/golden/01-plain/orders-0").scan())
        >>> appended.last_offset
        1499
        >>> folder.cleanup()
        """
    def append_batches(self, raw: _Bytes, keep_offsets: bool = False) -> Appended:
        """Append v2 batches as they are, one behind the other; all of them are there afterwards, or none.

        They get the next offsets and the writer's epoch, as from a leader. With *keep_offsets* they keep their own, as
        a follower's do: these have to rise, from the log end offset on, and may leave gaps.

        *Errors*: as `append`; `InvalidRecordError` also for bytes that break a rule of the format, with the position of
        the batch in *raw*.
        *Source*: Kafka `UnifiedLog.appendAsLeader`, `appendAsFollower`.
        """
    def flush(self) -> None:
        """Make everything appended so far durable."""
    def wait_durable(self, offset: int) -> None:
        """Return once the record at `offset` is durable; flushes if nobody else does.

        *Errors*: `OffsetOutOfRangeError` where it was not appended yet; `ConfigError` for a negative one.
        """
    def roll(self) -> None:
        """End the active segment and begin a new one at the log's end. An empty one stays."""
    def truncate_to(self, offset: int) -> bool:
        """Remove every batch that reaches to `offset` or beyond; the log ends at `offset` then.

        A batch that holds `offset` goes as a whole; readers, and the next opening, then find the end of the batch
        before it, as in Kafka. False where the log ended there or before. When this returns, the records do not come
        back. *Errors*: `OSError`: where the disk is full nothing has changed (a segment that is cut in the middle, and
        is not the last, needs room for a copy). *Source*: Kafka `UnifiedLog.truncateTo`.
        """
    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Remove every record; the log starts and ends at `offset` then.

        *Errors*: `OSError`: where the disk is full nothing has changed.
        """
    def delete_before(self, offset: int) -> bool:
        """Let the log start at `offset`, up to the log's end: records below are gone, and segments without others.

        False where it started there or above. When this returns, the records do not come back. *Errors*:
        `ConfigError` for a negative one; `OffsetOutOfRangeError` above the log's end. *Source*: Kafka
        `UnifiedLog.maybeIncrementLogStartOffset`.
        """
    def apply_retention(self, now: _Time | None = None) -> RetentionPlan:
        """Delete the segments that have had their time by `retention.ms` and `retention.bytes`, and say which.

        *now*: int ms, an aware datetime or a text; by default the clock's. `plan_retention` says it without doing it.
        *Source*: Kafka `UnifiedLog.deleteOldSegments`.
        """
    def reader(self) -> Log:
        """Return a reader of the log as it is now, which reads beside the writer; cheap.

        It sees nothing of what is appended later. After a truncation, and where retention took a file away that it had
        not opened yet, it raises `LogChangedError`: `refresh()` it, or take a new one.
        """
    def close(self) -> None:
        """Make everything durable and end the log in order. More than once does no harm.

        *Errors*: `OSError`, and every later call is a `PoisonedError`: the log is recovered when it is opened again.
        """
    def __enter__(self) -> Self: ...
    def __exit__(
        self, exc_type: type[BaseException] | None, exc_value: BaseException | None, traceback: TracebackType | None
    ) -> None: ...

@final
class FlushMode:
    """A mode of `LogWriter(flush=…)` that has numbers; `"always"` and `"none"` are texts.

    `str()` gives a text that `flush` takes as well, for the command line and for configurations.

    >>> cw.FlushMode.group(ms=5)
    FlushMode.group(ms=5, bytes=1048576)
    """

    @staticmethod
    def group(ms: int = 2, bytes: int = 1_048_576) -> FlushMode:  # noqa: A002
        """Make every append wait until it is durable, and let several share one flush.

        The first of several appends waits for others, for at most `ms` milliseconds or until `bytes` were appended, and
        then flushes for all of them. That is fewer flushes than with `"always"`. On a disk that flushes fast it is
        fewer appends too.
        """
    @staticmethod
    def interval(messages: int | None = None, ms: int | None = None) -> FlushMode:
        """Let an append return at once; after so many records, or so much time, an append flushes first.

        No thread watches the clock, only the next append does: the records before a pause are durable after `flush()`
        or `close()`. Without either number, the settings `flush.messages` and `flush.ms` apply.
        """

@final
class Appended:
    """What an append did."""

    @property
    def first_offset(self) -> int:
        """The offset of the first record."""
    @property
    def last_offset(self) -> int:
        """The offset of the last record (inclusive); below `first_offset` where nothing was given."""
    @property
    def max_timestamp(self) -> int:
        """The largest timestamp as it was stored, ms; -1 where no record has one."""
    @property
    def durable(self) -> bool:
        """Whether the records survive a power loss."""

@final
class RecoveryPlan:
    """What recovery changes in a partition directory: planned by `LogWriter.plan_recovery`, done by an opening.

    The plan does not list what every opening does: it rewrites the small files of the writer (`.cordwood.*`), creates
    a missing `leader-epoch-checkpoint`, writes a given topic id, and in a data directory rewrites the partition's
    lines in the checkpoints and removes `.kafka_cleanshutdown`. Nor does it list the indexes of a segment that is
    removed, which are deleted with it.
    """

    @property
    def path(self) -> str:
        """The partition directory, absolute."""
    @property
    def is_clean(self) -> bool:
        """Whether recovery changes nothing."""
    @property
    def closed_cleanly(self) -> bool:
        """Whether the files are as the last writer left them when it closed the log.

        False for a log that a broker wrote, and for a directory without a segment.
        """
    @property
    def recovery_point(self) -> int:
        """The recovery point: every segment from the one that holds this offset on is read, unless closed cleanly."""
    @property
    def log_start_offset(self) -> int:
        """The log start offset after recovery."""
    @property
    def log_end_offset(self) -> int:
        """The log end offset after recovery."""
    @property
    def segments(self) -> list[int]:
        """The base offsets of the segments after recovery, ascending."""
    @property
    def cuts(self) -> list[RecoveryCut]:
        """The byte ranges that are cut from `.log` files."""
    @property
    def rebuilt_indexes(self) -> list[RebuiltIndex]:
        """The index files that are written again."""
    @property
    def file_changes(self) -> list[FileChange]:
        """The files that are deleted or renamed."""
    @property
    def splits(self) -> list[SegmentSplit]:
        """The segments that are split."""
    @property
    def rewrites_leader_epochs(self) -> bool:
        """Whether `leader-epoch-checkpoint` is replaced: it does not agree with the batches, or there are none."""

@final
class RecoveryCut:
    """A byte range that recovery cuts from a `.log` file. `str()` gives a sentence."""

    @property
    def file(self) -> str:
        """The `.log` file."""
    @property
    def start_position(self) -> int:
        """The first byte of the range."""
    @property
    def end_position(self) -> int:
        """The end of the range (exclusive): the size of the file."""
    @property
    def size(self) -> int:
        """The size of the range in bytes."""
    @property
    def start_offset(self) -> int:
        """The first offset that the range can hold."""
    @property
    def end_offset(self) -> int | None:
        """The offset after the last batch of the range; `None` where it is not known."""
    @property
    def reason(self) -> str:
        """Why the range is cut."""
    @property
    def quarantine(self) -> str | None:
        """The file in `quarantine/` that keeps the bytes; `None` where all of them are zero (preallocated space)."""

@final
class RebuiltIndex:
    """An index file that recovery writes again from the batches of its `.log`. `str()` gives a sentence."""

    @property
    def file(self) -> str:
        """The index file."""
    @property
    def reason(self) -> Literal["missing", "untrimmed", "differs"]:
        """Why: the file is missing, is longer than its entries, or has other entries than recovery writes.

        Other entries are damage, or come from another `index.interval.bytes`.
        """

@final
class FileChange:
    """A file that recovery deletes or renames. `str()` gives a sentence."""

    @property
    def file(self) -> str:
        """The file."""
    @property
    def new_file(self) -> str | None:
        """The new path; `None` where the file is deleted."""
    @property
    def reason(self) -> Literal["staged", "uncommitted", "replaced", "committed", "emptied", "orphaned"]:
        """Why the file is deleted or renamed.

        `staged`: a temporary file of a truncation that did not finish. `uncommitted`: a file of a compaction or a split
        that did not finish. `committed`: a file of one that did; it gets its final name. `replaced`: a file that it
        replaces. `emptied`: a file of a log whose records were all being removed.
        `orphaned`: an index without a `.log`.
        """

@final
class SegmentSplit:
    """A segment that recovery splits: it has offsets more than 2,147,483,647 above its base offset."""

    @property
    def file(self) -> str:
        """The `.log` file of the segment."""
    @property
    def base_offsets(self) -> list[int]:
        """The base offset of each new segment, ascending."""

@final
class RetentionPlan:
    """The segments that retention deletes, or deleted."""

    @property
    def log_start_offset(self) -> int:
        """The log start offset afterwards."""
    @property
    def segments(self) -> list[int]:
        """The base offsets of the segments that go, oldest first."""
    @property
    def bytes(self) -> int:
        """The bytes of their `.log` files."""
    @property
    def rolls(self) -> bool:
        """Whether all of them go: a new segment is begun first."""

def plan_retention(log: Log, config: _Settings | None = None, now: _Time | None = None) -> RetentionPlan:
    """Say what `LogWriter.apply_retention` would delete of a log under these settings; changes nothing.

    >>> log = cw.Log("tests/golden/01-plain/orders-0")
    >>> cw.plan_retention(log, cw.LogConfig(retention_ms=-1, retention_bytes=150_000)).segments
    [0]
    """

@disjoint_base
class OffsetIndex:
    """An `.index`: 8-byte entries of (relative offset, position).

    *base_offset* is taken from the file's name where it is not given. The zero-filled tail of a preallocated file is
    not entries. *Errors*: `LogNotFoundError`, `ConfigError`, `OSError`; a use after `close()`: `ClosedError`.

    >>> with cw.OffsetIndex("tests/golden/01-plain/orders-0/00000000000000000000.index") as index:
    ...     entry = index.lookup(23)
    >>> entry.offset, entry.position
    (22, 2904)
    """

    def __new__(
        cls,
        path: _Path,
        base_offset: int | None = None,
    ) -> Self: ...
    @property
    def path(self) -> str:
        """The file, absolute."""
    @property
    def base_offset(self) -> int:
        """What the entries' offsets are relative to."""
    @property
    def entry_size(self) -> int:
        """8 bytes."""
    @property
    def entries(self) -> int:
        """How many entries there are."""
    @property
    def max_entries(self) -> int:
        """How many fit the file."""
    @property
    def max_index_size(self) -> int:
        """The file's size in bytes, rounded down to whole entries."""
    @property
    def is_full(self) -> bool:
        """`entries >= max_entries`."""
    @property
    def last_entry(self) -> OffsetPosition:
        """The last entry; `(base_offset, 0)` where there is none."""
    def entry(self, n: int) -> OffsetPosition:
        """Return entry `n`, from 0. *Errors*: `ConfigError` where there is none."""
    def sanity_check(self) -> None:
        """Do nothing where the index keeps Kafka's rules. *Errors*: `CorruptLogError` where it does not."""
    def lookup(self, target: int, method: _Method | None = None) -> OffsetPosition:
        """Return the entry with the greatest offset <= `target`; `(base_offset, 0)` below the first.

        Any 64-bit integer may be the target. Every method gives the same answer; `None` takes the best one.
        *Source*: Kafka `OffsetIndex.lookup`.
        """
    def slot_range(self, target: int, method: _Method | None = None) -> tuple[int, int]:
        """Return the largest slot whose key is <= `target` and the smallest whose key is >= it; -1 for none.

        With Kafka's exact edges: a target equal to the very first key gives `(0, 1)`, or `(0, -1)` in an index of one.
        *Source*: Kafka `AbstractIndex.indexSlotRangeFor`.
        """
    def trace(self, target: int, method: _Method | None = None) -> list[int]:
        """Return the 4 KiB pages that `lookup(target, method)` touches, each once, in the order of the first touch."""
    def fetch_upper_bound(self, position: int, fetch_size: int) -> OffsetPosition | None:
        """Return the first entry whose position is at or above `position + fetch_size` (bytes); `None` for none.

        What a fetch of `fetch_size` bytes from `position` on returns lies below that offset. As in Kafka, the sum wraps
        at 32 bits, and a sum that is exactly the first entry's position gives the second entry.
        *Source*: Kafka `OffsetIndex.fetchUpperBoundOffset`.
        """
    def close(self) -> None:
        """Close the file; that of a writer is cut to its entries first. A second call does nothing."""
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[OffsetPosition]: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self, exc_type: type[BaseException] | None, exc_value: BaseException | None, traceback: TracebackType | None
    ) -> None: ...

@disjoint_base
class TimeIndex:
    """A `.timeindex`: 12-byte entries of (timestamp, relative offset).

    *base_offset* is taken from the file's name where it is not given. The zero-filled tail of a preallocated file is
    not entries. *Errors*: `LogNotFoundError`, `ConfigError`, `OSError`; a use after `close()`: `ClosedError`.

    >>> with cw.TimeIndex("tests/golden/01-plain/orders-0/00000000000000000000.timeindex") as index:
    ...     entry = index.lookup(0)
    >>> entry.timestamp, entry.offset
    (-1, 0)
    """

    def __new__(
        cls,
        path: _Path,
        base_offset: int | None = None,
    ) -> Self: ...
    @property
    def path(self) -> str:
        """The file, absolute."""
    @property
    def base_offset(self) -> int:
        """What the entries' offsets are relative to."""
    @property
    def entry_size(self) -> int:
        """12 bytes."""
    @property
    def entries(self) -> int:
        """How many entries there are."""
    @property
    def max_entries(self) -> int:
        """How many fit the file."""
    @property
    def max_index_size(self) -> int:
        """The file's size in bytes, rounded down to whole entries."""
    @property
    def is_full(self) -> bool:
        """`entries >= max_entries - 1`: one slot is kept for the entry that closes a segment."""
    @property
    def last_entry(self) -> TimestampOffset:
        """The last entry; `(-1, base_offset)` where there is none."""
    def entry(self, n: int) -> TimestampOffset:
        """Return entry `n`, from 0. *Errors*: `ConfigError` where there is none."""
    def sanity_check(self) -> None:
        """Do nothing where the index keeps Kafka's rules. *Errors*: `CorruptLogError` where it does not."""
    def lookup(self, target: int, method: _Method | None = None) -> TimestampOffset:
        """Return the entry with the greatest timestamp <= `target`; `(-1, base_offset)` below the first.

        Any 64-bit integer may be the target. Every method gives the same answer; `None` takes the best one.
        *Source*: Kafka `TimeIndex.lookup`.
        """
    def slot_range(self, target: int, method: _Method | None = None) -> tuple[int, int]:
        """Return the largest slot whose key is <= `target` and the smallest whose key is >= it; -1 for none.

        With Kafka's exact edges: a target equal to the very first key gives `(0, 1)`, or `(0, -1)` in an index of one.
        *Source*: Kafka `AbstractIndex.indexSlotRangeFor`.
        """
    def trace(self, target: int, method: _Method | None = None) -> list[int]:
        """Return the 4 KiB pages that `lookup(target, method)` touches, each once, in the order of the first touch."""
    def close(self) -> None:
        """Close the file; that of a writer is cut to its entries first. A second call does nothing."""
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[TimestampOffset]: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self, exc_type: type[BaseException] | None, exc_value: BaseException | None, traceback: TracebackType | None
    ) -> None: ...

@disjoint_base
class TransactionIndex:
    """A `.txnindex`: 34-byte entries, one for each aborted transaction.

    A fragment of an entry at the end is ignored, as in Kafka. *Errors*: `LogNotFoundError`, `ConfigError`, `OSError`;
    a use after `close()`: `ClosedError`.

    >>> index = cw.TransactionIndex("tests/golden/11-transactions/payments-0/00000000000000000012.txnindex")
    >>> all(aborted.first_offset < aborted.last_offset for aborted in index)
    True
    """

    def __new__(cls, path: _Path, base_offset: int | None = None) -> Self: ...
    @property
    def path(self) -> str:
        """The file, absolute."""
    @property
    def base_offset(self) -> int:
        """The segment's base offset."""
    @property
    def entry_size(self) -> int:
        """34 bytes."""
    @property
    def entries(self) -> int:
        """How many entries there are."""
    @property
    def last_entry(self) -> AbortedTransaction | None:
        """The last entry; `None` where there is none."""
    def entry(self, n: int) -> AbortedTransaction:
        """Return entry `n`, from 0. *Errors*: `ConfigError` where there is none."""
    def sanity_check(self) -> None:
        """Do nothing where the index keeps Kafka's rules. *Errors*: `CorruptLogError` where it does not."""
    def collect_aborted(self, fetch_offset: int, upper_bound: int) -> tuple[list[AbortedTransaction], bool]:
        """Return the transactions that reach into `[fetch_offset, upper_bound)`, and whether that is all of them.

        `False` means that the next segment's index has to be asked too.
        *Source*: Kafka `TransactionIndex.collectAbortedTxns`.
        """
    def close(self) -> None:
        """Close the file. A second call does nothing."""
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[AbortedTransaction]: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self, exc_type: type[BaseException] | None, exc_value: BaseException | None, traceback: TracebackType | None
    ) -> None: ...

@final
class OffsetIndexWriter(OffsetIndex):
    """An `OffsetIndex` that is written as well.

    A missing file is created: *max_index_size* bytes of zeros, rounded down to whole entries: 67 gives 64. All whole
    entries of an existing file count, so it is full until `resize`; a file that a crash left at full size must be
    `reset` and written again. `close()` cuts the file to its entries; without it the file keeps its full size.
    Only one writer may write the partition: *Errors*:
    `LockedError` where a broker, a `LogWriter` or another writer of this file runs. In a forked child every call is a
    `ForkedHandleError`.

    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> with cw.OffsetIndexWriter(f"{folder.name}/00000000000000000032.index") as index:
    ...     index.append(35, position=700)
    ...     index.lookup(40)
    OffsetPosition(offset=35, position=700)
    >>> folder.cleanup()
    """

    def __new__(cls, path: _Path, *, base_offset: int | None = None, max_index_size: int = 10_485_760) -> Self: ...
    def append(self, offset: int, position: int) -> None:
        """Add an entry: a batch with `offset` in it (Kafka: its last) begins `position` bytes into the `.log`.

        *Errors*: `ConfigError`, and nothing is written, where the index is full; where `offset` is not above the last
        entry's; where it is below the base offset or more than 2,147,483,647 above it. `OSError`: it is not added.
        *Source*: Kafka `OffsetIndex.append`.
        """
    def truncate_to(self, offset: int) -> None:
        """Drop the entries at or above `offset`; the file keeps its size.

        *Source*: Kafka `OffsetIndex.truncateTo`.
        """
    def resize(self, max_index_size: int) -> bool:
        """Make the file `max_index_size` bytes long, rounded down to whole entries; return whether its size changed.

        *Errors*: `ConfigError` where the entries do not fit (Kafka breaks there); `OSError`.
        *Source*: Kafka `AbstractIndex.resize`.
        """
    def trim(self) -> bool:
        """Cut the file to its entries; return whether its size changed.

        *Source*: Kafka `AbstractIndex.trimToValidSize`.
        """
    def reset(self) -> None:
        """Drop all entries and give the file the size it was opened with.

        *Source*: Kafka `AbstractIndex.reset`.
        """
    def flush(self) -> None:
        """Make entries and size durable. *Errors*: `OSError`: what was not yet durable may be lost."""

@final
class TimeIndexWriter(TimeIndex):
    """A `TimeIndex` that is written as well.

    A missing file is created: *max_index_size* bytes of zeros, rounded down to whole entries: 67 gives 60. All whole
    entries of an existing file count, so it is full until `resize`; a file that a crash left at full size must be
    `reset` and written again. `close()` cuts the file to its entries; without it the file keeps its full size.
    Only one writer may write the partition: *Errors*:
    `LockedError` where a broker, a `LogWriter` or another writer of this file runs. In a forked child every call is a
    `ForkedHandleError`.

    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> with cw.TimeIndexWriter(f"{folder.name}/00000000000000000032.timeindex") as index:
    ...     index.maybe_append(1700000000000, 35), index.maybe_append(1700000000000, 36)
    (True, False)
    >>> folder.cleanup()
    """

    def __new__(cls, path: _Path, *, base_offset: int | None = None, max_index_size: int = 10_485_760) -> Self: ...
    def maybe_append(self, timestamp: _Time, offset: int, skip_full_check: bool = False) -> bool:
        """Add an entry if `timestamp` (ms) is above the last entry's; return whether it was added.

        It says that nothing up to the batch with `offset` in it (Kafka: its last) is later. An equal timestamp adds
        nothing, whatever the offset, and neither does -1 in an empty index. `skip_full_check` gives the slot that
        `is_full` keeps for the entry that closes a segment.
        *Errors*: `ConfigError`, and nothing is written, where the index is full; where `offset` or `timestamp` is below
        the last entry's; where `offset` is below the base offset or more than 2,147,483,647 above it. `OSError`: it is
        not added.
        *Source*: Kafka `TimeIndex.maybeAppend`.
        """
    def truncate_to(self, offset: int) -> None:
        """Drop the entries at or above `offset`; the file keeps its size.

        *Source*: Kafka `TimeIndex.truncateTo`.
        """
    def resize(self, max_index_size: int) -> bool:
        """Make the file `max_index_size` bytes long, rounded down to whole entries; return whether its size changed.

        *Errors*: `ConfigError` where the entries do not fit (Kafka breaks there); `OSError`.
        *Source*: Kafka `AbstractIndex.resize`.
        """
    def trim(self) -> bool:
        """Cut the file to its entries; return whether its size changed.

        *Source*: Kafka `AbstractIndex.trimToValidSize`.
        """
    def reset(self) -> None:
        """Drop all entries and give the file the size it was opened with.

        *Source*: Kafka `AbstractIndex.reset`.
        """
    def flush(self) -> None:
        """Make entries and size durable. *Errors*: `OSError`: what was not yet durable may be lost."""

@final
class TransactionIndexWriter(TransactionIndex):
    """A `TransactionIndex` that is written as well.

    A missing file has no entries; the first `append` creates it. Only one writer may write the partition: *Errors*:
    `LockedError` where a broker, a `LogWriter` or another writer of this file runs. In a forked child every call is a
    `ForkedHandleError`.
    """

    def __new__(cls, path: _Path, *, base_offset: int | None = None) -> Self: ...
    def append(
        self,
        aborted: AbortedTransaction | None = None,
        /,
        *,
        producer_id: int | None = None,
        first_offset: int | None = None,
        last_offset: int | None = None,
        last_stable_offset: int | None = None,
    ) -> None:
        """Add an entry: an `AbortedTransaction`, or its four numbers.

        *Errors*: `ConfigError` where its last offset is not above that of the last entry (Kafka compares with what it
        appended since it opened the file, this also with what was there); `OSError`. No entry is added.
        *Source*: Kafka `TransactionIndex.append`.
        """
    def truncate_to(self, offset: int) -> None:
        """Cut the file at the first entry whose last offset is at or above `offset`.

        *Source*: Kafka `TransactionIndex.truncateTo`.
        """
    def reset(self) -> None:
        """Drop all entries; the file stays, empty. *Source*: Kafka `TransactionIndex.reset`."""
    def flush(self) -> None:
        """Make entries and size durable. *Errors*: `OSError`: what was not yet durable may be lost."""

@final
class PathInfo:
    """What a path is, and the names in it, as `classify` returns it."""

    @property
    def kind(self) -> str:
        """What it is.

        `data_directory partition log offset_index time_index transaction_index producer_snapshot
        leader_epoch_checkpoint partition_metadata offset_checkpoint meta_properties other`
        """
    @property
    def topic(self) -> str | None:
        """The topic in the name of the partition directory; `None` where it is not `topic-partition`."""
    @property
    def partition(self) -> int | None:
        """The number in the name of the partition directory; `None` where it is not `topic-partition`."""
    @property
    def base_offset(self) -> int | None:
        """The number in the name of a segment's file: its base offset; of a producer snapshot, its offset."""
    @property
    def state(self) -> str | None:
        """Whether a partition or a file of a segment is in use.

        Of a partition `live`, `delete`, `future` or `stray`; of a file of a segment `live`, `swap`, `cleaned` or
        `deleted`; else `None`.
        """

def classify(path: _Path) -> PathInfo:
    """Say what a path is: a directory by the files in it, a file by its name. Nothing else is read.

    A directory with `meta.properties`, or with a partition in it, is a data directory. *Errors*: `LogNotFoundError`,
    `OSError`.

    >>> cw.classify("tests/golden/01-plain/orders-0/00000000000000000400.timeindex")
    PathInfo(kind='time_index', topic='orders', partition=0, base_offset=400, state='live')
    >>> cw.classify("tests/golden/16-data-dir").kind
    'data_directory'
    """

def _has_segments(path: _Path) -> bool:
    """Return whether a directory has a `.log` named by 20 digits, or one with `.swap`, which Kafka would rename."""

def _is_segment_file(name: str) -> bool:
    """Return whether a file's name is that of a segment's file."""

def _partition_name(name: str) -> tuple[str, int] | None:
    """Return the topic and the number in the name of a live partition directory; `None` for another name."""

def _nearest(name: str, known: Sequence[str], letters: int = 3) -> str | None:
    """Return the known name with the fewest edits, in whatever case; `None` where none is near.

    A name is near with at most one edit for each *letters* letters: a far-fetched guess misleads.
    """

def _log_config_from_properties(
    properties: dict[str, str], kind: str | None = None, overrides: dict[str, str] | None = None
) -> dict[str, Any]:
    """Return the fields of a `LogConfig` that properties of a broker or a topic, and overrides of a topic, give."""

def _log_config_checked(fields: dict[str, object]) -> dict[str, Any]:
    """Check fields of a `LogConfig`, alone and together, and return all of them in their one form."""

def _log_config_to_properties(fields: dict[str, object]) -> dict[str, str]:
    """Return fields of a `LogConfig` under their topic names."""
