//! `Log`.

use std::ffi::OsString;
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::arguments::{self, Defaulted, ISOLATION_LEVELS, LEFT_OUT, one_of, optional, wrong_type};
use super::enter::enter;
use super::handle::{LogHandle, log_options};
use super::keywords::Keywords;
use super::position::PyPosition;
use super::producer::PyProducerState;
use super::record::PyRecord;
use super::record_input::Blob;
use super::results::{PyLocation, PyOffsetGap, PyTimestampOffset};
use super::scan::{PyRecords, PyScan, Source};
use super::segment::PySegments;
use super::split::PySplit;
use super::value_class::wrapped;
use super::{arrow_export, lookup_targets};
use crate::arrow::{Column, Located, ReaderOptions, Timed};
use crate::error::{Error, Result};
use crate::log::{Log, LogOptions, Split};
use crate::types::IsolationLevel;
use crate::writer::{ProducerState, WriterOptions};

#[doc = stub_doc!(Log)]
#[pyclass(frozen, module = "cordwood", name = "Log")]
pub(super) struct PyLog {
    handle: Arc<LogHandle>,
}

impl PyLog {
    pub(super) fn of(log: Log) -> Self {
        Self { handle: Arc::new(LogHandle::new(log)) }
    }

    pub(super) fn handle(&self) -> Arc<LogHandle> {
        Arc::clone(&self.handle)
    }

    /// Reads from the log of this process, detached from the interpreter.
    pub(super) fn read<T: Send>(
        &self,
        py: Python<'_>,
        read: impl FnOnce(Log) -> Result<T> + Send,
    ) -> PyResult<T> {
        enter(py, || read(self.handle.log()?))
    }
}

#[pymethods]
impl PyLog {
    #[new]
    #[pyo3(signature = (path, *, io=LEFT_OUT, log_start_offset=None, topic=None, partition=None, max_open_files=LEFT_OUT,
            max_batch_bytes=LEFT_OUT),
        text_signature = "(path, *, io='auto', log_start_offset=None, topic=None, partition=None, max_open_files=256, \
            max_batch_bytes=134217728)")]
    #[expect(clippy::too_many_arguments, reason = "they are Python's arguments")]
    fn new(
        py: Python<'_>,
        path: &Bound<'_, PyAny>,
        io: Defaulted<'_, '_>,
        log_start_offset: Option<&Bound<'_, PyAny>>,
        topic: Option<&Bound<'_, PyAny>>,
        partition: Option<&Bound<'_, PyAny>>,
        max_open_files: Defaulted<'_, '_>,
        max_batch_bytes: Defaulted<'_, '_>,
    ) -> PyResult<Self> {
        let path = arguments::path(path)?;
        let number = |name, given: &_| arguments::whole(name, "a partition's number, 0 to 2^31 - 1", given);
        let options = LogOptions {
            log_start_offset: optional("log_start_offset", log_start_offset, arguments::offset)?,
            topic: optional("topic", topic, |name, given| {
                arguments::text(name, "a topic's name, a str", given)
            })?,
            partition: optional("partition", partition, number)?,
            ..log_options(io, max_open_files, max_batch_bytes)?
        };
        enter(py, || Log::open(path, options)).map(Self::of)
    }

    #[doc = stub_doc!(Log.path)]
    #[getter]
    fn path(&self) -> OsString {
        self.handle.path().as_os_str().to_owned()
    }

    #[doc = stub_doc!(Log.topic)]
    #[getter]
    fn topic(&self, py: Python<'_>) -> PyResult<Option<String>> {
        self.read(py, |log| Ok(log.topic().map(str::to_owned)))
    }

    #[doc = stub_doc!(Log.partition)]
    #[getter]
    fn partition(&self, py: Python<'_>) -> PyResult<Option<i32>> {
        self.read(py, |log| Ok(log.partition()))
    }

    #[doc = stub_doc!(Log.log_start_offset)]
    #[getter]
    fn log_start_offset(&self, py: Python<'_>) -> PyResult<i64> {
        self.read(py, |log| Ok(log.log_start_offset()))
    }

    #[doc = stub_doc!(Log.log_end_offset)]
    #[getter]
    fn log_end_offset(&self, py: Python<'_>) -> PyResult<i64> {
        self.read(py, |log| log.log_end_offset())
    }

    #[doc = stub_doc!(Log.last_stable_offset)]
    #[getter]
    fn last_stable_offset(&self, py: Python<'_>) -> PyResult<i64> {
        self.read(py, |log| log.last_stable_offset())
    }

    #[doc = stub_doc!(Log.durable_offset)]
    #[getter]
    fn durable_offset(&self, py: Python<'_>) -> PyResult<Option<i64>> {
        self.read(py, |log| log.durable_offset())
    }

    #[doc = stub_doc!(Log.producers)]
    #[getter]
    fn producers(&self, py: Python<'_>) -> PyResult<Vec<PyProducerState>> {
        let expiration_ms = WriterOptions::default().producer_id_expiration_ms;
        Ok(wrapped(&self.read(py, |log| ProducerState::of_log(&log, expiration_ms))?))
    }

    #[doc = stub_doc!(Log.topic_id)]
    #[getter]
    fn topic_id(&self, py: Python<'_>) -> PyResult<Option<String>> {
        self.read(py, |log| Ok(log.topic_id().map(|id| id.to_string())))
    }

    #[doc = stub_doc!(Log.size)]
    #[getter]
    fn size(&self, py: Python<'_>) -> PyResult<u64> {
        self.read(py, |log| log.size())
    }

    #[doc = stub_doc!(Log.segments)]
    #[getter]
    fn segments(&self) -> PySegments {
        PySegments::of(&self.handle)
    }

    #[doc = stub_doc!(Log.warnings)]
    #[getter]
    fn warnings(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        self.read(py, |log| match log.log_end_offset() {
            Err(interrupted @ Error::Interrupted(_)) => Err(interrupted),
            _ => Ok(log.warnings()),
        })
    }

    #[doc = stub_doc!(Log.is_compacted)]
    #[getter]
    fn is_compacted(&self, py: Python<'_>) -> PyResult<bool> {
        self.read(py, |log| log.is_compacted())
    }

    #[doc = stub_doc!(Log.offset_gaps)]
    #[pyo3(signature = (start_offset=None, end_offset=None))]
    fn offset_gaps(
        &self,
        py: Python<'_>,
        start_offset: Option<&Bound<'_, PyAny>>,
        end_offset: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Vec<PyOffsetGap>> {
        let start = optional("start_offset", start_offset, arguments::offset)?.unwrap_or(0);
        let end = optional("end_offset", end_offset, arguments::offset)?.unwrap_or(i64::MAX);
        Ok(self.read(py, |log| log.offset_gaps(start..end))?.into_iter().map(Into::into).collect())
    }

    #[doc = stub_doc!(Log.refresh)]
    fn refresh(slf: Bound<'_, Self>) -> PyResult<Py<Self>> {
        let changed = slf.get().read(slf.py(), |log| {
            let refreshed = log.refresh()?;
            Ok((!refreshed.is_same(&log)).then_some(refreshed))
        })?;
        match changed {
            Some(log) => Py::new(slf.py(), Self::of(log)),
            None => Ok(slf.unbind()),
        }
    }

    #[doc = stub_doc!(Log.locate)]
    fn locate(&self, py: Python<'_>, offset: &Bound<'_, PyAny>) -> PyResult<Option<PyLocation>> {
        let offset = arguments::offset("offset", offset)?;
        if let Some(location) = self.handle.peek(|log| log.known_location(offset)) {
            // found in less time than it takes to detach from the interpreter
            return Ok(Some(location.into()));
        }
        Ok(self.read(py, |log| log.locate(offset))?.map(Into::into))
    }

    #[doc = stub_doc!(Log.locate_many)]
    fn locate_many<'py>(&self, py: Python<'py>, offsets: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let offsets = lookup_targets::offsets(offsets)?;
        let batch = self.read(py, |log| Located::read(&log, &offsets)?.into_batch())?;
        arrow_export::table(py, batch.schema(), vec![batch])
    }

    #[doc = stub_doc!(Log.offset_for_time)]
    #[pyo3(signature = (timestamp, *, tz=None))]
    fn offset_for_time(
        &self,
        py: Python<'_>,
        timestamp: &Bound<'_, PyAny>,
        tz: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Option<PyTimestampOffset>> {
        let zone = optional("tz", tz, arguments::zone)?;
        let timestamp = arguments::time_in_zone("timestamp", timestamp, zone.as_ref())?;
        if let Some(found) = self.handle.peek(|log| log.known_time(timestamp)) {
            return Ok(Some(found.into()));
        }
        Ok(self.read(py, |log| log.offset_for_time(timestamp))?.map(Into::into))
    }

    #[doc = stub_doc!(Log.offsets_for_times)]
    fn offsets_for_times<'py>(
        &self,
        py: Python<'py>,
        timestamps: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let timestamps = lookup_targets::times(timestamps)?;
        let batch = self.read(py, |log| Timed::read(&log, &timestamps)?.into_batch())?;
        arrow_export::table(py, batch.schema(), vec![batch])
    }

    #[doc = stub_doc!(Log.scan)]
    #[pyo3(signature = (**keywords),
        text_signature = "($self, *, start_offset=None, end_offset=None, start_time=None, end_time=None, columns=None, \
            isolation_level='read_uncommitted', include_control=False, on_damage='raise', header_keys='utf8', \
            timestamp_unit='ms', max_rows=65536, max_bytes=4194304, split=None, threads=1, limit=None, \
            check_crcs=True, key_type='binary', value_type='binary', on_invalid_utf8='raise', latest=False, \
            include_tombstones=False, key=None, key_prefix=None, grep=None, last=None, tz=None)")]
    fn scan(&self, py: Python<'_>, keywords: Option<&Bound<'_, PyDict>>) -> PyResult<PyScan> {
        let keywords = Keywords::new("Log.scan", keywords);
        let (mut options, contents) = keywords.columns(&Column::DEFAULT)?;
        let split = keywords.optional("split", |name, given| match split_of(given)? {
            _ if options.last.is_some() => Err(arguments::not_allowed(
                name,
                "None with last: a split does not have the last records",
                given,
            )),
            split => Ok(split),
        })?;
        keywords.finish()?;
        if let Some(split) = &split {
            options.scan.ranges = split.ranges().intersection(options.scan.ranges);
        }
        self.read(py, |log| {
            split.iter().try_for_each(|split| log.check_split(split))?;
            log.check(&options.scan.ranges)
        })?;
        let handle = Arc::clone(&self.handle);
        let source = split.map_or(Source::Log(Arc::clone(&handle)), |split| Source::Split(handle, split));
        Ok(PyScan::filtered(source, options, contents))
    }

    #[doc = stub_doc!(Log.latest)]
    #[pyo3(signature = (key, *, isolation_level=LEFT_OUT),
        text_signature = "($self, key, *, isolation_level='read_uncommitted')")]
    fn latest(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
        isolation_level: Defaulted<'_, '_>,
    ) -> PyResult<Option<PyRecord>> {
        let key = Blob::of("key", "a key, bytes or str", key)?;
        let level = IsolationLevel::ReadUncommitted;
        let level = isolation_level.or("isolation_level", level, one_of(&ISOLATION_LEVELS))?;
        let found = self.read(py, |log| {
            let found = log.latest(key.as_slice(), level)?;
            found.map_or(Ok(None), |scan| PyRecords::new(scan, None, None).read_one())
        })?;
        found.map(|record| PyRecord::new(py, record)).transpose()
    }

    #[doc = stub_doc!(Log.records)]
    #[pyo3(signature = (**keywords),
        text_signature = "($self, *, start_offset=None, end_offset=None, start_time=None, end_time=None, \
            isolation_level='read_uncommitted', include_control=False, on_damage='raise', key=None, key_prefix=None, \
            grep=None, last=None, limit=None, tz=None)")]
    fn records(&self, py: Python<'_>, keywords: Option<&Bound<'_, PyDict>>) -> PyResult<PyRecords> {
        let keywords = Keywords::new("Log.records", keywords);
        let (options, filter) = (keywords.records()?, keywords.contents()?.filter());
        let (limit, last) = (keywords.record_count("limit")?, keywords.record_count("last")?);
        keywords.finish()?;
        self.read(py, |log| {
            let scan = match last {
                Some(last) => log.last_records(last, options, filter.as_ref())?,
                None => log.scan(options)?,
            };
            Ok(PyRecords::new(scan, filter, limit))
        })
    }

    #[doc = stub_doc!(Log.batches)]
    #[pyo3(signature = (**keywords),
        text_signature = "($self, *, start_offset=None, end_offset=None, start_time=None, end_time=None, \
            on_damage='raise', tz=None)")]
    fn batches(&self, py: Python<'_>, keywords: Option<&Bound<'_, PyDict>>) -> PyResult<PyScan> {
        let keywords = Keywords::new("Log.batches", keywords);
        let scan = keywords.batches()?;
        keywords.finish()?;
        self.read(py, |log| log.check(&scan.ranges))?;
        let options = ReaderOptions { scan, ..ReaderOptions::default() };
        Ok(PyScan::new(Source::Log(Arc::clone(&self.handle)), options))
    }

    #[doc = stub_doc!(Log.plan)]
    #[pyo3(signature = (max_bytes, **keywords),
        text_signature = "($self, max_bytes, *, start_offset=None, end_offset=None, start_time=None, end_time=None, \
            isolation_level='read_uncommitted', tz=None)")]
    fn plan(
        &self,
        py: Python<'_>,
        max_bytes: &Bound<'_, PyAny>,
        keywords: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Vec<PySplit>> {
        let max_bytes = arguments::positive("max_bytes", max_bytes)? as u64;
        let keywords = Keywords::new("Log.plan", keywords);
        let options = keywords.committed_ranges()?;
        keywords.finish()?;
        Ok(self.read(py, |log| log.plan(max_bytes, &options))?.into_iter().map(Into::into).collect())
    }

    #[doc = stub_doc!(Log.follow)]
    #[pyo3(signature = (start_offset=None, *, timeout=None, isolation_level=LEFT_OUT, durable=LEFT_OUT),
        text_signature = "($self, start_offset=None, *, timeout=None, isolation_level='read_uncommitted', \
            durable=False)")]
    fn follow<'py>(
        slf: &Bound<'py, Self>,
        start_offset: Option<&Bound<'py, PyAny>>,
        timeout: Option<&Bound<'py, PyAny>>,
        isolation_level: Defaulted<'_, 'py>,
        durable: Defaulted<'_, 'py>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let start = optional("start_offset", start_offset, arguments::offset)?;
        let timeout = optional("timeout", timeout, arguments::seconds)?;
        let durable = durable.or("durable", false, arguments::flag)?;
        let level = IsolationLevel::ReadUncommitted;
        let level = isolation_level.or("isolation_level", level, one_of(&ISOLATION_LEVELS))?;
        let level = arguments::word_of(&ISOLATION_LEVELS, level);
        slf.py().import("cordwood.follow")?.getattr("Follow")?.call1((slf, start, timeout, level, durable))
    }

    #[doc = stub_doc!(Log.position)]
    fn position(&self, py: Python<'_>, name: &Bound<'_, PyAny>) -> PyResult<PyPosition> {
        let name = arguments::text("name", "the name of a position, a str", name)?;
        self.read(py, |log| log.position(&name).map(drop))?;
        Ok(PyPosition::new(self.handle(), name))
    }

    #[doc = stub_doc!(Log.positions)]
    fn positions(&self, py: Python<'_>) -> PyResult<Vec<PyPosition>> {
        let found = self.read(py, |log| log.positions())?;
        Ok(found.iter().map(|position| PyPosition::new(self.handle(), position.name().to_owned())).collect())
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.handle.recipe(py)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        self.read(py, |log| {
            let (path, start) = (log.path().display(), log.log_start_offset());
            Ok(match log.log_end_offset() {
                Ok(end) => format!("<Log {path} offsets {start} to {end} (exclusive)>"),
                Err(error) => format!("<Log {path} offsets {start} on: {error}>"),
            })
        })
    }
}

fn split_of(given: &Bound<'_, PyAny>) -> PyResult<Split> {
    let split =
        given.cast::<PySplit>().map_err(|_| wrong_type("split", "a Split, as plan() makes it", given))?;
    Ok(split.get().0.clone())
}
