"""Copies of partitions and data directories: `copy`, `CopyReport`."""

from collections.abc import Callable, Sequence
from typing import Literal, final

from cordwood._stubs.arguments import FilePath, Time, Zone
from cordwood._stubs.scan import DamagedRange

@final
class CopyReport:
    """What `copy` has copied.

    For a data directory `partitions` has a report for each partition; the numbers are their sums.
    """

    @property
    def source(self) -> str:
        """The absolute path of the source."""
    @property
    def path(self) -> str:
        """The absolute path of the copy."""
    @property
    def start_offset(self) -> int | None:
        """The base offset of the first segment of the copy (inclusive). `None` for a data directory.

        Below a given `start_offset` if that is inside a batch, because batches are copied whole.
        """
    @property
    def end_offset(self) -> int | None:
        """The log end offset of the copy (exclusive). `None` for a data directory.

        Above a given `end_offset` if that is inside a batch.
        """
    @property
    def log_start_offset(self) -> int | None:
        """The log start offset of the copy. `None` for a data directory."""
    @property
    def segments(self) -> list[int]:
        """The base offsets of its segments, ascending; none for a data directory."""
    @property
    def partitions(self) -> list[CopyReport]:
        """The copies of a data directory's partitions, by topic and number; none for a partition."""
    @property
    def batches(self) -> int:
        """The number of batches."""
    @property
    def bytes(self) -> int:
        """The size of all batches: of the `.log` files of the copy."""
    @property
    def bytes_written(self) -> int:
        """The bytes of `.log` files that this call has written.

        Fewer than `bytes` if some files are links, or an earlier call has written them; 0 if the copy was complete.
        """
    @property
    def linked(self) -> int:
        """The number of segments that are hard links to files of the source."""
    @property
    def damaged_ranges(self) -> list[DamagedRange]:
        """What was left out."""
    @property
    def open_transactions(self) -> int:
        """The number of transactions that are open at the end of the copy.

        Their records stay invisible to committed readers, because the marker is not in the copy.
        """
    @property
    def warnings(self) -> list[str]:
        """What differs from the source beside the damaged ranges, such as bytes after its last whole batch.

        Also the writes of Spark that have not ended in the source (`cordwood spark-writes`): a copy has what they have
        appended, and not the files with which it is taken back.
        """

def copy(
    source: FilePath,
    destination: FilePath,
    *,
    start_offset: int | None = None,
    end_offset: int | None = None,
    start_time: Time | None = None,
    end_time: Time | None = None,
    on_damage: Literal["raise", "skip", "report"] = "raise",
    hard_links: bool = False,
    topics: Sequence[str] | None = None,
    progress: Callable[[int, int], object] | None = None,
    tz: Zone | None = None,
    max_batch_bytes: int = 134217728,
) -> CopyReport:
    """Copy a partition, a range of it, or the partitions of a data directory.

    Batches are copied as they are: bytes, offsets, timestamps, leader epochs, producer ids, transactions, compression.
    Whole segments keep their names. Indexes, producer snapshots, leader epochs, topic id and log start offset are
    copied or made, so that Kafka opens the copy without recovery; that the cleaner had cleaned the source is noted in
    the copy, where missing offsets then are not a gap. With a whole metadata log of a cluster also its
    snapshots and `quorum-state`. The checksum of each batch is verified, and what was written is read back from the
    disk and compared. Positions (`Log.position`) are not copied: they say what has been done with the source.

    The source may be in use. The copy of a partition has the state in which this call opened the partition: what is
    appended later is not in it, and any other change is a `LogChangedError`. After that error, call again: what was
    copied is used.

    A copy that was interrupted is not a log: `LogWriter` does not open it, and readers and Kafka find no segment in it
    before the last step, which renames its complete files. The same call continues it; with another range it is a
    `ConfigError`. A relative time such as `"-2h"` is another range at each call. If the copy is complete, the call
    compares it with the source and changes nothing.

    `source` is a partition directory or a data directory; nothing in it is changed. `destination` does not exist or is
    empty; its parent exists. Without `start_offset` (inclusive) all segments are copied, with the records below the log
    start offset; `end_offset` is exclusive. With `start_time` (inclusive) or `end_time` (exclusive) all batches from
    the first to the last one with a record in that range are copied (`tz`: the time zone of texts without one); with
    `end_time` the source is read to its end, because late records belong to the range. A transaction whose marker is
    after the range is open in the copy.

    With `on_damage="skip"` (or `"report"`) damage is left out and listed in `damaged_ranges`; otherwise it is an error.

    With `hard_links=True` sealed segments that are copied whole become hard links to the files of the source, where the
    file system allows it; the last segment of the copy does not, because a writer appends to it. That saves time and
    space but is not a backup: a truncation changes a file in place, and so does a broker that recovers a log, and both
    directories have the change.

    `topics`: names or globs; only these topics of a data directory. Its checkpoints have the lines of the partitions.
    Each partition is copied in the state in which it was opened. `progress` is called for each MiB and at the end, with
    the bytes read so far and the bytes of the segments to copy.

    `max_batch_bytes` as in `Log`.

    *Errors*: `ConfigError` for a destination that contains anything else, in which nothing is created or changed, or
    that is inside the source; `LockedError` if a writer or a broker uses the destination; `OffsetOutOfRangeError`.

    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> report = cw.copy("tests/golden/01-plain/orders-0", f"{folder.name}/orders-0", start_offset=500)
    >>> report.start_offset <= 500, report.end_offset
    (True, 1500)
    >>> cw.Log(report.path).log_end_offset
    1500
    """
