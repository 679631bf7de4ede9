//! The part of a query's ranges that its filters leave.

use super::bounds::Bounds;
use super::directory::PartitionDirectory;
use super::filter::Filter;
use crate::log::RecordFilter;

/// What remains of each partition: half-open ranges of offsets and times, and a choice of partitions. The default is everything.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Restriction {
    /// The first offset, inclusive.
    pub(crate) start_offset: Option<i64>,
    /// Exclusive.
    pub(crate) end_offset: Option<i64>,
    /// Milliseconds since the epoch, inclusive. Records without a time are outside.
    pub(crate) start_time: Option<i64>,
    /// Milliseconds since the epoch, exclusive; only with `start_time`.
    pub(crate) end_time: Option<i64>,
    /// Conditions on topic and partition.
    pub(crate) of_directories: Vec<Filter>,
}

impl Restriction {
    /// Whether records of a partition can remain.
    pub(crate) fn includes(&self, directory: &PartitionDirectory) -> bool {
        self.of_directories.iter().all(|filter| filter.includes(directory))
    }

    /// The test of records by their offsets; `None` if all pass. A range has a record that is above the last offset of its batch at
    /// that offset, and a filter of an engine has it where it is.
    pub(crate) fn of_records(&self) -> Option<RecordFilter> {
        let (start, end) = (self.start_offset, self.end_offset);
        let accepts = move |offset: i64| {
            start.is_none_or(|start| offset >= start) && end.is_none_or(|end| offset < end)
        };
        (start.is_some() || end.is_some())
            .then(|| RecordFilter::by_offsets(move |offsets, _, _| accepts(offsets.offset)))
    }

    /// The part of a range that remains; empty if nothing does.
    pub(crate) fn narrowed(&self, bounds: Bounds) -> Bounds {
        let (low, high) = (bounds.start_offset, bounds.end_offset);
        let start_offset = self.start_offset.map_or(low, |start| start.clamp(low, high));
        let end_offset = self.end_offset.map_or(high, |end| end.clamp(start_offset, high));
        // damage that begins before the start is outside
        let continues = bounds.continues || start_offset > low;
        Bounds { start_offset, end_offset, continues, ..bounds }
    }
}
