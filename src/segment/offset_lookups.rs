//! Look-ups of offsets in a segment's table of batches, which is built after enough of them.

use super::batch_table::{BatchTable, FoundBatch};
use super::buckets::Bucket;
use super::lazy_table::{FIRST_OF_MANY, FIRST_OF_SINGLE};
use super::{LOOKUP_READ, LogFile, Segment};
use crate::error::{Error, Result};

/// Bytes of a batch, before one was found.
const TYPICAL_BATCH_BYTES: u64 = 16 << 10;

impl Segment {
    /// The batch that contains `offset`, or the next one of the segment, if that is known without a system
    /// call: the table has it, its checksum was verified, and no call has found that a `LogWriter` opened
    /// the log, which could have truncated it since.
    #[inline]
    pub(crate) fn known_batch(&self, offset: i64) -> Option<FoundBatch> {
        if self.open_files.is_counted() {
            return None;
        }
        let table = self.batch_table.get()?;
        table.find(offset, table.bucket(offset))
    }

    /// The batch that contains `offset`, or the next one of the segment, if the segment has a table; `None`
    /// if [`Segment::find_offset`] is needed. Counts the look-up, and builds the table after enough of
    /// them.
    pub(crate) fn find_in_batch_table(&self, offset: i64) -> Result<Option<FoundBatch>> {
        let Some(table) = self.counted_batch_table(FIRST_OF_SINGLE)? else { return Ok(None) };
        self.check_unchanged()?;
        if let Some(found) = table.find(offset, table.bucket(offset)) {
            return Ok(Some(found));
        }
        // the single look-up returns the read error
        Ok(self.log_file(LOOKUP_READ).ok().and_then(|mut log| table.verify(offset, &mut log).ok().flatten()))
    }

    /// The table, after one more look-up.
    fn counted_batch_table(&self, first: u64) -> Result<Option<&BatchTable>> {
        let min_lookups = || Ok(self.typical_batches()? / BatchTable::HEADERS_PER_LOOKUP);
        let table = self.batch_table.get_or_build(first, min_lookups, || BatchTable::read(self));
        if self.batch_table.is_refused() {
            self.remember_more_batches();
        }
        none_on_error(table)
    }

    /// Makes room for most batches in the cache of verified ones, for a segment that has no table.
    pub(super) fn remember_more_batches(&self) {
        if let Ok(batches) = self.typical_batches() {
            self.verified.grow(batches, &self.open_files.tables);
        }
    }

    /// The number of batches if all were as large as those found last.
    fn typical_batches(&self) -> Result<u64> {
        Ok(self.file_size()? / self.typical_found_bytes().unwrap_or(TYPICAL_BATCH_BYTES))
    }
}

/// Look-ups of many offsets in one segment, in its table if there is one.
pub(crate) struct OffsetLookups<'a> {
    segment: &'a Segment,
    table: Option<&'a BatchTable>,
    /// Reads batches of the table that are not verified yet.
    log: Option<LogFile>,
}

impl<'a> OffsetLookups<'a> {
    pub(crate) fn new(segment: &'a Segment) -> Self {
        Self { segment, table: segment.batch_table.get(), log: None }
    }

    /// The bucket of an offset in the table; `None` without a table.
    #[inline]
    pub(crate) fn bucket(&self, offset: i64) -> Option<Bucket> {
        self.table.map(|table| table.bucket(offset))
    }

    /// Reads the first row of a bucket into the cache. The result has no meaning.
    #[inline]
    pub(crate) fn prefetch(&self, bucket: Bucket) -> u32 {
        self.table.map_or(0, |table| table.prefetch(bucket))
    }

    /// The batch of an offset, whose bucket [`OffsetLookups::bucket`] returned; `None` if a single look-up is
    /// needed.
    #[inline]
    pub(crate) fn find(&mut self, offset: i64, bucket: Option<Bucket>) -> Result<Option<FoundBatch>> {
        let found = self.table.zip(bucket).and_then(|(table, bucket)| table.find(offset, bucket));
        found.map_or_else(|| self.find_verified(offset), |found| Ok(Some(found)))
    }

    /// [`OffsetLookups::find`] if the table does not exist yet, or has not verified the batches.
    #[cold]
    fn find_verified(&mut self, offset: i64) -> Result<Option<FoundBatch>> {
        if self.table.is_none() {
            self.table = self.segment.counted_batch_table(FIRST_OF_MANY)?;
        }
        let Some(table) = self.table else { return Ok(None) };
        if self.log.is_none() {
            self.log = self.segment.log_file(LOOKUP_READ).ok();
        }
        // the single look-up returns the read error
        Ok(self.log.as_mut().and_then(|log| table.verify(offset, log).ok().flatten()))
    }
}

/// A table, or `None` if it cannot be built: the single look-up returns the error. Only an interrupt is
/// passed on.
pub(super) fn none_on_error<T>(table: Result<Option<T>>) -> Result<Option<T>> {
    match table {
        Err(interrupted @ Error::Interrupted(_)) => Err(interrupted),
        table => Ok(table.ok().flatten()),
    }
}
