//! The slots of an offset or time index that is being written.

use std::path::Path;

use crate::error::{Error, Result};
use crate::fs::{Directory, WritableFile};

/// The zeros that are written over removed slots, at most this many bytes at a time.
static ZEROS: [u8; 4096] = [0; 4096];

/// A file with free slots after its entries. Entries are added in memory and written by position, several at
/// a time.
///
/// ```text
///   0               written             used              length
///   | entry | entry | entry … | entry   | 0 0 0 0 0 0 0 0 |
///   '-- in the file '-- in memory       '-- zeros in the file
/// ```
///
/// The file has its full length, but blocks only for its entries, as Kafka's has: a full disk is an error of
/// [`Preallocated::write`], after which the entries are still in memory. Nothing is stored through a mapping,
/// because a store that the disk refuses ends the process.
///
/// The slots after the entries are zeros at all times: readers find the end of the entries by them.
#[derive(Debug)]
pub(super) struct Preallocated<const SIZE: usize> {
    file: WritableFile,
    /// Bytes of the file: more than its whole slots if another program left a fragment at the end.
    length: u64,
    /// The number of entries in the file.
    written: u64,
    /// The bytes of the entries after those.
    unwritten: Vec<u8>,
    /// The slot at which the zeros of the file start. Above `written` if entries were removed or a write
    /// failed, and the zeros are not written yet.
    zeros_from: u64,
}

impl<const SIZE: usize> Preallocated<SIZE> {
    /// Creates a file of `max_index_size` bytes, rounded down to whole slots. If it fails, no file is left.
    pub(super) fn create(directory: &Directory, name: &str, max_index_size: u64) -> Result<Self> {
        let length = Self::rounded(max_index_size);
        if length == 0 {
            let expected = format!("room for one entry at least, {SIZE} bytes");
            return Err(Error::config("max_index_size", expected, max_index_size.to_string()));
        }
        let file = directory.create(name)?;
        // only the first error is returned
        file.set_size(length).inspect_err(|_| drop(directory.remove(name)))?;
        Ok(Self::with_entries(file, length, 0))
    }

    /// Opens a file, or creates it as [`Preallocated::create`] does. Also returns the number of entries: 0
    /// for a new file, all whole slots of an existing one.
    pub(super) fn open(directory: &Directory, name: &str, max_index_size: u64) -> Result<(Self, u64)> {
        let file = match directory.open_writable(name) {
            Err(error) if super::is_missing(&error) => {
                return Ok((Self::create(directory, name, max_index_size)?, 0));
            }
            file => file?,
        };
        let length = file.identity()?.size;
        let entries = length / SIZE as u64;
        Ok((Self::with_entries(file, length, entries), entries))
    }

    fn with_entries(file: WritableFile, length: u64, entries: u64) -> Self {
        Self { file, length, written: entries, unwritten: Vec::new(), zeros_from: entries }
    }

    fn rounded(size: u64) -> u64 {
        size - size % SIZE as u64
    }

    /// The path by which the file was opened.
    pub(super) fn path(&self) -> &Path {
        self.file.path()
    }

    /// Bytes of the file.
    pub(super) fn file_size(&self) -> u64 {
        self.length
    }

    /// The number of entries that are only in memory.
    pub(super) fn unwritten(&self) -> u64 {
        (self.unwritten.len() / SIZE) as u64
    }

    fn used(&self) -> u64 {
        self.written + self.unwritten()
    }

    /// `N` bytes of an entry from `position`, in bytes from the start of the file; `None` after the last
    /// entry.
    pub(super) fn read<const N: usize>(&self, position: u64) -> Result<Option<[u8; N]>> {
        let in_file = self.written * SIZE as u64;
        if let Some(position) = position.checked_sub(in_file) {
            return Ok(super::slots::chunk_at(&self.unwritten, position));
        }
        let mut bytes = [0; N];
        self.file.read_exact_at(&mut bytes, position)?;
        Ok(Some(bytes))
    }

    /// Adds an entry in memory. The caller checks that there is a slot for it.
    pub(super) fn add(&mut self, slot: &[u8; SIZE]) {
        self.unwritten.extend_from_slice(slot);
    }

    /// Drops all entries but the first `entries`, in memory.
    pub(super) fn truncate(&mut self, entries: u64) {
        if let Some(kept) = entries.checked_sub(self.written) {
            let kept = usize::try_from(kept).unwrap_or(usize::MAX).saturating_mul(SIZE);
            self.unwritten.truncate(kept);
        } else {
            self.unwritten.clear();
            self.written = entries;
        }
    }

    /// Writes the entries that are only in memory, and zeros over removed entries.
    ///
    /// If it fails, the entries stay in memory, and the next call writes everything again.
    pub(super) fn write(&mut self) -> Result<()> {
        // from the end, so that a reader finds entries followed by zeros at any time
        while self.zeros_from > self.written {
            let slots = (self.zeros_from - self.written).min((ZEROS.len() / SIZE) as u64);
            let start = self.zeros_from - slots;
            let zeros = usize::try_from(slots).ok().and_then(|slots| ZEROS.get(..slots * SIZE));
            self.file.write_all_at(zeros.unwrap_or(&ZEROS), start * SIZE as u64)?;
            self.zeros_from = start;
        }
        if self.unwritten.is_empty() {
            return Ok(());
        }
        let used = self.used();
        // a part of it may be in the file even if this fails
        self.zeros_from = used;
        self.file.write_all_at(&self.unwritten, self.written * SIZE as u64)?;
        self.unwritten.clear();
        self.written = used;
        Ok(())
    }

    /// Sets the file's size to `max_index_size` bytes, rounded down to whole slots. True if its size changed.
    /// If it fails, the file is unchanged.
    pub(super) fn resize(&mut self, max_index_size: u64) -> Result<bool> {
        let length = Self::rounded(max_index_size);
        let used = self.used();
        let needed = used * SIZE as u64;
        if length < needed {
            let expected = format!("{needed} bytes or more, because the index has {used} entries");
            return Err(Error::config("max_index_size", expected, max_index_size.to_string()));
        }
        self.write()?;
        if length == self.length {
            return Ok(false);
        }
        self.file.set_size(length)?;
        self.length = length;
        Ok(true)
    }

    /// Makes entries and size durable.
    pub(super) fn flush(&mut self) -> Result<()> {
        self.write()?;
        self.file.sync()
    }
}
