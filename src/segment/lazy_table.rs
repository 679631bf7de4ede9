//! Tables that are built only after enough look-ups to pay for them, and only within a fixed amount of
//! memory.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, TryLockError};

use crate::error::{Error, Result};

/// The memory for the tables of a log's segments.
#[derive(Debug, Default)]
pub(crate) struct Budget {
    used: AtomicUsize,
}

impl Budget {
    /// Bytes, for a log and all logs refreshed from it.
    const MAX: usize = 64 << 20;

    /// The remaining bytes.
    pub(crate) fn left(&self) -> usize {
        Self::MAX.saturating_sub(self.used.load(Ordering::Relaxed))
    }

    /// Reserves `bytes` until the share is dropped; `None` if less is left.
    pub(crate) fn take(self: &Arc<Self>, bytes: usize) -> Option<Share> {
        let add = |used: usize| used.checked_add(bytes).filter(|used| *used <= Self::MAX);
        self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).ok()?;
        Some(Share { budget: Arc::clone(self), bytes })
    }
}

/// A part of a [`Budget`].
#[derive(Debug)]
pub(crate) struct Share {
    budget: Arc<Budget>,
    bytes: usize,
}

impl Drop for Share {
    fn drop(&mut self) {
        self.budget.used.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// The result of building a table.
#[derive(Debug)]
pub(super) enum Built<T> {
    Table(T),
    /// The segment cannot have a table.
    Impossible,
    /// There is no memory for it now. The attempt has cost about as much as this many look-ups.
    NoMemory {
        lookups: u64,
    },
}

impl<T> Built<T> {
    /// The result for a table that needs `bytes` at least, which the budget does not have, after work for as
    /// many `lookups`.
    pub(super) fn without_memory(bytes: usize, lookups: u64) -> Self {
        if bytes > Budget::MAX { Self::Impossible } else { Self::NoMemory { lookups } }
    }
}

/// The first look-up that may build a table: a single one may be the only one, so the first few read only
/// what they need.
pub(super) const FIRST_OF_SINGLE: u64 = 8;
/// The same for one of many in a call, which are not the only ones.
pub(super) const FIRST_OF_MANY: u64 = 1;

/// A table that makes look-ups fast and takes long to build. It is built when the look-ups before have taken
/// about as long as building it takes, so at most half of the time is lost. Holds `None` if there cannot be
/// one. If there is no memory for it or the log cannot be read, it is tried again after as many look-ups, and
/// not before they have taken as long as the attempt.
#[derive(Debug)]
pub(crate) struct LazyTable<T> {
    lookups: AtomicU64,
    /// Look-ups that have cost as much as the last attempt; 0 before one without memory.
    attempt: AtomicU64,
    table: OnceLock<Option<T>>,
    building: Mutex<()>,
}

impl<T> Default for LazyTable<T> {
    fn default() -> Self {
        Self {
            lookups: AtomicU64::new(0),
            attempt: AtomicU64::new(0),
            table: OnceLock::new(),
            building: Mutex::default(),
        }
    }
}

impl<T> LazyTable<T> {
    /// The table, if it was built.
    #[inline]
    pub(crate) fn get(&self) -> Option<&T> {
        self.table.get().and_then(Option::as_ref)
    }

    /// Whether it was found that there cannot be a table, or that there was no memory for it.
    pub(crate) fn is_refused(&self) -> bool {
        match self.table.get() {
            Some(table) => table.is_none(),
            None => self.attempt.load(Ordering::Relaxed) > 0,
        }
    }

    /// Counts a look-up, and returns the table. Builds it from the look-up on that `min_lookups` returns,
    /// which is called from look-up number `first` on.
    ///
    /// An error of `read` is not returned: a look-up that reads the same bytes returns it. Only an interrupt
    /// is passed on.
    pub(crate) fn get_or_build(
        &self,
        first: u64,
        min_lookups: impl FnOnce() -> Result<u64>,
        read: impl FnOnce() -> Result<Built<T>>,
    ) -> Result<Option<&T>> {
        if self.table.get().is_none() {
            let lookups = self.lookups.fetch_add(1, Ordering::Relaxed) + 1;
            let attempt = self.attempt.load(Ordering::Relaxed);
            if lookups >= first.max(attempt) && lookups >= min_lookups()? {
                return self.build(read);
            }
        }
        Ok(self.get())
    }

    #[cold]
    fn build(&self, read: impl FnOnce() -> Result<Built<T>>) -> Result<Option<&T>> {
        // another thread builds it: look-ups are single until then
        let _building = match self.building.try_lock() {
            Ok(building) => building,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return Ok(self.get()),
        };
        if self.table.get().is_none() {
            let table = match read() {
                Err(interrupted @ Error::Interrupted(_)) => return Err(interrupted),
                Ok(Built::NoMemory { lookups }) => {
                    self.attempt.store(lookups.max(1), Ordering::Relaxed);
                    self.lookups.store(0, Ordering::Relaxed);
                    return Ok(None);
                }
                Err(_) => {
                    self.lookups.store(0, Ordering::Relaxed);
                    return Ok(None);
                }
                Ok(Built::Impossible) => None,
                Ok(Built::Table(table)) => Some(table),
            };
            self.table.get_or_init(|| table);
        }
        Ok(self.get())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_has_a_limit_and_a_dropped_share_returns_its_bytes() {
        let budget = Arc::new(Budget::default());
        let half = budget.take(Budget::MAX / 2).unwrap();
        assert!(budget.take(Budget::MAX / 2 + 1).is_none());
        let rest = budget.take(Budget::MAX / 2).unwrap();
        assert_eq!(budget.left(), 0);
        drop((half, rest));
        assert_eq!(budget.left(), Budget::MAX);
        assert!(budget.take(usize::MAX).is_none());
        assert_eq!(budget.left(), Budget::MAX);
    }

    #[test]
    fn of_two_threads_that_take_what_only_one_can_have_one_gets_it() {
        let budget = Arc::new(Budget::default());
        for _ in 0..300 {
            let taken = std::thread::scope(|scope| {
                let take = || budget.take(Budget::MAX / 2 + 1);
                let threads = [scope.spawn(take), scope.spawn(take)];
                threads.map(|thread| thread.join().unwrap())
            });
            assert!(taken.iter().any(Option::is_some));
            drop(taken);
        }
    }

    #[test]
    fn a_table_is_built_once_after_enough_look_ups() {
        for (first, wanted, min) in [(1, 0, 1), (3, 0, 3), (1, 20, 20), (3, 20, 20)] {
            let lazy = LazyTable::default();
            for _ in 1..min {
                let built = lazy.get_or_build(first, || Ok(wanted), || panic!("too early"));
                assert_eq!(built.unwrap(), None::<&i32>);
            }
            let interrupted =
                lazy.get_or_build(first, || Ok(wanted), || Err(Error::Interrupted("stop".into())));
            assert!(matches!(interrupted, Err(Error::Interrupted(_))));
            assert_eq!(lazy.get_or_build(first, || Ok(wanted), || Ok(Built::Table(7))).unwrap(), Some(&7));
            assert_eq!(lazy.get_or_build(first, || Ok(wanted), || panic!("twice")).unwrap(), Some(&7));
            assert!(!lazy.is_refused());
        }
    }

    #[test]
    fn a_table_that_cannot_be_built_is_refused_for_good() {
        let lazy = LazyTable::<i32>::default();
        assert!(!lazy.is_refused());
        assert_eq!(
            lazy.get_or_build(1, || Ok(0), || Ok(Built::without_memory(usize::MAX, 9))).unwrap(),
            None
        );
        assert!(lazy.is_refused());
        assert_eq!(lazy.get_or_build(1, || Ok(0), || panic!("twice")).unwrap(), None);
    }

    #[test]
    fn a_table_without_memory_or_after_an_error_is_tried_again_after_as_many_look_ups() {
        let budget = Arc::new(Budget::default());
        let all = budget.take(Budget::MAX).unwrap();
        let read = || match budget.take(100) {
            Some(share) => Ok(Built::Table(share)),
            None => Ok(Built::without_memory(100, 30)),
        };
        let lazy = LazyTable::default();
        // an error, then twice no memory: the second time after the look-ups that the attempt has cost
        for (turn, wait) in [20, 20, 30].into_iter().enumerate() {
            for lookup in 1..=wait {
                let read = || if turn == 0 { Err(Error::config("a", "b", "c")) } else { read() };
                let read = || if lookup < wait { panic!("too early") } else { read() };
                assert!(lazy.get_or_build(1, || Ok(20), read).unwrap().is_none());
                assert_eq!(lazy.is_refused(), turn == 2 || turn == 1 && lookup == wait);
            }
        }
        drop(all);
        for lookup in 1..=40 {
            assert_eq!(lazy.get_or_build(1, || Ok(40), read).unwrap().is_some(), lookup == 40);
        }
        assert!(!lazy.is_refused());
    }
}
