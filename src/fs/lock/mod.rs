//! File locks that conflict with Kafka's own: `fcntl` locks that belong to an open file description (OFD).
//!
//! ```text
//!   data/.lock                     shared by all writers; a broker's is exclusive
//!   data/orders-0/.cordwood.lock   exclusive: one writer
//! ```
//!
//! `flock` does not work here: the JVM's lock is an `fcntl` lock, and the two do not conflict. A plain
//! `fcntl` lock does not work either: it belongs to the process, so a second handle of the process gets it
//! too, and closing any descriptor of the file drops it.
//!
//! Only the process that took a lock releases it: unlocking in a forked child would release the parent's
//! lock. A child's copy of the descriptor keeps the lock, so the copy is closed at the fork
//! ([`descriptors`]). The lock files are never removed: after a removal, two processes could hold the lock on
//! two files of the same name.

mod calls;
mod descriptors;
mod holder;

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use self::descriptors::Descriptor;
pub use self::descriptors::forks;
pub(crate) use self::descriptors::forks_now;
use super::{Directory, link, new_file};
use crate::error::{Error, IoAction, Result};

/// Which other locks a lock conflicts with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// All other locks.
    Exclusive,
    /// Exclusive locks.
    Shared,
}

/// A lock on a file, held until it is dropped or the process ends, independently of forked children.
///
/// A child of `fork` does not hold it (unless another language forks by the raw system call).
#[derive(Debug)]
pub struct Lock {
    /// `None` for an in-memory directory, which no other process can open.
    descriptor: Option<Descriptor>,
    path: PathBuf,
}

const ONE_WRITER: &str = "only one writer may use a log at a time";

impl Lock {
    /// Takes a lock that conflicts with every other one, on a file of the directory (or `../name`, of its
    /// parent), which is created if it is missing. Never waits.
    ///
    /// # Errors
    /// [`Error::Locked`] if another handle holds a lock, in this process or another; [`Error::Io`], also if
    /// the name is not that of a regular file.
    pub fn exclusive(directory: &Directory, name: &str) -> Result<Self> {
        Self::take(directory, name, Kind::Exclusive)
    }

    /// Takes a lock that conflicts with exclusive locks only, in the same way as [`Lock::exclusive`].
    ///
    /// # Errors
    /// As [`Lock::exclusive`].
    pub fn shared(directory: &Directory, name: &str) -> Result<Self> {
        Self::take(directory, name, Kind::Shared)
    }

    /// Like [`Lock::exclusive`], but waits up to 10 seconds for holders that release it soon. `rule`: what
    /// the lock is for, in the error.
    ///
    /// # Errors
    /// As [`Lock::exclusive`].
    pub fn wait_exclusive(directory: &Directory, name: &str, rule: &'static str) -> Result<Self> {
        let until = Instant::now() + Duration::from_secs(10);
        loop {
            match Self::exclusive(directory, name) {
                Err(Error::Locked { .. }) if Instant::now() < until => {
                    std::thread::sleep(Duration::from_millis(2));
                }
                Err(Error::Locked { file, found, .. }) => return Err(Error::Locked { file, found, rule }),
                done => return done,
            }
        }
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether this process holds it: false in a forked child.
    pub fn is_held(&self) -> bool {
        self.descriptor.as_ref().is_none_or(Descriptor::is_open)
    }

    fn take(directory: &Directory, name: &str, kind: Kind) -> Result<Self> {
        let path = directory.path_of(name);
        let Some((folder, name)) = directory.descriptor_and_name(name) else {
            return Ok(Self { descriptor: None, path });
        };
        let mut refused = None;
        let opened = Descriptor::open(|| match lock(folder, name, kind)? {
            Attempt::Taken(descriptor) => Ok(Some(descriptor)),
            Attempt::Refused(by) => {
                refused = Some(by);
                Ok(None)
            }
        });
        match opened {
            Ok(Some(descriptor)) => Ok(Self { descriptor: Some(descriptor), path }),
            Ok(None) => {
                let found = refused.map_or_else(|| holder::UNKNOWN.to_owned(), |by| by.description());
                Err(Error::Locked { file: path, found, rule: ONE_WRITER })
            }
            Err(error) => Err(Error::io(path, IoAction::Lock, error)),
        }
    }
}

/// A file in every data directory of a broker.
pub(crate) const META_PROPERTIES: &str = "meta.properties";
/// The name of the lock file in a data directory.
pub(crate) const DATA_DIRECTORY_LOCK: &str = ".lock";
/// The same file, relative to a partition directory.
const DATA_DIRECTORY_LOCK_FROM_PARTITION: &str = "../.lock";

/// Whether one of the files exists that every Kafka data directory contains.
pub(super) fn has_data_directory_file<E>(
    exists: impl Fn(&str) -> std::result::Result<bool, E>,
) -> std::result::Result<bool, E> {
    let files = [
        META_PROPERTIES,
        DATA_DIRECTORY_LOCK,
        "recovery-point-offset-checkpoint",
        "log-start-offset-checkpoint",
    ];
    for file in files {
        if exists(file)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether a folder (or its parent, with `../`) is a Kafka data directory.
pub(crate) fn is_data_directory(folder: &Directory, up: &str) -> Result<bool> {
    has_data_directory_file(|file| Ok(folder.identity_of(&format!("{up}{file}"))?.is_some()))
}

/// The locks of a partition's writer.
#[derive(Debug)]
pub struct PartitionLocks {
    data_directory: Option<Lock>,
    /// The inode of the data directory's lock file.
    inode: Option<u64>,
    partition: Lock,
}

impl PartitionLocks {
    /// The name of the lock file in the partition directory.
    pub const NAME: &str = ".cordwood.lock";

    /// Takes both locks: if the partition is in a Kafka data directory, a shared one on `../.lock`, which
    /// conflicts with a broker's lock and not with the locks of other partitions' writers; and an
    /// exclusive one on the partition's own file. Never waits.
    ///
    /// # Errors
    /// As [`Lock::exclusive`].
    pub fn take(directory: &Directory) -> Result<Self> {
        Self::take_with(directory, Lock::exclusive)
    }

    /// The same with a shared lock on the partition's own file, for a writer of one index: it conflicts with
    /// the partition's writer, and not with a writer of another index.
    ///
    /// # Errors
    /// As [`Lock::shared`].
    pub fn take_shared(directory: &Directory) -> Result<Self> {
        Self::take_with(directory, Lock::shared)
    }

    fn take_with(directory: &Directory, lock: impl FnOnce(&Directory, &str) -> Result<Lock>) -> Result<Self> {
        let (mut data_directory, mut inode) = (None, None);
        directory.refuse_link_between()?;
        if directory.descriptor().is_some() && is_data_directory(directory, "../")? {
            let (lock, found) = shared(directory)?;
            (data_directory, inode) = (Some(lock), found);
        }
        Ok(Self { data_directory, inode, partition: lock(directory, Self::NAME)? })
    }

    /// Fails if [`PartitionLocks::take`] would fail because a lock is held. Takes no lock and creates no
    /// file.
    ///
    /// # Errors
    /// As [`PartitionLocks::take`].
    pub fn probe(directory: &Directory) -> Result<()> {
        directory.refuse_link_between()?;
        if directory.descriptor().is_some() && is_data_directory(directory, "../")? {
            probe(directory, DATA_DIRECTORY_LOCK_FROM_PARTITION, Kind::Shared)?;
        }
        probe(directory, Self::NAME, Kind::Exclusive)
    }

    /// Checks whether the data directory's lock file still has its name, and takes the lock again if not: a
    /// broker that stops releases its lock and then deletes the file, which may have been locked in
    /// between.
    ///
    /// # Errors
    /// As [`PartitionLocks::take`].
    pub fn renew(&mut self, directory: &Directory) -> Result<()> {
        if self.data_directory.is_some()
            && directory.identity_of(DATA_DIRECTORY_LOCK_FROM_PARTITION)?.map(|found| found.inode)
                != self.inode
        {
            let (lock, inode) = shared(directory)?;
            (self.data_directory, self.inode) = (Some(lock), inode);
        }
        Ok(())
    }

    /// Whether this process holds them: false in a forked child.
    pub fn are_held(&self) -> bool {
        self.partition.is_held() && self.data_directory.as_ref().is_none_or(Lock::is_held)
    }
}

/// The lock that the writers of a data directory share, and the inode of its file.
fn shared(directory: &Directory) -> Result<(Lock, Option<u64>)> {
    let lock = Lock::shared(directory, DATA_DIRECTORY_LOCK_FROM_PARTITION)?;
    Ok((lock, directory.identity_of(DATA_DIRECTORY_LOCK_FROM_PARTITION)?.map(|found| found.inode)))
}

/// Whether an exclusive lock on the file is held, or cannot be queried. Takes no lock; the descriptor may be
/// read-only.
pub(super) fn is_exclusive(descriptor: BorrowedFd<'_>) -> bool {
    // an exclusive lock is one that conflicts with a shared one
    calls::is_refused(descriptor, Kind::Shared).unwrap_or(true)
}

/// Fails if a conflicting lock is held. A missing file has no lock.
fn probe(directory: &Directory, name: &str, kind: Kind) -> Result<()> {
    let path = directory.path_of(name);
    let Some((folder, name)) = directory.descriptor_and_name(name) else { return Ok(()) };
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let probed = match rustix::fs::openat(folder, name, flags, Mode::empty()) {
        Err(Errno::NOENT) => return Ok(()),
        Err(error) => Err(error.into()),
        Ok(descriptor) => is_refused(descriptor.as_fd(), kind),
    };
    match probed.map_err(|error| Error::io(&path, IoAction::QueryLock, error))? {
        None => Ok(()),
        Some(holder) => Err(Error::Locked { file: path, found: holder.description(), rule: ONE_WRITER }),
    }
}

/// The holder of a conflicting lock.
fn is_refused(descriptor: BorrowedFd<'_>, kind: Kind) -> io::Result<Option<holder::Holder>> {
    if !calls::is_refused(descriptor, kind)? {
        return Ok(None);
    }
    let opened = rustix::fs::fstat(descriptor)?;
    Ok(Some(holder_of(descriptor, &opened, kind)))
}

fn holder_of(descriptor: BorrowedFd<'_>, opened: &Stat, kind: Kind) -> holder::Holder {
    let process = calls::holder(descriptor, kind);
    holder::Holder { kind, device: opened.st_dev, inode: opened.st_ino, process }
}

enum Attempt {
    Taken(OwnedFd),
    Refused(holder::Holder),
}

fn lock(folder: BorrowedFd<'_>, name: &str, kind: Kind) -> io::Result<Attempt> {
    // a shared lock needs no write permission
    let access = if kind == Kind::Exclusive { OFlags::RDWR } else { OFlags::RDONLY };
    let flags = access | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    // the file may have been deleted between the two calls: a lock on a file without the name has no effect
    for _ in 0..100 {
        let opened = match rustix::fs::openat(folder, name, flags, Mode::empty()) {
            Err(Errno::NOENT) => new_file::create(folder, name, flags),
            opened => opened,
        };
        let descriptor = match opened {
            Ok(descriptor) => descriptor,
            // another process has created it
            Err(Errno::EXIST) => continue,
            Err(Errno::LOOP) => return Err(link::not_followed()),
            Err(error) => return Err(error.into()),
        };
        let opened = rustix::fs::fstat(&descriptor)?;
        if FileType::from_raw_mode(opened.st_mode) != FileType::RegularFile {
            return Err(io::Error::other("not a regular file"));
        }
        if !calls::set(descriptor.as_fd(), kind)? {
            return Ok(Attempt::Refused(holder_of(descriptor.as_fd(), &opened, kind)));
        }
        match rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(named) if (named.st_dev, named.st_ino) == (opened.st_dev, opened.st_ino) => {
                return Ok(Attempt::Taken(descriptor));
            }
            Ok(_) | Err(Errno::NOENT) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(io::Error::other("another process deletes the lock file repeatedly"))
}
