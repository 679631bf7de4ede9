//! A table of the record times of a segment in memory, for look-ups of many times.
//!
//! The first record at or above a time is always a record whose time is above those of all records before it. So the
//! table holds only these records. Their times increase strictly, whatever the order in the log, so a look-up is one
//! search.
//!
//! One pass over the segment builds the table. It verifies every batch and decodes those that may raise the largest
//! time. If it meets anything irregular, there is no table, and every time is looked up singly.

use super::batch_table::none_on_error;
use super::lazy_table::Share;
use super::time_buckets::{Row, TimeBuckets};
use super::walk::{Batch, Step};
use super::{SCAN_READ, Segment, Walk};
use crate::error::Result;
use crate::record::Records;
use crate::types::TimestampOffset;

/// The records of a segment that have a larger timestamp than all records before them.
#[derive(Debug)]
pub(super) struct TimeTable {
    segment: i64,
    lines: TimeBuckets,
    _share: Share,
}

impl TimeTable {
    /// A single look-up costs about as much as reading and decoding this many bytes of log.
    const LOG_BYTES_PER_LOOKUP: u64 = 32 << 10;

    fn read(segment: &Segment) -> Result<Option<Self>> {
        let budget = &segment.open_files.tables;
        // the memory while the rows are collected; the finished lines mostly take less
        let max_rows = budget.left() / size_of::<Row>();
        let mut rows = Vec::new();
        let mut walk = segment.walk(-1, SCAN_READ)?;
        let mut buffer = Vec::new();
        let (mut largest, mut is_relative) = (-1, true);
        loop {
            segment.open_files.interrupt.check()?;
            let batch = match walk.step_through()? {
                Step::Batch(batch) => batch,
                Step::Damage(_) => return Ok(None),
                Step::End => break,
            };
            if walk.verify(&batch)?.is_err() {
                return Ok(None);
            }
            // no record in it is the first at or above any time
            if batch.header.max_timestamp <= largest {
                continue;
            }
            let is_read = for_each_later(&batch, &mut walk, &mut buffer, largest, |offset, time| {
                largest = time;
                let offset = u32::try_from(offset - segment.base_offset);
                is_relative &= offset.is_ok();
                rows.push(Row { time, offset: offset.unwrap_or(u32::MAX) });
            })?;
            if !is_read || !is_relative || rows.len() > max_rows {
                return Ok(None);
            }
        }
        let Some(lines) = TimeBuckets::new(&rows) else { return Ok(None) };
        let Some(share) = budget.take(lines.bytes()) else { return Ok(None) };
        Ok(Some(Self { segment: segment.base_offset, lines, _share: share }))
    }

    /// The index of the line that contains the result for a time.
    #[inline]
    pub(crate) fn place(&self, target: i64) -> usize {
        self.lines.place(target)
    }

    /// Reads the line into the cache. The result has no meaning; it keeps the load from being optimized away.
    #[inline]
    pub(crate) fn prefetch(&self, place: usize) -> u32 {
        self.lines.prefetch(place)
    }

    /// The first record of the segment at or above a time, whose line [`TimeTable::place`] returned.
    #[inline]
    pub(crate) fn find(&self, target: i64, place: usize) -> Option<TimestampOffset> {
        let row = self.lines.find(target, place)?;
        Some(TimestampOffset { timestamp: row.time, offset: self.segment + i64::from(row.offset) })
    }
}

/// Calls `visit` with the offset and timestamp of each record whose timestamp is above `largest` and above those of all
/// records before it. False if the batch breaks the format, or contains a record later than its header's maximum: the
/// result of a single look-up then depends on where it starts.
fn for_each_later(
    batch: &Batch,
    walk: &mut Walk,
    buffer: &mut Vec<u8>,
    mut largest: i64,
    mut visit: impl FnMut(i64, i64),
) -> Result<bool> {
    let bytes = walk.bytes(batch)?;
    let Ok((mut records, payload)) = Records::open(batch.header, bytes, buffer) else { return Ok(false) };
    let payload = payload.of(bytes, buffer);
    loop {
        match records.next(payload) {
            Ok(None) => return Ok(true),
            Ok(Some(record)) if record.timestamp > batch.header.max_timestamp => return Ok(false),
            Ok(Some(record)) if record.timestamp > largest => {
                largest = record.timestamp;
                visit(record.offset, largest);
            }
            Ok(Some(_)) => {}
            Err(_) => return Ok(false),
        }
    }
}

/// Look-ups of times in one segment, in its table if there is one.
pub(crate) struct TimeLookups<'a> {
    segment: &'a Segment,
    table: Option<&'a TimeTable>,
}

impl<'a> TimeLookups<'a> {
    pub(crate) fn new(segment: &'a Segment) -> Self {
        Self { segment, table: segment.time_table.get() }
    }

    /// The index of the line for a time; `None` without a table.
    #[inline]
    pub(crate) fn place(&self, target: i64) -> Option<usize> {
        self.table.map(|table| table.place(target))
    }

    /// Reads the line into the cache. The result has no meaning.
    #[inline]
    pub(crate) fn prefetch(&self, place: usize) -> u32 {
        self.table.map_or(0, |table| table.prefetch(place))
    }

    /// The first record of the segment at or above a time, whose line [`TimeLookups::place`] returned; `None` if a single
    /// look-up is needed.
    #[inline]
    pub(crate) fn find(&mut self, target: i64, place: Option<usize>) -> Result<Option<TimestampOffset>> {
        match (self.table, place) {
            (Some(table), Some(place)) => Ok(table.find(target, place)),
            _ => self.find_in_new_table(target),
        }
    }

    /// [`TimeLookups::find`] if the table did not exist when the line was computed.
    #[cold]
    fn find_in_new_table(&mut self, target: i64) -> Result<Option<TimestampOffset>> {
        let min_lookups = self.segment.file_size().map(|size| size / TimeTable::LOG_BYTES_PER_LOOKUP);
        let table =
            |min_lookups| self.segment.time_table.get_or_build(min_lookups, || TimeTable::read(self.segment));
        self.table = none_on_error(min_lookups.and_then(table))?;
        Ok(self.table.and_then(|table| table.find(target, table.place(target))))
    }
}
