//! The plan of a recovery, and the log records of one that was carried out.

use std::ffi::OsString;
use std::fmt::Display;

use pyo3::prelude::*;

use super::enter::logger;
use super::value_class::{value_class, wrapped};
use crate::writer::{FileChange, RebuiltIndex, RecoveryCut, RecoveryPlan, SegmentSplit};

value_class! {
    "RecoveryPlan", PyRecoveryPlan(RecoveryPlan),
    attributes {
        path: OsString = |plan| plan.path.clone().into(),
        is_clean: bool = RecoveryPlan::is_clean,
        closed_cleanly: bool,
        recovery_point: i64,
        log_start_offset: i64,
        log_end_offset: i64,
        segments: Vec<i64>,
        index_interval_bytes: u64,
        interval_source: &'static str = |plan| plan.interval_source.code(),
        cuts: Vec<PyRecoveryCut> = |plan| wrapped(&plan.cuts),
        rebuilt_indexes: Vec<PyRebuiltIndex> = |plan| wrapped(&plan.rebuilt_indexes),
        file_changes: Vec<PyFileChange> = |plan| wrapped(&plan.file_changes),
        splits: Vec<PySegmentSplit> = |plan| wrapped(&plan.splits),
        kept_files: Vec<OsString> = |plan| plan.kept_files.iter().map(|file| file.clone().into()).collect(),
        rewrites_leader_epochs: bool,
    }
    methods {
        fn __repr__(&self) -> String {
            let RecoveryPlan { path, log_start_offset, log_end_offset, cuts, rebuilt_indexes, file_changes, splits, .. } = &self.0;
            format!(
                "RecoveryPlan(path={:?}, log_start_offset={log_start_offset}, log_end_offset={log_end_offset}, cuts={}, \
                 rebuilt_indexes={}, file_changes={}, splits={})",
                path.to_string_lossy(), cuts.len(), rebuilt_indexes.len(), file_changes.len(), splits.len()
            )
        }
    }
}

value_class! {
    "RecoveryCut", PyRecoveryCut(RecoveryCut),
    repr {
        file: OsString = |cut| cut.file.clone().into(),
        start_position: u64,
        end_position: u64,
        start_offset: i64,
        reason: String,
    }
    more {
        size: u64 = RecoveryCut::size,
        end_offset: Option<i64>,
        quarantine: Option<OsString> = |cut| cut.quarantine.clone().map(Into::into),
    }
    methods {
        fn __str__(&self) -> String {
            self.0.to_string()
        }
    }
}

value_class! {
    "RebuiltIndex", PyRebuiltIndex(RebuiltIndex),
    repr {
        file: OsString = |index| index.file.clone().into(),
        reason: &'static str = |index| index.reason.code(),
    }
    methods {
        fn __str__(&self) -> String {
            self.0.to_string()
        }
    }
}

value_class! {
    "FileChange", PyFileChange(FileChange),
    repr {
        file: OsString = |change| change.file.clone().into(),
        new_file: Option<OsString> = |change| change.new_file.clone().map(Into::into),
        reason: &'static str = |change| change.reason.code(),
    }
    methods {
        fn __str__(&self) -> String {
            self.0.to_string()
        }
    }
}

value_class! {
    "SegmentSplit", PySegmentSplit(SegmentSplit),
    repr {
        file: OsString = |split| split.file.clone().into(),
        base_offsets: Vec<i64>,
    }
    methods {
        fn __str__(&self) -> String {
            self.0.to_string()
        }
    }
}

/// Writes what a recovery changed to Python's logger `cordwood`: a warning for a cut of bytes other than
/// zeros, `info` for the rest.
pub(super) fn log(py: Python<'_>, plan: &RecoveryPlan) -> PyResult<()> {
    let logger = logger(py)?;
    let write = |level: &str, entry: &dyn Display| {
        // the text is an argument, so that a % in a path is not taken for a format
        logger.call_method1(level, ("%s", entry.to_string())).map(drop)
    };
    for cut in &plan.cuts {
        write(if cut.quarantine.is_some() { "warning" } else { "info" }, cut)?;
    }
    plan.file_changes.iter().try_for_each(|change| write("info", change))?;
    plan.splits.iter().try_for_each(|split| write("info", split))?;
    plan.rebuilt_indexes.iter().try_for_each(|index| write("info", index))?;
    if plan.rewrites_leader_epochs {
        write("info", &format_args!("{}: leader epochs rewritten from the batches", plan.path.display()))?;
    }
    Ok(())
}
