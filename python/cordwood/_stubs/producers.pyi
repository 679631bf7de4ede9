"""Producers and transactions of a `LogWriter`."""

from collections.abc import Coroutine, Iterable
from types import TracebackType
from typing import Any, Self, final

from cordwood._stubs.arguments import Bytes, Headers, Time
from cordwood._stubs.record import Appended, Record

@final
class ProducerState:
    """What a log knows of a producer id. Returned by `Log.producers` and `LogWriter.producers`.

    *Source*: Kafka `ProducerStateEntry`; `kafka-transactions.sh describe-producers`.
    """

    @property
    def producer_id(self) -> int:
        """The producer id."""
    @property
    def producer_epoch(self) -> int | None:
        """The epoch of its last batch or marker; `None` if only markers that compaction emptied are left of it."""
    @property
    def last_sequence(self) -> int | None:
        """The last sequence in this epoch; `None` if only a marker has the epoch."""
    @property
    def last_offset(self) -> int | None:
        """The offset of the record with `last_sequence`."""
    @property
    def last_timestamp(self) -> int | None:
        """The largest timestamp of its last batch, or that of its last marker if the marker follows, in ms."""
    @property
    def open_transaction(self) -> int | None:
        """The first offset of its open transaction."""
    @property
    def coordinator_epoch(self) -> int | None:
        """The epoch of the transaction coordinator that wrote its last marker; `None` if there is none."""
    @property
    def expires(self) -> int | None:
        """When it expires, in ms: `producer.id.expiration.ms` after `last_timestamp`.

        From then on it may be forgotten (see `LogWriter`). `None`: it does not expire, because its transaction is open
        or it is a producer of a `LogWriter` with a name.
        """

@final
class Producer:
    """A producer of a `LogWriter`: an append that is called again is not written twice. Made by `LogWriter.producer`.

    It numbers its records by *sequences* from 0 up. An append with sequences that are in the log already is answered
    with the old offsets. So a program that does not know whether its last append was completed, because it crashed,
    calls it again with the same *sequence*, or continues at `next_sequence`. This needs a name: a producer with a name
    has the same sequences after the log is opened again.

    Threads may share a producer. After `LogWriter.close()` its methods raise a `ClosedError`. If the name is used
    again while this object exists, they raise an `InvalidProducerEpochError`.

    >>> import tempfile
    >>> path = tempfile.mkdtemp() + "/orders-0"
    >>> with cw.LogWriter(path) as writer:
    ...     producer = writer.producer("import")
    ...     appended = producer.append_many(["a", "b", "c"], sequence=0)
    >>> with cw.LogWriter(path) as writer:
    ...     producer = writer.producer("import")
    ...     again = producer.append_many(["a", "b", "c"], sequence=0)
    ...     producer.next_sequence, producer.last_offset, writer.log_end_offset
    (3, 2, 3)
    >>> again.first_offset, again.last_offset, again.is_duplicate
    (0, 2, True)
    """

    @property
    def name(self) -> str | None:
        """The name; `None` for a producer without one."""
    @property
    def producer_id(self) -> int:
        """The producer id, unique in the log. It is above those that brokers assign."""
    @property
    def producer_epoch(self) -> int:
        """The epoch. It rises if the name is used again while an earlier object with the name exists."""
    @property
    def next_sequence(self) -> int:
        """The sequence of the next record: the number of records that were written. After 2^31 - 1 comes 0.

        A truncation of the log lowers it; deletions from the log start and retention do not.
        """
    @property
    def last_offset(self) -> int | None:
        """The offset of the last record; `None` if the producer has none in the log."""
    def append(
        self,
        value: Bytes | None,
        key: Bytes | None = None,
        headers: Headers = (),
        timestamp: Time | None = None,
        *,
        sequence: int | None = None,
    ) -> Appended:
        """Append one record. *sequence*: its number, by default `next_sequence`. Otherwise as `LogWriter.append`.

        *Errors*: as `append_many`.
        """
    def append_many(self, records: Iterable[Record | Bytes], *, sequence: int | None = None) -> Appended:
        """Append records as one batch: all of them or none. *sequence*: that of the first, by default `next_sequence`.

        If one of the last five calls had exactly these sequences, nothing is appended: the result has the offsets of
        that call, and `is_duplicate`. After the log was opened again or truncated, only the last call is known, as in
        Kafka. Whether the contents are the same is not checked.

        *Errors*: as `LogWriter.append`; `RecordTooLargeError` for records that do not fit into one batch
        (`max.message.bytes`, `segment.bytes`); `OutOfOrderSequenceError` for any other sequence than the next one;
        `InvalidProducerEpochError` if the name was used again.
        *Source*: Kafka `ProducerAppendInfo.checkSequence`.
        """
    def append_async(
        self,
        value: Bytes | None,
        key: Bytes | None = None,
        headers: Headers = (),
        timestamp: Time | None = None,
        *,
        sequence: int | None = None,
    ) -> Coroutine[Any, Any, Appended]:
        """Append as `append`, from an event loop. See `LogWriter.append_async`."""
    def append_many_async(
        self, records: Iterable[Record | Bytes], *, sequence: int | None = None
    ) -> Coroutine[Any, Any, Appended]:
        """Append as `append_many`, from an event loop. See `LogWriter.append_async`."""

@final
class Transaction:
    """A transaction of a `LogWriter`. Made by `LogWriter.transaction`.

    As a context manager it commits at the end of the block, and aborts if an exception ends the block. Readers with
    `isolation_level="read_committed"` see either all of its records or none, and stop before it while it is open.

    One that is neither committed nor aborted stays open, also after a crash and after `LogWriter.close()`, until the
    next transaction with the same transactional id begins, which aborts it, or `LogWriter.abort_transaction` does.
    Threads may share a transaction. Blocks with the same transactional id take turns: `with` waits until the one of
    another thread has ended. In an event loop, use `LogWriter.transaction_async`.

    >>> import tempfile
    >>> path = tempfile.mkdtemp() + "/orders-0"
    >>> writer = cw.LogWriter(path)
    >>> with writer.transaction("billing") as transaction:
    ...     appended = transaction.append("paid", key="order-7")
    ...     writer.last_stable_offset, writer.log_end_offset
    (0, 1)
    >>> writer.last_stable_offset
    2
    >>> with writer.transaction("billing") as transaction:
    ...     appended = transaction.append("paid twice", key="order-7")
    ...     raise ValueError("an order is paid once")
    Traceback (most recent call last):
    ValueError: an order is paid once
    >>> writer.close()
    >>> [record.value for record in cw.Log(path).records(isolation_level="read_committed")]
    [b'paid']
    """

    @property
    def transactional_id(self) -> str:
        """The transactional id."""
    @property
    def producer_id(self) -> int:
        """The id of its producer. It is above those that brokers assign."""
    @property
    def producer_epoch(self) -> int:
        """The epoch of its records."""
    @property
    def first_offset(self) -> int | None:
        """The offset of its first record; `None` before the first append."""
    @property
    def is_open(self) -> bool:
        """Whether it was neither committed nor aborted by this object."""
    def append(
        self,
        value: Bytes | None,
        key: Bytes | None = None,
        headers: Headers = (),
        timestamp: Time | None = None,
    ) -> Appended:
        """Append one record. The arguments are as for `Record`. *Errors*: as `append_many`."""
    def append_many(self, records: Iterable[Record | Bytes]) -> Appended:
        """Append records, as one batch if they fit, else as several.

        It does not wait for the disk in any flush mode: `commit()` makes all records of the transaction durable.

        *Errors*: as `LogWriter.append_many`; `InvalidProducerEpochError` if a newer transaction with the same
        transactional id has begun, or this one was aborted by `LogWriter.abort_transaction`; `ConfigError` if records
        of the transaction were truncated; `ClosedError` after its end.
        """
    def commit(self) -> Appended:
        """Commit: `read_committed` readers see the records. Return the offset of the marker, and whether it is durable.

        It is acknowledged as an append is, by the flush mode of the writer. If the marker is durable, so are the
        records. A transaction without records writes nothing.

        *Errors*: as `append_many`. After an `OSError` the transaction is still open, or the writer is poisoned.
        *Source*: Kafka `EndTransactionMarker`.
        """
    def abort(self) -> Appended:
        """Abort: `read_committed` readers skip the records. Otherwise as `commit`.

        What is left of a transaction after a truncation can be aborted.
        """
    def append_async(
        self,
        value: Bytes | None,
        key: Bytes | None = None,
        headers: Headers = (),
        timestamp: Time | None = None,
    ) -> Coroutine[Any, Any, Appended]:
        """Append as `append`, from an event loop. See `LogWriter.append_async`."""
    def append_many_async(self, records: Iterable[Record | Bytes]) -> Coroutine[Any, Any, Appended]:
        """Append as `append_many`, from an event loop. See `LogWriter.append_async`."""
    def commit_async(self) -> Coroutine[Any, Any, Appended]:
        """Commit as `commit`, in an event loop: other tasks run while this one waits for the disk.

        The marker is written by the call; `await` waits for the flush, as with `LogWriter.append_async`.
        """
    def abort_async(self) -> Coroutine[Any, Any, Appended]:
        """Abort as `abort`, in an event loop. Otherwise as `commit_async`."""
    def _end_turn(self) -> None:
        """Let blocks of other threads and tasks with the same transactional id begin."""
    def __enter__(self) -> Self: ...
    def __exit__(
        self, exc_type: type[BaseException] | None, exc_value: BaseException | None, traceback: TracebackType | None
    ) -> None: ...
