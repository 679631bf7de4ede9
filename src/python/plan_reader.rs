//! The reader of a task, and streams.

use std::sync::{Mutex, MutexGuard, PoisonError};

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use pyo3::prelude::*;

use super::arrow_export;
use super::plan::{PyQuery, PyTask, context, planned};
use crate::plan::{PlanError, Query, Stream, Task, TaskBatch, TaskColumn, TaskReader};

#[doc = stub_doc!(_TaskReader)]
#[pyclass(frozen, module = "cordwood._core", name = "_TaskReader")]
pub(super) struct PyTaskReader(Mutex<TaskReader>);

impl PyTaskReader {
    pub(super) fn new(query: Query, task: Task) -> Self {
        Self(Mutex::new(TaskReader::new(context(), query, task)))
    }

    /// The number in the first column of the only row.
    pub(super) fn count(&self, py: Python<'_>) -> PyResult<i64> {
        let batch = self.next(py, |_, batch| Ok(batch))?;
        let column = batch.as_ref().and_then(|batch| batch.columns.first());
        let Some(TaskColumn::Values(values)) = column else { return Ok(0) };
        Ok(values.as_primitive_opt::<Int64Type>().map_or(0, |counts| counts.value(0)))
    }

    fn next<T: Send>(
        &self,
        py: Python<'_>,
        convert: impl FnOnce(&TaskReader, TaskBatch) -> Result<T, PlanError> + Send,
    ) -> PyResult<Option<T>> {
        planned(py, || {
            let mut reader = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let next = reader.next_batch();
            let next = next.and_then(|batch| batch.map(|batch| convert(&reader, batch)).transpose());
            (next, reader.take_warnings())
        })
    }
}

#[pymethods]
impl PyTaskReader {
    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let batch: Option<RecordBatch> =
            self.next(py, |reader, batch| batch.into_record_batch(reader.query()))?;
        batch.map(|batch| arrow_export::record_batch(py, batch)).transpose()
    }
}

#[doc = stub_doc!(_Stream)]
#[pyclass(frozen, module = "cordwood._core", name = "_Stream")]
pub(super) struct PyStream(Mutex<Stream>);

impl PyStream {
    fn lock(&self) -> MutexGuard<'_, Stream> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn call<T: Send>(
        &self,
        py: Python<'_>,
        call: impl FnOnce(&mut Stream) -> Result<T, PlanError> + Send,
    ) -> PyResult<T> {
        planned(py, || {
            let mut stream = self.lock();
            let result = call(&mut stream);
            (result, stream.take_warnings())
        })
    }
}

#[pymethods]
impl PyStream {
    #[new]
    fn new(py: Python<'_>, query: &Bound<'_, PyQuery>) -> PyResult<Self> {
        let query = query.get().query.clone();
        let stream = planned(py, || (Stream::new(query, context()), Vec::new()))?;
        Ok(Self(Mutex::new(stream)))
    }

    #[doc = stub_doc!(_Stream.max_offsets_per_trigger)]
    #[getter]
    fn max_offsets_per_trigger(&self, py: Python<'_>) -> PyResult<Option<u64>> {
        self.call(py, |stream| Ok(stream.max_offsets_per_trigger()))
    }

    #[doc = stub_doc!(_Stream.initial_offset)]
    fn initial_offset(&self, py: Python<'_>) -> PyResult<String> {
        self.call(py, Stream::initial_offset)
    }

    #[doc = stub_doc!(_Stream.latest_offset)]
    #[pyo3(signature = (start, max_offsets=None))]
    fn latest_offset(&self, py: Python<'_>, start: &str, max_offsets: Option<u64>) -> PyResult<String> {
        self.call(py, |stream| stream.latest_offset(start, max_offsets))
    }

    #[doc = stub_doc!(_Stream.prepare_available_now)]
    fn prepare_available_now(&self, py: Python<'_>) -> PyResult<()> {
        self.call(py, Stream::prepare_available_now)
    }

    #[doc = stub_doc!(_Stream.report_latest_offset)]
    fn report_latest_offset(&self, py: Python<'_>) -> PyResult<Option<String>> {
        self.call(py, |stream| Ok(stream.report_latest_offset()))
    }

    #[doc = stub_doc!(_Stream.plan)]
    fn plan(&self, py: Python<'_>, start: &str, end: &str) -> PyResult<Vec<PyTask>> {
        let tasks = self.call(py, |stream| stream.plan(start, end))?;
        Ok(tasks.into_iter().map(PyTask).collect())
    }
}
