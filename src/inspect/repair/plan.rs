//! Makes the plan: reads everything, changes nothing.

use std::ops::Range;
use std::path::PathBuf;

use super::RepairOptions;
use super::contents::Contents;
use super::decide::{Taken, Target, decide};
use super::derived::{Derived, IndexNames, NewSegment};
use super::epochs;
use super::leftovers::{self, Leftovers, MissingStart};
use super::producer_files::{self, KeptSegment, ProducerFiles, Stale};
use super::repair_plan::{LostRange, RepairAction, RepairActionKind, RepairPlan, RepairPolicy};
use super::survey::{Survey, survey};
use crate::error::{Error, Malformed, Result};
use crate::fs::names::{FileKind, segment_file, segment_files_of};
use crate::fs::{Directory, SegmentFile};
use crate::index::due_entries::EntryRule;
use crate::inspect::internal_topics::is_topic_compacted;
use crate::inspect::rebuild::entry_rule;
use crate::log::{Log, LogOptions};
use crate::segment::SCAN_READ;
use crate::state::checkpoint::{CHECKPOINT, Checkpoint};
use crate::state::clean_marker::{CLEAN, CleanMarker, MissingSegment, durable_offset};
use crate::state::data_directory::DataDirectory;
use crate::state::leader_epochs::{LEADER_EPOCH_CHECKPOINT, LeaderEpochs};
use crate::types::Io;
use crate::writer::{OnlyCopies, Quarantined, refuse_missing_start, refuse_only_copies, refuse_remote_start};

/// A plan: the public report, and the inputs of `apply`.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) report: RepairPlan,
    pub(super) data_directory: Option<DataDirectory>,
    pub(super) checkpoint: Option<Checkpoint>,
    pub(super) quarantined: Vec<Quarantined>,
    pub(super) leftovers: Leftovers,
    /// Segments that are removed, ascending.
    pub(super) removed_segments: Vec<i64>,
    /// Segments whose `.log` or indexes are replaced, ascending.
    pub(super) mended: Vec<Mended>,
    pub(super) producer_files: ProducerFiles,
    pub(super) epochs: Option<LeaderEpochs>,
    /// The durable offset to write.
    pub(super) durable: Option<i64>,
    pub(super) log_start_offset: i64,
    /// How indexes are filled.
    pub(super) rule: EntryRule,
}

/// A segment whose files are replaced.
#[derive(Debug)]
pub(super) struct Mended {
    pub(super) base_offset: i64,
    pub(super) contents: Contents,
    /// Whether the `.log` is replaced.
    pub(super) is_changed: bool,
    /// The indexes that are built.
    pub(super) stale: Vec<FileKind>,
}

/// How the log is opened: nothing is mapped, because files are replaced.
pub(super) fn log_options(options: &RepairOptions) -> LogOptions {
    let RepairOptions { max_batch_bytes, interrupt, .. } = *options;
    LogOptions { io: Io::Pread, max_batch_bytes, interrupt, is_topic_compacted, ..LogOptions::default() }
}

/// Makes the plan. `from_disk`: reads the `.log` files from the disk and not from the page cache, before a
/// repair.
pub(super) fn plan(directory: &Directory, options: &RepairOptions, from_disk: bool) -> Result<Plan> {
    let checkpoint = Checkpoint::read(directory)?;
    if checkpoint.is_some_and(|checkpoint| checkpoint.starting_at.is_some()) {
        let expected = "a log that is not being emptied (open it with a LogWriter once, which finishes that)";
        return Err(Malformed::new(expected, CHECKPOINT).at(directory.path_of(CHECKPOINT), 0, None));
    }
    let data_directory = DataDirectory::around(directory)?;
    let log = Log::open_in(directory.clone(), log_options(options))?;
    let (rule, _) = entry_rule(&log, options.config.as_ref())?;
    let mut leftovers = leftovers::find(directory, &log, options.policy)?;
    refuse_only_copies(&log, &leftovers.replacement)?;
    let marker = CleanMarker::read(directory)?;
    let mut missing = marker.as_ref().map_or(Ok(None), |marker| marker.find_missing(directory))?;
    if missing.is_some() && (!leftovers.replacement.committed.is_empty() || log.is_compacted()?) {
        // compaction by a broker merges segments
        missing = None;
    }
    let segments: Vec<_> = log.segments().iter().cloned().collect();
    refuse_remote_start(directory, &segments, data_directory.as_ref())?;
    let lost_start = refuse_missing_start(&log, checkpoint, data_directory.as_ref());
    let missing_start = MissingStart {
        lost: lost_start.as_ref().err().and_then(Error::offset),
        unfinished: log.unfinished_deletion(data_directory.as_ref())?,
    };
    if options.policy == RepairPolicy::TornTail {
        if let Some(missing) = missing {
            return Err(missing.advising("the policies salvage and kafka continue without it", directory));
        }
        lost_start?;
    } else if lost_start.is_err() && checkpoint.is_some() {
        leftovers.removed.push((CHECKPOINT.to_owned(), "records before the first segment are missing"));
    }
    let durable = durable_offset(directory, marker.as_ref())?;
    let synced = durable.or(data_directory.as_ref().map_or(Ok(None), DataDirectory::flushed_offset)?);
    let targets = decide(&log, survey(&log, from_disk)?, options.policy, synced)?;
    let mut builder = Builder {
        directory,
        options,
        actions: Vec::new(),
        lost_ranges: Vec::new(),
        quarantined: Vec::new(),
        durable: durable.filter(|_| options.policy.lowers_durable_offset()),
        synced,
        log_start_offset: log.log_start_offset(),
        missing_start,
        rule,
    };
    if let Some(MissingSegment { expected, found }) = missing {
        builder.act(RepairActionKind::RemoveFile, CLEAN, format!("expected {expected}, found {found}"));
    }
    builder.plan(&log, targets, leftovers, checkpoint, data_directory)
}

pub(super) struct Builder<'a> {
    pub(super) directory: &'a Directory,
    options: &'a RepairOptions,
    actions: Vec<RepairAction>,
    lost_ranges: Vec<LostRange>,
    quarantined: Vec<Quarantined>,
    pub(super) durable: Option<i64>,
    /// The offset up to which a writer or a broker synced the log.
    synced: Option<i64>,
    log_start_offset: i64,
    missing_start: MissingStart,
    rule: EntryRule,
}

impl Builder<'_> {
    fn plan(
        mut self,
        log: &Log,
        targets: Vec<Target>,
        mut leftovers: Leftovers,
        checkpoint: Option<Checkpoint>,
        data_directory: Option<DataDirectory>,
    ) -> Result<Plan> {
        let directory = self.directory;
        self.add_replacement(&leftovers)?;
        let before_changes = self.actions.len();
        let first_change = producer_files::first_change(&targets);
        let removed_segments = self.add_all_taken(&targets)?;
        if targets.iter().any(|target| target.survey.is_transactional) {
            self.note_lost_markers();
        }
        let kept: Vec<_> = targets.into_iter().filter(|target| !target.is_removed).collect();
        let segments: Vec<_> = kept.iter().map(|target| target.survey.base_offset()).collect();
        let kept_bytes = kept.iter().map(|target| target.contents.size()).sum();
        let (mended, mut all_derived, kept_segments) = self.add_all_stale(kept, &segments, &leftovers)?;
        let data_end = all_derived.iter().rev().find_map(|derived| derived.end_offset);
        let last_base = segments.last().copied().unwrap_or(0);
        let end_offset = data_end.unwrap_or(last_base).max(last_base);
        // a snapshot above an end that is lost is not of this log
        let lost_end = self.synced.filter(|synced| *synced > end_offset).map(|_| end_offset);
        let first_change = first_change.into_iter().chain(lost_end).min();
        let (producer_files, stale) =
            ProducerFiles::plan(directory, log, &leftovers, kept_segments, first_change, end_offset)?;
        self.add_producer_files(stale, before_changes)?;
        self.remove_leftovers(&mut leftovers, log, &segments, &mut all_derived)?;
        // from the epochs of records that a broker was deleting, recovery knows that these are needed
        let first = self.missing_start.unfinished.or(segments.first().copied()).unwrap_or(0);
        let epochs = self.add_epochs(&all_derived, first..end_offset)?;
        let durable = self.lowered_durable_offset(&all_derived, end_offset);
        self.add_checkpoints(checkpoint, data_directory.as_ref(), end_offset)?;
        let report = RepairPlan {
            path: self.directory.path().to_owned(),
            policy: self.options.policy,
            is_applied: false,
            actions: self.actions,
            lost_ranges: self.lost_ranges,
            kept_batches: all_derived.iter().map(|derived| derived.batches).sum(),
            kept_bytes,
            segments,
            log_end_offset: end_offset,
            kept_files: leftovers.kept.iter().map(|name| self.directory.path_of(name)).collect(),
            foreign_files: leftovers.foreign.iter().map(|name| self.directory.path_of(name)).collect(),
            has_clean_shutdown: data_directory.as_ref().map_or(Ok(false), DataDirectory::has_clean_marker)?,
        };
        Ok(Plan {
            report,
            data_directory,
            checkpoint,
            quarantined: self.quarantined,
            leftovers,
            removed_segments,
            mended,
            producer_files,
            epochs,
            durable,
            log_start_offset: self.log_start_offset,
            rule: self.rule,
        })
    }

    /// The index files that do not match their batches. `segments`: the base offsets of the segments that are
    /// kept.
    fn add_all_stale(
        &mut self,
        kept: Vec<Target>,
        segments: &[i64],
        leftovers: &Leftovers,
    ) -> Result<(Vec<Mended>, Vec<Derived>, Vec<KeptSegment>)> {
        let (mut mended, mut all_derived) = (Vec::new(), Vec::new());
        let mut kept_segments = Vec::with_capacity(segments.len());
        for (number, target) in kept.into_iter().enumerate() {
            let base_offset = target.survey.base_offset();
            let names = leftovers.present_names(self.directory, base_offset)?;
            let mut derived = self.derive(&target, &names, number + 1 == segments.len())?;
            derived.offsets.is_whole = target.taken.is_empty();
            self.add_stale(base_offset, &names, &derived)?;
            let is_changed = target.is_changed();
            kept_segments.push(KeptSegment {
                base_offset,
                upper: segments.get(number + 1).copied().unwrap_or(i64::MAX),
                end_offset: derived.end_offset.unwrap_or(base_offset),
                has_producers: derived.has_producers,
                contents: target.contents.clone(),
            });
            if is_changed || !derived.stale.is_empty() {
                mended.push(Mended {
                    base_offset,
                    contents: target.contents,
                    is_changed,
                    stale: derived.stale.clone(),
                });
            }
            all_derived.push(derived);
        }
        Ok((mended, all_derived, kept_segments))
    }

    /// What is taken out of each `.log`; returns the segments that are removed.
    fn add_all_taken(&mut self, targets: &[Target]) -> Result<Vec<i64>> {
        let mut removed = Vec::new();
        for target in targets {
            for taken in &target.taken {
                self.add_taken(&target.survey, taken)?;
            }
            if target.is_removed {
                removed.push(target.survey.base_offset());
                for name in segment_files_of(target.survey.base_offset()) {
                    if FileKind::of_name(&name) != Some(FileKind::Log) {
                        self.quarantine_file(&name, &name)?;
                    }
                }
            }
        }
        Ok(removed)
    }

    pub(super) fn act(&mut self, kind: RepairActionKind, name: &str, reason: impl Into<String>) {
        self.actions.push(RepairAction {
            kind,
            file: self.directory.path_of(name),
            start_position: 0,
            end_position: 0,
            reason: reason.into(),
            quarantine: None,
        });
    }

    /// Plans a copy of a whole file.
    fn quarantine_file(&mut self, name: &str, live_name: &str) -> Result<Option<PathBuf>> {
        if self.directory.identity_of(name)?.is_none() {
            return Ok(None);
        }
        let found = Quarantined::find_range(self.directory, name, live_name, 0..u64::MAX)?;
        let path = found.as_ref().map(|found| found.path(self.directory));
        self.quarantined.extend(found);
        Ok(path)
    }

    fn remove_file(&mut self, name: &str, reason: &str) -> Result<()> {
        let size = self.directory.identity_of(name)?.map_or(0, |file| file.size);
        let quarantine = self.quarantine_file(name, name)?;
        self.actions.push(RepairAction {
            kind: RepairActionKind::RemoveFile,
            file: self.directory.path_of(name),
            start_position: 0,
            end_position: size,
            reason: reason.to_owned(),
            quarantine,
        });
        Ok(())
    }

    /// Files that do not belong to the log. `segments`: those that are kept, with what is derived from each.
    fn remove_leftovers(
        &mut self,
        leftovers: &mut Leftovers,
        log: &Log,
        segments: &[i64],
        all_derived: &mut [Derived],
    ) -> Result<()> {
        let live = all_derived.iter_mut().map(|derived| std::mem::take(&mut derived.offsets));
        let copies = OnlyCopies::after_repair(log, segments.iter().copied().zip(live))?;
        leftovers.keep_only_copies(log, copies, &self.missing_start)?;
        leftovers.removed.iter().try_for_each(|(name, reason)| self.remove_file(name, reason))
    }

    /// Files of an interrupted compaction or split.
    fn add_replacement(&mut self, leftovers: &Leftovers) -> Result<()> {
        for name in &leftovers.replacement.uncommitted {
            self.remove_file(name, "an interrupted compaction or split wrote it")?;
        }
        for SegmentFile { name, .. } in &leftovers.replaced {
            self.remove_file(name, "a compaction or a split replaces it")?;
        }
        for SegmentFile { name, .. } in &leftovers.replacement.committed {
            self.act(RepairActionKind::FinishReplacement, name, "a compaction or a split is committed");
        }
        Ok(())
    }

    /// Says of what is lost that the marker of a transaction may have been there.
    fn note_lost_markers(&mut self) {
        for lost in &mut self.lost_ranges {
            lost.reason.push_str(
                "; the marker of a transaction may have been there: then its records, also aborted ones, count as those of the \
                 producer's next transaction",
            );
        }
    }

    fn add_taken(&mut self, survey: &Survey, taken: &Taken) -> Result<()> {
        let live = segment_file(survey.base_offset(), FileKind::Log);
        let is_kept_elsewhere = taken.kind != RepairActionKind::MoveBatch;
        let quarantined = if is_kept_elsewhere {
            Quarantined::find_range(self.directory, &survey.name(), &live, taken.start..taken.end)?
        } else {
            None
        };
        let quarantine = quarantined.as_ref().map(|found| found.path(self.directory));
        self.quarantined.extend(quarantined);
        let file = self.directory.path_of(&live);
        if let Some((start_offset, end_offset)) = taken.lost {
            self.lost_ranges.push(LostRange {
                file: file.clone(),
                start_position: taken.start,
                end_position: taken.end,
                start_offset,
                end_offset,
                reason: taken.reason.clone(),
                quarantine: quarantine.clone(),
            });
        }
        self.actions.push(RepairAction {
            kind: taken.kind,
            file,
            start_position: taken.start,
            end_position: taken.end,
            reason: taken.reason.clone(),
            quarantine,
        });
        Ok(())
    }

    fn derive(&self, target: &Target, names: &IndexNames, is_last: bool) -> Result<Derived> {
        let base_offset = target.survey.base_offset();
        let mut log = target.survey.segment.log_file(SCAN_READ)?;
        let segment = NewSegment {
            directory: self.directory,
            base_offset,
            contents: &target.contents,
            rule: self.rule,
            is_last,
        };
        segment.derive(names, self.durable, &mut log)
    }

    fn add_stale(&mut self, base_offset: i64, names: &IndexNames, derived: &Derived) -> Result<()> {
        for kind in &derived.stale {
            let name = segment_file(base_offset, *kind);
            let present =
                names.iter().find(|(named, _)| named == kind).and_then(|(_, present)| present.as_ref());
            let (size, quarantine) = match present {
                Some(present) => (
                    self.directory.identity_of(present)?.map(|file| file.size),
                    self.quarantine_file(present, &name)?,
                ),
                None => (None, None),
            };
            let reason = match size {
                None => "the file is missing",
                Some(0) => "the file has no entry",
                Some(_) if derived.untrimmed.contains(kind) => {
                    "its entries are right, and a broker takes the space after them for entries"
                }
                Some(_) => "its entries do not match the batches",
            };
            self.actions.push(RepairAction {
                kind: RepairActionKind::Rebuild,
                file: self.directory.path_of(&name),
                start_position: 0,
                end_position: size.unwrap_or(0),
                reason: reason.to_owned(),
                quarantine,
            });
        }
        Ok(())
    }

    /// Transaction indexes and snapshots. `at`: the number of actions that are made before them.
    fn add_producer_files(&mut self, stale: Vec<Stale>, at: usize) -> Result<()> {
        let mut actions = Vec::with_capacity(stale.len());
        for Stale { kind, name, present, reason } in stale {
            let (size, quarantine) = match present {
                Some(present) => (
                    self.directory.identity_of(&present)?.map_or(0, |file| file.size),
                    self.quarantine_file(&present, &name)?,
                ),
                None => (0, None),
            };
            actions.push(RepairAction {
                kind,
                file: self.directory.path_of(&name),
                start_position: 0,
                end_position: size,
                reason: reason.to_owned(),
                quarantine,
            });
        }
        self.actions.splice(at..at, actions);
        Ok(())
    }

    fn add_epochs(&mut self, all_derived: &[Derived], offsets: Range<i64>) -> Result<Option<LeaderEpochs>> {
        let of_batches = epochs::epochs_of(all_derived.iter());
        let Some((wanted, reason)) = epochs::new_epochs(self.directory, &of_batches, offsets)? else {
            return Ok(None);
        };
        let name = LEADER_EPOCH_CHECKPOINT;
        let size = self.directory.identity_of(name)?.map_or(0, |file| file.size);
        let quarantine = self.quarantine_file(name, name)?;
        self.actions.push(RepairAction {
            kind: RepairActionKind::ReplaceLeaderEpochs,
            file: self.directory.path_of(name),
            start_position: 0,
            end_position: size,
            reason,
            quarantine,
        });
        Ok(Some(wanted))
    }
}

impl Leftovers {
    /// The present names of a segment's index files, as they are after the replacement is finished.
    fn present_names(&self, directory: &Directory, base_offset: i64) -> Result<IndexNames> {
        let kinds = [FileKind::OffsetIndex, FileKind::TimeIndex];
        kinds.into_iter().map(|kind| Ok((kind, self.present_name(directory, base_offset, kind)?))).collect()
    }

    /// The present name of a file of a segment; `None` if there is none after the replacement is finished.
    pub(super) fn present_name(
        &self,
        directory: &Directory,
        base_offset: i64,
        kind: FileKind,
    ) -> Result<Option<String>> {
        match self.replacement.present_name(base_offset, kind) {
            Some(name) if directory.identity_of(&name)?.is_some() => Ok(Some(name)),
            _ => Ok(None),
        }
    }
}
