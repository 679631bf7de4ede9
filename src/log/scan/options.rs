//! The options and the steps of a scan.

use super::{DamagedRange, Ranges, RecordOffsetRange};
use crate::segment::Batch;
use crate::types::IsolationLevel;

/// How a scan handles damage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnDamage {
    /// Ends with [`Error::Corrupt`](crate::Error::Corrupt).
    #[default]
    Raise,
    /// Continues after it; [`Scan::damaged_ranges`](super::Scan::damaged_ranges) has the damaged range.
    Skip,
    /// As `Skip`, and also returns [`ScanStep::DamagedRange`] at its place among the batches.
    Report,
}

/// The options of a scan.
#[derive(Debug, Clone, Copy)]
pub struct ScanOptions {
    /// Which records.
    pub ranges: Ranges,
    /// Of these, which by their own offsets.
    pub record_offsets: RecordOffsetRange,
    /// Which transactions.
    pub isolation_level: IsolationLevel,
    /// Whether control records are returned too.
    pub include_control: bool,
    /// What to do with damage.
    pub on_damage: OnDamage,
    /// Return every batch of the range by its header, including control batches, and open none.
    pub batches_only: bool,
    /// Whether the checksum of each batch is verified. False is `check.crcs=false` of Kafka's consumer:
    /// damage that breaks the structure of batches and records is still found, and other damaged bytes
    /// are returned as data.
    ///
    /// The checksums of batches that the scan skips by their headers are verified, so that damage loses no
    /// record silently. Checksums still decide where the log ends (a last batch whose checksum does not
    /// match is not part of it), which batch follows damage, and which batch an entry of a time index
    /// names. With [`IsolationLevel::ReadCommitted`] every checksum is verified, because a damaged batch
    /// is in no transaction; and with [`OnDamage::Skip`] and [`OnDamage::Report`], because after a batch
    /// of a wrong length intact ones would be skipped.
    pub check_crcs: bool,
}

impl ScanOptions {
    /// The same options with another range of offsets.
    pub(in crate::log) fn with_offsets(self, start: i64, end: i64) -> Self {
        let ranges = Ranges { start_offset: Some(start), end_offset: Some(end), ..self.ranges };
        Self { ranges, ..self }
    }
}

impl Default for ScanOptions {
    fn default() -> Self {
        Self {
            ranges: Ranges::default(),
            record_offsets: RecordOffsetRange::default(),
            isolation_level: IsolationLevel::default(),
            include_control: false,
            on_damage: OnDamage::default(),
            batches_only: false,
            check_crcs: true,
        }
    }
}

/// The next item of a scan.
#[derive(Debug)]
pub enum ScanStep {
    /// A batch; [`Scan::next_record`](super::Scan::next_record) returns its records that are in the range.
    Batch(Batch),
    /// A damaged range (with [`OnDamage::Report`] only).
    DamagedRange(DamagedRange),
}
