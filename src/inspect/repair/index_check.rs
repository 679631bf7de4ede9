//! Index files, compared with the batches that they refer to.

use crate::error::Result;
use crate::fs::names::FileKind;
use crate::fs::{Directory, FileBytes, are_zero};
use crate::index::{Entry, OFFSET_ENTRY_BYTES, TIME_ENTRY_BYTES};
use crate::segment::{Batch, OffsetMatch, is_time_of};
use crate::types::{OffsetPosition, TimestampOffset};

/// Entries that are compared with the batches in their order.
struct Pending<E> {
    entries: Vec<E>,
    /// The number of entries that batches have confirmed.
    confirmed: usize,
}

impl<E: Copy> Pending<E> {
    fn new(entries: Vec<E>) -> Self {
        Self { entries, confirmed: 0 }
    }

    fn next(&self) -> Option<E> {
        self.entries.get(self.confirmed).copied()
    }

    fn is_right(&self, is_new_empty: bool) -> bool {
        self.confirmed == self.entries.len() && (is_new_empty || !self.entries.is_empty())
    }
}

/// The comparison of a segment's indexes with its batches.
pub(super) struct IndexCheck {
    base_offset: i64,
    /// The largest timestamp so far.
    largest: i64,
    offsets: Option<Pending<OffsetPosition>>,
    times: Option<Pending<TimestampOffset>>,
}

impl IndexCheck {
    pub(super) fn new(base_offset: i64) -> Self {
        Self { base_offset, largest: -1, offsets: None, times: None }
    }

    /// Reads an index file. `log_size`: the size of the `.log`. `preallocated`: `segment.index.bytes`, if the
    /// index may have this size, with zeros behind its entries.
    pub(super) fn read(
        &mut self,
        directory: &Directory,
        kind: FileKind,
        name: &str,
        log_size: u64,
        preallocated: Option<u64>,
    ) -> Result<()> {
        let Some(file) = directory.identity_of(name)? else { return Ok(()) };
        let slot = if kind == FileKind::OffsetIndex { OFFSET_ENTRY_BYTES } else { TIME_ENTRY_BYTES } as u64;
        // the smallest batch has 26 bytes
        let most = log_size.saturating_add(slot);
        let bytes = if preallocated.is_some_and(|size| file.size == size - size % slot) {
            entries_before_zeros(directory, name, file.size.min(most - most % slot), slot)?
        } else if file.size <= most {
            directory.read_small(name, file.size)?
        } else {
            None
        };
        let Some(bytes) = bytes else { return Ok(()) };
        match kind {
            FileKind::OffsetIndex => self.offsets = entries(&bytes, self.base_offset).map(Pending::new),
            _ => self.times = entries(&bytes, self.base_offset).map(Pending::new),
        }
        Ok(())
    }

    /// Compares the entries with the next batch.
    pub(super) fn add(&mut self, batch: &Batch) {
        let header = &batch.header;
        if let Some(pending) = &mut self.offsets
            && let Some(entry) = pending.next()
            && u64::try_from(entry.position) == Ok(batch.position)
            && OffsetMatch::of(entry.offset, header).is_stored()
        {
            pending.confirmed += 1;
        }
        self.largest = self.largest.max(header.max_timestamp);
        while let Some(pending) = &mut self.times
            && let Some(entry) = pending.next()
            && is_time_of(entry, header)
            && entry.timestamp == self.largest
        {
            pending.confirmed += 1;
        }
    }

    /// Whether every entry has a batch. `is_new_empty`: whether a new index has no entry; `is_last`: whether
    /// the segment is the last one. In the others the last time entry has the largest timestamp.
    pub(super) fn matches(&self, kind: FileKind, is_new_empty: bool, is_last: bool) -> bool {
        match kind {
            FileKind::OffsetIndex => {
                self.offsets.as_ref().is_some_and(|pending| pending.is_right(is_new_empty))
            }
            _ => self.times.as_ref().is_some_and(|pending| {
                let last = pending.entries.last().map_or(-1, |last| last.timestamp);
                pending.is_right(is_new_empty) && (is_last || last == self.largest)
            }),
        }
    }
}

/// The bytes of the entries of a preallocated index, which are within the first `most` bytes; `None` if other
/// bytes than zeros are behind these.
fn entries_before_zeros(directory: &Directory, name: &str, most: u64, slot: u64) -> Result<Option<Vec<u8>>> {
    let file = FileBytes::new(directory.open_file(name)?, None, false)?;
    if !is_zero_from(&file, most)? {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    file.copy(0, usize::try_from(most).unwrap_or(usize::MAX), &mut bytes)?;
    let used = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last as u64 + 1);
    bytes.truncate(usize::try_from(used.next_multiple_of(slot)).unwrap_or(0));
    Ok(Some(bytes))
}

/// Whether all bytes from a position to the end of a file are zero.
pub(super) fn is_zero_from(file: &FileBytes, mut position: u64) -> Result<bool> {
    const CHUNK: usize = 128 << 10;
    let mut buffer = Vec::new();
    loop {
        // the space may be a hole
        position = file.after_hole(position)?;
        let bytes = file.read(position, CHUNK, &mut buffer)?;
        if bytes.is_empty() || !are_zero(bytes) {
            return Ok(bytes.is_empty());
        }
        position += bytes.len() as u64;
    }
}

/// The entries of an index file; `None` if its size is not that of whole entries.
fn entries<const SIZE: usize, E: Entry<SIZE>>(bytes: &[u8], base_offset: i64) -> Option<Vec<E>> {
    let (slots, rest) = bytes.as_chunks::<SIZE>();
    rest.is_empty().then(|| slots.iter().map(|slot| E::decode(slot, base_offset)).collect())
}
