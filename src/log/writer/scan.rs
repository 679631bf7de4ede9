//! A segment read from its first byte to its last: what recovery learns of it, and builds its indexes from.

use crate::error::{Malformed, Result};
use crate::record::BatchHeader;
use crate::segment::{Batch, Before, Bounds, Damage, Held, SCAN_READ, Segment, Step, Walk};
use crate::types::{Interrupt, TimestampOffset};

/// What was found in a segment.
#[derive(Debug)]
pub(super) struct Scanned {
    pub(super) held: Held,
    /// The offset after the last batch; the base offset without one.
    pub(super) end_offset: i64,
    /// The highest leader epoch so far.
    pub(super) leader_epoch: i32,
    /// Where each leader epoch of its batches begins, in their order.
    pub(super) epochs: Vec<(i32, i64)>,
    /// What ends the data before the file does, and whether nothing valid follows it.
    pub(super) cut: Option<(Damage, bool)>,
    pub(super) indexes: IndexBytes,
}

/// The contents of both indexes. Kafka: what `LogSegment.recover` writes.
#[derive(Debug, Default)]
pub(super) struct IndexBytes {
    pub(super) offset_index: Vec<u8>,
    pub(super) time_index: Vec<u8>,
}

/// Which entries the indexes of a segment get.
#[derive(Debug)]
struct Indexer {
    base_offset: i64,
    interval: u64,
    max_index_size: u64,
    last_indexed: u64,
    largest: TimestampOffset,
    last_time_entry: i64,
    bytes: IndexBytes,
}

impl Indexer {
    fn new(base_offset: i64, interval: u64, max_index_size: u64) -> Self {
        let largest = TimestampOffset { timestamp: -1, offset: base_offset };
        let bytes = IndexBytes::default();
        Self { base_offset, interval, max_index_size, last_indexed: 0, largest, last_time_entry: -1, bytes }
    }

    fn note(&mut self, header: &BatchHeader, position: u64) {
        if header.max_timestamp > self.largest.timestamp {
            self.largest = TimestampOffset { timestamp: header.max_timestamp, offset: header.last_offset };
        }
        if position - self.last_indexed > self.interval {
            let has_room = self.bytes.offset_index.len() as u64 + 8 <= self.max_index_size;
            if let (true, Ok(position)) = (has_room, i32::try_from(position)) {
                self.bytes.offset_index.extend(self.relative(header.last_offset));
                self.bytes.offset_index.extend(position.to_be_bytes());
            }
            self.note_time(24);
            self.last_indexed = position;
        }
    }

    /// An entry where the largest timestamp has grown and `room` bytes are left: one more than it needs, but for the
    /// closing one.
    fn note_time(&mut self, room: u64) {
        let has_room = self.bytes.time_index.len() as u64 + room <= self.max_index_size;
        if has_room && self.largest.timestamp > self.last_time_entry {
            self.last_time_entry = self.largest.timestamp;
            self.bytes.time_index.extend(self.largest.timestamp.to_be_bytes());
            self.bytes.time_index.extend(self.relative(self.largest.offset));
        }
    }

    fn relative(&self, offset: i64) -> [u8; 4] {
        // the walk refuses batches that lie further from the base
        i32::try_from(offset - self.base_offset).unwrap_or(i32::MAX).to_be_bytes()
    }
}

/// Reads a segment that follows one which ended with `leader_epoch`, and checks every batch.
///
/// *Source*: `LogSegment.recover`.
pub(super) fn scan(
    segment: &Segment,
    leader_epoch: i32,
    interval: u64,
    max_index_size: u64,
    interrupt: Interrupt,
) -> Result<Scanned> {
    let base_offset = segment.base_offset();
    let size = segment.size()?;
    let bounds = Bounds { base_offset, upper: segment.upper(), end: size };
    let before = Before { last_offset: base_offset - 1, leader_epoch };
    let mut walk = Walk::new(segment.log_file(SCAN_READ)?, bounds, 0, Some(before));
    let mut indexer = Indexer::new(base_offset, interval, max_index_size);
    let mut first_batch_timestamp = None;
    let mut epochs: Vec<(i32, i64)> = Vec::new();
    let mut end = 0;
    let cut = loop {
        interrupt.check()?;
        let before = walk.before;
        let damage = match walk.step_through()? {
            Step::End => break None,
            Step::Damage(damage) => damage,
            Step::Batch(batch) => match walk.verify(&batch)? {
                Ok(()) => {
                    let header = &batch.header;
                    refuse_producer(segment, &batch)?;
                    first_batch_timestamp.get_or_insert(header.max_timestamp);
                    if header.leader_epoch >= 0
                        && epochs.last().is_none_or(|(last, _)| *last != header.leader_epoch)
                    {
                        epochs.push((header.leader_epoch, header.base_offset));
                    }
                    indexer.note(header, batch.position);
                    end = batch.end();
                    continue;
                }
                Err(malformed) => walk.reject(&batch, before, malformed),
            },
        };
        let index = segment.or_warn(segment.offset_index());
        let is_end = walk.resume(&damage, index.as_deref())?.end_offset.is_none();
        break Some((damage, is_end));
    };
    indexer.note_time(12);
    let before = cut.is_none().then_some(walk.before).flatten();
    Ok(Scanned {
        held: Held { size: end, first_batch_timestamp, largest: indexer.largest },
        end_offset: cut.as_ref().map_or_else(|| walk.expected_offset(), |(damage, _)| damage.offset),
        leader_epoch: before.map_or(leader_epoch, |before| before.leader_epoch),
        epochs,
        cut,
        indexes: indexer.bytes,
    })
}

/// Refuses a batch with a producer id: what its producer may append next is not known here.
pub(super) fn refuse_producer(segment: &Segment, batch: &Batch) -> Result<()> {
    if batch.header.producer_id < 0 {
        return Ok(());
    }
    let expected = "batches without producer ids: producer state is not kept yet, so that such a log can be read but not \
                    written";
    let malformed = Malformed::unsupported(expected, format!("producer id {}", batch.header.producer_id));
    Err(malformed.at(segment.path(), batch.position, Some(batch.header.base_offset)))
}

/// What a segment holds that was closed in order, from its indexes and the headers behind their last entries.
///
/// *Source*: `LogSegment.truncateTo`, its last step; `LogSegment.maxTimestampSoFar`.
pub(super) fn held(segment: &Segment) -> Result<Held> {
    let base_offset = segment.base_offset();
    let bounds = segment.bounds()?;
    let start = Before { last_offset: base_offset - 1, leader_epoch: -1 };
    let mut walk = Walk::new(segment.log_file(SCAN_READ)?, bounds, 0, Some(start));
    let first_batch_timestamp = walk.header_at(0)?.ok().map(|header| header.max_timestamp);
    let mut largest = TimestampOffset { timestamp: -1, offset: base_offset };
    if let (Some(times), Some(offsets)) = (segment.time_index()?, segment.offset_index()?)
        && times.entries() > 0
    {
        largest = times.last_entry();
        let position = offsets.lookup(largest.offset, crate::index::Method::Warm)?.position;
        walk.position = u64::try_from(position).unwrap_or(0);
        walk.before = (position == 0).then_some(start);
    }
    while let Step::Batch(batch) = walk.step()? {
        if batch.header.max_timestamp > largest.timestamp {
            largest =
                TimestampOffset { timestamp: batch.header.max_timestamp, offset: batch.header.last_offset };
        }
    }
    Ok(Held { size: bounds.end, first_batch_timestamp, largest })
}
