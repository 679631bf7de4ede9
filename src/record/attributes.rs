//! The attribute bits of batches and of v0 and v1 entries, and the codec ids in them.

use crate::error::Malformed;
use crate::types::TimestampType;

/// The bit for [`TimestampType::LogAppendTime`].
pub(super) const APPEND_TIME: i16 = 1 << 3;

/// The bit of batches in transactions.
pub(super) const TRANSACTIONAL: i16 = 1 << 4;

/// The bit of control batches.
pub(super) const CONTROL: i16 = 1 << 5;

/// The bit of batches whose base timestamp is a delete horizon.
pub(super) const DELETE_HORIZON: i16 = 1 << 6;

/// How a batch's records are compressed. Kafka: `CompressionType`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Codec {
    /// No compression.
    None,
    /// Gzip, RFC 1952.
    Gzip,
    /// Xerial frames around snappy blocks, or one raw block.
    Snappy,
    /// An LZ4 frame.
    Lz4,
    /// Zstandard; v2 batches only.
    Zstd,
}

impl Codec {
    /// Kafka's id, as in the attributes.
    pub fn id(self) -> i16 {
        match self {
            Self::None => 0,
            Self::Gzip => 1,
            Self::Snappy => 2,
            Self::Lz4 => 3,
            Self::Zstd => 4,
        }
    }

    /// Kafka's name: `none`, `gzip`, `snappy`, `lz4`, `zstd`.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Gzip => "gzip",
            Self::Snappy => "snappy",
            Self::Lz4 => "lz4",
            Self::Zstd => "zstd",
        }
    }
}

/// The attribute bits:
///
/// ```text
/// bits 0-2 codec    3 timestamp type    4 transactional    5 control    6 delete horizon    7-15 zero
///      (all)          (v1, v2)            (v2)               (v2)         (v2)
/// ```
///
/// Kafka: `DefaultRecordBatch.attributes`, `LegacyRecord.attributes`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Attributes(pub i16);

impl Attributes {
    fn has(self, bit: u32) -> bool {
        self.0 >> bit & 1 == 1
    }

    /// The codec.
    ///
    /// # Errors
    /// [`Malformed`] for the ids 5 to 7, which are undefined.
    pub fn codec(self) -> Result<Codec, Malformed> {
        match self.0 & 7 {
            0 => Ok(Codec::None),
            1 => Ok(Codec::Gzip),
            2 => Ok(Codec::Snappy),
            3 => Ok(Codec::Lz4),
            4 => Ok(Codec::Zstd),
            id => Err(Malformed::unsupported("a codec id from 0 to 4", format!("codec id {id}"))),
        }
    }

    /// Whether the records are compressed.
    pub fn is_compressed(self) -> bool {
        self.0 & 7 != 0
    }

    /// The meaning of the timestamps in formats that have them (magic 1 and 2).
    pub fn timestamp_type(self) -> TimestampType {
        if self.has(3) { TimestampType::LogAppendTime } else { TimestampType::CreateTime }
    }

    /// Whether the batch belongs to a transaction.
    pub fn is_transactional(self) -> bool {
        self.has(4)
    }

    /// Whether the batch contains control records.
    pub fn is_control(self) -> bool {
        self.has(5)
    }

    /// Whether the base timestamp is a delete horizon.
    pub fn has_delete_horizon(self) -> bool {
        self.has(6)
    }
}
