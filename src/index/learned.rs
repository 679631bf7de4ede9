//! The search that computes where a key must be: [`Method::Learned`](super::Method::Learned).
//!
//! A binary search reads 17 slots of an index of 1 GiB of log, and each of them is a branch that a random target
//! mispredicts, and on a cold file a page. Keys of a log increase evenly enough to compute the place instead:
//!
//! ```text
//! knots     target ─► bucket ─► a few blocks, compared at once   of equal width in keys
//! lines     the first key of each block, and slots per key       a block has the bytes of a page
//! window    32 slots around the place on that line               both ends are compared with the target
//! block     bisected, if the window does not contain it          so any content costs one block
//! ```
//!
//! A block of 512 offset entries is one page. One of 341 time entries has 4,092 bytes, which can be on two pages.
//!
//! The newest entries, in the warm section, have shorter lines, so that the window nearly always contains the entry: most
//! look-ups are there, and its pages are in memory.
//!
//! A place on a line is only a guess. It is used after the keys around it were compared with the target, so the contents
//! may be anything that increases. A file whose keys do not increase has no model: see [`ModelBuilder::push`].
//!
//! Reading all keys costs more than a few look-ups save. So the first look-ups interpolate: see the module
//! `interpolation`.

use std::hint::select_unpredictable;
use std::iter::repeat_n;

use crate::types::distance;

/// The slots around a guess that are searched first: 256 bytes of an offset index.
pub(super) const WINDOW: u64 = 32;
/// The blocks of a bucket that are compared at once.
const NEAR: usize = 4;
/// The slots of a line of the warm section.
const WARM_LINE: u64 = 128;
/// The lines of the warm section: 1,024 slots of an offset index have eight, 682 of a time index six.
const WARM_LINES: usize = 8;
/// An index with more entries has no model, because no interrupt ends the pass over its keys. Kafka's own have 1.3 million
/// at most by default.
const MAX_ENTRIES: u64 = 8 << 20;

/// A line through keys: the key at its start, and slots per key times 2⁶⁴.
#[derive(Debug, Clone, Copy)]
struct Line {
    key: i64,
    slots_per_key: u64,
}

impl Line {
    /// The line from a key to another one that is `slots` after it.
    fn new(key: i64, end_key: i64, slots: u64) -> Self {
        let slope = (u128::from(slots) << 64) / u128::from(distance(key, end_key).max(1));
        Self { key, slots_per_key: u64::try_from(slope).unwrap_or(u64::MAX) }
    }

    /// The slots from the start of the line to a target, which is at or above its key.
    #[inline]
    fn slots_to(self, target: i64) -> u64 {
        let product = u128::from(distance(self.key, target)) * u128::from(self.slots_per_key);
        u64::try_from(product >> 64).unwrap_or(u64::MAX)
    }
}

/// A line above every target.
const ABOVE: Line = Line { key: i64::MAX, slots_per_key: 0 };

/// Lines of `length` slots from their first keys; the last one ends at the last key, `slots` after the first one's start.
fn lines(first_keys: &[i64], length: u64, last_key: i64, slots: u64) -> impl Iterator<Item = Line> {
    let ends = first_keys.iter().skip(1).map(move |key| (*key, length));
    let ends = ends.chain(std::iter::once((last_key, slots % length)));
    first_keys.iter().zip(ends).map(|(first, (end, slots))| Line::new(*first, end, slots))
}

/// What is known about the keys of an index. Built once, and never changed.
#[derive(Debug)]
pub(super) struct Model {
    entries: u64,
    last_key: i64,
    /// The lines of the warm section, which starts at slot `warm_slot`. Those after the last one are above every target.
    warm: [Line; WARM_LINES],
    warm_slot: u64,
    /// Slots of a block.
    block: u64,
    /// One for each block, from its first key to the first key of the next. Some more that are above every target follow.
    lines: Box<[Line]>,
    /// A bucket is 2^shift keys wide.
    shift: u32,
    /// For each bucket, the number of blocks that begin before it; at the end the number of all.
    knots: Box<[u32]>,
}

/// The sizes in slots on which a model of an index depends.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sizes {
    /// The slots of a page.
    pub block: u64,
    /// The slots of the warm section, without the last one.
    pub warm: u64,
}

/// Makes a [`Model`] from all keys, which are added in order.
#[derive(Debug)]
pub(super) struct ModelBuilder {
    entries: u64,
    sizes: Sizes,
    /// The number of keys that were added.
    added: u64,
    last_key: i64,
    /// The first key of each line of the warm section.
    warm_keys: Vec<i64>,
    /// The first key of each block.
    first_keys: Vec<i64>,
}

impl ModelBuilder {
    /// `None` if there are no entries, or too many.
    pub(super) fn new(entries: u64, sizes: Sizes) -> Option<Self> {
        let is_possible = (1..=MAX_ENTRIES).contains(&entries);
        is_possible.then(|| Self {
            entries,
            sizes,
            added: 0,
            last_key: 0,
            warm_keys: Vec::new(),
            first_keys: Vec::new(),
        })
    }

    fn warm_slot(&self) -> u64 {
        (self.entries - 1).saturating_sub(self.sizes.warm)
    }

    /// Adds the next key. False if it is not above the one before: then there is no model, because no other search finds what
    /// Kafka's finds.
    #[inline]
    pub(super) fn push(&mut self, key: i64) -> bool {
        if self.added > 0 && key <= self.last_key {
            return false;
        }
        if self.added.is_multiple_of(self.sizes.block) {
            self.first_keys.push(key);
        }
        let warm = self.added.checked_sub(self.warm_slot());
        if warm.is_some_and(|slot| slot.is_multiple_of(WARM_LINE)) {
            self.warm_keys.push(key);
        }
        self.last_key = key;
        self.added += 1;
        true
    }

    /// The model; `None` if a key is missing or was refused.
    pub(super) fn finish(self) -> Option<Model> {
        if self.added != self.entries {
            return None;
        }
        let warm_slot = self.warm_slot();
        let Self { entries, sizes, last_key, warm_keys, first_keys, .. } = self;
        let last = entries - 1;
        let mut warm = [ABOVE; WARM_LINES];
        for (place, line) in warm.iter_mut().zip(lines(&warm_keys, WARM_LINE, last_key, last - warm_slot)) {
            *place = line;
        }
        let lines = lines(&first_keys, sizes.block, last_key, last);
        let (shift, knots) = knots(&first_keys, last_key);
        Some(Model {
            entries,
            last_key,
            warm,
            warm_slot,
            block: sizes.block,
            lines: lines.chain(repeat_n(ABOVE, NEAR)).collect(),
            shift,
            knots,
        })
    }
}

impl Model {
    /// The largest slot whose key is at or below `target`; `None` if there is none.
    #[inline]
    pub(super) fn lower_bound<E>(
        &self,
        target: i64,
        key: impl Fn(u64) -> Result<i64, E>,
    ) -> Result<Option<u64>, E> {
        let last = self.entries.wrapping_sub(1);
        if target >= self.last_key {
            return Ok(Some(last));
        }
        let [first, ..] = &self.warm;
        let (line, low, high) = if target >= first.key {
            let (number, line) = self.warm_line(target);
            let start = self.warm_slot.wrapping_add(number.wrapping_mul(WARM_LINE));
            (line, start, start.wrapping_add(WARM_LINE).min(last))
        } else {
            let Some((block, line)) = self.block_of(target) else { return Ok(None) };
            let start = block.wrapping_mul(self.block);
            (line, start, start.wrapping_add(self.block).min(last))
        };
        // a single call, so that it is inlined with the closure
        find(low.wrapping_add(line.slots_to(target)), low, high, target, key).map(Some)
    }

    /// The last line of the warm section whose key is at or below `target`, which is below the last key.
    #[inline]
    fn warm_line(&self, target: i64) -> (u64, Line) {
        // a branch for each would be mispredicted
        let before = self.warm.iter().skip(1).map(|line| u64::from(line.key <= target)).sum::<u64>();
        let line = usize::try_from(before).ok().and_then(|before| self.warm.get(before));
        (before, line.copied().unwrap_or(ABOVE))
    }

    /// The last block whose first key is at or below `target`, which is below the last key; `None` if there is none.
    #[inline]
    fn block_of(&self, target: i64) -> Option<(u64, Line)> {
        let first_key = self.lines.first()?.key;
        if target < first_key {
            return None;
        }
        let bucket = usize::try_from(distance(first_key, target).wrapping_shr(self.shift)).ok()?;
        let &[low, high] = self.knots.get(bucket..)?.first_chunk()?;
        let mut block = usize::try_from(low).ok()?.saturating_sub(1);
        let near: &[Line; NEAR] = self.lines.get(block..)?.first_chunk()?;
        // nearly always enough; a branch for each would be mispredicted
        let before = near.iter().skip(1).map(|line| usize::from(line.key <= target)).sum::<usize>();
        let mut line = *near.get(before)?;
        block += before;
        if before == NEAR - 1 {
            let high = usize::try_from(high).ok()?;
            let later = self.lines.get(block..high)?;
            block += later.partition_point(|line| line.key <= target).saturating_sub(1);
            line = *self.lines.get(block)?;
        }
        Some((u64::try_from(block).ok()?, line))
    }
}

/// Buckets of equal width, about twice as many as there are blocks; see [`Model`].
fn knots(first_keys: &[i64], last_key: i64) -> (u32, Box<[u32]>) {
    let first_key = first_keys.first().copied().unwrap_or(last_key);
    let span = distance(first_key, last_key);
    let mut shift = 0;
    while span >> shift >= 2 * first_keys.len() as u64 {
        shift += 1;
    }
    let mut knots = Vec::new();
    for (block, key) in (0_u32..).zip(first_keys) {
        let bucket = usize::try_from(distance(first_key, *key) >> shift).unwrap_or(0);
        knots.resize(knots.len().max(bucket + 1), block);
    }
    let buckets = usize::try_from(span >> shift).unwrap_or(0) + 1;
    knots.resize(buckets + 1, u32::try_from(first_keys.len()).unwrap_or(u32::MAX));
    (shift, knots.into())
}

/// The largest slot of `[low, high)` whose key is at or below `target`. That of `low` is; that of `high` is above it.
#[inline]
fn find<E>(
    guess: u64,
    low: u64,
    high: u64,
    target: i64,
    key: impl Fn(u64) -> Result<i64, E>,
) -> Result<u64, E> {
    if high.wrapping_sub(low) < WINDOW {
        return halve(low, high.wrapping_sub(low), target, key);
    }
    let start = guess.saturating_sub(WINDOW / 2).max(low).min(high.wrapping_sub(WINDOW));
    // four reads that do not wait for each other, so that their cache misses overlap
    let (first, second, third) =
        (key(start.wrapping_add(8))?, key(start.wrapping_add(16))?, key(start.wrapping_add(24))?);
    let eighths = u64::from(first <= target) + u64::from(second <= target) + u64::from(third <= target);
    let slot = halve(start.wrapping_add(8 * eighths), 8, target, &key)?;
    let end = start.wrapping_add(WINDOW);
    if slot == start && start != low && key(start)? > target {
        return halve(low, start.wrapping_sub(low), target, key);
    }
    if slot.wrapping_add(1) == end && end != high && key(end)? <= target {
        return halve(end, high.wrapping_sub(end), target, key);
    }
    Ok(slot)
}

/// The largest of `length` slots from `low` on whose key is at or below `target`; `low` if there is none. The number of
/// steps does not depend on the keys, and no branch does.
#[inline]
fn halve<E>(
    mut low: u64,
    mut length: u64,
    target: i64,
    key: impl Fn(u64) -> Result<i64, E>,
) -> Result<u64, E> {
    while length > 1 {
        let half = length / 2;
        let middle = low.wrapping_add(half);
        low = select_unpredictable(key(middle)? <= target, middle, low);
        length = length.wrapping_sub(half);
    }
    Ok(low)
}

#[cfg(test)]
pub(super) mod tests {
    use std::cell::RefCell;
    use std::collections::BTreeSet;
    use std::convert::Infallible;

    use proptest::prelude::*;

    use super::*;

    /// Contents of an index of 8-byte and of 12-byte entries.
    pub(in crate::index) const SIZES: [Sizes; 2] =
        [Sizes { block: 512, warm: 1024 }, Sizes { block: 341, warm: 682 }];
    /// Slots per page, rounded: which pages a search reads.
    const PAGE: u64 = 512;

    pub(in crate::index) fn place(slot: u64) -> usize {
        usize::try_from(slot).unwrap()
    }

    pub(in crate::index) fn model_of(keys: &[i64], sizes: Sizes) -> Option<Model> {
        let mut builder = ModelBuilder::new(keys.len() as u64, sizes)?;
        keys.iter().all(|key| builder.push(*key)).then(|| builder.finish())?
    }

    pub(in crate::index) fn naive(keys: &[i64], target: i64) -> Option<u64> {
        keys.partition_point(|key| *key <= target).checked_sub(1).map(|slot| slot as u64)
    }

    /// Keys of the kinds on which other searches fail: even, drifting, with gaps, in bursts, geometric, and one far jump.
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

    fn assert_finds_all(keys: &[i64], kind: &str) {
        let entries = keys.len() as u64;
        for sizes in SIZES {
            let read = |slot: u64| Ok::<_, Infallible>(keys[place(slot)]);
            let model = model_of(keys, sizes);
            assert_eq!(model.is_some(), entries > 0);
            let Some(model) = model else { continue };
            for target in targets_of(keys) {
                let pages = RefCell::new(BTreeSet::new());
                let traced = |slot: u64| {
                    pages.borrow_mut().insert(slot / PAGE);
                    read(slot)
                };
                assert_eq!(model.lower_bound(target, traced), Ok(naive(keys, target)), "{kind}: {target}");
                let limit = if sizes.block == PAGE && target < model.warm[0].key { 1 } else { 3 };
                assert!(pages.borrow().len() <= limit, "{kind}: {target} reads {pages:?}");
            }
        }
    }

    pub(in crate::index) fn targets_of(keys: &[i64]) -> Vec<i64> {
        let near = keys.iter().step_by(1 + keys.len() / 2000).flat_map(|key| [key - 1, *key, key + 1]);
        near.chain([i64::MIN, -1, 0, i64::MAX]).collect()
    }

    #[test]
    fn any_increasing_keys_are_found_on_one_page_outside_the_warm_section() {
        for (kind, keys) in contents() {
            for count in [1, 2, 31, 32, 33, 341, 342, 512, 513, 682, 1024, 1025, 1026, 2047, keys.len()] {
                assert_finds_all(&keys[..count], kind);
            }
        }
    }

    #[test]
    fn keys_that_do_not_increase_have_no_model() {
        for keys in [vec![5, 5], vec![5, 4], (0..2000).chain([7]).collect::<Vec<_>>()] {
            assert!(model_of(&keys, SIZES[0]).is_none());
        }
        assert!(ModelBuilder::new(MAX_ENTRIES + 1, SIZES[0]).is_none());
    }

    #[test]
    fn there_is_no_model_without_all_keys() {
        let mut builder = ModelBuilder::new(3, SIZES[0]).unwrap();
        assert!(builder.push(5) && builder.push(7));
        assert!(builder.finish().is_none());
    }

    #[test]
    fn a_search_of_keys_that_changed_since_ends_within_the_entries() {
        let keys: Vec<i64> = (0..5000).map(|n| n * 3).collect();
        let model = model_of(&keys, SIZES[0]).unwrap();
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
