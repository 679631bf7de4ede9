//! The first part of a pass: the last offset of each dirty key. Kafka: `Cleaner.buildOffsetMap`.

use super::history::{History, Unusable, for_each_batch};
use super::pass::{Source, control_type};
use super::replaced::ReplacedOffsets;
use super::transactions::CleanedTransactions;
use crate::error::Result;
use crate::fs::seeded_bugs::{self, SeededBug};
use crate::log::{KeyHash, OffsetMap};
use crate::record::{BatchHeader, Records};
use crate::segment::Batch;

/// The number of keys whose entries of the map are loaded into the caches before the first of them is used.
const AHEAD: usize = 64;

/// The last offsets of the dirty keys.
#[derive(Debug)]
pub(super) struct DirtyKeys {
    map: OffsetMap,
    /// The keys of all records up to this offset are in the map; −1: of none.
    latest_offset: i64,
    /// The dirty offsets whose key has a later one. `None` if there are too many of them, and if records of aborted transactions are
    /// among them, whose keys are not in the map.
    replaced: Option<ReplacedOffsets>,
}

/// The first part of a pass, at a position.
struct Reading<'a> {
    keys: &'a mut DirtyKeys,
    /// Records below have no effect.
    start: i64,
    transactions: CleanedTransactions,
    /// The decompressed records of a batch.
    buffer: Vec<u8>,
    /// Keys that are not in the map yet, with their offsets.
    pending: Vec<(KeyHash, i64)>,
}

impl DirtyKeys {
    /// The number of different keys.
    pub(super) fn len(&self) -> usize {
        self.map.len()
    }

    /// The first offset whose key may be missing: the first dirty offset after the pass.
    pub(super) fn end_offset(&self) -> i64 {
        self.latest_offset + 1
    }

    /// Reads the dirty records. `bytes`: the memory of the map. If it is full, the pass ends before the next record with a key.
    ///
    /// *Source*: `Cleaner.buildOffsetMap`.
    pub(super) fn read(source: Source<'_>, history: &History, bytes: usize) -> Result<Self> {
        let Source { log, range, .. } = source;
        let start = range.first_dirty_offset;
        let map = OffsetMap::new(bytes, history.dirty_records)?;
        let replaced = ReplacedOffsets::new(start..range.first_uncleanable_offset, bytes);
        // with the bug the first offset of a key remains
        let replaced = replaced.filter(|_| !seeded_bugs::is(SeededBug::FirstRecordKept));
        let mut keys = Self { map, latest_offset: -1, replaced };
        // without those that end before: Kafka takes the records of the producer's next transaction, if that was committed, for aborted
        // ones, and older records of their keys remain after the tombstones
        let ahead: Vec<_> =
            history.aborted.iter().filter(|ended| ended.last_offset >= start).copied().collect();
        let transactions = CleanedTransactions::new(&ahead);
        let (buffer, pending) = (Vec::new(), Vec::with_capacity(AHEAD));
        let mut reading = Reading { keys: &mut keys, start, transactions, buffer, pending };
        let mut leader_epoch = -1;
        for (segment, next) in range.dirty_segments(log) {
            let mut is_full = false;
            leader_epoch = for_each_batch(&segment, log, leader_epoch, |batch, bytes| {
                if !is_full {
                    is_full = !reading.add(batch, bytes)?;
                }
                Ok(())
            })?;
            if is_full {
                return Ok(keys);
            }
            // offsets may be missing at the end of the segment
            reading.keys.latest_offset = next - 1;
        }
        Ok(keys)
    }

    /// Whether no later record has the key of a record, unless that is above the last offset of the pass.
    pub(super) fn is_latest(&self, key: &[u8], offset: i64) -> bool {
        if let Some(is_replaced) = self.replaced.as_ref().and_then(|replaced| replaced.contains(offset)) {
            return !is_replaced;
        }
        self.map.get(key).is_none_or(|latest| {
            // with the bug the map has the first offset
            offset >= latest && !(seeded_bugs::is(SeededBug::FirstRecordKept) && offset > latest)
        })
    }

    /// Whether an offset is above the last one of the pass: nothing is known of later records.
    pub(super) fn is_above(&self, offset: i64) -> bool {
        offset > self.latest_offset
    }

    /// Whether a later record is known for every record of a batch. False also if that would have to be looked up.
    pub(super) fn has_replaced(&self, header: &BatchHeader) -> bool {
        let (first, last) = (header.base_offset, header.last_offset);
        let replaced = self.replaced.as_ref().and_then(|replaced| replaced.count(first, last));
        header.magic == 2 && replaced.is_some() && replaced == header.count
    }
}

impl Reading<'_> {
    /// Adds the keys of a batch. False if the map was full before its last one.
    ///
    /// *Source*: `Cleaner.buildOffsetMapForSegment`.
    fn add(&mut self, batch: &Batch, bytes: &[u8]) -> std::result::Result<bool, Unusable> {
        let header = &batch.header;
        if header.is_control() {
            self.transactions.add_marker(header, control_type(header, bytes, &mut self.buffer)?);
        } else if self.transactions.add_batch(header) && !seeded_bugs::is(SeededBug::AbortedRecordsCount) {
            self.keys.replaced = None;
        } else {
            let (mut records, payload) = Records::open(*header, bytes, &mut self.buffer)?;
            while let Some(record) = records.next(payload.of(bytes, &self.buffer))? {
                let Some(key) = record.key.filter(|_| record.offset >= self.start) else { continue };
                let hash = self.keys.map.hash(key);
                self.keys.map.prefetch(hash);
                self.pending.push((hash, record.offset));
                if self.pending.len() == AHEAD && !self.put_pending()? {
                    return Ok(false);
                }
            }
            if !self.put_pending()? {
                return Ok(false);
            }
        }
        if header.last_offset >= self.start {
            self.keys.latest_offset = header.last_offset;
        }
        Ok(true)
    }

    /// Puts the pending keys into the map. False if it was full before the last one.
    fn put_pending(&mut self) -> Result<bool> {
        let DirtyKeys { map, latest_offset, replaced } = &mut *self.keys;
        for (hash, offset) in self.pending.drain(..) {
            if map.is_full() {
                return Ok(false);
            }
            let before = map.put_hashed(hash, offset)?;
            if let Some(before) = before {
                if let Some(replaced) = replaced {
                    replaced.add(before);
                }
                if seeded_bugs::is(SeededBug::FirstRecordKept) {
                    map.put_hashed(hash, before)?;
                }
            }
            *latest_offset = offset;
        }
        Ok(true)
    }
}
