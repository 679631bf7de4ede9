//! Removes the files of a new log that could not be opened, for example on a full disk.

use crate::error::Result;
use crate::fs::names::{FileKind, SegmentFileName, Stage};
use crate::fs::{Directory, PartitionLocks};

/// Opens a log. If that fails in a directory without a segment, removes the files that it created.
pub(super) fn on_failure<T>(directory: &Directory, open: impl FnOnce() -> Result<T>) -> Result<T> {
    let before = directory.entries()?;
    let is_segment = |name: &str| {
        SegmentFileName::parse(name)
            .is_some_and(|parsed| parsed.kind == FileKind::Log && parsed.stage == Stage::Live)
    };
    if before.iter().any(|(name, _)| is_segment(name)) {
        return open();
    }
    open().inspect_err(|_| {
        // only the first error is returned
        for (name, _) in directory.entries().unwrap_or_default() {
            // the lock is held on this file
            if name != PartitionLocks::NAME && before.iter().all(|(before, _)| *before != name) {
                let _ = directory.remove(&name);
            }
        }
    })
}

/// Removes a partition directory that was just created, with the lock file that the caller holds. A directory
/// with other files is kept.
pub(in crate::writer) fn remove_directory(directory: &Directory) {
    let name = directory.path().file_name().and_then(|name| name.to_str());
    if let (Some(name), Ok(Some(parent))) = (name, directory.parent()) {
        // a process that waits for the lock notices that its file was removed
        let _ = directory.remove(PartitionLocks::NAME).and_then(|()| parent.remove_folder(name));
    }
}
