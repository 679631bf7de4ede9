//! Ranges of a log, half-open in offsets and in time.

use crate::error::{Error, Result};
use crate::log::Log;

/// A range of a log, half-open in offsets and in time. A record must be in both.
///
/// A batch of an old client can have records above its last offset. In a range of offsets they count as at
/// that offset, as in a fetch request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ranges {
    /// Inclusive; `None` is the log start offset.
    pub start_offset: Option<i64>,
    /// Exclusive; `None` is the log end offset. A higher offset is clipped to it.
    pub end_offset: Option<i64>,
    /// Milliseconds since the epoch, inclusive. A record without a timestamp is outside every time range.
    pub start_time: Option<i64>,
    /// Milliseconds since the epoch, exclusive.
    pub end_time: Option<i64>,
}

/// A half-open range of the offsets of records; the default has all. A record above the last offset of its
/// batch is in it by its own offset, unlike in [`Ranges`], which determine what is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordOffsetRange {
    /// Inclusive.
    pub start: i64,
    /// Exclusive.
    pub end: i64,
}

impl Default for RecordOffsetRange {
    fn default() -> Self {
        Self { start: i64::MIN, end: i64::MAX }
    }
}

impl RecordOffsetRange {
    #[inline]
    pub(super) fn contains(self, offset: i64) -> bool {
        (self.start..self.end).contains(&offset)
    }
}

impl Ranges {
    /// The intersection of two ranges.
    #[must_use]
    pub fn intersection(self, other: Self) -> Self {
        let later = |a: Option<i64>, b: Option<i64>| a.max(b);
        let earlier = |a: Option<i64>, b: Option<i64>| match (a, b) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        let start_offset = later(self.start_offset, other.start_offset);
        let start_time = later(self.start_time, other.start_time);
        // the intersection of disjoint ranges is empty, which is not an error
        let not_before =
            |end: Option<i64>, start: Option<i64>| end.map(|end| start.map_or(end, |start| end.max(start)));
        Self {
            start_offset,
            end_offset: not_before(earlier(self.end_offset, other.end_offset), start_offset),
            start_time,
            end_time: not_before(earlier(self.end_time, other.end_time), start_time),
        }
    }

    pub(super) fn has_times(&self) -> bool {
        self.start_time.is_some() || self.end_time.is_some()
    }

    pub(super) fn contains_time(&self, timestamp: i64) -> bool {
        !self.has_times()
            || timestamp != -1
                && self.start_time.is_none_or(|start| timestamp >= start)
                && self.end_time.is_none_or(|end| timestamp < end)
    }
}

impl Log {
    /// Checks a range, as [`Log::scan`] does.
    ///
    /// # Errors
    /// Those of [`Log::scan`] about the range.
    pub fn check(&self, ranges: &Ranges) -> Result<()> {
        self.resolve(ranges).map(|_| ())
    }

    /// The offsets of a range: `start..end`, clipped at the end.
    pub(in crate::log) fn resolve(&self, ranges: &Ranges) -> Result<(i64, i64)> {
        let start = ranges.start_offset.unwrap_or(self.log_start_offset());
        if start < self.log_start_offset()
            || start > self.last_base_offset() && start > self.log_end_offset()?
        {
            return Err(self.out_of_range(start));
        }
        // without an explicit start, an end below the log start is an empty range, not an error
        let lowest_end = if ranges.start_offset.is_some() { start } else { 0 };
        for (name, low, high) in [
            ("end_offset", Some(lowest_end), ranges.end_offset),
            ("start_time", Some(0), ranges.start_time),
            ("end_time", ranges.start_time.or(Some(0)), ranges.end_time),
        ] {
            if let (Some(low), Some(high)) = (low, high)
                && high < low
            {
                return Err(Error::config(name, format!("{low} or more"), high.to_string()));
            }
        }
        let end = ranges.end_offset.unwrap_or(i64::MAX);
        let end = if end <= self.last_base_offset() { end } else { end.min(self.log_end_offset()?) };
        Ok((start, end))
    }
}
