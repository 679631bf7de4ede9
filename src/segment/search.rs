//! Look-ups in one segment, by offset and by time: read an index entry, confirm it in the log, walk the headers.

use super::walk::{Batch, Step};
use super::{LOOKUP_READ, Segment, Walk};
use crate::error::{Error, Result};
use crate::index::{Method, OffsetIndex, TimeIndex};
use crate::record::Records;
use crate::types::{OffsetPosition, TimestampOffset};

/// The result of a look-up by offset in a segment.
#[derive(Debug)]
pub(crate) enum Found {
    /// The batch that contains the offset, or the first one after the gap that contains it.
    Batch(Batch),
    /// Every batch of the segment is below the offset. The last batch was verified.
    Below,
}

impl Segment {
    /// A walk that starts at or before the first batch whose last offset is at or above `offset`: from the preceding index
    /// entry if the log confirms it, else from the segment's start. The flag is true if the entry confirmed the offsets of
    /// the walk's first batch, and not only its position.
    pub(crate) fn walk_to(&self, offset: i64, leader_epoch: i32, read: usize) -> Result<(Walk, bool)> {
        let from_start = || Ok((self.walk(leader_epoch, read)?, true));
        let Some(index) = self.or_warn(self.offset_index()) else { return from_start() };
        let entry = match index.lookup(offset, Method::default()) {
            Ok(entry) => entry,
            Err(error) => {
                self.or_warn::<()>(Err(error));
                return from_start();
            }
        };
        if entry == (OffsetPosition { offset: self.base_offset, position: 0 }) {
            return from_start();
        }
        let mut walk = Walk::new(self.log_file(read)?, self.bounds()?, 0, None);
        if entry.offset <= offset
            && let Some((position, is_exact)) = self.confirm(entry, &mut walk)?
        {
            walk.position = position;
            return Ok((walk, is_exact));
        }
        self.warn_of_entry(&index, entry);
        from_start()
    }

    /// Confirms an offset index entry against the log: a batch starts at its position, and the entry's offset is that
    /// batch's last offset (as 4.x writes it) or base offset (0.8 to 0.11), or the last offset of a later batch (an append
    /// of several batches, as followers used to get them). Returns the position, and whether one of the first two cases
    /// applies.
    pub(super) fn confirm(&self, entry: OffsetPosition, walk: &mut Walk) -> Result<Option<(u64, bool)>> {
        let Ok(position) = u64::try_from(entry.position) else { return Ok(None) };
        if position >= walk.bounds.end {
            return Ok(None);
        }
        let mut at = position;
        while at < walk.bounds.end
            && let Ok(header) = walk.header_at(at)?
        {
            let is_first = at == position;
            if header.base_offset < self.base_offset || header.last_offset >= self.upper {
                return Ok(None);
            }
            if header.last_offset == entry.offset || is_first && header.base_offset == entry.offset {
                return Ok(Some((position, is_first)));
            }
            if header.last_offset > entry.offset {
                return Ok(None);
            }
            at += u64::from(header.size);
        }
        Ok(None)
    }

    pub(super) fn warn_of_entry(&self, index: &OffsetIndex, entry: OffsetPosition) {
        self.warn(&format!(
            "{}: the entry (offset {}, position {}) does not agree with the log; the look-up does not use it",
            index.path().display(),
            entry.offset,
            entry.position
        ));
    }

    /// The first batch whose last offset is at or above `offset`. Kafka: `LogSegment.translateOffset`.
    ///
    /// Reads and verifies only the batches that the result depends on: the batch found and, if the offset is in a gap, the
    /// batch before it, whose end is then part of the result, and the header after it.
    pub(crate) fn find_offset(&self, offset: i64) -> Result<Found> {
        let (walk, is_exact) = self.walk_to(offset, -1, LOOKUP_READ)?;
        let from_start = walk.position == 0;
        match self.find_offset_on(walk, offset, is_exact)? {
            Some(found) => Ok(found),
            // a gap directly after a batch whose offsets nothing confirmed
            None if !from_start => {
                Ok(self.find_offset_on(self.walk(-1, LOOKUP_READ)?, offset, true)?.unwrap_or(Found::Below))
            }
            None => Ok(Found::Below),
        }
    }

    fn find_offset_on(&self, mut walk: Walk, offset: i64, first_is_confirmed: bool) -> Result<Option<Found>> {
        let mut previous = None;
        let mut walked = 0u64;
        loop {
            self.open_files.interrupt.check()?;
            let batch = match walk.step()? {
                Step::Damage(damage) => return Err(self.corrupt(&damage)),
                Step::Batch(batch) if batch.header.last_offset < offset => {
                    previous = Some(batch);
                    walked += 1;
                    continue;
                }
                Step::Batch(batch) => Some(batch),
                Step::End => None,
            };
            let in_gap = batch.is_none_or(|batch| batch.header.base_offset > offset);
            if in_gap && walked == 1 && !first_is_confirmed {
                return Ok(None);
            }
            // a gap before a batch is accepted only if the batch after it agrees: the missing offset may be in that one, out of
            // order
            if in_gap
                && let Some(batch) = &batch
                && let Some(damage) = walk.contradicted_by_next(batch)?
            {
                return Err(self.corrupt(&damage));
            }
            for needed in batch.iter().chain(previous.iter().filter(|_| in_gap)) {
                if let Err(malformed) = walk.verify(needed)? {
                    let place = Some(needed.header.base_offset);
                    return Err(malformed.at(self.path(), needed.position, place));
                }
            }
            return Ok(Some(batch.map_or(Found::Below, Found::Batch)));
        }
    }

    /// The first record at or above `from` whose timestamp is ≥ `target`, in offset order. Kafka:
    /// `LogSegment.findOffsetByTimestamp`, which stops too early in some cases; this one continues.
    ///
    /// Verifies every batch that it skips by its header, because the checksum protects the maximum timestamp.
    pub(crate) fn find_time(&self, target: i64, from: i64) -> Result<Option<TimestampOffset>> {
        let mut walk = self.walk_to_time(target, from, LOOKUP_READ)?;
        let mut buffer = Vec::new();
        loop {
            self.open_files.interrupt.check()?;
            let before = walk.before;
            let batch = match walk.step_through()? {
                Step::End => return Ok(None),
                Step::Damage(damage) => return Err(self.corrupt(&damage)),
                Step::Batch(batch) => batch,
            };
            if let Err(malformed) = walk.verify(&batch)? {
                return Err(self.corrupt(&walk.reject(&batch, before, malformed)));
            }
            if batch.header.max_timestamp < target || batch.header.last_offset < from {
                continue;
            }
            let is_behind_gap =
                before.is_some_and(|before| batch.header.base_offset > before.last_offset + 1);
            if is_behind_gap && let Some(damage) = walk.contradicted_by_next(&batch)? {
                return Err(self.corrupt(&damage));
            }
            let damaged = |malformed: crate::error::Malformed| {
                malformed.at(self.path(), batch.position, Some(batch.header.base_offset))
            };
            let bytes = walk.bytes(&batch)?;
            let (mut records, payload) = Records::open(batch.header, bytes, &mut buffer).map_err(damaged)?;
            let payload = payload.of(bytes, &buffer);
            while let Some(record) = records.next(payload).map_err(damaged)? {
                if record.timestamp >= target && record.offset >= from {
                    return Ok(Some(TimestampOffset { timestamp: record.timestamp, offset: record.offset }));
                }
            }
        }
    }

    /// A walk that starts before every record at or above `from` whose timestamp is ≥ `target`.
    pub(crate) fn walk_to_time(&self, target: i64, from: i64, read: usize) -> Result<Walk> {
        let (mut walk, _) = self.walk_to(from, -1, read)?;
        if let Some(index) = self.or_warn(self.time_index())
            && let Some(position) = self.or_warn(self.position_before_time(&index, target))
            && position > walk.position
        {
            walk = Walk::new(self.log_file(read)?, self.bounds()?, position, None);
        }
        Ok(walk)
    }

    /// The position of the batch of the last entry below `target`, if the log confirms the entry.
    fn position_before_time(&self, index: &TimeIndex, target: i64) -> Result<Option<u64>> {
        // strictly below: a record at the target may be before the batch of an equal entry
        let Some(below) = target.checked_sub(1) else { return Ok(None) };
        let (slot, _) = index.slot_range(below, Method::default())?;
        let last = i64::try_from(self.time_entries(index)?).unwrap_or(i64::MAX) - 1;
        let Ok(slot) = u64::try_from(slot.min(last)) else { return Ok(None) };
        if index.entry(slot)?.timestamp < target
            && let Some((_, batch)) = self.confirm_time(index, slot)?
        {
            return Ok(Some(batch.position));
        }
        self.warn_of_time_entry(index, index.entry(slot)?);
        Ok(None)
    }

    /// The batch of a time index entry and a walk positioned after it, if the log confirms the entry: that batch has the
    /// entry's timestamp as its maximum, and no batch between it and the batch of the preceding entry has a larger one.
    fn confirm_time(&self, index: &TimeIndex, slot: u64) -> Result<Option<(Walk, Batch)>> {
        let entry = index.entry(slot)?;
        let previous = match slot.checked_sub(1) {
            Some(slot) => index.entry(slot)?.offset,
            None => self.base_offset,
        };
        if entry.offset < self.base_offset || entry.offset >= self.upper {
            return Ok(None);
        }
        let mut walk = self.walk_to(previous.min(entry.offset), -1, LOOKUP_READ)?.0;
        while let Step::Batch(batch) = walk.step()? {
            self.open_files.interrupt.check()?;
            let header = &batch.header;
            if header.last_offset >= entry.offset {
                let is_named = header.base_offset <= entry.offset && header.max_timestamp == entry.timestamp;
                return Ok(is_named.then_some((walk, batch)));
            }
            if header.max_timestamp > entry.timestamp && header.last_offset > previous {
                return Ok(None);
            }
        }
        Ok(None)
    }

    fn warn_of_time_entry(&self, index: &TimeIndex, entry: TimestampOffset) {
        self.warn(&format!(
            "{}: the entry (timestamp {}, offset {}) does not agree with the log; the look-up does not use it",
            index.path().display(),
            entry.timestamp,
            entry.offset
        ));
    }

    /// The largest timestamp in a batch header of the segment; −1 if no batch has one. Computed once.
    ///
    /// The last time index entry covers the batches before the batch it names, if that batch confirms it; the batches after
    /// it are read.
    pub(crate) fn largest_record_timestamp(&self) -> Result<i64> {
        if let Some(largest) = self.largest.get() {
            return Ok(*largest);
        }
        let indexed = match self.or_warn(self.time_index()) {
            Some(index) if index.entries() > 0 => self.largest_from_index(&index)?,
            _ => None,
        };
        let largest = match indexed {
            Some(largest) => largest,
            None => self.largest_after(self.walk(-1, LOOKUP_READ)?, -1)?,
        };
        Ok(*self.largest.get_or_init(|| largest))
    }

    fn largest_from_index(&self, index: &TimeIndex) -> Result<Option<i64>> {
        let Some(slot) = self.time_entries(index)?.checked_sub(1) else { return Ok(None) };
        let entry = index.entry(slot)?;
        if let Some((mut walk, batch)) = self.confirm_time(index, slot)?
            && walk.verify(&batch)?.is_ok()
        {
            return self.largest_after(walk, entry.timestamp).map(Some);
        }
        self.warn_of_time_entry(index, entry);
        Ok(None)
    }

    /// The number of time index entries when the log was opened: all of them, unless the last segment has grown.
    fn time_entries(&self, index: &TimeIndex) -> Result<u64> {
        let is_inside = |entry: TimestampOffset| Ok(entry.offset < self.tail()?.end_offset);
        if !self.is_last() || is_inside(index.last_entry())? || !self.has_grown()? {
            return Ok(index.entries());
        }
        partition_point(index.entries(), |slot| is_inside(index.entry(slot)?))
    }

    fn largest_after(&self, mut walk: Walk, mut largest: i64) -> Result<i64> {
        loop {
            self.open_files.interrupt.check()?;
            let before = walk.before;
            match walk.step_through()? {
                Step::End => return Ok(largest),
                Step::Damage(damage) => return Err(self.corrupt(&damage)),
                Step::Batch(batch) => {
                    if let Err(malformed) = walk.verify(&batch)? {
                        return Err(self.corrupt(&walk.reject(&batch, before, malformed)));
                    }
                    largest = largest.max(batch.header.max_timestamp);
                }
            }
        }
    }
}

/// The first of `count` slots that is not `inside`; all slots before it are.
pub(super) fn partition_point(count: u64, inside: impl Fn(u64) -> Result<bool>) -> Result<u64> {
    let (mut low, mut high) = (0, count);
    while low < high {
        let middle = low.midpoint(high);
        if inside(middle)? {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    Ok(low)
}

impl Error {
    /// True for damage in the log itself, which the option `on_damage` controls.
    pub(crate) fn is_damage(&self) -> bool {
        matches!(self, Self::Corrupt { .. } | Self::UnsupportedFormat { .. })
    }
}
