//! The names of a partition directory's files, and of partition directories. Kafka: `LogFileUtils`,
//! `LocalLog.parseTopicPartitionName`.

use std::fmt;

/// The contents of a segment's file, by the file name suffix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FileKind {
    /// `.log`: record batches.
    Log,
    /// `.index`: the offset index.
    OffsetIndex,
    /// `.timeindex`: the time index.
    TimeIndex,
    /// `.txnindex`: aborted transactions.
    TransactionIndex,
    /// `.snapshot`: producer state; the number in its name is an offset, not always a base offset.
    Snapshot,
}

impl FileKind {
    const ALL: [Self; 5] =
        [Self::Log, Self::OffsetIndex, Self::TimeIndex, Self::TransactionIndex, Self::Snapshot];

    /// The kind of a file by its suffix, whatever precedes it; `None` if the suffix is not one of Kafka's.
    pub(crate) fn of_name(name: &str) -> Option<Self> {
        let staged = Stage::ALL.iter().filter(|stage| **stage != Stage::Live);
        let name = staged.into_iter().find_map(|stage| name.strip_suffix(stage.suffix())).unwrap_or(name);
        Self::ALL.into_iter().find(|kind| name.ends_with(kind.suffix()))
    }

    /// Whether a writer preallocates the files, and trims them when it closes the segment.
    #[cfg(feature = "inspect")]
    pub(crate) fn is_preallocated(self) -> bool {
        matches!(self, Self::OffsetIndex | Self::TimeIndex)
    }

    /// The file name suffix, with its dot.
    pub fn suffix(self) -> &'static str {
        match self {
            Self::Log => ".log",
            Self::OffsetIndex => ".index",
            Self::TimeIndex => ".timeindex",
            Self::TransactionIndex => ".txnindex",
            Self::Snapshot => ".snapshot",
        }
    }
}

/// The second suffix of files that are being replaced or deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stage {
    /// Nothing: the file is live.
    Live,
    /// `.swap`: a committed replacement that was not yet renamed.
    Swap,
    /// `.cleaned`: an uncommitted replacement.
    Cleaned,
    /// `.deleted`: to be unlinked.
    Deleted,
}

impl Stage {
    const ALL: [Self; 4] = [Self::Live, Self::Swap, Self::Cleaned, Self::Deleted];

    /// The suffix after that of the kind.
    pub fn suffix(self) -> &'static str {
        match self {
            Self::Live => "",
            Self::Swap => ".swap",
            Self::Cleaned => ".cleaned",
            Self::Deleted => ".deleted",
        }
    }
}

/// The parsed name of a segment file or a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SegmentFileName {
    /// The number in the name: a segment's base offset, or a snapshot's offset.
    pub base_offset: i64,
    /// The contents of the file.
    pub kind: FileKind,
    /// Whether it is live.
    pub stage: Stage,
}

impl SegmentFileName {
    /// Parses a name; `None` for any other file (fewer than 20 digits, another suffix, a number of 2^63 − 1
    /// or above).
    pub fn parse(name: &str) -> Option<Self> {
        let dot = name.find('.')?;
        let (digits, ending) = name.split_at_checked(dot)?;
        if digits.len() < 20 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        // i64::MAX cannot be a base offset: there is no log end offset above it
        let base_offset = digits.parse().ok().filter(|base_offset| *base_offset < i64::MAX)?;
        FileKind::ALL.into_iter().find_map(|kind| {
            let rest = ending.strip_prefix(kind.suffix())?;
            let stage = Stage::ALL.into_iter().find(|stage| stage.suffix() == rest)?;
            Some(Self { base_offset, kind, stage })
        })
    }
}

impl fmt::Display for SegmentFileName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:020}{}{}", self.base_offset, self.kind.suffix(), self.stage.suffix())
    }
}

/// The name of a live segment file: 20 digits and the suffix.
pub fn segment_file(base_offset: i64, kind: FileKind) -> String {
    SegmentFileName { base_offset, kind, stage: Stage::Live }.to_string()
}

/// The names of the live files of a segment, the `.log` last.
pub(crate) fn segment_files_of(base_offset: i64) -> [String; 4] {
    [FileKind::OffsetIndex, FileKind::TimeIndex, FileKind::TransactionIndex, FileKind::Log]
        .map(|kind| segment_file(base_offset, kind))
}

/// Kafka's own topics, which brokers create compacted, and the log of the controllers, which clients do not
/// see as a topic.
///
/// *Source*: `Topic.isInternal`; `AutoTopicCreationManager`.
pub(crate) const INTERNAL_TOPICS: [&str; 4] =
    ["__consumer_offsets", "__transaction_state", "__share_group_state", "__cluster_metadata"];

/// The directory of the metadata log of a cluster.
pub(crate) const CLUSTER_METADATA_DIRECTORY: &str = "__cluster_metadata-0";

/// The end offset and the epoch in the name of a snapshot of the metadata log of a cluster; `None` for any
/// other file. Kafka: `Snapshots.parse`.
#[cfg(feature = "inspect")]
pub(crate) fn metadata_snapshot(name: &str) -> Option<(i64, i32)> {
    let (offset, epoch) = name.strip_suffix(".checkpoint")?.split_once('-')?;
    let are_digits =
        |text: &str, digits| text.len() == digits && text.bytes().all(|byte| byte.is_ascii_digit());
    if !are_digits(offset, 20) || !are_digits(epoch, 10) {
        return None;
    }
    Some((offset.parse().ok()?, epoch.parse().ok()?))
}

/// A partition directory's state, by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PartitionState {
    /// `topic-0`
    Live,
    /// `topic-0.<id>-delete`
    Delete,
    /// `topic-0.<id>-future`
    Future,
    /// `topic-0.<id>-stray`
    Stray,
}

/// The parsed name of a partition directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionName {
    /// The topic.
    pub topic: String,
    /// The partition's number.
    pub partition: i32,
    /// Whether the partition is live, or being moved or deleted.
    pub state: PartitionState,
}

impl PartitionName {
    /// Parses a directory's name; `None` if it is not that of a partition.
    pub fn parse(name: &str) -> Option<Self> {
        let suffixes = [
            ("-delete", PartitionState::Delete),
            ("-future", PartitionState::Future),
            ("-stray", PartitionState::Stray),
        ];
        let mut state = PartitionState::Live;
        let mut stem = name;
        for (suffix, named) in suffixes {
            if let Some(rest) = name.strip_suffix(suffix) {
                // `<topic>-<partition>.<unique id>`: the id is everything after the last dot
                let (before, id) = rest.rsplit_once('.')?;
                if id.is_empty() {
                    return None;
                }
                (stem, state) = (before, named);
            }
        }
        let (topic, partition) = stem.rsplit_once('-')?;
        // Kafka parses the number as an int, which accepts a plus
        let digits = partition.strip_prefix('+').unwrap_or(partition);
        if topic.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        Some(Self { topic: topic.to_owned(), partition: partition.parse().ok()?, state })
    }
}

/// Whether Kafka accepts a topic name. Kafka: `Topic.isValid`.
#[doc(hidden)]
pub fn is_topic(name: &str) -> bool {
    let is_legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    !matches!(name, "" | "." | "..") && name.len() <= 249 && name.bytes().all(is_legal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topic_names_are_those_that_kafka_accepts() {
        for topic in ["a", "A.b_c-9", "...", &"x".repeat(249)] {
            assert!(is_topic(topic), "{topic}");
        }
        for other in ["", ".", "..", "t\u{e4}", "a b", "a/b", &"x".repeat(250)] {
            assert!(!is_topic(other), "{other}");
        }
    }

    #[test]
    fn segment_names_have_at_least_twenty_digits_and_a_known_suffix() {
        let parsed = |name| SegmentFileName::parse(name);
        let name = |base_offset, kind, stage| Some(SegmentFileName { base_offset, kind, stage });
        assert_eq!(parsed("00000000000000000042.log"), name(42, FileKind::Log, Stage::Live));
        assert_eq!(parsed("00000000000000000042.timeindex.swap"), name(42, FileKind::TimeIndex, Stage::Swap));
        assert_eq!(
            parsed("00000000000000000042.snapshot.deleted"),
            name(42, FileKind::Snapshot, Stage::Deleted)
        );
        assert_eq!(
            parsed("000000000000000000042.index.cleaned"),
            name(42, FileKind::OffsetIndex, Stage::Cleaned)
        );
        for other in [
            "7.log",
            "notes.log",
            "00000000000000000000.log.bak",
            "99999999999999999999.log",
            "09223372036854775807.log",
            "-0000000000000000001.log",
            "00000000000000000007.checkpoint",
            "00000000000000000038-0000000001.checkpoint",
            "README",
        ] {
            assert_eq!(parsed(other), None, "{other}");
        }
        assert_eq!(segment_file(42, FileKind::TransactionIndex), "00000000000000000042.txnindex");
    }

    #[test]
    fn partition_names_split_at_the_last_dash() {
        let parsed =
            |name| PartitionName::parse(name).map(|parsed| (parsed.topic, parsed.partition, parsed.state));
        assert_eq!(parsed("test_topic-143"), Some(("test_topic".into(), 143, PartitionState::Live)));
        assert_eq!(
            parsed("foo.bar-testtopic-42.00ff-delete"),
            Some(("foo.bar-testtopic".into(), 42, PartitionState::Delete))
        );
        assert_eq!(parsed("topic-+7"), Some(("topic".into(), 7, PartitionState::Live)));
        assert_eq!(parsed("a-1.00ff-future"), Some(("a".into(), 1, PartitionState::Future)));
        assert_eq!(parsed("a-1.00ff-stray"), Some(("a".into(), 1, PartitionState::Stray)));
        for other in
            ["", "nodash", "-0", "topic-", "topic-x", "topic-+", "topic-0-delete", "topic-4294967296"]
        {
            assert_eq!(parsed(other), None, "{other}");
        }
    }
}
