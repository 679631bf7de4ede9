//! A part of a log that one scan reads, and the state of its segments when it was planned.

use std::path::PathBuf;

use super::transactions::{AbortedRange, Transactions};
use super::{Log, Ranges, Scan, ScanOptions};
use crate::error::{Error, Result};
use crate::fs::names::{FileKind, segment_file};
use crate::segment::{Change, PlannedSegment};

/// A part of a log: [`Log::plan`] creates it, [`Log::scan_split`] reads it. It is small, and valid in every
/// process.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "binding", derive(serde::Deserialize, serde::Serialize))]
pub struct Split {
    /// The partition directory, absolute.
    #[cfg_attr(feature = "binding", serde(with = "crate::types::paths"))]
    pub path: PathBuf,
    /// The first offset, inclusive.
    pub start_offset: i64,
    /// Exclusive.
    pub end_offset: i64,
    /// Milliseconds since the epoch, inclusive; `None` if the plan had none.
    pub start_time: Option<i64>,
    /// Milliseconds since the epoch, exclusive; `None` if the plan had none.
    pub end_time: Option<i64>,
    /// The approximate number of bytes of the log that it covers.
    pub size: u64,
    /// The aborted transactions that overlap it: producer id, first offset and last offset, inclusive. A
    /// committed scan of the split then reads no other segment. `None` if the plan was not for a
    /// committed scan, if damage hides the outcome of a transaction, or if there are more than 10,000.
    pub aborted: Option<Vec<AbortedRange>>,
    /// The segments that contain the range, in order, as they were when the split was planned. A scan
    /// compares the log with them before it reads; if empty, nothing is compared.
    pub segments: Vec<PlannedSegment>,
}

impl Split {
    /// The range to scan.
    pub fn ranges(&self) -> Ranges {
        Ranges {
            start_offset: Some(self.start_offset),
            end_offset: Some(self.end_offset),
            start_time: self.start_time,
            end_time: self.end_time,
        }
    }
}

impl Log {
    /// [`Log::scan`] of a split, within the ranges of the options. A committed scan takes the aborted
    /// transactions from the split if it has them, and opens only the split's segments.
    ///
    /// # Errors
    /// [`Error::LogChanged`] if a segment that the split was planned from is gone, shortened or replaced;
    /// else as [`Log::scan`].
    pub fn scan_split(&self, split: &Split, options: ScanOptions) -> Result<Scan> {
        let ranges = split.ranges().intersection(options.ranges);
        self.for_split(split)?.scan(ScanOptions { ranges, ..options })
    }

    /// The same log for scans inside a split, with the transactions of the split.
    #[doc(hidden)]
    pub fn for_split(&self, split: &Split) -> Result<Self> {
        self.check_split(split)?;
        Ok(match &split.aborted {
            Some(aborted) if split.path == self.path() => {
                self.with_transactions(Transactions::of_split(aborted))
            }
            _ => self.clone(),
        })
    }

    /// Fails if the log has [changed](Log::change_since) since a split was planned.
    #[doc(hidden)]
    pub fn check_split(&self, split: &Split) -> Result<()> {
        let Some((planned, change)) = self.change_since(split)? else { return Ok(()) };
        let PlannedSegment { base_offset, size, .. } = planned;
        Err(Error::LogChanged {
            file: self.path().join(segment_file(base_offset, FileKind::Log)),
            expected: match change {
                Change::Ended { .. } => format!("a log that reaches offset {}, as planned", split.end_offset),
                _ => format!("the segment that was planned, {size} bytes"),
            },
            found: change.to_string(),
        })
    }

    /// Compares the log with the segments that a split was planned from. Returns the first that has changed,
    /// and how; `None` if none has, and for a split without segments.
    ///
    /// Without this check a deleted segment would look like one that was compacted away, and a shortened last
    /// segment like a shorter log: a scan would return fewer records and no error.
    ///
    /// *Cost*: one `stat` and the header of the first batch for each segment of the split; the log end offset
    /// if the split includes the last segment.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::LogChanged`] if a file changes during the comparison.
    pub fn change_since(&self, split: &Split) -> Result<Option<(PlannedSegment, Change)>> {
        for planned in &split.segments {
            let segment = self.segments().floor(planned.base_offset);
            let change = match segment.filter(|segment| segment.base_offset() == planned.base_offset) {
                None => Some(Change::Gone),
                Some(segment) => planned.change(segment)?,
            };
            if let Some(change) = change {
                return Ok(Some((*planned, change)));
            }
        }
        let last = split.segments.last().filter(|last| last.base_offset == self.last_base_offset());
        let Some(last) = last else { return Ok(None) };
        let log_end_offset = self.log_end_offset()?;
        Ok((log_end_offset < split.end_offset).then_some((*last, Change::Ended { log_end_offset })))
    }
}
