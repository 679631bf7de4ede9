//! Look-ups of times in a segment's table of record times, which is built after enough of them.

use super::Segment;
use super::lazy_table::{FIRST_OF_MANY, FIRST_OF_SINGLE};
use super::offset_lookups::none_on_error;
use super::time_table::TimeTable;
use crate::error::Result;
use crate::types::TimestampOffset;

impl Segment {
    /// The first record of the segment at or above a time, if that is known without a system call: the
    /// segment has a table, and no call has found that a `LogWriter` opened the log, which could have
    /// truncated it since.
    #[inline]
    pub(crate) fn known_record(&self, target: i64) -> Option<TimestampOffset> {
        if self.open_files.is_counted() {
            return None;
        }
        let table = self.time_table.get()?;
        table.find(target, table.place(target))
    }

    /// The first record of the segment at or above a time, if the segment has a table; `None` if
    /// [`Segment::find_time`] is needed. Counts the look-up, and builds the table after enough of them.
    pub(crate) fn find_in_time_table(&self, target: i64) -> Result<Option<TimestampOffset>> {
        let Some(table) = self.counted_time_table(FIRST_OF_SINGLE)? else { return Ok(None) };
        self.check_unchanged()?;
        Ok(table.find(target, table.place(target)))
    }

    /// The table, after one more look-up.
    fn counted_time_table(&self, first: u64) -> Result<Option<&TimeTable>> {
        let min_lookups = || Ok(self.file_size()? / TimeTable::LOG_BYTES_PER_LOOKUP);
        let table = self.time_table.get_or_build(first, min_lookups, || TimeTable::read(self));
        if self.time_table.is_refused() {
            self.remember_more_batches();
        }
        none_on_error(table)
    }
}

/// Look-ups of many times in one segment, in its table if there is one.
pub(crate) struct TimeLookups<'a> {
    segment: &'a Segment,
    table: Option<&'a TimeTable>,
}

impl<'a> TimeLookups<'a> {
    pub(crate) fn new(segment: &'a Segment) -> Self {
        Self { segment, table: segment.time_table.get() }
    }

    /// The index of the line for a time; `None` without a table.
    #[inline]
    pub(crate) fn place(&self, target: i64) -> Option<usize> {
        self.table.map(|table| table.place(target))
    }

    /// Reads the line into the cache. The result has no meaning.
    #[inline]
    pub(crate) fn prefetch(&self, place: usize) -> u32 {
        self.table.map_or(0, |table| table.prefetch(place))
    }

    /// The first record of the segment at or above a time, whose line [`TimeLookups::place`] returned; `None`
    /// if a single look-up is needed.
    #[inline]
    pub(crate) fn find(&mut self, target: i64, place: Option<usize>) -> Result<Option<TimestampOffset>> {
        match (self.table, place) {
            (Some(table), Some(place)) => Ok(table.find(target, place)),
            _ => self.find_in_new_table(target),
        }
    }

    /// [`TimeLookups::find`] if the table did not exist when the line was computed.
    #[cold]
    fn find_in_new_table(&mut self, target: i64) -> Result<Option<TimestampOffset>> {
        self.table = self.segment.counted_time_table(FIRST_OF_MANY)?;
        Ok(self.table.and_then(|table| table.find(target, table.place(target))))
    }
}
