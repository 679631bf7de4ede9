//! Files that do not belong to the log: what an interrupted compaction, split or deletion left, and indexes
//! without a `.log`. Files of others, with whose names a broker cannot load the partition, are only reported.

use std::collections::BTreeSet;

use super::repair_plan::RepairPolicy;
use crate::error::Result;
use crate::fs::names::{FileKind, SegmentFileName, Stage};
use crate::fs::{Directory, FileType, STAGED, SegmentFile};
use crate::log::{Log, Replacement};
use crate::state::kept_files::KeptFiles;
use crate::writer::{OnlyCopies, replaced};

/// What is done with the files of an interrupted replacement, and which files are removed.
#[derive(Debug, Default)]
pub(super) struct Leftovers {
    /// Temporary files of an interrupted truncation or repair.
    pub(super) staged: Vec<String>,
    /// The replacement to finish or to undo.
    pub(super) replacement: Replacement,
    /// Live files that it replaces.
    pub(super) replaced: Vec<SegmentFile>,
    /// Files that are removed, and why.
    pub(super) removed: Vec<(String, &'static str)>,
    /// `.deleted` files that stay: the records of their segments may be nowhere else.
    pub(super) kept: Vec<String>,
    /// The note of them.
    pub(super) kept_files: KeptFiles,
    /// Files that a broker takes for files of a segment, but whose names have no base offset of 20 digits.
    pub(super) foreign: Vec<String>,
}

/// The start of records below the first segment, as files say.
pub(super) struct MissingStart {
    /// Of records that the log has lost.
    pub(super) lost: Option<i64>,
    /// Of records that a broker was deleting when it stopped: they are in `.deleted` files.
    pub(super) unfinished: Option<i64>,
}

impl Leftovers {
    /// Keeps the `.deleted` files of segments with records that no undamaged batch has after the repair, also
    /// those that a broker was deleting, as a writer's recovery does. `copies`: compares with what the repair
    /// leaves. Those of a lost start are removed: the policy continues without these records, and afterwards
    /// no file says that the log had them.
    pub(super) fn keep_only_copies(
        &mut self,
        log: &Log,
        mut copies: OnlyCopies<'_>,
        missing_start: &MissingStart,
    ) -> Result<()> {
        let deleted = log.deleted_files()?;
        if deleted.is_empty() {
            return Ok(());
        }
        let start = missing_start.unfinished.unwrap_or(log.log_start_offset());
        let (kept, others) = copies.split(deleted, &(start..i64::MAX))?;
        self.kept_files = std::mem::take(&mut copies.kept);
        if let Some(lost_start) = missing_start.lost {
            let (lost, _) = copies.split(others, &(lost_start..i64::MAX))?;
            for (name, reason) in &mut self.removed {
                if lost.iter().any(|file| file.name == *name) {
                    *reason = "its segment was deleted, and no other has its records";
                }
            }
        }
        self.kept = kept.into_iter().map(|file| file.name).collect();
        self.removed.retain(|(name, _)| !self.kept.contains(name));
        Ok(())
    }
}

/// Finds the leftovers of a directory. `bases`: the base offsets of the segments that are read.
///
/// # Errors
/// [`Error::Corrupt`](crate::Error::Corrupt) if a committed replacement contradicts the segments that it
/// would replace, with the policy `torn_tail`; the other policies keep these segments.
pub(super) fn find(directory: &Directory, log: &Log, policy: RepairPolicy) -> Result<Leftovers> {
    let mut found = Leftovers { replacement: log.replacement()?, ..Leftovers::default() };
    let mut rejected = BTreeSet::new();
    if let Err(contradiction) = found.replacement.ensure_consistent(directory) {
        if policy == RepairPolicy::TornTail {
            return Err(contradiction);
        }
        rejected.extend(found.replacement.committed.drain(..).map(|file| file.name));
        found.replacement.ranges.clear();
    }
    found.replaced = replaced(directory, &found.replacement)?;
    let bases: BTreeSet<_> = log.segments().iter().map(|segment| segment.base_offset()).collect();
    let mut entries = directory.entries()?;
    entries.sort_unstable_by(|left, right| left.0.cmp(&right.0));
    for (name, file_type) in entries {
        if file_type != FileType::RegularFile {
            continue;
        }
        if name.strip_suffix(STAGED).and_then(SegmentFileName::parse).is_some() {
            found.staged.push(name);
            continue;
        }
        let reason = match SegmentFileName::parse(&name) {
            _ if rejected.contains(&name) => "it contradicts the segments that it would replace",
            None if FileKind::of_name(&name).is_some() => {
                found.foreign.push(name);
                continue;
            }
            Some(SegmentFileName { stage: Stage::Deleted, .. }) => "its segment was deleted",
            Some(SegmentFileName { base_offset, kind, stage: Stage::Live })
                if kind != FileKind::Log && kind != FileKind::Snapshot && !bases.contains(&base_offset) =>
            {
                "it is an index without a .log"
            }
            _ => continue,
        };
        found.removed.push((name, reason));
    }
    Ok(found)
}
