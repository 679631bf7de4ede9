//! `Position`, and what is committed under its name.

use std::sync::Arc;

use pyo3::prelude::*;

use super::arguments;
use super::enter::enter;
use super::handle::LogHandle;
use super::value_class::value_class;
use crate::error::Result;
use crate::log::Position;
use crate::state::positions::{CommittedOffset, LastCommit};

value_class! {
    "CommittedOffset", PyCommittedOffset(CommittedOffset),
    repr { offset: i64, timestamp: i64 }
}

#[doc = stub_doc!(Position)]
#[pyclass(frozen, module = "cordwood", name = "Position")]
pub(super) struct PyPosition {
    handle: Arc<LogHandle>,
    name: String,
    last_commit: LastCommit,
}

impl PyPosition {
    /// The position with a name that a log allows.
    pub(super) fn new(handle: Arc<LogHandle>, name: String) -> Self {
        Self { handle, name, last_commit: LastCommit::default() }
    }

    /// The position in the log of this process.
    fn position(&self) -> Result<Position> {
        Ok(self.handle.log()?.position(&self.name)?.after(&self.last_commit))
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
        let committed = enter(py, || self.position()?.committed())?;
        Ok(committed.map(Into::into))
    }

    #[doc = stub_doc!(Position.commit)]
    fn commit(&self, py: Python<'_>, offset: &Bound<'_, PyAny>) -> PyResult<()> {
        let offset = arguments::offset("offset", offset)?;
        enter(py, || self.position()?.commit(offset))
    }

    #[doc = stub_doc!(Position.commit_async)]
    fn commit_async<'py>(slf: &Bound<'py, Self>, offset: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let (py, commit) = (slf.py(), slf.getattr("commit")?);
        py.import("cordwood.async_appends")?.call_method1("in_thread", (commit, offset))
    }

    fn __repr__(&self) -> String {
        format!("<Position {:?} in {}>", self.name, self.handle.path().display())
    }
}
