//! The end of a segment: the end position of its data, and the next offset.
//!
//! Kafka takes the log end offset from the last index entry and a read after it, and verifies neither. Here
//! the walk starts at the last entry that the log confirms, verifies every batch after it, and accepts an end
//! only if no valid batch follows.

use std::time::{Duration, SystemTime};

use super::damage::{Bounds, Damage};
use super::identity::FileNow;
use super::search::partition_point;
use super::walk::{Batch, Step};
use super::{LOOKUP_READ, Segment, Walk};
use crate::error::Result;
use crate::index::OffsetIndex;
use crate::types::OffsetPosition;

/// The maximum number of entries, from the last one, to compare with the log until one is confirmed.
const MAX_TRIED_ENTRIES: usize = 16;

/// The longest time that an append is assumed to take.
const APPEND_TIME: Duration = Duration::from_mins(1);

/// The end of a segment.
#[derive(Debug, Clone)]
pub(crate) struct Tail {
    /// The position after the last byte of data. In the last segment, a torn batch or the zeros of a
    /// preallocated file may follow; in other segments it is the size of the file.
    pub(crate) end: u64,
    /// The offset after the last batch.
    pub(crate) end_offset: i64,
    /// The damage that ends the last segment before the end of its file.
    pub(crate) cut: Option<Damage>,
    /// Whether the search for a valid batch after the end was completed, and found none of a later format;
    /// otherwise `cut` says why.
    pub(crate) is_searched: bool,
    /// Whether a batch with a right checksum is there that contradicts those before it.
    pub(crate) is_intact: bool,
}

impl Tail {
    /// Whether it is known that no valid batch follows the end.
    pub(crate) fn is_certain(&self) -> bool {
        self.is_searched && !self.is_intact
    }
}

impl Segment {
    /// The end; computed once.
    pub(crate) fn tail(&self) -> Result<&Tail> {
        if let Some(tail) = self.tail.get() {
            return Ok(tail);
        }
        let (found, mut is_first) = (self.find_tail()?, false);
        let tail = self.tail.get_or_init(|| {
            is_first = true;
            found
        });
        if is_first && let Ok(Some(warning)) = self.torn_tail_warning() {
            self.warnings.report(&warning);
        }
        Ok(tail)
    }

    /// The damage that ends the last segment before the end of its file.
    #[cfg(feature = "inspect")]
    pub(crate) fn tail_cut(&self) -> Result<Option<&Damage>> {
        Ok(self.tail()?.cut.as_ref())
    }

    /// [`Segment::torn_tail`], unless the bytes are an append in progress. If the search for batches in them
    /// was given up, the warning is returned in any case.
    pub(crate) fn torn_tail_warning(&self) -> Result<Option<String>> {
        let tail = self.tail()?;
        if tail.cut.is_none() {
            return Ok(None);
        }
        let is_in_progress = tail.is_certain() && self.is_being_written()?;
        if is_in_progress { Ok(None) } else { self.torn_tail() }
    }

    /// Whether bytes after the data may be an append in progress: the `.log` was changed since this segment
    /// was listed, or within the last minute by a broker or a writer that has the log open. A reader sees
    /// a batch in part while it is written.
    pub(crate) fn is_being_written(&self) -> Result<bool> {
        // in this order: an append is finished before its writer releases the lock
        let is_open = self.open_files.directory.is_locked();
        let known = self.identity()?;
        Ok(match self.file_now()? {
            FileNow::Same(now) => {
                let is_recent = || {
                    SystemTime::now().checked_sub(APPEND_TIME).is_none_or(|moment| !now.is_older_than(moment))
                };
                (now.size, now.modified) != (known.size, known.modified) || is_open && is_recent()
            }
            FileNow::Gone | FileNow::Another => true,
        })
    }

    /// A description of the bytes that follow the data of the last segment.
    pub(crate) fn torn_tail(&self) -> Result<Option<String>> {
        let tail = self.tail()?;
        let Tail { end_offset, cut: Some(cut), .. } = tail else { return Ok(None) };
        let left = self.file_size()?.saturating_sub(cut.position);
        let no = match tail {
            Tail { is_intact: true, .. } => "no batch with a possible offset",
            Tail { is_searched: true, .. } => "no whole batch",
            _ => "no readable whole batch",
        };
        Ok(Some(format!(
            "{}: {no} follows position {}, where {left} bytes are left (expected {}, found {}); \
             the data ends there, at offset {end_offset}",
            self.path().display(),
            cut.position,
            cut.malformed.expected,
            cut.malformed.found,
        )))
    }

    /// Fails if valid batches may follow the end: they are of a later format, the search for them was given
    /// up, or they contradict those before.
    pub(crate) fn refuse_uncertain_end(&self) -> Result<()> {
        match self.tail()? {
            tail @ Tail { cut: Some(cut), .. } if !tail.is_certain() => Err(self.corrupt(cut)),
            _ => Ok(()),
        }
    }

    fn find_tail(&self) -> Result<Tail> {
        let index = self.or_warn(self.offset_index());
        let mut walk = self.walk_from_last_entry(index.as_deref())?;
        let end = walk.bounds.end;
        loop {
            self.open_files.interrupt.check()?;
            let damage = match self.step_verified(&mut walk, |_| false)? {
                Step::End => {
                    let end_offset = walk.expected_offset();
                    return Ok(Tail { end, end_offset, cut: None, is_searched: true, is_intact: false });
                }
                Step::Batch(batch) => {
                    self.note_overflow(&batch);
                    continue;
                }
                Step::Damage(damage) => damage,
            };
            let span = self.resume_with(&mut walk, &damage, index.as_deref())?;
            if span.end_offset.is_none() {
                let unsupported = span.unsupported();
                // a writer may have put a batch into preallocated space since the walk found nothing there
                let mut again = Walk::new(walk.log.new_reader(), walk.bounds, damage.position, walk.before);
                let is_intact =
                    span.is_intact && matches!(self.step_verified(&mut again, |_| false)?, Step::Damage(_));
                let is_searched = span.is_searched && unsupported.is_none();
                let cut = match unsupported {
                    Some(newer) => Damage { malformed: newer.malformed, ..damage.clone() },
                    None => span.describe(&damage),
                };
                let end = if self.is_last() { damage.position } else { end };
                let cut = self.is_last().then_some(cut);
                return Ok(Tail { end, end_offset: walk.expected_offset(), cut, is_searched, is_intact });
            }
        }
    }

    /// A walk from the batch of the last offset index entry that the log confirms, or from the first batch if
    /// there is no such entry. It goes to the end of the file, because the end of the data may not be
    /// known yet.
    pub(super) fn walk_from_last_entry(&self, index: Option<&OffsetIndex>) -> Result<Walk> {
        let bounds = Bounds { base_offset: self.base_offset(), upper: self.upper(), end: self.file_size()? };
        let mut walk = Walk::new(self.log_file(LOOKUP_READ)?, bounds, 0, None);
        match index.map_or(Ok(None), |index| self.last_confirmed(index, &mut walk))? {
            Some(position) => walk.position = position,
            None => walk.before = Some(bounds.before_first(-1)),
        }
        Ok(walk)
    }

    /// The position of the last offset index entry that the log confirms, including its batch's checksum.
    fn last_confirmed(&self, index: &OffsetIndex, walk: &mut Walk) -> Result<Option<u64>> {
        let end = walk.bounds.end;
        let is_inside = |entry: OffsetPosition| u64::try_from(entry.position).is_ok_and(|at| at < end);
        let mut entries = index.entries();
        // a running broker adds index entries for batches appended after the log was opened
        if !is_inside(index.last_entry()) && self.has_grown()? {
            let inside = partition_point(entries, |slot| Ok(is_inside(index.entry(slot)?)));
            entries = self.or_warn(inside.map(Some)).unwrap_or(0);
        }
        for slot in (0..entries).rev().take(MAX_TRIED_ENTRIES) {
            let Some(entry) = self.or_warn(index.entry(slot).map(Some)) else { return Ok(None) };
            if let Some((position, _)) = self.confirm(entry, walk)?
                && let Ok(&header) = walk.header_at(position)?
                && walk.verify(&Batch { position, header })?.is_ok()
            {
                return Ok(Some(position));
            }
            // the entry may be that of a batch of which this segment has a part
            if !self.has_grown()? {
                self.warn_of_entry(index, entry);
            }
        }
        Ok(None)
    }

    /// Whether the log confirms the last entry of the offset index; true for an index without entries.
    pub(crate) fn confirms_last_entry(&self, index: &OffsetIndex) -> Result<bool> {
        let Some(last) = index.entries().checked_sub(1) else { return Ok(true) };
        let last = index.entry(last)?;
        let confirmed = self.last_confirmed(index, &mut self.walk(-1, LOOKUP_READ)?)?;
        Ok(confirmed.is_some() && confirmed == u64::try_from(last.position).ok())
    }
}
