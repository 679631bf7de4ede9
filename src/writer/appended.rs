//! The result of an append.

/// The result of an append. Kafka: `LogAppendInfo`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Appended {
    /// The offset of the first record.
    pub first_offset: i64,
    /// The offset of the last record, inclusive; below `first_offset` if there was no record to append.
    pub last_offset: i64,
    /// The largest timestamp as it was stored, ms; −1 if no record has one.
    pub max_timestamp: i64,
    /// Whether the records survive a power loss.
    pub durable: bool,
}

impl Appended {
    /// The result of this append and a later one together.
    pub(crate) fn followed_by(self, later: Self) -> Self {
        let is_empty = self.last_offset < self.first_offset;
        let first_offset = if is_empty { later.first_offset } else { self.first_offset };
        Self { first_offset, max_timestamp: self.max_timestamp.max(later.max_timestamp), ..later }
    }
}
