//! The slots of an offset or time index that is being written.

use std::path::Path;

use crate::error::{Error, Result};
use crate::fs::planted::{self, Planted};
use crate::fs::{Directory, WritableFile, WritableMap};

/// How far ahead of the entries the pages are made ready: a call for 8,192 offset entries (with an entry every 4,096 bytes
/// of log, 32 MiB of it).
const AHEAD: usize = 64 << 10;
/// Bytes of a page, or a part of it where the system's pages are larger.
const PAGE: usize = 4096;

/// Zeros to store over what was cut off.
static ZEROS: [u8; PAGE] = [0; PAGE];

/// A file with room for more slots than are used, and mapped: an entry is stored without a system call.
///
/// ```text
///   0                          used                                        length
///   | entry | entry | … | entry | 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 |
///   '-- which they are, the index counts --'-- ready ahead --'
/// ```
///
/// Blocks come first (`allocate`), the mapping second: a store into a hole of a full disk would end the process. Before
/// the file is cut the mapping goes, because a store behind the end of a file does the same.
///
/// Slots behind the entries are zeros, at any time: by them a reader tells where the entries of such a file end.
#[derive(Debug)]
pub(super) struct Preallocated<const SIZE: usize> {
    file: WritableFile,
    /// Of the whole slots; `None` where there is not one, because nothing cannot be mapped.
    map: Option<WritableMap>,
    /// Bytes of the file. Where another program left a fragment at its end, more than are mapped.
    length: u64,
    /// Up to where the pages of the mapping were made ready, bytes.
    ready: usize,
}

impl<const SIZE: usize> Preallocated<SIZE> {
    /// Makes a file of `max_index_size` bytes, rounded down to whole slots. Leaves no file behind where it fails.
    pub(super) fn create(directory: &Directory, name: &str, max_index_size: u64) -> Result<Self> {
        let length = Self::rounded(max_index_size);
        if length == 0 {
            let expected = format!("room for one entry at least, {SIZE} bytes");
            return Err(Error::config("max_index_size", expected, max_index_size.to_string()));
        }
        let file = directory.create(name)?;
        let mut made = allocate(&file, length).and_then(|()| Self::mapped(file, length));
        match &mut made {
            Ok(slots) => slots.make_ready(0),
            // the first error is the one to tell
            Err(_) => drop(directory.remove(name)),
        }
        made
    }

    /// Opens a file, which is made (as by [`Preallocated::create`]) where there is none. How many slots are entries, too:
    /// none of one that was made, all the whole ones of another.
    pub(super) fn open(directory: &Directory, name: &str, max_index_size: u64) -> Result<(Self, u64)> {
        let file = match directory.open_writable(name) {
            Err(error) if super::is_missing(&error) => {
                return Ok((Self::create(directory, name, max_index_size)?, 0));
            }
            file => file?,
        };
        let length = file.identity()?.size;
        // Kafka makes its indexes of holes, and a later store may meet one
        if Self::rounded(length) > 0 {
            allocate(&file, Self::rounded(length))?;
        }
        Ok((Self::mapped(file, length)?, length / SIZE as u64))
    }

    fn mapped(file: WritableFile, length: u64) -> Result<Self> {
        let map = map(&file, Self::rounded(length))?;
        Ok(Self { file, map, length, ready: 0 })
    }

    fn rounded(size: u64) -> u64 {
        size - size % SIZE as u64
    }

    /// The path by which the file was opened.
    pub(super) fn path(&self) -> &Path {
        self.file.path()
    }

    /// Bytes of the file.
    pub(super) fn file_size(&self) -> u64 {
        self.length
    }

    /// The whole slots.
    pub(super) fn bytes(&self) -> &[u8] {
        self.map.as_ref().map_or(&[], WritableMap::bytes)
    }

    /// Stores a slot, which must be below the number of whole slots.
    pub(super) fn store(&mut self, slot: u64, bytes: &[u8; SIZE]) {
        let position = position::<SIZE>(slot);
        if position.saturating_add(SIZE) > self.ready {
            self.make_ready(position);
        }
        if let Some(map) = &mut self.map {
            map.store(position, bytes);
        }
    }

    fn make_ready(&mut self, position: usize) {
        if let Some(map) = &self.map {
            map.populate(position, AHEAD);
        }
        self.ready = position.saturating_add(AHEAD);
    }

    /// Makes slots `from` (inclusive) to `to` (exclusive) zeros.
    pub(super) fn clear(&mut self, from: u64, to: u64) {
        let (mut start, end) = (position::<SIZE>(from), position::<SIZE>(to));
        let Some(map) = &mut self.map else { return };
        while start < end {
            let zeros = ZEROS.get(..end - start).unwrap_or(&ZEROS);
            map.store(start, zeros);
            start += zeros.len();
        }
    }

    /// Makes the file `max_index_size` bytes long, rounded down to whole slots; `used` of them are entries and stay.
    /// Whether its size changed.
    ///
    /// Where it fails it is as it was, but for a file that could be cut and then not be mapped: that has no slots any more.
    pub(super) fn resize(&mut self, max_index_size: u64, used: u64) -> Result<bool> {
        let length = Self::rounded(max_index_size);
        let needed = used * SIZE as u64;
        if length < needed {
            let expected = format!("{needed} bytes or more, because {used} entries are there");
            return Err(Error::config("max_index_size", expected, max_index_size.to_string()));
        }
        if length == self.length {
            return Ok(false);
        }
        if length > self.length {
            match allocate(&self.file, length).and_then(|()| map(&self.file, length)) {
                Ok(map) => self.map = map,
                Err(error) => {
                    // what was allocated on the way to a full disk is given back
                    let _ = self.file.set_size(self.length);
                    return Err(error);
                }
            }
        } else {
            self.map = None;
            let cut = self.file.set_size(length);
            let left = if cut.is_ok() { length } else { self.length };
            // until the mapping is back there is no slot to store into
            self.length = 0;
            self.map = map(&self.file, Self::rounded(left))?;
            self.length = left;
            cut?;
        }
        self.length = length;
        self.ready = 0;
        Ok(true)
    }

    /// Makes contents and size durable; `used` slots are entries.
    pub(super) fn flush(&mut self, used: u64) -> Result<()> {
        if let Some(map) = &self.map {
            map.sync()?;
        }
        self.file.sync()?;
        // the system notes the first store after that by a page fault; the next entry's page takes it now. Only this one:
        // every page that is made ready is written again by the next flush
        if let Some(map) = &self.map {
            let cursor = position::<SIZE>(used);
            map.populate(cursor, SIZE);
            self.ready = (cursor + SIZE).next_multiple_of(PAGE);
        }
        Ok(())
    }
}

/// Where a slot begins; slots are counted by what fits into memory.
fn position<const SIZE: usize>(slot: u64) -> usize {
    usize::try_from(slot).map_or(usize::MAX, |slot| slot.saturating_mul(SIZE))
}

fn allocate(file: &WritableFile, length: u64) -> Result<()> {
    if planted::is(Planted::IndexStoreIntoHole) {
        return file.set_size(length);
    }
    file.allocate(length)
}

fn map(file: &WritableFile, length: u64) -> Result<Option<WritableMap>> {
    match usize::try_from(length) {
        Ok(0) => Ok(None),
        Ok(length) => file.map(length).map(Some),
        Err(_) => Err(Error::config("max_index_size", "what fits into memory", length.to_string())),
    }
}
