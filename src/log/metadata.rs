//! What Kafka's small files say of a log: its topic's id, and its offsets in the data directory's checkpoints.

use super::Log;
use crate::fs::Directory;
use crate::segment::with_descriptors;
use crate::state::offset_checkpoint::{self, OffsetCheckpoint};
use crate::state::partition_metadata::{PARTITION_METADATA, TopicId};

/// More than a `partition.metadata` ever has.
const MAX_METADATA_BYTES: u64 = 64 << 10;

impl Log {
    /// The topic's id in `partition.metadata`, read when this is called. `None` where there is no such file (Kafka writes
    /// it since 2.8), or where it cannot be read, which becomes a warning.
    ///
    /// *Source*: `PartitionMetadataFile.read`.
    pub fn topic_id(&self) -> Option<TopicId> {
        let directory = &self.inner.open_files.directory;
        let read = directory.read_small(PARTITION_METADATA, MAX_METADATA_BYTES);
        let parsed = read.map_err(|error| error.to_string()).and_then(|text| {
            let broken = |wrong| format!("{}: {wrong}", directory.path_of(PARTITION_METADATA).display());
            text.map(|text| TopicId::parse_file(&text).map_err(broken)).transpose()
        });
        parsed.unwrap_or_else(|wrong| {
            self.inner.lookups.add(format!("{wrong}; ignored"));
            None
        })
    }
}

/// The offset of a partition in a checkpoint of the data directory; `None` where there is no such file, or no line.
///
/// # Errors
/// Says which file cannot be read, and why.
pub(crate) fn checkpointed(
    directory: &Directory,
    name: &str,
    topic: &str,
    partition: i32,
) -> Result<Option<i64>, String> {
    let text = with_descriptors(|| directory.read_small(&format!("../{name}"), offset_checkpoint::MAX_BYTES));
    let Some(text) = text.map_err(|error| error.to_string())? else { return Ok(None) };
    let checkpoint = OffsetCheckpoint::parse(&text)
        .map_err(|wrong| format!("{}: {wrong}", directory.path_of("..").join(name).display()))?;
    Ok(checkpoint.offset_of(topic, partition))
}
