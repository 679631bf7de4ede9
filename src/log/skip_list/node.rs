//! A node: a row of keys and their values, each written once.

use super::key_row::KeyRow;
use crate::loom_shim::OnceLock;

/// `N` keys and their values. Every published key has its value.
pub(super) struct Node<V, const N: usize> {
    pub(super) keys: KeyRow<N>,
    slots: [OnceLock<V>; N],
}

impl<V, const N: usize> Node<V, N> {
    pub(super) fn new() -> Self {
        Self { keys: KeyRow::new(), slots: core::array::from_fn(|_| OnceLock::new()) }
    }

    /// Writes an entry at `index`, which must be the first unwritten one, without publishing it.
    pub(super) fn write(&self, index: usize, key: i64, value: V) {
        self.keys.set(index, key);
        let is_fresh = self.slots.get(index).is_some_and(|slot| slot.set(value).is_ok());
        debug_assert!(is_fresh, "slot {index} was written before");
    }

    /// The value at `index`; `None` if nothing is written there.
    #[inline]
    pub(super) fn value(&self, index: usize) -> Option<&V> {
        self.slots.get(index)?.get()
    }

    // The following methods are for the writer only: a reader may see fewer keys, or keys that its tail does
    // not publish.

    /// The number of entries written.
    pub(super) fn len(&self) -> usize {
        self.keys.len()
    }

    /// The smallest key.
    pub(super) fn first_key(&self) -> i64 {
        self.keys.key(0)
    }

    /// The greatest key written.
    pub(super) fn last_key(&self) -> i64 {
        self.keys.key(self.len() - 1)
    }

    /// The entries written, in order.
    pub(super) fn entries(&self) -> impl Iterator<Item = (i64, &V)> {
        let values = self.slots.iter().map_while(OnceLock::get);
        values.enumerate().map(|(index, value)| (self.keys.key(index), value))
    }
}

impl<V, const N: usize> FromIterator<(i64, V)> for Node<V, N> {
    /// The first `N` of `entries`, which are sorted.
    fn from_iter<I: IntoIterator<Item = (i64, V)>>(entries: I) -> Self {
        let node = Self::new();
        for (index, (key, value)) in entries.into_iter().take(N).enumerate() {
            node.write(index, key, value);
        }
        node
    }
}
