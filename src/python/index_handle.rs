//! The state of an index class: an index or a writer, open or closed.

use std::ops::Deref;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;

use super::enter::enter;
use super::error;
use crate::error::{Error, Result};
use crate::fs::Directory;
use crate::fs::names::FileKind;
use crate::index::Exclusive;

/// An index that can be closed. `R` is the index, and `W` its writer, which reads too.
pub(super) struct IndexHandle<R, W> {
    /// The name of the Python class.
    class: &'static str,
    /// `None` once it is closed. Each call has a clone while it runs.
    opened: Mutex<Option<Arc<Opened<R, W>>>>,
}

pub(super) enum Opened<R, W> {
    Reading(Arc<R>),
    Writing(Arc<WriterHandle<W>>),
}

impl<R: Send + Sync, W: Send + Deref<Target = R>> Opened<R, W> {
    /// Reads from the index, detached from the interpreter.
    pub(super) fn read<T: Send>(
        &self,
        py: Python<'_>,
        read: impl FnOnce(&R) -> Result<T> + Send,
    ) -> PyResult<T> {
        match self {
            Self::Reading(index) => enter(py, || read(index)),
            Self::Writing(writer) => writer.write(py, |writer| read(writer)),
        }
    }
}

impl<R: Send + Sync, W: Send + Deref<Target = R>> IndexHandle<R, W> {
    pub(super) fn reading(class: &'static str, index: Arc<R>) -> Self {
        Self { class, opened: Mutex::new(Some(Arc::new(Opened::Reading(index)))) }
    }

    pub(super) fn writing(writer: &Arc<WriterHandle<W>>) -> Self {
        let opened = Opened::Writing(Arc::clone(writer));
        Self { class: writer.class, opened: Mutex::new(Some(Arc::new(opened))) }
    }

    pub(super) fn class(&self) -> &'static str {
        self.class
    }

    fn opened(&self) -> MutexGuard<'_, Option<Arc<Opened<R, W>>>> {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The open index. *Errors*: once it is closed.
    pub(super) fn get(&self, py: Python<'_>) -> PyResult<Arc<Opened<R, W>>> {
        self.opened().clone().ok_or_else(|| error::closed(py, self.class))
    }

    /// Reads from the index, detached from the interpreter.
    pub(super) fn read<T: Send>(
        &self,
        py: Python<'_>,
        read: impl FnOnce(&R) -> Result<T> + Send,
    ) -> PyResult<T> {
        self.get(py)?.read(py, read)
    }

    /// Closes the index. `close` closes a writer.
    pub(super) fn close(&self, py: Python<'_>, close: impl FnOnce(W) -> Result<()> + Send) -> PyResult<()> {
        let opened = self.opened().take();
        match opened.as_deref() {
            Some(Opened::Writing(writer)) => writer.close(py, close),
            Some(Opened::Reading(_)) | None => Ok(()),
        }
    }
}

/// A writer that threads share. A forked child must not use it: the parent writes the same file.
pub(super) struct WriterHandle<W> {
    class: &'static str,
    /// `None` once it is closed.
    writer: Mutex<Option<Exclusive<W>>>,
    process: u32,
}

impl<W: Send> WriterHandle<W> {
    /// Opens a writer. `open` gets the directory, the file's name and the base offset.
    pub(super) fn open(
        py: Python<'_>,
        class: &'static str,
        kind: FileKind,
        (path, base_offset): (PathBuf, Option<i64>),
        open: impl FnOnce(&Directory, &str, i64) -> Result<W> + Send,
    ) -> PyResult<Arc<Self>> {
        let writer = enter(py, || Exclusive::open(&path, kind, base_offset, open))?;
        Ok(Arc::new(Self { class, writer: Mutex::new(Some(writer)), process: std::process::id() }))
    }

    fn writer(&self) -> MutexGuard<'_, Option<Exclusive<W>>> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Uses the writer, detached from the interpreter.
    pub(super) fn write<T: Send>(
        &self,
        py: Python<'_>,
        write: impl FnOnce(&mut W) -> Result<T> + Send,
    ) -> PyResult<T> {
        let written = enter(py, || {
            self.check_process()?;
            self.writer().as_mut().map(|writer| write(writer)).transpose()
        })?;
        written.ok_or_else(|| error::closed(py, self.class))
    }

    /// Does nothing in a forked child: the file is the parent's.
    fn close(&self, py: Python<'_>, close: impl FnOnce(W) -> Result<()> + Send) -> PyResult<()> {
        enter(py, || {
            if self.check_process().is_err() {
                return Ok(());
            }
            let writer = self.writer().take();
            writer.map_or(Ok(()), |writer| writer.close(close))
        })
    }

    /// To be called before the mutex is locked: in a forked child the thread that holds it may not exist.
    fn check_process(&self) -> Result<()> {
        if self.process == std::process::id() { Ok(()) } else { Err(Error::Forked { handle: self.class }) }
    }
}
