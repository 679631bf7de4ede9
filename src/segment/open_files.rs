//! The open files and mappings of a partition: opened when first wanted, and never more than a fixed number kept.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use super::file_budget::{Pool, with_descriptors};
use super::file_slots::{FileSlots, Slot};
use super::lazy_table::Budget;
use crate::error::Result;
use crate::fs::names::FileKind;
use crate::fs::{Directory, SystemFile};
use crate::types::{Interrupt, Io};

/// A file that a writer makes when it opens a log, and a byte longer before and behind each truncation: what was opened
/// before, or meanwhile, is not what is there any more.
pub(crate) const TRUNCATIONS: &str = ".cordwood.truncations";

/// A partition's directory and the files of it that are open. What is in use stays open whatever the limits say; what is
/// only kept is dropped, the longest unused first: beyond the log's own limit, and beyond that of the process.
#[derive(Debug)]
pub(crate) struct OpenFiles {
    pub(crate) directory: Directory,
    pub(crate) interrupt: Interrupt,
    /// The memory for tables of segments.
    pub(crate) tables: Arc<Budget>,
    io: Io,
    broker_runs: AtomicBool,
    limit: usize,
    opened: AtomicU64,
    kept: Arc<Pool>,
    truncations: OnceLock<SystemFile>,
}

impl OpenFiles {
    pub(crate) fn new(directory: Directory, io: Io, limit: usize, interrupt: Interrupt) -> Self {
        let open_files = Self {
            directory,
            interrupt,
            tables: Arc::default(),
            io,
            broker_runs: AtomicBool::new(false),
            limit: limit.max(1),
            opened: AtomicU64::new(0),
            kept: Pool::new(),
            truncations: OnceLock::new(),
        };
        open_files.look_for_broker();
        open_files
    }

    /// Asks whether another process holds the data directory: what is opened from now on is not mapped if so.
    pub(crate) fn look_for_broker(&self) {
        let runs = self.io == Io::Auto && self.directory.is_locked();
        self.broker_runs.store(runs, Ordering::Relaxed);
    }

    /// The rule `io`: whether files of the last segment (or of an earlier one) are mapped.
    pub(crate) fn maps(&self, is_last: bool) -> bool {
        match self.io {
            Io::Mmap => true,
            Io::Pread => false,
            Io::Auto => !self.broker_runs.load(Ordering::Relaxed) && !is_last,
        }
    }

    /// Twice as often as the log was truncated, and odd amid a truncation; `None` where no writer of ours had it yet.
    pub(crate) fn truncations(&self) -> Result<Option<u64>> {
        // kept open, because it is asked for after each reading, and to find a name takes longer
        if self.truncations.get().is_none() && self.directory.identity_of(TRUNCATIONS)?.is_some() {
            let opened = with_descriptors(|| self.directory.open_file(TRUNCATIONS))?;
            if self.truncations.set(opened).is_ok() {
                self.kept.hold();
            }
        }
        self.truncations.get().map(SystemFile::size_now).transpose()
    }

    /// How many times a file was opened.
    pub(crate) fn opened(&self) -> u64 {
        self.opened.load(Ordering::Relaxed)
    }

    /// The open file of a slot, or what `open` returns. See [`with_descriptors`].
    ///
    /// *Concurrency*: takes no lock where the file is open.
    pub(crate) fn get<T>(
        &self,
        slots: &Arc<FileSlots>,
        slot: impl Fn(&FileSlots) -> &Slot<T>,
        kind: FileKind,
        open: impl Fn() -> Result<T>,
    ) -> Result<Arc<T>> {
        if let Some(file) = self.kept.get(slot(slots)) {
            return Ok(file);
        }
        // opened outside the lock: of two threads that open it, one file is kept
        let opened = Arc::new(with_descriptors(open)?);
        self.opened.fetch_add(1, Ordering::Relaxed);
        Ok(self.kept.keep((slots, kind), slot(slots), opened, self.limit))
    }
}
