//! What belongs into a data directory.

use crate::fs::names::PartitionName;
use crate::fs::{DATA_DIRECTORY_LOCK, META_PROPERTIES, PartitionLocks, STAGED};
use crate::state::data_directory::{BOOTSTRAP_CHECKPOINT, CLEAN_SHUTDOWN, REMOTE_LOG_INDEX_CACHE};
use crate::state::offset_checkpoint::{CLEANED_OFFSETS, HIGH_WATERMARKS, LOG_START_OFFSETS, RECOVERY_POINTS};

/// The files of a broker and of this library. Each is replaced by one with the suffix `.tmp`.
const FILES: [&str; 9] = [
    META_PROPERTIES,
    DATA_DIRECTORY_LOCK,
    CLEAN_SHUTDOWN,
    BOOTSTRAP_CHECKPOINT,
    RECOVERY_POINTS,
    LOG_START_OFFSETS,
    CLEANED_OFFSETS,
    HIGH_WATERMARKS,
    PartitionLocks::NAME,
];

/// The directories that a broker does not take for partitions; it removes the second one before. Any other
/// one without a partition's name ends its start.
///
/// *Source*: `LogManager.loadLogs`.
const NOT_PARTITIONS: [&str; 2] = [REMOTE_LOG_INDEX_CACHE, CLEAN_SHUTDOWN];

/// What an entry of a data directory is, by its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DirectoryEntry {
    /// A directory with the name of a partition, live or not.
    Partition(PartitionName),
    /// A file or a directory of a broker, or of this library.
    Known,
    /// Anything else. If it is a directory, a broker does not start.
    Foreign,
}

impl DirectoryEntry {
    /// `is_directory`: whether it is one, or a link to one, which a broker follows.
    pub fn of(name: &str, is_directory: bool) -> Self {
        let is_known = if is_directory {
            NOT_PARTITIONS.contains(&name)
        } else {
            FILES.contains(&name.strip_suffix(STAGED).unwrap_or(name))
        };
        match PartitionName::parse(name).filter(|_| is_directory) {
            Some(partition) => Self::Partition(partition),
            None if is_known => Self::Known,
            None => Self::Foreign,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_a_partition_or_known_or_foreign() {
        let kind = |name: &str, is_directory| match DirectoryEntry::of(name, is_directory) {
            DirectoryEntry::Partition(_) => "partition",
            DirectoryEntry::Known => "known",
            DirectoryEntry::Foreign => "foreign",
        };
        for name in ["orders-0", "orders-0.0123456789abcdef0123456789abcdef-delete", "__cluster_metadata-0"] {
            assert_eq!([kind(name, true), kind(name, false)], ["partition", "foreign"], "{name}");
        }
        for name in FILES {
            let staged = format!("{name}.tmp");
            assert_eq!([kind(name, false), kind(&staged, false)], ["known"; 2], "{name}");
        }
        assert_eq!(
            [kind(REMOTE_LOG_INDEX_CACHE, true), kind(REMOTE_LOG_INDEX_CACHE, false)],
            ["known", "foreign"]
        );
        assert_eq!([kind(CLEAN_SHUTDOWN, true), kind(META_PROPERTIES, true)], ["known", "foreign"]);
        for name in ["lost+found", ".snapshot", "notes.txt", ".tmp", "orders"] {
            assert_eq!([kind(name, true), kind(name, false)], ["foreign"; 2], "{name}");
        }
    }
}
