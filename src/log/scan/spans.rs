//! The records of a scan's current batch as positions in its payload: for columns, which take many records at
//! a time.

use std::ops::Range;

use super::cursor::Cursor;
use super::damage::damaged_rest;
use super::{Scan, payload_bytes};
use crate::error::Result;
use crate::fs::prefetch_two_lines;
use crate::record::{Payload, RecordSpan};
use crate::segment::SharedBytes;

impl Scan {
    /// Replaces `spans` by the next records of the batch that [`Scan::next_step`] returned: of at most `max`
    /// records those in the range. False after the last. The caller passes the records that it returns to
    /// [`Scan::note_returned`].
    ///
    /// # Errors
    /// As [`Scan::next_record`].
    pub(crate) fn next_spans(&mut self, max: usize, spans: &mut Vec<RecordSpan>) -> Result<bool> {
        spans.clear();
        let Some((records, payload)) = &mut self.records else { return Ok(false) };
        let Cursor { segment, batch, walk, .. } = &mut self.cursor;
        let Some((bytes, next)) = payload_bytes(batch.as_ref(), *payload, walk, &self.buffer)? else {
            return Ok(false);
        };
        // The checksum of the next batch waits for memory, and decoding this one does not: at the same time
        // both take less. Of long records only the first two lines are loaded here.
        match records.next_spans(bytes, max, spans, |start| prefetch_two_lines(next, start)) {
            Ok(has_more) => {
                self.filter.retain(batch.map_or(i64::MAX, |batch| batch.header.last_offset), spans);
                let left_out = self.left_out.min(spans.len() as u64);
                self.left_out -= left_out;
                spans.drain(..usize::try_from(left_out).unwrap_or(usize::MAX));
                Ok(has_more)
            }
            Err(malformed) => {
                let from = records.expected_offset();
                self.records = None;
                let raises = self.filter.raises();
                let damaged = damaged_rest(segment.as_ref(), batch.as_ref(), from, raises, &malformed);
                self.finished |= damaged.is_err();
                self.damaged_ranges.extend(damaged?);
                Ok(false)
            }
        }
    }

    /// The bytes to which the spans of the current batch refer. They can be kept, and nobody can shorten
    /// them: only with [`Io::Mmap`](crate::types::Io::Mmap), which asserts that the files are not
    /// changed, are they in a mapping.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io), [`Error::LogChanged`](crate::Error::LogChanged).
    pub(crate) fn payload(&mut self) -> Result<SharedBytes> {
        match (&self.records, &mut self.cursor.walk, &self.cursor.batch) {
            (Some((_, Payload::Batch(start))), Some(walk), Some(batch)) => {
                let whole = walk.shared(batch)?;
                let Range { start: first, end } = whole.range();
                Ok(whole.with_range(first.saturating_add(*start).min(end)..end))
            }
            _ => Ok(SharedBytes::buffer(&self.buffer, 0..self.buffer.len())),
        }
    }

    /// Counts records of the current batch that were returned.
    pub(crate) fn note_returned(&mut self, spans: &[RecordSpan]) {
        self.stats.records += spans.len() as u64;
        if let Some(first) = spans.first() {
            self.first_returned.get_or_insert(first.offset);
        }
    }
}
