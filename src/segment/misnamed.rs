//! Whether the file of a segment has the name of another one: it was renamed, or copied under a second name.

use std::ops::Range;

#[cfg(feature = "inspect")]
use super::SCAN_READ;
use super::damage::{Bounds, Damage};
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
        let is_flipped = |start: i64| (start ^ base_offset).cast_unsigned().is_power_of_two();
        Ok(offsets.filter(|offsets| batches > 1 || !is_flipped(offsets.start)))
    }

    /// The offsets of batches that show another name: a run without a gap from the first one, or those of
    /// [`Segment::offsets_below_base`].
    ///
    /// # Errors
    /// Those of reading the `.log`.
    #[cfg(feature = "inspect")]
    pub(crate) fn misnamed(&self) -> Result<Option<Range<i64>>> {
        let mut walk = self.walk_from_last_entry(None)?;
        let Step::Damage(damage) = walk.step_through()? else { return Ok(None) };
        if let Some(offsets) = self.run_from_below_base()? {
            return Ok(Some(offsets));
        }
        let span = walk.resume(&damage, None, !self.is_last())?;
        self.offsets_below_base(&damage, &span)
    }

    /// The offsets of two or more valid batches that begin below the base offset in the name, and have no gap
    /// between them up to that offset or to the end of the file. A flipped bit of a base offset leaves a gap.
    #[cfg(feature = "inspect")]
    fn run_from_below_base(&self) -> Result<Option<Range<i64>>> {
        let base_offset = self.base_offset();
        let Some(first) = self.first_offset()?.filter(|first| *first < base_offset) else { return Ok(None) };
        let bounds = Bounds { base_offset: first, upper: self.upper(), end: self.file_size()? };
        let mut walk = Walk::new(self.log_file(SCAN_READ)?, bounds, 0, Some(bounds.before_first(-1)));
        let (mut expected, mut batches) = (first, 0);
        loop {
            self.open_files.interrupt.check()?;
            match walk.step_through()? {
                Step::Batch(batch) if batch.header.base_offset == expected => {
                    expected = walk.expected_offset();
                    batches += 1;
                }
                Step::End => break,
                Step::Batch(_) | Step::Damage(_) => return Ok(None),
            }
            if expected > base_offset && batches > 1 {
                break;
            }
        }
        Ok((batches > 1).then_some(first..expected))
    }

    /// The end offset of the batches if all of them are valid, whatever the name of the next segment is, and
    /// those beyond it continue the others: a flipped bit of a base offset leaves a gap.
    ///
    /// # Errors
    /// Those of reading the `.log`.
    #[cfg(feature = "inspect")]
    pub(crate) fn end_without_next(&self) -> Result<Option<i64>> {
        let bounds = Bounds { base_offset: self.base_offset(), upper: i64::MAX, end: self.file_size()? };
        let mut walk = Walk::new(self.log_file(SCAN_READ)?, bounds, 0, Some(bounds.before_first(-1)));
        let mut expected = bounds.base_offset;
        loop {
            self.open_files.interrupt.check()?;
            match walk.step_through()? {
                Step::Batch(batch) => {
                    let is_beyond = batch.header.last_offset >= self.upper();
                    if is_beyond && batch.header.base_offset != expected {
                        return Ok(None);
                    }
                    expected = walk.expected_offset();
                }
                Step::Damage(_) => return Ok(None),
                Step::End => return Ok(Some(walk.expected_offset())),
            }
        }
    }

    /// The base offset of the first batch, if its checksum is right.
    #[cfg(feature = "inspect")]
    pub(crate) fn first_offset(&self) -> Result<Option<i64>> {
        let bounds = Bounds { base_offset: 0, upper: i64::MAX, end: self.file_size()? };
        let mut walk = Walk::new(self.log_file(LOOKUP_READ)?, bounds, 0, None);
        Ok(walk.valid_at(0, 0, i64::MAX)?.map(|batch| batch.header.base_offset))
    }
}
