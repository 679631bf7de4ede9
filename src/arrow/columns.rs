//! The columns of records under construction: only the selected ones, each filled with the records of a batch
//! in one loop.

use std::str::Utf8Error;
use std::sync::Arc;

use arrow_array::builder::BooleanBuilder;
use arrow_array::types::{BinaryType, Int8Type, Int16Type, Int32Type, Int64Type, Utf8Type};
use arrow_array::{
    Array, ArrayRef, DictionaryArray, RecordBatch, RecordBatchOptions, StringArray,
    TimestampMicrosecondArray, TimestampMillisecondArray,
};
use arrow_schema::{ArrowError, SchemaRef, TimeUnit};

use super::byte_type::{ByteType, check_text, not_text};
use super::byte_values::ByteValues;
use super::byte_views::ByteViews;
use super::damage::DamageBuilder;
use super::headers::{self, HeadersBuilder};
use super::invalid_text::InvalidText;
use super::numbers::Numbers;
use super::{Column, ReaderOptions};
use crate::error::{Error, Result};
use crate::log::{DamagedRange, Origin};
use crate::record::{BatchHeader, ByteSpan, RecordSpan};
use crate::segment::SharedBytes;

#[derive(Debug)]
enum Builder {
    Int8(Numbers<i8>),
    Int16(Numbers<i16>),
    Int32(Numbers<i32>),
    Int64(Numbers<i64>),
    Boolean(BooleanBuilder),
    Bytes(ByteValues),
    String(ByteValues),
    BytesViews(ByteViews),
    StringViews(ByteViews),
    Headers(Box<HeadersBuilder>),
}

impl Builder {
    /// For keys or values of a type.
    fn of_bytes(byte_type: ByteType) -> Self {
        match byte_type {
            ByteType::Binary => Self::Bytes(ByteValues::default()),
            ByteType::String => Self::String(ByteValues::default()),
            ByteType::BinaryView => Self::BytesViews(ByteViews::default()),
            ByteType::StringView => Self::StringViews(ByteViews::default()),
        }
    }

    /// Adds keys or values; returns their size in bytes.
    ///
    /// # Errors
    /// For text with [`InvalidText::Raise`]: the number of the first record whose bytes are not UTF-8. The
    /// column is then incomplete.
    fn extend_bytes(
        &mut self,
        payload: &SharedBytes,
        spans: &[RecordSpan],
        span: impl Fn(&RecordSpan) -> ByteSpan,
        invalid: InvalidText,
    ) -> Result<usize, (usize, Utf8Error)> {
        let is_view = matches!(self, Self::StringViews(_));
        if matches!(self, Self::String(_)) || is_view && invalid != InvalidText::Raise {
            match check_text(payload.bytes(), spans, &span) {
                Err(found) if invalid == InvalidText::Raise => return Err(found),
                Err(_) => {
                    let (payload, spans) = invalid.correct(payload.bytes(), spans, span);
                    return self.extend_checked(&payload, &spans, |span| *span);
                }
                Ok(()) => {}
            }
        }
        self.extend_checked(payload, spans, span)
    }

    /// [`Builder::extend_bytes`] of bytes that were checked, but for views of text, which are checked as they
    /// are added.
    fn extend_checked<I>(
        &mut self,
        payload: &SharedBytes,
        spans: &[I],
        span: impl Fn(&I) -> ByteSpan,
    ) -> Result<usize, (usize, Utf8Error)> {
        Ok(match self {
            Self::Bytes(builder) | Self::String(builder) => builder.extend(payload.bytes(), spans, span),
            Self::BytesViews(builder) => builder.extend(payload, spans, span),
            Self::StringViews(builder) => builder.extend_text(payload, spans, span)?,
            _ => 0,
        })
    }

    /// See [`ByteViews::kept`].
    fn kept(&self) -> usize {
        match self {
            Self::BytesViews(builder) | Self::StringViews(builder) => builder.kept(),
            _ => 0,
        }
    }

    /// See [`ByteViews::memory`].
    fn memory(&self) -> usize {
        match self {
            Self::BytesViews(builder) | Self::StringViews(builder) => builder.memory(),
            _ => 0,
        }
    }
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
    /// The maximum number of columns that contain the same bytes of a batch: 1 unless a column is selected
    /// twice.
    copies: usize,
    has_headers: bool,
    rows: usize,
    bytes: usize,
    /// The memory of the largest record batch so far.
    largest: usize,
}

/// The limits of a record batch.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    pub(super) rows: usize,
    pub(super) bytes: usize,
}

impl Columns {
    pub(super) fn new(schema: SchemaRef, options: &ReaderOptions) -> Self {
        let builder = |column: Column| match column {
            Column::TimestampType | Column::Magic => Builder::Int8(Numbers::default()),
            Column::ProducerEpoch => Builder::Int16(Numbers::default()),
            Column::Topic
            | Column::Partition
            | Column::LeaderEpoch
            | Column::Sequence
            | Column::KeySize
            | Column::ValueSize => Builder::Int32(Numbers::default()),
            Column::Offset
            | Column::Timestamp
            | Column::ProducerId
            | Column::BatchBaseOffset
            | Column::Position
            | Column::Segment => Builder::Int64(Numbers::default()),
            Column::IsTransactional | Column::IsControl => Builder::Boolean(BooleanBuilder::new()),
            Column::Key => Builder::of_bytes(options.key_type),
            Column::Value => Builder::of_bytes(options.value_type),
            Column::Codec => Builder::String(ByteValues::default()),
            Column::Headers => Builder::Headers(Box::new(HeadersBuilder::new(options.header_keys))),
        };
        let count = |wanted| options.columns.iter().filter(|column| **column == wanted).count();
        Self {
            schema,
            builders: options.columns.iter().map(|column| (*column, builder(*column))).collect(),
            errors: options.reports().then(DamageBuilder::default),
            topic: None,
            unit: options.timestamp_unit,
            copies: [Column::Key, Column::Value, Column::Headers].map(count).into_iter().max().unwrap_or(0),
            has_headers: count(Column::Headers) > 0,
            rows: 0,
            bytes: 0,
            largest: 0,
        }
    }

    pub(super) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The approximate memory of the largest record batch so far, bytes.
    pub(super) fn largest(&self) -> usize {
        self.largest
    }

    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// The number of rows before the limit.
    pub(super) fn rows_left(&self, limits: Limits) -> usize {
        limits.rows.saturating_sub(self.rows)
    }

    /// The approximate memory of the record batch that [`Columns::finish`] would return, bytes.
    pub(super) fn memory(&self) -> usize {
        self.bytes + self.builders.iter().map(|(_, builder)| builder.memory()).sum::<usize>()
    }

    /// Whether a limit is reached.
    pub(super) fn is_full(&self, limits: Limits) -> bool {
        let kept = || self.builders.iter().map(|(_, builder)| builder.kept()).max().unwrap_or(0);
        self.rows >= limits.rows || self.bytes >= limits.bytes || kept() >= limits.bytes
    }

    /// Adds the records of a batch as rows until a limit is reached; returns the number of rows. `shared`:
    /// the bytes to which the spans refer.
    pub(super) fn append(
        &mut self,
        spans: &[RecordSpan],
        shared: &SharedBytes,
        origin: &Origin<'_>,
        limits: Limits,
        invalid_text: InvalidText,
    ) -> Result<usize> {
        let payload = shared.bytes();
        let spans = spans.get(..self.fitting(spans, payload, limits)).unwrap_or(spans);
        for (column, builder) in &mut self.builders {
            match (*column, builder) {
                (Column::Key, builder) => {
                    self.bytes += builder
                        .extend_bytes(shared, spans, |span| span.key, invalid_text)
                        .map_err(|invalid| not_text("key_type", spans, origin, invalid))?;
                }
                (Column::Value, builder) => {
                    self.bytes += builder
                        .extend_bytes(shared, spans, |span| span.value, invalid_text)
                        .map_err(|invalid| not_text("value_type", spans, origin, invalid))?;
                }
                (Column::Headers, Builder::Headers(builder)) => {
                    self.bytes += builder.extend(payload, spans);
                }
                (Column::Timestamp, Builder::Int64(builder)) => {
                    append_timestamps(builder, spans, self.unit)?;
                }
                (column, builder) => append_numbers(column, builder, spans, origin),
            }
        }
        if self.topic.is_none() {
            self.topic = origin.topic.map(str::to_owned);
        }
        if let Some(errors) = &mut self.errors {
            errors.append_nulls(spans.len());
        }
        self.rows += spans.len();
        self.bytes += self.row_bytes() * spans.len();
        Ok(spans.len())
    }

    /// The number of these records after which a limit is reached, or all of them.
    fn fitting(&self, spans: &[RecordSpan], payload: &[u8], limits: Limits) -> usize {
        let rows = spans.len().min(self.rows_left(limits));
        let has_headers = self.has_headers && spans.iter().any(|span| !span.headers.is_empty());
        let growth = if has_headers { headers::GROWTH } else { 1 };
        let max_bytes_added = rows * self.row_bytes() + self.copies * growth * payload.len();
        if self.bytes + max_bytes_added < limits.bytes {
            return rows;
        }
        let mut bytes = self.bytes;
        let reaches_limit = |span: &RecordSpan| {
            bytes += self.row_bytes() + self.payload_bytes(span, payload);
            bytes >= limits.bytes
        };
        spans.iter().take(rows).position(reaches_limit).map_or(rows, |last| last + 1)
    }

    /// The approximate size of a row without keys, values and headers.
    fn row_bytes(&self) -> usize {
        8 * self.builders.len()
    }

    /// The size of a record's key, value and headers in these columns.
    fn payload_bytes(&self, span: &RecordSpan, payload: &[u8]) -> usize {
        let bytes = |(column, builder): &(Column, Builder)| match (column, builder) {
            (Column::Key, _) => span.key.len(),
            (Column::Value, _) => span.value.len(),
            (_, Builder::Headers(builder)) => builder.size(span.headers.of(payload)),
            _ => 0,
        };
        self.builders.iter().map(bytes).sum()
    }

    /// Adds a row for a damaged range: its first offset, its position, and the struct of the column `error`.
    pub(super) fn append_damaged_range(&mut self, range: &DamagedRange) {
        for (column, builder) in &mut self.builders {
            match (column, builder) {
                (Column::Offset, Builder::Int64(builder)) => builder.repeat(Some(range.start_offset), 1),
                (Column::Position, Builder::Int64(builder)) => {
                    builder.repeat(Some(range.start_position.cast_signed()), 1);
                }
                (_, Builder::Int8(builder)) => builder.repeat(None, 1),
                (_, Builder::Int16(builder)) => builder.repeat(None, 1),
                (_, Builder::Int32(builder)) => builder.repeat(None, 1),
                (_, Builder::Int64(builder)) => builder.repeat(None, 1),
                (_, Builder::Boolean(builder)) => builder.append_null(),
                (_, Builder::Bytes(builder) | Builder::String(builder)) => builder.repeat(None, 1),
                (_, Builder::BytesViews(builder) | Builder::StringViews(builder)) => builder.append_null(),
                (_, Builder::Headers(builder)) => builder.append_null(),
            }
        }
        if let Some(errors) = &mut self.errors {
            errors.append(range);
        }
        self.rows += 1;
    }

    /// Returns the rows so far and empties the columns.
    pub(super) fn finish(&mut self) -> Result<RecordBatch, ArrowError> {
        self.largest = self.largest.max(self.memory());
        let mut arrays: Vec<ArrayRef> = Vec::with_capacity(self.builders.len() + 1);
        for (column, builder) in &mut self.builders {
            arrays.push(match builder {
                Builder::Int8(builder) => Arc::new(builder.finish::<Int8Type>()),
                Builder::Int16(builder) => Arc::new(builder.finish::<Int16Type>()),
                Builder::Int32(builder) if *column == Column::Topic => {
                    let names =
                        Arc::new(StringArray::from(self.topic.take().into_iter().collect::<Vec<_>>()));
                    Arc::new(DictionaryArray::try_new(builder.finish::<Int32Type>(), names)?)
                }
                Builder::Int32(builder) => Arc::new(builder.finish::<Int32Type>()),
                Builder::Int64(builder) if *column == Column::Timestamp => {
                    timestamps(&builder.finish(), self.unit)
                }
                Builder::Int64(builder) => Arc::new(builder.finish::<Int64Type>()),
                Builder::Boolean(builder) => Arc::new(builder.finish()),
                Builder::Bytes(builder) => Arc::new(builder.finish::<BinaryType>()?),
                Builder::String(builder) => Arc::new(builder.finish::<Utf8Type>()?),
                Builder::BytesViews(builder) => Arc::new(builder.finish_binary()?),
                Builder::StringViews(builder) => Arc::new(builder.finish_text()?),
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

/// Adds the timestamps of records.
fn append_timestamps(builder: &mut Numbers<i64>, spans: &[RecordSpan], unit: TimeUnit) -> Result<()> {
    if unit == TimeUnit::Microsecond {
        for span in spans {
            timestamp(span.timestamp, unit, span.offset)?;
        }
        builder
            .extend_options(spans, |span| (span.timestamp != -1).then(|| span.timestamp.wrapping_mul(1000)));
    } else {
        builder.extend_options(spans, |span| (span.timestamp != -1).then_some(span.timestamp));
    }
    Ok(())
}

/// Adds the numbers of records to a column: one of each record, or one of their batch.
fn append_numbers(column: Column, builder: &mut Builder, spans: &[RecordSpan], origin: &Origin<'_>) {
    let (header, rows) = (&origin.batch.header, spans.len());
    match (column, builder) {
        (Column::Offset, Builder::Int64(builder)) => builder.extend(spans.iter().map(|span| span.offset)),
        (Column::KeySize, Builder::Int32(builder)) => {
            builder.extend(spans.iter().map(|span| span.key.size()));
        }
        (Column::ValueSize, Builder::Int32(builder)) => {
            builder.extend(spans.iter().map(|span| span.value.size()));
        }
        (Column::Sequence, Builder::Int32(builder)) => {
            builder.extend(spans.iter().map(|span| header.sequence_at(span.offset - header.base_offset)));
        }
        (Column::Topic, Builder::Int32(builder)) => builder.repeat(origin.topic.map(|_| 0), rows),
        (Column::Partition, Builder::Int32(builder)) => builder.repeat(origin.partition, rows),
        (Column::LeaderEpoch, Builder::Int32(builder)) => builder.repeat(Some(header.leader_epoch), rows),
        (Column::ProducerEpoch, Builder::Int16(builder)) => builder.repeat(Some(header.producer_epoch), rows),
        (Column::TimestampType, Builder::Int8(builder)) => {
            builder.repeat(Some(header.timestamp_type().id()), rows);
        }
        (Column::Magic, Builder::Int8(builder)) => builder.repeat(Some(header.magic.cast_signed()), rows),
        (Column::IsTransactional, Builder::Boolean(builder)) => {
            builder.append_n(rows, header.is_transactional());
        }
        (Column::IsControl, Builder::Boolean(builder)) => builder.append_n(rows, header.is_control()),
        (Column::Codec, Builder::String(builder)) => {
            builder.repeat(Some(codec_name(header).as_bytes()), rows);
        }
        (column, Builder::Int64(builder)) => {
            let number = match column {
                Column::ProducerId => header.producer_id,
                Column::BatchBaseOffset => header.base_offset,
                Column::Position => origin.batch.position.cast_signed(),
                _ => origin.segment,
            };
            builder.repeat(Some(number), rows);
        }
        // no other pair occurs: `new` selects the builder by the type of the column
        _ => {}
    }
}

/// The timestamp of the record (or batch) at `offset` in the unit of the column; `None` if it has none.
pub(super) fn timestamp(timestamp: i64, unit: TimeUnit, offset: i64) -> Result<Option<i64>> {
    match unit {
        _ if timestamp == -1 => Ok(None),
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
