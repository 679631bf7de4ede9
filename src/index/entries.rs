//! Entries of the offset index and the time index: when one is due, and whether there is room for it. Kafka: `LogSegment.append`, `recover`.
//!
//! An entry is due for a batch when more than `index.interval.bytes` lie between the start of the last batch with an entry (or
//! of the segment) and the start of this one. The offset index gets the last offset and the position of the batch, the time index
//! the largest timestamp up to and including the batch, if it has grown since the last entry.
//!
//! Appends and recovery both use this module, so that a rebuilt index has the bytes of the one that an append wrote.

use std::fmt;

use crate::error::{Malformed, Result};
use crate::record::BatchHeader;
use crate::types::TimestampOffset;

/// An entry of an [`Index`](super::Index): `SIZE` bytes, sorted by a key that is their first part. Offsets are relative to the segment's
/// base offset in the file, and absolute in the entry.
pub trait Entry<const SIZE: usize>: Copy + fmt::Debug {
    /// Bytes of the key: 4 (an `i32`) or 8 (an `i64`), big-endian.
    const KEY_BYTES: u64;
    /// The number of slots reserved while a segment is appended to.
    const RESERVED_SLOTS: u64;

    /// The result of a search that finds no entry.
    fn before_first(base_offset: i64) -> Self;

    /// Decodes the bytes of a slot.
    fn decode(slot: &[u8; SIZE], base_offset: i64) -> Self;

    /// The bytes of the slot.
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) if the offset is not 0 to 2^31 - 1 above the base offset.
    fn encode(&self, base_offset: i64) -> Result<[u8; SIZE]>;

    /// The absolute key of a stored key. Targets are compared with absolute keys, so they need not be narrowed to 32 bits.
    fn absolute_key(stored: i64, base_offset: i64) -> i64;

    /// The absolute offset.
    fn offset(&self) -> i64;

    /// Compares the key of the last entry with that of the first, for indexes in which Kafka does.
    ///
    /// # Errors
    /// The value that the format requires, and the one found.
    fn check_last(&self, _first: &Self) -> Result<(), Malformed> {
        Ok(())
    }

    /// The number of entries of a file of this size.
    fn max_entries(bytes: u64) -> u64 {
        bytes / SIZE as u64
    }

    /// Whether an index has a slot for another entry. `is_closing`: for the entry that closes a segment, which may use a
    /// reserved slot. Kafka: `AbstractIndex.isFull`, `TimeIndex.isFull`.
    fn has_slot(entries: u64, max_entries: u64, is_closing: bool) -> bool {
        let reserved = if is_closing { 0 } else { Self::RESERVED_SLOTS };
        entries.saturating_add(reserved) < max_entries
    }
}

/// How the indexes of a segment are filled.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EntryRule {
    /// `index.interval.bytes`.
    pub(crate) interval_bytes: u64,
    /// `segment.index.bytes`: the largest size of each index.
    pub(crate) max_index_size: u64,
}

/// Decides for each batch of a segment whether an entry is due.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DueEntries {
    interval_bytes: u64,
    /// Bytes between the start of the last batch with an entry and the start of the next batch.
    bytes_since_entry: u64,
    largest: TimestampOffset,
}

impl DueEntries {
    /// For the batches after a position. `largest`: the largest timestamp before it, and the last offset of the first batch
    /// with that timestamp.
    pub(crate) fn new(interval_bytes: u64, largest: TimestampOffset) -> Self {
        Self { interval_bytes, bytes_since_entry: 0, largest }
    }

    /// The largest timestamp so far, and the last offset of the first batch with that timestamp.
    pub(crate) fn largest(&self) -> TimestampOffset {
        self.largest
    }

    /// Adds the next batch; true if an entry is due for it.
    pub(crate) fn is_due_for(&mut self, header: &BatchHeader) -> bool {
        if header.max_timestamp > self.largest.timestamp {
            self.largest = TimestampOffset { timestamp: header.max_timestamp, offset: header.last_offset };
        }
        let is_due = self.bytes_since_entry > self.interval_bytes;
        if is_due {
            self.bytes_since_entry = 0;
        }
        self.bytes_since_entry += u64::from(header.size);
        is_due
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::record::{BatchBuilder, BatchOptions, Codec, NewRecord};
    use crate::types::{OffsetPosition, TimestampType};

    /// The header of a batch with one record.
    fn header(offset: i64, timestamp: i64, value: usize) -> BatchHeader {
        let mut builder = BatchBuilder::new();
        let value = vec![b'x'; value];
        builder.append(&NewRecord { timestamp, value: Some(&value), ..NewRecord::default() }).unwrap();
        let options = BatchOptions {
            base_offset: offset,
            leader_epoch: 0,
            codec: Codec::None,
            level: None,
            timestamp_type: TimestampType::CreateTime,
            log_append_time: -1,
        };
        let mut bytes = Vec::new();
        builder.finish(&options, &mut bytes).unwrap();
        BatchHeader::parse(&bytes, bytes.len() as u64).unwrap()
    }

    proptest! {
        #[test]
        fn an_entry_is_due_at_the_positions_that_a_naive_count_finds(
            batches in prop::collection::vec((0_usize..400, -1_i64..50), 1..60),
            interval in 0_u64..900,
        ) {
            let headers: Vec<_> =
                (0..).zip(&batches).map(|(offset, (size, time))| header(offset, *time, *size)).collect();
            let mut due = DueEntries::new(interval, TimestampOffset { timestamp: -1, offset: 0 });
            let found: Vec<_> = headers.iter().map(|header| (due.is_due_for(header), due.largest())).collect();
            // the naive twin: absolute positions, and a search of all earlier batches
            let positions: Vec<u64> = (0..headers.len())
                .map(|count| headers[..count].iter().map(|header| u64::from(header.size)).sum())
                .collect();
            let mut last_indexed = 0;
            for (number, position) in positions.iter().enumerate() {
                let is_due = position - last_indexed > interval;
                last_indexed = if is_due { *position } else { last_indexed };
                let seen = &headers[..=number];
                let largest = seen.iter().map(|header| header.max_timestamp).max().unwrap();
                let first = seen.iter().find(|header| header.max_timestamp == largest).unwrap();
                let offset = if largest < 0 { 0 } else { first.last_offset };
                prop_assert_eq!(found[number], (is_due, TimestampOffset { timestamp: largest, offset }));
            }
        }

        #[test]
        fn a_file_has_slots_for_whole_entries_only(entries in 0_u64..40, bytes in 0_u64..400) {
            let fits = |count: u64, size: u64| count * size <= bytes;
            prop_assert_eq!(OffsetPosition::has_slot(entries, OffsetPosition::max_entries(bytes), false), fits(entries + 1, 8));
            prop_assert_eq!(TimestampOffset::has_slot(entries, TimestampOffset::max_entries(bytes), true), fits(entries + 1, 12));
            prop_assert_eq!(TimestampOffset::has_slot(entries, TimestampOffset::max_entries(bytes), false), fits(entries + 2, 12));
        }
    }
}
