//! The answers of many look-ups as columns: a row for each target, null if there is no answer.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int32Array, Int64Array};
use arrow_buffer::{BooleanBufferBuilder, NullBuffer};

use crate::error::Result;
use crate::log::Log;
use crate::types::{Location, TimestampOffset};

/// The columns of `locate_many`.
pub(crate) struct Located {
    /// The rows without an answer.
    unanswered: Vec<usize>,
    segment_base_offset: Vec<i64>,
    batch_base_offset: Vec<i64>,
    position: Vec<i64>,
    size: Vec<i32>,
}

impl Located {
    pub(crate) fn read(log: &Log, offsets: &[i64]) -> Result<Self> {
        let rows = offsets.len();
        let mut located = Self {
            unanswered: Vec::new(),
            segment_base_offset: Vec::with_capacity(rows),
            batch_base_offset: Vec::with_capacity(rows),
            position: Vec::with_capacity(rows),
            size: Vec::with_capacity(rows),
        };
        let nothing = Location { segment_base_offset: 0, batch_base_offset: 0, position: 0, size: 0 };
        log.locate_each(offsets, |answer| {
            let Location { segment_base_offset, batch_base_offset, position, size } =
                answer.unwrap_or(nothing);
            if answer.is_none() {
                located.unanswered.push(located.segment_base_offset.len());
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
        let nulls = nulls(&self.unanswered, self.segment_base_offset.len());
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
    /// The rows without an answer.
    unanswered: Vec<usize>,
    timestamp: Vec<i64>,
    offset: Vec<i64>,
}

impl Timed {
    pub(crate) fn read(log: &Log, timestamps: &[i64]) -> Result<Self> {
        let rows = timestamps.len();
        let mut timed = Self {
            unanswered: Vec::new(),
            timestamp: Vec::with_capacity(rows),
            offset: Vec::with_capacity(rows),
        };
        log.time_each(timestamps, |answer| {
            let TimestampOffset { timestamp, offset } =
                answer.unwrap_or(TimestampOffset { timestamp: 0, offset: 0 });
            if answer.is_none() {
                timed.unanswered.push(timed.timestamp.len());
            }
            timed.timestamp.push(timestamp);
            timed.offset.push(offset);
        })?;
        Ok(timed)
    }

    pub(crate) fn into_columns(self) -> [(&'static str, ArrayRef); 2] {
        let nulls = nulls(&self.unanswered, self.timestamp.len());
        let long = |values: Vec<i64>| Arc::new(Int64Array::new(values.into(), nulls.clone())) as ArrayRef;
        [("timestamp", long(self.timestamp)), ("offset", long(self.offset))]
    }
}

/// The rows without an answer are null.
fn nulls(unanswered: &[usize], rows: usize) -> Option<NullBuffer> {
    if unanswered.is_empty() {
        return None;
    }
    let mut is_answered = BooleanBufferBuilder::new(rows);
    is_answered.append_n(rows, true);
    for row in unanswered {
        is_answered.set_bit(*row, false);
    }
    Some(is_answered.finish().into())
}
