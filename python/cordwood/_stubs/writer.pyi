"""`LogWriter`."""

from collections.abc import Coroutine, Iterable
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Any, Self, final

from cordwood._stubs.arguments import ArrowStream, Bytes, FilePath, Headers, Settings, Time, Zone
from cordwood._stubs.compaction import Compaction
from cordwood._stubs.copies import CopyReport
from cordwood._stubs.log import Log
from cordwood._stubs.plans import RecoveryPlan, RetentionPlan
from cordwood._stubs.producers import Producer, ProducerState, Transaction
from cordwood._stubs.record import Appended, FlushMode, Record, WriterMetrics
from cordwood.config import LogConfig

@final
class LogWriter:
    """The only writer of a partition directory: a durable log. A missing directory is created.

    The files are those that Kafka writes; brokers, tools and `Log` read them. After an unclean stop, opening the log
    recovers it: no acknowledged record is lost; only a torn last write is cut, and its bytes are kept in `quarantine/`.

    *config*: a `LogConfig`. What it does not state is the topic's setting in the metadata of the data directory
    (`LogConfig.from_metadata`), or else Kafka's default; `index.interval.bytes` is then the one of the writer that
    closed the log, or in a log that no `LogWriter` has opened, the one that the indexes show
    (`RecoveryPlan.interval_source`). Metadata that cannot be read is a warning. *topic_id*: 22 characters,
    as Kafka prints it, for `partition.metadata`. *leader_epoch*: the epoch of new batches, not below the latest epoch
    of the log; by default the latest epoch, and 0 in a new log. *producer_id_expiration_ms*: a producer id without an
    open transaction is forgotten if its last batch or marker is this old (Kafka: the broker's
    `producer.id.expiration.ms`): when the log is opened, and every ten minutes at the next append. Producers with a
    name and those that an object uses stay: see `producers`. *max_batch_bytes*: the largest batch, as stored and
    decompressed, that `append_batches` accepts, and that `compact`, `backup` and `reader` read, as in `Log`. *flush*:
    when an append is acknowledged:

    - `"always"`: each append returns when its records are durable. Appends of several threads share one flush.
    - `cw.FlushMode.group(ms=2, bytes=1 << 20)`: the same, but the first of several appends waits for others. There are
      fewer flushes; on a disk with fast flushes there are also fewer appends per second.
    - `cw.FlushMode.interval(messages=…, ms=…)`: an append returns without waiting, but flushes first if that many
      records or ms have passed. A power loss can lose the records after the last flush; the end of the process does
      not.
    - `"none"`: only `flush()`, a roll and `close()` make records durable.

    Threads and event loops may share a `LogWriter`. `close()`, or the end of a `with` block, closes the log cleanly. A
    log that was not closed is recovered at the next opening. A new partition in the data directory of a cluster that
    does not know it is a warning: a broker does not serve it. In a forked child every method raises a
    `ForkedHandleError`. Pickling raises a `TypeError`.

    Signal handlers run while an append waits for other appends or for a flush of another thread: Ctrl-C raises
    `KeyboardInterrupt` within a tenth of a second. The records are appended then, but may not be durable. If a handler
    interrupts another call of the writer, its own calls that would wait for that one raise a `RuntimeError`. Appends
    would wait for `apply_retention()` and `compact()`.

    *Errors*: `LockedError` if another writer or a broker has the log; `CorruptLogError` if there is damage other than a
    torn last write, if the log's own files or checkpoints show that a segment is missing (a gap inside a log without
    them may be a compaction's), or if a batch contradicts the transactions before it (nothing is changed then);
    `UnsupportedFormatError` for an intact batch of a later format; `ConfigError`, also for a directory name that Kafka
    would delete or refuse, in a broker's data directory. After a write, a flush or a `close()` has failed, later calls
    raise `PoisonedError`: open the log again. After `close()` they raise `ClosedError`.
    *Source*: Kafka `UnifiedLog.create`, `LogLoader.load`.

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
        path: FilePath,
        *,
        config: Settings | None = None,
        flush: str | FlushMode = "always",
        topic_id: str | None = None,
        leader_epoch: int | None = None,
        producer_id_expiration_ms: int = 86_400_000,
        max_batch_bytes: int = 134217728,
    ) -> Self: ...
    @staticmethod
    def plan_recovery(
        path: FilePath, *, config: Settings | None = None, max_batch_bytes: int = 134217728
    ) -> RecoveryPlan:
        """Return what opening a `LogWriter` would change to recover the log. Nothing is changed.

        All checks of an opening are made: locks of other writers and of a broker, damage. Only the permission to write
        is not needed. No lock is taken: another process may take one before the log is opened. Pass the *config* and
        the *max_batch_bytes* of the `LogWriter`: the settings decide the entries of an index. If, after a crash,
        *config* or the topic states another `index.interval.bytes` than the indexes of the segments that recovery reads
        were written with, these are rebuilt; `LogWriter` says which it is if neither states it.

        *Cost*: reads what an opening reads. *Errors*: as for an opening, and `LogNotFoundError` if the directory does
        not exist.

        >>> settings = cw.LogConfig(index_interval_bytes=1024)
        >>> plan = cw.LogWriter.plan_recovery("tests/golden/01-plain/orders-0", config=settings)
        >>> plan.is_clean, plan.log_end_offset
        (True, 1500)
        """
    @property
    def recovery(self) -> RecoveryPlan | None:
        """What opening the log changed to recover it; `None` if it changed nothing.

        Each change is also written to the logger `cordwood`, with the level `WARNING` if data was cut, else `INFO`. The
        logger also gets the warnings of the opening, for example for a log start offset outside the log.
        """
    @property
    def path(self) -> str:
        """The absolute path of the partition directory, with symbolic links resolved."""
    @property
    def config(self) -> LogConfig:
        """The settings: the object that was given as *config*; or a `LogConfig`, if some are the topic's.

        An interval of index entries that the existing indexes show is not among them: `plan_recovery` has it.
        """
    @property
    def flush_mode(self) -> str:
        """The flush mode, as a text that `flush` accepts."""
    @property
    def closed(self) -> bool:
        """Whether `close()` was called."""
    @property
    def log_start_offset(self) -> int:
        """The first offset that can be read (inclusive). *Source*: Kafka `UnifiedLog.logStartOffset`."""
    @property
    def log_end_offset(self) -> int:
        """The offset of the next record (the exclusive end). *Source*: Kafka `UnifiedLog.logEndOffset`."""
    @property
    def last_stable_offset(self) -> int:
        """The first offset of the oldest open transaction, at least the log start offset; else the log end offset.

        It is the exclusive end for `read_committed`, unless all records of that transaction were deleted: readers do
        not know it then, nor, perhaps, does the next opening. *Source*: Kafka `UnifiedLog.lastStableOffset`.
        """
    @property
    def durable_offset(self) -> int:
        """The end of the records that survive a power loss (exclusive). *Source*: Kafka `UnifiedLog.recoveryPoint`."""
    def metrics(self) -> WriterMetrics:
        """Return what the writer has done since it was opened: appends, records, bytes, flushes, their times, segments.

        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder, cw.LogWriter(f"{folder}/orders-0") as writer:
        ...     appended = writer.append_many(["a", "b"])
        ...     metrics = writer.metrics()
        >>> metrics.appends, metrics.records, metrics.flushes, metrics.segments
        (1, 2, 1, 1)
        """
    @property
    def producers(self) -> list[ProducerState]:
        """What the log knows of each producer id, by the ids.

        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder, cw.LogWriter(f"{folder}/orders-0") as writer:
        ...     appended = writer.producer("import").append_many(["a", "b"])
        ...     [state] = writer.producers
        >>> state.producer_epoch, state.last_sequence, state.last_offset, state.expires
        (0, 1, 1, None)
        """
    @property
    def leader_epochs(self) -> list[tuple[int, int]]:
        """The history of leader epochs: each epoch and its start offset (inclusive), both ascending."""
    def end_offset_for(self, epoch: int) -> tuple[int, int] | None:
        """Return the largest known epoch <= `epoch`, and the offset after its last record.

        `None` if the history has no such epoch.
        *Source*: Kafka `LeaderEpochFileCache.endOffsetFor`.
        """
    def append(
        self,
        value: Bytes | None,
        key: Bytes | None = None,
        headers: Headers = (),
        timestamp: Time | None = None,
    ) -> Appended:
        """Append one record as a batch, at once. The arguments are as for `Record`.

        A value of `None` is null (a tombstone), which is not the same as empty.

        *Errors*: `RecordTooLargeError`; `InvalidRecordError` for a timestamp too far from the clock and for a missing
        key in a compacted log; `ConfigError` for a negative timestamp other than the int -1, an int timestamp in
        another unit than ms (see `Record`) and a header name that is not UTF-8; `OSError` if it could not be written:
        the record is not in the log then; `PoisonedError`; `ClosedError`.
        """
    def append_many(self, records: Iterable[Record | Bytes]) -> Appended:
        """Append records, or values without a key: as one batch if they fit, else as several.

        A batch is limited by `max.message.bytes`, `segment.bytes` and 128 MiB before compression. All records are held
        in memory, and one flush makes them durable. Timestamps, keys, header names and, without compression, sizes are
        checked before any record is appended. A batch is appended as a whole or not at all. If a batch
        fails, the earlier ones stay: see `log_end_offset`.

        *Errors*: as `append`.

        >>> import tempfile
        >>> folder = tempfile.TemporaryDirectory()
        >>> with cw.LogWriter(f"{folder.name}/orders-0") as writer:
        ...     appended = writer.append_many([cw.Record("a", key="1"), b"b", "c"])
        >>> appended.first_offset, appended.last_offset
        (0, 2)
        >>> folder.cleanup()
        """
    def append_async(
        self,
        value: Bytes | None,
        key: Bytes | None = None,
        headers: Headers = (),
        timestamp: Time | None = None,
    ) -> Coroutine[Any, Any, Appended]:
        """Append as `append`, in an event loop of asyncio: other tasks run while this one waits.

        The record is appended by the call, so the order of the calls is the order in the log. `await` waits for the
        flush, and raises all errors. The tasks that wait share flushes, which run in a thread, one at a time for each
        event loop and writer. A task that is cancelled while it waits leaves its record in the log. A flush that has
        begun goes on, also if the event loop is closed, and the interpreter waits for it when it exits.

        *Cost*: as `append` without the flush. The call writes to the page cache. It syncs the old segment if it rolls
        the log, and waits for a call of another thread that changes segments, such as `roll` or `apply_retention`. The
        `await` of an append that need not wait does not suspend the task.
        *Errors*: as `append`. If a flush fails, one task raises its `OSError`, and the others a `PoisonedError`.

        >>> import asyncio, tempfile
        >>> async def main(path):
        ...     with cw.LogWriter(path) as writer:
        ...         return await asyncio.gather(*(writer.append_async(f"{n}") for n in range(1000)))  # one flush
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     asyncio.run(main(f"{folder}/orders-0"))[-1].durable
        True
        """
    def append_many_async(self, records: Iterable[Record | Bytes]) -> Coroutine[Any, Any, Appended]:
        """Append as `append_many`, from an event loop. See `append_async`."""
    def append_arrow(self, table: ArrowStream) -> Appended:
        """Append the rows of an object with `__arrow_c_stream__`: a pyarrow table or reader, a Polars frame, a `Scan`.

        Columns: `value`, and optionally `key` (both binary or string, also large and view types; null is null),
        `timestamp` (with a time zone and any unit, or int64 ms; null and -1 ms mean no timestamp; a time less than 1 ms
        before 1970 is an error; without the column it is the present time) and `headers` (a list of structs of key and
        value, or a map). `offset` and `timestamp_type` are ignored, so that the result of a scan can be appended.

        *Cost*: no Python object is made for a record, and one record batch is in memory at a time. Each record batch is
        appended as by `append_many`; if one fails, the earlier ones stay. pyarrow is not needed.
        *Errors*: as `append`; `ConfigError` that names a column that is missing, of another type, or not one of these.

        >>> import tempfile
        >>> folder = tempfile.TemporaryDirectory()
        >>> with cw.LogWriter(f"{folder.name}/copy-0") as writer:
        ...     appended = writer.append_arrow(cw.Log("tests/golden/01-plain/orders-0").scan())
        >>> appended.last_offset
        1499
        >>> folder.cleanup()
        """
    def append_batches(self, raw: Bytes, keep_offsets: bool = False) -> Appended:
        """Append v2 batches as they are: concatenated bytes. All of them are appended, or none.

        They get the next offsets and the writer's epoch, as on a leader. With *keep_offsets* they keep their own, as on
        a follower: these must ascend from the log end offset, and gaps are allowed.

        The sequences and epochs of batches with a producer id are checked as on a leader. If all batches are duplicates
        of batches among the last five of their producers, nothing is appended, and the result has the offsets of those.
        (An opening and a truncation know only the last batch of each, as Kafka.) With *keep_offsets* neither sequences
        nor epochs are checked, and the markers that end transactions are accepted.

        *Errors*: as `append`; also `InvalidRecordError` for bytes that break a rule of the format, and for a batch
        outside the open transaction of its producer; `OutOfOrderSequenceError` and `InvalidProducerEpochError`. All
        have the position of the batch in *raw*.
        *Source*: Kafka `UnifiedLog.appendAsLeader`, `appendAsFollower`.
        """
    def producer(self, name: str | None = None) -> Producer:
        """Return a producer, whose appends are not written twice if they are called again.

        With a *name* it continues, also after a crash, where the producer of this name has stopped. Without one it is a
        new producer. Names are as for topics: 1 to 249 characters of a-z, A-Z, 0-9, `.`, `_` and `-`. They are kept in
        the partition directory, in `.cordwood.producers`, and a copy of the log has them. A named producer does not
        expire in a `LogWriter`, but a broker that opens the log forgets it after `producer.id.expiration.ms`.

        If an object of the same name exists, its appends raise an `InvalidProducerEpochError` from now on.

        *Cost*: the first use of a name writes a small file. *Errors*: `ConfigError` for another name;
        `CorruptLogError` if the file of names is damaged.
        *Source*: Kafka's `enable.idempotence`; names are an addition.
        """
    def transaction(self, transactional_id: str, *, version: int = 2) -> Transaction:
        """Begin a transaction. Wait while a `with` block of another thread has the same *transactional_id*.

        An open one outside a block with the same id is aborted, and its object is fenced: threads that share an id use
        `with`. The open one may be from before a crash or a `close()`. *transactional_id*: as the name of a producer.
        Different ids have transactions at the same time. *version*: Kafka's transaction version: with 2 each end of a
        transaction raises the epoch of the producer, with 1 it does not.

        A block must not wait for work of a thread that begins a transaction of the same id: neither would end. After 10
        seconds the thread that waits logs a warning, and goes on waiting.

        A transactional id keeps its producer id, until 256 ids are in use no more since. So a program may use one id
        for each request.

        *Cost*: the first use of an id writes a small file. *Errors*: `ConfigError` for another id or version, and
        inside a block of this thread with the same id; `CorruptLogError` if the file of names is damaged.
        *Source*: Kafka `KafkaProducer.initTransactions`, `beginTransaction`, `transactional.id.expiration.ms`.
        """
    def transaction_async(
        self, transactional_id: str, *, version: int = 2
    ) -> AbstractAsyncContextManager[Transaction, None]:
        """Return a block for `async with`: it begins a transaction as `transaction`, and ends it as its `with` does.

        It begins once no other task or thread has a block with the same *transactional_id*; other tasks run while this
        one waits for that and for the disk.

        *Errors*: as `transaction`, inside a block of the same task too.

        >>> import asyncio, tempfile
        >>> async def pay(writer, order):
        ...     async with writer.transaction_async("billing") as transaction:
        ...         transaction.append("paid", key=order)
        ...         await transaction.append_async("sent", key=order)
        >>> async def main(path):
        ...     with cw.LogWriter(path) as writer:
        ...         await asyncio.gather(*(pay(writer, f"order-{n}") for n in range(100)))
        ...         return writer.last_stable_offset
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     asyncio.run(main(f"{folder}/orders-0"))
        300
        """
    def _begin_in_task(self, transactional_id: str, version: int, task: int) -> Transaction | None:
        """Begin a transaction whose turn *task* has, a number of a task; `None` if another task or thread has it."""
    def abort_transaction(self, producer_id: int) -> Appended:
        """Abort the open transaction of a producer (see `open_transactions`). Return the offset of the marker.

        It may also be one whose records were all deleted from the log start, which `open_transactions` does not find.
        If a `LogWriter` gave out the producer id, its `Transaction` is fenced. A Kafka client keeps its epoch.

        *Errors*: `ConfigError` if the producer has no open transaction.
        *Source*: Kafka `kafka-transactions.sh abort`.
        """
    def flush(self) -> None:
        """Make all records that were appended so far durable."""
    def wait_durable(self, offset: int) -> None:
        """Return when the record at `offset` is durable. Flush if no other thread does.

        *Errors*: `OffsetOutOfRangeError` if `offset` was not appended yet; `ConfigError` if it is negative.
        """
    def roll(self) -> None:
        """Close the active segment and create one at the log end offset. An active segment without a batch stays.

        *Errors*: `OSError`: if the disk is full, nothing has changed. *Source*: Kafka `UnifiedLog.roll`.
        """
    def truncate_to(self, offset: int) -> bool:
        """Remove all batches with an offset at or above `offset`. Afterwards the log end offset is `offset`.

        A batch that contains `offset` is removed as a whole; readers and the next opening then find the end of the
        batch before it as the log end offset, as in Kafka. An offset below the log start offset removes all records and
        becomes the log start offset, too. Return `False` if the log ended at or below `offset`. The removal is durable
        when this returns.

        *Errors*: `ConfigError` for a negative offset; `CorruptLogError` for damage before `offset`. On a full disk as
        `delete_before`; to cut a segment other than the last needs space for a copy of its rest.
        *Source*: Kafka `UnifiedLog.truncateTo`.
        """
    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Remove all records. Afterwards the log start offset and the log end offset are `offset`.

        *Errors*: `ConfigError` for an offset outside 0 to 2^63 - 2. On a full disk as `delete_before`.
        *Source*: Kafka `UnifiedLog.truncateFullyAndStartAt`.
        """
    def delete_before(self, offset: int) -> bool:
        """Move the log start offset up to `offset`: records below it cannot be read.

        Segments without other records are deleted. Return `False` if the log started at or above `offset`. The change
        is durable when this returns.

        *Errors*: `ConfigError` for a negative offset; `OffsetOutOfRangeError` above the log end offset. On a full disk
        it uses the space that the writer holds in reserve; without that, it is an `OSError`, and nothing has changed.
        *Source*: Kafka `UnifiedLog.maybeIncrementLogStartOffset`.
        """
    def apply_retention(self, now: Time | None = None, *, tz: Zone | None = None) -> RetentionPlan:
        """Delete the segments that `retention.ms` and `retention.bytes` allow to delete. Return which.

        *now*, *tz*: as the times of `Log.scan`; by default the present time. `plan_retention` returns the same and
        deletes nothing. On a full disk as `delete_before`. *Errors*: `ConfigError` if nobody has stated the
        `cleanup.policy`, and the log is compacted (`Log.is_compacted`), or nobody has stated `retention.ms`, and the
        log is in a Kafka data directory: neither the `LogConfig` nor the metadata. `CorruptLogError` if the metadata is
        damaged, unless the `LogConfig` states both.
        *Source*: Kafka `UnifiedLog.deleteOldSegments`.
        """
    def compact(
        self,
        now: Time | None = None,
        dedupe_buffer_bytes: int | None = None,
        threads: int = 1,
        *,
        tz: Zone | None = None,
    ) -> Compaction:
        """Compact the log, if that is due: keep only the last record of each key. Return what was done.

        One pass over the segments before the active one. It removes records whose key a later committed record has,
        records without a key, and records of aborted transactions. It removes tombstones (records without a value) and
        transaction markers `delete.retention.ms` after the pass that first keeps them. Small segments are merged. A
        segment with offsets more than 2^31 - 1 above its base offset is split first. Offsets do not change. A pass is
        due if more than `min.cleanable.dirty.ratio` of the bytes were not cleaned before, or a record is older than
        `max.compaction.lag.ms`. Segments with records younger than `min.compaction.lag.ms` or of an open transaction
        are left out. `cleanup.policy` must have `compact`; `delete` is `apply_retention`'s.

        *now*, *tz*: as the times of `Log.scan`; by default the present time. *dedupe_buffer_bytes*: the memory for the
        keys of a pass, nine tenths of which are used, 24 bytes for each key; by default 128 MiB, as Kafka's
        `log.cleaner.dedupe.buffer.size`. A bit for each dirty offset takes up to 1/32 more. If there are more keys, the
        pass ends before the next one and `Compaction.is_complete` is `False`: call again. *threads*: the number of
        threads that decompress and compress batches, up to 256; they end with the call, and the files do not depend on
        it. Appends of other threads continue meanwhile. Everything is read and verified before the first segment is
        replaced, and each replacement is durable before the next. A `Log` that was opened before keeps the old segments
        that it has opened; other files are gone, with a `LogChangedError`.

        *Errors*: `ConfigError` if the policy has no `compact`, or the memory is too small for a key; `CorruptLogError`
        for damage anywhere in the log, with nothing changed; `OSError`: if the disk is full, the segments that were
        replaced before remain so. *Source*: Kafka `LogCleaner`, `Cleaner`.
        """
    def backup(self, path: FilePath) -> CopyReport:
        """Copy the log as it is now to *path*, as `cw.copy` does with its defaults. Return what was copied.

        The copy has all records that were appended before the call, byte for byte, and what belongs to them:
        transactions, producers and their names, leader epochs, the log start offset. It has none that other threads
        append meanwhile. Calls that remove records, such as `apply_retention`, wait for a backup; appends do not.
        Positions (`Log.position`) are not copied.

        The copy is a log: `Log`, `LogWriter` and Kafka open it. If a backup was interrupted, the next one to the same
        path continues it. To the path of a complete one it is a `ConfigError`, unless the log has not changed since.

        *Cost*: reads the whole log, and syncs and reads back the copy.
        *Errors*: as for `cw.copy`; `ClosedError`.

        >>> import tempfile
        >>> folder = tempfile.TemporaryDirectory()
        >>> with cw.LogWriter(f"{folder.name}/orders-0") as writer:
        ...     appended = writer.append_many(["a", "b"])
        ...     backup = writer.backup(f"{folder.name}/backup-0")
        >>> backup.start_offset, backup.end_offset
        (0, 2)
        >>> folder.cleanup()
        """
    def reader(self) -> Log:
        """Return a `Log` of the present state, for reading while the writer is open. This is cheap.

        It does not show later appends. After a truncation, and if retention has deleted a file that it had not opened,
        it raises a `LogChangedError`: call its `refresh()`, or `reader()` again.
        """
    @staticmethod
    def _open_transactions(path: FilePath, max_batch_bytes: int) -> list[tuple[int, int, int, int | None]]:
        """Return the open transactions that the next opening would find: producer id, epoch, first and last offset.

        Also those whose records were all deleted from the log start, which `open_transactions` does not find.
        `max_batch_bytes` as in `LogWriter`.
        """
    def _has_interrupted_call(self) -> bool:
        """Return whether a handler of a signal calls this inside a call of this writer for which others may wait."""
    def close(self) -> None:
        """Make all records durable and close the log cleanly. A second call does nothing.

        *Errors*: `OSError`. Every later call is a `PoisonedError` then, and the next opening recovers the log.
        *Source*: Kafka `UnifiedLog.close`.
        """
    def __enter__(self) -> Self: ...
    def __exit__(
        self, exc_type: type[BaseException] | None, exc_value: BaseException | None, traceback: TracebackType | None
    ) -> None: ...
