//! What compaction needs of a writer: the state of the log, and the changes of it. Appends go on between these calls.

use std::collections::HashMap;

use super::LogWriter;
use crate::config::LogConfig;
use crate::error::Result;
use crate::fs::Directory;
use crate::log::Log;
use crate::state::cleaner_checkpoint::CleanerCheckpoint;
use crate::state::producers::LastRecord;
use crate::writer::partition::Partition;

/// The state of a log at the start of a compaction.
#[derive(Debug)]
pub(crate) struct Cleanable {
    pub(crate) log: Log,
    pub(crate) directory: Directory,
    pub(crate) config: LogConfig,
    pub(crate) last_stable_offset: i64,
    /// The first offset that is not cleaned, as stored.
    pub(crate) first_dirty_offset: Option<i64>,
    /// ms since the epoch.
    pub(crate) now: i64,
}

impl LogWriter {
    /// The present state of the log. `now`: ms since the epoch; `None`: the clock's time.
    pub(crate) fn cleanable(&mut self, now: Option<i64>) -> Result<Cleanable> {
        let shared = std::sync::Arc::clone(&self.shared);
        let partition = shared.enter()?;
        // under the lock: the log as of the last stable offset
        let log = self.open_reader()?;
        Ok(Cleanable {
            log,
            directory: partition.directory.clone(),
            config: partition.config.clone(),
            last_stable_offset: partition.last_stable_offset(),
            first_dirty_offset: partition.cleaner_checkpoint().read()?,
            now: now.unwrap_or_else(partition.clock),
        })
    }

    /// The last record of each producer.
    pub(crate) fn last_records(&self) -> Result<HashMap<i64, LastRecord>> {
        Ok(self.shared.enter()?.producers.last_records())
    }

    /// Replaces sealed segments with the one whose `.cleaned` files are complete and have the base offset of the first.
    ///
    /// # Errors
    /// As of any change: the writer is poisoned.
    pub(crate) fn replace_segments(&mut self, replaced: &[i64], is_empty: bool) -> Result<()> {
        let mut partition = self.shared.enter()?;
        let done = partition.replace_segments(replaced, is_empty);
        partition.ends.commit().or_poison(done)
    }

    /// Stores the first offset that is not cleaned. If that fails, the earlier offset remains.
    pub(crate) fn set_first_dirty_offset(&mut self, offset: i64) -> Result<()> {
        let partition = self.shared.enter()?;
        let written = partition.cleaner_checkpoint().write(offset);
        partition.ends.commit().or_poison_after_sync(written)
    }
}

impl Partition {
    /// See [`LogWriter::last_stable_offset`].
    pub(super) fn last_stable_offset(&self) -> i64 {
        let open = self.producers.first_open_offset();
        open.map_or(self.ends.log_end_offset(), |first| first.max(self.ends.log_start_offset()))
    }

    pub(super) fn cleaner_checkpoint(&self) -> CleanerCheckpoint<'_> {
        CleanerCheckpoint { directory: &self.directory, data_directory: self.data_directory.as_ref() }
    }
}
