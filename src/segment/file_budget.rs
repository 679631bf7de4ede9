//! The files that the logs of this process keep open: each log its own, and all of them together no more than the process may
//! have.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use arc_swap::ArcSwapOption;

use super::file_slots::{FileSlots, Slot};
use crate::error::{Error, Result};
use crate::fs::names::FileKind;
use crate::fs::{forks, forks_now, is_out_of_descriptors, max_open_files};

/// Kept files at most, whatever the limit of descriptors: each mapping is one of the 65,530 that the system allows.
const MAX_KEPT: usize = 16 << 10;
/// However low that limit.
const MIN_KEPT: usize = 8;

/// The budget of this process, once it has a pool.
static BUDGET: ArcSwapOption<FileBudget> = ArcSwapOption::const_empty();

/// What all pools of the process share. A forked child has another one: a thread that the child does not have may hold the
/// lock of this one for ever.
#[derive(Debug)]
struct FileBudget {
    /// Forks before it was made.
    forks: u32,
    /// Counts openings, by two, so that ages can be compared across pools. A use has the odd time after the last opening:
    /// a use writes nothing that other threads read, and uses between two openings count as equally old.
    clock: AtomicU64,
    kept: AtomicUsize,
    /// Descriptors that stay open as long as their logs: directories and counts of truncations.
    held: AtomicUsize,
    pools: Mutex<Vec<Weak<Pool>>>,
}

impl FileBudget {
    /// That of this process.
    fn current() -> Arc<Self> {
        // where the C library does not call us around a fork, a child is not known
        let forks = forks().unwrap_or_else(|_| forks_now());
        let is_ours = |budget: &Arc<Self>| budget.forks == forks;
        loop {
            let found = BUDGET.load_full();
            if let Some(ours) = found.as_ref().filter(|budget| is_ours(budget)) {
                return Arc::clone(ours);
            }
            let (clock, kept, held) = (AtomicU64::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
            let fresh = Self { forks, clock, kept, held, pools: Mutex::new(Vec::new()) };
            // where another thread was first, its budget is taken
            BUDGET.compare_and_swap(&found, Some(Arc::new(fresh)));
        }
    }

    /// How many files may be kept: half of the descriptors that the process may have, without those that stay open anyway.
    /// The other half is the program's own, and what is in use.
    fn limit(&self) -> usize {
        (max_open_files() / 2).saturating_sub(self.held.load(Ordering::Relaxed)).clamp(MIN_KEPT, MAX_KEPT)
    }

    /// Drops kept files where there are more than the limit.
    fn keep_limit(&self) {
        let limit = self.limit();
        if self.kept.load(Ordering::Relaxed) > limit {
            // an eighth more than has to be, so that not each opening looks at all that is kept
            self.drop_oldest(limit - limit / 8);
        }
    }

    /// Closes the files of all pools that were not used for the longest time, until `left` are kept.
    fn drop_oldest(&self, left: usize) {
        let pools: Vec<_> = lock(&self.pools).iter().filter_map(Weak::upgrade).collect();
        let mut ages = Vec::new();
        for pool in &pools {
            ages.extend(lock(&pool.kept).iter().map(|(slots, kind)| slots.last_use(*kind)));
        }
        let Some(excess) = ages.len().checked_sub(left).filter(|excess| *excess > 0) else { return };
        let (older, newest_dropped, _) = ages.select_nth_unstable(excess - 1);
        let newest_dropped = *newest_dropped;
        // many can have the time of the newest that has to go
        let mut ties = excess - older.iter().filter(|used| **used < newest_dropped).count();
        for pool in pools {
            let mut is_dropped = |(slots, kind): &mut Kept| {
                let used = slots.last_use(*kind);
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

/// What `open` gives. Where the process has no descriptor left, what all logs keep is closed first.
pub(crate) fn with_descriptors<T>(open: impl Fn() -> Result<T>) -> Result<T> {
    match open() {
        Err(Error::Io { source, .. }) if is_out_of_descriptors(&source) => {
            FileBudget::current().drop_oldest(0);
            open()
        }
        opened => opened,
    }
}

/// An open file: the slots of its segment, and which of them.
type Kept = (Arc<FileSlots>, FileKind);

/// Closes files. Outside of every lock, because the system may take long.
fn close(files: Vec<Kept>) {
    for (slots, kind) in files {
        slots.close(kind);
    }
}

/// The kept files of one log.
#[derive(Debug)]
pub(super) struct Pool {
    budget: Arc<FileBudget>,
    kept: Mutex<Vec<Kept>>,
    /// Descriptors of the log that stay open as long as it does.
    held: AtomicUsize,
}

impl Pool {
    /// An empty pool of a log that holds its directory open, known to the budget.
    pub(super) fn new() -> Arc<Self> {
        let budget = FileBudget::current();
        let pool =
            Arc::new(Self { budget: Arc::clone(&budget), kept: Mutex::default(), held: AtomicUsize::new(0) });
        let mut pools = lock(&budget.pools);
        pools.retain(|pool| pool.strong_count() > 0);
        pools.push(Arc::downgrade(&pool));
        drop(pools);
        pool.hold();
        pool
    }

    /// Counts a descriptor that stays open as long as the log.
    pub(super) fn hold(&self) {
        self.held.fetch_add(1, Ordering::Relaxed);
        self.budget.held.fetch_add(1, Ordering::Relaxed);
        self.budget.keep_limit();
    }

    /// The open file of a slot, which is used now.
    #[inline]
    pub(super) fn get<T>(&self, slot: &Slot<T>) -> Option<Arc<T>> {
        slot.get(self.budget.clock.load(Ordering::Relaxed) | 1)
    }

    /// Keeps a file open, in place of the one of the pool that was not used for the longest time where it keeps `most`
    /// already, and of those of all pools where the process keeps too many. Returns the file of another thread where that
    /// was first.
    pub(super) fn keep<T>(
        &self,
        (slots, kind): (&Arc<FileSlots>, FileKind),
        slot: &Slot<T>,
        opened: Arc<T>,
        most: usize,
    ) -> Arc<T> {
        let now = self.budget.clock.fetch_add(2, Ordering::Relaxed) + 2;
        let mut kept = lock(&self.kept);
        if let Some(first) = slot.get(now) {
            return first;
        }
        let mut dropped = Vec::new();
        while kept.len() >= most {
            let uses = kept.iter().map(|(slots, kind)| slots.last_use(*kind)).enumerate();
            let Some((oldest, _)) = uses.min_by_key(|(_, used)| *used) else { break };
            dropped.push(kept.swap_remove(oldest));
        }
        slot.set(Arc::clone(&opened), now);
        kept.push((Arc::clone(slots), kind));
        self.budget.kept.fetch_add(1, Ordering::Relaxed);
        self.budget.kept.fetch_sub(dropped.len(), Ordering::Relaxed);
        drop(kept);
        close(dropped);
        self.budget.keep_limit();
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
