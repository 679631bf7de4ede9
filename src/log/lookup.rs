//! Look-ups by offset and by time. Kafka: `UnifiedLog.read` up to its first batch,
//! `UnifiedLog.fetchOffsetByTimestamp`.

use super::Log;
use crate::error::{Error, Result};
use crate::segment::Found;
use crate::types::{Location, TimestampOffset};

impl Log {
    /// The batch that contains `offset`; in a gap (compaction) the next batch. `None` if no batch follows.
    ///
    /// *Cost*: an index search, the headers of one index interval, and, once for each batch, its checksum. A
    /// segment with many look-ups gets the table of [`Log::locate_many`]; a look-up there costs tens of
    /// nanoseconds and reads nothing. If a `LogWriter` had opened the log before, it also checks by a
    /// system call that the log was not truncated. A `LogWriter` that opens the log later is noticed by
    /// the next call that reads the log; until then such look-ups return what the log was when it was
    /// opened.
    ///
    /// # Errors
    /// [`Error::OffsetOutOfRange`] outside `log_start_offset..log_end_offset`; [`Error::Corrupt`] if the
    /// result depends on a damaged batch; [`Error::Io`], [`Error::LogChanged`].
    ///
    /// *Source*: `LogSegment.translateOffset`, from the floor segment upwards.
    #[inline]
    pub fn locate(&self, offset: i64) -> Result<Option<Location>> {
        match self.known_location(offset) {
            Some(location) => Ok(Some(location)),
            None => self.find_location(offset),
        }
    }

    /// The result of [`Log::locate`] if it is in memory and no system call is needed to return it.
    #[inline]
    #[doc(hidden)]
    pub fn known_location(&self, offset: i64) -> Option<Location> {
        let segment = self.segments().floor(offset)?;
        // a table has no batch at or above the end of the log, which the first look-up in the last segment
        // finds
        if offset < self.log_start_offset() || segment.is_last() && !self.is_end_known() {
            return None;
        }
        segment.known_batch(offset).map(|found| found.location)
    }

    fn find_location(&self, offset: i64) -> Result<Option<Location>> {
        if offset < self.log_start_offset() || !self.is_below_end(offset)? {
            self.check_unchanged()?;
            if offset >= self.log_start_offset() {
                self.refuse_uncertain_end()?;
            }
            return Err(self.out_of_range(offset));
        }
        if let Some(segment) = self.segments().floor(offset)
            && let Some(found) = segment.find_in_batch_table(offset)?
        {
            return Ok(Some(found.location));
        }
        self.walk_to_location(offset)
    }

    /// [`Log::locate`] without a table, for an offset inside the log.
    pub(super) fn walk_to_location(&self, offset: i64) -> Result<Option<Location>> {
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

    /// The first record at or above the log start offset whose timestamp is at or above `timestamp` (ms since
    /// the epoch); `None` if no record has one. Timestamps need not be in order. Control records are
    /// included. A batch whose header has an earlier largest timestamp is passed over, as in Kafka, also
    /// a wrapper of v0, which has none.
    ///
    /// *Cost*: a binary search for the segment (the first call reads the end of each segment before it), two
    /// index searches and a walk. Finds the end of the segment before the result's once. A segment with
    /// many look-ups gets the table of [`Log::offsets_for_times`]; a look-up there costs tens of
    /// nanoseconds and reads nothing, but for the check of [`Log::locate`].
    ///
    /// # Errors
    /// [`Error::Config`] for a negative timestamp; [`Error::Corrupt`] if the result depends on a damaged
    /// batch; [`Error::Io`], [`Error::LogChanged`].
    ///
    /// *Source*: `UnifiedLog.fetchOffsetByTimestamp`; the same result whenever that finds one.
    pub fn offset_for_time(&self, timestamp: i64) -> Result<Option<TimestampOffset>> {
        let found = self.first_from(timestamp)?;
        if found.is_none() {
            self.refuse_uncertain_end()?;
        }
        Ok(found)
    }

    /// [`Log::offset_for_time`] that ignores what may follow the end.
    pub(crate) fn first_from(&self, timestamp: i64) -> Result<Option<TimestampOffset>> {
        self.known_time(timestamp).map_or_else(|| self.find_time(timestamp), |found| Ok(Some(found)))
    }

    /// The result of [`Log::offset_for_time`] if it is in memory and no system call is needed to return it.
    #[doc(hidden)]
    pub fn known_time(&self, timestamp: i64) -> Option<TimestampOffset> {
        if timestamp < 0 {
            return None;
        }
        let known = self.known_times();
        let place = known.first_reaching(timestamp);
        let segment = self.segments().get(known.first + place).filter(|_| place < known.len())?;
        let found =
            segment.known_record(timestamp).filter(|found| found.offset >= self.log_start_offset())?;
        let is_gap_possible = || {
            let before = self.segments().get(known.first + place - 1);
            let end = before.and_then(|before| before.known_end());
            end.is_none_or(|end| end < segment.base_offset() && !self.is_gap_checked(segment))
        };
        if place > 0 && is_gap_possible() { None } else { Some(found) }
    }

    fn find_time(&self, timestamp: i64) -> Result<Option<TimestampOffset>> {
        if timestamp < 0 {
            return Err(Error::config(
                "timestamp",
                "milliseconds since the epoch, 0 or more",
                timestamp.to_string(),
            ));
        }
        let Some(index) = self.segment_of_time(timestamp)? else {
            self.check_unchanged()?;
            return Ok(None);
        };
        if let Some(segment) = self.segments().get(index)
            && let Some(found) = segment.find_in_time_table(timestamp)?
            && found.offset >= self.log_start_offset()
        {
            self.check_gap_before(index)?;
            return Ok(Some(found));
        }
        self.walk_to_time(index, timestamp)
    }

    /// [`Log::offset_for_time`] without a table. `index`: that of the first segment that has such a
    /// timestamp.
    pub(super) fn walk_to_time(&self, index: usize, timestamp: i64) -> Result<Option<TimestampOffset>> {
        let start = self.log_start_offset();
        for (index, segment) in (index..).zip(self.segments().skip_to(index)) {
            if segment.largest_record_timestamp()? < timestamp {
                continue;
            }
            if let Some(found) = segment.find_time(timestamp, start.max(segment.base_offset()))? {
                self.check_gap_before(index)?;
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// [`Log::check_gap`] between the segment at an index and the one before it, unless that is below the log
    /// start offset.
    pub(super) fn check_gap_before(&self, index: usize) -> Result<()> {
        let before = index.checked_sub(1).and_then(|before| self.segments().get(before));
        if let Some(before) = before
            && let Some(segment) = self.segments().get(index)
            && before.upper() > self.log_start_offset()
        {
            self.check_gap(before, before.end_offset()?, segment)?;
        }
        Ok(())
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

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::log::{Log, LogOptions};

    #[test]
    fn a_time_after_a_gap_is_known_once_the_gap_was_checked() {
        let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
        // the second one is in the cleaner's checkpoint
        for partition in ["12-compacted/profiles-0", "16-data-dir/rivers.compact-0"] {
            let log = Log::open(golden.join(partition), LogOptions::default()).unwrap();
            let gaps = log.offset_gaps(0..i64::MAX).unwrap();
            assert!(!gaps.is_empty(), "{partition}");
            let mut after_gaps = 0;
            for index in 1..log.segments().len() {
                let segment = log.segments().get(index).unwrap();
                let is_after_gap = gaps.iter().any(|gap| gap.next_base_offset == segment.base_offset());
                let time = segment.largest_record_timestamp().unwrap();
                if !is_after_gap || log.segment_of_time(time).unwrap() != Some(index) {
                    continue;
                }
                assert_eq!(log.known_time(time), None);
                let found = log.offset_for_time(time).unwrap();
                for _ in 0..20 {
                    assert_eq!(log.offset_for_time(time).unwrap(), found);
                }
                assert_eq!(log.known_time(time), found);
                after_gaps += 1;
            }
            assert!(after_gaps > 0, "{partition}");
        }
    }
}
