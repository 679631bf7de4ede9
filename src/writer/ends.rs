//! The five end offsets that a writer keeps for a log, and the order between them.
//!
//! ```text
//!   log start offset <= recovery point <= log end offset      durable offset <= log end offset
//!                                         data end       <= log end offset
//! ```
//!
//! | end | meaning | changed by |
//! |---|---|---|
//! | log start offset | no record below exists | `delete_before`, retention |
//! | recovery point | after a crash, recovery reads from the segment that contains it | a roll, a truncation, a close |
//! | durable offset | every record below it survives a power loss | each sync |
//! | data end | the end of the last batch in a file, or the base offset of an empty last segment | each append |
//! | log end offset | the offset of the next record; above the data end after a truncation inside a batch | each append |
//!
//! One exception: a roll before a gap of offsets puts the recovery point at the base offset of the new
//! segment. The append that follows either raises the log end offset above it or poisons the writer.

use std::sync::Arc;

use super::group_commit::GroupCommit;
use crate::state::checkpoint::Checkpoint;

/// The ends of a log. Changed under the writer's lock; threads without the lock can read the durable offset
/// and the log end offset.
#[derive(Debug)]
pub(super) struct Ends {
    log_start_offset: i64,
    recovery_point: i64,
    data_end: i64,
    log_end_offset: i64,
    /// Holds the durable offset.
    commit: Arc<GroupCommit>,
}

impl Ends {
    /// The ends of a log that was just recovered: everything in it is durable.
    pub(super) fn recovered(log_start_offset: i64, data_end: i64, log_end_offset: i64) -> Self {
        let commit = Arc::new(GroupCommit::new(log_end_offset));
        let ends =
            Self { log_start_offset, recovery_point: log_end_offset, data_end, log_end_offset, commit };
        ends.check();
        ends
    }

    pub(super) fn commit(&self) -> &Arc<GroupCommit> {
        &self.commit
    }

    pub(super) fn log_start_offset(&self) -> i64 {
        self.log_start_offset
    }

    pub(super) fn durable_offset(&self) -> i64 {
        self.commit.durable()
    }

    pub(super) fn data_end(&self) -> i64 {
        self.data_end
    }

    pub(super) fn log_end_offset(&self) -> i64 {
        self.log_end_offset
    }

    /// Where the log ends when it is opened again: the log end offset of a truncation inside a batch is not
    /// in the files.
    pub(super) fn stored_end(&self) -> i64 {
        self.data_end.max(self.log_start_offset)
    }

    /// The checkpoint of these ends.
    pub(super) fn checkpoint(&self) -> Checkpoint {
        let Self { recovery_point, log_start_offset, .. } = *self;
        Checkpoint { recovery_point, log_start_offset, ..Checkpoint::default() }
    }

    /// The checkpoint of a log that starts at `offset`. The recovery point is raised to it, as in Kafka.
    pub(super) fn checkpoint_from(&self, offset: i64) -> Checkpoint {
        let recovery_point = self.recovery_point.max(offset);
        Checkpoint { recovery_point, log_start_offset: offset, ..Checkpoint::default() }
    }

    /// The checkpoint of a log before the segments at or above `base_offset` are truncated.
    pub(super) fn checkpoint_before(&self, base_offset: i64) -> Checkpoint {
        let recovery_point = self.recovery_point.min(base_offset).max(self.log_start_offset);
        Checkpoint { recovery_point, ..self.checkpoint() }
    }

    /// The checkpoint of a log whose segments below this offset are sealed and durable.
    pub(super) fn checkpoint_at(&self, recovery_point: i64) -> Checkpoint {
        Checkpoint { recovery_point, ..self.checkpoint() }
    }

    /// Takes over the offsets of a checkpoint that was written.
    pub(super) fn set_checkpoint(&mut self, checkpoint: Checkpoint) {
        self.recovery_point = checkpoint.recovery_point;
        self.log_start_offset = checkpoint.log_start_offset;
    }

    /// Records an append of `bytes` bytes, after which the log ends at `end`.
    pub(super) fn append(&mut self, bytes: u64, end: i64) {
        self.log_end_offset = end;
        self.data_end = end;
        self.commit.appended(bytes, end);
        self.check();
    }

    /// Records that everything below `offset` was synced under the writer's lock.
    pub(super) fn sync(&self, offset: i64) {
        self.commit.synced(offset);
        self.check_durable();
    }

    /// Records a new segment at `base_offset`; everything before it is durable.
    pub(super) fn roll(&mut self, base_offset: i64) {
        self.recovery_point = base_offset;
        if base_offset == self.log_end_offset {
            // the data end survives a crash: it is in the name of the empty segment
            self.data_end = base_offset;
        }
        self.sync(self.log_end_offset);
    }

    /// Begins a truncation to `offset`: nothing at or above it is durable any more.
    pub(super) fn begin_truncation(&self, offset: i64) {
        self.commit.truncated(offset);
    }

    /// Begins the removal of every record, after which the log starts at `offset`.
    pub(super) fn begin_restart(&self, offset: i64) {
        self.begin_truncation(offset.min(self.durable_offset()));
    }

    /// Ends a truncation whose changes are durable.
    pub(super) fn end_truncation(&mut self, data_end: i64, log_end_offset: i64) {
        self.data_end = data_end;
        self.log_end_offset = log_end_offset;
        self.sync(log_end_offset);
        self.check();
    }

    /// Ends the removal of every record: the change is durable, and the log starts at `offset`.
    pub(super) fn restart(&mut self, offset: i64) {
        (self.log_start_offset, self.recovery_point) = (offset, offset);
        self.end_truncation(offset, offset);
    }

    fn check(&self) {
        let Self { log_start_offset, recovery_point, data_end, log_end_offset, .. } = self;
        debug_assert!(
            log_start_offset <= recovery_point && recovery_point <= log_end_offset,
            "the recovery point is between the log start offset and the log end offset: {self:?}"
        );
        debug_assert!(data_end <= log_end_offset, "the data end is at or below the log end offset: {self:?}");
        self.check_durable();
    }

    fn check_durable(&self) {
        let durable = self.durable_offset();
        debug_assert!(
            durable <= self.log_end_offset,
            "the durable offset {durable} is at or below the log end offset: {self:?}"
        );
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Ends;

    proptest! {
        #[test]
        fn the_ends_keep_their_order(steps in prop::collection::vec((0_u8..5, 0_i64..100), 1..60)) {
            let mut ends = Ends::recovered(0, 0, 0);
            for (step, number) in steps {
                let (start, end) = (ends.log_start_offset(), ends.log_end_offset());
                let inside = start + number % (end - start + 1);
                match step {
                    0 => ends.append(1, end + 1 + number),
                    1 => ends.sync(inside),
                    2 => ends.roll(end),
                    3 => {
                        ends.sync(inside);
                        ends.set_checkpoint(ends.checkpoint_from(inside));
                    }
                    _ => {
                        ends.set_checkpoint(ends.checkpoint_before(inside));
                        ends.begin_truncation(inside);
                        ends.end_truncation(inside, inside);
                    }
                }
                let checkpoint = ends.checkpoint();
                prop_assert!(checkpoint.log_start_offset <= checkpoint.recovery_point);
                prop_assert!(checkpoint.recovery_point <= ends.log_end_offset());
                prop_assert!(ends.durable_offset() <= ends.log_end_offset());
                prop_assert!(ends.data_end() <= ends.log_end_offset());
            }
        }
    }
}
