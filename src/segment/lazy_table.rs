//! Tables that are built only after enough look-ups to pay for them, and only within a fixed amount of memory.

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
        // created first: on failure its drop returns the bytes to the budget
        self.used.fetch_add(bytes, Ordering::Relaxed);
        let share = Share { budget: Arc::clone(self), bytes };
        (self.used.load(Ordering::Relaxed) <= Self::MAX).then_some(share)
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

/// A table that makes look-ups fast and takes long to build. It is built when the look-ups before have taken about as
/// long as building it takes, so at most half of the time is lost. Holds `None` if it cannot be built.
#[derive(Debug)]
pub(crate) struct LazyTable<T> {
    lookups: AtomicU64,
    table: OnceLock<Option<T>>,
    building: Mutex<()>,
}

impl<T> Default for LazyTable<T> {
    fn default() -> Self {
        Self { lookups: AtomicU64::new(0), table: OnceLock::new(), building: Mutex::default() }
    }
}

impl<T> LazyTable<T> {
    /// The table, if it was built.
    pub(crate) fn get(&self) -> Option<&T> {
        self.table.get().and_then(Option::as_ref)
    }

    /// Counts a look-up, and returns the table. Builds it from look-up number `min_lookups` on.
    ///
    /// An error of `read` is not returned: a look-up that reads the same bytes returns it. Only an interrupt is passed on.
    pub(crate) fn get_or_build(
        &self,
        min_lookups: u64,
        read: impl FnOnce() -> Result<Option<T>>,
    ) -> Result<Option<&T>> {
        if self.table.get().is_none() && self.lookups.fetch_add(1, Ordering::Relaxed) + 1 >= min_lookups {
            // another thread builds it: look-ups are single until then
            let _building = match self.building.try_lock() {
                Ok(building) => building,
                Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
                Err(TryLockError::WouldBlock) => return Ok(self.get()),
            };
            if self.table.get().is_none() {
                let table = match read() {
                    Err(interrupted @ Error::Interrupted(_)) => return Err(interrupted),
                    table => table.ok().flatten(),
                };
                return Ok(self.table.get_or_init(|| table).as_ref());
            }
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
    }

    #[test]
    fn a_table_is_built_once_after_enough_look_ups() {
        let lazy = LazyTable::default();
        for _ in 0..2 {
            assert_eq!(lazy.get_or_build(3, || panic!("too early")).unwrap(), None::<&i32>);
        }
        let interrupted = lazy.get_or_build(3, || Err(Error::Interrupted("stop".into())));
        assert!(matches!(interrupted, Err(Error::Interrupted(_))));
        assert_eq!(lazy.get_or_build(3, || Ok(Some(7))).unwrap(), Some(&7));
        assert_eq!(lazy.get_or_build(3, || panic!("twice")).unwrap(), Some(&7));
        let impossible = LazyTable::<i32>::default();
        assert_eq!(impossible.get_or_build(0, || Err(Error::config("a", "b", "c"))).unwrap(), None);
        assert_eq!(impossible.get_or_build(0, || panic!("twice")).unwrap(), None);
    }
}
