//! Files and directories of the operating system.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::sync::Arc;

use memmap2::Mmap;
use rustix::fs::{FileType, Mode, OFlags, Timespec, Timestamps};
use rustix::io::Errno;

use super::{Access, FileAccess, FileIdentity, Folder, Handle, PartitionLocks, link, lock, new_file};

#[cfg(not(target_os = "linux"))]
compile_error!("cordwood reads and writes Kafka's files with calls that only Linux has; build it on Linux");

/// Flags of every open: it never blocks on a FIFO, and does not acquire a controlling terminal.
const FILE_FLAGS: OFlags = OFlags::NONBLOCK.union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

/// Flags of every open of a directory.
const FOLDER_FLAGS: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// The current soft limit on this process's descriptors.
pub(crate) fn max_open_files() -> usize {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    limit.current.and_then(|current| usize::try_from(current).ok()).unwrap_or(usize::MAX)
}

/// Whether an open failed because the process or the system has no descriptor left.
pub(crate) fn is_out_of_descriptors(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::MFILE | Errno::NFILE))
}

/// Whether there is an entry of any type.
fn exists_at(folder: BorrowedFd<'_>, path: impl rustix::path::Arg) -> io::Result<bool> {
    match rustix::fs::statat(folder, path, rustix::fs::AtFlags::SYMLINK_NOFOLLOW) {
        Ok(_) => Ok(true),
        Err(Errno::NOENT) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// A directory of the system, held open by its descriptor.
#[derive(Debug)]
pub(super) struct SystemFolder {
    descriptor: OwnedFd,
    /// The data directory in which the path has a symbolic link to this directory: a broker follows it, so
    /// that the parent directory of the link's target is not that of the partition.
    linked_in: Option<OwnedFd>,
}

impl SystemFolder {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let descriptor = rustix::fs::open(path, FOLDER_FLAGS, Mode::empty())?;
        Ok(Self { descriptor, linked_in: Self::linked_in(path)? })
    }

    fn linked_in(path: &Path) -> io::Result<Option<OwnedFd>> {
        // a slash at the end of a path would follow the link
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return Ok(None) };
        if !parent.join(name).symlink_metadata()?.is_symlink() {
            return Ok(None);
        }
        // opened last: the permission to read the folder is needed only if it is a data directory
        if !lock::has_data_directory_file(|file| exists_at(rustix::fs::CWD, parent.join(file)))? {
            return Ok(None);
        }
        Ok(Some(rustix::fs::open(parent, FOLDER_FLAGS, Mode::empty())?))
    }

    fn open_folder(&self, name: &str) -> io::Result<Self> {
        let descriptor = match &self.linked_in {
            Some(parent) if name == ".." => parent.try_clone()?,
            // `..` may be a link; a folder of the partition may not
            None if name == ".." => rustix::fs::openat(&self.descriptor, name, FOLDER_FLAGS, Mode::empty())?,
            _ => {
                let flags = FOLDER_FLAGS | OFlags::NOFOLLOW;
                rustix::fs::openat(&self.descriptor, name, flags, Mode::empty())?
            }
        };
        Ok(Self { descriptor, linked_in: None })
    }

    /// The folder of a file, and its name there.
    fn at<'a>(&'a self, name: &'a str) -> (BorrowedFd<'a>, &'a str) {
        match (&self.linked_in, name.strip_prefix("../")) {
            (Some(parent), Some(name)) => (parent.as_fd(), name),
            _ => (self.descriptor.as_fd(), name),
        }
    }

    /// Whether an exclusive lock on the file is held.
    fn is_exclusive(&self, name: &str) -> bool {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | FILE_FLAGS;
        let (folder, name) = self.at(name);
        match rustix::fs::openat(folder, name, flags, Mode::empty()) {
            Ok(descriptor) => lock::is_exclusive(descriptor.as_fd()),
            Err(error) => error != Errno::NOENT,
        }
    }
}

impl Folder for SystemFolder {
    fn entries(&self) -> io::Result<Vec<(String, FileType)>> {
        let mut entries = Vec::new();
        for entry in rustix::fs::Dir::read_from(&self.descriptor)? {
            let entry = entry?;
            let Ok(name) = entry.file_name().to_str() else { continue };
            if name == "." || name == ".." {
                continue;
            }
            let mut kind = entry.file_type();
            if kind == FileType::Unknown {
                // some file systems do not return the type in a listing
                let flags = rustix::fs::AtFlags::SYMLINK_NOFOLLOW;
                if let Ok(stat) = rustix::fs::statat(&self.descriptor, entry.file_name(), flags) {
                    kind = FileType::from_raw_mode(stat.st_mode);
                }
            }
            entries.push((name.to_owned(), kind));
        }
        Ok(entries)
    }

    fn open(&self, name: &str, access: Access) -> io::Result<Arc<dyn Handle>> {
        let (folder, name) = self.at(name);
        let open =
            |flags| rustix::fs::openat(folder, name, flags | OFlags::NOFOLLOW | FILE_FLAGS, Mode::empty());
        let opened = match access {
            Access::Read => open(OFlags::RDONLY),
            Access::Write => open(OFlags::RDWR),
            Access::Create => new_file::create(folder, name, OFlags::RDWR | OFlags::NOFOLLOW | FILE_FLAGS),
        };
        match opened {
            Ok(descriptor) => Ok(Arc::new(SystemHandle::new(descriptor)?)),
            Err(Errno::LOOP) => Err(link::not_followed()),
            Err(error) => Err(error.into()),
        }
    }

    fn identity_of(&self, name: &str) -> io::Result<Option<FileIdentity>> {
        let (folder, name) = self.at(name);
        match rustix::fs::statat(folder, name, rustix::fs::AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(FileIdentity {
                inode: stat.st_ino,
                size: u64::try_from(stat.st_size).unwrap_or(0),
                modified: (stat.st_mtime, i64::try_from(stat.st_mtime_nsec).unwrap_or(0)),
                changed: (stat.st_ctime, i64::try_from(stat.st_ctime_nsec).unwrap_or(0)),
            })),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn access_of(&self, name: &str) -> io::Result<Option<FileAccess>> {
        let (folder, name) = self.at(name);
        FileAccess::of(folder, name)
    }

    fn is_locked(&self) -> bool {
        // held exclusively by a broker, and by the writer of this partition; writers of other partitions
        // share the first lock
        self.is_locked_by_broker() || self.is_exclusive(PartitionLocks::NAME)
    }

    fn is_locked_by_broker(&self) -> bool {
        self.is_exclusive("../.lock")
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        Ok(rustix::fs::renameat(&self.descriptor, from, &self.descriptor, to)?)
    }

    fn link(&self, from: &str, folder: &dyn Folder, to: &str) -> io::Result<()> {
        let folder = folder.descriptor().ok_or(Errno::XDEV)?;
        Ok(rustix::fs::linkat(&self.descriptor, from, folder, to, rustix::fs::AtFlags::empty())?)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.descriptor, name, rustix::fs::AtFlags::empty())?)
    }

    fn existing_folder(&self, name: &str) -> io::Result<Option<Arc<dyn Folder>>> {
        match self.open_folder(name) {
            Ok(folder) => Ok(Some(Arc::new(folder))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn folder(&self, name: &str) -> io::Result<Arc<dyn Folder>> {
        match rustix::fs::mkdirat(&self.descriptor, name, Mode::from_raw_mode(0o755)) {
            Ok(()) => {
                let created = self.open_folder(name)?;
                new_file::give_owner_of(created.descriptor.as_fd(), self.descriptor.as_fd())?;
                Ok(Arc::new(created))
            }
            Err(Errno::EXIST) => Ok(Arc::new(self.open_folder(name)?)),
            Err(error) => Err(error.into()),
        }
    }

    fn remove_folder(&self, name: &str) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.descriptor, name, rustix::fs::AtFlags::REMOVEDIR)?)
    }

    fn sync(&self) -> io::Result<()> {
        Ok(rustix::fs::fsync(&self.descriptor)?)
    }

    fn parent(&self) -> io::Result<Option<Arc<dyn Folder>>> {
        Ok(Some(Arc::new(self.open_folder("..")?)))
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.descriptor.as_fd())
    }

    fn descriptor_and_name<'a>(&'a self, name: &'a str) -> Option<(BorrowedFd<'a>, &'a str)> {
        Some(self.at(name))
    }

    fn is_linked(&self) -> bool {
        self.linked_in.is_some()
    }

    fn is_linked_between_data_directories(&self) -> io::Result<bool> {
        let exists = |file: &str| exists_at(self.descriptor.as_fd(), format!("../{file}"));
        Ok(self.is_linked() && lock::has_data_directory_file(exists)?)
    }
}

/// A regular file of the system.
#[derive(Debug)]
pub(super) struct SystemHandle(File);

impl SystemHandle {
    fn new(descriptor: OwnedFd) -> io::Result<Self> {
        let file = File::from(descriptor);
        if file.metadata()?.is_file() { Ok(Self(file)) } else { Err(io::Error::other("not a regular file")) }
    }

    /// Opens a file by its path, for reading; follows symbolic links.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        Self::new(rustix::fs::open(path, OFlags::RDONLY | FILE_FLAGS, Mode::empty())?)
    }
}

impl Handle for SystemHandle {
    fn identity(&self) -> io::Result<FileIdentity> {
        let metadata = self.0.metadata()?;
        let modified = (metadata.mtime(), metadata.mtime_nsec());
        let changed = (metadata.ctime(), metadata.ctime_nsec());
        Ok(FileIdentity { inode: metadata.ino(), size: metadata.len(), modified, changed })
    }

    fn is_at(&self, path: &Path) -> bool {
        let (opened, found) = (rustix::fs::fstat(&self.0), rustix::fs::lstat(path));
        matches!((opened, found), (Ok(opened), Ok(found)) if (found.st_dev, found.st_ino) == (opened.st_dev, opened.st_ino))
    }

    fn is_deleted(&self) -> bool {
        self.0.metadata().is_ok_and(|metadata| metadata.nlink() == 0)
    }

    fn size(&self) -> io::Result<u64> {
        // a quarter of the time of `fstat`, though threads wait for each other; nothing reads or writes at
        // this position
        Ok(rustix::fs::seek(&self.0, rustix::fs::SeekFrom::End(0))?)
    }

    fn read_at(&self, buffer: &mut [u8], position: u64) -> io::Result<usize> {
        self.0.read_at(buffer, position)
    }

    fn next_data(&self, position: u64) -> io::Result<Option<u64>> {
        match rustix::fs::seek(&self.0, rustix::fs::SeekFrom::Data(position)) {
            Ok(data) => Ok(Some(data)),
            Err(Errno::NXIO) => Ok(None),
            // not all file systems know their holes
            Err(Errno::INVAL | Errno::OPNOTSUPP) => Ok(Some(position)),
            Err(error) => Err(error.into()),
        }
    }

    fn write_at(&self, bytes: &[u8], position: u64) -> io::Result<usize> {
        self.0.write_at(bytes, position)
    }

    fn set_size(&self, size: u64) -> io::Result<()> {
        self.0.set_len(size)
    }

    fn allocate(&self, size: u64) -> io::Result<()> {
        let current_size = self.0.metadata()?.len();
        match rustix::fs::fallocate(&self.0, rustix::fs::FallocateFlags::empty(), 0, size) {
            // a file system without fallocate: writing zeros also allocates blocks
            Err(Errno::OPNOTSUPP) => {
                static ZEROS: [u8; 1 << 16] = [0; 1 << 16];
                let mut position = current_size;
                while position < size {
                    let left = usize::try_from(size - position).unwrap_or(usize::MAX).min(ZEROS.len());
                    position += self.0.write_at(ZEROS.get(..left).unwrap_or_default(), position)? as u64;
                }
                Ok(())
            }
            done => Ok(done?),
        }
    }

    fn reserve(&self, position: u64, length: u64) -> bool {
        rustix::fs::fallocate(&self.0, rustix::fs::FallocateFlags::KEEP_SIZE, position, length).is_ok()
    }

    fn write_back(&self, position: u64, length: u64) {
        // dirty pages stay in the cache: the system begins to write them, and drops only clean ones
        let length = std::num::NonZeroU64::new(length);
        let _ = rustix::fs::fadvise(&self.0, position, length, rustix::fs::Advice::DontNeed);
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn forget_cached(&self, position: u64) -> io::Result<()> {
        Ok(rustix::fs::fadvise(&self.0, position, None, rustix::fs::Advice::DontNeed)?)
    }

    fn set_access(&self, access: FileAccess) -> io::Result<()> {
        access.give_to(self.0.as_fd())
    }

    fn set_modified(&self, time: (i64, i64)) -> io::Result<()> {
        let time = Timespec { tv_sec: time.0, tv_nsec: time.1 };
        Ok(rustix::fs::futimens(&self.0, &Timestamps { last_access: time, last_modification: time })?)
    }

    #[expect(unsafe_code, reason = "memory-mapping a file; S1 and S2 of SAFETY.md")]
    fn map(&self, length: usize) -> Option<Mmap> {
        // SAFETY: S1: the mapping is read-only, private to this value and as long as the file was when it was
        // opened. S2: it is created only if `io` rules out that another process shortens or rewrites
        // the file, or if the caller asserts it.
        unsafe { memmap2::MmapOptions::new().len(length).map(&self.0) }.ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;
    use crate::fs::Directory;

    #[test]
    fn a_fifo_and_a_symbolic_link_are_refused_without_hanging() {
        let folder = tempfile::tempdir().unwrap();
        let fifo = folder.path().join("00000000000000000000.log");
        rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, Mode::from_raw_mode(0o600)).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", folder.path().join("link")).unwrap();
        let directory = Directory::open(folder.path(), "").unwrap();
        assert!(matches!(directory.open_file("00000000000000000000.log"), Err(Error::Io { .. })));
        assert!(matches!(directory.open_file("link"), Err(Error::Io { .. })));
        assert!(matches!(directory.open_file("missing"), Err(Error::Io { .. })));
    }
}
