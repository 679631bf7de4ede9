//! An in-memory disk that crashes and fails, for tests. The writer uses it like the system's files.
//!
//! It stores the visible contents, the durable contents, and the changes between them (`state`). Every change
//! is an [`Operation`]. A [`CrashPoint`] can be recorded before each; it yields the states in which a power
//! loss may leave the disk ([`Image`]). An operation can be made to fail ([`Fault`]). Nothing here uses the
//! system's clock or random numbers.

mod crash;
mod faults;
mod handles;
mod listing;
mod state;

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::io::Errno;

pub use crash::{CrashPoint, Image, Survivors};
pub use faults::{Fault, FaultKind, Operation};
use faults::{Outcome, Plan};
use handles::MemoryFolder;
pub use listing::ListingRace;
use state::{Entries, FileState, FolderState, Node, State};

use super::Directory;

/// The unit that a real disk writes atomically, bytes.
const SECTOR: usize = 512;

/// An in-memory disk. Clones share the same disk.
#[derive(Debug, Clone)]
pub struct MemoryDisk {
    inner: Arc<Mutex<Inner>>,
}

#[derive(Debug)]
struct Inner {
    state: State,
    operations: u64,
    plan: Option<Plan>,
    /// The number of reads before the one that fails.
    failing_read: Option<u64>,
    /// The number of sectors that all files may take; `None`: any number.
    capacity: Option<usize>,
    recorded: Option<Vec<(Operation, CrashPoint)>>,
    failed: Vec<Operation>,
    race: Option<ListingRace>,
}

impl Default for MemoryDisk {
    fn default() -> Self {
        Self::new(SECTOR)
    }
}

impl MemoryDisk {
    /// An empty disk. Sectors smaller than the 512 bytes of real disks tear more, so that a small log on them
    /// behaves like a large log on a real disk.
    pub fn new(sector: usize) -> Self {
        let state = State { sector: sector.max(1), files: Vec::new(), folders: vec![FolderState::default()] };
        Self::holding(state)
    }

    fn holding(state: State) -> Self {
        let inner = Inner {
            state,
            operations: 0,
            plan: None,
            failing_read: None,
            capacity: None,
            recorded: None,
            failed: Vec::new(),
            race: None,
        };
        Self { inner: Arc::new(Mutex::new(inner)) }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }

    /// The root directory, which reports `path` as its path.
    pub fn directory(&self, path: impl AsRef<Path>) -> Directory {
        Directory::of_memory(Arc::new(MemoryFolder::root(self.clone())), path.as_ref().to_owned())
    }

    /// An independent disk with the same visible and durable contents.
    #[must_use]
    pub fn fork(&self) -> Self {
        Self::holding(self.lock().state.clone())
    }

    /// The crash point for a power loss now.
    pub fn crash_point(&self) -> CrashPoint {
        CrashPoint::new(self.lock().state.clone())
    }

    /// The visible contents as an image: the state after a process is killed while the system keeps running.
    pub fn shown(&self) -> Image {
        let mut state = self.lock().state.clone();
        for file in &mut state.files {
            file.durable = Arc::clone(&file.visible);
            file.pending.clear();
        }
        for folder in &mut state.folders {
            folder.durable = Arc::clone(&folder.visible);
            folder.pending.clear();
        }
        CrashPoint::new(state).image(Survivors::All)
    }

    /// Creates a file in the root or replaces its contents. This is durable and not counted as an operation.
    pub fn put(&self, name: &str, contents: &[u8]) {
        let mut inner = self.lock();
        let State { sector, files, folders } = &mut inner.state;
        let file = FileState::holding(name.into(), Arc::new(contents.to_vec()), *sector);
        files.push(file);
        if let Some(root) = folders.first_mut() {
            for entries in [&mut root.visible, &mut root.durable] {
                Arc::make_mut(entries).insert(name.into(), Node::File(files.len() - 1));
            }
        }
    }

    /// Removes a file of the root. This is durable and not counted as an operation.
    pub fn take(&self, name: &str) {
        let mut inner = self.lock();
        if let Some(root) = inner.state.folders.first_mut() {
            for entries in [&mut root.visible, &mut root.durable] {
                Arc::make_mut(entries).remove(name);
            }
        }
    }

    /// The number of operations since the disk was created.
    pub fn operations(&self) -> u64 {
        self.lock().operations
    }

    /// Starts to record every operation and the crash point before it.
    pub fn record(&self) {
        self.lock().recorded = Some(Vec::new());
    }

    /// Stops recording, and returns what was recorded since [`MemoryDisk::record`]. The crash point after the
    /// last operation is [`MemoryDisk::crash_point`].
    pub fn recorded(&self) -> Vec<(Operation, CrashPoint)> {
        self.lock().recorded.take().unwrap_or_default()
    }

    /// Sets the operation that fails, counted from now on; `None`: no operation fails.
    pub fn set_fault(&self, fault: Option<Fault>) {
        self.lock().plan = fault.map(Plan::new);
    }

    /// Whether the operation that fails has happened.
    pub fn fault_is_over(&self) -> bool {
        self.lock().plan.as_ref().is_some_and(Plan::is_over)
    }

    /// The operations that have failed since the disk was created.
    pub fn failed(&self) -> Vec<Operation> {
        self.lock().failed.clone()
    }

    /// Sets the number of free sectors: what needs more fails (ENOSPC), and removed files free theirs, also
    /// if they are open. A name takes a sector. `None`: there is always space, and no space is reserved.
    pub fn set_free_sectors(&self, free: Option<usize>) {
        let mut inner = self.lock();
        inner.capacity = free.map(|free| inner.state.used_sectors() + free);
    }

    /// Sets the read that fails (EIO), counted from now on; `None`: no read fails.
    pub fn set_failing_read(&self, read: Option<u64>) {
        self.lock().failing_read = read;
    }

    /// Whether the read that fails has happened.
    pub fn read_has_failed(&self) -> bool {
        self.lock().failing_read.is_none()
    }
}

impl Inner {
    fn file(&mut self, file: usize) -> io::Result<&mut FileState> {
        self.state.files.get_mut(file).ok_or_else(|| Errno::BADF.into())
    }

    fn folder(&mut self, folder: usize) -> io::Result<&mut FolderState> {
        self.state.folders.get_mut(folder).ok_or_else(|| Errno::BADF.into())
    }

    fn entries(&self, folder: usize) -> Arc<Entries> {
        self.state.folders.get(folder).map(|folder| Arc::clone(&folder.visible)).unwrap_or_default()
    }

    /// Counts an operation, and decides its outcome.
    fn begin(&mut self, operation: impl FnOnce() -> Operation, needs_space: bool) -> Outcome {
        self.operations += 1;
        if self.recorded.is_none() && self.plan.is_none() {
            return Outcome::Done;
        }
        let operation = operation();
        let outcome = self.plan.as_mut().map_or(Outcome::Done, |plan| plan.next(&operation, needs_space));
        if matches!(outcome, Outcome::Failed(_) | Outcome::FailedPartly(_)) {
            self.failed.push(operation.clone());
        }
        // an open changes nothing: its crash point is that of the next operation
        if let Some(recorded) = &mut self.recorded
            && !matches!(operation, Operation::Open(_))
        {
            recorded.push((operation, CrashPoint::new(self.state.clone())));
        }
        outcome
    }

    /// Fails if the disk has no space for so many sectors more.
    fn take_sectors(&self, sectors: usize) -> io::Result<()> {
        let is_full = self.free_sectors().is_some_and(|free| sectors > free);
        if is_full { Err(Errno::NOSPC.into()) } else { Ok(()) }
    }

    /// How many bytes of a write the disk has space for.
    fn fitting(&mut self, file: usize, position: usize, length: usize) -> io::Result<usize> {
        let Some(free) = self.free_sectors() else { return Ok(length) };
        let sector = self.state.sector;
        let file = self.file(file)?;
        let mut fitting = length;
        while fitting > 0 && file.missing_sectors(sector, position, fitting) > free {
            // without its last sector, or a part of one
            fitting = ((position + fitting - 1) / sector * sector).saturating_sub(position);
        }
        if fitting == 0 && length > 0 { Err(Errno::NOSPC.into()) } else { Ok(fitting) }
    }

    /// The number of free sectors; `None`: any number.
    fn free_sectors(&self) -> Option<usize> {
        Some(self.capacity?.saturating_sub(self.state.used_sectors()))
    }

    fn read_fails(&mut self) -> io::Result<()> {
        match &mut self.failing_read {
            Some(0) => {
                self.failing_read = None;
                Err(Errno::IO.into())
            }
            Some(left) => {
                *left -= 1;
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn touched(&mut self, file: usize) {
        let now = self.operations;
        if let Some(file) = self.state.files.get_mut(file) {
            (file.modified, file.changed) = (now, now);
        }
    }
}

#[cfg(test)]
mod tests;
