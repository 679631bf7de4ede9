//! `.timeindex`: from a timestamp to an offset before which nothing is that late.

use std::path::Path;

use super::offset_index::absolute;
use super::search::{Method, Search};
use super::slots::{Slots, Touched, field};
use crate::error::{Malformed, Result};
use crate::fs::FileBytes;
use crate::types::TimestampOffset;

type Slot = [u8; 12];

/// Bytes of a slot that hold its key.
const KEY_BYTES: u64 = 8;

/// A time index (`.timeindex`), fixed as of its opening. What its entries mean is said in [`index`](crate::index).
///
/// *Concurrency*: `Send + Sync`; readers share it without a lock.
/// *Source*: `TimeIndex`.
#[derive(Debug)]
pub struct TimeIndex {
    pub(super) slots: Slots<12>,
    base_offset: i64,
    pub(super) entries: u64,
    pub(super) last_entry: TimestampOffset,
}

impl TimeIndex {
    /// Opens a file, mapped where `map` says so. The file is only read. `base_offset`: the segment's; where `None`, the
    /// digits that the file's name begins with.
    ///
    /// *Cost*: the last page; with a zero tail, a bisection.
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) where the name does not begin with a number and none is given, or a
    /// negative one is; [`Error::Io`](crate::Error::Io); [`Error::LogChanged`](crate::Error::LogChanged) where the file
    /// is cut meanwhile.
    pub fn open(path: &Path, base_offset: Option<i64>, map: bool) -> Result<Self> {
        let (bytes, base_offset) = super::open(path, base_offset, map)?;
        Self::from_bytes(bytes, base_offset)
    }

    /// Takes a file that is open already; `base_offset` is the segment's.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io), [`Error::LogChanged`](crate::Error::LogChanged).
    pub fn from_bytes(bytes: FileBytes, base_offset: i64) -> Result<Self> {
        let slots = Slots::new(bytes);
        let entries = slots.before_zeros()?;
        Self::of(slots, base_offset, entries)
    }

    pub(super) fn of(slots: Slots<12>, base_offset: i64, entries: u64) -> Result<Self> {
        let last_entry = TimestampOffset { timestamp: -1, offset: base_offset };
        let mut index = Self { slots, base_offset, entries, last_entry };
        index.keep(entries)?;
        Ok(index)
    }

    /// The file, as it was opened.
    pub fn path(&self) -> &Path {
        self.slots.path()
    }

    /// The segment's base offset.
    pub fn base_offset(&self) -> i64 {
        self.base_offset
    }

    /// Bytes of one entry: 12.
    pub fn entry_size(&self) -> u64 {
        Slots::<12>::size()
    }

    /// How many entries there are; the zeros of a preallocated file are none.
    pub fn entries(&self) -> u64 {
        self.entries
    }

    /// How many entries the file has room for: its whole slots.
    ///
    /// *Source*: `AbstractIndex.maxEntries`.
    pub fn max_entries(&self) -> u64 {
        self.slots.whole()
    }

    /// [`TimeIndex::max_entries`] in bytes. A file of 67 bytes has 60.
    pub fn max_index_size(&self) -> u64 {
        self.max_entries() * self.entry_size()
    }

    /// Whether every slot but one is taken: Kafka keeps one free for the entry that it writes when it closes a segment.
    ///
    /// *Source*: `TimeIndex.isFull`.
    pub fn is_full(&self) -> bool {
        self.entries >= self.max_entries().saturating_sub(1)
    }

    /// The last entry, absolute offset; `(−1, base_offset)` where there is none. Its timestamp is the largest of the
    /// segment up to the last time that Kafka wrote an entry.
    ///
    /// *Source*: `TimeIndex.lastEntry`.
    pub fn last_entry(&self) -> TimestampOffset {
        self.last_entry
    }

    /// The entry in slot `n`, counted from 0, absolute offset.
    ///
    /// *Source*: `TimeIndex.entry`.
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) where `n` is not below [`TimeIndex::entries`];
    /// [`Error::Io`](crate::Error::Io), [`Error::LogChanged`](crate::Error::LogChanged).
    pub fn entry(&self, n: u64) -> Result<TimestampOffset> {
        if n >= self.entries {
            return Err(super::no_such_entry(n, self.entries));
        }
        Ok(decode(self.slots.slot(n)?, self.base_offset))
    }

    /// All entries, in file order. Where one cannot be read, an error stands in its place.
    pub fn iter(&self) -> impl Iterator<Item = Result<TimestampOffset>> + '_ {
        (0..self.entries).map(|n| self.entry(n))
    }

    /// Checks what Kafka checks: the last timestamp is not below the first, the last offset is not below the base offset,
    /// the file is a whole number of entries. No entry is compared with the log.
    ///
    /// *Source*: `TimeIndex.sanityCheck`.
    ///
    /// # Errors
    /// [`Error::Corrupt`](crate::Error::Corrupt) where one of them does not hold; [`Error::Io`](crate::Error::Io),
    /// [`Error::LogChanged`](crate::Error::LogChanged).
    pub fn sanity_check(&self) -> Result<()> {
        if let Some(last_slot) = self.entries.checked_sub(1) {
            let first = self.entry(0)?;
            let TimestampOffset { timestamp, offset } = self.last_entry;
            let corrupt = |expected: String, found: String| {
                let position = last_slot * self.entry_size();
                Err(Malformed::new(expected, found).at(self.path(), position, Some(offset)))
            };
            if timestamp < first.timestamp {
                let expected = format!("a last timestamp at or above the first, {}", first.timestamp);
                return corrupt(expected, format!("timestamp {timestamp}"));
            }
            if offset < self.base_offset {
                let expected = format!("a last offset at or above the base offset {}", self.base_offset);
                return corrupt(expected, format!("offset {offset}"));
            }
        }
        self.slots.check_length()
    }

    /// The largest entry whose timestamp is at or below `target` (ms); `(−1, base_offset)` where there is none. The
    /// segment's first record at or after `target` lies in the batch that holds the entry's offset, or behind it.
    ///
    /// *Cost*: about log₂ of the entries in key reads; no lock, and no system call for a page in memory.
    /// *Source*: `TimeIndex.lookup`.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io), [`Error::LogChanged`](crate::Error::LogChanged).
    pub fn lookup(&self, target: i64, method: Method) -> Result<TimestampOffset> {
        match self.search(method).lower_bound(target, |slot| self.key(slot))? {
            Some(slot) => Ok(decode(self.slots.slot(slot)?, self.base_offset)),
            None => Ok(TimestampOffset { timestamp: -1, offset: self.base_offset }),
        }
    }

    /// Two slots, −1 for none: the largest whose timestamp is at or below `target`, and the smallest whose timestamp is at
    /// or above it. As in Kafka, the second is the slot behind the first one where `target` is the timestamp of slot 0.
    ///
    /// *Source*: `AbstractIndex.largestLowerBoundSlotFor`, `smallestUpperBoundSlotFor`.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io), [`Error::LogChanged`](crate::Error::LogChanged).
    pub fn slot_range(&self, target: i64, method: Method) -> Result<(i64, i64)> {
        self.search(method).slot_range(target, |slot| self.key(slot))
    }

    /// The pages of the file (numbers, 4,096 bytes each) that [`TimeIndex::lookup`] touches, each once, in the order of
    /// the first touch. An entry can lie on two.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io), [`Error::LogChanged`](crate::Error::LogChanged).
    pub fn trace(&self, target: i64, method: Method) -> Result<Vec<u64>> {
        let mut touched = Touched::default();
        let slot = self.search(method).lower_bound(target, |slot| {
            touched.touch(slot * self.entry_size(), KEY_BYTES);
            self.key(slot)
        })?;
        if let Some(slot) = slot {
            touched.touch(slot * self.entry_size(), self.entry_size());
        }
        Ok(touched.into_pages())
    }

    /// Takes the first `entries` slots for all there are. Where the file is being written, its next write makes the slots
    /// after them zeros.
    pub(super) fn keep(&mut self, entries: u64) -> Result<()> {
        let last_entry = match entries.checked_sub(1) {
            None => TimestampOffset { timestamp: -1, offset: self.base_offset },
            Some(last) => decode(self.slots.slot(last)?, self.base_offset),
        };
        if let Some(slots) = self.slots.preallocated_mut() {
            slots.truncate(entries);
        }
        (self.entries, self.last_entry) = (entries, last_entry);
        Ok(())
    }

    /// The first slot whose offset is at or above `offset`; offsets do not fall from slot to slot.
    pub(super) fn first_at_or_above(&self, offset: i64) -> Result<u64> {
        let offset_of = |slot: u64| Ok(decode(self.slots.slot(slot)?, self.base_offset).offset);
        let found = self.search(Method::Warm).lower_bound(offset, offset_of)?;
        let Some(mut slot) = found else { return Ok(0) };
        if offset_of(slot)? != offset {
            return Ok(slot + 1);
        }
        // several timestamps can stand at one offset, and the search ends at any of them
        while let Some(before) = slot.checked_sub(1)
            && offset_of(before)? == offset
        {
            slot = before;
        }
        Ok(slot)
    }

    fn search(&self, method: Method) -> Search {
        Search { entries: self.entries, entry_size: self.entry_size(), method }
    }

    fn key(&self, slot: u64) -> Result<i64> {
        Ok(i64::from_be_bytes(self.slots.start(slot)?))
    }
}

pub(super) fn encode(timestamp: i64, relative: i32) -> Slot {
    let mut slot = [0; 12];
    let (key, value) = slot.split_at_mut(8);
    key.copy_from_slice(&timestamp.to_be_bytes());
    value.copy_from_slice(&relative.to_be_bytes());
    slot
}

fn decode(slot: Slot, base_offset: i64) -> TimestampOffset {
    TimestampOffset {
        timestamp: i64::from_be_bytes(field(&slot, 0)),
        offset: absolute(field(&slot, 8), base_offset),
    }
}
