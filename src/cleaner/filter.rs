//! What compaction keeps of a batch. Kafka: `Cleaner.cleanInto`, `Cleaner.shouldRetainRecord`,
//! `MemoryRecords.filterTo`.
//!
//! ```text
//!   a record remains if      it is above the end of the pass, or
//!                            no later record has its key, and it has a value or may not be removed yet (tombstone)
//!   a record without key     does not remain
//!   aborted records          do not remain; the marker remains until they are gone, and then until its delete horizon
//!   a batch without records  remains, empty, if it is the last of its producer, or the last of the pass
//! ```
//!
//! A tombstone or a marker that may be removed gets a delete horizon, `delete.retention.ms` after the pass
//! that first keeps it, and is removed by the first pass after that.

use std::collections::HashMap;

use super::batches::Unusable;
use super::dirty_keys::DirtyKeys;
use super::transactions::CleanedTransactions;
use crate::error::Malformed;
use crate::index::AbortedTransaction;
use crate::record::control::ControlType;
use crate::record::{BatchHeader, BatchRewriter, RecordRef, Records, write_empty_batch};
use crate::state::producers::LastRecord;

/// The rules of a pass for single records.
#[derive(Debug)]
pub(super) struct Rules<'a> {
    pub(super) keys: &'a DirtyKeys,
    /// ms since the epoch.
    pub(super) now: i64,
    pub(super) delete_retention_ms: i64,
    /// The largest batch that is read, bytes.
    pub(super) max_batch_bytes: usize,
}

/// What a pass knows at its position, which decides on whole batches.
#[derive(Debug)]
pub(super) struct Filter<'a> {
    pub(super) keys: &'a DirtyKeys,
    /// The exclusive end of what a pass may clean.
    pub(super) first_uncleanable: i64,
    /// ms since the epoch.
    pub(super) now: i64,
    /// The last records of the producers that the log knows.
    pub(super) producers: HashMap<i64, LastRecord>,
    pub(super) transactions: CleanedTransactions,
    /// The decompressed record of a marker.
    pub(super) plain: Vec<u8>,
}

/// What is known of a batch before its records are read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Decision {
    /// Whether none of its records remain.
    removes_all: bool,
    /// Whether it remains without records.
    keeps_empty: bool,
    /// Whether it needs a delete horizon: a marker that may be removed.
    is_removable: bool,
}

/// Memory that is used for one batch after the other.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    rewriter: BatchRewriter,
    /// The decompressed records of a batch.
    plain: Vec<u8>,
}

/// What remains of a batch.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Remains {
    /// The header of the batch that was written; `None` if nothing remains.
    pub(super) header: Option<BatchHeader>,
    pub(super) records_before: u64,
    pub(super) records_after: u64,
}

impl Filter<'_> {
    /// Decides on the next batch. `bytes` are used of markers. Also returns the entry for the transaction
    /// index.
    pub(super) fn decide(
        &mut self,
        header: &BatchHeader,
        bytes: &[u8],
    ) -> Result<(Decision, Option<AbortedTransaction>), Unusable> {
        let (mut is_removable, mut aborted) = (false, None);
        if header.is_control() {
            let kind = ControlType::of_batch(*header, bytes, &mut self.plain)?;
            let fate = self.transactions.add_marker(header, kind);
            (is_removable, aborted) = (fate.is_removable, fate.aborted);
        }
        let is_aborted = !header.is_control() && self.transactions.add_batch(header);
        let is_horizon_past = header.delete_horizon().is_some_and(|horizon| horizon <= self.now);
        let is_replaced = !header.is_control() && self.keys.has_replaced(header);
        let removes_all = is_aborted || is_replaced || is_removable && is_horizon_past;
        let keeps_empty =
            self.is_last_of_producer(header) || header.last_offset + 1 == self.first_uncleanable;
        Ok((Decision { removes_all, keeps_empty, is_removable }, aborted))
    }

    /// Whether a batch must remain, because its producer's last sequence or epoch is known from it.
    fn is_last_of_producer(&self, header: &BatchHeader) -> bool {
        let last = self.producers.get(&header.producer_id).filter(|_| header.producer_id >= 0);
        last.is_some_and(|last| match last.data_offset {
            Some(offset) => header.last_offset == offset,
            None => header.is_control() && header.producer_epoch == last.producer_epoch,
        })
    }
}

impl Decision {
    /// What remains of a batch if no record does; `None` if its records have to be read.
    pub(super) fn of_removed(self, header: &BatchHeader) -> Option<Remains> {
        let records_before = header.count.map_or(0, |count| u64::try_from(count).unwrap_or(0));
        (self.removes_all && !self.keeps_empty).then(|| Remains { records_before, ..Remains::default() })
    }
}

impl Rules<'_> {
    /// Appends what remains of a batch to `out`. `keeps_old_tombstones`: whether tombstones of a batch in an
    /// old format remain.
    pub(super) fn apply(
        &self,
        (decision, keeps_old_tombstones): (Decision, bool),
        header: &BatchHeader,
        bytes: &[u8],
        scratch: &mut Scratch,
        out: &mut Vec<u8>,
    ) -> Result<Remains, Unusable> {
        let Scratch { rewriter, plain } = scratch;
        let (mut records, payload) = Records::open_up_to(self.max_batch_bytes, *header, bytes, plain)?;
        records.keep_out_of_place();
        // with the true base offset of a wrapper
        let header = &records.header().clone();
        let payload = payload.of(bytes, plain);
        let mut remains = Remains::default();
        let mut kept = Vec::new();
        let mut has_tombstone = false;
        while let Some(record) = records.next(payload)? {
            remains.records_before += 1;
            let is_kept = !decision.removes_all
                && (header.is_control() || self.is_kept(header, &record, keeps_old_tombstones));
            if is_kept {
                has_tombstone |= record.value.is_none();
                kept.push(record);
            }
        }
        remains.records_after = kept.len() as u64;
        let is_whole = header.magic == 2 && remains.records_after == remains.records_before;
        let kinds = (is_whole, has_tombstone || decision.is_removable, decision.keeps_empty);
        remains.header = self.write(header, bytes, &kept, kinds, (rewriter, out))?;
        Ok(remains)
    }

    /// `is_whole`: whether all records remain; `may_expire`: whether the batch needs a delete horizon, unless
    /// it has one; `keeps_empty`: whether it remains without records.
    fn write(
        &self,
        header: &BatchHeader,
        bytes: &[u8],
        kept: &[RecordRef<'_>],
        (is_whole, may_expire, keeps_empty): (bool, bool, bool),
        (rewriter, out): (&mut BatchRewriter, &mut Vec<u8>),
    ) -> Result<Option<BatchHeader>, Unusable> {
        if kept.is_empty() {
            return Ok(if keeps_empty { Some(write_empty_batch(header, out)?) } else { None });
        }
        let needs_horizon = may_expire && header.delete_horizon().is_none();
        if is_whole && !needs_horizon {
            out.extend_from_slice(bytes);
            return Ok(Some(*header));
        }
        let horizon = if needs_horizon {
            // as in Java: no horizon, if it is beyond all times
            Some(self.now.wrapping_add(self.delete_retention_ms))
        } else {
            header.delete_horizon()
        };
        // Kafka's cleaner fails here, too, and leaves the log as it is
        if let Some([one, next]) = kept.array_windows().find(|[one, next]| next.offset <= one.offset) {
            let found = format!("offset {} after {}", next.offset, one.offset);
            return Err(Malformed::new("ascending offsets of the records that remain", found).into());
        }
        Ok(Some(rewriter.rebuild(header, kept, horizon, out)?))
    }

    /// Whether a record of a data batch remains.
    fn is_kept(&self, header: &BatchHeader, record: &RecordRef<'_>, keeps_old_tombstones: bool) -> bool {
        if self.keys.is_above(record.offset) {
            return true;
        }
        let Some(key) = record.key else { return false };
        let is_latest = self.keys.is_latest(key, record.offset);
        let keeps_tombstones = match header.magic {
            2 => header.delete_horizon().is_none_or(|horizon| self.now < horizon),
            _ => keeps_old_tombstones,
        };
        is_latest && (record.value.is_some() || keeps_tombstones)
    }
}
