"""Offsets that lie between two segments, where no segment has them: lost data, unless the log is compacted.

In a log of Kafka's that is not compacted a segment begins where the one before ended. Whether a topic is compacted is
not on disk, because its settings are not. So it is decided by, in this order:

1. the option `cleanupPolicy`, `delete` or `compact` (also `compact,delete`): Kafka's `cleanup.policy` of the topic;
2. what the files show: `Log.is_compacted`.

Without any of these a log counts as not compacted: an error that names the option is better than rows that are missing.
"""

import cordwood as cw
from cordwood.spark.options import SparkLogOptions

__all__ = ["gap_in_words", "is_compacted", "offsets_in_gaps"]


def is_compacted(log: cw.Log, options: SparkLogOptions) -> bool:
    """Say whether offsets may be missing from a log because it is compacted."""
    if options.cleanup_policy is not None:
        return options.cleanup_policy == "compact"
    return log.is_compacted


def offsets_in_gaps(log: cw.Log, start_offset: int, end_offset: int) -> int:
    """Count the offsets of a range that lie between segments."""
    return sum(gap.end_offset - gap.start_offset for gap in log.offset_gaps(start_offset, end_offset))


def gap_in_words(gap: cw.OffsetGap) -> str:
    """Say what is missing, and where."""
    count = gap.end_offset - gap.start_offset
    missing = f"{count} offset{'' if count == 1 else 's'}, {gap.start_offset} to {gap.end_offset - 1}"
    return f"{missing}, missing between segment {gap.segment_base_offset} and segment {gap.next_base_offset}"
