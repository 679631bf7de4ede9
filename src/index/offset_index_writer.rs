//! Writes an `.index` file.

use std::ops::Deref;

use super::entries::has_offset_slot;
use super::offset_index::encode;
use super::preallocated::Preallocated;
use super::slots::Slots;
use super::{OffsetIndex, checked_base_offset, full, relative};
use crate::error::{Error, Result};
use crate::fs::Directory;
use crate::types::OffsetPosition;

/// An offset index with one owner that appends to it. It is an [`OffsetIndex`] as well: every method that reads works on it.
///
/// Dropped without [`OffsetIndexWriter::close`], it leaves the file at its full size.
///
/// *Concurrency*: `&mut self` writes, `&self` reads; sharing it between threads needs a lock.
/// *Source*: `OffsetIndex`, `AbstractIndex`.
#[derive(Debug)]
pub struct OffsetIndexWriter {
    index: OffsetIndex,
    max_index_size: u64,
}

impl OffsetIndexWriter {
    /// Makes a file of `max_index_size` bytes, rounded down to whole entries of 8: 67 bytes give 64. It has no blocks before
    /// its first entry. `base_offset`: the segment's.
    ///
    /// # Errors
    /// [`Error::Config`] where not one entry fits, or `base_offset` is negative; [`Error::Io`], also where the name is
    /// taken. No file is left behind.
    pub fn create(directory: &Directory, name: &str, base_offset: i64, max_index_size: u64) -> Result<Self> {
        let base_offset = checked_base_offset(base_offset)?;
        let slots = Preallocated::create(directory, name, max_index_size)?;
        Ok(Self { index: OffsetIndex::of(Slots::preallocated(slots), base_offset, 0)?, max_index_size })
    }

    /// Opens a file, which is made (as by [`OffsetIndexWriter::create`]) where there is none. All whole slots of an
    /// existing one are entries, so it is full until it is resized, and the zeros that a crash left are entries, too.
    /// `max_index_size` (bytes) is what [`OffsetIndexWriter::reset`] goes back to.
    ///
    /// # Errors
    /// [`Error::Config`] where `base_offset` is negative, or a file has to be made and not one entry fits; [`Error::Io`].
    pub fn open(directory: &Directory, name: &str, base_offset: i64, max_index_size: u64) -> Result<Self> {
        let base_offset = checked_base_offset(base_offset)?;
        let (slots, entries) = Preallocated::open(directory, name, max_index_size)?;
        Ok(Self { index: OffsetIndex::of(Slots::preallocated(slots), base_offset, entries)?, max_index_size })
    }

    /// Adds an entry to the file: a batch with `offset` in it (Kafka: its last) begins at `position`, in bytes from the start
    /// of the `.log`.
    ///
    /// *Cost*: one system call.
    /// *Source*: `OffsetIndex.append`.
    ///
    /// # Errors
    /// [`Error::Config`]: where the index is full; where `offset` is not above [`OffsetIndexWriter::last_offset`] of an index
    /// with entries; where it is below the base offset or more than 2³¹ − 1 above it. [`Error::Io`]. The entry is not added.
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

    /// [`OffsetIndexWriter::append`] in memory: the file gets the entry by the next [`OffsetIndexWriter::write`], and before
    /// it is cut or made durable.
    ///
    /// *Cost*: a few nanoseconds.
    pub(crate) fn add(&mut self, offset: i64, position: i32) -> Result<()> {
        let index = &mut self.index;
        let entries = index.entries;
        if !has_offset_slot(entries, index.max_entries()) {
            return Err(full(index.path(), entries, index.max_entries()));
        }
        if entries != 0 && offset <= index.last_entry.offset {
            let expected = format!("above {}, the last offset of the index", index.last_entry.offset);
            return Err(Error::config("offset", expected, offset.to_string()));
        }
        let slot = encode(relative(offset, index.base_offset())?, position);
        if let Some(slots) = index.slots.preallocated_mut() {
            slots.add(&slot);
        }
        index.entries = entries + 1;
        index.last_entry = OffsetPosition { offset, position };
        Ok(())
    }

    /// Writes the entries that are only in memory. Where it fails, they stay there.
    pub(crate) fn write(&mut self) -> Result<()> {
        self.index.slots.preallocated_mut().map_or(Ok(()), Preallocated::write)
    }

    /// How many entries are only in memory.
    pub(crate) fn unwritten(&self) -> u64 {
        self.index.slots.unwritten()
    }

    /// The offset of the last entry; the base offset where there is none.
    pub fn last_offset(&self) -> i64 {
        self.index.last_entry.offset
    }

    /// Drops the entries at or above `offset`. The file keeps its size; their slots are zeros.
    ///
    /// *Source*: `OffsetIndex.truncateTo`.
    ///
    /// # Errors
    /// [`Error::Io`]. If the entries are dropped all the same, the next call that writes the file makes their slots zeros.
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

    /// Makes the file `max_index_size` bytes long, rounded down to whole entries. Whether its size changed.
    ///
    /// *Source*: `AbstractIndex.resize`; Kafka also takes a size in which the entries do not fit, and breaks.
    ///
    /// # Errors
    /// [`Error::Config`] where the entries do not fit; [`Error::Io`]. The index is as it was.
    pub fn resize(&mut self, max_index_size: u64) -> Result<bool> {
        self.index.slots.preallocated_mut().map_or(Ok(false), |slots| slots.resize(max_index_size))
    }

    /// Cuts the file to its entries. Whether its size changed.
    ///
    /// *Source*: `AbstractIndex.trimToValidSize`.
    ///
    /// # Errors
    /// Those of [`OffsetIndexWriter::resize`].
    pub fn trim(&mut self) -> Result<bool> {
        self.resize(self.index.entries * self.index.entry_size())
    }

    /// Drops all entries, and gives the file the size that the writer was opened with.
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
    /// [`Error::Io`]: what was not yet durable may be lost, and no later success says otherwise.
    pub fn flush(&mut self) -> Result<()> {
        self.index.slots.preallocated_mut().map_or(Ok(()), Preallocated::flush)
    }

    /// Cuts the file to its entries and gives it back. Nothing is flushed.
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
