//! System calls that rustix has no safe wrapper for.

use std::ffi::{c_int, c_short};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use super::Kind;

/// Takes a lock on the whole file, without waiting; false if a conflicting lock is held.
pub(super) fn set(descriptor: BorrowedFd<'_>, kind: Kind) -> io::Result<bool> {
    match call(descriptor, libc::F_OFD_SETLK, kind) {
        Ok(_) => Ok(true),
        Err(error) if matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EACCES)) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Releases the lock, for every copy of the descriptor.
pub(super) fn unlock(descriptor: BorrowedFd<'_>) -> io::Result<()> {
    call_for(descriptor, libc::F_OFD_SETLK, libc::F_UNLCK).map(|_| ())
}

/// Whether a conflicting lock is held.
pub(super) fn is_refused(descriptor: BorrowedFd<'_>, kind: Kind) -> io::Result<bool> {
    let found = call(descriptor, libc::F_OFD_GETLK, kind)?;
    Ok(c_int::from(found.l_type) != libc::F_UNLCK)
}

/// The process that holds a conflicting lock. `None` if there is none any longer, or if it is an OFD lock,
/// which belongs to no process.
pub(super) fn holder(descriptor: BorrowedFd<'_>, kind: Kind) -> Option<i32> {
    let found = call(descriptor, libc::F_OFD_GETLK, kind).ok()?;
    (c_int::from(found.l_type) != libc::F_UNLCK && found.l_pid > 0).then_some(found.l_pid)
}

/// Registers three functions that are called around every `fork` of this process.
pub(super) fn at_fork(
    before: extern "C" fn(),
    after_in_parent: extern "C" fn(),
    after_in_child: extern "C" fn(),
) -> io::Result<()> {
    #[expect(unsafe_code, reason = "pthread_atfork; S4 of SAFETY.md")]
    // SAFETY: S4: the three are functions of this library, which Python and Rust never unload. They do not
    // unwind. The child's function only closes descriptors and releases a mutex that the forking thread
    // holds.
    let error = unsafe { libc::pthread_atfork(Some(before), Some(after_in_parent), Some(after_in_child)) };
    if error == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(error)) }
}

fn call(descriptor: BorrowedFd<'_>, command: c_int, kind: Kind) -> io::Result<libc::flock> {
    let kind = match kind {
        Kind::Exclusive => libc::F_WRLCK,
        Kind::Shared => libc::F_RDLCK,
    };
    call_for(descriptor, command, kind)
}

fn call_for(descriptor: BorrowedFd<'_>, command: c_int, kind: c_int) -> io::Result<libc::flock> {
    let mut lock = libc::flock {
        l_type: c_short::try_from(kind).map_err(io::Error::other)?,
        l_whence: c_short::try_from(libc::SEEK_SET).map_err(io::Error::other)?,
        l_start: 0,
        l_len: 0, // to the end of the file, also if it grows
        l_pid: 0,
    };
    loop {
        #[expect(unsafe_code, reason = "fcntl with OFD locks; S3 of SAFETY.md")]
        // SAFETY: S3: the descriptor is borrowed, so it is open. The commands read and write one `flock`,
        // which nothing else refers to during the call.
        let answer = unsafe { libc::fcntl(descriptor.as_raw_fd(), command, &raw mut lock) };
        if answer >= 0 {
            return Ok(lock);
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}
