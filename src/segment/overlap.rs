//! Batches whose checksum is right and whose offsets contradict those before them: some were written by a
//! leader that was elected with fewer records, others by clients that assigned offsets. Kafka keeps them all,
//! and no writer here cuts them off.

use std::ops::Range;

use super::candidate::plausible_length;
use super::damage::{Damage, Preceding, is_possible_epoch};
use super::walk::{Batch, Origin, Step, Walk};
use crate::error::Result;
use crate::record::{BatchHeader, PREFIX, V2_HEADER};

/// Batches that repeat offsets.
struct Repeated {
    first_offset: i64,
    /// The position after the last of them.
    end: u64,
}

impl Walk {
    /// Whether the batch at the position begins at or below the last offset before it and ends above it, with
    /// a right checksum: a consumer reads its records above that offset. Not if a flipped bit of its base
    /// offset, which no checksum covers, explains that.
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

    /// Notes the batches after one if they repeat offsets up to its last one, which a leader has appended a
    /// second time (KAFKA-19407): a consumer passes over them. They are whole v2 batches without a gap
    /// between them, two or more with the one that goes on above that offset, and after them the log goes
    /// on without a gap.
    ///
    /// `before`: the state before the batch. Each offset must have a record in the batches up to it: batches
    /// whose base offsets have flipped bits, or that a disk wrote to a wrong place, let others seem to
    /// repeat offsets.
    #[cold]
    pub(super) fn note_repeated(&mut self, batch: &Batch, before: Option<Preceding>) -> Result<bool> {
        let header = batch.header;
        if before.is_none_or(|before| before.last_offset + 1 != header.base_offset) {
            return Ok(false);
        }
        // the offset of an entry of the old formats is in no checksum
        let may_be_repeated = header.magic == 2 && !header.is_sparse();
        let end_offset = header.last_offset + 1;
        if let Some(repeated) = self.repeated_offsets(batch.end(), end_offset)?.filter(|_| may_be_repeated)
            && self.has_all_from(repeated.first_offset, batch.position)?
            // if only headers are read, a bit of its last offset may be flipped
            && self.verify(batch)?.is_ok()
        {
            self.repeated = batch.end()..repeated.end;
            return Ok(true);
        }
        Ok(false)
    }

    /// The batches from a position on that repeat offsets below the end offset of those before it. Their
    /// leader epochs are not compared: a consumer reads the first batch with an offset.
    fn repeated_offsets(&mut self, start: u64, end_offset: i64) -> Result<Option<Repeated>> {
        let (mut position, mut first_offset, mut expected, mut batches) = (start, None, None, 0);
        let mut next_offset = Some(self.bounds.upper).filter(|upper| *upper != i64::MAX);
        while position < self.bounds.end {
            let Ok(&header) = self.header_at(position)? else { break };
            if header.base_offset >= end_offset {
                next_offset = Some(header.base_offset);
                break;
            }
            let batch = Batch { position, header };
            let is_repeated = header.magic == 2
                && expected.is_none_or(|expected| header.base_offset == expected)
                && header.base_offset >= self.bounds.base_offset
                && batch.records_beyond_offsets() == 0
                // Kafka replays what a batch of a transaction says
                && !header.attributes.is_transactional()
                && self.spend(u64::from(header.size));
            if !is_repeated || self.verify(&batch)?.is_err() {
                return Ok(None);
            }
            batches += 1;
            if first_offset.is_some() && header.last_offset >= end_offset {
                // it overlaps those before it, and is read for the offsets that it has above them
                (expected, next_offset) = (Some(end_offset), Some(end_offset));
                break;
            }
            first_offset.get_or_insert(header.base_offset);
            expected = Some(header.last_offset + 1);
            position = batch.end();
        }
        let leads_on = expected == Some(end_offset) && next_offset.is_none_or(|next| next == end_offset);
        let repeated = first_offset.map(|first_offset| Repeated { first_offset, end: position });
        Ok(repeated.filter(|_| leads_on && batches >= 2))
    }

    /// Whether the batches before a position, which is that of the walk, have a record of each offset from
    /// this one on.
    fn has_all_from(&mut self, offset: i64, position: u64) -> Result<bool> {
        if self.complete_from <= offset || self.origin == Origin::FirstBatch {
            return Ok(self.complete_from <= offset);
        }
        if !self.spend(position) {
            return Ok(false);
        }
        let start = self.bounds.before_first(-1);
        let mut walk = Self::new(self.log.new_reader(), self.bounds, 0, Some(start));
        walk.origin = Origin::FirstBatch;
        while walk.position < position {
            let Step::Batch(_) = walk.step()? else { return Ok(false) };
        }
        Ok(walk.position == position && walk.complete_from <= offset)
    }

    /// The bytes after a batch that was returned, if the batches in them repeat its last offsets and those
    /// before.
    pub(crate) fn repeated_after(&self, batch: &Batch) -> Option<Range<u64>> {
        Some(self.repeated.clone()).filter(|repeated| repeated.start == batch.end())
    }

    /// Whether the batch at damage is whole, and its checksum is right: then it is no torn write, whatever
    /// contradicts it.
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
