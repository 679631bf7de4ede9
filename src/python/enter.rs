//! Calls of the core, with errors and panics as exceptions, and with checks for signals (Ctrl-C).

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use arc_swap::ArcSwapOption;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;

use super::error;
use crate::error::{Error, Result};
use crate::types::{Interrupt, OnWarning};

/// Calls the core detached from the interpreter, so that other Python threads run. Then logs the warnings
/// that were found.
pub(super) fn enter<T: Send>(py: Python<'_>, call: impl FnOnce() -> Result<T> + Send) -> PyResult<T> {
    enter_with(py, call, error::to_python)
}

/// [`enter`] for a call that changes a log, or plans to, and so skips no damage.
pub(super) fn enter_change<T: Send>(py: Python<'_>, call: impl FnOnce() -> Result<T> + Send) -> PyResult<T> {
    enter_with(py, call, error::of_change)
}

fn enter_with<T: Send>(
    py: Python<'_>,
    call: impl FnOnce() -> Result<T> + Send,
    exception: impl FnOnce(Python<'_>, Error) -> PyErr,
) -> PyResult<T> {
    let result = py.detach(|| catch_unwind(AssertUnwindSafe(call)));
    log_warnings(py)?;
    match result {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(wrong)) => Err(exception(py, wrong)),
        Err(panic) => Err(error::internal(py, panic.as_ref())),
    }
}

/// Keeps the core's warnings until a call ends. A handler of Python's `logging` may use the log, so it must
/// not run while a call holds one of the log's locks.
pub(super) const WARNINGS: OnWarning = OnWarning(|warning| {
    pending().lock().push(warning.to_owned());
    HAS_PENDING.store(true, Ordering::Release);
});

/// The warnings that were not logged yet, of all threads: a scan with several threads finds some in threads
/// of its own.
struct Pending {
    /// A forked child does not use the queue of its parent, which a thread of the parent may have locked.
    process: u32,
    warnings: Mutex<Vec<String>>,
}

impl Pending {
    fn lock(&self) -> MutexGuard<'_, Vec<String>> {
        self.warnings.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

static PENDING: ArcSwapOption<Pending> = ArcSwapOption::const_empty();
/// Whether there may be some. Without it, each call would need the number of the process.
static HAS_PENDING: AtomicBool = AtomicBool::new(false);

fn pending() -> Arc<Pending> {
    let process = std::process::id();
    loop {
        let current = PENDING.load();
        if let Some(pending) = current.as_ref().filter(|pending| pending.process == process) {
            return Arc::clone(pending);
        }
        let new = Arc::new(Pending { process, warnings: Mutex::default() });
        // another thread may have been faster
        PENDING.compare_and_swap(&current, Some(new));
    }
}

/// Whether there may be warnings to log. *Cost*: a load, without the interpreter.
pub(super) fn has_warnings() -> bool {
    HAS_PENDING.load(Ordering::Acquire)
}

/// Writes the warnings to Python's logger `cordwood`.
///
/// # Errors
/// As [`unless_exception`].
pub(super) fn log_warnings(py: Python<'_>) -> PyResult<()> {
    if !has_warnings() {
        return Ok(());
    }
    // before they are taken: one that comes after that sets it again
    HAS_PENDING.store(false, Ordering::Release);
    let warnings = std::mem::take(&mut *pending().lock());
    let written = logger(py).and_then(|logger| {
        // the text is an argument: a % in a path is not a format
        warnings.iter().try_for_each(|text| logger.call_method1("warning", ("%s", text)).map(drop))
    });
    unless_exception(py, written)
}

/// Writes a warning of a call that has not ended. The call must hold none of the log's locks.
///
/// # Errors
/// [`Error::Interrupted`] for an exception, as in [`unless_exception`].
pub(super) fn warn_at_once(warning: &str) -> Result<()> {
    (WARNINGS.0)(warning);
    let written = Python::try_attach(log_warnings).unwrap_or(Ok(()));
    written.map_err(|exception| Error::Interrupted(exception.into()))
}

/// Prints an exception of a logging handler as Python does one that cannot be raised, so that it does not
/// discard a result.
///
/// # Errors
/// An exception that is no `Exception`, such as `KeyboardInterrupt`.
pub(super) fn unless_exception(py: Python<'_>, written: PyResult<()>) -> PyResult<()> {
    written.or_else(|error| {
        if !error.is_instance_of::<PyException>(py) {
            return Err(error);
        }
        error.write_unraisable(py, None);
        Ok(())
    })
}

/// Python's logger `cordwood`.
pub(super) fn logger(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    py.import("logging")?.call_method1("getLogger", ("cordwood",))
}

/// Interrupts the core after a signal whose handler raised an exception.
pub(super) const SIGNALS: Interrupt = Interrupt(check_signals);

/// The time between two checks of a thread: a check takes the interpreter's lock.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

thread_local! {
    static LAST_CHECK: Cell<Option<Instant>> = const { Cell::new(None) };
}

fn check_signals() -> std::result::Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let now = Instant::now();
    if LAST_CHECK.get().is_some_and(|last| now.duration_since(last) < CHECK_INTERVAL) {
        return Ok(());
    }
    LAST_CHECK.set(Some(now));
    // while the interpreter shuts down it cannot be attached to, and no handler runs
    #[expect(
        clippy::redundant_closure_for_method_calls,
        reason = "the method itself is not general enough in its lifetime"
    )]
    Python::try_attach(|py| py.check_signals()).unwrap_or(Ok(())).map_err(Into::into)
}
