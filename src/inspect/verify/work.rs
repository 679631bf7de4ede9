//! The progress of a verification, shared by its threads, and its interruption.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::error::{Error, Result};

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
        if self.is_stopped.load(Ordering::Relaxed) {
            return Err(Error::Interrupted("another thread of the verification failed".into()));
        }
        Ok(())
    }
}
