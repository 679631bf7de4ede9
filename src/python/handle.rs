//! The handles of `Log` and `LogDir`: how each was opened, so that pickle and a forked child can open it
//! again.

use std::path::PathBuf;
use std::sync::Arc;

use arc_swap::ArcSwap;
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::arguments::{Defaulted, IO, PARTITION_STATES, one_of, positive, word_of};
use super::enter::{SIGNALS, WARNINGS};
use crate::dir::LogDir;
use crate::error::Result;
use crate::fs::forks;
use crate::fs::names::PartitionState;
use crate::inspect::internal_topics::is_topic_compacted;
use crate::log::{Log, LogOptions};

/// A log and how it was opened. A forked child opens it again: the threads that held its locks do not exist
/// there.
#[derive(Debug)]
pub(super) struct LogHandle {
    path: PathBuf,
    options: LogOptions,
    /// The log, and the process that opened it.
    opened: ArcSwap<(u64, Log)>,
}

impl LogHandle {
    pub(super) fn new(log: Log) -> Self {
        let (path, options) = (log.path().to_owned(), log.options().clone());
        Self { path, options, opened: ArcSwap::from_pointee((process(), log)) }
    }

    /// The partition directory, absolute.
    pub(super) fn path(&self) -> &std::path::Path {
        &self.path
    }

    /// The log of this process.
    pub(super) fn log(&self) -> Result<Log> {
        let process = process();
        let opened = self.opened.load();
        if opened.0 == process {
            return Ok(opened.1.clone());
        }
        let log = Log::open(&self.path, self.options.clone())?;
        self.opened.store(Arc::new((process, log.clone())));
        Ok(log)
    }

    /// What `find` returns for the log of this process; `None` if a forked child has not opened the log yet.
    pub(super) fn peek<T>(&self, find: impl FnOnce(&Log) -> Option<T>) -> Option<T> {
        let opened = self.opened.load();
        if opened.0 == process() { find(&opened.1) } else { None }
    }

    /// The value of `__reduce__`: a function that opens the log again, and its arguments.
    pub(super) fn recipe<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let LogOptions { io, log_start_offset, topic, partition, max_open_files, max_batch_bytes, .. } =
            &self.options;
        let keywords = PyDict::new(py);
        keywords.set_item("io", word_of(&IO, *io))?;
        keywords.set_item("log_start_offset", log_start_offset)?;
        keywords.set_item("topic", topic)?;
        keywords.set_item("partition", partition)?;
        keywords.set_item("max_open_files", max_open_files)?;
        keywords.set_item("max_batch_bytes", max_batch_bytes)?;
        recipe(py, "open_log", (self.path.as_os_str(), keywords))
    }
}

/// A number that differs between this process and those that it was forked from. The number of forks needs no
/// system call; if forks cannot be counted, it is the process id, above all numbers of forks.
fn process() -> u64 {
    forks().map_or_else(|_| u64::from(std::process::id()) + (1 << 32), u64::from)
}

/// The options that `Log` and `LogDir` share.
pub(super) fn log_options(
    io: Defaulted<'_, '_>,
    max_open_files: Defaulted<'_, '_>,
    max_batch_bytes: Defaulted<'_, '_>,
) -> PyResult<LogOptions> {
    let options = LogOptions::default();
    Ok(LogOptions {
        io: io.or("io", options.io, one_of(&IO))?,
        max_open_files: max_open_files.or("max_open_files", options.max_open_files, positive)?,
        max_batch_bytes: max_batch_bytes.or("max_batch_bytes", options.max_batch_bytes, positive)?,
        is_topic_compacted,
        interrupt: SIGNALS,
        on_warning: WARNINGS,
        ..options
    })
}

/// A data directory and how it was opened.
#[derive(Debug)]
pub(super) struct DirHandle {
    pub(super) directory: Arc<LogDir>,
    pub(super) include: Vec<PartitionState>,
}

impl DirHandle {
    /// The value of `__reduce__`: a function that opens the directory again, and its arguments.
    pub(super) fn recipe<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let LogOptions { io, max_open_files, max_batch_bytes, .. } = self.directory.options();
        let included = PARTITION_STATES.iter().filter(|(_, state)| self.include.contains(state));
        let keywords = PyDict::new(py);
        keywords.set_item("io", word_of(&IO, *io))?;
        keywords.set_item("max_open_files", max_open_files)?;
        keywords.set_item("max_batch_bytes", max_batch_bytes)?;
        keywords.set_item("include", included.map(|(name, _)| *name).collect::<Vec<_>>())?;
        recipe(py, "open_directory", (self.directory.path().as_os_str(), keywords))
    }
}

/// The value of `__reduce__`: a function of `cordwood.recipes`, and its arguments.
pub(super) fn recipe<'py>(
    py: Python<'py>,
    function: &str,
    arguments: impl IntoPyObject<'py>,
) -> PyResult<Bound<'py, PyAny>> {
    let function = py.import("cordwood.recipes")?.getattr(function)?;
    (function, arguments.into_bound_py_any(py)?).into_bound_py_any(py)
}
