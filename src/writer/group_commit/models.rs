//! Models of threads that append, sync and truncate, whose interleavings loom explores: no append is
//! acknowledged before it is synced, and no thread waits forever. Time does not pass under loom: a leader
//! that waits for bytes waits until they are appended.

use std::sync::PoisonError;
use std::time::Duration;

use loom::model::Builder;
use loom::sync::atomic::{AtomicI64, Ordering};
use loom::sync::{Arc, Mutex};
use loom::thread;

use super::GroupCommit;
use crate::error::{Error, Result};
use crate::types::Interrupt;

/// A log with records of one byte, reduced to what a group commit uses.
struct Model {
    commit: GroupCommit,
    log: Mutex<Log>,
    /// The offset up to which the log is on disk: raised by successful syncs, lowered by truncations.
    on_disk: AtomicI64,
}

struct Log {
    end: i64,
    truncations: u64,
    /// The number of syncs that will fail.
    failing: u32,
}

type Wait = Option<(Duration, u64)>;

/// The value of `kept` in tests without a truncation.
const ALL: i64 = i64::MAX;

impl Model {
    fn new(failing: u32) -> Arc<Self> {
        let log = Mutex::new(Log { end: 0, truncations: 0, failing });
        Arc::new(Self { commit: GroupCommit::new(0), log, on_disk: AtomicI64::new(0) })
    }

    fn on_disk(&self) -> i64 {
        self.on_disk.load(Ordering::SeqCst)
    }

    fn change<T>(&self, change: impl FnOnce(&mut Log) -> T) -> T {
        change(&mut self.log.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Writes a record. Returns the log end offset after it, and the number of truncations before it.
    fn write(&self) -> (i64, u64) {
        self.change(|log| {
            log.end += 1;
            self.commit.appended(1, log.end);
            (log.end, log.truncations)
        })
    }

    /// Syncs as the writer does: the log end offset is taken first, then the sync runs without the lock and
    /// may fail.
    fn sync(&self) -> Result<i64> {
        let end = self.change(|log| log.end);
        self.change(|log| {
            if log.failing > 0 {
                log.failing -= 1;
                return Err(Error::config("sync", "success", "a failure"));
            }
            self.on_disk.fetch_max(end.min(log.end), Ordering::SeqCst);
            Ok(end)
        })
    }

    fn wait_durable(&self, written: (i64, u64), wait: Wait) -> Result<()> {
        self.wait_durable_unless(Interrupt::NEVER, written, wait)
    }

    fn wait_durable_unless(
        &self,
        interrupt: Interrupt,
        (offset, truncations): (i64, u64),
        wait: Wait,
    ) -> Result<()> {
        self.commit.wait_durable(offset, truncations, wait, interrupt, || self.sync())
    }

    /// Appends a record and checks that it is on disk when it is acknowledged. A concurrent truncation may
    /// keep the records below `kept`.
    fn append(&self, wait: Wait, kept: i64) -> Result<()> {
        let written @ (end, _) = self.write();
        self.wait_durable(written, wait)?;
        let on_disk = self.on_disk();
        assert!(on_disk >= end.min(kept), "acknowledged up to {end}, on disk up to {on_disk}");
        Ok(())
    }

    /// Truncates as the writer does: under the log's lock, and the rest is synced.
    fn truncate_to(&self, offset: i64) {
        self.change(|log| {
            if log.end > offset {
                self.commit.truncated(offset);
                log.end = offset;
                log.truncations += 1;
                self.on_disk.store(offset, Ordering::SeqCst);
                self.commit.synced(offset);
            }
        });
    }
}

/// Explores a model with at most `preemptions` switches away from a runnable thread. Without a bound, three
/// threads would take hours.
fn explore(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(model);
}

#[test]
fn commit_acknowledges_only_synced_records_to_three_appenders() {
    explore(2, || {
        let model = Model::new(0);
        let threads = [(); 2].map(|()| {
            let model = Arc::clone(&model);
            thread::spawn(move || model.append(None, ALL).unwrap())
        });
        model.append(None, ALL).unwrap();
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(model.commit.durable(), 3);
    });
}

#[test]
fn commit_acknowledges_nothing_after_a_failed_sync() {
    explore(3, || {
        let model = Model::new(1);
        let other = Arc::clone(&model);
        let thread = thread::spawn(move || other.append(None, ALL));
        let results = [model.append(None, ALL), thread.join().unwrap()];
        assert!(results.iter().any(Result::is_err));
        assert!(model.commit.check().is_err());
        assert!(model.append(None, ALL).is_err());
        assert!(model.commit.durable() <= model.on_disk());
    });
}

#[test]
fn commit_acknowledges_no_sync_that_ends_after_the_log_was_poisoned() {
    explore(3, || {
        let model = Model::new(0);
        let other = Arc::clone(&model);
        let thread = thread::spawn(move || other.append(None, ALL));
        // as after a change of the log that failed in the middle
        model.commit.poison(&Error::config("change", "success", "a failure"));
        let durable = model.commit.durable();
        let result = thread.join().unwrap();
        assert_eq!(
            result.is_ok(),
            durable == 1,
            "durable up to {durable} when the log was poisoned, then {result:?}"
        );
        assert_eq!(model.commit.durable(), durable);
    });
}

#[test]
fn commit_after_a_truncation_acknowledges_the_rest_of_the_log_and_releases_all_waiting_threads() {
    explore(3, || {
        let model = Model::new(0);
        let (first, _) = model.write();
        let threads = [(); 2].map(|()| {
            let model = Arc::clone(&model);
            thread::spawn(move || model.append(None, first).unwrap())
        });
        model.truncate_to(first);
        for thread in threads {
            thread.join().unwrap();
        }
        assert!(model.commit.durable() <= model.on_disk());
    });
}

#[test]
fn commit_wakes_a_leader_that_waits_for_bytes() {
    explore(3, || {
        let model = Model::new(0);
        let other = Arc::clone(&model);
        let wait = Some((Duration::from_secs(3600), 2));
        let thread = thread::spawn(move || other.append(wait, ALL).unwrap());
        model.append(wait, ALL).unwrap();
        thread.join().unwrap();
        assert_eq!(model.commit.durable(), 2);
    });
}

#[test]
fn commit_releases_a_leader_that_waits_for_bytes_after_a_sync_by_others() {
    explore(3, || {
        let model = Model::new(0);
        let other = Arc::clone(&model);
        let wait = Some((Duration::from_secs(3600), 100));
        let thread = thread::spawn(move || other.append(wait, ALL).unwrap());
        // as a roll or a close syncs
        while model.change(|log| log.end) == 0 {
            thread::yield_now();
        }
        model.change(|log| {
            model.on_disk.store(log.end, Ordering::SeqCst);
            model.commit.synced(log.end);
        });
        thread.join().unwrap();
    });
}

#[test]
fn commit_releases_a_leader_that_waits_for_bytes_when_its_record_is_truncated() {
    explore(3, || {
        let model = Model::new(0);
        let written @ (first, _) = model.write();
        model.wait_durable(written, None).unwrap();
        let other = Arc::clone(&model);
        let wait = Some((Duration::from_secs(3600), 100));
        let thread = thread::spawn(move || other.append(wait, first).unwrap());
        while model.change(|log| log.end) == first {
            thread::yield_now();
        }
        model.truncate_to(first);
        thread.join().unwrap();
    });
}

#[test]
fn commit_makes_a_waiting_thread_the_leader_when_the_leader_steps_down() {
    explore(3, || {
        let model = Model::new(0);
        let threads = [(); 2].map(|()| {
            let model = Arc::clone(&model);
            thread::spawn(move || model.append(None, ALL).unwrap())
        });
        let mut state = model.commit.lock();
        let leads = !state.is_syncing;
        state.is_syncing = true;
        drop(state);
        if leads {
            // as a leader that waits for bytes does when it checks for an interrupt
            model.commit.step_down(model.commit.lock());
        }
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(model.commit.durable(), 2);
    });
}

#[test]
fn commit_makes_another_thread_the_leader_when_a_waiting_thread_is_interrupted() {
    explore(2, || {
        let model = Model::new(0);
        let other = Arc::clone(&model);
        let append = thread::spawn(move || other.append(None, ALL).unwrap());
        let other = Arc::clone(&model);
        let interrupted = thread::spawn(move || {
            let always = Interrupt(|| Err("interrupted".into()));
            let written = other.write();
            // this thread may be the leader, which is not interrupted during its sync
            match other.wait_durable_unless(always, written, None) {
                Ok(()) => assert!(other.on_disk() >= written.0),
                Err(error) => assert!(matches!(error, Error::Interrupted(_)), "{error}"),
            }
        });
        model.append(None, ALL).unwrap();
        append.join().unwrap();
        interrupted.join().unwrap();
    });
}
