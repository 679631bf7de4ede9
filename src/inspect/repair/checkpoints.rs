//! The small files with offsets of the log, which a repair lowers to the end that is left.

use super::derived::Derived;
use super::plan::Builder;
use super::repair_plan::RepairActionKind;
use crate::error::Result;
use crate::state::checkpoint::{CHECKPOINT, Checkpoint, DURABLE, DurableOffsetFile};
use crate::state::data_directory::DataDirectory;
use crate::state::offset_checkpoint::{LOG_START_OFFSETS, RECOVERY_POINTS};

impl Builder<'_> {
    /// The durable offset that the log has after the repair, if it is lower than the present one: a writer
    /// refuses a log that ends below it, or has no batch that ends there.
    pub(super) fn lowered_durable_offset(&mut self, all_derived: &[Derived], end_offset: i64) -> Option<i64> {
        let durable = self.durable?;
        let mut lowered = (durable > end_offset).then_some(end_offset);
        let mut end = None;
        for derived in all_derived {
            if let (Some(end), Some(first)) = (end, derived.first_offset)
                && end < durable
                && durable <= first
            {
                lowered = Some(end);
            }
            lowered = derived.gap_at_durable.or(lowered);
            end = derived.end_offset.or(end);
        }
        if let Some(lowered) = lowered {
            let reason = format!(
                "the log was synced up to offset {durable}, and continues up to offset {lowered} only"
            );
            self.act(RepairActionKind::LowerCheckpoint, DURABLE, reason);
        }
        // without the file, the offset is that of the clean marker, which is removed
        lowered.filter(|_| DurableOffsetFile::read(self.directory).is_ok_and(|known| known.is_some()))
    }

    /// The offsets above the end of the log that are lowered.
    pub(super) fn add_checkpoints(
        &mut self,
        checkpoint: Option<Checkpoint>,
        data_directory: Option<&DataDirectory>,
        end_offset: i64,
    ) -> Result<()> {
        let is_above = |offset: &i64| *offset > end_offset;
        if let Some(point) = checkpoint.map(|checkpoint| checkpoint.recovery_point).filter(is_above) {
            let reason = format!("recovery point {point} is above offset {end_offset}, the end of the log");
            self.act(RepairActionKind::LowerCheckpoint, CHECKPOINT, reason);
        }
        let Some(data_directory) = data_directory else { return Ok(()) };
        let start = data_directory.log_start_offset()?;
        let point = data_directory.recovery_point()?;
        for (name, offset) in [(LOG_START_OFFSETS, start), (RECOVERY_POINTS, point)] {
            if let Some(offset) = offset.filter(is_above) {
                let reason = format!("offset {offset} is above offset {end_offset}, the end of the log");
                self.act(RepairActionKind::LowerCheckpoint, &format!("../{name}"), reason);
            }
        }
        Ok(())
    }
}
