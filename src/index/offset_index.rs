//! `.index`: from an offset to the position of a batch at or before it.

use super::entry::{Entry, OFFSET_ENTRY_BYTES};
use super::keyed_index::Index;
use super::relative;
use super::search::{Method, upper_bound};
use super::slots::field;
use crate::error::Result;
use crate::fs::names::FileKind;
use crate::types::OffsetPosition;

/// An offset index (`.index`), as it was when it was opened. The module [`index`](crate::index) defines what
/// entries mean.
///
/// *Concurrency*: `Send + Sync`; readers share it without a lock.
/// *Source*: `OffsetIndex`.
pub type OffsetIndex = Index<OffsetPosition, OFFSET_ENTRY_BYTES>;

impl Entry<OFFSET_ENTRY_BYTES> for OffsetPosition {
    const KIND: FileKind = FileKind::OffsetIndex;
    const KEY_BYTES: u64 = 4;
    const RESERVED_SLOTS: u64 = 0;

    fn before_first(base_offset: i64) -> Self {
        Self { offset: base_offset, position: 0 }
    }

    fn key_before_first(base_offset: i64) -> Option<i64> {
        Some(base_offset)
    }

    fn key(&self) -> i64 {
        self.offset
    }

    fn decode(slot: &[u8; 8], base_offset: i64) -> Self {
        Self { offset: absolute(field(slot, 0), base_offset), position: i32::from_be_bytes(field(slot, 4)) }
    }

    fn encode(&self, base_offset: i64) -> Result<[u8; 8]> {
        let mut slot = [0; 8];
        let (key, value) = slot.split_at_mut(4);
        key.copy_from_slice(&relative(self.offset, base_offset)?.to_be_bytes());
        value.copy_from_slice(&self.position.to_be_bytes());
        Ok(slot)
    }

    fn absolute_key(stored: i64, base_offset: i64) -> i64 {
        base_offset.wrapping_add(stored)
    }

    fn offset(&self) -> i64 {
        self.offset
    }
}

impl OffsetIndex {
    /// The first entry whose position is at or above `position + fetch_size`: everything that a fetch of
    /// `fetch_size` bytes from `position` returns is below the entry's offset. `None` if there is no such
    /// entry.
    ///
    /// As in Kafka, the sum wraps at 32 bits, and if it is exactly the position of slot 0, the result is slot
    /// 1, which is also an upper bound, but a higher one.
    ///
    /// *Source*: `OffsetIndex.fetchUpperBoundOffset`.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io), [`Error::LogChanged`](crate::Error::LogChanged).
    pub fn fetch_upper_bound(&self, position: i32, fetch_size: i32) -> Result<Option<OffsetPosition>> {
        let target = i64::from(position.wrapping_add(fetch_size));
        let position_of = |slot| Ok(i64::from(self.decoded(slot)?.position));
        let lower = self.search(Method::Warm).lower_bound(target, position_of)?;
        let slot = upper_bound(self.entries(), lower, target, position_of)?;
        slot.map(|slot| self.entry(slot)).transpose()
    }
}

/// Wraps, as in Java: only a damaged entry overflows.
pub(super) fn absolute(relative: [u8; 4], base_offset: i64) -> i64 {
    base_offset.wrapping_add(i64::from(i32::from_be_bytes(relative)))
}
