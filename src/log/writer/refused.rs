//! What a writer does not open, found out before it changes anything.

use std::sync::Arc;

use super::WriterOptions;
use super::checkpoint::{CHECKPOINT, Checkpoint, DURABLE};
use super::clean_marker::CLEAN;
use super::data_directory::DataDirectory;
use super::open::MOST_BYTES;
use super::scan;
use crate::error::{Error, Malformed, Result};
use crate::fs::Directory;
use crate::fs::names::{SegmentFileName, Stage};
use crate::log::{Log, LogOptions};
use crate::segment::{SCAN_READ, Segment, Step};
use crate::state::partition_metadata::{PARTITION_METADATA, TopicId};
use crate::types::Io;

/// Refuses a directory in which Kafka was replacing segments: that is not ours to finish.
pub(super) fn unfinished(directory: &Directory) -> Result<()> {
    for (name, _) in directory.entries()? {
        let stage = SegmentFileName::parse(&name).map(|parsed| parsed.stage);
        if matches!(stage, Some(Stage::Swap | Stage::Cleaned)) {
            let expected =
                "a partition whose compaction was finished (let Kafka open it once; it can be read as it is)";
            return Err(Malformed::unsupported(expected, name.clone()).at(directory.path_of(&name), 0, None));
        }
    }
    Ok(())
}

/// Refuses a log whose first segments are missing. A writer notes the log start before it deletes any; a broker does not, but
/// takes the data directory's line away when it has deleted some.
pub(super) fn later_start(
    directory: &Directory,
    segments: &[Arc<Segment>],
    checkpoint: Checkpoint,
    data_directory: Option<&DataDirectory>,
) -> Result<()> {
    let Some(first) = segments.first().filter(|first| first.base_offset() > checkpoint.log_start_offset)
    else {
        return Ok(());
    };
    if let Some(data_directory) = data_directory
        && data_directory.log_start_offset()?.is_none_or(|start| start >= first.base_offset())
    {
        return Ok(());
    }
    let start = checkpoint.log_start_offset;
    let expected = format!(
        "a segment with offset {start}, where the log starts (to go on without what is missing, remove {CHECKPOINT})"
    );
    let found = format!("the first one to begin at offset {}", first.base_offset());
    Err(Malformed::new(expected, found).at(directory.path(), 0, Some(start)))
}

/// Refuses to go on with emptying a log in which somebody, a broker for one, has written since that was broken off.
pub(super) fn written_since(directory: &Directory, checkpoint: Checkpoint) -> Result<()> {
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
        "no offset from {ended_at} on in a log that was being emptied (to go on with what is there, remove {CHECKPOINT})"
    );
    Err(Malformed::new(expected, format!("its end at offset {end}")).at(directory.path(), 0, Some(ended_at)))
}

/// Refuses a log in which batches have producer ids: what they may append next is not known here.
pub(super) fn producers(segments: &[Arc<Segment>], options: &WriterOptions) -> Result<()> {
    for segment in segments {
        let mut walk = segment.walk(-1, SCAN_READ)?;
        while let Step::Batch(batch) = walk.step()? {
            options.interrupt.check()?;
            scan::refuse_producer(segment, &batch)?;
        }
    }
    Ok(())
}

/// Refuses another topic's id than the partition has. The one to write down, where the partition has none and one was given.
pub(super) fn other_topic<'a>(
    directory: &Directory,
    options: &'a WriterOptions,
) -> Result<Option<&'a TopicId>> {
    let held = directory.read_small(PARTITION_METADATA, MOST_BYTES)?;
    let held = held.map(|text| {
        TopicId::parse_file(&text).map_err(|wrong| {
            let expected = "the id of a topic (remove the file to have it written anew)";
            Malformed::new(expected, wrong).at(directory.path_of(PARTITION_METADATA), 0, None)
        })
    });
    match (held.transpose()?, &options.topic_id) {
        (Some(held), Some(given)) if held != *given => {
            Err(Error::config("topic_id", format!("{held}, as the partition has it"), given.to_string()))
        }
        (None, Some(given)) => Ok(Some(given)),
        _ => Ok(None),
    }
}

/// An error where acknowledged records are missing.
pub(super) fn missing(directory: &Directory, durable: i64, found: i64) -> Error {
    let expected = format!(
        "a log that ends at offset {durable} or above, up to where it was synced (to go on without what is missing, remove \
         {DURABLE} and {CLEAN})"
    );
    Malformed::new(expected, format!("its end at offset {found}")).at(directory.path(), 0, Some(found))
}
