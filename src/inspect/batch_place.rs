//! Where Kafka's file reader finds a batch, by its length and magic alone.
//!
//! The readers of [`crate::segment`] reject a batch whose header breaks a rule. What shows or foretells what
//! Kafka does must find such a batch too, and must end exactly where Kafka does.

use crate::record::{LOG_OVERHEAD, PREFIX, i32_at, i64_at};

/// The smallest length that Kafka accepts: that of a message of magic 0. Source:
/// `LegacyRecord.RECORD_OVERHEAD_V0`.
pub(super) const MIN_LENGTH: i32 = 14;

/// Where a batch is, and the fields that are read to find it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BatchPlace {
    /// Bytes from the start of the file.
    pub(super) position: u64,
    /// The size of the whole batch, bytes.
    pub(super) size: u32,
    /// The first field: the base offset of a batch of magic 2, the last offset of an older one.
    pub(super) offset: i64,
    /// Any value: one below 0 is an old format to Kafka, one above 2 the newest.
    pub(super) magic: i8,
}

/// A length below [`MIN_LENGTH`], which is an error to Kafka.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TooShort(pub(super) i32);

impl BatchPlace {
    /// Whether Kafka reads the prefix of a batch at a position, with these bytes to read in the file. It
    /// compares with ≥, so that a batch of which exactly the prefix is left is not found.
    pub(super) fn may_be_at(position: u64, end: u64) -> bool {
        position.saturating_add(PREFIX as u64) < end
    }

    /// The batch of a prefix; `None` where Kafka ends without an error: a batch that is not whole before
    /// `end`.
    ///
    /// *Source*: `FileLogInputStream.nextBatch`.
    pub(super) fn read(
        prefix: &[u8],
        position: u64,
        end: u64,
    ) -> std::result::Result<Option<Self>, TooShort> {
        let fields = i64_at(prefix, 0).zip(i32_at(prefix, 8)).zip(prefix.get(PREFIX - 1));
        let Some(((offset, length), magic)) = fields.filter(|_| Self::may_be_at(position, end)) else {
            return Ok(None);
        };
        if length < MIN_LENGTH {
            return Err(TooShort(length));
        }
        let overhead = u32::try_from(LOG_OVERHEAD).unwrap_or(u32::MAX);
        let place = Self {
            position,
            size: length.unsigned_abs().saturating_add(overhead),
            offset,
            magic: magic.cast_signed(),
        };
        Ok((place.end() <= end).then_some(place))
    }

    /// The position after its last byte.
    pub(super) fn end(&self) -> u64 {
        self.position.saturating_add(u64::from(self.size))
    }
}
