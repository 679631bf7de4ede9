//! After damage: where does the next whole batch start?
//!
//! A record's value may hold a whole batch (a backup of a log, kept in a log), so a valid checksum alone proves nothing.
//! Tried in this order:
//!
//! 1. the damaged batch's own end, where its checksum holds (then the damage is outside it: offset, length of a
//!    neighbour, epoch, magic), or where its length leads to a batch that continues its offsets exactly;
//! 2. the positions that the offset index names, each checked against the batch it points to;
//! 3. the position up to which the damaged batch's checksum holds: then its length is all that is wrong; where there is
//!    none, the whole batch that its length leads to after all;
//! 4. every position before that, where a batch's offsets lie between the last good one and the next known one and the
//!    batches that follow it lead exactly to the known position (or to the end, or to a second damaged header). A batch
//!    inside a value of a v2 batch does not: at least the count of headers follows it.
//!
//! All of it is paid from the walk's budget of work; where that is used up, the rest of the segment counts as damaged.

use super::Segment;
use super::walk::{Batch, Damage, Walk};
use crate::error::Result;
use crate::index::OffsetIndex;
use crate::record::{BatchHeader, LOG_OVERHEAD, MAX_BATCH_BYTES, PREFIX, crc};

/// How much of the file is looked at in one piece.
const CHUNK: usize = 128 << 10;

/// The least that a look costs, however few bytes it takes.
const LOOK: u64 = 4 << 10;

impl Segment {
    /// Moves a walk through this segment after damage, to the next whole batch or to the end, and returns what it skipped.
    pub(crate) fn resume(&self, walk: &mut Walk, damage: &Damage) -> Result<DamagedSpan> {
        walk.resume(damage, self.or_warn(self.offset_index()).as_deref())
    }
}

/// The bytes and offsets that a walk skips where the log is damaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DamagedSpan {
    pub(crate) start_position: u64,
    pub(crate) end_position: u64,
    /// The first offset that may be missing.
    pub(crate) start_offset: i64,
    /// The offset of the batch after it; `None` where nothing valid follows in the segment.
    pub(crate) end_offset: Option<i64>,
}

impl Walk {
    /// Moves after the damage, to the next whole batch or to the end of the segment, and returns what it skipped.
    pub(crate) fn resume(&mut self, damage: &Damage, index: Option<&OffsetIndex>) -> Result<DamagedSpan> {
        let next = self.next_whole_batch(damage, index)?;
        self.position = next.map_or(self.bounds.end, |batch| batch.position);
        Ok(DamagedSpan {
            start_position: damage.position,
            end_position: self.position,
            start_offset: damage.offset,
            end_offset: next.map(|batch| batch.header.base_offset),
        })
    }

    fn next_whole_batch(&mut self, damage: &Damage, index: Option<&OffsetIndex>) -> Result<Option<Batch>> {
        // the tail of a preallocated file is the most common damage of all, and the largest
        if self.log.is_zero(damage.position, self.bounds.end)? {
            return Ok(None);
        }
        let own = self.after_own_end(damage)?;
        if let Some((batch, true)) = own {
            return Ok(Some(batch));
        }
        let known = self.first_indexed(damage, index)?;
        match self.end_by_checksum(damage, known)? {
            Some(end) if end == self.bounds.end => return Ok(None),
            Some(end) => return self.valid_at(end, damage.offset, self.bounds.upper),
            None => {}
        }
        if known.is_none() && self.ends_where_the_data_do(damage.position)? {
            return Ok(None);
        }
        // no other length makes its checksum hold, so the damage is elsewhere in it
        if let Some((batch, _)) = own {
            return Ok(Some(batch));
        }
        self.search(damage, known).map(|found| found.or(known))
    }

    /// Rule 1: the whole batch where the damaged one's length says that it ends, and whether more than the length says so.
    fn after_own_end(&mut self, damage: &Damage) -> Result<Option<(Batch, bool)>> {
        let start = damage.position;
        let Some(length) = possible_size(self.log.read(start, PREFIX)?) else { return Ok(None) };
        let end = start + length as u64;
        if end >= self.bounds.end || !self.pay(length as u64) {
            return Ok(None);
        }
        let bytes = self.log.read(start, length)?;
        let stored = |at: usize| {
            bytes.get(at..).and_then(|bytes| bytes.first_chunk()).map(|crc| u32::from_be_bytes(*crc))
        };
        let intact = stored(17) == bytes.get(21..).map(crc::crc32c)
            || stored(12) == bytes.get(PREFIX - 1..).map(crc::crc32);
        let last_offset = BatchHeader::parse(bytes, length as u64).ok().map(|header| header.last_offset);
        let next = self.valid_at(end, damage.offset, self.bounds.upper)?;
        Ok(next.map(|next| {
            (next, intact || last_offset.is_some_and(|last| last + 1 == next.header.base_offset))
        }))
    }

    /// Whether a damaged batch is the last one: by its own length it ends where the data end. Then nothing follows, and
    /// what looks like a batch lies in one of its values.
    fn ends_where_the_data_do(&mut self, start: u64) -> Result<bool> {
        let length = possible_size(self.log.read(start, PREFIX)?);
        Ok(length.is_some_and(|length| start + length as u64 == self.bounds.end))
    }

    /// Rule 3: where the damaged batch ends if nothing but its length is wrong: its checksum holds for the bytes up to
    /// there. Asked of every place where a header could start, so batches in its values do not stand in the way.
    fn end_by_checksum(&mut self, damage: &Damage, known: Option<Batch>) -> Result<Option<u64>> {
        let start = damage.position;
        let goal = known.map_or(self.bounds.end, |batch| batch.position);
        let high = known.map_or(self.bounds.upper, |batch| batch.header.base_offset);
        let prefix = self.log.read(start, PREFIX + 4)?;
        let (Some(&magic), true) = (prefix.get(PREFIX - 1), prefix.len() == PREFIX + 4) else {
            return Ok(None);
        };
        let (stored_at, from) = if magic == 2 { (17, 21) } else { (12, PREFIX as u64 - 1) };
        let stored =
            prefix.get(stored_at..).and_then(|crc| crc.first_chunk()).map(|crc| u32::from_be_bytes(*crc));
        let (mut checksum, mut done, mut position) =
            (crc::Running::new(magic), start + from, start + PREFIX as u64);
        loop {
            let end = self.next_candidate(position, goal, damage.offset, high)?.unwrap_or(goal).max(done);
            if !self.pay(end - done) {
                return Ok(None);
            }
            while done < end {
                let piece = self.log.read(done, usize::try_from(end - done).unwrap_or(CHUNK).min(CHUNK))?;
                checksum.update(piece);
                done += piece.len().max(1) as u64;
            }
            if stored == Some(checksum.value()) {
                return Ok(Some(end));
            }
            if end >= goal {
                return Ok(None);
            }
            position = end + 1;
        }
    }

    /// Rule 2: the first entry behind the damage that names a whole batch by its offset and position.
    fn first_indexed(&mut self, damage: &Damage, index: Option<&OffsetIndex>) -> Result<Option<Batch>> {
        let Some(index) = index else { return Ok(None) };
        // positions rise in an index; in one where they do not, entries are missed, which costs only the hint
        let (mut slot, mut high) = (0, index.entries());
        while slot < high {
            let middle = slot + (high - slot) / 2;
            let is_behind = |position: u64| position > damage.position;
            if u64::try_from(index.entry(middle)?.position).is_ok_and(is_behind) {
                high = middle;
            } else {
                slot = middle + 1;
            }
        }
        for slot in slot..index.entries() {
            self.log.interrupt().check()?;
            if !self.pay(index.entry_size()) {
                break;
            }
            let entry = index.entry(slot)?;
            let Ok(position) = u64::try_from(entry.position) else { continue };
            if position <= damage.position || position >= self.bounds.end || entry.offset < damage.offset {
                continue;
            }
            if let Some(batch) = self.valid_at(position, damage.offset, self.bounds.upper)?
                && [batch.header.base_offset, batch.header.last_offset].contains(&entry.offset)
            {
                return Ok(Some(batch));
            }
        }
        Ok(None)
    }

    /// Rule 4: byte by byte up to the known batch.
    fn search(&mut self, damage: &Damage, known: Option<Batch>) -> Result<Option<Batch>> {
        let goal = known.map_or(self.bounds.end, |batch| batch.position);
        let high = known.map_or(self.bounds.upper, |batch| batch.header.base_offset);
        let mut position = damage.position + 1;
        while position < goal {
            let Some(candidate) = self.next_candidate(position, goal, damage.offset, high)? else {
                return Ok(None);
            };
            position = candidate + 1;
            let Some(first) = self.valid_at(candidate, damage.offset, high)? else { continue };
            let mut last = first;
            while last.end() < goal
                && let Some(next) = self.valid_at(last.end(), last.header.last_offset + 1, high)?
            {
                last = next;
            }
            if last.end() == goal || self.is_damaged_header(last.end(), last.header.last_offset + 1, high)? {
                return Ok(Some(first));
            }
            position = last.end();
        }
        Ok(None)
    }

    /// The first position from which a header could start, by its magic, length and offset alone.
    fn next_candidate(&mut self, from: u64, goal: u64, low: i64, high: i64) -> Result<Option<u64>> {
        let mut position = from;
        while position < goal && self.pay(LOOK) {
            self.log.interrupt().check()?;
            let bytes = self.log.read(position, CHUNK)?;
            if bytes.len() < PREFIX {
                return Ok(None);
            }
            let mut at = 0;
            while let Some(rest) = bytes.get(at..).filter(|rest| rest.len() >= PREFIX) {
                let here = position + at as u64;
                if here >= goal {
                    return Ok(None);
                }
                if let Some(length) = plausible_length(rest)
                    && offset_of(rest).is_some_and(|offset| (low..high).contains(&offset))
                    && here + length as u64 <= goal
                {
                    return Ok(Some(here));
                }
                at += 1;
            }
            position += at as u64;
            if !self.pay(at as u64) {
                return Ok(None);
            }
        }
        Ok(None)
    }

    /// Takes work from the budget; false where there is not so much left.
    fn pay(&mut self, work: u64) -> bool {
        let Some(left) = self.work_left.checked_sub(work) else { return false };
        self.work_left = left;
        true
    }

    /// A batch that begins at `position`, has offsets from `low` to below `high`, and a checksum that holds.
    fn valid_at(&mut self, position: u64, low: i64, high: i64) -> Result<Option<Batch>> {
        if position >= self.bounds.end {
            return Ok(None);
        }
        // paid before the header is asked for: a wrapper is opened for it
        let Some(length) = plausible_length(self.log.read(position, PREFIX)?) else { return Ok(None) };
        if position + length as u64 > self.bounds.end || !self.pay(LOOK.max(length as u64)) {
            return Ok(None);
        }
        let Ok(header) = self.header_at(position)? else { return Ok(None) };
        let batch = Batch { position, header };
        if header.base_offset < low || header.last_offset >= high || self.verify(&batch)?.is_err() {
            return Ok(None);
        }
        Ok(Some(batch))
    }

    /// Something that looks like the header of a damaged batch: an offset and a length that can be, or, where the length or
    /// the magic is what is damaged, exactly the offset that comes next.
    fn is_damaged_header(&mut self, position: u64, low: i64, high: i64) -> Result<bool> {
        let end = self.bounds.end;
        let prefix = self.log.read(position, PREFIX)?;
        let length = plausible_length(prefix).filter(|length| position + *length as u64 <= end);
        Ok(offset_of(prefix).is_some_and(|offset| {
            (low..high).contains(&offset) && (length.is_some() || offset == low && prefix.len() == PREFIX)
        }))
    }
}

fn offset_of(prefix: &[u8]) -> Option<i64> {
    prefix.first_chunk().map(|offset| i64::from_be_bytes(*offset))
}

/// The size of the batch at the front of `prefix`, if its length and magic are possible.
fn plausible_length(prefix: &[u8]) -> Option<usize> {
    let magic = *prefix.get(PREFIX - 1)?;
    possible_size(prefix).filter(|_| magic <= 2)
}

/// The same whatever the magic, which may be what is damaged.
fn possible_size(prefix: &[u8]) -> Option<usize> {
    let length = i32::from_be_bytes(*prefix.get(8..)?.first_chunk()?);
    let size = usize::try_from(length).ok()? + LOG_OVERHEAD;
    // the smallest entry of any format; the header's own rules come later
    (LOG_OVERHEAD + 14..=MAX_BATCH_BYTES).contains(&size).then_some(size)
}
