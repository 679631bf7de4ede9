//! Control records: the key and value in a control batch. Kafka: `ControlRecordType`, `EndTransactionMarker`.
//!
//! ```text
//! key    0 version i16 │ 2 type i16                  value (ABORT, COMMIT)    0 version i16 │ 2 coordinatorEpoch i32
//! ```

use super::{BatchBuilder, BatchHeader, NewRecord, RecordRef, Records, i16_at, i32_at, put};
use crate::error::Malformed;

/// The type of a control record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ControlType {
    /// Ends a transaction as aborted: committed readers skip its records.
    Abort,
    /// Ends a transaction as committed.
    Commit,
    /// A KRaft control record (leader change, snapshot header and footer, version, voters), or an unknown
    /// one.
    Other(i16),
}

impl ControlType {
    /// The type of the first record of a control batch; `None` if compaction has removed the record.
    /// `buffer`: for a compressed batch.
    ///
    /// # Errors
    /// [`Malformed`] if the record is, or its key; its value is not read.
    pub(crate) fn of_batch(
        header: BatchHeader,
        bytes: &[u8],
        buffer: &mut Vec<u8>,
    ) -> Result<Option<Self>, Malformed> {
        first_record(header, bytes, buffer)?.map(|record| Self::parse(record.key)).transpose()
    }

    /// The outcome that a control batch gives its transaction, [`ControlType::Abort`] or
    /// [`ControlType::Commit`]; `None` if it ends none, because it is of another type or compaction has
    /// removed its record. For readers of the records: the producers' states need the whole [`EndMarker`].
    ///
    /// # Errors
    /// As [`ControlType::of_batch`].
    pub(crate) fn outcome(
        header: BatchHeader,
        bytes: &[u8],
        buffer: &mut Vec<u8>,
    ) -> Result<Option<Self>, Malformed> {
        let found = Self::of_batch(header, bytes, buffer)?;
        Ok(found.filter(|found| !matches!(found, Self::Other(_))))
    }

    /// Reads a control record's key. A version newer than 0 is read as version 0, as Kafka does.
    ///
    /// # Errors
    /// [`Malformed`] for a key shorter than 4 bytes or a negative version.
    pub fn parse(key: Option<&[u8]>) -> Result<Self, Malformed> {
        let key = key.unwrap_or_default();
        let wrong =
            || Malformed::new("a control record's key (version, type)", format!("{} bytes", key.len()));
        let version = i16_at(key, 0).ok_or_else(wrong)?;
        let kind = i16_at(key, 2).ok_or_else(wrong)?;
        if version < 0 {
            return Err(Malformed::new("a control record's version from 0 up", format!("version {version}")));
        }
        Ok(match kind {
            0 => Self::Abort,
            1 => Self::Commit,
            kind => Self::Other(kind),
        })
    }
}

/// A marker that ends a transaction.
///
/// *Source*: `EndTransactionMarker`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EndMarker {
    /// ABORT or COMMIT.
    pub control_type: ControlType,
    /// The epoch of the transaction coordinator that wrote it.
    pub coordinator_epoch: i32,
    /// When it was written, ms since the epoch.
    pub timestamp: i64,
}

impl EndMarker {
    /// Reads the marker in a control batch of a producer; `None` if compaction has removed it. `buffer`: for
    /// a compressed batch.
    ///
    /// # Errors
    /// [`Malformed`] if the first record is not a marker.
    pub fn read(header: BatchHeader, bytes: &[u8], buffer: &mut Vec<u8>) -> Result<Option<Self>, Malformed> {
        let Some(record) = first_record(header, bytes, buffer)? else { return Ok(None) };
        let control_type = ControlType::parse(record.key)?;
        if let ControlType::Other(kind) = control_type {
            return Err(Malformed::new("a COMMIT or ABORT marker", format!("control record type {kind}")));
        }
        let value = record.value.unwrap_or_default();
        let fields = i16_at(value, 0).filter(|version| *version >= 0).zip(i32_at(value, 2));
        let (_, coordinator_epoch) = fields.ok_or_else(|| {
            let expected = "a marker's value (version from 0 up, coordinator epoch)";
            Malformed::new(expected, format!("{} bytes: {value:02x?}", value.len()))
        })?;
        Ok(Some(Self { control_type, coordinator_epoch, timestamp: record.timestamp }))
    }
}

impl EndMarker {
    /// Adds the marker to a batch, as its only record.
    ///
    /// # Errors
    /// Those of [`BatchBuilder::append`].
    ///
    /// *Source*: `EndTransactionMarker.serializeValue`, `ControlRecordType.recordKey`.
    pub fn append_to(&self, builder: &mut BatchBuilder) -> crate::error::Result<()> {
        let (mut key, mut value) = ([0; 4], [0; 6]);
        let id = match self.control_type {
            ControlType::Abort => 0,
            ControlType::Commit => 1,
            ControlType::Other(id) => id,
        };
        put(&mut key, 2, i16::to_be_bytes(id));
        put(&mut value, 2, self.coordinator_epoch.to_be_bytes());
        builder.append(&NewRecord {
            timestamp: self.timestamp,
            key: Some(&key),
            value: Some(&value),
            headers: &[],
        })
    }
}

/// The first record of a batch; `None` if it has none.
fn first_record<'a>(
    header: BatchHeader,
    bytes: &'a [u8],
    buffer: &'a mut Vec<u8>,
) -> Result<Option<RecordRef<'a>>, Malformed> {
    let (mut records, payload) = Records::open(header, bytes, buffer)?;
    records.next(payload.of(bytes, buffer))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_kafkas_own_tests() {
        assert_eq!(ControlType::parse(Some(&[0, 0, 0, 0])), Ok(ControlType::Abort));
        assert_eq!(ControlType::parse(Some(&[0, 0, 0, 1])), Ok(ControlType::Commit));
        assert_eq!(ControlType::parse(Some(&[0, 5, 0, 1])), Ok(ControlType::Commit));
        assert_eq!(ControlType::parse(Some(&[0, 0, 1, 81])), Ok(ControlType::Other(337)));
        assert!(ControlType::parse(Some(&[0xff, 0xff, 0, 1])).is_err());
        assert!(ControlType::parse(Some(&[0, 0, 0])).is_err());
        assert!(ControlType::parse(None).is_err());
    }
}
