//! Access to the disk. All other modules open files through this one.
//!
//! ```text
//!   Directory ──open_file──▶ SystemFile ──▶ FileBytes         reading: writes nothing
//!       │
//!       ├──create, open_writable──▶ WritableFile
//!       └──rename, remove, sync                               called by writers only
//!
//!   Folder, Handle      the traits behind these: the system's files (os), or an in-memory disk that crashes (mem)
//! ```

mod directory;
mod file;
mod link;
mod listing;
mod lock;
#[doc(hidden)]
pub mod mem;
pub mod names;
mod new_file;
mod os;
mod prefetch;
mod staged;
#[cfg(feature = "binding")]
#[doc(hidden)]
pub mod watch;
mod writable;

use std::fmt::Debug;
use std::io;
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::sync::Arc;

use memmap2::Mmap;

pub use directory::Directory;
pub(crate) use file::are_zero;
pub use file::{FileBytes, FileIdentity, SystemFile};
#[cfg(feature = "inspect")]
pub(crate) use link::is_of_link;
pub use listing::SegmentFile;
#[doc(hidden)]
pub use lock::forks;
pub(crate) use lock::{DATA_DIRECTORY_LOCK, META_PROPERTIES, forks_now, is_data_directory};
pub use lock::{Lock, PartitionLocks};
pub(crate) use new_file::FileAccess;
pub(crate) use os::{is_out_of_descriptors, max_open_files};
pub(crate) use prefetch::prefetch;
#[cfg(feature = "arrow")]
pub(crate) use prefetch::prefetch_two_lines;
pub use rustix::fs::FileType;
pub(crate) use staged::STAGED;
pub use staged::Staged;
pub use writable::WritableFile;

/// How a file is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Access {
    /// For reading.
    Read,
    /// For reading and writing; the file must exist.
    Write,
    /// For reading and writing; the file must not exist.
    Create,
}

/// Operations on a directory. A name is a single path component, or `../name` for a file in the parent
/// directory.
trait Folder: Debug + Send + Sync {
    /// Names and types, in the system's order.
    fn entries(&self) -> io::Result<Vec<(String, FileType)>>;
    /// Opens a regular file. Never blocks and does not follow symbolic links.
    fn open(&self, name: &str, access: Access) -> io::Result<Arc<dyn Handle>>;
    /// The identity of the file with this name; `None` if there is none.
    fn identity_of(&self, name: &str) -> io::Result<Option<FileIdentity>>;
    /// The permissions and the owner of an entry, `.` for the directory; `None` if there is no such entry,
    /// for a symbolic link, and in memory.
    fn access_of(&self, _name: &str) -> io::Result<Option<FileAccess>> {
        Ok(None)
    }
    /// Whether another process (or another handle) holds a lock under which it may shorten files.
    fn is_locked(&self) -> bool;
    /// Whether another process than a writer holds the lock of the data directory.
    fn is_locked_by_broker(&self) -> bool {
        false
    }
    /// Renames a file, and replaces any file with the new name.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    /// Gives a file a second name in another folder, which must not have the name.
    fn link(&self, from: &str, folder: &dyn Folder, to: &str) -> io::Result<()>;
    /// Removes a file.
    fn remove(&self, name: &str) -> io::Result<()>;
    /// Opens the directory with this name; `None` if there is none.
    fn existing_folder(&self, name: &str) -> io::Result<Option<Arc<dyn Folder>>>;
    /// Opens the directory with this name, which is created if it does not exist.
    fn folder(&self, name: &str) -> io::Result<Arc<dyn Folder>>;
    /// Removes the empty directory with this name.
    fn remove_folder(&self, name: &str) -> io::Result<()>;
    /// Makes created, renamed and removed names durable.
    fn sync(&self) -> io::Result<()>;
    /// The parent directory; `None` for an in-memory one.
    fn parent(&self) -> io::Result<Option<Arc<dyn Folder>>>;
    /// Its descriptor; `None` for an in-memory directory, which no other process can lock.
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
    /// The descriptor of the directory with the file, and the file's name there.
    fn descriptor_and_name<'a>(&'a self, _name: &'a str) -> Option<(BorrowedFd<'a>, &'a str)> {
        None
    }
    /// Whether a data directory has a symbolic link to it, through which it was opened.
    fn is_linked(&self) -> bool {
        false
    }
    /// Whether the directory to which that link leads is in a data directory, too.
    fn is_linked_between_data_directories(&self) -> io::Result<bool> {
        Ok(false)
    }
    /// Its in-memory disk and its number there; `None` for a directory of the system.
    fn in_memory(&self) -> Option<(&mem::MemoryDisk, usize)> {
        None
    }
}

/// Operations on an open file.
trait Handle: Debug + Send + Sync {
    /// The identity of the file, with its current size.
    fn identity(&self) -> io::Result<FileIdentity>;
    /// The current size in bytes.
    fn size(&self) -> io::Result<u64> {
        Ok(self.identity()?.size)
    }
    /// Whether the path, which no link is followed at the end of, leads to this file.
    fn is_at(&self, _path: &Path) -> bool {
        false
    }
    /// Whether the file has no name any more: it takes disk space only as long as it is open or mapped.
    fn is_deleted(&self) -> bool {
        false
    }
    /// Reads at a position, like `pread`: short at the end of the file.
    fn read_at(&self, buffer: &mut [u8], position: u64) -> io::Result<usize>;
    /// The first position at or after this one that may be outside a hole; `None` if the rest of the file is
    /// a hole, or if the position is at the end.
    fn next_data(&self, position: u64) -> io::Result<Option<u64>> {
        Ok(Some(position))
    }
    /// Writes at a position, like `pwrite`: may write fewer bytes than given.
    fn write_at(&self, bytes: &[u8], position: u64) -> io::Result<usize>;
    /// Truncates the file, or extends it by zeros without blocks.
    fn set_size(&self, size: u64) -> io::Result<()>;
    /// Extends the file to `size` by zeros with allocated blocks.
    fn allocate(&self, size: u64) -> io::Result<()>;
    /// Allocates blocks for `length` bytes at a position, also beyond the end of the file, without changing
    /// its size. The call may be ignored; returns whether it succeeded.
    fn reserve(&self, position: u64, length: u64) -> bool {
        let _ = (position, length);
        false
    }
    /// Begins to write bytes to the disk, so that a later sync waits less. The call may be ignored.
    fn write_back(&self, position: u64, length: u64) {
        let _ = (position, length);
    }
    /// Makes contents and size durable (`fdatasync`).
    fn sync(&self) -> io::Result<()>;
    /// Drops the file's page cache at and after a position, so that the next read is from the disk.
    fn forget_cached(&self, position: u64) -> io::Result<()>;
    /// Sets the permissions, and the owner if the process may.
    fn set_access(&self, _access: FileAccess) -> io::Result<()> {
        Ok(())
    }
    /// Sets the time of the last modification: seconds and nanoseconds since the epoch.
    fn set_modified(&self, time: (i64, i64)) -> io::Result<()>;
    /// Maps the first `length` bytes for reading; `None` if that is not possible.
    fn map(&self, length: usize) -> Option<Mmap>;
}
