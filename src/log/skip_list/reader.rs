//! A reader: a view that follows the writer.

use super::generation::Generation;
use super::view::View;
use crate::loom_shim::{Cached, KEYS};

/// Looks keys up in the list as it is now. One a thread: `&mut self`, because it remembers what it saw last.
///
/// *Cost*: where nothing changed since the last call, two loads and three compares above a [`View`]'s. A push costs each
/// reader one count of the new active value, once; a change one of the generation besides. Nothing is counted per look-up,
/// so readers do not slow each other.
///
/// *Concurrency*: lock-free. Each call sees the whole of a change or nothing of it, and never less than an earlier call
/// of the same reader. An idle reader keeps what it saw last alive, as a view does.
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

    /// [`View::floor`] of the list as it is now.
    #[inline]
    pub fn floor(&mut self, key: i64) -> Option<&V> {
        self.see().floor(key)
    }

    /// [`View::higher`] of the list as it is now.
    #[inline]
    pub fn higher(&mut self, key: i64) -> Option<&V> {
        self.see().higher(key)
    }

    /// The list as it is now, for answers that must agree with each other.
    #[must_use]
    pub fn view(&mut self) -> View<V, N> {
        self.see().clone()
    }

    /// Looks whether the list moved.
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
