//! Finds the next whole batch after damage.
//!
//! A record's value may contain a whole batch (a backup of a log, stored in a log), so a valid checksum alone
//! proves nothing. These rules are tried in order:
//!
//! 1. The end of the damaged batch by its own length, if its checksum matches (then the damage is outside the
//!    checksummed bytes: offset, epoch, magic, or the length of a neighbour), or if the batch there continues
//!    its offsets exactly.
//! 2. The positions in the offset index. Each is checked against the batch it points to.
//! 3. The position up to which the damaged batch's checksum matches: then only its length is wrong, and if no
//!    whole batch is there, the rules begin again at that position. If there is none, the whole batch at the
//!    end by its own length.
//! 4. Every position before the known batch of rule 2 (or the end). A batch there is accepted if its offsets
//!    are between the last good one and the known one, and the whole batches after it, whatever their
//!    offsets, lead exactly to the known position (or to the end, or to a second damaged header). A batch
//!    inside a value of a v2 batch fails this: at least the header count follows it. If nothing is left of a
//!    header after these batches (the file ends in it, or it is zero), they are accepted if the bytes since
//!    the damage account for their offsets. A batch is also accepted if the index has entries for two of
//!    these batches, at the same distance from them: bytes before them were removed or inserted, so no entry
//!    has a right position.
//!
//! The bytes of the damaged batch by its own length are its payload, if the rest of its header is possible: a
//! batch that was being written when the process or the broker stopped, or is being written now. Rule 4
//! accepts a batch that begins there only if something outside these bytes confirms it: the known batch, two
//! index entries, or the next segment, which begins with the offset after the last of these batches.
//! Otherwise the log ends at a torn batch, as in Kafka. If the header there is destroyed, nobody knows
//! where the payload ends. Then batches are part of it if a batch with an offset that is too low ends where
//! they begin, or if a single byte follows them at the end of the file, which is what is left of the record
//! after its value; unless an index entry, a checkpoint or a later segment says that the log went on.
//!
//! All this work is charged to the walk's budget. When that is used up, the rest of the segment is skipped,
//! and the span says that it was not searched: valid batches may be in it.
//!
//! A batch of a magic above 2 whose checksum matches is not damage: a later version of Kafka has written it.
//! A single one before a v2 batch, or at the end of a segment that is not the last, with one bit of its magic
//! wrong, is a v2 batch with a flipped bit.

use std::ops::{ControlFlow, Range};

use super::Segment;
use super::candidate::{offset_of, plausible_length, possible_size};
use super::damage::Damage;
use super::damaged_span::{DamagedSpan, NewerBatch};
use super::entry_match::OffsetMatch;
use super::payload::has_entry_from;
use super::walk::{Batch, Walk};
use crate::error::Result;
use crate::index::{Method, OffsetIndex};
use crate::record::{BatchHeader, LOG_OVERHEAD, PREFIX, V2_HEADER, crc};

/// Bytes of the file to search at a time.
const CHUNK: usize = 128 << 10;

/// The minimum work charged for an entry of magic 0 or 1, even of fewer bytes: a wrapper is decompressed.
const MIN_WORK: u64 = 4 << 10;

impl Segment {
    /// Moves a walk through this segment after damage, to the next whole batch or to the end, and returns
    /// what it skipped.
    pub(crate) fn resume(&self, walk: &mut Walk, damage: &Damage) -> Result<DamagedSpan> {
        self.resume_with(walk, damage, self.or_warn(self.offset_index()).as_deref())
    }

    /// [`Segment::resume`] with the offset index.
    pub(super) fn resume_with(
        &self,
        walk: &mut Walk,
        damage: &Damage,
        index: Option<&OffsetIndex>,
    ) -> Result<DamagedSpan> {
        let is_continued = !self.is_last()
            || self.open_files.was_synced_beyond(damage.offset)
            || has_entry_from(index, damage.offset)?;
        let mut span = walk.resume(damage, index, is_continued)?;
        span.is_intact |= self.offsets_below_base(damage, &span)?.is_some();
        Ok(span)
    }
}

/// The result of rule 2.
#[derive(Debug, Clone, Copy)]
struct Indexed(Option<Batch>);

impl Walk {
    /// Moves after the damage, to the next whole batch or to the end of the segment, and returns what it
    /// skipped.
    ///
    /// `is_continued`: whether something outside of the segment's bytes says that batches followed the
    /// damage.
    pub(super) fn resume(
        &mut self,
        damage: &Damage,
        index: Option<&OffsetIndex>,
        is_continued: bool,
    ) -> Result<DamagedSpan> {
        (self.is_searched, self.newer, self.is_continued) = (true, None, is_continued);
        let next = self.next_whole_batch(damage, index)?;
        self.position = next.map_or(self.bounds.end, |batch| batch.position);
        Ok(DamagedSpan {
            start_position: damage.position,
            end_position: self.position,
            start_offset: damage.offset,
            end_offset: next.map(|batch| batch.header.base_offset),
            is_intact: next.is_none() && self.is_intact_at(damage)?,
            is_searched: self.is_searched,
            newer: self.newer,
        })
    }

    fn next_whole_batch(&mut self, damage: &Damage, index: Option<&OffsetIndex>) -> Result<Option<Batch>> {
        let mut damage = damage.clone();
        let mut known = None;
        loop {
            match self.after_one(&damage, index, &mut known)? {
                ControlFlow::Break(next) => return Ok(next),
                ControlFlow::Continue(end) => damage.position = end,
            }
        }
    }

    /// The next whole batch, if one damaged batch precedes it; `Continue` with the end of that batch if
    /// another damaged one begins there. `known`: the result of rule 2, which is the same for all of
    /// them.
    fn after_one(
        &mut self,
        damage: &Damage,
        index: Option<&OffsetIndex>,
        known: &mut Option<Indexed>,
    ) -> Result<ControlFlow<Option<Batch>, u64>> {
        // the zeros at the end of a preallocated file are the most common and the largest damage
        if self.log.is_zero(damage.position, self.bounds.end)? {
            return Ok(ControlFlow::Break(None));
        }
        self.note_newer(damage.position, damage.offset)?;
        let own = self.after_own_end(damage)?;
        if let Some((batch, true)) = own {
            return Ok(ControlFlow::Break(Some(batch)));
        }
        let Indexed(known) = match *known {
            Some(known) => known,
            None => *known.insert(Indexed(self.first_indexed(damage, index)?)),
        };
        // an end that the offset of another damaged batch confirms is not searched for
        if own.is_none()
            && let Some(end) = self.end_at_damaged_header(damage)?.filter(|end| is_before(*end, known))
        {
            return Ok(ControlFlow::Continue(end));
        }
        match self.end_by_checksum(damage, known)? {
            Some(end) if end == self.bounds.end => return Ok(ControlFlow::Break(None)),
            Some(end) => {
                let next = self.valid_at(end, damage.offset, self.bounds.upper)?;
                return Ok(next.map_or(ControlFlow::Continue(end), |next| ControlFlow::Break(Some(next))));
            }
            None => {}
        }
        if known.is_none() && self.ends_at_data_end(damage.position)? {
            return Ok(ControlFlow::Break(None));
        }
        // no other length makes its checksum hold, so the damage is elsewhere in it
        if let Some((batch, _)) = own {
            return Ok(ControlFlow::Break(Some(batch)));
        }
        self.search(damage, known, index).map(|found| ControlFlow::Break(found.or(known)))
    }

    /// Rule 1: the whole batch at the end of the damaged one by its length, and whether the checksum or the
    /// offsets confirm that length.
    fn after_own_end(&mut self, damage: &Damage) -> Result<Option<(Batch, bool)>> {
        let start = damage.position;
        let Some(length) = possible_size(self.log.read(start, PREFIX)?) else { return Ok(None) };
        let end = start + length as u64;
        if end >= self.bounds.end || !self.spend(length as u64) {
            return Ok(None);
        }
        self.note_newer(end, damage.offset)?;
        let intact = self.has_checksum(start, end, 2)? || self.has_checksum(start, end, 0)?;
        // all bytes of a batch that is not too large: they may prove its header
        let bytes = self.log.read(start, length.min(self.log.max_batch_bytes().max(V2_HEADER)))?;
        let last_offset = BatchHeader::parse(bytes, length as u64).ok().map(|header| header.last_offset);
        let next = self.valid_at(end, damage.offset, self.bounds.upper)?;
        Ok(next.map(|next| {
            (next, intact || last_offset.is_some_and(|last| last + 1 == next.header.base_offset))
        }))
    }

    /// Notes an intact batch of a later format at a position.
    fn note_newer(&mut self, position: u64, low: i64) -> Result<()> {
        let start = self.log.read(position, V2_HEADER)?;
        let (Some(&magic), Some(size), Some(offset)) =
            (start.get(PREFIX - 1), possible_size(start), offset_of(start))
        else {
            return Ok(());
        };
        let end = position + size as u64;
        let Some(last_offset) = start
            .first_chunk()
            .and_then(|start| BatchHeader::v2(start, offset, 0))
            .map(|header| header.last_offset)
        else {
            return Ok(());
        };
        let is_possible = (3..=i8::MAX.unsigned_abs()).contains(&magic)
            && offset >= low
            && (offset..self.bounds.upper).contains(&last_offset)
            && end <= self.bounds.end;
        if self.newer.is_some() || !is_possible || !self.spend(size as u64) {
            return Ok(());
        }
        if !self.has_checksum(position, end, 2)? {
            return Ok(());
        }
        let follows = if end == self.bounds.end {
            // what the next segment begins with is its own
            self.bounds.upper != i64::MAX
        } else {
            self.header_at(end)?.is_ok_and(|next| next.magic == 2 && next.base_offset > last_offset)
        };
        let is_flipped = (magic ^ 2).is_power_of_two() && follows;
        self.newer = (!is_flipped).then_some(NewerBatch { position, offset, magic });
        Ok(())
    }

    /// Whether the bytes of a batch have the checksum that is stored in it, as in a batch of this magic.
    pub(super) fn has_checksum(&mut self, start: u64, end: u64, magic: u8) -> Result<bool> {
        let (at, covered) = if magic == 2 { (17, 21) } else { (LOG_OVERHEAD as u64, PREFIX as u64 - 1) };
        let stored = self.log.read(start + at, 4)?.first_chunk().map(|crc| u32::from_be_bytes(*crc));
        Ok(stored == Some(self.log.checksum(magic, start + covered, end)?))
    }

    /// Whether a damaged batch is the last one, because by its own length it ends at the end of the data.
    /// Then no batch follows, and anything that looks like a batch is inside one of its values.
    fn ends_at_data_end(&mut self, start: u64) -> Result<bool> {
        let length = possible_size(self.log.read(start, PREFIX)?);
        Ok(length.is_some_and(|length| start + length as u64 == self.bounds.end))
    }

    /// Rule 3: the end of the damaged batch if only its length is wrong, which is where its checksum matches.
    /// Tries every position at which a header could start, so a batch inside a value does not end the
    /// search.
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
            // the length of the next batch may be wrong too, and its offset lower, where a leader has
            // appended offsets again
            let low = self.bounds.base_offset.min(damage.offset);
            let next = self.next_candidate(position, goal, u64::MAX, low..high)?;
            let end = next.unwrap_or(goal).max(done);
            if !self.spend(end - done) {
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

    /// Rule 2: the first index entry after the damage whose offset and position match a whole batch.
    fn first_indexed(&mut self, damage: &Damage, index: Option<&OffsetIndex>) -> Result<Option<Batch>> {
        let Some(index) = index else { return Ok(None) };
        // positions increase in an index; if they do not, this misses entries, which are only hints
        let (mut slot, mut high) = (0, index.entries());
        while slot < high {
            let middle = slot + (high - slot) / 2;
            let is_after = |position: u64| position > damage.position;
            if u64::try_from(index.entry(middle)?.position).is_ok_and(is_after) {
                high = middle;
            } else {
                slot = middle + 1;
            }
        }
        for slot in slot..index.entries() {
            self.log.interrupt().check()?;
            if !self.spend(index.entry_size()) {
                break;
            }
            let entry = index.entry(slot)?;
            let Ok(position) = u64::try_from(entry.position) else { continue };
            if position <= damage.position || position >= self.bounds.end || entry.offset < damage.offset {
                continue;
            }
            if let Some(batch) = self.valid_at(position, damage.offset, self.bounds.upper)?
                && OffsetMatch::of(entry.offset, &batch.header).is_stored()
            {
                return Ok(Some(batch));
            }
        }
        Ok(None)
    }

    /// Rule 4: tries every byte up to the known batch.
    fn search(
        &mut self,
        damage: &Damage,
        known: Option<Batch>,
        index: Option<&OffsetIndex>,
    ) -> Result<Option<Batch>> {
        let goal = known.map_or(self.bounds.end, |batch| batch.position);
        let high = known.map_or(self.bounds.upper, |batch| batch.header.base_offset);
        let payload_end = self.payload_end(damage)?;
        let mut position = damage.position + 1;
        let is_confirmed = known.is_some() || self.is_continued;
        if !is_confirmed {
            position = position.max(payload_end);
        }
        while position < goal {
            let Some(candidate) = self.next_candidate(position, goal, goal, damage.offset..high)? else {
                return Ok(None);
            };
            position = candidate + 1;
            let Some(first) = self.valid_at(candidate, damage.offset, high)? else { continue };
            let (mut last, mut low) = (first, first.header.last_offset + 1);
            if self.bounds.is_far(&first.header) {
                low = damage.offset;
            }
            let (mut distance, mut is_indexed, mut second) = (None, false, None);
            loop {
                let indexed = self.index_distance(&last, index)?;
                is_indexed |= indexed.is_some() && indexed == distance;
                distance = indexed.or(distance);
                if last.end() >= goal {
                    break;
                }
                let Some(next) = self.valid_at(last.end(), 0, i64::MAX)? else { break };
                // an offset that the damage reaches into is wrong; no checksum covers it
                let is_next = next.header.base_offset == last.header.last_offset.saturating_add(1)
                    || (low..high).contains(&next.header.base_offset);
                if is_next && next.header.last_offset < high {
                    low = next.header.last_offset + 1;
                }
                second = second.or(Some(next));
                last = next;
            }
            let is_led_to = if candidate < payload_end {
                last.end() == goal && (known.is_some() || low == self.bounds.upper)
            } else {
                let end = last.end();
                end == goal
                    || self.is_damaged_header(end, low, high)?
                    // the first one's offset may be damaged, too
                    || is_near(damage, &second.unwrap_or(first))
                        && self.is_destroyed_header(end, low)?
                        && !self.leads_to_end(end, damage.offset..low)?
            };
            let is_payload = is_led_to
                && !is_confirmed
                // after a value at least the number of headers follows
                && last.end() < goal
                && self.are_in_value(damage, &first, last.end())?;
            if is_led_to && !is_payload || is_indexed {
                return Ok(Some(first));
            }
            // those behind the payload are not of it, whatever leads to them
            position = if candidate < payload_end { last.end().min(payload_end) } else { last.end() };
        }
        Ok(None)
    }

    /// How many bytes after the batch the position is that the index has for it: bytes before the batch were
    /// removed (or, if negative, inserted).
    fn index_distance(&mut self, batch: &Batch, index: Option<&OffsetIndex>) -> Result<Option<i64>> {
        let Some(index) = index.filter(|index| self.spend(index.entry_size())) else { return Ok(None) };
        let entry = index.lookup(batch.header.last_offset, Method::Binary)?;
        // a look-up below the first entry returns position 0, which confirms nothing
        let is_its_own = entry.position > 0 && OffsetMatch::of(entry.offset, &batch.header).is_in_batch();
        Ok(is_its_own.then(|| i64::from(entry.position) - batch.position.cast_signed()))
    }

    /// The first position below `goal` at which a header could start, by its magic, length and offset alone.
    /// `end`: where its batch ends at the latest.
    pub(super) fn next_candidate(
        &mut self,
        from: u64,
        goal: u64,
        end: u64,
        offsets: Range<i64>,
    ) -> Result<Option<u64>> {
        let mut position = from;
        while position < goal {
            self.log.interrupt().check()?;
            // most candidates are close to each other
            if self.log.in_memory(position, PREFIX).len() < PREFIX {
                self.log.read(position, CHUNK)?;
            }
            let bytes = self.log.in_memory(position, CHUNK);
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
                    && offset_of(rest).is_some_and(|offset| offsets.contains(&offset))
                    && here + length as u64 <= end
                {
                    return Ok(self.spend(at as u64 + 1).then_some(here));
                }
                at += 1;
            }
            position += at as u64;
            if !self.spend(at as u64) {
                return Ok(None);
            }
        }
        Ok(None)
    }

    /// Takes work from the budget; false if less is left: the search is not completed then.
    pub(super) fn spend(&mut self, work: u64) -> bool {
        let left = self.work_left.checked_sub(work);
        self.is_searched &= left.is_some();
        self.work_left = left.unwrap_or(self.work_left);
        left.is_some()
    }

    /// The batch at `position`, if its offsets are in `[low, high)` and its checksum matches.
    pub(super) fn valid_at(&mut self, position: u64, low: i64, high: i64) -> Result<Option<Batch>> {
        if position >= self.bounds.end {
            return Ok(None);
        }
        let Some(length) = plausible_length(self.log.read(position, PREFIX)?) else { return Ok(None) };
        if position + length as u64 > self.bounds.end || !self.spend(V2_HEADER as u64) {
            return Ok(None);
        }
        // charged before the header is read, which decompresses a wrapper, and computes the checksum of a
        // batch with an odd header
        let start = self.log.read(position, V2_HEADER)?;
        let is_old = start.get(PREFIX - 1).is_some_and(|magic| *magic < 2);
        let is_charged = is_old || BatchHeader::size_to_prove(start).is_some();
        let work = MIN_WORK.max(length as u64);
        if is_old && !self.fills_its_size(position, length)? || is_charged && !self.spend(work) {
            return Ok(None);
        }
        let header = match self.header_at(position)? {
            Ok(header) => *header,
            Err(malformed) if malformed.is_too_large() => {
                return Err(malformed.clone().at(self.log.path(), position, None));
            }
            Err(_) => return Ok(None),
        };
        let batch = Batch { position, header };
        let is_possible = header.base_offset >= low && header.last_offset < high;
        if !is_possible || !(is_charged || self.spend(length as u64)) || self.verify(&batch)?.is_err() {
            return Ok(None);
        }
        Ok(Some(batch))
    }
}

/// Whether a position is before a batch, if there is one.
fn is_before(position: u64, batch: Option<Batch>) -> bool {
    batch.is_none_or(|batch| position < batch.position)
}

/// Whether a batch after damage has an offset that the bytes since the damage account for, with a record in
/// each byte at most. A batch of a log in a value seldom has.
fn is_near(damage: &Damage, batch: &Batch) -> bool {
    let bytes = batch.position - damage.position;
    u64::try_from(batch.header.base_offset - damage.offset).is_ok_and(|offsets| offsets <= bytes)
}
