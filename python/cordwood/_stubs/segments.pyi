"""`Segment` and `Segments`; `Split`, a part of a log to read elsewhere."""

from collections.abc import Iterator, Sequence
from typing import Self, final, overload

from cordwood._stubs.arguments import FilePath, Time
from cordwood._stubs.index import OffsetIndex, TimeIndex, TransactionIndex

@final
class Segment:
    """A `.log` file and its indexes. Each index is opened when it is first used.

    Two segments are equal if their directory and base offset are the same.

    *Errors*: `LogChangedError` if the file is gone or is another one than at the opening of the log.
    """

    @property
    def base_offset(self) -> int:
        """The offset in the names of the files. No record of the segment has a lower offset."""
    @property
    def end_offset(self) -> int:
        """The offset after the last batch (exclusive end); the base offset if there is no batch."""
    @property
    def size(self) -> int:
        """The size of the batches, in bytes: of the `.log`, without preallocated space.

        *Source*: Kafka `LogSegment.size`.
        """
    @property
    def largest_timestamp(self) -> int:
        """The largest timestamp of a record, in ms; if no record has one, the modification time of the file.

        *Errors*: `CorruptLogError` if damage hides it. *Source*: Kafka `LogSegment.largestTimestamp`.
        """
    @property
    def largest_record_timestamp(self) -> int:
        """The largest timestamp of a record, in ms; -1 if no record has one.

        *Errors*: `CorruptLogError` if damage hides it.
        """
    @property
    def path(self) -> str:
        """The absolute path of the `.log` file."""
    @property
    def offset_index(self) -> OffsetIndex | None:
        """The `.index` file; `None` if there is none."""
    @property
    def time_index(self) -> TimeIndex | None:
        """The `.timeindex` file; `None` if there is none."""
    @property
    def transaction_index(self) -> TransactionIndex | None:
        """The `.txnindex` file; `None` if there is none: no transaction was aborted, or the file was lost."""

@final
class Segments:
    """The segments of a log: a sequence in order of base offset, with searches by offset.

    *Source*: Kafka `LogSegments`.

    >>> segments = cw.Log("tests/golden/01-plain/orders-0").segments
    >>> [segment.base_offset for segment in segments]
    [0, 400, 807, 1217]
    >>> segments.floor(806).base_offset, segments.higher(806).base_offset
    (400, 807)
    """

    def floor(self, offset: int) -> Segment | None:
        """Return the segment with the greatest base offset <= `offset`; `None` if there is none.

        *Source*: Kafka `LogSegments.floorSegment`.
        """
    def higher(self, offset: int) -> Segment | None:
        """Return the segment with the smallest base offset > `offset`; `None` if there is none.

        *Source*: Kafka `LogSegments.higherSegment`.
        """
    def between(self, start: int, end: int) -> list[Segment]:
        """Return the segments from `floor(start)` (inclusive) to the base offset `end` (exclusive), in order.

        If `floor(start)` is `None`, the list begins with the first segment. It is empty if `start == end`.

        *Errors*: `ConfigError` if `end < start`. *Source*: Kafka `LogSegments.values(from, to)`.

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
        """Return the place of a segment, from 0. *Errors*: `ValueError` if it is not a segment of this log."""
    def count(self, value: Segment) -> int:
        """Return 1 if this is a segment of the log, else 0."""

@final
class Split:
    """A part of a log, from `Log.plan()`, for `Log.scan(split=…)`. It is immutable, small and can be pickled."""

    def __new__(
        cls,
        path: FilePath,
        start_offset: int,
        end_offset: int,
        start_time: Time | None = None,
        end_time: Time | None = None,
        size: int = 0,
        aborted: Sequence[tuple[int, int, int]] | None = None,
        segments: Sequence[PlannedSegment] | None = None,
    ) -> Self: ...
    @property
    def path(self) -> str:
        """The path of the partition directory; absolute in a split from `plan()`."""
    @property
    def start_offset(self) -> int:
        """The first offset (inclusive)."""
    @property
    def end_offset(self) -> int:
        """The end of the offsets (exclusive)."""
    @property
    def start_time(self) -> int | None:
        """The first timestamp, in ms since the epoch (inclusive); `None` if the plan had no start time."""
    @property
    def end_time(self) -> int | None:
        """The end of the timestamps, in ms since the epoch (exclusive); `None` if the plan had no end time."""
    @property
    def size(self) -> int:
        """The approximate size of the part of the `.log` files, in bytes."""
    @property
    def aborted(self) -> list[tuple[int, int, int]] | None:
        """The aborted transactions that overlap the split: producer id, first offset, last offset (inclusive).

        With them, a `read_committed` scan of the split opens no other segment. `None` if the plan was not made with
        `isolation_level="read_committed"`, if damage hides the end of a transaction, or if there are more than 10,000.
        """
    @property
    def segments(self) -> list[PlannedSegment]:
        """The segments that contain the range, in order, in their state when the split was planned.

        `scan(split=…)` compares the log with them. If one is gone, shortened or replaced, it raises a
        `LogChangedError`. With an empty list nothing is compared.

        >>> log = cw.Log("tests/golden/01-plain/orders-0")
        >>> [segment.base_offset for split in log.plan(100_000) for segment in split.segments]
        [0, 400, 807, 1217]
        """

@final
class PlannedSegment:
    """The state of a segment when a `Split` was planned. It is the same for a copy of the log on another machine."""

    def __new__(
        cls, base_offset: int, size: int, first_batch_crc: int | None = None, is_last: bool = False
    ) -> Self: ...
    @property
    def base_offset(self) -> int:
        """The offset in the names of the files."""
    @property
    def size(self) -> int:
        """The size of the batches, in bytes."""
    @property
    def first_batch_crc(self) -> int | None:
        """The checksum of the first batch, 0 to 2^32 - 1; `None` if there is no batch or its header is damaged.

        `None` is not compared.
        """
    @property
    def is_last(self) -> bool:
        """Whether it was the last segment of the log, which may grow."""
