//! The search that knows every eighth key: [`Method::Learned`](super::Method::Learned).
//!
//! A binary search reads 17 slots of an index of 1 GiB of log, and each of them is a branch that a random
//! target mispredicts, and on a cold file a page. A [`Model`] has every eighth key in memory, about 7 % of
//! the file's size. It finds the eight slots that contain the entry without reading the file, and four of
//! their keys are compared without a branch that depends on them. The eight slots are on one page, so any
//! content costs one page. An entry of a time index can be on two pages, and so can the last eight entries.
//!
//! An index that is larger than the caches of the processor costs a cache miss for the keys in memory, and
//! another one for the slots. So the slots are loaded before the keys are read, from the place that they
//! would have if the keys were even.
//!
//! If keys increased evenly, their places could be computed, with less memory. Batches of a real log vary in
//! size, so a computed place is often wrong by more than a line of a cache, and a wrong place costs more than
//! the keys in memory.
//!
//! A file whose keys do not increase has no model: see [`ModelBuilder::push`].
//!
//! Reading all keys costs more than a few look-ups save. So the first look-ups interpolate: see the module
//! `interpolation`.

use std::hint::select_unpredictable;

use super::sampled_keys::{Distance, SampledKeys};
use super::vector_search::Avx512;
use crate::types::distance;

/// The slots from one of the keys in memory to the next: 64 bytes of an offset index, which is one line of a
/// cache.
pub(super) const GROUP: usize = 8;
/// An index with more entries has no model, because no interrupt ends the pass over its keys. Kafka's own
/// have 1.3 million at most by default.
const MAX_ENTRIES: u64 = 8 << 20;

/// What is known about the keys of an index. Built once, and never changed.
#[derive(Debug)]
pub(super) struct Model {
    /// [`GROUP`] or more.
    entries: u64,
    /// The number of groups without the last one, if that has fewer slots.
    whole_groups: usize,
    first_key: i64,
    last_key: i64,
    sampled: Sampled,
}

/// Every eighth key. Distances of 31 bits are compared twice as fast as others, and in half the memory.
#[derive(Debug)]
enum Sampled {
    Narrow(SampledKeys<u32>),
    /// As `Narrow`, where the processor has instructions that compare them.
    Vectors(Avx512, SampledKeys<u32>),
    Wide(SampledKeys<u64>),
}

/// Makes a [`Model`] from all keys, which are added in order.
#[derive(Debug)]
pub(super) struct ModelBuilder {
    entries: u64,
    /// The number of keys that were added.
    added: u64,
    first_key: i64,
    last_key: i64,
    /// Every eighth key, as its distance from the first.
    sampled: Vec<u64>,
}

impl ModelBuilder {
    /// `None` if there are too few entries, which any search finds as fast, or too many.
    pub(super) fn new(entries: u64) -> Option<Self> {
        let is_possible = (GROUP as u64..=MAX_ENTRIES).contains(&entries);
        is_possible.then(|| Self { entries, added: 0, first_key: 0, last_key: 0, sampled: Vec::new() })
    }

    /// Adds the next key. False if it is not above the one before: then there is no model, because no other
    /// search finds what Kafka's finds. False also if it is 2^63 - 1 or more above the first.
    #[inline]
    pub(super) fn push(&mut self, key: i64) -> bool {
        if self.added == 0 {
            self.first_key = key;
        } else if key <= self.last_key || distance(self.first_key, key) >= u64::ABOVE {
            return false;
        }
        if self.added.is_multiple_of(GROUP as u64) {
            self.sampled.push(distance(self.first_key, key));
        }
        self.last_key = key;
        self.added += 1;
        true
    }

    /// The model; `None` if a key is missing or was refused.
    pub(super) fn finish(self) -> Option<Model> {
        let Self { entries, added, first_key, last_key, sampled } = self;
        if added != entries {
            return None;
        }
        let last = distance(first_key, last_key);
        let sampled = if last < u64::from(u32::ABOVE) {
            let keys = SampledKeys::new(&sampled, last);
            match Avx512::detect() {
                Some(avx512) => Sampled::Vectors(avx512, keys),
                None => Sampled::Narrow(keys),
            }
        } else {
            Sampled::Wide(SampledKeys::new(&sampled, last))
        };
        let whole_groups = usize::try_from(entries).unwrap_or(0) / GROUP;
        Some(Model { entries, whole_groups, first_key, last_key, sampled })
    }
}

/// Where the entry for a target is.
#[derive(Debug, Clone, Copy)]
pub(super) enum Place {
    /// There is none.
    Before,
    /// The last slot.
    Last,
    /// One of [`GROUP`] slots; this is the first: see [`last_of_group`].
    Group(u64),
}

impl Model {
    /// Where the largest slot is whose key is at or below `target`. Reads nothing of the file. `guess` is
    /// called before the keys in memory are read, with the number of a group that is mostly the right one
    /// or the one before it.
    #[inline]
    pub(super) fn place(&self, target: i64, guess: impl FnOnce(usize)) -> Place {
        if target >= self.last_key {
            return Place::Last;
        }
        if target < self.first_key {
            return Place::Before;
        }
        let distance = distance(self.first_key, target);
        let sampled = match &self.sampled {
            Sampled::Narrow(keys) | Sampled::Vectors(_, keys) => keys.last_at_or_below(distance, guess),
            Sampled::Wide(keys) => keys.last_at_or_below(distance, guess),
        };
        // the slots of the last sampled key may be fewer, and the ones before them are at or below the target
        // too
        Place::Group((sampled as u64).wrapping_mul(GROUP as u64).min(self.entries.wrapping_sub(GROUP as u64)))
    }

    /// The largest slot of an offset index whose key is at or below `target`, by vector instructions; `None`
    /// if [`Model::place`] must find it. `slots`: the slots of the file.
    #[inline]
    pub(super) fn last_slot<'a>(
        &self,
        slots: &'a [[u8; 8]],
        base_offset: i64,
        target: i64,
    ) -> Option<&'a [u8; 8]> {
        let Sampled::Vectors(avx512, keys) = &self.sampled else { return None };
        if target < self.first_key || target >= self.last_key {
            return None;
        }
        // at most the distance of the last key, which has 31 bits; the mask shows the compiler that it fits
        let distance = u32::try_from(distance(self.first_key, target) & 0xFFFF_FFFF).ok()?;
        let groups = slots.as_chunks().0.get(..self.whole_groups)?;
        avx512.last_slot(keys, groups, distance, target.wrapping_sub(base_offset))
    }

    /// The largest slot whose key is at or below `target`; `None` if there is none.
    #[inline]
    pub(super) fn lower_bound<E>(
        &self,
        target: i64,
        key: impl Fn(u64) -> Result<i64, E>,
    ) -> Result<Option<u64>, E> {
        match self.place(target, |_| ()) {
            Place::Before => Ok(None),
            Place::Last => Ok(Some(self.entries.wrapping_sub(1))),
            Place::Group(start) => {
                let slot = last_of_group(target, |slot| key(start.wrapping_add(slot as u64)))?;
                Ok(Some(start.wrapping_add(slot as u64)))
            }
        }
    }
}

/// The last of [`GROUP`] slots whose key is at or below `target`; that of the first is. `key` is called with
/// numbers below [`GROUP`].
#[inline]
pub(super) fn last_of_group<E>(target: i64, key: impl Fn(usize) -> Result<i64, E>) -> Result<usize, E> {
    // three reads that do not wait for each other
    let (second, fourth, sixth) = (key(2)?, key(4)?, key(6)?);
    let pairs = usize::from(second <= target) + usize::from(fourth <= target) + usize::from(sixth <= target);
    let low = 2 * pairs;
    Ok(select_unpredictable(key(low + 1)? <= target, low + 1, low))
}

#[cfg(test)]
pub(super) mod tests {
    use std::cell::RefCell;
    use std::collections::BTreeSet;
    use std::convert::Infallible;

    use proptest::prelude::*;

    use super::*;

    pub(in crate::index) fn place(slot: u64) -> usize {
        usize::try_from(slot).unwrap()
    }

    pub(in crate::index) fn model_of(keys: &[i64]) -> Option<Model> {
        let mut builder = ModelBuilder::new(keys.len() as u64)?;
        keys.iter().all(|key| builder.push(*key)).then(|| builder.finish())?
    }

    pub(in crate::index) fn naive(keys: &[i64], target: i64) -> Option<u64> {
        keys.partition_point(|key| *key <= target).checked_sub(1).map(|slot| slot as u64)
    }

    /// Keys of the kinds on which other searches fail: even, drifting, with gaps, in bursts, geometric, and
    /// one far jump.
    pub(in crate::index) fn contents() -> Vec<(&'static str, Vec<i64>)> {
        let keys = |count: usize, step: &dyn Fn(i64) -> i64| {
            let mut key = 1_000;
            (0_i64..)
                .take(count)
                .map(|n| {
                    key += step(n).max(1);
                    key
                })
                .collect::<Vec<_>>()
        };
        let noise = |n: i64| n.wrapping_mul(0x5851_F42D_4C95_7F2D).rotate_left(23).rem_euclid(1000);
        let count = 20_000;
        vec![
            ("even", keys(count, &|n| 40 + noise(n) % 9)),
            ("drift", keys(count, &|n| 1 + n * n / 400_000 + noise(n) % 5)),
            ("gaps", keys(count, &|n| if noise(n) < 3 { 1 << (noise(n + 7) % 17) } else { 1 })),
            ("bursts", keys(count, &|n| if n % 1500 < 1400 { 1 } else { 3_000 })),
            ("geometric", keys(count, &|n| 1 << (n / 640).min(40))),
            ("last jump", keys(count, &|n| if n == 19_999 { 1 << 31 } else { 1 })),
            ("first jump", keys(count, &|n| if n == 1 { 1 << 31 } else { 1 })),
            ("adjacent", keys(count, &|_| 1)),
        ]
    }

    /// The numbers of the pages on which slots of this size are.
    fn pages(slots: &[u64], size: u64) -> BTreeSet<u64> {
        slots.iter().flat_map(|slot| [slot * size / 4096, (slot * size + size - 1) / 4096]).collect()
    }

    fn assert_finds_all(keys: &[i64], kind: &str) {
        let entries = keys.len() as u64;
        let model = model_of(keys);
        assert_eq!(model.is_some(), entries >= GROUP as u64);
        let Some(model) = model else { return };
        for target in targets_of(keys) {
            let read = RefCell::new(Vec::new());
            let traced = |slot: u64| {
                read.borrow_mut().push(slot);
                Ok::<_, Infallible>(keys[place(slot)])
            };
            let found = model.lower_bound(target, traced).unwrap();
            assert_eq!(found, naive(keys, target), "{kind}: {target}");
            let read = read.into_inner();
            let is_in_last = found.is_none_or(|slot| slot + GROUP as u64 >= entries);
            assert!(
                pages(&read, 8).len() <= if is_in_last { 2 } else { 1 },
                "{kind}: {target} reads {read:?}"
            );
            assert!(pages(&read, 12).len() <= 2, "{kind}: {target} reads {read:?}");
        }
    }

    pub(in crate::index) fn targets_of(keys: &[i64]) -> Vec<i64> {
        let near = keys.iter().step_by(1 + keys.len() / 2000).flat_map(|key| [key - 1, *key, key + 1]);
        near.chain([i64::MIN, -1, 0, i64::MAX]).collect()
    }

    #[test]
    fn any_increasing_keys_are_found_on_one_page() {
        for (kind, keys) in contents() {
            for count in
                [1, 2, 7, 8, 9, 15, 16, 17, 127, 128, 129, 342, 512, 513, 519, 1024, 1025, 2047, keys.len()]
            {
                assert_finds_all(&keys[..count], kind);
            }
        }
    }

    #[test]
    fn keys_that_do_not_increase_have_no_model() {
        let rising: Vec<i64> = (0..2000).collect();
        for unsorted in [[5, 5], [5, 4], [1999, 7]] {
            assert!(model_of(&[&rising, &unsorted[..]].concat()).is_none());
            assert!(model_of(&[&unsorted[..], &rising].concat()).is_none());
        }
        assert!(ModelBuilder::new(MAX_ENTRIES + 1).is_none());
    }

    #[test]
    fn keys_of_any_distance_that_63_bits_can_represent_have_a_model() {
        for (last, is_possible) in [
            (i64::from(i32::MAX) - 1, true),
            (i64::from(i32::MAX), true),
            (i64::MAX - 1, true),
            (i64::MAX, false),
        ] {
            let keys: Vec<i64> = (0..500).chain([last]).collect();
            assert_eq!(model_of(&keys).is_some(), is_possible);
            if is_possible {
                assert_finds_all(&keys, "far");
            }
        }
        let spread: Vec<i64> = [i64::MIN / 2, 0].into_iter().chain(i64::MAX - 5..=i64::MAX).collect();
        assert!(model_of(&spread).is_none());
    }

    #[test]
    fn there_is_no_model_without_all_keys() {
        let mut builder = ModelBuilder::new(8).unwrap();
        assert!(builder.push(5) && builder.push(7));
        assert!(builder.finish().is_none());
    }

    #[test]
    fn a_search_of_keys_that_changed_since_ends_within_the_entries() {
        let keys: Vec<i64> = (0..5000).map(|n| n * 3).collect();
        let model = model_of(&keys).unwrap();
        let changed = |slot: u64| Ok::<_, Infallible>(keys[place(slot)].wrapping_mul(0x5DEE_CE66_D123_4567));
        for target in targets_of(&keys) {
            let Ok(found) = model.lower_bound(target, changed);
            assert!(found.is_none_or(|slot| slot < 5000));
        }
    }

    proptest! {
        #[test]
        fn a_model_finds_what_a_bisection_finds(
            steps in proptest::collection::vec(
                prop_oneof![8 => 1_i64..4, 4 => 1_i64..500, 1 => 1_i64..1 << 40], 1..3000,
            ),
            first in any::<i32>(),
        ) {
            let keys: Vec<i64> = steps
                .into_iter()
                .scan(i64::from(first), |key, step| { *key += step; Some(*key) })
                .collect();
            assert_finds_all(&keys, "random");
        }
    }
}
