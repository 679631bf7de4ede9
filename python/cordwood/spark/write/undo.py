"""Writes that are not finished: what they have left in the logs, and the removal of that. Does not use Spark."""

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, TypeAlias

from cordwood import CordwoodError, LockedError, Log, LogDir, LogWriter
from cordwood._core import _local_path, _partition_parts
from cordwood.spark.errors import LOCKED, NOT_FOUND, UNFINISHED_WRITE, SparkLogError
from cordwood.spark.write.commit import locked
from cordwood.spark.write.journal import Change, Commit, Journal, is_log
from cordwood.spark.write.options import TopicConfigs
from cordwood.spark.write.remains import remains_of

__all__ = ["UnfinishedWrite", "WrittenPartition", "undo_write", "unfinished_writes"]

State: TypeAlias = Literal["running", "interrupted", "committed"]


@dataclass(frozen=True)
class WrittenPartition:
    """What an unfinished write has left in one partition."""

    topic: str
    """The topic."""

    partition: int
    """The partition."""

    start_offset: int
    """The offset of its first record: the log end offset before the write, or the log start offset, if records of the
    write were deleted since."""

    end_offset: int
    """The offset after its last record (exclusive). `start_offset` if it has none here."""

    others: int
    """The number of offsets after these that are not of the write. Then none is removed from this partition."""

    error: str | None = None
    """Why the records of the write cannot be told from others, such as staged logs that are out of reach: all count as
    records of others, and an undo does not end the write. `None`: they can be told."""

    @property
    def records(self) -> int:
        """The number of records of the write."""
        return self.end_offset - self.start_offset

    @property
    def is_kept(self) -> bool:
        """Whether an undo leaves records after `start_offset` here, because some are not the write's."""
        return self.others > 0


@dataclass(frozen=True)
class UnfinishedWrite:
    """A write of the sink that began to append records and did not end."""

    id: str
    """The id of the write. For a micro-batch: the id of its query, `-`, and its number."""

    state: State
    """`running`: a process has the lock of one of the partitions. `interrupted`: its process has ended.
    `committed`: it counts, and only the deletion of the older records, of an overwrite, was interrupted."""

    begun_ms: int
    """When it began to append, milliseconds since the epoch."""

    partitions: list[WrittenPartition]
    """Its partitions, sorted by the names of their directories. Those that were deleted since are left out."""

    query: str | None
    """The id of its streaming query, or its `txnAppId`; `None` for another batch write."""

    batch: int | None
    """The number of its micro-batch, or its `txnVersion`."""

    is_overwrite: bool
    """Whether it replaces older records."""

    file: str
    """The path of the file that describes it."""

    is_undone: bool = False
    """Whether `undo_write` has ended it. If it was not a dry run, `False`: `error` of a partition says why not."""

    @property
    def topics(self) -> list[str]:
        """The topics, sorted."""
        return sorted({one.topic for one in self.partitions})

    @property
    def records(self) -> int:
        """The number of its records in the logs, which readers see."""
        return sum(one.records for one in self.partitions)


def unfinished_writes(path: str | os.PathLike[str]) -> list[UnfinishedWrite]:
    """Return the writes of the sink to the logs of a data directory that are not finished, the oldest first.

    Nothing is changed. *path*: a data directory. *Cost*: the records that these writes have appended are read, and what
    their tasks have staged.

    *Errors*: as for `LogDir`; `CORDWOOD_UNFINISHED_WRITE` if the file of a write is damaged.
    """
    journal = _journal(path)
    found = []
    # one that ends meanwhile is left out
    for file, commit in journal.unfinished():
        with suppress(FileNotFoundError):
            found.append(_described(journal, file, commit))
    for file, commit in journal.finished():
        if commit.is_overwrite:
            with suppress(FileNotFoundError):
                found.append(_committed(journal, file, commit))
    return sorted(found, key=lambda write: (write.begun_ms, write.id))


def undo_write(path: str | os.PathLike[str], write: str, *, dry_run: bool = True) -> UnfinishedWrite:
    """Remove what an interrupted write of the sink has left in the logs, and end the write. Returns what it had left.

    *path*: a data directory. *write*: the `id`. With *dry_run* nothing is changed.

    Each log is truncated to where it ended before the write, with the locks of all of its partitions; if records of the
    write were deleted since, to the log start offset. A log in which other records follow those of the write is not
    changed: `WrittenPartition.is_kept`. Then records of the write stay visible there, and later writes go on after
    them; a micro-batch that Spark repeats is written again, beside them. Logs that the write has created stay, without
    records. The next write to the directory does the same as this function, but is refused where records of others
    follow.

    A log of which it cannot be told whose its records are (`WrittenPartition.error`) is not changed either. The write
    is not ended then: `is_undone` is `False`, what it has staged stays, and the call can be repeated.

    *Errors*: as for `LogDir`; `CORDWOOD_NOT_FOUND` if there is no such write; `CORDWOOD_LOCKED` if a process has a
    lock of one of the partitions, as the write itself while it is running; `CORDWOOD_UNFINISHED_WRITE` if the write
    counts already, or its file is damaged; as for `LogWriter`. After an error it can be repeated.
    """
    given: object = write
    if not isinstance(given, str):
        raise TypeError(f"write: expected the id of a write, a str, found {type(given).__name__}")
    journal = _journal(path)
    for file, commit in journal.unfinished():
        if commit.write == write:
            return _undone(journal, file, commit, dry_run=dry_run)
    for file, commit in journal.finished():
        if commit.write == write:
            reason = "expected a write that was interrupted before it counted, found one that counts"
            raise SparkLogError(UNFINISHED_WRITE, f"{file}: {reason}")
    known = ", ".join(commit.write for _, commit in journal.unfinished()) or "there is none"
    expected = f"the id of an unfinished write in {journal.root} ({known})"
    raise SparkLogError(NOT_FOUND, f"write: expected {expected}, found {write!r}")


def _journal(path: str | os.PathLike[str]) -> Journal:
    local = _local_path(path) if isinstance(path, str) and path.startswith("file:") else path
    return Journal(LogDir(local).path)


def _undone(journal: Journal, file: Path, commit: Commit, *, dry_run: bool) -> UnfinishedWrite:
    found = _described(journal, file, commit)
    if found.state == "running":
        reason = "expected a write whose process has ended, found a process that has the lock of one of its partitions"
        raise SparkLogError(LOCKED, f"{file}: {reason}; end that process first")
    if dry_run:
        return found
    try:
        found = _truncated(journal, file, commit)
    except SparkLogError:
        raise
    except (CordwoodError, OSError) as error:
        raise SparkLogError.of(error) from error
    if found.is_undone:
        # a later write removes the rest
        with suppress(SparkLogError, OSError):
            journal.remove_staged(commit.write)
    return found


def _truncated(journal: Journal, file: Path, commit: Commit) -> UnfinishedWrite:
    """Truncate the logs of a write, and remove its file, unless the records of a log cannot be told from others."""
    names = [change.name for _, _, change in _logs(journal, commit)]
    with locked(journal, names, TopicConfigs(str(journal.root))) as writers:
        # the locks show that its process has ended; it may have ended its commit before
        if not file.exists():
            reason = "expected an unfinished write, found that it has ended meanwhile"
            raise SparkLogError(NOT_FOUND, f"{file}: {reason}")
        found = _described(journal, file, commit, writers)
        for one in found.partitions:
            if not one.is_kept:
                writers[f"{one.topic}-{one.partition}"].truncate_to(one.start_offset)
        if any(one.error is not None for one in found.partitions):
            return found
        journal.withdraw(file)
    return replace(found, is_undone=True)


def _described(
    journal: Journal, file: Path, commit: Commit, writers: Mapping[str, LogWriter] | None = None
) -> UnfinishedWrite:
    """Describe a write that does not count. *writers*: the writers of its logs, if they are locked."""
    partitions = []
    for topic, partition, change in _logs(journal, commit):
        log = writers[change.name].reader() if writers else Log(journal.root / change.name)
        left = remains_of(journal.root, log, change)
        others = left.log_end_offset - left.end_offset
        partitions.append(WrittenPartition(topic, partition, left.start_offset, left.end_offset, others, left.error))
    places = [journal.root / change.name for _, _, change in _logs(journal, commit)]
    is_running = writers is None and any(map(_is_locked, places))
    return _write(file, commit, "running" if is_running else "interrupted", partitions)


def _committed(journal: Journal, file: Path, commit: Commit) -> UnfinishedWrite:
    """Describe an overwrite that counts."""
    partitions = []
    for topic, partition, change in _logs(journal, commit):
        count = sum(piece.end_offset - piece.start_offset for piece in change.pieces)
        start = change.start_offset
        partitions.append(WrittenPartition(topic, partition, start, start + count, others=0))
    return _write(file, commit, "committed", partitions)


def _write(file: Path, commit: Commit, state: State, partitions: list[WrittenPartition]) -> UnfinishedWrite:
    return UnfinishedWrite(
        id=commit.write,
        state=state,
        begun_ms=file.stat().st_mtime_ns // 1_000_000,
        partitions=partitions,
        query=commit.query,
        batch=commit.batch,
        is_overwrite=commit.is_overwrite,
        file=str(file),
    )


def _logs(journal: Journal, commit: Commit) -> Iterator[tuple[str, int, Change]]:
    """Return the topic, the partition and the change of each log of a commit that is still there."""
    for change in commit.changes:
        parts = _partition_parts(change.name)
        if parts is not None and is_log(journal.root / change.name):
            yield parts[0], parts[1], change


def _is_locked(place: Path) -> bool:
    """Whether a process has the log, and is writing."""
    try:
        LogWriter.plan_recovery(place)
    except LockedError:
        return True
    except (CordwoodError, OSError):
        # an opening for writing says what is wrong
        return False
    return False
