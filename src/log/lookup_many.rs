//! Many look-ups at once: the answers of [`Log::locate`] and [`Log::offset_for_time`], from tables of the segments that
//! are asked much.

use std::hint::black_box;

use super::Log;
use super::lookup::or_nothing;
use crate::error::Result;
use crate::segment::{Bucket, Buckets, OffsetLookups, Placed, Segment, TimeLookups};
use crate::types::{Location, TimestampOffset};

/// How many look-ups are under way side by side: the memory that they touch is cold, and waiting for it is most of the time.
const GROUP: usize = 64;

/// Which part of the log a look-up goes to, and where in that part's table if there was one when the group began.
type Step<P> = (usize, Option<P>);

/// No part has that number.
const NOWHERE: usize = usize::MAX;

impl Log {
    /// [`Log::locate`] for many offsets, in their order; `None` also where `locate` would say that the offset is out of
    /// range or the log damaged there.
    ///
    /// *Cost*: single look-ups at first. A segment that was asked about as much as a walk over its headers costs is then
    /// walked once, and its batches are kept in memory, 21 bytes for each, and no more than 64 MiB in a log with all that
    /// [`Log::offsets_for_times`] keeps; what is asked of it from then on costs a few nanoseconds. Refreshed logs share
    /// the tables of what is unchanged. A segment with damage keeps single look-ups.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io), [`Error::LogChanged`](crate::Error::LogChanged),
    /// [`Error::Interrupted`](crate::Error::Interrupted).
    pub fn locate_many(&self, offsets: &[i64]) -> Result<Vec<Option<Location>>> {
        let mut answers = Vec::with_capacity(offsets.len());
        self.locate_each(offsets, |answer| answers.push(answer))?;
        Ok(answers)
    }

    /// [`Log::locate_many`], one answer after another.
    pub(crate) fn locate_each(&self, offsets: &[i64], mut give: impl FnMut(Option<Location>)) -> Result<()> {
        let (first, end) = self.asked(offsets)?;
        let segments: Vec<_> = self.segments().between(first, end).collect();
        let bases: Vec<i64> = segments.iter().map(|segment| segment.base_offset()).collect();
        let mut parts: Vec<_> = segments.into_iter().map(|segment| OffsetLookups::new(segment)).collect();
        let base = |place: usize| bases.get(place).copied().unwrap_or(i64::MAX);
        let Some(buckets) = Buckets::new(bases.iter().copied()) else { return Ok(()) };
        // the batch of the answer before: sorted offsets mostly lie in it
        let mut run = Placed::NOWHERE;
        for group in offsets.chunks(GROUP) {
            self.options().interrupt.check()?;
            let mut steps: [Step<Bucket>; GROUP] = [(NOWHERE, None); GROUP];
            for ((part, bucket), offset) in steps.iter_mut().zip(group) {
                if (first..end).contains(offset) {
                    // the floor: one below the first base offset above
                    *part = buckets.find(offset + 1, base).wrapping_sub(1);
                    *bucket = parts.get(*part).and_then(|part| part.bucket(*offset));
                }
            }
            touch(&steps, |part, bucket| parts.get(part).map_or(0, |part| part.touch(bucket)));
            for ((part, bucket), offset) in steps.iter().copied().zip(group.iter().copied()) {
                let answer = match parts.get_mut(part) {
                    None => None,
                    Some(_) if run.holds(offset) => Some(run.location),
                    Some(part) => match part.find(offset, bucket)? {
                        None => or_nothing(self.locate(offset))?,
                        Some(found) => {
                            run = found;
                            Some(run.location)
                        }
                    },
                };
                // in one place, so that it is compiled into the loop
                give(answer);
            }
        }
        Ok(())
    }

    /// The range of the log in which all of the offsets lie that lie in the log at all.
    fn asked(&self, offsets: &[i64]) -> Result<(i64, i64)> {
        let least = offsets.iter().copied().min().unwrap_or(0).max(self.log_start_offset());
        let greatest = offsets.iter().copied().max().unwrap_or(0);
        let is_below = greatest < self.last_base_offset();
        let end =
            if is_below { greatest + 1 } else { self.log_end_offset()?.min(greatest.saturating_add(1)) };
        Ok((least.min(end), end))
    }

    /// [`Log::offset_for_time`] for many timestamps, in their order; `None` also where that would be an error of the
    /// timestamp or of the log's bytes.
    ///
    /// *Cost*: single look-ups at first. A segment that was asked about as much as it costs to read it is then read once,
    /// and of its records those that are later than all before them are kept in memory, 4 to 10 bytes for each (up to 42
    /// where times or offsets leap), and no more than 64 MiB in a log with all that [`Log::locate_many`] keeps; what is
    /// asked of it from then on costs tens of nanoseconds. Refreshed logs share the tables of what is unchanged. A segment
    /// with damage, and one whose table finds no room, keeps single look-ups.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io), [`Error::LogChanged`](crate::Error::LogChanged),
    /// [`Error::Interrupted`](crate::Error::Interrupted).
    pub fn offsets_for_times(&self, timestamps: &[i64]) -> Result<Vec<Option<TimestampOffset>>> {
        let mut answers = Vec::with_capacity(timestamps.len());
        self.time_each(timestamps, |answer| answers.push(answer))?;
        Ok(answers)
    }

    /// [`Log::offsets_for_times`], one answer after another.
    pub(crate) fn time_each(
        &self,
        timestamps: &[i64],
        mut give: impl FnMut(Option<TimestampOffset>),
    ) -> Result<()> {
        let start = self.log_start_offset();
        let mut parts = TimeParts::new(self);
        for group in timestamps.chunks(GROUP) {
            self.options().interrupt.check()?;
            let mut steps: [Step<usize>; GROUP] = [(NOWHERE, None); GROUP];
            for ((part, place), timestamp) in steps.iter_mut().zip(group) {
                if *timestamp >= 0 {
                    *part = parts.reaching(*timestamp)?;
                    *place = parts.get(*part).and_then(|lookups| lookups.place(*timestamp));
                }
            }
            touch(&steps, |part, place| parts.get(part).map_or(0, |lookups| lookups.touch(place)));
            for ((part, place), timestamp) in steps.iter().copied().zip(group.iter().copied()) {
                let answer = match parts.parts.get_mut(part) {
                    None => None,
                    Some(of_segment) => {
                        let found = of_segment.lookups.find(timestamp, place)?;
                        match found.filter(|found| found.offset >= start) {
                            None => or_nothing(self.offset_for_time(timestamp))?,
                            found => {
                                if !of_segment.is_gap_checked {
                                    parts.check_gap(self, part)?;
                                }
                                found
                            }
                        }
                    }
                };
                give(answer);
            }
        }
        Ok(())
    }
}

/// Loads what the look-ups of a group will want, so that the misses of all of them overlap: none waits for another here.
#[inline]
fn touch<P: Copy>(steps: &[Step<P>; GROUP], load: impl Fn(usize, P) -> u32) {
    let loaded = |all, (part, place): &Step<P>| all ^ place.map_or(0, |place| load(*part, place));
    black_box(steps.iter().fold(0, loaded));
}

/// The segments that times are looked up in, as far as they were looked at.
struct TimeParts<'a> {
    segments: Box<dyn Iterator<Item = &'a Segment> + 'a>,
    parts: Vec<TimePart<'a>>,
    /// The largest timestamp up to each part, which rises.
    largest: Vec<i64>,
    /// Damage hides the largest timestamp of the segment after them: later times have no answer.
    ends_in_damage: bool,
}

struct TimePart<'a> {
    segment: &'a Segment,
    lookups: TimeLookups<'a>,
    /// Whether the offsets between the segment before and this one were compared.
    is_gap_checked: bool,
}

impl<'a> TimeParts<'a> {
    fn new(log: &'a Log) -> Self {
        let segments = log.segments().between(log.log_start_offset(), i64::MAX).map(AsRef::as_ref);
        Self { segments: Box::new(segments), parts: Vec::new(), largest: Vec::new(), ends_in_damage: false }
    }

    /// The first part whose largest timestamp reaches a time; none has that place where none does.
    #[inline]
    fn reaching(&mut self, timestamp: i64) -> Result<usize> {
        if self.largest.last().is_none_or(|largest| *largest < timestamp) {
            self.go_on(timestamp)?;
        }
        Ok(self.largest.partition_point(|largest| *largest < timestamp))
    }

    #[inline]
    fn get(&self, part: usize) -> Option<&TimeLookups<'a>> {
        self.parts.get(part).map(|part| &part.lookups)
    }

    /// [`Log::check_gap`] between the segment before a part and its own.
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
    fn go_on(&mut self, timestamp: i64) -> Result<()> {
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
