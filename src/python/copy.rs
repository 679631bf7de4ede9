//! `copy` and `CopyReport`.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::Path;

use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::arguments::{self, flag, names, wrong_type};
use super::dir::matching;
use super::enter::{SIGNALS, WARNINGS, enter};
use super::keywords::Keywords;
use super::results::PyDamagedRange;
use super::value_class::{value_class, wrapped};
use crate::dir::{LogDir, PathKind, classify};
use crate::error::{Error, Result};
use crate::inspect::copy as inspected;
use crate::inspect::copy::{CopyOptions, CopyProgress, CopyReport};
use crate::log::LogOptions;

value_class! {
    "CopyReport", PyCopyReport(CopyReport),
    attributes {
        source: OsString = |report| report.source.clone().into(),
        path: OsString = |report| report.path.clone().into(),
        start_offset: Option<i64>,
        end_offset: Option<i64>,
        log_start_offset: Option<i64>,
        segments: Vec<i64>,
        partitions: Vec<PyCopyReport> = |report| wrapped(&report.partitions),
        batches: u64,
        bytes: u64,
        bytes_written: u64,
        linked: u64,
        damaged_ranges: Vec<PyDamagedRange> = |report| wrapped(&report.damaged_ranges),
        open_transactions: u64,
        warnings: Vec<String>,
    }
    methods {
        fn __repr__(&self) -> String {
            let CopyReport { path, start_offset, end_offset, partitions, bytes, damaged_ranges, .. } = &self.0;
            let path = path.to_string_lossy();
            let what = match (start_offset, end_offset) {
                (Some(start), Some(end)) => format!("start_offset={start}, end_offset={end}"),
                _ => format!("partitions={}", partitions.len()),
            };
            format!("CopyReport(path={path:?}, {what}, bytes={bytes}, damaged_ranges={})", damaged_ranges.len())
        }
    }
}

#[doc = stub_doc!(copy)]
#[pyfunction]
#[pyo3(signature = (source, destination, **keywords),
    text_signature = "(source, destination, *, start_offset=None, end_offset=None, start_time=None, end_time=None, \
        on_damage='raise', hard_links=False, topics=None, progress=None, tz=None, max_batch_bytes=134217728)")]
pub(super) fn copy(
    py: Python<'_>,
    source: &Bound<'_, PyAny>,
    destination: &Bound<'_, PyAny>,
    keywords: Option<&Bound<'_, PyDict>>,
) -> PyResult<PyCopyReport> {
    let source = arguments::path_of("source", source)?;
    let destination = arguments::path_of("destination", destination)?;
    let keywords = Keywords::new("copy", keywords);
    let batches = keywords.batches()?;
    let hard_links = keywords.optional("hard_links", flag)?.unwrap_or(false);
    let max_batch_bytes = keywords.max_batch_bytes()?;
    let wanted = "a list of topics or globs, such as [\"orders\", \"pay*\"]";
    let topics = keywords.optional("topics", |argument, given| names(argument, wanted, given))?;
    let on_progress = keywords.optional("progress", |argument, given| {
        if given.is_callable() {
            Ok(given.clone().unbind())
        } else {
            Err(wrong_type(argument, "a function of two numbers", given))
        }
    })?;
    keywords.finish()?;
    let options = CopyOptions {
        ranges: batches.ranges,
        on_damage: batches.on_damage,
        hard_links,
        max_batch_bytes,
        interrupt: SIGNALS,
        on_warning: WARNINGS,
    };
    let mut progress =
        |at: CopyProgress| on_progress.as_ref().map_or(Ok(()), |function| report(function, at));
    let kind = enter(py, || classify(&source).map(|info| info.kind))?;
    if kind != PathKind::DataDirectory {
        if let Some(topics) = topics {
            let expected = "none for a partition; topics are those of a data directory";
            let wrong = Error::config("topics", expected, format!("{topics:?}"));
            return Err(super::error::to_python(py, wrong));
        }
        return enter(py, || inspected::copy(&source, &destination, &options, &mut progress)).map(Into::into);
    }
    let selected = topics.map(|topics| selected(py, &source, &topics)).transpose()?;
    let is_selected = |topic: &String| selected.as_ref().is_none_or(|selected| selected.contains(topic));
    enter(py, || {
        inspected::copy_data_directory(
            &source,
            &destination,
            &options,
            |partition| is_selected(&partition.topic),
            &mut progress,
        )
    })
    .map(Into::into)
}

/// Copies the whole log of a writer.
pub(super) fn backup(source: &Path, destination: &Path, max_batch_bytes: usize) -> Result<CopyReport> {
    let options =
        CopyOptions { max_batch_bytes, interrupt: SIGNALS, on_warning: WARNINGS, ..CopyOptions::default() };
    inspected::copy(source, destination, &options, &mut |_| Ok(()))
}

/// The topics of a data directory that match names or globs.
fn selected(py: Python<'_>, source: &Path, wanted: &[String]) -> PyResult<BTreeSet<String>> {
    let directory = enter(py, || LogDir::open(source, LogOptions::default(), &[]))?;
    let topics: BTreeSet<_> = directory.partitions().values().map(|name| name.topic.clone()).collect();
    let topics: Vec<_> = topics.into_iter().collect();
    Ok(matching(py, &topics, wanted)?.into_iter().collect())
}

/// Calls the function of the caller; its exception ends the copy.
fn report(function: &Py<PyAny>, at: CopyProgress) -> Result<()> {
    Python::attach(|py| function.call1(py, (at.bytes, at.total_bytes)).map(drop))
        .map_err(|raised| Error::Interrupted(raised.into()))
}
