//! Many look-ups at once, with the results of [`Log::locate`] and [`Log::offset_for_time`]. Segments with many look-ups
//! get a table.

use std::hint::black_box;

use super::Log;
use super::lookup::none_if_invalid;
use crate::error::Result;
use crate::segment::{Bucket, Buckets, FoundBatch, OffsetLookups, Segment, TimeLookups};
use crate::types::{Location, TimestampOffset};

/// The number of interleaved look-ups. The memory that they read is not cached, and most of the time is spent waiting
/// for it.
const GROUP: usize = 64;

/// The part of the log in which a look-up searches, and the place in that part's table, if there was a table when the
/// group began.
type Step<P> = (usize, Option<P>);

/// The number for a target that belongs to no part.
const NO_PART: usize = usize::MAX;

impl Log {
    /// [`Log::locate`] for many offsets, in their order; `None` also if `locate` would return an error because the offset
    /// is out of range or the log is damaged there.
    ///
    /// *Cost*: single look-ups at first. When the look-ups in a segment have cost about as much as a walk over its headers,
    /// it is walked once and its batches are kept in memory, 21 bytes for each; later look-ups there cost a few
    /// nanoseconds. Together with the tables of [`Log::offsets_for_times`], a log uses at most 64 MiB. Refreshed logs share
    /// the tables of unchanged segments. A segment with damage keeps single look-ups.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io), [`Error::LogChanged`](crate::Error::LogChanged),
    /// [`Error::Interrupted`](crate::Error::Interrupted).
    pub fn locate_many(&self, offsets: &[i64]) -> Result<Vec<Option<Location>>> {
        let mut results = Vec::with_capacity(offsets.len());
        self.locate_each(offsets, |result| results.push(result))?;
        Ok(results)
    }

    /// [`Log::locate_many`] that passes each result to `visit`.
    pub(crate) fn locate_each(&self, offsets: &[i64], mut visit: impl FnMut(Option<Location>)) -> Result<()> {
        let (first, end) = self.range_of(offsets)?;
        let segments: Vec<_> = self.segments().between(first, end).collect();
        let bases: Vec<i64> = segments.iter().map(|segment| segment.base_offset()).collect();
        let mut parts: Vec<_> = segments.into_iter().map(|segment| OffsetLookups::new(segment)).collect();
        let base = |place: usize| bases.get(place).copied().unwrap_or(i64::MAX);
        let Some(buckets) = Buckets::new(bases.iter().copied()) else { return Ok(()) };
        // the batch of the previous result: sorted offsets mostly lie in it
        let mut previous = FoundBatch::NONE;
        for group in offsets.chunks(GROUP) {
            self.options().interrupt.check()?;
            let mut steps: [Step<Bucket>; GROUP] = [(NO_PART, None); GROUP];
            for ((part, bucket), offset) in steps.iter_mut().zip(group) {
                if (first..end).contains(offset) {
                    // the floor: one before the first base offset above the offset
                    *part = buckets.find(offset + 1, base).wrapping_sub(1);
                    *bucket = parts.get(*part).and_then(|part| part.bucket(*offset));
                }
            }
            prefetch(&steps, |part, bucket| parts.get(part).map_or(0, |part| part.prefetch(bucket)));
            for ((part, bucket), offset) in steps.iter().copied().zip(group.iter().copied()) {
                let result = match parts.get_mut(part) {
                    None => None,
                    Some(_) if previous.covers(offset) => Some(previous.location),
                    Some(part) => match part.find(offset, bucket)? {
                        None => none_if_invalid(self.locate(offset))?,
                        Some(found) => {
                            previous = found;
                            Some(previous.location)
                        }
                    },
                };
                // a single call, so that it is inlined into the loop
                visit(result);
            }
        }
        Ok(())
    }

    /// The smallest range of the log that contains all offsets inside the log.
    fn range_of(&self, offsets: &[i64]) -> Result<(i64, i64)> {
        let min = offsets.iter().copied().min().unwrap_or(0).max(self.log_start_offset());
        let max = offsets.iter().copied().max().unwrap_or(0);
        let is_below = max < self.last_base_offset();
        let end = if is_below { max + 1 } else { self.log_end_offset()?.min(max.saturating_add(1)) };
        Ok((min.min(end), end))
    }

    /// [`Log::offset_for_time`] for many timestamps, in their order; `None` also if that would return an error because of
    /// the timestamp or damage.
    ///
    /// *Cost*: single look-ups at first. When the look-ups in a segment have cost about as much as reading it, it is read
    /// once, and those of its records that are later than all before them are kept in memory, 4 to 10 bytes for each (up to
    /// 42 if times or offsets jump); later look-ups there cost tens of nanoseconds. Together with the tables of
    /// [`Log::locate_many`], a log uses at most 64 MiB. Refreshed logs share the tables of unchanged segments. A segment
    /// with damage, and one whose table does not fit, keeps single look-ups.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io), [`Error::LogChanged`](crate::Error::LogChanged),
    /// [`Error::Interrupted`](crate::Error::Interrupted).
    pub fn offsets_for_times(&self, timestamps: &[i64]) -> Result<Vec<Option<TimestampOffset>>> {
        let mut results = Vec::with_capacity(timestamps.len());
        self.time_each(timestamps, |result| results.push(result))?;
        Ok(results)
    }

    /// [`Log::offsets_for_times`] that passes each result to `visit`.
    pub(crate) fn time_each(
        &self,
        timestamps: &[i64],
        mut visit: impl FnMut(Option<TimestampOffset>),
    ) -> Result<()> {
        let start = self.log_start_offset();
        let mut parts = TimeParts::new(self);
        for group in timestamps.chunks(GROUP) {
            self.options().interrupt.check()?;
            let mut steps: [Step<usize>; GROUP] = [(NO_PART, None); GROUP];
            for ((part, place), timestamp) in steps.iter_mut().zip(group) {
                if *timestamp >= 0 {
                    *part = parts.first_reaching(*timestamp)?;
                    *place = parts.get(*part).and_then(|lookups| lookups.place(*timestamp));
                }
            }
            prefetch(&steps, |part, place| parts.get(part).map_or(0, |lookups| lookups.prefetch(place)));
            for ((part, place), timestamp) in steps.iter().copied().zip(group.iter().copied()) {
                let result = match parts.parts.get_mut(part) {
                    None => None,
                    Some(of_segment) => {
                        let found = of_segment.lookups.find(timestamp, place)?;
                        match found.filter(|found| found.offset >= start) {
                            None => none_if_invalid(self.offset_for_time(timestamp))?,
                            found => {
                                if !of_segment.is_gap_checked {
                                    parts.check_gap(self, part)?;
                                }
                                found
                            }
                        }
                    }
                };
                visit(result);
            }
        }
        Ok(())
    }
}

/// Reads the memory that the look-ups of a group need, so that their cache misses overlap: no load depends on another.
#[inline]
fn prefetch<P: Copy>(steps: &[Step<P>; GROUP], load: impl Fn(usize, P) -> u32) {
    let loaded = |all, (part, place): &Step<P>| all ^ place.map_or(0, |place| load(*part, place));
    black_box(steps.iter().fold(0, loaded));
}

/// The segments in which times are looked up, added when first needed.
struct TimeParts<'a> {
    segments: Box<dyn Iterator<Item = &'a Segment> + 'a>,
    parts: Vec<TimePart<'a>>,
    /// The largest timestamp up to each part, in ascending order.
    largest: Vec<i64>,
    /// Whether damage hides the largest timestamp of the segment after these: later times have no result.
    ends_in_damage: bool,
}

struct TimePart<'a> {
    segment: &'a Segment,
    lookups: TimeLookups<'a>,
    /// Whether the gap between the segment before and this one was checked.
    is_gap_checked: bool,
}

impl<'a> TimeParts<'a> {
    fn new(log: &'a Log) -> Self {
        let segments = log.segments().between(log.log_start_offset(), i64::MAX).map(AsRef::as_ref);
        Self { segments: Box::new(segments), parts: Vec::new(), largest: Vec::new(), ends_in_damage: false }
    }

    /// The first part whose largest timestamp is at or above a time; the number of parts if there is none.
    #[inline]
    fn first_reaching(&mut self, timestamp: i64) -> Result<usize> {
        if self.largest.last().is_none_or(|largest| *largest < timestamp) {
            self.add_parts(timestamp)?;
        }
        Ok(self.largest.partition_point(|largest| *largest < timestamp))
    }

    #[inline]
    fn get(&self, part: usize) -> Option<&TimeLookups<'a>> {
        self.parts.get(part).map(|part| &part.lookups)
    }

    /// [`Log::check_gap`] between the segment before a part and that part's segment.
    #[cold]
    fn check_gap(&mut self, log: &Log, part: usize) -> Result<()> {
        let before = part.checked_sub(1).and_then(|before| self.parts.get(before)).map(|part| part.segment);
        if let Some(part) = self.parts.get_mut(part) {
            if let Some(before) = before {
                log.check_gap(before, before.end_offset()?, part.segment)?;
            }
            part.is_gap_checked = true;
        }
        Ok(())
    }

    #[cold]
    fn add_parts(&mut self, timestamp: i64) -> Result<()> {
        while !self.ends_in_damage && self.largest.last().is_none_or(|largest| *largest < timestamp) {
            let Some(segment) = self.segments.next() else { break };
            match segment.largest_record_timestamp() {
                Ok(largest) => {
                    self.largest.push(self.largest.last().map_or(largest, |before| largest.max(*before)));
                    let lookups = TimeLookups::new(segment);
                    self.parts.push(TimePart { segment, lookups, is_gap_checked: false });
                }
                Err(error) if error.is_damage() => self.ends_in_damage = true,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
