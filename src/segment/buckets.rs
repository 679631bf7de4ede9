//! A search in sorted keys that mostly needs no search: the keys' span is cut into buckets of equal width, about as many
//! as there are keys, and each bucket knows where its keys start.
//!
//! Offsets and times of a log rise evenly enough for a bucket to hold one or two keys; where they leap, the bucket that
//! holds many is bisected, so nothing is worse than a plain binary search. A look-up touches one line here and one of the
//! keys. Of a bucket with few keys all are compared, needed or not: then there is no branch that random targets would
//! mislead, and look-ups in a loop overlap.

/// Where the keys of a sorted list start, by buckets of equal width.
#[derive(Debug)]
pub(crate) struct Buckets {
    first: i64,
    shift: u32,
    /// Of each bucket, the first key at or above its start; at the end how many keys there are.
    starts: Vec<u32>,
}

impl Buckets {
    /// Of keys that rise or stay; `None` where they are more than a `u32` counts.
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

    /// The bucket that a target falls into.
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

    /// The first of the keys that is at or above `target`; their number where none is.
    #[inline]
    pub(crate) fn find(&self, target: i64, key: impl Fn(usize) -> i64) -> usize {
        self.bucket(target).find(target, key)
    }

    /// How much memory a key takes here, in bytes, at most.
    pub(crate) const BYTES_PER_KEY: usize = 8;
}

/// Places of keys among which a search goes on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bucket {
    low: u32,
    high: u32,
}

impl Bucket {
    /// The first place.
    #[inline]
    pub(crate) fn first(self) -> usize {
        index_of(self.low)
    }

    /// The first key at or above the `target` whose bucket it is. `key` gives keys by their places, and behind the last one
    /// `i64::MAX`.
    #[inline]
    pub(crate) fn find(self, target: i64, key: impl Fn(usize) -> i64) -> usize {
        let (mut low, mut high) = (index_of(self.low), index_of(self.high));
        while high - low > Self::FEW {
            let middle = low.midpoint(high);
            if key(middle) < target {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        // those behind the bucket lie above the target
        low + (low..low + Self::FEW).map(|place| usize::from(key(place) < target)).sum::<usize>()
    }

    /// How many keys are compared without a look at how many there are.
    const FEW: usize = 4;
}

/// A place as an index; no platform that this runs on has a smaller `usize`.
#[inline]
fn index_of(place: u32) -> usize {
    usize::try_from(place).unwrap_or(usize::MAX)
}

/// How far `to` lies above `from`.
#[inline]
fn distance(from: i64, to: i64) -> u64 {
    to.wrapping_sub(from).cast_unsigned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Buckets;

    fn same(keys: &[i64], targets: impl IntoIterator<Item = i64>) {
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
    fn no_keys_one_key_and_the_ends_of_the_numbers() {
        let ends = [i64::MIN, -1, 0, 1, i64::MAX];
        same(&[], ends);
        same(&[7], (5..9).chain(ends));
        same(&[7, 7, 7], (5..9).chain(ends));
        same(&ends, ends.iter().flat_map(|end| [end.saturating_sub(1), *end, end.saturating_add(1)]));
    }

    proptest! {
        #[test]
        fn the_answers_are_those_of_a_plain_search(
            steps in proptest::collection::vec(prop_oneof![4 => 0i64..3, 2 => 0i64..100, 1 => 0i64..1 << 40], 0..200),
            targets in proptest::collection::vec(any::<proptest::sample::Index>(), 50),
        ) {
            let mut last = -5;
            let keys: Vec<i64> = steps.iter().map(|step| { last += step; last }).collect();
            let near = targets.iter().filter(|_| !keys.is_empty()).map(|target| keys[target.index(keys.len())]);
            same(&keys, near.flat_map(|key| key - 2..key + 3));
        }
    }
}
