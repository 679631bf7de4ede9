//! Many look-ups at once, with the results of [`Log::locate`] and [`Log::offset_for_time`]. Segments with
//! many look-ups get a table.

use std::hint::black_box;

use super::Log;
use super::largest_times::KnownTimes;
use super::lookup::none_if_invalid;
use crate::error::Result;
use crate::segment::{Bucket, Buckets, FoundBatch, OffsetLookups, TimeLookups};
use crate::types::{Location, TimestampOffset};

/// The number of interleaved look-ups. The memory that they read is not cached, and most of the time is spent
/// waiting for it.
const GROUP: usize = 64;

/// The part of the log in which a look-up searches, and the place in that part's table, if there was a table
/// when the group began.
type Step<P> = (usize, Option<P>);

/// The number for a target that belongs to no part.
const NO_PART: usize = usize::MAX;

impl Log {
    /// [`Log::locate`] for many offsets, in their order; `None` also if `locate` would return an error
    /// because the offset is out of range or the log is damaged there.
    ///
    /// *Cost*: single look-ups at first. When the look-ups in a segment have cost about as much as a walk
    /// over its headers, it is walked once and its batches are kept in memory, 21 bytes for each; later
    /// look-ups there cost a few nanoseconds. Together with the tables of [`Log::offsets_for_times`], a
    /// log uses at most 64 MiB. Refreshed logs share the tables of unchanged segments. A segment with
    /// damage keeps single look-ups.
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
        // tables answer without reading the log
        self.check_unchanged()?;
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
                        None => none_if_invalid(self.walk_to_location(offset))?,
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

    /// [`Log::offset_for_time`] for many timestamps, in their order; `None` also if that would return an
    /// error because of the timestamp or damage.
    ///
    /// *Cost*: single look-ups at first. When the look-ups in a segment have cost about as much as reading
    /// it, it is read once, and those of its records that are later than all before them are kept in
    /// memory, 4 to 10 bytes for each (up to 42 if times or offsets jump); later look-ups there cost tens
    /// of nanoseconds. Together with the tables of [`Log::locate_many`], a log uses at most 64 MiB.
    /// Refreshed logs share the tables of unchanged segments. A segment with damage, and one whose table
    /// does not fit, keeps single look-ups.
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
        let mut parts = TimeParts::new(self, timestamps)?;
        for group in timestamps.chunks(GROUP) {
            self.options().interrupt.check()?;
            let mut steps: [Step<usize>; GROUP] = [(NO_PART, None); GROUP];
            for ((part, place), timestamp) in steps.iter_mut().zip(group) {
                if *timestamp >= 0 {
                    *part = parts.largest.first_reaching(*timestamp);
                    *place = parts.get_or_add(*part).and_then(|part| part.lookups.place(*timestamp));
                }
            }
            prefetch(&steps, |part, place| parts.get(part).map_or(0, |part| part.lookups.prefetch(place)));
            for ((part, place), timestamp) in steps.iter().copied().zip(group.iter().copied()) {
                let result = match parts.parts.get_mut(part).and_then(Option::as_mut) {
                    None => None,
                    Some(of_segment) => {
                        let found = of_segment.lookups.find(timestamp, place)?;
                        match found.filter(|found| found.offset >= start) {
                            None => none_if_invalid(self.walk_to_time(of_segment.index, timestamp))?,
                            found => {
                                if !of_segment.is_gap_checked {
                                    self.check_gap_before(of_segment.index)?;
                                    of_segment.is_gap_checked = true;
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

/// Reads the memory that the look-ups of a group need, so that their cache misses overlap: no load depends on
/// another.
#[inline]
fn prefetch<P: Copy>(steps: &[Step<P>; GROUP], load: impl Fn(usize, P) -> u32) {
    let loaded = |all, (part, place): &Step<P>| all ^ place.map_or(0, |place| load(*part, place));
    black_box(steps.iter().fold(0, loaded));
}

/// The segments in which the times of a call are looked up.
struct TimeParts<'a> {
    log: &'a Log,
    /// The largest timestamp up to each of them.
    largest: KnownTimes<'a>,
    /// Added when first needed.
    parts: Vec<Option<TimePart<'a>>>,
}

struct TimePart<'a> {
    /// The index of the segment.
    index: usize,
    lookups: TimeLookups<'a>,
    /// Whether the gap between the segment before and this one was checked.
    is_gap_checked: bool,
}

impl<'a> TimeParts<'a> {
    fn new(log: &'a Log, timestamps: &[i64]) -> Result<Self> {
        let (mut min, mut max) = (i64::MAX, -1);
        for timestamp in timestamps.iter().copied().filter(|timestamp| *timestamp >= 0) {
            (min, max) = (min.min(timestamp), max.max(timestamp));
        }
        if max < 0 {
            return Ok(Self { log, largest: log.known_times().range(0, 0), parts: Vec::new() });
        }
        match log.extend_times(max) {
            // damage hides the largest timestamp of a segment: later times have no result
            Err(error) if !error.is_damage() => return Err(error),
            _ => {}
        }
        let known = log.known_times();
        let largest = known.range(known.first_reaching(min), known.first_reaching(max) + 1);
        // tables answer without reading the log
        log.check_unchanged()?;
        Ok(Self { log, largest, parts: (0..largest.len()).map(|_| None).collect() })
    }

    #[inline]
    fn get(&self, part: usize) -> Option<&TimePart<'a>> {
        self.parts.get(part)?.as_ref()
    }

    #[inline]
    fn get_or_add(&mut self, part: usize) -> Option<&TimePart<'a>> {
        if matches!(self.parts.get(part), Some(None)) {
            self.add(part);
        }
        self.get(part)
    }

    #[cold]
    fn add(&mut self, part: usize) {
        let index = self.largest.first + part;
        if let Some(slot) = self.parts.get_mut(part)
            && let Some(segment) = self.log.segments().get(index)
        {
            *slot = Some(TimePart { index, lookups: TimeLookups::new(segment), is_gap_checked: false });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::LogOptions;
    use super::*;

    #[test]
    fn look_ups_without_memory_for_tables_find_the_same_and_tables_are_built_once_there_is_memory() {
        let open = || Log::open("tests/golden/01-plain/orders-0", LogOptions::default()).unwrap();
        let log = open();
        let offsets: Vec<i64> = (log.log_start_offset()..log.log_end_offset().unwrap()).collect();
        let located: Vec<_> = offsets.iter().map(|offset| open().locate(*offset).unwrap()).collect();
        let largest =
            log.segments().iter().map(|segment| segment.largest_timestamp().unwrap()).max().unwrap();
        let targets: Vec<i64> = (largest - 200..largest + 2).collect();
        let timed: Vec<_> = targets.iter().map(|time| open().offset_for_time(*time).unwrap()).collect();
        let tables = &log.inner.open_files.tables;
        let first = log.segments().first().unwrap();
        let mut all = tables.take(tables.left());
        // a table is tried, refused, tried again, and built in the last turn
        for turn in 0..3 {
            if turn == 2 {
                drop(all.take());
            }
            assert_eq!(log.locate_many(&offsets).unwrap(), located);
            assert_eq!(log.offsets_for_times(&targets).unwrap(), timed);
            for (offset, located) in offsets.iter().zip(&located) {
                assert_eq!(log.locate(*offset).unwrap(), *located);
            }
            assert_eq!(first.known_batch(first.base_offset()).is_some(), turn == 2);
            assert_eq!(tables.left() > 0, turn == 2);
        }
        assert_eq!(log.warnings(), [""; 0]);
    }
}
