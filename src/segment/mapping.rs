//! Which files of a log are mapped into memory, and which are read by position: the rule of the setting `io`.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::fs::Directory;
use crate::types::Io;

/// The setting, and whether a broker is running. A file that another process shortens must not be mapped: an access past its new end
/// kills the process (SIGBUS).
#[derive(Debug)]
pub(crate) struct Mapping {
    io: Io,
    is_broker_running: AtomicBool,
}

impl Mapping {
    pub(super) fn new(io: Io, directory: &Directory) -> Self {
        let mapping = Self { io, is_broker_running: AtomicBool::new(false) };
        mapping.check_for_broker(directory);
        mapping
    }

    /// Checks whether another process has locked the data directory. If so, files opened from now on are not mapped.
    pub(crate) fn check_for_broker(&self, directory: &Directory) {
        let is_running = self.io == Io::Auto && directory.is_locked();
        self.is_broker_running.store(is_running, Ordering::Relaxed);
    }

    /// Whether to map files of the last segment (or of an earlier one).
    pub(super) fn should_map(&self, is_last: bool) -> bool {
        match self.io {
            Io::Mmap => true,
            Io::Pread => false,
            Io::Auto => !self.is_broker_running.load(Ordering::Relaxed) && !is_last,
        }
    }
}
