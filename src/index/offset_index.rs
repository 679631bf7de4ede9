//! `.index`: from an offset to the position of a batch at or before it.

use std::path::Path;

use super::search::{Method, Search};
use super::slots::{Slots, Touched, field};
use crate::error::{Malformed, Result};
use crate::fs::FileBytes;
use crate::types::OffsetPosition;

type Slot = [u8; 8];

/// Bytes of a slot that hold its key.
const KEY_BYTES: u64 = 4;

/// An offset index (`.index`), fixed as of its opening. What its entries mean is said in [`index`](crate::index).
///
/// *Concurrency*: `Send + Sync`; readers share it without a lock.
/// *Source*: `OffsetIndex`.
#[derive(Debug)]
pub struct OffsetIndex {
    pub(super) slots: Slots<8>,
    base_offset: i64,
    pub(super) entries: u64,
    pub(super) last_entry: OffsetPosition,
}

impl OffsetIndex {
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

    pub(super) fn of(slots: Slots<8>, base_offset: i64, entries: u64) -> Result<Self> {
        let last_entry = OffsetPosition { offset: base_offset, position: 0 };
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

    /// Bytes of one entry: 8.
    pub fn entry_size(&self) -> u64 {
        Slots::<8>::size()
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

    /// [`OffsetIndex::max_entries`] in bytes. A file of 67 bytes has 64.
    pub fn max_index_size(&self) -> u64 {
        self.max_entries() * self.entry_size()
    }

    /// Whether every slot is taken. The index of a closed segment is cut to its entries, so it is full.
    ///
    /// *Source*: `AbstractIndex.isFull`.
    pub fn is_full(&self) -> bool {
        self.entries >= self.max_entries()
    }

    /// The last entry, absolute offset; `(base_offset, 0)` where there is none.
    ///
    /// *Source*: `OffsetIndex.lastEntry`.
    pub fn last_entry(&self) -> OffsetPosition {
        self.last_entry
    }

    /// The entry in slot `n`, counted from 0, absolute offset.
    ///
    /// *Source*: `OffsetIndex.entry`.
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) where `n` is not below [`OffsetIndex::entries`];
    /// [`Error::Io`](crate::Error::Io), [`Error::LogChanged`](crate::Error::LogChanged).
    pub fn entry(&self, n: u64) -> Result<OffsetPosition> {
        if n >= self.entries {
            return Err(super::no_such_entry(n, self.entries));
        }
        Ok(decode(self.slots.slot(n)?, self.base_offset))
    }

    /// All entries, in file order. Where one cannot be read, an error stands in its place.
    pub fn iter(&self) -> impl Iterator<Item = Result<OffsetPosition>> + '_ {
        (0..self.entries).map(|n| self.entry(n))
    }

    /// Checks what Kafka checks: the last offset is not below the base offset, the file is a whole number of entries.
    /// No entry is compared with the log.
    ///
    /// *Source*: `OffsetIndex.sanityCheck`.
    ///
    /// # Errors
    /// [`Error::Corrupt`](crate::Error::Corrupt) where one of them does not hold.
    pub fn sanity_check(&self) -> Result<()> {
        let last = self.last_entry.offset;
        if last < self.base_offset {
            let expected = format!("a last offset at or above the base offset {}", self.base_offset);
            let position = self.entries.saturating_sub(1) * self.entry_size();
            let malformed = Malformed::new(expected, format!("offset {last}"));
            return Err(malformed.at(self.path(), position, Some(last)));
        }
        self.slots.check_length()
    }

    /// The largest entry whose offset is at or below `target`; `(base_offset, 0)` where there is none. Any target will
    /// do: below the base offset, above everything.
    ///
    /// *Cost*: about log₂ of the entries in key reads; no lock, and no system call for a page in memory.
    /// *Source*: `OffsetIndex.lookup`.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io), [`Error::LogChanged`](crate::Error::LogChanged).
    pub fn lookup(&self, target: i64, method: Method) -> Result<OffsetPosition> {
        match self.search(method).lower_bound(target, |slot| self.key(slot))? {
            Some(slot) => Ok(decode(self.slots.slot(slot)?, self.base_offset)),
            None => Ok(OffsetPosition { offset: self.base_offset, position: 0 }),
        }
    }

    /// Two slots, −1 for none: the largest whose offset is at or below `target`, and the smallest whose offset is at or
    /// above it. As in Kafka, the second is the slot behind the first one where `target` is the offset of slot 0.
    ///
    /// *Source*: `AbstractIndex.largestLowerBoundSlotFor`, `smallestUpperBoundSlotFor`.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io), [`Error::LogChanged`](crate::Error::LogChanged).
    pub fn slot_range(&self, target: i64, method: Method) -> Result<(i64, i64)> {
        self.search(method).slot_range(target, |slot| self.key(slot))
    }

    /// The pages of the file (numbers, 4,096 bytes each) that [`OffsetIndex::lookup`] touches, each once, in the order
    /// of the first touch.
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

    /// The first entry whose position is at or above `position + fetch_size`: all that a fetch of `fetch_size` bytes from
    /// `position` on returns is below the entry's offset. `None` where there is no such entry.
    ///
    /// As in Kafka, the sum wraps at 32 bits, and where it is exactly the position of slot 0 the answer is slot 1 (which
    /// is as true, only further off).
    ///
    /// *Source*: `OffsetIndex.fetchUpperBoundOffset`.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io), [`Error::LogChanged`](crate::Error::LogChanged).
    pub fn fetch_upper_bound(&self, position: i32, fetch_size: i32) -> Result<Option<OffsetPosition>> {
        let target = i64::from(position.wrapping_add(fetch_size));
        let position_of = |slot| Ok(i64::from(decode(self.slots.slot(slot)?, self.base_offset).position));
        let slot = self.search(Method::Warm).upper_bound(target, position_of)?;
        slot.map(|slot| self.entry(slot)).transpose()
    }

    /// Takes the first `entries` slots for all there are. Where the file is being written, its next write makes the slots
    /// after them zeros.
    pub(super) fn keep(&mut self, entries: u64) -> Result<()> {
        let last_entry = match entries.checked_sub(1) {
            None => OffsetPosition { offset: self.base_offset, position: 0 },
            Some(last) => decode(self.slots.slot(last)?, self.base_offset),
        };
        if let Some(slots) = self.slots.preallocated_mut() {
            slots.truncate(entries);
        }
        (self.entries, self.last_entry) = (entries, last_entry);
        Ok(())
    }

    /// The first slot whose offset is at or above `offset`.
    pub(super) fn first_at_or_above(&self, offset: i64) -> Result<u64> {
        match self.search(Method::Warm).lower_bound(offset, |slot| self.key(slot))? {
            None => Ok(0),
            Some(slot) if self.key(slot)? == offset => Ok(slot),
            Some(slot) => Ok(slot + 1),
        }
    }

    fn search(&self, method: Method) -> Search {
        Search { entries: self.entries, entry_size: self.entry_size(), method }
    }

    /// The absolute offset of a slot. Absolute, so that a target needs no narrowing to 32 bits to be compared.
    fn key(&self, slot: u64) -> Result<i64> {
        Ok(absolute(self.slots.start(slot)?, self.base_offset))
    }
}

pub(super) fn encode(relative: i32, position: i32) -> Slot {
    let mut slot = [0; 8];
    let (key, value) = slot.split_at_mut(4);
    key.copy_from_slice(&relative.to_be_bytes());
    value.copy_from_slice(&position.to_be_bytes());
    slot
}

fn decode(slot: Slot, base_offset: i64) -> OffsetPosition {
    OffsetPosition {
        offset: absolute(field(&slot, 0), base_offset),
        position: i32::from_be_bytes(field(&slot, 4)),
    }
}

/// Wraps, as in Java: only garbage gets there.
pub(super) fn absolute(relative: [u8; 4], base_offset: i64) -> i64 {
    base_offset.wrapping_add(i64::from(i32::from_be_bytes(relative)))
}
