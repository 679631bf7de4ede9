//! The one door from Python into the core: other Python threads run meanwhile, errors become exceptions, a panic becomes
//! one that `except Exception` catches, and Ctrl-C is seen.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use pyo3::prelude::*;

use super::error;
use crate::error::Result;
use crate::types::Interrupt;

/// Does the work detached from the interpreter.
pub(super) fn enter<T: Send>(py: Python<'_>, work: impl FnOnce() -> Result<T> + Send) -> PyResult<T> {
    match py.detach(|| catch_unwind(AssertUnwindSafe(work))) {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(wrong)) => Err(error::to_python(py, wrong)),
        Err(panic) => Err(error::internal(py, panic.as_ref())),
    }
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
