//! What a scan reads, and what it gives.

use super::{DamagedRange, Ranges};
use crate::segment::Batch;
use crate::types::IsolationLevel;

/// What a scan does where the log is damaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnDamage {
    /// Ends with [`Error::Corrupt`](crate::Error::Corrupt).
    #[default]
    Raise,
    /// Continues after it; [`Scan::damaged_ranges`](super::Scan::damaged_ranges) has the damaged range.
    Skip,
    /// As `Skip`, and gives [`ScanStep::DamagedRange`] in its place among the batches.
    Report,
}

/// What a scan reads.
#[derive(Debug, Clone, Copy, Default)]
pub struct ScanOptions {
    /// Which records.
    pub ranges: Ranges,
    /// Which transactions.
    pub isolation_level: IsolationLevel,
    /// Whether control records are given too.
    pub include_control: bool,
    /// What to do with damage.
    pub on_damage: OnDamage,
    /// Give every batch of the range by its header, control batches too, and open none.
    pub batches_only: bool,
}

/// What comes next in a scan.
#[derive(Debug)]
pub enum ScanStep {
    /// A batch; [`Scan::next_record`](super::Scan::next_record) gives its records that are in the range.
    Batch(Batch),
    /// A damaged range (with [`OnDamage::Report`] only).
    DamagedRange(DamagedRange),
}
