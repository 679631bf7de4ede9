//! The bytes of an index file as slots of one size.

use std::path::Path;
use std::sync::OnceLock;

use super::appended::Appended;
use super::preallocated::Preallocated;
use crate::error::{Error, Malformed, Result};
use crate::fs::FileBytes;

/// Bytes of a page: what the system reads when one byte is wanted, and what is read where nothing is mapped.
const PAGE: usize = 4096;
const PAGE_BYTES: u64 = PAGE as u64;

/// Files up to this size keep the pages that were read. Kafka's own indexes have 10 MiB at most unless somebody
/// configured more; without a limit, a file of any size would end up in memory.
const KEPT_BYTES: u64 = 64 << 20;

/// Slots of `SIZE` bytes. Any number of threads may read.
#[derive(Debug)]
pub(super) struct Slots<const SIZE: usize>(SlotSource<SIZE>);

/// Where the bytes are.
#[derive(Debug)]
enum SlotSource<const SIZE: usize> {
    /// In a file that is only read.
    Opened {
        bytes: FileBytes,
        /// One cell for each page of the file; none where the bytes are mapped or the file is too large to be kept.
        pages: Box<[OnceLock<Box<[u8]>>]>,
    },
    /// In an offset or time index that is being written.
    Preallocated(Preallocated<SIZE>),
    /// In a transaction index that is being written.
    Appended(Appended<SIZE>),
}

impl<const SIZE: usize> Slots<SIZE> {
    /// Reads nothing yet. A mapping is told that its reads will be scattered: one page is wanted, not its neighbours.
    pub(super) fn new(bytes: FileBytes) -> Self {
        bytes.advise_random();
        let kept = if bytes.mapped().is_none() && bytes.size() <= KEPT_BYTES {
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
    pub(super) fn appended(slots: Appended<SIZE>) -> Self {
        Self(SlotSource::Appended(slots))
    }

    /// The writing half; `None` for a file that is only read.
    pub(super) fn preallocated_mut(&mut self) -> Option<&mut Preallocated<SIZE>> {
        if let SlotSource::Preallocated(slots) = &mut self.0 { Some(slots) } else { None }
    }

    /// How many entries are only in memory.
    pub(super) fn unwritten(&self) -> u64 {
        if let SlotSource::Preallocated(slots) = &self.0 { slots.unwritten() } else { 0 }
    }

    /// The writing half; `None` for a file that is only read.
    pub(super) fn appended_mut(&mut self) -> Option<&mut Appended<SIZE>> {
        if let SlotSource::Appended(slots) = &mut self.0 { Some(slots) } else { None }
    }

    /// The file, as it was opened.
    pub(super) fn path(&self) -> &Path {
        match &self.0 {
            SlotSource::Opened { bytes, .. } => bytes.path(),
            SlotSource::Preallocated(slots) => slots.path(),
            SlotSource::Appended(slots) => slots.path(),
        }
    }

    /// Bytes of the file.
    fn file_size(&self) -> u64 {
        match &self.0 {
            SlotSource::Opened { bytes, .. } => bytes.size(),
            SlotSource::Preallocated(slots) => slots.file_size(),
            SlotSource::Appended(slots) => slots.file_size(),
        }
    }

    /// Bytes of one slot.
    pub(super) const fn size() -> u64 {
        SIZE as u64
    }

    /// How many whole slots the file has; a fragment behind the last is none.
    pub(super) fn whole(&self) -> u64 {
        self.file_size() / Self::size()
    }

    /// How many slots come before the zero tail; the module `index` says why the zeros are not entries.
    ///
    /// A file without a tail costs one slot at its end. Else the start of the zeros is bisected, which is right for a
    /// file of entries followed by zeros; with zeros between entries the answer is the start of one of the stretches.
    pub(super) fn before_zeros(&self) -> Result<u64> {
        let whole = self.whole();
        let Some(last) = whole.checked_sub(1) else { return Ok(0) };
        if !self.is_zero(last)? {
            return Ok(whole);
        }
        // slots below low are entries, high is zero; slot 0 proves nothing unless it is the only one
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
            // the zeros were cut off since the file was opened, as at every roll
            Err(Error::LogChanged { .. }) => Ok(true),
            slot => Ok(slot? == [0; SIZE]),
        }
    }

    /// The whole slot, which must be below [`Slots::whole`].
    pub(super) fn slot(&self, slot: u64) -> Result<[u8; SIZE]> {
        self.read(slot * Self::size())
    }

    /// The first `N` bytes of a slot: its key, and no byte behind it, which may be on another page.
    pub(super) fn start<const N: usize>(&self, slot: u64) -> Result<[u8; N]> {
        self.read(slot * Self::size())
    }

    /// Fails where the file is not a whole number of slots.
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
            SlotSource::Appended(slots) => Some(slots.read(position)?),
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
        found.ok_or_else(|| Error::LogChanged {
            file: self.path().to_owned(),
            expected: format!("{} bytes, as when it was opened", self.file_size()),
            found: format!("its end before position {}", position + N as u64),
        })
    }
}

/// The page that holds a position, read when it is first wanted; empty behind the end of the file.
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
    // two threads may read the same page; the first one's bytes are kept, so all see the same
    Ok(kept.get_or_init(|| read.into()))
}

/// A slot of 12 or 34 bytes can begin on one page and end on the next.
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

/// `N` bytes of a slot from byte `at` on. The layouts are constants, so they are always there.
pub(super) fn field<const N: usize>(slot: &[u8], at: u64) -> [u8; N] {
    chunk_at(slot, at).unwrap_or([0; N])
}

/// The pages of a file that were touched, in the order of their first touch.
#[derive(Debug, Default)]
pub(super) struct Touched(Vec<u64>);

impl Touched {
    /// Notes the pages of `length` bytes (1 or more) from `position` on.
    pub(super) fn touch(&mut self, position: u64, length: u64) {
        for page in position / PAGE_BYTES..=(position + length - 1) / PAGE_BYTES {
            // a search touches some dozens at most
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
