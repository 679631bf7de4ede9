//! Scans as a stream of record batches of bounded size.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef, TimeUnit};

use super::columns::Columns;
use super::concurrent_splits::ConcurrentSplits;
use super::part::{Next, Part};
use super::{ByteType, Column, HeaderKeys, batches, schema};
use crate::error::Result;
use crate::log::{Log, OnDamage, Progress, ScanOptions};

/// The limit of `max_bytes`: binary columns have 31-bit offsets, and after this limit one more batch must fit.
const MAX_BYTES: usize = 1 << 30;

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
    /// the memory that a record batch keeps, apart from one block or decompressed batch. The memory of the last two record
    /// batches is also kept, for the next ones. Two of the default size fit into the cache of a processor.
    pub max_bytes: usize,
    /// The number of threads that decompress and decode concurrently, at most 256. They end with the call that starts them. For
    /// each, two parts of the log are read, and two times `max_bytes` and one record batch are in memory. A record batch has rows
    /// of one part, about a quarter of `max_bytes` or fewer. What a part has found is added to the [`Progress`] after its last
    /// row was returned.
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
            max_bytes: 4 << 20,
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

    /// The size at which a record batch is full, bytes.
    pub(super) fn byte_limit(&self) -> usize {
        self.max_bytes.min(MAX_BYTES)
    }

    /// The schema of a reader with these options.
    pub fn schema(&self) -> SchemaRef {
        if self.scan.batches_only { batches::schema(self.reports()) } else { schema(self) }
    }
}

/// Never set: a reading by one thread does not pause.
static NO_PAUSE: AtomicBool = AtomicBool::new(false);

/// How the current log is read.
enum Source {
    /// By the calling thread.
    Part(Box<Part>),
    Splits(ConcurrentSplits),
}

/// Reads logs one after another as record batches; all rows of a batch are from one log.
pub struct Reader {
    options: ReaderOptions,
    schema: SchemaRef,
    logs: Box<dyn Iterator<Item = Result<Log>> + Send>,
    current: Option<Source>,
    /// Whether the last record batch or an error was returned.
    has_ended: bool,
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
            has_ended: false,
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
        // a panic in between leaves it true
        if std::mem::replace(&mut self.has_ended, true) {
            return Ok(None);
        }
        let next = if self.options.limit == Some(0) { Ok(None) } else { self.find_next() };
        self.has_ended = !matches!(next, Ok(Some(_)));
        if let (Ok(Some(batch)), Some(limit)) = (&next, &mut self.options.limit) {
            *limit = limit.saturating_sub(batch.num_rows());
        }
        if self.has_ended {
            self.logs = Box::new(std::iter::empty());
            self.current = None;
        }
        next
    }

    fn find_next(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            let Self { options, schema, progress, .. } = self;
            let batch = match &mut self.current {
                None => None,
                Some(Source::Splits(splits)) => splits.next_batch(options, schema, progress)?,
                Some(Source::Part(part)) => match part.next_batch(options, progress, &NO_PAUSE)? {
                    Next::Batch(batch, _) => Some(batch),
                    Next::Paused => continue,
                    Next::End => None,
                },
            };
            if batch.is_some() {
                return Ok(batch);
            }
            self.current = None;
            let Some(log) = self.logs.next() else { return Ok(None) };
            self.current = Some(self.open(log?)?);
        }
    }

    fn open(&self, log: Log) -> Result<Source> {
        let options = &self.options;
        if options.threads > 1 && options.limit.is_none() && !options.scan.batches_only {
            return Ok(Source::Splits(ConcurrentSplits::new(log, options)?));
        }
        let columns = Columns::new(Arc::clone(&self.schema), options);
        Ok(Source::Part(Box::new(Part::new(log.scan(options.scan)?, options, columns))))
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
