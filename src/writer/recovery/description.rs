//! The changes of a recovery, as the public [`RecoveryPlan`](super::RecoveryPlan) lists them.

use super::existing_log::Existing;
use super::plan::removed;
use super::recovery_plan::{FileChange, FileChangeReason, RebuiltIndex, SegmentSplit};
use super::segment_plan::SegmentPlan;
use crate::fs::names::{FileKind, SegmentFileName, Stage, segment_file};

impl Existing<'_> {
    pub(super) fn rebuilt_indexes(&self, plans: &[SegmentPlan]) -> Vec<RebuiltIndex> {
        let rebuilt = plans
            .iter()
            .flat_map(|plan| plan.rebuilt.iter().map(|(kind, reason)| (plan.base_offset, *kind, *reason)));
        rebuilt
            .map(|(base_offset, kind, reason)| RebuiltIndex {
                file: self.directory.path_of(&segment_file(base_offset, kind)),
                reason,
            })
            .collect()
    }

    pub(super) fn file_changes(&self) -> Vec<FileChange> {
        let uncommitted = self.replacement.uncommitted.iter();
        let uncommitted =
            uncommitted.map(|name| removed(self.directory, name, FileChangeReason::Uncommitted));
        let replaced =
            self.replaced.iter().map(|file| removed(self.directory, &file.name, FileChangeReason::Replaced));
        let committed = self.replacement.committed.iter().map(|file| {
            let live = SegmentFileName { stage: Stage::Live, ..file.parsed };
            FileChange {
                file: self.directory.path_of(&file.name),
                new_file: Some(self.directory.path_of(&live.to_string())),
                reason: FileChangeReason::Committed,
            }
        });
        uncommitted.chain(replaced).chain(committed).collect()
    }

    pub(super) fn splits(&self, plans: &[SegmentPlan]) -> Vec<SegmentSplit> {
        let split = plans.iter().filter(|plan| plan.is_split());
        split
            .map(|plan| SegmentSplit {
                file: self.directory.path_of(&segment_file(plan.base_offset, FileKind::Log)),
                base_offsets: plan.base_offsets(),
            })
            .collect()
    }
}
