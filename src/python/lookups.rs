//! The answers of many look-ups as columns, made as they are found.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int32Array, Int64Array};
use arrow_buffer::NullBuffer;

use crate::error::Result;
use crate::log::Log;
use crate::types::{Location, TimestampOffset};

/// The columns of `locate_many`.
pub(super) struct Located {
    is_answered: Vec<bool>,
    segment: Vec<i64>,
    batch_base_offset: Vec<i64>,
    position: Vec<i64>,
    size: Vec<i32>,
}

impl Located {
    pub(super) fn read(log: &Log, offsets: &[i64]) -> Result<Self> {
        let rows = offsets.len();
        let mut located = Self {
            is_answered: Vec::with_capacity(rows),
            segment: Vec::with_capacity(rows),
            batch_base_offset: Vec::with_capacity(rows),
            position: Vec::with_capacity(rows),
            size: Vec::with_capacity(rows),
        };
        let nothing = Location { segment: 0, batch_base_offset: 0, position: 0, size: 0 };
        log.locate_each(offsets, |answer| {
            let Location { segment, batch_base_offset, position, size } = answer.unwrap_or(nothing);
            located.is_answered.push(answer.is_some());
            located.segment.push(segment);
            located.batch_base_offset.push(batch_base_offset);
            located.position.push(position.cast_signed());
            // a batch's length is an i32 in the format
            located.size.push(size.cast_signed());
        })?;
        Ok(located)
    }

    pub(super) fn into_columns(self) -> [(&'static str, ArrayRef); 4] {
        let nulls = nulls(self.is_answered);
        let long = |values: Vec<i64>| Arc::new(Int64Array::new(values.into(), nulls.clone())) as ArrayRef;
        [
            ("segment", long(self.segment)),
            ("batch_base_offset", long(self.batch_base_offset)),
            ("position", long(self.position)),
            ("size", Arc::new(Int32Array::new(self.size.into(), nulls.clone()))),
        ]
    }
}

/// The columns of `offsets_for_times`.
pub(super) struct Timed {
    is_answered: Vec<bool>,
    timestamp: Vec<i64>,
    offset: Vec<i64>,
}

impl Timed {
    pub(super) fn read(log: &Log, timestamps: &[i64]) -> Result<Self> {
        let rows = timestamps.len();
        let mut timed = Self {
            is_answered: Vec::with_capacity(rows),
            timestamp: Vec::with_capacity(rows),
            offset: Vec::with_capacity(rows),
        };
        log.time_each(timestamps, |answer| {
            let TimestampOffset { timestamp, offset } =
                answer.unwrap_or(TimestampOffset { timestamp: 0, offset: 0 });
            timed.is_answered.push(answer.is_some());
            timed.timestamp.push(timestamp);
            timed.offset.push(offset);
        })?;
        Ok(timed)
    }

    pub(super) fn into_columns(self) -> [(&'static str, ArrayRef); 2] {
        let nulls = nulls(self.is_answered);
        let long = |values: Vec<i64>| Arc::new(Int64Array::new(values.into(), nulls.clone())) as ArrayRef;
        [("timestamp", long(self.timestamp)), ("offset", long(self.offset))]
    }
}

/// What is not answered is null.
fn nulls(is_answered: Vec<bool>) -> Option<NullBuffer> {
    is_answered.contains(&false).then(|| NullBuffer::from(is_answered))
}
