//! The first part of a pass: the last offset of each dirty key. Kafka: `Cleaner.buildOffsetMap`.

use super::CompactionOptions;
use super::batches::{BytesOf, Place, SegmentBatches, Unusable};
use super::history::History;
use super::pass::Source;
use super::replaced::ReplacedOffsets;
use super::rounds::{self, Rounds};
use super::transactions::CleanedTransactions;
use crate::error::{Malformed, Result};
use crate::log::{KeyHash, OffsetMap};
use crate::record::control::ControlType;
use crate::record::{BatchHeader, Records};
use crate::segment::EpochsBefore;

/// The number of keys whose entries of the map are loaded into the caches before the first of them is used.
const AHEAD: usize = 64;

/// The last offsets of the dirty keys.
#[derive(Debug)]
pub(super) struct DirtyKeys {
    map: OffsetMap,
    /// The keys of all records up to this offset are in the map; −1: of none.
    latest_offset: i64,
    /// The dirty offsets whose key has a later one. `None` if there are too many of them, and if records of
    /// aborted transactions are among them, whose keys are not in the map.
    replaced: Option<ReplacedOffsets>,
}

/// Rounds of batches: whether their keys count, the decompressed records, the keys with their offsets.
type KeyRounds = Rounds<bool, Vec<u8>, (KeyHash, i64), bool>;

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
    /// Batches that several threads decompress. `None` with one thread.
    rounds: Option<KeyRounds>,
    /// Whether the map was full before the last key.
    is_full: bool,
    /// The largest batch that is read, bytes.
    max_batch_bytes: usize,
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

    /// Reads the dirty records, and verifies the checksums of all dirty segments. If the memory of the map is
    /// full, the pass ends before the next record with a key.
    ///
    /// *Source*: `Cleaner.buildOffsetMap`.
    pub(super) fn read(source: Source<'_>, history: &History, options: &CompactionOptions) -> Result<Self> {
        let CompactionOptions { dedupe_buffer_bytes: bytes, threads, .. } = *options;
        let Source { log, range, .. } = source;
        let start = range.first_dirty_offset;
        let map = OffsetMap::new(bytes, history.dirty_records)?;
        let replaced = ReplacedOffsets::new(start..range.first_uncleanable_offset, bytes);
        let mut keys = Self { map, latest_offset: -1, replaced };
        // without those that end before: Kafka takes the records of the producer's next transaction, if that
        // was committed, for aborted ones, and older records of their keys remain after the
        // tombstones
        let ahead: Vec<_> =
            history.aborted.iter().filter(|ended| ended.last_offset >= start).copied().collect();
        let mut reading = Reading {
            keys: &mut keys,
            start,
            transactions: CleanedTransactions::new(&ahead),
            buffer: Vec::new(),
            pending: Vec::with_capacity(AHEAD),
            rounds: (threads > 1).then(|| Rounds::new(threads)),
            is_full: false,
            max_batch_bytes: log.options().max_batch_bytes,
        };
        let mut epochs = EpochsBefore::UNKNOWN;
        for (segment, next) in range.dirty_segments(log) {
            let mut batches = SegmentBatches::new(&segment, log, epochs, BytesOf::AllBatches)?;
            // also after the last key for which there is room, so that all checksums are verified
            loop {
                let found = batches.next();
                if !matches!(found, Ok(Some(_))) {
                    // before an error: one of the batches before it comes first
                    reading.run(&mut batches)?;
                }
                let Some(place) = found? else { break };
                if !reading.is_full {
                    reading.add(&mut batches, &place)?;
                }
            }
            if !reading.is_full {
                // offsets may be missing at the end of the segment
                reading.keys.latest_offset = next - 1;
            }
            epochs = batches.epochs();
        }
        Ok(keys)
    }

    /// Puts keys into the map, and clears them. False if it was full before the last one.
    fn put(&mut self, hashes: &mut Vec<(KeyHash, i64)>) -> Result<bool> {
        let Self { map, latest_offset, replaced } = self;
        for (hash, _) in hashes.iter() {
            map.prefetch(*hash);
        }
        for (hash, offset) in hashes.drain(..) {
            if map.is_full() {
                return Ok(false);
            }
            let before = map.put_hashed(hash, offset)?;
            if let (Some(before), Some(replaced)) = (before, &mut *replaced) {
                replaced.add(before);
            }
            *latest_offset = offset;
        }
        Ok(true)
    }

    /// Goes on after a batch. Records below `start` have no effect.
    fn advance_past(&mut self, header: &BatchHeader, start: i64) {
        if header.last_offset >= start {
            self.latest_offset = header.last_offset;
        }
    }

    /// Whether no later record has the key of a record, unless that is above the last offset of the pass.
    pub(super) fn is_latest(&self, key: &[u8], offset: i64) -> bool {
        if let Some(is_replaced) = self.replaced.as_ref().and_then(|replaced| replaced.contains(offset)) {
            return !is_replaced;
        }
        self.map.get(key).is_none_or(|latest| offset >= latest)
    }

    /// Whether an offset is above the last one of the pass: nothing is known of later records.
    pub(super) fn is_above(&self, offset: i64) -> bool {
        offset > self.latest_offset
    }

    /// Whether a later record is known for every record of a batch. False also if that would have to be
    /// looked up.
    pub(super) fn has_replaced(&self, header: &BatchHeader) -> bool {
        let (first, last) = (header.base_offset, header.last_offset);
        let replaced = self.replaced.as_ref().and_then(|replaced| replaced.count(first, last));
        header.magic == 2 && replaced.is_some() && replaced == header.count
    }
}

impl Reading<'_> {
    /// Adds the keys of a batch, now or in the next round.
    ///
    /// *Source*: `Cleaner.buildOffsetMapForSegment`.
    fn add(&mut self, batches: &mut SegmentBatches<'_>, place: &Place) -> Result<()> {
        let header = &place.batch.header;
        let has_keys = self.has_keys(header, batches.bytes(place)?);
        let has_keys = match has_keys {
            Ok(has_keys) => has_keys,
            Err(unusable) => {
                // errors of earlier batches come first; once the map is full, later batches are not looked at
                self.run(batches)?;
                return if self.is_full { Ok(()) } else { Err(batches.error(place, unusable)) };
            }
        };
        if let Some(rounds) = self.rounds.as_mut().filter(|_| rounds::accepts(header)) {
            let is_ready = rounds.add(*place, batches.bytes(place)?, has_keys);
            return if is_ready { self.run(batches) } else { Ok(()) };
        }
        self.run(batches)?;
        if self.is_full {
            return Ok(());
        }
        let added = if has_keys { self.add_keys(header, batches.bytes(place)?) } else { Ok(()) };
        added.map_err(|unusable| batches.error(place, unusable))?;
        if !self.is_full {
            self.keys.advance_past(header, self.start);
        }
        Ok(())
    }

    /// Whether the keys of a batch count. Follows the transactions.
    fn has_keys(&mut self, header: &BatchHeader, bytes: &[u8]) -> std::result::Result<bool, Unusable> {
        if header.is_control() {
            self.transactions.add_marker(header, ControlType::of_batch(*header, bytes, &mut self.buffer)?);
            return Ok(false);
        }
        let is_aborted = self.transactions.add_batch(header);
        if is_aborted {
            self.keys.replaced = None;
        }
        Ok(!is_aborted)
    }

    /// Adds the keys of a batch.
    fn add_keys(&mut self, header: &BatchHeader, bytes: &[u8]) -> std::result::Result<(), Unusable> {
        let Self { keys, start, buffer, pending, max_batch_bytes, .. } = self;
        let (mut records, payload) = Records::open_up_to(*max_batch_bytes, *header, bytes, buffer)?;
        records.keep_out_of_place();
        while let Some((key, offset)) = next_key(&mut records, payload.of(bytes, buffer), *start)? {
            pending.push((keys.map.hash(key), offset));
            if pending.len() == AHEAD && !keys.put(pending)? {
                self.is_full = true;
                return Ok(());
            }
        }
        self.is_full = !keys.put(pending)?;
        if records.out_of_place().is_some() {
            keys.replaced = None;
        }
        Ok(())
    }

    /// Adds the keys of the batches that wait for it.
    fn run(&mut self, batches: &mut SegmentBatches<'_>) -> Result<()> {
        let Self { keys, start, pending, is_full, rounds: Some(rounds), max_batch_bytes, .. } = self else {
            return Ok(());
        };
        let (start, max_batch_bytes) = (*start, *max_batch_bytes);
        let map = &keys.map;
        rounds.work(|place, has_keys, bytes, (buffer, hashes)| {
            let mut has_out_of_place = false;
            if *has_keys {
                let header = place.batch.header;
                let (mut records, payload) = Records::open_up_to(max_batch_bytes, header, bytes, buffer)?;
                records.keep_out_of_place();
                while let Some((key, offset)) = next_key(&mut records, payload.of(bytes, buffer), start)? {
                    hashes.push((map.hash(key), offset));
                }
                has_out_of_place = records.out_of_place().is_some();
            }
            Ok(has_out_of_place)
        });
        let finished = rounds.finish(|place, result, hashes| {
            if *is_full {
                return Ok(());
            }
            // of a batch with a broken record, the keys for which one thread would have looked for room
            // before it
            let whole = hashes.len() / AHEAD * AHEAD;
            let hashes = if result.is_ok() { hashes } else { hashes.get(..whole).unwrap_or_default() };
            for hashes in hashes.chunks(AHEAD) {
                pending.extend_from_slice(hashes);
                if !keys.put(pending)? {
                    *is_full = true;
                    return Ok(());
                }
            }
            if result? {
                keys.replaced = None;
            }
            keys.advance_past(&place.batch.header, start);
            Ok(())
        });
        finished.map_err(|refused| batches.error(&refused.0, refused.1))
    }
}

/// The next key at or above `start`, with its offset.
fn next_key<'a>(
    records: &mut Records,
    payload: &'a [u8],
    start: i64,
) -> std::result::Result<Option<(&'a [u8], i64)>, Malformed> {
    while let Some(record) = records.next(payload)? {
        if let Some(key) = record.key.filter(|_| record.offset >= start) {
            return Ok(Some((key, record.offset)));
        }
    }
    Ok(None)
}
