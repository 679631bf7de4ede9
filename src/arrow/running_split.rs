//! A split that one of several threads reads.

use std::collections::VecDeque;
use std::sync::atomic::AtomicBool;

use arrow_array::RecordBatch;

use super::columns::Columns;
use super::part::{Next, Part};
use super::reader_options::ReaderOptions;
use crate::error::{Error, Result};
use crate::log::{Progress, Ranges};

/// What a record batch takes apart from the bytes of its columns: a limit of one row must not allow any
/// number of them.
const BATCH_BYTES: usize = 4096;

/// As many bytes of small record batches are read before one is returned: starting threads for one would take
/// longer.
const MIN_READY_BYTES: usize = 1 << 20;

/// The memory of record batches after which no more of a split is read.
pub(super) fn max_ready_bytes(options: &ReaderOptions) -> usize {
    options.byte_limit().max(MIN_READY_BYTES)
}

/// A part of a log: its range, and its approximate size in bytes.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Split {
    pub(super) ranges: Ranges,
    pub(super) size: u64,
    /// Whether damage before it was read with the split before.
    pub(super) follows_damage: bool,
}

impl Split {
    /// Whether it begins before an offset.
    pub(super) fn is_before(&self, offset: i64) -> bool {
        self.ranges.start_offset.is_none_or(|start| start < offset)
    }

    /// The rest of it from an offset on, before which there is damage; `None` if it ends before.
    pub(super) fn after_damage(mut self, offset: i64) -> Option<Self> {
        self.ranges.start_offset = Some(offset);
        self.follows_damage = true;
        self.ranges.end_offset.is_none_or(|end| end > offset).then_some(self)
    }
}

/// A split that is being read, and its record batches that are not returned yet.
#[derive(Default)]
pub(super) struct RunningSplit {
    pub(super) split: Split,
    /// `None` once it has ended.
    part: Option<Box<Part>>,
    /// After the end: the empty columns, for another split.
    columns: Option<Columns>,
    /// The error with which it ended. It follows the record batches.
    error: Option<Error>,
    /// The record batches, each with its approximate memory.
    ready: VecDeque<(RecordBatch, usize)>,
    /// The memory of the record batches that are ready.
    ready_bytes: usize,
    /// The memory of all record batches so far.
    pub(super) column_bytes: u64,
    /// The bytes of the batches whose headers were read, also before the split.
    pub(super) bytes_read: u64,
    progress: Progress,
}

impl RunningSplit {
    pub(super) fn new(split: Split, part: Part) -> Self {
        Self { split, part: Some(Box::new(part)), ..Self::default() }
    }

    /// A split that cannot be read.
    pub(super) fn failed(split: Split, error: Error) -> Self {
        Self { split, error: Some(error), ..Self::default() }
    }

    /// Whether more of the split is read before its first record batch is returned.
    pub(super) fn needs_more(&self, options: &ReaderOptions) -> bool {
        self.part.is_some() && (self.ready.is_empty() || self.ready_bytes < max_ready_bytes(options))
    }

    /// Reads until the split has enough record batches, or until `pause` is set.
    pub(super) fn read(&mut self, options: &ReaderOptions, pause: &AtomicBool) {
        while self.needs_more(options)
            && let Some(part) = &mut self.part
        {
            let next = part.next_batch(options, &self.progress, pause);
            self.bytes_read = part.bytes_read();
            match next {
                Ok(Next::Batch(batch, bytes)) => {
                    let bytes = BATCH_BYTES + bytes;
                    self.ready_bytes += bytes;
                    self.column_bytes += bytes as u64;
                    self.ready.push_back((batch, bytes));
                }
                Ok(Next::Paused) => return,
                Ok(Next::End) => self.columns = self.part.take().map(|part| part.into_columns()),
                Err(error) => {
                    self.part = None;
                    self.error = Some(error);
                }
            }
        }
    }

    /// The memory of the record batches that are ready.
    pub(super) fn ready_bytes(&self) -> usize {
        self.ready_bytes
    }

    /// The next record batch that is ready.
    pub(super) fn pop(&mut self) -> Option<RecordBatch> {
        let (batch, bytes) = self.ready.pop_front()?;
        self.ready_bytes -= bytes;
        Some(batch)
    }

    /// Whether the split has ended and all its record batches were returned.
    pub(super) fn is_finished(&self) -> bool {
        self.part.is_none() && self.ready.is_empty()
    }

    /// Whether the split has ended with an error.
    pub(super) fn has_failed(&self) -> bool {
        self.error.is_some()
    }

    /// Whether a signal ended the reading.
    pub(super) fn is_interrupted(&self) -> bool {
        matches!(self.error, Some(Error::Interrupted(_)))
    }

    /// The offset at which the damage ends that was found last, which may be after the split; `None` if there
    /// was none.
    pub(super) fn damage_end(&self) -> Option<i64> {
        self.progress.damaged_ranges().last().map(|range| range.end_offset.unwrap_or(i64::MAX))
    }

    /// Adds what was found to the progress of the reader.
    pub(super) fn add_to(&self, progress: &Progress) {
        progress.merge(&self.progress);
    }

    /// The columns, for another split.
    ///
    /// # Errors
    /// The one with which the split ended.
    pub(super) fn finish(self) -> Result<Option<Columns>> {
        self.error.map_or(Ok(self.columns), Err)
    }
}
