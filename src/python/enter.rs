//! Calls of the core, with errors and panics as exceptions, and with checks for signals (Ctrl-C).

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use pyo3::prelude::*;

use super::error;
use crate::error::Result;
use crate::types::Interrupt;

/// Calls the core detached from the interpreter, so that other Python threads run.
pub(super) fn enter<T: Send>(py: Python<'_>, call: impl FnOnce() -> Result<T> + Send) -> PyResult<T> {
    match py.detach(|| catch_unwind(AssertUnwindSafe(call))) {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(wrong)) => Err(error::to_python(py, wrong)),
        Err(panic) => Err(error::internal(py, panic.as_ref())),
    }
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
