//! The owner and the permissions of what is created: those of the directory, so that a broker with a user of
//! its own can write to what root has made, and no other user reads a new file who cannot read the directory.
//! What replaces a file gets its owner and permissions at once after the creation.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, FileType, Gid, Mode, OFlags, Uid};
use rustix::io::Errno;

/// Creates a file, which must not exist.
pub(super) fn create(folder: BorrowedFd<'_>, name: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
    let parent = rustix::fs::fstat(folder)?;
    // its user reads and writes it also in a directory that cannot be listed
    let mode = Mode::from_raw_mode(0o600 | parent.st_mode & 0o044);
    let created = rustix::fs::openat(folder, name, flags | OFlags::CREATE | OFlags::EXCL, mode)?;
    if !give_owner(created.as_fd(), parent.st_uid, parent.st_gid)? {
        rustix::fs::fchmod(created.as_fd(), mode & !Mode::RWXG)?;
    }
    Ok(created)
}

/// The permissions of a file or directory, and the user and group to whom it belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileAccess {
    mode: u32,
    owner: u32,
    group: u32,
}

impl FileAccess {
    /// That of an entry, `.` for the directory; `None` if there is no such entry, and for a symbolic link.
    pub(super) fn of(folder: BorrowedFd<'_>, name: &str) -> io::Result<Option<Self>> {
        match rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::Symlink => Ok(None),
            Ok(stat) => Ok(Some(Self { mode: stat.st_mode & 0o777, owner: stat.st_uid, group: stat.st_gid })),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// The number of the user.
    #[cfg(feature = "inspect")]
    pub(crate) fn owner(self) -> u32 {
        self.owner
    }

    /// Gives it to a new file.
    pub(super) fn give_to(self, file: BorrowedFd<'_>) -> io::Result<()> {
        // the owner first: its permissions are not for another group
        let has_group = give_owner(file, self.owner, self.group)?;
        let mode = if has_group { self.mode } else { self.mode & !0o070 };
        if rustix::fs::fstat(file)?.st_mode & 0o777 != mode {
            rustix::fs::fchmod(file, Mode::from_raw_mode(mode))?;
        }
        Ok(())
    }
}

/// Gives a new file or directory another owner and group, or else the group. Only root can give it to another
/// user: for others its owner does not change, and `verify` reports it. Returns whether it has the group.
fn give_owner(new: BorrowedFd<'_>, owner: u32, group: u32) -> Result<bool, Errno> {
    let now = rustix::fs::fstat(new)?;
    let (owner, group) = (Uid::from_raw(owner), Gid::from_raw(group));
    if (Uid::from_raw(now.st_uid), Gid::from_raw(now.st_gid)) != (owner, group)
        && rustix::fs::fchown(new, Some(owner), Some(group)).is_err()
    {
        return Ok(rustix::fs::fchown(new, None, Some(group)).is_ok());
    }
    Ok(true)
}

/// Gives a new directory the owner and group of the one in which it is.
pub(super) fn give_owner_of(new: BorrowedFd<'_>, folder: BorrowedFd<'_>) -> Result<(), Errno> {
    let parent = rustix::fs::fstat(folder)?;
    give_owner(new, parent.st_uid, parent.st_gid).map(drop)
}
