//! The payload of a damaged batch, in which a value may contain whole batches.

use std::ops::Range;

use super::damage::Damage;
use super::walk::{Batch, Walk};
use crate::error::Result;
use crate::index::OffsetIndex;
use crate::record::{BatchHeader, V2_HEADER, varint};

/// The most bytes of a record before whole batches in its value that are looked at.
const MAX_BEFORE_VALUE: u64 = 64 << 10;

impl Walk {
    /// The end of the damaged batch by its own length, if its header is possible; else its position. It may
    /// be above the end of the segment.
    pub(super) fn payload_end(&mut self, damage: &Damage) -> Result<u64> {
        let header = self.possible_header(damage.position, damage.offset)?;
        Ok(damage.position + header.map_or(0, |header| u64::from(header.size)))
    }

    /// The end of the damaged batch by its own length, if the header of another damaged batch is there, with
    /// the next offset.
    pub(super) fn end_at_damaged_header(&mut self, damage: &Damage) -> Result<Option<u64>> {
        let Some(header) = self.possible_header(damage.position, damage.offset)? else { return Ok(None) };
        let (end, next_offset) = (damage.position + u64::from(header.size), header.last_offset + 1);
        if end >= self.bounds.end {
            return Ok(None);
        }
        // the first offset of a wrapper is in its payload, so that nothing confirms the end before it
        let next = self.possible_header(end, next_offset)?.filter(|next| !next.is_wrapper());
        Ok(next.filter(|next| next.base_offset == next_offset).map(|_| end))
    }

    /// Whether whole batches after damage that destroyed a header, the first of them and those up to `end`,
    /// are in a value of its batch. Not every such value is found.
    pub(super) fn are_in_value(&mut self, damage: &Damage, first: &Batch, end: u64) -> Result<bool> {
        Ok(self.follows_lower_offsets(damage, first)?
            || self.is_within_record(damage, first.position, end)?)
    }

    /// Whether a whole batch that ends where these begin has an offset below that of the damage. Not if it is
    /// the expected one without its first bytes, as at the end of a lost sector.
    fn follows_lower_offsets(&mut self, damage: &Damage, first: &Batch) -> Result<bool> {
        let (mut from, high) = (damage.position + 1, damage.offset);
        while let Some(candidate) = self.next_candidate(from, first.position, first.position, 1..high)? {
            from = candidate + 1;
            if let Some(lower) = self.valid_at(candidate, 1, high)?
                && lower.end() == first.position
            {
                let offset = lower.header.base_offset;
                let expected = first.header.base_offset - lower.header.offsets();
                let is_rest = |bytes: u32| offset == expected & ((1 << (8 * bytes)) - 1);
                return Ok(offset == expected || !(1..8).any(is_rest));
            }
        }
        Ok(false)
    }

    /// Whether a whole batch from a position on has one of these offsets, and whole batches after it lead to
    /// the end of the data. Then batches before it with higher offsets are in a value: no batch in a
    /// value ends where its record does.
    pub(super) fn leads_to_end(&mut self, from: u64, offsets: Range<i64>) -> Result<bool> {
        let (mut from, end) = (from, self.bounds.end);
        while let Some(candidate) = self.next_candidate(from, end, end, offsets.clone())? {
            from = candidate + 1;
            let mut last = self.valid_at(candidate, offsets.start, offsets.end)?;
            while let Some(batch) = last {
                if batch.end() == end {
                    return Ok(true);
                }
                from = batch.end();
                last = self.valid_at(from, batch.header.last_offset.saturating_add(1), i64::MAX)?;
            }
        }
        Ok(false)
    }

    /// Whether the start of a v2 record before these batches, which has no headers, has lengths by which they
    /// are in its value.
    fn is_within_record(&mut self, damage: &Damage, first: u64, end: u64) -> Result<bool> {
        let from = (damage.position + 1).max(first.saturating_sub(MAX_BEFORE_VALUE));
        if !self.spend(first - from) {
            return Ok(false);
        }
        let before = self.log.read(from, usize::try_from(first - from).unwrap_or(0))?.to_vec();
        for at in 0..before.len() {
            let Some((value, record_end)) = before.get(at..).and_then(value_of_record) else { continue };
            let start = from + at as u64;
            let (value, record_end) = (start + value.start..start + value.end, start + record_end);
            let encloses = value.start <= first && value.end >= end && record_end == value.end + 1;
            // the number of headers follows the value
            if encloses && (value.end >= self.bounds.end || self.log.read(value.end, 1)? == [0]) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The header at a position, if it is one that can be right and have offsets from `low` on.
    fn possible_header(&mut self, position: u64, low: i64) -> Result<Option<BatchHeader>> {
        let start = self.log.read(position, V2_HEADER)?;
        Ok(BatchHeader::parse_unproven(start, u64::MAX).ok().filter(|header| {
            // the first offset of a wrapper is in its payload
            (header.is_wrapper() || header.base_offset >= low)
                && (low..self.bounds.upper).contains(&header.last_offset)
                && !self.bounds.is_far(header)
        }))
    }
}

/// The place of the value of the record at the start of some bytes, which need not contain the value, and the
/// end of the record; `None` if there is no record, or it ends before its value.
fn value_of_record(bytes: &[u8]) -> Option<(Range<u64>, u64)> {
    let mut rest = bytes;
    let length = u64::try_from(varint::read_i32(&mut rest).ok()?).ok()?;
    let end = (bytes.len() - rest.len()) as u64 + length;
    // no attribute is in use
    let (0, mut rest) = rest.split_first()? else { return None };
    varint::read_i64(&mut rest).ok()?;
    varint::read_i32(&mut rest).ok().filter(|delta| *delta >= 0)?;
    let key = varint::read_i32(&mut rest).ok().filter(|length| *length >= -1)?;
    rest = rest.get(usize::try_from(key.max(0)).ok()?..)?;
    let value = u64::try_from(varint::read_i32(&mut rest).ok()?).ok()?;
    let start = (bytes.len() - rest.len()) as u64;
    Some((start..start + value, end)).filter(|(value, end)| value.end < *end)
}

/// Whether the index has an entry of this offset or a higher one.
pub(super) fn has_entry_from(index: Option<&OffsetIndex>, offset: i64) -> Result<bool> {
    let Some((index, last)) = index.and_then(|index| Some((index, index.entries().checked_sub(1)?))) else {
        return Ok(false);
    };
    Ok(index.entry(last)?.offset >= offset)
}
