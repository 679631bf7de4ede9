//! Batches whose checksum is right and whose offsets contradict those before them: some were written by a leader that was elected with
//! fewer records, others by clients that assigned offsets. Kafka keeps them all, and no writer here cuts them off.

use super::candidate::plausible_length;
use super::damage::{Damage, is_possible_epoch};
use super::walk::{Batch, Walk};
use crate::error::Result;
use crate::record::{BatchHeader, PREFIX, V2_HEADER};

impl Walk {
    /// Whether the batch at the position begins at or below the last offset before it and ends above it, with a right checksum: a
    /// consumer reads its records above that offset. Not if a flipped bit of its base offset, which no checksum covers, explains that.
    #[cold]
    pub(super) fn is_intact_overlap(&mut self, header: &BatchHeader) -> Result<bool> {
        let Some(before) = self.before else { return Ok(false) };
        let is_overlap = (self.bounds.base_offset..=before.last_offset).contains(&header.base_offset)
            && (before.last_offset + 1..self.bounds.upper).contains(&header.last_offset)
            && is_possible_epoch(before.leader_epoch, header)
            && !self.bounds.is_far(header);
        let batch = Batch { position: self.position, header: *header };
        if !is_overlap || self.verify(&batch)?.is_err() {
            return Ok(false);
        }
        let at_end = (batch.end() >= self.bounds.end).then_some(self.bounds.upper);
        let next = self.header_at(batch.end())?.ok().map(|next| next.base_offset).or(at_end);
        if let Some(next) = next.filter(|next| *next < i64::MAX) {
            // a base offset that became lower leaves a gap before the next batch
            return Ok(next <= header.last_offset + 1);
        }
        let difference = header.base_offset ^ (before.last_offset + 1);
        // the first offset of a wrapper is in its payload
        Ok(header.is_wrapper() || !difference.cast_unsigned().is_power_of_two())
    }

    /// Whether the batch at damage is whole, and its checksum is right: then it is no torn write, whatever contradicts it.
    pub(crate) fn is_intact_at(&mut self, damage: &Damage) -> Result<bool> {
        let start = self.log.read(damage.position, V2_HEADER)?;
        let magic = start.get(PREFIX - 1).copied().unwrap_or_default();
        let end = plausible_length(start).map(|length| damage.position + length as u64);
        match end.filter(|end| *end <= self.bounds.end) {
            Some(end) => self.has_checksum(damage.position, end, magic),
            None => Ok(false),
        }
    }
}
