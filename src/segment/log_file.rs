//! The bytes of one `.log`, either mapped or read through a window. Callers do not depend on which.

use std::sync::Arc;

use super::OpenFiles;
#[cfg(feature = "arrow")]
use super::shared_bytes::SharedBytes;
use super::shared_bytes::reusable;
use crate::error::{Malformed, Result};
use crate::fs::{FileBytes, are_zero, prefetch};
use crate::record::{BatchHeader, PREFIX, crc};
use crate::types::Interrupt;

/// A reader of one `.log` with a private window; positions are bytes from the start of the file.
#[derive(Debug)]
pub(crate) struct LogFile {
    bytes: Arc<FileBytes>,
    /// Bytes to read at a time if the file is not mapped.
    ahead: usize,
    open_files: Arc<OpenFiles>,
    /// The truncation count when the log was opened; `None` if no `LogWriter` had opened it.
    truncations: Option<u64>,
    /// Whether each read of the file checks the truncation count; otherwise the caller does, after its reads.
    checks_reads: bool,
    start: u64,
    window: Arc<Vec<u8>>,
}

impl LogFile {
    pub(crate) fn new(
        bytes: Arc<FileBytes>,
        ahead: usize,
        open_files: Arc<OpenFiles>,
        truncations: Option<u64>,
    ) -> Self {
        let (start, window) = (0, Arc::default());
        Self { bytes, ahead, open_files, truncations, checks_reads: true, start, window }
    }

    /// A new reader of the same bytes.
    pub(crate) fn new_reader(&self) -> Self {
        let reader =
            Self::new(Arc::clone(&self.bytes), self.ahead, Arc::clone(&self.open_files), self.truncations);
        Self { checks_reads: self.checks_reads, ..reader }
    }

    /// From now on the caller checks once, after its last read and before it uses what it has read, that the
    /// log is unchanged: with [`Segment::check_unchanged`](super::Segment::check_unchanged).
    pub(super) fn leave_check_to_caller(mut self) -> Self {
        self.checks_reads = false;
        self
    }

    /// Changes how many bytes to read at a time.
    pub(crate) fn set_ahead(&mut self, ahead: usize) {
        self.ahead = ahead;
    }

    /// The bytes that [`LogFile::read`] returned last, of which `length` are at `position`.
    #[cfg(feature = "arrow")]
    pub(crate) fn shared(&self, position: u64, length: usize) -> SharedBytes {
        let mapping = self.bytes.mapping();
        let start = if mapping.is_some() { position } else { position.saturating_sub(self.start) };
        let start = usize::try_from(start).unwrap_or(usize::MAX);
        let range = start..start.saturating_add(length);
        mapping.map_or_else(
            || SharedBytes::buffer(&self.window, range.clone()),
            |mapping| SharedBytes::mapped(mapping, range.clone()),
        )
    }

    /// The path of the file.
    pub(crate) fn path(&self) -> &std::path::Path {
        self.bytes.path()
    }

    /// The largest batch that is read, bytes.
    #[inline]
    pub(crate) fn max_batch_bytes(&self) -> usize {
        self.open_files.max_batch_bytes
    }

    /// Checked by operations that may read for a long time.
    pub(crate) fn interrupt(&self) -> Interrupt {
        self.open_files.interrupt
    }

    /// Fails if the log was truncated since it was opened: new bytes may have been written over the removed
    /// ones and read. So it is called after each read.
    pub(crate) fn check_unchanged(&self) -> Result<()> {
        self.open_files.check_truncations(self.truncations, || self.bytes.path().to_owned())
    }

    /// `length` bytes from `position`, or fewer at the end of the file.
    #[inline]
    pub(crate) fn read(&mut self, position: u64, length: usize) -> Result<&[u8]> {
        if self.bytes.mapped().is_none() {
            return self.read_window(position, length);
        }
        // asked again, because a borrow that one path returns lasts on the other path too
        let mapped = self.bytes.mapped().unwrap_or_default();
        let rest = usize::try_from(position).ok().and_then(|start| mapped.get(start..)).unwrap_or_default();
        Ok(rest.get(..length).unwrap_or(rest))
    }

    /// Up to `length` bytes from `position`: those that are mapped, or in the window.
    #[inline]
    pub(crate) fn in_memory(&self, position: u64, length: usize) -> &[u8] {
        let (bytes, start) = match self.bytes.mapped() {
            Some(mapped) => (mapped, Some(position)),
            None => (self.window.as_slice(), position.checked_sub(self.start)),
        };
        let start = start.and_then(|start| usize::try_from(start).ok());
        let rest = start.and_then(|start| bytes.get(start..)).unwrap_or_default();
        rest.get(..length).unwrap_or(rest)
    }

    /// The number at a position, which may be far from what is read next: the window stays where it is.
    /// `None` at the end of the file.
    pub(crate) fn number_at(&self, position: u64) -> Result<Option<i32>> {
        let number = |bytes: &[u8]| bytes.first_chunk().map(|bytes| i32::from_be_bytes(*bytes));
        if let Some(found) = number(self.in_memory(position, 4)) {
            return Ok(Some(found));
        }
        let mut bytes = Vec::new();
        self.bytes.copy(position, 4, &mut bytes)?;
        Ok(number(&bytes))
    }

    fn read_window(&mut self, position: u64, length: usize) -> Result<&[u8]> {
        let left = usize::try_from(self.bytes.size().saturating_sub(position)).unwrap_or(usize::MAX);
        let length = length.min(left);
        if self.in_window(position, length).is_none() {
            // far after the window: the batches are larger than what is read ahead, and the next jump will be
            // as far
            let read_to = self.start + self.window.len() as u64;
            let jumps = read_to > 0 && position.saturating_sub(read_to) > self.ahead as u64 / 4;
            let wanted = if jumps { length } else { length.max(self.ahead.min(left)) };
            // frees the memory of a window that once held a very large batch
            if self.window.capacity() > 4 * self.ahead.max(wanted) {
                self.window = Arc::default();
            }
            let kept = self.keep_from(position);
            // nothing else refers to it now, so this does not copy it
            let window = Arc::make_mut(&mut self.window);
            // after a roll, the zeros at the end of a preallocated file are gone
            let range = position..position + wanted as u64;
            self.bytes.copy_ahead(range, length, window, kept).inspect_err(|_| window.clear())?;
            if self.checks_reads {
                self.check_unchanged().inspect_err(|_| reusable(&mut self.window).clear())?;
            }
        }
        Ok(self.in_window(position, length).unwrap_or_default())
    }

    /// Moves the window to a position, with the bytes that it has from there on: what a batch that crosses
    /// its end has in it is not read again. Returns their number; what follows them in the window is to
    /// be replaced.
    fn keep_from(&mut self, position: u64) -> usize {
        let at = position.checked_sub(self.start).and_then(|at| usize::try_from(at).ok());
        let at = at.unwrap_or(usize::MAX).min(self.window.len());
        let kept = self.window.len() - at;
        self.start = position;
        if let Some(window) = Arc::get_mut(&mut self.window) {
            window.copy_within(at.., 0);
        } else {
            let shared = Arc::clone(&self.window);
            reusable(&mut self.window).extend_from_slice(shared.get(at..).unwrap_or_default());
        }
        kept
    }

    /// [`prefetch`] of bytes that are in a mapping; others are not loaded.
    #[inline]
    pub(crate) fn prefetch(&self, position: u64, length: usize) {
        let Some(mapped) = self.bytes.mapped() else { return };
        let start = usize::try_from(position).unwrap_or(usize::MAX);
        prefetch(mapped.get(start..start.saturating_add(length)).unwrap_or_default());
    }

    /// Checks the checksum of the batch with this header. One that is too large to be read at once is read in
    /// parts.
    #[inline]
    pub(crate) fn verify(
        &mut self,
        header: &BatchHeader,
        position: u64,
    ) -> Result<std::result::Result<(), Malformed>> {
        let size = usize::try_from(header.size).unwrap_or(usize::MAX);
        if size > self.max_batch_bytes() {
            return self.verify_in_parts(header, position);
        }
        Ok(header.ensure_valid(self.read(position, size)?))
    }

    #[cold]
    pub(super) fn verify_in_parts(
        &mut self,
        header: &BatchHeader,
        position: u64,
    ) -> Result<std::result::Result<(), Malformed>> {
        let covered = if header.magic == 2 { 21 } else { PREFIX as u64 - 1 };
        let computed = self.checksum(header.magic, position + covered, position + u64::from(header.size))?;
        Ok(header.compare_checksum(computed))
    }

    /// The checksum of the bytes from `position` to `end`, as for a batch of this magic, read in parts.
    pub(crate) fn checksum(&mut self, magic: u8, mut position: u64, end: u64) -> Result<u32> {
        const CHUNK: usize = 128 << 10;
        let mut running = crc::Running::new(magic);
        while position < end {
            self.interrupt().check()?;
            let wanted = usize::try_from(end - position).unwrap_or(CHUNK).min(CHUNK);
            let bytes = self.read(position, wanted)?;
            running.update(bytes);
            position += bytes.len().max(1) as u64;
        }
        Ok(running.value())
    }

    /// Whether all bytes from `position` to `end` are zero, as in the tail of a preallocated file.
    pub(crate) fn is_zero(&mut self, mut position: u64, end: u64) -> Result<bool> {
        const CHUNK: usize = 128 << 10;
        while position < end {
            self.interrupt().check()?;
            // the hole of a file that was only given a size may be much larger than all its data
            position = self.bytes.after_hole(position)?;
            if position >= end {
                break;
            }
            // up to the end of a page: in a file in memory, a page of a hole is no longer one after it was
            // read through a mapping
            let chunk = CHUNK - usize::try_from(position % CHUNK as u64).unwrap_or(0);
            let wanted = usize::try_from(end - position).unwrap_or(chunk).min(chunk);
            let bytes = self.read(position, wanted)?;
            if !are_zero(bytes) {
                return Ok(false);
            }
            position += bytes.len().max(1) as u64;
        }
        Ok(true)
    }

    fn in_window(&self, position: u64, length: usize) -> Option<&[u8]> {
        let start = usize::try_from(position.checked_sub(self.start)?).ok()?;
        self.window.get(start..start.checked_add(length)?)
    }
}
