//! Offsets that lie between two segments, in none of them.
//!
//! Kafka leaves such a gap where it compacts, and where it truncates inside a batch. Everywhere else a segment begins where
//! the one before it ended, so a gap means that a segment is missing or was cut. No file of a partition says whether it is
//! compacted; what shows it is the data directory's checkpoint of the cleaner, or a batch that only compaction leaves.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwap;

use super::{Log, OnDamage, Ranges, ScanOptions, loader, metadata};
use crate::error::{Error, Result};
use crate::fs::names::{FileKind, segment_file};
use crate::segment::Segment;
use crate::state::offset_checkpoint::CLEANED_OFFSETS;

/// What a log learned about its gaps.
#[derive(Debug, Default)]
pub(super) struct Continuity {
    /// Base offsets of a second listing, made when the first gap was met.
    listed_again: OnceLock<Vec<i64>>,
    /// Whether the cleaner's checkpoint names the partition.
    is_cleaned: OnceLock<bool>,
    /// Whether the oldest segments show it.
    searched: OnceLock<bool>,
    /// A segment was met that shows it.
    is_compacted: AtomicBool,
    /// Base offsets of the segments after the gaps that were checked, rising. Read without a lock, and replaced as a whole.
    checked: ArcSwap<Vec<i64>>,
}

/// Offsets that lie between two segments, in none of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct OffsetGap {
    /// The first of them.
    pub start_offset: i64,
    /// Exclusive.
    pub end_offset: i64,
    /// The base offset of the segment before them.
    pub segment_base_offset: i64,
    /// The base offset of the segment after them.
    pub next_base_offset: i64,
}

/// How much of a log is searched for what compaction leaves: Kafka's cleaner begins with the oldest segments.
const SEARCHED_BYTES: u64 = 1 << 30;

impl Log {
    /// The offsets of a range that lie between two segments, in order. A damaged end of a segment is no gap: its offsets
    /// are lost to the damage. Whether a gap is lost data or was compacted, [`Log::is_compacted`] says.
    ///
    /// *Cost*: the end of each segment in the range is looked up, once for a log.
    ///
    /// # Errors
    /// [`Error::LogChanged`] where there is a segment in a gap by now; [`Error::Io`].
    pub fn offset_gaps(&self, offsets: Range<i64>) -> Result<Vec<OffsetGap>> {
        let start = offsets.start.max(self.log_start_offset());
        let mut gaps = Vec::new();
        if start >= offsets.end {
            return Ok(gaps);
        }
        for segment in self.segments().between(start, offsets.end) {
            self.options().interrupt.check()?;
            let Some(next) = self.segments().higher(segment.base_offset()) else { break };
            let (low, high) = (segment.end_offset()?.max(start), next.base_offset().min(offsets.end));
            if low >= high {
                continue;
            }
            self.check_listing(segment, next)?;
            if !self.is_damaged(low..high)? {
                gaps.push(OffsetGap {
                    start_offset: low,
                    end_offset: high,
                    segment_base_offset: segment.base_offset(),
                    next_base_offset: next.base_offset(),
                });
            }
        }
        Ok(gaps)
    }

    /// Whether the files show that the log is compacted, so that a gap between two segments need not be lost data: the data
    /// directory's `cleaner-offset-checkpoint` names the partition; or in a segment records are missing inside a batch, a batch
    /// has a delete horizon, or offsets are missing between two batches of one leader epoch (not where a `LogWriter` has had
    /// the log, which truncates inside a batch). A topic's settings are not on disk, so a compacted log may not show it.
    ///
    /// *Cost*: where nothing shows it, the headers of the oldest segments are walked, up to 1 GiB, once for a log.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::LogChanged`].
    pub fn is_compacted(&self) -> Result<bool> {
        let Continuity { is_compacted, searched, .. } = &self.inner.continuity;
        if is_compacted.load(Ordering::Relaxed) || self.is_cleaned() {
            return Ok(true);
        }
        if let Some(found) = searched.get() {
            return Ok(*found);
        }
        let found = self.search_for_compaction()?;
        Ok(*searched.get_or_init(|| found))
    }

    fn search_for_compaction(&self) -> Result<bool> {
        let mut walked = 0;
        for segment in self.segments().iter() {
            if segment.is_compacted()? {
                return Ok(true);
            }
            walked += segment.size()?;
            if walked >= SEARCHED_BYTES {
                break;
            }
        }
        Ok(false)
    }

    /// Whether a reading of these offsets, which no whole batch has, meets damage.
    fn is_damaged(&self, offsets: Range<i64>) -> Result<bool> {
        let ranges =
            Ranges { start_offset: Some(offsets.start), end_offset: Some(offsets.end), ..Ranges::default() };
        let options =
            ScanOptions { ranges, on_damage: OnDamage::Skip, batches_only: true, ..ScanOptions::default() };
        let mut scan = self.scan(options)?;
        while scan.next_step()?.is_some() {}
        Ok(!scan.damaged_ranges().is_empty())
    }

    /// Notes that a segment shows compaction.
    pub(super) fn note_compacted(&self, segment: &Segment) {
        segment.note_compacted();
        self.inner.continuity.is_compacted.store(true, Ordering::Relaxed);
    }

    /// Called before an answer is taken from `next`, which follows `segment`, whose undamaged end is at offset `end`: lists
    /// the directory once more where offsets are missing between the two, and warns of a gap that remains.
    ///
    /// # Errors
    /// [`Error::LogChanged`] where there is a segment between the two; [`Error::Io`].
    pub(super) fn check_gap(&self, segment: &Segment, end: i64, next: &Segment) -> Result<()> {
        if end < next.base_offset() {
            self.check_listing(segment, next)?;
            self.warn_of_gap(segment, end, next)?;
        }
        Ok(())
    }

    /// Warns, once, that the offsets from `end` to `next` are missing, unless the log is compacted there: the cleaner's
    /// checkpoint names the partition, or a segment next to the gap shows it. Segments further away show nothing, or one would
    /// hide every lost segment of a large log.
    ///
    /// # Errors
    /// [`Error::LogChanged`], [`Error::Io`].
    pub(super) fn warn_of_gap(&self, segment: &Segment, end: i64, next: &Segment) -> Result<()> {
        let high = next.base_offset();
        let checked = &self.inner.continuity.checked;
        if checked.load().binary_search(&high).is_ok() || self.is_cleaned() {
            return Ok(());
        }
        checked.rcu(|checked| {
            let mut checked = checked.to_vec();
            if let Err(place) = checked.binary_search(&high) {
                checked.insert(place, high);
            }
            checked
        });
        let segments = self.segments();
        let before = self.nearest_with_batches(segment.base_offset(), |base| segments.floor(base - 1))?;
        let after = self.nearest_with_batches(high, |base| segments.higher(base))?;
        for adjacent in [before, after].into_iter().flatten() {
            if adjacent.is_compacted()? {
                self.note_compacted(adjacent);
                return Ok(());
            }
        }
        segment.warn(format!(
            "{}: offsets {end} to {} are missing: the segment ends at offset {end}, and the next one, {}, begins at {high}. \
             Unless the log is compacted, a segment is missing or was cut",
            segment.path().display(),
            high - 1,
            next.path().display(),
        ));
        Ok(())
    }

    /// The segment at a base offset, or where that is empty, as compaction may leave one, the nearest that is not.
    fn nearest_with_batches<'a>(
        &'a self,
        base_offset: i64,
        beyond: impl Fn(i64) -> Option<&'a Arc<Segment>>,
    ) -> Result<Option<&'a Arc<Segment>>> {
        let mut nearest = self.segments().floor(base_offset);
        while let Some(segment) = nearest {
            self.options().interrupt.check()?;
            if segment.size()? > 0 {
                break;
            }
            nearest = beyond(segment.base_offset());
        }
        Ok(nearest)
    }

    /// Fails where the directory has a segment between these two, which the listing that gave both has missed.
    ///
    /// # Errors
    /// [`Error::LogChanged`], [`Error::Io`].
    pub(super) fn check_listing(&self, segment: &Segment, next: &Segment) -> Result<()> {
        let (low, high) = (segment.base_offset(), next.base_offset());
        let bases = self.bases_listed_again()?;
        let Some(missed) = bases.iter().find(|base| (low + 1..high).contains(*base)) else { return Ok(()) };
        Err(Error::LogChanged {
            file: self.inner.open_files.directory.path_of(&segment_file(*missed, FileKind::Log)),
            expected: format!("no segment between base offsets {low} and {high}"),
            found: "this one".to_owned(),
        })
    }

    fn bases_listed_again(&self) -> Result<&[i64]> {
        if let Some(bases) = self.inner.continuity.listed_again.get() {
            return Ok(bases);
        }
        let listing = loader::list(&self.inner.open_files, None, &self.inner.lookups)?;
        Ok(self.inner.continuity.listed_again.get_or_init(|| listing.segments.into_keys().collect()))
    }

    /// Whether what was learned of gaps holds for these segments, which the directory has now.
    pub(super) fn is_continuity_current(&self, segments: &[Arc<Segment>]) -> bool {
        let Continuity { listed_again, is_cleaned, .. } = &self.inner.continuity;
        listed_again.get().is_none_or(|bases| {
            segments.iter().map(|segment| segment.base_offset()).eq(bases.iter().copied())
        }) && is_cleaned.get().is_none_or(|known| *known == self.has_cleaner_checkpoint())
    }

    /// [`Log::has_cleaner_checkpoint`], read once for a handle.
    fn is_cleaned(&self) -> bool {
        *self.inner.continuity.is_cleaned.get_or_init(|| self.has_cleaner_checkpoint())
    }

    /// Whether the data directory's cleaner has cleaned the partition. A file that cannot be read shows nothing.
    fn has_cleaner_checkpoint(&self) -> bool {
        let (Some(topic), Some(partition)) = (self.topic(), self.partition()) else { return false };
        let directory = &self.inner.open_files.directory;
        metadata::checkpointed(directory, CLEANED_OFFSETS, topic, partition)
            .is_ok_and(|offset| offset.is_some())
    }
}
