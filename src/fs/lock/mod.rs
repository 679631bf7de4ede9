//! Locks on files, of the kind that Kafka's own lock sees: `fcntl` locks that belong to an open file (OFD).
//!
//! ```text
//!   data/.lock                     shared by every writer here; a broker's is exclusive
//!   data/orders-0/.cordwood.lock   exclusive: one writer
//! ```
//!
//! `flock` would not do: the JVM's lock is an `fcntl` one, and the two do not see each other. Nor would a plain `fcntl` lock:
//! it is the process's, so a second handle of the process gets it too, and it goes when any descriptor of the file closes.
//!
//! A lock is given back by the process that took it, and by no other: unlocking in a forked child would take the parent's
//! lock. A child's copy of the descriptor keeps the lock, so it is closed as soon as there is a child ([`descriptors`]).
//! The files stay for ever: whoever deletes one lets two others hold "the" lock.

mod calls;
mod descriptors;
mod holder;

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;

use self::descriptors::Descriptor;
pub(crate) use self::descriptors::{forks, forks_now};
use super::Directory;
use crate::error::{Error, IoAction, Result};

/// What a lock keeps out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Every other lock.
    Exclusive,
    /// Exclusive ones.
    Shared,
}

/// A lock on a file, held until it is dropped or the process ends, whatever becomes of its forked children.
///
/// A child (by `fork`; not one that another language makes by the bare system call) does not hold it.
#[derive(Debug)]
pub struct Lock {
    /// None for a directory of memory, which nobody else sees.
    descriptor: Option<Descriptor>,
    path: PathBuf,
}

impl Lock {
    /// Takes a lock that keeps out every other one, on a file of the directory (or `../name`, beside it), which is made if it
    /// is missing. Never waits.
    ///
    /// # Errors
    /// [`Error::Locked`] where somebody holds one, this process included; [`Error::Io`], also where the name is that of a
    /// link or of anything but a regular file.
    pub fn exclusive(directory: &Directory, name: &str) -> Result<Self> {
        Self::take(directory, name, Kind::Exclusive)
    }

    /// Takes a lock that keeps out exclusive ones only, as [`Lock::exclusive`] does.
    ///
    /// # Errors
    /// As [`Lock::exclusive`].
    pub fn shared(directory: &Directory, name: &str) -> Result<Self> {
        Self::take(directory, name, Kind::Shared)
    }

    /// [`Lock::exclusive`], but waits up to 10 seconds for others that hold it for a moment.
    ///
    /// # Errors
    /// As [`Lock::exclusive`].
    pub fn wait_exclusive(directory: &Directory, name: &str) -> Result<Self> {
        let until = Instant::now() + Duration::from_secs(10);
        loop {
            match Self::exclusive(directory, name) {
                Err(Error::Locked { .. }) if Instant::now() < until => {
                    std::thread::sleep(Duration::from_millis(2));
                }
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
        let Some(folder) = directory.descriptor() else { return Ok(Self { descriptor: None, path }) };
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
                let found = refused.map_or_else(|| holder::UNKNOWN.to_owned(), |by| by.words());
                Err(Error::Locked { file: path, found })
            }
            Err(error) => Err(Error::io(path, IoAction::Lock, error)),
        }
    }
}

/// In every data directory of a broker.
pub(crate) const META_PROPERTIES: &str = "meta.properties";
/// The name of the lock's file in a data directory.
pub(crate) const DATA_DIRECTORY_LOCK: &str = ".lock";
/// Seen from a partition directory.
const DATA_DIRECTORYS: &str = "../.lock";

/// Whether a folder (or with `../` the one that holds it) is a data directory of Kafka's: then it holds one of these.
pub(crate) fn is_data_directory(folder: &Directory, up: &str) -> Result<bool> {
    let marks = [
        META_PROPERTIES,
        DATA_DIRECTORY_LOCK,
        "recovery-point-offset-checkpoint",
        "log-start-offset-checkpoint",
    ];
    for mark in marks {
        if folder.identity_of(&format!("{up}{mark}"))?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The locks of a partition's one writer.
#[derive(Debug)]
pub struct PartitionLocks {
    data_directory: Option<Lock>,
    /// Which file the data directory's lock is on.
    inode: Option<u64>,
    partition: Lock,
}

impl PartitionLocks {
    /// The name of the lock's file in the partition directory.
    pub const NAME: &str = ".cordwood.lock";

    /// Takes both: a shared one on `../.lock` where the directory lies in a data directory of Kafka's, which keeps a broker
    /// out and lets other partitions have writers; and an exclusive one on the partition's own. Never waits.
    ///
    /// # Errors
    /// As [`Lock::exclusive`].
    pub fn take(directory: &Directory) -> Result<Self> {
        let (mut data_directory, mut inode) = (None, None);
        if directory.descriptor().is_some() && is_data_directory(directory, "../")? {
            let (lock, found) = shared(directory)?;
            (data_directory, inode) = (Some(lock), found);
        }
        Ok(Self { data_directory, inode, partition: Lock::exclusive(directory, Self::NAME)? })
    }

    /// Fails where [`PartitionLocks::take`] would because somebody holds one of the locks. Takes none, and makes no file.
    ///
    /// # Errors
    /// As [`PartitionLocks::take`].
    pub fn probe(directory: &Directory) -> Result<()> {
        if directory.descriptor().is_some() && is_data_directory(directory, "../")? {
            probe(directory, DATA_DIRECTORYS, Kind::Shared)?;
        }
        probe(directory, Self::NAME, Kind::Exclusive)
    }

    /// Looks once more whether the data directory's lock still has its name, and takes it again where not: a broker that
    /// stops gives its lock back, and then deletes the file, which may be the one that was locked in between.
    ///
    /// # Errors
    /// As [`PartitionLocks::take`].
    pub fn renew(&mut self, directory: &Directory) -> Result<()> {
        if self.data_directory.is_some()
            && directory.identity_of(DATA_DIRECTORYS)?.map(|found| found.inode) != self.inode
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

/// The lock that writers in a data directory share, and which file it is on.
fn shared(directory: &Directory) -> Result<(Lock, Option<u64>)> {
    let lock = Lock::shared(directory, DATA_DIRECTORYS)?;
    Ok((lock, directory.identity_of(DATA_DIRECTORYS)?.map(|found| found.inode)))
}

/// Whether somebody holds an exclusive lock on the file, or none can be asked for. Takes none; the descriptor need not be
/// one to write with.
pub(super) fn is_exclusive(descriptor: BorrowedFd<'_>) -> bool {
    // what keeps a shared lock out
    calls::is_refused(descriptor, Kind::Shared).unwrap_or(true)
}

/// Fails where somebody holds a lock that keeps this one out. A missing file is nobody's.
fn probe(directory: &Directory, name: &str, kind: Kind) -> Result<()> {
    let path = directory.path_of(name);
    let Some(folder) = directory.descriptor() else { return Ok(()) };
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let probed = match rustix::fs::openat(folder, name, flags, Mode::empty()) {
        Err(Errno::NOENT) => return Ok(()),
        Err(error) => Err(error.into()),
        Ok(descriptor) => is_refused(descriptor.as_fd(), kind),
    };
    match probed.map_err(|error| Error::io(&path, IoAction::QueryLock, error))? {
        None => Ok(()),
        Some(holder) => Err(Error::Locked { file: path, found: holder.words() }),
    }
}

/// Who keeps a lock out.
fn is_refused(descriptor: BorrowedFd<'_>, kind: Kind) -> io::Result<Option<holder::Holder>> {
    if !calls::is_refused(descriptor, kind)? {
        return Ok(None);
    }
    let opened = rustix::fs::fstat(descriptor)?;
    let process = calls::holder(descriptor, kind);
    Ok(Some(holder::Holder { kind, file: (opened.st_dev, opened.st_ino), process }))
}

enum Attempt {
    Taken(OwnedFd),
    Refused(holder::Holder),
}

fn lock(folder: BorrowedFd<'_>, name: &str, kind: Kind) -> io::Result<Attempt> {
    // a shared one needs no right to write
    let access = if kind == Kind::Exclusive { OFlags::RDWR } else { OFlags::RDONLY };
    let flags =
        access | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    // whoever deletes lock files may have taken this one away between the two calls: a lock on a file without the name
    // keeps nobody out
    for _ in 0..100 {
        let descriptor = match rustix::fs::openat(folder, name, flags, Mode::from_raw_mode(0o644)) {
            Ok(descriptor) => descriptor,
            Err(Errno::LOOP) => return Err(io::Error::other("a symbolic link, which is not followed")),
            Err(error) => return Err(error.into()),
        };
        let opened = rustix::fs::fstat(&descriptor)?;
        if FileType::from_raw_mode(opened.st_mode) != FileType::RegularFile {
            return Err(io::Error::other("not a regular file"));
        }
        if !calls::set(descriptor.as_fd(), kind)? {
            let process = calls::holder(descriptor.as_fd(), kind);
            return Ok(Attempt::Refused(holder::Holder {
                kind,
                file: (opened.st_dev, opened.st_ino),
                process,
            }));
        }
        match rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(named) if (named.st_dev, named.st_ino) == (opened.st_dev, opened.st_ino) => {
                return Ok(Attempt::Taken(descriptor));
            }
            Ok(_) | Err(Errno::NOENT) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(io::Error::other("somebody goes on deleting the lock's file"))
}
