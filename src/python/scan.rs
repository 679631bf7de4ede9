//! `Scan`, and what iterating over one or over `Log.records` gives.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arrow_array::RecordBatch;
use arrow_schema::TimeUnit;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};

use super::enter::enter;
use super::handle::{DirHandle, LogHandle};
use super::record::{OwnedRecord, PyRecord};
use super::results::{PyDamagedRange, PyScanStats};
use super::split::PySplit;
use super::{arrow_export, error};
use crate::arrow::{HeaderKeys, Progress, Reader, ReaderOptions, java_string};
use crate::error::Result;
use crate::log::{OnDamage, Scan, ScanStep, Split};
use crate::types::IsolationLevel;

/// What a scan reads.
pub(super) enum Source {
    Log(Arc<LogHandle>),
    /// A split of a log; the ranges of the options are inside it.
    Split(Arc<LogHandle>, Split),
    /// A data directory and the topics that are wanted (`None`: all).
    Dir(Arc<DirHandle>, Option<Vec<String>>),
}

#[doc = stub_doc!(Scan)]
#[pyclass(frozen, module = "cordwood", name = "Scan")]
pub(super) struct PyScan {
    source: Source,
    options: ReaderOptions,
    /// Of the last reading.
    progress: Mutex<Progress>,
}

impl PyScan {
    pub(super) fn new(source: Source, options: ReaderOptions) -> Self {
        Self { source, options, progress: Mutex::default() }
    }

    /// A reading from the beginning.
    fn start(&self, py: Python<'_>) -> PyResult<Reader> {
        let progress = Progress::default();
        *self.progress.lock().unwrap_or_else(PoisonError::into_inner) = progress.clone();
        let options = self.options.clone();
        Ok(match &self.source {
            Source::Log(handle) => {
                let log = enter(py, || handle.log())?;
                Reader::new(std::iter::once(Ok(log)), options, progress)
            }
            Source::Split(handle, split) => {
                let log = enter(py, || handle.log()?.for_split(split))?;
                Reader::new(std::iter::once(Ok(log)), options, progress)
            }
            Source::Dir(directory, topics) => {
                let logs = Arc::clone(&directory.directory).logs(topics.as_deref());
                Reader::new(logs, options, progress)
            }
        })
    }

    /// Everything, in memory.
    fn collect(&self, py: Python<'_>) -> PyResult<Vec<RecordBatch>> {
        let mut reader = self.start(py)?;
        enter(py, move || std::iter::from_fn(|| reader.next_batch().transpose()).collect())
    }

    fn progress(&self) -> Progress {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[pymethods]
impl PyScan {
    #[doc = stub_doc!(Scan.schema)]
    #[getter]
    fn schema<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        arrow_export::schema(py, self.options.schema())
    }

    #[doc = stub_doc!(Scan.damaged_ranges)]
    #[getter]
    fn damaged_ranges(&self) -> Vec<PyDamagedRange> {
        self.progress().damaged_ranges().into_iter().map(Into::into).collect()
    }

    #[doc = stub_doc!(Scan.stats)]
    #[getter]
    fn stats(&self) -> PyScanStats {
        self.progress().stats().into()
    }

    #[doc = stub_doc!(Scan.first_uncommitted)]
    #[getter]
    fn first_uncommitted(&self, py: Python<'_>) -> PyResult<Option<(OsString, i64)>> {
        let progress = self.progress();
        let found = enter(py, || progress.first_uncommitted())?;
        Ok(found.map(|(path, offset)| (path.into_os_string(), offset)))
    }

    #[doc = stub_doc!(Scan.to_arrow)]
    fn to_arrow<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let batches = self.collect(py)?;
        arrow_export::table(py, self.options.schema(), batches)
    }

    #[doc = stub_doc!(Scan.to_pandas)]
    fn to_pandas<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        error::import(py, "pandas", "pandas")?;
        self.to_arrow(py)?.call_method0("to_pandas")
    }

    #[doc = stub_doc!(Scan.to_polars)]
    fn to_polars<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let polars = error::import(py, "polars", "polars")?;
        let batches =
            arrow_export::ArrowBatches { schema: self.options.schema(), batches: self.collect(py)? };
        polars.call_method1("DataFrame", (batches,))
    }

    fn __iter__(&self, py: Python<'_>) -> PyResult<PyBatchIterator> {
        Ok(PyBatchIterator(Mutex::new(self.start(py)?)))
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // another schema is the consumer's wish, which it casts to itself
        drop(requested_schema);
        arrow_export::stream_capsule(py, self.start(py)?)
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let ReaderOptions { scan, columns, header_keys, timestamp_unit, max_rows, max_bytes, threads } =
            &self.options;
        let keywords = PyDict::new(py);
        keywords.set_item("start_offset", scan.ranges.start_offset)?;
        keywords.set_item("end_offset", scan.ranges.end_offset)?;
        keywords.set_item("start_time", scan.ranges.start_time)?;
        keywords.set_item("end_time", scan.ranges.end_time)?;
        keywords.set_item(
            "on_damage",
            match scan.on_damage {
                OnDamage::Raise => "raise",
                OnDamage::Skip => "skip",
                OnDamage::Report => "report",
            },
        )?;
        let recipes = py.import("cordwood.recipes")?;
        if scan.batches_only {
            let Source::Log(handle) = &self.source else { return Ok(py.None().into_bound(py)) };
            let arguments = (handle.recipe(py)?, keywords);
            return (recipes.getattr("scan_batches")?, arguments).into_pyobject(py).map(Bound::into_any);
        }
        keywords.set_item("columns", columns.iter().map(|column| column.name()).collect::<Vec<_>>())?;
        keywords.set_item(
            "isolation_level",
            match scan.isolation_level {
                IsolationLevel::ReadUncommitted => "read_uncommitted",
                IsolationLevel::ReadCommitted => "read_committed",
            },
        )?;
        keywords.set_item("include_control", scan.include_control)?;
        keywords.set_item("header_keys", if *header_keys == HeaderKeys::Utf8 { "utf8" } else { "binary" })?;
        keywords
            .set_item("timestamp_unit", if *timestamp_unit == TimeUnit::Microsecond { "us" } else { "ms" })?;
        keywords.set_item("max_rows", max_rows)?;
        keywords.set_item("max_bytes", max_bytes)?;
        keywords.set_item("threads", threads)?;
        if let Source::Split(_, split) = &self.source {
            keywords.set_item("split", PySplit::from(split.clone()))?;
        }
        match &self.source {
            Source::Log(handle) | Source::Split(handle, _) => {
                let arguments = (handle.recipe(py)?, keywords);
                (recipes.getattr("scan_log")?, arguments).into_pyobject(py).map(Bound::into_any)
            }
            Source::Dir(directory, topics) => {
                let arguments = (directory.recipe(py)?, topics.clone(), keywords);
                (recipes.getattr("scan_directory")?, arguments).into_pyobject(py).map(Bound::into_any)
            }
        }
    }
}

/// Record batches, one at a time.
#[pyclass(frozen, module = "cordwood")]
pub(super) struct PyBatchIterator(Mutex<Reader>);

#[pymethods]
impl PyBatchIterator {
    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let batch = enter(py, || self.0.lock().unwrap_or_else(PoisonError::into_inner).next_batch())?;
        batch.map(|batch| arrow_export::record_batch(py, batch)).transpose()
    }
}

/// How many records are taken from the core at a time.
const PORTION: usize = 256;

#[doc = stub_doc!(Records)]
#[pyclass(frozen, module = "cordwood", name = "Records")]
pub(super) struct PyRecords(Mutex<Portions>);

struct Portions {
    scan: Scan,
    in_batch: bool,
    ready: VecDeque<OwnedRecord>,
    /// Met while a portion was made; raised after its records.
    error: Option<crate::error::Error>,
}

impl PyRecords {
    pub(super) fn new(scan: Scan) -> Self {
        Self(Mutex::new(Portions { scan, in_batch: false, ready: VecDeque::new(), error: None }))
    }

    fn lock(&self) -> MutexGuard<'_, Portions> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Portions {
    fn next(&mut self) -> Result<Option<OwnedRecord>> {
        if self.ready.is_empty() && self.error.is_none() {
            self.error = self.fill().err();
        }
        match self.ready.pop_front() {
            Some(record) => Ok(Some(record)),
            None => self.error.take().map_or(Ok(None), Err),
        }
    }

    fn fill(&mut self) -> Result<()> {
        while self.ready.len() < PORTION {
            if !self.in_batch {
                match self.scan.next_step()? {
                    None => return Ok(()),
                    Some(ScanStep::DamagedRange(_)) => continue,
                    Some(ScanStep::Batch(_)) => self.in_batch = true,
                }
            }
            let Some(record) = self.scan.next_record()? else {
                self.in_batch = false;
                continue;
            };
            let owned = |bytes: Option<&[u8]>| bytes.map(<[u8]>::to_vec);
            let large = record.value.is_some_and(|value| value.len() > 64 << 10);
            self.ready.push_back(OwnedRecord {
                offset: record.offset,
                timestamp: record.timestamp,
                timestamp_type: record.timestamp_type.id(),
                key: owned(record.key),
                value: owned(record.value),
                headers: record
                    .headers
                    .map(|(key, value)| (java_string(key).into_owned(), owned(value)))
                    .collect(),
            });
            if large {
                return Ok(());
            }
        }
        Ok(())
    }
}

#[pymethods]
impl PyRecords {
    #[doc = stub_doc!(Records.damaged_ranges)]
    #[getter]
    fn damaged_ranges(&self, py: Python<'_>) -> PyResult<Vec<PyDamagedRange>> {
        let gaps = enter(py, || Ok(self.lock().scan.damaged_ranges().to_vec()))?;
        Ok(gaps.into_iter().map(Into::into).collect())
    }

    #[doc = stub_doc!(Records.stats)]
    #[getter]
    fn stats(&self, py: Python<'_>) -> PyResult<PyScanStats> {
        enter(py, || Ok(self.lock().scan.stats())).map(Into::into)
    }

    #[doc = stub_doc!(Records.first_uncommitted)]
    #[getter]
    fn first_uncommitted(&self, py: Python<'_>) -> PyResult<Option<(OsString, i64)>> {
        enter(py, || {
            let reading = self.lock();
            let offset = reading.scan.first_uncommitted()?;
            Ok(offset.map(|offset| (reading.scan.log().path().as_os_str().to_owned(), offset)))
        })
    }

    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<PyRecord>> {
        let record = enter(py, || self.lock().next())?;
        record.map(|record| PyRecord::new(py, record)).transpose()
    }
}
