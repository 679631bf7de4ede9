//! The class `LogWriter`: the ways in which its methods call the core.
//!
//! Appends go through the core's `Appender`, which many threads share: a thread that waits for the disk holds
//! no lock of the binding. Changes of the log's structure lock the writer; a thread waits for that lock
//! detached from the interpreter. What a handler of a signal calls inside such a call, in the same thread, is
//! refused.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pyo3::prelude::*;

use super::async_append;
use super::call_lock::Call;
use super::enter::{enter, enter_change};
use super::record::now;
use super::record_input::GivenRecords;
use super::writer_handle::{Handle, Open, interrupts};
use crate::error::{Error, Result};
use crate::fs::Directory;
use crate::inspect::kafka_load::unserved_partition;
use crate::writer::{Appender, FlushMode, LogWriter, RecoveryPlan, WriterOptions};

#[doc = stub_doc!(LogWriter)]
#[pyclass(frozen, module = "cordwood", name = "LogWriter")]
pub(super) struct PyLogWriter {
    pub(super) handle: Arc<Handle>,
    pub(super) path: PathBuf,
    pub(super) config: Py<PyAny>,
    /// Why retention is refused.
    pub(super) retention_error: Option<PyErr>,
    pub(super) flush_mode: FlushMode,
    /// Of its readers and its backups.
    pub(super) max_batch_bytes: usize,
    /// What opening the log changed, if anything.
    pub(super) recovery: Option<RecoveryPlan>,
}

impl Drop for PyLogWriter {
    fn drop(&mut self) {
        if self.handle.is_of_another_process() {
            // a forked child must not close, flush or unmap what is the parent's
            std::mem::forget(Arc::clone(&self.handle));
        }
    }
}

/// Opens a log. Warns of a new one whose records no broker will serve.
pub(super) fn open_or_create(path: &Path, options: &WriterOptions) -> Result<LogWriter> {
    let bases = Directory::open(path, "").and_then(|directory| directory.segment_bases());
    let writer = LogWriter::open(path, options)?;
    if bases.is_ok_and(|bases| !bases.is_empty()) {
        return Ok(writer);
    }
    match unserved_partition(writer.path(), options.interrupt) {
        Ok(unserved) => unserved.iter().for_each(|warning| (options.on_warning.0)(warning)),
        Err(error @ Error::Interrupted(_)) => return Err(error),
        // the log is open: files beside it do not matter
        Err(_) => {}
    }
    Ok(writer)
}

impl PyLogWriter {
    pub(super) fn open(&self, py: Python<'_>) -> PyResult<Arc<Open>> {
        self.handle.writer(py)
    }

    /// Calls the appender, from any number of threads at once.
    pub(super) fn append_with<T: Send>(
        &self,
        py: Python<'_>,
        append: impl FnOnce(&Appender) -> Result<T> + Send,
    ) -> PyResult<T> {
        let open = self.open(py)?;
        enter(py, || append(&open.appender))
    }

    pub(super) fn append_given_async<'py>(
        &self,
        py: Python<'py>,
        records: PyResult<GivenRecords>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let append = records.and_then(|records| {
            self.append_with(py, |appender| {
                records.with(now(), |records| appender.append_many_unflushed(records))
            })
        });
        async_append::awaitable(py, append)
    }

    /// Calls the writer, one thread at a time. `name`: of the method.
    pub(super) fn with_writer<T: Send>(
        &self,
        py: Python<'_>,
        name: &'static str,
        call: impl FnOnce(&mut LogWriter) -> Result<T> + Send,
    ) -> PyResult<T> {
        let open = self.open(py)?;
        if let Some(interrupted) = open.writer.call_of_this_thread() {
            return Err(interrupts(interrupted));
        }
        enter_change(py, || call(&mut open.writer.lock(Call::new(name))))
    }

    /// Calls the writer to remove records, which waits for a backup.
    pub(super) fn remove_with<T: Send>(
        &self,
        py: Python<'_>,
        call: Call,
        remove: impl FnOnce(&mut LogWriter) -> Result<T> + Send,
    ) -> PyResult<T> {
        let open = self.open(py)?;
        if let Some(interrupted) = open.interrupted_call() {
            return Err(interrupts(interrupted));
        }
        enter_change(py, || {
            let _removals = open.removals.lock(call);
            remove(&mut open.writer.lock(call))
        })
    }
}
