//! The operations of an in-memory disk, and their faults.

use std::fmt;
use std::io;
use std::sync::Arc;

use rustix::io::Errno;

/// An operation on a disk. Reads, listings and queries change nothing and are not counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operation {
    /// Creates a file.
    Create(Arc<str>),
    /// Opens a file for writing.
    Open(Arc<str>),
    /// Writes bytes: the file, the position, the number of bytes.
    Write(Arc<str>, u64, usize),
    /// Truncates a file, or extends it by a hole.
    SetSize(Arc<str>, u64),
    /// Allocates a file's blocks up to a size.
    Allocate(Arc<str>, u64),
    /// Syncs a file's contents and size.
    Sync(Arc<str>),
    /// Renames a file.
    Rename(Arc<str>, Arc<str>),
    /// Gives a file another name.
    Link(Arc<str>, Arc<str>),
    /// Removes a name.
    Remove(Arc<str>),
    /// Creates a folder.
    MakeFolder(Arc<str>),
    /// Syncs a folder's names.
    SyncFolder,
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Create(name) => write!(f, "create {name}"),
            Self::Open(name) => write!(f, "open {name}"),
            Self::Write(name, position, length) => write!(f, "write {name} {position}+{length}"),
            Self::SetSize(name, size) => write!(f, "set size {name} {size}"),
            Self::Allocate(name, size) => write!(f, "allocate {name} {size}"),
            Self::Sync(name) => write!(f, "sync {name}"),
            Self::Rename(from, to) => write!(f, "rename {from} {to}"),
            Self::Link(from, to) => write!(f, "link {from} {to}"),
            Self::Remove(name) => write!(f, "remove {name}"),
            Self::MakeFolder(name) => write!(f, "make folder {name}"),
            Self::SyncFolder => f.write_str("sync folder"),
        }
    }
}

/// How an operation fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FaultKind {
    /// The device fails. A write has written half of its bytes. A sync of a file loses the contents to sync.
    InputOutput,
    /// The disk is full: a write is short and the next one fails. Operations that need no space work.
    NoSpace,
    /// A signal interrupts the operation; the next attempt works.
    Interrupted,
    /// A write that extends a file writes half of its bytes, and returns that number.
    ShortWrite,
    /// The process has ended: this operation and all later ones have no effect. The effects of earlier
    /// operations stay visible.
    Killed,
}

/// A fault to inject.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    /// The operation that fails, counted from 0 since the fault was set.
    pub at: u64,
    /// The kind of failure.
    pub kind: FaultKind,
    /// Whether every later operation also fails. For [`FaultKind::Interrupted`], every second one; for
    /// [`FaultKind::Killed`], all later operations fail in any case.
    pub forever: bool,
}

/// The outcome of an operation.
#[derive(Debug)]
pub(super) enum Outcome {
    Done,
    /// A write writes half of its bytes.
    Short,
    Failed(io::Error),
    /// A write writes half of its bytes and fails; a sync loses the data to sync.
    FailedPartly(io::Error),
}

/// A fault and its state.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    fault: Fault,
    count: u64,
    /// Whether the operation before this one was interrupted.
    was_interrupted: bool,
    /// The position of the rest of a write that was short because the disk is full.
    rest: Option<(Arc<str>, u64)>,
}

impl Plan {
    pub(super) fn new(fault: Fault) -> Self {
        Self { fault, count: 0, was_interrupted: false, rest: None }
    }

    /// The outcome of the next operation, which may need space on the disk.
    pub(super) fn next(&mut self, operation: &Operation, needs_space: bool) -> Outcome {
        let Fault { at, kind, forever } = self.fault;
        let due = self.count == at || forever && self.count > at;
        self.count += 1;
        let was_interrupted = std::mem::take(&mut self.was_interrupted);
        let rest = self.rest.take();
        let is_killed = kind == FaultKind::Killed && self.count > at;
        let is_write = matches!(operation, Operation::Write(..));
        match kind {
            FaultKind::Killed if is_killed => Outcome::Failed(Errno::IO.into()),
            FaultKind::InputOutput if due => Outcome::FailedPartly(Errno::IO.into()),
            FaultKind::NoSpace if is_rest(operation, rest.as_ref()) => Outcome::Failed(Errno::NOSPC.into()),
            FaultKind::NoSpace if due && needs_space => match operation {
                // a single byte cannot be written in part
                Operation::Write(name, position, length) if *length > 1 => {
                    self.rest = Some((Arc::clone(name), position + length.div_ceil(2) as u64));
                    Outcome::Short
                }
                _ => Outcome::Failed(Errno::NOSPC.into()),
            },
            FaultKind::Interrupted if due && !was_interrupted => {
                self.was_interrupted = true;
                Outcome::Failed(Errno::INTR.into())
            }
            FaultKind::ShortWrite if due && is_write && needs_space => Outcome::Short,
            _ => Outcome::Done,
        }
    }

    /// Whether the operation that the fault applies to has happened.
    pub(super) fn is_over(&self) -> bool {
        self.count > self.fault.at
    }
}

fn is_rest(operation: &Operation, rest: Option<&(Arc<str>, u64)>) -> bool {
    matches!((operation, rest), (Operation::Write(name, position, _), Some(rest)) if (name, position) == (&rest.0, &rest.1))
}
