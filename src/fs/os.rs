//! Real files, opened for reading only.

use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use memmap2::{Advice, Mmap};
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;

use crate::error::{Error, Result};

#[cfg(not(target_os = "linux"))]
compile_error!("cordwood reads Kafka's files with calls that only Linux has; build it on Linux");

/// A directory held open: its files are found through the descriptor, so it may be renamed meanwhile.
#[derive(Debug)]
pub struct Directory {
    descriptor: OwnedFd,
    path: PathBuf,
}

impl Directory {
    /// Opens a directory for reading.
    ///
    /// # Errors
    /// [`Error::LogNotFound`] where there is none or it is a file; [`Error::Io`] where the system refuses.
    pub fn open(path: &Path, advice: &'static str) -> Result<Self> {
        let path = std::path::absolute(path).map_err(|error| Error::io(path, "resolve", error))?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let not_found =
            |found: &str| Error::LogNotFound { path: path.clone(), found: found.to_owned(), advice };
        match rustix::fs::open(&path, flags, Mode::empty()) {
            Ok(descriptor) => Ok(Self { descriptor, path }),
            Err(Errno::NOENT) => Err(not_found("no such directory")),
            Err(Errno::NOTDIR) => Err(not_found("a file, not a directory")),
            Err(error) => Err(Error::io(path, "open", error)),
        }
    }

    /// The absolute path by which the directory was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path of an entry, for words to people.
    pub fn path_of(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Names and types of the entries, in the system's order. A name that is not UTF-8 is foreign to Kafka and left out.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn entries(&self) -> Result<Vec<(String, FileType)>> {
        let fail = |error: Errno| Error::io(&self.path, "list", error);
        let mut entries = Vec::new();
        for entry in rustix::fs::Dir::read_from(&self.descriptor).map_err(fail)? {
            let entry = entry.map_err(fail)?;
            let Ok(name) = entry.file_name().to_str() else { continue };
            if name == "." || name == ".." {
                continue;
            }
            let mut kind = entry.file_type();
            if kind == FileType::Unknown {
                // some file systems do not say it in the listing
                let flags = rustix::fs::AtFlags::SYMLINK_NOFOLLOW;
                if let Ok(stat) = rustix::fs::statat(&self.descriptor, entry.file_name(), flags) {
                    kind = FileType::from_raw_mode(stat.st_mode);
                }
            }
            entries.push((name.to_owned(), kind));
        }
        Ok(entries)
    }

    /// Opens a regular file of the directory for reading. Never blocks (a FIFO of that name is refused) and follows no
    /// symbolic link out of the directory.
    ///
    /// # Errors
    /// [`Error::Io`], also where the entry is missing or is no regular file.
    pub fn open_file(&self, name: &str) -> Result<SystemFile> {
        let path = self.path_of(name);
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::NOCTTY | OFlags::CLOEXEC;
        match rustix::fs::openat(&self.descriptor, name, flags, Mode::empty()) {
            Ok(descriptor) => SystemFile::new(File::from(descriptor), path),
            Err(Errno::LOOP) => {
                Err(Error::io(path, "open", io::Error::other("a symbolic link, which is not followed")))
            }
            Err(error) => Err(Error::io(path, "open", error)),
        }
    }

    /// Which file has a name now; `None` where none has.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn identity_of(&self, name: &str) -> Result<Option<FileIdentity>> {
        match rustix::fs::statat(&self.descriptor, name, rustix::fs::AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(FileIdentity {
                inode: stat.st_ino,
                size: u64::try_from(stat.st_size).unwrap_or(0),
                modified: (stat.st_mtime, i64::try_from(stat.st_mtime_nsec).unwrap_or(0)),
            })),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(Error::io(self.path_of(name), "stat", error)),
        }
    }

    /// The whole of a small text file beside the directory (`../name`), or `None` where there is none.
    ///
    /// # Errors
    /// [`Error::Io`], also where it is larger than `limit` bytes.
    pub fn read_beside(&self, name: &str, limit: u64) -> Result<Option<Vec<u8>>> {
        match self.open_file(&format!("../{name}")) {
            Ok(file) if file.size() > limit => {
                let found = format!("{} bytes, more than {limit}", file.size());
                Err(Error::io(file.path(), "read", io::Error::other(found)))
            }
            Ok(file) => {
                let mut bytes = vec![0; usize::try_from(file.size()).unwrap_or(0)];
                file.read_exact_at(0, &mut bytes)?;
                Ok(Some(bytes))
            }
            Err(Error::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Whether another process holds the data directory's `.lock` (`../.lock`), as a running broker does.
    ///
    /// Asks with `F_GETLK` on a read-only descriptor and takes no lock. The JVM's lock is an `fcntl` one; `flock` does
    /// not see it. Where the file cannot be asked about, it counts as held: then nothing is mapped.
    pub fn data_directory_is_locked(&self) -> bool {
        const LOCK: &CStr = c"../.lock";
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let descriptor = match rustix::fs::openat(&self.descriptor, LOCK, flags, Mode::empty()) {
            Ok(descriptor) => descriptor,
            Err(error) => return error != Errno::NOENT,
        };
        let asked = rustix::process::Flock::from(rustix::process::FlockType::WriteLock);
        !matches!(rustix::process::fcntl_getlk(descriptor.as_fd(), &asked), Ok(None))
    }
}

/// Which file it is, and whether it was written to since: compared to notice that another one has taken its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileIdentity {
    /// The number of the file in its file system.
    pub inode: u64,
    /// Bytes.
    pub size: u64,
    /// The time of the last modification: seconds and nanoseconds since the epoch.
    pub modified: (i64, i64),
}

impl FileIdentity {
    /// The time of the last modification, ms since the epoch.
    pub fn modified_ms(&self) -> i64 {
        let (seconds, nanoseconds) = self.modified;
        seconds.saturating_mul(1000).saturating_add(nanoseconds / 1_000_000)
    }
}

/// An open regular file; its size is fixed as of its opening.
#[derive(Debug)]
pub struct SystemFile {
    file: File,
    path: PathBuf,
    identity: FileIdentity,
}

impl SystemFile {
    fn new(file: File, path: PathBuf) -> Result<Self> {
        let metadata = file.metadata().map_err(|error| Error::io(&path, "stat", error))?;
        if !metadata.is_file() {
            return Err(Error::io(path, "open", io::Error::other("not a regular file")));
        }
        let modified = (metadata.mtime(), metadata.mtime_nsec());
        let identity = FileIdentity { inode: metadata.ino(), size: metadata.len(), modified };
        Ok(Self { file, path, identity })
    }

    /// Opens a regular file by its path, for reading. Follows symbolic links; never blocks.
    ///
    /// # Errors
    /// [`Error::LogNotFound`] where there is none; [`Error::Io`].
    pub fn open(path: &Path) -> Result<Self> {
        let path = std::path::absolute(path).map_err(|error| Error::io(path, "resolve", error))?;
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        match rustix::fs::open(&path, flags, Mode::empty()) {
            Ok(descriptor) => Self::new(File::from(descriptor), path),
            Err(Errno::NOENT) => {
                let advice = "give the path of one of a segment's files";
                Err(Error::LogNotFound { path, found: "no such file".to_owned(), advice })
            }
            Err(error) => Err(Error::io(path, "open", error)),
        }
    }

    /// The path by which it was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes, as of the opening.
    pub fn size(&self) -> u64 {
        self.identity.size
    }

    /// Which file it is, as of the opening.
    pub fn identity(&self) -> FileIdentity {
        self.identity
    }

    /// Fills `buffer` from `position` on.
    ///
    /// # Errors
    /// [`Error::LogChanged`] where the file has become shorter; [`Error::Io`].
    pub fn read_exact_at(&self, position: u64, buffer: &mut [u8]) -> Result<()> {
        match self.file.read_exact_at(buffer, position) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Err(Error::LogChanged {
                file: self.path.clone(),
                expected: format!("{} bytes", self.identity.size),
                found: format!("fewer than {} bytes", position + buffer.len() as u64),
            }),
            Err(error) => Err(Error::io(&self.path, "read", error)),
        }
    }
}

/// The bytes of a file, mapped into memory or read by position: callers do not see which.
#[derive(Debug)]
pub struct FileBytes {
    file: SystemFile,
    map: Option<Mmap>,
    size: u64,
}

impl FileBytes {
    /// Takes the first `size` bytes of a file (all of it where `None`), mapped if `map` says so and it is not empty.
    ///
    /// # Errors
    /// [`Error::LogChanged`] where the file is shorter than `size`. A mapping that the system refuses is no error: the
    /// bytes are then read by position.
    pub fn new(file: SystemFile, size: Option<u64>, map: bool) -> Result<Self> {
        let size = size.unwrap_or(file.size());
        if file.size() < size {
            return Err(Error::LogChanged {
                file: file.path().to_owned(),
                expected: format!("at least {size} bytes"),
                found: format!("{} bytes", file.size()),
            });
        }
        let map = if map && size > 0 { Self::map(&file, size) } else { None };
        Ok(Self { file, map, size })
    }

    #[expect(unsafe_code, reason = "memory-mapping a file; S1 and S2 of SAFETY.md")]
    fn map(file: &SystemFile, size: u64) -> Option<Mmap> {
        let length = usize::try_from(size).ok()?;
        // SAFETY: S1: the mapping is read-only, private to this value and as long as the file was when it was opened.
        // S2: it is made only where the rule `io` says that no other process shortens or rewrites the file, or where
        // the caller has said so.
        unsafe { memmap2::MmapOptions::new().len(length).map(&file.file) }.ok()
    }

    /// Tells the system that reads will be scattered, so that one touched page does not pull in its neighbours.
    pub fn advise_random(&self) {
        if let Some(map) = &self.map {
            // only advice: where it is refused, reads are the same
            let _ = map.advise(Advice::Random);
        }
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// How many bytes there are.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// All the bytes, where they are mapped.
    pub fn mapped(&self) -> Option<&[u8]> {
        self.map.as_deref()
    }

    /// The bytes from `position` on, `length` of them or as many as there are before the end: borrowed from the mapping,
    /// else read into `buffer`.
    ///
    /// # Errors
    /// [`Error::LogChanged`] where the file has become shorter; [`Error::Io`].
    pub fn read<'a>(&'a self, position: u64, length: usize, buffer: &'a mut Vec<u8>) -> Result<&'a [u8]> {
        let left = usize::try_from(self.size.saturating_sub(position)).unwrap_or(usize::MAX);
        let length = length.min(left);
        if let Some(map) = &self.map {
            let start = usize::try_from(position).unwrap_or(usize::MAX);
            return Ok(map.get(start..).and_then(|rest| rest.get(..length)).unwrap_or_default());
        }
        if length == 0 {
            return Ok(&[]);
        }
        buffer.resize(length, 0);
        self.file.read_exact_at(position, buffer)?;
        Ok(buffer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn mapped_and_positional_bytes_are_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bytes");
        std::fs::write(&path, (0..=255).collect::<Vec<u8>>()).unwrap();
        let mut buffer = Vec::new();
        for (position, length, expected) in [(0, 3, &[0u8, 1, 2][..]), (254, 9, &[254, 255]), (300, 5, &[])] {
            for map in [true, false] {
                let bytes = FileBytes::new(SystemFile::open(&path).unwrap(), None, map).unwrap();
                assert_eq!(bytes.mapped().is_some(), map);
                assert_eq!(bytes.read(position, length, &mut buffer).unwrap(), expected);
            }
        }
    }

    #[test]
    fn a_file_that_became_shorter_is_a_changed_log() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bytes");
        std::fs::write(&path, [7; 100]).unwrap();
        let bytes = FileBytes::new(SystemFile::open(&path).unwrap(), None, false).unwrap();
        std::fs::write(&path, [7; 10]).unwrap();
        assert!(matches!(bytes.read(50, 20, &mut Vec::new()), Err(Error::LogChanged { .. })));
        let shorter = SystemFile::open(&path).unwrap();
        assert!(matches!(FileBytes::new(shorter, Some(100), false), Err(Error::LogChanged { .. })));
    }
}
