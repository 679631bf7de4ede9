//! Appends from an event loop: the append itself, and an awaitable of its flush.

use pyo3::exceptions::PyException;
use pyo3::prelude::*;

use super::enter::enter;
use super::writer::PyAppended;
use crate::writer::Unflushed;

#[doc = stub_doc!(_Unflushed)]
#[pyclass(frozen, module = "cordwood._core", name = "_Unflushed")]
pub(super) struct PyUnflushed {
    append: Unflushed,
    process: u32,
}

impl Drop for PyUnflushed {
    fn drop(&mut self) {
        if std::process::id() != self.process {
            // it may be the last reference to a closed log, whose files are the parent's
            std::mem::forget(self.append.clone());
        }
    }
}

#[pymethods]
impl PyUnflushed {
    #[doc = stub_doc!(_Unflushed.must_wait)]
    #[getter]
    fn must_wait(&self) -> bool {
        self.append.must_wait()
    }

    #[doc = stub_doc!(_Unflushed.writer)]
    #[getter]
    fn writer(&self) -> usize {
        self.append.writer()
    }

    #[doc = stub_doc!(_Unflushed.order)]
    #[getter]
    fn order(&self) -> (u64, i64) {
        self.append.order()
    }

    #[doc = stub_doc!(_Unflushed.wait)]
    fn wait(&self, py: Python<'_>) -> PyResult<()> {
        enter(py, || self.append.wait())
    }

    #[doc = stub_doc!(_Unflushed.appended)]
    fn appended(&self, py: Python<'_>) -> PyResult<PyAppended> {
        enter(py, || self.append.appended()).map(Into::into)
    }
}

/// The coroutine that ends when an append is acknowledged, or raises its error. An exception that is no
/// `Exception`, such as `KeyboardInterrupt`, is raised at once.
pub(super) fn awaitable(py: Python<'_>, append: PyResult<Unflushed>) -> PyResult<Bound<'_, PyAny>> {
    let module = py.import("cordwood.async_appends")?;
    match append {
        Ok(append) => {
            let append = PyUnflushed { append, process: std::process::id() };
            module.getattr("acknowledged")?.call1((append,))
        }
        Err(error) if error.is_instance_of::<PyException>(py) => {
            module.getattr("failed")?.call1((error.into_value(py),))
        }
        Err(error) => Err(error),
    }
}
