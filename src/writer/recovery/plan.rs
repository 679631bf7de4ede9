//! Reads a partition directory and decides what recovery changes. Nothing is changed here.

use super::existing_log::{self, Recovery};
use super::recovery_plan::{FileChange, FileChangeReason, RecoveryPlan};
use super::{deleted_files, preconditions};
use crate::config::{INDEX_INTERVAL, LogConfig};
use crate::error::{Error, Result};
use crate::fs::names::{SegmentFileName, Stage, segment_files_of};
use crate::fs::{Directory, STAGED};
use crate::log::{IntervalSource, Log, LogOptions};
use crate::state::checkpoint::Checkpoint;
use crate::state::data_directory::{DataDirectory, start_without_segments};
use crate::state::kept_files::KeptFiles;
use crate::state::leader_epochs::LeaderEpochs;
use crate::state::partition_metadata::TopicId;
use crate::types::Io;
use crate::writer::WriterOptions;
use crate::writer::producers::NamedProducers;

/// What recovery does: the public report, and the other inputs of `apply`.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) report: RecoveryPlan,
    pub(super) data_directory: Option<DataDirectory>,
    /// The topic id to write to `partition.metadata`, which has none.
    pub(super) topic_id: Option<TopicId>,
    /// The leader epoch of the writer's batches.
    pub(super) leader_epoch: i32,
    /// The names of temporary files of a truncation. They can be as large as a segment and are deleted
    /// first.
    pub(super) staged: Vec<String>,
    /// The names of `.deleted` files that are deleted, last.
    pub(super) deleted: Vec<String>,
    /// The `.deleted` files that are kept; `None` if the note of them stays as it is.
    pub(super) kept: Option<KeptFiles>,
    pub(super) epochs_file: EpochsFile,
    pub(super) work: Work,
}

#[derive(Debug)]
pub(super) enum Work {
    /// There is no log, or all records of it were being removed: its segments are removed, and an empty log
    /// is created.
    Create { removed: Vec<i64>, log_start_offset: i64, producers: NamedProducers },
    /// There is a log.
    Recover(Box<Recovery>),
}

/// What happens to `leader-epoch-checkpoint`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EpochsFile {
    Keep,
    /// There is no file and no epoch: an empty file is created, as Kafka has it before the first epoch.
    Create,
    Replace,
}

/// Reads the directory and decides.
pub(super) fn plan(directory: &Directory, options: &WriterOptions) -> Result<Plan> {
    preconditions::refuse_cluster_metadata(directory)?;
    preconditions::refuse_unfinished_copy(directory)?;
    let checkpoint = Checkpoint::read(directory)?;
    let data_directory = DataDirectory::around(directory)?;
    let topic_id = missing_topic_id(directory, options)?;
    let starting_at = checkpoint.and_then(|checkpoint| checkpoint.starting_at);
    let log_options = LogOptions {
        io: Io::Pread,
        max_batch_bytes: options.max_batch_bytes,
        interrupt: options.interrupt,
        on_warning: options.on_warning,
        ..LogOptions::default()
    };
    let (mut deleted, mut kept) = (Vec::new(), None);
    let (mut report, work) = match Log::open_if_any(directory.clone(), log_options)? {
        Some(log) if starting_at.is_none() => {
            let (mut report, recovery) =
                existing_log::plan(directory, options, checkpoint, data_directory.as_ref(), &log)?;
            // what no file says is deleted stays
            let start = log.unfinished_deletion(data_directory.as_ref())?;
            let start = start.unwrap_or(report.log_start_offset);
            let (names, kept_files) = deleted_files::find(directory, &log, start, &mut report)?;
            (deleted, kept) = (names, Some(kept_files));
            (report, Work::Recover(Box::new(recovery)))
        }
        _ => plan_new_log(directory, &options.config, checkpoint, data_directory.as_ref())?,
    };
    let no_epochs = LeaderEpochs::default();
    let epochs = match &work {
        Work::Create { .. } => &no_epochs,
        Work::Recover(recovery) => &recovery.epochs,
    };
    let leader_epoch = epochs.next_epoch(options.leader_epoch)?;
    let epochs_file = epochs_file(directory, epochs)?;
    let staged = staged_files(directory)?;
    let changes = staged.iter().map(|name| removed(directory, name, FileChangeReason::Staged));
    report.file_changes.splice(0..0, changes);
    report.rewrites_leader_epochs = epochs_file == EpochsFile::Replace;
    Ok(Plan { report, data_directory, topic_id, leader_epoch, staged, deleted, kept, epochs_file, work })
}

/// The topic id from the options, if the partition has none.
fn missing_topic_id(directory: &Directory, options: &WriterOptions) -> Result<Option<TopicId>> {
    match (TopicId::read(directory)?, &options.topic_id) {
        (Some(existing), Some(given)) if existing != *given => {
            Err(Error::config("topic_id", format!("{existing}, the id of the partition"), given.to_string()))
        }
        (None, Some(given)) => Ok(Some(given.clone())),
        _ => Ok(None),
    }
}

/// The plan for a directory without a log, or with a log whose records were all being removed.
fn plan_new_log(
    directory: &Directory,
    config: &LogConfig,
    checkpoint: Option<Checkpoint>,
    data_directory: Option<&DataDirectory>,
) -> Result<(RecoveryPlan, Work)> {
    preconditions::refuse_unfinished_replacement(directory)?;
    let starting_at = checkpoint.and_then(|checkpoint| checkpoint.starting_at);
    let log_start_offset = match starting_at {
        Some(starting_at) => starting_at,
        None => start_without_segments(directory, checkpoint, data_directory)?,
    };
    let bases = directory.segment_bases()?;
    if let Some(checkpoint) = checkpoint.filter(|_| !bases.is_empty()) {
        preconditions::refuse_written_since(directory, checkpoint)?;
    }
    // not `segment_files`, which leaves out indexes without a `.log`
    let removed_files: Vec<_> =
        bases.iter().copied().chain([log_start_offset]).flat_map(segment_files_of).collect();
    let names = names_of(directory, |name| removed_files.iter().any(|removed| removed == name))?;
    let reason = if starting_at.is_some() { FileChangeReason::Emptied } else { FileChangeReason::Orphaned };
    let is_stated = config.states(INDEX_INTERVAL);
    let report = RecoveryPlan {
        path: directory.path().to_owned(),
        closed_cleanly: false,
        recovery_point: log_start_offset,
        log_start_offset,
        log_end_offset: log_start_offset,
        segments: vec![log_start_offset],
        index_interval_bytes: config.index_interval_bytes.into(),
        interval_source: if is_stated { IntervalSource::Given } else { IntervalSource::Default },
        cuts: Vec::new(),
        rebuilt_indexes: Vec::new(),
        file_changes: names.iter().map(|name| removed(directory, name, reason)).collect(),
        splits: Vec::new(),
        kept_files: names_of(directory, is_deleted)?.iter().map(|name| directory.path_of(name)).collect(),
        rewrites_leader_epochs: false,
    };
    let is_kept = checkpoint.is_some_and(|checkpoint| checkpoint.keeps_producers);
    let producers = if is_kept { NamedProducers::Kept } else { NamedProducers::Forgotten };
    Ok((report, Work::Create { removed: bases, log_start_offset, producers }))
}

/// The deletion of a file.
pub(super) fn removed(directory: &Directory, name: &str, reason: FileChangeReason) -> FileChange {
    FileChange { file: directory.path_of(name), new_file: None, reason }
}

/// The names of segment files that a truncation staged and did not put in place.
fn staged_files(directory: &Directory) -> Result<Vec<String>> {
    names_of(directory, |name| name.strip_suffix(STAGED).and_then(SegmentFileName::parse).is_some())
}

/// Whether it is the name of a segment's file that is marked as deleted.
fn is_deleted(name: &str) -> bool {
    SegmentFileName::parse(name).is_some_and(|parsed| parsed.stage == Stage::Deleted)
}

/// The names in the directory that are selected, sorted. Symbolic links count, because an opening removes
/// them; folders do not.
fn names_of(directory: &Directory, is_selected: impl Fn(&str) -> bool) -> Result<Vec<String>> {
    let files = directory.entries()?.into_iter().filter(|(_, file_type)| !file_type.is_dir());
    let mut names: Vec<_> = files.map(|(name, _)| name).filter(|name| is_selected(name)).collect();
    names.sort_unstable();
    Ok(names)
}

fn epochs_file(directory: &Directory, epochs: &LeaderEpochs) -> Result<EpochsFile> {
    let has_epochs = !epochs.entries().is_empty();
    Ok(match LeaderEpochs::read_text(directory)? {
        Some(text) if text == epochs.to_text().as_bytes() => EpochsFile::Keep,
        // Kafka leaves an empty file before the first epoch
        Some(text) if text.is_empty() && !has_epochs => EpochsFile::Keep,
        None if !has_epochs => EpochsFile::Create,
        _ => EpochsFile::Replace,
    })
}
