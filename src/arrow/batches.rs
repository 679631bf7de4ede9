//! The headers of batches as columns: one row per batch.

use std::sync::Arc;

use arrow_array::builder::{BooleanBuilder, PrimitiveBuilder, StringBuilder};
use arrow_array::types::{Int8Type, Int16Type, Int32Type, Int64Type, UInt32Type};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef, TimeUnit};

use super::columns::{codec_name, timestamp, timestamps};
use super::damage::{DamageBuilder, damage_field};
use super::timestamp_type;
use crate::error::Result;
use crate::log::DamagedRange;
use crate::segment::Batch;

/// The schema: the header fields under Kafka's names, the position of the batch, and with `reports` the
/// column `error`.
pub(super) fn schema(reports: bool) -> SchemaRef {
    let time = timestamp_type(TimeUnit::Millisecond);
    let mut fields: Vec<_> = [
        ("base_offset", DataType::Int64, false),
        ("last_offset", DataType::Int64, false),
        ("count", DataType::Int32, true),
        ("codec", DataType::Utf8, false),
        ("timestamp_type", DataType::Int8, false),
        ("base_timestamp", time.clone(), true),
        ("max_timestamp", time.clone(), true),
        ("leader_epoch", DataType::Int32, false),
        ("producer_id", DataType::Int64, false),
        ("producer_epoch", DataType::Int16, false),
        ("base_sequence", DataType::Int32, false),
        ("last_sequence", DataType::Int32, false),
        ("is_transactional", DataType::Boolean, false),
        ("is_control", DataType::Boolean, false),
        ("delete_horizon", time, true),
        ("crc", DataType::UInt32, false),
        ("magic", DataType::Int8, false),
        ("segment_base_offset", DataType::Int64, false),
        ("position", DataType::Int64, false),
        ("size", DataType::Int32, false),
    ]
    .into_iter()
    .map(|(name, data_type, nullable)| Field::new(name, data_type, nullable || reports))
    .collect();
    if reports {
        fields.push(damage_field());
    }
    Arc::new(Schema::new(fields))
}

/// Columns of batch headers under construction. The row of a damaged range has its position and the error;
/// all else is null.
#[derive(Debug, Default)]
pub(super) struct BatchColumns {
    longs: [PrimitiveBuilder<Int64Type>; 8],
    ints: [PrimitiveBuilder<Int32Type>; 5],
    producer_epoch: PrimitiveBuilder<Int16Type>,
    bytes: [PrimitiveBuilder<Int8Type>; 2],
    flags: [BooleanBuilder; 2],
    crc: PrimitiveBuilder<UInt32Type>,
    codec: StringBuilder,
    error: DamageBuilder,
    rows: usize,
}

impl BatchColumns {
    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    pub(super) fn append(&mut self, batch: &Batch, segment: i64) -> Result<()> {
        let header = &batch.header;
        let time =
            |time: Option<i64>| timestamp(time.unwrap_or(-1), TimeUnit::Millisecond, header.base_offset);
        let size = i32::try_from(header.size).ok();
        self.row(
            [
                Some(header.base_offset),
                Some(header.last_offset),
                time(header.base_timestamp)?,
                time(Some(header.max_timestamp))?,
                Some(header.producer_id),
                time(header.delete_horizon())?,
                Some(segment),
                Some(batch.position.cast_signed()),
            ],
            [
                header.count,
                Some(header.leader_epoch),
                Some(header.base_sequence),
                Some(header.last_sequence()),
                size,
            ],
        );
        self.producer_epoch.append_value(header.producer_epoch);
        append(&mut self.bytes, [Some(header.timestamp_type().id()), Some(header.magic.cast_signed())]);
        for (builder, flag) in self.flags.iter_mut().zip([header.is_transactional(), header.is_control()]) {
            builder.append_value(flag);
        }
        self.crc.append_value(header.crc);
        self.codec.append_value(codec_name(header));
        self.error.append_nulls(1);
        Ok(())
    }

    pub(super) fn append_damaged_range(&mut self, range: &DamagedRange, segment: i64) {
        let position = Some(range.start_position.cast_signed());
        self.row(
            [Some(range.start_offset), None, None, None, None, None, Some(segment), position],
            [None; 5],
        );
        self.producer_epoch.append_null();
        append(&mut self.bytes, [None; 2]);
        self.flags.iter_mut().for_each(BooleanBuilder::append_null);
        self.crc.append_null();
        self.codec.append_null();
        self.error.append(range);
    }

    fn row(&mut self, longs: [Option<i64>; 8], ints: [Option<i32>; 5]) {
        append(&mut self.longs, longs);
        append(&mut self.ints, ints);
        self.rows += 1;
    }

    /// Returns the rows so far and empties the columns.
    pub(super) fn finish(&mut self, schema: &SchemaRef) -> Result<RecordBatch, ArrowError> {
        self.rows = 0;
        let time =
            |builder: &mut PrimitiveBuilder<Int64Type>| timestamps(&builder.finish(), TimeUnit::Millisecond);
        let [base, last, base_time, max_time, producer, horizon, segment, position] = &mut self.longs;
        let [count, epoch, base_sequence, last_sequence, size] = &mut self.ints;
        let [timestamp_type, magic] = &mut self.bytes;
        let [transactional, control] = &mut self.flags;
        let mut arrays: Vec<ArrayRef> = vec![
            Arc::new(base.finish()),
            Arc::new(last.finish()),
            Arc::new(count.finish()),
            Arc::new(self.codec.finish()),
            Arc::new(timestamp_type.finish()),
            time(base_time),
            time(max_time),
            Arc::new(epoch.finish()),
            Arc::new(producer.finish()),
            Arc::new(self.producer_epoch.finish()),
            Arc::new(base_sequence.finish()),
            Arc::new(last_sequence.finish()),
            Arc::new(transactional.finish()),
            Arc::new(control.finish()),
            time(horizon),
            Arc::new(self.crc.finish()),
            Arc::new(magic.finish()),
            Arc::new(segment.finish()),
            Arc::new(position.finish()),
            Arc::new(size.finish()),
        ];
        let errors = self.error.finish()?;
        if schema.fields().len() > arrays.len() {
            arrays.push(errors);
        }
        RecordBatch::try_new(Arc::clone(schema), arrays)
    }
}

fn append<T: arrow_array::ArrowPrimitiveType, const N: usize>(
    builders: &mut [PrimitiveBuilder<T>; N],
    row: [Option<T::Native>; N],
) {
    for (builder, value) in builders.iter_mut().zip(row) {
        builder.append_option(value);
    }
}
