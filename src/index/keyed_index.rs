//! An index of sorted entries of one size: the common part of the offset index and the time index.

use std::path::Path;

use super::entry::Entry;
use super::search::{Method, Search};
use super::slots::{PageTrace, Slots};
use crate::error::{Malformed, Result};
use crate::fs::FileBytes;

/// A file of sorted entries, as it was when it was opened. The module [`index`](crate::index) defines what entries
/// mean.
///
/// *Concurrency*: `Send + Sync`; readers share it without a lock.
/// *Source*: `AbstractIndex`.
#[derive(Debug)]
pub struct Index<E, const SIZE: usize> {
    pub(super) slots: Slots<SIZE>,
    base_offset: i64,
    pub(super) entries: u64,
    pub(super) last_entry: E,
}

impl<E: Entry<SIZE>, const SIZE: usize> Index<E, SIZE> {
    /// Opens a file for reading, mapped if `map` is true. `base_offset`: the segment's; if `None`, the digits at the start
    /// of the file's name.
    ///
    /// *Cost*: the last page; with a zero tail, a bisection.
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) if the name does not start with a number and none is given, or a negative
    /// one is; [`Error::Io`](crate::Error::Io); [`Error::LogChanged`](crate::Error::LogChanged) if the file is cut
    /// during the call.
    pub fn open(path: &Path, base_offset: Option<i64>, map: bool) -> Result<Self> {
        let (bytes, base_offset) = super::open(path, E::KIND, base_offset, map)?;
        Self::from_bytes(bytes, base_offset)
    }

    /// Uses an open file; `base_offset` is the segment's.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io), [`Error::LogChanged`](crate::Error::LogChanged).
    pub fn from_bytes(bytes: FileBytes, base_offset: i64) -> Result<Self> {
        let slots = Slots::new(bytes);
        let entries = slots.count_before_zeros()?;
        Self::of(slots, base_offset, entries)
    }

    pub(super) fn of(slots: Slots<SIZE>, base_offset: i64, entries: u64) -> Result<Self> {
        let mut index = Self { slots, base_offset, entries, last_entry: E::before_first(base_offset) };
        index.keep(entries)?;
        Ok(index)
    }

    /// The path by which the file was opened.
    pub fn path(&self) -> &Path {
        self.slots.path()
    }

    /// The segment's base offset.
    pub fn base_offset(&self) -> i64 {
        self.base_offset
    }

    /// Bytes of one entry: 8 in an offset index, 12 in a time index.
    pub fn entry_size(&self) -> u64 {
        Slots::<SIZE>::size()
    }

    /// The number of entries, without the zeros of a preallocated file.
    pub fn entries(&self) -> u64 {
        self.entries
    }

    /// The number of whole slots of the file.
    ///
    /// *Source*: `AbstractIndex.maxEntries`.
    pub fn max_entries(&self) -> u64 {
        self.slots.whole()
    }

    /// [`Index::max_entries`] in bytes. An offset index file of 67 bytes has 64, a time index file 60.
    pub fn max_index_size(&self) -> u64 {
        self.max_entries() * self.entry_size()
    }

    /// Whether every slot is used; in a time index, every slot but one, which Kafka reserves for the entry that it writes
    /// when it closes a segment. The offset index of a closed segment is cut to its entries, so it is full.
    ///
    /// *Source*: `AbstractIndex.isFull`, `TimeIndex.isFull`.
    pub fn is_full(&self) -> bool {
        !E::has_slot(self.entries, self.max_entries(), false)
    }

    /// The last entry, with an absolute offset. If there is none, `(base_offset, 0)` in an offset index, `(−1,
    /// base_offset)` in a time index.
    ///
    /// *Source*: `OffsetIndex.lastEntry`, `TimeIndex.lastEntry`.
    pub fn last_entry(&self) -> E {
        self.last_entry
    }

    /// The entry in slot `n`, counted from 0, with an absolute offset.
    ///
    /// *Source*: `OffsetIndex.entry`, `TimeIndex.entry`.
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) if `n` is not below [`Index::entries`]; [`Error::Io`](crate::Error::Io),
    /// [`Error::LogChanged`](crate::Error::LogChanged).
    pub fn entry(&self, n: u64) -> Result<E> {
        if n >= self.entries {
            return Err(super::no_such_entry(n, self.entries));
        }
        self.decoded(n)
    }

    /// All entries, in file order. An entry that cannot be read is returned as an error.
    pub fn iter(&self) -> impl Iterator<Item = Result<E>> + '_ {
        (0..self.entries).map(|n| self.entry(n))
    }

    /// Does Kafka's checks: the last offset is not below the base offset, and the file is a whole number of entries; in a
    /// time index also, the last timestamp is not below the first. No entry is compared with the log.
    ///
    /// *Source*: `OffsetIndex.sanityCheck`, `TimeIndex.sanityCheck`.
    ///
    /// # Errors
    /// [`Error::Corrupt`](crate::Error::Corrupt) if a check fails; [`Error::Io`](crate::Error::Io),
    /// [`Error::LogChanged`](crate::Error::LogChanged).
    pub fn sanity_check(&self) -> Result<()> {
        if let Some(last_slot) = self.entries.checked_sub(1) {
            let (last, offset) = (self.last_entry, self.last_entry.offset());
            let position = last_slot * self.entry_size();
            let corrupt = |malformed: Malformed| malformed.at(self.path(), position, Some(offset));
            last.check_last(&self.entry(0)?).map_err(corrupt)?;
            if offset < self.base_offset {
                let expected = format!("a last offset at or above the base offset {}", self.base_offset);
                return Err(corrupt(Malformed::new(expected, format!("offset {offset}"))));
            }
        }
        self.slots.check_length()
    }

    /// The last entry whose key is at or below `target`. If there is none, `(base_offset, 0)` in an offset index, `(−1,
    /// base_offset)` in a time index. Every target is allowed: below the base offset, above every entry.
    ///
    /// In an offset index the key is the offset: a scan from the entry's position reads every record at or above `target`.
    /// In a time index it is the timestamp (ms): the segment's first record at or after `target` is in the batch that
    /// contains the entry's offset, or after it.
    ///
    /// *Cost*: reads about log₂ of the entries' keys; no lock, and no system call for a page in memory. *Source*:
    /// `OffsetIndex.lookup`, `TimeIndex.lookup`.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io), [`Error::LogChanged`](crate::Error::LogChanged).
    pub fn lookup(&self, target: i64, method: Method) -> Result<E> {
        match self.search(method).lower_bound(target, |slot| self.key(slot))? {
            Some(slot) => self.decoded(slot),
            None => Ok(E::before_first(self.base_offset)),
        }
    }

    /// Two slots, −1 for none: the last whose key is at or below `target`, and the first whose key is at or above it. As in
    /// Kafka, if `target` equals the key of slot 0, the second is slot 1.
    ///
    /// *Source*: `AbstractIndex.largestLowerBoundSlotFor`, `smallestUpperBoundSlotFor`.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io), [`Error::LogChanged`](crate::Error::LogChanged).
    pub fn slot_range(&self, target: i64, method: Method) -> Result<(i64, i64)> {
        self.search(method).slot_range(target, |slot| self.key(slot))
    }

    /// The numbers of the pages of the file (4,096 bytes each) that [`Index::lookup`] reads, each once, in the order of the
    /// first read. An entry of a time index can be on two pages.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io), [`Error::LogChanged`](crate::Error::LogChanged).
    pub fn trace(&self, target: i64, method: Method) -> Result<Vec<u64>> {
        let mut trace = PageTrace::default();
        let slot = self.search(method).lower_bound(target, |slot| {
            trace.add(slot * self.entry_size(), E::KEY_BYTES);
            self.key(slot)
        })?;
        if let Some(slot) = slot {
            trace.add(slot * self.entry_size(), self.entry_size());
        }
        Ok(trace.into_pages())
    }

    /// Reduces the index to its first `entries` slots. If the file is being written, its next write overwrites the slots
    /// after them with zeros.
    pub(super) fn keep(&mut self, entries: u64) -> Result<()> {
        let last_entry = match entries.checked_sub(1) {
            None => E::before_first(self.base_offset),
            Some(last) => self.decoded(last)?,
        };
        if let Some(slots) = self.slots.preallocated_mut() {
            slots.truncate(entries);
        }
        (self.entries, self.last_entry) = (entries, last_entry);
        Ok(())
    }

    /// The first slot whose offset is at or above `offset`; offsets do not decrease from slot to slot.
    pub(super) fn first_at_or_above(&self, offset: i64) -> Result<u64> {
        let offset_of = |slot| Ok(self.decoded(slot)?.offset());
        let found = self.search(Method::Warm).lower_bound(offset, offset_of)?;
        let Some(mut slot) = found else { return Ok(0) };
        if offset_of(slot)? != offset {
            return Ok(slot + 1);
        }
        // several timestamps can have one offset, and the search may end at any of them
        while let Some(before) = slot.checked_sub(1)
            && offset_of(before)? == offset
        {
            slot = before;
        }
        Ok(slot)
    }

    pub(super) fn search(&self, method: Method) -> Search {
        Search { entries: self.entries, entry_size: self.entry_size(), method }
    }

    pub(super) fn decoded(&self, slot: u64) -> Result<E> {
        Ok(E::decode(&self.slots.slot(slot)?, self.base_offset))
    }

    #[inline]
    fn key(&self, slot: u64) -> Result<i64> {
        let stored = if E::KEY_BYTES == 4 {
            i64::from(i32::from_be_bytes(self.slots.start(slot)?))
        } else {
            i64::from_be_bytes(self.slots.start(slot)?)
        };
        Ok(E::absolute_key(stored, self.base_offset))
    }
}
