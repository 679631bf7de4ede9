"""`Log`, and the results of its look-ups."""

from collections.abc import Sequence
from typing import Self, final

import pyarrow as pa

from cordwood._stubs.arguments import (
    Bytes,
    ByteType,
    Columns,
    FilePath,
    HeaderKeys,
    Integers,
    Io,
    IsolationLevel,
    Keys,
    OnDamage,
    OnInvalidUtf8,
    Time,
    Times,
    TimestampUnit,
    Zone,
)
from cordwood._stubs.positions import Position
from cordwood._stubs.producers import ProducerState
from cordwood._stubs.record import Record
from cordwood._stubs.scan import Records, Scan
from cordwood._stubs.segments import Segments, Split
from cordwood.follow import Follow

@final
class Log:
    """A partition directory, opened for reading. What it shows is the state at the opening.

    Only read permission is needed. A `Log` takes no lock and writes nothing. Indexes, checkpoints and snapshots may be
    missing or wrong. `refresh()` returns a `Log` that also has what was appended later. The end of a preallocated last
    segment is found when it is first needed, and may include batches that were appended since the opening.

    Threads may share a `Log`. In a forked child it opens the directory again. Pickling keeps the absolute path and the
    arguments; unpickling opens the directory.

    *io*: `"auto"` and `"pread"` read files by position; `"mmap"` maps all files into memory: look-ups are faster, but
    if another process shortens a file, this process is killed. Use it only if nothing writes to the directory.
    *log_start_offset* replaces the offset in the data directory's checkpoint. *topic* and *partition* replace those in
    the directory's name.
    *max_open_files*: the maximum number of files and mappings that the log keeps open. All logs of the process together
    keep at most half of its soft limit of open files. In addition each log keeps a descriptor of its directory open.
    An open index with many look-ups has up to 10 % of its size in memory: 1 MiB for Kafka's largest by default.

    *max_batch_bytes*: the largest batch that is read, as stored and decompressed; it bounds the memory of a reader. Any
    call that needs the records of a larger one raises a `BatchTooLargeError`, whatever *on_damage* is.

    *Errors*: `LogNotFoundError` if there is no directory, or no segment in it; `ConfigError`; `CorruptLogError` for a
    base offset that no segment can have, or if the partition has lost its segments.
    *Source*: Kafka `LogLoader.load`, without its repairs.

    >>> log = cw.Log("tests/golden/01-plain/orders-0")
    >>> log.topic, log.partition, len(log.segments)
    ('orders', 0, 4)
    """

    def __new__(
        cls,
        path: FilePath,
        *,
        io: Io = "auto",
        log_start_offset: int | None = None,
        topic: str | None = None,
        partition: int | None = None,
        max_open_files: int = 256,
        max_batch_bytes: int = 134217728,
    ) -> Self: ...
    @property
    def path(self) -> str:
        """The absolute path of the partition directory."""
    @property
    def topic(self) -> str | None:
        """The topic: the argument, else from the directory's name; `None` if the name is not `topic-partition`."""
    @property
    def partition(self) -> int | None:
        """The partition: the argument, else from the directory's name; `None` if the name is not `topic-partition`."""
    @property
    def log_start_offset(self) -> int:
        """The first offset that can be read (inclusive). *Source*: Kafka `UnifiedLog.logStartOffset`."""
    @property
    def log_end_offset(self) -> int:
        """The offset of the next record (the exclusive end). *Source*: Kafka `UnifiedLog.logEndOffset`.

        *Cost*: the first use reads the end of the last segment.
        """
    @property
    def last_stable_offset(self) -> int:
        """The end of the log for `read_committed` (exclusive).

        It is the first offset of the oldest open transaction; if none is open, the log end offset.

        *Cost*: the first use reads the headers of all batches. *Errors*: `CorruptLogError` if the marker that ends a
        transaction may be in a damaged range.
        *Source*: Kafka `UnifiedLog.lastStableOffset`.

        >>> log = cw.Log("tests/golden/11-transactions/payments-0")
        >>> log.last_stable_offset < log.log_end_offset
        True
        """
    @property
    def durable_offset(self) -> int | None:
        """The offset up to which the `LogWriter` of this log has synced it, as it says now; at most `log_end_offset`.

        The records below it survive a power loss. It is read from a small file that a writer, in any process, changes
        after each flush. `None`: no `LogWriter` has opened this log, or a broker has its data directory open: it is not
        known of what a broker appends.
        """
    @property
    def producers(self) -> list[ProducerState]:
        """What the log knows of each producer id, by the ids; those that have expired, too.

        It is what an opening finds: from the latest valid snapshot of the producers and the batches after it.
        *Cost*: reads the headers of those batches.
        """
    @property
    def topic_id(self) -> str | None:
        """The topic id in `partition.metadata`, read at each use; `None` if the file is missing or not readable.

        >>> cw.Log("tests/golden/16-data-dir/cities-0").topic_id
        '6sc1tPBuS4ODmV6YKUWCjg'
        """
    @property
    def size(self) -> int:
        """The size of all batches, in bytes: of the `.log` files, without preallocated space."""
    @property
    def segments(self) -> Segments:
        """The segments in order of base offset; the last is the active one."""
    @property
    def warnings(self) -> list[str]:
        """Faults that do not affect the results, one sentence each.

        Examples: a wrong index entry, a torn tail, an ignored checkpoint. Look-ups can add warnings. Each is also
        logged once, as a warning of the logger `cordwood`, when it is found. Records that are hidden below the log
        start offset are named only here: that is the usual state after deletions.
        """
    @property
    def is_compacted(self) -> bool:
        """Whether the log is compacted, so that missing offsets need not be lost data.

        It is if the metadata of its data directory says so of the topic (`LogConfig.from_metadata`). Otherwise one of
        these signs is enough, for the whole log: the data directory's `cleaner-offset-checkpoint` names the partition,
        or, of a copy by `copy`, the partition that was copied; records are missing inside a batch; a batch has a delete
        horizon; 2³¹ offsets are missing between two segments, more than a lost one can have. Other missing offsets are
        no sign: a loss leaves them too. Without metadata, a compacted log can be without a sign.

        *Cost*: without a sign, the headers of up to 1 GiB of the oldest segments are read, once.

        >>> data = cw.LogDir("tests/golden/16-data-dir")
        >>> data["rivers.compact-0"].is_compacted, data["cities-0"].is_compacted
        (True, False)
        """
    def offset_gaps(self, start_offset: int | None = None, end_offset: int | None = None) -> list[OffsetGap]:
        """Return the offsets in a range that are between two segments and in neither, in order.

        *start_offset* (inclusive) is the log start offset by default, and offsets below it are never included;
        *end_offset* (exclusive) is the end of the log. In a log that is not compacted, a gap shows that a segment is
        missing or was cut. A damaged end of a segment is not a gap.

        *Cost*: the end of each segment in the range is looked up. *Errors*: `LogChangedError` if there is a segment in
        a gap now.

        >>> cw.Log("tests/golden/01-plain/orders-0").offset_gaps()
        []
        >>> cw.Log("tests/golden/12-compacted/profiles-0").offset_gaps()
        [OffsetGap(start_offset=2894, end_offset=2941, segment_base_offset=2706, next_base_offset=2941)]
        """
    def refresh(self) -> Log:
        """Return a `Log` of the directory's present state; this `Log` itself if nothing has changed.

        This `Log` does not change. The two share the unchanged segments: those with the same file names, and, for
        files that were read, the same inode, size, modification time and change time.

        *Cost*: a listing of the directory, and a system call for each segment that was read. *Errors*:
        `LogNotFoundError` if all segments are gone, or if the directory was renamed, deleted or replaced by another.
        """
    def locate(self, offset: int) -> Location | None:
        """Find the batch that contains `offset`, or the next batch if `offset` is in a gap; `None` if there is none.

        *Cost*: a batch that an earlier call verified is mostly not verified again. A segment with many look-ups is kept
        in memory as for `locate_many`.
        *Errors*: `OffsetOutOfRangeError` outside `[log_start_offset, log_end_offset)`; `CorruptLogError` if damage
        hides the batch.
        *Source*: Kafka `LogSegment.translateOffset`.

        >>> log = cw.Log("tests/golden/01-plain/orders-0")
        >>> at = log.locate(20)
        >>> at.segment_base_offset, at.batch_base_offset, at.position
        (0, 18, 2904)
        """
    def locate_many(self, offsets: Integers) -> pa.Table:
        """Find many offsets at once: a table with a row for each of *offsets*, in their order.

        Columns: `segment_base_offset batch_base_offset position` (int64), `size` (int32), as in `Location`. A row is
        null if `locate` raises an error about the offset or about damage, or returns `None`, and for a target that is
        null or beyond 64 bits. *offsets*: a list, a NumPy array, or a column of Arrow, pandas or Polars. Needs the
        extra `arrow`.

        *Cost*: each offset is looked up by itself at first. A segment with many look-ups is read once, and its
        batches are kept in memory: at most 64 MiB for a log, including that of `offsets_for_times`.
        *Errors*: `TypeError` for values that are not integers; a float is not one.

        >>> log = cw.Log("tests/golden/01-plain/orders-0")
        >>> log.locate_many([20, 5000]).column("position").to_pylist()
        [2904, None]
        """
    def offset_for_time(self, timestamp: Time, *, tz: Zone | None = None) -> TimestampOffset | None:
        """Find the first record whose timestamp is at or after `timestamp`; `None` if there is none.

        The search starts at the log start offset and includes control records, as in Kafka. The result is exact,
        in any order of the timestamps. A batch whose header has an earlier largest timestamp is passed over, as in
        Kafka, also a compressed one of format v0, which has none. *timestamp*: as the times of `scan`.

        *Cost*: a segment with many look-ups is kept in memory as for `offsets_for_times`.
        *Errors*: `ConfigError` for a negative time and for a datetime without a time zone; `CorruptLogError` if damage
        hides the record.
        *Source*: Kafka `UnifiedLog.fetchOffsetByTimestamp`, which finds nothing if an index is missing; this reads the
        log then.

        >>> log = cw.Log("tests/golden/01-plain/orders-0")
        >>> log.offset_for_time(1700000000025).offset
        1
        """
    def offsets_for_times(self, timestamps: Times) -> pa.Table:
        """Find many times at once: a table with a row for each of *timestamps*, in their order.

        Columns: `timestamp offset` (int64), as in `TimestampOffset`. A row is null if no record is that late, and as
        for `locate_many`. *timestamps*: integers (ms since the epoch) or datetimes with a time zone, not texts; the
        containers of `locate_many`. Needs the extra `arrow`.

        *Cost*: each time is looked up by itself at first. A segment with many look-ups is read once, and its times are
        kept in memory, within the 64 MiB of `locate_many`.
        *Errors*: `TypeError` for values of another type; `ConfigError` for datetimes without a time zone.

        >>> log = cw.Log("tests/golden/01-plain/orders-0")
        >>> log.offsets_for_times([1700000000025, 4000000000000]).column("offset").to_pylist()
        [1, None]
        """
    def scan(
        self,
        *,
        start_offset: int | None = None,
        end_offset: int | None = None,
        start_time: Time | None = None,
        end_time: Time | None = None,
        columns: Columns | None = None,
        isolation_level: IsolationLevel = "read_uncommitted",
        include_control: bool = False,
        on_damage: OnDamage = "raise",
        header_keys: HeaderKeys = "utf8",
        timestamp_unit: TimestampUnit = "ms",
        max_rows: int = 65_536,
        max_bytes: int = 4_194_304,
        split: Split | None = None,
        threads: int = 1,
        limit: int | None = None,
        check_crcs: bool = True,
        key_type: ByteType = "binary",
        value_type: ByteType = "binary",
        on_invalid_utf8: OnInvalidUtf8 = "raise",
        latest: bool = False,
        include_tombstones: bool = False,
        key: Keys | None = None,
        key_prefix: Keys | None = None,
        grep: str | Sequence[str] | None = None,
        last: int | None = None,
        tz: Zone | None = None,
    ) -> Scan:
        """Read a range of records as columns.

        *start_offset*, *start_time* (inclusive), *end_offset*, *end_time* (exclusive): a record must be in both ranges.
        A record above the last offset of its batch, as some old clients wrote them, counts as at that offset, as in a
        fetch request.
        By default a range has no limits. An end above the log end offset is allowed. A record without a timestamp is in
        no time range. A time range is exact, in any order of the timestamps. A time is an int in ms since the epoch, a
        datetime with a time zone, or a text: `"2024-05-01T10:00Z"`, `"2024-05-01"` (midnight UTC), `"-2h"` (two hours
        ago), `"now"`, `"1714557600s"` (`s`, `ms`, `us` or `ns` since the epoch). An int that is a time of these decades
        only in another unit is an error, and so is a text such as `"20240501"` or `"2024"`, which may be a date or ms.
        *tz*: the time zone of texts without one.

        *key*, *key_prefix*, *grep*: only records with this key, whose key begins with this, and whose value matches
        this regular expression, in the syntax of the Rust crate regex, over bytes. Each is one or a list: any of them.
        A text is encoded as UTF-8. *last*: only the last records, this many, of those that the other arguments select,
        found from the end of the log; not with *split*.

        *columns*: by default `offset timestamp timestamp_type key value headers`; others are `topic partition
        leader_epoch producer_id producer_epoch sequence is_transactional is_control codec magic batch_base_offset
        position segment_base_offset key_size value_size`. With an empty list the rows have no columns and can only be
        counted. `position` is that of the batch; sizes are in bytes, -1 for null.

        *isolation_level*: `"read_committed"` reads up to the last stable offset and omits the records of aborted
        transactions. *include_control*: also return control records.

        *on_damage*: `"raise"` stops with a `CorruptLogError` that names the place; `"skip"` omits a damaged range and
        lists it in `damaged_ranges`; `"report"` also returns a row for it, whose column `error` is null for
        records. It is a struct: `file`, `start_position`, `end_position`, `start_offset`, `end_offset`, `reason`. It is
        added to the given *columns*.

        *header_keys*: names of headers as `"utf8"` (invalid bytes become U+FFFD, as in Kafka's client) or `"binary"`.
        *timestamp_unit*: of the column `timestamp`; a timestamp of -1 is null. *max_rows*, *max_bytes*: limits of a
        record batch; that in bytes is approximate and at most 1 GiB, and a single record may be larger. *split*: a
        result of `plan()`; a record must be in its range and in the given ones. *threads*: the number of threads that
        decompress and decode; more than 256 count as 256. Each reads parts of the log, and a record batch has rows of
        one part: about a quarter of *max_bytes*, or fewer. *limit*: the maximum number of rows of the scan, which stops
        there and uses one thread.

        *check_crcs*: whether the checksum of each batch is verified. `False` is `check.crcs=false` of Kafka's consumer:
        damage that breaks the structure of batches and records is still found, and other damaged bytes are returned as
        data. The checksums of batches that the scan skips by their headers are verified, so that damage loses no record
        silently. Checksums still decide where the log ends (a last batch whose checksum does not match is not part of
        it), which batch follows damage, and which batch an entry of a time index names. Every
        checksum is verified with `"read_committed"`, because a damaged batch is in no transaction, and with *on_damage*
        `"skip"` and `"report"`, because after a batch of a wrong length intact ones would be skipped.

        *key_type*, *value_type*: the types of the columns `key` and `value`. For `"string"` and `"string_view"`,
        *on_invalid_utf8* says what happens to bytes that are not UTF-8: `"raise"` is a `ConfigError` that names the
        offset, `"null"` makes the key or value null, and `"replace"` puts U+FFFD in place of each invalid sequence, as
        `bytes.decode(errors="replace")` does. With `"binary_view"` and `"string_view"` no byte of a key or value
        is copied: the buffers of the column are the blocks that were read from the file, or the decompressed batches.
        A column keeps them in memory, even if it uses only few rows of them. With `io="mmap"` they are the mapped
        files, which must not be shortened while the column is used.

        *latest*: only the last record of each key in the range, as after a compaction of everything; records without a
        key are omitted. A key whose last record is a tombstone (it has no value) is omitted, or with
        *include_tombstones* that record is returned. With `"read_committed"` aborted records replace no other. The
        range is read twice, first when the reading begins (not with *key*, *key_prefix* or *grep*), and each key needs
        27 to 54 bytes of memory, whatever its size, and half as much again while the number of keys doubles.

        *Errors*: `OffsetOutOfRangeError` for a start below the log start offset or above the log end offset;
        `LogChangedError` if a segment that *split* was planned from is gone, shortened or replaced; `ConfigError` for
        a name that is not a column, a negative time, and an end below its start. Damage is raised while reading. A
        codec that this version does not support is an `UnsupportedFormatError` with every *on_damage*, and a batch
        above *max_batch_bytes* of the `Log` a `BatchTooLargeError`.

        >>> log = cw.Log("tests/golden/01-plain/orders-0")
        >>> log.scan(start_offset=10, end_offset=13, columns=["offset", "key"]).to_arrow().num_rows
        3
        >>> log.scan(start_time="2023-11-14T22:13:21Z", columns=["offset"], limit=2).to_arrow().to_pydict()
        {'offset': [48, 49]}
        >>> log.scan(value_type="string", columns=["value"], limit=1).schema.field("value").type
        DataType(string)
        >>> log.scan(key=["k1", "k2"], grep="jetty", last=2, columns=["offset", "key"]).to_arrow().to_pylist()
        [{'offset': 1391, 'key': b'k1'}, {'offset': 1471, 'key': b'k2'}]
        """
    def latest(self, key: Bytes, *, isolation_level: IsolationLevel = "read_uncommitted") -> Record | None:
        """Return the last record with a key; `None` if there is none, or if the last one is a tombstone (has no value).

        The log needs no compaction. With *isolation_level* `"read_committed"` the records of aborted and open
        transactions do not count. Segments are read from the last one back to the one with the record: the whole log if
        there is none. For many keys, `scan(latest=True)` reads the log twice.

        *Errors*: `CorruptLogError` for damage in these segments.

        >>> log = cw.Log("tests/golden/12-compacted/profiles-0")
        >>> record = log.latest(b"hot-7")
        >>> record.offset == max(r.offset for r in log.records() if r.key == b"hot-7")
        True
        """
    def records(
        self,
        *,
        start_offset: int | None = None,
        end_offset: int | None = None,
        start_time: Time | None = None,
        end_time: Time | None = None,
        isolation_level: IsolationLevel = "read_uncommitted",
        include_control: bool = False,
        on_damage: OnDamage = "raise",
        key: Keys | None = None,
        key_prefix: Keys | None = None,
        grep: str | Sequence[str] | None = None,
        last: int | None = None,
        limit: int | None = None,
        tz: Zone | None = None,
    ) -> Records:
        """Read a range one record at a time. `scan` is many times faster. Arguments and errors: as `scan`.

        With `on_damage="skip"` and `"report"` the iterator omits damaged ranges and lists them in `damaged_ranges`.

        >>> log = cw.Log("tests/golden/01-plain/orders-0")
        >>> [record.offset for record in log.records(start_offset=7, end_offset=9)]
        [7, 8]
        >>> [record.offset for record in log.records(key_prefix="k1", limit=3)]
        [0, 1, 2]
        """
    def batches(
        self,
        *,
        start_offset: int | None = None,
        end_offset: int | None = None,
        start_time: Time | None = None,
        end_time: Time | None = None,
        on_damage: OnDamage = "raise",
        tz: Zone | None = None,
    ) -> Scan:
        """Read the batch headers of a range, one row for each batch. Nothing is decompressed.

        Columns: `base_offset last_offset count codec timestamp_type base_timestamp max_timestamp leader_epoch
        producer_id producer_epoch base_sequence last_sequence is_transactional is_control delete_horizon crc magic
        segment_base_offset position size`. `last_offset` is inclusive, `position` and `size` are in bytes.
        `base_timestamp` is the stored field, which a delete horizon replaces. `count` is null for magic 0 and 1. The
        header of a v0 or v1 wrapper has its last offset only; the base offset is read from the records inside.

        Control batches are included. A time range includes each batch whose largest timestamp is at or after the
        start; if all its records have that timestamp, it must also be before the end. Arguments and errors: as `scan`.

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
        start_time: Time | None = None,
        end_time: Time | None = None,
        isolation_level: IsolationLevel = "read_uncommitted",
        tz: Zone | None = None,
    ) -> list[Split]:
        """Divide a range at batch boundaries into splits of about `max_bytes`, for `scan(split=…)` in any process.

        Each record of the range is in exactly one split. A batch larger than `max_bytes` is a split by itself. With
        `isolation_level="read_committed"` the last split ends at the last stable offset. An empty range gives an empty
        list. Arguments and errors: as `scan`.

        >>> log = cw.Log("tests/golden/01-plain/orders-0")
        >>> sum(log.scan(split=split).to_arrow().num_rows for split in log.plan(100_000))
        1500
        """

    def follow(
        self,
        start_offset: int | None = None,
        *,
        timeout: float | None = None,
        isolation_level: IsolationLevel = "read_uncommitted",
        durable: bool = False,
    ) -> Follow:
        """Read records in order, and wait for new ones: for `for`, and for `async for` without a thread.

        *start_offset*: from the log start offset to the log end offset, as they are at this call; `None`: from the
        start of the log. *timeout*: seconds without a new record after which the iteration ends; with 0 it ends at the
        end of the log; `None`: never. With *isolation_level* `"read_committed"` it waits at the last stable offset.

        It continues across rolls, after the writer was closed, killed or opened again, and while retention deletes
        records that it has read. Writers in this process and in others wake it by inotify; where there is none, it
        looks four times a second. Records are returned as soon as they are in the file, which may be before they are
        durable; with *durable* only up to `durable_offset`, so that none is returned that a power loss takes back. It
        reads up to 4,096 records, about 1 MiB of the log or 32 MiB of keys and values ahead of the one that it returns;
        those may be returned before the error of a truncation that removed them.

        *Cost*: each look at a changed log lists the directory. With `"read_committed"` it also reads the headers of the
        batches that were added since the look before; the first look reads the headers of all batches.
        *Errors*: `OffsetOutOfRangeError` for a start outside the log, and if retention or `delete_before` has deleted
        records that were not read yet; `LogChangedError` if a truncation has removed or replaced records that were
        read, whose first one may be below the error's `offset`; `LogNotFoundError` if the directory was deleted or
        renamed. An error ends the iteration. `ConfigError` for *durable* if no `LogWriter` has opened the log, or a
        broker has its data directory open.

        >>> log = cw.Log("tests/golden/01-plain/orders-0")
        >>> with log.follow(1497, timeout=0) as records:
        ...     [record.offset for record in records]
        [1497, 1498, 1499]
        """
    def position(self, name: str) -> Position:
        """Return the position of a consumer, whose committed offset is kept inside the partition directory.

        *name*: 1 to 249 characters of `a-z A-Z 0-9 . _ -`, as a topic's; neither `.` nor `..`. Nothing is read or
        written here. *Errors*: `ConfigError` for another name.

        >>> position = cw.Log("tests/golden/01-plain/orders-0").position("billing")
        >>> position.name, position.offset
        ('billing', None)
        """
    def positions(self) -> list[Position]:
        """Return the positions that have a committed offset now, sorted by name.

        >>> cw.Log("tests/golden/01-plain/orders-0").positions()
        []
        """

@final
class Location:
    """The place of the batch that contains an offset. *Source*: Kafka `FileRecords.LogOffsetPosition`."""

    @property
    def segment_base_offset(self) -> int:
        """The base offset of the segment."""
    @property
    def batch_base_offset(self) -> int:
        """The base offset of the batch."""
    @property
    def position(self) -> int:
        """The start of the batch, in bytes from the start of the segment's `.log`."""
    @property
    def size(self) -> int:
        """The size of the whole batch, in bytes."""

@final
class TimestampOffset:
    """A timestamp and the offset of its record. *Source*: Kafka `FileRecords.TimestampAndOffset`, `TimestampOffset`."""

    @property
    def timestamp(self) -> int:
        """Milliseconds since the epoch, -1 if there is none."""
    @property
    def offset(self) -> int:
        """The offset (absolute)."""

@final
class OffsetGap:
    """A range of offsets between two segments of a log that is in neither."""

    @property
    def start_offset(self) -> int:
        """The first missing offset (inclusive)."""
    @property
    def end_offset(self) -> int:
        """The end of the missing offsets (exclusive)."""
    @property
    def segment_base_offset(self) -> int:
        """The base offset of the segment before the gap."""
    @property
    def next_base_offset(self) -> int:
        """The base offset of the segment after the gap."""
