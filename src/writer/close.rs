//! How a log is closed, so that the next opening need not look for damage.

use super::GroupCommit;
use super::partition::Partition;
use crate::error::Result;
use crate::state::checkpoint::Checkpoint;
use crate::state::clean_marker::CleanMarker;

impl Partition {
    /// Ends the log in order.
    pub(super) fn close(&mut self, commit: &GroupCommit) -> Result<()> {
        self.active.seal()?;
        self.directory.sync()?;
        self.durable_offset_file.set(self.data_end)?;
        commit.synced(self.log_end_offset);
        self.checkpoint = Checkpoint { recovery_point: self.log_end_offset, ..self.checkpoint };
        self.checkpoint.write(&self.directory)?;
        if let Some(data_directory) = &self.data_directory {
            data_directory.write_recovery_point(self.log_end_offset)?;
        }
        CleanMarker::of(&self.directory, self.data_end)?.write(&self.directory)
    }
}
