//! Every eighth key of an index, and the search in them: which eight slots contain the entry.
//!
//! ```text
//! knots     target ─► bucket ─► the first key of the bucket       buckets have equal width, 4 to 8 keys on average
//! window    16 keys from the one before it, all compared at once
//! ```
//!
//! Keys are stored as distances from the first key, in 31 bits if the last one allows it. A comparison is the
//! sign bit of a difference, so a number of comparisons is a sum without a branch: the compiler makes vector
//! instructions of it. Only a bucket of more keys than the window is bisected.

/// The keys that are compared at once; a multiple of four.
pub(super) const WINDOW: usize = 16;
/// There are as many buckets as keys divided by this, up to twice as many.
const KEYS_PER_BUCKET: u64 = 8;

/// A distance from the first key, less than half of what its type can represent.
pub(super) trait Distance: Copy + Ord {
    /// Above every distance of a target.
    const ABOVE: Self;

    /// A distance, which is at most [`Distance::ABOVE`].
    fn of(distance: u64) -> Self;

    /// The number of its bucket, of those that are 2^shift wide.
    fn bucket(self, shift: u32) -> usize;

    /// The part of its bucket that is before it, of `count`.
    fn part(self, shift: u32, count: u32) -> usize;

    /// How many of these sorted distances are at or below `target`.
    fn at_or_below(sorted: &[Self; WINDOW], target: Self) -> usize;
}

/// Implements [`Distance`] with the sign bit of differences.
macro_rules! distances {
    ($number:ty) => {
        impl Distance for $number {
            const ABOVE: Self = <$number>::MAX >> 1;

            #[inline]
            fn of(distance: u64) -> Self {
                Self::try_from(distance).unwrap_or(Self::ABOVE)
            }

            #[inline]
            fn bucket(self, shift: u32) -> usize {
                usize::try_from(self.wrapping_shr(shift)).unwrap_or(usize::MAX)
            }

            #[inline]
            fn part(self, shift: u32, count: u32) -> usize {
                let after = u64::from(self.wrapping_sub(self.wrapping_shr(shift).wrapping_shl(shift)));
                usize::try_from(after.wrapping_mul(u64::from(count)).wrapping_shr(shift)).unwrap_or(0)
            }

            #[inline]
            fn at_or_below(sorted: &[Self; WINDOW], target: Self) -> usize {
                let above = target.wrapping_add(1);
                // four sums, because vector instructions add four numbers
                let mut sums: [Self; 4] = [0; 4];
                for chunk in sorted.as_chunks::<4>().0 {
                    for (sum, distance) in sums.iter_mut().zip(chunk) {
                        *sum = sum.wrapping_add(distance.wrapping_sub(above) >> (Self::BITS - 1));
                    }
                }
                let sum = sums.into_iter().fold(0, Self::wrapping_add);
                usize::try_from(sum).unwrap_or(WINDOW)
            }
        }
    };
}

distances!(u32);
distances!(u64);

/// Sorted distances of keys; the first is 0.
#[derive(Debug)]
pub(super) struct SampledKeys<D> {
    /// A bucket is 2^shift wide.
    shift: u32,
    /// For each bucket, the number of the last key before it, and at the end that of the last key.
    knots: Box<[u32]>,
    /// The distances, and [`WINDOW`] more that are above every target.
    keys: Box<[D]>,
}

impl<D: Distance> SampledKeys<D> {
    /// `last`: the largest distance of a target, below [`Distance::ABOVE`].
    pub(super) fn new(distances: &[u64], last: u64) -> Self {
        const { assert!(WINDOW.is_multiple_of(4), "distances are compared four at a time") };
        let mut shift = 0;
        while last >> shift > 2 * distances.len() as u64 / KEYS_PER_BUCKET {
            shift += 1;
        }
        let bucket_of = |distance: u64| usize::try_from(distance >> shift).unwrap_or(usize::MAX);
        let mut knots = Vec::new();
        for (number, distance) in (0_u32..).zip(distances) {
            knots.resize(knots.len().max(bucket_of(*distance) + 1), number);
        }
        knots.resize(bucket_of(last) + 2, u32::try_from(distances.len()).unwrap_or(u32::MAX));
        for first in &mut knots {
            *first = first.saturating_sub(1);
        }
        let above = std::iter::repeat_n(D::ABOVE, WINDOW);
        let keys = distances.iter().map(|distance| D::of(*distance)).chain(above).collect();
        Self { shift, knots: knots.into(), keys }
    }

    /// The number of the last key at or below a target, by the target's distance from the first key. `guess`
    /// is called before the keys are read, with a number that is mostly this one or the one before it.
    #[inline]
    pub(super) fn last_at_or_below(&self, distance: u64, guess: impl FnOnce(usize)) -> usize {
        // always `Some`: a distance is at most the last one
        self.find(distance, guess).unwrap_or(0)
    }

    #[inline]
    fn find(&self, distance: u64, guess: impl FnOnce(usize)) -> Option<usize> {
        let target = D::of(distance);
        let (window, before, guessed) = self.window(target)?;
        guess(guessed);
        let mut count = D::at_or_below(window, target);
        if count == WINDOW {
            let last = *self.knots.get(target.bucket(self.shift).wrapping_add(1))?;
            count = self.keys.get(before..=last as usize)?.partition_point(|key| *key <= target);
        }
        Some(before.wrapping_add(count).saturating_sub(1))
    }

    /// The window for a target, the number of its first key, and a number that is mostly that of the last key
    /// at or below the target, or the one before it.
    #[inline]
    pub(super) fn window(&self, target: D) -> Option<(&[D; WINDOW], usize, usize)> {
        let bucket = target.bucket(self.shift);
        let [knot, next] = *self.knots.get(bucket..bucket.wrapping_add(2))?.first_chunk()?;
        let before = knot as usize;
        let window = self.keys.get(before..before.wrapping_add(WINDOW))?.first_chunk()?;
        // as if the keys of the bucket were even
        let passed = target.part(self.shift, next.wrapping_sub(knot));
        Some((window, before, before.wrapping_add(passed)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::types::fixed_seed;

    fn assert_counts<D: Distance>(numbers: &[u64]) {
        let distances: Vec<D> = numbers.iter().map(|number| D::of(*number)).collect();
        for target in &distances {
            let naive = |sorted: &[D]| sorted.iter().filter(|distance| *distance <= target).count();
            let all = distances.first_chunk().unwrap();
            assert_eq!(D::at_or_below(all, *target), naive(all));
        }
    }

    /// Finds targets around each distance, and up to the last.
    fn assert_finds_all<D: Distance>(distances: &[u64], last: u64) {
        let keys = SampledKeys::<D>::new(distances, last);
        let around =
            distances.iter().flat_map(|distance| [distance.saturating_sub(1), *distance, distance + 1]);
        for target in around.chain([last]).filter(|target| *target <= last) {
            let naive = distances.partition_point(|distance| *distance <= target) - 1;
            assert_eq!(keys.last_at_or_below(target, |_| ()), naive, "{target} of {distances:?}");
        }
    }

    #[test]
    fn buckets_of_about_as_many_keys_as_the_window_are_searched_to_their_ends() {
        for crowded in 1..40_u64 {
            let distances: Vec<u64> = (0..crowded).chain((1..100).map(|n| n * 1_000_000)).collect();
            for last in [99_000_000, 120_000_000, u64::from(u32::ABOVE) - 1] {
                assert_finds_all::<u32>(&distances, last);
            }
            assert_finds_all::<u64>(&distances, u64::ABOVE - 1);
        }
    }

    proptest! {
        #![proptest_config(fixed_seed(300))]

        #[test]
        fn keys_are_found_as_by_bisection(
            steps in proptest::collection::vec(prop_oneof![4 => 1_u64..5, 2 => 1_u64..1000, 1 => 1_u64..1 << 22], 0..300),
            after in 0_u64..1000,
        ) {
            let sums = steps.iter().scan(0, |sum, step| { *sum += step; Some(*sum) });
            let distances: Vec<u64> = std::iter::once(0).chain(sums).collect();
            let last = distances.last().unwrap() + after;
            assert_finds_all::<u32>(&distances, last);
            assert_finds_all::<u64>(&distances, last);
        }

        #[test]
        fn the_sums_of_sign_bits_are_the_number_of_distances_at_or_below(
            numbers in proptest::collection::vec(
                prop_oneof![0_u64..20, any::<u64>(), Just(u64::from(u32::ABOVE)), Just(u64::from(u32::ABOVE) - 1), Just(u64::ABOVE)],
                WINDOW,
            ),
        ) {
            let mut numbers: Vec<u64> = numbers.into_iter().map(|number| number.min(u64::ABOVE)).collect();
            numbers.sort_unstable();
            assert_counts::<u32>(&numbers);
            assert_counts::<u64>(&numbers);
        }
    }
}
