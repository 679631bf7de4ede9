//! The leader epochs of a segment, and whether it was compacted, from its batch headers.

use super::damage::Preceding;
use super::walk::Step;
use super::{Batch, SCAN_READ, Segment};
use crate::error::Result;

impl Segment {
    /// The leader epoch of the last batch; −1 if it has none, or there is no batch.
    pub(crate) fn last_epoch(&self) -> Result<i32> {
        let index = self.or_warn(self.offset_index());
        let mut walk = self.walk_from_last_entry(index.as_deref())?;
        let mut epoch = -1;
        while let Step::Batch(batch) = walk.step()? {
            epoch = batch.header.leader_epoch;
        }
        Ok(epoch)
    }

    /// Whether compaction has rewritten a batch before the first damage. Computed once.
    pub(crate) fn is_compacted(&self) -> Result<bool> {
        if let Some(found) = self.compacted.get() {
            return Ok(*found);
        }
        let found = self.search_for_compaction()?;
        Ok(*self.compacted.get_or_init(|| found))
    }

    /// [`Batch::is_after_gap`], if neither damage nor a truncation explains it: a `LogWriter` truncates
    /// inside a batch without a new leader epoch.
    pub(crate) fn has_gap_before(&self, batch: &Batch, before: Option<Preceding>) -> bool {
        let is_truncation =
            || self.open_files.may_be_truncation_gap(self.truncations, batch.header.base_offset);
        batch.is_after_gap(before) && !is_truncation()
    }

    fn search_for_compaction(&self) -> Result<bool> {
        let mut walk = self.walk(-1, SCAN_READ)?;
        loop {
            self.open_files.interrupt.check()?;
            let Step::Batch(batch) = walk.step()? else { return Ok(false) };
            if batch.is_rewritten() {
                return Ok(true);
            }
        }
    }

    /// The start offset of each leader epoch of its batches, in their order.
    pub(crate) fn epochs(&self) -> Result<Vec<(i32, i64)>> {
        let mut epochs: Vec<(i32, i64)> = Vec::new();
        let mut walk = self.walk(-1, SCAN_READ)?;
        while let Step::Batch(batch) = walk.step()? {
            let (epoch, offset) = (batch.header.leader_epoch, batch.header.base_offset);
            if epoch >= 0 && epochs.last().is_none_or(|(last, _)| *last != epoch) {
                epochs.push((epoch, offset));
            }
        }
        Ok(epochs)
    }
}
