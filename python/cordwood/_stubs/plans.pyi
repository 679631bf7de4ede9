"""What recovery and retention change: `RecoveryPlan`, `RetentionPlan`."""

from typing import Literal, final

from cordwood._stubs.arguments import Settings, Time, Zone
from cordwood._stubs.log import Log

@final
class RecoveryPlan:
    """What recovery changes in a partition directory.

    `LogWriter.plan_recovery` returns it before the changes, `LogWriter.recovery` after them. It does not list what
    every opening does: write the small files of the writer (`.cordwood.*`), create a missing `leader-epoch-checkpoint`,
    write a given topic id, and in a data directory rewrite the partition's lines in the checkpoints and remove
    `.kafka_cleanshutdown`. It also does not list the indexes of a segment that is removed, which are deleted with it.
    """

    @property
    def path(self) -> str:
        """The absolute path of the partition directory."""
    @property
    def is_clean(self) -> bool:
        """Whether recovery changes nothing."""
    @property
    def closed_cleanly(self) -> bool:
        """Whether the files are as the last `LogWriter` left them when it closed the log.

        False for a log that a broker wrote, and for a directory without a segment.
        """
    @property
    def recovery_point(self) -> int:
        """The recovery point: recovery reads the segment that contains this offset, and all after it.

        If the log was closed cleanly, it reads none.
        """
    @property
    def log_start_offset(self) -> int:
        """The log start offset after recovery (inclusive)."""
    @property
    def log_end_offset(self) -> int:
        """The log end offset after recovery (exclusive)."""
    @property
    def segments(self) -> list[int]:
        """The base offsets of the segments after recovery, ascending."""
    @property
    def index_interval_bytes(self) -> int:
        """The `index.interval.bytes` with which indexes are rebuilt and continued."""
    @property
    def interval_source(self) -> Literal["given", "topic", "inferred", "default"]:
        """Where that interval is from.

        The settings, the topic's settings in the metadata of the data directory, the indexes or the writer that closed
        the log, or Kafka's default.
        """
    @property
    def cuts(self) -> list[RecoveryCut]:
        """The byte ranges that are cut from `.log` files."""
    @property
    def rebuilt_indexes(self) -> list[RebuiltIndex]:
        """The index files that are rebuilt."""
    @property
    def file_changes(self) -> list[FileChange]:
        """The files that are deleted or renamed."""
    @property
    def splits(self) -> list[SegmentSplit]:
        """The segments that are split."""
    @property
    def kept_files(self) -> list[str]:
        """The `.deleted` files that stay: the records of their segments may be nowhere else. A broker deletes them."""
    @property
    def rewrites_leader_epochs(self) -> bool:
        """Whether `leader-epoch-checkpoint` is replaced: it does not match the batches, or there are no batches."""

@final
class RecoveryCut:
    """A byte range that recovery cuts from a `.log` file. `str()` returns a sentence."""

    @property
    def file(self) -> str:
        """The path of the `.log` file."""
    @property
    def start_position(self) -> int:
        """The first byte of the range (inclusive), in bytes from the start of the file."""
    @property
    def end_position(self) -> int:
        """The end of the range (exclusive): the size of the file in bytes."""
    @property
    def size(self) -> int:
        """The size of the range in bytes."""
    @property
    def start_offset(self) -> int:
        """The first offset that the range can contain (inclusive)."""
    @property
    def end_offset(self) -> int | None:
        """The offset after the last batch in the range (exclusive end); `None` if it is not known."""
    @property
    def reason(self) -> str:
        """Why the range is cut."""
    @property
    def quarantine(self) -> str | None:
        """The path of the file in `quarantine/` that keeps the bytes; `None` if all are zero (preallocated space)."""

@final
class RebuiltIndex:
    """An index file that recovery rebuilds from the batches of its `.log` file. `str()` returns a sentence."""

    @property
    def file(self) -> str:
        """The path of the index file."""
    @property
    def reason(self) -> Literal["missing", "untrimmed", "differs"]:
        """Why the file is rebuilt.

        `missing`: there is no file. `untrimmed`: the file is longer than its entries. `differs`: the entries are not
        those that recovery writes; they are damaged, or were written with another `index.interval.bytes`.
        """

@final
class FileChange:
    """A file that recovery deletes or renames. `str()` returns a sentence."""

    @property
    def file(self) -> str:
        """The path of the file."""
    @property
    def new_file(self) -> str | None:
        """The new path; `None` if the file is deleted."""
    @property
    def reason(self) -> Literal["staged", "uncommitted", "replaced", "committed", "emptied", "orphaned", "deleted"]:
        """Why the file is deleted or renamed.

        `staged`: a temporary file of a truncation that did not finish. `uncommitted`: a file of a compaction or a split
        that did not finish. `committed`: a file of one that did; it gets its final name. `replaced`: a file that it
        replaces. `emptied`: a file of a log from which all records were being removed. `orphaned`: an index without a
        `.log` file. `deleted`: a `.deleted` file of a segment whose offsets are all in live segments, or below the log
        start offset.
        """

@final
class SegmentSplit:
    """A segment that recovery splits: it has offsets more than 2,147,483,647 above its base offset.

    `str()` returns a sentence.
    """

    @property
    def file(self) -> str:
        """The path of the segment's `.log` file."""
    @property
    def base_offsets(self) -> list[int]:
        """The base offset of each new segment, ascending."""

@final
class RetentionPlan:
    """The segments that retention deletes, or has deleted."""

    @property
    def log_start_offset(self) -> int:
        """The log start offset after the deletion (inclusive)."""
    @property
    def segments(self) -> list[int]:
        """The base offsets of the deleted segments, ascending."""
    @property
    def bytes(self) -> int:
        """The size of the batches in the deleted segments, in bytes."""
    @property
    def rolls(self) -> bool:
        """Whether all segments are deleted: a new one is created first."""

def plan_retention(
    log: Log, config: Settings | None = None, now: Time | None = None, *, tz: Zone | None = None
) -> RetentionPlan:
    """Return what `LogWriter.apply_retention` would delete from a log with these settings. Nothing is changed.

    Deletion goes from the oldest segment on: segments below the log start offset; if `cleanup.policy` has `delete`,
    then segments while the log stays at least `retention.bytes` large, then segments whose `largest_timestamp` is more
    than `retention.ms` before *now*. A last segment without a batch stays. *config*: by default as for `LogWriter`.
    *now*, *tz*: as the times of `Log.scan`; by default the present time.

    *Errors*: as for `LogWriter.apply_retention`; `CorruptLogError` if a timestamp that decides is in a damaged range.
    *Source*: Kafka `UnifiedLog.deleteOldSegments`.

    >>> log = cw.Log("tests/golden/01-plain/orders-0")
    >>> cw.plan_retention(log, cw.LogConfig(retention_ms=-1, retention_bytes=150_000)).segments
    [0]
    """
