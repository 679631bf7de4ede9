//! The files beside the segments of a copy: leader epochs, topic id, names of producers, log start offset,
//! recovery point.

use super::destination::Destination;
use crate::error::Result;
use crate::log::Log;
use crate::record::BatchHeader;
use crate::state::checkpoint::{CHECKPOINT, Checkpoint};
use crate::state::cleaner_checkpoint::CLEANED;
use crate::state::data_directory::DataDirectory;
use crate::state::leader_epochs::{LEADER_EPOCH_CHECKPOINT, LeaderEpochs};
use crate::state::partition_metadata::{PARTITION_METADATA, TopicId};
use crate::state::producer_ids::{PRODUCERS, ProducerIds};
use crate::writer::{KEPT_PRODUCERS, kept_producers};

/// The largest file of names that is read, bytes.
const MAX_NAMES_BYTES: u64 = 64 << 20;

/// The leader epochs of a copy.
#[derive(Debug)]
pub(super) struct Epochs {
    epochs: LeaderEpochs,
    /// Whether the source has the file.
    exists: bool,
}

impl Epochs {
    /// The epochs of the source. If its file is missing or damaged, they come from its batches.
    pub(super) fn of(log: &Log, warnings: &mut Vec<String>) -> Result<Self> {
        let text = LeaderEpochs::read_text(log.directory())?;
        let exists = text.is_some();
        let epochs = LeaderEpochs::parse(text.as_deref().unwrap_or_default()).unwrap_or_else(|wrong| {
            let path = log.directory().path_of(LEADER_EPOCH_CHECKPOINT);
            warnings
                .push(format!("{}: {wrong}; the copy has the leader epochs of its batches", path.display()));
            LeaderEpochs::default()
        });
        Ok(Self { epochs, exists })
    }

    /// Adds a batch, as Kafka does when it recovers a segment.
    pub(super) fn add(&mut self, header: &BatchHeader) {
        let epoch = header.leader_epoch;
        if epoch >= 0 && self.epochs.latest().is_none_or(|latest| epoch > latest) {
            self.epochs.assign(epoch, header.base_offset);
        }
    }

    /// Writes the epochs of the offsets in the copy.
    pub(super) fn put(
        mut self,
        destination: &Destination,
        log_start_offset: i64,
        end_offset: i64,
    ) -> Result<()> {
        self.epochs.truncate_from_end(end_offset);
        self.epochs.truncate_from_start(log_start_offset);
        let text = (self.exists || !self.epochs.entries().is_empty()).then(|| self.epochs.to_text());
        destination.put(LEADER_EPOCH_CHECKPOINT, text.as_ref().map(String::as_bytes))
    }
}

/// Writes the topic id of the source.
pub(super) fn put_topic_id(log: &Log, destination: &Destination, warnings: &mut Vec<String>) -> Result<()> {
    let id = match TopicId::read(log.directory()) {
        Ok(id) => id,
        Err(error) if error.is_damage() => {
            warnings.push(format!("{error}; the copy has no topic id"));
            None
        }
        Err(error) => return Err(error),
    };
    destination.put(PARTITION_METADATA, id.map(|id| id.to_file()).as_ref().map(String::as_bytes))
}

/// Writes the names of producers and transactional ids of the source, and its named producers without records
/// in the log: they go on in the copy. Not compared with a complete copy: a name that has not written leaves
/// nothing in the log.
pub(super) fn put_producer_names(
    log: &Log,
    destination: &Destination,
    warnings: &mut Vec<String>,
) -> Result<()> {
    if destination.is_complete() {
        return Ok(());
    }
    let directory = log.directory();
    match ProducerIds::read(directory).and_then(|_| kept_producers(directory)) {
        Ok(_) => {}
        Err(error) if error.is_damage() => {
            warnings.push(format!("{error}; the copy has no names of producers"));
            return Ok(());
        }
        Err(error) => return Err(error),
    }
    for name in [PRODUCERS, KEPT_PRODUCERS] {
        let bytes = directory.read_small(name, MAX_NAMES_BYTES)?;
        destination.put(name, bytes.as_deref())?;
    }
    Ok(())
}

/// Notes that a cleaner had cleaned the source: nothing else may show why offsets are missing. Also in a copy
/// of a data directory, so that both kinds of copies of a partition are equal.
pub(super) fn put_cleaned(log: &Log, destination: &Destination) -> Result<()> {
    destination.put(CLEANED, log.is_cleaned().then_some(&b"1\n"[..]))
}

/// Writes the log start offset, if it is above the base offset of the first segment: for Kafka to the
/// checkpoint of the data directory around the copy, if there is one, and for cordwood to the partition
/// directory.
pub(super) fn put_log_start_offset(
    destination: &Destination,
    data_directory: Option<&DataDirectory>,
    first: i64,
    checkpoint: Checkpoint,
) -> Result<()> {
    let log_start_offset = checkpoint.log_start_offset;
    let is_hiding = log_start_offset > first;
    if let Some(data_directory) = data_directory.filter(|_| !destination.is_ended())
        && (is_hiding || data_directory.log_start_offset()?.is_some())
    {
        data_directory.write_log_start_offset(log_start_offset)?;
    }
    let text = is_hiding.then(|| checkpoint.to_text());
    destination.put(CHECKPOINT, text.as_deref())
}
