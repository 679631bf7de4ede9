//! Columns to Python through the Arrow `PyCapsule` interface.

use std::panic::{AssertUnwindSafe, catch_unwind};

use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{Array, RecordBatch, RecordBatchIterator, RecordBatchReader, StructArray};
use arrow_schema::{ArrowError, SchemaRef};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use super::enter::{has_warnings, log_warnings};
use super::error;
use crate::error::Error;

/// A capsule with a stream of the batches of `reader`.
pub(super) fn stream_capsule(
    py: Python<'_>,
    reader: impl RecordBatchReader + Send + 'static,
) -> PyResult<Bound<'_, PyCapsule>> {
    let stream = FFI_ArrowArrayStream::new(Box::new(Guarded(reader)));
    PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
}

/// A reader whose panics become errors of the stream: a panic must not reach the C code that calls it.
struct Guarded<R>(R);

impl<R: RecordBatchReader> Iterator for Guarded<R> {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = catch_unwind(AssertUnwindSafe(|| self.0.next())).unwrap_or_else(|_| {
            let defect = "a defect of cordwood, please report it".to_owned();
            Some(Err(ArrowError::CDataInterface(defect)))
        });
        // a stream cannot raise an exception of a logging handler
        if has_warnings() {
            Python::try_attach(|py| {
                log_warnings(py).unwrap_or_else(|error| error.write_unraisable(py, None));
            });
        }
        // consumers format the error without the interpreter, so its text is made here
        if let Some(Err(ArrowError::ExternalError(error))) = &next
            && let Some(Error::Interrupted(_)) = error.downcast_ref()
        {
            return Some(Err(ArrowError::ComputeError("interrupted by a signal".to_owned())));
        }
        next
    }
}

impl<R: RecordBatchReader> RecordBatchReader for Guarded<R> {
    fn schema(&self) -> SchemaRef {
        self.0.schema()
    }
}

/// A record batch that any Arrow library can import.
#[pyclass(frozen, module = "cordwood")]
struct ArrowBatch(RecordBatch);

#[pymethods]
impl ArrowBatch {
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
        drop(requested_schema);
        let schema = FFI_ArrowSchema::try_from(self.0.schema().as_ref()).map_err(refused)?;
        let array = FFI_ArrowArray::new(&StructArray::from(self.0.clone()).into_data());
        Ok((
            PyCapsule::new_with_value(py, schema, c"arrow_schema")?,
            PyCapsule::new_with_value(py, array, c"arrow_array")?,
        ))
    }
}

/// Record batches in memory that any Arrow library can import.
#[pyclass(frozen, module = "cordwood")]
pub(super) struct ArrowBatches {
    pub(super) schema: SchemaRef,
    pub(super) batches: Vec<RecordBatch>,
}

#[pymethods]
impl ArrowBatches {
    #[pyo3(signature = (requested_schema=None))]
    pub(super) fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        let batches = self.batches.clone().into_iter().map(Ok);
        stream_capsule(py, RecordBatchIterator::new(batches, self.schema.clone()))
    }
}

/// A schema that any Arrow library can import.
#[pyclass(frozen, module = "cordwood")]
struct ArrowSchema(SchemaRef);

#[pymethods]
impl ArrowSchema {
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(self.0.as_ref()).map_err(refused)?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }
}

/// A `pyarrow.RecordBatch`.
pub(super) fn record_batch(py: Python<'_>, batch: RecordBatch) -> PyResult<Bound<'_, PyAny>> {
    error::import(py, "pyarrow", "arrow")?.call_method1("record_batch", (ArrowBatch(batch),))
}

/// A `pyarrow.Schema`.
pub(super) fn schema(py: Python<'_>, schema: SchemaRef) -> PyResult<Bound<'_, PyAny>> {
    error::import(py, "pyarrow", "arrow")?.call_method1("schema", (ArrowSchema(schema),))
}

/// A `pyarrow.Table`.
pub(super) fn table(
    py: Python<'_>,
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
) -> PyResult<Bound<'_, PyAny>> {
    // pyarrow.table() would import pandas, which takes a third of a second
    let reader = error::import(py, "pyarrow", "arrow")?.getattr("RecordBatchReader")?;
    reader.call_method1("from_stream", (ArrowBatches { schema, batches },))?.call_method0("read_all")
}

#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn refused(error: ArrowError) -> PyErr {
    PyValueError::new_err(error.to_string())
}
