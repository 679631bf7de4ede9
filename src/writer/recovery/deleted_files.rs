//! `.deleted` files, which a broker was about to delete when it stopped. Kafka: `LogLoader`, pass 1, deletes
//! all of them.
//!
//! After a crash of Kafka's cleaner, one can be the only copy of its records. So a segment is deleted only if
//! each of its records is in the log, is below the log start offset, or was truncated; the others stay, and
//! the plan lists them. A repair and `verify` decide by the same rule.
//!
//! ```text
//!   deleted, epoch 3   0 1 2 3 4 5
//!   live               0 1 2|           epoch 3     3 4 5 are only there: the file stays
//!   live               0 1 2|3 4|       epoch 5     3 4 5 were truncated: epoch 5 begins at 3
//!   live               0 1 2|   |5 6    epoch 5     3 4 are only there, because epoch 5 begins after them
//!   live               0 1 2|3 4 5|     epoch 2     the live records are older: the file stays
//! ```
//!
//! An undamaged live batch stands for a record at its offset if its leader epoch is not lower: with the same
//! epoch it is the same record, because the leader of an epoch writes each offset once. With a higher one,
//! the log was truncated there and written again, as a follower does. In one cluster epochs never fall, so
//! that a higher one in its last batch shows for the offsets after it, too, that they were truncated. No
//! checksum covers an epoch; therefore `leader-epoch-checkpoint` must confirm this.
//!
//! What is kept is noted in `.cordwood.kept`. In a compacted log, offsets may be missing, and after damage
//! was taken out nothing distinguishes a loss from a superseded record; so a file that was kept once is not
//! deleted for a gap.

use std::collections::BTreeSet;
use std::collections::btree_map::{BTreeMap, Entry};
use std::fmt::Write;
use std::ops::Range;

use super::plan::removed;
use super::quarantine::segments_with_cuts;
use super::recovery_plan::{FileChangeReason, RecoveryPlan};
use crate::error::Result;
use crate::fs::names::{FileKind, segment_file};
use crate::fs::{Directory, FileIdentity, SegmentFile};
use crate::log::{LiveOffsets, Log, OffsetRun, Replacement};
use crate::record::crc;
use crate::segment::Segment;
use crate::state::checkpoint::Checkpoint;
use crate::state::data_directory::DataDirectory;
use crate::state::kept_files::{KeptFile, KeptFiles};
use crate::state::leader_epochs::LeaderEpochs;

/// Adds the `.deleted` files of a log to its plan. Returns the names of those that are deleted, and those
/// that are kept. `start`: the offset below which nothing is needed, not above the log start offset of the
/// plan.
pub(super) fn find(
    directory: &Directory,
    log: &Log,
    start: i64,
    report: &mut RecoveryPlan,
) -> Result<(Vec<String>, KeptFiles)> {
    let deleted = log.deleted_files()?;
    if deleted.is_empty() {
        return Ok((Vec::new(), KeptFiles::default()));
    }
    let needed = start..report.log_end_offset;
    let mut copies = OnlyCopies { trusts_last_decision: true, ..OnlyCopies::in_log(log)? };
    let (kept, names) = copies.split(deleted, &needed)?;
    let names: Vec<_> = names.into_iter().map(|file| file.name).collect();
    let kept = kept.into_iter().map(|file| directory.path_of(&file.name)).collect();
    report.file_changes.extend(names.iter().map(|name| removed(directory, name, FileChangeReason::Deleted)));
    report.kept_files = kept;
    Ok((names, copies.kept))
}

/// A `.log` of a replacement that is not committed, with records that the log may not have.
pub(crate) struct UncommittedCopy {
    pub(crate) file: SegmentFile,
    pub(crate) offsets: Range<i64>,
    /// What to do, for people.
    pub(crate) advice: String,
}

/// The `.log` files of a replacement that is not committed, if valid batches of them have records that the
/// log may not have. What a crash leaves of one was written from segments that are there.
pub(crate) fn uncommitted_only_copies(log: &Log, replacement: &Replacement) -> Result<Vec<UncommittedCopy>> {
    if replacement.uncommitted.is_empty() {
        return Ok(Vec::new());
    }
    let directory = log.directory();
    let files = directory.segment_files()?.into_iter();
    let files = files
        .filter(|file| file.parsed.kind == FileKind::Log && replacement.uncommitted.contains(&file.name));
    // the first segments may be those that are missing, so that their names do not tell where the log starts
    let own = Checkpoint::read(directory)?.map(|checkpoint| checkpoint.log_start_offset);
    let lines = DataDirectory::with_lines_of(directory)?;
    let of_broker = lines.map_or(Ok(None), |lines| lines.log_start_offset())?;
    let needed = own.max(of_broker).unwrap_or(0).min(log.log_start_offset())..i64::MAX;
    let mut copies = OnlyCopies { is_after_damage: true, ..OnlyCopies::in_log(log)? };
    let mut found = Vec::new();
    for file in files {
        // it may have been removed in the meantime
        let Some(identity) = directory.identity_of(&file.name)? else { continue };
        let runs = log.valid_runs_of_file(&file)?;
        if copies.has(&file, identity, &runs, &needed, true)? {
            continue;
        }
        let (Some(first), Some(last)) = (runs.first(), runs.last()) else { continue };
        let offsets = first.offsets.start..last.offsets.end;
        let live = segment_file(file.parsed.base_offset, FileKind::Log);
        let advice = if directory.identity_of(&live)?.is_none() {
            "if it is a segment, remove the suffix from its name and from those of its indexes; otherwise, or to continue without its \
             records, move it out of the partition"
                .to_owned()
        } else {
            format!(
                "{live} exists: move this file into a directory of its own, remove the suffix there, and copy the records that only it \
                 has (cordwood cat)"
            )
        };
        found.push(UncommittedCopy { file, offsets, advice });
    }
    Ok(found)
}

/// Decides which `.deleted` files may be the only copy of records.
pub(crate) struct OnlyCopies<'a> {
    log: &'a Log,
    /// The offsets of live segments, by base offset and by whether checksums were compared.
    known: BTreeMap<(i64, bool), LiveOffsets>,
    /// Whether `known` has what a repair leaves of each segment. Other segments are removed.
    is_repaired: bool,
    /// Whether `known` has batches after damage, too.
    is_after_damage: bool,
    /// The base offsets of segments of which bytes are in `quarantine/`.
    with_cuts: BTreeSet<i64>,
    epochs: LeaderEpochs,
    kept_before: KeptFiles,
    /// Whether a file that was kept before is kept without being read, if neither it nor the sealed segments
    /// with its offsets have changed.
    trusts_last_decision: bool,
    /// The files that are kept.
    pub(crate) kept: KeptFiles,
}

impl<'a> OnlyCopies<'a> {
    /// Compares with the segments of a log, as they are.
    pub(crate) fn in_log(log: &'a Log) -> Result<Self> {
        let directory = log.directory();
        let text = LeaderEpochs::read_text(directory)?.unwrap_or_default();
        Ok(Self {
            log,
            known: BTreeMap::new(),
            is_repaired: false,
            is_after_damage: false,
            with_cuts: segments_with_cuts(directory)?,
            // without the file, nothing counts as truncated
            epochs: LeaderEpochs::parse(&text).unwrap_or_default(),
            kept_before: KeptFiles::read(directory)?,
            trusts_last_decision: false,
            kept: KeptFiles::default(),
        })
    }

    /// Compares with what a repair leaves of the segments of a log: undamaged batches, by base offset.
    #[cfg(feature = "inspect")]
    pub(crate) fn after_repair(log: &'a Log, live: impl Iterator<Item = (i64, LiveOffsets)>) -> Result<Self> {
        let known = live.map(|(base_offset, live)| ((base_offset, true), live)).collect();
        Ok(Self { known, is_repaired: true, ..Self::in_log(log)? })
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
            // it may have been removed in the meantime
            let Some(identity) = self.log.directory().identity_of(&file.name)? else { continue };
            if self.is_unchanged(file, identity, needed)? || !self.is_covered(file, identity, needed)? {
                kept_bases.push(file.parsed.base_offset);
            }
        }
        // the other files of a segment are derived from its `.log`
        Ok(deleted.into_iter().partition(|file| kept_bases.contains(&file.parsed.base_offset)))
    }

    /// Whether a file was kept, and the reasons are the same: then it is kept again.
    fn is_unchanged(
        &mut self,
        file: &SegmentFile,
        identity: FileIdentity,
        needed: &Range<i64>,
    ) -> Result<bool> {
        let Some(known) = self.kept_before.get(&file.name).copied() else { return Ok(false) };
        let is_unchanged =
            self.trusts_last_decision && known.seen == self.seen(file, identity, known.end, needed)?;
        if is_unchanged {
            self.kept.insert(&file.name, known);
        }
        Ok(is_unchanged)
    }

    /// A checksum over the names, sizes and times of the files from which the decision about a file is made.
    /// `end`: the offset after its last batch; `None` if it is damaged. Of the last segment only the name:
    /// what is appended to it has other offsets.
    fn seen(
        &self,
        file: &SegmentFile,
        identity: FileIdentity,
        end: Option<i64>,
        needed: &Range<i64>,
    ) -> Result<u32> {
        let mut text = String::new();
        // writing to a String cannot fail
        let mut add = |name: &str, identity: Option<FileIdentity>| {
            let identity = identity.map(|identity| (identity.inode, identity.size, identity.modified));
            let _ = writeln!(text, "{name} {identity:?}");
        };
        add(&file.name, Some(identity));
        let base_offset = file.parsed.base_offset;
        let Some(end) = end.map(|end| end.max(base_offset)) else { return Ok(crc::crc32c(text.as_bytes())) };
        for segment in self.log.segments().between(base_offset, end) {
            let path = segment.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let identity = self.log.directory().identity_of(&name)?;
            add(&name, identity.filter(|_| !segment.is_last()));
        }
        let epochs = self.epochs.entries().iter().filter(|(_, start)| *start < end);
        let _ = write!(text, "{} {:?}", needed.start.clamp(base_offset, end), epochs.collect::<Vec<_>>());
        Ok(crc::crc32c(text.as_bytes()))
    }

    /// Whether all records of a `.log` are elsewhere, or not needed. Of a damaged one this is not known.
    ///
    /// *Cost*: headers come first. The payloads of the file, and those of the live segments with its offsets,
    /// are read if the headers say that all records are there.
    fn is_covered(
        &mut self,
        file: &SegmentFile,
        identity: FileIdentity,
        needed: &Range<i64>,
    ) -> Result<bool> {
        let mut runs = self.log.runs_of_file(file, false)?;
        if let Some(headers) = &runs
            && self.has(file, identity, headers, needed, false)?
        {
            runs = self.log.runs_of_file(file, true)?;
            if let Some(runs) = &runs
                && self.has(file, identity, runs, needed, true)?
            {
                return Ok(true);
            }
        }
        let end = runs.map(|runs| runs.last().map_or(file.parsed.base_offset, |last| last.offsets.end));
        let seen = self.seen(file, identity, end, needed)?;
        self.kept.insert(&file.name, KeptFile { size: identity.size, end, seen });
        Ok(false)
    }

    /// Whether live batches stand for all needed records of a deleted segment.
    fn has(
        &mut self,
        file: &SegmentFile,
        identity: FileIdentity,
        runs: &[OffsetRun],
        needed: &Range<i64>,
        is_verified: bool,
    ) -> Result<bool> {
        let was_kept = self.kept_before.may_have(&file.name, identity.size);
        let merged_from = Some(file.parsed.base_offset).filter(|_| !was_kept);
        for run in runs {
            self.log.options().interrupt.check()?;
            if !self.has_run(run, needed, merged_from, is_verified)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether live batches stand for the needed records of a run. `merged_from`: the base offset of the
    /// deleted segment, if a compaction can have removed its records.
    fn has_run(
        &mut self,
        run: &OffsetRun,
        needed: &Range<i64>,
        merged_from: Option<i64>,
        is_verified: bool,
    ) -> Result<bool> {
        let log = self.log;
        let mut next = run.offsets.start.max(needed.start);
        for segment in log.segments().between(next, run.offsets.end.max(next)) {
            let merged = match merged_from {
                Some(deleted_base) => self.merged_run(segment, deleted_base, is_verified)?,
                None => None,
            };
            let stands = |live: &OffsetRun, next: i64| {
                live.offsets.contains(&next) && (live.epoch < 0 || run.epoch <= live.epoch)
            };
            if let Some(merged) = merged.filter(|merged| stands(merged, next)) {
                next = merged.offsets.end.min(needed.end);
            }
            let live = &self.live(segment, is_verified)?.runs;
            let from = live.partition_point(|live| live.offsets.end <= next);
            for live in live.get(from..).unwrap_or_default() {
                if !stands(live, next) {
                    break;
                }
                next = live.offsets.end.min(needed.end);
            }
        }
        Ok(next >= run.offsets.end || self.is_truncated(next, run.epoch, is_verified)?)
    }

    /// Whether a record was truncated: the log ends before its offset, with a higher leader epoch. Between
    /// live batches, the offset of a truncated record was written again: without a batch there, a record is
    /// missing, or a bit of the epoch in the deleted file is flipped.
    fn is_truncated(&mut self, offset: i64, epoch: i32, is_verified: bool) -> Result<bool> {
        let log = self.log;
        let is_later = |(known, start): &(i32, i64)| *known > epoch && *start <= offset;
        if epoch < 0 || !self.epochs.entries().iter().any(is_later) {
            return Ok(false);
        }
        let mut segment = log.segments().last();
        while let Some(last) = segment {
            let live = self.live(last, is_verified)?;
            if !live.is_whole {
                // it may have had the offset
                return Ok(false);
            }
            if let Some(run) = live.runs.last() {
                return Ok(run.offsets.start <= offset && run.epoch > epoch);
            }
            segment = log.segments().floor(last.base_offset() - 1);
        }
        Ok(false)
    }

    /// The offsets of which a segment of a compacted log has all records that remain: all up to its last
    /// batch, and up to the next segment if a compaction has written it instead of the deleted one, whose
    /// last records can be superseded. Its own batches show that: one at or above the base offset of a
    /// deleted segment with a later name, or one that was rewritten. The epoch is that of its last batch.
    /// `None` if the log is not compacted, and if something is damaged or was cut out: a gap can then be a
    /// loss.
    fn merged_run(
        &mut self,
        segment: &Segment,
        deleted_base: i64,
        is_verified: bool,
    ) -> Result<Option<OffsetRun>> {
        let base_offset = segment.base_offset();
        let live = self.live(segment, is_verified)?;
        let Some(last) = live.runs.last().filter(|_| live.is_whole) else { return Ok(None) };
        let (end, epoch) = (last.offsets.end, last.epoch);
        if self.with_cuts.contains(&base_offset) || !self.log.is_compacted()? {
            return Ok(None);
        }
        let is_later = deleted_base > base_offset;
        let is_merged = end > deleted_base && !segment.is_last() && (is_later || segment.is_compacted()?);
        let offsets = base_offset..if is_merged { segment.upper() } else { end };
        Ok(Some(OffsetRun { offsets, epoch }))
    }

    fn live(&mut self, segment: &Segment, is_verified: bool) -> Result<&LiveOffsets> {
        match self.known.entry((segment.base_offset(), is_verified || self.is_repaired)) {
            Entry::Occupied(known) => Ok(known.into_mut()),
            Entry::Vacant(unknown) if self.is_repaired => Ok(unknown.insert(LiveOffsets::default())),
            Entry::Vacant(unknown) if self.is_after_damage => {
                Ok(unknown.insert(LiveOffsets::of_all(segment)?))
            }
            Entry::Vacant(unknown) => Ok(unknown.insert(LiveOffsets::of(segment, is_verified)?)),
        }
    }
}
