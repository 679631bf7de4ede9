//! The open writer behind a `LogWriter`, its producers and its transactions, until it is closed.

use std::sync::Arc;

use arc_swap::ArcSwap;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use super::call_lock::{Call, CallLock};
use super::error;
use super::turns::Turns;
use crate::error::Error;
use crate::writer::{Appender, LogWriter};

const NAME: &str = "LogWriter";

/// What a close releases: files, mappings, memory.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) appender: Appender,
    pub(super) writer: CallLock<LogWriter>,
    /// Held while records are removed, and by a backup, which reads all records. Taken before `writer`.
    pub(super) removals: CallLock<()>,
}

impl Open {
    /// The call of this thread that a handler of a signal has interrupted, if another call could wait for it.
    pub(super) fn interrupted_call(&self) -> Option<Call> {
        self.removals.call_of_this_thread().or_else(|| self.writer.call_of_this_thread())
    }
}

#[derive(Debug)]
pub(super) enum State {
    /// Each call has a clone while it runs.
    Open(Arc<Open>),
    Closed,
    /// Closing failed. A copy of the core's reason: the core's writer is dropped, which releases its files.
    Failed(String),
}

/// A writer, for its object in Python and for the objects of its producers and transactions.
#[derive(Debug)]
pub(super) struct Handle {
    /// Without a lock: in a forked child the thread that held it may not exist.
    pub(super) state: ArcSwap<State>,
    pub(super) turns: Arc<Turns>,
    pub(super) process: u32,
}

impl Handle {
    pub(super) fn is_of_another_process(&self) -> bool {
        std::process::id() != self.process
    }

    /// Fails once the log is closed.
    pub(super) fn writer(&self, py: Python<'_>) -> PyResult<Arc<Open>> {
        let open = self.open(py)?.ok_or_else(|| error::closed(py, NAME))?;
        match open.writer.call_of_this_thread().filter(|call| call.excludes_appends) {
            Some(call) => Err(interrupts(call)),
            None => Ok(open),
        }
    }

    /// `None` once the log is closed. *Errors*: in a forked child, and after a close that failed.
    pub(super) fn open(&self, py: Python<'_>) -> PyResult<Option<Arc<Open>>> {
        if self.is_of_another_process() {
            return Err(error::to_python(py, Error::Forked { handle: NAME }));
        }
        match &**self.state.load() {
            State::Open(open) => Ok(Some(Arc::clone(open))),
            State::Closed => Ok(None),
            State::Failed(reason) => Err(error::to_python(py, Error::Poisoned { reason: reason.clone() })),
        }
    }
}

/// The error for a call by a handler of a signal, inside a call for which it would wait forever.
pub(super) fn interrupts(Call { name, .. }: Call) -> PyErr {
    PyRuntimeError::new_err(format!(
        "LogWriter.{name}() runs in this thread, interrupted by a handler of a signal, and this call would wait for it; \
         let the handler set a flag, or raise an exception to end {name}(), and call this afterwards"
    ))
}
