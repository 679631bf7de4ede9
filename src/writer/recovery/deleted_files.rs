//! `.deleted` files, which a broker was about to delete when it stopped. Kafka: `LogLoader`, pass 1, deletes
//! all of them.
//!
//! After a crash of Kafka's cleaner, one can be the only copy of its records. So a segment is deleted only if
//! all its offsets are in live batches, or below the log start offset. The others stay, and the plan lists
//! them.

use std::ops::Range;

use super::plan::removed;
use super::recovery_plan::{FileChangeReason, RecoveryPlan};
use crate::error::Result;
use crate::fs::names::FileKind;
use crate::fs::{Directory, SegmentFile};
use crate::log::{Log, runs_of_offsets};
use crate::segment::Segment;

/// Adds the `.deleted` files of a log to its plan. Returns the names of those that are deleted. `start`: the
/// offset below which nothing is needed, not above the log start offset of the plan.
pub(super) fn find(
    directory: &Directory,
    log: &Log,
    start: i64,
    report: &mut RecoveryPlan,
) -> Result<Vec<String>> {
    let deleted = log.deleted_files()?;
    let (kept, names): (Vec<_>, Vec<_>) =
        OnlyCopies { log, needed: start..report.log_end_offset, is_verified: false }.split(deleted)?;
    let names: Vec<_> = names.into_iter().map(|file| file.name).collect();
    let kept = kept.into_iter().map(|file| directory.path_of(&file.name)).collect();
    report.file_changes.extend(names.iter().map(|name| removed(directory, name, FileChangeReason::Deleted)));
    report.kept_files = kept;
    Ok(names)
}

/// Decides which `.deleted` files are the only copy of records.
pub(crate) struct OnlyCopies<'a> {
    pub(crate) log: &'a Log,
    /// The offsets of records that are needed, up to the end of the log.
    pub(crate) needed: Range<i64>,
    /// Whether the checksums of the live batches are compared, for which their segments are read.
    pub(crate) is_verified: bool,
}

impl OnlyCopies<'_> {
    /// Splits files into those of segments whose records may be nowhere else, and the others.
    pub(crate) fn split(&self, deleted: Vec<SegmentFile>) -> Result<(Vec<SegmentFile>, Vec<SegmentFile>)> {
        let mut kept_bases = Vec::new();
        for file in deleted.iter().filter(|file| file.parsed.kind == FileKind::Log) {
            if !self.is_covered(file)? {
                kept_bases.push(file.parsed.base_offset);
            }
        }
        // the other files of a segment are derived from its `.log`
        Ok(deleted.into_iter().partition(|file| kept_bases.contains(&file.parsed.base_offset)))
    }

    /// Whether all records of a `.log` are elsewhere, or not needed. A damaged one is not. The headers come
    /// first: a file that stays is found again at each opening, and then its payloads are not read.
    fn is_covered(&self, file: &SegmentFile) -> Result<bool> {
        let covers = |offsets: &Range<i64>| {
            let mut next = offsets.start.max(self.needed.start);
            for segment in self.log.segments().between(next, offsets.end.max(next)) {
                for run in self.live_runs(segment)? {
                    if run.contains(&next) {
                        next = run.end;
                    }
                }
            }
            Ok(next >= offsets.end)
        };
        let is_covered = self.log.offsets_of_file(file, false)?.as_ref().map_or(Ok(false), covers)?;
        Ok(is_covered && self.log.offsets_of_file(file, true)?.is_some())
    }

    /// The offsets of a segment that remain: the offsets of its batches, and in a compacted log all up to its
    /// last batch.
    fn live_runs(&self, segment: &Segment) -> Result<Vec<Range<i64>>> {
        let mut runs = runs_of_offsets(segment, self.is_verified)?;
        if self.log.is_compacted()? {
            runs = runs.last().map(|last| segment.base_offset()..last.end).into_iter().collect();
        }
        Ok(runs.into_iter().map(|run| run.start..run.end.min(self.needed.end)).collect())
    }
}
