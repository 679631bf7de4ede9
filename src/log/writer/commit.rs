//! Group commit: one `fdatasync` makes all appends durable that were written before it began.
//!
//! Whoever wants an offset durable and finds nobody syncing becomes the leader; the others wait. The leader takes the
//! log's end and the file to sync, syncs without a lock held, publishes the end and wakes the others; who came later finds
//! the next leader among themselves.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::error::{Error, Result};

/// What threads that wait for a sync share.
#[derive(Debug, Default)]
pub(super) struct Commit {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Everything below is durable.
    durable: i64,
    /// Somebody is syncing.
    is_syncing: bool,
    /// Bytes that were appended since the last sync began.
    waiting_bytes: u64,
    /// Counts truncations: a sync that began before one says nothing of what came after.
    truncations: u64,
    /// Where the last truncation cut.
    truncated_to: i64,
    /// Why nothing is acknowledged any more.
    poisoned: Option<String>,
}

/// Whoever syncs for the others. One that panics leaves them an error, not waiting for ever.
struct Leader<'a> {
    commit: &'a Commit,
    is_done: bool,
}

impl Drop for Leader<'_> {
    fn drop(&mut self) {
        if !self.is_done {
            let mut state = self.commit.lock();
            state.is_syncing = false;
            state.poisoned.get_or_insert_with(|| "a sync panicked".to_owned());
            self.commit.changed.notify_all();
        }
    }
}

impl Commit {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The offset below which everything is durable.
    pub(super) fn durable(&self) -> i64 {
        self.lock().durable
    }

    /// Fails where the writer is poisoned.
    pub(super) fn check(&self) -> Result<()> {
        match &self.lock().poisoned {
            None => Ok(()),
            Some(reason) => Err(Error::Poisoned { reason: reason.clone() }),
        }
    }

    /// From now on nothing is acknowledged. The first reason stays.
    pub(super) fn poison(&self, error: &Error) {
        self.lock().poisoned.get_or_insert_with(|| error.to_string());
        self.changed.notify_all();
    }

    /// Notes that bytes were appended, which a waiting leader may wait for.
    pub(super) fn appended(&self, bytes: u64) {
        let mut state = self.lock();
        state.waiting_bytes += bytes;
        if state.is_syncing {
            self.changed.notify_all();
        }
    }

    /// Everything below `offset` was synced under the writer's own lock.
    pub(super) fn synced(&self, offset: i64) {
        let mut state = self.lock();
        state.durable = state.durable.max(offset);
        state.waiting_bytes = 0;
        self.changed.notify_all();
    }

    /// The log ends at `offset` now, which is lower than before.
    pub(super) fn truncated(&self, offset: i64) {
        let mut state = self.lock();
        state.durable = state.durable.min(offset);
        state.truncations += 1;
        state.truncated_to = offset;
        self.changed.notify_all();
    }

    /// Returns once everything below `offset` is durable, by a sync of this thread or of another one. `sync` is given
    /// nothing locked and returns the offset that it reached; `wait`: how long, and for how many bytes, a leader waits for
    /// others before that.
    pub(super) fn reach(
        &self,
        mut offset: i64,
        wait: Option<(Duration, u64)>,
        sync: impl FnOnce() -> Result<i64>,
    ) -> Result<()> {
        let mut state = self.lock();
        let mut began = state.truncations;
        loop {
            if let Some(reason) = &state.poisoned {
                return Err(Error::Poisoned { reason: reason.clone() });
            }
            if state.truncations != began {
                // what was cut meanwhile is not there to be made durable; the rest is
                began = state.truncations;
                offset = offset.min(state.truncated_to);
            }
            if state.durable >= offset {
                return Ok(());
            }
            if !state.is_syncing {
                break;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.is_syncing = true;
        if let Some((longest, bytes)) = wait {
            let until = Instant::now() + longest;
            // a flush, a roll or a close may do it meanwhile
            while state.waiting_bytes < bytes && state.durable < offset && state.poisoned.is_none() {
                let left = until.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    break;
                }
                (state, _) = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner);
            }
        }
        if state.durable >= offset {
            state.is_syncing = false;
            self.changed.notify_all();
            return Ok(());
        }
        state.waiting_bytes = 0;
        let began = state.truncations;
        drop(state);
        let mut leader = Leader { commit: self, is_done: false };
        let synced = sync();
        leader.is_done = true;
        let mut state = self.lock();
        state.is_syncing = false;
        self.changed.notify_all();
        match synced {
            Ok(_) if state.poisoned.is_some() => {
                Err(Error::Poisoned { reason: state.poisoned.clone().unwrap_or_default() })
            }
            Ok(reached) => {
                if state.truncations == began {
                    state.durable = state.durable.max(reached);
                }
                Ok(())
            }
            Err(error) => {
                state.poisoned.get_or_insert_with(|| error.to_string());
                Err(error)
            }
        }
    }
}
