//! The plan for an existing log: which segments are read, what is cut, which indexes are rebuilt.

use std::cell::OnceCell;
use std::sync::Arc;

use super::quarantine::Quarantined;
use super::recovery_plan::{RecoveryCut, RecoveryPlan};
use super::scan_segment::{self, Scanned};
use super::segment_plan::SegmentPlan;
use super::torn_write::{self, Cut, CutRange};
use super::{clean_shutdown, preconditions};
use crate::config::INDEX_INTERVAL;
use crate::error::{Error, Result};
use crate::fs::names::{FileKind, segment_file};
use crate::fs::{Directory, SegmentFile};
use crate::index::due_entries::EntryRule;
use crate::log::{IntervalSource, Log, Replacement, shown_interval};
use crate::segment::{EpochsBefore, Segment, SegmentState};
use crate::state::checkpoint::{Checkpoint, DurableOffsetFile};
use crate::state::clean_marker::{CleanMarker, durable_offset};
use crate::state::data_directory::DataDirectory;
use crate::state::leader_epochs::LeaderEpochs;
use crate::state::truncation_count;
use crate::writer::WriterOptions;
use crate::writer::partition::Partition;
use crate::writer::producers::ProducerPlan;

/// The recovery of an existing log.
#[derive(Debug)]
pub(super) struct Recovery {
    /// The checkpoint in the directory.
    pub(super) checkpoint: Option<Checkpoint>,
    /// An interrupted replacement of segments. It is finished or undone first.
    pub(super) replacement: Replacement,
    /// Live files that the replacement replaces.
    pub(super) replaced: Vec<SegmentFile>,
    /// The quarantined bytes of a segment that the replacement covers only in part.
    pub(super) partly_replaced: Vec<Quarantined>,
    /// The remaining segments, ascending.
    pub(super) segments: Vec<SegmentPlan>,
    pub(super) cut: Option<Cut>,
    /// The state of the last segment, or of its last part.
    pub(super) last_state: SegmentState,
    pub(super) data_end: i64,
    pub(super) log_end_offset: i64,
    pub(super) log_start_offset: i64,
    pub(super) epochs: LeaderEpochs,
    pub(super) producers: ProducerPlan,
}

/// The input of the plan.
pub(super) struct Existing<'a> {
    pub(super) directory: &'a Directory,
    pub(super) options: &'a WriterOptions,
    checkpoint: Option<Checkpoint>,
    data_directory: Option<&'a DataDirectory>,
    log: &'a Log,
    pub(super) segments: Vec<Arc<Segment>>,
    pub(super) replacement: Replacement,
    pub(super) replaced: Vec<SegmentFile>,
    /// See [`Existing::interval`].
    interval: OnceCell<(u64, IntervalSource)>,
}

/// The remaining segments, and what is cut.
struct Decision {
    closed_cleanly: bool,
    segments: Vec<SegmentPlan>,
    cut: Option<Cut>,
    cuts: Vec<RecoveryCut>,
    data_end: i64,
}

/// Makes the plan for a log.
pub(super) fn plan(
    directory: &Directory,
    options: &WriterOptions,
    checkpoint: Option<Checkpoint>,
    data_directory: Option<&DataDirectory>,
    log: &Log,
) -> Result<(RecoveryPlan, Recovery)> {
    let segments = log.segments().iter().cloned().collect();
    let replacement = log.replacement()?;
    replacement.ensure_consistent(directory)?;
    let replaced = replaced(directory, &replacement)?;
    let interval = OnceCell::new();
    Existing {
        directory,
        options,
        checkpoint,
        data_directory,
        log,
        segments,
        replacement,
        replaced,
        interval,
    }
    .plan()
}

impl Existing<'_> {
    fn plan(self) -> Result<(RecoveryPlan, Recovery)> {
        self.ensure_replacement_is_valid()?;
        let recovery_point = self.recovery_point()?;
        let Decision { closed_cleanly, mut segments, cut, mut cuts, data_end } =
            self.decide(recovery_point)?;
        let bases: Vec<_> = segments.iter().flat_map(SegmentPlan::base_offsets).collect();
        let stored_start = self.stored_start_offset(data_end)?;
        let log_start_offset = bases.first().map_or(stored_start, |first| stored_start.max(*first));
        let log_end_offset = data_end.max(log_start_offset);
        let in_deletion = self.log.unfinished_deletion(self.data_directory)?;
        let epochs_start = in_deletion.map_or(log_start_offset, |start| start.min(log_start_offset));
        let epochs = self.epochs(&segments, epochs_start, log_end_offset)?;
        let last_state = self.state_of_last(&segments)?;
        let ends = (stored_start, log_start_offset, log_end_offset);
        let producers = self.producers(&mut segments, ends, closed_cleanly)?;
        let mut partly_replaced = Vec::new();
        if let Some(base_offset) = self.replacement.partly_replaced {
            cuts.insert(0, self.cut_of_replaced(base_offset, &mut partly_replaced)?);
        }
        let (index_interval_bytes, interval_source) = self.interval()?;
        let report = RecoveryPlan {
            path: self.directory.path().to_owned(),
            closed_cleanly,
            recovery_point,
            log_start_offset,
            log_end_offset,
            segments: bases,
            index_interval_bytes,
            interval_source,
            cuts,
            rebuilt_indexes: self.rebuilt_indexes(&segments),
            file_changes: self.file_changes(),
            splits: self.splits(&segments),
            kept_files: Vec::new(),
            rewrites_leader_epochs: false,
        };
        let Self { checkpoint, replacement, replaced, .. } = self;
        let recovery = Recovery {
            checkpoint,
            replacement,
            replaced,
            partly_replaced,
            segments,
            cut,
            last_state,
            data_end,
            log_end_offset,
            log_start_offset,
            epochs,
            producers,
        };
        Ok((report, recovery))
    }

    /// Decides which segments remain, and what is cut.
    fn decide(&self, recovery_point: i64) -> Result<Decision> {
        let marker = CleanMarker::read(self.directory)?;
        let durable = durable_offset(self.directory, marker.as_ref())?;
        let Self { directory, segments, checkpoint, data_directory, log, .. } = self;
        preconditions::refuse_missing_start(log, *checkpoint, *data_directory)?;
        preconditions::refuse_remote_start(directory, segments, *data_directory)?;
        preconditions::refuse_only_copies(log, &self.replacement)?;
        let interval = marker.as_ref().and_then(CleanMarker::index_interval_bytes);
        let closed_cleanly = self.is_closed_cleanly(marker)?;
        if closed_cleanly && !self.options.config.states(INDEX_INTERVAL) {
            let default = self.options.config.index_interval_bytes.into();
            let known = interval.map(|interval| (interval, IntervalSource::Inferred));
            self.interval.get_or_init(|| known.unwrap_or((default, IntervalSource::Default)));
        }
        let from = self.first_unclean(closed_cleanly, recovery_point);
        let (before, unclean) = self.segments.split_at_checked(from).unwrap_or_default();
        // without the clean marker: what follows its end offset was written by a broker, and is not always a
        // torn write
        let synced = DurableOffsetFile::read(self.directory)?;
        let mut scanned = self.scan_unclean(before.last(), unclean, synced)?;
        let (cut, cuts) = torn_write::find(self.directory, unclean, &mut scanned, synced)?.unzip();
        let data_end = match (scanned.last(), before.last()) {
            (Some(scanned), _) => scanned.end_offset,
            (None, Some(last)) => last.end_offset()?,
            // the first segment is never removed as a whole
            (None, None) => return Err(Error::config("path", "a directory with a segment", "none")),
        };
        if let Some(durable) = durable.filter(|durable| *durable > data_end) {
            return Err(preconditions::missing_end(self.directory, durable, data_end));
        }
        // of a log that a writer had, its own files tell
        if let (None, Some(data_directory)) = (durable, data_directory) {
            let end = data_end.max(self.stored_start_offset(data_end)?);
            data_directory.refuse_missing_end(directory, end)?;
        }
        let segments = self.segment_plans(before, unclean, scanned, closed_cleanly)?;
        Ok(Decision { closed_cleanly, segments, cut, cuts: cuts.unwrap_or_default(), data_end })
    }

    /// The state of the last segment after recovery, or of its last part.
    fn state_of_last(&self, plans: &[SegmentPlan]) -> Result<SegmentState> {
        if let Some(part) = plans.last().and_then(|last| last.scanned.as_ref()?.parts.last()) {
            return Ok(part.state);
        }
        match plans.len().checked_sub(1).and_then(|last| self.segments.get(last)) {
            Some(last) => scan_segment::closed_state(last),
            None => Err(Error::config("path", "a directory with a segment", "none")),
        }
    }

    /// Fails if a replacement segment is damaged: the segments that it replaces may be valid.
    fn ensure_replacement_is_valid(&self) -> Result<()> {
        for (base_offset, _) in &self.replacement.ranges {
            for segment in self.segments.iter().filter(|segment| segment.base_offset() == *base_offset) {
                if let Some(cut) = self.scan(segment, -1, None)?.cut {
                    return Err(segment.corrupt(&cut.damage));
                }
            }
        }
        Ok(())
    }

    fn recovery_point(&self) -> Result<i64> {
        Ok(match (self.checkpoint, self.data_directory) {
            (Some(checkpoint), _) => checkpoint.recovery_point,
            (None, Some(data_directory)) => data_directory.recovery_point()?.unwrap_or(0),
            (None, None) => 0,
        })
    }

    fn is_closed_cleanly(&self, marker: Option<CleanMarker>) -> Result<bool> {
        let Some(marker) = marker else { return Ok(false) };
        // compaction by a broker merges segments; what is not committed has replaced nothing
        if !self.options.config.cleanup_policy.compact && self.replacement.committed.is_empty() {
            marker.refuse_missing(self.directory)?;
        }
        clean_shutdown::refuse_other_end(&marker, self.directory, &self.segments)?;
        clean_shutdown::is_unchanged(&marker, self.directory, &self.segments)
    }

    /// The position of the first segment that must be read: the segment with the recovery point.
    fn first_unclean(&self, closed_cleanly: bool, recovery_point: i64) -> usize {
        if closed_cleanly {
            return self.segments.len();
        }
        self.segments.partition_point(|segment| segment.base_offset() <= recovery_point).saturating_sub(1)
    }

    pub(super) fn scan(
        &self,
        segment: &Segment,
        epochs: impl Into<EpochsBefore>,
        synced: Option<i64>,
    ) -> Result<Scanned> {
        let (interval_bytes, _) = self.interval()?;
        let rule = EntryRule { interval_bytes, ..Partition::entry_rule(&self.options.config) };
        scan_segment::scan(segment, epochs, synced, rule, self.options.interrupt)
    }

    /// The interval of index entries, and where it is from: the settings, the writer that closed the log, or
    /// the existing indexes of a log that no `LogWriter` has opened, which are read when the interval is
    /// first asked for. After a crash of a writer, what they show may depend on where a recovery was
    /// interrupted.
    fn interval(&self) -> Result<(u64, IntervalSource)> {
        if let Some(known) = self.interval.get() {
            return Ok(*known);
        }
        let config = &self.options.config;
        let found = if config.states(INDEX_INTERVAL) {
            (config.index_interval_bytes.into(), IntervalSource::Given)
        } else if truncation_count::open(self.directory)?.is_some() {
            (config.index_interval_bytes.into(), IntervalSource::Default)
        } else {
            shown_interval(self.log)?
        };
        Ok(*self.interval.get_or_init(|| found))
    }

    fn scan_unclean(
        &self,
        before: Option<&Arc<Segment>>,
        unclean: &[Arc<Segment>],
        synced: Option<i64>,
    ) -> Result<Vec<Scanned>> {
        // compaction may have removed the batch that ended there
        let synced = synced.filter(|_| !self.options.config.cleanup_policy.compact);
        let mut epochs = EpochsBefore::from(before.map_or(Ok(-1), |segment| segment.last_epoch())?);
        let mut scanned = Vec::with_capacity(unclean.len());
        for segment in unclean {
            // read from the disk: the page cache may contain bytes that could not be written
            segment.forget_cached()?;
            let found = self.scan(segment, epochs, synced)?;
            epochs = found.epochs_before_next;
            scanned.push(found);
        }
        Ok(scanned)
    }

    /// The log start offset in the checkpoints; 0 if there is none.
    pub(super) fn stored_start_offset(&self, data_end: i64) -> Result<i64> {
        let own = self.checkpoint.map_or(0, |checkpoint| checkpoint.log_start_offset);
        let broker = self.data_directory.map(DataDirectory::log_start_offset).transpose()?.flatten();
        // it is a hint: ignored if it would hide every record
        let broker = broker.filter(|start| *start <= data_end).unwrap_or(0);
        Ok(broker.max(own))
    }

    /// The history of leader epochs: from its file, as far as the log confirms it, otherwise from the
    /// batches. A file without the epoch of the last batch is outdated: batches appended with a lower
    /// epoch would be refused by readers. `start`: the offset below which no epoch begins.
    fn epochs(&self, plans: &[SegmentPlan], start: i64, log_end_offset: i64) -> Result<LeaderEpochs> {
        let text = LeaderEpochs::read_text(self.directory)?;
        let mut last = -1;
        for segment in self.segments.iter().rev() {
            last = segment.last_epoch()?;
            if last >= 0 {
                break;
            }
        }
        let from_file = text.and_then(|text| LeaderEpochs::parse(&text).ok());
        let from_file =
            from_file.filter(|epochs| last < 0 || epochs.latest().is_some_and(|latest| latest >= last));
        let mut epochs = if let Some(from_file) = from_file { from_file } else { self.epochs_of_batches()? };
        epochs.truncate_from_start(start);
        epochs.truncate_from_end(log_end_offset);
        let scanned = plans.iter().filter(|plan| plan.is_unclean()).filter_map(|plan| plan.scanned.as_ref());
        for (epoch, offset) in scanned.flat_map(|scanned| &scanned.epochs) {
            let offset = (*offset).max(start);
            // the next open would remove an epoch that begins at the log end offset
            if offset < log_end_offset && epochs.latest().is_none_or(|latest| *epoch > latest) {
                epochs.assign(*epoch, offset);
            }
        }
        // a recovery of Kafka knows only the higher epoch where they fall: a batch with it would look damaged
        if last >= 0 && epochs.latest().is_some_and(|latest| latest > last) {
            epochs = self.epochs_of_batches()?;
            epochs.truncate_from_start(start);
            epochs.truncate_from_end(log_end_offset);
        }
        Ok(epochs)
    }

    fn epochs_of_batches(&self) -> Result<LeaderEpochs> {
        let epochs = self.segments.iter().map(|segment| segment.epochs()).collect::<Result<Vec<_>>>()?;
        Ok(LeaderEpochs::of_batches(epochs.into_iter().flatten()))
    }

    fn cut_of_replaced(&self, base_offset: i64, kept: &mut Vec<Quarantined>) -> Result<RecoveryCut> {
        let reason = "a compaction or a split replaces the segment, and ends at a lower offset".to_owned();
        let range = CutRange { position: 0, start_offset: base_offset, end_offset: None, reason };
        range.of(self.directory, &segment_file(base_offset, FileKind::Log), base_offset, kept)
    }
}

/// The live files that a committed replacement replaces, by base offset.
pub(crate) fn replaced(directory: &Directory, replacement: &Replacement) -> Result<Vec<SegmentFile>> {
    if replacement.committed.is_empty() {
        return Ok(Vec::new());
    }
    let mut files = directory.segment_files()?;
    files.retain(|file| replacement.replaces(file));
    files.sort_by_key(|file| file.parsed.base_offset);
    Ok(files)
}
