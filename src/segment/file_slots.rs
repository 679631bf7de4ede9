//! The open files of one segment. Kafka: `LazyIndex` does the same for the offset and time index.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwapOption;

use crate::fs::FileBytes;
use crate::fs::names::FileKind;
use crate::index::{OffsetIndex, TimeIndex, TransactionIndex};

/// A place for one open file. A look-up reads it without a lock.
#[derive(Debug)]
pub(crate) struct Slot<T> {
    file: ArcSwapOption<T>,
    /// The time of the last use, on the clock of the file budget.
    last_use: AtomicU64,
}

impl<T> Default for Slot<T> {
    fn default() -> Self {
        Self { file: ArcSwapOption::empty(), last_use: AtomicU64::new(0) }
    }
}

impl<T> Slot<T> {
    /// The open file. Sets its time of last use to `now`.
    #[inline]
    pub(super) fn get(&self, now: u64) -> Option<Arc<T>> {
        let file = self.file.load_full()?;
        // written only if it changes: threads that read the same file share the cache line
        if self.last_use.load(Ordering::Relaxed) != now {
            self.last_use.store(now, Ordering::Relaxed);
        }
        Some(file)
    }

    /// Whether a file is open for which this is true. Does not count as a use.
    fn holds(&self, is_true: impl Fn(&T) -> bool) -> bool {
        self.file.load().as_ref().is_some_and(|file| is_true(file))
    }

    pub(super) fn set(&self, file: Arc<T>, now: u64) {
        self.last_use.store(now, Ordering::Relaxed);
        self.file.store(Some(file));
    }
}

/// The open files of a segment. Shared by the segment, which reads them, and its pool, which closes them.
#[derive(Debug, Default)]
pub(crate) struct FileSlots {
    pub(super) log: Slot<FileBytes>,
    pub(super) offset_index: Slot<OffsetIndex>,
    pub(super) time_index: Slot<TimeIndex>,
    pub(super) transaction_index: Slot<TransactionIndex>,
}

impl FileSlots {
    /// The time of the last use of a file.
    pub(super) fn last_use(&self, kind: FileKind) -> u64 {
        let last_use = match kind {
            FileKind::Log | FileKind::Snapshot => &self.log.last_use,
            FileKind::OffsetIndex => &self.offset_index.last_use,
            FileKind::TimeIndex => &self.time_index.last_use,
            FileKind::TransactionIndex => &self.transaction_index.last_use,
        };
        last_use.load(Ordering::Relaxed)
    }

    /// Whether a file has no name any more, as after it was deleted.
    pub(super) fn is_deleted(&self, kind: FileKind) -> bool {
        match kind {
            FileKind::Log | FileKind::Snapshot => self.log.holds(FileBytes::is_deleted),
            FileKind::OffsetIndex => self.offset_index.holds(OffsetIndex::is_deleted),
            FileKind::TimeIndex => self.time_index.holds(TimeIndex::is_deleted),
            FileKind::TransactionIndex => self.transaction_index.holds(TransactionIndex::is_deleted),
        }
    }

    /// Empties a slot. The file is closed when its last reader drops it.
    pub(super) fn close(&self, kind: FileKind) {
        match kind {
            FileKind::Log | FileKind::Snapshot => self.log.file.store(None),
            FileKind::OffsetIndex => self.offset_index.file.store(None),
            FileKind::TimeIndex => self.time_index.file.store(None),
            FileKind::TransactionIndex => self.transaction_index.file.store(None),
        }
    }
}
