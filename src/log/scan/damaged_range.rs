//! The damaged ranges of a scan.

use std::path::PathBuf;

use crate::error::Malformed;
use crate::segment::{Batch, DamagedSpan, Segment, UNSEARCHED};

/// A damaged range of a segment, which a scan left out.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "binding", derive(serde::Deserialize, serde::Serialize))]
pub struct DamagedRange {
    /// The `.log`.
    #[cfg_attr(feature = "binding", serde(with = "crate::types::paths"))]
    pub file: PathBuf,
    /// Bytes from its start, inclusive.
    pub start_position: u64,
    /// Bytes from its start, exclusive.
    pub end_position: u64,
    /// The first offset that may be missing.
    pub start_offset: i64,
    /// The first offset after the range; `None` at the end of the log, where no valid batch follows.
    pub end_offset: Option<i64>,
    /// The cause: what was expected and what was found.
    pub reason: String,
}

impl DamagedRange {
    /// Whether this is a torn tail: the range reaches the end of the log, and no valid batch follows.
    pub fn is_tail(&self) -> bool {
        self.end_offset.is_none()
    }

    pub(super) fn new(segment: &Segment, span: DamagedSpan, malformed: &Malformed) -> Self {
        Self {
            file: segment.path(),
            start_position: span.start_position,
            end_position: span.end_position,
            start_offset: span.start_offset,
            end_offset: span.end_offset,
            reason: format!(
                "expected {}{}, found {}",
                malformed.expected,
                if span.is_searched { "" } else { UNSEARCHED },
                malformed.found
            ),
        }
    }
}

/// The rest of a batch, from the offset `from`.
pub(super) fn rest_of(batch: &Batch, from: i64) -> DamagedSpan {
    // a record may be above the last offset of its batch
    let end = batch.header.last_offset + 1;
    DamagedSpan::known(batch.position, batch.end(), from.min(end), Some(end))
}
