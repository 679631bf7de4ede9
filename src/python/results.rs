//! What calls give back: frozen values with attributes.

use std::ffi::OsString;

use pyo3::prelude::*;

use super::arguments;
use crate::index::AbortedTransaction;
use crate::log::{DamagedRange, OffsetGap, ScanStats};
use crate::types::{Location, OffsetPosition, TimestampOffset};

#[doc = stub_doc!(Location)]
#[pyclass(frozen, eq, hash, get_all, module = "cordwood", name = "Location")]
#[derive(PartialEq, Eq, Hash)]
pub(super) struct PyLocation {
    #[doc = stub_doc!(Location.segment_base_offset)]
    segment_base_offset: i64,
    #[doc = stub_doc!(Location.batch_base_offset)]
    batch_base_offset: i64,
    #[doc = stub_doc!(Location.position)]
    position: u64,
    #[doc = stub_doc!(Location.size)]
    size: u32,
}

impl From<Location> for PyLocation {
    fn from(at: Location) -> Self {
        let Location { segment_base_offset, batch_base_offset, position, size } = at;
        Self { segment_base_offset, batch_base_offset, position, size }
    }
}

#[pymethods]
impl PyLocation {
    fn __repr__(&self) -> String {
        let Self { segment_base_offset, batch_base_offset, position, size } = self;
        format!(
            "Location(segment_base_offset={segment_base_offset}, batch_base_offset={batch_base_offset}, position={position}, size={size})"
        )
    }
}

#[doc = stub_doc!(OffsetGap)]
#[pyclass(frozen, eq, hash, get_all, module = "cordwood", name = "OffsetGap")]
#[derive(PartialEq, Eq, Hash)]
#[expect(clippy::struct_field_names, reason = "the names of Python's attributes")]
pub(super) struct PyOffsetGap {
    #[doc = stub_doc!(OffsetGap.start_offset)]
    start_offset: i64,
    #[doc = stub_doc!(OffsetGap.end_offset)]
    end_offset: i64,
    #[doc = stub_doc!(OffsetGap.segment_base_offset)]
    segment_base_offset: i64,
    #[doc = stub_doc!(OffsetGap.next_base_offset)]
    next_base_offset: i64,
}

impl From<OffsetGap> for PyOffsetGap {
    fn from(gap: OffsetGap) -> Self {
        let OffsetGap { start_offset, end_offset, segment_base_offset, next_base_offset } = gap;
        Self { start_offset, end_offset, segment_base_offset, next_base_offset }
    }
}

#[pymethods]
impl PyOffsetGap {
    fn __repr__(&self) -> String {
        let Self { start_offset, end_offset, segment_base_offset, next_base_offset } = self;
        format!(
            "OffsetGap(start_offset={start_offset}, end_offset={end_offset}, \
             segment_base_offset={segment_base_offset}, next_base_offset={next_base_offset})"
        )
    }
}

#[doc = stub_doc!(TimestampOffset)]
#[pyclass(frozen, eq, hash, get_all, module = "cordwood", name = "TimestampOffset")]
#[derive(PartialEq, Eq, Hash)]
pub(super) struct PyTimestampOffset {
    #[doc = stub_doc!(TimestampOffset.timestamp)]
    timestamp: i64,
    #[doc = stub_doc!(TimestampOffset.offset)]
    offset: i64,
}

impl From<TimestampOffset> for PyTimestampOffset {
    fn from(TimestampOffset { timestamp, offset }: TimestampOffset) -> Self {
        Self { timestamp, offset }
    }
}

#[pymethods]
impl PyTimestampOffset {
    fn __repr__(&self) -> String {
        format!("TimestampOffset(timestamp={}, offset={})", self.timestamp, self.offset)
    }
}

#[doc = stub_doc!(OffsetPosition)]
#[pyclass(frozen, eq, hash, get_all, module = "cordwood", name = "OffsetPosition")]
#[derive(PartialEq, Eq, Hash)]
pub(super) struct PyOffsetPosition {
    #[doc = stub_doc!(OffsetPosition.offset)]
    offset: i64,
    #[doc = stub_doc!(OffsetPosition.position)]
    position: i32,
}

impl From<OffsetPosition> for PyOffsetPosition {
    fn from(OffsetPosition { offset, position }: OffsetPosition) -> Self {
        Self { offset, position }
    }
}

#[pymethods]
impl PyOffsetPosition {
    fn __repr__(&self) -> String {
        format!("OffsetPosition(offset={}, position={})", self.offset, self.position)
    }
}

#[doc = stub_doc!(AbortedTransaction)]
#[pyclass(frozen, eq, hash, get_all, module = "cordwood", name = "AbortedTransaction")]
#[derive(PartialEq, Eq, Hash)]
pub(super) struct PyAbortedTransaction {
    #[doc = stub_doc!(AbortedTransaction.version)]
    version: i16,
    #[doc = stub_doc!(AbortedTransaction.producer_id)]
    producer_id: i64,
    #[doc = stub_doc!(AbortedTransaction.first_offset)]
    first_offset: i64,
    #[doc = stub_doc!(AbortedTransaction.last_offset)]
    last_offset: i64,
    #[doc = stub_doc!(AbortedTransaction.last_stable_offset)]
    last_stable_offset: i64,
}

impl From<AbortedTransaction> for PyAbortedTransaction {
    fn from(aborted: AbortedTransaction) -> Self {
        let AbortedTransaction { producer_id, first_offset, last_offset, last_stable_offset } = aborted;
        // the reader takes no other version
        Self { version: 0, producer_id, first_offset, last_offset, last_stable_offset }
    }
}

impl From<&PyAbortedTransaction> for AbortedTransaction {
    fn from(aborted: &PyAbortedTransaction) -> Self {
        let PyAbortedTransaction { version: _, producer_id, first_offset, last_offset, last_stable_offset } =
            *aborted;
        Self { producer_id, first_offset, last_offset, last_stable_offset }
    }
}

#[pymethods]
impl PyAbortedTransaction {
    #[new]
    #[pyo3(signature = (*, producer_id, first_offset, last_offset, last_stable_offset))]
    fn new(
        producer_id: &Bound<'_, PyAny>,
        first_offset: &Bound<'_, PyAny>,
        last_offset: &Bound<'_, PyAny>,
        last_stable_offset: &Bound<'_, PyAny>,
    ) -> PyResult<Self> {
        aborted_transaction(producer_id, first_offset, last_offset, last_stable_offset).map(Into::into)
    }

    fn __repr__(&self) -> String {
        format!(
            "AbortedTransaction(producer_id={}, first_offset={}, last_offset={}, last_stable_offset={})",
            self.producer_id, self.first_offset, self.last_offset, self.last_stable_offset
        )
    }
}

/// An aborted transaction of its numbers.
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

#[doc = stub_doc!(DamagedRange)]
#[pyclass(frozen, eq, hash, get_all, module = "cordwood", name = "DamagedRange")]
#[derive(PartialEq, Eq, Hash)]
pub(super) struct PyDamagedRange {
    #[doc = stub_doc!(DamagedRange.file)]
    file: OsString,
    #[doc = stub_doc!(DamagedRange.start_position)]
    start_position: u64,
    #[doc = stub_doc!(DamagedRange.end_position)]
    end_position: u64,
    #[doc = stub_doc!(DamagedRange.start_offset)]
    start_offset: i64,
    #[doc = stub_doc!(DamagedRange.end_offset)]
    end_offset: Option<i64>,
    #[doc = stub_doc!(DamagedRange.reason)]
    reason: String,
}

impl From<DamagedRange> for PyDamagedRange {
    fn from(gap: DamagedRange) -> Self {
        let DamagedRange { file, start_position, end_position, start_offset, end_offset, reason } = gap;
        Self { file: file.into(), start_position, end_position, start_offset, end_offset, reason }
    }
}

#[pymethods]
impl PyDamagedRange {
    #[doc = stub_doc!(DamagedRange.is_tail)]
    #[getter]
    fn is_tail(&self) -> bool {
        self.end_offset.is_none()
    }

    fn __repr__(&self) -> String {
        let end = self.end_offset.map_or_else(|| "None".to_owned(), |end| end.to_string());
        format!(
            "DamagedRange(file={:?}, start_position={}, end_position={}, start_offset={}, end_offset={end}, reason={:?})",
            self.file.to_string_lossy(),
            self.start_position,
            self.end_position,
            self.start_offset,
            self.reason
        )
    }
}

#[doc = stub_doc!(ScanStats)]
#[pyclass(frozen, eq, hash, get_all, module = "cordwood", name = "ScanStats")]
#[derive(PartialEq, Eq, Hash)]
pub(super) struct PyScanStats {
    #[doc = stub_doc!(ScanStats.records)]
    records: u64,
    #[doc = stub_doc!(ScanStats.batches)]
    batches: u64,
    #[doc = stub_doc!(ScanStats.batches_skipped)]
    batches_skipped: u64,
    #[doc = stub_doc!(ScanStats.batches_decompressed)]
    batches_decompressed: u64,
    #[doc = stub_doc!(ScanStats.segments_opened)]
    segments_opened: u64,
    #[doc = stub_doc!(ScanStats.bytes_read)]
    bytes_read: u64,
    #[doc = stub_doc!(ScanStats.offset_gaps)]
    offset_gaps: u64,
}

impl From<ScanStats> for PyScanStats {
    fn from(stats: ScanStats) -> Self {
        Self {
            records: stats.records,
            batches: stats.batches,
            batches_skipped: stats.batches_skipped,
            batches_decompressed: stats.batches_decompressed,
            segments_opened: stats.segments_opened,
            bytes_read: stats.bytes_read,
            offset_gaps: stats.offset_gaps,
        }
    }
}

#[pymethods]
impl PyScanStats {
    fn __repr__(&self) -> String {
        format!(
            "ScanStats(records={}, batches={}, batches_skipped={}, batches_decompressed={}, segments_opened={}, \
             bytes_read={}, offset_gaps={})",
            self.records,
            self.batches,
            self.batches_skipped,
            self.batches_decompressed,
            self.segments_opened,
            self.bytes_read,
            self.offset_gaps
        )
    }
}
