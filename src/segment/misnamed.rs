//! Whether the file of a segment has the name of another one: it was renamed, or copied under a second name.

use std::ops::Range;

#[cfg(feature = "inspect")]
use super::SCAN_READ;
use super::damage::{Bounds, Damage};
#[cfg(feature = "inspect")]
use super::walk::Batch;
use super::walk::Step;
use super::{DamagedSpan, LOOKUP_READ, Segment, Walk};
use crate::error::Result;
use crate::record::{BatchHeader, V2_HEADER};

impl Segment {
    /// The offsets of the batches below the base offset in the name, if the file has no valid batch at or
    /// above it, and the checksums of two or more batches below, or of the only one, are right. A single one
    /// that one flipped bit of its base offset explains is damaged.
    ///
    /// `damage`, `span`: the first of the segment, and what a walk skipped there.
    ///
    /// # Errors
    /// Those of reading the `.log`.
    pub(super) fn offsets_below_base(
        &self,
        damage: &Damage,
        span: &DamagedSpan,
    ) -> Result<Option<Range<i64>>> {
        let is_flipped = |start: i64| (start ^ self.base_offset()).cast_unsigned().is_power_of_two();
        let found = self.batches_below_base(damage, span)?;
        Ok(found
            .and_then(|(offsets, batches)| (batches > 1 || !is_flipped(offsets.start)).then_some(offsets)))
    }

    /// Whether damage at the end of the data has a batch of another place, such as another segment: its
    /// checksum is right. Not a batch that lost the first bytes of its base offset, which no checksum covers:
    /// in a torn write, they can be in a sector that was not written.
    ///
    /// # Errors
    /// Those of reading the `.log`.
    pub(crate) fn has_foreign_batch(
        &self,
        walk: &mut Walk,
        damage: &Damage,
        span: &DamagedSpan,
    ) -> Result<bool> {
        let below = self.batches_below_base(damage, span)?;
        if below.is_some_and(|(_, batches)| batches > 1) {
            return Ok(true);
        }
        let start = walk.log.read(damage.position, V2_HEADER)?;
        let stored = start.first_chunk().map_or(0, |stored| i64::from_be_bytes(*stored));
        // after a truncation inside a batch, the offset is above the one that is expected
        let has_lost_bytes =
            stored == 0 || stored > 0 && stored.leading_zeros() / 8 > damage.offset.leading_zeros() / 8;
        Ok(!has_lost_bytes && walk.is_intact_at(damage)?)
    }

    /// The offsets of the batches below the base offset, and their number, of a file without others; as in
    /// [`Segment::offsets_below_base`].
    fn batches_below_base(&self, damage: &Damage, span: &DamagedSpan) -> Result<Option<(Range<i64>, usize)>> {
        if damage.position > 0 || span.end_offset.is_some() {
            return Ok(None);
        }
        let base_offset = self.base_offset();
        let (mut log, end) = (self.log_file(LOOKUP_READ)?, self.file_size()?);
        // a batch of this segment, of which only a part is there, may have whole logs in its values
        let first = BatchHeader::parse_unproven(log.read(0, V2_HEADER)?, u64::MAX).ok();
        let Some(first) = first.filter(|first| (0..base_offset).contains(&first.last_offset)) else {
            return Ok(None);
        };
        // the first offset of a wrapper is in its payload
        let lowest = if first.is_wrapper() {
            first.last_offset.saturating_sub(i32::MAX.into())
        } else {
            first.base_offset
        };
        let bounds = Bounds { base_offset: lowest.max(0), upper: base_offset, end };
        let first = Some(first.base_offset).filter(|_| !first.is_wrapper());
        let mut walk = Walk::new(log, bounds, 0, Some(bounds.before_first(-1)));
        let (mut offsets, mut batches) = (None::<Range<i64>>, 0);
        loop {
            self.open_files.interrupt.check()?;
            match walk.step_through()? {
                Step::End => break,
                Step::Batch(batch) => {
                    let start = offsets.map(|offsets| offsets.start).or(first);
                    let start =
                        start.map_or(batch.header.base_offset, |start| start.min(batch.header.base_offset));
                    offsets = Some(start..batch.header.last_offset + 1);
                    batches += 1;
                }
                Step::Damage(damage) => {
                    if walk.resume(&damage, None, false)?.end_offset.is_none() {
                        break;
                    }
                }
            }
        }
        Ok(offsets.map(|offsets| (offsets, batches)))
    }

    /// The valid batches at the start of the file that are below the base offset in the name.
    ///
    /// # Errors
    /// Those of reading the `.log`.
    #[cfg(feature = "inspect")]
    pub(crate) fn below_base(&self) -> Result<Option<BelowBase>> {
        let base_offset = self.base_offset();
        let Some(first) = self.first_header()? else { return self.below_base_after_damage() };
        if first.base_offset >= base_offset {
            return Ok(None);
        }
        let bounds = Bounds { base_offset: first.base_offset, upper: self.upper(), end: self.file_size()? };
        let mut walk = Walk::new(self.log_file(SCAN_READ)?, bounds, 0, Some(bounds.before_first(-1)));
        let (mut offsets, mut batches) = (first.base_offset..first.base_offset, 0);
        let own = loop {
            self.open_files.interrupt.check()?;
            match walk.step_through()? {
                Step::Batch(Batch { header, .. }) if header.base_offset < base_offset => {
                    offsets.end = header.last_offset + 1;
                    batches += 1;
                }
                Step::Batch(batch) => break Some(batch.header.base_offset),
                Step::End => break None,
                Step::Damage(damage) => {
                    if walk.resume(&damage, None, !self.is_last())?.end_offset.is_none() {
                        break None;
                    }
                }
            }
        };
        let end = own.unwrap_or_else(|| self.upper());
        let flip = if batches > 1 { Flip::None } else { Flip::of(&first, base_offset, end) };
        Ok((batches > 0).then_some(BelowBase { offsets, flip, has_others: own.is_some() }))
    }

    /// The same of a file whose first batch is damaged.
    #[cfg(feature = "inspect")]
    fn below_base_after_damage(&self) -> Result<Option<BelowBase>> {
        let bounds = Bounds { base_offset: self.base_offset(), upper: self.upper(), end: self.file_size()? };
        let mut walk = Walk::new(self.log_file(SCAN_READ)?, bounds, 0, Some(bounds.before_first(-1)));
        let Step::Damage(damage) = walk.step_through()? else { return Ok(None) };
        if damage.position > 0 {
            return Ok(None);
        }
        let span = walk.resume(&damage, None, !self.is_last())?;
        let offsets = self.offsets_below_base(&damage, &span)?;
        Ok(offsets.map(|offsets| BelowBase { offsets, flip: Flip::None, has_others: false }))
    }

    /// The end offset of the batches up to the first damage, if some are beyond the name of the next segment,
    /// which one flipped bit of a base offset does not explain.
    ///
    /// # Errors
    /// Those of reading the `.log`.
    #[cfg(feature = "inspect")]
    pub(crate) fn end_beyond_next(&self) -> Result<Option<i64>> {
        let upper = self.upper();
        let bounds = Bounds { base_offset: self.base_offset(), upper: i64::MAX, end: self.file_size()? };
        let mut walk = Walk::new(self.log_file(SCAN_READ)?, bounds, 0, Some(bounds.before_first(-1)));
        let (mut beyond, mut flip) = (0, Flip::None);
        loop {
            self.open_files.interrupt.check()?;
            let expected = walk.expected_offset();
            match walk.step_through()? {
                Step::Batch(Batch { header, .. }) if header.last_offset >= upper => {
                    // one that continues the others is right
                    if beyond == 0 && header.base_offset != expected {
                        flip = Flip::of(&header, expected, upper);
                    }
                    beyond += 1;
                }
                Step::Batch(_) => {}
                Step::Damage(_) | Step::End => break,
            }
        }
        let is_right = beyond > 1 || beyond == 1 && flip == Flip::None;
        Ok(is_right.then(|| walk.expected_offset()))
    }

    /// The header of the first batch, if its checksum is right.
    #[cfg(feature = "inspect")]
    fn first_header(&self) -> Result<Option<BatchHeader>> {
        let bounds = Bounds { base_offset: 0, upper: i64::MAX, end: self.file_size()? };
        let mut walk = Walk::new(self.log_file(LOOKUP_READ)?, bounds, 0, None);
        Ok(walk.valid_at(0, 0, i64::MAX)?.map(|batch| batch.header))
    }

    /// The base offset of the first batch, if its checksum is right.
    ///
    /// # Errors
    /// Those of reading the `.log`.
    #[cfg(feature = "inspect")]
    pub(crate) fn first_offset(&self) -> Result<Option<i64>> {
        Ok(self.first_header()?.map(|header| header.base_offset))
    }

    /// The base offset of the first batch whose checksum is right, also after damage.
    ///
    /// # Errors
    /// Those of reading the `.log`.
    #[cfg(feature = "inspect")]
    pub(crate) fn first_valid_offset(&self) -> Result<Option<i64>> {
        if let Some(first) = self.first_offset()? {
            return Ok(Some(first));
        }
        let bounds = Bounds { base_offset: 0, upper: i64::MAX, end: self.file_size()? };
        let mut walk = Walk::new(self.log_file(SCAN_READ)?, bounds, 0, Some(bounds.before_first(-1)));
        match walk.step_through()? {
            Step::Batch(batch) => Ok(Some(batch.header.base_offset)),
            Step::Damage(damage) => Ok(walk.resume(&damage, None, !self.is_last())?.end_offset),
            Step::End => Ok(None),
        }
    }
}

/// Valid batches at the start of a file that are below the base offset in its name.
#[cfg(feature = "inspect")]
#[derive(Debug)]
pub(crate) struct BelowBase {
    /// From the first of them to the end of the last.
    pub(crate) offsets: Range<i64>,
    /// Whether a flipped bit explains them.
    pub(crate) flip: Flip,
    /// Whether valid batches follow that may have the name.
    pub(crate) has_others: bool,
}

/// Whether one flipped bit of a base offset explains that a batch is in a wrong place.
#[cfg(feature = "inspect")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flip {
    None,
    /// With the bit, the batch begins where it is expected.
    Exact,
    /// With the bit, it begins after a gap, as a compaction leaves them.
    AfterGap,
}

#[cfg(feature = "inspect")]
impl Flip {
    /// `start`, `end`: the offsets between which the batch must be.
    fn of(header: &BatchHeader, start: i64, end: i64) -> Self {
        // the old formats store the last offset
        let to_stored = if header.magic == 2 { 0 } else { header.last_offset - header.base_offset };
        let span = header.last_offset - header.base_offset + 1;
        let stored = header.base_offset + to_stored;
        let places = (0..i64::BITS - 1).map(|bit| (stored ^ (1 << bit)).saturating_sub(to_stored));
        let fits = |place: &i64| *place >= start && place.saturating_add(span) <= end;
        match places.filter(fits).min() {
            Some(place) if place == start => Self::Exact,
            Some(_) => Self::AfterGap,
            None => Self::None,
        }
    }
}
