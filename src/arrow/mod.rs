//! Scans as Arrow record batches, and Arrow record batches as records to append ([`NewRecords`]).
//!
//! | column | type | |
//! |---|---|---|
//! | `offset` | int64 | |
//! | `timestamp` | timestamp(ms or µs, UTC) | null if the record has none |
//! | `timestamp_type` | int8 | −1 none, 0 CreateTime, 1 LogAppendTime |
//! | `key`, `value` | a [`ByteType`] | an empty key or value is not null |
//! | `headers` | list of struct(key: string or binary, value: binary) | null if the record has none |
//! | `topic` | dictionary(int32, string) | null if unknown, like `partition` |
//! | `partition`, `leader_epoch`, `sequence` | int32 | −1 if there is no epoch or sequence |
//! | `producer_id` | int64 | −1 = none |
//! | `producer_epoch` | int16 | −1 = none |
//! | `is_transactional`, `is_control` | bool | |
//! | `codec` | string | `none gzip snappy lz4 zstd` |
//! | `magic` | int8 | 0, 1, 2 |
//! | `batch_base_offset`, `position`, `segment_base_offset` | int64 | of the batch, and of its segment |
//! | `key_size`, `value_size` | int32 | −1 if null |
//! | `error` | struct of the fields of [`DamagedRange`](crate::log::DamagedRange) | null for records; only with [`OnDamage::Report`](crate::log::OnDamage::Report) |

#[cfg(feature = "binding")]
mod append;
mod batches;
mod byte_type;
mod byte_values;
mod byte_views;
mod columns;
mod concurrent_splits;
mod damage;
mod headers;
mod invalid_text;
mod last_columns;
#[cfg(feature = "binding")]
mod lookups;
mod new_records;
mod numbers;
mod part;
#[cfg(feature = "binding")]
mod raw_batches;
mod reader;
mod reader_options;
mod recycled;
mod running_split;
#[cfg(any(feature = "binding", test))]
mod targets;
mod valid_views;
mod validity;

use std::sync::Arc;

use arrow_schema::{DataType, Field, Fields, Schema, SchemaRef, TimeUnit};

#[cfg(feature = "binding")]
#[doc(hidden)]
pub use append::{append_stream, unreadable};
pub use byte_type::ByteType;
pub use invalid_text::InvalidText;
#[cfg(feature = "binding")]
#[doc(hidden)]
pub use lookups::{Located, Timed};
pub use new_records::{HeaderPair, NewRecords};
#[cfg(feature = "binding")]
#[doc(hidden)]
pub use raw_batches::decode_cells;
pub use reader::Reader;
pub use reader_options::ReaderOptions;
#[cfg(feature = "binding")]
#[doc(hidden)]
pub use targets::{NO_TARGET, NoTargets, read_targets};

pub use crate::log::{Column, Progress};

impl Column {
    fn data_type(self, options: &ReaderOptions) -> DataType {
        match self {
            Self::Topic => DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8)),
            Self::Timestamp => timestamp_type(options.timestamp_unit),
            Self::TimestampType | Self::Magic => DataType::Int8,
            Self::Key => options.key_type.data_type(),
            Self::Value => options.value_type.data_type(),
            Self::Headers => headers_type(options.header_keys),
            Self::Partition | Self::LeaderEpoch | Self::Sequence | Self::KeySize | Self::ValueSize => {
                DataType::Int32
            }
            Self::Offset | Self::ProducerId | Self::BatchBaseOffset | Self::Position | Self::Segment => {
                DataType::Int64
            }
            Self::ProducerEpoch => DataType::Int16,
            Self::IsTransactional | Self::IsControl => DataType::Boolean,
            Self::Codec => DataType::Utf8,
        }
    }

    fn is_nullable(self) -> bool {
        matches!(
            self,
            Self::Topic | Self::Partition | Self::Timestamp | Self::Key | Self::Value | Self::Headers
        )
    }
}

/// The type of header names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HeaderKeys {
    /// Strings, decoded as Kafka's client does: invalid UTF-8 becomes U+FFFD.
    #[default]
    Utf8,
    /// The bytes as stored.
    Binary,
}

fn timestamp_type(unit: TimeUnit) -> DataType {
    DataType::Timestamp(unit, Some("UTC".into()))
}

fn header_fields(keys: HeaderKeys) -> Fields {
    let key = if keys == HeaderKeys::Utf8 { DataType::Utf8 } else { DataType::Binary };
    Fields::from(vec![Field::new("key", key, false), Field::new("value", DataType::Binary, true)])
}

fn headers_type(keys: HeaderKeys) -> DataType {
    DataType::List(Arc::new(Field::new("item", DataType::Struct(header_fields(keys)), true)))
}

fn schema(options: &ReaderOptions) -> SchemaRef {
    let reports = options.reports();
    let mut fields: Vec<_> = options
        .columns
        .iter()
        .map(|column| Field::new(column.name(), column.data_type(options), reports || column.is_nullable()))
        .collect();
    if reports {
        fields.push(damage::damage_field());
    }
    Arc::new(Schema::new(fields))
}
