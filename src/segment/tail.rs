//! The end of a segment: where its data stop and which offset comes next.
//!
//! Kafka learns the log end offset from the last index entry and a read behind it, and believes both. Here the walk starts
//! at the last entry that its batch confirms, checks every batch behind it, and takes an end only where nothing valid
//! follows.

use super::walk::{Bounds, Damage, Preceding, Step};
use super::{LOOKUP_READ, Segment, Walk};
use crate::error::Result;

/// Where a segment ends.
#[derive(Debug, Clone)]
pub(crate) struct Tail {
    /// The position after the last byte of data. In the last segment what follows is a torn batch, or the zeros of a
    /// preallocated file; elsewhere it is the size of the file.
    pub(crate) end: u64,
    /// The offset after the last batch.
    pub(crate) end_offset: i64,
    /// What ended the last segment before its file does.
    pub(crate) cut: Option<Damage>,
}

impl Segment {
    /// The end, found once.
    pub(crate) fn tail(&self) -> Result<&Tail> {
        if let Some(tail) = self.tail.get() {
            return Ok(tail);
        }
        let tail = self.find_tail()?;
        Ok(self.tail.get_or_init(|| tail))
    }

    /// Words on what lies behind the data of the last segment, where something does.
    pub(crate) fn torn_tail(&self) -> Result<Option<String>> {
        let Tail { end_offset, cut: Some(cut), .. } = self.tail()? else { return Ok(None) };
        let left = self.file_size()?.saturating_sub(cut.position);
        Ok(Some(format!(
            "{}: no whole batch follows position {}, where {left} bytes are left (expected {}, found {}); \
             taken as the end of the data, offset {end_offset}",
            self.path().display(),
            cut.position,
            cut.malformed.expected,
            cut.malformed.found,
        )))
    }

    fn find_tail(&self) -> Result<Tail> {
        // all of the file: where in it the data end is what is asked
        let bounds = Bounds { base_offset: self.base_offset(), upper: self.upper(), end: self.file_size()? };
        let index = self.or_warn(self.offset_index());
        let mut walk = Walk::new(self.log_file(LOOKUP_READ)?, bounds, 0, None);
        let last_indexed =
            index.as_deref().map_or(Ok(None), |index| self.last_confirmed(index, &mut walk))?;
        if let Some(position) = last_indexed {
            walk.position = position;
        } else {
            let before = Preceding { last_offset: bounds.base_offset - 1, leader_epoch: -1 };
            walk = Walk::new(self.log_file(LOOKUP_READ)?, bounds, 0, Some(before));
        }
        loop {
            self.open_files.interrupt.check()?;
            let before = walk.before;
            let damage = match walk.step_through()? {
                Step::End => {
                    return Ok(Tail { end: bounds.end, end_offset: walk.expected_offset(), cut: None });
                }
                Step::Batch(batch) => match walk.verify(&batch)? {
                    Ok(()) => {
                        self.note_overflow(&batch);
                        continue;
                    }
                    Err(malformed) => walk.reject(&batch, before, malformed),
                },
                Step::Damage(damage) => damage,
            };
            let stretch = walk.resume(&damage, index.as_deref())?;
            if stretch.end_offset.is_none() {
                let cut = self.is_last().then(|| damage.clone());
                let end = if self.is_last() { damage.position } else { bounds.end };
                return Ok(Tail { end, end_offset: walk.expected_offset(), cut });
            }
        }
    }
}
