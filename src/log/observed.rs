//! What was observed of a partition directory when a log was opened: where nothing of it has changed, a refresh lists nothing
//! and gives the same log.

use std::time::SystemTime;

use super::Log;
use crate::error::Result;
use crate::fs::FileIdentity;
use crate::segment::OpenFiles;

/// The state of a directory, taken before it was listed.
#[derive(Debug, Clone)]
pub(super) struct Observed {
    at: SystemTime,
    /// Of the directory itself: its time changes with each file that is created, removed or renamed in it.
    directory: Option<FileIdentity>,
    pub(super) truncations: Option<u64>,
}

impl Observed {
    pub(super) fn now(open_files: &OpenFiles) -> Result<Self> {
        Ok(Self {
            at: SystemTime::now(),
            directory: open_files.directory.identity_of(".")?,
            truncations: open_files.truncations()?,
        })
    }

    /// Whether the directory holds the same names as when `self` was taken.
    fn has_same_names(&self, now: &Self) -> bool {
        let settled = self.directory.filter(|directory| directory.is_older_than(self.at));
        settled.is_some() && (settled, self.truncations) == (now.directory, now.truncations)
    }
}

impl Log {
    /// Whether a refresh would find what this log has: the same files, unchanged as far as they were read, and the same
    /// log start offset. The reader of a writer in this process does not ask: its writer knows.
    ///
    /// *Cost*: a system call for each segment that was read.
    pub(super) fn is_current(&self) -> Result<bool> {
        let inner = &*self.inner;
        if inner.live.strong_count() > 0 || !inner.observed.has_same_names(&Observed::now(&inner.open_files)?)
        {
            return Ok(false);
        }
        for segment in self.segments().iter() {
            if !segment.is_file_unchanged()? {
                return Ok(false);
            }
        }
        let mut warnings = Vec::new();
        let claimed = super::claimed_start(
            &inner.open_files,
            &inner.options,
            self.topic(),
            self.partition(),
            &mut warnings,
        );
        Ok(claimed == inner.claimed_start && warnings.iter().all(|warning| inner.opening.contains(warning)))
    }
}
