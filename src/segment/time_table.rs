//! The times of a segment's records in memory: for who asks for many times.
//!
//! The first record at or above a time is one whose time is above those of all records before it. So of all records only
//! these are kept, and their times rise strictly, whatever the order in the log: an answer is one search.
//!
//! One reading of the segment makes the table: every batch verified, those decoded that may raise the largest time. Where
//! it meets anything odd there is no table, and every question is answered on its own.

use super::buckets::{Bucket, Buckets};
use super::prepared::Share;
use super::walk::{Batch, Step};
use super::{SCAN_READ, Segment, Walk};
use crate::error::Result;
use crate::record::Records;
use crate::types::TimestampOffset;

/// The records of a segment that are later than all before them.
#[derive(Debug)]
pub(crate) struct TimeTable {
    segment: i64,
    blocks: Vec<Block>,
    /// The largest time of each block, and some behind them that are larger: apart, because these are few enough to stay in
    /// a core's own cache, where the records do not.
    largest: Vec<i64>,
    buckets: Buckets,
    _share: Share,
}

/// Neighbouring records, as a cache line: a look-up in a table that is too large for the caches waits for one line.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
struct Block {
    /// Of the first record.
    time: i64,
    /// Of the first record, relative to the segment's base offset.
    offset: u32,
    /// How far each lies above the first; they rise strictly, and the last one is repeated to the end.
    times: [u16; Block::RECORDS],
    offsets: [u16; Block::RECORDS],
}

impl Block {
    const RECORDS: usize = 12;

    fn new(time: i64, offset: u32) -> Self {
        Self { time, offset, times: [0; Self::RECORDS], offsets: [0; Self::RECORDS] }
    }

    /// Adds a record as number `place`; false where that is too many, or it lies too far from the first.
    fn push(&mut self, place: usize, time: i64, offset: u32) -> bool {
        let (Ok(above), Ok(behind)) =
            (u16::try_from(time - self.time), u16::try_from(offset.wrapping_sub(self.offset)))
        else {
            return false;
        };
        let (Some(times), Some(offsets)) = (self.times.get_mut(place..), self.offsets.get_mut(place..))
        else {
            return false;
        };
        times.fill(above);
        offsets.fill(behind);
        !times.is_empty()
    }

    fn largest(&self) -> i64 {
        self.time + i64::from(self.times[Self::RECORDS - 1])
    }

    /// The first record at or above a time, which is not above the block's largest. All are compared, needed or not: no
    /// branch that random times would mislead.
    #[inline]
    fn find(&self, target: i64) -> Option<(i64, u32)> {
        let above = u16::try_from(target.max(self.time) - self.time).unwrap_or(u16::MAX);
        let place = usize::from(self.times.iter().map(|time| u16::from(*time < above)).sum::<u16>());
        let (time, offset) = (self.times.get(place)?, self.offsets.get(place)?);
        Some((self.time + i64::from(*time), self.offset + u32::from(*offset)))
    }
}

impl TimeTable {
    /// What a block costs: itself, its largest time, and its buckets.
    const BYTES: usize = size_of::<Block>() + size_of::<i64>() + Buckets::BYTES_PER_KEY;
    /// A look-up costs about as much as to read and decode this much of the log.
    const LOG_BYTES_PER_LOOKUP: u64 = 32 << 10;

    fn read(segment: &Segment) -> Result<Option<Self>> {
        let budget = &segment.open_files.tables;
        let most = budget.left() / Self::BYTES;
        let mut blocks: Vec<Block> = Vec::new();
        let mut in_last = 0;
        let mut walk = segment.walk(-1, SCAN_READ)?;
        let mut buffer = Vec::new();
        let mut largest = -1;
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
            let is_read = later(&batch, &mut walk, &mut buffer, largest, |offset, timestamp| {
                largest = timestamp;
                let relative = u32::try_from(offset - segment.base_offset).unwrap_or(u32::MAX);
                if blocks.last_mut().is_some_and(|block| block.push(in_last, timestamp, relative)) {
                    in_last += 1;
                } else {
                    blocks.push(Block::new(timestamp, relative));
                    in_last = 1;
                }
            })?;
            if !is_read || blocks.len() > most {
                return Ok(None);
            }
        }
        blocks.shrink_to_fit();
        let Some(buckets) = Buckets::new(blocks.iter().map(Block::largest)) else { return Ok(None) };
        let largest = blocks.iter().map(Block::largest).chain([i64::MAX; Bucket::FEW]).collect();
        let Some(share) = budget.take(blocks.len() * Self::BYTES) else { return Ok(None) };
        Ok(Some(Self { segment: segment.base_offset, blocks, largest, buckets, _share: share }))
    }

    /// The block in which the first record at or above a time lies; none has that place where there is no such record.
    #[inline]
    pub(crate) fn place(&self, target: i64) -> usize {
        self.buckets.bucket(target).find_in(target, &self.largest)
    }

    /// Loads what a look-up in a block will want; the answer is of no use.
    #[inline]
    pub(crate) fn touch(&self, place: usize) -> u32 {
        self.blocks.get(place).map_or(0, |block| block.offset)
    }

    /// The first record of the segment at or above a time, from the block in which it lies.
    #[inline]
    pub(crate) fn find(&self, target: i64, place: usize) -> Option<TimestampOffset> {
        let (timestamp, offset) = self.blocks.get(place)?.find(target)?;
        Some(TimestampOffset { timestamp, offset: self.segment + i64::from(offset) })
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

impl Segment {
    /// The table of the segment's times, where there is one.
    pub(crate) fn time_table(&self) -> Option<&TimeTable> {
        self.time_table.get()
    }

    /// The same for who is about to look a time up without it.
    pub(crate) fn ask_time_table(&self) -> Result<Option<&TimeTable>> {
        let price = self.size()? / TimeTable::LOG_BYTES_PER_LOOKUP;
        self.time_table.ask(price, || TimeTable::read(self))
    }
}
