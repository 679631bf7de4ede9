//! The changes of a repair, as a value: the plan before them, the report after them.

use crate::types::offsets_in_words;
use std::fmt;
use std::path::PathBuf;

/// What damage is mended, and what is given up for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "binding", derive(serde::Deserialize, serde::Serialize))]
#[non_exhaustive]
pub enum RepairPolicy {
    /// Cuts a torn write: damage at the end of the last segment, after which no valid batch follows. Other
    /// damage of a `.log` is an error.
    #[default]
    TornTail,
    /// Cuts the log at the first damage and removes everything after it, as a broker does at a wrong checksum
    /// when it recovers a log. A broker compares no offsets and no epochs: where a batch with a right
    /// checksum contradicts others, it usually keeps the log, and this policy cuts it; the reason of the
    /// cut says so. Damage below the log start offset is taken out only. A cut below the log start offset
    /// is an error.
    Kafka,
    /// Takes damaged bytes out and keeps every intact batch, with its offsets. Offsets are missing where the
    /// damage was. Header fields outside the checksum and one wrong bit of a transaction's marker are
    /// corrected where the checksum and the neighbouring batches determine them.
    Salvage,
}

impl RepairPolicy {
    /// All policies.
    pub const ALL: [Self; 3] = [Self::TornTail, Self::Kafka, Self::Salvage];

    /// A stable name for programs: `torn_tail`, `kafka`, `salvage`.
    pub fn code(self) -> &'static str {
        match self {
            Self::TornTail => "torn_tail",
            Self::Kafka => "kafka",
            Self::Salvage => "salvage",
        }
    }

    /// Whether the log may end below the offset up to which a `LogWriter` synced it.
    pub(super) fn lowers_durable_offset(self) -> bool {
        self != Self::TornTail
    }
}

/// What a repair changes in a partition directory, or has changed.
///
/// It does not list the files of a `LogWriter` (`.cordwood.*`), whose recovery points are lowered with the
/// log before the first change, unless they show that records are missing.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "binding", derive(serde::Deserialize, serde::Serialize))]
#[non_exhaustive]
pub struct RepairPlan {
    /// The partition directory.
    #[cfg_attr(feature = "binding", serde(with = "crate::types::paths"))]
    pub path: PathBuf,
    /// The policy.
    pub policy: RepairPolicy,
    /// Whether the changes were made.
    pub is_applied: bool,
    /// The changes, in the order in which they are made.
    pub actions: Vec<RepairAction>,
    /// The parts of the log that are lost, ascending: their bytes are kept in `quarantine/` only.
    pub lost_ranges: Vec<LostRange>,
    /// The number of batches in the log after the repair.
    pub kept_batches: u64,
    /// The bytes of these batches.
    pub kept_bytes: u64,
    /// The base offsets of the segments after the repair, ascending.
    pub segments: Vec<i64>,
    /// The log end offset after the repair.
    pub log_end_offset: i64,
    /// The `.deleted` files that stay, because the records of their segments may be nowhere else. A broker
    /// deletes them. `verify` names the offsets of each, and how its records can be read.
    #[cfg_attr(feature = "binding", serde(with = "crate::types::paths"))]
    pub kept_files: Vec<PathBuf>,
    /// Files of others, which are left: they end in `.log` or another suffix of Kafka's, but their names
    /// have no base offset of 20 digits. A broker does not load the partition before they are moved
    /// away.
    #[cfg_attr(feature = "binding", serde(with = "crate::types::paths"))]
    pub foreign_files: Vec<PathBuf>,
    /// Whether the data directory has the broker's `.kafka_cleanshutdown`. A repair removes it before its
    /// first change: at its next start the broker recovers all partitions, instead of trusting files that
    /// have changed.
    pub has_clean_shutdown: bool,
}

impl RepairPlan {
    /// Whether there is nothing to repair.
    pub fn is_clean(&self) -> bool {
        self.actions.is_empty()
    }

    /// The number of bytes in the lost ranges.
    pub fn lost_bytes(&self) -> u64 {
        self.lost_ranges.iter().map(LostRange::size).sum()
    }
}

/// The kind of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "binding", derive(serde::Deserialize, serde::Serialize))]
#[non_exhaustive]
pub enum RepairActionKind {
    /// Bytes are cut off the end of a `.log`.
    Cut,
    /// Bytes are taken out of the middle of a `.log`.
    TakeOut,
    /// Header fields of a batch that no checksum covers are corrected.
    CorrectHeader,
    /// A bit of the marker of a transaction is corrected, with which its checksum matches.
    CorrectMarker,
    /// A batch is moved to the place where its offsets are missing.
    MoveBatch,
    /// A segment is removed, with its indexes.
    RemoveSegment,
    /// A file is removed.
    RemoveFile,
    /// A file loses the suffix `.swap`: a compaction or a split was committed.
    FinishReplacement,
    /// An index or a snapshot is built from the `.log`.
    Rebuild,
    /// `leader-epoch-checkpoint` is replaced.
    ReplaceLeaderEpochs,
    /// The partition's line in a checkpoint of the data directory, or the durable offset of a `LogWriter`, is
    /// lowered.
    LowerCheckpoint,
}

impl RepairActionKind {
    /// A stable name for programs, such as `take_out`.
    pub fn code(self) -> &'static str {
        match self {
            Self::Cut => "cut",
            Self::TakeOut => "take_out",
            Self::CorrectHeader => "correct_header",
            Self::CorrectMarker => "correct_marker",
            Self::MoveBatch => "move_batch",
            Self::RemoveSegment => "remove_segment",
            Self::RemoveFile => "remove_file",
            Self::FinishReplacement => "finish_replacement",
            Self::Rebuild => "rebuild",
            Self::ReplaceLeaderEpochs => "replace_leader_epochs",
            Self::LowerCheckpoint => "lower_checkpoint",
        }
    }

    fn verb(self) -> &'static str {
        match self {
            Self::Cut => "cut off",
            Self::TakeOut => "taken out",
            Self::CorrectHeader => "header corrected",
            Self::CorrectMarker => "marker corrected",
            Self::MoveBatch => "batch moved",
            Self::RemoveSegment | Self::RemoveFile => "removed",
            Self::FinishReplacement => "renamed without .swap",
            Self::Rebuild => "rebuilt",
            Self::ReplaceLeaderEpochs => "replaced",
            Self::LowerCheckpoint => "lowered",
        }
    }
}

/// A change of a repair.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "binding", derive(serde::Deserialize, serde::Serialize))]
#[non_exhaustive]
pub struct RepairAction {
    /// What is done.
    pub kind: RepairActionKind,
    /// The file.
    #[cfg_attr(feature = "binding", serde(with = "crate::types::paths"))]
    pub file: PathBuf,
    /// The first byte that is removed or replaced, in bytes from the start of the file.
    pub start_position: u64,
    /// The end of these bytes (exclusive).
    pub end_position: u64,
    /// Why, with the evidence.
    pub reason: String,
    /// The file in `quarantine/` that keeps the bytes; `None` if no byte is removed or all are zero.
    #[cfg_attr(feature = "binding", serde(with = "crate::types::paths"))]
    pub quarantine: Option<PathBuf>,
}

impl RepairAction {
    /// The number of bytes that are removed or replaced.
    pub fn size(&self) -> u64 {
        self.end_position - self.start_position
    }
}

/// A range of a `.log` that is lost.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "binding", derive(serde::Deserialize, serde::Serialize))]
#[non_exhaustive]
pub struct LostRange {
    /// The `.log` file.
    #[cfg_attr(feature = "binding", serde(with = "crate::types::paths"))]
    pub file: PathBuf,
    /// The first byte, in bytes from the start of the file as it was.
    pub start_position: u64,
    /// The end (exclusive).
    pub end_position: u64,
    /// The first offset that may be lost.
    pub start_offset: i64,
    /// The end of these offsets (exclusive); equal to the start if no offset is lost, as with a repeated
    /// batch. `None` if it is not known: nothing valid follows.
    pub end_offset: Option<i64>,
    /// Why.
    pub reason: String,
    /// The file in `quarantine/` that keeps the bytes.
    #[cfg_attr(feature = "binding", serde(with = "crate::types::paths"))]
    pub quarantine: Option<PathBuf>,
}

impl LostRange {
    /// The size of the range in bytes.
    pub fn size(&self) -> u64 {
        self.end_position - self.start_position
    }
}

impl fmt::Display for RepairAction {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, file, start_position, end_position, reason, quarantine } = self;
        write!(formatter, "{}: {}", file.display(), kind.verb())?;
        if self.size() > 0 {
            write!(formatter, " {} bytes, from position {start_position} to {end_position}", self.size())?;
        }
        write!(formatter, ": {reason}")?;
        match quarantine {
            Some(kept) => write!(formatter, "; kept in {}", kept.display()),
            None => Ok(()),
        }
    }
}

impl fmt::Display for LostRange {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, start_position, end_position, start_offset, end_offset, reason, .. } = self;
        let offsets = offsets_in_words(*start_offset, *end_offset);
        write!(
            formatter,
            "{}: positions {start_position} to {end_position}, {offsets}: {reason}",
            file.display()
        )
    }
}
