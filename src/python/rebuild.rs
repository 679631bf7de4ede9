//! `rebuild_indexes` and its report.

use std::ffi::OsString;

use pyo3::prelude::*;

use super::arguments::{self, Defaulted, LEFT_OUT, flag, optional, positive};
use super::config::config_of;
use super::enter::{SIGNALS, WARNINGS, enter_change};
use super::value_class::{value_class, wrapped};
use crate::inspect::rebuild::{self, DerivedFile, RebuildOptions, RebuildReport};

value_class! {
    "RebuildReport", PyRebuildReport(RebuildReport),
    attributes {
        path: OsString = |report| report.path.clone().into(),
        is_clean: bool = RebuildReport::is_clean,
        dry_run: bool,
        index_interval_bytes: u64,
        interval_source: &'static str = |report| report.interval_source.code(),
        log_end_offset: i64,
        files: Vec<PyDerivedFile> = |report| wrapped(&report.files),
    }
    methods {
        fn __repr__(&self) -> String {
            let RebuildReport { path, dry_run, index_interval_bytes, files, .. } = &self.0;
            format!(
                "RebuildReport(path={:?}, is_clean={}, dry_run={}, index_interval_bytes={index_interval_bytes}, files={})",
                path.to_string_lossy(),
                if self.0.is_clean() { "True" } else { "False" },
                if *dry_run { "True" } else { "False" },
                files.len()
            )
        }
    }
}

value_class! {
    "DerivedFile", PyDerivedFile(DerivedFile),
    repr {
        file: OsString = |file| file.file.clone().into(),
        reason: &'static str = |file| file.state.code(),
        old_size: Option<u64>,
        new_size: Option<u64>,
        first_difference: Option<u64>,
    }
    more {
        quarantine: Option<OsString> = |file| file.quarantine.clone().map(Into::into),
    }
    methods {
        fn __str__(&self) -> String {
            self.0.to_string()
        }
    }
}

#[doc = stub_doc!(rebuild_indexes)]
#[pyfunction]
#[pyo3(
    signature = (path, *, config=None, dry_run=LEFT_OUT, segments=None, threads=LEFT_OUT, max_batch_bytes=LEFT_OUT),
    text_signature = "(path, *, config=None, dry_run=True, segments=None, threads=1, max_batch_bytes=134217728)"
)]
pub(super) fn rebuild_indexes(
    path: &Bound<'_, PyAny>,
    config: Option<&Bound<'_, PyAny>>,
    dry_run: Defaulted<'_, '_>,
    segments: Option<&Bound<'_, PyAny>>,
    threads: Defaulted<'_, '_>,
    max_batch_bytes: Defaulted<'_, '_>,
) -> PyResult<PyRebuildReport> {
    let (py, path) = (path.py(), arguments::path(path)?);
    let default = RebuildOptions::default();
    let options = RebuildOptions {
        config: config.map(config_of).transpose()?,
        dry_run: dry_run.or("dry_run", default.dry_run, flag)?,
        segments: optional("segments", segments, base_offsets)?,
        threads: threads.or("threads", default.threads, positive)?,
        max_batch_bytes: max_batch_bytes.or("max_batch_bytes", default.max_batch_bytes, positive)?,
        interrupt: SIGNALS,
        on_warning: WARNINGS,
    };
    enter_change(py, || rebuild::rebuild(path, &options)).map(Into::into)
}

/// The base offsets in a list or another iterable.
fn base_offsets(argument: &str, given: &Bound<'_, PyAny>) -> PyResult<Vec<i64>> {
    let wrong = || arguments::wrong_type(argument, "a list of base offsets", given);
    let items = given.try_iter().map_err(|_| wrong())?;
    items
        .enumerate()
        .map(|(place, item)| arguments::offset(format_args!("{argument}[{place}]"), &item?))
        .collect()
}
