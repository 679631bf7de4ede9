//! `index.interval.bytes`, from existing offset indexes.
//!
//! An entry is due for a batch if more than the interval lies between the start of the last batch with an
//! entry and its own. So an index shows between which values the interval is:
//!
//! ```text
//!   batches   0      300      700     1100     1500          starts
//!   entries   (none)                   1100                   the interval is below 1100, and 700 or more
//! ```
//!
//! The ranges of several indexes are intersected. An index that was not filled by one interval has an empty
//! range, or one that does not overlap with the others: an entry is wrong, the file was cut, or another
//! setting applied. It is left out. Entries of batches after the valid end of a segment do not count: a crash
//! may have lost the batches.

use std::ops::Range;

use super::Log;
use crate::config::LogConfig;
use crate::error::Result;
use crate::record::LOG_OVERHEAD;
use crate::segment::{OffsetMatch, SCAN_READ, Segment, Step};
use crate::types::OffsetPosition;

/// The size of the segments whose headers are read, from the last one backwards, bytes.
const MAX_BYTES: u64 = 256 << 20;

/// Where the `index.interval.bytes` of indexes that are built is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "binding", derive(serde::Deserialize, serde::Serialize))]
#[non_exhaustive]
pub enum IntervalSource {
    /// From the settings that were given.
    Given,
    /// From the topic's settings in the metadata of the data directory.
    Topic,
    /// The existing offset indexes show it, or it is that of the writer that closed the log.
    Inferred,
    /// Kafka's default, because nothing else says it.
    Default,
}

impl IntervalSource {
    /// A stable name for programs: `given`, `topic`, `inferred`, `default`.
    pub fn code(self) -> &'static str {
        match self {
            Self::Given => "given",
            Self::Topic => "topic",
            Self::Inferred => "inferred",
            Self::Default => "default",
        }
    }
}

/// The interval of index entries that the existing offset indexes of a log show, or Kafka's default.
///
/// # Errors
/// As [`Log::open`].
pub(crate) fn shown_interval(log: &Log) -> Result<(u64, IntervalSource)> {
    let inferred = infer(log)?.map(|interval| (interval, IntervalSource::Inferred));
    Ok(inferred.unwrap_or((LogConfig::default().index_interval_bytes.into(), IntervalSource::Default)))
}

/// The interval; `None` if no index with two or more entries shows it. Of several possible values it is
/// Kafka's default, or the one that is divisible by the largest power of two, because settings are mostly
/// round.
///
/// Newer segments are read first, because the setting may have changed.
fn infer(log: &Log) -> Result<Option<u64>> {
    let mut segments: Vec<_> = log.segments().iter().cloned().collect();
    segments.reverse();
    let (mut several, mut single, mut bytes) = (Vec::new(), Vec::new(), 0);
    for segment in &segments {
        if bytes > MAX_BYTES {
            break;
        }
        bytes += segment.size()?;
        match range_of(segment)? {
            Some((1, range)) => single.push(range),
            Some((_, range)) => several.push(range),
            None => {}
        }
    }
    if several.is_empty() {
        return Ok(None);
    }
    let mut possible = 0..u64::MAX;
    // an index with one entry may be the rest of a longer one
    for range in several.into_iter().chain(single) {
        let both = possible.start.max(range.start)..possible.end.min(range.end);
        if !both.is_empty() {
            possible = both;
        }
    }
    Ok(Some(roundest(&possible)))
}

/// The number of entries of a segment's offset index that refer to its batches, and the intervals that would
/// fill it as it is; `None` for one without entries, and for one that no interval fills.
fn range_of(segment: &Segment) -> Result<Option<(usize, Range<u64>)>> {
    let Some(index) = segment.or_warn(segment.offset_index()) else { return Ok(None) };
    // an index with more entries than batches could fill the memory
    if !(1..=segment.size()? / LOG_OVERHEAD as u64).contains(&index.entries()) {
        return Ok(None);
    }
    let mut entries = Vec::new();
    for slot in 0..index.entries() {
        let Some(entry) = segment.or_warn(index.entry(slot).map(Some)) else { return Ok(None) };
        entries.push(entry);
    }
    let is_at =
        |entry: &OffsetPosition, position| u64::try_from(entry.position).is_ok_and(|at| at == position);
    let mut entries = entries.into_iter().peekable();
    let (mut range, mut last, mut count) = (0..u64::MAX, 0, 0);
    let mut walk = segment.walk(-1, SCAN_READ)?;
    while let Step::Batch(batch) = walk.step()? {
        segment.open_files().interrupt.check()?;
        let distance = batch.position - last;
        if let Some(entry) = entries.next_if(|entry| is_at(entry, batch.position)) {
            // one of an append of several batches, or of a part of a compaction, is not due for its batch
            // alone
            if !OffsetMatch::of(entry.offset, &batch.header).is_stored() {
                return Ok(None);
            }
            range.end = range.end.min(distance);
            last = batch.position;
            count += 1;
        } else {
            range.start = range.start.max(distance);
        }
    }
    let is_filled = entries.all(|entry| u64::try_from(entry.position).is_ok_and(|at| at >= walk.position));
    Ok((is_filled && count > 0 && !range.is_empty()).then_some((count, range)))
}

/// A value of the range, which is not empty: Kafka's default, or the one that is divisible by the largest
/// power of two.
fn roundest(range: &Range<u64>) -> u64 {
    let default = u64::from(LogConfig::default().index_interval_bytes);
    if range.contains(&default) {
        return default;
    }
    let powers = (0..u64::BITS).rev().map(|shift| 1_u64 << shift);
    // 0 is divisible by all of them
    let mut multiples = powers.filter_map(|power| range.start.max(1).checked_next_multiple_of(power));
    multiples.find(|value| range.contains(value)).unwrap_or(range.start)
}
