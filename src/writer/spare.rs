//! `.cordwood.spare`: reserved disk space, with which a full disk can be emptied.
//!
//! A deletion first writes the new log start offset, and an opening after a crash writes indexes and
//! checkpoints. If the disk is full, the writer removes this file and tries again. Appends do not use it.
//!
//! The file is empty. Its blocks are reserved beyond its end, so that a program that copies the directory
//! does not copy them. The space is reserved again at each opening and after each call that may have used it.
//! If the disk has no space for it, or the file system cannot reserve space, the writer works without it.

use super::partition::Partition;
use super::poison::is_full;
use crate::error::Result;
use crate::fs::Directory;
use crate::state::leader_epochs::LEADER_EPOCH_CHECKPOINT;
use crate::state::offset_checkpoint::{CLEANED_OFFSETS, LOG_START_OFFSETS, RECOVERY_POINTS};
use crate::state::producer_ids::PRODUCERS;

/// The name of the file.
pub(crate) const SPARE: &str = ".cordwood.spare";

/// Bytes to reserve: 16 blocks of 4 KiB. A change stages at most eight files of one block, a recovery ten,
/// and a directory may grow by a block.
const BYTES: u64 = 64 << 10;
/// The same on XFS, which creates a file only if 49 blocks are free besides.
const XFS_BYTES: u64 = 512 << 10;
/// The maximum, whatever the sizes of the other files say.
const MAX_BYTES: u64 = 1 << 20;

/// Reserves the space, or as much of it as there is.
pub(super) fn fill(directory: &Directory) {
    // the first block of each file is one of those above
    let more = |name: &str| match directory.identity_of(name) {
        Ok(Some(file)) => file.size.saturating_sub(4096).min(MAX_BYTES),
        _ => 0,
    };
    // a change replaces these as a whole; checkpoints of a data directory have a line for each partition
    let of_data_directory = [RECOVERY_POINTS, LOG_START_OFFSETS, CLEANED_OFFSETS];
    let replaced = of_data_directory.map(|name| more(&format!("../{name}"))).into_iter().sum::<u64>()
        + more(LEADER_EPOCH_CHECKPOINT)
        // the states of named producers, which a deletion may have to keep, have less than twice the size of
        // their names
        + 2 * more(PRODUCERS);
    let bytes = if directory.is_on_xfs() { XFS_BYTES } else { BYTES };
    let bytes = (bytes + replaced).min(MAX_BYTES);
    if let Ok(file) = directory.open_writable(SPARE).or_else(|_| directory.create(SPARE)) {
        let _ = [1, 2, 4].into_iter().any(|part| file.reserve(0, bytes / part));
    }
}

/// Frees the space; false if none was reserved.
///
/// # Errors
/// [`Error::Io`](crate::Error::Io) if the directory cannot be synced: file systems give freed space out again
/// only after that.
pub(super) fn release(directory: &Directory) -> Result<bool> {
    if directory.identity_of(SPARE)?.is_none() || directory.remove(SPARE).is_err() {
        return Ok(false);
    }
    directory.sync()?;
    Ok(true)
}

impl Partition {
    /// Makes a change that frees space. If the disk is full and nothing has changed yet, frees the spare
    /// space and tries once more.
    pub(super) fn with_spare<T>(&mut self, mut change: impl FnMut(&mut Self) -> Result<T>) -> Result<T> {
        let mut changed = change(self);
        let mut is_released = false;
        if changed.as_ref().err().is_some_and(is_full) && self.ends.commit().check().is_ok() {
            is_released = self.ends.commit().or_poison_after_sync(release(&self.directory))?;
            if is_released {
                changed = change(self);
            }
        }
        if changed.is_ok() || is_released {
            fill(&self.directory);
        }
        changed
    }
}
