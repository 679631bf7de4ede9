//! A table of all batches of a segment in memory, for segments with many look-ups of offsets.
//!
//! One walk over the headers builds it, and only if that walk met nothing irregular. In such a segment a
//! look-up from any index entry finds the same batch as a walk from the start, so the table returns the same
//! results as single look-ups. The same batches are verified, but once per batch instead of once per look-up.
//! If a segment has an irregularity, it gets no table, and every offset is looked up singly.

use std::sync::atomic::{AtomicU64, Ordering};

use super::buckets::{Bucket, Buckets};
use super::lazy_table::{Built, Share};
use super::walk::Step;
use super::{LOOKUP_READ, LogFile, Segment};
use crate::error::{Error, Result};
use crate::index::OffsetIndex;
use crate::record::{BatchHeader, V2_HEADER};
use crate::types::{Location, OffsetPosition};

/// The batches of a segment that a walk found whole and in order.
#[derive(Debug)]
pub(super) struct BatchTable {
    segment: i64,
    /// In offset order, with one more row at the end, whose position is the end of the data.
    rows: Vec<Row>,
    buckets: Buckets,
    /// A bit for each batch, set when its checksum was verified.
    verified: Vec<AtomicU64>,
    _share: Share,
}

/// A batch: its last and first offset relative to the segment's base offset, and its position. A look-up
/// needs all three, so they share a cache line.
#[derive(Debug, Clone, Copy)]
struct Row {
    last: u32,
    first: u32,
    position: u32,
}

/// The result of a look-up in the table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FoundBatch {
    /// The batch that contains the offset, or the first one after the gap that contains it.
    pub(crate) location: Location,
    /// The last offset of that batch.
    pub(crate) last_offset: i64,
}

impl FoundBatch {
    /// Covers no offset.
    pub(crate) const NONE: Self = Self {
        location: Location { segment_base_offset: 0, batch_base_offset: 0, position: 0, size: 0 },
        last_offset: -1,
    };

    /// Whether the batch covers an offset.
    #[inline]
    pub(crate) fn covers(&self, offset: i64) -> bool {
        (self.location.batch_base_offset..=self.last_offset).contains(&offset)
    }
}

impl BatchTable {
    /// Bytes of memory per batch: its row, its buckets, and its bit.
    const BYTES: usize = size_of::<Row>() + Buckets::BYTES_PER_KEY + 1;
    /// A single look-up costs about as much as a walk over this many headers.
    pub(super) const HEADERS_PER_LOOKUP: u64 = 8;

    pub(super) fn read(segment: &Segment) -> Result<Built<Self>> {
        let budget = &segment.open_files.tables;
        let max_rows = budget.left() / Self::BYTES;
        // `u32::MAX` is reserved for the row after the last batch
        let relative = |offset: i64| {
            u32::try_from(offset - segment.base_offset).ok().filter(|offset| *offset < u32::MAX)
        };
        let mut rows: Vec<Row> = Vec::new();
        let mut walk = segment.walk(-1, LOOKUP_READ)?;
        let end = loop {
            segment.open_files.interrupt.check()?;
            let Ok(position) = u32::try_from(walk.position) else { return Ok(Built::Impossible) };
            let step = match walk.step() {
                // a look-up that does not need the batch works without a table
                Err(Error::BatchTooLarge { .. }) => return Ok(Built::Impossible),
                step => step?,
            };
            match step {
                // opening each wrapper of the old formats would cost more than the table saves
                Step::Batch(batch) if !batch.header.is_wrapper() => {
                    if rows.len() >= max_rows {
                        return Ok(Self::without_memory(rows.len() + 1));
                    }
                    let (first, last) = (batch.header.base_offset, batch.header.last_offset);
                    let (Some(first), Some(last)) = (relative(first), relative(last)) else {
                        return Ok(Built::Impossible);
                    };
                    rows.push(Row { last, first, position });
                }
                Step::Batch(_) | Step::Damage(_) => return Ok(Built::Impossible),
                Step::End => break position,
            }
        };
        let Some(buckets) = Buckets::new(rows.iter().map(|row| i64::from(row.last))) else {
            return Ok(Built::Impossible);
        };
        let share = budget.take(rows.len() * Self::BYTES);
        let Some(share) = share else { return Ok(Self::without_memory(rows.len())) };
        segment.check_index(&rows)?;
        let verified = (0..rows.len().div_ceil(64)).map(|_| AtomicU64::new(0)).collect();
        rows.push(Row { last: u32::MAX, first: u32::MAX, position: end });
        rows.shrink_to_fit();
        Ok(Built::Table(Self { segment: segment.base_offset, rows, buckets, verified, _share: share }))
    }

    /// The result after a walk over this many batches, for whose rows there is no memory.
    fn without_memory(rows: usize) -> Built<Self> {
        Built::without_memory(rows.saturating_mul(Self::BYTES), rows as u64 / Self::HEADERS_PER_LOOKUP)
    }

    /// The bucket of an offset of the segment.
    #[inline]
    pub(crate) fn bucket(&self, offset: i64) -> Bucket {
        self.buckets.bucket(offset - self.segment)
    }

    /// Reads the first row of a bucket into the cache. The result has no meaning; it keeps the load from
    /// being optimized away.
    #[inline]
    pub(crate) fn prefetch(&self, bucket: Bucket) -> u32 {
        self.rows.get(bucket.first()).map_or(0, |row| row.last)
    }

    /// The batch of an offset of the segment, or the next one; `None` if no batch of the segment follows, or
    /// if a batch that the result depends on was not verified yet.
    #[inline]
    pub(crate) fn find(&self, offset: i64, bucket: Bucket) -> Option<FoundBatch> {
        let (before, place) = self.rows_to_verify(offset, bucket);
        let &[row, next] = self.rows.get(place..place.saturating_add(2))? else { return None };
        if !self.is_verified(place) || !self.is_verified(before) {
            return None;
        }
        let base_offset = self.segment + i64::from(row.first);
        let location = Location {
            segment_base_offset: self.segment,
            batch_base_offset: base_offset,
            position: u64::from(row.position),
            size: next.position - row.position,
        };
        Some(FoundBatch { location, last_offset: self.segment + i64::from(row.last) })
    }

    /// [`BatchTable::find`] that verifies the batches first. `None` also if a checksum is wrong: the single
    /// look-up returns the error.
    pub(crate) fn verify(&self, offset: i64, log: &mut LogFile) -> Result<Option<FoundBatch>> {
        let bucket = self.bucket(offset);
        let (before, place) = self.rows_to_verify(offset, bucket);
        for place in before..=place {
            if !self.is_verified(place) && self.is_valid(place, log)? {
                self.set_verified(place);
            }
        }
        Ok(self.find(offset, bucket))
    }

    /// The first and last index of the rows that the result for an offset depends on: the first batch that
    /// ends at or after it, and, if the offset is in a gap, also the batch before, whose header claims to
    /// end before the gap.
    #[inline]
    fn rows_to_verify(&self, offset: i64, bucket: Bucket) -> (usize, usize) {
        let relative = offset - self.segment;
        let last = |place: usize| self.rows.get(place).map_or(i64::MAX, |row| i64::from(row.last));
        let place = bucket.find(relative, last);
        let is_in_gap = self.rows.get(place).is_some_and(|row| i64::from(row.first) > relative);
        (place - usize::from(is_in_gap && place > 0), place)
    }

    #[inline]
    fn is_verified(&self, place: usize) -> bool {
        let bits = self.verified.get(place / 64).map_or(0, |bits| bits.load(Ordering::Relaxed));
        bits >> (place % 64) & 1 == 1
    }

    fn set_verified(&self, place: usize) {
        if let Some(bits) = self.verified.get(place / 64) {
            bits.fetch_or(1 << (place % 64), Ordering::Relaxed);
        }
    }

    fn is_valid(&self, place: usize, log: &mut LogFile) -> Result<bool> {
        let Some(&[row, next]) = self.rows.get(place..place.saturating_add(2)) else { return Ok(false) };
        let size = next.position - row.position;
        // all bytes of a batch that is not too large: they may prove its header
        let wanted = usize::try_from(size).unwrap_or(usize::MAX).min(log.max_batch_bytes().max(V2_HEADER));
        let bytes = log.read(u64::from(row.position), wanted)?;
        let Ok(header) = BatchHeader::parse(bytes, u64::from(size)) else { return Ok(false) };
        let absolute = |offset: u32| self.segment + i64::from(offset);
        Ok(header.size == size
            && (header.base_offset, header.last_offset) == (absolute(row.first), absolute(row.last))
            && log.verify(&header, u64::from(row.position))?.is_ok())
    }
}

impl Segment {
    /// Warns of the first entry of the offset index that the batches do not confirm, as [`Segment::walk_to`]
    /// does if it uses the entry, or that is out of order: look-ups in the table do not read the index.
    ///
    /// Ends there, or at the end of the log. A confirmed entry has the first or the last offset of a batch,
    /// and offsets increase, so it reads at most two entries for each batch.
    fn check_index(&self, rows: &[Row]) -> Result<()> {
        let Some(index) = self.or_warn(self.offset_index()) else { return Ok(()) };
        let end = rows.last().map_or(self.base_offset, |last| self.base_offset + i64::from(last.last) + 1);
        let mut before = None;
        let read = index.visit(|entry| {
            self.open_files.interrupt.check()?;
            // it belongs to a batch that was appended after the log was opened, and so do all after it
            if entry.offset >= end && self.is_last() {
                return Ok(false);
            }
            if before.is_some_and(|before| entry.offset <= before) {
                self.warn_of_order(&index, entry);
                return Ok(false);
            }
            before = Some(entry.offset);
            // no look-up uses an entry for the start of the segment
            let is_start = entry == (OffsetPosition { offset: self.base_offset, position: 0 });
            let is_confirmed = is_start || self.is_confirmed(entry, rows);
            if !is_confirmed {
                self.warn_of_entry(&index, entry);
            }
            Ok(is_confirmed)
        });
        match read {
            Err(interrupted @ Error::Interrupted(_)) => Err(interrupted),
            read => {
                self.or_warn(read.map(Some));
                Ok(())
            }
        }
    }

    fn warn_of_order(&self, index: &OffsetIndex, entry: OffsetPosition) {
        self.warn(&format!(
            "{}: the entry (offset {}, position {}) is not above the entry before it; the index is damaged",
            index.path().display(),
            entry.offset,
            entry.position
        ));
    }

    /// Whether an entry has the position of a batch, and one of its offsets or the last offset of a later
    /// one: see [`Segment::confirm`].
    fn is_confirmed(&self, entry: OffsetPosition, rows: &[Row]) -> bool {
        // the offset of a damaged entry may be far from the base offset
        let offset = entry.offset.checked_sub(self.base_offset).and_then(|offset| u32::try_from(offset).ok());
        let (Some(offset), Ok(position)) = (offset, u32::try_from(entry.position)) else { return false };
        let Ok(place) = rows.binary_search_by_key(&position, |row| row.position) else { return false };
        let rows = rows.get(place..).unwrap_or_default();
        rows.first().is_some_and(|row| row.first == offset)
            || rows.binary_search_by_key(&offset, |row| row.last).is_ok()
    }
}
