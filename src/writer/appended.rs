//! The result of an append.

use crate::state::producers::SequenceRange;

/// The result of an append. Kafka: `LogAppendInfo`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "binding", derive(serde::Deserialize, serde::Serialize))]
pub struct Appended {
    /// The offset of the first record.
    pub first_offset: i64,
    /// The offset of the last record, inclusive; below `first_offset` if there was no record to append.
    pub last_offset: i64,
    /// The largest timestamp as it was stored, ms; −1 if no record has one.
    pub max_timestamp: i64,
    /// Whether the records survive a power loss.
    pub durable: bool,
    /// Whether they were in the log already, written by an earlier call of the same producer: nothing was
    /// appended.
    pub is_duplicate: bool,
}

impl Appended {
    /// The result of an append of nothing, at the log end offset.
    pub(crate) fn nothing(log_end_offset: i64) -> Self {
        Self {
            first_offset: log_end_offset,
            last_offset: log_end_offset - 1,
            max_timestamp: -1,
            durable: true,
            is_duplicate: false,
        }
    }

    /// The result of an append of a batch that is in the log.
    pub(crate) fn duplicate(old: &SequenceRange) -> Self {
        Self {
            first_offset: old.first_offset(),
            last_offset: old.last_offset,
            max_timestamp: old.timestamp,
            durable: false,
            is_duplicate: true,
        }
    }

    /// Whether there was no record to append.
    pub(crate) fn is_empty(&self) -> bool {
        self.last_offset < self.first_offset
    }

    /// The result of this append and a later one together.
    pub(crate) fn followed_by(self, later: Self) -> Self {
        let first_offset = if self.is_empty() { later.first_offset } else { self.first_offset };
        Self { first_offset, max_timestamp: self.max_timestamp.max(later.max_timestamp), ..later }
    }
}
