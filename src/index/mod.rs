//! The three indexes that lie beside a segment's `.log`, read and written.
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
//! Every number is big-endian; no file has a header or a checksum. The base offset is not in the file: it is the number
//! in its name. Results of this room hold absolute offsets.
//!
//! # What an entry means
//!
//! **Offset index.** A batch starts at `position`, and `offset` is one of its offsets: Kafka 0.8 to 0.11 wrote the
//! batch's first, 4.x writes its last, and one log can hold both kinds. Both do the same service, and nothing may rest
//! on which it is: a scan that starts at `position` meets every record at or above `offset`. What lies *before*
//! `position` is below `offset`, so the entry to start from is the last one at or below the target. Offsets rise
//! strictly. Few batches have an entry, and a segment's first one usually has none.
//!
//! **Time index.** `timestamp` is the largest one of the segment up to and including the batch that holds `offset`, and
//! that batch reached it first. So every record with a larger timestamp lies behind `offset`; nothing is said about
//! records with smaller ones. Timestamps rise strictly, offsets do not fall.
//!
//! **Transaction index.** One entry for each transaction that was aborted and was not empty, in the segment that holds
//! its abort marker.
//!
//! # Hints
//!
//! None of this is checked against the `.log` here. The room answers what the file says, as Kafka does, and never panics
//! whatever the file holds; who rests an answer on an entry looks at the batch it points to first. That also covers an
//! entry that was half written while it was read.
//!
//! # Zero tails
//!
//! Kafka makes the index of the segment it appends to at full size (10 MiB, zeros) and cuts it to its entries when the
//! segment is closed. After a crash, and under a running broker, the zeros are still there. Taken for entries, as Kafka
//! takes them when it opens such a file, they make the keys fall behind the last real entry, and a search that meets one
//! answers "start at position 0" or something no better. They can be told apart: keys rise strictly and begin at zero or
//! above, so a slot other than the first that is all zeros is no entry. Their start is found once, by bisection, and
//! nothing looks behind it.
//!
//! Slot 0 is the one exception: (base offset, position 0) and (timestamp 0, base offset) are legal there, and all zeros.
//! Where a real entry follows, it is an entry. Where none does, it cannot be told from an index that was made and never
//! used, and it does not count. Nothing is lost: it would say "start at the beginning", and so does an empty index.
//!
//! # Writing
//!
//! A writer is an index that grows as well: [`OffsetIndexWriter`] and [`TimeIndexWriter`] have a file of full size, without
//! blocks after its entries, and cut it to its entries when they are closed; [`TransactionIndexWriter`] appends to a file
//! that is made for the first entry. All write by position. Each has one owner, and every method that reads works on it,
//! too. The bytes are Kafka's, except that what a truncation cuts off is overwritten with zeros at once. Kafka leaves it
//! after the last entry until the file is cut, and a reader that looks for the start of the zeros would take it for entries.
//! A file that was closed is the same.
//!
//! A file that is there already is taken as it is, as in Kafka: all its whole slots are entries, and what a crash left at
//! full size has to be reset and built again from the `.log`.
//!
//! # The warm section
//!
//! Almost every search of a growing log asks for something near its end: consumers that keep up, followers. Plain binary
//! search does not take advantage of it: it goes through the middle, the three-quarter mark and so on, and whenever the
//! file grows by a page these marks move to other pages, which nobody has read for hours and which are no longer in
//! memory. Each of them is then a page fault, in the path of an append or a fetch.
//!
//! So Kafka looks at the last 8,192 bytes first: 1,024 offset entries or 682 time entries. 8,192 bytes lie on three pages
//! of 4,096 bytes at most. A search in them probes their start and their middle, and one for the newest entries, as most
//! are, goes on to their end: so all of these pages are read all the time, and stay in memory. A larger section would
//! have pages that most searches miss, which go cold again; a smaller one would cover less of the log for nothing (with
//! an entry every 4,096 bytes of log this one covers the last 4 MiB by offset). Only a target below the section pays for
//! older pages.
//!
//! [`Method`] says which of the two is used; both give the same answers. [`OffsetIndex::trace`] shows the difference:
//! in an index of 13 full pages the newest entry costs [`Method::Binary`] the pages 0, 6, 9, 11, 12, and
//! [`Method::Warm`] the pages 10, 11, 12.

mod appended;
pub(crate) mod entries;
mod exclusive;
mod keyed_index;
mod offset_index;
mod offset_index_writer;
mod preallocated;
mod search;
mod slots;
mod time_index;
mod time_index_writer;
mod transaction_index;
mod transaction_index_writer;

#[cfg(test)]
mod tests;

use std::path::Path;

pub use exclusive::Exclusive;
pub use keyed_index::{Entry, Index};
pub use offset_index::OffsetIndex;
pub use offset_index_writer::OffsetIndexWriter;
pub use search::Method;
pub use time_index::TimeIndex;
pub use time_index_writer::TimeIndexWriter;
pub use transaction_index::{AbortedTransaction, TransactionIndex};
pub use transaction_index_writer::TransactionIndexWriter;

use crate::error::{Error, Result};
use crate::fs::{FileBytes, SystemFile};

/// The file's bytes, and the base offset: the given one, else the digits that its name begins with.
fn open(path: &Path, base_offset: Option<i64>, map: bool) -> Result<(FileBytes, i64)> {
    let file = SystemFile::open(path)?;
    let base_offset = match base_offset {
        Some(given) => checked_base_offset(given)?,
        None => base_offset_of(path)?,
    };
    Ok((FileBytes::new(file, None, map)?, base_offset))
}

fn checked_base_offset(given: i64) -> Result<i64> {
    if given < 0 {
        return Err(Error::config("base_offset", "an offset, 0 or above", given.to_string()));
    }
    Ok(given)
}

/// The digits that a file's name begins with.
fn base_offset_of(path: &Path) -> Result<i64> {
    base_offset_in_name(path).ok_or_else(|| {
        let expected = "an offset, because the file's name does not begin with one";
        Error::config("base_offset", expected, format!("none for {}", path.display()))
    })
}

/// Any number of leading digits will do: files that were copied away from their directory have all kinds of names.
fn base_offset_in_name(path: &Path) -> Option<i64> {
    let name = path.file_name()?.to_str()?;
    let digits = name.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(name.len());
    name.get(..digits)?.parse().ok()
}

/// What an entry holds of an offset: how far it is from the segment's base offset.
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

/// The error of an append for which there is no slot.
#[cold]
fn full(path: &Path, entries: u64, max_entries: u64) -> Error {
    let found = format!("{entries} entries of {max_entries} in {}", path.display());
    Error::config("entries", "a free slot in the index", found)
}

/// Whether a file is not there.
fn is_missing(error: &Error) -> bool {
    matches!(error, Error::Io { source, .. } if source.kind() == std::io::ErrorKind::NotFound)
}

/// The error of an `entry(n)` that is not there.
fn no_such_entry(n: u64, entries: u64) -> Error {
    Error::config("n", format!("0 <= n < {entries}, the number of entries"), n.to_string())
}
