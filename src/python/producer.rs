//! `Producer`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use super::arguments::{self, Defaulted, LEFT_OUT, optional};
use super::async_append;
use super::enter::enter;
use super::record::now;
use super::record_input::{self, GivenRecord, GivenRecords};
use super::value_class::value_class;
use super::writer::PyAppended;
use super::writer_handle::Handle;
use crate::error::Result;
use crate::writer::{Producer, ProducerState};

value_class! {
    "ProducerState", PyProducerState(ProducerState),
    repr {
        producer_id: i64,
        producer_epoch: Option<i16>,
        last_sequence: Option<i32>,
        last_offset: Option<i64>,
        last_timestamp: Option<i64>,
        open_transaction: Option<i64>,
        coordinator_epoch: Option<i32>,
        expires: Option<i64>,
    }
}

#[doc = stub_doc!(Producer)]
#[pyclass(frozen, module = "cordwood", name = "Producer")]
pub(super) struct PyProducer {
    handle: Arc<Handle>,
    path: PathBuf,
    producer: Producer,
}

impl PyProducer {
    pub(super) fn new(handle: Arc<Handle>, path: PathBuf, producer: Producer) -> Self {
        Self { handle, path, producer }
    }

    fn call<T: Send>(&self, py: Python<'_>, call: impl FnOnce(&Producer) -> Result<T> + Send) -> PyResult<T> {
        // the writer is not closed meanwhile
        let _open = self.handle.writer(py)?;
        enter(py, || call(&self.producer))
    }

    fn append_given(
        &self,
        py: Python<'_>,
        records: &GivenRecords,
        sequence: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyAppended> {
        let sequence = optional("sequence", sequence, sequence_of)?;
        self.call(py, |producer| records.with(now(), |records| producer.append_many(records, sequence)))
            .map(Into::into)
    }

    fn append_given_async<'py>(
        &self,
        py: Python<'py>,
        records: PyResult<GivenRecords>,
        sequence: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let append = records.and_then(|records| {
            let sequence = optional("sequence", sequence, sequence_of)?;
            self.call(py, |producer| {
                records.with(now(), |records| producer.append_many_unflushed(records, sequence))
            })
        });
        async_append::awaitable(py, append)
    }
}

fn sequence_of(argument: &'static str, given: &Bound<'_, PyAny>) -> PyResult<i32> {
    arguments::whole(argument, "a sequence from 0 to 2^31 - 1", given)
}

#[pymethods]
impl PyProducer {
    #[doc = stub_doc!(Producer.name)]
    #[getter]
    fn name(&self) -> Option<&str> {
        self.producer.name()
    }

    #[doc = stub_doc!(Producer.producer_id)]
    #[getter]
    fn producer_id(&self) -> i64 {
        self.producer.producer_id()
    }

    #[doc = stub_doc!(Producer.producer_epoch)]
    #[getter]
    fn producer_epoch(&self) -> i16 {
        self.producer.producer_epoch()
    }

    #[doc = stub_doc!(Producer.next_sequence)]
    #[getter]
    fn next_sequence(&self, py: Python<'_>) -> PyResult<i32> {
        self.call(py, Producer::next_sequence)
    }

    #[doc = stub_doc!(Producer.last_offset)]
    #[getter]
    fn last_offset(&self, py: Python<'_>) -> PyResult<Option<i64>> {
        self.call(py, Producer::last_offset)
    }

    #[doc = stub_doc!(Producer.append)]
    #[expect(clippy::too_many_arguments, reason = "they are Python's arguments")]
    #[pyo3(signature = (value, key=None, headers=LEFT_OUT, timestamp=None, *, sequence=None),
        text_signature = "($self, value, key=None, headers=(), timestamp=None, *, sequence=None)")]
    fn append(
        &self,
        py: Python<'_>,
        value: Option<&Bound<'_, PyAny>>,
        key: Option<&Bound<'_, PyAny>>,
        headers: Defaulted<'_, '_>,
        timestamp: Option<&Bound<'_, PyAny>>,
        sequence: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyAppended> {
        let record = GivenRecords::one(GivenRecord::of_fields(value, key, headers, timestamp)?);
        self.append_given(py, &record, sequence)
    }

    #[doc = stub_doc!(Producer.append_many)]
    #[pyo3(signature = (records, *, sequence=None))]
    fn append_many(
        &self,
        py: Python<'_>,
        records: &Bound<'_, PyAny>,
        sequence: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyAppended> {
        self.append_given(py, &record_input::records(records)?, sequence)
    }

    #[doc = stub_doc!(Producer.append_async)]
    #[expect(clippy::too_many_arguments, reason = "they are Python's arguments")]
    #[pyo3(signature = (value, key=None, headers=LEFT_OUT, timestamp=None, *, sequence=None),
        text_signature = "($self, value, key=None, headers=(), timestamp=None, *, sequence=None)")]
    fn append_async<'py>(
        &self,
        py: Python<'py>,
        value: Option<&Bound<'_, PyAny>>,
        key: Option<&Bound<'_, PyAny>>,
        headers: Defaulted<'_, '_>,
        timestamp: Option<&Bound<'_, PyAny>>,
        sequence: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let record = GivenRecord::of_fields(value, key, headers, timestamp).map(GivenRecords::one);
        self.append_given_async(py, record, sequence)
    }

    #[doc = stub_doc!(Producer.append_many_async)]
    #[pyo3(signature = (records, *, sequence=None))]
    fn append_many_async<'py>(
        &self,
        py: Python<'py>,
        records: &Bound<'_, PyAny>,
        sequence: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.append_given_async(py, record_input::records(records), sequence)
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(not_pickled("Producer", &self.path))
    }

    fn __repr__(&self) -> String {
        let (name, id) = (self.name(), self.producer_id());
        let name = name.map_or_else(|| id.to_string(), |name| format!("{name:?} ({id})"));
        format!("<Producer {name} of {}>", self.path.display())
    }
}

/// The error for the pickling of what belongs to a writer.
pub(super) fn not_pickled(class: &str, path: &Path) -> PyErr {
    let path = path.display();
    PyTypeError::new_err(format!("the {class} of {path} belongs to its LogWriter and cannot be pickled"))
}
