//! `Position`, and what is committed under its name.

use std::sync::Arc;

use pyo3::prelude::*;

use super::arguments;
use super::enter::enter;
use super::handle::LogHandle;
use super::value_class::value_class;
use crate::state::positions::CommittedOffset;

value_class! {
    "CommittedOffset", PyCommittedOffset(CommittedOffset),
    repr { offset: i64, timestamp: i64 }
}

#[doc = stub_doc!(Position)]
#[pyclass(frozen, module = "cordwood", name = "Position")]
pub(super) struct PyPosition {
    handle: Arc<LogHandle>,
    name: String,
}

impl PyPosition {
    /// The position with a name that a log allows.
    pub(super) fn new(handle: Arc<LogHandle>, name: String) -> Self {
        Self { handle, name }
    }
}

#[pymethods]
impl PyPosition {
    #[doc = stub_doc!(Position.name)]
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    #[doc = stub_doc!(Position.offset)]
    #[getter]
    fn offset(&self, py: Python<'_>) -> PyResult<Option<i64>> {
        Ok(self.committed(py)?.map(|committed| committed.0.offset))
    }

    #[doc = stub_doc!(Position.committed)]
    #[getter]
    fn committed(&self, py: Python<'_>) -> PyResult<Option<PyCommittedOffset>> {
        let committed = enter(py, || self.handle.log()?.position(&self.name)?.committed())?;
        Ok(committed.map(Into::into))
    }

    #[doc = stub_doc!(Position.commit)]
    fn commit(&self, py: Python<'_>, offset: &Bound<'_, PyAny>) -> PyResult<()> {
        let offset = arguments::offset("offset", offset)?;
        enter(py, || self.handle.log()?.position(&self.name)?.commit(offset))
    }

    fn __repr__(&self) -> String {
        format!("<Position {:?} in {}>", self.name, self.handle.path().display())
    }
}
