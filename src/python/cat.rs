//! The scan of several logs with filters, for `cordwood cat`.

use std::path::PathBuf;
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PySequence};

use super::arguments;
use super::enter::{SIGNALS, WARNINGS};
use super::handle::LogHandle;
use super::keywords::Keywords;
use super::log::PyLog;
use super::scan::{PyScan, Source};
use crate::error::Result;
use crate::inspect::internal_topics::is_topic_compacted;
use crate::log::{Column, Log, LogOptions};

/// A log, or the directory of one that is opened when it is read.
#[derive(Clone)]
pub(super) enum Partition {
    Log(Arc<LogHandle>),
    /// With the largest batch that is read, bytes.
    Path(PathBuf, usize),
}

impl Partition {
    /// A `Log`, or a path.
    fn of(given: &Bound<'_, PyAny>, max_batch_bytes: usize) -> PyResult<Self> {
        match given.cast::<PyLog>() {
            Ok(log) => Ok(Self::Log(log.get().handle())),
            Err(_) => arguments::path(given).map(|path| Self::Path(path, max_batch_bytes)),
        }
    }

    /// Each item of a sequence. `max_batch_bytes` is of those that are paths.
    pub(super) fn all_of(given: &Bound<'_, PySequence>, max_batch_bytes: usize) -> PyResult<Vec<Self>> {
        given.try_iter()?.map(|item| Self::of(&item?, max_batch_bytes)).collect()
    }

    /// The log of this process.
    fn open(&self) -> Result<Log> {
        match self {
            Self::Log(handle) => handle.log(),
            Self::Path(path, max_batch_bytes) => {
                let options = LogOptions {
                    max_batch_bytes: *max_batch_bytes,
                    is_topic_compacted,
                    interrupt: SIGNALS,
                    on_warning: WARNINGS,
                    ..LogOptions::default()
                };
                Log::open(path, options)
            }
        }
    }
}

/// Opens partitions one after another. After a log that it has opened itself was read, reports its warnings.
pub(super) struct Partitions {
    rest: std::vec::IntoIter<Partition>,
    last: Option<Log>,
}

impl Partitions {
    pub(super) fn new(partitions: Vec<Partition>) -> Self {
        Self { rest: partitions.into_iter(), last: None }
    }
}

impl Iterator for Partitions {
    type Item = Result<Log>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(log) = self.last.take() {
            log.warnings().iter().for_each(|warning| (WARNINGS.0)(warning));
        }
        let partition = self.rest.next()?;
        let opened = partition.open();
        if let (Partition::Path(..), Ok(log)) = (&partition, &opened) {
            self.last = Some(log.clone());
        }
        Some(opened)
    }
}

#[doc = stub_doc!(_scan_logs)]
#[pyfunction(name = "_scan_logs")]
#[pyo3(signature = (logs, **keywords))]
pub(super) fn scan_logs(
    py: Python<'_>,
    logs: &Bound<'_, PySequence>,
    keywords: Option<&Bound<'_, PyDict>>,
) -> PyResult<PyScan> {
    let keywords = Keywords::new("_scan_logs", keywords);
    let (options, contents) = keywords.columns(&Column::DEFAULT)?;
    let max_batch_bytes = keywords.max_batch_bytes()?;
    keywords.finish()?;
    for given in logs.try_iter()? {
        // others are checked when they are reached
        if let Ok(log) = given?.cast::<PyLog>() {
            log.get().read(py, |log| log.check(&options.scan.ranges))?;
        }
    }
    Ok(PyScan::filtered(Source::Partitions(Partition::all_of(logs, max_batch_bytes)?), options, contents))
}
