//! Writes a `.txnindex` file.

use std::ops::Deref;

use super::growing::Growing;
use super::slots::Slots;
use super::transaction_index::encode;
use super::{AbortedTransaction, TransactionIndex, checked_base_offset};
use crate::error::{Error, Result};
use crate::fs::Directory;

/// A transaction index with one owner that appends to it. It is also a [`TransactionIndex`]: all methods for
/// reading work on it.
///
/// *Concurrency*: `&mut self` writes, `&self` reads; sharing it between threads needs a lock.
/// *Source*: `TransactionIndex`.
#[derive(Debug)]
pub struct TransactionIndexWriter {
    index: TransactionIndex,
    /// The last offset of the last entry, once it was read.
    last_offset: Option<i64>,
}

impl TransactionIndexWriter {
    /// Opens a file; if there is none, the first append creates it. `base_offset`: the segment's. Bytes after
    /// the last whole entry are ignored, and the next append overwrites them.
    ///
    /// # Errors
    /// [`Error::Config`] if `base_offset` is negative; [`Error::Io`].
    pub fn open(directory: &Directory, name: &str, base_offset: i64) -> Result<Self> {
        let base_offset = checked_base_offset(base_offset)?;
        let slots = Slots::growing(Growing::open(directory, name)?);
        Ok(Self { index: TransactionIndex::of(slots, base_offset), last_offset: None })
    }

    /// Adds an entry.
    ///
    /// *Source*: `TransactionIndex.append`; Kafka compares only with entries appended since it opened the
    /// file, this also with existing ones.
    ///
    /// # Errors
    /// [`Error::Config`] if its last offset is not above that of the last entry; errors of
    /// [`TransactionIndex::last_entry`]; [`Error::Io`]. On an error no entry is added.
    pub fn append(&mut self, aborted: AbortedTransaction) -> Result<()> {
        if self.last_offset.is_none() {
            self.last_offset = self.index.last_entry()?.map(|last| last.last_offset);
        }
        if let Some(last) = self.last_offset
            && aborted.last_offset <= last
        {
            let expected = format!("above {last}, the last offset of the last entry");
            return Err(Error::config("last_offset", expected, aborted.last_offset.to_string()));
        }
        if let Some(slots) = self.index.slots.growing_mut() {
            slots.append(&encode(aborted))?;
        }
        self.last_offset = Some(aborted.last_offset);
        Ok(())
    }

    /// Cuts the file at the first entry whose last offset is at or above `offset`.
    ///
    /// *Source*: `TransactionIndex.truncateTo`.
    ///
    /// # Errors
    /// Those of [`TransactionIndex::entry`]; [`Error::Io`].
    pub fn truncate_to(&mut self, offset: i64) -> Result<()> {
        let mut kept = None;
        self.index.visit(|n, entry| {
            if entry.last_offset >= offset {
                kept = Some(n);
            }
            Ok(kept.is_none())
        })?;
        kept.map_or(Ok(()), |kept| self.keep(kept))
    }

    /// Drops all entries; an empty file remains.
    ///
    /// *Source*: `TransactionIndex.reset`.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn reset(&mut self) -> Result<()> {
        self.keep(0)
    }

    /// Makes contents, size and name durable, if there is a file: without the file, all transactions count as
    /// committed.
    ///
    /// # Errors
    /// [`Error::Io`]: data that was not durable yet may be lost, even if a later flush succeeds.
    pub fn flush(&mut self) -> Result<()> {
        self.index.slots.growing_mut().map_or(Ok(()), Growing::flush)
    }

    fn keep(&mut self, entries: u64) -> Result<()> {
        self.last_offset = None;
        self.index.slots.growing_mut().map_or(Ok(()), |slots| slots.truncate(entries))
    }
}

impl Deref for TransactionIndexWriter {
    type Target = TransactionIndex;

    fn deref(&self) -> &TransactionIndex {
        &self.index
    }
}
