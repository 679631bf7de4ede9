//! Offsets that are in no batch, between two segments or within one.
//!
//! Kafka leaves such a gap if it compacts a log, or truncates inside a batch. Otherwise a batch begins where
//! the one before it ends, so a gap means that a batch or a segment is missing or was cut. The topic's
//! settings say whether it is compacted, if the caller can find them
//! ([`LogOptions::is_topic_compacted`](super::LogOptions::is_topic_compacted)). The files show it by the
//! cleaner's checkpoint in the data directory, by what a copy notes of it, and by what only compaction
//! produces: a batch that it has rewritten, or 2³¹ missing offsets between two segments, more than a lost one
//! can have. Another gap alone shows nothing, and one such trace decides for the whole log,
//! because compaction also removes batches without a trace.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwap;

use super::{Log, OnDamage, Ranges, ScanOptions, loader, metadata};
use crate::error::{Error, Result};
use crate::fs::names::{FileKind, segment_file};
use crate::segment::Segment;
use crate::state::cleaner_checkpoint::CLEANED;
#[cfg(feature = "inspect")]
use crate::state::cleaner_checkpoint::CleanerCheckpoint;
use crate::state::offset_checkpoint::CLEANED_OFFSETS;
use crate::types::{is_or_are, offsets_in_words};

/// What a log has found out about its gaps. Each check runs once per log.
#[derive(Debug, Default)]
pub(super) struct Continuity {
    /// Base offsets from a second listing, made at the first gap.
    second_listing: OnceLock<Vec<i64>>,
    /// Whether the cleaner's checkpoint contains the partition.
    is_cleaned: OnceLock<bool>,
    /// Whether the topic's settings say that it is compacted.
    is_topic_compacted: OnceLock<bool>,
    /// Whether the log is compacted.
    is_compacted: OnceLock<bool>,
    /// Base offsets of the segments after checked gaps, in ascending order. Read without a lock, and
    /// replaced as a whole.
    checked: ArcSwap<Vec<i64>>,
}

/// Offsets that lie between two segments, in none of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "binding", derive(serde::Deserialize, serde::Serialize))]
pub struct OffsetGap {
    /// The first missing offset.
    pub start_offset: i64,
    /// Exclusive.
    pub end_offset: i64,
    /// The base offset of the segment before the gap.
    pub segment_base_offset: i64,
    /// The base offset of the segment after the gap.
    pub next_base_offset: i64,
}

/// Bytes of a log that are searched for traces of compaction: Kafka's cleaner begins with the oldest
/// segments.
const SEARCHED_BYTES: u64 = 1 << 30;

impl Log {
    /// The offsets of a range that lie between two segments, in order. A damaged end of a segment is not a
    /// gap: its offsets are lost to the damage. [`Log::is_compacted`] tells whether a gap may be the
    /// result of compaction.
    ///
    /// *Cost*: finds the end of each segment in the range, once per log.
    ///
    /// # Errors
    /// [`Error::LogChanged`] if a gap now contains a segment; [`Error::Io`].
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

    /// Whether the log is compacted, so that missing offsets may not be lost data. It is if its topic is
    /// ([`LogOptions::is_topic_compacted`](super::LogOptions::is_topic_compacted)); if the data directory's
    /// `cleaner-offset-checkpoint` contains the partition, or the one that it is a copy of; or if records are
    /// missing inside a batch, a batch has a delete horizon, or 2³¹ offsets are missing between two
    /// segments, which no lost segment can have. Without the topic's settings, a compacted log may
    /// not show it.
    ///
    /// *Cost*: if nothing else shows it, walks the headers of the oldest segments, up to 1 GiB, once per log.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::LogChanged`].
    pub fn is_compacted(&self) -> Result<bool> {
        let known = &self.inner.continuity.is_compacted;
        if self.is_cleaned() {
            return Ok(true);
        }
        if let Some(found) = known.get() {
            return Ok(*found);
        }
        let found = self.is_topic_compacted() || self.search_for_compaction()?;
        Ok(*known.get_or_init(|| found))
    }

    /// Whether the settings of its topic say that it is compacted. Read once per log.
    fn is_topic_compacted(&self) -> bool {
        let known = &self.inner.continuity.is_topic_compacted;
        *known.get_or_init(|| (self.options().is_topic_compacted)(self.path()) == Some(true))
    }

    /// Whether a cleaner's checkpoint or the topic's settings say that the log is compacted.
    /// [`Log::is_compacted`] also searches its batches.
    #[cfg(feature = "inspect")]
    pub(crate) fn is_stated_compacted(&self) -> bool {
        self.is_cleaned() || self.is_topic_compacted()
    }

    /// The offset below which a cleaner has compacted the log, as its checkpoint says; `None` without one,
    /// and in a copy.
    #[cfg(feature = "inspect")]
    pub(crate) fn cleaned_end(&self) -> Option<i64> {
        let directory = &self.inner.open_files.directory;
        let own = CleanerCheckpoint { directory, data_directory: None };
        let (topic, partition) = self.topic().zip(self.partition())?;
        let kafkas = metadata::checkpointed(directory, CLEANED_OFFSETS, topic, partition).ok().flatten();
        kafkas.or_else(|| own.read().ok().flatten())
    }

    fn search_for_compaction(&self) -> Result<bool> {
        const MAX_OFFSETS: i64 = 1 << 31;
        let mut walked = 0;
        for segment in self.segments().iter() {
            let is_leap = |end: i64| !segment.is_last() && segment.upper() - end >= MAX_OFFSETS;
            if is_leap(segment.base_offset()) && is_leap(segment.end_offset()?) || segment.is_compacted()? {
                return Ok(true);
            }
            walked += segment.size()?;
            if walked >= SEARCHED_BYTES {
                break;
            }
        }
        Ok(false)
    }

    /// Whether a scan of these offsets, which no whole batch contains, finds damage.
    fn is_damaged(&self, offsets: Range<i64>) -> Result<bool> {
        let ranges =
            Ranges { start_offset: Some(offsets.start), end_offset: Some(offsets.end), ..Ranges::default() };
        let options =
            ScanOptions { ranges, on_damage: OnDamage::Skip, batches_only: true, ..ScanOptions::default() };
        let mut scan = self.scan(options)?;
        while scan.next_step()?.is_some() {}
        Ok(!scan.damaged_ranges().is_empty())
    }

    /// Called before a look-up returns a result from `next`, which follows `segment`, whose undamaged end is
    /// at offset `end`. If offsets are missing between the two, lists the directory again, and warns of a
    /// gap that remains.
    ///
    /// [`Error::LogChanged`] if there is a segment between the two; [`Error::Io`].
    pub(super) fn check_gap(&self, segment: &Segment, end: i64, next: &Segment) -> Result<()> {
        if end < next.base_offset() {
            self.check_listing(segment, next)?;
            self.warn_of_gap(segment, end, next)?;
        }
        Ok(())
    }

    /// Warns, once, that the offsets from `end` to `next` are missing, unless the log is compacted.
    ///
    /// # Errors
    /// [`Error::LogChanged`], [`Error::Io`].
    pub(super) fn warn_of_gap(&self, segment: &Segment, end: i64, next: &Segment) -> Result<()> {
        let high = next.base_offset();
        if self.is_gap_checked(next) {
            return Ok(());
        }
        self.inner.continuity.checked.rcu(|checked| {
            let mut checked = checked.to_vec();
            if let Err(place) = checked.binary_search(&high) {
                checked.insert(place, high);
            }
            checked
        });
        if self.is_compacted()? {
            return Ok(());
        }
        segment.warn(&format!(
            "{}: {} {} missing: the segment ends at offset {end}, and the next one, {}, begins at {high}. \
             Unless the log is compacted, a segment is missing or was cut",
            segment.path().display(),
            offsets_in_words(end, Some(high)),
            is_or_are(end, high),
            next.path().display(),
        ));
        Ok(())
    }

    /// Whether the gap before a segment was checked: a call has listed the directory again, and warned if it
    /// had to.
    pub(super) fn is_gap_checked(&self, next: &Segment) -> bool {
        self.inner.continuity.checked.load().binary_search(&next.base_offset()).is_ok()
    }

    /// Fails if the directory has a segment between these two, which the listing of this log has missed.
    ///
    /// # Errors
    /// [`Error::LogChanged`], [`Error::Io`].
    pub(super) fn check_listing(&self, segment: &Segment, next: &Segment) -> Result<()> {
        let (low, high) = (segment.base_offset(), next.base_offset());
        let bases = self.second_listing()?;
        let next = bases.get(bases.partition_point(|base| *base <= low));
        let Some(missed) = next.filter(|base| **base < high) else { return Ok(()) };
        Err(Error::LogChanged {
            file: self.inner.open_files.directory.path_of(&segment_file(*missed, FileKind::Log)),
            expected: format!("no segment between base offsets {low} and {high}"),
            found: "this segment".to_owned(),
        })
    }

    fn second_listing(&self) -> Result<&[i64]> {
        if let Some(bases) = self.inner.continuity.second_listing.get() {
            return Ok(bases);
        }
        let listing = loader::list(&self.inner.open_files, None, &self.inner.lookups)?;
        Ok(self.inner.continuity.second_listing.get_or_init(|| listing.segments.into_keys().collect()))
    }

    /// Whether the results about gaps are still valid for these segments, which the directory has now.
    pub(super) fn is_continuity_current(&self, segments: &[Arc<Segment>]) -> bool {
        let Continuity { second_listing, is_cleaned, .. } = &self.inner.continuity;
        second_listing.get().is_none_or(|bases| {
            segments.iter().map(|segment| segment.base_offset()).eq(bases.iter().copied())
        }) && is_cleaned.get().is_none_or(|known| *known == self.has_cleaner_checkpoint())
    }

    /// [`Log::has_cleaner_checkpoint`], read once per log.
    pub(crate) fn is_cleaned(&self) -> bool {
        *self.inner.continuity.is_cleaned.get_or_init(|| self.has_cleaner_checkpoint())
    }

    /// Whether a cleaner has cleaned the partition, or the one that it is a copy of. False if the file cannot
    /// be read.
    fn has_cleaner_checkpoint(&self) -> bool {
        let directory = &self.inner.open_files.directory;
        if directory.identity_of(CLEANED).is_ok_and(|file| file.is_some()) {
            return true;
        }
        let (Some(topic), Some(partition)) = (self.topic(), self.partition()) else { return false };
        metadata::checkpointed(directory, CLEANED_OFFSETS, topic, partition)
            .is_ok_and(|offset| offset.is_some())
    }
}
