//! Carries a plan out. Each step is durable before the next, so that what a crash leaves is planned for again.

use super::plan::{Cut, Recovery, RecoveryPlan, Work};
use super::scan_segment::IndexBytes;
use super::{quarantine, remove_newest_first, split};
use crate::error::{Error, IoAction, Result};
use crate::fs::names::{FileKind, SegmentFileName, Stage, segment_file};
use crate::fs::{Directory, STAGED};
use crate::log::Replacement;
use crate::log::live_segments::LiveSegments;
use crate::record::BatchBuilder;
use crate::segment::{SegmentAppender, TRUNCATIONS};
use crate::state::checkpoint::{Checkpoint, DurableOffsetFile};
use crate::state::clean_marker::CleanMarker;
use crate::state::leader_epochs::{LEADER_EPOCH_CHECKPOINT, LeaderEpochs};
use crate::state::partition_metadata::PARTITION_METADATA;
use crate::writer::partition::Partition;
use crate::writer::{MAX_SMALL_FILE, WriterOptions};

/// The log after the work.
#[derive(Debug)]
struct Recovered {
    /// Base offsets, but for the active segment's.
    sealed: Vec<i64>,
    active: SegmentAppender,
    data_end: i64,
    log_end_offset: i64,
    log_start_offset: i64,
    epochs: LeaderEpochs,
}

/// Does what the plan says, and opens the log.
pub(super) fn apply(directory: Directory, plan: RecoveryPlan, options: &WriterOptions) -> Result<Partition> {
    let random = options.random | 1;
    let jitter = options.config.random_segment_jitter(random.cast_signed());
    remove_marks(&directory, &plan)?;
    let recovered = match plan.work {
        Work::Begin { removed, log_start_offset } => {
            remove_newest_first(&directory, removed.into_iter().rev())?;
            begin(&directory, options, log_start_offset, jitter)?
        }
        Work::Recover(recovery) => {
            let recovered = recover(&directory, options, *recovery, jitter)?;
            recovered.active.log().sync()?;
            recovered
        }
    };
    let Recovered { sealed, active, data_end, log_end_offset, log_start_offset, epochs } = recovered;
    let durable_offset_file = DurableOffsetFile::open(&directory)?;
    let bases = sealed.iter().copied().chain([active.base_offset()]).collect();
    let live =
        LiveSegments::new(bases).map_err(|error| Error::io(directory.path(), IoAction::WatchForks, error))?;
    let mut partition = Partition {
        config: options.config.clone(),
        clock: options.clock,
        leader_epoch: plan.leader_epoch,
        epochs,
        sealed: sealed.into_iter().collect(),
        active,
        live,
        log_start_offset,
        log_end_offset,
        data_end,
        checkpoint: Checkpoint { recovery_point: log_end_offset, log_start_offset, ..Checkpoint::default() },
        durable_offset_file,
        data_directory: plan.data_directory,
        truncations: 0,
        builder: BatchBuilder::new(),
        random,
        is_closed: false,
        directory,
    };
    partition.make_durable()?;
    Ok(partition)
}

/// The first change: what says that the log was closed in order goes before it, durably.
fn remove_marks(directory: &Directory, plan: &RecoveryPlan) -> Result<()> {
    CleanMarker::remove(directory)?;
    for (name, _) in directory.entries()? {
        // as large as a segment, where a truncation did not come to its end
        if name.strip_suffix(STAGED).and_then(SegmentFileName::parse).is_some() {
            directory.remove(&name)?;
        }
    }
    if let Some(data_directory) = &plan.data_directory {
        data_directory.remove_clean_marker()?;
    }
    match &plan.topic_id {
        Some(id) => directory.replace(PARTITION_METADATA, id.to_file().as_bytes()),
        None => Ok(()),
    }
}

/// An empty log that starts at an offset.
fn begin(directory: &Directory, options: &WriterOptions, start: i64, jitter_ms: i64) -> Result<Recovered> {
    let layout = Partition::layout(&options.config);
    let active = SegmentAppender::create(directory, start, &layout, (options.clock)(), jitter_ms)?;
    Ok(Recovered {
        sealed: Vec::new(),
        active,
        data_end: start,
        log_end_offset: start,
        log_start_offset: start,
        epochs: LeaderEpochs::default(),
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
        segments,
        cut,
        held,
        data_end,
        log_end_offset,
        log_start_offset,
        epochs,
    } = recovery;
    finish_replacement(directory, &replacement)?;
    if let Some(cut) = cut {
        cut_torn_write(directory, &cut)?;
    }
    let mut bases = Vec::with_capacity(segments.len());
    for segment in segments {
        if segment.is_unclean {
            // what the process before did not live to sync; from here on it counts as durable
            directory.open_writable(&segment_file(segment.base_offset, FileKind::Log))?.sync()?;
        }
        match segment.scanned {
            Some(scanned) if scanned.is_overflowed(segment.base_offset) => {
                if let (true, Some(checkpoint)) = (bases.is_empty(), checkpoint) {
                    // the first segment may begin later than before: no record lies in between
                    Checkpoint { log_start_offset, ..checkpoint }.write(directory)?;
                }
                split::split(directory, segment.base_offset, &scanned.parts)?;
                bases.extend(scanned.parts.iter().map(|part| part.base_offset));
                continue;
            }
            Some(scanned) => {
                if let [part, ..] = &scanned.parts[..] {
                    write_indexes(directory, segment.base_offset, &part.indexes)?;
                }
            }
            None => {}
        }
        bases.push(segment.base_offset);
    }
    let base_offset = bases.pop().unwrap_or(log_start_offset);
    let layout = Partition::layout(&options.config);
    let now = (options.clock)();
    let active = SegmentAppender::open(directory, base_offset, held, &layout, now, jitter_ms)?;
    Ok(Recovered { sealed: bases, active, data_end, log_end_offset, log_start_offset, epochs })
}

/// Deletes what a replacement that does not count left, or puts one that does in its place. Kafka: `LogLoader`, passes 1 to
/// 3.
fn finish_replacement(directory: &Directory, replacement: &Replacement) -> Result<()> {
    for name in &replacement.uncommitted {
        directory.remove(name)?;
        // a .swap that is there again, without the .cleaned that it goes with, would count
        directory.sync()?;
    }
    if replacement.committed.is_empty() {
        return Ok(());
    }
    if let Some(base_offset) = replacement.partly_replaced {
        quarantine::keep(directory, base_offset, 0)?;
    }
    // before the renames: a live segment that was replaced would overlap its replacement
    let mut replaced: Vec<_> =
        directory.segment_files()?.into_iter().filter(|file| replacement.replaces(file)).collect();
    replaced.sort_by_key(|file| file.parsed.base_offset);
    let last = replaced.iter().map(|file| file.parsed.base_offset).max();
    // the last one shows up to where the others reached, so that it goes last
    let rest = replaced.split_off(replaced.partition_point(|file| Some(file.parsed.base_offset) < last));
    for files in [replaced, rest] {
        for file in files {
            directory.remove(&file.name)?;
        }
        directory.sync()?;
    }
    for segment in
        replacement.committed.chunk_by(|one, next| one.parsed.base_offset == next.parsed.base_offset)
    {
        for file in segment {
            let live = SegmentFileName { stage: Stage::Live, ..file.parsed };
            directory.rename(&file.name, &live.to_string())?;
        }
        // from the lowest up: a live segment between two .swap would be taken for one that they stand for
        directory.sync()?;
    }
    Ok(())
}

/// Cuts the log behind the data of a segment; what is cut is kept.
fn cut_torn_write(directory: &Directory, cut: &Cut) -> Result<()> {
    quarantine::keep(directory, cut.base_offset, cut.size)?;
    for base_offset in &cut.removed {
        quarantine::keep(directory, *base_offset, 0)?;
    }
    remove_newest_first(directory, cut.removed.iter().rev().copied())?;
    let file = directory.open_writable(&segment_file(cut.base_offset, FileKind::Log))?;
    file.set_size(cut.size)?;
    file.sync()
}

/// Writes both indexes of a segment, where they are not that already.
fn write_indexes(directory: &Directory, base_offset: i64, indexes: &IndexBytes) -> Result<()> {
    for (kind, bytes) in indexes.files() {
        let name = segment_file(base_offset, kind);
        if directory.identity_of(&name)?.is_some_and(|held| held.size == bytes.len() as u64) {
            let mut found = vec![0; bytes.len()];
            directory.open_file(&name)?.read_exact_at(0, &mut found)?;
            if found == *bytes {
                directory.open_writable(&name)?.sync()?;
                continue;
            }
        }
        // as a whole: one that is there and empty would be taken for one without entries, and a reader may have the old one
        // mapped
        directory.replace(&name, bytes)?;
    }
    Ok(())
}

impl Partition {
    /// Makes what was found durable, and says so.
    fn make_durable(&mut self) -> Result<()> {
        // of no use after a power loss, but what is found here is to stay so
        match self.directory.identity_of(TRUNCATIONS)? {
            Some(file) => {
                if file.size % 2 == 1 {
                    // one that did not come to its end has, by now
                    self.bump_truncation_count()?;
                }
                self.directory.open_writable(TRUNCATIONS)?.sync()?;
            }
            // an empty file is durable with its name
            None => drop(self.directory.create(TRUNCATIONS)?),
        }
        // lower than before only where nothing of what it named was lost
        self.durable_offset_file.set(self.data_end)?;
        self.write_epochs_if_changed()?;
        if let Some(data_directory) = &self.data_directory {
            data_directory.lower(self.log_start_offset, self.log_end_offset)?;
        }
        // makes the names of what was made durable, too
        self.write_checkpoint(self.checkpoint)
    }

    fn write_epochs_if_changed(&self) -> Result<()> {
        let held = self.directory.read_small(LEADER_EPOCH_CHECKPOINT, MAX_SMALL_FILE)?;
        let text = self.epochs.to_text();
        match held {
            Some(held) if held == text.as_bytes() => Ok(()),
            // as Kafka has it before the first epoch
            Some(held) if held.is_empty() && self.epochs.entries().is_empty() => Ok(()),
            None if self.epochs.entries().is_empty() => {
                self.directory.create(LEADER_EPOCH_CHECKPOINT).map(drop)
            }
            _ => self.write_epochs(),
        }
    }
}
