//! Gaps in offsets between two segments, or within one: lost data, unless the log is compacted.
//!
//! In a Kafka log that is not compacted, a batch begins where the previous one ended. Whether it is compacted
//! is decided, in this order, by:
//!
//! 1. the option `cleanupPolicy`, `delete` or `compact` (also `compact,delete`): Kafka's `cleanup.policy` of
//!    the topic;
//! 2. the metadata of the data directory, and what the files show: [`Log::is_compacted`].
//!
//! Otherwise the log is treated as not compacted: an error that names the option is better than missing rows.

use std::ops::Range;

use super::error::{Code, PlanError};
use super::options::SourceOptions;
use crate::Result;
use crate::log::{Log, LostGap, OffsetGap};

/// Whether offsets may be missing from a log because it is compacted.
pub(crate) fn is_compacted(log: &Log, options: &SourceOptions) -> Result<bool> {
    options.is_compacted.map_or_else(|| log.is_compacted(), Ok)
}

/// The number of offsets of a range that are in gaps between segments.
pub(crate) fn offsets_in_gaps(log: &Log, offsets: Range<i64>) -> Result<u64> {
    Ok(log.offset_gaps(offsets)?.iter().map(|gap| gap.end_offset.abs_diff(gap.start_offset)).sum())
}

/// The error for batches that were lost within a segment.
pub(crate) fn within_segment(gap: &LostGap) -> PlanError {
    let reason = format!("expected batches without a gap in a log that is not compacted, found {gap}");
    PlanError { position: Some(gap.position), ..PlanError::new(Code::SegmentGone, reason) }.in_file(&gap.file)
}

/// The error for offsets that are in no segment.
pub(crate) fn between_segments(gap: &OffsetGap) -> PlanError {
    let OffsetGap { start_offset, end_offset, segment_base_offset, next_base_offset } = gap;
    let count = end_offset.abs_diff(*start_offset);
    let plural = if count == 1 { "" } else { "s" };
    let last = end_offset - 1;
    let reason = format!(
        "expected segments without a gap in a log that is not compacted, found {count} offset{plural}, {start_offset} to {last}, \
         missing between segment {segment_base_offset} and segment {next_base_offset}"
    );
    PlanError::new(Code::SegmentGone, reason).in_segment(*segment_base_offset)
}
