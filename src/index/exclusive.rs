//! An index that is written outside of a log, with locks that exclude other writers.

use std::ops::{Deref, DerefMut};
use std::path::Path;

use super::{base_offset_of, checked_base_offset, refuse_other_kind};
use crate::error::{Error, IoAction, Result};
use crate::fs::names::FileKind;
use crate::fs::{Directory, Lock, PartitionLocks};

/// A writer of one index file, and its locks, which exclude brokers, writers of the partition's log and other
/// writers of the file. Each of those truncates index files.
#[derive(Debug)]
pub struct Exclusive<W> {
    // dropped before the locks
    writer: W,
    _locks: (PartitionLocks, Option<Lock>),
}

impl<W> Exclusive<W> {
    /// Takes the locks, then calls `open` with the directory, the file's name and the base offset:
    /// `base_offset` if given, else the digits at the start of the name.
    ///
    /// # Errors
    /// [`Error::Locked`] if another writer or a broker runs; [`Error::LogNotFound`] if there is no directory;
    /// [`Error::Config`] for a base offset that is negative or missing; errors of `open`.
    pub fn open(
        path: &Path,
        kind: FileKind,
        base_offset: Option<i64>,
        open: impl FnOnce(&Directory, &str, i64) -> Result<W>,
    ) -> Result<Self> {
        let path = std::path::absolute(path).map_err(|error| Error::io(path, IoAction::Resolve, error))?;
        let name = path
            .file_name()
            .and_then(|name| name.to_str())
            .ok_or_else(|| Error::config("path", "a file whose name is UTF-8", path.display().to_string()))?;
        // checked before a lock creates a file
        refuse_other_kind(&path, kind)?;
        let base_offset = base_offset.map_or_else(|| base_offset_of(&path), checked_base_offset)?;
        let parent = path.parent().unwrap_or(Path::new("/"));
        let directory = Directory::open(parent, "an index file is created in an existing directory")?;
        let exists = || directory.identity_of(name).map(|identity| identity.is_some());
        let lock_file = || Lock::exclusive(&directory, name).map(Some);
        let mut partition = PartitionLocks::take_shared(&directory)?;
        partition.renew(&directory)?;
        // taking a lock creates the file
        let file = if exists()? { lock_file()? } else { None };
        let writer = open(&directory, name, base_offset)?;
        // a transaction index has no file before its first entry
        let file = if file.is_none() && exists()? { lock_file()? } else { file };
        Ok(Self { writer, _locks: (partition, file) })
    }

    /// Ends the writer with `close`, then releases the locks.
    ///
    /// # Errors
    /// Those of `close`.
    pub fn close(self, close: impl FnOnce(W) -> Result<()>) -> Result<()> {
        let Self { writer, _locks } = self;
        close(writer)
    }
}

impl<W> Deref for Exclusive<W> {
    type Target = W;

    fn deref(&self) -> &W {
        &self.writer
    }
}

impl<W> DerefMut for Exclusive<W> {
    fn deref_mut(&mut self) -> &mut W {
        &mut self.writer
    }
}
