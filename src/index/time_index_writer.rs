//! Writes a `.timeindex` file.

use std::ops::Deref;

use super::entry::Entry;
use super::preallocated::Preallocated;
use super::slots::Slots;
use super::{TimeIndex, checked_base_offset, full};
use crate::error::{Error, Result};
use crate::fs::Directory;
use crate::types::TimestampOffset;

/// A time index with one owner that appends to it. It is also a [`TimeIndex`]: all methods for reading work
/// on it.
///
/// If it is dropped without [`TimeIndexWriter::close`], the file keeps its full size.
///
/// *Concurrency*: `&mut self` writes, `&self` reads; sharing it between threads needs a lock.
/// *Source*: `TimeIndex`, `AbstractIndex`.
#[derive(Debug)]
pub struct TimeIndexWriter {
    index: TimeIndex,
    max_index_size: u64,
}

impl TimeIndexWriter {
    /// Creates a file of `max_index_size` bytes, rounded down to whole entries of 12: 67 bytes give 60. It
    /// has no blocks before its first entry. `base_offset`: the segment's.
    ///
    /// # Errors
    /// [`Error::Config`] if not even one entry fits, or `base_offset` is negative; [`Error::Io`], also if the
    /// name exists. No file is left.
    pub fn create(directory: &Directory, name: &str, base_offset: i64, max_index_size: u64) -> Result<Self> {
        let base_offset = checked_base_offset(base_offset)?;
        let slots = Preallocated::create(directory, name, max_index_size)?;
        Ok(Self { index: TimeIndex::of(Slots::preallocated(slots), base_offset, 0)?, max_index_size })
    }

    /// Opens a file, or creates it as [`TimeIndexWriter::create`] does. All whole slots of an existing file
    /// are entries, including zeros that a crash left, so it is full until it is resized.
    /// `max_index_size` (bytes) is the size that [`TimeIndexWriter::reset`] restores.
    ///
    /// # Errors
    /// [`Error::Config`] if `base_offset` is negative, or if a file must be created and not even one entry
    /// fits; [`Error::Io`].
    pub fn open(directory: &Directory, name: &str, base_offset: i64, max_index_size: u64) -> Result<Self> {
        let base_offset = checked_base_offset(base_offset)?;
        let (slots, entries) = Preallocated::open(directory, name, max_index_size)?;
        Ok(Self { index: TimeIndex::of(Slots::preallocated(slots), base_offset, entries)?, max_index_size })
    }

    /// Adds an entry to the file if `timestamp` (ms) is above the last entry's: no record up to and including
    /// the batch that contains `offset` (Kafka: its last) is later than `timestamp`. True if it was
    /// added. An equal timestamp adds nothing and is not an error. A timestamp of −1 is never added.
    ///
    /// `skip_full_check` allows the use of the slot that [`TimeIndex::is_full`] reserves for the entry that
    /// closes a segment.
    ///
    /// *Cost*: one system call.
    /// *Source*: `TimeIndex.maybeAppend`.
    ///
    /// # Errors
    /// [`Error::Config`] if the index is full; if an index with entries has a last offset above `offset` or a
    /// last timestamp above `timestamp`; if an entry would be added whose offset is below the base offset
    /// or more than 2³¹ − 1 above it. [`Error::Io`]. On an error the entry is not added.
    pub fn maybe_append(&mut self, timestamp: i64, offset: i64, skip_full_check: bool) -> Result<bool> {
        let (entries, last_entry) = (self.index.entries, self.index.last_entry);
        let is_added = self.maybe_add(timestamp, offset, skip_full_check)?;
        self.write().inspect_err(|_| {
            if let Some(slots) = self.index.slots.preallocated_mut() {
                slots.truncate(entries);
            }
            (self.index.entries, self.index.last_entry) = (entries, last_entry);
        })?;
        Ok(is_added)
    }

    /// [`TimeIndexWriter::maybe_append`] in memory: the next [`TimeIndexWriter::write`], resize or flush
    /// writes the entry to the file.
    ///
    /// *Cost*: a few nanoseconds.
    pub(crate) fn maybe_add(&mut self, timestamp: i64, offset: i64, skip_full_check: bool) -> Result<bool> {
        let index = &mut self.index;
        let entries = index.entries;
        // Kafka refuses a full index even if no entry would be added
        if !skip_full_check && index.is_full() {
            return Err(full(index.path(), entries, index.max_entries()));
        }
        let last = index.last_entry;
        if entries != 0 && offset < last.offset {
            let expected = format!("{} or above, the last offset of the index", last.offset);
            return Err(Error::config("offset", expected, offset.to_string()));
        }
        if entries != 0 && timestamp < last.timestamp {
            let expected = format!("{} or above, the last timestamp of the index", last.timestamp);
            return Err(Error::config("timestamp", expected, timestamp.to_string()));
        }
        if timestamp <= last.timestamp {
            return Ok(false);
        }
        if !TimestampOffset::has_slot(entries, index.max_entries(), skip_full_check) {
            return Err(full(index.path(), entries, index.max_entries()));
        }
        let entry = TimestampOffset { timestamp, offset };
        let slot = entry.encode(index.base_offset())?;
        if let Some(slots) = index.slots.preallocated_mut() {
            slots.add(&slot);
        }
        index.entries = entries + 1;
        index.last_entry = entry;
        Ok(true)
    }

    /// Writes the entries that are only in memory. If it fails, they stay in memory.
    pub(crate) fn write(&mut self) -> Result<()> {
        self.index.slots.preallocated_mut().map_or(Ok(()), Preallocated::write)
    }

    /// The offset of the last entry; the base offset if there is none.
    pub fn last_offset(&self) -> i64 {
        self.index.last_entry.offset
    }

    /// Drops the entries whose offset is at or above `offset`. The file keeps its size; their slots are
    /// zeros.
    ///
    /// *Source*: `TimeIndex.truncateTo`. If several entries have exactly this offset, Kafka leaves some of
    /// them; no writer of a log creates such entries.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn truncate_to(&mut self, offset: i64) -> Result<()> {
        self.index.keep(self.index.first_at_or_above(offset)?)?;
        self.write()
    }

    /// Drops all entries. The file keeps its size.
    ///
    /// *Source*: `TimeIndex.truncate`.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn truncate(&mut self) -> Result<()> {
        self.index.keep(0)?;
        self.write()
    }

    /// Sets the file's size to `max_index_size` bytes, rounded down to whole entries. True if its size
    /// changed.
    ///
    /// *Source*: `AbstractIndex.resize`; Kafka also accepts a size that is too small for the entries, and
    /// breaks.
    ///
    /// # Errors
    /// [`Error::Config`] if the entries do not fit; [`Error::Io`]. On an error the index is unchanged.
    pub fn resize(&mut self, max_index_size: u64) -> Result<bool> {
        self.index.slots.preallocated_mut().map_or(Ok(false), |slots| slots.resize(max_index_size))
    }

    /// Cuts the file to its entries. True if its size changed.
    ///
    /// *Source*: `AbstractIndex.trimToValidSize`.
    ///
    /// # Errors
    /// Those of [`TimeIndexWriter::resize`].
    pub fn trim(&mut self) -> Result<bool> {
        self.resize(self.index.entries * self.index.entry_size())
    }

    /// Drops all entries, and restores the size that the writer was opened with.
    ///
    /// *Source*: `AbstractIndex.reset`.
    ///
    /// # Errors
    /// Those of [`TimeIndexWriter::resize`].
    pub fn reset(&mut self) -> Result<()> {
        self.truncate()?;
        self.resize(self.max_index_size).map(drop)
    }

    /// Makes contents and size durable. The name is durable after [`Directory::sync`].
    ///
    /// # Errors
    /// [`Error::Io`]: data that was not durable yet may be lost, even if a later flush succeeds.
    pub fn flush(&mut self) -> Result<()> {
        self.index.slots.preallocated_mut().map_or(Ok(()), Preallocated::flush)
    }

    /// Cuts the file to its entries and closes it, without a flush.
    ///
    /// *Source*: `AbstractIndex.close`.
    ///
    /// # Errors
    /// Those of [`TimeIndexWriter::resize`].
    pub fn close(mut self) -> Result<()> {
        self.trim().map(drop)
    }
}

impl Deref for TimeIndexWriter {
    type Target = TimeIndex;

    fn deref(&self) -> &TimeIndex {
        &self.index
    }
}
