//! The segments of an open writer, for readers in the same process: they need not list the directory.

use std::sync::Arc;

use arc_swap::ArcSwapOption;

use crate::fs::{forks, forks_now};

/// Base offsets of the live segments, in ascending order. The writer owns the list. Readers have a weak
/// reference, and list the directory once the writer is closed or dropped.
#[derive(Debug)]
pub(crate) struct LiveSegments {
    bases: ArcSwapOption<Vec<i64>>,
    /// The number of forks before it was created: the copy in a forked child is never updated.
    forks: u32,
}

impl LiveSegments {
    /// The list of a writer that has just opened its log.
    pub(crate) fn new(bases: Vec<i64>) -> std::io::Result<Arc<Self>> {
        Ok(Arc::new(Self { bases: ArcSwapOption::from_pointee(bases), forks: forks()? }))
    }

    /// Replaces the list, after a segment was created or before one is deleted.
    pub(crate) fn set(&self, bases: Vec<i64>) {
        self.bases.store(Some(Arc::new(bases)));
    }

    /// Removes the list: until the next [`LiveSegments::set`], readers list the directory.
    pub(crate) fn withdraw(&self) {
        self.bases.store(None);
    }

    /// The list; `None` if it was withdrawn, and in a forked child.
    pub(crate) fn bases(&self) -> Option<Arc<Vec<i64>>> {
        if forks_now() == self.forks { self.bases.load_full() } else { None }
    }
}
