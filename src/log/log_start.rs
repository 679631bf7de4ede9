//! The first offset that a reader may see, which a checkpoint may set above the first segment's base offset.

use std::path::Path;

use super::{LogOptions, metadata};
use crate::error::Result;
use crate::segment::{OpenFiles, Segment, with_descriptors};
use crate::state::checkpoint::Checkpoint;
use crate::state::offset_checkpoint::LOG_START_OFFSETS;
use crate::types::{is_or_are, offsets_in_words};

/// The log start offset from the options or a file, and whether it comes from a `LogWriter`: a log that a
/// writer has emptied may start after its last batch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct ClaimedStart {
    offset: Option<i64>,
    is_from_writer: bool,
}

pub(super) fn claimed_start(
    open_files: &OpenFiles,
    options: &LogOptions,
    topic: Option<&str>,
    partition: Option<i32>,
    warnings: &mut Vec<String>,
) -> ClaimedStart {
    let written = writer_start(open_files, warnings);
    let offset = options
        .log_start_offset
        .or_else(|| written.max(checkpointed_start(open_files, topic, partition, warnings)));
    ClaimedStart { offset, is_from_writer: offset.is_some() && offset == written }
}

/// The log start offset in the checkpoint of a `LogWriter`, if it can be read.
fn writer_start(open_files: &OpenFiles, warnings: &mut Vec<String>) -> Option<i64> {
    match with_descriptors(|| Checkpoint::read(&open_files.directory)) {
        Ok(checkpoint) => checkpoint.map(|checkpoint| checkpoint.log_start_offset),
        Err(error) => {
            warnings.push(format!("{error}; ignored"));
            None
        }
    }
}

/// The log start offset in the data directory's checkpoint, if it can be read.
fn checkpointed_start(
    open_files: &OpenFiles,
    topic: Option<&str>,
    partition: Option<i32>,
    warnings: &mut Vec<String>,
) -> Option<i64> {
    let (topic, partition) = (topic?, partition?);
    let read = metadata::checkpointed(&open_files.directory, LOG_START_OFFSETS, topic, partition);
    read.unwrap_or_else(|wrong| {
        warnings.push(format!("{wrong}; ignored"));
        None
    })
}

/// The log start offset: the claimed one if it is inside the log, else the first base offset.
pub(super) fn log_start(
    claimed: ClaimedStart,
    first: i64,
    last: &Segment,
    path: &Path,
    warnings: &mut Vec<String>,
) -> Result<(i64, Option<String>)> {
    let ClaimedStart { offset: Some(claimed), is_from_writer } = claimed else { return Ok((first, None)) };
    // the end is read only if the last segment's base offset does not decide
    let outside = match claimed {
        _ if claimed < first => {
            let between = offsets_in_words(claimed, Some(first));
            let verb = is_or_are(claimed, first);
            Some(format!("starts at offset {first}: {between} {verb} deleted, in remote storage, or lost"))
        }
        _ if is_from_writer || claimed <= last.base_offset() => None,
        _ => {
            let end = last.end_offset()?;
            (claimed > end).then(|| format!("holds offsets {first} to {end}; ignored"))
        }
    };
    if let Some(outside) = outside {
        warnings.push(format!(
            "{}: log start offset {claimed} is outside the log, which {outside}",
            path.display()
        ));
        return Ok((first, None));
    }
    let hidden = (claimed > first).then(|| {
        format!(
            "{}: {} {} hidden below the log start offset {claimed}; a log that is opened with log \
             start offset {first} shows those that remain",
            path.display(),
            offsets_in_words(first, Some(claimed)),
            is_or_are(first, claimed),
        )
    });
    Ok((claimed, hidden))
}
