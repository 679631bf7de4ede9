//! Segments that are marked as deleted, and are still there. Kafka: `LogLoader`, pass 1.

use std::ops::Range;

use super::{Log, loader};
use crate::error::{Error, Result};
use crate::fs::names::Stage;
use crate::fs::{FileType, SegmentFile};
use crate::record::BatchHeader;
use crate::segment::{LOOKUP_READ, SCAN_READ, Segment, Step};

impl Log {
    /// The `.deleted` files of segments as the directory has them now, by name. Only regular files: a
    /// symbolic link or a directory has no segment's records.
    pub(crate) fn deleted_files(&self) -> Result<Vec<SegmentFile>> {
        let files = self.inner.open_files.directory.segment_files()?;
        let is_deleted = |file: &SegmentFile| {
            file.parsed.stage == Stage::Deleted && file.file_type == FileType::RegularFile
        };
        Ok(files.into_iter().filter(is_deleted).collect())
    }

    /// The offsets of a `.log` that is not live, from the first batch to the last, which are empty without a
    /// batch; `None` as for [`Log::runs_of_file`], as are the errors.
    pub(crate) fn offsets_of_file(
        &self,
        file: &SegmentFile,
        is_verified: bool,
    ) -> Result<Option<Range<i64>>> {
        let runs = self.runs_of_file(file, is_verified)?;
        Ok(runs.map(|runs| {
            let start = runs.first().map_or(file.parsed.base_offset, |run| run.offsets.start);
            start..runs.last().map_or(start, |run| run.offsets.end)
        }))
    }

    /// The offsets of the batches of a `.log` that is not live; `None` for one with damage, or that cannot be
    /// read. `is_verified`: whether the checksums are compared, for which the whole file is read.
    ///
    /// # Errors
    /// [`Error::Interrupted`].
    pub(crate) fn runs_of_file(
        &self,
        file: &SegmentFile,
        is_verified: bool,
    ) -> Result<Option<Vec<OffsetRun>>> {
        let segment = loader::segment_of_file(&self.inner.open_files, file, &self.inner.lookups);
        let found = segment.and_then(|segment| LiveOffsets::read(&segment, is_verified));
        Ok(unless_interrupted(found)?.filter(|found| found.is_whole).map(|found| found.runs))
    }

    /// The offsets of the valid batches of a `.log` that is not live, also of those after damage; none of one
    /// that cannot be read.
    ///
    /// # Errors
    /// [`Error::Interrupted`].
    pub(crate) fn valid_runs_of_file(&self, file: &SegmentFile) -> Result<Vec<OffsetRun>> {
        let segment = loader::segment_of_file(&self.inner.open_files, file, &self.inner.lookups);
        let found = segment.and_then(|segment| LiveOffsets::read_all(&segment));
        Ok(unless_interrupted(found)?.unwrap_or_default().runs)
    }
}

/// Offsets without a gap, of batches with one leader epoch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OffsetRun {
    pub(crate) offsets: Range<i64>,
    /// −1: the batches have none.
    pub(crate) epoch: i32,
}

impl From<BatchHeader> for OffsetRun {
    fn from(header: BatchHeader) -> Self {
        Self { offsets: header.base_offset..header.last_offset + 1, epoch: header.leader_epoch }
    }
}

/// The offsets that the batches of a segment have.
#[derive(Debug, Default)]
pub(crate) struct LiveOffsets {
    /// In ascending order, up to the first damage, or of all valid batches.
    pub(crate) runs: Vec<OffsetRun>,
    /// Whether nothing of the segment is damaged, or was taken out of it.
    pub(crate) is_whole: bool,
}

impl LiveOffsets {
    /// Reads a live segment; one that cannot be read has none. `is_verified`: as in [`Log::offsets_of_file`].
    ///
    /// # Errors
    /// [`Error::Interrupted`].
    pub(crate) fn of(segment: &Segment, is_verified: bool) -> Result<Self> {
        Ok(unless_interrupted(Self::read(segment, is_verified))?.unwrap_or_default())
    }

    /// Those of all valid batches of a live segment, also of those after damage.
    ///
    /// # Errors
    /// [`Error::Interrupted`].
    pub(crate) fn of_all(segment: &Segment) -> Result<Self> {
        Ok(unless_interrupted(Self::read_all(segment))?.unwrap_or_default())
    }

    fn read_all(segment: &Segment) -> Result<Self> {
        let mut found = Self { is_whole: true, ..Self::default() };
        let mut walk = segment.walk(-1, SCAN_READ)?;
        loop {
            segment.open_files().interrupt.check()?;
            match walk.step_through()? {
                Step::Batch(batch) => found.add(batch.header.into()),
                Step::End => return Ok(found),
                Step::Damage(damage) => {
                    found.is_whole = false;
                    segment.resume(&mut walk, &damage)?;
                }
            }
        }
    }

    /// Adds the offsets of the next batch.
    pub(crate) fn add(&mut self, batch: OffsetRun) {
        match self.runs.last_mut() {
            Some(last) if last.epoch == batch.epoch && last.offsets.end == batch.offsets.start => {
                last.offsets.end = batch.offsets.end;
            }
            _ => self.runs.push(batch),
        }
    }

    fn read(segment: &Segment, is_verified: bool) -> Result<Self> {
        let mut found = Self::default();
        let mut walk = segment.walk(-1, if is_verified { SCAN_READ } else { LOOKUP_READ })?;
        loop {
            segment.open_files().interrupt.check()?;
            match if is_verified { walk.step_through()? } else { walk.step()? } {
                Step::Batch(batch) => found.add(batch.header.into()),
                Step::End => return Ok(Self { is_whole: true, ..found }),
                Step::Damage(_) => return Ok(found),
            }
        }
    }
}

/// The result; `None` for an error of the file.
fn unless_interrupted<T>(result: Result<T>) -> Result<Option<T>> {
    match result {
        Err(error @ Error::Interrupted(_)) => Err(error),
        result => Ok(result.ok()),
    }
}
