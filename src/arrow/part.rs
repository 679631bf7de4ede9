//! A part of the data of a reader, with the columns that it fills.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use super::batches::BatchColumns;
use super::columns::{Columns, Limits};
use super::reader::ReaderOptions;
use crate::error::{Error, Result};
use crate::log::{Counted, Log, Origin, Progress, Scan, ScanStep};
use crate::record::RecordSpan;
use crate::segment::Batch;

/// The limit of `max_bytes`: binary columns have 31-bit offsets, and after this limit one more batch must fit.
const MAX_BYTES: usize = 1 << 30;

/// The maximum number of records that are decoded at a time: their spans should fit into the fastest cache.
const MAX_SPANS: usize = 512;

/// A scan, and the columns that it fills.
pub(super) struct Part {
    log: Log,
    scan: Scan,
    columns: Option<Columns>,
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
    pub(super) fn new(mut scan: Scan, options: &ReaderOptions) -> Self {
        if options.has_views() {
            scan.keep_bytes();
        }
        Self {
            log: scan.log().clone(),
            scan,
            columns: None,
            batches: BatchColumns::default(),
            batch: None,
            spans: Vec::new(),
            appended: 0,
            has_more: false,
            counted: Counted::default(),
        }
    }

    /// See [`Scan::stop_when`].
    pub(super) fn stop_when(&mut self, stop: &Arc<AtomicBool>) {
        self.scan.stop_when(stop);
    }

    pub(super) fn next_batch(
        &mut self,
        options: &ReaderOptions,
        schema: &SchemaRef,
        progress: &Progress,
    ) -> Result<Option<RecordBatch>> {
        let filled =
            if options.scan.batches_only { self.fill_batches(options) } else { self.fill(options, schema) };
        progress.update(&self.scan, &mut self.counted);
        filled?;
        let finished = if options.scan.batches_only {
            (self.batches.rows() > 0).then(|| self.batches.finish(schema))
        } else {
            self.columns.as_mut().filter(|columns| columns.rows() > 0).map(Columns::finish)
        };
        finished
            .transpose()
            .map_err(|error| Error::config("columns", "columns that fit the schema", error.to_string()))
    }

    fn fill(&mut self, options: &ReaderOptions, schema: &SchemaRef) -> Result<()> {
        let limits = Limits { rows: options.max_rows, bytes: options.max_bytes.min(MAX_BYTES) };
        let columns = self.columns.get_or_insert_with(|| Columns::new(Arc::clone(schema), options));
        while !columns.is_full(limits) {
            let Some(batch) = self.batch else {
                match self.scan.next_step()? {
                    None => break,
                    Some(ScanStep::DamagedRange(range)) => columns.append_damaged_range(&range),
                    Some(ScanStep::Batch(batch)) => (self.batch, self.has_more) = (Some(batch), true),
                }
                continue;
            };
            if let Some(spans) = self.spans.get(self.appended..).filter(|spans| !spans.is_empty()) {
                let origin = Origin::new(&self.log, &self.scan, &batch);
                let rows = columns.append(spans, &self.scan.payload()?, &origin, limits)?;
                self.scan.note_returned(spans.get(..rows).unwrap_or(spans));
                self.appended += rows;
            } else if self.has_more {
                let before = self.scan.damaged_ranges().len();
                let max = columns.rows_left(limits).min(MAX_SPANS);
                self.has_more = self.scan.next_spans(max, &mut self.spans)?;
                self.appended = 0;
                // a batch that ends in damage is also a damaged range
                for range in self.scan.damaged_ranges().iter().skip(before).filter(|_| options.reports()) {
                    columns.append_damaged_range(range);
                }
            } else {
                self.batch = None;
            }
        }
        Ok(())
    }

    fn fill_batches(&mut self, options: &ReaderOptions) -> Result<()> {
        while self.batches.rows() < options.max_rows {
            let Some(step) = self.scan.next_step()? else { break };
            let segment = self.scan.segment().unwrap_or(-1);
            match step {
                ScanStep::DamagedRange(range) => self.batches.append_damaged_range(&range, segment),
                ScanStep::Batch(batch) => self.batches.append(&batch, segment)?,
            }
        }
        Ok(())
    }
}
