"""What compaction does: `Compaction`, `CompactedSegment`."""

from typing import Literal, final

from cordwood._stubs.arguments import Settings, Time, Zone
from cordwood._stubs.log import Log

@final
class Compaction:
    """What a compaction has done, or would do."""

    @property
    def state(self) -> Literal["dirty", "overdue", "below_ratio", "clean"]:
        """Whether a compaction is due, and why.

        Due: `dirty` (the dirty ratio is above `min.cleanable.dirty.ratio`) or `overdue` (a cleanable segment begins
        with a record older than `max.compaction.lag.ms`). Not due: `below_ratio`, or `clean` (nothing can be cleaned
        that was not cleaned before).
        """
    @property
    def is_due(self) -> bool:
        """Whether a pass was made, or would be made."""
    @property
    def first_dirty_offset(self) -> int:
        """The first offset that was not cleaned before (inclusive)."""
    @property
    def first_uncleanable_offset(self) -> int:
        """The end of what can be cleaned: the base offset of a segment (exclusive)."""
    @property
    def bound(self) -> Literal["active_segment", "open_transaction", "young_records"]:
        """Why the segment at `first_uncleanable_offset` cannot be cleaned.

        `active_segment`: it is the last one. `open_transaction`: it has records of a transaction without a marker.
        `young_records`: it has a record younger than `min.compaction.lag.ms`.
        """
    @property
    def clean_bytes(self) -> int:
        """The size of the segments below `first_dirty_offset`, in bytes."""
    @property
    def cleanable_bytes(self) -> int:
        """The size of the segments from there to `first_uncleanable_offset`, in bytes."""
    @property
    def dirty_ratio(self) -> float:
        """`cleanable_bytes` as a part of the clean and the cleanable bytes, from 0 to 1."""
    @property
    def end_offset(self) -> int:
        """The first dirty offset after the pass. Below `first_uncleanable_offset` if the memory was too small."""
    @property
    def is_complete(self) -> bool:
        """Whether all that can be cleaned is clean after the pass."""
    @property
    def keys(self) -> int:
        """The number of different keys in the dirty records that the pass read."""
    @property
    def segments(self) -> list[CompactedSegment]:
        """The segments that the pass read, oldest first; none if no pass is due."""

@final
class CompactedSegment:
    """A segment that a compaction reads."""

    @property
    def base_offset(self) -> int:
        """The base offset of the segment."""
    @property
    def new_base_offset(self) -> int:
        """The base offset of the segment that has its records afterwards."""
    @property
    def bytes_before(self) -> int:
        """The size of its `.log` file, in bytes."""
    @property
    def bytes_after(self) -> int:
        """The size of its batches that remain, in bytes."""
    @property
    def records_before(self) -> int:
        """The number of its records, control records included."""
    @property
    def records_after(self) -> int:
        """The number of its records that remain."""

def plan_compaction(
    log: Log,
    config: Settings | None = None,
    now: Time | None = None,
    dedupe_buffer_bytes: int | None = None,
    threads: int = 1,
    *,
    tz: Zone | None = None,
) -> Compaction:
    """Return what `LogWriter.compact` would do to a log with these settings. Nothing is changed.

    The arguments are as for `LogWriter.compact`. *config*: by default as for `LogWriter`, but `cleanup.policy` must be
    given. Batches are rebuilt, and not written, so the sizes are the ones that the log would have. Producers whose last
    batch is older than a day count as expired.

    *Errors*: as for `LogWriter.compact`; `RecordTooLargeError` if that splits a segment first.
    *Source*: Kafka `LogCleanerManager.grabFilthiestCompactedLog`.

    >>> log = cw.Log("tests/golden/12-compacted/profiles-0")
    >>> plan = cw.plan_compaction(log, cw.LogConfig(cleanup_policy="compact"), now="2024-01-01")
    >>> (plan.state, plan.dirty_ratio, plan.bound, plan.end_offset)
    ('dirty', 1.0, 'active_segment', 3181)
    """
