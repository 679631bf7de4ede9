//! A reader: a view that follows the writer.

use super::generation::Generation;
use super::view::View;
use crate::loom_shim::{Cached, KEYS};

/// Looks up keys in the current list. One per thread: it takes `&mut self` because it caches the last view.
///
/// *Cost*: if nothing changed since the last call, two loads and three comparisons more than a [`View`].
/// After a push each reader increments the reference count of the new active value once, and after a change
/// also that of the generation. A look-up changes no count, so readers do not slow each other down.
///
/// *Concurrency*: lock-free. Each call sees the whole of a change or nothing of it, and never less than an
/// earlier call of the same reader. An idle reader keeps its last view alive.
#[derive(Clone)]
pub struct Reader<V, const N: usize = KEYS> {
    current: Cached<Generation<V, N>>,
    seen: View<V, N>,
}

impl<V: Clone, const N: usize> Reader<V, N> {
    pub(super) fn new(mut current: Cached<Generation<V, N>>) -> Self {
        let generation = current.load().clone();
        let tail = generation.tail();
        Self { current, seen: View::new(generation, tail) }
    }

    /// [`View::floor`] of the current list.
    #[inline]
    pub fn floor(&mut self, key: i64) -> Option<&V> {
        self.see().floor(key)
    }

    /// [`View::higher`] of the current list.
    #[inline]
    pub fn higher(&mut self, key: i64) -> Option<&V> {
        self.see().higher(key)
    }

    /// The current list, for several look-ups that must be consistent.
    #[must_use]
    pub fn view(&mut self) -> View<V, N> {
        self.see().clone()
    }

    /// Updates the view if the list has changed.
    #[inline]
    fn see(&mut self) -> &View<V, N> {
        let generation = self.current.load();
        let tail = generation.tail();
        if !self.seen.is_of(generation, tail) {
            self.seen.renew(generation, tail);
        }
        &self.seen
    }
}
