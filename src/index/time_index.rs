//! `.timeindex`: from a timestamp to an offset below which no record has a later one.

use super::entry::{Entry, TIME_ENTRY_BYTES};
use super::keyed_index::Index;
use super::offset_index::absolute;
use super::relative;
use super::slots::field;
use crate::error::{Malformed, Result};
use crate::fs::names::FileKind;
use crate::types::TimestampOffset;

/// A time index (`.timeindex`), as it was when it was opened. The module [`index`](crate::index) defines what
/// entries mean. The timestamp of its last entry is the largest of the segment at the time when Kafka last
/// wrote an entry.
///
/// *Concurrency*: `Send + Sync`; readers share it without a lock.
/// *Source*: `TimeIndex`.
pub type TimeIndex = Index<TimestampOffset, TIME_ENTRY_BYTES>;

impl Entry<TIME_ENTRY_BYTES> for TimestampOffset {
    const KIND: FileKind = FileKind::TimeIndex;
    const KEY_BYTES: u64 = 8;
    const RESERVED_SLOTS: u64 = 1;

    fn before_first(base_offset: i64) -> Self {
        Self { timestamp: -1, offset: base_offset }
    }

    fn key_before_first(_base_offset: i64) -> Option<i64> {
        None
    }

    fn key(&self) -> i64 {
        self.timestamp
    }

    fn decode(slot: &[u8; 12], base_offset: i64) -> Self {
        Self { timestamp: i64::from_be_bytes(field(slot, 0)), offset: absolute(field(slot, 8), base_offset) }
    }

    fn encode(&self, base_offset: i64) -> Result<[u8; 12]> {
        let mut slot = [0; 12];
        let (key, value) = slot.split_at_mut(8);
        key.copy_from_slice(&self.timestamp.to_be_bytes());
        value.copy_from_slice(&relative(self.offset, base_offset)?.to_be_bytes());
        Ok(slot)
    }

    fn absolute_key(stored: i64, _base_offset: i64) -> i64 {
        stored
    }

    fn offset(&self) -> i64 {
        self.offset
    }

    fn check_last(&self, first: &Self) -> Result<(), Malformed> {
        if self.timestamp >= first.timestamp {
            return Ok(());
        }
        let expected = format!("a last timestamp at or above the first, {}", first.timestamp);
        Err(Malformed::new(expected, format!("timestamp {}", self.timestamp)))
    }
}
