//! Batches whose checksum is right and whose offsets contradict those before them: some were written by a leader that was elected with
//! fewer records, others by clients that assigned offsets. Kafka keeps them all, and no writer here cuts them off.

use std::ops::Range;

use super::candidate::plausible_length;
use super::damage::{Damage, Preceding, is_possible_epoch};
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

    /// Notes the batches after one if they repeat offsets up to its last one, which a leader has appended a second time (KAFKA-19407): a
    /// consumer passes over them. They are two or more whole batches without a gap between them, which end at that offset, and after
    /// them the log goes on without a gap.
    ///
    /// `before`: the state before the batch, which must continue it: a flipped bit of its base offset, after which others seem to repeat
    /// offsets, does not.
    #[cold]
    pub(super) fn note_repeated(&mut self, batch: &Batch, before: Option<Preceding>) -> Result<bool> {
        let BatchHeader { base_offset, last_offset, leader_epoch, .. } = batch.header;
        let Some(before) = before.filter(|before| before.last_offset + 1 == base_offset) else {
            return Ok(false);
        };
        let leader_epoch = before.leader_epoch.max(leader_epoch);
        let (mut position, mut expected, mut batches) = (batch.end(), None, 0);
        let mut next_offset = Some(self.bounds.upper).filter(|upper| *upper != i64::MAX);
        while position < self.bounds.end {
            let Ok(&header) = self.header_at(position)? else { break };
            if header.base_offset > last_offset {
                next_offset = Some(header.base_offset);
                break;
            }
            let is_repeated = expected.is_none_or(|expected| header.base_offset == expected)
                && header.base_offset >= self.bounds.base_offset
                && header.last_offset <= last_offset
                && is_possible_epoch(leader_epoch, &header)
                && self.spend(u64::from(header.size));
            if !is_repeated || self.verify(&Batch { position, header })?.is_err() {
                return Ok(false);
            }
            expected = Some(header.last_offset + 1);
            position += u64::from(header.size);
            batches += 1;
        }
        let end_offset = last_offset + 1;
        let is_run = batches >= 2
            && expected == Some(end_offset)
            && next_offset.is_none_or(|next| next == end_offset)
            // if only headers are read, a bit of its last offset may be flipped
            && self.verify(batch)?.is_ok();
        self.repeated = if is_run { batch.end()..position } else { 0..0 };
        Ok(is_run)
    }

    /// The bytes after a batch that was returned, if the batches in them repeat its last offsets and those before.
    pub(crate) fn repeated_after(&self, batch: &Batch) -> Option<Range<u64>> {
        Some(self.repeated.clone()).filter(|repeated| repeated.start == batch.end())
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
