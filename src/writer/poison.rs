//! The failures that poison the writer. After a failed write or sync in the middle of a change, the state of
//! the files is unknown, so that the writer accepts no more calls. Opening the log again recovers what was
//! acknowledged.

use std::io::ErrorKind;

use super::group_commit::GroupCommit;
use crate::error::{Error, IoAction, Result};

impl GroupCommit {
    /// Poisons the writer if a change failed. Its files may be changed in part.
    pub(super) fn or_poison<T>(&self, changed: Result<T>) -> Result<T> {
        changed.inspect_err(|error| self.poison(error))
    }

    /// Poisons the writer if the preparation of a change failed, unless the disk was full: then nothing has
    /// changed.
    pub(super) fn or_poison_unless_full<T>(&self, prepared: Result<T>) -> Result<T> {
        prepared.inspect_err(|error| {
            if !is_full(error) {
                self.poison(error);
            }
        })
    }

    /// Poisons the writer if the preparation of a change failed in a sync, because the kernel may report the
    /// next sync as a success. After any other failure nothing has changed.
    pub(super) fn or_poison_after_sync<T>(&self, prepared: Result<T>) -> Result<T> {
        prepared.inspect_err(|error| {
            if matches!(error, Error::Io { action: IoAction::Sync, .. }) && !is_full(error) {
                self.poison(error);
            }
        })
    }
}

pub(super) fn is_full(error: &Error) -> bool {
    const FULL: [ErrorKind; 3] = [ErrorKind::StorageFull, ErrorKind::QuotaExceeded, ErrorKind::FileTooLarge];
    matches!(error, Error::Io { source, .. } if FULL.contains(&source.kind()))
}
