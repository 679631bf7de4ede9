//! Offsets that lie between two segments, in none of them.
//!
//! Kafka leaves such a gap where it compacts, and where it truncates inside a batch. Everywhere else a segment begins where
//! the one before it ended, so a gap means that a segment is missing or was cut. No file of a partition says whether it is
//! compacted; what shows it is the data directory's checkpoint of the cleaner, or a gap inside a segment.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use super::checkpoint::CLEANED_OFFSETS;
use super::{Log, loader, metadata};
use crate::error::{Error, Result};
use crate::fs::names::{FileKind, segment_file};
use crate::segment::Segment;

/// What a log learned about its gaps.
#[derive(Debug, Default)]
pub(super) struct Continuity {
    /// Base offsets of a second listing, made when the first gap was met.
    listed_again: OnceLock<Vec<i64>>,
    is_compacted: OnceLock<bool>,
    /// A segment was met that misses offsets between two of its batches, or between two records of a batch.
    has_inner_gap: AtomicBool,
    /// Base offsets of the segments after the gaps that were checked.
    checked: Mutex<BTreeSet<i64>>,
}

impl Log {
    /// Notes a gap inside a segment.
    pub(super) fn note_inner_gap(&self) {
        self.inner.continuity.has_inner_gap.store(true, Ordering::Relaxed);
    }

    /// Called before offsets `end..next.base_offset()`, if that is not empty, are taken for missing: `segment` ends before
    /// `end`, and `next` follows it. The directory is listed once more, because the listing that gave both may have missed a segment;
    /// a gap that remains is a warning, unless the log is compacted.
    ///
    /// # Errors
    /// [`Error::LogChanged`] where there is a segment between the two; [`Error::Io`].
    pub(super) fn check_gap(&self, segment: &Segment, end: i64, next: &Segment) -> Result<()> {
        let (low, high) = (segment.base_offset(), next.base_offset());
        if end >= high {
            return Ok(());
        }
        let bases = self.bases_listed_again()?;
        if let Some(missed) = bases.iter().find(|base| (low + 1..high).contains(*base)) {
            return Err(Error::LogChanged {
                file: self.inner.open_files.directory.path_of(&segment_file(*missed, FileKind::Log)),
                expected: format!("no segment between base offsets {low} and {high}"),
                found: "this one".to_owned(),
            });
        }
        let checked = &self.inner.continuity.checked;
        if self.is_compacted() || !checked.lock().unwrap_or_else(PoisonError::into_inner).insert(high) {
            return Ok(());
        }
        // compaction leaves hardly a segment without gaps inside
        let has_inner_gap = segment.has_inner_gap()? || next.has_inner_gap()?;
        if has_inner_gap {
            self.note_inner_gap();
        } else {
            segment.warn(format!(
                "{}: offsets {end} to {} are missing: the segment ends at offset {end}, and the next one, {}, begins at \
                 {high}. Unless the log is compacted, a segment is missing or was cut",
                segment.path().display(),
                high - 1,
                next.path().display(),
            ));
        }
        Ok(())
    }

    fn bases_listed_again(&self) -> Result<&[i64]> {
        if let Some(bases) = self.inner.continuity.listed_again.get() {
            return Ok(bases);
        }
        let listing = loader::list(&self.inner.open_files, None, &self.inner.lookups)?;
        Ok(self.inner.continuity.listed_again.get_or_init(|| listing.segments.into_keys().collect()))
    }

    /// Whether anything shows that the log is compacted.
    fn is_compacted(&self) -> bool {
        self.inner.continuity.has_inner_gap.load(Ordering::Relaxed)
            || *self.inner.continuity.is_compacted.get_or_init(|| self.has_cleaner_checkpoint())
    }

    /// Whether the data directory's cleaner has cleaned the partition. A file that cannot be read shows nothing.
    fn has_cleaner_checkpoint(&self) -> bool {
        let (Some(topic), Some(partition)) = (self.topic(), self.partition()) else { return false };
        let directory = &self.inner.open_files.directory;
        metadata::checkpointed(directory, CLEANED_OFFSETS, topic, partition)
            .is_ok_and(|offset| offset.is_some())
    }
}
