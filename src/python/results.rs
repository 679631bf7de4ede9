//! The results of look-ups and scans.

use std::ffi::OsString;

use pyo3::prelude::*;

use super::arguments;
use super::value_class::value_class;
use crate::index::AbortedTransaction;
use crate::log::{DamagedRange, OffsetGap, ScanStats};
use crate::types::{Location, OffsetPosition, TimestampOffset};

value_class! {
    "Location", PyLocation(Location),
    repr { segment_base_offset: i64, batch_base_offset: i64, position: u64, size: u32 }
}

value_class! {
    "OffsetGap", PyOffsetGap(OffsetGap),
    repr { start_offset: i64, end_offset: i64, segment_base_offset: i64, next_base_offset: i64 }
}

value_class! {
    "TimestampOffset", PyTimestampOffset(TimestampOffset),
    repr { timestamp: i64, offset: i64 }
}

value_class! {
    "OffsetPosition", PyOffsetPosition(OffsetPosition),
    repr { offset: i64, position: i32 }
}

value_class! {
    "DamagedRange", PyDamagedRange(DamagedRange),
    repr {
        file: OsString = |range| range.file.clone().into(),
        start_position: u64,
        end_position: u64,
        start_offset: i64,
        end_offset: Option<i64>,
        reason: String,
    }
    more { is_tail: bool = |range| range.end_offset.is_none() }
}

value_class! {
    "ScanStats", PyScanStats(ScanStats),
    repr {
        records: u64,
        batches: u64,
        batches_skipped: u64,
        batches_decompressed: u64,
        segments_opened: u64,
        bytes_read: u64,
        offset_gaps: u64,
        lost_gaps: u64,
    }
}

value_class! {
    "AbortedTransaction", PyAbortedTransaction(AbortedTransaction),
    repr { producer_id: i64, first_offset: i64, last_offset: i64, last_stable_offset: i64 }
    // an index with another version is an error
    more { version: i16 = |_| 0 }
    methods {
        #[new]
        #[pyo3(signature = (*, producer_id, first_offset, last_offset, last_stable_offset))]
        fn new(
            producer_id: &Bound<'_, PyAny>,
            first_offset: &Bound<'_, PyAny>,
            last_offset: &Bound<'_, PyAny>,
            last_stable_offset: &Bound<'_, PyAny>,
        ) -> PyResult<Self> {
            aborted_transaction(producer_id, first_offset, last_offset, last_stable_offset).map(Self)
        }
    }
}

/// The aborted transaction with these numbers.
pub(super) fn aborted_transaction(
    producer_id: &Bound<'_, PyAny>,
    first_offset: &Bound<'_, PyAny>,
    last_offset: &Bound<'_, PyAny>,
    last_stable_offset: &Bound<'_, PyAny>,
) -> PyResult<AbortedTransaction> {
    Ok(AbortedTransaction {
        producer_id: arguments::whole("producer_id", PRODUCER_ID, producer_id)?,
        first_offset: arguments::offset("first_offset", first_offset)?,
        last_offset: arguments::offset("last_offset", last_offset)?,
        last_stable_offset: arguments::offset("last_stable_offset", last_stable_offset)?,
    })
}

pub(super) const PRODUCER_ID: &str = "a producer id, a whole number within 64 bits";
