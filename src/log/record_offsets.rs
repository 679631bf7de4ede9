//! The offset of a record, and the offset at which it counts in ranges.

use crate::record::BatchHeader;

/// The offset of a record and the last offset of its batch, which can be lower: some old clients wrote such
/// batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RecordOffsets {
    pub(crate) offset: i64,
    pub(crate) last_of_batch: i64,
}

impl RecordOffsets {
    pub(in crate::log) fn new(offset: i64, header: &BatchHeader) -> Self {
        Self { offset, last_of_batch: header.last_offset }
    }

    /// The offset at which the record counts in a range: at most the last of its batch. So every record is in
    /// exactly one of two adjacent ranges, and one that begins there begins with the batch with which a
    /// fetch does.
    #[inline]
    pub(in crate::log) fn in_ranges(self) -> i64 {
        self.offset.min(self.last_of_batch)
    }

    pub(in crate::log) fn is_above_batch(self) -> bool {
        self.offset > self.last_of_batch
    }
}
