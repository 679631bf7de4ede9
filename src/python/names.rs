//! `PathInfo`, and the core's rules for the names of files and directories, and for suggestions.

use std::ffi::OsString;

use pyo3::prelude::*;
use pyo3::types::PyString;

use super::arguments::{self, PARTITION_STATES, word_of};
use super::enter::enter;
use super::value_class::{pickled, unpickled};
use crate::config::nearest_within;
use crate::dir::{self, DirectoryEntry, PathInfo, PathKind};
use crate::fs::Directory;
use crate::fs::names::{self, PartitionName, PartitionState, SegmentFileName, Stage};
use crate::state::data_directory::DataDirectory;

#[doc = stub_doc!(PathInfo)]
#[pyclass(frozen, eq, hash, get_all, module = "cordwood", name = "PathInfo")]
#[derive(PartialEq, Eq, Hash, serde::Deserialize, serde::Serialize)]
#[expect(
    clippy::unsafe_derive_deserialize,
    reason = "the unsafe code is PyO3's, and needs nothing of the fields"
)]
pub(super) struct PyPathInfo {
    #[doc = stub_doc!(PathInfo.kind)]
    kind: String,
    #[doc = stub_doc!(PathInfo.topic)]
    topic: Option<String>,
    #[doc = stub_doc!(PathInfo.partition)]
    partition: Option<i32>,
    #[doc = stub_doc!(PathInfo.base_offset)]
    base_offset: Option<i64>,
    #[doc = stub_doc!(PathInfo.state)]
    state: Option<String>,
}

impl From<PathInfo> for PyPathInfo {
    fn from(PathInfo { kind, partition, base_offset, stage }: PathInfo) -> Self {
        let state = match (stage, &partition) {
            (Some(stage), _) => Some(stage_name(stage)),
            (None, Some(partition)) if kind == PathKind::Partition => Some(state_name(partition.state)),
            _ => None,
        };
        let (topic, partition) = partition.map(|name| (name.topic, name.partition)).unzip();
        let kind = kind.name().to_owned();
        Self { kind, topic, partition, base_offset, state: state.map(str::to_owned) }
    }
}

fn state_name(state: PartitionState) -> &'static str {
    let name = word_of(&PARTITION_STATES, state);
    if name.is_empty() { "live" } else { name }
}

fn stage_name(stage: Stage) -> &'static str {
    match stage {
        Stage::Live => "live",
        Stage::Swap => "swap",
        Stage::Cleaned => "cleaned",
        Stage::Deleted => "deleted",
    }
}

#[pymethods]
impl PyPathInfo {
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        pickled::<Self>(py, self)
    }

    #[staticmethod]
    fn _unpickled(py: Python<'_>, state: &str) -> PyResult<Self> {
        unpickled(py, "PathInfo", state)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let Self { kind, topic, partition, base_offset, state } = self;
        let format = "PathInfo(kind={!r}, topic={!r}, partition={!r}, base_offset={!r}, state={!r})";
        PyString::new(py, format)
            .call_method1("format", (kind, topic, partition, base_offset, state))?
            .extract()
    }
}

#[doc = stub_doc!(classify)]
#[pyfunction]
pub(super) fn classify(py: Python<'_>, path: &Bound<'_, PyAny>) -> PyResult<PyPathInfo> {
    let path = arguments::path(path)?;
    enter(py, || dir::classify(path)).map(Into::into)
}

#[doc = stub_doc!(_has_segments)]
#[pyfunction]
#[pyo3(name = "_has_segments")]
pub(super) fn has_segments(py: Python<'_>, path: &Bound<'_, PyAny>) -> PyResult<bool> {
    let path = arguments::path(path)?;
    enter(py, || dir::has_segments(&path))
}

#[doc = stub_doc!(_partition_parts)]
#[pyfunction]
#[pyo3(name = "_partition_parts")]
#[expect(clippy::needless_pass_by_value, reason = "PyO3 passes a value")]
pub(super) fn partition_parts(name: OsString) -> Option<(String, i32, &'static str)> {
    let PartitionName { topic, partition, state } = PartitionName::parse(name.to_str()?)?;
    Some((topic, partition, state_name(state)))
}

#[doc = stub_doc!(_is_in_data_directory)]
#[pyfunction]
#[pyo3(name = "_is_in_data_directory")]
pub(super) fn is_in_data_directory(py: Python<'_>, path: &Bound<'_, PyAny>) -> PyResult<bool> {
    let path = arguments::path(path)?;
    enter(py, || DataDirectory::around(&Directory::open(&path, "give the path of a partition")?))
        .map(|found| found.is_some())
}

#[doc = stub_doc!(_data_directory_entry)]
#[pyfunction]
#[pyo3(name = "_data_directory_entry")]
#[expect(clippy::needless_pass_by_value, reason = "PyO3 passes a value")]
pub(super) fn data_directory_entry(name: OsString, is_directory: bool) -> &'static str {
    match name.to_str().map(|name| DirectoryEntry::of(name, is_directory)) {
        Some(DirectoryEntry::Partition(partition)) => state_name(partition.state),
        Some(DirectoryEntry::Known) => "known",
        Some(DirectoryEntry::Foreign) | None => "foreign",
    }
}

#[doc = stub_doc!(_is_segment_file)]
#[pyfunction]
#[pyo3(name = "_is_segment_file")]
#[expect(clippy::needless_pass_by_value, reason = "PyO3 passes a value")]
pub(super) fn is_segment_file(name: OsString) -> bool {
    name.to_str().and_then(SegmentFileName::parse).is_some()
}

#[doc = stub_doc!(_offsets_in_words)]
#[pyfunction]
#[pyo3(name = "_offsets_in_words", signature = (start_offset, end_offset, /))]
pub(super) fn offsets_in_words(start_offset: i64, end_offset: Option<i64>) -> String {
    crate::types::offsets_in_words(start_offset, end_offset)
}

#[doc = stub_doc!(_is_topic)]
#[pyfunction]
#[pyo3(name = "_is_topic")]
pub(super) fn is_topic(name: &str) -> bool {
    names::is_topic(name)
}

#[doc = stub_doc!(_nearest)]
#[pyfunction]
#[pyo3(name = "_nearest", signature = (name, known, letters=3))]
#[expect(clippy::needless_pass_by_value, reason = "PyO3 passes a value")]
pub(super) fn nearest(name: &str, known: Vec<String>, letters: usize) -> Option<String> {
    nearest_within(name, known.iter().map(String::as_str), letters).map(str::to_owned)
}
