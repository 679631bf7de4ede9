//! Which batches and records a scan returns: those in its ranges, visible at its isolation level.

use std::sync::Arc;

#[cfg(any(feature = "inspect", feature = "plan"))]
use super::RecordOffsetRange;
use super::{OnDamage, ScanOptions};
use crate::error::Result;
use crate::log::transactions::{Outcome, Transactions};
use crate::log::{Log, RecordOffsets};
use crate::record::BatchHeader;
#[cfg(feature = "arrow")]
use crate::record::RecordSpan;
use crate::types::{IsolationLevel, TimestampType};

/// A test of headers and records for a scan.
#[derive(Debug)]
pub(super) struct Filter {
    pub(super) options: ScanOptions,
    /// The first offset, inclusive.
    pub(super) start: i64,
    /// Exclusive.
    pub(super) end: i64,
    /// The transactions, for a committed scan.
    pub(super) transactions: Option<Arc<Transactions>>,
}

impl Filter {
    /// Errors of [`Log::scan`].
    pub(super) fn new(log: &Log, mut options: ScanOptions) -> Result<Self> {
        let (start, mut end) = log.resolve(&options.ranges)?;
        // after a damaged batch whose length is wrong, only its checksum shows that the next batch is
        // elsewhere
        options.check_crcs |= options.on_damage != OnDamage::Raise;
        let mut transactions = None;
        if options.isolation_level == IsolationLevel::ReadCommitted {
            // a damaged batch is in no transaction, so without its checksum it would count as committed
            options.check_crcs = true;
            let found = log.transactions()?;
            if options.on_damage == OnDamage::Raise {
                // undecided transactions matter only if the range ends above the last stable offset
                if end > found.last_stable_offset {
                    found.ensure_decided()?;
                }
                end = end.min(found.last_stable_offset);
            } else {
                end = end.min(found.readable_end);
            }
            transactions = Some(found);
        }
        Ok(Self { options, start, end, transactions })
    }

    /// Whether a batch may contain a record that the scan returns, by its header.
    pub(super) fn accepts(&self, header: &BatchHeader) -> bool {
        let ranges = &self.options.ranges;
        let in_time =
            ranges.start_time.is_none_or(|start| header.max_timestamp >= start || header.hides_times())
                && (!has_one_time(header) || ranges.contains_time(header.max_timestamp));
        let visible = self.options.batches_only || self.options.include_control || !header.is_control();
        in_time && visible
    }

    /// The number of records that are in the ranges of a batch that the filter accepts, if its header gives
    /// it; `None` if only the records do. Not for damage that is skipped: a damaged batch would be
    /// counted.
    #[cfg(any(feature = "inspect", feature = "plan"))]
    pub(super) fn count_in_header(&self, header: &BatchHeader) -> Option<i32> {
        let is_counted = |count| self.is_counted(count, header) && !self.is_cut_by_time(header);
        header.count.filter(|count| *count == 0 || is_counted(*count))
    }

    /// Whether only the records of a batch that the filter accepts show which of them are in the range of
    /// times.
    #[cfg(any(feature = "inspect", feature = "plan"))]
    pub(super) fn is_cut_by_time(&self, header: &BatchHeader) -> bool {
        self.options.ranges.has_times() && !has_one_time(header)
    }

    /// [`Filter::count_in_header`] for a batch with one record, whose time is given.
    #[cfg(any(feature = "inspect", feature = "plan"))]
    pub(super) fn count_of_one(&self, header: &BatchHeader, timestamp: i64) -> Option<i32> {
        self.is_counted(1, header).then(|| i32::from(self.options.ranges.contains_time(timestamp)))
    }

    /// Whether a number of records is that of a batch, and none of them is outside by its offset.
    #[cfg(any(feature = "inspect", feature = "plan"))]
    fn is_counted(&self, count: i32, header: &BatchHeader) -> bool {
        let RecordOffsetRange { start, end } = self.options.record_offsets;
        let is_whole = header.base_offset >= self.start.max(start) && header.last_offset < self.end.min(end);
        count > 0 && is_plausible(count, header) && is_whole && self.raises()
    }

    /// Whether a record is in the ranges.
    #[inline]
    pub(super) fn accepts_record(&self, offsets: RecordOffsets, timestamp: i64) -> bool {
        self.accepts_offsets(offsets) && self.options.ranges.contains_time(timestamp)
    }

    #[inline]
    fn accepts_offsets(&self, offsets: RecordOffsets) -> bool {
        (self.start..self.end).contains(&offsets.in_ranges())
            && self.options.record_offsets.contains(offsets.offset)
    }

    /// Removes the records that are not in the ranges. They are of one batch, and their offsets ascend.
    #[cfg(feature = "arrow")]
    pub(super) fn retain(&self, last_of_batch: i64, spans: &mut Vec<RecordSpan>) {
        let offsets = |span: &RecordSpan| RecordOffsets { offset: span.offset, last_of_batch };
        let accepts = |span: &RecordSpan| self.accepts_offsets(offsets(span));
        let are_within = spans.first().is_none_or(accepts) && spans.last().is_none_or(accepts);
        if !are_within || self.options.ranges.has_times() {
            spans.retain(|span| self.accepts_record(offsets(span), span.timestamp));
        }
    }

    /// How the transaction of a batch ended; every batch counts as committed in an uncommitted scan.
    pub(super) fn outcome(&self, header: &BatchHeader) -> Outcome {
        match &self.transactions {
            Some(transactions) if header.is_transactional() && !header.is_control() => {
                transactions.outcome(header.producer_id, header.base_offset)
            }
            _ => Outcome::Committed,
        }
    }

    pub(super) fn raises(&self) -> bool {
        self.options.on_damage == OnDamage::Raise
    }
}

/// Whether all records of a batch have the time in its header. The largest time of a batch with create times
/// does not show that a record has it, also not of a batch with one record: a follower stores the header of
/// its leader as it is.
fn has_one_time(header: &BatchHeader) -> bool {
    match header.magic {
        2 => header.timestamp_type() == TimestampType::LogAppendTime,
        // a message; a wrapper has messages of other formats too
        _ => !header.attributes.is_compressed(),
    }
}

/// Whether a number of records is possible for the size of a batch, so that its header need not be compared
/// with its records.
#[cfg(any(feature = "inspect", feature = "plan"))]
fn is_plausible(count: i32, header: &BatchHeader) -> bool {
    i64::from(count) <= header.offsets() && i64::from(count) <= i64::from(header.size)
}
