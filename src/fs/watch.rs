//! Notification of changes in directories (inotify).

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::inotify::{self, CreateFlags, WatchFlags};

/// A descriptor from which changes of files in these directories are read, as `struct inotify_event`, and the
/// number of each directory in them. Reading does not wait.
///
/// # Errors
/// Those of `inotify_init1` and `inotify_add_watch`: the system allows a limited number of each.
pub fn watch_directories<P: AsRef<Path>>(directories: &[P]) -> io::Result<(OwnedFd, Vec<i32>)> {
    let descriptor = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
    let changes = WatchFlags::MODIFY | WatchFlags::CREATE | WatchFlags::DELETE | WatchFlags::MOVE;
    let add = |directory: &P| Ok(inotify::add_watch(&descriptor, directory.as_ref(), changes)?);
    let numbers = directories.iter().map(add).collect::<io::Result<_>>()?;
    Ok((descriptor, numbers))
}
