"""`OffsetIndex`, `TimeIndex` and `TransactionIndex`, and their entries."""

from collections.abc import Iterator
from types import TracebackType
from typing import Self, final

from typing_extensions import disjoint_base

from cordwood._stubs.arguments import FilePath, SearchMethod, Time
from cordwood._stubs.log import TimestampOffset

@final
class OffsetPosition:
    """An offset and the position of its batch. *Source*: Kafka `OffsetPosition`."""

    @property
    def offset(self) -> int:
        """The offset (absolute)."""
    @property
    def position(self) -> int:
        """Bytes from the start of the `.log`."""

@final
class AbortedTransaction:
    """An entry of a transaction index. *Source*: Kafka `AbortedTxn`."""

    def __new__(cls, *, producer_id: int, first_offset: int, last_offset: int, last_stable_offset: int) -> Self: ...
    @property
    def version(self) -> int:
        """The version of the entry's format: 0."""
    @property
    def producer_id(self) -> int:
        """The id of the producer."""
    @property
    def first_offset(self) -> int:
        """The offset of the first record of the transaction."""
    @property
    def last_offset(self) -> int:
        """The offset of the ABORT marker (inclusive)."""
    @property
    def last_stable_offset(self) -> int:
        """The last stable offset at the time of the abort."""

@disjoint_base
class OffsetIndex:
    """An `.index` file: 8-byte entries of (relative offset, position).

    *base_offset*: by default the number in the file name. The zeros after the entries of a preallocated file are not
    entries. What a reader shows is the state at the opening.

    *Errors*: `LogNotFoundError` if there is no file; `ConfigError` if the name has no number and *base_offset* is not
    given; `ClosedError` for a use after `close()`.
    *Source*: Kafka `OffsetIndex`.

    >>> with cw.OffsetIndex("tests/golden/01-plain/orders-0/00000000000000000000.index") as index:
    ...     entry = index.lookup(23)
    >>> entry.offset, entry.position
    (22, 2904)
    """

    def __new__(
        cls,
        path: FilePath,
        base_offset: int | None = None,
    ) -> Self: ...
    @property
    def path(self) -> str:
        """The absolute path of the file."""
    @property
    def base_offset(self) -> int:
        """The base offset of the segment. Offsets in the file are relative to it; offsets of entries are absolute."""
    @property
    def entry_size(self) -> int:
        """The size of an entry in bytes: 8."""
    @property
    def entries(self) -> int:
        """The number of entries."""
    @property
    def max_entries(self) -> int:
        """The number of entries that fit into the file. *Source*: Kafka `AbstractIndex.maxEntries`."""
    @property
    def max_index_size(self) -> int:
        """The size of the file in bytes, rounded down to whole entries."""
    @property
    def is_full(self) -> bool:
        """Whether `entries >= max_entries`. *Source*: Kafka `AbstractIndex.isFull`."""
    @property
    def last_entry(self) -> OffsetPosition:
        """The last entry; `(base_offset, 0)` if there is none. *Source*: Kafka `OffsetIndex.lastEntry`."""
    def entry(self, n: int) -> OffsetPosition:
        """Return entry `n`, from 0. *Errors*: `ConfigError` if `n >= entries`. *Source*: Kafka `OffsetIndex.entry`."""
    def sanity_check(self) -> None:
        """Check that the last offset is not below the base offset, and that the file has whole entries only.

        *Errors*: `CorruptLogError` if one of them is false. *Source*: Kafka `OffsetIndex.sanityCheck`.
        """
    def lookup(self, target: int, method: SearchMethod | None = None) -> OffsetPosition:
        """Return the entry with the greatest offset <= `target`; `(base_offset, 0)` if there is none.

        *target*: any 64-bit integer. *method*: `"binary"` searches all entries; `"warm"` searches the last 8,192 bytes
        first, as Kafka does; `"learned"`, the default, has every eighth offset in memory, and reads one page.
        The result is the same if the offsets increase.
        *Source*: Kafka `OffsetIndex.lookup`.
        """
    def slot_range(self, target: int, method: SearchMethod | None = None) -> tuple[int, int]:
        """Return the largest slot with an offset <= `target` and the smallest with one >= `target`; -1 for none.

        As in Kafka, a target equal to the first offset gives `(0, 1)`, or `(0, -1)` if there is only one entry.
        *target*, *method*: as in `lookup`.
        *Source*: Kafka `AbstractIndex.indexSlotRangeFor`.
        """
    def trace(self, target: int, method: SearchMethod | None = None) -> list[int]:
        """Return the numbers of the 4 KiB pages that `lookup(target, method)` reads.

        Each page is listed once, in the order of the first access. With `"learned"` the first look-ups of an index read
        more pages than later ones, and none for the last entry, which is in memory.
        """
    def fetch_upper_bound(self, position: int, fetch_size: int) -> OffsetPosition | None:
        """Return the first entry whose position is >= `position + fetch_size` (bytes); `None` if there is none.

        A fetch of `fetch_size` bytes from `position` returns only records below the offset of this entry. As in Kafka,
        the sum wraps at 32 bits, and a sum equal to the position of the first entry gives the second entry.
        *Source*: Kafka `OffsetIndex.fetchUpperBoundOffset`.
        """
    def close(self) -> None:
        """Close the file. A writer first cuts the file to its entries. A second call does nothing."""
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[OffsetPosition]: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self, exc_type: type[BaseException] | None, exc_value: BaseException | None, traceback: TracebackType | None
    ) -> None: ...

@disjoint_base
class TimeIndex:
    """A `.timeindex` file: 12-byte entries of (timestamp, relative offset).

    *base_offset*: by default the number in the file name. The zeros after the entries of a preallocated file are not
    entries. What a reader shows is the state at the opening.

    *Errors*: `LogNotFoundError` if there is no file; `ConfigError` if the name has no number and *base_offset* is not
    given; `ClosedError` for a use after `close()`.
    *Source*: Kafka `TimeIndex`.

    >>> with cw.TimeIndex("tests/golden/01-plain/orders-0/00000000000000000000.timeindex") as index:
    ...     entry = index.lookup(0)
    >>> entry.timestamp, entry.offset
    (-1, 0)
    """

    def __new__(
        cls,
        path: FilePath,
        base_offset: int | None = None,
    ) -> Self: ...
    @property
    def path(self) -> str:
        """The absolute path of the file."""
    @property
    def base_offset(self) -> int:
        """The base offset of the segment. Offsets in the file are relative to it; offsets of entries are absolute."""
    @property
    def entry_size(self) -> int:
        """The size of an entry in bytes: 12."""
    @property
    def entries(self) -> int:
        """The number of entries."""
    @property
    def max_entries(self) -> int:
        """The number of entries that fit into the file. *Source*: Kafka `AbstractIndex.maxEntries`."""
    @property
    def max_index_size(self) -> int:
        """The size of the file in bytes, rounded down to whole entries."""
    @property
    def is_full(self) -> bool:
        """Whether `entries >= max_entries - 1`: one slot is reserved for the entry that closes a segment.

        *Source*: Kafka `TimeIndex.isFull`.
        """
    @property
    def last_entry(self) -> TimestampOffset:
        """The last entry; `(-1, base_offset)` if there is none. *Source*: Kafka `TimeIndex.lastEntry`."""
    def entry(self, n: int) -> TimestampOffset:
        """Return entry `n`, from 0. *Errors*: `ConfigError` if `n >= entries`. *Source*: Kafka `TimeIndex.entry`."""
    def sanity_check(self) -> None:
        """Check that the last offset is not below the base offset nor the last timestamp below the first.

        Also check that the file has whole entries only. *Errors*: `CorruptLogError` if one of them is false.
        *Source*: Kafka `TimeIndex.sanityCheck`.
        """
    def lookup(self, target: Time, method: SearchMethod | None = None) -> TimestampOffset:
        """Return the entry with the greatest timestamp <= `target`; `(-1, base_offset)` if there is none.

        *target*: as the times of `Log.scan`, or any 64-bit integer. *method*: `"binary"` searches all entries;
        `"warm"` searches the last 8,192 bytes first, as Kafka does; `"learned"`, the default, has every eighth
        timestamp in memory, and reads one page or two. The result is the same if the timestamps increase.
        *Source*: Kafka `TimeIndex.lookup`.
        """
    def slot_range(self, target: Time, method: SearchMethod | None = None) -> tuple[int, int]:
        """Return the largest slot with a timestamp <= `target` and the smallest with one >= `target`; -1 for none.

        As in Kafka, a target equal to the first timestamp gives `(0, 1)`, or `(0, -1)` if there is only one entry.
        *target*, *method*: as in `lookup`.
        *Source*: Kafka `AbstractIndex.indexSlotRangeFor`.
        """
    def trace(self, target: Time, method: SearchMethod | None = None) -> list[int]:
        """Return the numbers of the 4 KiB pages that `lookup(target, method)` reads.

        Each page is listed once, in the order of the first access. With `"learned"` the first look-ups of an index read
        more pages than later ones, and none for the last entry, which is in memory.
        """
    def close(self) -> None:
        """Close the file. A writer first cuts the file to its entries. A second call does nothing."""
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[TimestampOffset]: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self, exc_type: type[BaseException] | None, exc_value: BaseException | None, traceback: TracebackType | None
    ) -> None: ...

@disjoint_base
class TransactionIndex:
    """A `.txnindex` file: 34-byte entries, one for each aborted transaction.

    *base_offset*: by default the number in the file name. A partial entry at the end is ignored, as in Kafka. What a
    reader shows is the state at the opening.

    *Errors*: `LogNotFoundError` if there is no file; `ConfigError` if the name has no number and *base_offset* is not
    given; `ClosedError` for a use after `close()`. Methods that read an entry raise an `UnsupportedFormatError` if its
    version is above 0, and a `CorruptLogError` if it is below.
    *Source*: Kafka `TransactionIndex`.

    >>> index = cw.TransactionIndex("tests/golden/11-transactions/payments-0/00000000000000000012.txnindex")
    >>> all(aborted.first_offset < aborted.last_offset for aborted in index)
    True
    """

    def __new__(cls, path: FilePath, base_offset: int | None = None) -> Self: ...
    @property
    def path(self) -> str:
        """The absolute path of the file."""
    @property
    def base_offset(self) -> int:
        """The base offset of the segment."""
    @property
    def entry_size(self) -> int:
        """The size of an entry in bytes: 34."""
    @property
    def entries(self) -> int:
        """The number of entries."""
    @property
    def last_entry(self) -> AbortedTransaction | None:
        """The last entry; `None` if there is none."""
    def entry(self, n: int) -> AbortedTransaction:
        """Return entry `n`, from 0. *Errors*: `ConfigError` if `n >= entries`."""
    def sanity_check(self) -> None:
        """Check that no entry has its last offset below the base offset.

        *Errors*: `CorruptLogError` if one has. *Source*: Kafka `TransactionIndex.sanityCheck`.
        """
    def collect_aborted(self, fetch_offset: int, upper_bound: int) -> tuple[list[AbortedTransaction], bool]:
        """Return the transactions with records in `[fetch_offset, upper_bound)`, and whether these are all.

        `False`: a transaction may also be in the index of the next segment.
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
