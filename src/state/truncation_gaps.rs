//! `.cordwood.gaps`: where the truncations of a `LogWriter` left gaps. A truncation inside a batch removes
//! all of it, and the log goes on at the target. Readers take any other gap of a log that is not compacted
//! for a loss.
//!
//! ```text
//!   0 offset i64 │ 8 crc32c u32      for each: the offset at which the log went on
//! ```
//!
//! The file is there from the first truncation on. A log that was truncated before it had the file has none:
//! any of its gaps may be that of a truncation.

use std::collections::HashSet;

use super::truncation_count::TRUNCATIONS;
use crate::error::Result;
use crate::fs::Directory;
use crate::record::crc;

/// The name of the file.
pub(crate) const GAPS: &str = ".cordwood.gaps";

/// Bytes of an entry.
const ENTRY: usize = 12;

/// Of a larger file nothing is known, and it does not grow.
const MAX_BYTES: u64 = 16 << 20;

/// The offsets at which a log went on after gaps of truncations.
#[derive(Debug)]
pub(crate) struct TruncationGaps(
    /// `None`: not known.
    Option<HashSet<i64>>,
);

impl TruncationGaps {
    /// Any gap may be one.
    pub(crate) const UNKNOWN: Self = Self(None);

    /// Reads the file of a log that was truncated. An entry that a crash has left in part is that of a
    /// truncation that had not begun.
    ///
    /// # Errors
    /// Those of reading the file.
    pub(crate) fn read(directory: &Directory) -> Result<Self> {
        let Some(bytes) = directory.read_small(GAPS, MAX_BYTES)? else { return Ok(Self::UNKNOWN) };
        Ok(Self(bytes.as_chunks::<ENTRY>().0.iter().map(offset_of).collect()))
    }

    /// Whether a truncation may have left the gap before a batch with this base offset.
    pub(crate) fn may_end_at(&self, offset: i64) -> bool {
        self.0.as_ref().is_none_or(|offsets| offsets.contains(&offset))
    }
}

/// Notes durably, before a truncation, that the log goes on at an offset after a gap; `None`: that it leaves
/// none.
///
/// # Errors
/// Those of writing the file.
pub(crate) fn note(directory: &Directory, end: Option<i64>) -> Result<()> {
    let file = match directory.identity_of(GAPS)? {
        Some(_) => directory.open_writable(GAPS)?,
        // what earlier truncations have left is not known
        None if directory.identity_of(TRUNCATIONS)?.is_some_and(|count| count.size > 0) => return Ok(()),
        None => {
            let file = directory.create(GAPS)?;
            directory.sync()?;
            file
        }
    };
    let Some(end) = end else { return Ok(()) };
    let offset = end.to_be_bytes();
    let entry = [&offset[..], &crc::crc32c(&offset).to_be_bytes()].concat();
    let size = file.identity()?.size;
    if size > MAX_BYTES {
        return Ok(());
    }
    file.write_all_at(&entry, size - size % ENTRY as u64)?;
    file.sync()
}

/// Makes the last entry durable, or removes what a crash has left of it.
///
/// # Errors
/// Those of reading and writing the file.
pub(crate) fn complete(directory: &Directory) -> Result<()> {
    if directory.identity_of(GAPS)?.is_some_and(|file| file.size > MAX_BYTES) {
        return Ok(());
    }
    let Some(bytes) = directory.read_small(GAPS, MAX_BYTES)? else { return Ok(()) };
    let file = directory.open_writable(GAPS)?;
    let (entries, rest) = bytes.as_chunks::<ENTRY>();
    let size = (bytes.len() - rest.len()) as u64;
    match entries.last() {
        Some(last) if offset_of(last).is_none() => file.set_size(size - ENTRY as u64)?,
        _ if !rest.is_empty() => file.set_size(size)?,
        // written again, because after a failed sync it may be in the page cache alone
        Some(last) => file.write_all_at(last, size - ENTRY as u64)?,
        None => {}
    }
    file.sync()
}

/// The offset in an entry; `None` if its checksum does not match.
fn offset_of(entry: &[u8; ENTRY]) -> Option<i64> {
    let (offset, checksum) = entry.split_first_chunk()?;
    (checksum == crc::crc32c(offset).to_be_bytes()).then(|| i64::from_be_bytes(*offset))
}
