//! The five ends of a log that is written, and the order between them.
//!
//! ```text
//!   log start offset <= recovery point <= log end offset      durable offset <= log end offset
//!                                         data end       <= log end offset
//! ```
//!
//! | end | meaning | after |
//! |---|---|---|
//! | log start offset | no record below exists | `delete_before`, retention |
//! | recovery point | after a crash, segments from the one that holds it on are read | a roll, a truncation, a close |
//! | durable offset | everything below survives a power loss | each sync |
//! | data end | the end of the last batch in a file, or the base offset of an empty last segment | each append |
//! | log end offset | the next record gets it; above the data end after a truncation inside a batch | each append |
//!
//! One exception: a roll before a gap of offsets puts the recovery point at the base offset of the new segment. The append that
//! follows raises the log end offset above it, or poisons the writer.

use std::sync::Arc;

use super::group_commit::GroupCommit;
use crate::state::checkpoint::Checkpoint;

/// The ends of a log. Changed under the writer's lock; the durable offset and the log end offset are also published to threads
/// without it.
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

    /// The checkpoint of these ends.
    pub(super) fn checkpoint(&self) -> Checkpoint {
        let Self { recovery_point, log_start_offset, .. } = *self;
        Checkpoint { recovery_point, log_start_offset, ..Checkpoint::default() }
    }

    /// The checkpoint of a log that starts at `offset`. Kafka raises the recovery point with it, too.
    pub(super) fn checkpoint_from(&self, offset: i64) -> Checkpoint {
        let recovery_point = self.recovery_point.max(offset);
        Checkpoint { recovery_point, log_start_offset: offset, ..Checkpoint::default() }
    }

    /// The checkpoint of a log of which the segments from this base offset on are truncated.
    pub(super) fn checkpoint_before(&self, base_offset: i64) -> Checkpoint {
        let recovery_point = self.recovery_point.min(base_offset).max(self.log_start_offset);
        Checkpoint { recovery_point, ..self.checkpoint() }
    }

    /// The checkpoint of a log whose segments below this offset are sealed and durable.
    pub(super) fn checkpoint_at(&self, recovery_point: i64) -> Checkpoint {
        Checkpoint { recovery_point, ..self.checkpoint() }
    }

    /// A checkpoint is in force.
    pub(super) fn set_checkpoint(&mut self, checkpoint: Checkpoint) {
        self.recovery_point = checkpoint.recovery_point;
        self.log_start_offset = checkpoint.log_start_offset;
    }

    /// So many bytes were appended; the log ends at `end` now.
    pub(super) fn append(&mut self, bytes: u64, end: i64) {
        self.log_end_offset = end;
        self.data_end = end;
        self.commit.appended(bytes, end);
        self.check();
    }

    /// Everything below `offset` was synced under the writer's lock.
    pub(super) fn sync(&self, offset: i64) {
        self.commit.synced(offset);
        self.check_durable();
    }

    /// A new segment begins at `base_offset`, and everything before it is durable.
    pub(super) fn roll(&mut self, base_offset: i64) {
        self.recovery_point = base_offset;
        if base_offset == self.log_end_offset {
            // the name of an empty segment states its base offset
            self.data_end = base_offset;
        }
        self.sync(self.log_end_offset);
    }

    /// A truncation to `offset` begins: nothing from there on is durable any more.
    pub(super) fn begin_truncation(&self, offset: i64) {
        self.commit.truncated(offset);
    }

    /// The removal of every record begins; the log is to begin again at `offset`.
    pub(super) fn begin_restart(&self, offset: i64) {
        self.begin_truncation(offset.min(self.durable_offset()));
    }

    /// A truncation is done, durably.
    pub(super) fn end_truncation(&mut self, data_end: i64, log_end_offset: i64) {
        self.data_end = data_end;
        self.log_end_offset = log_end_offset;
        self.sync(log_end_offset);
        self.check();
    }

    /// The log was emptied, durably, and begins again at `offset`.
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
        debug_assert!(data_end <= log_end_offset, "the data ends in the log: {self:?}");
        self.check_durable();
    }

    fn check_durable(&self) {
        let durable = self.durable_offset();
        debug_assert!(durable <= self.log_end_offset, "{durable} is in the log: {self:?}");
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
