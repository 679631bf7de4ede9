//! Group commit: one `fdatasync` makes durable all appends that were written before it began.
//!
//! A thread that waits for an offset becomes the leader if no other thread syncs; the others wait. The leader
//! takes the log end offset and the file to sync, syncs without a lock, publishes the offset and wakes the
//! threads whose appends the sync covered. Of the threads that appended later it wakes one, the next leader,
//! so that each thread is woken once. The next leader waits briefly for the threads that the last sync has
//! just released: they are likely to append again, and one sync for all is cheaper than two. `models`
//! explores the interleavings under loom.

#[cfg(test)]
#[cfg(loom)]
mod models;

use std::sync::PoisonError;
use std::thread;
use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::loom_shim::{
    AtomicBool, AtomicI64, AtomicU64, CHECKS_TRUNCATIONS, Condvar, Event, GATHERS, Mutex, MutexGuard,
    Ordering,
};
use crate::types::Interrupt;

/// The state that threads waiting for a sync share.
#[derive(Debug)]
pub(super) struct GroupCommit {
    state: Mutex<State>,
    /// Wakes threads that wait for a sync by another thread: one event for syncs with an even number, one
    /// for odd numbers.
    done: [Event; 2],
    /// Wakes a leader that waits for the bytes of other threads.
    gathered: Condvar,
    /// The durable offset. Changed under the lock; an append that does not wait reads it without the lock.
    durable: AtomicI64,
    /// Whether `State::poisoned` is set.
    is_poisoned: AtomicBool,
    /// The log end offset after the last append.
    end: AtomicI64,
    /// The number of threads that wait for the sync after the current one.
    followers: AtomicU64,
    /// Bytes that were appended since the last sync began.
    waiting_bytes: AtomicU64,
    /// The number of bytes that a leader waits for; `u64::MAX` if no leader waits.
    wanted_bytes: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    /// Whether a leader syncs, or waits for the bytes of other threads before its sync.
    is_syncing: bool,
    /// The number of syncs that have begun.
    syncs: u64,
    /// A lower bound of the offset that the last of them covers.
    covered: i64,
    /// The number of threads that waited for that sync.
    peers: u64,
    /// The duration of that sync.
    sync_time: Duration,
    /// Counts truncations: a sync that began before one does not cover appends after it.
    truncations: u64,
    /// The offset of the last truncation.
    truncated_to: i64,
    /// The time at which the leader stops waiting for bytes; a new leader takes it over.
    until: Option<Instant>,
    /// The error that poisoned the writer: nothing is acknowledged after it.
    poisoned: Option<String>,
}

impl State {
    /// Lowers `offset` to that of a truncation since the count was `began`: truncated records cannot become
    /// durable.
    fn clamp_to_truncation(&self, offset: &mut i64, began: &mut u64) {
        if self.truncations != *began {
            *began = self.truncations;
            *offset = (*offset).min(self.truncated_to);
        }
    }
}

/// Guards the sync of a leader. If it panics, the other threads get an error instead of waiting forever.
struct Leader<'a> {
    commit: &'a GroupCommit,
    is_done: bool,
}

impl Drop for Leader<'_> {
    fn drop(&mut self) {
        if !self.is_done {
            self.commit.lock().is_syncing = false;
            self.commit.poison(&Error::config("sync", "a sync without a panic", "a panic"));
        }
    }
}

impl GroupCommit {
    /// The group commit of a log in which everything below `offset` is durable.
    pub(super) fn new(offset: i64) -> Self {
        Self {
            state: Mutex::default(),
            done: [Event::default(), Event::default()],
            gathered: Condvar::new(),
            durable: AtomicI64::new(offset),
            end: AtomicI64::new(offset),
            is_poisoned: AtomicBool::new(false),
            followers: AtomicU64::new(0),
            waiting_bytes: AtomicU64::new(0),
            wanted_bytes: AtomicU64::new(u64::MAX),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes all threads: those that wait for a sync, and a leader that waits for bytes.
    fn wake(&self) {
        self.gathered.notify_all();
        for done in &self.done {
            done.wake_all();
        }
    }

    /// The event of the sync with this number.
    fn done(&self, number: u64) -> &Event {
        let [even, odd] = &self.done;
        if number.is_multiple_of(2) { even } else { odd }
    }

    /// The offset below which everything is durable.
    pub(super) fn durable(&self) -> i64 {
        self.durable.load(Ordering::Acquire)
    }

    /// Fails if the writer is poisoned.
    pub(super) fn check(&self) -> Result<()> {
        if !self.is_poisoned.load(Ordering::Acquire) {
            return Ok(());
        }
        let reason = self.lock().poisoned.clone();
        Err(Error::Poisoned { reason: reason.unwrap_or_default() })
    }

    /// Poisons the writer: nothing is acknowledged any more. The first reason is kept.
    pub(super) fn poison(&self, error: &Error) {
        let mut state = self.lock();
        self.poison_locked(&mut state, error);
        drop(state);
        self.wake();
    }

    fn poison_locked(&self, state: &mut State, error: &Error) {
        state.poisoned.get_or_insert_with(|| error.to_string());
        self.is_poisoned.store(true, Ordering::Release);
    }

    /// Publishes an append: its bytes, which a leader may wait for, and the new log end offset `end`.
    pub(super) fn appended(&self, bytes: u64, end: i64) {
        self.end.store(end, Ordering::Release);
        // both threads use a read-modify-write, so that one is ordered after the other: the leader sees these
        // bytes, or this thread sees `wanted_bytes`
        let waiting = self.waiting_bytes.fetch_add(bytes, Ordering::AcqRel).saturating_add(bytes);
        if waiting >= self.wanted_bytes.load(Ordering::Acquire) {
            // taking the lock ensures that the leader already waits, so that it gets the notification
            drop(self.lock());
            self.gathered.notify_all();
        }
    }

    /// Publishes that everything below `offset` was synced under the writer's lock.
    pub(super) fn synced(&self, offset: i64) {
        let state = self.lock();
        self.durable.fetch_max(offset, Ordering::AcqRel);
        self.waiting_bytes.swap(0, Ordering::AcqRel);
        drop(state);
        self.wake();
    }

    /// Publishes a truncation to `offset`.
    pub(super) fn truncated(&self, offset: i64) {
        let mut state = self.lock();
        self.durable.fetch_min(offset, Ordering::AcqRel);
        self.end.store(offset, Ordering::Release);
        state.truncations += 1;
        state.truncated_to = offset;
        drop(state);
        self.wake();
    }

    /// Returns once everything below `offset` is durable, by a sync of this thread or another.
    ///
    /// `began`: the number of truncations when the log reached `offset`. `wait`: for how long, and for how
    /// many bytes, a leader waits for other threads. `sync`: syncs and returns the offset that is durable
    /// after it; called without a lock. `interrupt`: called at intervals by a thread that waits. It may
    /// run Python's signal handlers, which may append, so the thread must neither hold a lock nor be the
    /// leader when it calls it.
    pub(super) fn wait_durable(
        &self,
        mut offset: i64,
        mut began: u64,
        wait: Option<(Duration, u64)>,
        interrupt: Interrupt,
        sync: impl FnOnce() -> Result<i64>,
    ) -> Result<()> {
        let mut state = self.lock();
        let mut is_next = false;
        let mut counted = None;
        loop {
            if let Some(reason) = &state.poisoned {
                return Err(Error::Poisoned { reason: reason.clone() });
            }
            state.clamp_to_truncation(&mut offset, &mut began);
            if self.durable() >= offset {
                if is_next && !state.is_syncing {
                    // this thread was woken as the next leader but need not sync: another thread may need to
                    self.done(state.syncs + 1).wake_one();
                }
                return Ok(());
            }
            if !state.is_syncing {
                state.is_syncing = true;
                let Some((max_wait, bytes)) = wait else { break };
                let is_over;
                (state, is_over) = self.wait_for_bytes(state, offset, began, max_wait, bytes);
                if is_over {
                    break;
                }
                self.step_down(state);
                interrupt.check()?;
                state = self.lock();
                continue;
            }
            is_next = offset > state.covered;
            // counted once per sync, even if the wait is interrupted
            if is_next && counted != Some(state.syncs) {
                counted = Some(state.syncs);
                self.followers.fetch_add(1, Ordering::Relaxed);
            }
            let done = self.done(state.syncs + u64::from(is_next));
            let count = done.count();
            drop(state);
            let is_late = done.wait(count, Self::PAUSE);
            if !is_next && self.durable() >= offset && !self.is_poisoned.load(Ordering::Acquire) {
                return Ok(());
            }
            if is_late {
                // this thread may have been woken as the next leader, and must pass that on
                interrupt.check().inspect_err(|_| done.wake_one())?;
            }
            state = self.lock();
        }
        self.lead(state, offset, began, wait.is_none(), sync)
    }

    /// Syncs as the leader. `gathers`: whether to wait briefly for the threads that the last sync released.
    fn lead<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        mut offset: i64,
        mut began: u64,
        gathers: bool,
        sync: impl FnOnce() -> Result<i64>,
    ) -> Result<()> {
        if gathers && state.peers > self.followers.load(Ordering::Relaxed) {
            let (peers, max_wait) = (state.peers, (state.sync_time / 4).min(Self::MAX_GATHER_TIME));
            drop(state);
            self.gather(peers, max_wait);
            state = self.lock();
        }
        state.clamp_to_truncation(&mut offset, &mut began);
        if self.durable() >= offset {
            self.step_down(state);
            return Ok(());
        }
        self.waiting_bytes.swap(0, Ordering::AcqRel);
        state.syncs += 1;
        state.covered = self.end.load(Ordering::Acquire);
        state.peers = self.followers.swap(0, Ordering::Relaxed);
        let number = state.syncs;
        drop(state);
        let start = Instant::now();
        let mut leader = Leader { commit: self, is_done: false };
        let synced = sync();
        leader.is_done = true;
        let sync_time = start.elapsed();
        let mut state = self.lock();
        state.is_syncing = false;
        state.sync_time = sync_time;
        let done = match (synced, &state.poisoned) {
            (Ok(_), Some(reason)) => Err(Error::Poisoned { reason: reason.clone() }),
            (Ok(reached), None) => {
                if state.truncations == began || !CHECKS_TRUNCATIONS {
                    self.durable.fetch_max(reached, Ordering::AcqRel);
                }
                Ok(())
            }
            (Err(error), _) => {
                self.poison_locked(&mut state, &error);
                Err(error)
            }
        };
        let is_poisoned = state.poisoned.is_some();
        // a woken thread may take the lock
        drop(state);
        self.done(number).wake_all();
        if is_poisoned {
            self.done(number + 1).wake_all();
        } else {
            self.done(number + 1).wake_one();
        }
        done
    }

    /// The interval at which a waiting thread checks for an interrupt: a check takes Python's interpreter
    /// lock.
    const PAUSE: Duration = Duration::from_millis(50);

    /// Waits for the bytes of other threads. Returns false if the wait is not over and the caller has to
    /// check for an interrupt.
    fn wait_for_bytes<'a>(
        &self,
        mut state: MutexGuard<'a, State>,
        offset: i64,
        began: u64,
        max_wait: Duration,
        bytes: u64,
    ) -> (MutexGuard<'a, State>, bool) {
        let now = Instant::now();
        // `None`: beyond the range of `Instant`, so the wait has no time limit
        let until = state.until.or_else(|| now.checked_add(max_wait));
        state.until = until;
        self.wanted_bytes.store(bytes, Ordering::Release);
        let mut is_over = false;
        let mut is_paused = false;
        while !is_paused && !is_over {
            let left = until.map_or(Self::PAUSE, |until| until.saturating_duration_since(Instant::now()));
            // a flush, a roll or a close may have synced in the meantime
            is_over = self.waiting_bytes.fetch_add(0, Ordering::AcqRel) >= bytes
                || self.durable() >= offset
                || state.truncations != began
                || state.poisoned.is_some()
                || left.is_zero();
            if !is_over {
                let wait = self.gathered.wait_timeout(state, left.min(Self::PAUSE));
                let paused;
                (state, paused) = wait.unwrap_or_else(PoisonError::into_inner);
                is_paused = paused.timed_out() && left > Self::PAUSE;
            }
        }
        self.wanted_bytes.store(u64::MAX, Ordering::Release);
        if is_over {
            state.until = None;
        }
        (state, is_over)
    }

    /// Ends the leadership, and wakes one of the threads that wait for the next sync.
    fn step_down(&self, mut state: MutexGuard<'_, State>) {
        state.is_syncing = false;
        let next = state.syncs + 1;
        drop(state);
        self.done(next).wake_one();
    }

    /// The maximum time to gather: after one slow sync, the next leader must not spin for long.
    const MAX_GATHER_TIME: Duration = Duration::from_millis(1);

    /// Waits until `peers` threads wait for the next sync, for `max_wait` at most.
    fn gather(&self, peers: u64, max_wait: Duration) {
        let until = Instant::now() + max_wait;
        while self.followers.load(Ordering::Relaxed) < peers && GATHERS && Instant::now() < until {
            thread::yield_now();
        }
    }
}
