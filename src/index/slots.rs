//! The bytes of an index file as slots of one size.

use std::path::Path;
use std::sync::OnceLock;

use super::growing::Growing;
use super::preallocated::Preallocated;
use crate::error::{Error, Malformed, Result};
use crate::fs::FileBytes;

/// Bytes of a page: the unit in which the system reads, and in which an unmapped file is read.
const PAGE: usize = 4096;
pub(super) const PAGE_BYTES: u64 = PAGE as u64;

/// Pages of files up to this size are cached. Kafka's own indexes have 10 MiB at most by default; without a
/// limit, a file of any size could fill the memory.
const MAX_CACHED_FILE_BYTES: u64 = 64 << 20;

/// Bytes that a pass over all slots reads at once.
const PASS_BYTES: u64 = 128 << 10;

/// Slots of `SIZE` bytes. Any number of threads may read.
#[derive(Debug)]
pub(super) struct Slots<const SIZE: usize>(SlotSource<SIZE>);

/// The source of the bytes.
#[derive(Debug)]
enum SlotSource<const SIZE: usize> {
    /// A file that is only read.
    Opened {
        bytes: FileBytes,
        /// One cell for each page of the file; empty if the file is mapped or too large to be cached.
        pages: Box<[OnceLock<Box<[u8]>>]>,
    },
    /// An offset or time index that is being written.
    Preallocated(Preallocated<SIZE>),
    /// A transaction index that is being written.
    Growing(Growing<SIZE>),
}

impl<const SIZE: usize> Slots<SIZE> {
    /// Reads nothing yet. Advises the system that a mapping is read at random, so that it does not read
    /// ahead.
    pub(super) fn new(bytes: FileBytes) -> Self {
        bytes.advise_random();
        let kept = if bytes.mapped().is_none() && bytes.size() <= MAX_CACHED_FILE_BYTES {
            bytes.size().div_ceil(PAGE_BYTES)
        } else {
            0
        };
        let pages = (0..kept).map(|_| OnceLock::new()).collect();
        Self(SlotSource::Opened { bytes, pages })
    }

    /// The slots of an offset or time index that is being written.
    pub(super) fn preallocated(slots: Preallocated<SIZE>) -> Self {
        Self(SlotSource::Preallocated(slots))
    }

    /// The slots of a transaction index that is being written.
    pub(super) fn growing(slots: Growing<SIZE>) -> Self {
        Self(SlotSource::Growing(slots))
    }

    /// The writing half; `None` for a file that is only read.
    pub(super) fn preallocated_mut(&mut self) -> Option<&mut Preallocated<SIZE>> {
        if let SlotSource::Preallocated(slots) = &mut self.0 { Some(slots) } else { None }
    }

    /// The number of entries that are only in memory.
    pub(super) fn unwritten(&self) -> u64 {
        if let SlotSource::Preallocated(slots) = &self.0 { slots.unwritten() } else { 0 }
    }

    /// The writing half; `None` for a file that is only read.
    pub(super) fn growing_mut(&mut self) -> Option<&mut Growing<SIZE>> {
        if let SlotSource::Growing(slots) = &mut self.0 { Some(slots) } else { None }
    }

    /// The path by which the file was opened.
    pub(super) fn path(&self) -> &Path {
        match &self.0 {
            SlotSource::Opened { bytes, .. } => bytes.path(),
            SlotSource::Preallocated(slots) => slots.path(),
            SlotSource::Growing(slots) => slots.path(),
        }
    }

    /// Bytes of the file.
    fn file_size(&self) -> u64 {
        match &self.0 {
            SlotSource::Opened { bytes, .. } => bytes.size(),
            SlotSource::Preallocated(slots) => slots.file_size(),
            SlotSource::Growing(slots) => slots.file_size(),
        }
    }

    /// Bytes of one slot.
    pub(super) const fn size() -> u64 {
        SIZE as u64
    }

    /// The number of whole slots of the file, without a fragment after the last.
    pub(super) fn whole(&self) -> u64 {
        self.file_size() / Self::size()
    }

    /// The number of slots before the zero tail; the module `index` explains why the zeros are not entries.
    ///
    /// For a file without a tail this reads only the last slot. Otherwise the start of the zeros is bisected,
    /// which is right for a file of entries followed by zeros; with zeros between entries the result is
    /// the start of any run of zeros.
    pub(super) fn count_before_zeros(&self) -> Result<u64> {
        let whole = self.whole();
        let Some(last) = whole.checked_sub(1) else { return Ok(0) };
        if !self.is_zero(last)? {
            return Ok(whole);
        }
        // slots below low are entries, high is zero; slot 0 may be all zeros and still be an entry
        let (mut low, mut high) = (1, last);
        while low < high {
            let mid = low + (high - low) / 2;
            if self.is_zero(mid)? {
                high = mid;
            } else {
                low = mid + 1;
            }
        }
        Ok(if low == 1 && self.is_zero(0)? { 0 } else { low })
    }

    fn is_zero(&self, slot: u64) -> Result<bool> {
        match self.slot(slot) {
            // the zeros were removed since the file was opened, as at every roll
            Err(Error::LogChanged { .. }) => Ok(true),
            slot => Ok(slot? == [0; SIZE]),
        }
    }

    /// All whole slots, if the file is mapped: then a slot can be read without an error.
    #[inline]
    pub(super) fn mapped(&self) -> Option<&[[u8; SIZE]]> {
        match &self.0 {
            SlotSource::Opened { bytes, .. } => Some(bytes.mapped()?.as_chunks().0),
            SlotSource::Preallocated(_) | SlotSource::Growing(_) => None,
        }
    }

    /// Whether the file is only read.
    pub(super) fn is_opened(&self) -> bool {
        matches!(self.0, SlotSource::Opened { .. })
    }

    /// See [`FileBytes::is_deleted`]; false for an index that is being written.
    pub(super) fn is_deleted(&self) -> bool {
        if let SlotSource::Opened { bytes, .. } = &self.0 { bytes.is_deleted() } else { false }
    }

    /// The whole slot, which must be below [`Slots::whole`].
    pub(super) fn slot(&self, slot: u64) -> Result<[u8; SIZE]> {
        self.read(slot * Self::size())
    }

    /// The first `N` bytes of a slot: only its key, because the bytes after it may be on another page.
    pub(super) fn start<const N: usize>(&self, slot: u64) -> Result<[u8; N]> {
        self.read(slot * Self::size())
    }

    /// Calls `visit` with the first `count` slots, in order, until it returns false. Pages of a file that is
    /// not mapped are read through a buffer and are not cached.
    pub(super) fn visit(&self, count: u64, mut visit: impl FnMut(&[u8; SIZE]) -> Result<bool>) -> Result<()> {
        let mut buffer = Vec::new();
        let mut first = 0;
        while first < count {
            let wanted = (count - first).min(PASS_BYTES / Self::size());
            let position = first * Self::size();
            let length = usize::try_from(wanted * Self::size()).unwrap_or(PAGE);
            let (slots, _) = self.read_block(position, length, &mut buffer)?.as_chunks::<SIZE>();
            for slot in slots {
                if !visit(slot)? {
                    return Ok(());
                }
            }
            first += slots.len() as u64;
            if (slots.len() as u64) < wanted {
                return Err(self.shortened(first * Self::size()));
            }
        }
        Ok(())
    }

    /// The bytes of whole slots; fewer if the file is shorter now.
    fn read_block<'a>(&'a self, position: u64, length: usize, buffer: &'a mut Vec<u8>) -> Result<&'a [u8]> {
        match &self.0 {
            SlotSource::Opened { bytes, .. } => {
                bytes.advise_will_need(position, length);
                bytes.read_available(position, length, buffer)
            }
            SlotSource::Growing(slots) => {
                buffer.resize(length, 0);
                slots.read_into(buffer, position)?;
                Ok(buffer)
            }
            // the last ones may be in memory
            SlotSource::Preallocated(_) => {
                buffer.clear();
                let first = position / Self::size();
                for slot in first..first + length as u64 / Self::size() {
                    buffer.extend(self.slot(slot)?);
                }
                Ok(buffer)
            }
        }
    }

    /// Fails if the file is not a whole number of slots.
    pub(super) fn check_length(&self) -> Result<()> {
        let size = self.file_size();
        if size.is_multiple_of(Self::size()) {
            return Ok(());
        }
        let expected = format!("a file length that is a multiple of {SIZE} bytes");
        let end = self.whole() * Self::size();
        Err(Malformed::new(expected, format!("{size} bytes")).at(self.path(), end, None))
    }

    fn read<const N: usize>(&self, position: u64) -> Result<[u8; N]> {
        let found = match &self.0 {
            SlotSource::Preallocated(slots) => slots.read(position)?,
            SlotSource::Growing(slots) => Some(slots.read(position)?),
            SlotSource::Opened { bytes, pages } => match bytes.mapped() {
                Some(map) => chunk_at(map, position),
                None if pages.is_empty() => {
                    bytes.read_available(position, N, &mut Vec::new())?.first_chunk().copied()
                }
                None => match chunk_at(page(bytes, pages, position)?, position % PAGE_BYTES) {
                    Some(found) => Some(found),
                    None => across_pages(bytes, pages, position)?,
                },
            },
        };
        found.ok_or_else(|| self.shortened(position + N as u64))
    }

    /// The error for a file that now ends before a position.
    fn shortened(&self, position: u64) -> Error {
        Error::LogChanged {
            file: self.path().to_owned(),
            expected: format!("{} bytes, as when it was opened", self.file_size()),
            found: format!("its end before position {position}"),
        }
    }
}

/// The page that contains a position, read on first use; empty after the end of the file.
fn page<'a>(bytes: &FileBytes, pages: &'a [OnceLock<Box<[u8]>>], position: u64) -> Result<&'a [u8]> {
    let page = position / PAGE_BYTES;
    let Some(kept) = usize::try_from(page).ok().and_then(|page| pages.get(page)) else {
        return Ok(&[]);
    };
    if let Some(bytes) = kept.get() {
        return Ok(bytes);
    }
    let mut buffer = Vec::new();
    let read = bytes.read_available(page * PAGE_BYTES, PAGE, &mut buffer)?;
    // two threads may read the same page; the first one's bytes are cached, so all threads see the same bytes
    Ok(kept.get_or_init(|| read.into()))
}

/// Reads a slot of 12 or 34 bytes that starts on one page and ends on the next.
fn across_pages<const N: usize>(
    bytes: &FileBytes,
    pages: &[OnceLock<Box<[u8]>>],
    position: u64,
) -> Result<Option<[u8; N]>> {
    let mut found = [0; N];
    for (byte, position) in found.iter_mut().zip(position..) {
        let Some([read]) = chunk_at::<1>(page(bytes, pages, position)?, position % PAGE_BYTES) else {
            return Ok(None);
        };
        *byte = read;
    }
    Ok(Some(found))
}

pub(super) fn chunk_at<const N: usize>(bytes: &[u8], position: u64) -> Option<[u8; N]> {
    let start = usize::try_from(position).ok()?;
    bytes.get(start..)?.first_chunk().copied()
}

/// `N` bytes of a slot from byte `at`. Callers pass constants within the slot, so the default is never used.
pub(super) fn field<const N: usize>(slot: &[u8], at: u64) -> [u8; N] {
    chunk_at(slot, at).unwrap_or([0; N])
}

/// The pages of a file that were read, in the order of their first read.
#[derive(Debug, Default)]
pub(super) struct PageTrace(Vec<u64>);

impl PageTrace {
    /// Adds the pages of `length` bytes (1 or more) from `position`.
    pub(super) fn add(&mut self, position: u64, length: u64) {
        for page in position / PAGE_BYTES..=(position + length - 1) / PAGE_BYTES {
            // a search reads a few dozen at most
            if !self.0.contains(&page) {
                self.0.push(page);
            }
        }
    }

    /// Numbers of pages of 4,096 bytes.
    pub(super) fn into_pages(self) -> Vec<u64> {
        self.0
    }
}
