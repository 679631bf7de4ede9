//! The options and the steps of a scan.

use super::{DamagedRange, Ranges};
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
#[derive(Debug, Clone, Copy, Default)]
pub struct ScanOptions {
    /// Which records.
    pub ranges: Ranges,
    /// Which transactions.
    pub isolation_level: IsolationLevel,
    /// Whether control records are returned too.
    pub include_control: bool,
    /// What to do with damage.
    pub on_damage: OnDamage,
    /// Return every batch of the range by its header, including control batches, and open none.
    pub batches_only: bool,
}

/// The next item of a scan.
#[derive(Debug)]
pub enum ScanStep {
    /// A batch; [`Scan::next_record`](super::Scan::next_record) returns its records that are in the range.
    Batch(Batch),
    /// A damaged range (with [`OnDamage::Report`] only).
    DamagedRange(DamagedRange),
}
