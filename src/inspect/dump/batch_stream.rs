//! The batches of a file, found by their lengths alone.
//!
//! The dump must show every batch that Kafka's file reader finds, and must end exactly where it ends: see
//! [`BatchPlace`].

use std::path::Path;

use crate::error::{Malformed, Result};
use crate::fs::{FileBytes, SystemFile};
use crate::inspect::batch_place::{BatchPlace, MIN_LENGTH, TooShort};
use crate::record::{PREFIX, crc};

/// Bytes that are read at once by a pass over whole batches.
pub(super) const BATCH_WINDOW: usize = 256 << 10;
/// Bytes that are read at once by a pass over headers: a page.
pub(super) const HEADER_WINDOW: usize = 4 << 10;

/// Kafka's limit on the size of a file of batches: positions are `i32`. Source: `FileRecords`.
const MAX_FILE_BYTES: u64 = 0x7fff_ffff;

/// Reads a file of batches. *Memory*: the window, or one batch where it is larger.
///
/// Kafka: `FileRecords`, `FileLogInputStream`.
#[derive(Debug)]
pub(super) struct BatchStream {
    bytes: FileBytes,
    window: Vec<u8>,
    window_start: u64,
    window_bytes: usize,
    position: u64,
    end: u64,
}

impl BatchStream {
    /// Opens a file. `window_bytes`: bytes to be read at once.
    ///
    /// # Errors
    /// [`Error::LogNotFound`](crate::Error::LogNotFound), [`Error::Io`](crate::Error::Io);
    /// [`Error::Corrupt`](crate::Error::Corrupt) if the file is larger than 2³¹ − 1 bytes.
    pub(super) fn open(path: &Path, window_bytes: usize) -> Result<Self> {
        let file = SystemFile::open(path)?;
        let size = file.size();
        if size > MAX_FILE_BYTES {
            let expected = format!("a segment of at most {MAX_FILE_BYTES} bytes");
            return Err(Malformed::new(expected, format!("{size} bytes")).at(path, MAX_FILE_BYTES, None));
        }
        Ok(Self {
            bytes: FileBytes::new(file, None, false)?,
            window: Vec::new(),
            window_start: 0,
            window_bytes,
            position: 0,
            end: size,
        })
    }

    /// Continues with the batches in `[position, position + length)`. Source: `FileRecords.slice`.
    ///
    /// # Errors
    /// [`Error::Corrupt`](crate::Error::Corrupt) if the position is not in the file.
    pub(super) fn slice(&mut self, position: i64, length: u64) -> Result<()> {
        let size = self.bytes.size();
        let Some(start) = u64::try_from(position).ok().filter(|start| *start <= size) else {
            let expected = format!("a position from 0 to {size}, the size of the file");
            return Err(self.corrupt(Malformed::new(expected, format!("position {position}")), size, None));
        };
        (self.position, self.end) = (start, start.saturating_add(length).min(size));
        Ok(())
    }

    /// The path of the file.
    pub(super) fn path(&self) -> &Path {
        self.bytes.path()
    }

    /// The position after the last batch that was returned.
    pub(super) fn position(&self) -> u64 {
        self.position
    }

    /// The end of the bytes that are read.
    pub(super) fn end(&self) -> u64 {
        self.end
    }

    /// The next batch; `None` at the end of the file, and where a batch is not whole.
    ///
    /// # Errors
    /// [`Error::Corrupt`](crate::Error::Corrupt) for a length below that of the smallest message;
    /// [`Error::LogChanged`](crate::Error::LogChanged), [`Error::Io`](crate::Error::Io).
    pub(super) fn next(&mut self) -> Result<Option<BatchPlace>> {
        let (position, end) = (self.position, self.end);
        if !BatchPlace::may_be_at(position, end) {
            return Ok(None);
        }
        let place = BatchPlace::read(self.bytes(position, PREFIX)?, position, end);
        let place = place.map_err(|TooShort(length)| {
            let expected = format!("a batch whose length is {MIN_LENGTH} or above");
            self.corrupt(Malformed::new(expected, format!("length {length}")), position, None)
        })?;
        if let Some(place) = &place {
            self.position = place.end();
        }
        Ok(place)
    }

    /// `length` bytes at a position, or fewer at the end of the file.
    ///
    /// # Errors
    /// [`Error::LogChanged`](crate::Error::LogChanged), [`Error::Io`](crate::Error::Io).
    pub(super) fn bytes(&mut self, position: u64, length: usize) -> Result<&[u8]> {
        let size = self.bytes.size();
        let wanted_end = position.saturating_add(length as u64).min(size);
        let window_end = self.window_start + self.window.len() as u64;
        if position < self.window_start || wanted_end > window_end {
            self.window_start = position;
            self.bytes.copy(position, length.max(self.window_bytes), &mut self.window)?;
        }
        let start = usize::try_from(position - self.window_start).unwrap_or(usize::MAX);
        let rest = self.window.get(start..).unwrap_or_default();
        Ok(rest.get(..length).unwrap_or(rest))
    }

    /// All bytes of a batch whose records are read.
    ///
    /// # Errors
    /// As [`BatchStream::bytes`]; [`Error::BatchTooLarge`](crate::Error::BatchTooLarge) for more than
    /// `max_batch_bytes`.
    pub(super) fn batch_up_to(&mut self, max_batch_bytes: usize, place: &BatchPlace) -> Result<&[u8]> {
        if place.size as usize > max_batch_bytes {
            let found = format!("{} bytes, as stored", place.size);
            let malformed = Malformed::too_large(max_batch_bytes, found);
            return Err(self.corrupt(malformed, place.position, Some(place.offset)));
        }
        self.batch(place)
    }

    fn batch(&mut self, place: &BatchPlace) -> Result<&[u8]> {
        self.bytes(place.position, place.size as usize)
    }

    /// The checksum of a batch's bytes from `start` on: CRC-32C for magic 2, CRC-32 for older ones. A batch
    /// larger than the window is read in parts.
    ///
    /// # Errors
    /// As [`BatchStream::bytes`].
    pub(super) fn checksum(&mut self, place: &BatchPlace, start: usize) -> Result<u32> {
        let magic = if place.magic >= 2 { 2 } else { 0 };
        let mut running = crc::Running::new(magic);
        let (mut position, end) = (place.position + start as u64, place.position + u64::from(place.size));
        if end - position <= self.window_bytes as u64 {
            // the header, which was read before, stays in the window
            let batch = self.batch(place)?;
            running.update(batch.get(start..).unwrap_or_default());
            return Ok(running.value());
        }
        while position < end {
            let length = usize::try_from(end - position).unwrap_or(usize::MAX).min(self.window_bytes);
            running.update(self.bytes(position, length)?);
            position += length as u64;
        }
        Ok(running.value())
    }

    /// The error for bytes at a position of this file.
    pub(super) fn corrupt(&self, malformed: Malformed, position: u64, offset: Option<i64>) -> crate::Error {
        malformed.at(self.path(), position, offset)
    }
}
