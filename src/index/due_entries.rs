//! When an entry of the offset index and the time index is due. Kafka: `LogSegment.append`, `recover`.
//!
//! An entry is due for a batch when more than `index.interval.bytes` lie between the start of the last batch
//! with an entry (or of the segment) and the start of this one. The offset index gets the last offset and the
//! position of the batch, the time index the largest timestamp up to and including the batch, if it has grown
//! since the last entry.
//!
//! Appends and recovery both use this module, so that a rebuilt index has the bytes of the one that an append
//! wrote.

use crate::record::BatchHeader;
use crate::types::TimestampOffset;

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
    /// For the batches after a position. `largest`: the largest timestamp before it, and the last offset of
    /// the first batch with that timestamp.
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
    use crate::types::TimestampType;

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
    }
}
