//! The part of a query's ranges that its filters leave.

use super::bounds::Bounds;
use super::directory::PartitionDirectory;
use super::error::{PlanError, Result};
use super::filter::Filter;
use crate::log::{Log, RecordOffsetRange};

/// What remains of each partition: half-open ranges of offsets and times, and a choice of partitions. The
/// default is everything.
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

    /// The offsets of the records that remain.
    pub(crate) fn record_offsets(&self) -> RecordOffsetRange {
        let all = RecordOffsetRange::default();
        RecordOffsetRange {
            start: self.start_offset.unwrap_or(all.start),
            end: self.end_offset.unwrap_or(all.end),
        }
    }

    /// The part of a range of a log that has all records that remain; empty if none do. It may begin before
    /// them: see [`Log::start_of_records`].
    ///
    /// # Errors
    /// Those of reading the log.
    pub(crate) fn narrowed(&self, bounds: Bounds, log: &Log) -> Result<Bounds> {
        let (low, high) = (bounds.start_offset, bounds.end_offset);
        let end_offset = self.end_offset.map_or(high, |end| end.clamp(low, high));
        let start_offset = match self.start_offset {
            None => low,
            Some(start) => log
                .start_of_records(start, low..end_offset)
                .map_err(|error| PlanError::of(error).in_log(&bounds.directory))?,
        };
        // damage that begins before the start is outside
        let continues = bounds.continues || start_offset > low;
        Ok(Bounds { start_offset, end_offset, continues, ..bounds })
    }
}
