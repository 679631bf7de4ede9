//! The segment of a time: the first one with a timestamp at or above it.
//!
//! Timestamps may decrease from one segment to the next, so Kafka asks every segment. The largest timestamp
//! *up to* each segment never decreases: the first segment in which it reaches a time is the first one that
//! itself has a timestamp at or above that time. A log keeps these maxima, as far as look-ups have needed
//! them, and searches them.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};

use super::{Log, Segments};
use crate::error::Result;

/// The largest timestamp up to each segment of a log. Each value is computed once.
#[derive(Debug, Default)]
pub(super) struct LargestTimes(OnceLock<Maxima>);

#[derive(Debug)]
struct Maxima {
    /// The index of the first segment: that of the log start offset.
    first: usize,
    /// For each segment from `first` on. All threads that compute a value compute the same.
    values: Box<[AtomicI64]>,
    /// The number of values that were computed: what is below it never changes.
    known: AtomicUsize,
}

/// The maxima that are known: of the segments from index `first` on, in ascending order.
#[derive(Debug, Clone, Copy)]
pub(super) struct KnownTimes<'a> {
    pub(super) first: usize,
    values: &'a [AtomicI64],
}

impl KnownTimes<'_> {
    /// The number of segments.
    pub(super) fn len(self) -> usize {
        self.values.len()
    }

    /// Those from place `start` to `end`, half-open, or to the last one.
    pub(super) fn range(self, start: usize, end: usize) -> Self {
        let end = end.min(self.values.len());
        Self { first: self.first + start, values: self.values.get(start..end).unwrap_or_default() }
    }

    /// The place of the first segment with a timestamp at or above a time; their number if there is none
    /// among them.
    #[inline]
    pub(super) fn first_reaching(self, timestamp: i64) -> usize {
        self.values.partition_point(|largest| largest.load(Ordering::Relaxed) < timestamp)
    }
}

impl LargestTimes {
    /// The maxima that were computed so far.
    #[inline]
    pub(super) fn known(&self) -> KnownTimes<'_> {
        let Some(maxima) = self.0.get() else { return KnownTimes { first: 0, values: &[] } };
        let known = maxima.known.load(Ordering::Acquire);
        KnownTimes { first: maxima.first, values: maxima.values.get(..known).unwrap_or_default() }
    }

    /// Computes the maxima up to the first that is at or above a time, or to the last one.
    ///
    /// An error for the largest timestamp of a segment ends them before that segment.
    fn extend(&self, segments: &Segments, log_start_offset: i64, timestamp: i64) -> Result<()> {
        let maxima = if let Some(maxima) = self.0.get() {
            maxima
        } else {
            // allocated first: another thread would wait while the cell is initialized
            let first = segments.index_of_floor(log_start_offset);
            let values = (first..segments.len()).map(|_| AtomicI64::new(i64::MAX)).collect();
            let maxima = Maxima { first, values, known: AtomicUsize::new(0) };
            self.0.get_or_init(|| maxima)
        };
        let mut known = self.known().len();
        let before = known.checked_sub(1).and_then(|last| maxima.values.get(last));
        let mut largest = before.map_or(i64::MIN, |largest| largest.load(Ordering::Relaxed));
        let rest = maxima.values.get(known..).unwrap_or_default();
        for (value, segment) in rest.iter().zip(segments.skip_to(maxima.first + known)) {
            if largest >= timestamp {
                break;
            }
            largest = largest.max(segment.largest_record_timestamp()?);
            value.store(largest, Ordering::Relaxed);
            known += 1;
            // the release makes the value visible with the count; another thread may have published more
            maxima.known.fetch_max(known, Ordering::Release);
        }
        Ok(())
    }
}

impl Log {
    /// The index of the first segment, from that of the log start offset on, whose batch headers have a
    /// timestamp at or above a time; `None` if there is none.
    ///
    /// *Cost*: a binary search; reads the end of each segment up to the result once per log.
    ///
    /// # Errors
    /// As [`Segment::largest_record_timestamp`](crate::segment::Segment::largest_record_timestamp), of a
    /// segment before the result.
    pub(super) fn segment_of_time(&self, timestamp: i64) -> Result<Option<usize>> {
        let find = || {
            let known = self.known_times();
            let place = known.first_reaching(timestamp);
            (place < known.len()).then_some(known.first + place)
        };
        if let Some(index) = find() {
            return Ok(Some(index));
        }
        self.extend_times(timestamp)?;
        Ok(find())
    }

    /// The maxima that were computed so far.
    #[inline]
    pub(super) fn known_times(&self) -> KnownTimes<'_> {
        self.inner.largest_times.known()
    }

    /// Computes the maxima up to the segment of a time. The error is that of [`Log::segment_of_time`].
    pub(super) fn extend_times(&self, timestamp: i64) -> Result<()> {
        self.inner.largest_times.extend(self.segments(), self.log_start_offset(), timestamp)
    }
}
