//! The options, the progress and the report of a copy.

use std::path::PathBuf;

use crate::log::{DamagedRange, OnDamage, Ranges};
use crate::record::MAX_BATCH_BYTES;
use crate::types::{Interrupt, OnWarning};

/// What is copied, and how.
#[derive(Debug, Clone)]
pub struct CopyOptions {
    /// The range; by default all segments, with the records that the log start offset hides. The copy has
    /// every batch with an offset in the range of offsets; and all batches from the first to the last
    /// one with a record in the range of times.
    pub ranges: Ranges,
    /// With [`OnDamage::Raise`], damage ends the copy with an error; otherwise it is left out and reported.
    pub on_damage: OnDamage,
    /// Whether sealed segments that are copied whole become hard links to the files of the source, where the
    /// file system allows it. See [`copy`](super::copy()).
    pub hard_links: bool,
    /// The largest batch, bytes, as stored and decompressed. See
    /// [`LogOptions::max_batch_bytes`](crate::log::LogOptions).
    pub max_batch_bytes: usize,
    /// Called during the copy.
    pub interrupt: Interrupt,
    /// Receives the warnings of the source.
    pub on_warning: OnWarning,
}

impl Default for CopyOptions {
    fn default() -> Self {
        Self {
            ranges: Ranges::default(),
            on_damage: OnDamage::default(),
            hard_links: false,
            max_batch_bytes: MAX_BATCH_BYTES,
            interrupt: Interrupt::default(),
            on_warning: OnWarning::default(),
        }
    }
}

/// How far a copy is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CopyProgress {
    /// Bytes of batches read so far.
    pub bytes: u64,
    /// Bytes of the segments that are copied; more than the batches of a range.
    pub total_bytes: u64,
}

/// A copy that is complete.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "binding", derive(serde::Deserialize, serde::Serialize))]
pub struct CopyReport {
    /// The directory of the source, absolute.
    #[cfg_attr(feature = "binding", serde(with = "crate::types::paths"))]
    pub source: PathBuf,
    /// The directory of the copy, absolute.
    #[cfg_attr(feature = "binding", serde(with = "crate::types::paths"))]
    pub path: PathBuf,
    /// The base offset of the first segment of the copy: no batch of the copy has a lower offset. `None` for
    /// a data directory.
    pub start_offset: Option<i64>,
    /// The log end offset of the copy. `None` for a data directory.
    pub end_offset: Option<i64>,
    /// The log start offset of the copy. `None` for a data directory.
    pub log_start_offset: Option<i64>,
    /// The base offsets of its segments, ascending; none for a data directory.
    pub segments: Vec<i64>,
    /// The copies of the partitions of a data directory, by topic and number; the fields below are their
    /// sums.
    pub partitions: Vec<CopyReport>,
    /// The number of its batches.
    pub batches: u64,
    /// The bytes of its `.log` files.
    pub bytes: u64,
    /// The bytes of `.log` files that this call wrote. Fewer than all if some files are links, or an earlier
    /// call has written them; 0 if the copy was complete before.
    pub bytes_written: u64,
    /// The number of segments that are hard links.
    pub linked: u64,
    /// What was left out.
    pub damaged_ranges: Vec<DamagedRange>,
    /// The number of transactions that are open at the end of the copy. Their records stay invisible to
    /// committed readers.
    pub open_transactions: u64,
    /// What differs from the source beside the damaged ranges.
    pub warnings: Vec<String>,
}

impl CopyReport {
    /// The report of a data directory.
    pub(super) fn of_partitions(source: PathBuf, path: PathBuf, partitions: Vec<Self>) -> Self {
        let mut all = Self { source, path, ..Self::default() };
        for partition in &partitions {
            all.batches += partition.batches;
            all.bytes += partition.bytes;
            all.bytes_written += partition.bytes_written;
            all.linked += partition.linked;
            all.damaged_ranges.extend_from_slice(&partition.damaged_ranges);
            all.open_transactions += partition.open_transactions;
            all.warnings.extend_from_slice(&partition.warnings);
        }
        Self { partitions, ..all }
    }
}
