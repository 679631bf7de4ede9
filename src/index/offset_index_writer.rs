//! Writes an `.index` file.

use std::ops::Deref;

use super::entry::Entry;
use super::preallocated::Preallocated;
use super::slots::Slots;
use super::{OffsetIndex, checked_base_offset, full};
use crate::error::{Error, Result};
use crate::fs::Directory;
use crate::types::OffsetPosition;

/// An offset index with one owner that appends to it. It is also an [`OffsetIndex`]: all methods for reading
/// work on it.
///
/// If it is dropped without [`OffsetIndexWriter::close`], the file keeps its full size.
///
/// *Concurrency*: `&mut self` writes, `&self` reads; sharing it between threads needs a lock.
/// *Source*: `OffsetIndex`, `AbstractIndex`.
#[derive(Debug)]
pub struct OffsetIndexWriter {
    index: OffsetIndex,
    max_index_size: u64,
}

impl OffsetIndexWriter {
    /// Creates a file of `max_index_size` bytes, rounded down to whole entries of 8: 67 bytes give 64. It has
    /// no blocks before its first entry. `base_offset`: the segment's.
    ///
    /// # Errors
    /// [`Error::Config`] if not even one entry fits, or `base_offset` is negative; [`Error::Io`], also if the
    /// name exists. No file is left.
    pub fn create(directory: &Directory, name: &str, base_offset: i64, max_index_size: u64) -> Result<Self> {
        let base_offset = checked_base_offset(base_offset)?;
        let slots = Preallocated::create(directory, name, max_index_size)?;
        Ok(Self { index: OffsetIndex::of(Slots::preallocated(slots), base_offset, 0)?, max_index_size })
    }

    /// Opens a file, or creates it as [`OffsetIndexWriter::create`] does. All whole slots of an existing file
    /// are entries, including zeros that a crash left, so it is full until it is resized.
    /// `max_index_size` (bytes) is the size that [`OffsetIndexWriter::reset`] restores.
    ///
    /// # Errors
    /// [`Error::Config`] if `base_offset` is negative, or if a file must be created and not even one entry
    /// fits; [`Error::Io`].
    pub fn open(directory: &Directory, name: &str, base_offset: i64, max_index_size: u64) -> Result<Self> {
        let base_offset = checked_base_offset(base_offset)?;
        let (slots, entries) = Preallocated::open(directory, name, max_index_size)?;
        Ok(Self { index: OffsetIndex::of(Slots::preallocated(slots), base_offset, entries)?, max_index_size })
    }

    /// Adds an entry to the file: a batch that contains `offset` (Kafka: its last) starts at `position`, in
    /// bytes from the start of the `.log`.
    ///
    /// *Cost*: one system call.
    /// *Source*: `OffsetIndex.append`.
    ///
    /// # Errors
    /// [`Error::Config`] if the index is full; if `offset` is not above [`OffsetIndexWriter::last_offset`] of
    /// an index with entries; if it is below the base offset or more than 2³¹ − 1 above it.
    /// [`Error::Io`]. On an error the entry is not added.
    pub fn append(&mut self, offset: i64, position: i32) -> Result<()> {
        let (entries, last_entry) = (self.index.entries, self.index.last_entry);
        self.add(offset, position)?;
        self.write().inspect_err(|_| {
            if let Some(slots) = self.index.slots.preallocated_mut() {
                slots.truncate(entries);
            }
            (self.index.entries, self.index.last_entry) = (entries, last_entry);
        })
    }

    /// [`OffsetIndexWriter::append`] in memory: the next [`OffsetIndexWriter::write`], resize or flush writes
    /// the entry to the file.
    ///
    /// *Cost*: a few nanoseconds.
    pub(crate) fn add(&mut self, offset: i64, position: i32) -> Result<()> {
        let index = &mut self.index;
        let entries = index.entries;
        if !OffsetPosition::has_slot(entries, index.max_entries(), false) {
            return Err(full(index.path(), entries, index.max_entries()));
        }
        if entries != 0 && offset <= index.last_entry.offset {
            let expected = format!("above {}, the last offset of the index", index.last_entry.offset);
            return Err(Error::config("offset", expected, offset.to_string()));
        }
        let entry = OffsetPosition { offset, position };
        let slot = entry.encode(index.base_offset())?;
        if let Some(slots) = index.slots.preallocated_mut() {
            slots.add(&slot);
        }
        index.entries = entries + 1;
        index.last_entry = entry;
        Ok(())
    }

    /// Writes the entries that are only in memory. If it fails, they stay in memory.
    pub(crate) fn write(&mut self) -> Result<()> {
        self.index.slots.preallocated_mut().map_or(Ok(()), Preallocated::write)
    }

    /// The number of entries that are only in memory.
    pub(crate) fn unwritten(&self) -> u64 {
        self.index.slots.unwritten()
    }

    /// The offset of the last entry; the base offset if there is none.
    pub fn last_offset(&self) -> i64 {
        self.index.last_entry.offset
    }

    /// Drops the entries at or above `offset`. The file keeps its size; their slots are zeros.
    ///
    /// *Source*: `OffsetIndex.truncateTo`.
    ///
    /// # Errors
    /// [`Error::Io`]. If the entries were dropped before the error, the next call that writes the file
    /// overwrites their slots with zeros.
    pub fn truncate_to(&mut self, offset: i64) -> Result<()> {
        self.index.keep(self.index.first_at_or_above(offset)?)?;
        self.write()
    }

    /// Drops all entries. The file keeps its size.
    ///
    /// *Source*: `OffsetIndex.truncate`.
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
    /// Those of [`OffsetIndexWriter::resize`].
    pub fn trim(&mut self) -> Result<bool> {
        self.resize(self.index.entries * self.index.entry_size())
    }

    /// Drops all entries, and restores the size that the writer was opened with.
    ///
    /// *Source*: `AbstractIndex.reset`.
    ///
    /// # Errors
    /// Those of [`OffsetIndexWriter::resize`].
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
    /// Those of [`OffsetIndexWriter::resize`].
    pub fn close(mut self) -> Result<()> {
        self.trim().map(drop)
    }
}

impl Deref for OffsetIndexWriter {
    type Target = OffsetIndex;

    fn deref(&self) -> &OffsetIndex {
        &self.index
    }
}
