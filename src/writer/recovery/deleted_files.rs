//! `.deleted` files, which a broker was about to delete when it stopped. Kafka: `LogLoader`, pass 1, deletes all of them.
//!
//! After a crash of Kafka's cleaner, one can be the only copy of its records. So a segment is deleted only if all its offsets are in live
//! segments, or below the log start offset. The others stay, and the plan lists them.

use std::ops::Range;

use super::plan::removed;
use super::recovery_plan::{FileChangeReason, RecoveryPlan};
use crate::error::Result;
use crate::fs::Directory;
use crate::fs::names::FileKind;
use crate::log::Log;

/// Adds the `.deleted` files of a log to its plan. Returns the names of those that are deleted.
pub(super) fn find(directory: &Directory, log: &Log, report: &mut RecoveryPlan) -> Result<Vec<String>> {
    let deleted = log.deleted_files()?;
    if deleted.is_empty() {
        return Ok(Vec::new());
    }
    let live = live_offsets(log, report)?;
    let is_kept = |base_offset: i64| {
        deleted.iter().any(|(file, offsets)| {
            file.parsed.base_offset == base_offset
                && file.parsed.kind == FileKind::Log
                && !offsets
                    .as_ref()
                    .is_some_and(|offsets| is_covered(offsets, report.log_start_offset, &live))
        })
    };
    // the other files of a segment are derived from its `.log`
    let (kept, names): (Vec<_>, Vec<_>) =
        deleted.iter().map(|(file, _)| file).partition(|file| is_kept(file.parsed.base_offset));
    let names: Vec<_> = names.into_iter().map(|file| file.name.clone()).collect();
    let kept = kept.into_iter().map(|file| directory.path_of(&file.name)).collect();
    report.file_changes.extend(names.iter().map(|name| removed(directory, name, FileChangeReason::Deleted)));
    report.kept_files = kept;
    Ok(names)
}

/// The offsets of each segment after the recovery, ascending: from its base offset to its last batch.
fn live_offsets(log: &Log, report: &RecoveryPlan) -> Result<Vec<Range<i64>>> {
    let end = report.log_end_offset;
    let segments = log.segments().iter().filter(|segment| segment.base_offset() < end);
    segments.map(|segment| Ok(segment.base_offset()..segment.end_offset()?.min(end))).collect()
}

fn is_covered(offsets: &Range<i64>, log_start_offset: i64, live: &[Range<i64>]) -> bool {
    let mut next = offsets.start.max(log_start_offset);
    for segment in live {
        if segment.contains(&next) {
            next = segment.end;
        }
    }
    next >= offsets.end
}
