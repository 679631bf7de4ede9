//! The plan of a recovery, and the log records of one that was carried out.

use std::ffi::OsString;
use std::fmt::Display;
use std::path::Path;

use pyo3::prelude::*;

use super::enter::logger;
use crate::writer::{FileChange, RebuiltIndex, RecoveryCut, RecoveryPlan, SegmentSplit};

#[doc = stub_doc!(RecoveryPlan)]
#[pyclass(frozen, eq, hash, module = "cordwood", name = "RecoveryPlan")]
#[derive(PartialEq, Eq, Hash)]
pub(super) struct PyRecoveryPlan(RecoveryPlan);

impl From<RecoveryPlan> for PyRecoveryPlan {
    fn from(plan: RecoveryPlan) -> Self {
        Self(plan)
    }
}

#[pymethods]
impl PyRecoveryPlan {
    #[doc = stub_doc!(RecoveryPlan.path)]
    #[getter]
    fn path(&self) -> OsString {
        self.0.path.as_os_str().to_owned()
    }

    #[doc = stub_doc!(RecoveryPlan.is_clean)]
    #[getter]
    fn is_clean(&self) -> bool {
        self.0.is_clean()
    }

    #[doc = stub_doc!(RecoveryPlan.closed_cleanly)]
    #[getter]
    fn closed_cleanly(&self) -> bool {
        self.0.closed_cleanly
    }

    #[doc = stub_doc!(RecoveryPlan.recovery_point)]
    #[getter]
    fn recovery_point(&self) -> i64 {
        self.0.recovery_point
    }

    #[doc = stub_doc!(RecoveryPlan.log_start_offset)]
    #[getter]
    fn log_start_offset(&self) -> i64 {
        self.0.log_start_offset
    }

    #[doc = stub_doc!(RecoveryPlan.log_end_offset)]
    #[getter]
    fn log_end_offset(&self) -> i64 {
        self.0.log_end_offset
    }

    #[doc = stub_doc!(RecoveryPlan.segments)]
    #[getter]
    fn segments(&self) -> Vec<i64> {
        self.0.segments.clone()
    }

    #[doc = stub_doc!(RecoveryPlan.cuts)]
    #[getter]
    fn cuts(&self) -> Vec<PyRecoveryCut> {
        self.0.cuts.iter().cloned().map(PyRecoveryCut).collect()
    }

    #[doc = stub_doc!(RecoveryPlan.rebuilt_indexes)]
    #[getter]
    fn rebuilt_indexes(&self) -> Vec<PyRebuiltIndex> {
        self.0.rebuilt_indexes.iter().cloned().map(PyRebuiltIndex).collect()
    }

    #[doc = stub_doc!(RecoveryPlan.file_changes)]
    #[getter]
    fn file_changes(&self) -> Vec<PyFileChange> {
        self.0.file_changes.iter().cloned().map(PyFileChange).collect()
    }

    #[doc = stub_doc!(RecoveryPlan.splits)]
    #[getter]
    fn splits(&self) -> Vec<PySegmentSplit> {
        self.0.splits.iter().cloned().map(PySegmentSplit).collect()
    }

    #[doc = stub_doc!(RecoveryPlan.rewrites_leader_epochs)]
    #[getter]
    fn rewrites_leader_epochs(&self) -> bool {
        self.0.rewrites_leader_epochs
    }

    fn __repr__(&self) -> String {
        let plan = &self.0;
        format!(
            "RecoveryPlan(path={:?}, log_start_offset={}, log_end_offset={}, cuts={}, rebuilt_indexes={}, file_changes={}, \
             splits={})",
            plan.path.to_string_lossy(),
            plan.log_start_offset,
            plan.log_end_offset,
            plan.cuts.len(),
            plan.rebuilt_indexes.len(),
            plan.file_changes.len(),
            plan.splits.len()
        )
    }
}

#[doc = stub_doc!(RecoveryCut)]
#[pyclass(frozen, eq, hash, module = "cordwood", name = "RecoveryCut")]
#[derive(PartialEq, Eq, Hash)]
pub(super) struct PyRecoveryCut(RecoveryCut);

#[pymethods]
impl PyRecoveryCut {
    #[doc = stub_doc!(RecoveryCut.file)]
    #[getter]
    fn file(&self) -> OsString {
        self.0.file.as_os_str().to_owned()
    }

    #[doc = stub_doc!(RecoveryCut.start_position)]
    #[getter]
    fn start_position(&self) -> u64 {
        self.0.start_position
    }

    #[doc = stub_doc!(RecoveryCut.end_position)]
    #[getter]
    fn end_position(&self) -> u64 {
        self.0.end_position
    }

    #[doc = stub_doc!(RecoveryCut.size)]
    #[getter]
    fn size(&self) -> u64 {
        self.0.size()
    }

    #[doc = stub_doc!(RecoveryCut.start_offset)]
    #[getter]
    fn start_offset(&self) -> i64 {
        self.0.start_offset
    }

    #[doc = stub_doc!(RecoveryCut.end_offset)]
    #[getter]
    fn end_offset(&self) -> Option<i64> {
        self.0.end_offset
    }

    #[doc = stub_doc!(RecoveryCut.reason)]
    #[getter]
    fn reason(&self) -> &str {
        &self.0.reason
    }

    #[doc = stub_doc!(RecoveryCut.quarantine)]
    #[getter]
    fn quarantine(&self) -> Option<OsString> {
        self.0.quarantine.as_ref().map(|path| path.as_os_str().to_owned())
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self) -> String {
        let cut = &self.0;
        format!(
            "RecoveryCut(file={:?}, start_position={}, end_position={}, start_offset={}, reason={:?})",
            cut.file.to_string_lossy(),
            cut.start_position,
            cut.end_position,
            cut.start_offset,
            cut.reason
        )
    }
}

#[doc = stub_doc!(RebuiltIndex)]
#[pyclass(frozen, eq, hash, module = "cordwood", name = "RebuiltIndex")]
#[derive(PartialEq, Eq, Hash)]
pub(super) struct PyRebuiltIndex(RebuiltIndex);

#[pymethods]
impl PyRebuiltIndex {
    #[doc = stub_doc!(RebuiltIndex.file)]
    #[getter]
    fn file(&self) -> OsString {
        self.0.file.as_os_str().to_owned()
    }

    #[doc = stub_doc!(RebuiltIndex.reason)]
    #[getter]
    fn reason(&self) -> &'static str {
        self.0.reason.code()
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self) -> String {
        format!("RebuiltIndex(file={:?}, reason={:?})", self.0.file.to_string_lossy(), self.reason())
    }
}

#[doc = stub_doc!(FileChange)]
#[pyclass(frozen, eq, hash, module = "cordwood", name = "FileChange")]
#[derive(PartialEq, Eq, Hash)]
pub(super) struct PyFileChange(FileChange);

#[pymethods]
impl PyFileChange {
    #[doc = stub_doc!(FileChange.file)]
    #[getter]
    fn file(&self) -> OsString {
        self.0.file.as_os_str().to_owned()
    }

    #[doc = stub_doc!(FileChange.new_file)]
    #[getter]
    fn new_file(&self) -> Option<OsString> {
        self.0.new_file.as_ref().map(|path| path.as_os_str().to_owned())
    }

    #[doc = stub_doc!(FileChange.reason)]
    #[getter]
    fn reason(&self) -> &'static str {
        self.0.reason.code()
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self) -> String {
        let quoted = |path: &Path| format!("{:?}", path.to_string_lossy());
        let new_file = self.0.new_file.as_deref().map_or_else(|| "None".to_owned(), quoted);
        format!("FileChange(file={}, new_file={new_file}, reason={:?})", quoted(&self.0.file), self.reason())
    }
}

#[doc = stub_doc!(SegmentSplit)]
#[pyclass(frozen, eq, hash, module = "cordwood", name = "SegmentSplit")]
#[derive(PartialEq, Eq, Hash)]
pub(super) struct PySegmentSplit(SegmentSplit);

#[pymethods]
impl PySegmentSplit {
    #[doc = stub_doc!(SegmentSplit.file)]
    #[getter]
    fn file(&self) -> OsString {
        self.0.file.as_os_str().to_owned()
    }

    #[doc = stub_doc!(SegmentSplit.base_offsets)]
    #[getter]
    fn base_offsets(&self) -> Vec<i64> {
        self.0.base_offsets.clone()
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self) -> String {
        format!(
            "SegmentSplit(file={:?}, base_offsets={:?})",
            self.0.file.to_string_lossy(),
            self.0.base_offsets
        )
    }
}

/// Writes what a recovery changed to Python's logger `cordwood`: a warning where bytes other than zeros were cut, else an
/// information.
pub(super) fn log(py: Python<'_>, plan: &RecoveryPlan) -> PyResult<()> {
    let logger = logger(py)?;
    let write = |level: &str, entry: &dyn Display| {
        // the text is an argument: a % in a path is no format
        logger.call_method1(level, ("%s", entry.to_string())).map(drop)
    };
    for cut in &plan.cuts {
        write(if cut.quarantine.is_some() { "warning" } else { "info" }, cut)?;
    }
    let entries = plan.file_changes.iter().map(|change| change as &dyn Display);
    let entries = entries.chain(plan.splits.iter().map(|split| split as &dyn Display));
    let mut entries = entries.chain(plan.rebuilt_indexes.iter().map(|index| index as &dyn Display));
    entries.try_for_each(|entry| write("info", entry))?;
    if plan.rewrites_leader_epochs {
        write("info", &format_args!("{}: leader epochs rewritten from the batches", plan.path.display()))?;
    }
    Ok(())
}
