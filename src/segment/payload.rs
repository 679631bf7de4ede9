//! The payload of a damaged batch, in which a value may contain whole batches.

use super::damage::Damage;
use super::walk::Walk;
use crate::error::Result;
use crate::index::OffsetIndex;
use crate::record::{BatchHeader, V2_HEADER};

impl Walk {
    /// The end of the damaged batch by its own length, if its header is possible; else its position. It may be above the end of the
    /// segment.
    pub(super) fn payload_end(&mut self, damage: &Damage) -> Result<u64> {
        let start = self.log.read(damage.position, V2_HEADER)?;
        let header = BatchHeader::parse_unproven(start, u64::MAX).ok().filter(|header| {
            // the first offset of a wrapper is in its payload
            (header.is_wrapper() || header.base_offset >= damage.offset)
                && (damage.offset..self.bounds.upper).contains(&header.last_offset)
                && !self.bounds.is_far(header)
        });
        Ok(damage.position + header.map_or(0, |header| u64::from(header.size)))
    }
}

/// Whether the index has an entry of this offset or a higher one.
pub(super) fn has_entry_from(index: Option<&OffsetIndex>, offset: i64) -> Result<bool> {
    let Some((index, last)) = index.and_then(|index| Some((index, index.entries().checked_sub(1)?))) else {
        return Ok(false);
    };
    Ok(index.entry(last)?.offset >= offset)
}
