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
            None => Ok(self.walk_to(offset, -1, LOOKUP_READ)?.0.position),
        }
    }

    /// The positions and base offsets of batches after the position `from` at which the segment can be cut. They are at
    /// most `max_bytes` apart unless a batch is larger.
    pub(crate) fn cuts(&self, from: u64, max_bytes: u64) -> Result<Vec<(u64, i64)>> {
        let size = self.size()?;
        let mut cuts = Vec::new();
        if size.saturating_sub(from) <= max_bytes {
            return Ok(cuts);
        }
        let mut last_cut = from;
        let mut walk = self.walk_to(self.base_offset(), -1, LOOKUP_READ)?.0;
        walk.position = from;
        walk.before = None;
        let index = self.or_warn(self.offset_index());
        // without the entries of batches appended after the log was opened
        let inside = |entry: &OffsetPosition| u64::try_from(entry.position).is_ok_and(|at| at < size);
        let entries = index.iter().flat_map(|index| index.iter()).map_while(Result::ok);
        let mut entries = entries.take_while(inside).peekable();
        loop {
            self.open_files.interrupt.check()?;
            // the walk jumps to the last index entry before the next cut
            let short = |position: i32| {
                u64::try_from(position).is_ok_and(|at| at < last_cut.saturating_add(max_bytes))
            };
            let mut entry = None;
            while let Some(next) = entries.next_if(|next| short(next.position)) {
                entry = Some(next);
            }
            if let Some(entry) = entry {
                let jump = self.walk_to(entry.offset, -1, LOOKUP_READ)?.0;
                if jump.position > walk.position {
                    walk = jump;
                }
            }
            // the scan reports damage: the rest of the segment stays in one split
            let position = walk.position;
            let Step::Batch(batch) = walk.step()? else { return Ok(cuts) };
            if batch.end() - last_cut > max_bytes && position > last_cut {
                cuts.push((position, batch.header.base_offset));
                last_cut = position;
            }
        }
    }
}
