//! An open directory.

use std::io;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::AtFlags;

use super::os::SystemFolder;
use super::{Access, FileAccess, FileIdentity, FileType, Folder, SystemFile, WritableFile};
use crate::error::{Error, IoAction, NotFound, Result};

/// An open directory. Its files are opened relative to its descriptor, so it may be renamed in the meantime.
#[derive(Debug, Clone)]
pub struct Directory {
    folder: Arc<dyn Folder>,
    path: PathBuf,
}

impl Directory {
    /// Opens a directory.
    ///
    /// # Errors
    /// [`Error::LogNotFound`] if it does not exist or is a file; [`Error::Io`] if the system refuses.
    pub fn open(path: &Path, advice: &'static str) -> Result<Self> {
        let path = std::path::absolute(path).map_err(|error| Error::io(path, IoAction::Resolve, error))?;
        let not_found = |found| Error::LogNotFound { path: path.clone(), found, advice };
        match SystemFolder::open(&path) {
            Ok(folder) => Ok(Self { folder: Arc::new(folder), path }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(not_found(NotFound::NoDirectory)),
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
                Err(not_found(NotFound::NoDirectoryButAFile))
            }
            Err(error) => Err(Error::io(path, IoAction::Open, error)),
        }
    }

    /// Opens a directory. If only the last component of the path is missing, it is created (durably), unless
    /// `check_name` fails; that is called with the parent directory and the name. The path is resolved:
    /// it has no symbolic links, unless a data directory has one to the directory.
    ///
    /// # Errors
    /// As [`Directory::open`]; the errors of `check_name`.
    pub fn open_or_create(
        path: &Path,
        advice: &'static str,
        check_name: impl FnOnce(&Self, &str) -> Result<()>,
    ) -> Result<Self> {
        let resolved = |directory: Self| {
            let resolve = |path: &Path| {
                std::fs::canonicalize(path).map_err(|error| Error::io(path, IoAction::Resolve, error))
            };
            let path = match (directory.path.parent(), directory.path.file_name()) {
                (Some(parent), Some(name)) if directory.folder.is_linked() => resolve(parent)?.join(name),
                _ => resolve(&directory.path)?,
            };
            Ok(Self { path, ..directory })
        };
        match Self::open(path, advice) {
            Err(Error::LogNotFound { path, found: NotFound::NoDirectory, advice }) => {
                let parent = path.parent().unwrap_or(Path::new("/"));
                let name = path.file_name().and_then(|name| name.to_str()).ok_or_else(|| {
                    Error::config("path", "a directory whose name is UTF-8", path.display().to_string())
                })?;
                let parent = resolved(Self::open(parent, advice)?)?;
                check_name(&parent, name)?;
                let created = parent.folder(name)?;
                parent.sync()?;
                Ok(created)
            }
            opened => resolved(opened?),
        }
    }

    /// A directory that is not the operating system's.
    pub(super) fn of_memory(folder: Arc<dyn Folder>, path: PathBuf) -> Self {
        Self { folder, path }
    }

    /// The absolute path by which the directory was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path of an entry, or of `../name` in the parent directory.
    pub fn path_of(&self, name: &str) -> PathBuf {
        match (name.strip_prefix("../"), self.path.parent()) {
            (Some(name), Some(parent)) => parent.join(name),
            _ => self.path.join(name),
        }
    }

    /// Fails if the path leads to no directory now, or to another one. One in memory is never replaced.
    ///
    /// # Errors
    /// As [`Directory::open`].
    pub(crate) fn ensure_in_place(&self, advice: &'static str) -> Result<()> {
        let Some(descriptor) = self.descriptor() else { return Ok(()) };
        let fail = |error: rustix::io::Errno| Error::io(&self.path, IoAction::Stat, error);
        let opened = rustix::fs::fstat(descriptor).map_err(fail)?;
        let found = match rustix::fs::stat(&self.path) {
            Ok(now) if (now.st_dev, now.st_ino) == (opened.st_dev, opened.st_ino) => return Ok(()),
            Ok(_) => NotFound::AnotherDirectory,
            Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR) => NotFound::NoDirectory,
            Err(error) => return Err(fail(error)),
        };
        Err(Error::LogNotFound { path: self.path.clone(), found, advice })
    }

    /// Fails if the name by which a file of this directory was opened is not that of the file any more, or if
    /// another directory is at the path: those who open the path would not find what is written to the
    /// file. That the directory was moved is no error.
    ///
    /// # Errors
    /// [`Error::LogNotFound`]; [`Error::Io`].
    pub(crate) fn ensure_holds(&self, file: &WritableFile) -> Result<()> {
        if file.is_at_path() {
            return Ok(());
        }
        let name = file.path().file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let advice =
            "the log was removed or replaced while it was written: what was appended since may be lost";
        let found = match self.identity_of(name)? {
            Some(now) if now.inode == file.identity()?.inode => {
                let in_place = self.ensure_in_place(advice);
                let is_another =
                    matches!(in_place, Err(Error::LogNotFound { found: NotFound::AnotherDirectory, .. }));
                return if is_another { in_place } else { Ok(()) };
            }
            Some(_) => NotFound::AnotherFile,
            None => NotFound::NoFile,
        };
        Err(Error::LogNotFound { path: file.path().to_owned(), found, advice })
    }

    pub(super) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.folder.descriptor()
    }

    /// The descriptor of the directory with a file (`name` may be `../name`), and the file's name there;
    /// `None` in memory.
    pub(super) fn descriptor_and_name<'a>(&'a self, name: &'a str) -> Option<(BorrowedFd<'a>, &'a str)> {
        self.folder.descriptor_and_name(name)
    }

    /// Fails if it was opened through a symbolic link that a data directory has to a partition in a data
    /// directory: a broker on either of them writes to it.
    pub(super) fn refuse_link_between(&self) -> Result<()> {
        if !self.folder.is_linked_between_data_directories().map_err(self.fail("..", IoAction::Stat))? {
            return Ok(());
        }
        let expected = "a partition of one data directory (remove the symbolic link, or give the path to which it leads, while \
                        no broker runs on either)";
        let found = format!("{}, a symbolic link to a partition of a data directory", self.path.display());
        Err(Error::config("path", expected, found))
    }

    fn fail(&self, name: &str, action: IoAction) -> impl Fn(io::Error) -> Error {
        let path = if name.is_empty() { self.path.clone() } else { self.path_of(name) };
        move |error| Error::io(&path, action, error)
    }

    /// Names and types of the entries, in the system's order. Names that are not UTF-8 are never Kafka's and
    /// are skipped.
    ///
    /// This is one pass: an entry that is created, deleted or renamed during the pass may be missing, even if
    /// a later one is returned. [`Directory::segment_files`] returns a log's files completely.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn entries(&self) -> Result<Vec<(String, FileType)>> {
        self.folder.entries().map_err(self.fail("", IoAction::List))
    }

    /// Opens a regular file of the directory for reading. Never blocks (a FIFO is refused) and does not
    /// follow symbolic links.
    ///
    /// # Errors
    /// [`Error::Io`], also if the entry is missing or is not a regular file.
    pub fn open_file(&self, name: &str) -> Result<SystemFile> {
        let handle = self.folder.open(name, Access::Read).map_err(self.fail(name, IoAction::Open))?;
        SystemFile::new(handle, self.path_of(name))
    }

    /// The identity of the file with this name; `None` if there is none.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn identity_of(&self, name: &str) -> Result<Option<FileIdentity>> {
        self.folder.identity_of(name).map_err(self.fail(name, IoAction::Stat))
    }

    /// The contents of a small file, or `None` if it does not exist. `../name` is a file in the parent
    /// directory.
    ///
    /// # Errors
    /// [`Error::Io`], also if it is larger than `limit` bytes.
    pub fn read_small(&self, name: &str, limit: u64) -> Result<Option<Vec<u8>>> {
        match self.open_file(name) {
            Ok(file) if file.size() > limit => {
                let found = format!("{} bytes, more than {limit}", file.size());
                Err(Error::io(file.path(), IoAction::Read, io::Error::other(found)))
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

    /// Whether files in this directory may be shortened: another process holds the data directory's `.lock`
    /// (`../.lock`), as a running broker does, or any process, including this one, holds the partition's
    /// `.cordwood.lock`, as a writer does.
    ///
    /// Queries the locks on a read-only descriptor and takes none. The JVM's lock is an `fcntl` lock, which
    /// `flock` does not detect. If a lock cannot be queried, it counts as held.
    pub fn is_locked(&self) -> bool {
        self.folder.is_locked()
    }

    /// Whether another process than a writer holds the data directory's `.lock`, as a running broker does.
    /// Takes no lock. If it cannot be queried, it counts as held.
    pub(crate) fn is_locked_by_broker(&self) -> bool {
        self.folder.is_locked_by_broker()
    }

    /// Fails if files cannot be created or removed here, because of permissions or a read-only mount.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn check_writable(&self) -> Result<()> {
        let Some(folder) = self.descriptor() else { return Ok(()) };
        let access = rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK;
        rustix::fs::accessat(folder, c".", access, AtFlags::empty())
            .map_err(|error| Error::io(&self.path, IoAction::WriteTo, error))
    }

    /// Whether the file system is XFS.
    pub(crate) fn is_on_xfs(&self) -> bool {
        const MAGIC: rustix::fs::FsWord = 0x5846_5342;
        let found = self.descriptor().and_then(|folder| rustix::fs::fstatfs(folder).ok());
        found.is_some_and(|found| found.f_type == MAGIC)
    }

    /// The permissions and the owner of an entry, `.` for the directory; `None` if there is no such entry,
    /// and for a symbolic link.
    pub(crate) fn access_of(&self, name: &str) -> Result<Option<FileAccess>> {
        self.folder.access_of(name).map_err(self.fail(name, IoAction::Open))
    }

    /// [`Directory::create`], with the permissions and the owner of another file, if that exists.
    pub(crate) fn create_like(&self, name: &str, like: &str) -> Result<WritableFile> {
        let access = self.access_of(like)?;
        let created = self.create(name)?;
        access.map_or(Ok(()), |access| created.set_access(access))?;
        Ok(created)
    }

    /// Creates a regular file for writing: its owner and group are those of the directory if the process may
    /// set them, as root may, and nobody may read it who may not read the directory.
    ///
    /// # Errors
    /// [`Error::Io`], also if the name exists.
    pub fn create(&self, name: &str) -> Result<WritableFile> {
        let handle = self.folder.open(name, Access::Create).map_err(self.fail(name, IoAction::Create))?;
        Ok(WritableFile::new(handle, self.path_of(name)))
    }

    /// Opens a regular file of the directory for reading and writing, as [`Directory::open_file`] does for
    /// reading.
    ///
    /// # Errors
    /// [`Error::Io`], also if the entry is missing or is not a regular file.
    pub fn open_writable(&self, name: &str) -> Result<WritableFile> {
        let handle = self.folder.open(name, Access::Write).map_err(self.fail(name, IoAction::Open))?;
        Ok(WritableFile::new(handle, self.path_of(name)))
    }

    /// Renames a file, and replaces any file with the new name. Durable after [`Directory::sync`].
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn rename(&self, from: &str, to: &str) -> Result<()> {
        self.folder.rename(from, to).map_err(self.fail(from, IoAction::Rename))
    }

    /// Gives a file a second name in another directory, which must not have that name. False if the file
    /// system does not allow it: the directories are on two file systems, it has no links, or the file
    /// has too many. Durable after [`Directory::sync`] of the other directory.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn link(&self, from: &str, directory: &Self, to: &str) -> Result<bool> {
        use rustix::io::Errno;
        match self.folder.link(from, &*directory.folder, to) {
            Ok(()) => Ok(true),
            Err(error) => match Errno::from_io_error(&error) {
                Some(Errno::XDEV | Errno::PERM | Errno::MLINK | Errno::OPNOTSUPP | Errno::NOSYS) => Ok(false),
                _ => Err(directory.fail(to, IoAction::Link)(error)),
            },
        }
    }

    /// Removes a file; open handles stay valid. A missing file is not an error. Durable after
    /// [`Directory::sync`].
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn remove(&self, name: &str) -> Result<()> {
        match self.folder.remove(name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            done => done.map_err(self.fail(name, IoAction::Remove)),
        }
    }

    /// Opens a directory in this one; `None` if there is none.
    ///
    /// # Errors
    /// [`Error::Io`], also if the entry is not a directory.
    pub fn existing_folder(&self, name: &str) -> Result<Option<Self>> {
        let folder = self.folder.existing_folder(name).map_err(self.fail(name, IoAction::Open))?;
        Ok(folder.map(|folder| Self { folder, path: self.path_of(name) }))
    }

    /// Opens a directory in this one, which is created if it does not exist. Its name is durable after
    /// [`Directory::sync`].
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn folder(&self, name: &str) -> Result<Self> {
        let folder = self.folder.folder(name).map_err(self.fail(name, IoAction::Create))?;
        Ok(Self { folder, path: self.path_of(name) })
    }

    /// Removes an empty directory in this one.
    ///
    /// # Errors
    /// [`Error::Io`], also if it is missing or not empty.
    pub fn remove_folder(&self, name: &str) -> Result<()> {
        self.folder.remove_folder(name).map_err(self.fail(name, IoAction::Remove))
    }

    /// The parent directory; `None` for an in-memory directory.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn parent(&self) -> Result<Option<Self>> {
        let path = self.path.parent().unwrap_or(Path::new("/")).to_owned();
        let folder = self.folder.parent().map_err(self.fail("..", IoAction::Open))?;
        Ok(folder.map(|folder| Self { folder, path }))
    }

    /// Makes created, renamed and removed names durable.
    ///
    /// # Errors
    /// [`Error::Io`]: changes that were not yet durable may be lost, even if a later call succeeds.
    pub fn sync(&self) -> Result<()> {
        self.folder.sync().map_err(self.fail("", IoAction::Sync))
    }
}
