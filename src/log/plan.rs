//! Cutting a range into splits that can be read side by side. Cuts lie behind whole batches, so every record of the range
//! is in exactly one split.

use super::transactions::{AbortedRange, Transactions};
use super::{Log, Ranges, Scan, ScanOptions};
use crate::error::{Error, Result};
use crate::segment::{Batch, Found, LOOKUP_READ, Segment, Step};
use crate::types::{IsolationLevel, OffsetPosition};

/// A part of a log: what [`Log::plan`] cuts and a scan reads. Small, and the same in every process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Split {
    /// The partition directory, absolute.
    pub path: std::path::PathBuf,
    /// The first offset, inclusive.
    pub start_offset: i64,
    /// Exclusive.
    pub end_offset: i64,
    /// Milliseconds since the epoch, inclusive; `None` where the plan had none.
    pub start_time: Option<i64>,
    /// Milliseconds since the epoch, exclusive; `None` where the plan had none.
    pub end_time: Option<i64>,
    /// About how many bytes of the log it covers.
    pub size: u64,
    /// The aborted transactions that overlap it, so that who reads it committed need not look for them: producer id, first
    /// offset and last offset, inclusive. `None` where the plan was not a committed one, where damage leaves it open how a
    /// transaction ended, and where they are more than 10,000: then the reader looks itself.
    pub aborted: Option<Vec<AbortedRange>>,
}

/// A split that knows more aborted transactions is not small any more.
const MAX_ABORTED: usize = 10_000;

impl Split {
    /// The range to scan.
    pub fn ranges(&self) -> Ranges {
        Ranges {
            start_offset: Some(self.start_offset),
            end_offset: Some(self.end_offset),
            start_time: self.start_time,
            end_time: self.end_time,
        }
    }
}

impl Log {
    /// Cuts a range into splits of about `max_bytes` of log each (a batch larger than that is a split of its own), in
    /// order, without gaps between them. Empty where the range is.
    ///
    /// *Cost*: the offset index gives the cuts, each confirmed by the batch it names; no record is read. Segments whose
    /// largest timestamp lies below the start time are left out.
    ///
    /// # Errors
    /// As [`Log::scan`]; [`Error::Config`] where `max_bytes` is 0. Damage is no error here: the scan meets it.
    pub fn plan(&self, max_bytes: u64, options: &ScanOptions) -> Result<Vec<Split>> {
        if max_bytes == 0 {
            return Err(Error::config("max_bytes", "1 or more", "0"));
        }
        let ranges = options.ranges;
        let (mut start, mut end) = self.resolve(&ranges)?;
        let mut transactions = None;
        if options.isolation_level == IsolationLevel::ReadCommitted {
            let found = self.transactions()?;
            // what is in doubt is the scan's to report
            end = end.min(found.readable_end);
            transactions = Some(found);
        }
        let mut splits = Vec::new();
        if start >= end {
            return Ok(splits);
        }
        let mut size = 0;
        let mut push = |from: i64, to: i64, size: u64| {
            splits.push(Split {
                path: self.path().to_owned(),
                start_offset: from,
                end_offset: to,
                start_time: ranges.start_time,
                end_time: ranges.end_time,
                size,
                aborted: transactions.as_ref().and_then(|found| found.aborted_in(from..to, MAX_ABORTED)),
            });
        };
        for segment in self.segments().between(start, end) {
            self.options().interrupt.check()?;
            if let Some(start_time) = ranges.start_time
                && segment.largest_record_timestamp().is_ok_and(|largest| largest < start_time)
            {
                // nothing of it is in the range: close what is open before it and begin behind it
                if size > 0 {
                    push(start, segment.base_offset(), size);
                }
                (start, size) = (segment.upper().min(end), 0);
                continue;
            }
            let mut position = match from_batch(segment, start)? {
                Some(batch) => batch.position,
                None => segment.walk_to(start, -1, LOOKUP_READ)?.0.position,
            };
            let is_whole = segment.upper() <= end || segment.is_last() && end == self.log_end_offset()?;
            let stop = match if is_whole { None } else { from_batch(segment, end)? } {
                Some(batch) if batch.header.base_offset < end => batch.end(),
                Some(batch) => batch.position.max(position),
                None => segment.size()?,
            };
            // a segment that does not fit beside what is already there begins a split of its own
            if size > 0 && size + (stop - position) > max_bytes {
                push(start, segment.base_offset(), size);
                (start, size) = (segment.base_offset(), 0);
            }
            for (cut_position, cut_offset) in self.cuts(segment, position, max_bytes)? {
                if cut_offset >= end {
                    break;
                }
                if cut_offset <= start {
                    continue;
                }
                push(start, cut_offset, size + (cut_position - position));
                (start, size, position) = (cut_offset, 0, cut_position);
            }
            size += stop.saturating_sub(position);
        }
        if start < end {
            push(start, end, size);
        }
        Ok(splits)
    }

    /// [`Log::scan`] of a split, within the ranges of the options. A committed scan takes the aborted transactions from the
    /// split where it has them, and opens no segment but those of the split.
    ///
    /// # Errors
    /// As [`Log::scan`].
    pub fn scan_split(&self, split: &Split, options: ScanOptions) -> Result<Scan> {
        let ranges = split.ranges().intersection(options.ranges);
        self.for_split(split).scan(ScanOptions { ranges, ..options })
    }

    /// The same log for scans inside a split of it: the transactions are those that the split has.
    pub(crate) fn for_split(&self, split: &Split) -> Self {
        match &split.aborted {
            Some(aborted) if split.path == self.path() => {
                self.with_transactions(Transactions::of_split(aborted))
            }
            _ => self.clone(),
        }
    }

    /// Cuts of a segment: positions of batches, no more than `max_bytes` apart where no batch is larger, and their base
    /// offsets.
    fn cuts(&self, segment: &Segment, from: u64, max_bytes: u64) -> Result<Vec<(u64, i64)>> {
        let size = segment.size()?;
        let mut cuts = Vec::new();
        if size.saturating_sub(from) <= max_bytes {
            return Ok(cuts);
        }
        let mut last_cut = from;
        let mut walk = segment.walk_to(segment.base_offset(), -1, LOOKUP_READ)?.0;
        walk.position = from;
        walk.before = None;
        let index = segment.or_warn(segment.offset_index());
        // an entry that a broker wrote meanwhile lies behind what is seen
        let inside = |entry: &OffsetPosition| u64::try_from(entry.position).is_ok_and(|at| at < size);
        let entries = index.iter().flat_map(|index| index.iter()).map_while(Result::ok);
        let mut entries = entries.take_while(inside).peekable();
        loop {
            self.options().interrupt.check()?;
            // the last index entry short of the next cut saves the walk up to there
            let short = |position: i32| {
                u64::try_from(position).is_ok_and(|at| at < last_cut.saturating_add(max_bytes))
            };
            let mut entry = None;
            while let Some(next) = entries.next_if(|next| short(next.position)) {
                entry = Some(next);
            }
            if let Some(entry) = entry {
                let jump = segment.walk_to(entry.offset, -1, LOOKUP_READ)?.0;
                if jump.position > walk.position {
                    walk = jump;
                }
            }
            // damage is the scan's to report: the rest of the segment stays in one split
            let position = walk.position;
            let Step::Batch(batch) = walk.step()? else { return Ok(cuts) };
            if batch.end() - last_cut > max_bytes && position > last_cut {
                cuts.push((position, batch.header.base_offset));
                last_cut = position;
            }
        }
    }
}

/// The batch that holds an offset or follows it; `None` where none does, or damage hides it.
fn from_batch(segment: &Segment, offset: i64) -> Result<Option<Batch>> {
    match segment.find_offset(offset) {
        Ok(Found::Batch(batch)) => Ok(Some(batch)),
        Err(error) if !error.is_damage() => Err(error),
        _ => Ok(None),
    }
}
