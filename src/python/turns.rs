//! The turns of the threads that have a `with` block of the same transactional id. A second transaction of
//! the id would abort the first.

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

use pyo3::prelude::*;

use super::enter::{SIGNALS, enter, warn_at_once};
use crate::error::{Error, Result};

/// The time between two checks for signals of a thread that waits.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// What runs a block: a thread, and in an event loop one of its tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Runner {
    thread: ThreadId,
    /// A number that no other task of the thread has; `None` outside `async with`.
    task: Option<usize>,
}

impl Runner {
    pub(super) fn new(task: Option<usize>) -> Self {
        Self { thread: std::thread::current().id(), task }
    }

    /// Whether this one cannot go on while that one waits.
    fn excludes(self, waiting: Self) -> bool {
        let is_other_task = self.task.is_some() && waiting.task.is_some() && self.task != waiting.task;
        self.thread == waiting.thread && !is_other_task
    }
}

/// After how long a thread that waits says so: what has the turn may wait for this thread.
const TOLD_AFTER: Duration = Duration::from_secs(10);

/// The turns of a writer.
#[derive(Debug)]
pub(super) struct Turns {
    /// What has the turn of a transactional id.
    running: Mutex<HashMap<String, Runner>>,
    ended: Condvar,
    process: u32,
}

/// A turn, until it is dropped.
#[derive(Debug)]
pub(super) struct Turn {
    turns: Arc<Turns>,
    transactional_id: String,
}

impl Turns {
    pub(super) fn new() -> Self {
        Self { running: Mutex::default(), ended: Condvar::new(), process: std::process::id() }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Runner>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the turn of this thread. The caller has checked that this is no forked child. A wait without
    /// an end is a warning.
    ///
    /// *Errors*: `ConfigError` if this thread has the turn; what the handler of a signal raises.
    pub(super) fn wait(self: &Arc<Self>, py: Python<'_>, transactional_id: &str) -> PyResult<Turn> {
        let runner = Runner::new(None);
        enter(py, || {
            let mut told_at = Instant::now().checked_add(TOLD_AFTER);
            loop {
                if let Some(turn) = self.take(transactional_id, runner)? {
                    return Ok(turn);
                }
                let running = self.lock();
                if running.contains_key(transactional_id) {
                    drop(self.ended.wait_timeout(running, CHECK_INTERVAL));
                    SIGNALS.check()?;
                }
                if told_at.take_if(|at| Instant::now() >= *at).is_some() {
                    let seconds = TOLD_AFTER.as_secs();
                    let waits = format!(
                        "waiting for {seconds} s for the end of another thread's block of the transactional id {transactional_id:?}: \
                         if that block waits for this thread, neither ends"
                    );
                    warn_at_once(&waits)?;
                }
            }
        })
    }

    /// Takes the turn; `None` if another runner has it.
    ///
    /// *Errors*: [`Error::Config`] if that one cannot end it while this one waits.
    pub(super) fn take(self: &Arc<Self>, transactional_id: &str, runner: Runner) -> Result<Option<Turn>> {
        let mut running = self.lock();
        match running.get(transactional_id) {
            None => {
                running.insert(transactional_id.to_owned(), runner);
                Ok(Some(Turn { turns: Arc::clone(self), transactional_id: transactional_id.to_owned() }))
            }
            Some(other) if other.excludes(runner) => {
                let expected = "a transactional id without a running block of this thread (end that block first, use another id, or \
                                in an event loop `async with writer.transaction_async(…)`)";
                let found = format!("{transactional_id:?}, whose block has not ended");
                Err(Error::config("transactional_id", expected, found))
            }
            Some(_) => Ok(None),
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        // in a forked child, the thread that holds the lock may not exist
        if self.turns.process == std::process::id() {
            self.turns.lock().remove(&self.transactional_id);
            self.turns.ended.notify_all();
        }
    }
}
