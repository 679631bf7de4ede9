//! `.cordwood.truncations`: the truncation count of a log, which readers check to detect that a writer
//! truncated it.
//!
//! The count is the size of the file; its bytes have no meaning. A writer creates the file when it opens the
//! log, and extends it by a byte before and after each truncation. The count is odd during a truncation, and
//! after one that was interrupted.

use crate::error::Result;
use crate::fs::{Directory, SystemFile};

/// The name of the file.
pub(crate) const TRUNCATIONS: &str = ".cordwood.truncations";

/// The file, whose size is the count; `None` if no `LogWriter` has opened the log.
pub(crate) fn open(directory: &Directory) -> Result<Option<SystemFile>> {
    if directory.identity_of(TRUNCATIONS)?.is_none() {
        return Ok(None);
    }
    directory.open_file(TRUNCATIONS).map(Some)
}

/// Increments the count. Called before a truncation, for readers that have the log open, and after it, for
/// readers that opened the log during the truncation.
pub(crate) fn increment(directory: &Directory) -> Result<()> {
    let file = directory.open_writable(TRUNCATIONS)?;
    let end = file.identity()?.size;
    // the increment after the truncation must not run out of space: both bytes are usually in one block
    file.reserve(end, 2);
    // only the length counts: a lost byte reads as zero
    file.write_all_at(&[0], end)
}

/// Whether a truncation has begun and not yet ended.
pub(crate) fn is_in_progress(count: u64) -> bool {
    count % 2 == 1
}

/// Makes the count even and durable once recovery has completed an interrupted truncation; creates the file
/// if it is missing.
pub(crate) fn complete(directory: &Directory) -> Result<()> {
    let Some(file) = directory.identity_of(TRUNCATIONS)? else {
        // an empty file is durable once its name is
        return directory.create(TRUNCATIONS).map(drop);
    };
    if is_in_progress(file.size) {
        increment(directory)?;
    }
    // synced, so that the count cannot fall after a crash
    directory.open_writable(TRUNCATIONS)?.sync()
}
