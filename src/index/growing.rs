//! The slots of a transaction index that is being written.

use std::path::{Path, PathBuf};

use crate::error::Result;
use crate::fs::{Directory, WritableFile};

/// A file that grows by one slot at a time. The first append creates it.
#[derive(Debug)]
pub(super) struct Growing<const SIZE: usize> {
    directory: Directory,
    name: String,
    path: PathBuf,
    file: Option<WritableFile>,
    /// Bytes of the file; more than its whole slots after a torn write.
    length: u64,
    /// Whether its name is durable.
    is_named: bool,
}

impl<const SIZE: usize> Growing<SIZE> {
    /// Opens the file if it exists.
    pub(super) fn open(directory: &Directory, name: &str) -> Result<Self> {
        let file = match directory.open_writable(name) {
            Ok(file) => Some(file),
            Err(error) if super::is_missing(&error) => None,
            Err(error) => return Err(error),
        };
        let length = file.as_ref().map_or(Ok(0), |file| file.identity().map(|identity| identity.size))?;
        let path = directory.path_of(name);
        Ok(Self { directory: directory.clone(), name: name.to_owned(), path, file, length, is_named: false })
    }

    /// The path, even if there is no file.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes of the file.
    pub(super) fn file_size(&self) -> u64 {
        self.length
    }

    /// Reads bytes of an existing slot.
    pub(super) fn read<const N: usize>(&self, position: u64) -> Result<[u8; N]> {
        let mut bytes = [0; N];
        self.read_into(&mut bytes, position)?;
        Ok(bytes)
    }

    /// Fills a buffer from existing slots.
    pub(super) fn read_into(&self, buffer: &mut [u8], position: u64) -> Result<()> {
        self.file.as_ref().map_or(Ok(()), |file| file.read_exact_at(buffer, position))
    }

    /// Writes a slot after the last whole one. If it fails, no slot is added.
    pub(super) fn append(&mut self, bytes: &[u8; SIZE]) -> Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(self.directory.create(&self.name)?),
        };
        let end = self.length - self.length % SIZE as u64;
        if let Err(error) = file.write_all_at(bytes, end) {
            // readers ignore a fragment of a slot, so an error of removing it does not matter
            let _ = file.set_size(self.length);
            return Err(error);
        }
        self.length = end + SIZE as u64;
        Ok(())
    }

    /// Cuts the file to its first `slots`.
    pub(super) fn truncate(&mut self, slots: u64) -> Result<()> {
        let length = slots * SIZE as u64;
        if let Some(file) = &self.file
            && length < self.length
        {
            file.set_size(length)?;
            self.length = length;
        }
        Ok(())
    }

    /// Makes contents, size and name durable. A missing file is not an error.
    pub(super) fn flush(&mut self) -> Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        file.sync()?;
        if !self.is_named {
            self.directory.sync()?;
            self.is_named = true;
        }
        Ok(())
    }
}
