//! What is made only where enough is asked to pay for it, and only within a fixed amount of memory.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use crate::error::{Error, Result};

/// The memory that the tables of a log's segments share.
#[derive(Debug, Default)]
pub(crate) struct Budget {
    used: AtomicUsize,
}

impl Budget {
    /// In bytes, for a log and those refreshed from it.
    const MAX: usize = 64 << 20;

    /// How much is left.
    pub(crate) fn left(&self) -> usize {
        Self::MAX.saturating_sub(self.used.load(Ordering::Relaxed))
    }

    /// Takes some of it, until the share is dropped; `None` where there is not enough.
    pub(crate) fn take(self: &Arc<Self>, bytes: usize) -> Option<Share> {
        // made first, so that it gives back what it took where that was too much
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

/// Something that answers many questions fast and takes long to make: made when those asked before have taken about as
/// long, so that at most half of the time is lost, whoever asks however much. `None` in it: it cannot be made.
#[derive(Debug)]
pub(crate) struct LazyTable<T> {
    asked: AtomicU64,
    made: OnceLock<Option<T>>,
    making: Mutex<()>,
}

impl<T> Default for LazyTable<T> {
    fn default() -> Self {
        Self { asked: AtomicU64::new(0), made: OnceLock::new(), making: Mutex::default() }
    }
}

impl<T> LazyTable<T> {
    /// What was made, if it was.
    pub(crate) fn get(&self) -> Option<&T> {
        self.made.get().and_then(Option::as_ref)
    }

    /// The same for who is about to ask a question without it: makes it where `price` questions were asked.
    ///
    /// An error while it is made is no answer's error: whose answer rests on what cannot be read will meet it. Only an
    /// interrupt is passed on.
    pub(crate) fn ask(&self, price: u64, read: impl FnOnce() -> Result<Option<T>>) -> Result<Option<&T>> {
        if self.made.get().is_none() && self.asked.fetch_add(1, Ordering::Relaxed) + 1 >= price {
            // another thread makes it: its targets are looked up singly until then
            let Ok(_making) = self.making.try_lock() else { return Ok(self.get()) };
            if self.made.get().is_none() {
                let made = match read() {
                    Err(interrupted @ Error::Interrupted(_)) => return Err(interrupted),
                    made => made.ok().flatten(),
                };
                return Ok(self.made.get_or_init(|| made).as_ref());
            }
        }
        Ok(self.get())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_not_overdrawn_and_gets_back_what_is_dropped() {
        let budget = Arc::new(Budget::default());
        let half = budget.take(Budget::MAX / 2).unwrap();
        assert!(budget.take(Budget::MAX / 2 + 1).is_none());
        let rest = budget.take(Budget::MAX / 2).unwrap();
        assert_eq!(budget.left(), 0);
        drop((half, rest));
        assert_eq!(budget.left(), Budget::MAX);
    }

    #[test]
    fn it_is_made_once_when_enough_was_asked() {
        let prepared = LazyTable::default();
        for _ in 0..2 {
            assert_eq!(prepared.ask(3, || panic!("too early")).unwrap(), None::<&i32>);
        }
        let interrupted = prepared.ask(3, || Err(Error::Interrupted("stop".into())));
        assert!(matches!(interrupted, Err(Error::Interrupted(_))));
        assert_eq!(prepared.ask(3, || Ok(Some(7))).unwrap(), Some(&7));
        assert_eq!(prepared.ask(3, || panic!("twice")).unwrap(), Some(&7));
        let impossible = LazyTable::<i32>::default();
        assert_eq!(impossible.ask(0, || Err(Error::config("a", "b", "c"))).unwrap(), None);
        assert_eq!(impossible.ask(0, || panic!("twice")).unwrap(), None);
    }
}
