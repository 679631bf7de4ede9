//! Plans of queries over many logs, for the package `cordwood.spark`: options, queries and tasks.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::sync::{Arc, LazyLock};

use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyType};
use serde_json::Value;

use super::arguments::{self, IO, ISOLATION_LEVELS, one_of, word_of};
use super::enter::{SIGNALS, WARNINGS, enter, logger, unless_exception};
use super::error;
use super::log::PyLog;
use super::plan_reader::PyTaskReader;
use crate::inspect::internal_topics::is_topic_compacted;
use crate::log::LogOptions;
use crate::plan::{
    Bounds, Context, LogAccess, LogCache, Piece, PlanError, Query, SourceOptions, Task, Warning,
};

/// The logs that this process has open for plans and tasks.
static LOGS: LazyLock<Arc<LogCache>> = LazyLock::new(|| {
    let options =
        LogOptions { is_topic_compacted, interrupt: SIGNALS, on_warning: WARNINGS, ..LogOptions::default() };
    Arc::new(LogCache::new(options))
});

pub(super) fn context() -> Context {
    Context::new(Arc::clone(&LOGS))
}

/// Calls a function of a plan by [`enter`], and logs its warnings.
///
/// # Errors
/// `SparkLogError`; after a signal the exception of its handler.
pub(super) fn planned<T: Send>(
    py: Python<'_>,
    call: impl FnOnce() -> (Result<T, PlanError>, Vec<Warning>) + Send,
) -> PyResult<T> {
    let (result, warnings) = enter(py, || Ok(call()))?;
    let logged = warnings.into_iter().try_for_each(|warning| log_warning(py, warning));
    unless_exception(py, logged)?;
    result.map_err(|error| raised(py, error))
}

/// [`planned`] for a function that uses a context.
fn with_context<T: Send>(
    py: Python<'_>,
    call: impl FnOnce(&mut Context) -> Result<T, PlanError> + Send,
) -> PyResult<T> {
    planned(py, || {
        let mut context = context();
        let result = call(&mut context);
        (result, context.warnings)
    })
}

fn log_warning(py: Python<'_>, Warning { text, context }: Warning) -> PyResult<()> {
    let place = PyDict::new(py);
    for (name, value) in context {
        match value {
            Value::Number(number) => place.set_item(name, number.as_i64())?,
            Value::String(text) => place.set_item(name, text)?,
            _ => {}
        }
    }
    let extra = PyDict::new(py);
    extra.set_item("context", place)?;
    let keywords = PyDict::new(py);
    keywords.set_item("extra", extra)?;
    logger(py)?.call_method("warning", ("%s", text), Some(&keywords)).map(drop)
}

/// The exception for an error.
fn raised(py: Python<'_>, error: PlanError) -> PyErr {
    let PlanError { code, reason, topic, partition, segment, position, source } = error;
    let cause = source.map(|source| error::to_python(py, *source));
    let make = || {
        let place = PyDict::new(py);
        place.set_item("topic", topic)?;
        place.set_item("partition", partition)?;
        place.set_item("segment", segment)?;
        place.set_item("position", position)?;
        let class = py.import("cordwood.spark.errors")?.getattr("SparkLogError")?;
        Ok(PyErr::from_value(class.call((code.name(), reason), Some(&place))?))
    };
    let raised = make().unwrap_or_else(|failed: PyErr| failed);
    raised.set_cause(py, cause);
    raised
}

#[doc = stub_doc!(_open_log)]
#[pyfunction]
#[pyo3(name = "_open_log", signature = (path, *, io="pread", refresh=true))]
pub(super) fn open_log(py: Python<'_>, path: &Bound<'_, PyAny>, io: &str, refresh: bool) -> PyResult<PyLog> {
    let path = arguments::path(path)?;
    let io = one_of(&IO)("io", &io.into_bound_py_any(py)?)?;
    enter(py, || LOGS.open(&path, LogAccess::of(io), refresh)).map(PyLog::of)
}

#[doc = stub_doc!(_logs_opened)]
#[pyfunction]
#[pyo3(name = "_logs_opened")]
pub(super) fn logs_opened() -> u64 {
    LOGS.opened()
}

#[doc = stub_doc!(_partition_directory)]
#[pyfunction]
#[pyo3(name = "_partition_directory")]
pub(super) fn partition_directory(
    py: Python<'_>,
    path: &str,
) -> PyResult<(OsString, Option<String>, Option<i32>)> {
    let directory = planned(py, || (crate::plan::PartitionDirectory::of_url(path), Vec::new()))?;
    Ok((directory.path.into(), directory.topic, directory.partition))
}

#[doc = stub_doc!(_local_path)]
#[pyfunction]
#[pyo3(name = "_local_path")]
pub(super) fn local_path(py: Python<'_>, path: &str) -> PyResult<OsString> {
    planned(py, || (crate::plan::local_path(path).map(OsString::from), Vec::new()))
}

#[doc = stub_doc!(_SourceOptions)]
#[pyclass(frozen, eq, module = "cordwood._core", name = "_SourceOptions")]
#[derive(Clone, PartialEq)]
pub(super) struct PySourceOptions(SourceOptions);

#[pymethods]
impl PySourceOptions {
    #[new]
    #[expect(clippy::needless_pass_by_value, reason = "PyO3 passes a value")]
    fn new(py: Python<'_>, texts: BTreeMap<String, String>) -> PyResult<Self> {
        planned(py, || {
            let mut warnings = Vec::new();
            let texts = texts.iter().map(|(name, text)| (name.as_str(), text.as_str()));
            (SourceOptions::from_texts(texts, &mut warnings).map(Self), warnings)
        })
    }

    #[doc = stub_doc!(_SourceOptions.texts)]
    #[getter]
    fn texts(&self) -> BTreeMap<&'static str, String> {
        self.0.to_texts()
    }

    #[doc = stub_doc!(_SourceOptions.replaced)]
    fn replaced(&self, py: Python<'_>, changes: BTreeMap<String, Option<String>>) -> PyResult<Self> {
        let mut texts: BTreeMap<String, String> =
            self.0.to_texts().into_iter().map(|(name, text)| (name.to_owned(), text)).collect();
        for (name, text) in changes {
            match text {
                Some(text) => texts.insert(name, text),
                None => texts.remove(&name),
            };
        }
        Self::new(py, texts)
    }

    #[doc = stub_doc!(_SourceOptions.check)]
    fn check(&self, py: Python<'_>) -> PyResult<()> {
        with_context(py, |context| context.check(&self.0))
    }

    #[doc = stub_doc!(_SourceOptions.paths)]
    #[getter]
    fn paths(&self) -> Vec<String> {
        self.0.paths.clone()
    }

    #[doc = stub_doc!(_SourceOptions.table)]
    #[getter]
    fn table(&self) -> &'static str {
        self.0.table.name()
    }

    #[doc = stub_doc!(_SourceOptions.columns)]
    #[getter]
    fn columns(&self) -> Option<Vec<String>> {
        self.0.columns.clone()
    }

    #[doc = stub_doc!(_SourceOptions.mode)]
    #[getter]
    fn mode(&self) -> &'static str {
        self.0.mode.name()
    }

    #[doc = stub_doc!(_SourceOptions.isolation_level)]
    #[getter]
    fn isolation_level(&self) -> &'static str {
        word_of(&ISOLATION_LEVELS, self.0.isolation_level)
    }

    #[doc = stub_doc!(_SourceOptions.io)]
    #[getter]
    fn io(&self) -> &'static str {
        word_of(&IO, self.0.io)
    }

    #[doc = stub_doc!(_SourceOptions.max_partition_bytes)]
    #[getter]
    fn max_partition_bytes(&self) -> Option<u64> {
        self.0.max_partition_bytes
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        (py.get_type::<Self>(), (self.texts(),)).into_bound_py_any(py)
    }

    fn __repr__(&self) -> String {
        format!("<_SourceOptions {:?}>", self.texts())
    }
}

#[doc = stub_doc!(_Query)]
#[pyclass(frozen, module = "cordwood._core", name = "_Query")]
pub(super) struct PyQuery {
    pub(super) query: Query,
    schema: Option<String>,
}

#[pymethods]
impl PyQuery {
    #[new]
    #[pyo3(signature = (options, schema=None, *, is_stream=false))]
    fn new(
        py: Python<'_>,
        options: &Bound<'_, PySourceOptions>,
        schema: Option<String>,
        is_stream: bool,
    ) -> PyResult<Self> {
        let options = options.get().0.clone();
        let query = planned(py, || (Query::new(options, schema.as_deref()), Vec::new()))?;
        Ok(Self { query: if is_stream { query.of_stream() } else { query }, schema })
    }

    #[doc = stub_doc!(_Query.options)]
    #[getter]
    fn options(&self) -> PySourceOptions {
        PySourceOptions(self.query.options.clone())
    }

    #[doc = stub_doc!(_Query.schema)]
    #[getter]
    fn schema(&self) -> String {
        self.query.schema_json()
    }

    #[doc = stub_doc!(_Query.plan)]
    fn plan(&self, py: Python<'_>) -> PyResult<(Vec<PyPiece>, Vec<PyTask>)> {
        let (ranges, tasks) = with_context(py, |context| context.plan(&self.query))?;
        let ranges = ranges.into_iter().map(PyPiece::of_range).collect();
        Ok((ranges, tasks.into_iter().map(PyTask).collect()))
    }

    #[doc = stub_doc!(_Query.ranges)]
    fn ranges(&self, py: Python<'_>) -> PyResult<Vec<PyPiece>> {
        let ranges = with_context(py, |context| context.ranges(&self.query))?;
        Ok(ranges.into_iter().map(PyPiece::of_range).collect())
    }

    #[doc = stub_doc!(_Query.read)]
    fn read(&self, task: &Bound<'_, PyTask>) -> PyTaskReader {
        PyTaskReader::new(self.query.clone(), task.get().0.clone())
    }

    #[doc = stub_doc!(_Query.count)]
    fn count(&self, py: Python<'_>, task: &Bound<'_, PyTask>) -> PyResult<i64> {
        let (query, task) = (self.query.counting(), task.get().0.clone());
        PyTaskReader::new(query, task).count(py)
    }

    #[doc = stub_doc!(_Query.offset_gap)]
    fn offset_gap(&self, py: Python<'_>, piece: &Bound<'_, PyPiece>) -> PyResult<u64> {
        let piece = &piece.get().0;
        with_context(py, |context| context.offset_gap(piece, &self.query.options))
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let this = slf.get();
        let arguments = (this.options(), this.schema.clone(), this.query.is_stream());
        (slf.get_type().getattr("_restored")?, arguments).into_bound_py_any(py)
    }

    #[classmethod]
    fn _restored(
        class: &Bound<'_, PyType>,
        options: &Bound<'_, PySourceOptions>,
        schema: Option<String>,
        is_stream: bool,
    ) -> PyResult<Self> {
        Self::new(class.py(), options, schema, is_stream)
    }
}

#[doc = stub_doc!(_Task)]
#[pyclass(frozen, eq, module = "cordwood._core", name = "_Task")]
#[derive(Clone, PartialEq)]
pub(super) struct PyTask(pub(super) Task);

#[pymethods]
impl PyTask {
    #[new]
    fn new(py: Python<'_>, content: &[u8]) -> PyResult<Self> {
        planned(py, || (Task::from_bytes(content).map(Self), Vec::new()))
    }

    #[doc = stub_doc!(_Task.size)]
    #[getter]
    fn size(&self) -> u64 {
        self.0.size()
    }

    #[doc = stub_doc!(_Task.pieces)]
    #[getter]
    fn pieces(&self) -> Vec<PyPiece> {
        self.0.pieces.iter().cloned().map(PyPiece).collect()
    }

    fn __bytes__<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.to_bytes())
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        (py.get_type::<Self>(), (self.__bytes__(py),)).into_bound_py_any(py)
    }
}

#[doc = stub_doc!(_Piece)]
#[pyclass(frozen, eq, module = "cordwood._core", name = "_Piece")]
#[derive(Clone, PartialEq)]
pub(super) struct PyPiece(Piece);

impl PyPiece {
    fn of_range(range: Bounds) -> Self {
        Self(Piece::of_range(range))
    }
}

#[pymethods]
impl PyPiece {
    #[doc = stub_doc!(_Piece.topic)]
    #[getter]
    fn topic(&self) -> Option<String> {
        self.0.directory.topic.clone()
    }

    #[doc = stub_doc!(_Piece.partition)]
    #[getter]
    fn partition(&self) -> Option<i32> {
        self.0.directory.partition
    }

    #[doc = stub_doc!(_Piece.path)]
    #[getter]
    fn path(&self) -> OsString {
        self.0.directory.path.clone().into()
    }

    #[doc = stub_doc!(_Piece.start_offset)]
    #[getter]
    fn start_offset(&self) -> i64 {
        self.0.split.start_offset
    }

    #[doc = stub_doc!(_Piece.end_offset)]
    #[getter]
    fn end_offset(&self) -> i64 {
        self.0.split.end_offset
    }

    #[doc = stub_doc!(_Piece.size)]
    #[getter]
    fn size(&self) -> u64 {
        self.0.split.size
    }

    #[doc = stub_doc!(_Piece.task)]
    #[getter]
    fn task(&self) -> PyTask {
        PyTask(Task { pieces: vec![self.0.clone()] })
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        (py.get_type::<Self>().getattr("_restored")?, (self.task(),)).into_bound_py_any(py)
    }

    #[classmethod]
    fn _restored(class: &Bound<'_, PyType>, task: &Bound<'_, PyTask>) -> PyResult<Self> {
        let piece = task.get().0.pieces.first().cloned().map(Self);
        piece.ok_or_else(|| pyo3::exceptions::PyValueError::new_err(format!("no piece for {class}")))
    }
}
