"""`OffsetIndexWriter`, `TimeIndexWriter` and `TransactionIndexWriter`."""

from typing import Self, final

from cordwood._stubs.arguments import FilePath, Time
from cordwood._stubs.index import AbortedTransaction, OffsetIndex, TimeIndex, TransactionIndex

@final
class OffsetIndexWriter(OffsetIndex):
    """An `OffsetIndex` that can also be written.

    A missing file is created with *max_index_size* bytes of zeros, rounded down to whole entries: 67 gives 64. In an
    existing file every whole slot is an entry, so the index is full until `resize`. A file that a crash left at full
    size must be `reset` and written again. `close()` cuts the file to its entries; without it the file keeps its full
    size. In a forked child every call but `close()` is a `ForkedHandleError`.

    *Errors*: `LockedError` if a broker or a `LogWriter` has the partition, or another writer has the file;
    `LogNotFoundError` if there is no directory; `ConfigError` as for `OffsetIndex`, and for a new file without room for
    an entry.

    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> with cw.OffsetIndexWriter(f"{folder.name}/00000000000000000032.index") as index:
    ...     index.append(35, position=700)
    ...     index.lookup(40)
    OffsetPosition(offset=35, position=700)
    >>> folder.cleanup()
    """

    def __new__(cls, path: FilePath, *, base_offset: int | None = None, max_index_size: int = 10_485_760) -> Self: ...
    def append(self, offset: int, position: int) -> None:
        """Add an entry: the batch that contains `offset` begins at `position`, in bytes from the start of the `.log`.

        Kafka passes the last offset of the batch.

        *Errors*: `ConfigError` if the index is full, if `offset` is not above that of the last entry, and if it is
        below the base offset or more than 2,147,483,647 above it. After an error the entry is not added.
        *Source*: Kafka `OffsetIndex.append`.
        """
    def truncate_to(self, offset: int) -> None:
        """Remove the entries at or above `offset`. The file keeps its size.

        *Source*: Kafka `OffsetIndex.truncateTo`.
        """
    def resize(self, max_index_size: int) -> bool:
        """Set the size of the file to `max_index_size` bytes, rounded down to whole entries.

        Return whether the size changed.

        *Errors*: `ConfigError` if the entries do not fit (Kafka fails later).
        *Source*: Kafka `AbstractIndex.resize`.
        """
    def trim(self) -> bool:
        """Cut the file to its entries. Return whether the size changed.

        *Source*: Kafka `AbstractIndex.trimToValidSize`.
        """
    def reset(self) -> None:
        """Remove all entries and set the size of the file to *max_index_size*.

        *Source*: Kafka `AbstractIndex.reset`.
        """
    def flush(self) -> None:
        """Make the entries and the size durable.

        *Errors*: `OSError`: entries that were not durable before may be lost, even if a later `flush` succeeds.
        """

@final
class TimeIndexWriter(TimeIndex):
    """A `TimeIndex` that can also be written.

    A missing file is created with *max_index_size* bytes of zeros, rounded down to whole entries: 67 gives 60. In an
    existing file every whole slot is an entry, so the index is full until `resize`. A file that a crash left at full
    size must be `reset` and written again. `close()` cuts the file to its entries; without it the file keeps its full
    size. In a forked child every call but `close()` is a `ForkedHandleError`.

    *Errors*: `LockedError` if a broker or a `LogWriter` has the partition, or another writer has the file;
    `LogNotFoundError` if there is no directory; `ConfigError` as for `TimeIndex`, and for a new file without room for
    an entry.

    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> with cw.TimeIndexWriter(f"{folder.name}/00000000000000000032.timeindex") as index:
    ...     index.maybe_append(1700000000000, 35), index.maybe_append(1700000000000, 36)
    (True, False)
    >>> folder.cleanup()
    """

    def __new__(cls, path: FilePath, *, base_offset: int | None = None, max_index_size: int = 10_485_760) -> Self: ...
    def maybe_append(self, timestamp: Time, offset: int, skip_full_check: bool = False) -> bool:
        """Add an entry if `timestamp` is above that of the last entry. Return whether it was added.

        The entry states that no record up to the end of the batch that contains `offset` has a later timestamp; Kafka
        passes the last offset of the batch. *timestamp*: as the times of `Log.scan`; -1, for none, is never added. An
        equal timestamp adds nothing, with any offset. *skip_full_check*: use the slot that `is_full` reserves for the
        entry that closes a segment.

        *Errors*: `ConfigError` if the index is full; if `offset` or `timestamp` is below that of the last entry; if an
        entry would be added with an `offset` below the base offset or more than 2,147,483,647 above it. After an error
        the entry is not added.
        *Source*: Kafka `TimeIndex.maybeAppend`.
        """
    def truncate_to(self, offset: int) -> None:
        """Remove the entries whose offset is at or above `offset`. The file keeps its size.

        *Source*: Kafka `TimeIndex.truncateTo`.
        """
    def resize(self, max_index_size: int) -> bool:
        """Set the size of the file to `max_index_size` bytes, rounded down to whole entries.

        Return whether the size changed.

        *Errors*: `ConfigError` if the entries do not fit (Kafka fails later).
        *Source*: Kafka `AbstractIndex.resize`.
        """
    def trim(self) -> bool:
        """Cut the file to its entries. Return whether the size changed.

        *Source*: Kafka `AbstractIndex.trimToValidSize`.
        """
    def reset(self) -> None:
        """Remove all entries and set the size of the file to *max_index_size*.

        *Source*: Kafka `AbstractIndex.reset`.
        """
    def flush(self) -> None:
        """Make the entries and the size durable.

        *Errors*: `OSError`: entries that were not durable before may be lost, even if a later `flush` succeeds.
        """

@final
class TransactionIndexWriter(TransactionIndex):
    """A `TransactionIndex` that can also be written.

    A missing file has no entries, and the first `append` creates it. In a forked child every call but `close()` is a
    `ForkedHandleError`.

    *Errors*: `LockedError` if a broker or a `LogWriter` has the partition, or another writer has the file;
    `LogNotFoundError` if there is no directory; `ConfigError` as for `TransactionIndex`.
    """

    def __new__(cls, path: FilePath, *, base_offset: int | None = None) -> Self: ...
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

        *Errors*: `ConfigError` if its last offset is not above that of the last entry. Kafka compares only with entries
        that were appended since it opened the file, this also with earlier ones. After an error the entry is not added.
        `TypeError` for both an `AbortedTransaction` and numbers, and for some of the numbers.
        *Source*: Kafka `TransactionIndex.append`.
        """
    def truncate_to(self, offset: int) -> None:
        """Remove the first entry whose last offset is at or above `offset`, and all entries after it.

        *Source*: Kafka `TransactionIndex.truncateTo`.
        """
    def reset(self) -> None:
        """Remove all entries; the file stays and is empty. *Source*: Kafka `TransactionIndex.reset`."""
    def flush(self) -> None:
        """Make the entries and the size durable.

        *Errors*: `OSError`: entries that were not durable before may be lost, even if a later `flush` succeeds.
        """
