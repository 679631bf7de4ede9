//! The position of a scan: its segment and its next batch.

use std::sync::Arc;

use super::Scan;
use super::uncommitted::Uncommitted;
use crate::error::Result;
use crate::segment::{Batch, Damage, EpochsBefore, Preceding, SCAN_READ, Segment, Step, Walk};

/// The position of a scan in its log.
#[derive(Debug, Default)]
pub(super) struct Cursor {
    /// The segment that is read.
    pub(super) segment: Option<Arc<Segment>>,
    /// The walk through it; `None` before the first segment and between two.
    pub(super) walk: Option<Walk>,
    /// The current batch; `None` before the first, and at damage.
    pub(super) batch: Option<Batch>,
    /// The state before the current batch, or before the damage.
    pub(super) before: Option<Preceding>,
    /// The offset after the last batch of `segment`, once its end was reached.
    segment_end: Option<i64>,
    /// The base offset of the last segment that was considered; `None` before the first.
    last_base_offset: Option<i64>,
    /// The offset after the last batch; `None` after damage.
    pub(super) next_offset: Option<i64>,
    epochs: Option<EpochsBefore>,
}

impl Cursor {
    /// Makes the next batch of the segment the current one, verified if the walk verifies checksums. At the
    /// end of the segment there is none, and the walk is closed. If there is damage instead of a batch,
    /// returns it.
    ///
    /// A batch is verified before it is skipped or ends the range, because the position and the offsets of
    /// the next batch depend on its header.
    pub(super) fn next_batch(&mut self) -> Result<Option<Damage>> {
        self.batch = None;
        let Some(walk) = &mut self.walk else { return Ok(None) };
        self.before = walk.before;
        match walk.step_through()? {
            Step::End => {
                self.epochs = self.before.map(EpochsBefore::from).or(self.epochs);
                self.segment_end = self.before.map(|before| before.last_offset + 1);
                self.walk = None;
            }
            Step::Batch(batch) => self.batch = Some(batch),
            Step::Damage(damage) => return Ok(Some(damage)),
        }
        Ok(None)
    }

    /// The last offset before the current batch if the batch begins at or below it: its records up to there
    /// were read before.
    pub(super) fn overlap(&self, batch: &Batch) -> Option<i64> {
        let before = self.before?.last_offset;
        (batch.header.base_offset <= before).then_some(before)
    }

    /// Moves past a batch in the range. True if offsets are missing before it.
    pub(super) fn pass(&mut self, batch: &Batch) -> bool {
        let expected = self.next_offset.replace(batch.header.last_offset + 1);
        expected.is_some_and(|expected| batch.header.base_offset > expected)
    }
}

impl Scan {
    /// Opens the next segment that may contain records of the range; false if there is none.
    pub(super) fn next_segment(&mut self) -> Result<bool> {
        loop {
            let segments = self.log.segments();
            let next = match self.cursor.last_base_offset {
                None => segments.floor(self.filter.start).or(segments.first()),
                Some(base_offset) => segments.higher(base_offset),
            }
            .cloned();
            self.check_continuity(next.as_deref())?;
            let start = self.filter.start;
            let Some(segment) = next.filter(|segment| segment.base_offset().max(start) < self.filter.end)
            else {
                return Ok(false);
            };
            self.cursor.last_base_offset = Some(segment.base_offset());
            if let Some(walk) = self.walk_in(&segment)? {
                self.stats.segments_opened += 1;
                self.cursor.walk = Some(walk);
                self.cursor.segment = Some(segment);
                return Ok(true);
            }
        }
    }

    /// Compares the end of the finished segment with its indexes and with the next segment.
    fn check_continuity(&mut self, next: Option<&Segment>) -> Result<()> {
        let end = self.cursor.segment_end.take();
        let (Some(ended), Some(end)) = (&self.cursor.segment, end) else { return Ok(()) };
        let high = ended.upper();
        // then a damaged range covers the offsets after the last good batch
        let is_damaged =
            end < high && self.damaged_ranges.last().is_some_and(|damaged| damaged.end_offset == Some(high));
        if !is_damaged {
            ended.check_indexes(end);
        }
        if let Some(next) = next.filter(|_| end < self.filter.end.min(high)) {
            self.log.check_listing(ended, next)?;
            if !is_damaged {
                self.log.warn_of_gap(ended, end, next)?;
            }
        }
        Ok(())
    }

    /// A walk through the part of a segment that may contain records of the range; `None` if all of it is too
    /// old.
    fn walk_in(&self, segment: &Segment) -> Result<Option<Walk>> {
        let from = self.filter.start.max(segment.base_offset());
        let epochs = self.cursor.epochs.unwrap_or(EpochsBefore::UNKNOWN);
        // markers among old batches must not be skipped
        let is_waiting = self.uncommitted.as_ref().is_some_and(Uncommitted::is_waiting);
        let start_time = self.filter.options.ranges.start_time.filter(|_| !is_waiting);
        let mut walk = match start_time {
            Some(start_time) if !segment.hides_times()? => {
                match segment.largest_record_timestamp() {
                    Ok(largest) if largest < start_time => return Ok(None),
                    // if damage hides it, the scan reads the segment and reports the damage
                    Err(error) if !error.is_damage() => return Err(error),
                    _ => {}
                }
                let walk = segment.walk_to_time(start_time, from, segment.log_file(SCAN_READ)?)?;
                segment.check_unchanged()?;
                walk
            }
            _ if from > segment.base_offset() => {
                segment.walk_to(from, epochs, segment.log_file(SCAN_READ)?)?.0
            }
            _ => segment.walk(epochs, SCAN_READ)?,
        };
        walk.set_check_crcs(self.filter.options.check_crcs);
        Ok(Some(walk))
    }
}
