//! The state of an index class: an index that is read, or one that is written.

use std::ops::Deref;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;

use super::enter::enter;
use super::error;
use crate::error::{Error, Result};
use crate::fs::Directory;
use crate::index::Exclusive;

/// An index that can be closed: `R` reads; `W` writes, and is an `R` as well.
pub(super) struct IndexHandle<R, W> {
    /// The name of the Python class.
    class: &'static str,
    opened: Mutex<Option<Opened<R, W>>>,
}

/// An open index. Clones share it.
pub(super) enum Opened<R, W> {
    Reading(Arc<R>),
    Writing(Arc<WriterHandle<W>>),
}

impl<R, W> Clone for Opened<R, W> {
    fn clone(&self) -> Self {
        match self {
            Self::Reading(index) => Self::Reading(Arc::clone(index)),
            Self::Writing(writer) => Self::Writing(Arc::clone(writer)),
        }
    }
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
        Self { class, opened: Mutex::new(Some(Opened::Reading(index))) }
    }

    pub(super) fn writing(writer: &Arc<WriterHandle<W>>) -> Self {
        let opened = Opened::Writing(Arc::clone(writer));
        Self { class: writer.class, opened: Mutex::new(Some(opened)) }
    }

    pub(super) fn class(&self) -> &'static str {
        self.class
    }

    fn opened(&self) -> MutexGuard<'_, Option<Opened<R, W>>> {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The open index. *Errors*: that of a closed one.
    pub(super) fn get(&self, py: Python<'_>) -> PyResult<Opened<R, W>> {
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

    /// Closes the index; a writer by `close`.
    pub(super) fn close(&self, py: Python<'_>, close: impl FnOnce(W) -> Result<()> + Send) -> PyResult<()> {
        let opened = self.opened().take();
        match opened {
            Some(Opened::Writing(writer)) => writer.close(py, close),
            Some(Opened::Reading(_)) | None => Ok(()),
        }
    }
}

/// A writer that threads share. A forked child has the same file open and must not use it.
pub(super) struct WriterHandle<W> {
    class: &'static str,
    /// `None` once it is closed.
    writer: Mutex<Option<Exclusive<W>>>,
    process: u32,
}

impl<W: Send> WriterHandle<W> {
    /// Opens a writer; `open` gets the directory, the file's name and the base offset.
    pub(super) fn open(
        py: Python<'_>,
        class: &'static str,
        (path, base_offset): (PathBuf, Option<i64>),
        open: impl FnOnce(&Directory, &str, i64) -> Result<W> + Send,
    ) -> PyResult<Arc<Self>> {
        let writer = enter(py, || Exclusive::open(&path, base_offset, open))?;
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

    /// In a forked child this does nothing: the file is the parent's.
    fn close(&self, py: Python<'_>, close: impl FnOnce(W) -> Result<()> + Send) -> PyResult<()> {
        enter(py, || {
            if self.check_process().is_err() {
                return Ok(());
            }
            let writer = self.writer().take();
            writer.map_or(Ok(()), |writer| writer.close(close))
        })
    }

    /// Comes before the mutex: in a child it may be locked by a thread that does not exist there.
    fn check_process(&self) -> Result<()> {
        if self.process == std::process::id() { Ok(()) } else { Err(Error::Forked { handle: self.class }) }
    }
}
