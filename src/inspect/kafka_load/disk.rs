//! The files of the directory as Kafka would change them. Nothing is changed: files that Kafka leaves as they
//! are, or only renames or shortens, are references to those on the disk, and the bytes of the others are in
//! memory.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::exception::{ExceptionKind, Step, Thrown};
use crate::error::{Error, IoAction, Result};
use crate::fs::names::FileKind;
use crate::fs::{Directory, FileBytes, FileType};
use crate::state::leader_epochs::LEADER_EPOCH_CHECKPOINT;
use crate::state::partition_metadata::PARTITION_METADATA;

/// The largest index or snapshot that is read into memory, bytes; zeros at its end do not count.
const MAX_LOADED_BYTES: usize = 256 << 20;

/// Bytes of one read.
const READ_BYTES: usize = 1 << 20;

/// The contents of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Contents {
    /// `size` bytes, from `start`, of a file of the inspected directory.
    Source { name: Arc<str>, start: u64, size: u64 },
    /// These bytes, and zeros up to `size`.
    Made { bytes: Vec<u8>, size: u64 },
}

impl Contents {
    pub(super) fn size(&self) -> u64 {
        match self {
            Self::Source { size, .. } | Self::Made { size, .. } => *size,
        }
    }

    pub(super) fn made(bytes: Vec<u8>) -> Self {
        Self::Made { size: bytes.len() as u64, bytes }
    }
}

/// The regular files of the directory.
#[derive(Debug)]
pub(super) struct Disk {
    directory: Directory,
    files: BTreeMap<String, Contents>,
    /// The sizes in the inspected directory.
    before: BTreeMap<String, u64>,
    /// The names of directories in it, sorted.
    directories: Vec<String>,
    max_batch_bytes: usize,
}

impl Disk {
    /// The files as they are.
    pub(super) fn of(directory: &Directory, max_batch_bytes: usize) -> Result<Self> {
        let (mut before, mut directories) = (BTreeMap::new(), Vec::new());
        for (name, file_type) in directory.entries()? {
            if file_type.is_dir() {
                directories.push(name.clone());
            }
            // a link with a name that a broker reads is opened: the error says that it is not followed
            let is_link = file_type == FileType::Symlink && is_read(&name);
            if is_link || matches!(file_type, FileType::RegularFile | FileType::Unknown) {
                before.insert(name.clone(), directory.open_file(&name)?.size());
            }
        }
        let source = |(name, size): (&String, &u64)| {
            (name.clone(), Contents::Source { name: name.as_str().into(), start: 0, size: *size })
        };
        let files = before.iter().map(source).collect();
        directories.sort_unstable();
        Ok(Self { directory: directory.clone(), files, before, directories, max_batch_bytes })
    }

    /// The largest batch that is read as a whole, bytes.
    pub(super) fn max_batch_bytes(&self) -> usize {
        self.max_batch_bytes
    }

    pub(super) fn directory(&self) -> &Directory {
        &self.directory
    }

    /// The sizes in the inspected directory.
    pub(super) fn before(&self) -> &BTreeMap<String, u64> {
        &self.before
    }

    /// The names, sorted.
    pub(super) fn names(&self) -> Vec<String> {
        self.files.keys().cloned().collect()
    }

    pub(super) fn files(&self) -> &BTreeMap<String, Contents> {
        &self.files
    }

    pub(super) fn size(&self, name: &str) -> Option<u64> {
        self.files.get(name).map(Contents::size)
    }

    /// Fails if Kafka cannot open the file because a directory has its name.
    pub(super) fn refuse_directory(&self, name: &str, kind: ExceptionKind) -> Step<()> {
        if self.is_directory(name) {
            return Err(Thrown::kafka(kind, name, "a directory has the name of the file"));
        }
        Ok(())
    }

    pub(super) fn is_directory(&self, name: &str) -> bool {
        self.directories.iter().any(|directory| directory == name)
    }

    pub(super) fn exists(&self, name: &str) -> bool {
        self.files.contains_key(name)
    }

    pub(super) fn remove(&mut self, name: &str) -> bool {
        self.files.remove(name).is_some()
    }

    /// Renames a file, and replaces any file with the new name. False if there is none.
    pub(super) fn rename(&mut self, from: &str, to: &str) -> bool {
        let renamed = self.files.remove(from);
        renamed.map(|contents| self.files.insert(to.to_owned(), contents)).is_some()
    }

    pub(super) fn put(&mut self, name: &str, contents: Contents) {
        self.files.insert(name.to_owned(), contents);
    }

    /// Shortens a file.
    pub(super) fn truncate(&mut self, name: &str, to: u64) {
        match self.files.get_mut(name) {
            Some(Contents::Source { size, .. }) => *size = to.min(*size),
            Some(Contents::Made { bytes, size }) => {
                bytes.truncate(usize::try_from(to).unwrap_or(usize::MAX));
                *size = to.min(*size);
            }
            None => {}
        }
    }

    /// The bytes of a file in memory, and its size; a file of the directory is read first. Creates no file.
    pub(super) fn load(&mut self, name: &str) -> Result<Option<(&mut Vec<u8>, &mut u64)>> {
        if let Some(contents @ Contents::Source { .. }) = self.files.get(name) {
            let made =
                Contents::Made { bytes: self.read(contents, MAX_LOADED_BYTES)?, size: contents.size() };
            self.files.insert(name.to_owned(), made);
        }
        Ok(match self.files.get_mut(name) {
            Some(Contents::Made { bytes, size }) => Some((bytes, size)),
            _ => None,
        })
    }

    /// The bytes of a file without the zeros at its end.
    pub(super) fn bytes(&self, name: &str) -> Result<Option<Vec<u8>>> {
        self.files.get(name).map(|contents| self.read(contents, MAX_LOADED_BYTES)).transpose()
    }

    /// Some bytes of a file.
    pub(super) fn bytes_at(&self, name: &str, position: u64, length: usize) -> Result<Vec<u8>> {
        let Some(contents) = self.files.get(name) else { return Ok(Vec::new()) };
        Ok(self.reader_of(contents)?.read(position, length)?.to_vec())
    }

    fn read(&self, contents: &Contents, limit: usize) -> Result<Vec<u8>> {
        let Contents::Source { name, size, .. } = contents else {
            let Contents::Made { bytes, .. } = contents else { return Ok(Vec::new()) };
            return Ok(bytes.clone());
        };
        let mut reader = self.reader_of(contents)?;
        let (mut bytes, mut zeros, mut position) = (Vec::new(), 0_usize, 0);
        while position < *size {
            let chunk = reader.read(position, READ_BYTES)?;
            let used = chunk.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
            if used > 0 {
                if bytes.len() + zeros + used > limit {
                    let found = format!(
                        "{size} bytes, more than the {limit} that are read of an index or a snapshot"
                    );
                    let error = std::io::Error::other(found);
                    return Err(Error::io(self.directory.path_of(name), IoAction::Read, error));
                }
                bytes.resize(bytes.len() + zeros, 0);
                bytes.extend_from_slice(chunk.get(..used).unwrap_or_default());
                zeros = 0;
            }
            zeros += chunk.len() - used;
            position += chunk.len() as u64;
        }
        Ok(bytes)
    }

    /// A reader of a file. `None` if there is none.
    pub(super) fn reader(&self, name: &str) -> Step<Option<Reader>> {
        Ok(self.files.get(name).map(|contents| self.reader_of(contents)).transpose()?)
    }

    fn reader_of(&self, contents: &Contents) -> Result<Reader> {
        Ok(match contents {
            Contents::Source { name, start, size } => {
                let file = FileBytes::new(self.directory.open_file(name)?, Some(start + size), false)?;
                Reader {
                    source: Source::File { file, start: *start },
                    size: *size,
                    window: 0,
                    buffer: Vec::new(),
                }
            }
            Contents::Made { bytes, size } => {
                Reader { source: Source::Bytes(bytes.clone()), size: *size, window: 0, buffer: Vec::new() }
            }
        })
    }

    /// Whether two files have the same bytes.
    pub(super) fn is_unchanged(&self, name: &str) -> Result<bool> {
        let (Some(contents), Some(size)) = (self.files.get(name), self.before.get(name)) else {
            return Ok(false);
        };
        let source = Contents::Source { name: name.into(), start: 0, size: *size };
        if contents == &source {
            return Ok(true);
        }
        if contents.size() != *size {
            return Ok(false);
        }
        let (mut one, mut other, mut position) = (self.reader_of(contents)?, self.reader_of(&source)?, 0);
        while position < *size {
            let chunk = one.read(position, READ_BYTES)?;
            if chunk.is_empty() || chunk != other.read(position, READ_BYTES)? {
                return Ok(false);
            }
            position += chunk.len() as u64;
        }
        Ok(true)
    }
}

/// Whether a broker opens a file with this name in a partition directory.
fn is_read(name: &str) -> bool {
    let is_of_metadata = name == "quorum-state" || name.ends_with(".checkpoint");
    is_of_metadata
        || FileKind::of_name(name).is_some()
        || [LEADER_EPOCH_CHECKPOINT, PARTITION_METADATA].contains(&name)
}

/// Reads a file by position.
#[derive(Debug)]
pub(super) struct Reader {
    source: Source,
    size: u64,
    /// The position of the buffer.
    window: u64,
    buffer: Vec<u8>,
}

#[derive(Debug)]
enum Source {
    File { file: FileBytes, start: u64 },
    Bytes(Vec<u8>),
}

impl Reader {
    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// `length` bytes at a position, or fewer at the end of the file.
    pub(super) fn read(&mut self, position: u64, length: usize) -> Result<&[u8]> {
        let left = usize::try_from(self.size.saturating_sub(position)).unwrap_or(usize::MAX);
        let length = length.min(left);
        let held = usize::try_from(position.wrapping_sub(self.window)).unwrap_or(usize::MAX);
        let is_held = position >= self.window && held.saturating_add(length) <= self.buffer.len();
        let held = if is_held { held } else { 0 };
        if !is_held {
            let wanted = length.max(READ_BYTES).min(left);
            match &self.source {
                Source::File { file, start } => file.copy(start + position, wanted, &mut self.buffer)?,
                Source::Bytes(bytes) => {
                    let start = usize::try_from(position).unwrap_or(usize::MAX).min(bytes.len());
                    self.buffer.clear();
                    self.buffer.extend(bytes.iter().skip(start).take(wanted));
                    self.buffer.resize(wanted, 0);
                }
            }
            self.window = position;
        }
        Ok(self.buffer.get(held..held + length).unwrap_or_default())
    }
}
