//! The times of a segment's records in memory: for who asks for many times.
//!
//! The first record at or above a time is one whose time is above those of all records before it. So of all records only
//! these are kept, and their times rise strictly, whatever the order in the log: an answer is one search.
//!
//! One reading of the segment makes the table: every batch verified, those decoded that may raise the largest time. Where
//! it meets anything odd there is no table, and every question is answered on its own.

use super::batch_table::or_none;
use super::lazy_table::Share;
use super::time_buckets::{Row, TimeBuckets};
use super::walk::{Batch, Step};
use super::{SCAN_READ, Segment, Walk};
use crate::error::Result;
use crate::record::Records;
use crate::types::TimestampOffset;

/// The records of a segment that are later than all before them.
#[derive(Debug)]
pub(super) struct TimeTable {
    segment: i64,
    lines: TimeBuckets,
    _share: Share,
}

impl TimeTable {
    /// A look-up costs about as much as to read and decode this much of the log.
    const LOG_BYTES_PER_LOOKUP: u64 = 32 << 10;

    fn read(segment: &Segment) -> Result<Option<Self>> {
        let budget = &segment.open_files.tables;
        // what they take while they are gathered; as lines mostly less
        let most = budget.left() / size_of::<Row>();
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
            // nothing in it is the first at any time
            if batch.header.max_timestamp <= largest {
                continue;
            }
            let is_read = later(&batch, &mut walk, &mut buffer, largest, |offset, time| {
                largest = time;
                let offset = u32::try_from(offset - segment.base_offset);
                is_relative &= offset.is_ok();
                rows.push(Row { time, offset: offset.unwrap_or(u32::MAX) });
            })?;
            if !is_read || !is_relative || rows.len() > most {
                return Ok(None);
            }
        }
        let Some(lines) = TimeBuckets::new(&rows) else { return Ok(None) };
        let Some(share) = budget.take(lines.bytes()) else { return Ok(None) };
        Ok(Some(Self { segment: segment.base_offset, lines, _share: share }))
    }

    /// Where the answer for a time is looked for.
    #[inline]
    pub(crate) fn place(&self, target: i64) -> usize {
        self.lines.place(target)
    }

    /// Loads what [`TimeTable::find`] will want; the answer is of no use.
    #[inline]
    pub(crate) fn touch(&self, place: usize) -> u32 {
        self.lines.touch(place)
    }

    /// The first record of the segment at or above a time, for which [`TimeTable::place`] gave the place.
    #[inline]
    pub(crate) fn find(&self, target: i64, place: usize) -> Option<TimestampOffset> {
        let row = self.lines.find(target, place)?;
        Some(TimestampOffset { timestamp: row.time, offset: self.segment + i64::from(row.offset) })
    }
}

/// Gives each record of a batch that is later than `largest` and all before it. False where the batch breaks the format,
/// or holds a record later than its header says: whether a look-up sees that one depends on where it comes from.
fn later(
    batch: &Batch,
    walk: &mut Walk,
    buffer: &mut Vec<u8>,
    mut largest: i64,
    mut give: impl FnMut(i64, i64),
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
                give(record.offset, largest);
            }
            Ok(Some(_)) => {}
            Err(_) => return Ok(false),
        }
    }
}

/// Look-ups of times in one segment, by its table where there is one.
pub(crate) struct TimeLookups<'a> {
    segment: &'a Segment,
    table: Option<&'a TimeTable>,
}

impl<'a> TimeLookups<'a> {
    pub(crate) fn new(segment: &'a Segment) -> Self {
        Self { segment, table: segment.time_table.get() }
    }

    /// Where in the table a time is searched; `None` without a table.
    #[inline]
    pub(crate) fn place(&self, target: i64) -> Option<usize> {
        self.table.map(|table| table.place(target))
    }

    /// Loads the memory that a search at a place reads. The result has no meaning.
    #[inline]
    pub(crate) fn touch(&self, place: usize) -> u32 {
        self.table.map_or(0, |table| table.touch(place))
    }

    /// The first record of the segment at or above a time, for which [`TimeLookups::place`] gave the place; `None` where a
    /// single look-up has to answer.
    #[inline]
    pub(crate) fn find(&mut self, target: i64, place: Option<usize>) -> Result<Option<TimestampOffset>> {
        match (self.table, place) {
            (Some(table), Some(place)) => Ok(table.find(target, place)),
            _ => self.find_anew(target),
        }
    }

    /// [`TimeLookups::find`] where the table did not exist when the place was looked for.
    #[cold]
    fn find_anew(&mut self, target: i64) -> Result<Option<TimestampOffset>> {
        let price = self.segment.file_size().map(|size| size / TimeTable::LOG_BYTES_PER_LOOKUP);
        let table = |price| self.segment.time_table.ask(price, || TimeTable::read(self.segment));
        self.table = or_none(price.and_then(table))?;
        Ok(self.table.and_then(|table| table.find(target, table.place(target))))
    }
}
