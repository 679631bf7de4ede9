//! `LogDir`.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::sync::Arc;

use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyIterator, PyList};

use super::arguments::{self, Defaulted, LEFT_OUT, optional};
use super::enter::enter;
use super::error;
use super::handle::{DirHandle, log_options};
use super::keywords::Keywords;
use super::log::PyLog;
use super::scan::{PyScan, Source};
use crate::arrow::Column;
use crate::config::suggestion;
use crate::dir::LogDir;
use crate::error::Error;

#[doc = stub_doc!(LogDir)]
#[pyclass(frozen, module = "cordwood", name = "LogDir")]
pub(super) struct PyLogDir(Arc<DirHandle>);

impl PyLogDir {
    fn open(&self, py: Python<'_>, name: &str) -> PyResult<Option<PyLog>> {
        Ok(enter(py, || self.0.directory.log(name))?.map(PyLog::of))
    }

    /// The topics that match a name or a glob, by the rules of Python's `fnmatch`, sorted. A topic's name has
    /// no wildcard.
    fn matching_topics(&self, py: Python<'_>, wanted: &[String]) -> PyResult<Vec<String>> {
        matching(py, &self.topics(), wanted)
    }

    /// Fails for a number that no partition of the topics (`None`: all) has.
    fn refuse_unknown(&self, py: Python<'_>, topics: Option<&[String]>, numbers: &[i32]) -> PyResult<()> {
        let names = self.0.directory.partitions().values();
        let known: BTreeSet<_> = names
            .filter(|name| topics.is_none_or(|topics| topics.contains(&name.topic)))
            .map(|name| name.partition)
            .collect();
        let unknown = numbers.iter().enumerate().find(|(_, number)| !known.contains(number));
        let Some((place, number)) = unknown else { return Ok(()) };
        let expected = match known.first().zip(known.last()) {
            Some((first, last)) => format!("the number of a partition, which are from {first} to {last}"),
            None => "a partition of this data directory, which has none".to_owned(),
        };
        let wrong = Error::config(format!("partitions[{place}]"), expected, number.to_string());
        Err(error::to_python(py, wrong))
    }

    fn view<'py>(this: &Bound<'py, Self>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        this.py().import("collections.abc")?.getattr(name)?.call1((this,))
    }
}

/// The topics of a data directory that match a name or a glob, sorted.
pub(super) fn matching(py: Python<'_>, known: &[String], wanted: &[String]) -> PyResult<Vec<String>> {
    let matches = py.import("fnmatch")?.getattr("fnmatchcase")?;
    let mut chosen = BTreeSet::new();
    for (place, name) in wanted.iter().enumerate() {
        let mut is_known = false;
        for topic in known {
            if topic == name || matches.call1((topic, name))?.is_truthy()? {
                chosen.insert(topic.clone());
                is_known = true;
            }
        }
        if !is_known {
            let hint = suggestion(name, known.iter().map(String::as_str));
            let expected = if known.is_empty() {
                "a topic of this data directory, which has no partition".to_owned()
            } else {
                format!("one of {}, or a glob that matches one{hint}", known.join(", "))
            };
            let wrong = Error::config(format!("topics[{place}]"), expected, format!("{name:?}"));
            return Err(error::to_python(py, wrong));
        }
    }
    Ok(chosen.into_iter().collect())
}

#[pymethods]
impl PyLogDir {
    #[new]
    #[pyo3(signature = (path, *, io=LEFT_OUT, max_open_files=LEFT_OUT, include=None, max_batch_bytes=LEFT_OUT),
        text_signature = "(path, *, io='auto', max_open_files=256, include=None, max_batch_bytes=134217728)")]
    fn new(
        py: Python<'_>,
        path: &Bound<'_, PyAny>,
        io: Defaulted<'_, '_>,
        max_open_files: Defaulted<'_, '_>,
        include: Option<&Bound<'_, PyAny>>,
        max_batch_bytes: Defaulted<'_, '_>,
    ) -> PyResult<Self> {
        let path = arguments::path(path)?;
        let include = include.map_or(Ok(Vec::new()), arguments::partition_states)?;
        let options = log_options(io, max_open_files, max_batch_bytes)?;
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
        let topics = self.0.directory.partitions().values().map(|name| name.topic.clone());
        topics.collect::<BTreeSet<_>>().into_iter().collect()
    }

    #[doc = stub_doc!(LogDir.scan)]
    #[pyo3(signature = (topics=None, **keywords),
        text_signature = "($self, topics=None, *, start_offset=None, end_offset=None, start_time=None, end_time=None, \
            columns=None, isolation_level='read_uncommitted', include_control=False, on_damage='raise', \
            header_keys='utf8', timestamp_unit='ms', max_rows=65536, max_bytes=4194304, threads=1, limit=None, \
            check_crcs=True, key_type='binary', value_type='binary', on_invalid_utf8='raise', latest=False, \
            include_tombstones=False, key=None, key_prefix=None, grep=None, last=None, tz=None, partitions=None)")]
    fn scan(
        &self,
        py: Python<'_>,
        topics: Option<&Bound<'_, PyAny>>,
        keywords: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<PyScan> {
        let topics = optional("topics", topics, |argument, given| {
            let wanted = "a list of topics or globs, such as [\"orders\", \"logs-*\"]";
            self.matching_topics(py, &arguments::names(argument, wanted, given)?)
        })?;
        let keywords = Keywords::new("LogDir.scan", keywords);
        let (options, contents) = keywords.columns(&Column::WITH_ORIGIN)?;
        let partitions = keywords.optional("partitions", arguments::partition_numbers)?;
        keywords.finish()?;
        self.refuse_unknown(py, topics.as_deref(), partitions.as_deref().unwrap_or_default())?;
        Ok(PyScan::filtered(Source::Dir(Arc::clone(&self.0), topics, partitions), options, contents))
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
            Some(log) => log.into_bound_py_any(py).map(Some),
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

fn partition_name(key: &Bound<'_, PyAny>) -> PyResult<String> {
    arguments::text("key", "the name of a partition directory, a str", key)
}
