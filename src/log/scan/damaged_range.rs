//! What a scan leaves out because it is damaged.

use std::path::PathBuf;

use crate::error::Malformed;
use crate::segment::{Batch, DamagedSpan, Segment};

/// A damaged stretch that a scan passed over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DamagedRange {
    /// The `.log`.
    pub file: PathBuf,
    /// Bytes from its start, inclusive.
    pub start_position: u64,
    /// Bytes from its start, exclusive.
    pub end_position: u64,
    /// The first offset that may be missing.
    pub start_offset: i64,
    /// The first offset behind the stretch; `None` at the end of the log, where nobody knows.
    pub end_offset: Option<i64>,
    /// What is wrong.
    pub reason: String,
}

impl DamagedRange {
    pub(super) fn new(segment: &Segment, stretch: DamagedSpan, malformed: &Malformed) -> Self {
        Self {
            file: segment.path(),
            start_position: stretch.start_position,
            end_position: stretch.end_position,
            start_offset: stretch.start_offset,
            end_offset: stretch.end_offset,
            reason: format!("expected {}, found {}", malformed.expected, malformed.found),
        }
    }
}

impl std::fmt::Display for DamagedRange {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { file, start_position, end_position, start_offset, end_offset, reason } = self;
        let end =
            end_offset.map_or_else(|| "the end of the log".to_owned(), |end| format!("{end} (exclusive)"));
        write!(
            formatter,
            "{} is damaged from position {start_position} to {end_position}, offsets {start_offset} to {end}: {reason}",
            file.display()
        )
    }
}

/// A batch from one of its offsets on, as a stretch that cannot be read.
pub(super) fn rest_of(batch: &Batch, from: i64) -> DamagedSpan {
    DamagedSpan {
        start_position: batch.position,
        end_position: batch.end(),
        start_offset: from,
        end_offset: Some(batch.header.last_offset + 1),
    }
}
