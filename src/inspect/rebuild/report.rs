//! The result of a rebuild.

use std::fmt;
use std::path::PathBuf;

use crate::log::IntervalSource;

/// How the derived files of a partition differ from those that its `.log` files give.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "binding", derive(serde::Deserialize, serde::Serialize))]
#[non_exhaustive]
pub struct RebuildReport {
    /// The partition directory.
    #[cfg_attr(feature = "binding", serde(with = "crate::types::paths"))]
    pub path: PathBuf,
    /// The `index.interval.bytes` of the rebuilt indexes.
    pub index_interval_bytes: u64,
    /// Where the interval is from.
    pub interval_source: IntervalSource,
    /// The offset after the last batch of the log.
    pub log_end_offset: i64,
    /// Whether files were only compared.
    pub dry_run: bool,
    /// Every derived file, by segment: also those that do not differ.
    pub files: Vec<DerivedFile>,
}

impl RebuildReport {
    /// Whether no file differs.
    pub fn is_clean(&self) -> bool {
        self.files.iter().all(|file| file.state == FileState::Unchanged)
    }
}

/// A derived file, and how it differs from the one that the `.log` gives.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "binding", derive(serde::Deserialize, serde::Serialize))]
#[non_exhaustive]
pub struct DerivedFile {
    /// The file.
    #[cfg_attr(feature = "binding", serde(with = "crate::types::paths"))]
    pub file: PathBuf,
    /// Whether and how it differs.
    pub state: FileState,
    /// Its size before the rebuild, bytes; `None` if there was no file.
    pub old_size: Option<u64>,
    /// Its size after the rebuild, bytes; `None` if the file is removed.
    pub new_size: Option<u64>,
    /// The position of the first byte that differs, or the size of the shorter one if the other continues
    /// it; `None` if nothing differs or one of the two does not exist.
    pub first_difference: Option<u64>,
    /// The copy of the old bytes; `None` in a dry run, and if all of them are zero.
    #[cfg_attr(feature = "binding", serde(with = "crate::types::paths"))]
    pub quarantine: Option<PathBuf>,
}

/// Whether and how a derived file differs from the one that the `.log` gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "binding", derive(serde::Deserialize, serde::Serialize))]
#[non_exhaustive]
pub enum FileState {
    /// It does not differ.
    Unchanged,
    /// There is no file.
    Missing,
    /// An offset or time index that starts with the right entries and is longer: it was not trimmed.
    Untrimmed,
    /// It is valid by itself, and its contents are others.
    Differs,
    /// A valid snapshot without some of the producers, which have no open transaction: a broker forgets
    /// producers that were idle for `producer.id.expiration.ms`.
    Expired,
    /// It is not valid by itself: its size, its checksum or its entries.
    Damaged,
    /// A snapshot at an offset inside a batch, below the first segment, or above the end of the log. It is
    /// removed.
    Stray,
}

impl FileState {
    /// A stable name for programs: `unchanged`, `missing`, `untrimmed`, `differs`, `expired`, `damaged`,
    /// `stray`.
    pub fn code(self) -> &'static str {
        match self {
            Self::Unchanged => "unchanged",
            Self::Missing => "missing",
            Self::Untrimmed => "untrimmed",
            Self::Differs => "differs",
            Self::Expired => "expired",
            Self::Damaged => "damaged",
            Self::Stray => "stray",
        }
    }
}

impl fmt::Display for DerivedFile {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: ", self.file.display())?;
        match self.state {
            FileState::Unchanged => formatter.write_str("as the log gives it"),
            FileState::Missing => formatter.write_str("missing"),
            FileState::Untrimmed => formatter.write_str("longer than its entries"),
            FileState::Differs => formatter.write_str("differs from what the log gives"),
            FileState::Expired => formatter.write_str("without producers that a broker forgot"),
            FileState::Damaged => formatter.write_str("damaged"),
            FileState::Stray => {
                formatter.write_str("a snapshot at an offset where the log has no boundary of batches")
            }
        }?;
        match self.first_difference {
            Some(position) => write!(formatter, ", from byte {position} on"),
            None => Ok(()),
        }
    }
}
