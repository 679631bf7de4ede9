//! The columns of a scan.

use super::{Log, Scan};
use crate::config::suggestion;
use crate::error::{Error, Result};
use crate::segment::Batch;

/// A column of a scan. [`arrow`](crate::arrow) and [`text`](crate::text) describe how its values are
/// returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Column {
    /// The topic.
    Topic,
    /// The partition.
    Partition,
    /// The offset.
    Offset,
    /// Milliseconds since the epoch.
    Timestamp,
    /// −1 none, 0 `CreateTime`, 1 `LogAppendTime`.
    TimestampType,
    /// The key: bytes, or null.
    Key,
    /// The value: bytes, or null.
    Value,
    /// The headers: names and values.
    Headers,
    /// The leader epoch of the batch; −1 = none.
    LeaderEpoch,
    /// The producer id of the batch; −1 = none.
    ProducerId,
    /// The producer epoch of the batch; −1 = none.
    ProducerEpoch,
    /// The sequence number; −1 = none.
    Sequence,
    /// Whether the batch belongs to a transaction.
    IsTransactional,
    /// Whether the record is a control record, such as a transaction marker.
    IsControl,
    /// The name of the batch's codec.
    Codec,
    /// The format of the batch: 0, 1 or 2.
    Magic,
    /// The base offset of the batch.
    BatchBaseOffset,
    /// The position of the batch, in bytes from the start of the `.log`.
    Position,
    /// The base offset of the segment.
    Segment,
    /// The size of the key in bytes; −1 if it is null.
    KeySize,
    /// The size of the value in bytes; −1 if it is null.
    ValueSize,
}

impl Column {
    /// The default columns of a scan of one log.
    pub const DEFAULT: [Self; 6] =
        [Self::Offset, Self::Timestamp, Self::TimestampType, Self::Key, Self::Value, Self::Headers];

    /// The default columns of a scan of several logs: topic and partition come first.
    pub const WITH_ORIGIN: [Self; 8] = [
        Self::Topic,
        Self::Partition,
        Self::Offset,
        Self::Timestamp,
        Self::TimestampType,
        Self::Key,
        Self::Value,
        Self::Headers,
    ];

    const NAMES: [(&'static str, Self); 21] = [
        ("topic", Self::Topic),
        ("partition", Self::Partition),
        ("offset", Self::Offset),
        ("timestamp", Self::Timestamp),
        ("timestamp_type", Self::TimestampType),
        ("key", Self::Key),
        ("value", Self::Value),
        ("headers", Self::Headers),
        ("leader_epoch", Self::LeaderEpoch),
        ("producer_id", Self::ProducerId),
        ("producer_epoch", Self::ProducerEpoch),
        ("sequence", Self::Sequence),
        ("is_transactional", Self::IsTransactional),
        ("is_control", Self::IsControl),
        ("codec", Self::Codec),
        ("magic", Self::Magic),
        ("batch_base_offset", Self::BatchBaseOffset),
        ("position", Self::Position),
        ("segment_base_offset", Self::Segment),
        ("key_size", Self::KeySize),
        ("value_size", Self::ValueSize),
    ];

    /// The column with this name.
    ///
    /// # Errors
    /// [`Error::Config`], which suggests a similar name if there is one.
    pub fn parse(name: &str) -> Result<Self> {
        if let Some((_, column)) = Self::NAMES.iter().find(|(known, _)| *known == name) {
            return Ok(*column);
        }
        let names = || Self::NAMES.iter().map(|(known, _)| *known);
        let hint = suggestion(name, names());
        let all = names().collect::<Vec<_>>().join(", ");
        Err(Error::config("columns", format!("one of {all}{hint}"), format!("{name:?}")))
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, column)| *column == self).map_or("", |(name, _)| name)
    }
}

/// The values that all records of a batch share.
#[derive(Debug)]
pub(crate) struct Origin<'a> {
    pub(crate) topic: Option<&'a str>,
    pub(crate) partition: Option<i32>,
    /// The base offset of the segment.
    pub(crate) segment: i64,
    pub(crate) batch: &'a Batch,
}

impl<'a> Origin<'a> {
    /// Of the current batch of a scan of `log`.
    pub(crate) fn new(log: &'a Log, scan: &Scan, batch: &'a Batch) -> Self {
        Self { topic: log.topic(), partition: log.partition(), segment: scan.segment().unwrap_or(-1), batch }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_column_gets_a_suggestion_only_if_one_is_similar() {
        assert_eq!(Column::parse("key").unwrap(), Column::Key);
        let error = |name| Column::parse(name).unwrap_err().to_string();
        assert!(error("timestmap").contains("did you mean \"timestamp\""), "{}", error("timestmap"));
        assert!(error("OFFSET").contains("did you mean \"offset\""), "{}", error("OFFSET"));
        assert!(!error("nope").contains("did you mean"), "{}", error("nope"));
    }
}
