//! Queries of a log; each reads all batches.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use super::{Batch, Control, Log, Record};

/// Aborted transactions, from their markers, and the start of the first open one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transactions {
    /// Offsets of data records of aborted transactions.
    pub aborted: HashSet<i64>,
    /// Producer, first offset, offset of the marker.
    pub aborted_ranges: Vec<(i64, i64, i64)>,
    /// Exclusive: the first offset of the oldest open transaction, or the log end offset.
    pub last_stable_offset: i64,
}

impl Log {
    /// One above the last offset; the last segment's base offset if it has no batch.
    pub fn end_offset(&self) -> i64 {
        let last_base = self.segments.last().map_or(0, |segment| segment.base_offset);
        self.batches.last().map_or(0, |batch| batch.last_offset + 1).max(last_base)
    }

    /// All records, including control records.
    pub fn records(&self) -> impl Iterator<Item = &Record> {
        self.batches.iter().flat_map(|batch| &batch.records)
    }

    /// The batch that contains the offset, or the next batch if the offset is in a gap; `None` if no batch
    /// follows.
    pub fn locate(&self, offset: i64) -> Option<&Batch> {
        self.batches.iter().find(|batch| batch.last_offset >= offset)
    }

    /// The first record (control records too) at or after `log_start_offset` with a timestamp of at least
    /// `target`.
    pub fn offset_for_time(&self, log_start_offset: i64, target: i64) -> Option<&Record> {
        self.records().find(|record| record.offset >= log_start_offset && record.timestamp >= target)
    }

    /// Data records (optionally control records) in a range of offsets and one of times; a record without a
    /// timestamp is outside every range of times.
    pub fn scan(
        &self,
        offsets: Range<i64>,
        times: Option<Range<i64>>,
        include_control: bool,
    ) -> impl Iterator<Item = &Record> {
        self.records().filter(move |record| {
            offsets.contains(&record.offset)
                && (include_control || record.control.is_none())
                && times
                    .as_ref()
                    .is_none_or(|times| record.timestamp >= 0 && times.contains(&record.timestamp))
        })
    }

    /// Like [`Log::scan`], but only records of committed transactions and outside transactions, up to the
    /// last stable offset.
    pub fn scan_committed(
        &self,
        offsets: Range<i64>,
        times: Option<Range<i64>>,
        include_control: bool,
    ) -> impl Iterator<Item = &Record> {
        let transactions = self.transactions();
        self.scan(offsets.start..offsets.end.min(transactions.last_stable_offset), times, include_control)
            .filter(move |record| !transactions.aborted.contains(&record.offset))
    }

    /// Derived only from the markers.
    pub fn transactions(&self) -> Transactions {
        let mut open: HashMap<i64, Vec<&Batch>> = HashMap::new();
        let mut aborted = HashSet::new();
        let mut aborted_ranges = Vec::new();
        for batch in &self.batches {
            if batch.transactional && !batch.control {
                open.entry(batch.producer_id).or_default().push(batch);
            }
            for record in batch.records.iter().filter(|_| batch.transactional) {
                match record.control {
                    Some(Control::Abort { .. }) => {
                        if let Some(batches) = open.remove(&batch.producer_id) {
                            aborted_ranges.push((batch.producer_id, batches[0].base_offset, record.offset));
                            aborted
                                .extend(batches.iter().flat_map(|b| &b.records).map(|record| record.offset));
                        }
                    }
                    Some(Control::Commit { .. }) => {
                        open.remove(&batch.producer_id);
                    }
                    Some(Control::Other { .. }) | None => {}
                }
            }
        }
        let first_open = open.values().map(|batches| batches[0].base_offset).min();
        Transactions { aborted, aborted_ranges, last_stable_offset: first_open.unwrap_or(self.end_offset()) }
    }
}
