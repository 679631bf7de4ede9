//! A cache of pairs of numbers that many threads read and write without a lock.

use std::sync::atomic::{AtomicU64, Ordering};

/// Pairs of a key and a value in atomic words, one pair in each, so no reader sees half a pair. Each key has
/// one place: a later pair replaces an earlier one there.
///
/// For facts about bytes that do not change: a pair that is lost or read late is found again.
#[derive(Debug, Default)]
pub(super) struct PairCache<Places>(Places);

/// A cache of one cache line, for the results of the last look-ups.
pub(super) type RecentPairs = PairCache<CacheLine>;

/// The places of a [`RecentPairs`].
#[derive(Debug, Default)]
#[repr(align(64))]
pub(super) struct CacheLine([AtomicU64; 8]);

impl AsRef<[AtomicU64]> for CacheLine {
    fn as_ref(&self) -> &[AtomicU64] {
        &self.0
    }
}

impl PairCache<Box<[AtomicU64]>> {
    /// A cache with this number of places, 8 bytes each.
    pub(super) fn with_places(count: usize) -> Self {
        Self((0..count).map(|_| AtomicU64::new(0)).collect())
    }
}

impl<Places: AsRef<[AtomicU64]>> PairCache<Places> {
    /// The value of a key; `None` if it was not inserted, or was replaced.
    #[inline]
    pub(super) fn get(&self, key: u64) -> Option<u32> {
        let stored = stored_key(key)?;
        let pair = self.place(stored)?.load(Ordering::Relaxed);
        if pair >> 32 == stored { u32::try_from(pair & u64::from(u32::MAX)).ok() } else { None }
    }

    /// Stores a pair. A key above `u32::MAX - 1` is not stored.
    pub(super) fn insert(&self, key: u64, value: u32) {
        if let Some(stored) = stored_key(key)
            && let Some(place) = self.place(stored)
        {
            place.store(stored << 32 | u64::from(value), Ordering::Relaxed);
        }
    }

    fn place(&self, stored: u64) -> Option<&AtomicU64> {
        let places = self.0.as_ref();
        // the fraction of the key times 2³² divided by the golden ratio: keys at equal distances are spread
        // evenly
        let hash = stored.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        places.get(usize::try_from(hash.wrapping_mul(places.len() as u64) >> 32).ok()?)
    }
}

/// The key as it is stored, which is never 0: a word of 0 is an empty place.
fn stored_key(key: u64) -> Option<u64> {
    u32::try_from(key).ok()?.checked_add(1).map(u64::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_inserted_key_has_a_value() {
        let cache = RecentPairs::default();
        for key in [0, 1, u64::from(u32::MAX) - 1] {
            assert_eq!(cache.get(key), None);
            for value in [0, 7, u32::MAX] {
                cache.insert(key, value);
                assert_eq!(cache.get(key), Some(value));
            }
        }
        for too_large in [u64::from(u32::MAX), 1 << 32, u64::MAX] {
            cache.insert(too_large, 5);
            assert_eq!(cache.get(too_large), None);
        }
    }

    #[test]
    fn recent_pairs_fill_a_cache_line() {
        assert_eq!((size_of::<RecentPairs>(), align_of::<RecentPairs>()), (64, 64));
    }

    #[test]
    fn a_cache_without_places_stores_nothing() {
        let cache = PairCache::with_places(0);
        cache.insert(3, 4);
        assert_eq!(cache.get(3), None);
    }

    #[test]
    fn keys_at_equal_distances_are_spread_over_the_places() {
        let cache = PairCache::with_places(1000);
        for key in 0..800 {
            cache.insert(key * 4096, 1);
        }
        let kept = (0..800).filter(|key| cache.get(key * 4096) == Some(1)).count();
        assert!(kept > 500, "{kept}");
    }
}
