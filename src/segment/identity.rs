//! The identity of a segment's `.log`, and whether the file was replaced.

use super::walk::Batch;
use super::{LOOKUP_READ, Segment};
use crate::error::Result;
use crate::fs::FileIdentity;

/// The file that has the name of a segment's `.log` now.
#[derive(Debug, Clone, Copy)]
pub(super) enum FileNow {
    Gone,
    /// A different file from the one that the segment reads.
    Another,
    Same(FileIdentity),
}

impl Segment {
    /// The size of the `.log` in bytes, including preallocated space.
    pub(crate) fn file_size(&self) -> Result<u64> {
        Ok(self.identity()?.size)
    }

    /// The identity of the `.log` at its first use; for the last segment, when the log was opened.
    pub(crate) fn identity(&self) -> Result<FileIdentity> {
        if let Some(identity) = self.identity.get() {
            return Ok(*identity);
        }
        let identity = self.open_log_file()?.identity();
        Ok(*self.identity.get_or_init(|| identity))
    }

    /// The size that the `.log` has at least: as when it was opened. If the last one is smaller now, and its
    /// data was known to end before, the end of the data: a roll cuts the zeros of a preallocated file.
    pub(super) fn min_size(&self, opened: &FileIdentity, size_now: u64) -> u64 {
        let end = self.tail.get().filter(|_| self.is_last() && size_now < opened.size).map(|tail| tail.end);
        end.unwrap_or(opened.size)
    }

    /// Fixes the identity and the size of the `.log`, without opening it. Later appends are not visible, and
    /// a different or shorter file with that name is an
    /// [`Error::LogChanged`](crate::error::Error::LogChanged).
    pub(crate) fn pin_identity(&self) -> Result<()> {
        let now = self.open_files.directory.identity_of(&self.files.log)?;
        let now = now.ok_or_else(|| self.changed("no file"))?;
        self.identity.get_or_init(|| now);
        Ok(())
    }

    /// Whether the `.log` has grown since its size was fixed: its indexes may then refer to later batches.
    pub(crate) fn has_grown(&self) -> Result<bool> {
        let now = self.open_files.directory.identity_of(&self.files.log)?;
        Ok(now.map_or(0, |now| now.size) > self.file_size()?)
    }

    /// The file that has the name of the `.log` now, compared with the one that this segment reads.
    pub(super) fn file_now(&self) -> Result<FileNow> {
        let now = self.open_files.directory.identity_of(&self.files.log)?;
        Ok(match (now, self.identity.get()) {
            (None, _) => FileNow::Gone,
            (Some(now), Some(known)) if known.inode != now.inode => FileNow::Another,
            (Some(now), _) => FileNow::Same(now),
        })
    }

    /// Fails if the `.log` is not the file whose identity was fixed, or was modified since. The last segment
    /// may have grown.
    ///
    /// # Errors
    /// [`Error::LogChanged`](crate::error::Error::LogChanged).
    #[cfg(feature = "inspect")]
    pub(crate) fn ensure_unmodified(&self) -> Result<()> {
        let known = self.identity()?;
        match self.file_now()? {
            FileNow::Gone => Err(self.changed("no file")),
            FileNow::Another => Err(self.changed("a different file with that name")),
            FileNow::Same(now) if now.size < self.min_size(&known, now.size) => {
                Err(self.changed(&format!("{} bytes instead of {}", now.size, known.size)))
            }
            FileNow::Same(now)
                if !self.is_last() && (now.size, now.modified) != (known.size, known.modified) =>
            {
                Err(self.changed("a file that was modified since"))
            }
            FileNow::Same(_) => Ok(()),
        }
    }

    /// The name of the `.log` in its directory.
    #[cfg(feature = "inspect")]
    pub(crate) fn log_name(&self) -> &str {
        &self.files.log
    }

    /// The checksum in the header of the first batch; `None` if there is no whole header.
    pub(super) fn first_batch_crc(&self) -> Result<Option<u32>> {
        Ok(self.walk(-1, LOOKUP_READ)?.header_at(0)?.ok().map(|header| header.crc))
    }

    /// Whether the first batch has a checksum other than `known` and its bytes match that checksum: a damaged
    /// checksum alone does not make it a different batch.
    pub(super) fn has_another_first_batch(&self, known: u32) -> Result<bool> {
        let mut walk = self.walk(-1, LOOKUP_READ)?;
        let Ok(&header) = walk.header_at(0)? else { return Ok(false) };
        Ok(header.crc != known && walk.verify(&Batch { position: 0, header })?.is_ok())
    }

    /// Whether this is the file of an earlier listing, not truncated by a `LogWriter` since. A file that was
    /// not the last one of the log is not modified.
    pub(crate) fn is_later_listing_of(&self, old: &Self) -> Result<bool> {
        let count = |segment: &Self| segment.truncations.unwrap_or(0);
        if (self.base_offset, &self.files.log, count(self)) != (old.base_offset, &old.files.log, count(old)) {
            return Ok(false);
        }
        let (now, known) = (self.identity()?, old.identity()?);
        Ok(now.inode == known.inode
            && (old.is_last() || (now.size, now.modified) == (known.size, known.modified)))
    }

    /// Whether the segment is the same as in an earlier listing of the directory: the same files, the same
    /// neighbours, and the `.log` that was read then has the same inode, size, modification time and
    /// change time now.
    ///
    /// A file that was modified shortly before that listing counts as changed: two changes within one tick of
    /// the file system's clock have the same time, and a preallocated file keeps its size.
    pub(crate) fn is_unchanged(&self, old: &Self) -> Result<bool> {
        // the first `LogWriter` begins to count at 0
        let count = |segment: &Self| segment.truncations.unwrap_or(0);
        let is_same = (self.base_offset, self.upper, &self.files, count(self))
            == (old.base_offset, old.upper, &old.files, count(old));
        // nothing was read of a segment without an identity
        let Some(known) = old.identity.get().filter(|_| is_same) else { return Ok(is_same) };
        Ok(known.is_older_than(old.listed)
            && self.open_files.directory.identity_of(&self.files.log)?.as_ref() == Some(known))
    }
}
