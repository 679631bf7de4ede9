//! `Log`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use pyo3::prelude::*;

use super::arguments::{self, Time};
use super::enter::enter;
use super::handle::{LogHandle, log_options};
use super::lookups::{Located, Timed};
use super::results::{PyLocation, PyOffsetGap, PySplit, PyTimestampOffset};
use super::scan::{PyRecords, PyScan, Source};
use super::segment::PySegments;
use super::{error, exchange, targets};
use crate::arrow::{Column, ReaderOptions};
use crate::error::{Error, Result};
use crate::log::{Log, LogOptions, ScanOptions, Split};

/// A partition directory, opened for reading.
#[pyclass(frozen, module = "cordwood", name = "Log")]
pub(super) struct PyLog {
    handle: Arc<LogHandle>,
}

impl PyLog {
    pub(super) fn of(log: Log) -> Self {
        Self { handle: Arc::new(LogHandle::new(log)) }
    }

    pub(super) fn ask<T: Send>(
        &self,
        py: Python<'_>,
        question: impl FnOnce(Log) -> Result<T> + Send,
    ) -> PyResult<T> {
        enter(py, || question(self.handle.log()?))
    }
}

#[pymethods]
impl PyLog {
    #[new]
    #[pyo3(signature = (path, *, io="auto", log_start_offset=None, topic=None, partition=None, max_open_files=256))]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        io: &str,
        log_start_offset: Option<i64>,
        topic: Option<String>,
        partition: Option<i32>,
        max_open_files: i64,
    ) -> PyResult<Self> {
        let options = log_options(py, io, max_open_files)?;
        let options = LogOptions { log_start_offset, topic, partition, ..options };
        enter(py, || Log::open(path, options)).map(Self::of)
    }

    #[getter]
    fn path(&self) -> OsString {
        self.handle.path().as_os_str().to_owned()
    }

    #[getter]
    fn topic(&self, py: Python<'_>) -> PyResult<Option<String>> {
        self.ask(py, |log| Ok(log.topic().map(str::to_owned)))
    }

    #[getter]
    fn partition(&self, py: Python<'_>) -> PyResult<Option<i32>> {
        self.ask(py, |log| Ok(log.partition()))
    }

    #[getter]
    fn log_start_offset(&self, py: Python<'_>) -> PyResult<i64> {
        self.ask(py, |log| Ok(log.log_start_offset()))
    }

    #[getter]
    fn log_end_offset(&self, py: Python<'_>) -> PyResult<i64> {
        self.ask(py, |log| log.log_end_offset())
    }

    #[getter]
    fn last_stable_offset(&self, py: Python<'_>) -> PyResult<i64> {
        self.ask(py, |log| log.last_stable_offset())
    }

    #[getter]
    fn topic_id(&self, py: Python<'_>) -> PyResult<Option<String>> {
        self.ask(py, |log| Ok(log.topic_id().map(|id| id.to_string())))
    }

    #[getter]
    fn size(&self, py: Python<'_>) -> PyResult<u64> {
        self.ask(py, |log| log.size())
    }

    #[getter]
    fn segments(&self) -> PySegments {
        PySegments::of(&self.handle)
    }

    #[getter]
    fn warnings(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        self.ask(py, |log| match log.log_end_offset() {
            Err(interrupted @ Error::Interrupted(_)) => Err(interrupted),
            _ => Ok(log.warnings()),
        })
    }

    #[getter]
    fn is_compacted(&self, py: Python<'_>) -> PyResult<bool> {
        self.ask(py, |log| log.is_compacted())
    }

    #[pyo3(signature = (start_offset=None, end_offset=None))]
    fn offset_gaps(
        &self,
        py: Python<'_>,
        start_offset: Option<i64>,
        end_offset: Option<i64>,
    ) -> PyResult<Vec<PyOffsetGap>> {
        let offsets = start_offset.unwrap_or(0)..end_offset.unwrap_or(i64::MAX);
        Ok(self.ask(py, |log| log.offset_gaps(offsets))?.into_iter().map(Into::into).collect())
    }

    fn refresh(&self, py: Python<'_>) -> PyResult<Self> {
        self.ask(py, |log| log.refresh()).map(Self::of)
    }

    fn locate(&self, py: Python<'_>, offset: i64) -> PyResult<Option<PyLocation>> {
        Ok(self.ask(py, |log| log.locate(offset))?.map(Into::into))
    }

    fn locate_many<'py>(&self, py: Python<'py>, offsets: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let offsets = targets::offsets(offsets)?;
        let located = self.ask(py, |log| Located::read(&log, &offsets))?;
        table(py, located.into_columns())
    }

    fn offset_for_time(&self, py: Python<'_>, timestamp: Time) -> PyResult<Option<PyTimestampOffset>> {
        Ok(self.ask(py, |log| log.offset_for_time(timestamp.0))?.map(Into::into))
    }

    fn offsets_for_times<'py>(
        &self,
        py: Python<'py>,
        timestamps: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let timestamps = targets::times(timestamps)?;
        let timed = self.ask(py, |log| Timed::read(&log, &timestamps))?;
        table(py, timed.into_columns())
    }

    #[pyo3(signature = (*, start_offset=None, end_offset=None, start_time=None, end_time=None, columns=None,
        isolation_level="read_uncommitted", include_control=false, on_damage="raise", header_keys="utf8",
        timestamp_unit="ms", max_rows=65_536, max_bytes=16_777_216, split=None, threads=1))]
    #[expect(clippy::too_many_arguments, reason = "they are Python's keywords")]
    fn scan(
        &self,
        py: Python<'_>,
        start_offset: Option<i64>,
        end_offset: Option<i64>,
        start_time: Option<Time>,
        end_time: Option<Time>,
        columns: Option<Vec<String>>,
        isolation_level: &str,
        include_control: bool,
        on_damage: &str,
        header_keys: &str,
        timestamp_unit: &str,
        max_rows: i64,
        max_bytes: i64,
        split: Option<&Bound<'_, PySplit>>,
        threads: i64,
    ) -> PyResult<PyScan> {
        let mut ranges = arguments::ranges(start_offset, end_offset, start_time, end_time);
        let split = split.map(|split| Split::from(split.get().clone()));
        if let Some(split) = &split {
            ranges = split.ranges().intersection(ranges);
        }
        let scan = ScanOptions {
            ranges,
            isolation_level: arguments::isolation_level(py, isolation_level)?,
            include_control,
            on_damage: arguments::on_damage(py, on_damage)?,
            batches_only: false,
        };
        let options = ReaderOptions {
            scan,
            columns: columns.map_or(Ok(Column::DEFAULT.to_vec()), |names| arguments::columns(py, &names))?,
            header_keys: arguments::header_keys(py, header_keys)?,
            timestamp_unit: arguments::timestamp_unit(py, timestamp_unit)?,
            max_rows: arguments::positive(py, "max_rows", max_rows)?,
            max_bytes: arguments::positive(py, "max_bytes", max_bytes)?,
            threads: arguments::positive(py, "threads", threads)?,
        };
        self.ask(py, |log| log.check(&options.scan.ranges))?;
        let handle = Arc::clone(&self.handle);
        let source = split.map_or(Source::Log(Arc::clone(&handle)), |split| Source::Split(handle, split));
        Ok(PyScan::new(source, options))
    }

    #[pyo3(signature = (*, start_offset=None, end_offset=None, start_time=None, end_time=None,
        isolation_level="read_uncommitted", include_control=false, on_damage="raise"))]
    #[expect(clippy::too_many_arguments, reason = "they are Python's keywords")]
    fn records(
        &self,
        py: Python<'_>,
        start_offset: Option<i64>,
        end_offset: Option<i64>,
        start_time: Option<Time>,
        end_time: Option<Time>,
        isolation_level: &str,
        include_control: bool,
        on_damage: &str,
    ) -> PyResult<PyRecords> {
        let options = ScanOptions {
            ranges: arguments::ranges(start_offset, end_offset, start_time, end_time),
            isolation_level: arguments::isolation_level(py, isolation_level)?,
            include_control,
            on_damage: arguments::on_damage(py, on_damage)?,
            batches_only: false,
        };
        self.ask(py, |log| log.scan(options)).map(PyRecords::new)
    }

    #[pyo3(signature = (*, start_offset=None, end_offset=None, start_time=None, end_time=None, on_damage="raise"))]
    fn batches(
        &self,
        py: Python<'_>,
        start_offset: Option<i64>,
        end_offset: Option<i64>,
        start_time: Option<Time>,
        end_time: Option<Time>,
        on_damage: &str,
    ) -> PyResult<PyScan> {
        let scan = ScanOptions {
            ranges: arguments::ranges(start_offset, end_offset, start_time, end_time),
            on_damage: arguments::on_damage(py, on_damage)?,
            batches_only: true,
            ..ScanOptions::default()
        };
        self.ask(py, |log| log.check(&scan.ranges))?;
        let options = ReaderOptions { scan, ..ReaderOptions::default() };
        Ok(PyScan::new(Source::Log(Arc::clone(&self.handle)), options))
    }

    #[pyo3(signature = (max_bytes, *, start_offset=None, end_offset=None, start_time=None, end_time=None,
        isolation_level="read_uncommitted"))]
    #[expect(clippy::too_many_arguments, reason = "they are Python's keywords")]
    fn plan(
        &self,
        py: Python<'_>,
        max_bytes: i64,
        start_offset: Option<i64>,
        end_offset: Option<i64>,
        start_time: Option<Time>,
        end_time: Option<Time>,
        isolation_level: &str,
    ) -> PyResult<Vec<PySplit>> {
        let max_bytes = arguments::positive(py, "max_bytes", max_bytes)? as u64;
        let options = ScanOptions {
            ranges: arguments::ranges(start_offset, end_offset, start_time, end_time),
            isolation_level: arguments::isolation_level(py, isolation_level)?,
            ..ScanOptions::default()
        };
        Ok(self.ask(py, |log| log.plan(max_bytes, &options))?.into_iter().map(Into::into).collect())
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.handle.recipe(py)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        self.ask(py, |log| {
            let (path, start) = (log.path().display(), log.log_start_offset());
            Ok(match log.log_end_offset() {
                Ok(end) => format!("<Log {path} offsets {start} to {end} (exclusive)>"),
                Err(error) => format!("<Log {path} offsets {start} on: {error}>"),
            })
        })
    }
}

fn table<'py, const N: usize>(
    py: Python<'py>,
    columns: [(&str, ArrayRef); N],
) -> PyResult<Bound<'py, PyAny>> {
    let columns = columns.into_iter().map(|(name, column)| (name, column, true));
    let batch = RecordBatch::try_from_iter_with_nullable(columns).map_err(|wrong| {
        error::to_python(py, Error::config("columns", "columns of one length", wrong.to_string()))
    })?;
    exchange::table(py, batch.schema(), vec![batch])
}
