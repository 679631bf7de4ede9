//! The descriptors of all locks of this process, so that a forked child can close its copies at once.
//!
//! An OFD lock is held until the last copy of its descriptor is closed. Spark's Python daemon forks workers,
//! and a worker that outlives its parent must not keep the parent's lock. So the C library calls functions of
//! this module around each `fork`:
//!
//! ```text
//!   before ── locks the table ──▶ fork ──▶ parent: unlocks it
//!                                  └─────▶ child:  closes its descriptors, unlocks it
//! ```
//!
//! The table is locked across the fork, so that no other thread is between opening a descriptor and adding
//! it, or between removing one and closing it. The table and a count of forks are global, because a fork
//! affects the whole process. The only other global of the core is the budget of open files
//! (`segment/file_budget.rs`).

use std::cell::RefCell;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use super::calls;

enum Entry {
    Free,
    /// With the id of the process that opened it.
    Open(OwnedFd, u32),
    /// Closed, because this is a child of the process that opened it. The entry is still in use by the lock.
    Lost,
}

type Table = Vec<Entry>;

static FORKS: AtomicU32 = AtomicU32::new(0);
static TABLE: Mutex<Table> = Mutex::new(Vec::new());

thread_local! {
    /// The locked table, while this thread forks.
    static FORKING: RefCell<Option<MutexGuard<'static, Table>>> = const { RefCell::new(None) };
}

/// A descriptor that is closed in every forked child, and in this process when it is dropped.
#[derive(Debug)]
pub(super) struct Descriptor {
    entry: usize,
}

impl Descriptor {
    /// Stores the descriptor that `open` returns, if any. No thread can fork during the call.
    pub(super) fn open(open: impl FnOnce() -> io::Result<Option<OwnedFd>>) -> io::Result<Option<Self>> {
        watch_forks()?;
        let mut table = table();
        let Some(descriptor) = open()? else { return Ok(None) };
        let entry = table.iter().position(|entry| matches!(entry, Entry::Free)).unwrap_or(table.len());
        match table.get_mut(entry) {
            Some(free) => *free = Entry::Open(descriptor, std::process::id()),
            None => table.push(Entry::Open(descriptor, std::process::id())),
        }
        Ok(Some(Self { entry }))
    }

    /// False in a child of the process that opened it.
    pub(super) fn is_open(&self) -> bool {
        matches!(table().get(self.entry), Some(Entry::Open(..)))
    }
}

impl Drop for Descriptor {
    fn drop(&mut self) {
        let mut table = table();
        let Some(entry) = table.get_mut(self.entry) else { return };
        if let Entry::Open(descriptor, opener) = entry
            && *opener == std::process::id()
        {
            // a child that is being started has a copy until its program runs; if unlocking fails, the lock
            // is released with that copy
            let _ = calls::unlock(descriptor.as_fd());
        }
        *entry = Entry::Free;
    }
}

fn table() -> MutexGuard<'static, Table> {
    // the table is consistent after a panic
    TABLE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The number of forks between the first process that called this and this one: two processes that share a
/// handle have different numbers. It is cheap, while the system call for the process id takes as long as a
/// small write.
///
/// # Errors
/// If the functions around a fork cannot be registered.
pub fn forks() -> io::Result<u32> {
    watch_forks()?;
    Ok(FORKS.load(Ordering::Relaxed))
}

/// [`forks`] without an error, for callers that called it before.
pub(crate) fn forks_now() -> u32 {
    FORKS.load(Ordering::Relaxed)
}

fn watch_forks() -> io::Result<()> {
    static WATCHED: OnceLock<Result<(), Option<i32>>> = OnceLock::new();
    let watch =
        || calls::at_fork(before, after_in_parent, after_in_child).map_err(|error| error.raw_os_error());
    match WATCHED.get_or_init(watch) {
        Ok(()) => Ok(()),
        Err(number) => Err(number.map_or_else(|| io::ErrorKind::Other.into(), io::Error::from_raw_os_error)),
    }
}

extern "C" fn before() {
    // a thread that is ending has no thread-local storage, and forks without the lock: a child may then keep
    // a lock longer
    let _ = FORKING.try_with(|forking| *forking.borrow_mut() = Some(table()));
}

extern "C" fn after_in_parent() {
    let _ = FORKING.try_with(|forking| forking.borrow_mut().take());
}

extern "C" fn after_in_child() {
    FORKS.fetch_add(1, Ordering::Relaxed);
    let _ = FORKING.try_with(|forking| {
        if let Some(mut table) = forking.borrow_mut().take() {
            for entry in table.iter_mut().filter(|entry| matches!(entry, Entry::Open(..))) {
                *entry = Entry::Lost;
            }
        }
    });
}
