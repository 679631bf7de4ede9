//! Segments that are marked as deleted, and are still there. Kafka: `LogLoader`, pass 1.

use std::ops::Range;

use super::{Log, loader};
use crate::error::{Error, Result};
use crate::fs::names::Stage;
use crate::fs::{FileType, SegmentFile};
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
    /// batch; `None` for one with damage, or that cannot be read. `is_verified`: whether the checksums are
    /// compared, for which the whole file is read.
    ///
    /// # Errors
    /// [`Error::Interrupted`].
    pub(crate) fn offsets_of_file(
        &self,
        file: &SegmentFile,
        is_verified: bool,
    ) -> Result<Option<Range<i64>>> {
        let segment = loader::segment_of_file(&self.inner.open_files, file, &self.inner.lookups);
        let found = segment.and_then(|segment| LiveOffsets::read(&segment, is_verified));
        let Some(LiveOffsets { runs, is_whole: true }) = unless_interrupted(found)? else { return Ok(None) };
        let start = runs.first().map_or(file.parsed.base_offset, |run| run.start);
        Ok(Some(start..runs.last().map_or(start, |run| run.end)))
    }
}

/// The offsets that the batches of a segment have.
#[derive(Debug, Default)]
pub(crate) struct LiveOffsets {
    /// Ranges without a gap, ascending, up to the first damage.
    pub(crate) runs: Vec<Range<i64>>,
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

    /// Adds the offsets of the next batch.
    pub(crate) fn add(&mut self, offsets: Range<i64>) {
        match self.runs.last_mut() {
            Some(last) if last.end == offsets.start => last.end = offsets.end,
            _ => self.runs.push(offsets),
        }
    }

    fn read(segment: &Segment, is_verified: bool) -> Result<Self> {
        let mut found = Self::default();
        let mut walk = segment.walk(-1, if is_verified { SCAN_READ } else { LOOKUP_READ })?;
        loop {
            segment.open_files().interrupt.check()?;
            match if is_verified { walk.step_through()? } else { walk.step()? } {
                Step::Batch(batch) => found.add(batch.header.base_offset..batch.header.last_offset + 1),
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
