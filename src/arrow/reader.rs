//! Scans as a stream of record batches of bounded size.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef, TimeUnit};

use super::part::Part;
use super::running_split::{RunningSplit, fill_concurrently};
use super::{ByteType, Column, HeaderKeys, batches, schema};
use crate::error::Result;
use crate::log::{Log, OnDamage, Progress, ScanOptions, Split};

/// The size of the splits that threads read, bytes of the log.
const THREAD_BYTES: u64 = 4 << 20;

/// Options of a [`Reader`].
#[derive(Debug, Clone)]
pub struct ReaderOptions {
    /// What to read. With `batches_only` the rows are batches, and `columns` is ignored.
    pub scan: ScanOptions,
    /// The columns, in this order.
    pub columns: Vec<Column>,
    /// The type of keys.
    pub key_type: ByteType,
    /// The type of values.
    pub value_type: ByteType,
    /// The type of header names.
    pub header_keys: HeaderKeys,
    /// The unit of timestamps: milliseconds or microseconds.
    pub timestamp_unit: TimeUnit,
    /// The maximum number of rows in a record batch.
    pub max_rows: usize,
    /// The approximate maximum size of a record batch, bytes; at most 1 GiB. One record may be larger. With views it also limits
    /// the memory that a record batch keeps, apart from one block or decompressed batch. A reading by one thread also keeps the
    /// memory of the last two record batches, for the next ones.
    pub max_bytes: usize,
    /// The number of threads that decompress and decode concurrently. They end with the call that starts them.
    pub threads: usize,
    /// The maximum total number of rows. With a limit only one thread reads, so that nothing after the last row is read.
    pub limit: Option<usize>,
}

impl Default for ReaderOptions {
    fn default() -> Self {
        Self {
            scan: ScanOptions::default(),
            columns: Column::DEFAULT.to_vec(),
            key_type: ByteType::Binary,
            value_type: ByteType::Binary,
            header_keys: HeaderKeys::Utf8,
            timestamp_unit: TimeUnit::Millisecond,
            max_rows: 65_536,
            max_bytes: 16 << 20,
            threads: 1,
            limit: None,
        }
    }
}

impl ReaderOptions {
    pub(super) fn reports(&self) -> bool {
        self.scan.on_damage == OnDamage::Report
    }

    /// Whether arrays refer to bytes of the log that they do not copy.
    pub(super) fn has_views(&self) -> bool {
        self.columns.iter().any(|column| match column {
            Column::Key => self.key_type.is_view(),
            Column::Value => self.value_type.is_view(),
            _ => false,
        })
    }

    /// The schema of a reader with these options.
    pub fn schema(&self) -> SchemaRef {
        if self.scan.batches_only { batches::schema(self.reports()) } else { schema(self) }
    }
}

/// Reads logs one after another as record batches; all rows of a batch are from one log.
pub struct Reader {
    options: ReaderOptions,
    schema: SchemaRef,
    logs: Box<dyn Iterator<Item = Result<Log>> + Send>,
    current: Option<Part>,
    /// With several threads: the current log and its splits that are not started.
    pending: Option<(Log, VecDeque<Split>)>,
    running: VecDeque<RunningSplit>,
    progress: Progress,
}

impl fmt::Debug for Reader {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Reader").field("options", &self.options).finish_non_exhaustive()
    }
}

impl Reader {
    /// A reader of these logs; each is opened after the previous one was read.
    pub fn new(
        logs: impl Iterator<Item = Result<Log>> + Send + 'static,
        options: ReaderOptions,
        progress: Progress,
    ) -> Self {
        Self {
            schema: options.schema(),
            logs: Box::new(logs),
            current: None,
            pending: None,
            running: VecDeque::new(),
            options,
            progress,
        }
    }

    /// The next record batch; `None` at the end.
    ///
    /// # Errors
    /// As [`Scan::next_step`](crate::log::Scan::next_step); an error ends the stream.
    pub fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        if let Some(limit) = self.options.limit {
            self.options.max_rows = self.options.max_rows.min(limit);
        }
        let next = if self.options.limit == Some(0) { Ok(None) } else { self.find_next() };
        if let (Ok(Some(batch)), Some(limit)) = (&next, &mut self.options.limit) {
            *limit = limit.saturating_sub(batch.num_rows());
        }
        if next.is_err() {
            self.logs = Box::new(std::iter::empty());
            (self.current, self.pending) = (None, None);
            self.running.clear();
        }
        next
    }

    fn find_next(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some(part) = &mut self.current {
                let batch = part.next_batch(&self.options, &self.schema, &self.progress)?;
                if batch.is_some() {
                    return Ok(batch);
                }
                self.current = None;
            }
            if let Some((log, splits)) = &mut self.pending {
                while self.running.len() < self.options.threads
                    && let Some(split) = splits.pop_front()
                {
                    let scan = ScanOptions { ranges: split.ranges(), ..self.options.scan };
                    self.running.push_back(RunningSplit::new(log.scan(scan)?, &self.options));
                }
                let Some(first) = self.running.front_mut() else {
                    self.pending = None;
                    continue;
                };
                if let Some(batch) = first.ready.pop_front() {
                    return Ok(Some(batch));
                }
                if first.finished {
                    self.progress.merge(&first.progress);
                    self.running.pop_front();
                } else {
                    fill_concurrently(&mut self.running, &self.options, &self.schema)?;
                }
                continue;
            }
            let Some(log) = self.logs.next() else { return Ok(None) };
            let log = log?;
            if self.options.threads > 1 && self.options.limit.is_none() && !self.options.scan.batches_only {
                let splits = log.plan(THREAD_BYTES, &self.options.scan)?;
                self.pending = Some((log, splits.into()));
            } else {
                self.current = Some(Part::new(log.scan(self.options.scan)?, &self.options));
            }
        }
    }
}

impl Iterator for Reader {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_batch().map_err(|error| ArrowError::ExternalError(Box::new(error))).transpose()
    }
}

impl RecordBatchReader for Reader {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}
