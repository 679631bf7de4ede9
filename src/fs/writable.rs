//! A file opened for writing.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::{FileAccess, FileIdentity, Handle};
use crate::error::{Error, IoAction, Result};

/// An open regular file with one writer. Clones share the same open file.
#[derive(Debug, Clone)]
pub struct WritableFile {
    handle: Arc<dyn Handle>,
    path: PathBuf,
    /// Whether a sync has failed: the system reports a failure only once, to one caller. All clones share
    /// it.
    has_failed: Arc<Mutex<bool>>,
}

impl WritableFile {
    pub(super) fn new(handle: Arc<dyn Handle>, path: PathBuf) -> Self {
        Self { handle, path, has_failed: Arc::default() }
    }

    /// The path by which it was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn fail(&self, action: IoAction) -> impl Fn(io::Error) -> Error {
        move |error| Error::io(&self.path, action, error)
    }

    /// The identity of the file, with its current size.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn identity(&self) -> Result<FileIdentity> {
        self.handle.identity().map_err(self.fail(IoAction::Stat))
    }

    /// Whether the path leads to this file now. Always false for a file in memory.
    pub(super) fn is_at_path(&self) -> bool {
        self.handle.is_at(&self.path)
    }

    /// Fills `buffer` with the bytes at `position`.
    ///
    /// # Errors
    /// [`Error::Io`], also if the file is too short.
    pub fn read_exact_at(&self, buffer: &mut [u8], position: u64) -> Result<()> {
        super::file::read_exact(&*self.handle, buffer, position).map_err(self.fail(IoAction::Read))
    }

    /// Writes all of `bytes` at `position`. Continues after an interruption, and once after a short write, so
    /// that the second write returns the error.
    ///
    /// # Errors
    /// [`Error::Io`]: any part of the bytes may be written.
    pub fn write_all_at(&self, bytes: &[u8], position: u64) -> Result<()> {
        let (mut rest, mut position) = (bytes, position);
        while !rest.is_empty() {
            match self.handle.write_at(rest, position) {
                Ok(0) => return Err(self.fail(IoAction::Write)(io::ErrorKind::WriteZero.into())),
                Ok(written) => {
                    rest = rest.get(written..).unwrap_or_default();
                    position += written as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.fail(IoAction::Write)(error)),
            }
        }
        Ok(())
    }

    /// Sets the permissions, and the owner if the process may.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn set_access(&self, access: FileAccess) -> Result<()> {
        self.handle.set_access(access).map_err(self.fail(IoAction::Create))
    }

    /// Truncates the file, or extends it by zeros without blocks.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn set_size(&self, size: u64) -> Result<()> {
        self.handle.set_size(size).map_err(self.fail(IoAction::Resize))
    }

    /// Extends the file to `size` by zeros with allocated blocks, so that writing there needs no space.
    ///
    /// # Errors
    /// [`Error::Io`], for example if the disk is full.
    pub fn allocate(&self, size: u64) -> Result<()> {
        self.handle.allocate(size).map_err(self.fail(IoAction::Allocate))
    }

    /// Allocates blocks for `length` bytes at `position`, so that writes there are faster. The file's size
    /// does not change; [`WritableFile::set_size`] frees the blocks beyond it. The call may be ignored;
    /// returns whether it succeeded.
    pub fn reserve(&self, position: u64, length: u64) -> bool {
        self.handle.reserve(position, length)
    }

    /// Begins to write the bytes of a range to the disk, so that a later [`WritableFile::sync`] waits less.
    /// Nothing is durable before that. The call may be ignored.
    pub(crate) fn write_back(&self, position: u64, length: u64) {
        self.handle.write_back(position, length);
    }

    /// Makes contents and size durable (`fdatasync`). The name is durable after [`super::Directory::sync`].
    ///
    /// # Errors
    /// [`Error::Io`]: data that was not yet durable may be lost, even if a later call succeeds.
    pub fn sync(&self) -> Result<()> {
        // one at a time: of two concurrent calls, the system would report a failure to one only
        let mut has_failed = self.has_failed.lock().unwrap_or_else(PoisonError::into_inner);
        if *has_failed {
            return Err(self.fail(IoAction::Sync)(io::Error::other("an earlier sync of the file failed")));
        }
        self.handle.sync().map_err(|error| {
            *has_failed = true;
            self.fail(IoAction::Sync)(error)
        })
    }

    /// Sets the modification time to that of another file.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn set_modified(&self, like: FileIdentity) -> Result<()> {
        self.handle.set_modified(like.modified).map_err(self.fail(IoAction::SetTime))
    }
}
