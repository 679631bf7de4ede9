"""The files that are derived from `.log` files: `rebuild_indexes` and its report."""

from collections.abc import Iterable
from typing import Literal, final

from cordwood._stubs.arguments import FilePath, Settings

@final
class RebuildReport:
    """How the derived files of a partition differ from those that its `.log` files give, from `rebuild_indexes`."""

    @property
    def path(self) -> str:
        """The absolute path of the partition directory."""
    @property
    def is_clean(self) -> bool:
        """Whether no file differs."""
    @property
    def dry_run(self) -> bool:
        """Whether files were only compared, and nothing was changed."""
    @property
    def index_interval_bytes(self) -> int:
        """The `index.interval.bytes` of the rebuilt indexes."""
    @property
    def interval_source(self) -> Literal["given", "topic", "inferred", "default"]:
        """Where the interval is from.

        The settings, the topic's in the metadata, the existing offset indexes, or Kafka's default.
        """
    @property
    def log_end_offset(self) -> int:
        """The offset after the last batch of the log."""
    @property
    def files(self) -> list[DerivedFile]:
        """Every derived file, by name: also those that do not differ."""

@final
class DerivedFile:
    """A file that is derived from a `.log`, and how it differs from the one that the `.log` gives."""

    @property
    def file(self) -> str:
        """The path of the file."""
    @property
    def reason(self) -> Literal["unchanged", "missing", "untrimmed", "differs", "expired", "damaged", "stray"]:
        """Whether and how the file differs.

        - `unchanged`: it does not.
        - `missing`: there is no file.
        - `untrimmed`: an index that begins with the right entries and is longer, as while a broker runs.
        - `differs`: the file is valid by itself, and its contents are others.
        - `expired`: a snapshot without producers that a broker forgets because they were idle
          (`producer.id.expiration.ms`). This is usual.
        - `damaged`: the file is not valid by itself: its size, its checksum or its entries.
        - `stray`: a snapshot that cannot exist: its offset is inside a batch, below the first segment, or above the end
          of the log.
        """
    @property
    def old_size(self) -> int | None:
        """The size before, in bytes; `None` if there was no file."""
    @property
    def new_size(self) -> int | None:
        """The size after the rebuild, in bytes; `None` if the file is removed."""
    @property
    def first_difference(self) -> int | None:
        """The position of the first byte that differs, or the size of the shorter file if the other continues it.

        `None` if nothing differs, or if one of the two files does not exist.
        """
    @property
    def quarantine(self) -> str | None:
        """The path of the copy of the old file; `None` in a dry run, and if it has only zeros or there was none."""

def rebuild_indexes(
    path: FilePath,
    *,
    config: Settings | None = None,
    dry_run: bool = True,
    segments: Iterable[int] | None = None,
    threads: int = 1,
    max_batch_bytes: int = 134217728,
) -> RebuildReport:
    """Compute `.index`, `.timeindex`, `.txnindex` and `.snapshot` from the `.log` files. Return how the files differ.

    The contents are byte for byte the same as after Kafka's recovery; a snapshot has the same entries, by ascending
    producer id. A dry run compares them with the files and changes nothing. With `dry_run=False` the files that differ
    are replaced: all segments are read first, the old bytes are kept in `quarantine/`, and a file is replaced as a
    whole, so that the call can be repeated after a crash. `.log` files are never changed.

    The entries of an index depend on `index.interval.bytes`. Give the settings of the topic with *config*. If it does
    not state the interval, that is the topic's in the metadata of the data directory, the one that the existing offset
    indexes of the newest 256 MiB show, or Kafka's default of 4096.
    Indexes are written without preallocated space, also for the last segment: a writer extends them when it opens the
    log.

    *segments*: base offsets of the segments whose files are compared and replaced; by default all. *threads*: how many
    segments are read at the same time. `max_batch_bytes` as in `Log`: the offsets of a compressed batch of v0 or v1 are
    in its records; no other is decompressed.

    The state of producers before the first segment is taken from the snapshot with its base offset, if that is valid,
    because the records before it are gone. In a compacted log, and after producers expired, snapshots of a broker
    differ, because they are from before. Missing snapshots without a producer are not reported in a log that only a
    `LogWriter` has written: it writes none.

    *Cost*: every batch is read and its checksum verified, up to the last of *segments*. With several threads, the
    headers of segments with producers are read twice.
    *Errors*: `CorruptLogError` for a damaged `.log`; then nothing is changed, and `cordwood repair` shows what can be
    saved. Bytes after the last whole batch of the last segment are not damage. `UnsupportedFormatError` for a segment
    that recovery would split, and after an interrupted compaction. `LockedError` if a writer or a broker holds the log,
    unless it is a dry run. `BatchTooLargeError`, `LogNotFoundError`.
    *Source*: Kafka `LogSegment.recover`, `ProducerStateManager.takeSnapshot`.

    >>> report = cw.rebuild_indexes("tests/golden/14-killed/crashed-0")
    >>> report.index_interval_bytes, report.interval_source
    (1024, 'inferred')
    >>> from pathlib import Path
    >>> [(Path(file.file).name, file.reason) for file in report.files if file.reason != "unchanged"][0]
    ('00000000000000000673.index', 'untrimmed')
    """
