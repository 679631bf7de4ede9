//! A search in sorted keys that mostly needs no bisection. The span of the keys is divided into buckets of
//! equal width, about as many as there are keys, and each bucket stores the index of its first key.
//!
//! Offsets and times of a log increase evenly enough that a bucket holds one or two keys. A bucket with many
//! keys, after a jump, is bisected, so the worst case is a plain binary search. A look-up touches one cache
//! line here and one of the keys. In a bucket with few keys all are compared: this leaves no branch that
//! random targets would mispredict, so look-ups in a loop overlap.

use crate::types::distance;

/// The index of the first key of each bucket.
#[derive(Debug)]
pub(crate) struct Buckets {
    first: i64,
    shift: u32,
    /// For each bucket, the index of the first key at or above its start; at the end the number of keys.
    starts: Vec<u32>,
}

impl Buckets {
    /// Takes sorted keys, which may repeat; `None` if there are more than a `u32` counts.
    pub(crate) fn new(
        keys: impl ExactSizeIterator<Item = i64> + DoubleEndedIterator + Clone,
    ) -> Option<Self> {
        let count = u32::try_from(keys.len()).ok()?;
        let first = keys.clone().next().unwrap_or(0);
        let span = distance(first, keys.clone().next_back().unwrap_or(0));
        let mut shift = 0;
        while span >> shift > u64::from(count) {
            shift += 1;
        }
        let buckets = usize::try_from(span >> shift).ok()? + 1;
        let mut starts = Vec::with_capacity(buckets + 1);
        for (place, key) in (0..count).zip(keys) {
            let bucket = usize::try_from(distance(first, key) >> shift).ok()?;
            starts.resize(starts.len().max(bucket + 1), place);
        }
        starts.resize(buckets + 1, count);
        Some(Self { first, shift, starts })
    }

    /// The bucket of a target.
    #[inline]
    pub(crate) fn bucket(&self, target: i64) -> Bucket {
        if target <= self.first {
            return Bucket { low: 0, high: 0 };
        }
        let bucket = usize::try_from(distance(self.first, target) >> self.shift).unwrap_or(usize::MAX);
        match self.starts.get(bucket..bucket.saturating_add(2)) {
            Some(&[low, high]) => Bucket { low, high },
            _ => {
                self.starts.last().map_or(Bucket { low: 0, high: 0 }, |end| Bucket { low: *end, high: *end })
            }
        }
    }

    /// The index of the first key at or above `target`; the number of keys if there is none.
    #[inline]
    pub(crate) fn find(&self, target: i64, key: impl Fn(usize) -> i64) -> usize {
        self.bucket(target).find(target, key)
    }

    /// The maximum number of bytes per key.
    pub(crate) const BYTES_PER_KEY: usize = 8;
}

/// A range of indexes of keys, in which a search continues.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bucket {
    low: u32,
    high: u32,
}

impl Bucket {
    /// The first index.
    #[inline]
    pub(crate) fn first(self) -> usize {
        index_of(self.low)
    }

    /// The index of the first key at or above `target`, whose bucket this is. `key` returns the key at an
    /// index, and `i64::MAX` after the last one.
    #[inline]
    pub(crate) fn find(self, target: i64, key: impl Fn(usize) -> i64) -> usize {
        let (mut low, mut high) = (index_of(self.low), index_of(self.high));
        while high - low > Self::ALWAYS_COMPARED {
            let middle = low.midpoint(high);
            if key(middle) < target {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        // keys after the bucket are above the target
        low + (low..low + Self::ALWAYS_COMPARED).map(|place| usize::from(key(place) < target)).sum::<usize>()
    }

    /// The number of keys that are always compared.
    const ALWAYS_COMPARED: usize = 4;
}

/// Converts to an index; `usize` has at least 32 bits on every supported platform.
#[inline]
fn index_of(place: u32) -> usize {
    usize::try_from(place).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Buckets;

    fn assert_matches_binary_search(keys: &[i64], targets: impl IntoIterator<Item = i64>) {
        let buckets = Buckets::new(keys.iter().copied()).unwrap();
        assert!(size_of_val(&buckets.starts[..]) <= (keys.len() + 2) * Buckets::BYTES_PER_KEY);
        for target in targets {
            let expected = keys.partition_point(|key| *key < target);
            assert_eq!(
                buckets.find(target, |place| keys.get(place).copied().unwrap_or(i64::MAX)),
                expected,
                "{target} in {keys:?}"
            );
        }
    }

    #[test]
    fn no_keys_one_key_and_extreme_keys() {
        let ends = [i64::MIN, -1, 0, 1, i64::MAX];
        assert_matches_binary_search(&[], ends);
        assert_matches_binary_search(&[7], (5..9).chain(ends));
        assert_matches_binary_search(&[7, 7, 7], (5..9).chain(ends));
        assert_matches_binary_search(
            &ends,
            ends.iter().flat_map(|end| [end.saturating_sub(1), *end, end.saturating_add(1)]),
        );
    }

    proptest! {
        #[test]
        fn a_look_up_matches_a_binary_search(
            steps in proptest::collection::vec(prop_oneof![4 => 0i64..3, 2 => 0i64..100, 1 => 0i64..1 << 40], 0..200),
            targets in proptest::collection::vec(any::<proptest::sample::Index>(), 50),
        ) {
            let mut last = -5;
            let keys: Vec<i64> = steps.iter().map(|step| { last += step; last }).collect();
            let near = targets.iter().filter(|_| !keys.is_empty()).map(|target| keys[target.index(keys.len())]);
            assert_matches_binary_search(&keys, near.flat_map(|key| key - 2..key + 3));
        }
    }
}
