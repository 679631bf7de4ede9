//! A directory held open.

use std::io;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::AtFlags;

use super::os::SystemFolder;
use super::{Access, FileIdentity, FileType, Folder, SystemFile, WritableFile};
use crate::error::{Error, IoAction, NotFound, Result};

/// A directory held open: its files are found through the descriptor, so it may be renamed meanwhile.
#[derive(Debug, Clone)]
pub struct Directory {
    folder: Arc<dyn Folder>,
    path: PathBuf,
}

impl Directory {
    /// Opens a directory.
    ///
    /// # Errors
    /// [`Error::LogNotFound`] where there is none or it is a file; [`Error::Io`] where the system refuses.
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

    /// Opens a directory, which is made (durably) where only its last component is missing and `may_be_made` lets it, given
    /// the directory that is to hold it and its name. Its path is the one behind symbolic links.
    ///
    /// # Errors
    /// As [`Directory::open`]; those of `may_be_made`.
    pub fn open_or_create(
        path: &Path,
        advice: &'static str,
        may_be_made: impl FnOnce(&Self, &str) -> Result<()>,
    ) -> Result<Self> {
        let resolved = |directory: Self| {
            let path = std::fs::canonicalize(&directory.path)
                .map_err(|error| Error::io(&directory.path, IoAction::Resolve, error))?;
            Ok(Self { path, ..directory })
        };
        match Self::open(path, advice) {
            Err(Error::LogNotFound { path, found: NotFound::NoDirectory, advice }) => {
                let parent = path.parent().unwrap_or(Path::new("/"));
                let name = path.file_name().and_then(|name| name.to_str()).ok_or_else(|| {
                    Error::config("path", "a directory whose name is UTF-8", path.display().to_string())
                })?;
                let parent = resolved(Self::open(parent, advice)?)?;
                may_be_made(&parent, name)?;
                let made = parent.folder(name)?;
                parent.sync()?;
                Ok(made)
            }
            opened => resolved(opened?),
        }
    }

    /// A directory of another kind than the system's.
    #[cfg(feature = "crash-disk")]
    pub(super) fn of_memory(folder: Arc<dyn Folder>, path: PathBuf) -> Self {
        Self { folder, path }
    }

    /// The absolute path by which the directory was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path of an entry, for words to people.
    pub fn path_of(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    pub(super) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.folder.descriptor()
    }

    fn fail(&self, name: &str, action: IoAction) -> impl Fn(io::Error) -> Error {
        let path = if name.is_empty() { self.path.clone() } else { self.path_of(name) };
        move |error| Error::io(&path, action, error)
    }

    /// Names and types of the entries, in the system's order. A name that is not UTF-8 is foreign to Kafka and left out.
    ///
    /// One pass: an entry that is created, deleted or renamed meanwhile may be missing, even where a later one is returned.
    /// [`Directory::segment_files`] gives a log's files completely.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn entries(&self) -> Result<Vec<(String, FileType)>> {
        self.folder.entries().map_err(self.fail("", IoAction::List))
    }

    /// Opens a regular file of the directory for reading. Never blocks (a FIFO of that name is refused) and follows no
    /// symbolic link out of the directory.
    ///
    /// # Errors
    /// [`Error::Io`], also where the entry is missing or is no regular file.
    pub fn open_file(&self, name: &str) -> Result<SystemFile> {
        let handle = self.folder.open(name, Access::Read).map_err(self.fail(name, IoAction::Open))?;
        SystemFile::new(handle, self.path_of(name))
    }

    /// Which file has a name now; `None` where none has.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn identity_of(&self, name: &str) -> Result<Option<FileIdentity>> {
        self.folder.identity_of(name).map_err(self.fail(name, IoAction::Stat))
    }

    /// The whole of a small file, or `None` where there is none; `../name` is one beside the directory.
    ///
    /// # Errors
    /// [`Error::Io`], also where it is larger than `limit` bytes.
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

    /// Whether somebody may be shortening files here: another process holds the data directory's `.lock` (`../.lock`), as
    /// a running broker does, or anybody, this process included, holds the partition's (`.cordwood.lock`), as a writer does.
    ///
    /// Asks on a read-only descriptor and takes no lock. The JVM's lock is an `fcntl` one; `flock` does not see it. Where
    /// a file cannot be asked about, it counts as held: then nothing is mapped.
    pub fn is_locked(&self) -> bool {
        self.folder.is_locked()
    }

    /// Fails where the system lets nobody make or remove a file here, because of a permission or a read-only mount.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn check_writable(&self) -> Result<()> {
        let Some(folder) = self.descriptor() else { return Ok(()) };
        let wanted = rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK;
        rustix::fs::accessat(folder, c".", wanted, AtFlags::empty())
            .map_err(|error| Error::io(&self.path, IoAction::WriteTo, error))
    }

    /// Makes a regular file for writing.
    ///
    /// # Errors
    /// [`Error::Io`], also where the name is taken.
    pub fn create(&self, name: &str) -> Result<WritableFile> {
        let handle = self.folder.open(name, Access::Create).map_err(self.fail(name, IoAction::Create))?;
        Ok(WritableFile::new(handle, self.path_of(name)))
    }

    /// Opens a regular file of the directory for reading and writing, as [`Directory::open_file`] does for reading.
    ///
    /// # Errors
    /// [`Error::Io`], also where the entry is missing or is no regular file.
    pub fn open_writable(&self, name: &str) -> Result<WritableFile> {
        let handle = self.folder.open(name, Access::Write).map_err(self.fail(name, IoAction::Open))?;
        Ok(WritableFile::new(handle, self.path_of(name)))
    }

    /// Gives a file another name, which it takes from any file that has it. Durable after [`Directory::sync`].
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn rename(&self, from: &str, to: &str) -> Result<()> {
        self.folder.rename(from, to).map_err(self.fail(from, IoAction::Rename))
    }

    /// Takes a file's name away; whoever has it open keeps it. A missing one is no error. Durable after
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

    /// A directory in this one, made if it is not there. Its name is durable after [`Directory::sync`].
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
    /// [`Error::Io`], also where it is missing or not empty.
    pub fn remove_folder(&self, name: &str) -> Result<()> {
        self.folder.remove_folder(name).map_err(self.fail(name, IoAction::Remove))
    }

    /// The directory that holds this one; `None` for one of memory.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn parent(&self) -> Result<Option<Self>> {
        let path = self.path.parent().unwrap_or(Path::new("/")).to_owned();
        let folder = self.folder.parent().map_err(self.fail("..", IoAction::Open))?;
        Ok(folder.map(|folder| Self { folder, path }))
    }

    /// Makes names that were given and taken away durable.
    ///
    /// # Errors
    /// [`Error::Io`]: what was not yet durable may be lost, and no later success says otherwise.
    pub fn sync(&self) -> Result<()> {
        self.folder.sync().map_err(self.fail("", IoAction::Sync))
    }
}
