//! Batches and records as rows of columns, with the fields of the text.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;

use arrow_array::builder::{
    BooleanBuilder, Int32Builder, Int64Builder, ListBuilder, StringBuilder, UInt32Builder,
};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};

use super::DumpOptions;
use super::batch::DumpedBatch;
use super::batch_stream::BatchStream;
use super::dumped_file::{DumpedFile, DumpedKind};
use super::legacy_message::LegacyMessage;
use super::log_entries::{LogEntries, LogOutput};
use super::records::DumpedRecord;
use crate::error::{Error, Malformed, Result};
use crate::inspect::batch_place::BatchPlace;
use crate::inspect::internal_topics::control_record_text;
use crate::record::java_string;

/// Rows of a record batch of Arrow.
const MAX_ROWS: usize = 8192;
/// Bytes of keys and values after which a record batch is complete.
const MAX_BYTES: usize = 16 << 20;

/// Which rows there are. A range is half-open; `None` is no bound.
#[derive(Debug, Clone, Copy, Default)]
pub struct DumpRanges {
    /// Records from this offset on; of batches, those whose last offset is not below it.
    pub start_offset: Option<i64>,
    /// Records below this offset; of batches, those whose base offset is below it.
    pub end_offset: Option<i64>,
    /// Records from this time on, ms; of batches, those whose largest timestamp is.
    pub start_time: Option<i64>,
    /// Records before this time, ms; of batches, those whose largest timestamp is.
    pub end_time: Option<i64>,
}

impl DumpRanges {
    fn have(&self, first_offset: i64, last_offset: i64, timestamp: i64) -> bool {
        self.start_offset.is_none_or(|start| last_offset >= start)
            && self.end_offset.is_none_or(|end| first_offset < end)
            && self.start_time.is_none_or(|start| timestamp >= start)
            && self.end_time.is_none_or(|end| timestamp < end)
    }
}

/// The rows of `.log` and `.checkpoint` files: a row for each batch, or with [`DumpOptions::deep_iteration`]
/// and what implies it for each record. Numbers are as stored, whatever their values; timestamps are in ms,
/// −1 for none.
///
/// *Memory*: a record batch of Arrow (8,192 rows, or 16 MiB of keys and values and one row), and what
/// [`Dump`](super::Dump) needs.
#[derive(Debug)]
pub struct DumpRows {
    options: DumpOptions,
    ranges: DumpRanges,
    schema: SchemaRef,
    files: VecDeque<DumpedFile>,
    current: Option<(DumpedFile, LogEntries)>,
    error: Option<Error>,
}

impl DumpRows {
    /// The rows of these files, in this order. Nothing is opened yet. Files of another kind have none.
    pub fn new<P: AsRef<Path>>(
        files: impl IntoIterator<Item = P>,
        ranges: DumpRanges,
        options: DumpOptions,
    ) -> Self {
        let files = files.into_iter().map(|file| DumpedFile::new(file.as_ref()));
        Self {
            schema: if options.prints_records() { record_schema() } else { batch_schema() },
            options,
            ranges,
            files: files.filter(|file| file.kind() == Some(DumpedKind::Batches)).collect(),
            current: None,
            error: None,
        }
    }

    /// The columns.
    pub fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    /// The next rows; `None` at the end.
    ///
    /// # Errors
    /// As [`Dump::next_block`](super::Dump::next_block), after the rows before the error.
    pub fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        let mut columns = Columns::default();
        if let Err(error) = self.fill(&mut columns) {
            self.files.clear();
            self.current = None;
            if columns.rows == 0 {
                return Err(error);
            }
            self.error = Some(error);
        }
        if columns.rows == 0 {
            return Ok(None);
        }
        let is_deep = self.options.prints_records();
        columns.finish(&self.schema, is_deep).map(Some).map_err(|wrong| {
            // the builders make what the schema says
            Error::config("columns", "rows of the schema", wrong.to_string())
        })
    }

    fn fill(&mut self, columns: &mut Columns) -> Result<()> {
        let Self { options, ranges, files, current, .. } = self;
        while !columns.is_full() {
            if let Some((file, entries)) = current {
                if !entries.fill(options, &mut Rows { options, ranges, file, columns })? {
                    *current = None;
                }
                continue;
            }
            let Some(file) = files.pop_front() else { return Ok(()) };
            let entries = LogEntries::open(file.path(), options.max_bytes)?;
            *current = Some((file, entries));
        }
        Ok(())
    }
}

/// A row for each batch, or for each record.
struct Rows<'a> {
    options: &'a DumpOptions,
    ranges: &'a DumpRanges,
    file: &'a DumpedFile,
    columns: &'a mut Columns,
}

impl LogOutput for Rows<'_> {
    fn is_full(&self) -> bool {
        self.columns.is_full()
    }

    fn add_batch(&mut self, stream: &mut BatchStream, place: BatchPlace) -> Result<DumpedBatch> {
        let batch = DumpedBatch::read(stream, place)?;
        let is_wanted = self.ranges.have(place.offset, batch.last_offset(), batch.header.max_timestamp);
        if is_wanted && !self.options.prints_records() {
            let codec = batch.header.attributes.codec();
            let codec = codec.map_err(|wrong| stream.corrupt(wrong, place.position, Some(place.offset)))?;
            let is_valid = batch.is_valid(stream)?;
            self.columns.add_batch(self.file, &batch, codec.name(), is_valid);
        }
        Ok(batch)
    }

    fn add_record(&mut self, batch: &DumpedBatch, record: &DumpedRecord<'_>) -> Result<(), Malformed> {
        if self.ranges.have(record.offset, record.offset, record.timestamp) {
            self.columns.add_record(self.file, batch, record, self.options)?;
        }
        Ok(())
    }
}

fn fields(fields: &[(&str, DataType, bool)]) -> SchemaRef {
    let field = |(name, data_type, is_nullable): &(&str, DataType, bool)| {
        Field::new(*name, data_type.clone(), *is_nullable)
    };
    Arc::new(Schema::new(fields.iter().map(field).collect::<Vec<_>>()))
}

/// A row for each batch. Null: fields that old formats do not have, and `delete_horizon` where there is none.
fn batch_schema() -> SchemaRef {
    fields(&[
        ("file", DataType::Utf8, false),
        ("position", DataType::Int64, false),
        ("last_offset", DataType::Int64, false),
        ("max_timestamp", DataType::Int64, false),
        ("base_offset", DataType::Int64, true),
        ("producer_id", DataType::Int64, true),
        ("delete_horizon", DataType::Int64, true),
        ("size", DataType::Int32, false),
        ("magic", DataType::Int32, false),
        ("count", DataType::Int32, true),
        ("base_sequence", DataType::Int32, true),
        ("last_sequence", DataType::Int32, true),
        ("producer_epoch", DataType::Int32, true),
        ("leader_epoch", DataType::Int32, true),
        ("timestamp_type", DataType::Utf8, false),
        ("codec", DataType::Utf8, false),
        ("crc", DataType::UInt32, false),
        ("is_valid", DataType::Boolean, false),
        ("is_transactional", DataType::Boolean, true),
        ("is_control", DataType::Boolean, true),
    ])
}

/// A row for each record. Null: `crc` and `is_valid` of magic 2, `sequence` and `header_keys` of older ones,
/// `control` of data, and keys and payloads that are null or not shown.
fn record_schema() -> SchemaRef {
    fields(&[
        ("file", DataType::Utf8, false),
        ("batch_position", DataType::Int64, false),
        ("offset", DataType::Int64, false),
        ("timestamp", DataType::Int64, false),
        ("key_size", DataType::Int32, false),
        ("value_size", DataType::Int32, false),
        ("sequence", DataType::Int32, true),
        ("timestamp_type", DataType::Utf8, false),
        ("control", DataType::Utf8, true),
        ("key", DataType::Utf8, true),
        ("payload", DataType::Utf8, true),
        ("crc", DataType::UInt32, true),
        ("is_valid", DataType::Boolean, true),
        ("header_keys", DataType::List(Arc::new(Field::new_list_field(DataType::Utf8, true))), true),
    ])
}

/// Columns of one type under construction, in the order of the schema.
#[derive(Debug, Default)]
struct Columns {
    rows: usize,
    /// Of keys and payloads.
    bytes: usize,
    file: StringBuilder,
    longs: [Int64Builder; 6],
    integers: [Int32Builder; 7],
    texts: [StringBuilder; 4],
    crc: UInt32Builder,
    flags: [BooleanBuilder; 3],
    header_keys: ListBuilder<StringBuilder>,
}

impl Columns {
    fn is_full(&self) -> bool {
        self.rows >= MAX_ROWS || self.bytes >= MAX_BYTES
    }

    fn add_batch(&mut self, file: &DumpedFile, batch: &DumpedBatch, codec: &str, is_valid: bool) {
        let (header, place) = (&batch.header, &batch.place);
        let is_v2 = batch.is_v2();
        let long = |number: i64| is_v2.then_some(number);
        let integer = |number: i32| is_v2.then_some(number);
        self.file.append_value(file.shown());
        let longs = [
            Some(place.position.cast_signed()),
            Some(batch.last_offset()),
            Some(header.max_timestamp),
            long(header.base_offset),
            long(header.producer_id),
            header.delete_horizon().filter(|_| is_v2),
        ];
        self.longs.iter_mut().zip(longs).for_each(|(builder, number)| builder.append_option(number));
        let integers = [
            i32::try_from(place.size).ok(),
            Some(place.magic.into()),
            header.count.filter(|_| is_v2),
            integer(header.base_sequence),
            integer(header.last_sequence()),
            integer(header.producer_epoch.into()),
            integer(header.leader_epoch),
        ];
        self.integers.iter_mut().zip(integers).for_each(|(builder, number)| builder.append_option(number));
        let texts = [header.timestamp_type().name(), codec];
        self.texts.iter_mut().zip(texts).for_each(|(builder, text)| builder.append_value(text));
        self.crc.append_value(header.crc);
        let flags =
            [Some(is_valid), is_v2.then(|| header.is_transactional()), is_v2.then(|| header.is_control())];
        self.flags.iter_mut().zip(flags).for_each(|(builder, flag)| builder.append_option(flag));
        self.rows += 1;
    }

    fn add_record(
        &mut self,
        file: &DumpedFile,
        batch: &DumpedBatch,
        record: &DumpedRecord<'_>,
        options: &DumpOptions,
    ) -> Result<(), Malformed> {
        let mut control = None;
        if batch.is_control() {
            let text = control_record_text(record.key()?, record.value()?);
            let wanted = "a control record that Kafka can decode";
            let text = text.map_err(|error| Malformed::new(wanted, error.to_string()))?;
            control = Some(text.trim_start().to_owned());
        }
        let shown = options.prints_contents() && !batch.is_control();
        let (key, payload) = if shown { options.contents(record)? } else { (None, None) };
        self.bytes += [&key, &payload].into_iter().flatten().map(String::len).sum::<usize>();
        self.file.append_value(file.shown());
        let longs = [batch.place.position.cast_signed(), record.offset, record.timestamp];
        self.longs.iter_mut().zip(longs).for_each(|(builder, number)| builder.append_value(number));
        let sequence = batch.is_v2().then_some(record.sequence);
        let integers = [Some(record.key_size), Some(record.value_size), sequence];
        self.integers.iter_mut().zip(integers).for_each(|(builder, number)| builder.append_option(number));
        let texts = [Some(batch.header.timestamp_type().name().to_owned()), control, key, payload];
        self.texts.iter_mut().zip(texts).for_each(|(builder, text)| builder.append_option(text));
        self.crc.append_option(record.message.map(LegacyMessage::crc));
        let [is_valid, ..] = &mut self.flags;
        is_valid.append_option(record.message.map(LegacyMessage::is_valid));
        for (key, _) in record.headers.clone() {
            self.header_keys.values().append_value(java_string(key));
        }
        self.header_keys.append(batch.is_v2());
        self.rows += 1;
        Ok(())
    }

    fn finish(&mut self, schema: &SchemaRef, is_deep: bool) -> Result<RecordBatch, ArrowError> {
        let (longs, integers, texts, flags) = if is_deep { (3, 3, 4, 1) } else { (6, 7, 2, 3) };
        let mut arrays: Vec<ArrayRef> = vec![Arc::new(self.file.finish())];
        arrays
            .extend(self.longs.iter_mut().take(longs).map(|builder| Arc::new(builder.finish()) as ArrayRef));
        arrays.extend(
            self.integers.iter_mut().take(integers).map(|builder| Arc::new(builder.finish()) as ArrayRef),
        );
        arrays
            .extend(self.texts.iter_mut().take(texts).map(|builder| Arc::new(builder.finish()) as ArrayRef));
        arrays.push(Arc::new(self.crc.finish()));
        arrays
            .extend(self.flags.iter_mut().take(flags).map(|builder| Arc::new(builder.finish()) as ArrayRef));
        if is_deep {
            arrays.push(Arc::new(self.header_keys.finish()));
        }
        RecordBatch::try_new(Arc::clone(schema), arrays)
    }
}
