//! The columns of records under construction: only the selected ones, filled in one pass.

use std::sync::Arc;

use arrow_array::builder::{BinaryBuilder, BooleanBuilder, PrimitiveBuilder, StringBuilder};
use arrow_array::types::{Int8Type, Int16Type, Int32Type, Int64Type};
use arrow_array::{
    Array, ArrayRef, DictionaryArray, RecordBatch, RecordBatchOptions, StringArray,
    TimestampMicrosecondArray, TimestampMillisecondArray,
};
use arrow_schema::{ArrowError, SchemaRef, TimeUnit};

use super::damage::DamageBuilder;
use super::headers::HeadersBuilder;
use super::{Column, ReaderOptions};
use crate::error::{Error, Result};
use crate::log::DamagedRange;
use crate::record::{BatchHeader, RecordRef};
use crate::segment::Batch;

/// The values that all records of a batch share.
#[derive(Debug)]
pub(super) struct Origin<'a> {
    pub(super) topic: Option<&'a str>,
    pub(super) partition: Option<i32>,
    pub(super) segment: i64,
    pub(super) batch: &'a Batch,
}

#[derive(Debug)]
enum Builder {
    Int8(PrimitiveBuilder<Int8Type>),
    Int16(PrimitiveBuilder<Int16Type>),
    Int32(PrimitiveBuilder<Int32Type>),
    Int64(PrimitiveBuilder<Int64Type>),
    Boolean(BooleanBuilder),
    Binary(BinaryBuilder),
    String(StringBuilder),
    Headers(HeadersBuilder),
}

/// The selected columns, to which records are appended.
#[derive(Debug)]
pub(super) struct Columns {
    schema: SchemaRef,
    builders: Vec<(Column, Builder)>,
    errors: Option<DamageBuilder>,
    /// The topic of these rows: all rows of a record batch are from one log.
    topic: Option<String>,
    unit: TimeUnit,
    rows: usize,
    bytes: usize,
}

impl Columns {
    pub(super) fn new(schema: SchemaRef, options: &ReaderOptions) -> Self {
        let builder = |column: Column| match column {
            Column::TimestampType | Column::Magic => Builder::Int8(PrimitiveBuilder::new()),
            Column::ProducerEpoch => Builder::Int16(PrimitiveBuilder::new()),
            Column::Topic
            | Column::Partition
            | Column::LeaderEpoch
            | Column::Sequence
            | Column::KeySize
            | Column::ValueSize => Builder::Int32(PrimitiveBuilder::new()),
            Column::Offset
            | Column::Timestamp
            | Column::ProducerId
            | Column::BatchBaseOffset
            | Column::Position
            | Column::Segment => Builder::Int64(PrimitiveBuilder::new()),
            Column::IsTransactional | Column::IsControl => Builder::Boolean(BooleanBuilder::new()),
            Column::Key | Column::Value => Builder::Binary(BinaryBuilder::new()),
            Column::Codec => Builder::String(StringBuilder::new()),
            Column::Headers => Builder::Headers(HeadersBuilder::new(options.header_keys)),
        };
        Self {
            schema,
            builders: options.columns.iter().map(|column| (*column, builder(*column))).collect(),
            errors: options.reports().then(DamageBuilder::default),
            topic: None,
            unit: options.timestamp_unit,
            rows: 0,
            bytes: 0,
        }
    }

    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// The approximate size of the columns, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds a row.
    #[inline]
    pub(super) fn append(&mut self, record: &RecordRef<'_>, origin: &Origin<'_>) -> Result<()> {
        let header = &origin.batch.header;
        for (column, builder) in &mut self.builders {
            match (column, builder) {
                (Column::Key, Builder::Binary(builder)) => {
                    self.bytes += record.key.map_or(0, <[u8]>::len);
                    builder.append_option(record.key);
                }
                (Column::Value, Builder::Binary(builder)) => {
                    self.bytes += record.value.map_or(0, <[u8]>::len);
                    builder.append_option(record.value);
                }
                (Column::Headers, Builder::Headers(builder)) => {
                    self.bytes += builder.append(record.headers.clone());
                }
                (Column::Timestamp, Builder::Int64(builder)) => {
                    builder.append_option(timestamp(record.timestamp, self.unit, record.offset)?);
                }
                (Column::TimestampType, Builder::Int8(builder)) => {
                    builder.append_value(record.timestamp_type.id());
                }
                (Column::Topic, Builder::Int32(builder)) => {
                    if self.topic.is_none() {
                        self.topic = origin.topic.map(str::to_owned);
                    }
                    builder.append_option(origin.topic.map(|_| 0));
                }
                (Column::Partition, Builder::Int32(builder)) => builder.append_option(origin.partition),
                (Column::Sequence, Builder::Int32(builder)) => builder.append_value(record.sequence),
                (Column::KeySize, Builder::Int32(builder)) => builder.append_value(size(record.key)),
                (Column::ValueSize, Builder::Int32(builder)) => builder.append_value(size(record.value)),
                (Column::LeaderEpoch, Builder::Int32(builder)) => builder.append_value(header.leader_epoch),
                (Column::ProducerEpoch, Builder::Int16(builder)) => {
                    builder.append_value(header.producer_epoch);
                }
                (Column::Magic, Builder::Int8(builder)) => builder.append_value(header.magic.cast_signed()),
                (Column::IsTransactional, Builder::Boolean(builder)) => {
                    builder.append_value(header.is_transactional());
                }
                (Column::IsControl, Builder::Boolean(builder)) => builder.append_value(header.is_control()),
                (Column::Codec, Builder::String(builder)) => builder.append_value(codec_name(header)),
                (column, Builder::Int64(builder)) => builder.append_value(match column {
                    Column::Offset => record.offset,
                    Column::ProducerId => header.producer_id,
                    Column::BatchBaseOffset => header.base_offset,
                    Column::Position => origin.batch.position.cast_signed(),
                    _ => origin.segment,
                }),
                // no other pair occurs: `new` selects the builder by the type of the column
                _ => {}
            }
        }
        if let Some(errors) = &mut self.errors {
            errors.append(None);
        }
        self.rows += 1;
        self.bytes += 8 * self.builders.len();
        Ok(())
    }

    /// Adds a row for a damaged range: its first offset, its position, and the struct of the column `error`.
    pub(super) fn append_damaged_range(&mut self, range: &DamagedRange) {
        for (column, builder) in &mut self.builders {
            match (column, builder) {
                (Column::Offset, Builder::Int64(builder)) => builder.append_value(range.start_offset),
                (Column::Position, Builder::Int64(builder)) => {
                    builder.append_value(range.start_position.cast_signed());
                }
                (_, Builder::Int8(builder)) => builder.append_null(),
                (_, Builder::Int16(builder)) => builder.append_null(),
                (_, Builder::Int32(builder)) => builder.append_null(),
                (_, Builder::Int64(builder)) => builder.append_null(),
                (_, Builder::Boolean(builder)) => builder.append_null(),
                (_, Builder::Binary(builder)) => builder.append_null(),
                (_, Builder::String(builder)) => builder.append_null(),
                (_, Builder::Headers(builder)) => drop(builder.append(crate::record::Headers::default())),
            }
        }
        if let Some(errors) = &mut self.errors {
            errors.append(Some(range));
        }
        self.rows += 1;
    }

    /// Returns the rows so far and empties the columns.
    pub(super) fn finish(&mut self) -> Result<RecordBatch, ArrowError> {
        let mut arrays: Vec<ArrayRef> = Vec::with_capacity(self.builders.len() + 1);
        for (column, builder) in &mut self.builders {
            arrays.push(match builder {
                Builder::Int8(builder) => Arc::new(builder.finish()),
                Builder::Int16(builder) => Arc::new(builder.finish()),
                Builder::Int32(builder) if *column == Column::Topic => {
                    let names =
                        Arc::new(StringArray::from(self.topic.take().into_iter().collect::<Vec<_>>()));
                    Arc::new(DictionaryArray::try_new(builder.finish(), names)?)
                }
                Builder::Int32(builder) => Arc::new(builder.finish()),
                Builder::Int64(builder) if *column == Column::Timestamp => {
                    timestamps(&builder.finish(), self.unit)
                }
                Builder::Int64(builder) => Arc::new(builder.finish()),
                Builder::Boolean(builder) => Arc::new(builder.finish()),
                Builder::Binary(builder) => Arc::new(builder.finish()),
                Builder::String(builder) => Arc::new(builder.finish()),
                Builder::Headers(builder) => builder.finish()?,
            });
        }
        if let Some(errors) = &mut self.errors {
            arrays.push(errors.finish()?);
        }
        // a batch without columns still has a number of rows
        let options = RecordBatchOptions::new().with_row_count(Some(std::mem::take(&mut self.rows)));
        self.bytes = 0;
        RecordBatch::try_new_with_options(Arc::clone(&self.schema), arrays, &options)
    }
}

/// The timestamp of the record (or batch) at `offset` in the unit of the column; `None` if it has none.
pub(super) fn timestamp(timestamp: i64, unit: TimeUnit, offset: i64) -> Result<Option<i64>> {
    match unit {
        _ if timestamp < 0 => Ok(None),
        TimeUnit::Microsecond => timestamp.checked_mul(1000).map(Some).ok_or_else(|| {
            Error::config(
                "timestamp_unit",
                "ms, because a timestamp of the log exceeds 64 bits in µs",
                format!("{timestamp} ms at offset {offset}"),
            )
        }),
        _ => Ok(Some(timestamp)),
    }
}

/// Numbers as a timestamp column.
pub(super) fn timestamps(numbers: &arrow_array::Int64Array, unit: TimeUnit) -> ArrayRef {
    let (values, nulls) = (numbers.values().clone(), numbers.nulls().cloned());
    if unit == TimeUnit::Microsecond {
        Arc::new(TimestampMicrosecondArray::new(values, nulls).with_timezone("UTC"))
    } else {
        Arc::new(TimestampMillisecondArray::new(values, nulls).with_timezone("UTC"))
    }
}

pub(super) fn codec_name(header: &BatchHeader) -> &'static str {
    header.codec().map_or("unknown", crate::record::Codec::name)
}

fn size(bytes: Option<&[u8]>) -> i32 {
    bytes.map_or(-1, |bytes| i32::try_from(bytes.len()).unwrap_or(i32::MAX))
}
