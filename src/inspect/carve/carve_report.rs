//! What was found in an image.

use std::fmt;
use std::path::PathBuf;

/// The batches that were found in an image or in the files of a directory.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "binding", derive(serde::Deserialize, serde::Serialize))]
#[non_exhaustive]
pub struct CarveReport {
    /// The image, or the directory.
    #[cfg_attr(feature = "binding", serde(with = "crate::types::paths"))]
    pub path: PathBuf,
    /// The runs, by their first offset.
    pub runs: Vec<CarvedRun>,
    /// Runs with fewer records than wanted. They are neither listed nor written.
    pub small_runs: u64,
    /// The number of batches that have the same bytes as one that was found before. They are counted in no
    /// run.
    pub repeated_batches: u64,
    /// The number of possible batches above 1 MiB that were not checked, because too many overlapped.
    pub given_up: u64,
    /// Bytes that were searched.
    pub bytes_searched: u64,
    /// The directory with the carved partitions; `None` if nothing was written.
    #[cfg_attr(feature = "binding", serde(with = "crate::types::paths"))]
    pub destination: Option<PathBuf>,
}

/// Batches that belong together: a part of one partition.
///
/// Every batch has a valid checksum. That a run belongs to one partition follows from positions and offsets
/// only: see [`CarvedRun::confidence`].
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "binding", derive(serde::Deserialize, serde::Serialize))]
#[non_exhaustive]
pub struct CarvedRun {
    /// Where its batches are, in the order of their offsets.
    pub pieces: Vec<CarvedPiece>,
    /// The first offset.
    pub first_offset: i64,
    /// The last offset, inclusive.
    pub last_offset: i64,
    /// The number of batches.
    pub batches: u64,
    /// The number of records.
    pub records: u64,
    /// The bytes of its batches.
    pub bytes: u64,
    /// The size of the largest batch, bytes.
    pub largest_batch: u32,
    /// The smallest and the largest of its batches' largest timestamps, ms since the epoch; `None` if no
    /// batch has one.
    pub timestamps: Option<(i64, i64)>,
    /// The leader epochs of the first and the last batch; −1 if it has none.
    pub leader_epochs: (i32, i32),
    /// The formats of its batches: 0, 1, 2.
    pub magics: Vec<u8>,
    /// The names of the codecs.
    pub codecs: Vec<String>,
    /// The producer ids; the first 1,000 of them.
    pub producer_ids: Vec<i64>,
    /// The number of places at which offsets are missing.
    pub gaps: u64,
    /// The numbers of other runs that have some of its offsets, with other bytes: of other partitions, or of
    /// another version of this one. The first 16 of them.
    pub conflicts: Vec<usize>,
    /// The partition directory with the run; `None` if nothing was written.
    #[cfg_attr(feature = "binding", serde(with = "crate::types::paths"))]
    pub directory: Option<PathBuf>,
}

/// A range of an image.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "binding", derive(serde::Deserialize, serde::Serialize))]
#[non_exhaustive]
pub struct CarvedPiece {
    /// The image.
    #[cfg_attr(feature = "binding", serde(with = "crate::types::paths"))]
    pub file: PathBuf,
    /// The first byte, in bytes from the start of the image.
    pub start_position: u64,
    /// The end (exclusive).
    pub end_position: u64,
    /// The first offset.
    pub first_offset: i64,
    /// The last offset, inclusive.
    pub last_offset: i64,
}

/// How sure it is that the batches of a run are of one partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Confidence {
    /// They follow each other without a missing offset, in one range of one image.
    High,
    /// They follow each other in one range, with missing offsets, as compaction leaves them.
    Gaps,
    /// Ranges were joined, because one begins with exactly the offset after the other.
    Joined,
    /// It is a single batch.
    Single,
}

impl Confidence {
    /// A stable name for programs: `high`, `gaps`, `joined`, `single`.
    pub fn code(self) -> &'static str {
        match self {
            Self::High => "high",
            Self::Gaps => "gaps",
            Self::Joined => "joined",
            Self::Single => "single",
        }
    }
}

impl fmt::Display for Confidence {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::High => "offsets without a gap, in one range of bytes",
            Self::Gaps => "one range of bytes, but offsets are missing in it: compacted, or two partitions",
            Self::Joined => "several ranges of bytes, joined because their offsets continue exactly",
            Self::Single => "a single batch: only its checksum shows that it is one",
        })
    }
}

impl CarvedRun {
    /// How sure it is that its batches are of one partition.
    pub fn confidence(&self) -> Confidence {
        match (self.batches, self.pieces.len(), self.gaps) {
            (1, ..) => Confidence::Single,
            (_, 2.., _) => Confidence::Joined,
            (_, _, 1..) => Confidence::Gaps,
            _ => Confidence::High,
        }
    }
}
