//! Kafka's small files about a log: the topic's id, and its offsets in the data directory's checkpoints.

use super::Log;
use crate::fs::Directory;
use crate::segment::with_descriptors;
use crate::state::offset_checkpoint::OffsetCheckpoint;
use crate::state::partition_metadata::TopicId;

impl Log {
    /// The topic's id in `partition.metadata`, read at each call. `None` if there is no such file (Kafka
    /// writes it since 2.8), or if it cannot be read, which becomes a warning.
    ///
    /// *Source*: `PartitionMetadataFile.read`.
    pub fn topic_id(&self) -> Option<TopicId> {
        TopicId::read(&self.inner.open_files.directory).unwrap_or_else(|error| {
            self.inner.lookups.add(&format!("{error}; ignored"));
            None
        })
    }
}

/// The offset of a partition in a checkpoint of the data directory; `None` if there is no such file, or no
/// line for it.
///
/// The file that cannot be read, and the reason.
pub(crate) fn checkpointed(
    directory: &Directory,
    name: &str,
    topic: &str,
    partition: i32,
) -> Result<Option<i64>, String> {
    let read = with_descriptors(|| OffsetCheckpoint::read(directory, &format!("../{name}")));
    let checkpoint = read.map_err(|error| error.to_string())?.map_err(|wrong| {
        format!("{}: {}", directory.path_of(&format!("../{name}")).display(), wrong.found)
    })?;
    Ok(checkpoint.offset_of(topic, partition))
}
