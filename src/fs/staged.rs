//! Staged files: written completely under another name, then renamed over the file that they replace.

use super::{Directory, WritableFile};
use crate::error::Result;

/// The suffix of a staged file.
pub(crate) const STAGED: &str = ".tmp";

/// A complete and durable file, to be renamed over another. Everything that needs disk space is done; only
/// the rename is left. If the value is dropped instead, the file is removed.
#[derive(Debug)]
#[must_use]
pub struct Staged {
    directory: Directory,
    /// The present name and the final name.
    from: String,
    to: String,
    is_put: bool,
}

impl Staged {
    /// Renames it. Durable after [`Directory::sync`].
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io).
    pub(crate) fn put_unsynced(mut self) -> Result<()> {
        self.directory.rename(&self.from, &self.to)?;
        self.is_put = true;
        Ok(())
    }

    /// Renames it durably. A reader, now or after a crash, finds either the old file or this one.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io).
    pub fn put(mut self) -> Result<()> {
        self.directory.rename(&self.from, &self.to)?;
        self.is_put = true;
        self.directory.sync()
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        if !self.is_put {
            // it may be as large as a segment, and the disk may be full; if it cannot be removed, readers and
            // recovery ignore it
            let _ = self.directory.remove(&self.from);
        }
    }
}

impl Directory {
    /// Replaces a small file as a whole, durably. A reader, now or after a crash, finds the old or the new
    /// contents.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io).
    pub fn replace(&self, name: &str, contents: &[u8]) -> Result<()> {
        self.stage(name, contents)?.put()
    }

    /// Stages new contents of a small file.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io).
    pub fn stage(&self, name: &str, contents: &[u8]) -> Result<Staged> {
        self.stage_with(name, STAGED, |file| file.write_all_at(contents, 0))
    }

    /// [`Directory::stage`] for a name that already has a staged file: stages the contents that replace that
    /// file's contents later.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io).
    pub fn stage_next(&self, name: &str, contents: &[u8]) -> Result<Staged> {
        self.stage_with(name, ".next.tmp", |file| file.write_all_at(contents, 0))
    }

    /// Stages the first `size` bytes of a file as its new contents. A reader that has the file open or mapped
    /// keeps the old file.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io), for example if the disk has no space for both.
    pub fn stage_start(&self, name: &str, size: u64) -> Result<Staged> {
        const CHUNK: u64 = 1 << 20;
        let source = self.open_file(name)?;
        self.stage_with(name, STAGED, |file| {
            let (mut chunk, mut start) = (Vec::new(), 0);
            while start < size {
                chunk.resize(usize::try_from((size - start).min(CHUNK)).unwrap_or(0), 0);
                source.read_exact_at(start, &mut chunk)?;
                file.write_all_at(&chunk, start)?;
                start += chunk.len() as u64;
            }
            Ok(())
        })
    }

    /// Stages what `write` writes, under the name with a suffix.
    pub(crate) fn stage_with(
        &self,
        name: &str,
        suffix: &str,
        write: impl FnOnce(&WritableFile) -> Result<()>,
    ) -> Result<Staged> {
        let from = format!("{name}{suffix}");
        self.remove(&from)?;
        let file = self.create_like(&from, name)?;
        // removed if any step fails
        let staged = Staged { directory: self.clone(), from, to: name.to_owned(), is_put: false };
        write(&file)?;
        file.sync()?;
        Ok(staged)
    }
}
