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
    /// Whether tombstones of batches in an old format remain.
    pub(super) keeps_old_tombstones: bool,
    /// The decompressed record of a marker.
    pub(super) plain: Vec<u8>,
}

/// What is known of a batch before its records are read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Decision {
    retained: Retained,
    /// Whether it remains without records.
    keeps_empty: bool,
    /// Whether it needs a delete horizon: a marker that may be removed.
    is_removable: bool,
}

/// Which records of a batch remain.
#[derive(Debug, Clone, Copy)]
enum Retained {
    Nothing,
    /// Those that the rules for single records keep.
    Current {
        /// Whether tombstones remain if the batch is in an old format.
        with_old_tombstones: bool,
    },
}

/// The records that remain of a batch.
struct Kept<'a> {
    records: Vec<RecordRef<'a>>,
    /// Whether these are all records of the batch.
    is_whole: bool,
    /// Whether the batch needs a delete horizon, unless it has one.
    may_expire: bool,
    /// Whether the batch remains without records.
    keeps_empty: bool,
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
        let retained = if is_aborted || is_replaced || is_removable && is_horizon_past {
            Retained::Nothing
        } else {
            Retained::Current { with_old_tombstones: self.keeps_old_tombstones }
        };
        let keeps_empty =
            self.is_last_of_producer(header) || header.last_offset + 1 == self.first_uncleanable;
        Ok((Decision { retained, keeps_empty, is_removable }, aborted))
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
        let is_removed = matches!(self.retained, Retained::Nothing) && !self.keeps_empty;
        is_removed.then(|| Remains { records_before, ..Remains::default() })
    }
}

impl Rules<'_> {
    /// Appends what remains of a batch to `out`.
    pub(super) fn apply(
        &self,
        decision: Decision,
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
            let is_kept = match decision.retained {
                Retained::Nothing => false,
                Retained::Current { with_old_tombstones } => {
                    header.is_control() || self.is_kept(header, &record, with_old_tombstones)
                }
            };
            if is_kept {
                has_tombstone |= record.value.is_none();
                kept.push(record);
            }
        }
        remains.records_after = kept.len() as u64;
        let kept = Kept {
            records: kept,
            is_whole: header.magic == 2 && remains.records_after == remains.records_before,
            may_expire: has_tombstone || decision.is_removable,
            keeps_empty: decision.keeps_empty,
        };
        remains.header = self.write(header, bytes, &kept, rewriter, out)?;
        Ok(remains)
    }

    fn write(
        &self,
        header: &BatchHeader,
        bytes: &[u8],
        kept: &Kept<'_>,
        rewriter: &mut BatchRewriter,
        out: &mut Vec<u8>,
    ) -> Result<Option<BatchHeader>, Unusable> {
        if kept.records.is_empty() {
            return Ok(if kept.keeps_empty { Some(write_empty_batch(header, out)?) } else { None });
        }
        let needs_horizon = kept.may_expire && header.delete_horizon().is_none();
        if kept.is_whole && !needs_horizon {
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
        if let Some([one, next]) = kept.records.array_windows().find(|[one, next]| next.offset <= one.offset)
        {
            let found = format!("offset {} after {}", next.offset, one.offset);
            return Err(Malformed::new("ascending offsets of the records that remain", found).into());
        }
        Ok(Some(rewriter.rebuild(header, &kept.records, horizon, out)?))
    }

    /// Whether a record of a data batch remains.
    fn is_kept(&self, header: &BatchHeader, record: &RecordRef<'_>, with_old_tombstones: bool) -> bool {
        if self.keys.is_above(record.offset) {
            return true;
        }
        let Some(key) = record.key else { return false };
        let is_latest = self.keys.is_latest(key, record.offset);
        let keeps_tombstones = match header.magic {
            2 => header.delete_horizon().is_none_or(|horizon| self.now < horizon),
            _ => with_old_tombstones,
        };
        is_latest && (record.value.is_some() || keeps_tombstones)
    }
}
