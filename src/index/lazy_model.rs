//! The model of an index that is made when it pays.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::learned::Model;

/// A look-up without a model costs about as much as reading this many keys.
const KEYS_PER_LOOKUP: u64 = 256;

/// The model of an index, which is built when look-ups without it have cost about as much as building it.
#[derive(Debug, Default)]
pub(super) struct LazyModel {
    /// `None` inside: all keys were read, and they have no model.
    model: OnceLock<Option<Model>>,
    lookups: AtomicU64,
    is_building: AtomicBool,
}

/// What there is of the model of an index.
#[derive(Debug, Clone, Copy)]
pub(super) enum ModelState<'a> {
    /// Not all keys were read yet.
    Unread,
    /// The keys do not increase, or the index is being written.
    Impossible,
    Built(&'a Model),
}

impl LazyModel {
    /// For an index that is being written: it never has a model.
    pub(super) fn never() -> Self {
        Self { model: OnceLock::from(None), ..Self::default() }
    }

    /// The model, if it is built.
    #[inline]
    pub(super) fn get(&self) -> ModelState<'_> {
        match self.model.get() {
            None => ModelState::Unread,
            Some(None) => ModelState::Impossible,
            Some(Some(model)) => ModelState::Built(model),
        }
    }

    /// Whether not all keys were read yet.
    #[inline]
    pub(super) fn is_unread(&self) -> bool {
        self.model.get().is_none()
    }

    /// Counts a look-up, and builds the model when it is due. If the keys cannot be read, it is tried again
    /// after as many look-ups.
    #[cold]
    pub(super) fn count<E>(&self, entries: u64, read: impl FnOnce() -> Result<Option<Model>, E>) {
        let lookups = self.lookups.fetch_add(1, Ordering::Relaxed) + 1;
        // another thread that builds it is not waited for
        if lookups > entries / KEYS_PER_LOOKUP && !self.is_building.swap(true, Ordering::Relaxed) {
            if let Ok(model) = read() {
                self.model.get_or_init(|| model);
                return;
            }
            self.lookups.store(0, Ordering::Relaxed);
            self.is_building.store(false, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::learned::tests::model_of;

    #[test]
    fn a_model_whose_keys_cannot_be_read_is_tried_again_after_as_many_look_ups() {
        let lazy = LazyModel::default();
        let entries = 3 * KEYS_PER_LOOKUP;
        for turn in 0..3 {
            for lookup in 1..=4 {
                let keys: Vec<i64> = (0..8).collect();
                lazy.count(entries, || match (lookup, turn) {
                    (1..4, _) => panic!("too early"),
                    (_, 2) => Ok(model_of(&keys)),
                    _ => Err("unreadable"),
                });
                assert_eq!(lazy.is_unread(), turn < 2 || lookup < 4);
            }
        }
        assert!(matches!(lazy.get(), ModelState::Built(_)));
    }
}
