//! The active segment: the `.log` that grows, and its indexes. Kafka: `LogSegment`, write side.

use super::roll::{RollState, is_relative};
use crate::error::{Error, Result};
use crate::fs::names::{FileKind, segment_file, segment_files_of};
use crate::fs::{Directory, WritableFile};
use crate::index::Entry;
use crate::index::due_entries::{DueEntries, EntryRule};
use crate::index::{AbortedTransaction, OffsetIndexWriter, TimeIndexWriter, TransactionIndexWriter};
use crate::record::BatchHeader;
use crate::types::{OffsetPosition, TimestampOffset};

/// The range of bytes of blocks to reserve after the data.
const MIN_RESERVED: u64 = 64 << 10;
const MAX_RESERVED: u64 = 4 << 20;

/// Index entries are written after this many bytes of log, or when this many entries are only in memory. A
/// reader in another process walks at most that far from the last entry in the file.
const MAX_UNINDEXED_BYTES: u64 = 256 << 10;
const MAX_UNWRITTEN_ENTRIES: u64 = 512;

/// How the files of a segment are created.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SegmentLayout {
    pub(crate) entry_rule: EntryRule,
    /// The size of a new `.log`: `segment.bytes` with `preallocate`, else 0.
    pub(crate) initial_size: u64,
}

/// The state of an existing segment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SegmentState {
    /// Bytes of data in the `.log`.
    pub(crate) size: u64,
    /// The largest timestamp of its first batch; `None` without a batch.
    pub(crate) first_batch_timestamp: Option<i64>,
    /// The largest timestamp, and the last offset of the first batch that has it; (−1, base offset) if no
    /// batch has a timestamp.
    pub(crate) largest: TimestampOffset,
}

impl SegmentState {
    /// The state of an empty segment.
    pub(crate) fn empty(base_offset: i64) -> Self {
        let largest = TimestampOffset { timestamp: -1, offset: base_offset };
        Self { size: 0, first_batch_timestamp: None, largest }
    }
}

/// The active segment of a writer.
#[derive(Debug)]
pub(crate) struct SegmentAppender {
    base_offset: i64,
    log: WritableFile,
    /// Bytes of data; a preallocated file is larger.
    size: u64,
    is_preallocated: bool,
    /// The position up to which blocks are reserved, above the end of the file; `None` if none are reserved.
    reserved: Option<u64>,
    offset_index: OffsetIndexWriter,
    time_index: TimeIndexWriter,
    transaction_index: TransactionIndexWriter,
    due_entries: DueEntries,
    /// Bytes of data when the last index entries were written.
    indexed_size: u64,
    first_batch_timestamp: Option<i64>,
    created: i64,
    jitter_ms: i64,
}

impl SegmentAppender {
    /// Creates an empty segment. Its names are durable after a sync of the directory. If this fails, some
    /// files may be left.
    pub(crate) fn create(
        directory: &Directory,
        base_offset: i64,
        layout: &SegmentLayout,
        now: i64,
        jitter_ms: i64,
    ) -> Result<Self> {
        // left by an earlier attempt or a crash: an old index would count as an index of this segment
        remove_segment(directory, base_offset)?;
        let log = directory.create(&segment_file(base_offset, FileKind::Log))?;
        if layout.initial_size > 0 {
            log.allocate(layout.initial_size)?;
        }
        let state = SegmentState::empty(base_offset);
        let segment = Self::new(directory, base_offset, log, state, layout)?;
        Ok(Self { created: now, jitter_ms, ..segment })
    }

    /// Opens an existing segment. Its indexes must be correct; a missing one is created empty.
    pub(crate) fn open(
        directory: &Directory,
        base_offset: i64,
        state: SegmentState,
        layout: &SegmentLayout,
        now: i64,
        jitter_ms: i64,
    ) -> Result<Self> {
        let log = directory.open_writable(&segment_file(base_offset, FileKind::Log))?;
        let segment = Self::new(directory, base_offset, log, state, layout)?;
        Ok(Self { created: now, jitter_ms, ..segment })
    }

    fn new(
        directory: &Directory,
        base_offset: i64,
        log: WritableFile,
        state: SegmentState,
        layout: &SegmentLayout,
    ) -> Result<Self> {
        let SegmentState { size, first_batch_timestamp, largest } = state;
        let name = |kind| segment_file(base_offset, kind);
        let max = layout.entry_rule.max_index_size;
        let mut offset_index =
            OffsetIndexWriter::open(directory, &name(FileKind::OffsetIndex), base_offset, max)?;
        let mut time_index = TimeIndexWriter::open(directory, &name(FileKind::TimeIndex), base_offset, max)?;
        let transaction_index =
            TransactionIndexWriter::open(directory, &name(FileKind::TransactionIndex), base_offset)?;
        // if `segment.index.bytes` was lowered, they may have more entries than it allows: then they are full
        offset_index.resize(max.max(offset_index.entries() * offset_index.entry_size()))?;
        time_index.resize(max.max(time_index.entries() * time_index.entry_size()))?;
        Ok(Self {
            base_offset,
            log,
            size,
            is_preallocated: layout.initial_size > 0,
            reserved: (layout.initial_size == 0).then_some(size),
            offset_index,
            time_index,
            transaction_index,
            due_entries: DueEntries::new(layout.entry_rule.interval_bytes, largest),
            indexed_size: size,
            first_batch_timestamp,
            created: 0,
            jitter_ms: 0,
        })
    }

    pub(crate) fn base_offset(&self) -> i64 {
        self.base_offset
    }

    /// Bytes of data.
    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// The `.log`.
    pub(crate) fn log(&self) -> &WritableFile {
        &self.log
    }

    /// Reserves blocks for the next writes, which makes them faster. Reserves as many bytes as the log has,
    /// within the limits, so that a small log takes little space.
    fn reserve(&mut self, wanted: u64) {
        let length = self.size.clamp(MIN_RESERVED, MAX_RESERVED).max(wanted);
        let is_reserved = self.log.reserve(self.size, length);
        // a failed reservation is not repeated
        self.reserved = is_reserved.then_some(self.size.saturating_add(length));
    }

    /// The state that the decision to roll depends on.
    pub(crate) fn roll_state(&self) -> RollState {
        RollState {
            base_offset: self.base_offset,
            size: self.size,
            first_batch_timestamp: self.first_batch_timestamp,
            created: self.created,
            jitter_ms: self.jitter_ms,
            is_offset_index_full: self.offset_index.is_full(),
            is_time_index_full: self.time_index.is_full(),
        }
    }

    /// Whether the indexes have slots for the entries of these batches. True for an empty segment, whatever
    /// the batches.
    ///
    /// Kafka only checks before an append whether an index is full, and fails in the middle of an append that
    /// fills it.
    pub(crate) fn has_index_room(&self, headers: &[BatchHeader]) -> bool {
        let mut due_entries = self.due_entries;
        let entries = headers.iter().filter(|header| due_entries.is_due_for(header)).count() as u64;
        let Some(before_last) = entries.checked_sub(1).filter(|_| self.size > 0) else { return true };
        let (offsets, times) = (&self.offset_index, &self.time_index);
        OffsetPosition::has_slot(offsets.entries() + before_last, offsets.max_entries(), false)
            && TimestampOffset::has_slot(times.entries() + before_last, times.max_entries(), false)
    }

    /// Appends whole batches, which `headers` describe, and the transactions that they abort: all of them, or
    /// none if this fails. The second value of an error is true if the write could not be undone: the
    /// contents of the files are then unknown.
    ///
    /// *Source*: `LogSegment.append`; one index entry per batch at most, as in 4.3.1.
    pub(crate) fn append(
        &mut self,
        bytes: &[u8],
        headers: &[BatchHeader],
        aborted: &[AbortedTransaction],
    ) -> Result<(), (Error, bool)> {
        debug_assert!(
            headers.iter().all(|header| is_relative(header.last_offset, self.base_offset)),
            "the caller rolls before such an append"
        );
        // before the batches: if one of the writes fails, the entries can be taken back, but not the batches,
        // which readers may have seen. After a crash, recovery derives the index again
        for transaction in aborted {
            if let Err(error) = self.transaction_index.append(*transaction) {
                return Err((error, !self.take_back(aborted)));
            }
        }
        let wanted = bytes.len() as u64;
        if self.reserved.is_some_and(|reserved| self.size + wanted > reserved) {
            self.reserve(wanted);
        }
        if let Err(error) = self.log.write_all_at(bytes, self.size) {
            // cutting the file frees its reserved blocks
            self.reserved = self.reserved.map(|_| self.size);
            let is_undone = self.log.set_size(self.size).is_ok();
            return Err((error, !is_undone || !self.take_back(aborted)));
        }
        for header in headers {
            if self.first_batch_timestamp.is_none() {
                self.first_batch_timestamp = Some(header.max_timestamp);
            }
            if self.due_entries.is_due_for(header) {
                // a `.log` is smaller than 2 GiB: the caller rolls before that
                let position = i32::try_from(self.size).unwrap_or(i32::MAX);
                let largest = self.due_entries.largest();
                // the batches are written: an index of an empty segment that is too small for them only makes
                // look-ups slower
                let _ = self.offset_index.add(header.last_offset, position);
                let _ = self.time_index.maybe_add(largest.timestamp, largest.offset, false);
            }
            self.size += u64::from(header.size);
        }
        if self.size - self.indexed_size >= MAX_UNINDEXED_BYTES
            || self.offset_index.unwritten() >= MAX_UNWRITTEN_ENTRIES
        {
            self.share_index_entries();
        }
        Ok(())
    }

    /// Removes the entries of aborted transactions whose markers were not written. Returns false if that
    /// fails.
    fn take_back(&mut self, aborted: &[AbortedTransaction]) -> bool {
        aborted.first().is_none_or(|first| self.transaction_index.truncate_to(first.last_offset).is_ok())
    }

    /// Writes the index entries that are only in memory, so that other processes see them.
    ///
    /// An error is ignored: readers find the records without the entries, which stay in memory until the next
    /// call writes them. [`SegmentAppender::seal`] returns such an error.
    pub(crate) fn share_index_entries(&mut self) {
        if self.write_index_entries().is_ok() {
            self.indexed_size = self.size;
        }
    }

    /// Writes the index entries that are only in memory. If it fails, they stay in memory.
    pub(crate) fn write_index_entries(&mut self) -> Result<()> {
        self.offset_index.write()?;
        self.time_index.write()
    }

    /// Removes the entries at or above `offset` from the indexes of a segment, and trims them: of this
    /// segment, or of an earlier one that becomes active again.
    ///
    /// *Source*: `LogSegment.truncateTo`.
    pub(crate) fn truncate_indexes(
        &mut self,
        directory: &Directory,
        base_offset: i64,
        offset: i64,
        layout: &SegmentLayout,
    ) -> Result<()> {
        if base_offset == self.base_offset {
            self.transaction_index.truncate_to(offset)?;
            return truncate(&mut self.offset_index, &mut self.time_index, offset);
        }
        let max = layout.entry_rule.max_index_size;
        let name = |kind| segment_file(base_offset, kind);
        let mut offset_index =
            OffsetIndexWriter::open(directory, &name(FileKind::OffsetIndex), base_offset, max)?;
        let mut time_index = TimeIndexWriter::open(directory, &name(FileKind::TimeIndex), base_offset, max)?;
        TransactionIndexWriter::open(directory, &name(FileKind::TransactionIndex), base_offset)?
            .truncate_to(offset)?;
        truncate(&mut offset_index, &mut time_index, offset)
    }

    /// Ends the segment: writes its closing time entry, trims its files, and makes all of it durable.
    ///
    /// *Source*: `LogSegment.onBecomeInactiveSegment`, and the flush after it.
    pub(crate) fn seal(&mut self) -> Result<()> {
        self.finish()?;
        self.log.sync()?;
        self.offset_index.flush()?;
        self.time_index.flush()?;
        self.transaction_index.flush()
    }

    /// Writes all index entries and the closing time entry. If it fails, as on a full disk, that entry is not
    /// added, and the segment stays usable.
    pub(crate) fn write_last_index_entries(&mut self) -> Result<()> {
        self.write_index_entries()?;
        let largest = self.due_entries.largest();
        self.time_index.maybe_append(largest.timestamp, largest.offset, true).map(drop)
    }

    fn finish(&mut self) -> Result<()> {
        self.write_last_index_entries()?;
        self.offset_index.trim()?;
        self.time_index.trim()?;
        self.trim_log()
    }

    /// Cuts the zeros after the data of a preallocated file.
    pub(crate) fn trim_log(&mut self) -> Result<()> {
        if self.is_preallocated {
            self.log.set_size(self.size)?;
            self.is_preallocated = false;
        } else if self.reserved.is_some_and(|reserved| reserved > self.size) {
            // reserved blocks that are not freed cost only space
            let _ = self.log.set_size(self.size);
            self.reserved = Some(self.size);
        }
        Ok(())
    }
}

/// Removes the files of a segment, the `.log` last, so that the segment stays readable after a crash in
/// between.
pub(crate) fn remove_segment(directory: &Directory, base_offset: i64) -> Result<()> {
    segment_files_of(base_offset).iter().try_for_each(|name| directory.remove(name))
}

fn truncate(
    offset_index: &mut OffsetIndexWriter,
    time_index: &mut TimeIndexWriter,
    offset: i64,
) -> Result<()> {
    offset_index.truncate_to(offset)?;
    time_index.truncate_to(offset)?;
    offset_index.trim()?;
    time_index.trim()?;
    Ok(())
}
