//! The transactions of a log by their outcome, from the batches and the markers in the order of the log.

use std::collections::HashMap;

use crate::record::control::ControlType;
use crate::record::{BatchHeader, RecordRef};

/// The number of aborted transactions that are kept one by one.
const KEPT: usize = 256;

/// The transactions of a log. A marker without a record before it ends none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TransactionProfile {
    /// Transactions that were committed.
    pub committed: u64,
    /// Transactions that were aborted.
    pub aborted: u64,
    /// The records of the committed ones.
    pub committed_records: u64,
    /// The records of the aborted ones.
    pub aborted_records: u64,
    /// The first 256 aborted transactions, in the order of their markers.
    pub aborted_transactions: Vec<AbortedTransaction>,
    /// The transactions without a marker, in the order of their first offsets.
    pub open_transactions: Vec<OpenTransaction>,
}

/// An aborted transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AbortedTransaction {
    /// The producer's id.
    pub producer_id: i64,
    /// The offset of its first record.
    pub first_offset: i64,
    /// The offset of its marker.
    pub last_offset: i64,
    /// Its records.
    pub records: u64,
}

/// A transaction that has no marker yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenTransaction {
    /// The producer's id.
    pub producer_id: i64,
    /// The producer's epoch.
    pub producer_epoch: i16,
    /// The offset of its first record.
    pub first_offset: i64,
    /// The largest timestamp of its last batch, ms; −1 if there is none.
    pub last_timestamp: i64,
    /// Its records so far.
    pub records: u64,
}

/// The transactions up to a position in the log.
#[derive(Debug, Default)]
pub(super) struct Replay {
    profile: TransactionProfile,
    open: HashMap<i64, OpenTransaction>,
}

impl Replay {
    /// Adds a batch with records of a transaction.
    pub(super) fn add(&mut self, header: &BatchHeader, records: u64) {
        let open = self.open.entry(header.producer_id).or_insert(OpenTransaction {
            producer_id: header.producer_id,
            producer_epoch: header.producer_epoch,
            first_offset: header.base_offset,
            last_timestamp: -1,
            records: 0,
        });
        open.producer_epoch = header.producer_epoch;
        open.last_timestamp = header.max_timestamp;
        open.records += records;
    }

    /// Adds a control record.
    pub(super) fn end(&mut self, header: &BatchHeader, record: &RecordRef<'_>) {
        let outcome = ControlType::parse(record.key);
        if !matches!(outcome, Ok(ControlType::Abort | ControlType::Commit)) {
            return;
        }
        let Some(ended) = self.open.remove(&header.producer_id) else { return };
        if outcome == Ok(ControlType::Commit) {
            self.profile.committed += 1;
            self.profile.committed_records += ended.records;
            return;
        }
        self.profile.aborted += 1;
        self.profile.aborted_records += ended.records;
        if self.profile.aborted_transactions.len() < KEPT {
            self.profile.aborted_transactions.push(AbortedTransaction {
                producer_id: ended.producer_id,
                first_offset: ended.first_offset,
                last_offset: record.offset,
                records: ended.records,
            });
        }
    }

    pub(super) fn finish(mut self) -> TransactionProfile {
        self.profile.open_transactions = self.open.into_values().collect();
        self.profile.open_transactions.sort_unstable_by_key(|open| open.first_offset);
        self.profile
    }
}
