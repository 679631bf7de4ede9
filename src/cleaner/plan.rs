//! What a compaction would clean, and whether it is due. Nothing is changed here. Kafka: `LogCleanerManager`,
//! `LogToClean`, `Cleaner.groupSegmentsBySize`.
//!
//! ```text
//!   log start        first dirty              first uncleanable             log end
//!   ├── clean ───────┼── cleanable ───────────┼── uncleanable ──────────────┤
//!                    its keys go into the map      the active segment, the segment of an open transaction, young records
//! ```

use std::sync::Arc;

use crate::config::LogConfig;
use crate::error::Result;
use crate::log::Log;
use crate::segment::{Segment, is_relative};

/// Why a log cannot be cleaned beyond an offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "binding", derive(serde::Deserialize, serde::Serialize))]
pub enum CleaningBound {
    /// The active segment begins there. It is never cleaned.
    ActiveSegment,
    /// The segment has records of a transaction that is still open.
    OpenTransaction,
    /// The segment has a record younger than `min.compaction.lag.ms`.
    YoungRecords,
}

impl CleaningBound {
    /// A stable code: `active_segment`, `open_transaction`, `young_records`.
    pub fn code(self) -> &'static str {
        match self {
            Self::ActiveSegment => "active_segment",
            Self::OpenTransaction => "open_transaction",
            Self::YoungRecords => "young_records",
        }
    }
}

/// Whether a compaction is due, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "binding", derive(serde::Deserialize, serde::Serialize))]
pub enum CompactionState {
    /// The dirty ratio is above `min.cleanable.dirty.ratio`.
    Dirty,
    /// A cleanable record is older than `max.compaction.lag.ms`.
    Overdue,
    /// Not due: the dirty ratio is not above `min.cleanable.dirty.ratio`.
    BelowRatio,
    /// Not due: nothing can be cleaned that was not cleaned before.
    Clean,
}

impl CompactionState {
    /// A stable code: `dirty`, `overdue`, `below_ratio`, `clean`.
    pub fn code(self) -> &'static str {
        match self {
            Self::Dirty => "dirty",
            Self::Overdue => "overdue",
            Self::BelowRatio => "below_ratio",
            Self::Clean => "clean",
        }
    }
}

/// The range that a compaction would clean.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct CleaningRange {
    pub(super) first_dirty_offset: i64,
    /// Whether the stored offset was missing or impossible.
    pub(super) is_reset: bool,
    pub(super) first_uncleanable_offset: i64,
    pub(super) bound: CleaningBound,
    pub(super) clean_bytes: u64,
    pub(super) cleanable_bytes: u64,
    pub(super) state: CompactionState,
}

impl CleaningRange {
    pub(super) fn is_due(&self) -> bool {
        matches!(self.state, CompactionState::Dirty | CompactionState::Overdue)
    }

    /// Decides for a log. `stored`: the first dirty offset, as stored; `now`: ms since the epoch.
    ///
    /// *Source*: `LogCleanerManager.cleanableOffsets`, `calculateCleanableBytes`, `maxCompactionDelay`,
    /// `grabFilthiestCompactedLog`.
    pub(super) fn of(
        log: &Log,
        config: &LogConfig,
        stored: Option<i64>,
        last_stable_offset: i64,
        now: i64,
    ) -> Result<Self> {
        let start = log.log_start_offset();
        let end = log.log_end_offset()?;
        let valid = stored.filter(|offset| (start..=end).contains(offset));
        let first_dirty_offset = valid.unwrap_or(start);
        let active = log.segments().last().map_or(end, |last| last.base_offset());
        let mut limits = vec![
            (last_stable_offset, CleaningBound::OpenTransaction),
            (active, CleaningBound::ActiveSegment),
        ];
        if config.min_compaction_lag_ms > 0 {
            let young = now.saturating_sub(config.min_compaction_lag_ms);
            for segment in sealed_from(log, first_dirty_offset) {
                if segment.largest_timestamp()? > young {
                    limits.push((segment.base_offset(), CleaningBound::YoungRecords));
                    break;
                }
            }
        }
        // of equal ones the active segment, which is the usual bound
        let (limit, bound) = limits
            .into_iter()
            .rev()
            .min_by_key(|(limit, _)| *limit)
            .unwrap_or((active, CleaningBound::ActiveSegment));
        let limit = limit.max(first_dirty_offset);
        let first_uncleanable_offset =
            sealed_from(log, limit).next().map_or(active, |segment| segment.base_offset());
        let clean_bytes = bytes(log, 0, first_dirty_offset)?;
        let cleanable_bytes =
            bytes(log, first_dirty_offset.min(first_uncleanable_offset), first_uncleanable_offset)?;
        let mut range = Self {
            first_dirty_offset,
            is_reset: stored.is_some() && valid.is_none(),
            first_uncleanable_offset,
            bound,
            clean_bytes,
            cleanable_bytes,
            state: CompactionState::Clean,
        };
        if cleanable_bytes > 0 {
            range.state = if ratio(cleanable_bytes, clean_bytes) > config.min_cleanable_dirty_ratio {
                CompactionState::Dirty
            } else if is_overdue(log, first_dirty_offset, config, now)? {
                CompactionState::Overdue
            } else {
                CompactionState::BelowRatio
            };
        }
        Ok(range)
    }

    /// The segments with cleanable records that were not cleaned before, and the base offset that follows
    /// each.
    pub(super) fn dirty_segments(&self, log: &Log) -> Vec<(Arc<Segment>, i64)> {
        let segments: Vec<_> =
            log.segments().between(self.first_dirty_offset, self.first_uncleanable_offset).cloned().collect();
        let next = segments.iter().skip(1).map(|segment| segment.base_offset());
        let ends: Vec<_> = next.chain([self.first_uncleanable_offset]).collect();
        segments.into_iter().zip(ends).collect()
    }

    /// The segments that become one, in order, of those below `end_offset`.
    ///
    /// *Source*: `Cleaner.groupSegmentsBySize`.
    pub(super) fn groups(
        &self,
        log: &Log,
        config: &LogConfig,
        end_offset: i64,
    ) -> Result<Vec<Vec<Arc<Segment>>>> {
        let segments: Vec<_> = log.segments().between(0, end_offset).cloned().collect();
        let mut groups: Vec<Vec<Arc<Segment>>> = Vec::new();
        let mut total = Sizes::default();
        for (index, segment) in segments.iter().enumerate() {
            let sizes = Sizes::of(segment)?;
            let next = segments.get(index + 1).map(|next| next.base_offset());
            // an estimate: the last offset would have to be read
            let last_offset = next.unwrap_or(self.first_uncleanable_offset) - 1;
            match groups.last_mut() {
                Some(group)
                    if total.fits_with(&sizes, config) && (sizes.log == 0 || is_near(group, last_offset)) =>
                {
                    total = total.plus(&sizes);
                    group.push(Arc::clone(segment));
                }
                _ => {
                    total = sizes;
                    groups.push(vec![Arc::clone(segment)]);
                }
            }
        }
        Ok(groups)
    }
}

/// The bytes of a segment's files, or of several.
#[derive(Debug, Clone, Copy, Default)]
struct Sizes {
    log: u64,
    offset_index: u64,
    time_index: u64,
}

impl Sizes {
    fn of(segment: &Segment) -> Result<Self> {
        Ok(Self {
            log: segment.size()?,
            offset_index: segment.offset_index()?.map_or(0, |index| index.entries() * index.entry_size()),
            time_index: segment.time_index()?.map_or(0, |index| index.entries() * index.entry_size()),
        })
    }

    fn plus(self, other: &Self) -> Self {
        Self {
            log: self.log + other.log,
            offset_index: self.offset_index + other.offset_index,
            time_index: self.time_index + other.time_index,
        }
    }

    fn fits_with(self, other: &Self, config: &LogConfig) -> bool {
        let Self { log, offset_index, time_index } = self.plus(other);
        let max_index = u64::from(config.segment_index_bytes);
        log <= u64::from(config.segment_bytes) && offset_index <= max_index && time_index <= max_index
    }
}

/// Whether the indexes of a group's segment can refer to an offset.
fn is_near(group: &[Arc<Segment>], last_offset: i64) -> bool {
    let first = group.first().map_or(last_offset, |first| first.base_offset());
    last_offset < first || is_relative(last_offset, first)
}

/// The segments from the one with an offset on, without the active one.
///
/// *Source*: `LogSegments.nonActiveLogSegmentsFrom`.
fn sealed_from(log: &Log, offset: i64) -> impl Iterator<Item = &Arc<Segment>> {
    let active = log.segments().last().map_or(0, |last| last.base_offset());
    let first = log.segments().floor(offset).map_or(offset, |segment| segment.base_offset());
    log.segments()
        .iter()
        .filter(move |segment| offset <= active && (first..active).contains(&segment.base_offset()))
}

/// The bytes of the segments with offsets in a range.
fn bytes(log: &Log, start: i64, end: i64) -> Result<u64> {
    if start >= end {
        return Ok(0);
    }
    log.segments().between(start, end).map(|segment| segment.size()).sum()
}

/// Whether the oldest dirty segment has waited longer than `max.compaction.lag.ms`, by the timestamp of its
/// first batch.
fn is_overdue(log: &Log, first_dirty_offset: i64, config: &LogConfig, now: i64) -> Result<bool> {
    let limit = now.saturating_sub(config.max_compaction_lag_ms);
    for segment in sealed_from(log, first_dirty_offset) {
        let first = segment.first_batch_timestamp()?;
        if first.is_some_and(|first| 0 < first && first < limit) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The part of all bytes that is dirty; 0 if there are none.
///
/// *Source*: `LogToClean.cleanableRatio`.
#[expect(clippy::cast_precision_loss, reason = "a ratio of sizes of files, as in Kafka")]
pub(super) fn ratio(cleanable_bytes: u64, clean_bytes: u64) -> f64 {
    let total = clean_bytes + cleanable_bytes;
    if total == 0 { 0.0 } else { cleanable_bytes as f64 / total as f64 }
}
