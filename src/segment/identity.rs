//! Which file a segment's `.log` is, and whether it is still the same one.

use super::Segment;
use crate::error::Result;
use crate::fs::FileIdentity;

impl Segment {
    /// The size of the `.log` in bytes, with preallocated space.
    pub(crate) fn file_size(&self) -> Result<u64> {
        Ok(self.identity()?.size)
    }

    pub(super) fn identity(&self) -> Result<FileIdentity> {
        if let Some(identity) = self.identity.get() {
            return Ok(*identity);
        }
        let identity = self.open_log_file()?.identity();
        Ok(*self.identity.get_or_init(|| identity))
    }

    /// Settles which file the `.log` is and how much of it counts, without opening it: what is appended from now on is
    /// not seen, and another file of that name, or a shorter one, is a changed log.
    pub(crate) fn pin_identity(&self) -> Result<()> {
        let now = self.open_files.directory.identity_of(&self.files.log)?;
        let now = now.ok_or_else(|| self.changed("no file"))?;
        self.identity.get_or_init(|| now);
        Ok(())
    }

    /// Whether the `.log` is longer than what counts of it: its indexes may then speak of what is not seen.
    pub(crate) fn has_grown(&self) -> Result<bool> {
        let now = self.open_files.directory.identity_of(&self.files.log)?;
        Ok(now.map_or(0, |now| now.size) > self.file_size()?)
    }

    /// Whether an earlier listing of the directory gave the same segment: the same files, the same neighbours, and what was
    /// read of it was read of the file that is there now, by its inode, size, modification time and change time.
    ///
    /// A file that was modified shortly before that listing counts as changed: of two changes within one tick of the file
    /// system's clock the second leaves the same time, and a preallocated file keeps its size.
    pub(crate) fn is_unchanged(&self, old: &Self) -> Result<bool> {
        let is_same = (self.base_offset, self.upper, &self.files, self.truncations)
            == (old.base_offset, old.upper, &old.files, old.truncations);
        // nothing was read of a segment without an identity
        let Some(known) = old.identity.get().filter(|_| is_same) else { return Ok(is_same) };
        Ok(known.is_older_than(old.listed)
            && self.open_files.directory.identity_of(&self.files.log)?.as_ref() == Some(known))
    }
}
