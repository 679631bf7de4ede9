//! What Kafka does to a file, and why.

use std::fmt;

/// What Kafka does to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "binding", derive(serde::Deserialize, serde::Serialize))]
#[non_exhaustive]
pub enum ActionKind {
    /// The file is removed.
    Delete,
    /// The file is renamed to `.deleted`, and removed after `file.delete.delay.ms`.
    DeleteLater,
    /// The file gets another name, and replaces any file of that name.
    Rename,
    /// Bytes are cut off a `.log`.
    Cut,
    /// An index is written from the batches.
    Rebuild,
    /// A file is created.
    Create,
    /// The size of an index is changed; its entries stay.
    Resize,
    /// A file is written.
    Write,
}

impl ActionKind {
    /// A stable name, for programs.
    pub fn code(self) -> &'static str {
        match self {
            Self::Delete => "delete",
            Self::DeleteLater => "delete_later",
            Self::Rename => "rename",
            Self::Cut => "cut",
            Self::Rebuild => "rebuild",
            Self::Create => "create",
            Self::Resize => "resize",
            Self::Write => "write",
        }
    }
}

/// Why Kafka does it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "binding", derive(serde::Deserialize, serde::Serialize))]
#[non_exhaustive]
pub enum ActionReason {
    /// The name ends in `.deleted`.
    Deleted,
    /// The file is of a compaction or a split that was not committed.
    Uncommitted,
    /// The file is in the offsets of a committed compaction or split, which replaces it.
    Replaced,
    /// The file is of a committed compaction or split.
    Committed,
    /// An index without its `.log`.
    Orphaned,
    /// The segment has no offset index.
    MissingIndex,
    /// The transaction index has an entry below the base offset.
    WrongTransactionIndex,
    /// The broker was not shut down cleanly, and the segment has offsets at or above the recovery point.
    Recovery,
    /// The batch there is not valid.
    InvalidBatch,
    /// The file ends inside a batch.
    TornBatch,
    /// The offsets of the batches do not ascend, or a file could not be read: the whole segment is emptied.
    InvalidOffset,
    /// A segment before this one was cut.
    AfterCut,
    /// The log ends below its log start offset: all segments are removed.
    BelowLogStart,
    /// There is no segment.
    NoSegment,
    /// There was no file.
    Missing,
    /// It is the active segment, whose indexes have `segment.index.bytes`.
    ActiveSegment,
    /// The state of the producers at an offset.
    Producers,
    /// A snapshot of a segment that does not exist.
    StraySnapshot,
    /// A snapshot at or below the log start offset, or above the offset that is being loaded.
    SnapshotOutOfRange,
    /// A snapshot that is damaged.
    CorruptSnapshot,
    /// The leader epochs differ from those in the file.
    LeaderEpochs,
    /// Offsets of the segment are too far above its base offset for an index.
    Split,
}

impl ActionReason {
    /// A stable name, for programs.
    pub fn code(self) -> &'static str {
        match self {
            Self::Deleted => "deleted",
            Self::Uncommitted => "uncommitted",
            Self::Replaced => "replaced",
            Self::Committed => "committed",
            Self::Orphaned => "orphaned",
            Self::MissingIndex => "missing_index",
            Self::WrongTransactionIndex => "wrong_transaction_index",
            Self::Recovery => "recovery",
            Self::InvalidBatch => "invalid_batch",
            Self::TornBatch => "torn_batch",
            Self::InvalidOffset => "invalid_offset",
            Self::AfterCut => "after_cut",
            Self::BelowLogStart => "below_log_start",
            Self::NoSegment => "no_segment",
            Self::Missing => "missing",
            Self::ActiveSegment => "active_segment",
            Self::Producers => "producers",
            Self::StraySnapshot => "stray_snapshot",
            Self::SnapshotOutOfRange => "snapshot_out_of_range",
            Self::CorruptSnapshot => "corrupt_snapshot",
            Self::LeaderEpochs => "leader_epochs",
            Self::Split => "split",
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Deleted => "left over from a deletion",
            Self::Uncommitted => "of a compaction or split that was not committed",
            Self::Replaced => "replaced by a committed compaction or split",
            Self::Committed => "of a committed compaction or split",
            Self::Orphaned => "an index without its .log",
            Self::MissingIndex => "the segment has no offset index",
            Self::WrongTransactionIndex => "the transaction index has an entry below the base offset",
            Self::Recovery => "unclean shutdown",
            Self::InvalidBatch => "the batch there is not valid",
            Self::TornBatch => "the file ends inside a batch",
            Self::InvalidOffset => "offsets that do not ascend: the segment is emptied",
            Self::AfterCut => "a segment before it was cut",
            Self::BelowLogStart => "the log ends below its log start offset",
            Self::NoSegment => "there is no segment",
            Self::Missing => "it is missing",
            Self::ActiveSegment => "the active segment",
            Self::Producers => "producers",
            Self::StraySnapshot => "of no segment",
            Self::SnapshotOutOfRange => "outside the log",
            Self::CorruptSnapshot => "damaged",
            Self::LeaderEpochs => "leader epochs",
            Self::Split => "offsets too far above the base offset",
        }
    }
}

/// What Kafka does to one file.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "binding", derive(serde::Deserialize, serde::Serialize))]
pub struct LoadAction {
    /// What is done.
    pub kind: ActionKind,
    /// The name of the file.
    pub file: String,
    /// The name after a rename.
    pub new_file: Option<String>,
    /// Why.
    pub reason: ActionReason,
    /// Bytes before; `None` if the file does not exist.
    pub old_size: Option<u64>,
    /// Bytes afterwards; `None` if the file does not exist then.
    pub new_size: Option<u64>,
    /// Whether the file has other bytes afterwards than in the directory.
    pub is_changed: bool,
}

impl fmt::Display for LoadAction {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, file, new_file, reason, old_size, new_size, is_changed } = self;
        let reason = reason.words();
        let (old, new) = (old_size.unwrap_or(0), new_size.unwrap_or(0));
        let same = if *is_changed { "" } else { ", the same bytes" };
        match kind {
            ActionKind::Delete => write!(formatter, "{file}: deleted, {old} bytes ({reason})"),
            ActionKind::DeleteLater => {
                write!(formatter, "{file}: renamed to .deleted and deleted later, {old} bytes ({reason})")
            }
            ActionKind::Rename => {
                write!(formatter, "{file}: renamed to {} ({reason})", new_file.as_deref().unwrap_or_default())
            }
            ActionKind::Cut => {
                write!(
                    formatter,
                    "{file}: cut from {old} to {new} bytes: {} bytes lost ({reason})",
                    old - new
                )
            }
            ActionKind::Rebuild => match old_size {
                Some(old) => write!(formatter, "{file}: rebuilt, {old} -> {new} bytes{same} ({reason})"),
                None => write!(formatter, "{file}: rebuilt, {new} bytes ({reason})"),
            },
            ActionKind::Create => write!(formatter, "{file}: created, {new} bytes ({reason})"),
            ActionKind::Resize => write!(formatter, "{file}: resized, {old} -> {new} bytes ({reason})"),
            ActionKind::Write => write!(formatter, "{file}: written, {new} bytes{same} ({reason})"),
        }
    }
}
