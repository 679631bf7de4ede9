"""The commit of a write: staged logs are appended to the logs, or nothing is. Does not use Spark."""

import resource
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from cordwood import CordwoodError, LockedError, Log, LogWriter
from cordwood._core import _partition_parts
from cordwood.spark.errors import SEGMENT_GONE, UNFINISHED_WRITE, SparkLogError
from cordwood.spark.write.journal import Change, Commit, Journal, Piece, unless_removed
from cordwood.spark.write.options import SinkOptions, TopicConfigs
from cordwood.spark.write.partitions import Partitions, partitions_of_topics
from cordwood.spark.write.remains import Remains, remains_of
from cordwood.spark.write.staging import LogBatches, Staged

__all__ = ["check_lock", "commit_staged", "locked", "recover"]

_LOCK_OF_BROKER = ".lock"
_LOCK_WAIT_SECONDS = 30.0
_LOCK_POLL_SECONDS = 0.05
_AT_ONCE = 8
# of a log that is open for writing
_OPEN_FILES = 8

_T = TypeVar("_T")


def commit_staged(
    options: SinkOptions,
    write: str,
    staged: Iterable[Staged],
    *,
    is_overwrite: bool = False,
    query: tuple[str, int] | None = None,
) -> bool:
    """Append staged logs, in order, to the logs of their partitions: all of them, or none. They are not removed.

    With *is_overwrite* all older records of the topics are deleted afterwards. *query*: the id of a streaming query,
    and the number of its micro-batch; one that was committed before is not appended again. Returns whether it was
    appended.

    *Errors*: as for `LogWriter`, after everything was taken back; `CORDWOOD_UNFINISHED_WRITE`; `CORDWOOD_BAD_OPTION`
    if a topic has another number of partitions than the option says;
    `CORDWOOD_SEGMENT_GONE` if a staged log is not as the task left it.
    """
    journal, configs = Journal(options.root), options.configs()
    staged = list(staged)
    recover(options.root, _topics(options, staged), configs)
    if _is_committed(journal, query):
        return False
    opened = _opened(journal, staged)
    pieces = _pieces(options, journal, staged, is_overwrite=is_overwrite)
    if not pieces:
        return True
    with _all_locked(journal, sorted(pieces), configs) as writers:
        if _is_committed(journal, query):
            # an earlier driver of the query was still alive, and had the locks
            return False
        changes = [Change(name, writers[name].log_end_offset, pieces[name]) for name in sorted(pieces)]
        query_id, batch = query or (None, None)
        commit = Commit(write, query_id, batch, is_overwrite, changes)
        path = journal.begin(commit)
        try:
            _at_once(lambda change: _append(change, opened, writers[change.name], is_overwrite=is_overwrite), changes)
            kept = journal.finish(path, commit)
        except BaseException:
            # Without its file the write counts. The first error is raised also if this fails; then the next
            # write takes the records back.
            with suppress(Exception):
                if path.exists():
                    _take_back(journal, path, commit, writers)
            raise
        if kept is not None and is_overwrite:
            _delete_older(journal, kept, commit, writers)
    return True


def recover(root: str, topics: Collection[str], configs: TopicConfigs | None = None) -> None:
    """Take back the commits that were interrupted, and finish those that count already.

    What is left of files that were not completely written is removed. The commits of a process that is alive, which has
    the locks of the logs, are left to it.

    *Errors*: `CORDWOOD_UNFINISHED_WRITE` if records of others follow the records of an interrupted commit to one of
    *topics*. A commit to other topics stays unfinished then, until a write to one of them.
    """
    journal, configs = Journal(root), configs or TopicConfigs(root)
    pending = [(path, commit, _take_back) for path, commit in journal.unfinished()]
    pending += [(path, commit, _delete_older) for path, commit in journal.finished() if commit.is_overwrite]
    for path, commit, end in pending:
        # a partition that was deleted has nothing to take back
        names = [change.name for change in commit.changes if (journal.root / change.name).is_dir()]
        try:
            with locked(journal, names, configs) as writers:
                # the locks show that its process has ended; it may have ended its commit before
                if path.exists():
                    end(journal, path, commit, writers)
        except LockedError:
            continue
        except (SparkLogError, CordwoodError, OSError):
            if not _topics_of(commit).isdisjoint(topics):
                raise
    for name, path in journal.partly_written():
        # It is written with the lock of its partition. One that cannot be removed now does no harm.
        with suppress(CordwoodError, OSError):
            if path.exists():
                with locked(journal, [name], configs):
                    path.unlink(missing_ok=True)


def check_lock(root: str) -> None:
    """Check that no broker has the data directory. *Errors*: `LockedError`."""
    if not Path(root, _LOCK_OF_BROKER).exists():
        return
    for topic, numbers in Journal(root).existing().items():
        try:
            LogWriter.plan_recovery(Path(root, f"{topic}-{numbers[0]}"))
        except LockedError as error:
            if not _is_of_partition(error):
                raise
        except (CordwoodError, OSError):
            # this log may not be one that is written
            continue
        return


def _topics(options: SinkOptions, staged: Iterable[Staged]) -> set[str]:
    """Return the topics of a write."""
    return {run.topic for one in staged for run in one.runs} if options.topic is None else {options.topic}


def _topics_of(commit: Commit) -> set[str]:
    return {topic for change in commit.changes if (topic := _topic(change.name)) is not None}


def _topic(name: str) -> str | None:
    """Return the topic in the name of a partition directory."""
    parts = _partition_parts(name)
    return None if parts is None else parts[0]


def _is_committed(journal: Journal, query: tuple[str, int] | None) -> bool:
    return query is not None and query[1] <= journal.last_batch(query[0])


def _pieces(
    options: SinkOptions, journal: Journal, staged: list[Staged], *, is_overwrite: bool
) -> dict[str, list[Piece]]:
    """Return the partitions that a commit changes or creates, with what is appended to each."""
    topics = _topics(options, staged)
    existing = partitions_of_topics(options.root, options.topic)
    pieces: dict[str, list[Piece]] = {}
    for topic in topics:
        partitions = existing.get(topic) or Partitions(options.root, topic)
        partitions.check_count(options.partitions)
        pieces |= {f"{topic}-{number}": [] for number in partitions.created(options.partitions)}
    if is_overwrite:
        for name, topic, partition in journal.partitions():
            if topic in topics and options.partition in {None, partition}:
                pieces[name] = []
    for one in staged:
        for run in one.runs:
            piece = Piece(one.place, run.start_offset, run.end_offset)
            pieces.setdefault(f"{run.topic}-{run.partition}", []).append(piece)
    return pieces


def _opened(journal: Journal, staged: Iterable[Staged]) -> dict[str, LogBatches]:
    """Open the staged logs. *Errors*: `CORDWOOD_SEGMENT_GONE` if one is not as the task left it."""
    opened = {}
    for one in staged:
        batches = opened[one.place] = LogBatches(Log(journal.root / one.place))
        records = one.runs[-1].end_offset
        if batches.end_offset != records:
            expected = f"{one.place}: expected the {records} records that a task wrote, found {batches.end_offset}"
            advice = "check that the directory is the same for the driver and all executors"
            raise SparkLogError(SEGMENT_GONE, f"{expected}; {advice}")
    return opened


@contextmanager
def _all_locked(journal: Journal, names: list[str], configs: TopicConfigs) -> Iterator[dict[str, LogWriter]]:
    """Open the logs for writing, when no other process has one. No commit to them is unfinished then."""
    until = time.monotonic() + _LOCK_WAIT_SECONDS
    _allow_open_files(_OPEN_FILES * len(names))
    with ExitStack() as stack:
        while True:
            try:
                writers = stack.enter_context(locked(journal, names, configs))
            except LockedError as error:
                # another commit ends soon, and a broker does not
                if not _is_of_partition(error) or time.monotonic() > until:
                    raise
                time.sleep(_LOCK_POLL_SECONDS)
                continue
            unfinished = [
                path
                for path, commit in journal.unfinished()
                if any(change.name in writers for change in commit.changes)
            ]
            if not unfinished:
                break
            # its process died while it had the locks
            stack.close()
            recover(str(journal.root), {topic for name, topic, _ in journal.partitions() if name in names}, configs)
            if time.monotonic() > until:
                raise SparkLogError(
                    UNFINISHED_WRITE,
                    f"{unfinished[0]}: expected that the interrupted write of this file can be taken back, found that "
                    "another process has the lock of one of its partitions; end that process, and write again",
                )
            time.sleep(_LOCK_POLL_SECONDS)
        yield writers


@contextmanager
def locked(journal: Journal, names: list[str], configs: TopicConfigs) -> Iterator[dict[str, LogWriter]]:
    """Open the logs for writing, and close them at the end. *Errors*: `LockedError` if another process has one."""
    writers: dict[str, LogWriter] = {}
    topics = {name: topic for name in names if (topic := _topic(name)) is not None}
    by_name = {name: configs.of(topic) for name, topic in topics.items()}

    def open_log(name: str) -> None:
        writers[name] = unless_removed(lambda: LogWriter(journal.root / name, config=by_name[name], flush="none"))

    try:
        # two commits to the same logs do not take each other's second lock
        _at_once(open_log, names[:1])
        _at_once(open_log, names[1:])
        yield writers
    finally:
        # What counts is durable. Its error would make a caller write again what is written; the next opening
        # recovers.
        with suppress(CordwoodError, OSError):
            _at_once(LogWriter.close, writers.values())


def _allow_open_files(count: int) -> None:
    """Allow this process, which Spark has started for the commit, more open files than usual, if that is necessary."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = count + 256
    if soft < wanted and soft != resource.RLIM_INFINITY:
        allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        # without it the commit fails as a whole
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))


def _at_once(call: Callable[[_T], object], items: Iterable[_T]) -> None:
    """Call a function for several items at the same time: most of a call is waiting for the disk.

    All calls have ended when this returns or raises the first error.
    """
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        futures = [pool.submit(call, item) for item in items]
        try:
            for future in futures:
                future.result()
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def _is_of_partition(error: LockedError) -> bool:
    """Whether the lock is that of a partition, and not that of a broker's data directory."""
    return error.file is not None and Path(error.file).name != _LOCK_OF_BROKER


def _append(change: Change, opened: Mapping[str, LogBatches], writer: LogWriter, *, is_overwrite: bool) -> None:
    if is_overwrite:
        # so that the older records have segments of their own, which can be deleted
        writer.roll()
    for piece in change.pieces:
        for raw in opened[piece.place].chunks(piece.start_offset, piece.end_offset):
            writer.append_batches(raw)
    writer.flush()


def _take_back(journal: Journal, path: Path, commit: Commit, writers: Mapping[str, LogWriter]) -> None:
    """Remove what an interrupted commit appended."""
    starts = {}
    for change in commit.changes:
        if change.name in writers:
            log = writers[change.name].reader()
            found = remains_of(journal.root, log, change)
            if found.has_others:
                raise _has_others(journal.root, log, found, path)
            starts[change.name] = found.start_offset
    for name, start in starts.items():
        writers[name].truncate_to(start)
    journal.withdraw(path)


def _has_others(root: Path, log: Log, found: Remains, path: Path) -> SparkLogError:
    """Create the error for records after the start of a commit that are not its own."""
    wrong = "others" if found.error is None else f"an error: {found.error}"
    return SparkLogError(
        UNFINISHED_WRITE,
        f"{log.path}: expected only records of an interrupted write at offset {found.start_offset} and after, "
        f"found {wrong}. They are not taken back, because records of others could be lost; cordwood spark-writes "
        f"{root} shows the write, and takes back what has no records of others after it; to keep all records, remove "
        f"{path}",
        topic=log.topic,
        partition=log.partition,
    )


def _delete_older(journal: Journal, path: Path, commit: Commit, writers: Mapping[str, LogWriter]) -> None:
    for change in commit.changes:
        if change.name in writers:
            writers[change.name].delete_before(change.start_offset)
    journal.older_deleted(path, commit)
