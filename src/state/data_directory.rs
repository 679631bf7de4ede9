//! The Kafka data directory that holds a partition: the partition's lines in its checkpoints, and the marker
//! of a clean shutdown.
//!
//! Kafka trusts these files. If the recovery point is above a truncation, it skips segments that it must
//! recover; if the marker exists, it recovers nothing. Only the partition's own lines are changed, and only
//! if the folder is a Kafka data directory.

use super::checkpoint::{Checkpoint, DURABLE};
use super::clean_marker::{CLEAN, CleanMarker, durable_offset};
use crate::error::{Error, Malformed, Result};
use crate::fs::names::{
    CLUSTER_METADATA_DIRECTORY, PartitionName, PartitionState, SegmentFileName, Stage, is_topic,
};
use crate::fs::{
    DATA_DIRECTORY_LOCK, Directory, FileType, Lock, META_PROPERTIES, PartitionLocks, Staged,
    is_data_directory,
};
use crate::state::COPY_JOURNAL;
use crate::state::leader_epochs::LEADER_EPOCH_CHECKPOINT;
use crate::state::offset_checkpoint::{
    CLEANED_OFFSETS, LOG_START_OFFSETS, OffsetCheckpoint, RECOVERY_POINTS,
};
use crate::state::partition_metadata::PARTITION_METADATA;

/// The file that a broker creates at a clean shutdown and removes at its next start.
pub(crate) const CLEAN_SHUTDOWN: &str = ".kafka_cleanshutdown";

/// The file of the metadata with which a cluster begins.
pub(crate) const BOOTSTRAP_CHECKPOINT: &str = "bootstrap.checkpoint";

/// The directory of a broker's copies of indexes of remote segments.
pub(crate) const REMOTE_LOG_INDEX_CACHE: &str = "remote-log-index-cache";

/// A partition in a data directory.
#[derive(Debug)]
pub struct DataDirectory {
    folder: Directory,
    topic: String,
    partition: i32,
}

impl DataDirectory {
    /// The data directory around a partition; `None` if the folder is not one.
    pub fn around(directory: &Directory) -> Result<Option<Self>> {
        let name = directory.path().file_name().and_then(|name| name.to_str()).unwrap_or_default();
        // checked first: the permission to open the folder is needed only if it is a data directory
        if !is_data_directory(directory, "../")? {
            return Ok(None);
        }
        directory.parent()?.map_or(Ok(None), |folder| Self::of(folder, name))
    }

    /// [`DataDirectory::around`], but `None` for a name that no topic has: the checkpoints have no line for
    /// it.
    pub(crate) fn with_lines_of(directory: &Directory) -> Result<Option<Self>> {
        match Self::around(directory) {
            Err(Error::Config { .. }) => Ok(None),
            around => around,
        }
    }

    /// A partition in a data directory, by the partition's name. `None` for any other name in a folder
    /// without `meta.properties`: a lock file alone does not make a folder a data directory.
    fn of(folder: Directory, name: &str) -> Result<Option<Self>> {
        let parsed = PartitionName::parse(name)
            .filter(|parsed| parsed.state == PartitionState::Live && is_topic(&parsed.topic));
        match parsed {
            Some(PartitionName { topic, partition, .. }) => Ok(Some(Self { folder, topic, partition })),
            None if folder.identity_of(META_PROPERTIES)?.is_none() => Ok(None),
            None => {
                let expected = "the name of a topic, a dash and a number, such as orders-0, because this is a Kafka \
                                data directory: Kafka deletes, moves or refuses directories with other names";
                Err(Error::config("path", expected, folder.path_of(name).display().to_string()))
            }
        }
    }

    /// Fails if no partition of this name can be created: Kafka does not accept the name, or a broker is
    /// running.
    pub(crate) fn refuse(folder: &Directory, name: &str) -> Result<()> {
        if is_data_directory(folder, "")? && Self::of(folder.clone(), name)?.is_some() {
            Lock::shared(folder, DATA_DIRECTORY_LOCK)?;
        }
        Ok(())
    }

    /// What the lock is for that a change of the checkpoints takes.
    pub(crate) const TURNS: &str = "writers take turns at the checkpoints of a data directory: try again";

    /// Fails if the directory is a data directory itself, which holds partitions.
    pub(crate) fn refuse_itself(directory: &Directory) -> Result<()> {
        let entries = directory.entries()?;
        let names = || entries.iter().map(|(name, _)| name.as_str());
        if is_data_directory(directory, "")? || !is_partition(names()) && holds_partition(directory, names())
        {
            let expected = "a partition directory, such as orders-0 in this Kafka data directory";
            return Err(Error::config("path", expected, directory.path().display().to_string()));
        }
        Ok(())
    }

    /// Whether there is the marker of a clean shutdown.
    pub(crate) fn has_clean_marker(&self) -> Result<bool> {
        Ok(self.folder.identity_of(CLEAN_SHUTDOWN)?.is_some())
    }

    /// Removes the marker of a clean shutdown, durably: the partition is about to change.
    pub(crate) fn remove_clean_marker(&self) -> Result<()> {
        if self.has_clean_marker()? {
            self.folder.remove(CLEAN_SHUTDOWN)?;
            self.folder.sync()?;
        }
        Ok(())
    }

    /// The partition's offset in a checkpoint; `None` if the checkpoint has no line for it or is damaged: it
    /// is only a hint.
    fn offset(&self, name: &str) -> Result<Option<i64>> {
        let checkpoint = OffsetCheckpoint::read(&self.folder, name)?.ok();
        Ok(checkpoint.and_then(|checkpoint| checkpoint.offset_of(&self.topic, self.partition)))
    }

    pub(crate) fn recovery_point(&self) -> Result<Option<i64>> {
        self.offset(RECOVERY_POINTS)
    }

    pub(crate) fn log_start_offset(&self) -> Result<Option<i64>> {
        self.offset(LOG_START_OFFSETS)
    }

    pub(crate) fn cleaned_offset(&self) -> Result<Option<i64>> {
        self.offset(CLEANED_OFFSETS)
    }

    /// The offset at which a log without a segment starts: its log start offset, as in Kafka. `partition`:
    /// its directory; `own`: the log start offset in the writer's checkpoint.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the recovery point is above the log start offset: the records between them are
    /// lost.
    fn start_without_segments(&self, partition: &Directory, own: i64) -> Result<i64> {
        let start = self.log_start_offset()?.filter(|start| is_offset(*start)).unwrap_or(0).max(own);
        let Some(recovery_point) = self.flushed_offset()?.filter(|point| *point > start) else {
            return Ok(start);
        };
        let (folder, topic, number) = (&self.folder, &self.topic, self.partition);
        let expected = format!(
            "a segment with the offsets {start} to {recovery_point}, because {} has the recovery point \"{topic} {number} \
             {recovery_point}\" (restore the segments; or, to continue without these records at the log start offset of {}, \
             change that line to \"{topic} {number} {start}\")",
            folder.path_of(RECOVERY_POINTS).display(),
            folder.path_of(LOG_START_OFFSETS).display(),
        );
        Err(Malformed::new(expected, "no segment").at(partition.path(), 0, Some(start)))
    }

    /// Fails if the log of a partition ends below its recovery point. Kafka flushes the log up to an offset
    /// before this becomes the recovery point, so that the records are lost, unless a broker stopped between
    /// a truncation and the next write of the file. A snapshot of producers above the end shows nothing: a
    /// roll writes it before the log is flushed.
    ///
    /// *Source*: `UnifiedLog.roll`, `LocalLog.flush`, `LogManager.truncateTo`.
    pub(crate) fn refuse_missing_end(&self, partition: &Directory, end: i64) -> Result<()> {
        let Some(point) = self.flushed_offset()?.filter(|point| *point > end) else { return Ok(()) };
        let expected = format!(
            "a log that ends at offset {point} or above, because {} has the recovery point \"{} {} {point}\" (restore the segments; \
             or, to continue without these records, run cordwood repair with --policy salvage)",
            self.folder.path_of(RECOVERY_POINTS).display(),
            self.topic,
            self.partition,
        );
        Err(Malformed::new(expected, format!("its end at offset {end}")).at(partition.path(), 0, Some(end)))
    }

    /// The recovery point, if it is an offset: the log was flushed up to there.
    pub(crate) fn flushed_offset(&self) -> Result<Option<i64>> {
        Ok(self.recovery_point()?.filter(|point| is_offset(*point)))
    }

    /// Lowers checkpoints that are above the log end offset. They are ignored now, but would hide records
    /// once the log has grown beyond them.
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

    pub(crate) fn write_cleaned_offset(&self, offset: i64) -> Result<()> {
        self.stage(&[(CLEANED_OFFSETS, offset)])?.put()
    }

    /// Stages the replacements of the checkpoints, with the partition's lines as in `checkpoint`. Other
    /// writers wait until they are put in place.
    pub(crate) fn stage_checkpoint(&self, checkpoint: Checkpoint) -> Result<StagedLines> {
        self.stage(&[
            (RECOVERY_POINTS, checkpoint.recovery_point),
            (LOG_START_OFFSETS, checkpoint.log_start_offset),
        ])
    }

    fn stage(&self, lines: &[(&str, i64)]) -> Result<StagedLines> {
        // the writers of other partitions rewrite the same files
        let lock = Lock::wait_exclusive(&self.folder, PartitionLocks::NAME, Self::TURNS)?;
        let mut files = Vec::new();
        for (name, offset) in lines {
            // a damaged file, with which no broker starts, is not changed: its other lines are not known
            let Ok(mut checkpoint) = OffsetCheckpoint::read(&self.folder, name)? else { continue };
            if checkpoint.set(&self.topic, self.partition, *offset) {
                files.push(self.folder.stage(name, checkpoint.to_text().as_bytes())?);
            }
        }
        Ok(StagedLines { files, _lock: lock })
    }
}

/// Whether a checkpoint's number can be an offset.
fn is_offset(number: i64) -> bool {
    (0..i64::MAX).contains(&number)
}

/// The offset at which a log without a segment starts. `data_directory`: its data directory, if the
/// checkpoints there apply to it.
///
/// # Errors
/// [`Error::Corrupt`] if the recovery point, or the offset up to which a writer synced, is above that: the
/// records between them are lost.
pub(crate) fn start_without_segments(
    partition: &Directory,
    checkpoint: Option<Checkpoint>,
    data_directory: Option<&DataDirectory>,
) -> Result<i64> {
    let own = checkpoint.map_or(0, |checkpoint| checkpoint.log_start_offset);
    let start = data_directory.map_or(Ok(own), |found| found.start_without_segments(partition, own))?;
    let durable = durable_offset(partition, CleanMarker::read(partition)?.as_ref())?;
    let Some(durable) = durable.filter(|durable| *durable > start) else {
        // a writer's checkpoint and a recovery point say what is lost; a crash while the first segment is
        // created leaves files of the start
        let point = data_directory.map_or(Ok(None), DataDirectory::recovery_point)?;
        if checkpoint.is_none() && point.is_none() {
            refuse_left_files(partition, Some(start))?;
        }
        return Ok(start);
    };
    let expected = format!(
        "a segment with the offsets {start} to {durable}, because the log was synced up to there (restore the segments; or, to \
         continue without these records, remove {DURABLE} and {CLEAN})"
    );
    Err(Malformed::new(expected, "no segment").at(partition.path(), 0, Some(start)))
}

const RESTORE_OR_REMOVE: &str = "restore the segments; or, to continue without these records, remove all files of the partition but \
     partition.metadata";
/// The snapshots may be the only copy of the cluster's metadata.
const KEEP_METADATA: &str = "restore the segments, or remove nothing: a broker starts from the newest snapshot, a .checkpoint file, \
     without the records after it; cordwood metadata shows what it has";

/// Fails if a partition without a segment has other files of a segment above an offset (`None`: any).
fn refuse_left_files(partition: &Directory, above: Option<i64>) -> Result<()> {
    let left = partition.entries()?.into_iter().filter(|(name, file_type)| {
        // nothing else is a file of a segment
        matches!(file_type, FileType::RegularFile | FileType::Unknown)
            && SegmentFileName::parse(name).is_some_and(|file| {
                file.stage == Stage::Live && above.is_none_or(|offset| file.base_offset > offset)
            })
    });
    // names have their offsets with leading zeros
    let Some((name, _)) = left.max_by(|left, right| left.0.cmp(&right.0)) else { return Ok(()) };
    let is_metadata = partition.path().ends_with(CLUSTER_METADATA_DIRECTORY);
    let advice = if is_metadata { KEEP_METADATA } else { RESTORE_OR_REMOVE };
    let expected = format!("a segment, because the partition had one ({advice})");
    Err(Malformed::new(expected, format!("none, and {name}")).at(partition.path(), 0, above))
}

/// Fails if a partition without a segment had records, as an open for writing does.
///
/// # Errors
/// [`Error::Corrupt`]; [`Error::Io`].
pub(crate) fn refuse_lost(partition: &Directory) -> Result<()> {
    let checkpoint = Checkpoint::read(partition)?;
    if checkpoint.is_some_and(|checkpoint| checkpoint.starting_at.is_some()) {
        // all its records were being removed
        return Ok(());
    }
    if partition.identity_of(COPY_JOURNAL)?.is_none() {
        refuse_left_files(partition, None)?;
    }
    let data_directory = DataDirectory::with_lines_of(partition)?;
    start_without_segments(partition, checkpoint, data_directory.as_ref()).map(drop)
}

/// Whether a directory with these files is a partition directory.
pub(crate) fn is_partition<'a>(mut names: impl Iterator<Item = &'a str>) -> bool {
    names.any(|name| {
        SegmentFileName::parse(name).is_some()
            || [PARTITION_METADATA, LEADER_EPOCH_CHECKPOINT].contains(&name)
    })
}

/// Whether one of these names is that of a partition directory. One that cannot be listed does not count.
pub(crate) fn holds_partition<'a>(directory: &Directory, mut names: impl Iterator<Item = &'a str>) -> bool {
    names.any(|name| {
        let entries = || Directory::open(&directory.path_of(name), "")?.entries();
        PartitionName::parse(name).is_some()
            && entries().is_ok_and(|entries| is_partition(entries.iter().map(|(name, _)| name.as_str())))
    })
}

/// Staged replacements of checkpoints.
#[derive(Debug)]
#[must_use]
pub(crate) struct StagedLines {
    files: Vec<Staged>,
    _lock: Lock,
}

impl StagedLines {
    /// Puts them in place durably.
    pub(crate) fn put(self) -> Result<()> {
        self.files.into_iter().try_for_each(Staged::put)
    }
}
