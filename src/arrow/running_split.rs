//! A split that one of several threads reads.

use std::collections::VecDeque;
use std::sync::atomic::AtomicBool;

use arrow_array::RecordBatch;

use super::columns::Columns;
use super::part::{Next, Part};
use super::reader::ReaderOptions;
use crate::error::{Error, Result};
use crate::log::{Log, Progress, Ranges, ScanOptions};

/// What a record batch takes apart from the bytes of its columns: a limit of one row must not allow any number of them.
const BATCH_BYTES: usize = 4096;

/// A split of a log, and its record batches that are not returned yet.
pub(super) struct RunningSplit {
    log: Log,
    ranges: Ranges,
    state: State,
    /// Before the split is started and after it has ended.
    columns: Option<Columns>,
    ready: VecDeque<RecordBatch>,
    /// The approximate memory of the record batches that are ready.
    ready_bytes: usize,
    /// What its columns take for each byte of the log: the totals of both.
    pub(super) expansion: (usize, u64),
    progress: Progress,
}

enum State {
    NotStarted,
    Reading(Box<Part>),
    /// The error with which it ended follows its rows.
    Ended(Result<()>),
}

impl RunningSplit {
    pub(super) fn new(log: &Log, ranges: Ranges, columns: Columns) -> Self {
        Self {
            log: log.clone(),
            ranges,
            state: State::NotStarted,
            columns: Some(columns),
            ready: VecDeque::new(),
            ready_bytes: 0,
            expansion: (0, 0),
            progress: Progress::default(),
        }
    }

    /// Whether more of the split is read before its first record batch is returned.
    pub(super) fn needs_more(&self, options: &ReaderOptions) -> bool {
        !matches!(self.state, State::Ended(_))
            && (self.ready.is_empty() || self.ready_bytes < options.byte_limit())
    }

    /// Reads until the split has enough record batches, or until `pause` is set.
    pub(super) fn read(&mut self, options: &ReaderOptions, pause: &AtomicBool) {
        while self.needs_more(options) {
            match self.read_batch(options, pause) {
                Ok(Some((batch, bytes))) => {
                    self.ready_bytes += BATCH_BYTES + bytes;
                    self.expansion.0 += bytes;
                    self.ready.push_back(batch);
                }
                Ok(None) if matches!(self.state, State::Ended(_)) => {}
                Ok(None) => return,
                Err(error) => self.end(Err(error)),
            }
        }
    }

    /// The next record batch and its approximate memory; `None` if the split has ended or is paused.
    fn read_batch(
        &mut self,
        options: &ReaderOptions,
        pause: &AtomicBool,
    ) -> Result<Option<(RecordBatch, usize)>> {
        if let State::NotStarted = self.state {
            let scan = self.log.scan(ScanOptions { ranges: self.ranges, ..options.scan })?;
            let Some(columns) = self.columns.take() else { return Ok(None) };
            self.state = State::Reading(Box::new(Part::new(scan, options, columns)));
        }
        let State::Reading(part) = &mut self.state else { return Ok(None) };
        Ok(match part.next_batch(options, &self.progress, pause)? {
            Next::Batch(batch, bytes) => Some((batch, bytes)),
            Next::Paused => None,
            Next::End => {
                self.end(Ok(()));
                None
            }
        })
    }

    /// Ends the reading, which closes the scan.
    fn end(&mut self, result: Result<()>) {
        if let State::Reading(part) = std::mem::replace(&mut self.state, State::Ended(result)) {
            self.expansion.1 = part.bytes_read();
            self.columns = Some(part.into_columns());
        }
    }

    /// The approximate memory of the record batches that are ready.
    pub(super) fn ready_bytes(&self) -> usize {
        self.ready_bytes
    }

    /// The next record batch that is ready.
    pub(super) fn pop(&mut self) -> Option<RecordBatch> {
        let batch = self.ready.pop_front()?;
        if self.ready.is_empty() {
            self.ready_bytes = 0;
        }
        Some(batch)
    }

    /// Whether the split has ended and all its record batches were returned.
    pub(super) fn is_finished(&self) -> bool {
        matches!(self.state, State::Ended(_)) && self.ready.is_empty()
    }

    /// Adds what was found to the progress of the reader, and returns the columns for another split.
    ///
    /// # Errors
    /// The one with which the split ended.
    pub(super) fn finish(self, progress: &Progress) -> Result<Option<Columns>> {
        progress.merge(&self.progress);
        if let State::Ended(result) = self.state {
            result?;
        }
        Ok(self.columns)
    }

    /// Whether a signal ended the reading.
    pub(super) fn is_interrupted(&self) -> bool {
        matches!(self.state, State::Ended(Err(Error::Interrupted(_))))
    }
}
