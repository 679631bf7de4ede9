//! The Kafka data directory that holds a partition: the partition's lines in its checkpoints, and the marker of a clean shutdown.
//!
//! Kafka trusts these files. With a recovery point above a truncation it does not read what it has to, and with the marker it reads
//! nothing. Only the partition's own lines are changed, and only where the folder is a data directory of Kafka.

use super::checkpoint::{Checkpoint, DURABLE};
use super::clean_marker::{CLEAN, CleanMarker, durable_offset};
use crate::error::{Error, Malformed, Result};
use crate::fs::names::{PartitionName, PartitionState, is_topic};
use crate::fs::{
    DATA_DIRECTORY_LOCK, Directory, Lock, META_PROPERTIES, PartitionLocks, Staged, is_data_directory,
};
use crate::state::offset_checkpoint::{LOG_START_OFFSETS, MAX_BYTES, OffsetCheckpoint, RECOVERY_POINTS};

/// The file that a broker creates at a clean shutdown and removes at its next start.
const CLEAN_SHUTDOWN: &str = ".kafka_cleanshutdown";

/// A partition's place in a data directory.
#[derive(Debug)]
pub(crate) struct DataDirectory {
    folder: Directory,
    topic: String,
    partition: i32,
}

impl DataDirectory {
    /// The data directory around a partition; `None` where the folder is not one.
    pub(crate) fn around(directory: &Directory) -> Result<Option<Self>> {
        let name = directory.path().file_name().and_then(|name| name.to_str()).unwrap_or_default();
        // the folder need not be one that may be opened, unless it is a data directory
        if !is_data_directory(directory, "../")? {
            return Ok(None);
        }
        directory.parent()?.map_or(Ok(None), |folder| Self::of(folder, name))
    }

    /// A partition's place by its name. `None` for another name in a folder without `meta.properties`: a lock file alone does not
    /// make a data directory.
    fn of(folder: Directory, name: &str) -> Result<Option<Self>> {
        let parsed = PartitionName::parse(name)
            .filter(|parsed| parsed.state == PartitionState::Live && is_topic(&parsed.topic));
        match parsed {
            Some(PartitionName { topic, partition, .. }) => Ok(Some(Self { folder, topic, partition })),
            None if folder.identity_of(META_PROPERTIES)?.is_none() => Ok(None),
            None => {
                let expected = "the name of a topic, a dash and a number, such as orders-0, because this is a data \
                                directory of Kafka's, which deletes or moves some others and does not start beside the rest";
                Err(Error::config("path", expected, folder.path_of(name).display().to_string()))
            }
        }
    }

    /// Fails where no partition of this name can be created: Kafka does not accept the name, or a broker is running.
    pub(crate) fn refuse(folder: &Directory, name: &str) -> Result<()> {
        if is_data_directory(folder, "")? && Self::of(folder.clone(), name)?.is_some() {
            Lock::shared(folder, DATA_DIRECTORY_LOCK)?;
        }
        Ok(())
    }

    /// Fails where the directory is a data directory itself, which holds partitions.
    pub(crate) fn refuse_itself(directory: &Directory) -> Result<()> {
        if is_data_directory(directory, "")? {
            let expected = "a partition directory, such as orders-0 in this data directory of Kafka's";
            return Err(Error::config("path", expected, directory.path().display().to_string()));
        }
        Ok(())
    }

    /// Removes the marker of a clean shutdown, durably: the partition is about to change.
    pub(crate) fn remove_clean_marker(&self) -> Result<()> {
        if self.folder.identity_of(CLEAN_SHUTDOWN)?.is_some() {
            self.folder.remove(CLEAN_SHUTDOWN)?;
            self.folder.sync()?;
        }
        Ok(())
    }

    /// The offset that a checkpoint gives this partition; `None` where it has no line for it, or is damaged: it is a hint.
    fn offset(&self, name: &str) -> Result<Option<i64>> {
        let Some(text) = self.folder.read_small(name, MAX_BYTES)? else { return Ok(None) };
        let parsed = OffsetCheckpoint::parse(&text).ok();
        Ok(parsed.and_then(|checkpoint| checkpoint.offset_of(&self.topic, self.partition)))
    }

    pub(crate) fn recovery_point(&self) -> Result<Option<i64>> {
        self.offset(RECOVERY_POINTS)
    }

    pub(crate) fn log_start_offset(&self) -> Result<Option<i64>> {
        self.offset(LOG_START_OFFSETS)
    }

    /// The offset at which a log without a segment begins: its log start offset, as in Kafka. `partition`: its directory; `own`: the
    /// log start offset of the writer's checkpoint there.
    ///
    /// # Errors
    /// [`Error::Corrupt`] where the recovery point is above the log start: the records between were there, and are gone.
    fn start_without_segments(&self, partition: &Directory, own: i64) -> Result<i64> {
        let is_offset = |offset: &i64| (0..i64::MAX).contains(offset);
        let start = self.log_start_offset()?.filter(is_offset).unwrap_or(0).max(own);
        let Some(recovery_point) = self.recovery_point()?.filter(|point| is_offset(point) && *point > start)
        else {
            return Ok(start);
        };
        let Self { folder, topic, partition: number } = self;
        let expected = format!(
            "a segment with the offsets {start} to {recovery_point}, because {} has the recovery point \"{topic} {number} \
             {recovery_point}\" (put the segments back; or to go on without these records, at the log start of {}, change \
             that line to \"{topic} {number} {start}\")",
            folder.path_of(RECOVERY_POINTS).display(),
            folder.path_of(LOG_START_OFFSETS).display(),
        );
        Err(Malformed::new(expected, "no segment").at(partition.path(), 0, Some(start)))
    }

    /// Lowers checkpoints that are above the log end offset. They do not count now, but would hide records once the log has grown
    /// to them.
    pub(crate) fn lower(&self, log_start_offset: i64, log_end_offset: i64) -> Result<()> {
        let is_beyond = |offset: Option<i64>| offset.is_some_and(|offset| offset > log_end_offset);
        if is_beyond(self.log_start_offset()?) {
            self.write_log_start_offset(log_start_offset)?;
        }
        if is_beyond(self.recovery_point()?) {
            self.write_recovery_point(log_end_offset)?;
        }
        Ok(())
    }

    pub(crate) fn write_recovery_point(&self, offset: i64) -> Result<()> {
        self.stage(&[(RECOVERY_POINTS, offset)])?.put()
    }

    pub(crate) fn write_log_start_offset(&self, offset: i64) -> Result<()> {
        self.stage(&[(LOG_START_OFFSETS, offset)])?.put()
    }

    /// Stages the replacements of the checkpoints, with the partition's lines as in `checkpoint`. Other writers wait until they are
    /// put in place.
    pub(crate) fn stage_checkpoint(&self, checkpoint: Checkpoint) -> Result<StagedLines> {
        self.stage(&[
            (RECOVERY_POINTS, checkpoint.recovery_point),
            (LOG_START_OFFSETS, checkpoint.log_start_offset),
        ])
    }

    fn stage(&self, lines: &[(&str, i64)]) -> Result<StagedLines> {
        // two partitions may have two writers, which rewrite the same files
        let others_wait = Lock::wait_exclusive(&self.folder, PartitionLocks::NAME)?;
        let mut files = Vec::new();
        for (name, offset) in lines {
            let text = self.folder.read_small(name, MAX_BYTES)?.unwrap_or_default();
            // Kafka ignores a damaged file; it is left as it is
            let Ok(mut checkpoint) = OffsetCheckpoint::parse(&text) else { continue };
            if checkpoint.set(&self.topic, self.partition, *offset) {
                files.push(self.folder.stage(name, checkpoint.to_text().as_bytes())?);
            }
        }
        Ok(StagedLines { files, _others_wait: others_wait })
    }
}

/// The offset at which a log without a segment begins. `data_directory`: the one around it, if its checkpoints apply.
///
/// # Errors
/// [`Error::Corrupt`] where the recovery point, or what a writer synced, is above that: the records between are gone.
pub(crate) fn start_without_segments(
    partition: &Directory,
    checkpoint: Option<Checkpoint>,
    data_directory: Option<&DataDirectory>,
) -> Result<i64> {
    let own = checkpoint.map_or(0, |checkpoint| checkpoint.log_start_offset);
    let start = data_directory.map_or(Ok(own), |found| found.start_without_segments(partition, own))?;
    let durable = durable_offset(partition, CleanMarker::read(partition)?.as_ref())?;
    let Some(durable) = durable.filter(|durable| *durable > start) else { return Ok(start) };
    let expected = format!(
        "a segment with the offsets {start} to {durable}, up to where the log was synced (put the segments back; or to go on \
         without these records, remove {DURABLE} and {CLEAN})"
    );
    Err(Malformed::new(expected, "no segment").at(partition.path(), 0, Some(start)))
}

/// Fails where a partition that has no segment had records, as an opening for writing does. `is_live`: whether the data
/// directory's checkpoints apply to it.
///
/// # Errors
/// [`Error::Corrupt`]; [`Error::Io`].
pub(crate) fn refuse_lost(partition: &Directory, is_live: bool) -> Result<()> {
    let checkpoint = Checkpoint::read(partition)?;
    if checkpoint.is_some_and(|checkpoint| checkpoint.starting_at.is_some()) {
        // it was being emptied
        return Ok(());
    }
    let data_directory = if is_live { DataDirectory::around(partition)? } else { None };
    start_without_segments(partition, checkpoint, data_directory.as_ref()).map(drop)
}

/// Staged replacements of checkpoints.
#[derive(Debug)]
#[must_use]
pub(crate) struct StagedLines {
    files: Vec<Staged>,
    _others_wait: Lock,
}

impl StagedLines {
    /// Puts them in place, durably.
    pub(crate) fn put(self) -> Result<()> {
        self.files.into_iter().try_for_each(Staged::put)
    }
}
