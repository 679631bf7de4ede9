//! What `Log.follow` and `cordwood cat --follow` need: notification of changes, and a position that they have
//! reached in a log.

use std::os::fd::{IntoRawFd, RawFd};
use std::path::PathBuf;

use pyo3::prelude::*;

use super::arguments;
use super::enter::enter;
use super::log::PyLog;
use crate::fs::watch;
use crate::plan::position::Position;

#[doc = stub_doc!(_watch_directories)]
#[pyfunction(name = "_watch_directories")]
#[expect(clippy::needless_pass_by_value, reason = "PyO3 converts it to an owned one")]
pub(super) fn watch_directories(paths: Vec<PathBuf>) -> PyResult<(RawFd, Vec<i32>)> {
    let (descriptor, numbers) = watch::watch_directories(&paths)?;
    Ok((descriptor.into_raw_fd(), numbers))
}

#[doc = stub_doc!(_is_being_truncated)]
#[pyfunction(name = "_is_being_truncated")]
pub(super) fn is_being_truncated(py: Python<'_>, log: &Bound<'_, PyLog>) -> PyResult<bool> {
    log.get().read(py, |log| Ok(log.is_being_truncated()))
}

#[doc = stub_doc!(_LogPosition)]
#[pyclass(frozen, module = "cordwood._core", name = "_LogPosition")]
pub(super) struct PyLogPosition {
    position: Position,
    /// The truncation count of the log that it was taken in.
    truncations: u64,
}

#[pymethods]
impl PyLogPosition {
    #[new]
    fn new(py: Python<'_>, log: &Bound<'_, PyLog>, offset: &Bound<'_, PyAny>) -> PyResult<Self> {
        let offset = arguments::offset("offset", offset)?;
        log.get().read(py, |log| {
            Ok(Self { position: Position::of(&log, offset)?, truncations: log.truncations() })
        })
    }

    #[doc = stub_doc!(_LogPosition.mismatch)]
    fn mismatch(&self, py: Python<'_>, log: &Bound<'_, PyLog>) -> PyResult<Option<String>> {
        let log = log.get().handle();
        enter(py, || {
            let log = log.log()?;
            let Self { position, truncations } = self;
            let now = Position::of(&log, position.offset)?;
            // a truncated log may have been compacted since, too
            let is_compacted = || Ok(log.truncations() == *truncations && log.is_compacted()?);
            Ok(position.mismatch(&now, is_compacted)?.map(|mismatch| mismatch.to_string()))
        })
    }
}
