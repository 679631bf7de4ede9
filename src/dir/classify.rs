//! Classification of paths: a data directory, a partition, or one of their files.

use std::path::Path;

use super::entries::DirectoryEntry;
use crate::error::{Error, IoAction, NotFound, Result};
use crate::fs::names::{FileKind, PartitionName, SegmentFileName, Stage};
#[cfg(feature = "plan")]
use crate::fs::names::{PartitionState, is_topic};
use crate::fs::{Directory, META_PROPERTIES, is_data_directory};
use crate::segment::with_descriptors;
use crate::state::data_directory::{REMOTE_LOG_INDEX_CACHE, holds_partition, is_partition};
use crate::state::leader_epochs::LEADER_EPOCH_CHECKPOINT;
use crate::state::offset_checkpoint::{CLEANED_OFFSETS, HIGH_WATERMARKS, LOG_START_OFFSETS, RECOVERY_POINTS};
use crate::state::partition_metadata::PARTITION_METADATA;

/// The kind of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PathKind {
    /// A broker's data directory: it contains `meta.properties`, `.lock`, an offset checkpoint or a
    /// partition.
    DataDirectory,
    /// A partition directory.
    Partition,
    /// A file of a segment, or a producer snapshot.
    Segment(FileKind),
    /// `leader-epoch-checkpoint`
    LeaderEpochCheckpoint,
    /// `partition.metadata`
    PartitionMetadata,
    /// An offset checkpoint of a data directory, such as `recovery-point-offset-checkpoint`.
    OffsetCheckpoint,
    /// `meta.properties`
    MetaProperties,
    /// Another file or directory of a broker's data directory: a lock, a marker, a checkpoint that is being
    /// replaced.
    BrokerFile,
    /// Anything else.
    Other,
}

impl PathKind {
    /// Its name in Python: `data_directory`, `partition`, `log`, `offset_index`, …
    pub fn name(self) -> &'static str {
        match self {
            Self::DataDirectory => "data_directory",
            Self::Partition => "partition",
            Self::Segment(FileKind::Log) => "log",
            Self::Segment(FileKind::OffsetIndex) => "offset_index",
            Self::Segment(FileKind::TimeIndex) => "time_index",
            Self::Segment(FileKind::TransactionIndex) => "transaction_index",
            Self::Segment(FileKind::Snapshot) => "producer_snapshot",
            Self::LeaderEpochCheckpoint => "leader_epoch_checkpoint",
            Self::PartitionMetadata => "partition_metadata",
            Self::OffsetCheckpoint => "offset_checkpoint",
            Self::MetaProperties => "meta_properties",
            Self::BrokerFile => "broker_file",
            Self::Other => "other",
        }
    }
}

/// The kind of a path, and the parsed names in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathInfo {
    /// The kind.
    pub kind: PathKind,
    /// The partition of the path, parsed from the directory's name; `None` if the name is not
    /// `topic-partition`.
    pub partition: Option<PartitionName>,
    /// The base offset in the name of a segment file, or the offset in the name of a producer snapshot.
    pub base_offset: Option<i64>,
    /// Whether a segment file is live, or the stage of its replacement or deletion.
    pub stage: Option<Stage>,
}

impl PathInfo {
    fn of(kind: PathKind, directory: &Path) -> Self {
        Self { kind, partition: partition_name(directory), base_offset: None, stage: None }
    }
}

/// Classifies a path: a directory by the files in it, a file by its name.
///
/// # Errors
/// [`Error::LogNotFound`] if the path does not exist; [`Error::Io`].
pub fn classify(path: impl AsRef<Path>) -> Result<PathInfo> {
    let path =
        std::path::absolute(&path).map_err(|error| Error::io(path.as_ref(), IoAction::Resolve, error))?;
    match with_descriptors(|| Directory::open(&path, "give the path of a file or directory that exists")) {
        Ok(directory) => with_descriptors(|| of_directory(&directory)),
        Err(Error::LogNotFound { found: NotFound::NoDirectoryButAFile, .. }) => Ok(of_file(&path)),
        Err(error) => Err(error),
    }
}

fn of_directory(directory: &Directory) -> Result<PathInfo> {
    let other = PathInfo { kind: PathKind::Other, partition: None, base_offset: None, stage: None };
    if directory.path().file_name().is_some_and(|name| name == REMOTE_LOG_INDEX_CACHE) {
        return Ok(PathInfo { kind: PathKind::BrokerFile, ..other });
    }
    let entries = directory.entries()?;
    let names = || entries.iter().map(|(name, _)| name.as_str());
    if is_partition(names()) {
        return Ok(PathInfo::of(PathKind::Partition, directory.path()));
    }
    if is_data_directory(directory, "")? || holds_partition(directory, names()) {
        return Ok(PathInfo { kind: PathKind::DataDirectory, ..other });
    }
    // a partition that Kafka has just created has no file
    let is_new = partition_name(directory.path()).is_some()
        && directory.identity_of(&format!("../{META_PROPERTIES}"))?.is_some();
    Ok(if is_new { PathInfo::of(PathKind::Partition, directory.path()) } else { other })
}

fn of_file(path: &Path) -> PathInfo {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let directory = path.parent().unwrap_or(path);
    if let Some(SegmentFileName { base_offset, kind, stage }) = SegmentFileName::parse(name) {
        let info = PathInfo::of(PathKind::Segment(kind), directory);
        return PathInfo { base_offset: Some(base_offset), stage: Some(stage), ..info };
    }
    let kind = match name {
        LEADER_EPOCH_CHECKPOINT => PathKind::LeaderEpochCheckpoint,
        PARTITION_METADATA => PathKind::PartitionMetadata,
        RECOVERY_POINTS | LOG_START_OFFSETS | CLEANED_OFFSETS | HIGH_WATERMARKS => PathKind::OffsetCheckpoint,
        META_PROPERTIES => PathKind::MetaProperties,
        name if DirectoryEntry::of(name, false) == DirectoryEntry::Known => PathKind::BrokerFile,
        _ => PathKind::Other,
    };
    match kind {
        PathKind::LeaderEpochCheckpoint | PathKind::PartitionMetadata => PathInfo::of(kind, directory),
        kind => PathInfo { kind, partition: None, base_offset: None, stage: None },
    }
}

fn partition_name(directory: &Path) -> Option<PartitionName> {
    PartitionName::parse(directory.file_name()?.to_str()?)
}

/// Whether a directory has a segment: a `.log`, or one that Kafka would rename to it.
///
/// # Errors
/// As [`Directory::open`].
#[cfg(feature = "plan")]
pub fn has_segments(path: &Path) -> Result<bool> {
    let directory = with_descriptors(|| {
        Directory::open(path, "give the path of a partition directory, such as data/orders-0")
    })?;
    let entries = with_descriptors(|| directory.entries())?;
    let is_segment = |name: &str| {
        SegmentFileName::parse(name)
            .is_some_and(|file| file.kind == FileKind::Log && matches!(file.stage, Stage::Live | Stage::Swap))
    };
    Ok(entries.iter().any(|(name, _)| is_segment(name)))
}

/// The topic and the number in the name of a live partition directory; `None` if Kafka would not accept the
/// name.
#[cfg(feature = "plan")]
pub(crate) fn live_partition(name: &str) -> Option<(String, i32)> {
    let PartitionName { topic, partition, state } = PartitionName::parse(name)?;
    (state == PartitionState::Live && is_topic(&topic)).then_some((topic, partition))
}
