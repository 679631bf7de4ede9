//! The owner and the permissions of what is created: those of the directory, so that a broker with a user of
//! its own can write to what root has made, and nobody reads records who could not read them before.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, FileType, Gid, Mode, OFlags, Stat, Uid};
use rustix::io::Errno;

/// Creates a file, which must not exist.
pub(super) fn create(folder: BorrowedFd<'_>, name: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
    let parent = rustix::fs::fstat(folder)?;
    let mode = Mode::from_raw_mode(parent.st_mode & 0o644);
    let created = rustix::fs::openat(folder, name, flags | OFlags::CREATE | OFlags::EXCL, mode)?;
    give_owner(created.as_fd(), &parent)?;
    Ok(created)
}

/// Gives a new file or directory the owner and group that another one has. Only root can: for others nothing
/// changes, and `verify` reports it.
pub(super) fn give_owner(new: BorrowedFd<'_>, like: &Stat) -> Result<(), Errno> {
    let now = rustix::fs::fstat(new)?;
    if (now.st_uid, now.st_gid) != (like.st_uid, like.st_gid) {
        let (owner, group) = (Uid::from_raw(like.st_uid), Gid::from_raw(like.st_gid));
        let _ = rustix::fs::fchown(new, Some(owner), Some(group));
    }
    Ok(())
}

/// Gives a new file the permissions and the owner of the one that it will replace, if that exists.
pub(super) fn copy_access(folder: BorrowedFd<'_>, replaced: &str, new: &str) -> io::Result<()> {
    let replaced = match rustix::fs::statat(folder, replaced, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile => stat,
        Ok(_) | Err(Errno::NOENT) => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let new = rustix::fs::openat(folder, new, flags, Mode::empty())?;
    rustix::fs::fchmod(&new, Mode::from_raw_mode(replaced.st_mode & 0o777))?;
    Ok(give_owner(new.as_fd(), &replaced)?)
}
