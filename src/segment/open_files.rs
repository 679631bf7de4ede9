//! The open files and mappings of a partition. They are opened on first use, and a limited number is kept
//! open.

use std::path::PathBuf;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::file_budget::{Pool, with_descriptors};
use super::file_slots::{FileSlots, Slot};
use super::lazy_table::Budget;
use crate::error::{Error, Result};
use crate::fs::names::FileKind;
use crate::fs::{Directory, SystemFile};
use crate::state::truncation_count;
use crate::state::truncation_gaps::TruncationGaps;
use crate::types::{Interrupt, Io};

/// A partition's directory and its open files. Files in use stay open regardless of the limits. Files that
/// are only kept are dropped, the least recently used first, beyond the limit of the log and beyond that of
/// the process.
#[derive(Debug)]
pub(crate) struct OpenFiles {
    pub(crate) directory: Directory,
    pub(crate) interrupt: Interrupt,
    /// The memory for tables of segments.
    pub(crate) tables: Arc<Budget>,
    /// Files are mapped with [`Io::Mmap`] alone.
    pub(super) io: Io,
    /// The largest batch that is read, bytes, as stored and decompressed.
    pub(crate) max_batch_bytes: usize,
    limit: usize,
    opened: AtomicU64,
    kept: Arc<Pool>,
    truncations: OnceLock<SystemFile>,
    /// The gaps that truncations left, read at a truncation count.
    truncation_gaps: Mutex<(u64, TruncationGaps)>,
    /// The offset up to which the log is known to have been synced.
    synced: AtomicI64,
}

impl OpenFiles {
    /// `limit`: the maximum number of files that are kept open.
    pub(crate) fn new(
        directory: Directory,
        io: Io,
        max_batch_bytes: usize,
        limit: usize,
        interrupt: Interrupt,
    ) -> Self {
        let kept = Pool::new(&directory);
        Self {
            directory,
            io,
            max_batch_bytes,
            interrupt,
            tables: Arc::default(),
            limit: limit.max(1),
            opened: AtomicU64::new(0),
            kept,
            truncations: OnceLock::new(),
            truncation_gaps: Mutex::new((0, TruncationGaps::UNKNOWN)),
            synced: AtomicI64::new(i64::MIN),
        }
    }

    /// Notes the offset up to which the log was synced, as a file of a writer or of a broker says now: a
    /// truncation lowers it.
    pub(crate) fn note_synced(&self, offset: i64) {
        self.synced.store(offset, Ordering::Relaxed);
    }

    /// Whether the log was synced beyond an offset, so that batches with higher offsets were there.
    pub(super) fn was_synced_beyond(&self, offset: i64) -> bool {
        self.synced.load(Ordering::Relaxed) > offset
    }

    /// The [`truncation_count`]; `None` if no `LogWriter` has opened the log yet.
    pub(crate) fn truncations(&self) -> Result<Option<u64>> {
        // kept open, because its size is checked after each read, and opening it by name takes longer
        if self.truncations.get().is_none()
            && let Some(opened) = with_descriptors(|| truncation_count::open(&self.directory))?
            && self.truncations.set(opened).is_ok()
        {
            self.kept.hold();
        }
        self.truncations.get().map(SystemFile::size_now).transpose()
    }

    /// Whether a truncation may have left the gap before a batch with this base offset. `truncations`: the
    /// count when the log was opened. A file that cannot be read shows no loss.
    pub(super) fn may_be_truncation_gap(&self, truncations: Option<u64>, offset: i64) -> bool {
        let Some(count) = truncations.filter(|count| *count > 0) else { return false };
        let mut known = self.truncation_gaps.lock().unwrap_or_else(PoisonError::into_inner);
        if known.0 != count {
            let read = with_descriptors(|| TruncationGaps::read(&self.directory));
            *known = (count, read.unwrap_or(TruncationGaps::UNKNOWN));
        }
        known.1.may_end_at(offset)
    }

    /// Whether a `LogWriter` had opened the log when [`OpenFiles::truncations`] was last called.
    #[inline]
    pub(crate) fn is_counted(&self) -> bool {
        self.truncations.get().is_some()
    }

    /// Fails if the truncation count is not `known`, the count when the log was opened; `file` is named by
    /// the error. Costs a system call, also in a log that only Kafka has written: a `LogWriter` may have
    /// opened it since. Kafka's own truncations are not counted.
    pub(crate) fn check_truncations(&self, known: Option<u64>, file: impl FnOnce() -> PathBuf) -> Result<()> {
        // the first `LogWriter` begins to count at 0
        if self.truncations()?.unwrap_or(0) == known.unwrap_or(0) {
            return Ok(());
        }
        Err(Error::LogChanged {
            file: file(),
            expected: "the log as it was when it was opened".to_owned(),
            found: "a log that was truncated since".to_owned(),
        })
    }

    /// Closes the kept files that were deleted. *Cost*: a system call for each.
    pub(crate) fn close_deleted(&self) {
        self.kept.close_deleted();
    }

    /// The number of times a file was opened.
    pub(crate) fn open_count(&self) -> u64 {
        self.opened.load(Ordering::Relaxed)
    }

    /// The open file of a slot, or the result of `open`. See [`with_descriptors`].
    ///
    /// *Concurrency*: takes no lock if the file is open.
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
        // opened outside the lock: if two threads open it, one file is kept
        let opened = Arc::new(with_descriptors(open)?);
        self.opened.fetch_add(1, Ordering::Relaxed);
        Ok(self.kept.keep((slots, kind), slot(slots), opened, self.limit))
    }
}
