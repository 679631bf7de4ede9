//! Look-ups in one segment by offset: read an index entry, confirm it in the log, walk the headers.

use std::sync::atomic::Ordering;

use super::entry_match::OffsetMatch;
use super::verified_batches::BatchKey;
use super::walk::{Batch, Step};
use super::{EpochsBefore, LOOKUP_READ, LogFile, MAX_LOOKUP_READ, Segment, Walk};
use crate::error::{Error, Malformed, Result};
use crate::index::{Method, OffsetIndex};
use crate::record::{BatchHeader, V2_HEADER};
use crate::types::OffsetPosition;

/// The result of a look-up by offset in a segment.
#[derive(Debug)]
pub(crate) enum Found {
    /// The batch that contains the offset, or the first one after the gap that contains it.
    Batch(Batch),
    /// Every batch of the segment is below the offset. The last batch was verified.
    Below,
}

impl Segment {
    /// A walk that starts at or before the first batch whose last offset is at or above `offset`: from the
    /// preceding index entry if the log confirms it, else from the segment's start. The flag is true if
    /// the entry confirmed the offsets of the walk's first batch, and not only its position. `log`: a reader
    /// of the segment's `.log`.
    pub(crate) fn walk_to(
        &self,
        offset: i64,
        epochs: impl Into<EpochsBefore>,
        log: LogFile,
    ) -> Result<(Walk, bool)> {
        let epochs = epochs.into();
        let from_start = |log| Ok((self.walk_in(log, epochs)?, true));
        let Some(index) = self.or_warn(self.offset_index()) else { return from_start(log) };
        let entry = match index.lookup(offset, Method::default()) {
            Ok(entry) => entry,
            Err(error) => {
                self.or_warn::<()>(Err(error));
                return from_start(log);
            }
        };
        if entry == (OffsetPosition { offset: self.base_offset, position: 0 }) {
            return from_start(log);
        }
        let mut walk = Walk::new(log, self.bounds()?, 0, None);
        if entry.offset <= offset
            && let Some((position, is_exact)) = self.confirm(entry, &mut walk)?
        {
            walk.position = position;
            return Ok((walk, is_exact));
        }
        // what was read contradicts the entry, unless the log was truncated since
        self.check_unchanged()?;
        self.warn_of_entry(&index, entry);
        from_start(walk.log)
    }

    /// Confirms an offset index entry against the log: a batch starts at its position, and the entry's offset
    /// is that batch's last offset (as 4.x writes it) or base offset (0.8 to 0.11), or the last offset of
    /// a later batch (an append of several batches, as followers used to get them). Returns the position,
    /// and whether one of the first two cases applies.
    pub(super) fn confirm(&self, entry: OffsetPosition, walk: &mut Walk) -> Result<Option<(u64, bool)>> {
        let Ok(position) = u64::try_from(entry.position) else { return Ok(None) };
        if position >= walk.bounds.end {
            return Ok(None);
        }
        let mut at = position;
        while at < walk.bounds.end
            && let Ok(&header) = walk.header_at(at)?
        {
            let is_first = at == position;
            if header.base_offset < self.base_offset || header.last_offset >= self.upper {
                return Ok(None);
            }
            match OffsetMatch::of(entry.offset, &header) {
                OffsetMatch::Last => return Ok(Some((position, is_first))),
                OffsetMatch::First if is_first => return Ok(Some((position, true))),
                OffsetMatch::Above => {}
                _ => return Ok(None),
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
    /// Reads and verifies only the batches that the result depends on: the batch found and, if the offset is
    /// in a gap, the batch before it, whose end is then part of the result, and the header after it.
    pub(crate) fn find_offset(&self, offset: i64) -> Result<Found> {
        let found = self.find_unchecked(offset);
        self.check_unchanged()?;
        if let Ok(Found::Batch(batch)) = &found {
            self.note_found(batch);
        }
        found
    }

    /// [`Segment::find_offset`] without the check that the log is unchanged.
    fn find_unchecked(&self, offset: i64) -> Result<Found> {
        if let Some(batch) = self.find_named_batch(offset)? {
            return Ok(Found::Batch(batch));
        }
        let (mut walk, is_exact) = self.walk_to(offset, -1, self.look_up_file(self.lookup_ahead())?)?;
        walk.log.set_ahead(LOOKUP_READ);
        let from_start = walk.position == 0;
        Ok(match self.find_offset_on(walk, offset, is_exact)? {
            Some(found) => found,
            // a gap directly after a batch whose offsets nothing confirmed
            None if !from_start => {
                let walk = self.walk_in(self.look_up_file(LOOKUP_READ)?, -1)?;
                self.find_offset_on(walk, offset, true)?.unwrap_or(Found::Below)
            }
            None => Found::Below,
        })
    }

    /// Notes the size of the batch that a look-up found.
    pub(super) fn note_found(&self, batch: &Batch) {
        let [last, before] = &self.found_bytes;
        let known = last.load(Ordering::Relaxed);
        // written only if they change: threads share the cache line
        if before.load(Ordering::Relaxed) != known {
            before.store(known, Ordering::Relaxed);
        }
        if known != batch.header.size {
            last.store(batch.header.size, Ordering::Relaxed);
        }
    }

    /// Bytes of the smaller one of the two batches that look-ups found last: a single large batch among small
    /// ones is not typical. `None` before the first look-up.
    pub(super) fn typical_found_bytes(&self) -> Option<u64> {
        let found = self.found_bytes.iter().map(|bytes| u64::from(bytes.load(Ordering::Relaxed)));
        found.filter(|bytes| *bytes > 0).min()
    }

    fn find_offset_on(&self, mut walk: Walk, offset: i64, first_is_confirmed: bool) -> Result<Option<Found>> {
        let mut previous = None;
        let mut walked = 0u64;
        let is_wanted = |batch: &Batch| {
            batch.header.last_offset >= offset
                && is_read_at_once(batch)
                && !self.verified.contains(BatchKey::of(batch))
        };
        loop {
            self.open_files.interrupt.check()?;
            let batch = match walk.step_reading(is_wanted)? {
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
            // a gap before a batch is accepted only if the batch after it agrees: the missing offset may be
            // in that one, out of order
            if in_gap
                && let Some(batch) = &batch
                && let Some(damage) = walk.contradicted_by_next(batch)?
            {
                return Err(self.corrupt(&damage));
            }
            for needed in batch.iter().chain(previous.iter().filter(|_| in_gap)) {
                if let Err(malformed) = self.verify_once(needed, &mut walk)? {
                    let place = Some(needed.header.base_offset);
                    return Err(malformed.at(self.path(), needed.position, place));
                }
            }
            return Ok(Some(batch.map_or(Found::Below, Found::Batch)));
        }
    }

    /// Bytes of the batch that a look-up found last, with the header after it: most batches of a segment have
    /// about one size.
    fn found_read(&self) -> usize {
        let [last, _] = &self.found_bytes;
        usize::try_from(last.load(Ordering::Relaxed)).unwrap_or(usize::MAX).saturating_add(V2_HEADER)
    }

    /// Bytes to read at a time at an index entry if the file is not mapped.
    ///
    /// One window holds the small batches of an index interval. Large batches have an entry each, which
    /// refers to the batch before the one that is searched for: of that one only the header is needed.
    pub(super) fn lookup_ahead(&self) -> usize {
        if self.finds_large_batches() { V2_HEADER } else { LOOKUP_READ }
    }

    /// Whether the last look-up found a batch of which few are in one window; false before the first.
    pub(super) fn finds_large_batches(&self) -> bool {
        self.found_read() > LOOKUP_READ / 2
    }

    /// Bytes to read at a time in a walk that verifies every batch.
    pub(super) fn lookup_read(&self) -> usize {
        let found = self.found_read();
        if found <= MAX_LOOKUP_READ { found.max(LOOKUP_READ) } else { LOOKUP_READ }
    }

    /// The next batch, its checksum checked unless a call of this log is known to have done so; a wrong one
    /// is damage. For walks that verify every batch. The checksum of a batch that `is_decoded`, whose
    /// records the caller reads next, is checked in any case.
    pub(super) fn step_verified(
        &self,
        walk: &mut Walk,
        is_decoded: impl Fn(&BatchHeader) -> bool,
    ) -> Result<Step> {
        let (position, before) = (walk.position, walk.before);
        let header = if position < walk.bounds.end { walk.header_at(position)?.ok().copied() } else { None };
        let is_decoded = header.is_some_and(|header| is_decoded(&header));
        let key = header.map(|header| BatchKey::of(&Batch { position, header }));
        let is_known = !is_decoded && key.is_some_and(|key| self.verified.contains(key));
        // the bytes that are verified are those that the caller then reads
        let step = match (is_decoded, is_known) {
            (true, _) => walk.step_reading(is_read_at_once)?,
            (false, true) => walk.step()?,
            (false, false) => walk.step_through()?,
        };
        let Step::Batch(batch) = &step else { return Ok(step) };
        if is_decoded && let Err(malformed) = walk.verify(batch)? {
            return Ok(Step::Damage(walk.reject(batch, before, malformed)));
        }
        if !is_known {
            self.verified.insert(key.unwrap_or_else(|| BatchKey::of(batch)));
        }
        Ok(step)
    }

    /// Checks the checksum of a batch, unless a call of this log is known to have checked it before.
    fn verify_once(&self, batch: &Batch, walk: &mut Walk) -> Result<std::result::Result<(), Malformed>> {
        let key = BatchKey::of(batch);
        if self.verified.contains(key) {
            return Ok(Ok(()));
        }
        let verified = walk.verify(batch)?;
        if verified.is_ok() {
            self.verified.insert(key);
        }
        Ok(verified)
    }
}

/// Whether a look-up reads a batch and the header after it at once. A larger one is read after the header
/// after it agrees: its length may be wrong.
fn is_read_at_once(batch: &Batch) -> bool {
    batch.header.size as usize <= MAX_LOOKUP_READ
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
