//! The descriptors of all locks of this process, so that a forked child can close its copies at once.
//!
//! An OFD lock lives until the last copy of its descriptor is closed. Spark's Python daemon forks workers, and a worker
//! that outlives its parent must not go on holding the parent's lock. So the C library calls us around each `fork`:
//!
//! ```text
//!   before ── takes the table ──▶ fork ──▶ parent: gives it back
//!                                  └─────▶ child:  closes what is in it, gives it back
//! ```
//!
//! The table is taken across the fork so that no other thread is between opening a descriptor and entering it, or between
//! taking one out and closing it. This and a count of forks are global, because a fork concerns the whole process; the only
//! other global of the core is the budget of open files (`segment/file_budget.rs`).

use std::cell::RefCell;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use super::calls;

enum Entry {
    Free,
    /// With the process that opened it.
    Open(OwnedFd, u32),
    /// Closed, because this is a child of the process that opened it. The entry is still the lock's, and not free.
    Lost,
}

type Table = Vec<Entry>;

static FORKS: AtomicU32 = AtomicU32::new(0);
static TABLE: Mutex<Table> = Mutex::new(Vec::new());

thread_local! {
    /// The table, while this thread forks.
    static FORKING: RefCell<Option<MutexGuard<'static, Table>>> = const { RefCell::new(None) };
}

/// A descriptor that is closed in every forked child, and here when it is dropped.
#[derive(Debug)]
pub(super) struct Descriptor {
    entry: usize,
}

impl Descriptor {
    /// Keeps what `open` opens, if it does; no thread can fork meanwhile.
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
            // a child that is just being started still has a copy, until its program runs; where this is refused, the lock
            // goes with that copy
            let _ = calls::unlock(descriptor.as_fd());
        }
        *entry = Entry::Free;
    }
}

fn table() -> MutexGuard<'static, Table> {
    // nothing here panics halfway
    TABLE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How many forks lie between the first process that asked and this one: two processes that share a handle have different
/// numbers. Cheap, where asking the system for the process takes as long as a small write does.
///
/// # Errors
/// Where the C library does not call us around a fork.
pub(crate) fn forks() -> io::Result<u32> {
    watch_forks()?;
    Ok(FORKS.load(Ordering::Relaxed))
}

/// [`forks`], by who called it before.
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
    // a thread that is ending has no place to keep it, and forks without: a child may then keep a lock for longer
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
