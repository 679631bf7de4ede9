//! The progress of a verification, shared by its threads, and its interruption.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::error::{Error, Result};
use crate::types::Interrupt;

/// How far a verification is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Bytes of `.log` files that were verified.
    pub bytes: u64,
    /// Bytes that are to be verified, altogether.
    pub total_bytes: u64,
}

/// The counter of verified bytes, and whether to stop.
#[derive(Debug)]
pub(crate) struct Work<'a> {
    bytes: &'a AtomicU64,
    is_stopped: &'a AtomicBool,
}

impl<'a> Work<'a> {
    pub(crate) fn new(bytes: &'a AtomicU64, is_stopped: &'a AtomicBool) -> Self {
        Self { bytes, is_stopped }
    }

    pub(super) fn add(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Fails if the calling thread was interrupted: it returns its own error.
    pub(super) fn check(&self) -> Result<()> {
        if self.is_stopped.load(Ordering::Relaxed) { Err(Error::Interrupted(STOPPED.into())) } else { Ok(()) }
    }
}

const STOPPED: &str = "another thread of the verification failed";

/// What interrupts a thread of a verification: the caller, or the calling thread.
#[derive(Debug, Clone)]
pub(super) enum Source {
    Caller(Interrupt),
    Flag(Arc<AtomicBool>),
}

thread_local! {
    static SOURCE: RefCell<Option<Source>> = const { RefCell::new(None) };
}

/// The interrupt of the logs that are verified. Only the calling thread asks the caller: a signal is the main
/// thread's. The other threads are stopped by it, wherever they read: also within a long damaged range, or a
/// file of zeros.
pub(super) const OF_THREAD: Interrupt = Interrupt(|| {
    SOURCE.with_borrow(|source| match source {
        Some(Source::Caller(interrupt)) => (interrupt.0)(),
        Some(Source::Flag(flag)) if flag.load(Ordering::Relaxed) => Err(STOPPED.into()),
        _ => Ok(()),
    })
});

/// Sets what interrupts this thread, until it is dropped.
#[derive(Debug)]
pub(super) struct Interruption {
    before: Option<Source>,
}

impl Interruption {
    pub(super) fn by(source: Source) -> Self {
        Self { before: SOURCE.replace(Some(source)) }
    }
}

impl Drop for Interruption {
    fn drop(&mut self) {
        SOURCE.set(self.before.take());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_interrupted_by_its_own_source() {
        assert!(OF_THREAD.check().is_ok());
        let flag = Arc::new(AtomicBool::new(false));
        let by_flag = Interruption::by(Source::Flag(Arc::clone(&flag)));
        assert!(OF_THREAD.check().is_ok());
        flag.store(true, Ordering::Relaxed);
        assert!(matches!(OF_THREAD.check(), Err(Error::Interrupted(_))));
        std::thread::spawn(|| assert!(OF_THREAD.check().is_ok())).join().unwrap();
        {
            let _by_caller = Interruption::by(Source::Caller(Interrupt::NEVER));
            assert!(OF_THREAD.check().is_ok());
        }
        assert!(OF_THREAD.check().is_err());
        drop(by_flag);
        assert!(OF_THREAD.check().is_ok());
    }
}
