//! Segments that are marked as deleted, and are still there. Kafka: `LogLoader`, pass 1.

use std::ops::Range;

use super::{Log, loader};
use crate::error::Result;
use crate::fs::SegmentFile;
use crate::fs::names::Stage;
use crate::segment::{LOOKUP_READ, SCAN_READ, Segment, Step};

impl Log {
    /// The `.deleted` files of segments as the directory has them now, by name.
    pub(crate) fn deleted_files(&self) -> Result<Vec<SegmentFile>> {
        let files = self.inner.open_files.directory.segment_files()?;
        Ok(files.into_iter().filter(|file| file.parsed.stage == Stage::Deleted).collect())
    }

    /// The offsets of a `.log` that is not live, from the first batch to the last, which are empty without a
    /// batch; `None` for one with damage. `is_verified`: whether the checksums are compared, for which
    /// the whole file is read.
    pub(crate) fn offsets_of_file(
        &self,
        file: &SegmentFile,
        is_verified: bool,
    ) -> Result<Option<Range<i64>>> {
        let segment = loader::segment_of_file(&self.inner.open_files, file, &self.inner.lookups)?;
        let runs = runs_of(&segment, is_verified)?;
        let start = runs.as_ref().map(|runs| runs.first().map_or(file.parsed.base_offset, |run| run.start));
        Ok(start.zip(runs).map(|(start, runs)| start..runs.last().map_or(start, |run| run.end)))
    }
}

/// The offsets of a live segment, as ranges without a gap, ascending, up to the first damage. `is_verified`:
/// as in [`Log::offsets_of_file`].
pub(crate) fn runs_of_offsets(segment: &Segment, is_verified: bool) -> Result<Vec<Range<i64>>> {
    let mut runs = Vec::new();
    walk_runs(segment, is_verified, &mut runs)?;
    Ok(runs)
}

/// The offsets of a segment, as ranges without a gap; `None` for one with damage.
fn runs_of(segment: &Segment, is_verified: bool) -> Result<Option<Vec<Range<i64>>>> {
    let mut runs = Vec::new();
    Ok(walk_runs(segment, is_verified, &mut runs)?.then_some(runs))
}

/// Adds the ranges of a segment. Returns whether it has no damage.
fn walk_runs(segment: &Segment, is_verified: bool, runs: &mut Vec<Range<i64>>) -> Result<bool> {
    let mut walk = segment.walk(-1, if is_verified { SCAN_READ } else { LOOKUP_READ })?;
    loop {
        segment.open_files().interrupt.check()?;
        match if is_verified { walk.step_through()? } else { walk.step()? } {
            Step::Batch(batch) => {
                let (start, end) = (batch.header.base_offset, batch.header.last_offset + 1);
                match runs.last_mut() {
                    Some(last) if last.end == start => last.end = end,
                    _ => runs.push(start..end),
                }
            }
            Step::End => return Ok(true),
            Step::Damage(_) => return Ok(false),
        }
    }
}
