//! What a scan leaves out because it is damaged.

use std::path::PathBuf;
use std::sync::Arc;

use super::{OnDamage, Scan, ScanOptions};
use crate::error::{Malformed, Result};
use crate::record::{Payload, Records};
use crate::segment::{Batch, SCAN_READ, Segment, Stretch};

/// A damaged stretch that a scan passed over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gap {
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

impl Gap {
    pub(super) fn new(segment: &Segment, stretch: Stretch, malformed: &Malformed) -> Self {
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

impl std::fmt::Display for Gap {
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

impl Scan {
    /// Behind the last batch of the log: a torn batch is named as a gap too, once; the zeros of a preallocated file are
    /// not.
    pub(super) fn tail_gap(&mut self) -> Result<Option<Gap>> {
        self.finished = true;
        if self.options.on_damage == OnDamage::Raise {
            return Ok(None);
        }
        // a range that ends where the last segment starts asks nothing of that segment
        let asked = |end: i64| self.options.ranges.end_offset.is_none_or(|given| given > end);
        let Some(last) = self.log.segments().last().filter(|last| asked(last.base_offset())).cloned() else {
            return Ok(None);
        };
        let tail = last.tail()?;
        let Some(cut) = tail.cut.as_ref().filter(|_| self.end == tail.end_offset) else { return Ok(None) };
        let end_position = last.size()?;
        if last.log_file(SCAN_READ)?.is_zero(cut.position, end_position)? {
            return Ok(None);
        }
        let stretch = Stretch {
            start_position: cut.position,
            end_position,
            start_offset: tail.end_offset,
            end_offset: None,
        };
        self.gaps.push(Gap::new(&last, stretch, &cut.malformed));
        Ok(self.reported())
    }
}

/// A batch from one of its offsets on, as a stretch that cannot be read.
pub(super) fn rest_of(batch: &Batch, from: i64) -> Stretch {
    Stretch {
        start_position: batch.position,
        end_position: batch.end(),
        start_offset: from,
        end_offset: Some(batch.header.last_offset + 1),
    }
}

/// Gives up the rest of a batch, one of whose records breaks the format: an error, or a gap.
#[cold]
pub(super) fn break_off(
    open: &mut Option<(Batch, Records, Payload)>,
    segment: Option<&Arc<Segment>>,
    options: &ScanOptions,
    malformed: Malformed,
) -> Result<Option<Gap>> {
    let (Some((batch, records, _)), Some(segment)) = (open.take(), segment) else { return Ok(None) };
    let from = records.expected_offset();
    if options.on_damage == OnDamage::Raise {
        return Err(malformed.at(segment.path(), batch.position, Some(from)));
    }
    Ok(Some(Gap::new(segment, rest_of(&batch, from), &malformed)))
}
