//! Batches as bytes in the cells of a column, decoded to a list of records for each cell.

use std::borrow::Cow;
use std::sync::Arc;

use arrow_array::types::{BinaryType, Int32Type, Int64Type};
use arrow_array::{ArrayRef, BinaryArray, Int64Array, ListArray, RecordBatch, StringArray, StructArray};
use arrow_buffer::{NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, DataType, Field, Fields, Schema, TimeUnit};

use super::byte_values::ByteValues;
use super::columns::timestamps;
use super::headers::HeadersBuilder;
use super::numbers::Numbers;
use super::{HeaderKeys, headers_type, timestamp_type};
use crate::error::{Error, Malformed, Reason, Result};
use crate::record::{BatchHeader, LOG_OVERHEAD, MIN_LENGTH, PREFIX, Payload, RecordSpan, Records};
use crate::types::Interrupt;

/// A cell has at most a record for so many bytes of its limit: a few bytes can decompress to many records,
/// each of which takes memory.
const LIMIT_PER_RECORD: usize = 64;

/// The size of the headers of a cell in the column has at most this multiple of its limit: an empty header
/// has two bytes in a record.
const HEADERS_PER_LIMIT: usize = 4;

/// The approximate size of a record in the columns without key, value and headers, bytes.
const ROW_BYTES: usize = 48;

/// Why a cell is not decoded.
struct Refused {
    /// The position of the batch in the cell, bytes.
    position: usize,
    reason: Malformed,
}

/// A decoded batch.
struct Part<'a> {
    /// The bytes to which the spans refer.
    bytes: Cow<'a, [u8]>,
    spans: Vec<RecordSpan>,
    timestamp_type: i32,
    header_bytes: usize,
}

/// Decodes the first cells, until their records take `max_bytes` of memory, but at least one cell.
///
/// The result has a row for each of these cells: `records`, null for a null cell and for one that cannot be
/// decoded; and why it cannot: `reason`, `position` (of the batch in the cell, bytes) and `kind` (`damaged`,
/// `unsupported` or `too_large`). Records of control batches are left out, and a part of a batch at the end
/// of a cell. `max_batch_bytes`: the largest batch, as stored and decompressed, and the largest sum of the
/// decompressed batches of a cell, which also limits the number of its records.
///
/// # Errors
/// That of `interrupt`.
pub fn decode_cells(
    cells: &BinaryArray,
    max_bytes: usize,
    max_batch_bytes: usize,
    interrupt: Interrupt,
) -> Result<RecordBatch> {
    let mut columns = Columns::new();
    let mut refusals = Vec::new();
    for cell in cells {
        interrupt.check()?;
        match cell.map(|cell| parts_of(cell, max_batch_bytes, interrupt)).transpose()?.transpose() {
            Ok(parts) => {
                columns.append(parts.as_deref());
                refusals.push(None);
            }
            Err(refused) => {
                columns.append(None);
                refusals.push(Some(refused));
            }
        }
        if columns.bytes >= max_bytes {
            break;
        }
    }
    let finished = columns.finish().and_then(|records| with_refusals(records, &refusals));
    finished.map_err(|wrong| Error::config("batches", "records of less than 2 GiB", wrong.to_string()))
}

/// Decodes all batches of a cell before any record is returned: one may be damaged.
///
/// # Errors
/// That of `interrupt`.
fn parts_of(
    cell: &[u8],
    max_batch_bytes: usize,
    interrupt: Interrupt,
) -> Result<Result<Vec<Part<'_>>, Refused>> {
    let mut parts: Vec<Part<'_>> = Vec::new();
    let (mut position, mut sums) = (0, Sums::default());
    while let Some(rest) = cell.get(position..).filter(|rest| !is_part(rest)) {
        interrupt.check()?;
        let (part, size) = match Part::first(rest, max_batch_bytes) {
            Ok(first) => first,
            Err(reason) => return Ok(Err(Refused { position, reason })),
        };
        if let Some(part) = part.filter(|part| !part.spans.is_empty()) {
            if let Err(reason) = sums.add(&part, max_batch_bytes) {
                return Ok(Err(Refused { position, reason }));
            }
            parts.push(part);
        }
        position += size;
    }
    Ok(Ok(parts))
}

/// Whether the bytes are a part of a batch, or none, as at the end of the response to a fetch: clients ignore
/// it. A header with an impossible length or magic is no part.
///
/// *Source*: `ByteBufferLogInputStream.nextBatch`.
fn is_part(bytes: &[u8]) -> bool {
    let Some(length) = bytes.get(8..).and_then(|length| length.first_chunk()) else { return true };
    let length = usize::try_from(i32::from_be_bytes(*length)).unwrap_or(0);
    let Some(magic) = bytes.get(PREFIX - 1) else { return length >= MIN_LENGTH };
    length >= MIN_LENGTH && *magic <= 2 && bytes.len() < length.saturating_add(LOG_OVERHEAD)
}

/// The sums of a cell.
#[derive(Default)]
struct Sums {
    bytes: usize,
    records: usize,
    header_bytes: usize,
}

impl Sums {
    /// Adds a batch; fails if the cell has too much then.
    fn add(&mut self, part: &Part<'_>, max_batch_bytes: usize) -> Result<(), Malformed> {
        self.bytes += part.bytes.len();
        self.records += part.spans.len();
        self.header_bytes += part.header_bytes;
        self.ensure_within(max_batch_bytes)
    }

    fn ensure_within(&self, max_batch_bytes: usize) -> Result<(), Malformed> {
        let &Self { bytes, records, header_bytes } = self;
        let max_records = max_batch_bytes / LIMIT_PER_RECORD;
        let max_header_bytes = max_batch_bytes.saturating_mul(HEADERS_PER_LIMIT);
        if bytes <= max_batch_bytes && records <= max_records && header_bytes <= max_header_bytes {
            return Ok(());
        }
        let expected = format!(
            "at most {max_batch_bytes} bytes, {max_records} records and {max_header_bytes} bytes of headers in a cell"
        );
        let found = format!("at least {bytes} bytes, {records} records and {header_bytes} bytes of headers");
        Err(Malformed { expected, found, reason: Reason::TooLarge })
    }
}

impl<'a> Part<'a> {
    /// Decodes the batch at the start of `bytes`; returns it, or `None` for a control batch, and its size in
    /// bytes.
    fn first(bytes: &'a [u8], max_batch_bytes: usize) -> Result<(Option<Self>, usize), Malformed> {
        let available = bytes.len();
        let mut header = BatchHeader::parse(bytes, u64::try_from(available).unwrap_or(u64::MAX))?;
        let torn = || Malformed::new("a whole batch", format!("{available} bytes"));
        let size = usize::try_from(header.size).map_err(|_| torn())?;
        let batch = bytes.get(..size).ok_or_else(torn)?;
        header.ensure_valid(batch)?;
        if size > max_batch_bytes {
            return Err(Malformed::too_large(max_batch_bytes, format!("{size} bytes")));
        }
        let mut buffer = Vec::new();
        header.resolve_base_offset_up_to(max_batch_bytes, batch, &mut buffer)?;
        if header.is_control() {
            return Ok((None, size));
        }
        let (mut records, payload) = Records::open_up_to(max_batch_bytes, header, batch, &mut buffer)?;
        let bytes = match payload {
            Payload::Batch(_) => Cow::Borrowed(payload.of(batch, &[])),
            Payload::Buffer => Cow::Owned(buffer),
        };
        let timestamp_type = i32::from(records.header().timestamp_type().id());
        let mut part = Self { bytes, spans: Vec::new(), timestamp_type, header_bytes: 0 };
        let mut next = Vec::new();
        loop {
            let has_more = records.next_spans(&part.bytes, ROWS_AT_ONCE, &mut next, |_| ())?;
            part.extend(&next)?;
            let (bytes, records, header_bytes) = (part.bytes.len(), part.spans.len(), part.header_bytes);
            Sums { bytes, records, header_bytes }.ensure_within(max_batch_bytes)?;
            if !has_more {
                return Ok((Some(part), size));
            }
        }
    }

    fn extend(&mut self, spans: &[RecordSpan]) -> Result<(), Malformed> {
        for span in spans {
            if span.timestamp.checked_mul(1000).is_none() {
                let expected = "a timestamp that microseconds of 64 bits can express";
                return Err(Malformed::unsupported(expected, format!("{} ms", span.timestamp)));
            }
            if !span.headers.is_empty() {
                self.header_bytes += HeadersBuilder::new(HeaderKeys::Utf8).size(span.headers.of(&self.bytes));
            }
        }
        self.spans.extend_from_slice(spans);
        Ok(())
    }

    fn size(&self) -> usize {
        self.bytes.len() + self.header_bytes + ROW_BYTES * self.spans.len()
    }
}

/// The number of records that are decoded with one call.
const ROWS_AT_ONCE: usize = 1024;

/// The records of many cells under construction.
struct Columns {
    offset: Numbers<i64>,
    timestamp: Numbers<i64>,
    timestamp_type: Numbers<i32>,
    key: ByteValues,
    value: ByteValues,
    headers: HeadersBuilder,
    rows: usize,
    /// 0, and the number of records up to each cell.
    ends: Vec<i32>,
    valid: Vec<bool>,
    /// The approximate memory of the records, bytes.
    bytes: usize,
}

impl Columns {
    fn new() -> Self {
        Self {
            offset: Numbers::default(),
            timestamp: Numbers::default(),
            timestamp_type: Numbers::default(),
            key: ByteValues::default(),
            value: ByteValues::default(),
            headers: HeadersBuilder::new(HeaderKeys::Utf8),
            rows: 0,
            ends: vec![0],
            valid: Vec::new(),
            bytes: 0,
        }
    }

    /// Adds a cell; `None` is null.
    fn append(&mut self, parts: Option<&[Part<'_>]>) {
        for Part { bytes, spans, timestamp_type, .. } in parts.unwrap_or_default() {
            self.offset.extend(spans.iter().map(|span| span.offset));
            let timestamp =
                |span: &RecordSpan| (span.timestamp != -1).then(|| span.timestamp.wrapping_mul(1000));
            self.timestamp.extend_options(spans, timestamp);
            self.timestamp_type.repeat(Some(*timestamp_type), spans.len());
            self.key.extend(bytes, spans, |span| span.key);
            self.value.extend(bytes, spans, |span| span.value);
            self.headers.extend(bytes, spans);
            self.rows += spans.len();
        }
        self.bytes += parts.unwrap_or_default().iter().map(Part::size).sum::<usize>();
        self.ends.push(i32::try_from(self.rows).unwrap_or(i32::MAX));
        self.valid.push(parts.is_some());
    }

    fn finish(mut self) -> Result<ListArray, ArrowError> {
        let arrays: Vec<ArrayRef> = vec![
            Arc::new(self.offset.finish::<Int64Type>()),
            timestamps(&self.timestamp.finish(), TimeUnit::Microsecond),
            Arc::new(self.timestamp_type.finish::<Int32Type>()),
            Arc::new(self.key.finish::<BinaryType>()?),
            Arc::new(self.value.finish::<BinaryType>()?),
            self.headers.finish()?,
        ];
        let fields = record_fields();
        let records = StructArray::try_new(fields.clone(), arrays, None)?;
        let item = Arc::new(Field::new("element", DataType::Struct(fields), true));
        let ends = OffsetBuffer::new(ScalarBuffer::from(self.ends));
        ListArray::try_new(item, ends, Arc::new(records), Some(NullBuffer::from(self.valid)))
    }
}

/// The fields of a record. All are nullable, as Spark wants.
fn record_fields() -> Fields {
    let field = |name: &str, data_type| Field::new(name, data_type, true);
    Fields::from(vec![
        field("offset", DataType::Int64),
        field("timestamp", timestamp_type(TimeUnit::Microsecond)),
        field("timestamp_type", DataType::Int32),
        field("key", DataType::Binary),
        field("value", DataType::Binary),
        field("headers", headers_type(HeaderKeys::Utf8)),
    ])
}

fn with_refusals(records: ListArray, refusals: &[Option<Refused>]) -> Result<RecordBatch, ArrowError> {
    let each = || refusals.iter().map(Option::as_ref);
    let reason = |refused: &Refused| {
        let Malformed { expected, found, .. } = &refused.reason;
        format!("expected {expected}, found {found}")
    };
    let position = |refused: &Refused| i64::try_from(refused.position).unwrap_or(i64::MAX);
    let reasons: StringArray = each().map(|refused| refused.map(reason)).collect();
    let positions: Int64Array = each().map(|refused| refused.map(position)).collect();
    let kind = |refused: &Refused| match refused.reason.reason {
        Reason::Damaged => "damaged",
        Reason::Unsupported => "unsupported",
        Reason::TooLarge => "too_large",
    };
    let kinds: StringArray = each().map(|refused| refused.map(kind)).collect();
    let columns: [(&str, ArrayRef); 4] = [
        ("records", Arc::new(records)),
        ("reason", Arc::new(reasons)),
        ("position", Arc::new(positions)),
        ("kind", Arc::new(kinds)),
    ];
    let fields: Vec<_> =
        columns.iter().map(|(name, array)| Field::new(*name, array.data_type().clone(), true)).collect();
    let arrays = columns.into_iter().map(|(_, array)| array).collect();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)
}
