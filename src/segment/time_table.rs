//! A table of the record times of a segment in memory, for segments with many look-ups of times.
//!
//! The first record at or above a time is always a record whose time is above those of all records before it.
//! So the table holds only these records. Their times increase strictly, whatever the order in the log, so a
//! look-up is one search.
//!
//! One pass over the segment builds the table. It verifies every batch and decodes those that may raise the
//! largest time. If it meets anything irregular, there is no table, and every time is looked up singly. The
//! pass also compares the time index with the batches, because look-ups in the table do not read it.

use super::lazy_table::{Built, Share};
use super::time_buckets::{Row, TimeBuckets};
use super::time_index_check::TimeIndexCheck;
use super::walk::{Batch, Step};
use super::{SCAN_READ, Segment, Walk};
use crate::error::{Error, Result};
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
    pub(super) const LOG_BYTES_PER_LOOKUP: u64 = 16 << 10;

    pub(super) fn read(segment: &Segment) -> Result<Built<Self>> {
        let budget = &segment.open_files.tables;
        // the memory while the rows are collected; the finished lines mostly take less
        let max_rows = budget.left() / size_of::<Row>();
        let mut index = TimeIndexCheck::new(segment)?;
        let mut rows = Vec::new();
        let mut walk = segment.walk(-1, SCAN_READ)?;
        let mut buffer = Vec::new();
        let (mut largest, mut is_relative) = (-1, true);
        loop {
            segment.open_files.interrupt.check()?;
            let batch = match walk.step_through() {
                Ok(Step::Batch(batch)) => batch,
                Ok(Step::Damage(_)) | Err(Error::BatchTooLarge { .. }) => return Ok(Built::Impossible),
                Ok(Step::End) => break,
                Err(error) => return Err(error),
            };
            if let Some(index) = &mut index {
                index.add(&batch.header);
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
            if !is_read || !is_relative {
                return Ok(Built::Impossible);
            }
            if rows.len() > max_rows {
                let bytes = rows.len().saturating_mul(size_of::<Row>());
                return Ok(Built::without_memory(bytes, walk.position / Self::LOG_BYTES_PER_LOOKUP));
            }
        }
        if let Some(index) = index {
            index.finish();
        }
        let Some(lines) = TimeBuckets::new(&rows) else { return Ok(Built::Impossible) };
        let bytes = lines.bytes();
        Ok(match budget.take(bytes) {
            Some(share) => Built::Table(Self { segment: segment.base_offset, lines, _share: share }),
            None => Built::without_memory(bytes, walk.position / Self::LOG_BYTES_PER_LOOKUP),
        })
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

/// Calls `visit` with the offset and timestamp of each record whose timestamp is above `largest` and above
/// those of all records before it. False if the batch breaks the format, or contains a record later than its
/// header's maximum: the result of a single look-up then depends on where it starts.
fn for_each_later(
    batch: &Batch,
    walk: &mut Walk,
    buffer: &mut Vec<u8>,
    mut largest: i64,
    mut visit: impl FnMut(i64, i64),
) -> Result<bool> {
    let max = walk.log.max_batch_bytes();
    if batch.header.ensure_size(max).is_err() {
        return Ok(false);
    }
    let bytes = walk.bytes(batch)?;
    let opened = Records::open_up_to(max, batch.header, bytes, buffer);
    let Ok((mut records, payload)) = opened else { return Ok(false) };
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
