//! `LogDir`.

use std::ffi::OsString;
use std::sync::Arc;

use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyIterator, PyList};

use super::arguments::{self, Defaulted, LEFT_OUT};
use super::enter::enter;
use super::error;
use super::handle::{DirHandle, log_options};
use super::log::PyLog;
use super::scan::{PyScan, Source};
use crate::arrow::{Column, ReaderOptions};
use crate::dir::LogDir;
use crate::error::Error;
use crate::log::ScanOptions;

#[doc = stub_doc!(LogDir)]
#[pyclass(frozen, module = "cordwood", name = "LogDir")]
pub(super) struct PyLogDir(Arc<DirHandle>);

impl PyLogDir {
    fn open(&self, py: Python<'_>, name: &str) -> PyResult<Option<PyLog>> {
        Ok(enter(py, || self.0.directory.log(name))?.map(PyLog::of))
    }

    fn view<'py>(this: &Bound<'py, Self>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        this.py().import("collections.abc")?.getattr(name)?.call1((this,))
    }
}

#[pymethods]
impl PyLogDir {
    #[new]
    #[pyo3(signature = (path, *, io=LEFT_OUT, max_open_files=LEFT_OUT, include=None),
        text_signature = "(path, *, io='auto', max_open_files=256, include=None)")]
    fn new(
        py: Python<'_>,
        path: &Bound<'_, PyAny>,
        io: Defaulted<'_, '_>,
        max_open_files: Defaulted<'_, '_>,
        include: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let path = arguments::path(path)?;
        let include = include.map_or(Ok(Vec::new()), arguments::partition_states)?;
        let options = log_options(io, max_open_files)?;
        let directory = Arc::new(enter(py, || LogDir::open(path, options, &include))?);
        Ok(Self(Arc::new(DirHandle { directory, include })))
    }

    #[doc = stub_doc!(LogDir.path)]
    #[getter]
    fn path(&self) -> OsString {
        self.0.directory.path().as_os_str().to_owned()
    }

    #[doc = stub_doc!(LogDir.topics)]
    #[getter]
    fn topics(&self) -> Vec<String> {
        let mut topics: Vec<_> =
            self.0.directory.partitions().values().map(|name| name.topic.clone()).collect();
        topics.sort();
        topics.dedup();
        topics
    }

    #[doc = stub_doc!(LogDir.scan)]
    #[pyo3(signature = (topics=None, *, start_offset=None, end_offset=None, start_time=None, end_time=None, columns=None,
        isolation_level=LEFT_OUT, include_control=LEFT_OUT, on_damage=LEFT_OUT, header_keys=LEFT_OUT,
        timestamp_unit=LEFT_OUT, max_rows=LEFT_OUT, max_bytes=LEFT_OUT, threads=LEFT_OUT),
        text_signature = "($self, topics=None, *, start_offset=None, end_offset=None, start_time=None, end_time=None, \
            columns=None, isolation_level='read_uncommitted', include_control=False, on_damage='raise', \
            header_keys='utf8', timestamp_unit='ms', max_rows=65536, max_bytes=16777216, threads=1)")]
    #[expect(clippy::too_many_arguments, reason = "they are Python's keywords")]
    fn scan(
        &self,
        py: Python<'_>,
        topics: Option<&Bound<'_, PyAny>>,
        start_offset: Option<&Bound<'_, PyAny>>,
        end_offset: Option<&Bound<'_, PyAny>>,
        start_time: Option<&Bound<'_, PyAny>>,
        end_time: Option<&Bound<'_, PyAny>>,
        columns: Option<&Bound<'_, PyAny>>,
        isolation_level: Defaulted<'_, '_>,
        include_control: Defaulted<'_, '_>,
        on_damage: Defaulted<'_, '_>,
        header_keys: Defaulted<'_, '_>,
        timestamp_unit: Defaulted<'_, '_>,
        max_rows: Defaulted<'_, '_>,
        max_bytes: Defaulted<'_, '_>,
        threads: Defaulted<'_, '_>,
    ) -> PyResult<PyScan> {
        let wanted = "a list of topics, such as [\"orders\"]";
        let topics = topics.map(|given| arguments::names("topics", wanted, given)).transpose()?;
        let partitions = self.0.directory.partitions();
        if let Some(missing) =
            topics.iter().flatten().find(|topic| partitions.values().all(|name| name.topic != **topic))
        {
            let known = self.topics().join(", ");
            return Err(error::to_python(
                py,
                Error::config("topics", format!("some of {known}"), format!("{missing:?}")),
            ));
        }
        let scan = ScanOptions {
            ranges: arguments::ranges(start_offset, end_offset, start_time, end_time)?,
            isolation_level: arguments::isolation_level(isolation_level)?,
            include_control: include_control.flag("include_control")?,
            on_damage: arguments::on_damage(on_damage)?,
            batches_only: false,
        };
        let defaults = ReaderOptions::default();
        let options = ReaderOptions {
            scan,
            columns: columns.map_or(Ok(Column::WITH_ORIGIN.to_vec()), arguments::columns)?,
            header_keys: arguments::header_keys(header_keys)?,
            timestamp_unit: arguments::timestamp_unit(timestamp_unit)?,
            max_rows: max_rows.positive("max_rows", defaults.max_rows)?,
            max_bytes: max_bytes.positive("max_bytes", defaults.max_bytes)?,
            threads: threads.positive("threads", defaults.threads)?,
        };
        Ok(PyScan::new(Source::Dir(Arc::clone(&self.0), topics), options))
    }

    fn __getitem__(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<PyLog> {
        let name = partition_name(key)?;
        self.open(py, &name)?.ok_or_else(|| PyKeyError::new_err(name))
    }

    fn __contains__(&self, key: &Bound<'_, PyAny>) -> bool {
        key.extract::<String>().is_ok_and(|key| self.0.directory.partitions().contains_key(&key))
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        PyList::new(py, self.0.directory.partitions().keys())?.try_iter()
    }

    fn __len__(&self) -> usize {
        self.0.directory.partitions().len()
    }

    #[doc = stub_doc!(LogDir.get)]
    #[pyo3(signature = (key, default=None))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        key: &Bound<'py, PyAny>,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        match self.open(py, &partition_name(key)?)? {
            Some(log) => Ok(Some(Bound::new(py, log)?.into_any())),
            None => Ok(default),
        }
    }

    #[doc = stub_doc!(LogDir.keys)]
    fn keys<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        Self::view(this, "KeysView")
    }

    #[doc = stub_doc!(LogDir.values)]
    fn values<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        Self::view(this, "ValuesView")
    }

    #[doc = stub_doc!(LogDir.items)]
    fn items<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        Self::view(this, "ItemsView")
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.0.recipe(py)
    }

    fn __repr__(&self) -> String {
        format!("<LogDir {} with {} partitions>", self.0.directory.path().display(), self.__len__())
    }
}

/// What a log is found by.
fn partition_name(key: &Bound<'_, PyAny>) -> PyResult<String> {
    arguments::text("key", "the name of a partition directory, a str", key)
}
