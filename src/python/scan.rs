//! `Scan` and `Records`, and the iterator of a scan.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arrow_array::RecordBatch;
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PyDict};

use super::arguments::{
    BYTE_TYPES, HEADER_KEYS, ISOLATION_LEVELS, ON_DAMAGE, ON_INVALID_UTF8, TEXT_FORMATS, TIMESTAMP_UNITS,
    one_of, word_of,
};
use super::cat::{Partition, Partitions};
use super::contents::Contents;
use super::enter::enter;
use super::handle::{DirHandle, LogHandle, recipe};
use super::record::{OwnedRecord, PyRecord};
use super::results::{PyDamagedRange, PyScanStats};
use super::split::PySplit;
use super::zone::PyZone;
use super::{arguments, arrow_export, count, error};
use crate::arrow::{Reader, ReaderOptions};
use crate::error::{Error, Result};
use crate::log::{Log, Progress, Ranges, RecordFilter, Scan, ScanStep, Split};
use crate::record::java_string;
use crate::text::{Lines, LinesOptions};
use crate::types::OtherUnit;

/// The number of rows that a notebook shows.
const PREVIEW_ROWS: usize = 5;

/// The log or directory that a scan reads.
#[derive(Clone)]
pub(super) enum Source {
    Log(Arc<LogHandle>),
    /// A split of a log. The ranges of the options are within it.
    Split(Arc<LogHandle>, Split),
    /// A data directory, its topics and the numbers of its partitions; `None`: all.
    Dir(Arc<DirHandle>, Option<Vec<String>>, Option<Vec<i32>>),
    Partitions(Vec<Partition>),
}

/// The logs that a scan reads, one after another.
pub(super) type Logs = Box<dyn Iterator<Item = Result<Log>> + Send>;

#[doc = stub_doc!(Scan)]
#[pyclass(frozen, module = "cordwood", name = "Scan")]
pub(super) struct PyScan {
    source: Source,
    options: ReaderOptions,
    /// What the filter of the options accepts.
    contents: Contents,
    /// The progress of the last run.
    progress: Mutex<Progress>,
}

impl PyScan {
    pub(super) fn new(source: Source, options: ReaderOptions) -> Self {
        Self { source, options, contents: Contents::default(), progress: Mutex::default() }
    }

    /// A scan of the records with these keys and values.
    pub(super) fn filtered(source: Source, options: ReaderOptions, contents: Contents) -> Self {
        let options = ReaderOptions { filter: contents.filter(), ..options };
        Self { source, options, contents, progress: Mutex::default() }
    }

    /// The logs of a run, which begins with new progress.
    fn logs(&self, py: Python<'_>) -> PyResult<(Logs, Progress)> {
        let progress = Progress::default();
        *self.lock_progress() = progress.clone();
        let log = match &self.source {
            Source::Log(handle) => enter(py, || handle.log())?,
            Source::Split(handle, split) => enter(py, || handle.log()?.for_split(split))?,
            Source::Dir(directory, topics, partitions) => {
                let directory = Arc::clone(&directory.directory);
                let logs = directory.logs_of(topics.as_deref(), partitions.as_deref());
                return Ok((Box::new(logs), progress));
            }
            Source::Partitions(partitions) => {
                return Ok((Box::new(Partitions::new(partitions.clone())), progress));
            }
        };
        Ok((Box::new(std::iter::once(Ok(log))), progress))
    }

    /// Starts a run from the beginning.
    fn start(&self, py: Python<'_>, options: &ReaderOptions) -> PyResult<Reader> {
        let (logs, progress) = self.logs(py)?;
        Ok(Reader::new(logs, options.clone(), progress))
    }

    /// Reads everything into memory.
    fn collect(&self, py: Python<'_>, options: &ReaderOptions) -> PyResult<Vec<RecordBatch>> {
        let mut reader = self.start(py, options)?;
        enter(py, move || std::iter::from_fn(|| reader.next_batch().transpose()).collect())
    }

    /// The keyword arguments of a scan with the same result.
    fn keywords<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let ReaderOptions { scan, columns, key_type, value_type, header_keys, timestamp_unit, .. } =
            &self.options;
        let on_invalid_utf8 = word_of(&ON_INVALID_UTF8, self.options.invalid_text);
        let ReaderOptions { max_rows, max_bytes, threads, limit, last, latest, include_tombstones, .. } =
            &self.options;
        let keywords = PyDict::new(py);
        keywords.set_item("start_offset", scan.ranges.start_offset)?;
        keywords.set_item("end_offset", scan.ranges.end_offset)?;
        // a number could be refused as one in another unit
        let time = |time: Option<i64>| match time {
            Some(time) if OtherUnit::of(time).is_some() => format!("{time}ms").into_bound_py_any(py),
            time => time.into_bound_py_any(py),
        };
        keywords.set_item("start_time", time(scan.ranges.start_time)?)?;
        keywords.set_item("end_time", time(scan.ranges.end_time)?)?;
        keywords.set_item("on_damage", word_of(&ON_DAMAGE, scan.on_damage))?;
        if scan.batches_only {
            return Ok(keywords);
        }
        keywords.set_item("columns", columns.iter().map(|column| column.name()).collect::<Vec<_>>())?;
        keywords.set_item("isolation_level", word_of(&ISOLATION_LEVELS, scan.isolation_level))?;
        keywords.set_item("include_control", scan.include_control)?;
        keywords.set_item("check_crcs", scan.check_crcs)?;
        keywords.set_item("key_type", word_of(&BYTE_TYPES, *key_type))?;
        keywords.set_item("value_type", word_of(&BYTE_TYPES, *value_type))?;
        keywords.set_item("on_invalid_utf8", on_invalid_utf8)?;
        keywords.set_item("header_keys", word_of(&HEADER_KEYS, *header_keys))?;
        keywords.set_item("timestamp_unit", word_of(&TIMESTAMP_UNITS, *timestamp_unit))?;
        keywords.set_item("max_rows", max_rows)?;
        keywords.set_item("max_bytes", max_bytes)?;
        keywords.set_item("threads", threads)?;
        keywords.set_item("limit", limit)?;
        keywords.set_item("last", last)?;
        self.contents.add_to(&keywords)?;
        keywords.set_item("latest", latest)?;
        keywords.set_item("include_tombstones", include_tombstones)?;
        if let Source::Split(_, split) = &self.source {
            keywords.set_item("split", PySplit::from(split.clone()))?;
        }
        Ok(keywords)
    }

    fn lock_progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn progress(&self) -> Progress {
        self.lock_progress().clone()
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
        let batches = self.collect(py, &self.options)?;
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
        // columns of text and bytes of Polars are views
        let ReaderOptions { key_type, value_type, .. } = self.options;
        let options = ReaderOptions {
            key_type: key_type.with_views(),
            value_type: value_type.with_views(),
            ..self.options.clone()
        };
        let batches =
            arrow_export::ArrowBatches { schema: options.schema(), batches: self.collect(py, &options)? };
        polars.call_method1("DataFrame", (batches,))
    }

    #[doc = stub_doc!(Scan.to_parquet)]
    fn to_parquet(this: &Bound<'_, Self>, path: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = this.py();
        arguments::path(path)?;
        error::import(py, "pyarrow.parquet", "arrow")?;
        py.import("cordwood.parquet")?.call_method1("write", (this, path))?;
        Ok(())
    }

    #[doc = stub_doc!(Scan.count)]
    fn count(&self, py: Python<'_>) -> PyResult<u64> {
        let (logs, progress) = self.logs(py)?;
        count::records_of(py, logs, &self.options, progress)
    }

    #[doc = stub_doc!(Scan._lines)]
    #[pyo3(signature = (text_format, *, headings=true, zone=None))]
    fn _lines(
        &self,
        py: Python<'_>,
        text_format: &Bound<'_, PyAny>,
        headings: bool,
        zone: Option<&Bound<'_, PyZone>>,
    ) -> PyResult<PyLineIterator> {
        let format = one_of(&TEXT_FORMATS)("text_format", text_format)?;
        let ReaderOptions { scan, columns, limit, last, filter, .. } = self.options.clone();
        let utc_offset = zone.map(|zone| zone.get().utc_offset());
        let (logs, progress) = self.logs(py)?;
        let options = LinesOptions { scan, columns, format, limit, last, filter, utc_offset, headings };
        Ok(PyLineIterator(Mutex::new(Lines::new(logs, options, progress))))
    }

    fn __iter__(&self, py: Python<'_>) -> PyResult<PyBatchIterator> {
        Ok(PyBatchIterator(Mutex::new(self.start(py, &self.options)?)))
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // a producer may ignore it; the consumer casts then
        drop(requested_schema);
        arrow_export::stream_capsule(py, self.start(py, &self.options)?)
    }

    fn __repr__(&self) -> String {
        let path = match &self.source {
            Source::Log(handle) | Source::Split(handle, _) => handle.path(),
            Source::Dir(directory, ..) => directory.directory.path(),
            Source::Partitions(partitions) => return format!("<Scan of {} logs>", partitions.len()),
        };
        let Ranges { start_offset, end_offset, start_time, end_time } = self.options.scan.ranges;
        let bounds = [
            ("offset >=", start_offset),
            ("offset <", end_offset),
            ("timestamp >=", start_time),
            ("timestamp <", end_time),
        ];
        let bound = |(text, value): (&str, Option<i64>)| Some(format!(" {text} {}", value?));
        let range: String = bounds.into_iter().filter_map(bound).collect();
        let topics = match &self.source {
            Source::Dir(_, Some(topics), _) => format!(" topics {}", topics.join(" ")),
            _ => String::new(),
        };
        let limit = self.options.limit.map(|limit| format!(" limit {limit}")).unwrap_or_default();
        let latest = if self.options.latest { " latest" } else { "" };
        let schema = self.options.schema();
        let columns: Vec<_> = schema.fields().iter().map(|field| field.name().as_str()).collect();
        format!("<Scan {}{topics}{range}{limit}{latest} columns {}>", path.display(), columns.join(" "))
    }

    #[doc = stub_doc!(Scan._repr_html_)]
    fn _repr_html_<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let limit = Some(self.options.limit.unwrap_or(PREVIEW_ROWS).min(PREVIEW_ROWS));
        let options = ReaderOptions { limit, ..self.options.clone() };
        let preview = Self::filtered(self.source.clone(), options, self.contents.clone());
        py.import("cordwood.notebook")?.call_method1("html", (self.__repr__(), preview))
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let keywords = self.keywords(py)?;
        match &self.source {
            Source::Log(handle) if self.options.scan.batches_only => {
                recipe(py, "scan_batches", (handle.recipe(py)?, keywords))
            }
            Source::Log(handle) | Source::Split(handle, _) => {
                recipe(py, "scan_log", (handle.recipe(py)?, keywords))
            }
            Source::Dir(directory, topics, partitions) => {
                keywords.set_item("partitions", partitions)?;
                recipe(py, "scan_directory", (directory.recipe(py)?, topics, keywords))
            }
            // of the command line only
            Source::Partitions(_) => Err(PyTypeError::new_err("this Scan cannot be pickled")),
        }
    }
}

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

#[doc = stub_doc!(_Lines)]
#[pyclass(frozen, module = "cordwood._core", name = "_Lines")]
pub(super) struct PyLineIterator(Mutex<Lines>);

#[pymethods]
impl PyLineIterator {
    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<(Bound<'py, PyBytes>, usize)>> {
        let block = enter(py, || self.0.lock().unwrap_or_else(PoisonError::into_inner).next_block())?;
        Ok(block.map(|block| (PyBytes::new(py, &block.text), block.rows)))
    }

    #[doc = stub_doc!(_Lines.last_offset)]
    #[getter]
    fn last_offset(&self) -> i64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).last_offset()
    }
}

/// The number of records that one call of the core reads, fewer if one is large: a call per record would cost
/// more than the record.
const READ_AHEAD: usize = 256;
/// Bytes of a value that stops the read-ahead.
const LARGE_VALUE: usize = 64 << 10;

#[doc = stub_doc!(Records)]
#[pyclass(frozen, module = "cordwood", name = "Records")]
pub(super) struct PyRecords {
    reading: Mutex<Reading>,
    path: PathBuf,
}

struct Reading {
    scan: Scan,
    filter: Option<RecordFilter>,
    /// The records that may still be read.
    left: usize,
    in_batch: bool,
    ready: VecDeque<OwnedRecord>,
    /// The offset of the last record that was returned.
    last_returned: i64,
    /// Found after the records in `ready`, and raised after them.
    error: Option<Error>,
}

impl PyRecords {
    /// The records that a filter accepts; `limit`: at most this many.
    pub(super) fn new(scan: Scan, filter: Option<RecordFilter>, limit: Option<usize>) -> Self {
        let path = scan.log().path().to_owned();
        let left = limit.unwrap_or(usize::MAX);
        let ready = VecDeque::new();
        let reading = Reading { scan, filter, left, in_batch: false, ready, last_returned: -1, error: None };
        Self { reading: Mutex::new(reading), path }
    }

    /// The next record.
    pub(super) fn read_one(&self) -> Result<Option<OwnedRecord>> {
        self.lock().next()
    }

    fn lock(&self) -> MutexGuard<'_, Reading> {
        self.reading.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Reading {
    fn next(&mut self) -> Result<Option<OwnedRecord>> {
        if self.ready.is_empty() && self.error.is_none() {
            self.error = self.fill().err();
        }
        match self.ready.pop_front() {
            Some(record) => {
                self.last_returned = record.offset;
                Ok(Some(record))
            }
            None => self.error.take().map_or(Ok(None), Err),
        }
    }

    fn fill(&mut self) -> Result<()> {
        while self.ready.len() < READ_AHEAD && self.left > 0 {
            if !self.in_batch {
                match self.scan.next_step()? {
                    None => return Ok(()),
                    Some(ScanStep::DamagedRange(_)) => continue,
                    Some(ScanStep::Batch(_)) => self.in_batch = true,
                }
            }
            let Some(record) = self.scan.next_accepted(self.filter.as_ref())? else {
                self.in_batch = false;
                continue;
            };
            self.left -= 1;
            let owned = |bytes: Option<&[u8]>| bytes.map(<[u8]>::to_vec);
            let is_large = record.value.is_some_and(|value| value.len() > LARGE_VALUE);
            self.ready.push_back(OwnedRecord {
                offset: record.offset,
                timestamp: record.timestamp,
                timestamp_type: record.timestamp_type,
                key: owned(record.key),
                value: owned(record.value),
                headers: record
                    .headers
                    .map(|(key, value)| (java_string(key).into_owned(), owned(value)))
                    .collect(),
            });
            if is_large {
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
        let ranges = enter(py, || Ok(self.lock().scan.damaged_ranges().to_vec()))?;
        Ok(ranges.into_iter().map(Into::into).collect())
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
            // not a record that was read ahead
            let found = reading.scan.first_uncommitted()?;
            let offset = found.filter(|offset| *offset <= reading.last_returned);
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
