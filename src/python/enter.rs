//! The one door from Python into the core: other Python threads run meanwhile, errors become exceptions, a panic becomes
//! one that `except Exception` catches, and Ctrl-C is seen.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use pyo3::prelude::*;

use super::error;
use crate::error::Result;
use crate::types::{Interrupt, OnWarning};

/// Does the work detached from the interpreter.
pub(super) fn enter<T: Send>(py: Python<'_>, work: impl FnOnce() -> Result<T> + Send) -> PyResult<T> {
    let result = py.detach(|| catch_unwind(AssertUnwindSafe(work)));
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

/// Lets the core ask whether a signal (Ctrl-C) has come.
pub(super) const SIGNALS: Interrupt = Interrupt(check_signals);

/// Asking takes the interpreter's lock, so it is asked now and then only.
const PAUSE: Duration = Duration::from_millis(50);

thread_local! {
    static ASKED: Cell<Option<Instant>> = const { Cell::new(None) };
}

fn check_signals() -> std::result::Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let now = Instant::now();
    match ASKED.get() {
        Some(asked) if now.duration_since(asked) < PAUSE => return Ok(()),
        _ => ASKED.set(Some(now)),
    }
    // where the interpreter is going away there is nobody to interrupt for
    #[expect(
        clippy::redundant_closure_for_method_calls,
        reason = "the method itself is not general enough in its lifetime"
    )]
    Python::try_attach(|py| py.check_signals()).unwrap_or(Ok(())).map_err(Into::into)
}
