//! The offset index and the time index of a segment of a copy, made while its batches are copied.
//!
//! The settings of a topic are not on disk, so the entries stay where the source has them. Where the source
//! has none, because its index is missing, damaged, or ends early, an entry is due by Kafka's default
//! interval or by the longest distance between the entries so far. So the index of a whole segment has the
//! bytes of an intact index of the source.
//!
//! A time index entry is due with each of these, as in Kafka since 4.0. Older brokers wrote other entries: an
//! intact time index of a whole segment is copied as it is.

use std::sync::Arc;

use crate::error::Result;
use crate::index::due_entries::DueEntries;
use crate::index::{Entry, OffsetIndex, TimeIndex};
use crate::record::BatchHeader;
use crate::segment::{OffsetMatch, Segment, is_relative, is_time_of};
use crate::types::{OffsetPosition, TimestampOffset};

/// `index.interval.bytes`, its default.
const INTERVAL_BYTES: u64 = 4096;

/// The entries of the source's offset index, in their order.
#[derive(Debug)]
struct SourceEntries {
    index: Arc<OffsetIndex>,
    next: u64,
}

impl SourceEntries {
    /// The offset in the entry of a batch, if the batch has one. `Err`: no entry follows, or the next one
    /// points into a batch.
    fn offset_of(&mut self, position: u64, header: &BatchHeader) -> Result<Option<i64>, ()> {
        if self.next >= self.index.entries() {
            return Err(());
        }
        let entry = self.index.entry(self.next).map_err(drop)?;
        let at = u64::try_from(entry.position).map_err(drop)?;
        if at > position {
            return Ok(None);
        }
        let is_of_batch = at == position && OffsetMatch::of(entry.offset, header).is_in_batch();
        self.next += 1;
        if is_of_batch { Ok(Some(entry.offset)) } else { Err(()) }
    }
}

/// The source's time index, whose entries are compared with the batches.
#[derive(Debug)]
struct SourceTimes {
    index: Arc<TimeIndex>,
    next: u64,
}

impl SourceTimes {
    /// Compares the entries whose offset is in a batch. `largest`: the largest timestamp up to the batch.
    /// False if one is wrong.
    fn confirms(&mut self, header: &BatchHeader, largest: i64) -> bool {
        while self.next < self.index.entries() {
            let Ok(entry) = self.index.entry(self.next) else { return false };
            if entry.offset > header.last_offset {
                return true;
            }
            if !is_time_of(entry, header) || entry.timestamp != largest {
                return false;
            }
            self.next += 1;
        }
        true
    }

    /// The bytes of the index, if it is complete.
    fn bytes(&self, base_offset: i64, largest: i64) -> Option<Vec<u8>> {
        let last = if self.index.entries() > 0 { self.index.last_entry().timestamp } else { -1 };
        if self.next < self.index.entries() || last != largest {
            return None;
        }
        let entries = (0..self.index.entries()).map(|slot| self.index.entry(slot)?.encode(base_offset));
        entries.collect::<Result<Vec<_>>>().ok().map(|entries| entries.concat())
    }
}

/// The indexes of a segment.
#[derive(Debug)]
pub(super) struct IndexMaker {
    base_offset: i64,
    /// `None` once they are used up or contradict the log.
    source: Option<SourceEntries>,
    /// `None` once one of them is wrong, and for a part of a segment.
    source_times: Option<SourceTimes>,
    due_entries: DueEntries,
    /// The longest distance between two entries, bytes.
    interval_bytes: u64,
    /// The position of the last entry's batch.
    last_position: u64,
    last_timestamp: i64,
    offset_index: Vec<u8>,
    time_index: Vec<u8>,
}

impl IndexMaker {
    /// For the batches of a source segment from a position on, which become a segment with this base offset.
    pub(super) fn new(segment: &Segment, start: u64, base_offset: i64) -> Self {
        let source = segment.or_warn(segment.offset_index()).map(|index| {
            let is_before = |entry: OffsetPosition| u64::try_from(entry.position).is_ok_and(|at| at < start);
            let mut next = 0;
            while next < index.entries() && start > 0 && index.entry(next).is_ok_and(is_before) {
                next += 1;
            }
            SourceEntries { index, next }
        });
        Self {
            base_offset,
            source,
            source_times: segment
                .or_warn(segment.time_index())
                .filter(|_| start == 0)
                .map(|index| SourceTimes { index, next: 0 }),
            due_entries: DueEntries::new(
                INTERVAL_BYTES,
                TimestampOffset { timestamp: -1, offset: base_offset },
            ),
            interval_bytes: INTERVAL_BYTES,
            last_position: 0,
            last_timestamp: -1,
            offset_index: Vec::new(),
            time_index: Vec::new(),
        }
    }

    /// Adds the next batch: its position in the source and in the copy.
    pub(super) fn add(&mut self, header: &BatchHeader, source_position: u64, position: u64) -> Result<()> {
        let is_due = self.due_entries.is_due_for(header);
        let largest = self.due_entries.largest().timestamp;
        self.source_times.take_if(|times| !times.confirms(header, largest));
        let mut offset = None;
        if let Some(source) = &mut self.source {
            match source.offset_of(source_position, header) {
                Ok(found) => offset = found,
                Err(()) => self.source = None,
            }
        }
        if self.source.is_none() && is_due {
            offset = Some(header.last_offset);
        }
        match offset.filter(|offset| position > 0 && is_relative(*offset, self.base_offset)) {
            Some(offset) => self.add_entry(header, offset, position),
            None => Ok(()),
        }
    }

    fn add_entry(&mut self, header: &BatchHeader, offset: i64, position: u64) -> Result<()> {
        let Ok(small) = i32::try_from(position) else { return Ok(()) };
        self.offset_index.extend(OffsetPosition { offset, position: small }.encode(self.base_offset)?);
        self.interval_bytes = self.interval_bytes.max(position - self.last_position);
        self.last_position = position;
        let mut due_entries = DueEntries::new(self.interval_bytes, self.due_entries.largest());
        // the distance to the next entry counts from this batch
        due_entries.is_due_for(header);
        self.due_entries = due_entries;
        self.add_time_entry()
    }

    /// Adds the largest timestamp if it has grown since the last entry.
    fn add_time_entry(&mut self) -> Result<()> {
        let largest = self.due_entries.largest();
        if largest.timestamp > self.last_timestamp && is_relative(largest.offset, self.base_offset) {
            self.time_index.extend(largest.encode(self.base_offset)?);
            self.last_timestamp = largest.timestamp;
        }
        Ok(())
    }

    /// The bytes of the offset index and of the time index, with the entry that closes a segment.
    pub(super) fn finish(mut self) -> Result<[Vec<u8>; 2]> {
        self.add_time_entry()?;
        let copied = self.source_times.and_then(|times| times.bytes(self.base_offset, self.last_timestamp));
        // one with few entries is right, but slow
        let copied = copied.filter(|copied| copied.len() * 2 >= self.time_index.len());
        Ok([self.offset_index, copied.unwrap_or(self.time_index)])
    }
}
