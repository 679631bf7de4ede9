//! A disk of memory that crashes and fails, for tests: the writer uses it as if it were the system's.
//!
//! It knows what a reader sees, what is durable, and the changes that lie between (`state`). Every change is an
//! [`Operation`]; before each a [`CrashPoint`] can be kept, which gives the states in which the power may leave the disk
//! ([`Image`]). An operation can be told to fail ([`Fault`]). Nothing here asks a clock or a random number of the system.

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

/// How much of a real disk reaches it together or not at all.
const SECTOR: usize = 512;

/// A disk of memory. Clones are the same disk.
#[derive(Debug, Clone)]
pub struct MemoryDisk {
    inner: Arc<Mutex<Inner>>,
}

#[derive(Debug)]
struct Inner {
    state: State,
    operations: u64,
    plan: Option<Plan>,
    /// The read that fails, counted down.
    failing_read: Option<u64>,
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
    /// An empty disk. Sectors that are smaller than the 512 bytes of real ones tear more: what happens to a small log on
    /// them is what happens to a large one on a real disk.
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
            recorded: None,
            failed: Vec::new(),
            race: None,
        };
        Self { inner: Arc::new(Mutex::new(inner)) }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Its root, which calls itself by a path.
    pub fn directory(&self, path: impl AsRef<Path>) -> Directory {
        Directory::of_memory(Arc::new(MemoryFolder::root(self.clone())), path.as_ref().to_owned())
    }

    /// Another disk with the same contents, durable or not.
    #[must_use]
    pub fn fork(&self) -> Self {
        Self::holding(self.lock().state.clone())
    }

    /// The point at which the power goes now.
    pub fn crash_point(&self) -> CrashPoint {
        CrashPoint::new(self.lock().state.clone())
    }

    /// What is seen now, as an image: what a process leaves that is killed, where the system lives on.
    pub fn shown(&self) -> Image {
        let mut state = self.lock().state.clone();
        for file in &mut state.files {
            file.durable = Arc::clone(&file.shown);
            file.pending.clear();
        }
        for folder in &mut state.folders {
            folder.durable = Arc::clone(&folder.shown);
            folder.pending.clear();
        }
        CrashPoint::new(state).image(Survivors::All)
    }

    /// Replaces the contents of a file of the root, or makes it: durable, and no operation.
    pub fn put(&self, name: &str, contents: &[u8]) {
        let mut inner = self.lock();
        let State { sector, files, folders } = &mut inner.state;
        let file = FileState::holding(name.into(), Arc::new(contents.to_vec()), *sector);
        files.push(file);
        if let Some(root) = folders.first_mut() {
            for entries in [&mut root.shown, &mut root.durable] {
                Arc::make_mut(entries).insert(name.into(), Node::File(files.len() - 1));
            }
        }
    }

    /// Takes the name of a file of the root away: durably, and no operation.
    pub fn take(&self, name: &str) {
        let mut inner = self.lock();
        if let Some(root) = inner.state.folders.first_mut() {
            for entries in [&mut root.shown, &mut root.durable] {
                Arc::make_mut(entries).remove(name);
            }
        }
    }

    /// How many operations there were since the disk was made.
    pub fn operations(&self) -> u64 {
        self.lock().operations
    }

    /// Keeps every operation from now on, and the crash point before it.
    pub fn record(&self) {
        self.lock().recorded = Some(Vec::new());
    }

    /// What was kept since [`MemoryDisk::record`]; keeps no more. The point after the last operation is
    /// [`MemoryDisk::crash_point`].
    pub fn recorded(&self) -> Vec<(Operation, CrashPoint)> {
        self.lock().recorded.take().unwrap_or_default()
    }

    /// Lets an operation fail, counted from now on; `None`: none.
    pub fn set_fault(&self, fault: Option<Fault>) {
        self.lock().plan = fault.map(Plan::new);
    }

    /// Whether the operation that was to fail has come.
    pub fn fault_is_over(&self) -> bool {
        self.lock().plan.as_ref().is_some_and(Plan::is_over)
    }

    /// What has failed since the disk was made.
    pub fn failed(&self) -> Vec<Operation> {
        self.lock().failed.clone()
    }

    /// Lets a read fail (EIO), counted from now on; `None`: none.
    pub fn set_failing_read(&self, read: Option<u64>) {
        self.lock().failing_read = read;
    }

    /// Whether the read that was to fail has come.
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
        self.state.folders.get(folder).map(|folder| Arc::clone(&folder.shown)).unwrap_or_default()
    }

    /// Counts an operation, and decides what becomes of it.
    fn begin(&mut self, operation: impl FnOnce() -> Operation, needs_space: bool) -> Outcome {
        self.operations += 1;
        if self.recorded.is_none() && self.plan.is_none() {
            return Outcome::Done;
        }
        let operation = operation();
        let outcome = self.plan.as_mut().map_or(Outcome::Done, |plan| plan.next(&operation, needs_space));
        if matches!(outcome, Outcome::Failed(_) | Outcome::Spoilt(_)) {
            self.failed.push(operation.clone());
        }
        // opening changes nothing: the point before it is that before the next operation
        if let Some(recorded) = &mut self.recorded
            && !matches!(operation, Operation::Open(_))
        {
            recorded.push((operation, CrashPoint::new(self.state.clone())));
        }
        outcome
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
