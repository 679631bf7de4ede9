//! The segments of a log as its writer has them, for readers in the same process: they need no listing.

use std::sync::Arc;

use arc_swap::ArcSwapOption;

use crate::fs::{forks, forks_now};

/// Base offsets of the live segments, rising. The writer owns it; readers hold a weak reference, and list the directory
/// once the writer is closed or dropped.
#[derive(Debug)]
pub(crate) struct LiveSegments {
    bases: ArcSwapOption<Vec<i64>>,
    /// Forks before it was made: the copy in a forked child is never updated.
    forks: u32,
}

impl LiveSegments {
    /// Of a writer that has just opened its log.
    pub(crate) fn new(bases: Vec<i64>) -> std::io::Result<Arc<Self>> {
        Ok(Arc::new(Self { bases: ArcSwapOption::from_pointee(bases), forks: forks()? }))
    }

    /// Replaces the list, after a segment was created or before one is deleted.
    pub(crate) fn set(&self, bases: Vec<i64>) {
        self.bases.store(Some(Arc::new(bases)));
    }

    /// Takes the list back: until the next [`LiveSegments::set`], readers list the directory.
    pub(crate) fn withdraw(&self) {
        self.bases.store(None);
    }

    /// The list; `None` where it was withdrawn, and in a forked child.
    pub(crate) fn bases(&self) -> Option<Arc<Vec<i64>>> {
        if forks_now() == self.forks { self.bases.load_full() } else { None }
    }
}
