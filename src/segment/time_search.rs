//! Look-ups in one segment by time: read a time index entry, confirm it in the log, walk the headers, decode
//! a batch.

use super::entry_match::{is_time_of, time_entry_follows};
use super::search::partition_point;
use super::walk::{Batch, Step};
use super::{LOOKUP_READ, LogFile, Segment, Walk};
use crate::error::{Malformed, Result};
use crate::index::{Method, TimeIndex};
use crate::record::{BatchHeader, Records};
use crate::types::TimestampOffset;

impl Segment {
    /// The first record at or above `from` whose timestamp is ≥ `target`, in offset order. Kafka:
    /// `LogSegment.findOffsetByTimestamp`, which stops too early in some cases; this one continues.
    ///
    /// Verifies every batch that it skips by its header, because the checksum protects the maximum timestamp,
    /// unless a look-up has verified it before, or the time index has the same maximum for it and the next
    /// batch confirms its length; and each batch that it decodes.
    pub(crate) fn find_time(&self, target: i64, from: i64) -> Result<Option<TimestampOffset>> {
        let found = self.find_time_unchecked(target, from);
        self.check_unchanged()?;
        found
    }

    /// [`Segment::find_time`] without the check that the log is unchanged.
    fn find_time_unchecked(&self, target: i64, from: i64) -> Result<Option<TimestampOffset>> {
        let mut walk = self.walk_to_time(target, from, self.look_up_file(self.lookup_read())?)?;
        let is_decoded = |header: &BatchHeader| header.max_timestamp >= target && header.last_offset >= from;
        let mut buffer = Vec::new();
        loop {
            self.open_files.interrupt.check()?;
            let before = walk.before;
            let batch = match self.step_verified(&mut walk, is_decoded)? {
                Step::End => return Ok(None),
                Step::Damage(damage) => return Err(self.corrupt(&damage)),
                Step::Batch(batch) => batch,
            };
            if !is_decoded(&batch.header) {
                continue;
            }
            let is_behind_gap =
                before.is_some_and(|before| batch.header.base_offset > before.last_offset + 1);
            if is_behind_gap && let Some(damage) = walk.contradicted_by_next(&batch)? {
                return Err(self.corrupt(&damage));
            }
            let damaged = |malformed: Malformed| {
                malformed.at(self.path(), batch.position, Some(batch.header.base_offset))
            };
            let max = walk.log.max_batch_bytes();
            let bytes = walk.bytes(&batch)?;
            let opened = Records::open_up_to(max, batch.header, bytes, &mut buffer);
            let (mut records, payload) = opened.map_err(damaged)?;
            let payload = payload.of(bytes, &buffer);
            while let Some(record) = records.next(payload).map_err(damaged)? {
                if record.timestamp >= target && record.offset >= from {
                    self.note_found(&batch);
                    return Ok(Some(TimestampOffset { timestamp: record.timestamp, offset: record.offset }));
                }
            }
        }
    }

    /// A walk that starts before every record at or above `from` whose timestamp is ≥ `target`. The caller
    /// calls [`Segment::check_unchanged`] before it uses what the walk reads.
    ///
    /// `log`: a reader of the segment's `.log`.
    pub(crate) fn walk_to_time(&self, target: i64, from: i64, log: LogFile) -> Result<Walk> {
        let (mut walk, _) = self.walk_to(from, -1, log)?;
        if let Some(index) = self.or_warn(self.time_index())
            && let Some(batch) = self.batch_before_time(&index, target, &mut walk)?
            && batch.end() > walk.position
        {
            walk.before = None;
            let is_next = |next: &BatchHeader| next.base_offset == batch.header.last_offset + 1;
            if walk.header_at(batch.end())?.is_ok_and(is_next) {
                walk.pass(&batch);
            } else {
                // no checksum covers its length, so it is verified
                walk.position = batch.position;
            }
        }
        Ok(walk)
    }

    /// The batch of the last entry below `target`, if the log confirms the entry: the batch has no record at
    /// or after `target`, as its header and the entry say. Reads headers through `walk`, without moving it.
    fn batch_before_time(&self, index: &TimeIndex, target: i64, walk: &mut Walk) -> Result<Option<Batch>> {
        // strictly below: a record at the target may be before the batch of an equal entry
        let Some(below) = target.checked_sub(1) else { return Ok(None) };
        let Some(last) = self.time_entries(index)?.checked_sub(1) else { return Ok(None) };
        let slot = index.lower_slot(below, Method::default());
        let Some(slot) = self.or_warn(slot).map(|slot| slot.min(last)) else { return Ok(None) };
        let Some(entry) = self.or_warn(index.entry(slot).map(Some)) else { return Ok(None) };
        // confirmed before: the batch still has to be the one that the entry names
        if let Some(position) = self.confirmed_times.get(slot).map(u64::from)
            && entry.timestamp < target
            && let Some(&header) = walk.header_at(position)?.ok().filter(|header| is_time_of(entry, header))
        {
            return Ok(Some(Batch { position, header }));
        }
        if entry.timestamp < target
            && let Some((_, batch)) = self.confirm_time(index, slot, entry)?
        {
            if let Ok(position) = u32::try_from(batch.position) {
                self.confirmed_times.insert(slot, position);
            }
            return Ok(Some(batch));
        }
        self.check_unchanged()?;
        self.warn_of_time_entry(index, entry);
        Ok(None)
    }

    /// The batch of a time index entry and a walk positioned after it, if the log confirms the entry: that
    /// batch has the entry's timestamp as its maximum, no batch between it and the batch of the preceding
    /// entry has a larger one, and the preceding entry has a smaller one.
    ///
    /// So one wrong entry is never used: either the batches contradict it, or the entry before it does.
    /// Entries in a row that are all wrong can confirm each other; only a pass over all batches detects
    /// them: see the module `time_index_check`.
    fn confirm_time(
        &self,
        index: &TimeIndex,
        slot: u64,
        entry: TimestampOffset,
    ) -> Result<Option<(Walk, Batch)>> {
        let previous = match slot.checked_sub(1) {
            Some(slot) => self.or_warn(index.entry(slot).map(Some)),
            None => Some(TimestampOffset { timestamp: -1, offset: self.base_offset.saturating_sub(1) }),
        };
        let Some(previous) = previous else { return Ok(None) };
        if !time_entry_follows(entry, previous)
            || entry.offset < self.base_offset
            || entry.offset >= self.upper
        {
            return Ok(None);
        }
        let mut walk = self.walk_to(previous.offset, -1, self.look_up_file(self.lookup_ahead())?)?.0;
        while let Step::Batch(batch) = walk.step()? {
            self.open_files.interrupt.check()?;
            // the ones after it may be small
            walk.log.set_ahead(LOOKUP_READ);
            let header = &batch.header;
            if header.last_offset >= entry.offset {
                return Ok(is_time_of(entry, header).then_some((walk, batch)));
            }
            if header.max_timestamp > entry.timestamp && header.last_offset > previous.offset {
                return Ok(None);
            }
        }
        Ok(None)
    }

    pub(super) fn warn_of_time_entry(&self, index: &TimeIndex, entry: TimestampOffset) {
        self.warn(&format!(
            "{}: the entry (timestamp {}, offset {}) does not agree with the log; the look-up does not use it",
            index.path().display(),
            entry.timestamp,
            entry.offset
        ));
    }

    /// The largest timestamp in a batch header of the segment; −1 if no batch has one. Computed once.
    ///
    /// The last time index entry covers the batches before the batch it names, if that batch confirms it; the
    /// batches after it are read.
    #[doc(hidden)]
    pub fn largest_record_timestamp(&self) -> Result<i64> {
        if let Some(largest) = self.largest.get() {
            return Ok(*largest);
        }
        let largest = self.find_largest();
        self.check_unchanged()?;
        let largest = largest?;
        Ok(*self.largest.get_or_init(|| largest))
    }

    /// [`Segment::largest_record_timestamp`] without the check that the log is unchanged.
    fn find_largest(&self) -> Result<i64> {
        if let Some(index) = self.or_warn(self.time_index())
            && index.entries() > 0
            && let Some(largest) = self.largest_from_index(&index)?
        {
            return Ok(largest);
        }
        self.largest_after(self.walk_in(self.look_up_file(LOOKUP_READ)?, -1)?, -1)
    }

    fn largest_from_index(&self, index: &TimeIndex) -> Result<Option<i64>> {
        let Some(slot) = self.time_entries(index)?.checked_sub(1) else { return Ok(None) };
        let Some(entry) = self.or_warn(index.entry(slot).map(Some)) else { return Ok(None) };
        if let Some((mut walk, batch)) = self.confirm_time(index, slot, entry)?
            && walk.verify(&batch)?.is_ok()
        {
            return self.largest_after(walk, entry.timestamp).map(Some);
        }
        self.check_unchanged()?;
        self.warn_of_time_entry(index, entry);
        Ok(None)
    }

    /// The number of time index entries when the log was opened: all of them, unless the last segment has
    /// grown. 0 if they cannot be read.
    fn time_entries(&self, index: &TimeIndex) -> Result<u64> {
        let is_inside = |end: i64, entry: TimestampOffset| entry.offset < end;
        if !self.is_last() || is_inside(self.tail()?.end_offset, index.last_entry()) || !self.has_grown()? {
            return Ok(index.entries());
        }
        let end = self.tail()?.end_offset;
        let inside = partition_point(index.entries(), |slot| Ok(is_inside(end, index.entry(slot)?)));
        Ok(self.or_warn(inside.map(Some)).unwrap_or(0))
    }

    fn largest_after(&self, mut walk: Walk, mut largest: i64) -> Result<i64> {
        loop {
            self.open_files.interrupt.check()?;
            match self.step_verified(&mut walk, |_| false)? {
                Step::End => return Ok(largest),
                Step::Damage(damage) => return Err(self.corrupt(&damage)),
                Step::Batch(batch) => largest = largest.max(batch.header.max_timestamp),
            }
        }
    }
}
