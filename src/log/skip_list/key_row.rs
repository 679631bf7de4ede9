//! A row of keys, used by nodes and lanes, and its search.

use core::hint::select_unpredictable;

use crate::loom_shim::{AtomicI64, Ordering};

/// Marks an unwritten key; therefore the one `i64` that cannot be a key.
pub(super) const UNWRITTEN: i64 = i64::MAX;

/// `N` keys in ascending order, [`UNWRITTEN`] after the last. `N` is a power of two.
///
/// Every load and store is relaxed: the list's tail determines which keys a reader may rely on. What it sees
/// beyond (a key of a concurrent push, or none) is above every target that it searches here.
///
/// Aligned, so that the last three halvings stay in one cache line.
#[repr(align(64))]
pub(super) struct KeyRow<const N: usize>([AtomicI64; N]);

impl<const N: usize> KeyRow<N> {
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

    /// The number of keys written. For the writer only: for a reader the tail determines it.
    pub(super) fn len(&self) -> usize {
        if self.key(0) == UNWRITTEN { 0 } else { self.floor(UNWRITTEN - 1) + 1 }
    }

    /// The index of the greatest key at or below `target`; 0 if there is none.
    #[inline]
    pub(super) fn floor(&self, target: i64) -> usize {
        self.halve(N / 2, target)
    }

    /// [`KeyRow::floor`] if only the first `N / 4` keys can be at or below `target`: two steps fewer.
    #[inline]
    pub(super) fn floor_in_first_quarter(&self, target: i64) -> usize {
        self.halve(N / 8, target)
    }

    /// Takes the same number of steps for any contents. `at` ends at the last key that is not above `target`.
    ///
    /// The result of the comparison is unpredictable, so a branch on it is mispredicted half of the time.
    /// Without `select_unpredictable` the compiler generates branches in some callers, and a look-up
    /// takes 3–4 times as long.
    #[inline]
    fn halve(&self, half: usize, target: i64) -> usize {
        let mut at = 0;
        let mut half = half;
        while half > 0 {
            // `at` is a multiple of `2 * half`: `|` equals `+`, and shows the compiler that the sum stays
            // below `N`
            let middle = at | half;
            at = select_unpredictable(self.key(middle) <= target, middle, at);
            half /= 2;
        }
        at
    }
}
