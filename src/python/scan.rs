//! `Scan`, and what iterating over one or over `Log.records` gives.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arrow_array::RecordBatch;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};

use super::arguments::{HEADER_KEYS, ISOLATION_LEVELS, ON_DAMAGE, TIMESTAMP_UNITS, word_of};
use super::enter::enter;
use super::handle::{DirHandle, LogHandle};
use super::record::{OwnedRecord, PyRecord};
use super::results::{PyDamagedRange, PyScanStats};
use super::split::PySplit;
use super::{arrow_export, error};
use crate::arrow::{Progress, Reader, ReaderOptions, java_string};
use crate::error::Result;
use crate::log::{Ranges, Scan, ScanStep, Split};

/// The rows that a notebook shows.
const PREVIEW_ROWS: usize = 5;

/// What a scan reads.
#[derive(Clone)]
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

    /// The keyword arguments that make this scan again.
    fn keywords<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let ReaderOptions { scan, columns, header_keys, timestamp_unit, max_rows, max_bytes, threads, limit } =
            &self.options;
        let keywords = PyDict::new(py);
        keywords.set_item("start_offset", scan.ranges.start_offset)?;
        keywords.set_item("end_offset", scan.ranges.end_offset)?;
        keywords.set_item("start_time", scan.ranges.start_time)?;
        keywords.set_item("end_time", scan.ranges.end_time)?;
        keywords.set_item("on_damage", word_of(&ON_DAMAGE, scan.on_damage))?;
        if scan.batches_only {
            return Ok(keywords);
        }
        keywords.set_item("columns", columns.iter().map(|column| column.name()).collect::<Vec<_>>())?;
        keywords.set_item("isolation_level", word_of(&ISOLATION_LEVELS, scan.isolation_level))?;
        keywords.set_item("include_control", scan.include_control)?;
        keywords.set_item("header_keys", word_of(&HEADER_KEYS, *header_keys))?;
        keywords.set_item("timestamp_unit", word_of(&TIMESTAMP_UNITS, *timestamp_unit))?;
        keywords.set_item("max_rows", max_rows)?;
        keywords.set_item("max_bytes", max_bytes)?;
        keywords.set_item("threads", threads)?;
        keywords.set_item("limit", limit)?;
        if let Source::Split(_, split) = &self.source {
            keywords.set_item("split", PySplit::from(split.clone()))?;
        }
        Ok(keywords)
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

    fn __repr__(&self) -> String {
        let path = match &self.source {
            Source::Log(handle) | Source::Split(handle, _) => handle.path(),
            Source::Dir(directory, _) => directory.directory.path(),
        };
        let Ranges { start_offset, end_offset, start_time, end_time } = self.options.scan.ranges;
        let bound = |word: &str, value: Option<i64>| value.map(|value| format!(" {word} {value}"));
        let range: String = [
            bound("offset >=", start_offset),
            bound("offset <", end_offset),
            bound("timestamp >=", start_time),
            bound("timestamp <", end_time),
        ]
        .into_iter()
        .flatten()
        .collect();
        let topics = match &self.source {
            Source::Dir(_, Some(topics)) => format!(" topics {}", topics.join(" ")),
            _ => String::new(),
        };
        let limit = self.options.limit.map(|limit| format!(" limit {limit}")).unwrap_or_default();
        let schema = self.options.schema();
        let columns: Vec<_> = schema.fields().iter().map(|field| field.name().as_str()).collect();
        format!("<Scan {}{topics}{range}{limit} columns {}>", path.display(), columns.join(" "))
    }

    #[doc = stub_doc!(Scan._repr_html_)]
    fn _repr_html_<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let limit = Some(self.options.limit.unwrap_or(PREVIEW_ROWS).min(PREVIEW_ROWS));
        let preview = Self::new(self.source.clone(), ReaderOptions { limit, ..self.options.clone() });
        py.import("cordwood.notebook")?.call_method1("html", (self.__repr__(), preview))
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let keywords = self.keywords(py)?;
        let recipes = py.import("cordwood.recipes")?;
        let recipe = match &self.source {
            Source::Log(handle) if self.options.scan.batches_only => {
                (recipes.getattr("scan_batches")?, (handle.recipe(py)?, keywords)).into_pyobject(py)?
            }
            Source::Log(handle) | Source::Split(handle, _) => {
                (recipes.getattr("scan_log")?, (handle.recipe(py)?, keywords)).into_pyobject(py)?
            }
            Source::Dir(directory, topics) => {
                let arguments = (directory.recipe(py)?, topics.clone(), keywords);
                (recipes.getattr("scan_directory")?, arguments).into_pyobject(py)?
            }
        };
        Ok(recipe.into_any())
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
pub(super) struct PyRecords {
    portions: Mutex<Portions>,
    path: PathBuf,
}

struct Portions {
    scan: Scan,
    in_batch: bool,
    ready: VecDeque<OwnedRecord>,
    /// Met while a portion was made; raised after its records.
    error: Option<crate::error::Error>,
}

impl PyRecords {
    pub(super) fn new(scan: Scan) -> Self {
        let path = scan.log().path().to_owned();
        let portions = Portions { scan, in_batch: false, ready: VecDeque::new(), error: None };
        Self { portions: Mutex::new(portions), path }
    }

    fn lock(&self) -> MutexGuard<'_, Portions> {
        self.portions.lock().unwrap_or_else(PoisonError::into_inner)
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

    fn __repr__(&self) -> String {
        format!("<Records of {}>", self.path.display())
    }
}
