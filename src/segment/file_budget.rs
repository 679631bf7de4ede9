//! The limit on files that the logs of this process keep open: one limit per log, and one for all logs of the
//! process together.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use arc_swap::ArcSwapOption;

use super::file_slots::{FileSlots, Slot};
use crate::error::{Error, Result};
use crate::fs::names::FileKind;
use crate::fs::{Directory, forks, forks_now, is_out_of_descriptors, max_open_files};

/// The maximum number of kept files, even if the limit of descriptors is higher: each mapping is one of the
/// 65,530 that the system allows.
const MAX_KEPT: usize = 16 << 10;
/// The minimum, even if the limit of descriptors is lower.
const MIN_KEPT: usize = 8;

/// The budget of this process, once it has a pool.
static BUDGET: ArcSwapOption<FileBudget> = ArcSwapOption::const_empty();

/// The state shared by all pools of the process. A forked child gets a new one: the lock of this one may be
/// held by a thread that does not exist in the child, and would never be released.
#[derive(Debug)]
struct FileBudget {
    /// The number of forks before it was created.
    forks: u32,
    /// Increases by two with each opened file, so that ages can be compared across pools. A use gets the odd
    /// value after the last opening: it writes nothing that other threads read, and uses between two
    /// openings count as equally old.
    clock: AtomicU64,
    kept: AtomicUsize,
    /// Descriptors that stay open until their log is dropped: directories and truncation counts.
    held: AtomicUsize,
    pools: Mutex<Vec<Weak<Pool>>>,
}

impl FileBudget {
    /// The budget of this process.
    fn current() -> Arc<Self> {
        // without the C library's callbacks around a fork, a child is not detected
        let forks = forks().unwrap_or_else(|_| forks_now());
        let is_ours = |budget: &Arc<Self>| budget.forks == forks;
        loop {
            let found = BUDGET.load_full();
            if let Some(ours) = found.as_ref().filter(|budget| is_ours(budget)) {
                return Arc::clone(ours);
            }
            let (clock, kept, held) = (AtomicU64::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
            let fresh = Self { forks, clock, kept, held, pools: Mutex::new(Vec::new()) };
            // if another thread stored its budget first, that one is used
            BUDGET.compare_and_swap(&found, Some(Arc::new(fresh)));
        }
    }

    /// The maximum number of kept files: half of the process's limit of descriptors, minus those that stay
    /// open anyway. The other half is for the program and for files in use.
    fn limit(&self) -> usize {
        (max_open_files() / 2).saturating_sub(self.held.load(Ordering::Relaxed)).clamp(MIN_KEPT, MAX_KEPT)
    }

    /// Drops kept files if there are more than the limit.
    fn enforce_limit(&self) {
        let limit = self.limit();
        if self.kept.load(Ordering::Relaxed) > limit {
            // an eighth more than necessary, so that not every opening scans all kept files
            self.drop_oldest(limit - limit / 8);
        }
    }

    /// Closes the least recently used files of all pools, until `left` are kept.
    fn drop_oldest(&self, left: usize) {
        let pools: Vec<_> = lock(&self.pools).iter().filter_map(Weak::upgrade).collect();
        let mut ages = Vec::new();
        for pool in &pools {
            ages.extend(lock(&pool.kept).iter().map(last_use));
        }
        let Some(excess) = ages.len().checked_sub(left).filter(|excess| *excess > 0) else { return };
        let (older, newest_dropped, _) = ages.select_nth_unstable(excess - 1);
        let newest_dropped = *newest_dropped;
        // several files can have the same time as the newest one to drop
        let mut ties = excess - older.iter().filter(|used| **used < newest_dropped).count();
        for pool in pools {
            let mut is_dropped = |kept: &mut Kept| {
                let used = last_use(kept);
                let is_tie = used == newest_dropped && ties > 0;
                ties -= usize::from(is_tie);
                used < newest_dropped || is_tie
            };
            let dropped: Vec<_> = lock(&pool.kept).extract_if(.., &mut is_dropped).collect();
            self.kept.fetch_sub(dropped.len(), Ordering::Relaxed);
            close(dropped);
        }
    }
}

/// Closes the deleted files that the readers of a directory keep in this process, as [`Pool::close_deleted`].
/// A reader that was opened by another path, through a link, closes them at its next refresh. *Cost*: a
/// system call for each file.
pub(crate) fn close_deleted_files(directory: &Directory) {
    let path = absolute(directory);
    let pools: Vec<_> = lock(&FileBudget::current().pools).iter().filter_map(Weak::upgrade).collect();
    for pool in pools.into_iter().filter(|pool| pool.path == path) {
        pool.close_deleted();
    }
}

fn absolute(directory: &Directory) -> PathBuf {
    std::path::absolute(directory.path()).unwrap_or_else(|_| directory.path().to_owned())
}

/// Calls `open`. If the process has no descriptor left, closes all kept files of all logs and calls it again.
pub(crate) fn with_descriptors<T>(open: impl Fn() -> Result<T>) -> Result<T> {
    match open() {
        Err(Error::Io { source, .. }) if is_out_of_descriptors(&source) => {
            FileBudget::current().drop_oldest(0);
            open()
        }
        opened => opened,
    }
}

/// An open file: the slots of its segment, and its kind. A segment that is dropped, such as one that a
/// refresh has replaced, closes its files itself: a deleted file does not take space on the disk any longer.
type Kept = (Weak<FileSlots>, FileKind);

/// The time of the last use; that of a closed file is the oldest.
fn last_use((slots, kind): &Kept) -> u64 {
    slots.upgrade().map_or(0, |slots| slots.last_use(*kind))
}

/// Closes files. Callers hold no lock, because closing may take long.
fn close(files: Vec<Kept>) {
    for (slots, kind) in files {
        if let Some(slots) = slots.upgrade() {
            slots.close(kind);
        }
    }
}

/// The kept files of one log.
#[derive(Debug)]
pub(super) struct Pool {
    budget: Arc<FileBudget>,
    /// The absolute path of the log.
    path: PathBuf,
    kept: Mutex<Vec<Kept>>,
    /// Descriptors that stay open until the log is dropped.
    held: AtomicUsize,
}

impl Pool {
    /// An empty pool, registered with the budget. It counts one descriptor for the directory, which the log
    /// keeps open.
    pub(super) fn new(directory: &Directory) -> Arc<Self> {
        let budget = FileBudget::current();
        let pool = Arc::new(Self {
            budget: Arc::clone(&budget),
            path: absolute(directory),
            kept: Mutex::default(),
            held: AtomicUsize::new(0),
        });
        let mut pools = lock(&budget.pools);
        pools.retain(|pool| pool.strong_count() > 0);
        pools.push(Arc::downgrade(&pool));
        drop(pools);
        pool.hold();
        pool
    }

    /// Counts a descriptor that stays open until the log is dropped.
    pub(super) fn hold(&self) {
        self.held.fetch_add(1, Ordering::Relaxed);
        self.budget.held.fetch_add(1, Ordering::Relaxed);
        self.budget.enforce_limit();
    }

    /// Closes the kept files that were deleted: until then they take space on the disk.
    pub(super) fn close_deleted(&self) {
        let is_deleted =
            |(slots, kind): &mut Kept| slots.upgrade().is_some_and(|slots| slots.is_deleted(*kind));
        let deleted: Vec<_> = lock(&self.kept).extract_if(.., is_deleted).collect();
        self.budget.kept.fetch_sub(deleted.len(), Ordering::Relaxed);
        close(deleted);
    }

    /// The open file of a slot. Updates its time of last use.
    #[inline]
    pub(super) fn get<T>(&self, slot: &Slot<T>) -> Option<Arc<T>> {
        slot.get(self.budget.clock.load(Ordering::Relaxed) | 1)
    }

    /// Keeps a file open. Drops the least recently used files of the pool if it keeps `max` already, and
    /// those of all pools if the process keeps too many. If another thread stored a file first, returns
    /// that one.
    pub(super) fn keep<T>(
        &self,
        (slots, kind): (&Arc<FileSlots>, FileKind),
        slot: &Slot<T>,
        opened: Arc<T>,
        max: usize,
    ) -> Arc<T> {
        let now = self.budget.clock.fetch_add(2, Ordering::Relaxed) + 2;
        let mut kept = lock(&self.kept);
        if let Some(first) = slot.get(now) {
            return first;
        }
        let mut dropped: Vec<_> = kept.extract_if(.., |(slots, _)| slots.strong_count() == 0).collect();
        while kept.len() >= max {
            let uses = kept.iter().map(last_use).enumerate();
            let Some((oldest, _)) = uses.min_by_key(|(_, used)| *used) else { break };
            dropped.push(kept.swap_remove(oldest));
        }
        slot.set(Arc::clone(&opened), now);
        kept.push((Arc::downgrade(slots), kind));
        self.budget.kept.fetch_add(1, Ordering::Relaxed);
        self.budget.kept.fetch_sub(dropped.len(), Ordering::Relaxed);
        drop(kept);
        close(dropped);
        self.budget.enforce_limit();
        opened
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.budget.held.fetch_sub(self.held.load(Ordering::Relaxed), Ordering::Relaxed);
        self.budget.kept.fetch_sub(lock(&self.kept).len(), Ordering::Relaxed);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
