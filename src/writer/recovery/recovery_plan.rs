//! The changes of a recovery, as a value: the plan before them, the report after them.

use std::fmt;
use std::path::PathBuf;

use crate::log::IntervalSource;

/// What recovery changes in a partition directory.
///
/// [`LogWriter::plan_recovery`](super::super::LogWriter::plan_recovery) returns it before anything is
/// changed, [`LogWriter::recovery`](super::super::LogWriter::recovery) afterwards.
///
/// The plan does not list what every open does: it rewrites the small files of the writer (`.cordwood.*`),
/// writes and removes snapshots of producers (`.snapshot`), creates a missing `leader-epoch-checkpoint`,
/// writes a given topic id, and in a data directory rewrites the partition's lines in the checkpoints
/// and removes `.kafka_cleanshutdown`. The plan does not list the indexes of a removed segment either, which
/// are deleted with it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "binding", derive(serde::Deserialize, serde::Serialize))]
#[non_exhaustive]
pub struct RecoveryPlan {
    /// The partition directory.
    #[cfg_attr(feature = "binding", serde(with = "crate::types::paths"))]
    pub path: PathBuf,
    /// Whether the files have not changed since the last writer closed the log. False for a log written by a
    /// broker, and for a directory without a segment.
    pub closed_cleanly: bool,
    /// The recovery point: recovery reads the segment with this offset and all later ones, unless the log
    /// was closed cleanly.
    pub recovery_point: i64,
    /// The log start offset after recovery.
    pub log_start_offset: i64,
    /// The log end offset after recovery.
    pub log_end_offset: i64,
    /// The base offsets of the segments after recovery, ascending.
    pub segments: Vec<i64>,
    /// The `index.interval.bytes` with which indexes are rebuilt and continued.
    pub index_interval_bytes: u64,
    /// Where the interval is from. It is that of [`LogConfig`] where that states it; otherwise the one of the
    /// writer that closed the log; in a log that no `LogWriter` has opened, the one that the existing offset
    /// indexes show, so that a broker's log stays as it is; or Kafka's default. To show an interval, the
    /// headers of the newest segments are read until they have 256 MiB, and nothing of a log that was closed
    /// cleanly.
    ///
    /// [`LogConfig`]: crate::config::LogConfig
    pub interval_source: IntervalSource,
    /// The byte ranges that are cut from `.log` files.
    pub cuts: Vec<RecoveryCut>,
    /// The index files that are rebuilt.
    pub rebuilt_indexes: Vec<RebuiltIndex>,
    /// The files that are deleted or renamed.
    pub file_changes: Vec<FileChange>,
    /// The segments that are split.
    pub splits: Vec<SegmentSplit>,
    /// The `.deleted` files that stay, because the records of their segments may be nowhere else. A broker
    /// deletes them.
    #[cfg_attr(feature = "binding", serde(with = "crate::types::paths"))]
    pub kept_files: Vec<PathBuf>,
    /// Whether `leader-epoch-checkpoint` is replaced because it does not match the batches, or because there
    /// are no batches.
    pub rewrites_leader_epochs: bool,
}

impl RecoveryPlan {
    /// Whether recovery changes nothing.
    pub fn is_clean(&self) -> bool {
        self.cuts.is_empty()
            && self.rebuilt_indexes.is_empty()
            && self.file_changes.is_empty()
            && self.splits.is_empty()
            && !self.rewrites_leader_epochs
    }
}

/// A byte range that recovery cuts from a `.log` file: a torn write, and everything after it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "binding", derive(serde::Deserialize, serde::Serialize))]
#[non_exhaustive]
pub struct RecoveryCut {
    /// The `.log` file.
    #[cfg_attr(feature = "binding", serde(with = "crate::types::paths"))]
    pub file: PathBuf,
    /// The first byte of the range, in bytes from the start of the file.
    pub start_position: u64,
    /// The end of the range (exclusive): the size of the file.
    pub end_position: u64,
    /// The first offset that the range can hold.
    pub start_offset: i64,
    /// The offset after the last batch of the range; `None` if it is not known.
    pub end_offset: Option<i64>,
    /// Why the range is cut.
    pub reason: String,
    /// The file in `quarantine/` that keeps the bytes; `None` if all of them are zero (preallocated space).
    #[cfg_attr(feature = "binding", serde(with = "crate::types::paths"))]
    pub quarantine: Option<PathBuf>,
}

impl RecoveryCut {
    /// The size of the range in bytes.
    pub fn size(&self) -> u64 {
        self.end_position - self.start_position
    }
}

/// An index file that recovery rebuilds from the batches of its `.log`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "binding", derive(serde::Deserialize, serde::Serialize))]
#[non_exhaustive]
pub struct RebuiltIndex {
    /// The index file.
    #[cfg_attr(feature = "binding", serde(with = "crate::types::paths"))]
    pub file: PathBuf,
    /// What is wrong with the file.
    pub reason: RebuildReason,
}

/// Why an index file is rebuilt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "binding", derive(serde::Deserialize, serde::Serialize))]
#[non_exhaustive]
pub enum RebuildReason {
    /// The file does not exist.
    Missing,
    /// The file starts with the correct entries and is longer: it was not trimmed.
    Untrimmed,
    /// The entries differ from those that recovery writes: they are damaged, or were written with another
    /// `index.interval.bytes`.
    Differs,
}

impl RebuildReason {
    /// A stable name for programs: `missing`, `untrimmed`, `differs`.
    pub fn code(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Untrimmed => "untrimmed",
            Self::Differs => "differs",
        }
    }
}

/// A file that recovery deletes or renames.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "binding", derive(serde::Deserialize, serde::Serialize))]
#[non_exhaustive]
pub struct FileChange {
    /// The file.
    #[cfg_attr(feature = "binding", serde(with = "crate::types::paths"))]
    pub file: PathBuf,
    /// The new path; `None` if the file is deleted.
    #[cfg_attr(feature = "binding", serde(with = "crate::types::paths"))]
    pub new_file: Option<PathBuf>,
    /// Why.
    pub reason: FileChangeReason,
}

/// Why a file is deleted or renamed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "binding", derive(serde::Deserialize, serde::Serialize))]
#[non_exhaustive]
pub enum FileChangeReason {
    /// A temporary file of an interrupted change, such as a truncation or a roll. Deleted.
    Staged,
    /// A file of a replacement (a compaction or a split) that was not committed. Deleted.
    Uncommitted,
    /// A file that a committed replacement replaces. Deleted.
    Replaced,
    /// A file of a committed replacement. Renamed to its final name.
    Committed,
    /// A file of a log whose records were all being removed. Deleted.
    Emptied,
    /// An index without a `.log`, in a directory without a segment. Deleted.
    Orphaned,
    /// A `.deleted` file of a segment, whose records are all in live segments, below the log start offset or
    /// truncated. Deleted.
    Deleted,
}

impl FileChangeReason {
    /// A stable name for programs: `staged`, `uncommitted`, `replaced`, `committed`, `emptied`, `orphaned`,
    /// `deleted`.
    pub fn code(self) -> &'static str {
        match self {
            Self::Staged => "staged",
            Self::Uncommitted => "uncommitted",
            Self::Replaced => "replaced",
            Self::Committed => "committed",
            Self::Emptied => "emptied",
            Self::Orphaned => "orphaned",
            Self::Deleted => "deleted",
        }
    }
}

/// A segment that recovery splits because it has offsets more than 2³¹ − 1 above its base offset.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "binding", derive(serde::Deserialize, serde::Serialize))]
#[non_exhaustive]
pub struct SegmentSplit {
    /// The `.log` file of the segment.
    #[cfg_attr(feature = "binding", serde(with = "crate::types::paths"))]
    pub file: PathBuf,
    /// The base offset of each new segment, ascending.
    pub base_offsets: Vec<i64>,
}

impl fmt::Display for RecoveryCut {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, start_position, end_position, start_offset, .. } = self;
        let size = self.size();
        write!(
            formatter,
            "{}: cut {size} bytes, from position {start_position} to {end_position} (offset {start_offset} on): {}; ",
            file.display(),
            self.reason
        )?;
        match &self.quarantine {
            Some(kept) => write!(formatter, "kept in {}", kept.display()),
            None => formatter.write_str("all bytes are zero and are not kept"),
        }
    }
}

impl fmt::Display for RebuiltIndex {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reason = match self.reason {
            RebuildReason::Missing => "the file is missing",
            RebuildReason::Untrimmed => "the file is longer than its entries",
            RebuildReason::Differs => {
                "the entries differ from those that the batches give, with this index.interval.bytes"
            }
        };
        write!(formatter, "{}: index rebuilt: {reason}", self.file.display())
    }
}

impl fmt::Display for FileChange {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reason = match self.reason {
            FileChangeReason::Staged => {
                "a temporary file of an interrupted truncation, roll, close or opening"
            }
            FileChangeReason::Uncommitted => "an interrupted compaction or split wrote it",
            FileChangeReason::Replaced => "a compaction or a split replaces it",
            FileChangeReason::Committed => "a compaction or a split is committed",
            FileChangeReason::Emptied => "all records of the log were being removed",
            FileChangeReason::Orphaned => "it is an index without a .log",
            FileChangeReason::Deleted => {
                "it was marked as deleted, and its records are in live segments, below the log start or truncated"
            }
        };
        match &self.new_file {
            Some(new_file) => {
                write!(formatter, "{}: renamed to {}: {reason}", self.file.display(), new_file.display())
            }
            None => write!(formatter, "{}: deleted: {reason}", self.file.display()),
        }
    }
}

impl fmt::Display for SegmentSplit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "{}: split into {} segments: offsets are more than 2147483647 above the base offset",
            self.file.display(),
            self.base_offsets.len()
        )
    }
}
