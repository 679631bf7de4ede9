//! The warnings of a log.

use std::sync::{Mutex, PoisonError};

use crate::types::OnWarning;

/// The warnings that look-ups found, each kept once, and those that were given to the caller's [`OnWarning`].
#[derive(Debug, Default)]
pub(crate) struct Warnings {
    on_warning: OnWarning,
    found: Mutex<Vec<String>>,
    reported: Mutex<Vec<String>>,
}

impl Warnings {
    /// The most that are kept or reported: damaged indexes must not exhaust the memory.
    const MAX: usize = 1000;

    pub(crate) fn new(on_warning: OnWarning) -> Self {
        Self { on_warning, ..Self::default() }
    }

    /// Keeps and reports a warning of a look-up.
    pub(crate) fn add(&self, warning: String) {
        self.report(&warning);
        Self::insert(&self.found, warning);
    }

    /// Reports a warning that the log keeps itself.
    pub(crate) fn report(&self, warning: &str) {
        if Self::insert(&self.reported, warning.to_owned()) {
            (self.on_warning.0)(warning);
        }
    }

    /// The warnings of look-ups, in the order in which they were found.
    pub(crate) fn all(&self) -> Vec<String> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether the warning is new and there was room for it.
    fn insert(warnings: &Mutex<Vec<String>>, warning: String) -> bool {
        let mut warnings = warnings.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = warnings.len() < Self::MAX && !warnings.contains(&warning);
        if is_new {
            warnings.push(warning);
        }
        is_new
    }
}
