//! Calls of the core, with errors and panics as exceptions, and with checks for signals (Ctrl-C).

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use pyo3::prelude::*;

use super::error;
use crate::error::Result;
use crate::types::{Interrupt, OnWarning};

/// Calls the core detached from the interpreter, so that other Python threads run.
pub(super) fn enter<T: Send>(py: Python<'_>, call: impl FnOnce() -> Result<T> + Send) -> PyResult<T> {
    let result = py.detach(|| catch_unwind(AssertUnwindSafe(call)));
    log_warnings();
    match result {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(wrong)) => Err(error::to_python(py, wrong)),
        Err(panic) => Err(error::internal(py, panic.as_ref())),
    }
}

/// Keeps the core's warnings until the call is over. A handler of Python's `logging` may use the log, and must not run while
/// the call holds a lock of it.
pub(super) const WARNINGS: OnWarning =
    OnWarning(|warning| PENDING.with_borrow_mut(|pending| pending.push(warning.to_owned())));

thread_local! {
    static PENDING: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// Writes the warnings of this thread's call to Python's logger `cordwood`. A call from C makes it after the core's own.
pub(super) fn log_warnings() {
    let pending = PENDING.take();
    if pending.is_empty() {
        return;
    }
    Python::try_attach(|py| {
        let written = logger(py).and_then(|logger| {
            // the text is an argument: a % in a path is no format
            pending.iter().try_for_each(|text| logger.call_method1("warning", ("%s", text)).map(drop))
        });
        // a handler that fails must not lose the answer
        written.unwrap_or_else(|error| error.write_unraisable(py, None));
    });
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
