//! The seam to the disk. Everything that asks the system for a file passes here.
//!
//! ```text
//!   Directory ──open_file──▶ SystemFile ──▶ FileBytes         reading: writes nothing
//!       │
//!       ├──create, open_writable──▶ WritableFile
//!       └──rename, remove, sync                               what only a writer calls
//!
//!   Folder, Handle      what these ask for: the system's files (os), or a disk of memory that crashes (mem)
//! ```

mod directory;
mod file;
mod listing;
mod lock;
#[cfg(feature = "crash-disk")]
pub mod mem;
pub mod names;
mod os;
pub mod seeded_bugs;
mod staged;
mod writable;

use std::fmt::Debug;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use memmap2::Mmap;

pub use directory::Directory;
pub use file::{FileBytes, FileIdentity, SystemFile};
pub use listing::SegmentFile;
pub(crate) use lock::{DATA_DIRECTORY_LOCK, META_PROPERTIES, forks, forks_now, is_data_directory};
pub use lock::{Lock, PartitionLocks};
pub(crate) use os::{is_out_of_descriptors, max_open_files};
pub use rustix::fs::FileType;
pub(crate) use staged::STAGED;
pub use staged::Staged;
pub use writable::WritableFile;

/// How a file is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Access {
    /// For reading.
    Read,
    /// For reading and writing; it must be there.
    Write,
    /// For reading and writing; it must not be there yet.
    Create,
}

/// What a directory is asked for. Names are single components, or `../name` for a file beside the directory.
trait Folder: Debug + Send + Sync {
    /// Names and types, in the system's order.
    fn entries(&self) -> io::Result<Vec<(String, FileType)>>;
    /// Opens a regular file; never blocks, follows no symbolic link.
    fn open(&self, name: &str, access: Access) -> io::Result<Arc<dyn Handle>>;
    /// Which file has a name; `None` where none has.
    fn identity_of(&self, name: &str) -> io::Result<Option<FileIdentity>>;
    /// Whether another process (or another handle) says by a lock that it may shorten files.
    fn is_locked(&self) -> bool;
    /// Gives a file another name, which it takes from any file that has it.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    /// Takes a file's name away.
    fn remove(&self, name: &str) -> io::Result<()>;
    /// The directory of a name, made if it is not there.
    fn folder(&self, name: &str) -> io::Result<Arc<dyn Folder>>;
    /// Removes the empty directory of a name.
    fn remove_folder(&self, name: &str) -> io::Result<()>;
    /// Makes names that were given and taken away durable.
    fn sync(&self) -> io::Result<()>;
    /// The directory that holds this one; `None` where there is none to be had.
    fn parent(&self) -> io::Result<Option<Arc<dyn Folder>>>;
    /// What the system knows it by; `None` for one of memory, where nobody else can be locked out.
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

/// What an open file is asked for.
trait Handle: Debug + Send + Sync {
    /// Which file it is, and its size, now.
    fn identity(&self) -> io::Result<FileIdentity>;
    /// Reads from a position on, as `pread`: short at the end of the file.
    fn read_at(&self, buffer: &mut [u8], position: u64) -> io::Result<usize>;
    /// Writes from a position on, as `pwrite`: may write less than it was given.
    fn write_at(&self, bytes: &[u8], position: u64) -> io::Result<usize>;
    /// Cuts the file, or lets it grow by zeros without blocks.
    fn set_size(&self, size: u64) -> io::Result<()>;
    /// Lets the file grow to `size` by zeros whose blocks are really there.
    fn allocate(&self, size: u64) -> io::Result<()>;
    /// Has blocks ready for `length` bytes from a position on, behind the end of the file too, whose size stays. Only
    /// advice; whether it was taken.
    fn reserve(&self, position: u64, length: u64) -> bool {
        let _ = (position, length);
        false
    }
    /// Makes contents and size durable (`fdatasync`).
    fn sync(&self) -> io::Result<()>;
    /// Forgets what the system keeps of the file in memory from a position on: what is read next is what the disk has.
    fn forget_cached(&self, position: u64) -> io::Result<()>;
    /// Sets the time of the last modification: seconds and nanoseconds since the epoch.
    fn set_modified(&self, time: (i64, i64)) -> io::Result<()>;
    /// Maps the first `length` bytes for reading; `None` where that cannot be.
    fn map(&self, length: usize) -> Option<Mmap>;
}
