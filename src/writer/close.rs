//! A clean close, after which the next open does not have to read the log.

use super::partition::Partition;
use crate::error::Result;
use crate::state::clean_marker::CleanMarker;

impl Partition {
    /// Seals the active segment, makes everything durable, and writes the clean marker last.
    pub(super) fn close(&mut self) -> Result<()> {
        self.active.seal()?;
        self.ensure_in_place()?;
        let end = self.ends.log_end_offset();
        if let Some(snapshot) = self.producers.stage_snapshot(&self.directory, end)? {
            snapshot.put_unsynced()?;
            self.producers.note_snapshot(end);
        }
        self.directory.sync()?;
        self.durable_offset_file.set(self.ends.data_end())?;
        self.ends.sync(end);
        let recovery_point = self.ends.stored_end();
        let checkpoint = self.ends.checkpoint_at(recovery_point);
        checkpoint.write(&self.directory)?;
        self.ends.set_checkpoint(checkpoint);
        if let Some(data_directory) = &self.data_directory {
            data_directory.write_recovery_point(recovery_point)?;
        }
        let interval = self.config.index_interval_bytes.into();
        CleanMarker::of(&self.directory, self.ends.data_end(), interval)?.write(&self.directory)
    }
}
