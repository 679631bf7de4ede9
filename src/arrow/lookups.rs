//! The results of many look-ups as columns: a row for each target, null if there is no result.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int32Array, Int64Array, RecordBatch};
use arrow_buffer::{BooleanBufferBuilder, NullBuffer};

use crate::error::{Error, Result};
use crate::log::Log;
use crate::types::{Location, TimestampOffset};

/// The columns of `locate_many`.
#[derive(Debug)]
pub struct Located {
    /// The rows without a result.
    missing: Vec<usize>,
    segment_base_offset: Vec<i64>,
    batch_base_offset: Vec<i64>,
    position: Vec<i64>,
    size: Vec<i32>,
}

impl Located {
    /// Looks up offsets.
    ///
    /// # Errors
    /// As [`Log::locate_many`].
    pub fn read(log: &Log, offsets: &[i64]) -> Result<Self> {
        let rows = offsets.len();
        let mut located = Self {
            missing: Vec::new(),
            segment_base_offset: Vec::with_capacity(rows),
            batch_base_offset: Vec::with_capacity(rows),
            position: Vec::with_capacity(rows),
            size: Vec::with_capacity(rows),
        };
        let nothing = Location { segment_base_offset: 0, batch_base_offset: 0, position: 0, size: 0 };
        log.locate_each(offsets, |found| {
            let Location { segment_base_offset, batch_base_offset, position, size } =
                found.unwrap_or(nothing);
            if found.is_none() {
                located.missing.push(located.segment_base_offset.len());
            }
            located.segment_base_offset.push(segment_base_offset);
            located.batch_base_offset.push(batch_base_offset);
            located.position.push(position.cast_signed());
            // a batch's length is an i32 in the format
            located.size.push(size.cast_signed());
        })?;
        Ok(located)
    }

    /// The columns as one batch, with a null in each row without a result.
    ///
    /// # Errors
    /// [`Error::Config`], which does not happen: the columns have one length.
    pub fn into_batch(self) -> Result<RecordBatch> {
        let nulls = nulls(&self.missing, self.segment_base_offset.len());
        let long = |values: Vec<i64>| Arc::new(Int64Array::new(values.into(), nulls.clone())) as ArrayRef;
        batch([
            ("segment_base_offset", long(self.segment_base_offset)),
            ("batch_base_offset", long(self.batch_base_offset)),
            ("position", long(self.position)),
            ("size", Arc::new(Int32Array::new(self.size.into(), nulls.clone()))),
        ])
    }
}

/// The columns of `offsets_for_times`.
#[derive(Debug)]
pub struct Timed {
    /// The rows without a result.
    missing: Vec<usize>,
    timestamp: Vec<i64>,
    offset: Vec<i64>,
}

impl Timed {
    /// Looks up times.
    ///
    /// # Errors
    /// As [`Log::offsets_for_times`].
    pub fn read(log: &Log, timestamps: &[i64]) -> Result<Self> {
        let rows = timestamps.len();
        let mut timed = Self {
            missing: Vec::new(),
            timestamp: Vec::with_capacity(rows),
            offset: Vec::with_capacity(rows),
        };
        log.time_each(timestamps, |found| {
            let TimestampOffset { timestamp, offset } =
                found.unwrap_or(TimestampOffset { timestamp: 0, offset: 0 });
            if found.is_none() {
                timed.missing.push(timed.timestamp.len());
            }
            timed.timestamp.push(timestamp);
            timed.offset.push(offset);
        })?;
        Ok(timed)
    }

    /// The columns as one batch, with a null in each row without a result.
    ///
    /// # Errors
    /// [`Error::Config`], which does not happen: the columns have one length.
    pub fn into_batch(self) -> Result<RecordBatch> {
        let nulls = nulls(&self.missing, self.timestamp.len());
        let long = |values: Vec<i64>| Arc::new(Int64Array::new(values.into(), nulls.clone())) as ArrayRef;
        batch([("timestamp", long(self.timestamp)), ("offset", long(self.offset))])
    }
}

fn batch<const N: usize>(columns: [(&str, ArrayRef); N]) -> Result<RecordBatch> {
    let columns = columns.into_iter().map(|(name, column)| (name, column, true));
    RecordBatch::try_from_iter_with_nullable(columns)
        .map_err(|error| Error::config("columns", "columns of one length", error.to_string()))
}

/// The rows without a result are null.
fn nulls(missing: &[usize], rows: usize) -> Option<NullBuffer> {
    if missing.is_empty() {
        return None;
    }
    let mut is_valid = BooleanBufferBuilder::new(rows);
    is_valid.append_n(rows, true);
    for row in missing {
        is_valid.set_bit(*row, false);
    }
    Some(is_valid.finish().into())
}
