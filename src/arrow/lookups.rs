//! The results of many look-ups as columns: a row for each target, null if nothing was found.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int32Array, Int64Array};
use arrow_buffer::{BooleanBufferBuilder, NullBuffer};

use crate::error::Result;
use crate::log::Log;
use crate::types::{Location, TimestampOffset};

/// The columns of `locate_many`.
pub(crate) struct Located {
    /// The rows without a result.
    not_found: Vec<usize>,
    segment_base_offset: Vec<i64>,
    batch_base_offset: Vec<i64>,
    position: Vec<i64>,
    size: Vec<i32>,
}

impl Located {
    pub(crate) fn read(log: &Log, offsets: &[i64]) -> Result<Self> {
        let rows = offsets.len();
        let mut located = Self {
            not_found: Vec::new(),
            segment_base_offset: Vec::with_capacity(rows),
            batch_base_offset: Vec::with_capacity(rows),
            position: Vec::with_capacity(rows),
            size: Vec::with_capacity(rows),
        };
        let nothing = Location { segment_base_offset: 0, batch_base_offset: 0, position: 0, size: 0 };
        log.locate_each(offsets, |result| {
            let Location { segment_base_offset, batch_base_offset, position, size } =
                result.unwrap_or(nothing);
            if result.is_none() {
                located.not_found.push(located.segment_base_offset.len());
            }
            located.segment_base_offset.push(segment_base_offset);
            located.batch_base_offset.push(batch_base_offset);
            located.position.push(position.cast_signed());
            // a batch's length is an i32 in the format
            located.size.push(size.cast_signed());
        })?;
        Ok(located)
    }

    pub(crate) fn into_columns(self) -> [(&'static str, ArrayRef); 4] {
        let nulls = nulls(&self.not_found, self.segment_base_offset.len());
        let long = |values: Vec<i64>| Arc::new(Int64Array::new(values.into(), nulls.clone())) as ArrayRef;
        [
            ("segment_base_offset", long(self.segment_base_offset)),
            ("batch_base_offset", long(self.batch_base_offset)),
            ("position", long(self.position)),
            ("size", Arc::new(Int32Array::new(self.size.into(), nulls.clone()))),
        ]
    }
}

/// The columns of `offsets_for_times`.
pub(crate) struct Timed {
    /// The rows without a result.
    not_found: Vec<usize>,
    timestamp: Vec<i64>,
    offset: Vec<i64>,
}

impl Timed {
    pub(crate) fn read(log: &Log, timestamps: &[i64]) -> Result<Self> {
        let rows = timestamps.len();
        let mut timed = Self {
            not_found: Vec::new(),
            timestamp: Vec::with_capacity(rows),
            offset: Vec::with_capacity(rows),
        };
        log.time_each(timestamps, |result| {
            let TimestampOffset { timestamp, offset } =
                result.unwrap_or(TimestampOffset { timestamp: 0, offset: 0 });
            if result.is_none() {
                timed.not_found.push(timed.timestamp.len());
            }
            timed.timestamp.push(timestamp);
            timed.offset.push(offset);
        })?;
        Ok(timed)
    }

    pub(crate) fn into_columns(self) -> [(&'static str, ArrayRef); 2] {
        let nulls = nulls(&self.not_found, self.timestamp.len());
        let long = |values: Vec<i64>| Arc::new(Int64Array::new(values.into(), nulls.clone())) as ArrayRef;
        [("timestamp", long(self.timestamp)), ("offset", long(self.offset))]
    }
}

/// Nulls for the rows without a result.
fn nulls(not_found: &[usize], rows: usize) -> Option<NullBuffer> {
    if not_found.is_empty() {
        return None;
    }
    let mut is_found = BooleanBufferBuilder::new(rows);
    is_found.append_n(rows, true);
    for row in not_found {
        is_found.set_bit(*row, false);
    }
    Some(is_found.finish().into())
}
