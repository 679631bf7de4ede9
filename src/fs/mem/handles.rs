//! Folders and files of an in-memory disk, for the traits of `fs`.

use std::io;
use std::sync::Arc;

use memmap2::Mmap;
use rustix::fs::FileType;
use rustix::io::Errno;

use super::faults::{Operation, Outcome};
use super::state::{EntryChange, FileState, FolderState, Node};
use super::{Inner, MemoryDisk};
use crate::fs::{Access, FileIdentity, Folder, Handle};

/// A folder, by its index in the state.
#[derive(Debug)]
pub(super) struct MemoryFolder {
    disk: MemoryDisk,
    folder: usize,
}

impl MemoryFolder {
    pub(super) fn root(disk: MemoryDisk) -> Self {
        Self { disk, folder: 0 }
    }

    fn change(
        &self,
        operation: impl FnOnce() -> Operation,
        needs_space: bool,
        change: impl FnOnce(&mut Inner) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut inner = self.disk.lock();
        match inner.begin(operation, needs_space) {
            Outcome::Failed(error) | Outcome::FailedPartly(error) => Err(error),
            Outcome::Done | Outcome::Short => {
                if needs_space {
                    inner.take_sectors(1)?;
                }
                change(&mut inner)
            }
        }
    }

    fn node(&self, name: &str) -> Option<Node> {
        self.disk.lock().entries(self.folder).get(name).copied()
    }
}

impl Folder for MemoryFolder {
    fn entries(&self) -> io::Result<Vec<(String, FileType)>> {
        self.disk.lock().read_fails()?;
        let kind =
            |node| if matches!(node, Node::File(_)) { FileType::RegularFile } else { FileType::Directory };
        let entries = self.disk.list(self.folder);
        Ok(entries.into_iter().map(|(name, node)| (name.to_string(), kind(node))).collect())
    }

    fn open(&self, name: &str, access: Access) -> io::Result<Arc<dyn Handle>> {
        let opened = |file| -> Arc<dyn Handle> { Arc::new(MemoryHandle { disk: self.disk.clone(), file }) };
        let file = match (self.node(name), access) {
            (Some(_), Access::Create) => return Err(Errno::EXIST.into()),
            (Some(Node::Folder(_)), _) => return Err(io::Error::other("not a regular file")),
            (Some(Node::File(file)), _) => Some(file),
            (None, Access::Create) => None,
            (None, _) => return Err(Errno::NOENT.into()),
        };
        if let Some(file) = file {
            if access == Access::Write {
                self.change(|| Operation::Open(name.into()), false, |_| Ok(()))?;
            } else {
                self.disk.lock().read_fails()?;
            }
            return Ok(opened(file));
        }
        let mut created = 0;
        self.change(
            || Operation::Create(name.into()),
            true,
            |inner| {
                let name: Arc<str> = name.into();
                inner.state.files.push(FileState::new(Arc::clone(&name)));
                created = inner.state.files.len() - 1;
                inner.folder(self.folder)?.change(EntryChange::Put(name, Node::File(created)));
                inner.touched(created);
                Ok(())
            },
        )?;
        Ok(opened(created))
    }

    fn identity_of(&self, name: &str) -> io::Result<Option<FileIdentity>> {
        match self.node(name) {
            Some(Node::File(file)) => MemoryHandle { disk: self.disk.clone(), file }.identity().map(Some),
            Some(Node::Folder(folder)) => {
                let inode = u64::MAX - folder as u64;
                Ok(Some(FileIdentity { inode, size: 0, modified: (0, 0), changed: (0, 0) }))
            }
            None => Ok(None),
        }
    }

    fn is_locked(&self) -> bool {
        false
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let node = self.node(from).ok_or(Errno::NOENT)?;
        self.change(
            || Operation::Rename(from.into(), to.into()),
            false,
            |inner| {
                let (from, to): (Arc<str>, Arc<str>) = (from.into(), to.into());
                if let Node::File(file) = node {
                    inner.file(file)?.name = Arc::clone(&to);
                }
                inner.folder(self.folder)?.change(EntryChange::Rename(from, to, node));
                Ok(())
            },
        )
    }

    fn link(&self, from: &str, folder: &dyn Folder, to: &str) -> io::Result<()> {
        let Some(Node::File(file)) = self.node(from) else { return Err(Errno::NOENT.into()) };
        let folder = match folder.in_memory() {
            Some((disk, folder)) if self.disk.is_same(disk) => folder,
            _ => return Err(Errno::XDEV.into()),
        };
        if self.disk.lock().entries(folder).contains_key(to) {
            return Err(Errno::EXIST.into());
        }
        self.change(
            || Operation::Link(from.into(), to.into()),
            true,
            |inner| {
                inner.folder(folder)?.change(EntryChange::Put(to.into(), Node::File(file)));
                Ok(())
            },
        )
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        if !matches!(self.node(name).ok_or(Errno::NOENT)?, Node::File(_)) {
            return Err(Errno::ISDIR.into());
        }
        self.change(
            || Operation::Remove(name.into()),
            false,
            |inner| {
                inner.folder(self.folder)?.change(EntryChange::Remove(name.into()));
                Ok(())
            },
        )
    }

    fn existing_folder(&self, name: &str) -> io::Result<Option<Arc<dyn Folder>>> {
        self.disk.lock().read_fails()?;
        match self.node(name) {
            Some(Node::Folder(folder)) => Ok(Some(Arc::new(Self { disk: self.disk.clone(), folder }))),
            Some(Node::File(_)) => Err(Errno::NOTDIR.into()),
            None => Ok(None),
        }
    }

    fn folder(&self, name: &str) -> io::Result<Arc<dyn Folder>> {
        let folder = match self.node(name) {
            Some(Node::Folder(folder)) => folder,
            Some(Node::File(_)) => return Err(Errno::NOTDIR.into()),
            None => {
                let mut created = 0;
                self.change(
                    || Operation::MakeFolder(name.into()),
                    true,
                    |inner| {
                        inner.state.folders.push(FolderState::default());
                        created = inner.state.folders.len() - 1;
                        inner
                            .folder(self.folder)?
                            .change(EntryChange::Put(name.into(), Node::Folder(created)));
                        Ok(())
                    },
                )?;
                created
            }
        };
        Ok(Arc::new(Self { disk: self.disk.clone(), folder }))
    }

    fn remove_folder(&self, _: &str) -> io::Result<()> {
        // only a partition directory is removed, through its parent; an in-memory directory has no parent
        Err(Errno::NOTEMPTY.into())
    }

    fn sync(&self) -> io::Result<()> {
        let mut inner = self.disk.lock();
        let outcome = inner.begin(|| Operation::SyncFolder, false);
        let folder = inner.folder(self.folder)?;
        match outcome {
            Outcome::Done | Outcome::Short => {
                folder.sync();
                Ok(())
            }
            // names are in a journal: they are not lost, but not durable either
            Outcome::Failed(error) | Outcome::FailedPartly(error) => Err(error),
        }
    }

    fn parent(&self) -> io::Result<Option<Arc<dyn Folder>>> {
        Ok(None)
    }

    fn in_memory(&self) -> Option<(&MemoryDisk, usize)> {
        Some((&self.disk, self.folder))
    }
}

/// An open file, by its index in the state.
#[derive(Debug)]
struct MemoryHandle {
    disk: MemoryDisk,
    file: usize,
}

impl MemoryHandle {
    fn change_size(
        &self,
        size: u64,
        operation: fn(Arc<str>, u64) -> Operation,
        needs_space: bool,
        change: impl FnOnce(&mut FileState, usize, usize),
    ) -> io::Result<()> {
        let mut inner = self.disk.lock();
        let name = Arc::clone(&inner.file(self.file)?.name);
        match inner.begin(|| operation(name, size), needs_space) {
            Outcome::Failed(error) | Outcome::FailedPartly(error) => return Err(error),
            Outcome::Done | Outcome::Short => {}
        }
        let (sector, size) = (inner.state.sector, offset(size)?);
        if needs_space {
            let missing = inner.file(self.file)?.missing_sectors(sector, 0, size);
            inner.take_sectors(missing)?;
        }
        change(inner.file(self.file)?, sector, size);
        inner.touched(self.file);
        Ok(())
    }
}

impl Handle for MemoryHandle {
    fn identity(&self) -> io::Result<FileIdentity> {
        let mut inner = self.disk.lock();
        let inode = self.file as u64 + 1;
        let file = inner.file(self.file)?;
        let time = |time| (0, i64::try_from(time).unwrap_or(i64::MAX));
        let (modified, changed) = (time(file.modified), time(file.changed));
        Ok(FileIdentity { inode, size: file.visible.len() as u64, modified, changed })
    }

    fn read_at(&self, buffer: &mut [u8], position: u64) -> io::Result<usize> {
        let mut inner = self.disk.lock();
        inner.read_fails()?;
        let visible = &inner.file(self.file)?.visible;
        let rest = usize::try_from(position).ok().and_then(|from| visible.get(from..)).unwrap_or_default();
        let length = rest.len().min(buffer.len());
        for (into, from) in buffer.iter_mut().zip(rest) {
            *into = *from;
        }
        Ok(length)
    }

    fn write_at(&self, bytes: &[u8], position: u64) -> io::Result<usize> {
        let mut inner = self.disk.lock();
        let (sector, start) = (inner.state.sector, offset(position)?);
        let file = inner.file(self.file)?;
        let name = Arc::clone(&file.name);
        let needs_space = !file.has_blocks(sector, start, bytes.len());
        let outcome = inner.begin(|| Operation::Write(name, position, bytes.len()), needs_space);
        let (length, failed) = match outcome {
            Outcome::Done => (inner.fitting(self.file, start, bytes.len())?, None),
            Outcome::Short => (bytes.len().div_ceil(2), None),
            Outcome::FailedPartly(error) => (bytes.len() / 2, Some(error)),
            Outcome::Failed(error) => (0, Some(error)),
        };
        if length > 0 {
            inner.file(self.file)?.write(sector, start, bytes.get(..length).unwrap_or_default());
            inner.touched(self.file);
        }
        failed.map_or(Ok(length), Err)
    }

    fn set_size(&self, size: u64) -> io::Result<()> {
        self.change_size(size, Operation::SetSize, false, FileState::set_size)
    }

    fn allocate(&self, size: u64) -> io::Result<()> {
        self.change_size(size, Operation::Allocate, true, FileState::allocate)
    }

    fn reserve(&self, position: u64, length: u64) -> bool {
        let mut inner = self.disk.lock();
        let sector = inner.state.sector;
        let (Ok(position), Ok(length)) = (offset(position), offset(length)) else { return false };
        let free = inner.free_sectors();
        let Ok(file) = inner.file(self.file) else { return false };
        let is_reserved = free.is_some_and(|free| file.missing_sectors(sector, position, length) <= free);
        if is_reserved {
            file.take_blocks(sector, position, length);
        }
        is_reserved
    }

    fn sync(&self) -> io::Result<()> {
        let mut inner = self.disk.lock();
        let name = Arc::clone(&inner.file(self.file)?.name);
        let outcome = inner.begin(|| Operation::Sync(name), false);
        let file = inner.file(self.file)?;
        match outcome {
            Outcome::Done | Outcome::Short => {
                file.sync();
                Ok(())
            }
            Outcome::Failed(error) => Err(error),
            Outcome::FailedPartly(error) => {
                file.fail_sync();
                Err(error)
            }
        }
    }

    fn forget_cached(&self, position: u64) -> io::Result<()> {
        let position = offset(position)?;
        self.disk.lock().file(self.file)?.forget_cached(position);
        Ok(())
    }

    fn set_modified(&self, (_, nanoseconds): (i64, i64)) -> io::Result<()> {
        let modified = u64::try_from(nanoseconds).unwrap_or(0);
        let mut inner = self.disk.lock();
        let now = inner.operations;
        let file = inner.file(self.file)?;
        (file.modified, file.changed) = (modified, now);
        Ok(())
    }

    fn map(&self, _: usize) -> Option<Mmap> {
        None
    }
}

fn offset(position: u64) -> io::Result<usize> {
    usize::try_from(position).map_err(|_| Errno::FBIG.into())
}
