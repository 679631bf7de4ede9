//! Logs that a writer must not open. All checks run before the first change.

use std::sync::Arc;

use super::deleted_files::{UncommittedCopy, uncommitted_only_copies};
use crate::error::{Error, Malformed, Result};
use crate::fs::Directory;
use crate::fs::names::{CLUSTER_METADATA_DIRECTORY, SegmentFileName, Stage};
use crate::log::{Log, LogOptions, LostStart, Replacement};
use crate::segment::{Batch, Segment};
use crate::state::COPY_JOURNAL;
use crate::state::checkpoint::{CHECKPOINT, Checkpoint, DURABLE};
use crate::state::clean_marker::CLEAN;
use crate::state::data_directory::DataDirectory;
use crate::state::leader_epochs::LeaderEpochs;
use crate::state::offset_checkpoint::LOG_START_OFFSETS;
use crate::types::{Io, offsets_in_words};

/// Refuses the metadata log of a cluster. Only its controllers write there, their snapshots and not retention
/// decide what is deleted, and a broker takes each file whose name ends with `.checkpoint`, as that of a
/// writer does, for a snapshot.
pub(super) fn refuse_cluster_metadata(directory: &Directory) -> Result<()> {
    if directory.path().file_name().is_none_or(|name| name != CLUSTER_METADATA_DIRECTORY) {
        return Ok(());
    }
    let expected = "a partition of records: the controllers of the cluster write its metadata, and recover it at each start";
    Err(Malformed::unsupported(expected, CLUSTER_METADATA_DIRECTORY).at(directory.path(), 0, None))
}

/// Refuses a copy that is not complete.
pub(super) fn refuse_unfinished_copy(directory: &Directory) -> Result<()> {
    if directory.identity_of(COPY_JOURNAL)?.is_none() {
        return Ok(());
    }
    let expected = "a log, not the unfinished copy of one (run the copy again, which continues it, or remove the directory)";
    Err(Malformed::unsupported(expected, COPY_JOURNAL).at(directory.path_of(COPY_JOURNAL), 0, None))
}

/// Refuses a directory that has files of a replacement but no live segment: the replaced segments are
/// missing.
pub(super) fn refuse_unfinished_replacement(directory: &Directory) -> Result<()> {
    for (name, _) in directory.entries()? {
        let stage = SegmentFileName::parse(&name).map(|parsed| parsed.stage);
        if matches!(stage, Some(Stage::Swap | Stage::Cleaned)) {
            let expected = "a live segment, which an unfinished compaction or split needs (let Kafka open the directory once, or \
                            remove the file)";
            return Err(Malformed::unsupported(expected, name.clone()).at(directory.path_of(&name), 0, None));
        }
    }
    Ok(())
}

/// Refuses a log whose first segments are missing ([`Log::lost_start`]).
pub(crate) fn refuse_missing_start(
    log: &Log,
    checkpoint: Option<Checkpoint>,
    data_directory: Option<&DataDirectory>,
) -> Result<()> {
    let Some(LostStart { start, first, file }) = log.lost_start(checkpoint, data_directory)? else {
        return Ok(());
    };
    let why = if file == CHECKPOINT {
        "the log start offset".to_owned()
    } else {
        format!("with which {file} begins")
    };
    let expected = format!(
        "a segment with offset {start}, {why} (restore the segments; or, to continue without these records, run cordwood repair with \
         --policy salvage)"
    );
    let found = format!("the first segment at offset {first}");
    Err(Malformed::new(expected, found).at(log.path(), 0, Some(start)))
}

/// Refuses a log whose start is in remote storage: its leader epochs, and its line in
/// `log-start-offset-checkpoint`, begin below the first segment. A writer knows nothing of the segments
/// there, and would raise both to its own first segment.
pub(crate) fn refuse_remote_start(
    directory: &Directory,
    segments: &[Arc<Segment>],
    data_directory: Option<&DataDirectory>,
) -> Result<()> {
    let Some(first) = segments.first().map(|first| first.base_offset()) else { return Ok(()) };
    let line = data_directory.map_or(Ok(None), DataDirectory::log_start_offset)?;
    let Some(line) = line.filter(|line| *line < first) else { return Ok(()) };
    let Some(start) = LeaderEpochs::first_start(directory)?.filter(|start| *start < first) else {
        return Ok(());
    };
    let expected = format!(
        "a segment with offset {start}, with which leader-epoch-checkpoint begins, because {LOG_START_OFFSETS} has the log start \
         offset {line}: a tiered topic has it in remote storage, and only a broker can write there (of a topic that is not tiered, \
         restore the segments; or, to continue without these records, remove the partition's line, lower the count in the second \
         line of the file by one, and run cordwood repair with --policy salvage)"
    );
    Err(Malformed::new(expected, format!("the first segment at offset {first}")).at(
        directory.path(),
        0,
        Some(start),
    ))
}

/// Refuses a replacement that is not committed, and would be deleted, if it has records that no segment has:
/// those that it was made from are missing.
pub(crate) fn refuse_only_copies(log: &Log, replacement: &Replacement) -> Result<()> {
    let copies = uncommitted_only_copies(log, replacement)?;
    let Some(UncommittedCopy { file, offsets, advice }) = copies.into_iter().next() else { return Ok(()) };
    let expected = format!(
        "its offsets in the segments, because a replacement that is not committed is deleted ({advice})"
    );
    let found = offsets_in_words(offsets.start, Some(offsets.end));
    Err(Malformed::new(expected, found).at(log.directory().path_of(&file.name), 0, Some(offsets.start)))
}

/// Refuses to finish the removal of every record if a broker has written to the log in the meantime.
pub(super) fn refuse_written_since(directory: &Directory, checkpoint: Checkpoint) -> Result<()> {
    let (Some(starting_at), Some(ended_at)) = (checkpoint.starting_at, checkpoint.ended_at) else {
        return Ok(());
    };
    let ended_at = ended_at.max(starting_at);
    let options = LogOptions { io: Io::Pread, ..LogOptions::default() };
    let end = Log::open_in(directory.clone(), options)?
        .segments()
        .last()
        .map_or(Ok(0), |last| last.end_offset())?;
    if end <= ended_at {
        return Ok(());
    }
    let expected = format!(
        "no offset at or above {ended_at}, because all records were being removed (to continue with this log, remove {CHECKPOINT})"
    );
    Err(Malformed::new(expected, format!("its end at offset {end}")).at(directory.path(), 0, Some(ended_at)))
}

/// The error for a log that ends below its durable offset: acknowledged records are missing.
pub(super) fn missing_end(directory: &Directory, durable: i64, found: i64) -> Error {
    let expected = format!(
        "a log that ends at offset {durable} or above, because it was synced up to there (its end may be missing because its \
         files were copied one by one while a writer ran: use backup, cordwood copy or a snapshot; to continue without the missing records, \
         remove {DURABLE} and {CLEAN})"
    );
    Malformed::new(expected, format!("its end at offset {found}")).at(directory.path(), 0, Some(found))
}

/// Refuses a batch after a gap of offsets that contains the durable offset: a batch ended there. The base
/// offset of this batch may be damaged, because no checksum covers it.
pub(super) fn refuse_missing_end(segment: &Segment, end: i64, batch: &Batch, synced: i64) -> Result<()> {
    let base_offset = batch.header.base_offset;
    if !(end < synced && synced <= base_offset) {
        return Ok(());
    }
    let expected = format!(
        "a batch with offset {}, because the log was synced up to offset {synced} (for a log that a broker has compacted, set \
         cleanup.policy=compact; to continue with this log, remove {DURABLE} and {CLEAN})",
        synced - 1
    );
    let found = format!("offset {base_offset} after offset {}", end - 1);
    Err(Malformed::new(expected, found).at(segment.path(), batch.position, Some(base_offset)))
}
