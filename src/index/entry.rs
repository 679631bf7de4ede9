//! An entry of the offset index or the time index: its bytes, and whether an index has a slot for another
//! one. Kafka: `AbstractIndex.isFull`, `TimeIndex.isFull`.

use std::fmt;

use crate::error::{Malformed, Result};
use crate::fs::names::FileKind;

/// Bytes of an entry of an offset index.
pub(crate) const OFFSET_ENTRY_BYTES: usize = 8;
/// Bytes of an entry of a time index.
pub(crate) const TIME_ENTRY_BYTES: usize = 12;

/// An entry of an [`Index`](super::Index): `SIZE` bytes, sorted by a key that is their first part. Offsets
/// are relative to the segment's base offset in the file, and absolute in the entry.
pub trait Entry<const SIZE: usize>: Copy + fmt::Debug {
    /// The kind of the files that have such entries.
    const KIND: FileKind;
    /// Bytes of the key: 4 (an `i32`) or 8 (an `i64`), big-endian.
    const KEY_BYTES: u64;
    /// The number of slots reserved while a segment is appended to.
    const RESERVED_SLOTS: u64;

    /// The result of a search that finds no entry.
    fn before_first(base_offset: i64) -> Self;

    /// A key that an entry before the first would have, as far as the base offset tells: the start of a
    /// search by interpolation. It is only a guess.
    fn key_before_first(base_offset: i64) -> Option<i64>;

    /// The absolute key of the entry.
    fn key(&self) -> i64;

    /// Decodes the bytes of a slot.
    fn decode(slot: &[u8; SIZE], base_offset: i64) -> Self;

    /// The bytes of the slot.
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) if the offset is not 0 to 2^31 - 1 above the base offset.
    fn encode(&self, base_offset: i64) -> Result<[u8; SIZE]>;

    /// The absolute key of a stored key. Targets are compared with absolute keys, so they need not be
    /// narrowed to 32 bits.
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

    /// Whether an index has a slot for another entry. `is_closing`: for the entry that closes a segment,
    /// which may use a reserved slot. Kafka: `AbstractIndex.isFull`, `TimeIndex.isFull`.
    fn has_slot(entries: u64, max_entries: u64, is_closing: bool) -> bool {
        let reserved = if is_closing { 0 } else { Self::RESERVED_SLOTS };
        entries.saturating_add(reserved) < max_entries
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::types::{OffsetPosition, TimestampOffset};

    proptest! {
        #[test]
        fn a_file_has_slots_for_whole_entries_only(entries in 0_u64..40, bytes in 0_u64..400) {
            let fits = |count: u64, size: u64| count * size <= bytes;
            prop_assert_eq!(OffsetPosition::has_slot(entries, OffsetPosition::max_entries(bytes), false), fits(entries + 1, 8));
            prop_assert_eq!(TimestampOffset::has_slot(entries, TimestampOffset::max_entries(bytes), true), fits(entries + 1, 12));
            prop_assert_eq!(TimestampOffset::has_slot(entries, TimestampOffset::max_entries(bytes), false), fits(entries + 2, 12));
        }
    }
}
