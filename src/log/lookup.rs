//! Where an offset or a time lies. Kafka: `UnifiedLog.read` up to its first batch, `UnifiedLog.fetchOffsetByTimestamp`.

use super::Log;
use crate::error::{Error, Result};
use crate::segment::Found;
use crate::types::{Location, TimestampOffset};

impl Log {
    /// The batch that holds `offset`; in a gap (compaction) the next batch. `None` where nothing follows.
    ///
    /// *Cost*: an index search and the headers of one index interval.
    ///
    /// # Errors
    /// [`Error::OffsetOutOfRange`] outside `log_start_offset..log_end_offset`; [`Error::Corrupt`] where the answer would
    /// rest on a damaged batch; [`Error::Io`], [`Error::LogChanged`].
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

    /// The first record at or above the log start offset whose timestamp is at or above `timestamp` (ms since the epoch),
    /// whatever the order of times; control records count. `None` where there is none.
    ///
    /// *Cost*: segments are passed over by their time index, confirmed once; then two index searches and a walk; and once,
    /// the end of the segment before the answer's.
    ///
    /// # Errors
    /// [`Error::Config`] for a negative timestamp; [`Error::Corrupt`] where the answer would rest on a damaged batch;
    /// [`Error::Io`], [`Error::LogChanged`].
    ///
    /// *Source*: `UnifiedLog.fetchOffsetByTimestamp`; the same answer wherever that finds one.
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

/// The answer of one of many look-ups, where an error of the question or of the log's bytes is none.
pub(super) fn or_nothing<T>(answer: Result<Option<T>>) -> Result<Option<T>> {
    match answer {
        Err(Error::OffsetOutOfRange { .. } | Error::Config { .. }) => Ok(None),
        Err(error) if error.is_damage() => Ok(None),
        answer => answer,
    }
}
