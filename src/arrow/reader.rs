//! Scans as a stream of record batches of bounded size.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};

use super::columns::Columns;
use super::concurrent_splits::ConcurrentSplits;
use super::last_columns;
use super::part::{Next, Part};
use super::reader_options::ReaderOptions;
use crate::error::Result;
use crate::log::{Log, Progress, Scan};

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
    /// The columns of the last log that one thread has read.
    columns: Option<Columns>,
    /// Whether `None` or an error was returned.
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
            columns: None,
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
            let columns = self.end_log().filter(|_| next.is_ok());
            columns.into_iter().for_each(last_columns::keep);
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
            self.columns = self.end_log();
            let Some(log) = self.logs.next() else { return Ok(None) };
            self.current = Some(self.open(log?)?);
        }
    }

    /// Closes the current log, and returns the columns of the last one that one thread has read.
    fn end_log(&mut self) -> Option<Columns> {
        match self.current.take() {
            Some(Source::Part(part)) if !self.options.scan.batches_only => Some(part.into_columns()),
            _ => self.columns.take(),
        }
    }

    fn open(&mut self, log: Log) -> Result<Source> {
        if self.options.latest {
            let ReaderOptions { scan, include_tombstones, .. } = self.options;
            self.options.filter = Some(log.latest_filter(scan, include_tombstones)?);
        }
        if let Some(count) = self.options.last {
            let scan = log.last_records(count, self.options.scan, self.options.filter.as_ref())?;
            return Ok(self.part(scan));
        }
        let options = &self.options;
        if options.threads > 1 && options.limit.is_none() && !options.scan.batches_only {
            return Ok(Source::Splits(ConcurrentSplits::new(log, options)?));
        }
        let scan = log.scan(options.scan)?;
        Ok(self.part(scan))
    }

    fn part(&mut self, scan: Scan) -> Source {
        let columns = self.columns.take().or_else(|| last_columns::take(&self.schema));
        let columns = columns.unwrap_or_else(|| Columns::new(Arc::clone(&self.schema), &self.options));
        Source::Part(Box::new(Part::new(scan, columns)))
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
