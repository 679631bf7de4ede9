//! Positions at which a segment can be split into parts of about the same size.

use super::search::Found;
use super::walk::{Batch, Step};
use super::{LOOKUP_READ, Segment};
use crate::error::Result;
use crate::types::OffsetPosition;

impl Segment {
    /// The batch that contains an offset, or the next one; `None` if there is none, or if damage hides it.
    pub(crate) fn batch_from(&self, offset: i64) -> Result<Option<Batch>> {
        match self.find_offset(offset) {
            Ok(Found::Batch(batch)) => Ok(Some(batch)),
            Err(error) if !error.is_damage() => Err(error),
            _ => Ok(None),
        }
    }

    /// The position of [`Segment::batch_from`]; if that is `None`, a position at or before the offset's.
    pub(crate) fn position_of(&self, offset: i64) -> Result<u64> {
        match self.batch_from(offset)? {
            Some(batch) => Ok(batch.position),
            None => Ok(self.walk_to(offset, -1, self.log_file(LOOKUP_READ)?)?.0.position),
        }
    }

    /// The positions and base offsets of batches after the position `from` at which the segment can be cut,
    /// up to the position `to` or the first at or after the offset `end`. They are at most `max_bytes`
    /// apart unless a batch is larger or the index is damaged. A damaged header ends them: the scan
    /// reports it.
    pub(crate) fn cuts(&self, from: u64, to: u64, end: i64, max_bytes: u64) -> Result<Vec<(u64, i64)>> {
        let mut cuts = Vec::new();
        if to.saturating_sub(from) <= max_bytes {
            return Ok(cuts);
        }
        let mut last_cut = from;
        let mut walk = self.walk(-1, LOOKUP_READ)?;
        walk.position = from;
        walk.before = None;
        while to.saturating_sub(last_cut) > max_bytes {
            let entry = self.entry_below(last_cut.saturating_add(max_bytes));
            // no look-up for an entry that was passed
            let is_ahead = |at: i32| u64::try_from(at).is_ok_and(|at| at > walk.position);
            if let Some(entry) = entry.filter(|entry| is_ahead(entry.position)) {
                let jump = self.walk_to(entry.offset, -1, self.log_file(LOOKUP_READ)?)?.0;
                if jump.position > walk.position {
                    walk = jump;
                }
            }
            let cut = loop {
                self.open_files.interrupt.check()?;
                let position = walk.position;
                let Step::Batch(batch) = walk.step()? else { return Ok(cuts) };
                if batch.end() - last_cut > max_bytes && position > last_cut {
                    break (position, batch.header.base_offset);
                }
            };
            last_cut = cut.0;
            cuts.push(cut);
            if cut.1 >= end {
                break;
            }
        }
        Ok(cuts)
    }

    /// The last index entry below a position, if the positions ascend: otherwise another one or none.
    fn entry_below(&self, position: u64) -> Option<OffsetPosition> {
        let index = self.or_warn(self.offset_index())?;
        let is_below = |entry: OffsetPosition| u64::try_from(entry.position).is_ok_and(|at| at < position);
        let (mut low, mut high) = (0, index.entries());
        while low < high {
            let middle = low + (high - low) / 2;
            if index.entry(middle).is_ok_and(is_below) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        index.entry(low.checked_sub(1)?).ok()
    }
}
