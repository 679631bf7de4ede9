//! `.deleted` files, which a broker was about to delete when it stopped. Kafka: `LogLoader`, pass 1, deletes
//! all of them.
//!
//! After a crash of Kafka's cleaner, one can be the only copy of its records. So a segment is deleted only if
//! all its offsets are in undamaged live batches, or below the log start offset. The others stay, and the
//! plan lists them. A repair and `verify` decide by the same rule.

use std::collections::BTreeSet;
use std::collections::btree_map::{BTreeMap, Entry};
use std::ops::Range;

use super::plan::removed;
use super::quarantine::segments_with_cuts;
use super::recovery_plan::{FileChangeReason, RecoveryPlan};
use crate::error::Result;
use crate::fs::names::FileKind;
use crate::fs::{Directory, SegmentFile};
use crate::log::{LiveOffsets, Log};
use crate::segment::Segment;

/// Adds the `.deleted` files of a log to its plan. Returns the names of those that are deleted. `start`: the
/// offset below which nothing is needed, not above the log start offset of the plan.
pub(super) fn find(
    directory: &Directory,
    log: &Log,
    start: i64,
    report: &mut RecoveryPlan,
) -> Result<Vec<String>> {
    let needed = start..report.log_end_offset;
    let (kept, names) = OnlyCopies::in_log(log).split(log.deleted_files()?, &needed)?;
    let names: Vec<_> = names.into_iter().map(|file| file.name).collect();
    let kept = kept.into_iter().map(|file| directory.path_of(&file.name)).collect();
    report.file_changes.extend(names.iter().map(|name| removed(directory, name, FileChangeReason::Deleted)));
    report.kept_files = kept;
    Ok(names)
}

/// Decides which `.deleted` files may be the only copy of records.
pub(crate) struct OnlyCopies<'a> {
    log: &'a Log,
    /// The offsets of live segments, by base offset and by whether checksums were compared.
    known: BTreeMap<(i64, bool), LiveOffsets>,
    /// Whether `known` has what a repair leaves of each segment. Other segments are removed.
    is_repaired: bool,
    /// The base offsets of segments of which bytes are in `quarantine/`; `None` before it was read.
    with_cuts: Option<BTreeSet<i64>>,
}

impl<'a> OnlyCopies<'a> {
    /// Compares with the segments of a log, as they are.
    pub(crate) fn in_log(log: &'a Log) -> Self {
        Self { log, known: BTreeMap::new(), is_repaired: false, with_cuts: None }
    }

    /// Compares with what a repair leaves of the segments of a log: undamaged batches, by base offset.
    #[cfg(feature = "inspect")]
    pub(crate) fn after_repair(log: &'a Log, live: impl Iterator<Item = (i64, LiveOffsets)>) -> Self {
        let known = live.map(|(base_offset, live)| ((base_offset, true), live)).collect();
        Self { known, is_repaired: true, ..Self::in_log(log) }
    }

    /// Splits files into those of segments whose records may be nowhere else, and the others. `needed`: the
    /// offsets of records that are needed, up to the end of the log.
    pub(crate) fn split(
        &mut self,
        deleted: Vec<SegmentFile>,
        needed: &Range<i64>,
    ) -> Result<(Vec<SegmentFile>, Vec<SegmentFile>)> {
        let mut kept_bases = Vec::new();
        for file in deleted.iter().filter(|file| file.parsed.kind == FileKind::Log) {
            if !self.is_covered(file, needed)? {
                kept_bases.push(file.parsed.base_offset);
            }
        }
        // the other files of a segment are derived from its `.log`
        Ok(deleted.into_iter().partition(|file| kept_bases.contains(&file.parsed.base_offset)))
    }

    /// Whether all records of a `.log` are elsewhere, or not needed. Of a damaged one this is not known.
    ///
    /// *Cost*: headers come first, because a file that stays is found again at each opening. Its payloads,
    /// and those of the live segments with its offsets, are read if the headers say that all records are
    /// there.
    fn is_covered(&mut self, file: &SegmentFile, needed: &Range<i64>) -> Result<bool> {
        let Some(offsets) = self.log.offsets_of_file(file, false)? else { return Ok(false) };
        let base_offset = file.parsed.base_offset;
        Ok(self.has(base_offset, &offsets, needed, false)?
            && self.log.offsets_of_file(file, true)?.is_some()
            && self.has(base_offset, &offsets, needed, true)?)
    }

    /// Whether live batches have all needed offsets of a deleted segment.
    fn has(
        &mut self,
        deleted_base: i64,
        offsets: &Range<i64>,
        needed: &Range<i64>,
        is_verified: bool,
    ) -> Result<bool> {
        let log = self.log;
        let mut next = offsets.start.max(needed.start);
        for segment in log.segments().between(next, offsets.end.max(next)) {
            let merged = self.merged_run(segment, deleted_base, is_verified)?;
            let runs = merged.as_slice().iter().chain(&self.live(segment, is_verified)?.runs);
            for run in runs {
                if run.contains(&next) {
                    next = run.end.min(needed.end);
                }
            }
        }
        Ok(next >= offsets.end)
    }

    /// The offsets of which a segment of a compacted log has all records that remain: all up to its last
    /// batch, and up to the next segment if a compaction has written it instead of the deleted one, whose
    /// last records can be superseded. Its own batches show that: one at or above the base offset of a
    /// deleted segment with a later name, or one that was rewritten. `None` if the log is not compacted, and
    /// if something is damaged or was cut out: a gap can then be a loss.
    fn merged_run(
        &mut self,
        segment: &Segment,
        deleted_base: i64,
        is_verified: bool,
    ) -> Result<Option<Range<i64>>> {
        let base_offset = segment.base_offset();
        let live = self.live(segment, is_verified)?;
        let Some(end) = live.runs.last().filter(|_| live.is_whole).map(|last| last.end) else {
            return Ok(None);
        };
        if !self.log.is_compacted()? || self.has_cuts(base_offset)? {
            return Ok(None);
        }
        let is_later = deleted_base > base_offset;
        let is_merged = end > deleted_base && !segment.is_last() && (is_later || segment.is_compacted()?);
        Ok(Some(base_offset..if is_merged { segment.upper() } else { end }))
    }

    fn live(&mut self, segment: &Segment, is_verified: bool) -> Result<&LiveOffsets> {
        match self.known.entry((segment.base_offset(), is_verified || self.is_repaired)) {
            Entry::Occupied(known) => Ok(known.into_mut()),
            Entry::Vacant(unknown) if self.is_repaired => Ok(unknown.insert(LiveOffsets::default())),
            Entry::Vacant(unknown) => Ok(unknown.insert(LiveOffsets::of(segment, is_verified)?)),
        }
    }

    fn has_cuts(&mut self, base_offset: i64) -> Result<bool> {
        let with_cuts = match self.with_cuts.take() {
            Some(known) => known,
            None => segments_with_cuts(self.log.directory())?,
        };
        Ok(self.with_cuts.insert(with_cuts).contains(&base_offset))
    }
}
