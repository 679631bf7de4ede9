//! Divides a range into splits that can be read in parallel. Each cut is at a batch boundary, so every record
//! of the range is in exactly one split.

use std::sync::Arc;

use super::split::Split;
use super::transactions::Transactions;
use super::{Log, OnDamage, Ranges, ScanOptions};
use crate::error::{Error, Result};
use crate::segment::{PlannedSegment, Segment};
use crate::types::IsolationLevel;

/// A split with more aborted transactions than this would be too large: its reader finds them in the log.
const MAX_ABORTED: usize = 10_000;

impl Log {
    /// Divides a range into splits of about `max_bytes` of log each (a larger batch is a split by itself), in
    /// order, without gaps between them. Empty if the range is empty.
    ///
    /// *Cost*: takes the cuts from the offset index, each confirmed by the batch it points to; reads no
    /// record. Segments whose largest timestamp is below the start time are left out.
    ///
    /// # Errors
    /// As [`Log::scan`]; [`Error::Config`] if `max_bytes` is 0. Damage is not an error here, because the scan
    /// reports it, but at the end of the log: with [`OnDamage::Raise`], that valid batches may follow.
    pub fn plan(&self, max_bytes: u64, options: &ScanOptions) -> Result<Vec<Split>> {
        if max_bytes == 0 {
            return Err(Error::config("max_bytes", "1 or more", "0"));
        }
        let ranges = options.ranges;
        let (start, mut end) = self.resolve(&ranges)?;
        let mut transactions = None;
        if options.isolation_level == IsolationLevel::ReadCommitted {
            let found = self.transactions()?;
            // the scan reports undecided transactions
            end = end.min(found.readable_end);
            transactions = Some(found);
        }
        let is_end = options.ranges.end_offset.is_none_or(|given| given > end);
        if is_end && options.on_damage == OnDamage::Raise {
            // the splits have the end as it is now
            self.refuse_uncertain_end()?;
        }
        if start >= end {
            return Ok(Vec::new());
        }
        let mut planner = Planner {
            log: self,
            ranges,
            end,
            max_bytes,
            transactions,
            segments: Vec::new(),
            start,
            size: 0,
            skipped: None,
            splits: Vec::new(),
        };
        for segment in self.segments().between(start, end) {
            self.options().interrupt.check()?;
            if ranges.start_time.is_some_and(|start_time| is_older(segment, start_time)) {
                planner.skip(segment);
            } else {
                planner.add(segment)?;
            }
        }
        if planner.start < end {
            planner.close(end);
        }
        Ok(planner.splits)
    }
}

/// Whether every record of a segment is older than a time. False if damage hides it: the scan then reads the
/// segment.
fn is_older(segment: &Segment, start_time: i64) -> bool {
    let is_below = segment.largest_record_timestamp().is_ok_and(|largest| largest < start_time);
    is_below && segment.hides_times().is_ok_and(|hides| !hides)
}

/// A plan in progress: the splits that are complete, and the one that is being filled.
struct Planner<'a> {
    log: &'a Log,
    ranges: Ranges,
    end: i64,
    max_bytes: u64,
    transactions: Option<Arc<Transactions>>,
    /// The segments that were added.
    segments: Vec<PlannedSegment>,
    /// The last segment, if it was skipped, and the start before it.
    skipped: Option<(&'a Segment, i64)>,
    /// The first offset of the split that is being filled.
    start: i64,
    /// The bytes of that split up to the segment that is being added.
    size: u64,
    splits: Vec<Split>,
}

impl<'a> Planner<'a> {
    /// Completes the current split, and begins the next one at `end`.
    fn close(&mut self, end: i64) {
        let start = self.start;
        let aborted = self.transactions.as_ref().and_then(|found| found.aborted_in(start..end, MAX_ABORTED));
        // those between the floor of the start and the end
        let first = self.segments.partition_point(|segment| segment.base_offset <= start).saturating_sub(1);
        let read = self.segments.iter().skip(first).take_while(|segment| segment.base_offset < end);
        self.splits.push(Split {
            path: self.log.path().to_owned(),
            start_offset: start,
            end_offset: end,
            start_time: self.ranges.start_time,
            end_time: self.ranges.end_time,
            size: self.size,
            aborted,
            segments: read.copied().collect(),
        });
        (self.start, self.size) = (end, 0);
    }

    /// Skips a segment that has no records in the range.
    fn skip(&mut self, segment: &'a Segment) {
        if self.size > 0 {
            self.close(segment.base_offset());
        }
        self.skipped = Some((segment, self.start));
        self.start = segment.upper().min(self.end);
    }

    fn add(&mut self, segment: &Segment) -> Result<()> {
        if let Some((skipped, start)) = self.skipped.take() {
            // offsets that are missing before the segment may have been in the range: the split has them, so
            // that they are noticed
            self.start = self.start.min(skipped.end_offset()?.max(start));
        }
        let mut position = segment.position_of(self.start)?;
        let mut stop = self.stop(segment, position)?;
        // a segment that does not fit into the current split begins the next one
        if self.size > 0 && self.size + (stop - position) > self.max_bytes {
            self.close(segment.base_offset());
        }
        self.segments.push(PlannedSegment::new(segment)?);
        for (cut_position, cut_offset) in segment.cuts(position, stop, self.end, self.max_bytes)? {
            if cut_offset >= self.end {
                stop = cut_position;
                break;
            }
            if cut_offset <= self.start {
                continue;
            }
            self.size += cut_position - position;
            self.close(cut_offset);
            position = cut_position;
        }
        self.size += stop.saturating_sub(position);
        Ok(())
    }

    /// The position in a segment at which the range ends: of the first batch after it, or the segment's end.
    fn stop(&self, segment: &Segment, position: u64) -> Result<u64> {
        let is_whole =
            segment.upper() <= self.end || segment.is_last() && self.end == self.log.log_end_offset()?;
        match if is_whole { None } else { segment.batch_from(self.end)? } {
            Some(batch) if batch.header.base_offset < self.end => Ok(batch.end()),
            Some(batch) => Ok(batch.position.max(position)),
            None => segment.size(),
        }
    }
}
