//! Operations of a disk of memory, and how they fail when they are told to.

use std::fmt;
use std::io;
use std::sync::Arc;

use rustix::io::Errno;

/// What a disk was asked to do. Reading, listing and looking up are none: they change nothing and are not counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operation {
    /// A file is made.
    Create(Arc<str>),
    /// A file is opened for writing.
    Open(Arc<str>),
    /// Bytes are written: the file, the position, how many.
    Write(Arc<str>, u64, usize),
    /// A file is cut, or grows by a hole.
    SetSize(Arc<str>, u64),
    /// A file's blocks are allocated up to a size.
    Allocate(Arc<str>, u64),
    /// A file's contents and size are synced.
    Sync(Arc<str>),
    /// A file gets another name.
    Rename(Arc<str>, Arc<str>),
    /// A name is taken away.
    Remove(Arc<str>),
    /// A folder is made.
    MakeFolder(Arc<str>),
    /// A folder's names are synced.
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
            Self::Remove(name) => write!(f, "remove {name}"),
            Self::MakeFolder(name) => write!(f, "make folder {name}"),
            Self::SyncFolder => f.write_str("sync folder"),
        }
    }
}

/// How an operation fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FaultKind {
    /// The device fails. A write has done half of its work by then; of what a file's sync was for, the contents are lost.
    InputOutput,
    /// The disk is full: a write is short and the next one fails; what needs no space goes on working.
    NoSpace,
    /// A signal interrupts; the next try works.
    Interrupted,
    /// A write that lets a file grow does half of its work, and says so.
    ShortWrite,
    /// The process has ended: neither this operation nor any later one is done, and what was done stays in memory.
    Killed,
}

/// A fault that is to come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    /// The operation that fails, counted from 0 on since the fault was set.
    pub at: u64,
    /// How.
    pub kind: FaultKind,
    /// Whether every later operation fails, too (for [`FaultKind::Interrupted`]: every other; for [`FaultKind::Killed`] all
    /// of them do anyway).
    pub forever: bool,
}

/// What becomes of an operation.
#[derive(Debug)]
pub(super) enum Outcome {
    Done,
    /// A write does half of its work.
    Short,
    Failed(io::Error),
    /// A write does half of its work, and fails; a sync loses what it was for.
    Spoilt(io::Error),
}

/// A fault and how far it got.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    fault: Fault,
    count: u64,
    /// Whether the operation before this one was interrupted.
    was_interrupted: bool,
    /// Where the rest of a write begins that was short for want of space.
    rest: Option<(Arc<str>, u64)>,
}

impl Plan {
    pub(super) fn new(fault: Fault) -> Self {
        Self { fault, count: 0, was_interrupted: false, rest: None }
    }

    /// The fate of the next operation, which may need space on the disk.
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
            FaultKind::InputOutput if due => Outcome::Spoilt(Errno::IO.into()),
            FaultKind::NoSpace if is_rest(operation, rest.as_ref()) => Outcome::Failed(Errno::NOSPC.into()),
            FaultKind::NoSpace if due && needs_space => match operation {
                // a byte is there or not
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

    /// Whether the fault has had its chance.
    pub(super) fn is_over(&self) -> bool {
        self.count > self.fault.at
    }
}

fn is_rest(operation: &Operation, rest: Option<&(Arc<str>, u64)>) -> bool {
    matches!((operation, rest), (Operation::Write(name, position, _), Some(rest)) if (name, position) == (&rest.0, &rest.1))
}
