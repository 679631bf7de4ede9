//! What stands behind an index class: a file that is read, or one that is written.

use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::prelude::*;

use super::enter::enter;
use super::error;
use crate::error::{Error, IoAction, Result};
use crate::fs::{Directory, Lock, PartitionLocks};

/// An index that can be closed: `R` reads; `W` writes, and is an `R` as well.
pub(super) struct IndexHandle<R, W> {
    opened: Mutex<Option<Opened<R, W>>>,
}

/// An open index. Clones are the same.
pub(super) enum Opened<R, W> {
    /// For reading.
    Reading(Arc<R>),
    /// For writing.
    Writing(Arc<Owned<W>>),
}

/// A writer, of which no other process and no other handle has one for the file.
pub(super) struct Owned<W> {
    /// Of the class.
    name: &'static str,
    /// None once it was closed.
    writer: Mutex<Option<Locked<W>>>,
    /// A forked child has the same file open.
    process: u32,
}

struct Locked<W> {
    writer: W,
    _locks: [Option<Lock>; 3],
}

impl<R, W> Clone for Opened<R, W> {
    fn clone(&self) -> Self {
        match self {
            Self::Reading(index) => Self::Reading(Arc::clone(index)),
            Self::Writing(owned) => Self::Writing(Arc::clone(owned)),
        }
    }
}

impl<R: Send + Sync, W: Send + Deref<Target = R>> Opened<R, W> {
    /// Asks the index, detached from the interpreter.
    pub(super) fn ask<T: Send>(
        &self,
        py: Python<'_>,
        question: impl FnOnce(&R) -> Result<T> + Send,
    ) -> PyResult<T> {
        match self {
            Self::Reading(index) => enter(py, || question(index)),
            Self::Writing(owned) => owned.with(py, |writer| question(writer)),
        }
    }
}

impl<W: Send> Owned<W> {
    fn with<T: Send>(&self, py: Python<'_>, work: impl FnOnce(&mut W) -> Result<T> + Send) -> PyResult<T> {
        enter(py, || {
            self.check_process()?;
            let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
            match writer.as_mut() {
                Some(locked) => work(&mut locked.writer),
                None => Err(Error::Closed { handle: self.name }),
            }
        })
    }

    /// Before the lock is taken: in a child it may be held by a thread that is not there.
    fn check_process(&self) -> Result<()> {
        if self.process == std::process::id() { Ok(()) } else { Err(Error::Forked { handle: self.name }) }
    }
}

impl<R: Send + Sync, W: Send + Deref<Target = R>> IndexHandle<R, W> {
    /// An index that is read.
    pub(super) fn reading(index: Arc<R>) -> Self {
        Self { opened: Mutex::new(Some(Opened::Reading(index))) }
    }

    /// An index that is written. `open` gets the directory and the file's name in it.
    pub(super) fn writing(
        py: Python<'_>,
        name: &'static str,
        path: PathBuf,
        open: impl FnOnce(&Directory, &str) -> Result<W> + Send,
    ) -> PyResult<Self> {
        let owned = enter(py, || {
            let (directory, file) = place(path)?;
            // keeps out a broker, a writer of the partition's log, and another handle of the same index: each of them cuts
            // the file
            let broker = match directory.identity_of("../.lock")? {
                Some(_) => Some(Lock::shared(&directory, "../.lock")?),
                None => None,
            };
            let partition = Lock::shared(&directory, PartitionLocks::NAME)?;
            let lock_file = || Lock::exclusive(&directory, &file);
            // taking the lock would make the file
            let own = if directory.identity_of(&file)?.is_some() { Some(lock_file()?) } else { None };
            let writer = open(&directory, &file)?;
            let own = match own {
                // a transaction index is not there before its first entry
                None if directory.identity_of(&file)?.is_some() => Some(lock_file()?),
                own => own,
            };
            let locked = Locked { writer, _locks: [broker, Some(partition), own] };
            Ok(Owned { name, writer: Mutex::new(Some(locked)), process: std::process::id() })
        })?;
        Ok(Self { opened: Mutex::new(Some(Opened::Writing(Arc::new(owned)))) })
    }

    pub(super) fn get(&self, py: Python<'_>) -> PyResult<Opened<R, W>> {
        self.opened
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
            .ok_or_else(|| error::closed(py, "index"))
    }

    /// Asks the index, detached from the interpreter.
    pub(super) fn ask<T: Send>(
        &self,
        py: Python<'_>,
        question: impl FnOnce(&R) -> Result<T> + Send,
    ) -> PyResult<T> {
        self.get(py)?.ask(py, question)
    }

    /// Changes the index, detached from the interpreter.
    pub(super) fn change<T: Send>(
        &self,
        py: Python<'_>,
        change: impl FnOnce(&mut W) -> Result<T> + Send,
    ) -> PyResult<T> {
        match self.get(py)? {
            Opened::Writing(owned) => owned.with(py, change),
            Opened::Reading(_) => {
                let expected = "True, because this changes the file";
                Err(error::to_python(
                    py,
                    Error::config("writable", expected, "False, an index opened for reading"),
                ))
            }
        }
    }

    /// Gives the file back; a writer by `close`. A forked child only lets go of it.
    pub(super) fn close(&self, py: Python<'_>, close: impl FnOnce(W) -> Result<()> + Send) -> PyResult<()> {
        let opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner).take();
        match opened {
            Some(Opened::Writing(owned)) => enter(py, || {
                if owned.check_process().is_err() {
                    return Ok(());
                }
                let locked = owned.writer.lock().unwrap_or_else(PoisonError::into_inner).take();
                match locked {
                    // the locks go after the writer
                    Some(Locked { writer, _locks }) => close(writer),
                    None => Ok(()),
                }
            }),
            _ => Ok(()),
        }
    }
}

/// The directory of a file and the file's name in it.
fn place(path: PathBuf) -> Result<(Directory, String)> {
    let path = std::path::absolute(&path).map_err(|error| Error::io(path, IoAction::Resolve, error))?;
    let name = path
        .file_name()
        .and_then(|name| name.to_str())
        .ok_or_else(|| Error::config("path", "a file whose name is UTF-8", path.display().to_string()))?;
    let parent = path.parent().unwrap_or(Path::new("/"));
    let directory = Directory::open(parent, "an index is made in a directory that is there")?;
    Ok((directory, name.to_owned()))
}
