//! Files that are written as a whole beside the one that they replace.

use super::seeded_bugs::{self, SeededBug};
use super::{Directory, WritableFile};
use crate::error::Result;

/// The suffix of a file that is to replace the one without it.
pub(crate) const STAGED: &str = ".tmp";

/// A file that is whole and durable, and waits to take the name of another. All that needs space has been done: what is
/// left is a rename. Dropped, it is removed.
#[derive(Debug)]
#[must_use]
pub struct Staged {
    directory: Directory,
    /// The name that it has, and the one that it is to take.
    from: String,
    to: String,
    is_put: bool,
}

impl Staged {
    /// Puts it in its place, durably: a reader, now or after a crash, finds the old file or this one.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io).
    pub fn put(mut self) -> Result<()> {
        self.directory.rename(&self.from, &self.to)?;
        self.is_put = true;
        if seeded_bugs::is(SeededBug::NoDirectorySyncOnRename) { Ok(()) } else { self.directory.sync() }
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        if !self.is_put {
            // it may be as large as a segment, and the disk be full; what stays of it is of no use, whether or not it goes
            let _ = self.directory.remove(&self.from);
        }
    }
}

impl Directory {
    /// Replaces a small file as a whole, durably: a reader, now or after a crash, finds the old contents or the new.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io).
    pub fn replace(&self, name: &str, contents: &[u8]) -> Result<()> {
        self.stage(name, contents)?.put()
    }

    /// Writes what is to replace a small file.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io).
    pub fn stage(&self, name: &str, contents: &[u8]) -> Result<Staged> {
        self.stage_with(name, STAGED, |file| file.write_all_at(contents, 0))
    }

    /// [`Directory::stage`] of what is to replace what was staged for the same name before.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io).
    pub fn stage_next(&self, name: &str, contents: &[u8]) -> Result<Staged> {
        self.stage_with(name, ".next.tmp", |file| file.write_all_at(contents, 0))
    }

    /// Copies the first `size` bytes of a file, which are to replace it. A reader that has the file open or mapped keeps the old
    /// one.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io): the disk has no room for both, for one.
    pub fn stage_start(&self, name: &str, size: u64) -> Result<Staged> {
        const CHUNK: u64 = 1 << 20;
        let whole = self.open_file(name)?;
        self.stage_with(name, STAGED, |file| {
            let (mut chunk, mut start) = (Vec::new(), 0);
            while start < size {
                chunk.resize(usize::try_from((size - start).min(CHUNK)).unwrap_or(0), 0);
                whole.read_exact_at(start, &mut chunk)?;
                file.write_all_at(&chunk, start)?;
                start += chunk.len() as u64;
            }
            Ok(())
        })
    }

    fn stage_with(
        &self,
        name: &str,
        suffix: &str,
        write: impl FnOnce(&WritableFile) -> Result<()>,
    ) -> Result<Staged> {
        let from = format!("{name}{suffix}");
        self.remove(&from)?;
        let file = self.create(&from)?;
        // removed where anything of this fails
        let staged = Staged { directory: self.clone(), from, to: name.to_owned(), is_put: false };
        write(&file)?;
        file.sync()?;
        Ok(staged)
    }
}
