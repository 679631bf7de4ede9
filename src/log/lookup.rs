//! Look-ups by offset and by time. Kafka: `UnifiedLog.read` up to its first batch, `UnifiedLog.fetchOffsetByTimestamp`.

use super::Log;
use crate::error::{Error, Result};
use crate::segment::Found;
use crate::types::{Location, TimestampOffset};

impl Log {
    /// The batch that contains `offset`; in a gap (compaction) the next batch. `None` if no batch follows.
    ///
    /// *Cost*: an index search and the headers of one index interval.
    ///
    /// # Errors
    /// [`Error::OffsetOutOfRange`] outside `log_start_offset..log_end_offset`; [`Error::Corrupt`] if the result depends on
    /// a damaged batch; [`Error::Io`], [`Error::LogChanged`].
    ///
    /// *Source*: `LogSegment.translateOffset`, from the floor segment upwards.
    pub fn locate(&self, offset: i64) -> Result<Option<Location>> {
        if offset < self.log_start_offset() || !self.is_below_end(offset)? {
            return Err(self.out_of_range(offset));
        }
        let mut segment = self.segments().floor(offset);
        while let Some(current) = segment {
            if let Found::Batch(batch) = current.find_offset(offset)? {
                return Ok(Some(Location {
                    segment_base_offset: current.base_offset(),
                    batch_base_offset: batch.header.base_offset,
                    position: batch.position,
                    size: batch.header.size,
                }));
            }
            segment = self.segments().higher(current.base_offset());
            if let Some(next) = segment {
                self.check_gap(current, current.end_offset()?, next)?;
            }
        }
        Ok(None)
    }

    /// The first record at or above the log start offset whose timestamp is at or above `timestamp` (ms since the epoch);
    /// `None` if no record has one. Timestamps need not be in order. Control records are included.
    ///
    /// *Cost*: skips segments by their time index, which is confirmed once; then two index searches and a walk. Finds the
    /// end of the segment before the result's once.
    ///
    /// # Errors
    /// [`Error::Config`] for a negative timestamp; [`Error::Corrupt`] if the result depends on a damaged batch;
    /// [`Error::Io`], [`Error::LogChanged`].
    ///
    /// *Source*: `UnifiedLog.fetchOffsetByTimestamp`; the same result whenever that finds one.
    pub fn offset_for_time(&self, timestamp: i64) -> Result<Option<TimestampOffset>> {
        if timestamp < 0 {
            return Err(Error::config(
                "timestamp",
                "milliseconds since the epoch, 0 or more",
                timestamp.to_string(),
            ));
        }
        let start = self.log_start_offset();
        let mut before = None;
        for segment in self.segments().between(start, i64::MAX) {
            let earlier = before.replace(segment);
            if segment.largest_record_timestamp()? < timestamp {
                continue;
            }
            if let Some(found) = segment.find_time(timestamp, start.max(segment.base_offset()))? {
                if let Some(earlier) = earlier {
                    self.check_gap(earlier, earlier.end_offset()?, segment)?;
                }
                return Ok(Some(found));
            }
        }
        Ok(None)
    }
}

/// The result of one of many look-ups: an invalid argument and damage become `None`.
pub(super) fn none_if_invalid<T>(result: Result<Option<T>>) -> Result<Option<T>> {
    match result {
        Err(Error::OffsetOutOfRange { .. } | Error::Config { .. }) => Ok(None),
        Err(error) if error.is_damage() => Ok(None),
        result => result,
    }
}
