//! Offsets that are missing between two batches of a segment, and that nothing explains.

use std::fmt;
use std::path::PathBuf;

use crate::segment::{Batch, Segment};
use crate::types::{is_or_are, offsets_in_words};

/// Batches that were lost within a segment: neither compaction nor damage nor a truncation explains the
/// missing offsets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LostGap {
    /// The `.log`.
    pub(crate) file: PathBuf,
    /// The position of the batch after the gap, bytes.
    pub(crate) position: u64,
    /// The first missing offset.
    start_offset: i64,
    /// Exclusive.
    end_offset: i64,
}

impl LostGap {
    /// The gap from an offset to a batch of a segment.
    pub(super) fn before(batch: &Batch, segment: &Segment, start_offset: i64) -> Self {
        Self {
            file: segment.path().clone(),
            position: batch.position,
            start_offset,
            end_offset: batch.header.base_offset,
        }
    }
}

impl fmt::Display for LostGap {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, position, start_offset, end_offset } = self;
        let offsets = offsets_in_words(*start_offset, Some(*end_offset));
        let verb = is_or_are(*start_offset, *end_offset);
        write!(formatter, "{}: {offsets} {verb} missing before position {position}", file.display())
    }
}
