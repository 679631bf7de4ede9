//! Files opened for reading only, and their bytes.

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use memmap2::{Advice, Mmap};

use super::Handle;
use super::os::SystemHandle;
use crate::error::{Error, IoAction, NotFound, Result};

/// Identifies a file and its last change. Two identities are compared to detect a change, or another file
/// with the same name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileIdentity {
    /// The inode number.
    pub inode: u64,
    /// Bytes.
    pub size: u64,
    /// The time of the last modification: seconds and nanoseconds since the epoch.
    pub modified: (i64, i64),
    /// The time of the last change of the file or its attributes (`ctime`), which programs cannot set:
    /// seconds and nanoseconds since the epoch.
    pub changed: (i64, i64),
}

impl FileIdentity {
    /// The time of the last modification, ms since the epoch.
    pub fn modified_ms(&self) -> i64 {
        let (seconds, nanoseconds) = self.modified;
        seconds.saturating_mul(1000).saturating_add(nanoseconds / 1_000_000)
    }

    /// Whether the last modification is old enough, at `moment`, for any later modification to have a
    /// different time.
    pub(crate) fn is_older_than(&self, moment: SystemTime) -> bool {
        let since = moment.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
        i64::try_from(since).is_ok_and(|now| self.modified_ms().saturating_add(Self::TICK_MS) < now)
    }

    /// Much longer than the clock tick of any file system, ms.
    const TICK_MS: i64 = 2_000;
}

/// An open regular file. Its size is the size when it was opened.
#[derive(Debug)]
pub struct SystemFile {
    handle: Arc<dyn Handle>,
    path: PathBuf,
    identity: FileIdentity,
}

impl SystemFile {
    pub(super) fn new(handle: Arc<dyn Handle>, path: PathBuf) -> Result<Self> {
        let identity = handle.identity().map_err(|error| Error::io(&path, IoAction::Stat, error))?;
        Ok(Self { handle, path, identity })
    }

    /// Opens a regular file by its path, for reading. Follows symbolic links; never blocks.
    ///
    /// # Errors
    /// [`Error::LogNotFound`] if it does not exist; [`Error::Io`].
    pub fn open(path: &Path) -> Result<Self> {
        let path = std::path::absolute(path).map_err(|error| Error::io(path, IoAction::Resolve, error))?;
        match SystemHandle::open(&path) {
            Ok(handle) => Self::new(Arc::new(handle), path),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let advice = "give the path of one of a segment's files";
                Err(Error::LogNotFound { path, found: NotFound::NoFile, advice })
            }
            Err(error) => Err(Error::io(path, IoAction::Open, error)),
        }
    }

    /// The path by which it was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Size in bytes when the file was opened.
    pub fn size(&self) -> u64 {
        self.identity.size
    }

    /// The current size in bytes.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn size_now(&self) -> Result<u64> {
        self.handle.size().map_err(|error| Error::io(&self.path, IoAction::Stat, error))
    }

    /// The first position at or after this one that is not in a hole; `None` if the rest of the file is one.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn next_data(&self, position: u64) -> Result<Option<u64>> {
        self.handle.next_data(position).map_err(|error| Error::io(&self.path, IoAction::Read, error))
    }

    /// Drops the file's page cache, so that the next read is from the disk.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn forget_cached(&self) -> Result<()> {
        self.handle.forget_cached(0).map_err(|error| Error::io(&self.path, IoAction::DropCache, error))
    }

    /// The identity of the file when it was opened.
    pub fn identity(&self) -> FileIdentity {
        self.identity
    }

    /// Fills `buffer` with the bytes at `position`.
    ///
    /// # Errors
    /// [`Error::LogChanged`] if the file has become shorter; [`Error::Io`].
    pub fn read_exact_at(&self, position: u64, buffer: &mut [u8]) -> Result<()> {
        let length = buffer.len();
        self.read_at_least(position, length, buffer).map(drop)
    }

    /// Fills `buffer` with the bytes at `position`, or its start with fewer at the end of the file, but not
    /// with fewer than `length`. Returns their number.
    fn read_at_least(&self, position: u64, length: usize, buffer: &mut [u8]) -> Result<usize> {
        let read = read_available(&*self.handle, buffer, position);
        let read = read.map_err(|error| Error::io(&self.path, IoAction::Read, error))?;
        if read < length {
            return Err(Error::LogChanged {
                file: self.path.clone(),
                expected: format!("{} bytes", self.identity.size),
                found: format!("fewer than {} bytes", position + length as u64),
            });
        }
        Ok(read)
    }
}

/// Reads into a buffer until it is full or the file ends. Returns the number of bytes read.
fn read_available(handle: &dyn Handle, buffer: &mut [u8], position: u64) -> io::Result<usize> {
    let mut read = 0;
    while let Some(rest) = buffer.get_mut(read..).filter(|rest| !rest.is_empty()) {
        match handle.read_at(rest, position + read as u64) {
            Ok(0) => break,
            Ok(more) => read += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(read)
}

/// The bytes of a file, mapped into memory or read by position. Callers use both in the same way.
#[derive(Debug)]
pub struct FileBytes {
    file: SystemFile,
    map: Option<Arc<Mmap>>,
    size: u64,
}

impl FileBytes {
    /// The first `size` bytes of a file (`None`: all), mapped if `map` is true and there are any.
    ///
    /// # Errors
    /// [`Error::LogChanged`] if the file is shorter than `size`. If the system refuses the mapping, the bytes
    /// are read by position.
    pub fn new(file: SystemFile, size: Option<u64>, map: bool) -> Result<Self> {
        let size = size.unwrap_or(file.size());
        if file.size() < size {
            return Err(Error::LogChanged {
                file: file.path().to_owned(),
                expected: format!("at least {size} bytes"),
                found: format!("{} bytes", file.size()),
            });
        }
        let length = usize::try_from(size).ok().filter(|length| map && *length > 0);
        let map = length.and_then(|length| file.handle.map(length)).map(Arc::new);
        Ok(Self { file, map, size })
    }

    /// Advises the system that reads are random, so that it does not read ahead.
    pub fn advise_random(&self) {
        if let Some(map) = &self.map {
            // only advice: if it is refused, reads return the same bytes
            let _ = map.advise(Advice::Random);
        }
    }

    /// Advises the system that bytes of a mapping are read soon, so that it reads them at once and not page
    /// by page.
    pub(crate) fn advise_will_need(&self, position: u64, length: usize) {
        if let Some(map) = &self.map
            && let Ok(start) = usize::try_from(position)
            && let Some(left) = map.len().checked_sub(start).filter(|left| *left > 0)
        {
            // only advice, as above
            let _ = map.advise_range(Advice::WillNeed, start, length.min(left));
        }
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// The number of bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Whether the file has no name any more, as after it was deleted.
    pub(crate) fn is_deleted(&self) -> bool {
        self.file.handle.is_deleted()
    }

    /// All bytes if the file is mapped.
    pub fn mapped(&self) -> Option<&[u8]> {
        self.map.as_ref().map(|map| &***map)
    }

    /// The mapping, which can be kept after the file is closed.
    #[cfg(feature = "arrow")]
    pub(crate) fn mapping(&self) -> Option<Arc<Mmap>> {
        self.map.clone()
    }

    /// `length` bytes at `position`, or fewer at the end: borrowed from the mapping, or read into `buffer`.
    ///
    /// # Errors
    /// [`Error::LogChanged`] if the file has become shorter; [`Error::Io`].
    pub fn read<'a>(&'a self, position: u64, length: usize, buffer: &'a mut Vec<u8>) -> Result<&'a [u8]> {
        if let Some(map) = &self.map {
            let start = usize::try_from(position).unwrap_or(usize::MAX).min(map.len());
            let end = start.saturating_add(length).min(map.len());
            return Ok(map.get(start..end).unwrap_or_default());
        }
        self.copy(position, length, buffer)?;
        Ok(buffer)
    }

    /// Replaces the content of `buffer` by `length` bytes at `position`, or fewer at the end. The file is
    /// read, also if it is mapped.
    ///
    /// # Errors
    /// [`Error::LogChanged`] if the file has become shorter; [`Error::Io`].
    pub(crate) fn copy(&self, position: u64, length: usize, buffer: &mut Vec<u8>) -> Result<()> {
        let left = usize::try_from(self.size.saturating_sub(position)).unwrap_or(usize::MAX);
        buffer.resize(length.min(left), 0);
        if buffer.is_empty() { Ok(()) } else { self.file.read_exact_at(position, buffer) }
    }

    /// [`FileBytes::copy`] of the bytes from the start of a range to its end, fewer if the file has become
    /// shorter, but not fewer than `least`. The first `kept` bytes of the buffer are those at the start
    /// already.
    ///
    /// # Errors
    /// As [`FileBytes::copy`].
    pub(crate) fn copy_ahead(
        &self,
        range: Range<u64>,
        least: usize,
        buffer: &mut Vec<u8>,
        kept: usize,
    ) -> Result<()> {
        let bytes_to = |end: u64| usize::try_from(end.saturating_sub(range.start)).unwrap_or(usize::MAX);
        let left = bytes_to(self.size);
        buffer.resize(bytes_to(range.end).min(left), 0);
        let rest = buffer.get_mut(kept..).unwrap_or_default();
        if !rest.is_empty() {
            let wanted = least.min(left).saturating_sub(kept);
            let read = self.file.read_at_least(range.start + kept as u64, wanted, rest)?;
            buffer.truncate(kept + read);
        }
        Ok(())
    }

    /// The first position at or after this one that may have another byte than zero: holes are passed over
    /// without being read. At most the number of bytes.
    ///
    /// # Errors
    /// [`Error::LogChanged`] if the file has become shorter; [`Error::Io`].
    pub(crate) fn after_hole(&self, position: u64) -> Result<u64> {
        if let Some(data) = self.file.next_data(position)? {
            return Ok(data.min(self.size));
        }
        let size = self.file.size_now()?;
        if size < self.size {
            let expected = format!("{} bytes", self.size);
            let file = self.path().to_owned();
            return Err(Error::LogChanged { file, expected, found: format!("{size} bytes") });
        }
        Ok(self.size)
    }

    /// Like [`FileBytes::read`], but returns fewer bytes if the file has become shorter.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn read_available<'a>(
        &'a self,
        position: u64,
        length: usize,
        buffer: &'a mut Vec<u8>,
    ) -> Result<&'a [u8]> {
        if self.map.is_some() {
            return self.read(position, length, buffer);
        }
        let left = usize::try_from(self.size.saturating_sub(position)).unwrap_or(usize::MAX);
        buffer.resize(length.min(left), 0);
        let read = read_available(&*self.file.handle, buffer, position);
        buffer.truncate(read.map_err(|error| Error::io(self.path(), IoAction::Read, error))?);
        Ok(buffer)
    }
}

/// Fills a buffer from a position.
pub(super) fn read_exact(handle: &dyn Handle, buffer: &mut [u8], position: u64) -> io::Result<()> {
    if read_available(handle, buffer, position)? < buffer.len() {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(())
}

/// Whether all of some bytes are zero.
pub(crate) fn are_zero(bytes: &[u8]) -> bool {
    // a comparison of memory is fast in every build
    const ZEROS: [u8; 4096] = [0; 4096];
    bytes.chunks(ZEROS.len()).all(|part| ZEROS.starts_with(part))
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn holes_are_passed_over() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bytes");
        let file = std::fs::File::create(&path).unwrap();
        file.set_len(1 << 40).unwrap();
        let write = |byte, at| std::os::unix::fs::FileExt::write_all_at(&file, &[byte], at).unwrap();
        write(1, 3 << 30);
        let bytes = FileBytes::new(SystemFile::open(&path).unwrap(), None, false).unwrap();
        let data = bytes.after_hole(0).unwrap();
        assert!(((3 << 30) - (1 << 20)..=3 << 30).contains(&data), "{data}");
        assert_eq!(bytes.after_hole(3 << 30).unwrap(), 3 << 30);
        assert_eq!(bytes.after_hole(4 << 30).unwrap(), 1 << 40);
        file.set_len(1 << 39).unwrap();
        assert!(matches!(bytes.after_hole(4 << 30), Err(Error::LogChanged { .. })));
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
