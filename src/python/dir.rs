//! `LogDir`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyIterator, PyList};

use super::arguments::{self, Time};
use super::enter::enter;
use super::error;
use super::handle::{DirHandle, log_options};
use super::log::PyLog;
use super::scan::{PyScan, Source};
use crate::arrow::{Column, ReaderOptions};
use crate::dir::LogDir;
use crate::error::Error;
use crate::log::ScanOptions;

/// A broker's data directory.
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
    #[pyo3(signature = (path, *, io="auto", max_open_files=256, include=None))]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        io: &str,
        max_open_files: i64,
        include: Option<Vec<String>>,
    ) -> PyResult<Self> {
        let include = include.unwrap_or_default();
        let options = log_options(py, io, max_open_files)?;
        let states = include
            .iter()
            .map(|state| arguments::partition_state(py, state))
            .collect::<PyResult<Vec<_>>>()?;
        let directory = enter(py, || LogDir::open(path, options, &states))?;
        let directory = Arc::new(directory);
        Ok(Self(Arc::new(DirHandle { directory, io: io.to_owned(), max_open_files, include })))
    }

    #[getter]
    fn path(&self) -> OsString {
        self.0.directory.path().as_os_str().to_owned()
    }

    #[getter]
    fn topics(&self) -> Vec<String> {
        let mut topics: Vec<_> =
            self.0.directory.partitions().values().map(|name| name.topic.clone()).collect();
        topics.sort();
        topics.dedup();
        topics
    }

    #[pyo3(signature = (topics=None, *, start_offset=None, end_offset=None, start_time=None, end_time=None, columns=None,
        isolation_level="read_uncommitted", include_control=false, on_damage="raise", header_keys="utf8",
        timestamp_unit="ms", max_rows=65_536, max_bytes=16_777_216, threads=1))]
    #[expect(clippy::too_many_arguments, reason = "they are Python's keywords")]
    fn scan(
        &self,
        py: Python<'_>,
        topics: Option<Vec<String>>,
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
        threads: i64,
    ) -> PyResult<PyScan> {
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
            ranges: arguments::ranges(start_offset, end_offset, start_time, end_time),
            isolation_level: arguments::isolation_level(py, isolation_level)?,
            include_control,
            on_damage: arguments::on_damage(py, on_damage)?,
            batches_only: false,
        };
        let options = ReaderOptions {
            scan,
            columns: columns
                .map_or(Ok(Column::WITH_ORIGIN.to_vec()), |names| arguments::columns(py, &names))?,
            header_keys: arguments::header_keys(py, header_keys)?,
            timestamp_unit: arguments::timestamp_unit(py, timestamp_unit)?,
            max_rows: arguments::positive(py, "max_rows", max_rows)?,
            max_bytes: arguments::positive(py, "max_bytes", max_bytes)?,
            threads: arguments::positive(py, "threads", threads)?,
        };
        Ok(PyScan::new(Source::Dir(Arc::clone(&self.0), topics), options))
    }

    fn __getitem__(&self, py: Python<'_>, key: &str) -> PyResult<PyLog> {
        self.open(py, key)?.ok_or_else(|| PyKeyError::new_err(key.to_owned()))
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

    #[pyo3(signature = (key, default=None))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        key: &str,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        match self.open(py, key)? {
            Some(log) => Ok(Some(Bound::new(py, log)?.into_any())),
            None => Ok(default),
        }
    }

    fn keys<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        Self::view(this, "KeysView")
    }

    fn values<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        Self::view(this, "ValuesView")
    }

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
