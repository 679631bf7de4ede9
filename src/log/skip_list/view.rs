//! A view: a snapshot of the list.

use std::fmt;
use std::iter::FusedIterator;

use super::generation::Generation;
use crate::loom_shim::{Arc, KEYS};

/// The list as it was when the view was created. Later writes do not change it.
///
/// *Cost*: creating or cloning one increments the reference counts of a generation and of the last value.
/// *Concurrency*: shared by any number of threads; nothing in it is ever written. It keeps its generation
/// alive, and so every value in it: drop it soon if values own files.
#[derive(Clone)]
pub struct View<V, const N: usize = KEYS> {
    generation: Arc<Generation<V, N>>,
    tail: usize,
    /// The entry below the tail. Most look-ups end here, without reading the generation's cache lines.
    active: Option<(i64, V)>,
}

impl<V: Clone, const N: usize> View<V, N> {
    /// The entries that `tail`, loaded from `generation`, publishes.
    pub(super) fn new(generation: Arc<Generation<V, N>>, tail: usize) -> Self {
        let active = active(&generation, tail);
        Self { generation, tail, active }
    }

    /// True if the view has this generation and tail.
    #[inline]
    pub(super) fn is_of(&self, generation: &Arc<Generation<V, N>>, tail: usize) -> bool {
        // compared by pointer: while the view holds its generation, no other one can have its address
        self.tail == tail && Arc::ptr_eq(&self.generation, generation)
    }

    /// Sets the generation and the tail.
    #[cold]
    pub(super) fn renew(&mut self, generation: &Arc<Generation<V, N>>, tail: usize) {
        self.active = active(generation, tail);
        self.tail = tail;
        if !Arc::ptr_eq(&self.generation, generation) {
            self.generation = Arc::clone(generation);
        }
    }
}

/// The entry below the tail.
fn active<V: Clone, const N: usize>(generation: &Generation<V, N>, tail: usize) -> Option<(i64, V)> {
    let address = tail.checked_sub(1)?;
    Some((generation.key(address), generation.value(address)?.clone()))
}

impl<V, const N: usize> View<V, N> {
    /// The value with the greatest key at or below `key`; `None` if all are above.
    ///
    /// *Source*: `LogSegments.floorSegment`.
    #[inline]
    pub fn floor(&self, key: i64) -> Option<&V> {
        let (base, value) = self.active.as_ref()?;
        if key >= *base {
            return Some(value);
        }
        self.generation.value(self.generation.floor(key, self.tail)?)
    }

    /// The value with the smallest key above `key`; `None` if there is none.
    ///
    /// *Source*: `LogSegments.higherSegment`.
    #[inline]
    pub fn higher(&self, key: i64) -> Option<&V> {
        let (base, _) = self.active.as_ref()?;
        if key >= *base {
            return None;
        }
        let next =
            self.generation.floor(key, self.tail).map_or(0, |floor| self.generation.next(floor, self.tail));
        self.generation.value(next)
    }

    /// The values with keys in `[floor of start, end)`, in order: the segments that may have offsets in
    /// `[start, end)`.
    ///
    /// If `start` has no floor, all with keys below `end`. Empty if `end` is not above `start` (if it is
    /// below, Kafka throws; here the caller checks that).
    ///
    /// *Source*: `LogSegments.values`.
    pub fn between(&self, start: i64, end: i64) -> Iter<'_, V, N> {
        let below_end = if start < end { self.rank_of_floor(end - 1).map_or(0, |rank| rank + 1) } else { 0 };
        let first = self.rank_of_floor(start).unwrap_or(0).min(below_end);
        self.range(first, below_end)
    }

    /// The value with the smallest key.
    pub fn first(&self) -> Option<&V> {
        if self.is_empty() { None } else { self.generation.value(0) }
    }

    /// The value with the greatest key: the active segment.
    pub fn last(&self) -> Option<&V> {
        self.active.as_ref().map(|(_, value)| value)
    }

    /// The value with `index` keys below its own.
    ///
    /// *Cost*: a binary search over the nodes.
    pub fn get(&self, index: usize) -> Option<&V> {
        if index >= self.len() {
            return None;
        }
        self.generation.value(self.generation.select(index, self.tail)?)
    }

    /// All values, in order of their keys.
    pub fn iter(&self) -> Iter<'_, V, N> {
        self.range(0, self.len())
    }

    /// The values from the one with `index` keys below its own, in order of their keys.
    pub fn iter_from(&self, index: usize) -> Iter<'_, V, N> {
        self.range(index.min(self.len()), self.len())
    }

    /// The number of keys.
    pub fn len(&self) -> usize {
        self.generation.len(self.tail)
    }

    /// True if there is no key.
    pub fn is_empty(&self) -> bool {
        self.tail == 0
    }

    /// The number of keys below the floor of `key`; `None` if all keys are above it.
    pub fn rank_of_floor(&self, key: i64) -> Option<usize> {
        let (base, _) = self.active.as_ref()?;
        let address = if key >= *base { self.tail - 1 } else { self.generation.floor(key, self.tail)? };
        Some(self.generation.rank(address))
    }

    /// The entries from rank `first` to rank `end` (exclusive).
    fn range(&self, first: usize, end: usize) -> Iter<'_, V, N> {
        let address = if first < end { self.generation.select(first, self.tail).unwrap_or(0) } else { 0 };
        Iter { view: self, address, left: end - first }
    }
}

impl<V: fmt::Debug, const N: usize> fmt::Debug for View<V, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self).finish()
    }
}

impl<'a, V, const N: usize> IntoIterator for &'a View<V, N> {
    type Item = &'a V;
    type IntoIter = Iter<'a, V, N>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// Values of a [`View`] in order of their keys.
pub struct Iter<'a, V, const N: usize = KEYS> {
    view: &'a View<V, N>,
    /// The address of the next value, if one is left.
    address: usize,
    left: usize,
}

impl<'a, V, const N: usize> Iterator for Iter<'a, V, N> {
    type Item = &'a V;

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let value = self.view.generation.value(self.address);
        self.address = self.view.generation.next(self.address, self.view.tail);
        value
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl<V, const N: usize> ExactSizeIterator for Iter<'_, V, N> {}
impl<V, const N: usize> FusedIterator for Iter<'_, V, N> {}
