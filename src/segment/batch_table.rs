//! All batches of a segment in memory: for who asks where many offsets lie.
//!
//! One walk over the headers makes it, and only of a segment in which that walk met nothing odd. There a look-up from any
//! index entry finds what a walk from the start finds, so the table gives the single look-up's answers; what an answer
//! rests on is verified as there, once for each batch instead of once for each question. Where anything is odd there is
//! no table, and every question is answered on its own.

use std::sync::atomic::{AtomicU64, Ordering};

use super::buckets::{Bucket, Buckets};
use super::lazy_table::Share;
use super::walk::Step;
use super::{LOOKUP_READ, LogFile, Segment};
use crate::error::{Error, Result};
use crate::record::BatchHeader;
use crate::types::Location;

/// The batches of a segment that a walk found whole and in order.
#[derive(Debug)]
pub(super) struct BatchTable {
    segment: i64,
    /// In order; one more at the end, which starts where the data end.
    rows: Vec<Row>,
    buckets: Buckets,
    /// A bit for each whose checksum was found right.
    verified: Vec<AtomicU64>,
    _share: Share,
}

/// A batch, side by side what one look-up wants of it: its offsets relative to the segment's base offset, and its
/// position.
#[derive(Debug, Clone, Copy)]
struct Row {
    last: u32,
    first: u32,
    position: u32,
}

/// What the table says of an offset.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Placed {
    /// Of the batch that holds the offset, or of the one behind the gap it lies in.
    pub(crate) location: Location,
    /// The last offset of that batch.
    pub(crate) last_offset: i64,
}

impl Placed {
    /// No offset lies there.
    pub(crate) const NOWHERE: Self = Self {
        location: Location { segment_base_offset: 0, batch_base_offset: 0, position: 0, size: 0 },
        last_offset: -1,
    };

    /// Whether the batch covers an offset.
    #[inline]
    pub(crate) fn holds(&self, offset: i64) -> bool {
        (self.location.batch_base_offset..=self.last_offset).contains(&offset)
    }
}

impl BatchTable {
    /// What a batch costs: its row, its buckets, and the bit.
    const BYTES: usize = size_of::<Row>() + Buckets::BYTES_PER_KEY + 1;
    /// A look-up costs about as much as a walk over the headers of this much of the log.
    const LOG_BYTES_PER_LOOKUP: u64 = 128 << 10;

    fn read(segment: &Segment) -> Result<Option<Self>> {
        let budget = &segment.open_files.tables;
        let most = budget.left() / Self::BYTES;
        // the largest one ends the table
        let relative = |offset: i64| {
            u32::try_from(offset - segment.base_offset).ok().filter(|offset| *offset < u32::MAX)
        };
        let mut rows: Vec<Row> = Vec::new();
        let mut walk = segment.walk(-1, LOOKUP_READ)?;
        loop {
            segment.open_files.interrupt.check()?;
            let Ok(position) = u32::try_from(walk.position) else { return Ok(None) };
            match walk.step()? {
                // to open each wrapper of the old formats would take longer than anybody asks
                Step::Batch(batch) if !batch.header.is_wrapper() && rows.len() < most => {
                    let (first, last) = (batch.header.base_offset, batch.header.last_offset);
                    let (Some(first), Some(last)) = (relative(first), relative(last)) else {
                        return Ok(None);
                    };
                    rows.push(Row { last, first, position });
                }
                Step::Batch(_) | Step::Damage(_) => return Ok(None),
                Step::End => {
                    let Some(buckets) = Buckets::new(rows.iter().map(|row| i64::from(row.last))) else {
                        return Ok(None);
                    };
                    let Some(share) = budget.take(rows.len() * Self::BYTES) else { return Ok(None) };
                    let verified = (0..rows.len().div_ceil(64)).map(|_| AtomicU64::new(0)).collect();
                    rows.push(Row { last: u32::MAX, first: u32::MAX, position });
                    rows.shrink_to_fit();
                    let segment = segment.base_offset;
                    return Ok(Some(Self { segment, rows, buckets, verified, _share: share }));
                }
            }
        }
    }

    /// Where to look for an offset of the segment.
    #[inline]
    pub(crate) fn bucket(&self, offset: i64) -> Bucket {
        self.buckets.bucket(offset - self.segment)
    }

    /// Loads what a look-up in a bucket will want; the answer is of no use.
    #[inline]
    pub(crate) fn touch(&self, bucket: Bucket) -> u32 {
        self.rows.get(bucket.first()).map_or(0, |row| row.last)
    }

    /// Where an offset of the segment lies; `None` where no batch of the segment follows, and where a batch on which the
    /// answer rests was not verified yet.
    #[inline]
    pub(crate) fn find(&self, offset: i64, bucket: Bucket) -> Option<Placed> {
        let (before, place) = self.rests_on(offset, bucket);
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
        Some(Placed { location, last_offset: self.segment + i64::from(row.last) })
    }

    /// [`BatchTable::find`], verifying what has to be. `None` where a checksum is wrong, too: the single look-up says how.
    pub(crate) fn verify(&self, offset: i64, log: &mut LogFile) -> Result<Option<Placed>> {
        let bucket = self.bucket(offset);
        let (before, place) = self.rests_on(offset, bucket);
        for place in before..=place {
            if !self.is_verified(place) && self.is_valid(place, log)? {
                self.set_verified(place);
            }
        }
        Ok(self.find(offset, bucket))
    }

    /// The places of the batches on which the answer for an offset rests: the first that reaches it, and in a gap also the
    /// one before, on whose word it is a gap.
    #[inline]
    fn rests_on(&self, offset: i64, bucket: Bucket) -> (usize, usize) {
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
        let bytes = log.read(u64::from(row.position), usize::try_from(size).unwrap_or(0))?;
        let Ok(header) = BatchHeader::parse(bytes, u64::from(size)) else { return Ok(false) };
        let absolute = |offset: u32| self.segment + i64::from(offset);
        Ok(header.size == size
            && (header.base_offset, header.last_offset) == (absolute(row.first), absolute(row.last))
            && header.ensure_valid(bytes).is_ok())
    }
}

/// Look-ups of offsets in one segment, by its table where there is one.
pub(crate) struct OffsetLookups<'a> {
    segment: &'a Segment,
    table: Option<&'a BatchTable>,
    /// For batches of the table that are not verified yet.
    log: Option<LogFile>,
}

impl<'a> OffsetLookups<'a> {
    pub(crate) fn new(segment: &'a Segment) -> Self {
        Self { segment, table: segment.batch_table.get(), log: None }
    }

    /// Where in the table an offset of the segment is searched; `None` without a table.
    #[inline]
    pub(crate) fn bucket(&self, offset: i64) -> Option<Bucket> {
        self.table.map(|table| table.bucket(offset))
    }

    /// Loads the memory that a search in a bucket reads. The result has no meaning.
    #[inline]
    pub(crate) fn touch(&self, bucket: Bucket) -> u32 {
        self.table.map_or(0, |table| table.touch(bucket))
    }

    /// The batch of an offset, for which [`OffsetLookups::bucket`] gave the bucket; `None` where a single look-up has to
    /// answer.
    #[inline]
    pub(crate) fn find(&mut self, offset: i64, bucket: Option<Bucket>) -> Result<Option<Placed>> {
        let found = self.table.zip(bucket).and_then(|(table, bucket)| table.find(offset, bucket));
        found.map_or_else(|| self.find_verified(offset), |found| Ok(Some(found)))
    }

    /// [`OffsetLookups::find`] where the table does not exist yet, or has not verified the batches.
    #[cold]
    fn find_verified(&mut self, offset: i64) -> Result<Option<Placed>> {
        if self.table.is_none() {
            let price = self.segment.file_size().map(|size| size / BatchTable::LOG_BYTES_PER_LOOKUP);
            let table = |price| self.segment.batch_table.ask(price, || BatchTable::read(self.segment));
            self.table = or_none(price.and_then(table))?;
        }
        let Some(table) = self.table else { return Ok(None) };
        if self.log.is_none() {
            self.log = self.segment.log_file(LOOKUP_READ).ok();
        }
        // the single look-up reports what cannot be read
        Ok(self.log.as_mut().and_then(|log| table.verify(offset, log).ok().flatten()))
    }
}

/// A table, or none where it cannot be made: the single look-up reports the error. Only an interrupt is passed on.
pub(super) fn or_none<T>(table: Result<Option<T>>) -> Result<Option<T>> {
    match table {
        Err(interrupted @ Error::Interrupted(_)) => Err(interrupted),
        table => Ok(table.ok().flatten()),
    }
}
