//! The warnings of a log.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use crate::types::OnWarning;

/// The warnings that look-ups found, each once; each warning is also given to the caller's [`OnWarning`].
#[derive(Debug, Default)]
pub(crate) struct Warnings {
    on_warning: OnWarning,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    found: Vec<String>,
    /// The warnings that were given to `on_warning`.
    reported: HashSet<String>,
}

impl Warnings {
    /// The maximum number that is stored: damaged indexes must not exhaust the memory. If so many were
    /// reported, the set is emptied, and warnings can be reported again.
    const MAX: usize = 1000;

    pub(crate) fn new(on_warning: OnWarning) -> Self {
        Self { on_warning, state: Mutex::default() }
    }

    /// Stores and reports a warning of a look-up.
    pub(crate) fn add(&self, warning: &str) {
        self.insert(warning, true);
    }

    /// Reports a warning that is stored elsewhere.
    pub(crate) fn report(&self, warning: &str) {
        self.insert(warning, false);
    }

    /// The warnings of look-ups, in the order in which they were found.
    pub(crate) fn all(&self) -> Vec<String> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).found.clone()
    }

    fn insert(&self, warning: &str, is_stored: bool) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.reported.contains(warning) {
            return;
        }
        if state.reported.len() >= Self::MAX {
            state.reported.clear();
        }
        state.reported.insert(warning.to_owned());
        if is_stored && state.found.len() < Self::MAX && !state.found.iter().any(|found| found == warning) {
            state.found.push(warning.to_owned());
        }
        drop(state);
        (self.on_warning.0)(warning);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn a_warning_is_reported_once_and_new_ones_are_reported_however_many_there_were() {
        static REPORTED: AtomicUsize = AtomicUsize::new(0);
        let warnings = Warnings::new(OnWarning(|_| _ = REPORTED.fetch_add(1, Ordering::Relaxed)));
        for number in 0..3 * Warnings::MAX {
            let text = format!("warning {number}");
            warnings.add(&text);
            warnings.report(&text);
        }
        assert_eq!(REPORTED.load(Ordering::Relaxed), 3 * Warnings::MAX);
        let first: Vec<_> = (0..Warnings::MAX).map(|number| format!("warning {number}")).collect();
        assert_eq!(warnings.all(), first);
    }
}
