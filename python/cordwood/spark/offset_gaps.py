"""Gaps in offsets between two segments: lost data, unless the log is compacted.

In a Kafka log that is not compacted, a segment begins where the previous one ended. A topic's settings are not on disk,
so the files do not say whether it is compacted. It is decided, in this order, by:

1. the option `cleanupPolicy`, `delete` or `compact` (also `compact,delete`): Kafka's `cleanup.policy` of the topic;
2. what the files show: `Log.is_compacted`.

Otherwise the log is treated as not compacted: an error that names the option is better than missing rows.
"""

import cordwood as cw
from cordwood.spark.options import SparkLogOptions

__all__ = ["gap_in_words", "is_compacted", "offsets_in_gaps"]


def is_compacted(log: cw.Log, options: SparkLogOptions) -> bool:
    """Whether offsets may be missing from a log because it is compacted."""
    if options.cleanup_policy is not None:
        return options.cleanup_policy == "compact"
    return log.is_compacted


def offsets_in_gaps(log: cw.Log, start_offset: int, end_offset: int) -> int:
    """Count the offsets of a range that are in gaps between segments."""
    return sum(gap.end_offset - gap.start_offset for gap in log.offset_gaps(start_offset, end_offset))


def gap_in_words(gap: cw.OffsetGap) -> str:
    """Describe a gap for a message."""
    count = gap.end_offset - gap.start_offset
    missing = f"{count} offset{'' if count == 1 else 's'}, {gap.start_offset} to {gap.end_offset - 1}"
    return f"{missing}, missing between segment {gap.segment_base_offset} and segment {gap.next_base_offset}"
