//! The three indexes of a segment's `.log`, for reading and writing.
//!
//! ```text
//! .index         8 bytes an entry     0               4               8
//!                                     | relative i32  | position i32  |       offset − base · bytes into the .log
//!
//! .timeindex    12 bytes an entry     0                               8              12
//!                                     | timestamp i64                 | relative i32  |       ms · offset − base
//!
//! .txnindex     34 bytes an entry     0    2         10        18        26        34
//!                                     | v  | producer| first   | last    | stable  |    v: i16 = 0, the rest i64
//! ```
//!
//! Every number is big-endian; no file has a header or a checksum. The base offset is not in the file: it is
//! the number in its name. Results of this module have absolute offsets.
//!
//! # What an entry means
//!
//! **Offset index.** A batch starts at `position`, and `offset` is one of its offsets: Kafka 0.8 to 0.11
//! wrote the batch's first offset, 4.x writes its last, and one log can contain both kinds. Code must not
//! depend on which it is. A scan that starts at `position` reads every record at or above `offset`. Records
//! *before* `position` are below `offset`, so the entry to start from is the last one at or below the target.
//! Offsets increase strictly. Few batches have an entry, and a segment's first one usually has none.
//!
//! **Time index.** `timestamp` is the largest one of the segment up to and including the batch that contains
//! `offset`, and that batch is the first one with this timestamp. So every record with a larger timestamp is
//! after `offset`; records with smaller ones may be anywhere. Timestamps increase strictly, offsets do not
//! decrease.
//!
//! **Transaction index.** One entry for each transaction that was aborted and was not empty, in the segment
//! that contains its abort marker.
//!
//! # Hints
//!
//! This module does not check entries against the `.log`. It returns what the file contains, as Kafka does,
//! and never panics, whatever the contents. Callers that depend on an entry first check the batch it points
//! to. That also covers an entry that was half written while it was read.
//!
//! # Zero tails
//!
//! Kafka creates the index of the active segment at full size (10 MiB, zeros) and cuts it to its entries when
//! the segment is closed. After a crash, and while a broker runs, the zeros are still there. Kafka, when it
//! opens such a file, counts them as entries. The keys then decrease after the last real entry, and a search
//! that reads one of the zeros returns position 0 or another entry that is too early. The zeros can be
//! recognized: keys increase strictly and start at zero or above, so a slot other than the first that is all
//! zeros is not an entry. The start of the zeros is found once, by bisection, and nothing after it is used.
//!
//! Slot 0 is the only exception: (base offset, position 0) and (timestamp 0, base offset) are legal there,
//! and all zeros. If a real entry follows, it is an entry. Otherwise it cannot be distinguished from an index
//! that was created and never used, and it is not counted. Nothing is lost: such an entry points to the start
//! of the segment, as an empty index does.
//!
//! # Writing
//!
//! A writer is also a readable index. [`OffsetIndexWriter`] and [`TimeIndexWriter`] have a file of full size,
//! without blocks after its entries, and cut it to its entries when they are closed;
//! [`TransactionIndexWriter`] appends to a file that is created for the first entry. All write by position.
//! Each has one owner, and all methods for reading work on it. The bytes are Kafka's, except that entries
//! removed by a truncation are overwritten with zeros at once. Kafka leaves them after the last entry until
//! the file is cut, and a reader that searches for the start of the zeros would count them as entries. A
//! closed file has the same bytes as Kafka's.
//!
//! An existing file is used as it is, as in Kafka: all its whole slots are entries, so a file that a crash
//! left at full size must be reset and rebuilt from the `.log`.
//!
//! # The warm section
//!
//! Almost every search of a growing log has a target near its end: consumers that keep up, followers. Plain
//! binary search does not take advantage of this: it reads the middle, the three-quarter mark and so on, and
//! whenever the file grows by a page these marks move to other pages, which nobody has read for hours and
//! which are no longer in memory. Each of them is then a page fault, in the path of an append or a fetch.
//!
//! So Kafka searches the last 8,192 bytes first: 1,024 offset entries or 682 time entries. 8,192 bytes span
//! at most three pages of 4,096 bytes. A search in them reads their start and their middle, and one for the
//! newest entries, as most are, continues to their end: so all these pages are read all the time, and stay in
//! memory. A larger section would have pages that most searches do not read and that would leave memory; a
//! smaller one would cover less of the log without a benefit (with an entry every 4,096 bytes of log this one
//! covers the last 4 MiB by offset). Only a target below the section reads older pages.
//!
//! [`Method`] selects plain bisection, Kafka's search, or one that has some of the keys in memory (the module
//! `learned`). All return the same results from a file whose keys increase. [`OffsetIndex::trace`] shows the
//! difference: in an index of 13 full pages a look-up of an entry on the newest page reads the pages 0, 6, 9,
//! 11, 12 with [`Method::Binary`], the pages 10, 11, 12 with [`Method::Warm`], and page 12 with
//! [`Method::Learned`].

pub(crate) mod due_entries;
mod entry;
mod exclusive;
mod growing;
mod interpolation;
mod keyed_index;
mod lazy_model;
mod learned;
mod offset_index;
mod offset_index_writer;
mod preallocated;
mod sampled_keys;
mod search;
mod slots;
mod time_index;
mod time_index_writer;
mod transaction_index;
mod transaction_index_writer;
mod vector_search;

#[cfg(test)]
mod tests;

use std::path::Path;

pub use entry::Entry;
#[cfg(feature = "inspect")]
pub(crate) use entry::OFFSET_ENTRY_BYTES;
pub(crate) use entry::TIME_ENTRY_BYTES;
pub use exclusive::Exclusive;
pub use keyed_index::Index;
pub use offset_index::OffsetIndex;
pub use offset_index_writer::OffsetIndexWriter;
pub use search::Method;
#[cfg(feature = "inspect")]
pub(crate) use search::Search;
pub use time_index::TimeIndex;
pub use time_index_writer::TimeIndexWriter;
pub(crate) use transaction_index::encode as encode_aborted;
pub use transaction_index::{AbortedTransaction, TransactionIndex};
pub use transaction_index_writer::TransactionIndexWriter;

use crate::error::{Error, Result};
use crate::fs::names::FileKind;
use crate::fs::{FileBytes, SystemFile};

/// The file's bytes, and the base offset: the given one, else the digits at the start of its name.
fn open(path: &Path, kind: FileKind, base_offset: Option<i64>, map: bool) -> Result<(FileBytes, i64)> {
    refuse_other_kind(path, kind)?;
    let file = SystemFile::open(path)?;
    let base_offset = match base_offset {
        Some(given) => checked_base_offset(given)?,
        None => base_offset_of(path)?,
    };
    Ok((FileBytes::new(file, None, map)?, base_offset))
}

/// Fails if a file is of another kind by its suffix: its bytes would be read, or overwritten, as entries.
fn refuse_other_kind(path: &Path, kind: FileKind) -> Result<()> {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    match FileKind::of_name(name) {
        Some(other) if other != kind => {
            let expected = format!("a {} file", kind.suffix());
            Err(Error::config("path", expected, format!("{}, a {} file", path.display(), other.suffix())))
        }
        _ => Ok(()),
    }
}

fn checked_base_offset(given: i64) -> Result<i64> {
    if given < 0 {
        return Err(Error::config("base_offset", "an offset, 0 or above", given.to_string()));
    }
    Ok(given)
}

/// The base offset from the digits at the start of a file's name.
fn base_offset_of(path: &Path) -> Result<i64> {
    base_offset_in_name(path).ok_or_else(|| {
        let expected = "an offset, because the file's name does not begin with one";
        Error::config("base_offset", expected, format!("none for {}", path.display()))
    })
}

/// Accepts any number of leading digits, because copied files may have other names.
fn base_offset_in_name(path: &Path) -> Option<i64> {
    let name = path.file_name()?.to_str()?;
    let digits = name.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(name.len());
    name.get(..digits)?.parse().ok()
}

/// The offset as an entry stores it: relative to the segment's base offset.
///
/// Source: `AbstractIndex.relativeOffset`.
#[inline]
fn relative(offset: i64, base_offset: i64) -> Result<i32> {
    match offset.checked_sub(base_offset).map(i32::try_from) {
        Some(Ok(relative @ 0..)) => Ok(relative),
        _ => Err(out_of_range(offset, base_offset)),
    }
}

#[cold]
fn out_of_range(offset: i64, base_offset: i64) -> Error {
    let expected = format!("0 to {} above the base offset {base_offset}", i32::MAX);
    Error::config("offset", expected, offset.to_string())
}

/// The error of an append without a free slot.
#[cold]
fn full(path: &Path, entries: u64, max_entries: u64) -> Error {
    let found = format!("{entries} entries of {max_entries} in {}", path.display());
    Error::config("entries", "a free slot in the index", found)
}

/// Whether the error is a missing file.
fn is_missing(error: &Error) -> bool {
    matches!(error, Error::Io { source, .. } if source.kind() == std::io::ErrorKind::NotFound)
}

/// The error of `entry(n)` for a missing entry.
fn no_such_entry(n: u64, entries: u64) -> Error {
    Error::config("n", format!("0 <= n < {entries}, the number of entries"), n.to_string())
}
