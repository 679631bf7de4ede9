//! The files that the logs of this process keep open: each log its own, and all of them together no more than the process may
//! have.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::open_files::{Key, Opened};
use crate::fs::max_open_files;

/// Kept files at most, whatever the limit of descriptors: each mapping is one of the 65,530 that the system allows.
const MAX_KEPT: usize = 16 << 10;
/// However low that limit.
const MIN_KEPT: usize = 8;

/// What all pools of the process share.
static BUDGET: FileBudget =
    FileBudget { clock: AtomicU64::new(0), kept: AtomicUsize::new(0), pools: Mutex::new(Vec::new()) };

#[derive(Debug)]
struct FileBudget {
    /// Counts uses, so that ages can be compared across pools.
    clock: AtomicU64,
    kept: AtomicUsize,
    pools: Mutex<Vec<Weak<Pool>>>,
}

/// Half of the descriptors that the process may have: the rest is the program's own, and what is in use anyway.
fn limit() -> usize {
    (max_open_files() / 2).clamp(MIN_KEPT, MAX_KEPT)
}

/// The kept files of one log, with the time of their last use.
#[derive(Debug, Default)]
pub(super) struct Pool {
    kept: Mutex<HashMap<Key, (u64, Opened)>>,
}

impl Pool {
    /// An empty pool, known to the budget.
    pub(super) fn new() -> Arc<Self> {
        let pool = Arc::new(Self::default());
        let mut pools = lock(&BUDGET.pools);
        pools.retain(|pool| pool.strong_count() > 0);
        pools.push(Arc::downgrade(&pool));
        pool
    }

    /// A kept file, which is used now.
    pub(super) fn get(&self, key: Key) -> Option<Opened> {
        let now = BUDGET.clock.fetch_add(1, Ordering::Relaxed);
        let mut kept = lock(&self.kept);
        let (used, opened) = kept.get_mut(&key)?;
        *used = now;
        Some(opened.clone())
    }

    /// Keeps a file, in place of the one of the pool that was not used for the longest time where it holds `most` already,
    /// and of those of all pools where the process holds too many.
    pub(super) fn keep(&self, key: Key, opened: Opened, most: usize) {
        let now = BUDGET.clock.fetch_add(1, Ordering::Relaxed);
        let mut kept = lock(&self.kept);
        let mut dropped = Vec::new();
        while kept.len() >= most {
            let Some(oldest) = kept.iter().min_by_key(|(_, (used, _))| *used).map(|(key, _)| *key) else {
                break;
            };
            dropped.extend(kept.remove(&oldest));
        }
        dropped.extend(kept.insert(key, (now, opened)));
        BUDGET.kept.fetch_add(1, Ordering::Relaxed);
        BUDGET.kept.fetch_sub(dropped.len(), Ordering::Relaxed);
        drop(kept);
        // files are closed outside the lock
        drop(dropped);
        let limit = limit();
        if BUDGET.kept.load(Ordering::Relaxed) > limit {
            // an eighth more than has to be, so that not each opening looks at all that is kept
            drop_oldest(limit - limit / 8);
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        BUDGET.kept.fetch_sub(lock(&self.kept).len(), Ordering::Relaxed);
    }
}

/// Drops the files of all pools that were not used for the longest time, until `left` are kept.
pub(super) fn drop_oldest(left: usize) {
    let pools: Vec<_> = lock(&BUDGET.pools).iter().filter_map(Weak::upgrade).collect();
    let mut uses: Vec<u64> = pools
        .iter()
        .flat_map(|pool| lock(&pool.kept).values().map(|(used, _)| *used).collect::<Vec<_>>())
        .collect();
    let Some(excess) = uses.len().checked_sub(left).filter(|excess| *excess > 0) else { return };
    let (_, newest_dropped, _) = uses.select_nth_unstable(excess - 1);
    let newest_dropped = *newest_dropped;
    for pool in pools {
        let dropped: Vec<_> = lock(&pool.kept).extract_if(|_, (used, _)| *used <= newest_dropped).collect();
        BUDGET.kept.fetch_sub(dropped.len(), Ordering::Relaxed);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
