//! The indexes of a segment, from its batches. Kafka: `LogSegment.recover`.

use super::{Batch, SegmentState};
use crate::error::Result;
use crate::fs::names::FileKind;
use crate::index::Entry;
use crate::index::due_entries::{DueEntries, EntryRule};
use crate::types::{OffsetPosition, TimestampOffset};

/// Batches of a segment that one offset index can refer to.
#[derive(Debug)]
pub(crate) struct Part {
    /// The segment's base offset; if the segment is split, the offset of the part's first batch.
    pub(crate) base_offset: i64,
    /// Its position in the segment's `.log`.
    pub(crate) start: u64,
    /// The state of the part as a segment.
    pub(crate) state: SegmentState,
    pub(crate) indexes: IndexBytes,
}

/// The bytes of both indexes, as `LogSegment.recover` writes them.
#[derive(Debug, Default)]
pub(crate) struct IndexBytes {
    pub(crate) offset_index: Vec<u8>,
    pub(crate) time_index: Vec<u8>,
}

impl IndexBytes {
    /// The contents by the kind of the file.
    pub(crate) fn files(&self) -> [(FileKind, &[u8]); 2] {
        [(FileKind::OffsetIndex, &self.offset_index), (FileKind::TimeIndex, &self.time_index)]
    }
}

/// Collects the batches of a part and the entries of its indexes. The entries have absolute offsets, because
/// the base offset of a part may still change.
#[derive(Debug)]
pub(crate) struct PartBuilder {
    pub(crate) base_offset: i64,
    pub(crate) first_offset: Option<i64>,
    start: u64,
    end: u64,
    first_batch_timestamp: Option<i64>,
    max_index_size: u64,
    due_entries: DueEntries,
    offset_entries: Vec<OffsetPosition>,
    time_entries: Vec<TimestampOffset>,
}

impl PartBuilder {
    pub(crate) fn new(base_offset: i64, start: u64, rule: EntryRule) -> Self {
        let largest = TimestampOffset { timestamp: -1, offset: base_offset };
        Self {
            base_offset,
            first_offset: None,
            start,
            end: start,
            first_batch_timestamp: None,
            max_index_size: rule.max_index_size,
            due_entries: DueEntries::new(rule.interval_bytes, largest),
            offset_entries: Vec::new(),
            time_entries: Vec::new(),
        }
    }

    pub(crate) fn add(&mut self, batch: &Batch) {
        let header = &batch.header;
        self.first_offset.get_or_insert(header.base_offset);
        self.first_batch_timestamp.get_or_insert(header.max_timestamp);
        self.end = batch.end();
        if self.due_entries.is_due_for(header) {
            let max_entries = OffsetPosition::max_entries(self.max_index_size);
            if OffsetPosition::has_slot(self.offset_entries.len() as u64, max_entries, false)
                && let Ok(position) = i32::try_from(batch.position - self.start)
            {
                self.offset_entries.push(OffsetPosition { offset: header.last_offset, position });
            }
            self.add_time_entry(false);
        }
    }

    /// Sets the position after its last byte: batches that repeat offsets may follow the last one that was
    /// added.
    pub(crate) fn end_at(&mut self, position: u64) {
        self.end = position;
    }

    /// Adds a time index entry if the largest timestamp has grown since the last entry and there is a slot.
    fn add_time_entry(&mut self, is_closing: bool) {
        let largest = self.due_entries.largest();
        let last = self.time_entries.last().map_or(-1, |last| last.timestamp);
        let max_entries = TimestampOffset::max_entries(self.max_index_size);
        if largest.timestamp > last
            && TimestampOffset::has_slot(self.time_entries.len() as u64, max_entries, is_closing)
        {
            self.time_entries.push(largest);
        }
    }

    pub(crate) fn finish(mut self) -> Result<Part> {
        self.add_time_entry(true);
        let mut largest = self.due_entries.largest();
        if largest.timestamp < 0 {
            // the base offset may have changed since the part was created
            largest.offset = self.base_offset;
        }
        let mut indexes = IndexBytes::default();
        for entry in &self.offset_entries {
            indexes.offset_index.extend(entry.encode(self.base_offset)?);
        }
        for entry in &self.time_entries {
            indexes.time_index.extend(entry.encode(self.base_offset)?);
        }
        let state = SegmentState {
            size: self.end - self.start,
            first_batch_timestamp: self.first_batch_timestamp,
            largest,
        };
        Ok(Part { base_offset: self.base_offset, start: self.start, state, indexes })
    }
}
