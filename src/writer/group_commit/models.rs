//! Every interleaving of threads that append, sync and truncate, explored by loom: nobody is told of what was not synced,
//! and nobody waits for ever. loom's clock stands still: a leader that waits for bytes waits until they come.

use std::sync::PoisonError;
use std::time::Duration;

use loom::model::Builder;
use loom::sync::atomic::{AtomicI64, Ordering};
use loom::sync::{Arc, Mutex};
use loom::thread;

use super::GroupCommit;
use crate::error::{Error, Result};
use crate::types::Interrupt;

/// A log of records of one byte, as far as a commit sees it.
struct Model {
    commit: GroupCommit,
    log: Mutex<Log>,
    /// How far the disk has it: of a sync that went well, and no more than what is left of a truncation.
    on_disk: AtomicI64,
}

struct Log {
    end: i64,
    truncations: u64,
    /// Syncs that are to fail.
    failing: u32,
}

type Wait = Option<(Duration, u64)>;

/// Nothing is truncated.
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

    /// Writes a record, and gives the log's end behind it, and after how many truncations.
    fn write(&self) -> (i64, u64) {
        self.change(|log| {
            log.end += 1;
            self.commit.appended(1, log.end);
            (log.end, log.truncations)
        })
    }

    /// As the writer syncs: the end is taken first, then it is synced without a lock, which fails or not.
    fn sync(&self) -> Result<i64> {
        let end = self.change(|log| log.end);
        self.change(|log| {
            if log.failing > 0 {
                log.failing -= 1;
                return Err(Error::config("sync", "one that works", "one that fails"));
            }
            self.on_disk.fetch_max(end.min(log.end), Ordering::SeqCst);
            Ok(end)
        })
    }

    fn wait_durable(&self, written: (i64, u64), wait: Wait) -> Result<()> {
        self.reach_unless(Interrupt::NEVER, written, wait)
    }

    fn reach_unless(
        &self,
        interrupt: Interrupt,
        (offset, truncations): (i64, u64),
        wait: Wait,
    ) -> Result<()> {
        self.commit.wait_durable(offset, truncations, wait, interrupt, || self.sync())
    }

    /// Appends, and holds what it is told against the disk. A truncation to `kept` may come between.
    fn append(&self, wait: Wait, kept: i64) -> Result<()> {
        let written @ (end, _) = self.write();
        self.wait_durable(written, wait)?;
        let on_disk = self.on_disk();
        assert!(on_disk >= end.min(kept), "told of {end}, the disk has it up to {on_disk}");
        Ok(())
    }

    /// As the writer truncates: under the log's lock, and what stays is synced.
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

/// Up to so many switches away from a thread that could go on; with three threads all of them would take hours.
fn explore(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(model);
}

#[test]
fn commit_tells_three_appenders_of_what_was_synced_only() {
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
fn commit_acknowledges_nothing_after_a_sync_that_failed() {
    explore(3, || {
        let model = Model::new(1);
        let other = Arc::clone(&model);
        let thread = thread::spawn(move || other.append(None, ALL));
        let told = [model.append(None, ALL), thread.join().unwrap()];
        assert!(told.iter().any(Result::is_err));
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
        // as a change of the log does that failed in the middle
        model.commit.poison(&Error::config("change", "one that works", "one that fails"));
        let durable = model.commit.durable();
        let told = thread.join().unwrap();
        assert_eq!(
            told.is_ok(),
            durable == 1,
            "durable up to {durable} when the log was poisoned, and then {told:?}"
        );
        assert_eq!(model.commit.durable(), durable);
    });
}

#[test]
fn commit_acknowledges_what_a_truncation_left_when_the_disk_has_it_and_lets_nobody_wait_for_the_rest() {
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
fn commit_lets_a_leader_that_waits_for_bytes_go_when_others_have_synced() {
    explore(3, || {
        let model = Model::new(0);
        let other = Arc::clone(&model);
        let wait = Some((Duration::from_secs(3600), 100));
        let thread = thread::spawn(move || other.append(wait, ALL).unwrap());
        // as a roll or a close does it
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
fn commit_lets_a_leader_that_waits_for_bytes_go_when_its_record_is_truncated() {
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
fn commit_lets_one_lead_who_waits_when_the_leader_steps_down() {
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
            // as one does that waited for bytes, and looks whether it is interrupted
            model.commit.step_down(model.commit.lock());
        }
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(model.commit.durable(), 2);
    });
}

#[test]
fn commit_lets_another_lead_when_one_who_waits_is_interrupted() {
    explore(2, || {
        let model = Model::new(0);
        let other = Arc::clone(&model);
        let append = thread::spawn(move || other.append(None, ALL).unwrap());
        let other = Arc::clone(&model);
        let interrupted = thread::spawn(move || {
            let always = Interrupt(|| Err("interrupted".into()));
            let written = other.write();
            // it may be the one who syncs
            match other.reach_unless(always, written, None) {
                Ok(()) => assert!(other.on_disk() >= written.0),
                Err(error) => assert!(matches!(error, Error::Interrupted(_)), "{error}"),
            }
        });
        model.append(None, ALL).unwrap();
        append.join().unwrap();
        interrupted.join().unwrap();
    });
}
