//! A comparison of a segment's time index with all of its batches.
//!
//! A look-up that uses an entry compares it with the batches back to those of the preceding entry. Only a
//! pass over all batches detects several wrong entries in a row, each with the timestamp of a batch that is
//! not the largest so far.

use std::iter::Peekable;
use std::sync::Arc;
use std::vec::IntoIter;

use super::Segment;
use super::entry_match::time_entry_follows;
use crate::error::{Error, Result};
use crate::index::TimeIndex;
use crate::record::BatchHeader;
use crate::types::TimestampOffset;

/// Warns of the first entry of a time index whose timestamp is not the largest one of the batches up to its
/// offset.
#[derive(Debug)]
pub(super) struct TimeIndexCheck<'a> {
    segment: &'a Segment,
    index: Arc<TimeIndex>,
    entries: Peekable<IntoIter<TimestampOffset>>,
    previous: TimestampOffset,
    /// The largest timestamp of the batches so far.
    largest: i64,
}

impl<'a> TimeIndexCheck<'a> {
    /// The number of entries that are compared: more than Kafka's own indexes have by default, in 16 MiB.
    const MAX: usize = 1 << 20;

    /// Reads the entries up to the first one out of order; `None` without a time index.
    pub(super) fn new(segment: &'a Segment) -> Result<Option<Self>> {
        let Some(index) = segment.or_warn(segment.time_index()) else { return Ok(None) };
        let before_first = TimestampOffset { timestamp: -1, offset: segment.base_offset };
        let (mut entries, mut previous) = (Vec::new(), before_first);
        let read = index.visit(|entry| {
            segment.open_files.interrupt.check()?;
            entries.push(entry);
            let is_in_order = time_entry_follows(entry, previous);
            previous = entry;
            Ok(is_in_order && entries.len() < Self::MAX)
        });
        if let Err(interrupted @ Error::Interrupted(_)) = read {
            return Err(interrupted);
        }
        segment.or_warn(read.map(Some));
        let entries = entries.into_iter().peekable();
        Ok(Some(Self { segment, index, entries, previous: before_first, largest: -1 }))
    }

    /// Compares the entries up to the end of the next batch of the segment.
    pub(super) fn add(&mut self, header: &BatchHeader) {
        self.largest = self.largest.max(header.max_timestamp);
        while let Some(entry) = self.entries.next_if(|entry| entry.offset <= header.last_offset) {
            if entry.timestamp != self.largest || !time_entry_follows(entry, self.previous) {
                self.segment.warn_of_time_entry(&self.index, entry);
                self.entries = Vec::new().into_iter().peekable();
            }
            self.previous = entry;
        }
    }

    /// Ends after the last batch. The entries after it belong to batches that were appended after the log was
    /// opened, if the segment is the last one.
    pub(super) fn finish(mut self) {
        if let Some(entry) = self.entries.next()
            && !self.segment.is_last()
        {
            self.segment.warn_of_time_entry(&self.index, entry);
        }
    }
}
