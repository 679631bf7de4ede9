//! A row of keys: what a node and a group of a lane have in common, and the search that both are laid out for.

use core::hint::select_unpredictable;

use crate::loom_shim::{AtomicI64, Ordering};

/// What stands where no key is written yet; therefore the one `i64` that cannot be a key.
pub(super) const UNWRITTEN: i64 = i64::MAX;

/// `N` keys in ascending order, [`UNWRITTEN`] behind the last. `N` is a power of two.
///
/// Every load and store is relaxed: a reader learns from the list's tail which keys it may count on, and what it sees
/// beyond (a key of a push under way, or none) lies above every target that it looks for here.
///
/// Aligned, so that the last three halvings stay in one cache line.
#[repr(align(64))]
pub(super) struct Row<const N: usize>([AtomicI64; N]);

impl<const N: usize> Row<N> {
    pub(super) fn new() -> Self {
        const { assert!(N >= 2 && N.is_power_of_two(), "a row is halved down to one key") };
        Self(core::array::from_fn(|_| AtomicI64::new(UNWRITTEN)))
    }

    /// The key at `index`, [`UNWRITTEN`] beyond the row.
    #[inline]
    pub(super) fn key(&self, index: usize) -> i64 {
        self.0.get(index).map_or(UNWRITTEN, |key| key.load(Ordering::Relaxed))
    }

    pub(super) fn set(&self, index: usize, key: i64) {
        if let Some(place) = self.0.get(index) {
            place.store(key, Ordering::Relaxed);
        }
    }

    /// The keys written so far. Only the writer may ask: to a reader they are as many as the tail says.
    pub(super) fn len(&self) -> usize {
        if self.key(0) == UNWRITTEN { 0 } else { self.floor(UNWRITTEN - 1) + 1 }
    }

    /// The index of the greatest key at or below `target`; 0 if there is none.
    #[inline]
    pub(super) fn floor(&self, target: i64) -> usize {
        self.halve(N / 2, target)
    }

    /// [`Row::floor`] where only the first `N / 4` keys can be at or below `target`: two steps fewer.
    #[inline]
    pub(super) fn floor_in_first_quarter(&self, target: i64) -> usize {
        self.halve(N / 8, target)
    }

    /// Always the same steps, whatever is written: `at` ends on the last key that is not above `target`.
    ///
    /// The comparison's outcome is a coin toss, so a branch on it is mispredicted every other time; without
    /// `select_unpredictable` the compiler makes branches of it in some callers, and a look-up takes 3–4 times as long.
    #[inline]
    fn halve(&self, half: usize, target: i64) -> usize {
        let mut at = 0;
        let mut half = half;
        while half > 0 {
            // `at` is a multiple of `2 * half`: `|` adds, and shows the compiler that the sum stays below `N`
            let middle = at | half;
            at = select_unpredictable(self.key(middle) <= target, middle, at);
            half /= 2;
        }
        at
    }
}
