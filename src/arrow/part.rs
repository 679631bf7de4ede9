//! A part of the data of a reader, with the columns that it fills.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow_array::RecordBatch;

use super::batches::BatchColumns;
use super::columns::{Columns, Limits};
use super::reader_options::ReaderOptions;
use crate::error::{Error, Result};
use crate::log::{Counted, Log, Origin, Progress, RecordOffsets, Scan, ScanStep};
use crate::record::RecordSpan;
use crate::segment::Batch;

/// The maximum number of records that are decoded at a time: their spans should fit into the fastest cache.
const MAX_SPANS: usize = 512;

/// The bytes of batches that are not returned after which a part looks whether it is to pause.
const MAX_SKIPPED: u64 = 256 << 10;

/// The result of [`Part::next_batch`].
pub(super) enum Next {
    /// A record batch, and the approximate memory that it takes, bytes.
    Batch(RecordBatch, usize),
    /// It is to pause before a record batch is full; the rows so far are kept.
    Paused,
    End,
}

/// A scan, and the columns that it fills.
pub(super) struct Part {
    log: Log,
    scan: Scan,
    columns: Columns,
    batches: BatchColumns,
    /// The batch that is being read.
    batch: Option<Batch>,
    /// Decoded records of the batch; the first `appended` of them are in the columns.
    spans: Vec<RecordSpan>,
    appended: usize,
    /// Whether the batch may have more records than these.
    has_more: bool,
    counted: Counted,
}

impl Part {
    pub(super) fn new(scan: Scan, columns: Columns) -> Self {
        Self {
            log: scan.log().clone(),
            scan,
            columns,
            batches: BatchColumns::default(),
            batch: None,
            spans: Vec::new(),
            appended: 0,
            has_more: false,
            counted: Counted::default(),
        }
    }

    /// The bytes of the log that were read so far.
    pub(super) fn bytes_read(&self) -> u64 {
        self.scan.stats().bytes_read
    }

    /// The columns, for another part: they are empty after the end and when a limit is reached.
    pub(super) fn into_columns(self) -> Columns {
        self.columns
    }

    /// The next record batch: at the end of the part, or when a limit is reached. `pause`: whether to stop
    /// before.
    pub(super) fn next_batch(
        &mut self,
        options: &ReaderOptions,
        progress: &Progress,
        pause: &AtomicBool,
    ) -> Result<Next> {
        let filled =
            if options.scan.batches_only { self.fill_batches(options) } else { self.fill(options, pause) };
        progress.update(&self.scan, &mut self.counted);
        if filled?.is_break() {
            return Ok(Next::Paused);
        }
        let memory = self.columns.memory();
        let finished = if options.scan.batches_only {
            (self.batches.rows() > 0).then(|| self.batches.finish(self.columns.schema()))
        } else {
            (self.columns.rows() > 0).then(|| self.columns.finish())
        };
        let batch = finished
            .transpose()
            .map_err(|error| Error::config("columns", "columns that fit the schema", error.to_string()))?;
        Ok(batch.map_or(Next::End, |batch| Next::Batch(batch, memory)))
    }

    /// Fills the columns until a limit is reached or the part ends; `Break` if it is to pause.
    fn fill(&mut self, options: &ReaderOptions, pause: &AtomicBool) -> Result<ControlFlow<()>> {
        let limits = Limits { rows: options.max_rows, bytes: options.byte_limit() };
        let columns = &mut self.columns;
        while !columns.is_full(limits) {
            if pause.load(Ordering::Relaxed) {
                return Ok(ControlFlow::Break(()));
            }
            let Some(batch) = self.batch else {
                match self.scan.next_step_within(MAX_SKIPPED)? {
                    ControlFlow::Continue(()) => {}
                    ControlFlow::Break(None) => break,
                    ControlFlow::Break(Some(ScanStep::DamagedRange(range))) => {
                        columns.append_damaged_range(&range);
                    }
                    ControlFlow::Break(Some(ScanStep::Batch(batch))) => {
                        (self.batch, self.has_more) = (Some(batch), true);
                    }
                }
                continue;
            };
            if let Some(spans) = self.spans.get(self.appended..).filter(|spans| !spans.is_empty()) {
                let origin = Origin::new(&self.log, &self.scan, &batch);
                let rows =
                    columns.append(spans, &self.scan.payload()?, &origin, limits, options.invalid_text)?;
                self.scan.note_returned(spans.get(..rows).unwrap_or(spans));
                self.appended += rows;
            } else if self.has_more {
                let before = self.scan.damaged_ranges().len();
                let max = columns.rows_left(limits).min(MAX_SPANS);
                self.has_more = self.scan.next_spans(max, &mut self.spans)?;
                self.appended = 0;
                if let Some(filter) = &options.filter {
                    let payload = self.scan.payload()?;
                    let bytes = payload.bytes();
                    let last_of_batch = batch.header.last_offset;
                    self.spans.retain(|span| {
                        let offsets = RecordOffsets { offset: span.offset, last_of_batch };
                        filter.accepts_at(offsets, span.key.of(bytes), span.value.of(bytes))
                    });
                }
                // a batch that ends in damage is also a damaged range
                for range in self.scan.damaged_ranges().iter().skip(before).filter(|_| options.reports()) {
                    columns.append_damaged_range(range);
                }
            } else {
                self.batch = None;
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn fill_batches(&mut self, options: &ReaderOptions) -> Result<ControlFlow<()>> {
        while self.batches.rows() < options.max_rows {
            let Some(step) = self.scan.next_step()? else { break };
            let segment = self.scan.segment().unwrap_or(-1);
            match step {
                ScanStep::DamagedRange(range) => self.batches.append_damaged_range(&range, segment),
                ScanStep::Batch(batch) => self.batches.append(&batch, segment)?,
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}
