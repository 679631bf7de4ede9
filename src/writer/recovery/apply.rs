//! Applies a recovery plan. Each step is durable before the next: after a crash the next open makes a new
//! plan from the files.

use super::existing_log::Recovery;
use super::plan::{EpochsFile, Plan, Work};
use super::segment_plan::SegmentPlan;
use super::torn_write::Cut;
use super::{remove_newest_first, split};
use crate::error::{Error, IoAction, Result};
use crate::fs::names::{FileKind, SegmentFileName, Stage, segment_file};
use crate::fs::{Directory, PartitionLocks, SegmentFile};
use crate::log::Replacement;
use crate::log::live_segments::LiveSegments;
use crate::record::BatchBuilder;
use crate::segment::SegmentAppender;
use crate::state::checkpoint::{Checkpoint, DurableOffsetFile};
use crate::state::clean_marker::CleanMarker;
use crate::state::leader_epochs::{LEADER_EPOCH_CHECKPOINT, LeaderEpochs};
use crate::state::{truncation_count, truncation_gaps};
use crate::writer::ends::Ends;
use crate::writer::partition::Partition;
use crate::writer::poison::is_full;
use crate::writer::producers::{NamedProducers, Producers};
use crate::writer::sessions::Sessions;
use crate::writer::{WriterMetrics, WriterOptions};

/// The log after recovery.
#[derive(Debug)]
struct Recovered {
    /// The base offsets of all segments but the active one.
    sealed: Vec<i64>,
    active: SegmentAppender,
    data_end: i64,
    log_end_offset: i64,
    log_start_offset: i64,
    epochs: LeaderEpochs,
    producers: Producers,
}

/// Applies the plan and opens the log.
pub(super) fn apply(directory: Directory, plan: Plan, options: &WriterOptions) -> Result<Partition> {
    let random = options.random | 1;
    let jitter = options.config.random_segment_jitter(random.cast_signed());
    begin(&directory, &plan)?;
    let recovered = match plan.work {
        Work::Create { removed, log_start_offset, producers } => {
            // also indexes without a `.log` at the new log start: after a crash they would count as the new
            // segment's
            let orphans = has_indexes(&directory, log_start_offset)?.then_some(log_start_offset);
            remove_newest_first(&directory, removed.into_iter().rev().chain(orphans))?;
            create(&directory, options, log_start_offset, producers, jitter)?
        }
        Work::Recover(recovery) => recover(&directory, options, *recovery, jitter)?,
    };
    let Recovered { sealed, active, data_end, log_end_offset, log_start_offset, epochs, producers } =
        recovered;
    let durable_offset_file = DurableOffsetFile::open(&directory)?;
    let bases = sealed.iter().copied().chain([active.base_offset()]).collect();
    let live =
        LiveSegments::new(bases).map_err(|error| Error::io(directory.path(), IoAction::WatchForks, error))?;
    let mut partition = Partition {
        config: options.config.clone(),
        max_batch_bytes: options.max_batch_bytes,
        clock: options.clock,
        leader_epoch: plan.leader_epoch,
        epochs,
        producers,
        sessions: Sessions::default(),
        sealed: sealed.into_iter().collect(),
        lock_inode: directory.identity_of(PartitionLocks::NAME)?.map(|lock| lock.inode),
        active,
        live,
        ends: Ends::recovered(log_start_offset, data_end, log_end_offset),
        durable_offset_file,
        data_directory: plan.data_directory,
        truncations: 0,
        builder: BatchBuilder::new(),
        stamped: Vec::new(),
        random,
        metrics: WriterMetrics::default(),
        is_closed: false,
        directory,
    };
    partition.make_durable(plan.epochs_file)?;
    remove_deleted(&partition.directory, &plan.deleted)?;
    Ok(partition)
}

/// Removes the `.deleted` files, once the log is durable without them.
fn remove_deleted(directory: &Directory, names: &[String]) -> Result<()> {
    names.iter().try_for_each(|name| directory.remove(name))?;
    if names.is_empty() { Ok(()) } else { directory.sync() }
}

/// Whether there is an index of a segment.
fn has_indexes(directory: &Directory, base_offset: i64) -> Result<bool> {
    for kind in [FileKind::OffsetIndex, FileKind::TimeIndex, FileKind::TransactionIndex] {
        if directory.identity_of(&segment_file(base_offset, kind))?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The first changes: removes the markers of a clean close, and notes which `.deleted` files are kept before
/// anything is taken out of the log, durably.
fn begin(directory: &Directory, plan: &Plan) -> Result<()> {
    CleanMarker::remove(directory)?;
    plan.staged.iter().try_for_each(|name| directory.remove(name))?;
    if let Some(data_directory) = &plan.data_directory {
        data_directory.remove_clean_marker()?;
    }
    if let Some(kept) = &plan.kept {
        kept.store(directory)?;
    }
    match &plan.topic_id {
        Some(id) => id.write(directory),
        None => Ok(()),
    }
}

/// Creates an empty log that starts at an offset.
fn create(
    directory: &Directory,
    options: &WriterOptions,
    start: i64,
    named: NamedProducers,
    jitter_ms: i64,
) -> Result<Recovered> {
    let layout = Partition::layout(&options.config);
    let active = SegmentAppender::create(directory, start, &layout, (options.clock)(), jitter_ms)?;
    if named == NamedProducers::Kept {
        // before the checkpoint that no longer says so: without a segment, the next open would forget them
        directory.sync()?;
    }
    Ok(Recovered {
        sealed: Vec::new(),
        active,
        data_end: start,
        log_end_offset: start,
        log_start_offset: start,
        epochs: LeaderEpochs::default(),
        producers: Producers::of_new_log(directory, start, options.producer_id_expiration_ms, named)?,
    })
}

fn recover(
    directory: &Directory,
    options: &WriterOptions,
    recovery: Recovery,
    jitter_ms: i64,
) -> Result<Recovered> {
    let Recovery {
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
    } = recovery;
    let staged_producers = producers.stage(directory)?;
    staged_producers.remove(directory)?;
    partly_replaced.iter().try_for_each(|kept| kept.keep(directory))?;
    finish_replacement(directory, &replacement, replaced)?;
    if let Some(cut) = cut {
        cut_torn_write(directory, &cut)?;
    }
    let mut bases = Vec::with_capacity(segments.len());
    for segment in segments {
        if segment.is_unclean() {
            // the last process may not have synced it, and from now on it counts as durable
            directory.open_writable(&segment_file(segment.base_offset, FileKind::Log))?.sync()?;
        }
        match &segment.scanned {
            Some(scanned) if scanned.is_overflowed(segment.base_offset) => {
                if let (true, Some(checkpoint)) = (bases.is_empty(), checkpoint) {
                    // the first part may have a higher base offset than the segment: there is no record
                    // between them
                    Checkpoint { log_start_offset, ..checkpoint }.write(directory)?;
                }
                split::split(directory, segment.base_offset, &scanned.parts, &segment.transaction_indexes)?;
                bases.extend(scanned.parts.iter().map(|part| part.base_offset));
            }
            _ => {
                write_indexes(directory, &segment)?;
                bases.push(segment.base_offset);
            }
        }
    }
    let base_offset = bases.pop().unwrap_or(log_start_offset);
    let layout = Partition::layout(&options.config);
    let now = (options.clock)();
    let active = SegmentAppender::open(directory, base_offset, last_state, &layout, now, jitter_ms)?;
    active.log().sync()?;
    let producers = staged_producers.put(directory)?;
    Ok(Recovered { sealed: bases, active, data_end, log_end_offset, log_start_offset, epochs, producers })
}

/// Deletes the files of an uncommitted replacement, or puts a committed one in place. `replaced`: live files
/// that it replaces, by base offset. Kafka: `LogLoader`, passes 1 to 3.
pub(crate) fn finish_replacement(
    directory: &Directory,
    replacement: &Replacement,
    mut replaced: Vec<SegmentFile>,
) -> Result<()> {
    for name in &replacement.uncommitted {
        directory.remove(name)?;
        // a .swap that reappears after a crash, without its .cleaned, would count as committed
        directory.sync()?;
    }
    if replacement.committed.is_empty() {
        return Ok(());
    }
    // before the renames: a live segment that was replaced would overlap its replacement
    let logs = replaced.iter().filter(|file| file.parsed.kind == FileKind::Log);
    let last = logs.map(|file| file.parsed.base_offset).max();
    // deleted last: it shows the end offset of the replaced segments
    let rest = replaced.split_off(replaced.partition_point(|file| Some(file.parsed.base_offset) < last));
    for files in [replaced, rest] {
        for file in files {
            directory.remove(&file.name)?;
        }
        directory.sync()?;
    }
    for segment in
        replacement.committed.chunk_by(|file, next| file.parsed.base_offset == next.parsed.base_offset)
    {
        let (log, indexes) = segment.iter().partition::<Vec<_>, _>(|file| file.parsed.kind == FileKind::Log);
        for files in [log, indexes] {
            for file in files {
                let live = SegmentFileName { stage: Stage::Live, ..file.parsed };
                directory.rename(&file.name, &live.to_string())?;
            }
            // in ascending order: a live segment between two `.swap` segments would be treated as replaced,
            // and so would an index without its `.log`
            directory.sync()?;
        }
    }
    Ok(())
}

/// Copies what is cut to quarantine, removes the segments after the torn write, and cuts the segment with the
/// torn write.
fn cut_torn_write(directory: &Directory, cut: &Cut) -> Result<()> {
    cut.kept.iter().try_for_each(|kept| kept.keep(directory))?;
    remove_newest_first(directory, cut.removed.iter().rev().copied())?;
    let file = directory.open_writable(&segment_file(cut.base_offset, FileKind::Log))?;
    file.set_size(cut.size)?;
    file.sync()
}

/// Writes the stale indexes of a segment that was read, and syncs the others.
fn write_indexes(directory: &Directory, segment: &SegmentPlan) -> Result<()> {
    let is_stale = |kind| segment.rebuilt.iter().any(|(stale, _)| *stale == kind);
    for (base_offset, entries) in &segment.transaction_indexes {
        let name = segment_file(*base_offset, FileKind::TransactionIndex);
        if is_stale(FileKind::TransactionIndex) {
            directory.replace(&name, entries)?;
        } else if directory.identity_of(&name)?.is_some() {
            // with its name: a missing file is one without entries
            directory.open_writable(&name)?.sync()?;
            directory.sync()?;
        }
    }
    let Some([part, ..]) = segment.scanned.as_ref().map(|scanned| &scanned.parts[..]) else { return Ok(()) };
    for (kind, bytes) in part.indexes.files() {
        let name = segment_file(segment.base_offset, kind);
        if is_stale(kind) {
            replace_index(directory, &name, bytes)?;
        } else {
            directory.open_writable(&name)?.sync()?;
        }
    }
    Ok(())
}

/// Replaces an index as a whole: an empty file would count as an index without entries, and a reader may have
/// mapped the old file. On a disk without space for both, the old one is removed first: the next opening
/// builds a missing index again.
fn replace_index(directory: &Directory, name: &str, bytes: &[u8]) -> Result<()> {
    match directory.replace(name, bytes) {
        Err(error) if is_full(&error) => {
            directory.remove(name)?;
            directory.sync()?;
            directory.replace(name, bytes)
        }
        replaced => replaced,
    }
}

impl Partition {
    /// Makes the recovered log durable, and writes the files with its offsets and epochs.
    fn make_durable(&mut self, epochs_file: EpochsFile) -> Result<()> {
        truncation_gaps::complete(&self.directory)?;
        truncation_count::complete(&self.directory)?;
        // this lowers it only if no acknowledged record was lost: `preconditions` checks that
        self.durable_offset_file.set(self.ends.data_end())?;
        match epochs_file {
            EpochsFile::Keep => {}
            EpochsFile::Create => drop(self.directory.create(LEADER_EPOCH_CHECKPOINT)?),
            EpochsFile::Replace => self.write_epochs()?,
        }
        if let Some(data_directory) = &self.data_directory {
            data_directory.lower(self.ends.log_start_offset(), self.ends.log_end_offset())?;
        }
        let (start, end) = (self.ends.log_start_offset(), self.ends.log_end_offset());
        self.cleaner_checkpoint().reset_beyond(start, end)?;
        // its directory sync also makes the names of new files durable
        self.write_checkpoint(self.ends.checkpoint())
    }
}
