//! Whether a batch may begin at a position, by the bytes there alone.

use super::walk::Walk;
use crate::error::Result;
use crate::record::{LOG_OVERHEAD, MAX_STORED_BYTES, MIN_LENGTH, PREFIX};

/// The smallest unit that a disk loses.
const SECTOR: u64 = 512;

impl Walk {
    /// Whether the sizes of key and value of an entry of magic 0 or 1 add up to its size. Numbers in a value
    /// often look like the start of an entry, and a checksum of each would be too much work.
    pub(super) fn fills_its_size(&mut self, position: u64, size: usize) -> Result<bool> {
        let has_timestamp = self.log.read(position, PREFIX)?.get(PREFIX - 1) == Some(&1);
        let mut at = PREFIX + 1 + if has_timestamp { 8 } else { 0 };
        for _ in ["key", "value"] {
            if at + 4 > size {
                return Ok(false);
            }
            let Some(length) = self.log.number_at(position + at as u64)? else { return Ok(false) };
            let Some(length) = (length >= -1).then(|| usize::try_from(length.max(0)).unwrap_or(size)) else {
                return Ok(false);
            };
            at = at.saturating_add(4).saturating_add(length);
        }
        Ok(at == size)
    }

    /// Whether nothing is left of a header at a position: the file ends in it, or zeros are in its place up
    /// to the end of the file or of a sector. `next`: the offset that it would have.
    pub(super) fn is_destroyed_header(&mut self, position: u64, next: i64) -> Result<bool> {
        let end = self.bounds.end;
        // fewer bytes than an offset has are zero in every header
        let sector_end = (position + 8).next_multiple_of(SECTOR).min(end);
        if self.log.is_zero(position, sector_end)? {
            // after a value that is the last of its record and of the file, the number of headers follows
            return Ok(position + 1 < end || self.is_continued);
        }
        let prefix = self.log.read(position, PREFIX)?;
        let offset = prefix.get(..prefix.len().min(8)).unwrap_or_default();
        Ok(prefix.len() < PREFIX && next.to_be_bytes().starts_with(offset))
    }

    /// Whether the bytes look like the header of a damaged batch: the offset and length are possible, or the
    /// offset is exactly the next one while the length or the magic is damaged.
    pub(super) fn is_damaged_header(&mut self, position: u64, low: i64, high: i64) -> Result<bool> {
        let end = self.bounds.end;
        let prefix = self.log.read(position, PREFIX)?;
        let length = plausible_length(prefix).filter(|length| position + *length as u64 <= end);
        Ok(offset_of(prefix).is_some_and(|offset| {
            (low..high).contains(&offset) && (length.is_some() || offset == low && prefix.len() == PREFIX)
        }))
    }
}

pub(super) fn offset_of(prefix: &[u8]) -> Option<i64> {
    prefix.first_chunk().map(|offset| i64::from_be_bytes(*offset))
}

/// The size of the batch at the start of `prefix`, if its length and magic are possible.
pub(super) fn plausible_length(prefix: &[u8]) -> Option<usize> {
    let magic = *prefix.get(PREFIX - 1)?;
    possible_size(prefix).filter(|_| magic <= 2)
}

/// Like [`plausible_length`], but with any magic, which may be the damaged byte.
pub(super) fn possible_size(prefix: &[u8]) -> Option<usize> {
    let length = i32::from_be_bytes(*prefix.get(8..)?.first_chunk()?);
    let size = usize::try_from(length).ok()? + LOG_OVERHEAD;
    // the header parser checks the rest
    (LOG_OVERHEAD + MIN_LENGTH..=MAX_STORED_BYTES).contains(&size).then_some(size)
}
