//! Scans as a stream of record batches of bounded size.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef, TimeUnit};

use super::batches::{self, BatchColumns};
use super::columns::{Columns, Origin};
use super::{Column, HeaderKeys, schema};
use crate::error::{Error, Result};
use crate::log::{Gap, Log, OnDamage, Scan, ScanOptions, ScanStats, ScanStep, Split};

/// How much of the log one thread takes at a time.
const THREAD_BYTES: u64 = 4 << 20;

/// What to give, and in which portions.
#[derive(Debug, Clone)]
pub struct ReaderOptions {
    /// What to read. With `batches_only` the rows are batches, and `columns` is not asked.
    pub scan: ScanOptions,
    /// Which columns, in this order.
    pub columns: Vec<Column>,
    /// How header names come out.
    pub header_keys: HeaderKeys,
    /// Milliseconds or microseconds.
    pub timestamp_unit: TimeUnit,
    /// The most rows in a record batch.
    pub max_rows: usize,
    /// About the most bytes in a record batch; one record may be larger.
    pub max_bytes: usize,
    /// How many threads decompress and decode side by side; they live no longer than the call that needs them.
    pub threads: usize,
}

impl Default for ReaderOptions {
    fn default() -> Self {
        Self {
            scan: ScanOptions::default(),
            columns: Column::DEFAULT.to_vec(),
            header_keys: HeaderKeys::Utf8,
            timestamp_unit: TimeUnit::Millisecond,
            max_rows: 65_536,
            max_bytes: 16 << 20,
            threads: 1,
        }
    }
}

impl ReaderOptions {
    pub(super) fn reports(&self) -> bool {
        self.scan.on_damage == OnDamage::Report
    }

    /// The schema of what a reader with these options gives.
    pub fn schema(&self) -> SchemaRef {
        if self.scan.batches_only { batches::schema(self.reports()) } else { schema(self) }
    }
}

/// What a reader has met so far; shared with whoever started it.
#[derive(Debug, Clone, Default)]
pub struct Progress(Arc<Mutex<(Vec<Gap>, ScanStats)>>);

impl Progress {
    /// The damaged stretches passed over.
    pub fn gaps(&self) -> Vec<Gap> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).0.clone()
    }

    /// What was done.
    pub fn stats(&self) -> ScanStats {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).1
    }

    /// Adds what `scan` did since `before`.
    fn add(&self, gaps: &[Gap], stats: ScanStats) {
        let mut progress = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        progress.0.extend_from_slice(gaps);
        progress.1 += stats;
    }
}

/// Reads logs one after another as record batches; each batch holds rows of one log.
pub struct Reader {
    options: ReaderOptions,
    schema: SchemaRef,
    logs: Box<dyn Iterator<Item = Result<Log>> + Send>,
    current: Option<Part>,
    /// With several threads: parts of the current log not yet read, and batches that are ready.
    waiting: (Option<Log>, VecDeque<Split>),
    ready: VecDeque<RecordBatch>,
    progress: Progress,
}

impl fmt::Debug for Reader {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Reader").field("options", &self.options).finish_non_exhaustive()
    }
}

impl Reader {
    /// A reader of these logs; each is opened when the one before is read.
    pub fn new(
        logs: impl Iterator<Item = Result<Log>> + Send + 'static,
        options: ReaderOptions,
        progress: Progress,
    ) -> Self {
        Self {
            schema: options.schema(),
            logs: Box::new(logs),
            current: None,
            waiting: (None, VecDeque::new()),
            ready: VecDeque::new(),
            options,
            progress,
        }
    }

    /// The next record batch; `None` at the end.
    ///
    /// # Errors
    /// As [`Scan::next_step`]; an error ends the stream.
    pub fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        let next = self.find_next();
        if next.is_err() {
            self.logs = Box::new(std::iter::empty());
            (self.current, self.waiting) = (None, (None, VecDeque::new()));
        }
        next
    }

    fn find_next(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some(batch) = self.ready.pop_front() {
                return Ok(Some(batch));
            }
            if let Some(part) = &mut self.current {
                let batch = part.next_batch(&self.options, &self.schema, &self.progress)?;
                if batch.is_some() {
                    return Ok(batch);
                }
                self.current = None;
            }
            if let (Some(log), splits) = &mut self.waiting {
                let log = log.clone();
                let portion: Vec<_> = splits.drain(..splits.len().min(self.options.threads)).collect();
                if portion.is_empty() {
                    self.waiting.0 = None;
                } else {
                    let (options, schema, progress) = (&self.options, &self.schema, &self.progress);
                    self.ready.extend(read_side_by_side(&log, &portion, options, schema, progress)?);
                }
                continue;
            }
            let Some(log) = self.logs.next() else { return Ok(None) };
            let log = log?;
            if self.options.threads > 1 && !self.options.scan.batches_only {
                let splits = log.plan(THREAD_BYTES, &self.options.scan)?;
                self.waiting = (Some(log), splits.into());
            } else {
                self.current = Some(Part::new(log.scan(self.options.scan)?));
            }
        }
    }
}

/// Reads each split in a thread of its own; gives their batches in order.
fn read_side_by_side(
    log: &Log,
    splits: &[Split],
    options: &ReaderOptions,
    schema: &SchemaRef,
    progress: &Progress,
) -> Result<Vec<RecordBatch>> {
    let read = &|split: &Split| -> (Progress, Result<Vec<RecordBatch>>) {
        let progress = Progress::default();
        let scan = log.scan(ScanOptions { ranges: split.ranges(), ..options.scan });
        let batches = scan.and_then(|scan| {
            let mut part = Part::new(scan);
            std::iter::from_fn(|| part.next_batch(options, schema, &progress).transpose()).collect()
        });
        (progress, batches)
    };
    let results: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = splits.iter().map(|split| scope.spawn(move || read(split))).collect();
        threads.into_iter().map(std::thread::ScopedJoinHandle::join).collect()
    });
    let mut all = Vec::new();
    for result in results {
        // a panic of ours goes on as one; it is not hidden as an end of the data
        let (found, batches) = result.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        progress.add(&found.gaps(), found.stats());
        all.extend(batches?);
    }
    Ok(all)
}

/// A scan and the columns it fills.
struct Part {
    scan: Scan,
    columns: Option<Columns>,
    batches: BatchColumns,
    /// A batch is being read.
    batch: Option<crate::segment::Batch>,
    topic: Option<String>,
    counted: (usize, ScanStats),
}

impl Part {
    fn new(scan: Scan) -> Self {
        let topic = scan.log().topic().map(str::to_owned);
        let counted = (0, ScanStats::default());
        Self { scan, columns: None, batches: BatchColumns::default(), batch: None, topic, counted }
    }

    fn next_batch(
        &mut self,
        options: &ReaderOptions,
        schema: &SchemaRef,
        progress: &Progress,
    ) -> Result<Option<RecordBatch>> {
        let filled =
            if options.scan.batches_only { self.fill_batches(options) } else { self.fill(options, schema) };
        let stats = self.scan.stats();
        progress.add(self.scan.gaps().get(self.counted.0..).unwrap_or_default(), stats - self.counted.1);
        self.counted = (self.scan.gaps().len(), stats);
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
        let columns = self.columns.get_or_insert_with(|| Columns::new(Arc::clone(schema), options));
        while columns.rows() < options.max_rows && columns.bytes() < options.max_bytes {
            let Some(batch) = self.batch else {
                match self.scan.next_step()? {
                    None => break,
                    Some(ScanStep::Gap(gap)) => columns.append_gap(&gap),
                    Some(ScanStep::Batch(batch)) => self.batch = Some(batch),
                }
                continue;
            };
            let partition = self.scan.log().partition();
            let segment = self.scan.segment().unwrap_or(-1);
            let origin = Origin { topic: self.topic.as_deref(), partition, segment, batch: &batch };
            let before = self.scan.gaps().len();
            let goes_on = self.scan.each_record(|record| {
                columns.append(record, &origin)?;
                Ok(columns.rows() < options.max_rows && columns.bytes() < options.max_bytes)
            })?;
            if !goes_on {
                // a batch that broke off is a gap too
                if options.reports() && self.scan.gaps().len() > before {
                    self.scan.gaps().last().into_iter().for_each(|gap| columns.append_gap(gap));
                }
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
                ScanStep::Gap(gap) => self.batches.append_gap(&gap, segment),
                ScanStep::Batch(batch) => self.batches.append(&batch, segment)?,
            }
        }
        Ok(())
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
