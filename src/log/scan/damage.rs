//! What a scan does where the log is damaged: an error, or a gap.

use std::sync::Arc;

use super::damaged_range::rest_of;
use super::{DamagedRange, OnDamage, Scan, ScanOptions};
use crate::error::{Malformed, Result};
use crate::record::{Payload, Records};
use crate::segment::{Batch, Damage, DamagedSpan, SCAN_READ, Segment};

impl Scan {
    /// The gap just added, where the scan reports gaps.
    pub(super) fn reported(&self) -> Option<DamagedRange> {
        self.damaged_ranges.last().filter(|_| self.options.on_damage == OnDamage::Report).cloned()
    }

    /// Passes damage that the walk met. Damage outside the range is nobody's business; inside it is an error, or a gap,
    /// which is given where the scan reports. Damage that takes no offset belongs to the range that ends there, or it would
    /// belong to none.
    pub(super) fn pass(&mut self, segment: &Segment, damage: &Damage) -> Result<Option<DamagedRange>> {
        if damage.offset > self.end {
            self.walk = None;
            return Ok(None);
        }
        let index = segment.or_warn(segment.offset_index());
        let Some(walk) = &mut self.walk else { return Ok(None) };
        let stretch = walk.resume(damage, index.as_deref())?;
        let end_offset = stretch.end_offset.unwrap_or(segment.upper());
        self.next_offset = None;
        // at the start of the log no range ends, so it belongs to the one that begins there
        let begins_log = self.log.segments().first().is_some_and(|first| self.start <= first.base_offset());
        if end_offset < self.start || end_offset == self.start && !begins_log {
            return Ok(None);
        }
        if damage.offset == self.end && end_offset > self.end {
            self.walk = None;
            return Ok(None);
        }
        if self.options.on_damage == OnDamage::Raise {
            return Err(segment.corrupt(damage));
        }
        if let Some(uncommitted) = &mut self.uncommitted {
            uncommitted.misses();
        }
        let end_offset = if segment.is_last() { end_offset.min(segment.end_offset()?) } else { end_offset };
        let start_offset = stretch.start_offset.max(self.start);
        let stretch = DamagedSpan { start_offset, end_offset: Some(end_offset), ..stretch };
        self.damaged_ranges.push(DamagedRange::new(segment, stretch, &damage.malformed));
        Ok(self.reported())
    }

    /// Behind the last batch of the log: a torn batch is named as a gap too, once; the zeros of a preallocated file are
    /// not.
    pub(super) fn damaged_tail(&mut self) -> Result<Option<DamagedRange>> {
        self.finished = true;
        if self.options.on_damage == OnDamage::Raise {
            return Ok(None);
        }
        // a range that ends where the last segment starts asks nothing of that segment
        let asked = |end: i64| self.options.ranges.end_offset.is_none_or(|given| given > end);
        let Some(last) = self.log.segments().last().filter(|last| asked(last.base_offset())).cloned() else {
            return Ok(None);
        };
        let tail = last.tail()?;
        let Some(cut) = tail.cut.as_ref().filter(|_| self.end == tail.end_offset) else { return Ok(None) };
        let end_position = last.file_size()?;
        if last.log_file(SCAN_READ)?.is_zero(cut.position, end_position)? {
            return Ok(None);
        }
        let stretch = DamagedSpan {
            start_position: cut.position,
            end_position,
            start_offset: tail.end_offset,
            end_offset: None,
        };
        self.damaged_ranges.push(DamagedRange::new(&last, stretch, &cut.malformed));
        Ok(self.reported())
    }
}

/// Gives up the rest of a batch, one of whose records breaks the format: an error, or a gap.
#[cold]
pub(super) fn break_off(
    open: &mut Option<(Batch, Records, Payload)>,
    segment: Option<&Arc<Segment>>,
    options: &ScanOptions,
    malformed: Malformed,
) -> Result<Option<DamagedRange>> {
    let (Some((batch, records, _)), Some(segment)) = (open.take(), segment) else { return Ok(None) };
    let from = records.expected_offset();
    if options.on_damage == OnDamage::Raise {
        return Err(malformed.at(segment.path(), batch.position, Some(from)));
    }
    Ok(Some(DamagedRange::new(segment, rest_of(&batch, from), &malformed)))
}
