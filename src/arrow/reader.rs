//! Scans as a stream of record batches of bounded size.

use std::collections::VecDeque;
use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef, TimeUnit};

use super::batches::{self, BatchColumns};
use super::columns::{Columns, Origin};
use super::{Column, HeaderKeys, schema};
use crate::error::{Error, Result};
use crate::log::{DamagedRange, Log, OnDamage, Scan, ScanOptions, ScanStats, ScanStep, Split, Uncommitted};

/// The size of the splits that threads read, bytes of the log.
const THREAD_BYTES: u64 = 4 << 20;

/// The maximum number of finished record batches of each split that wait to be returned.
const MAX_READY: usize = 2;

/// The limit of `max_bytes`: binary columns have 31-bit offsets, and after this limit one more batch must fit.
const MAX_BYTES: usize = 1 << 30;

/// Options of a [`Reader`].
#[derive(Debug, Clone)]
pub struct ReaderOptions {
    /// What to read. With `batches_only` the rows are batches, and `columns` is ignored.
    pub scan: ScanOptions,
    /// The columns, in this order.
    pub columns: Vec<Column>,
    /// The type of header names.
    pub header_keys: HeaderKeys,
    /// The unit of timestamps: milliseconds or microseconds.
    pub timestamp_unit: TimeUnit,
    /// The maximum number of rows in a record batch.
    pub max_rows: usize,
    /// The approximate maximum size of a record batch, bytes; at most 1 GiB. One record may be larger.
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

    /// The schema of a reader with these options.
    pub fn schema(&self) -> SchemaRef {
        if self.scan.batches_only { batches::schema(self.reports()) } else { schema(self) }
    }
}

/// The progress of a reader so far; shared with the code that started it.
#[derive(Debug, Clone, Default)]
pub struct Progress(Arc<Mutex<ProgressState>>);

#[derive(Debug, Clone, Default)]
struct ProgressState {
    damaged_ranges: Vec<DamagedRange>,
    stats: ScanStats,
    /// The parts with records of transactions that are not known to be committed, in order.
    uncommitted: Vec<(Log, Uncommitted)>,
}

impl Progress {
    fn lock(&self) -> MutexGuard<'_, ProgressState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The damaged ranges that were skipped.
    pub fn damaged_ranges(&self) -> Vec<DamagedRange> {
        self.lock().damaged_ranges.clone()
    }

    /// The statistics of the scans.
    pub fn stats(&self) -> ScanStats {
        self.lock().stats
    }

    /// The partition directory and the first returned offset of a transaction that was aborted or has not ended; see
    /// [`Scan::first_uncommitted`].
    ///
    /// # Errors
    /// Those of [`Scan::first_uncommitted`].
    pub fn first_uncommitted(&self) -> Result<Option<(PathBuf, i64)>> {
        let parts = self.lock().uncommitted.clone();
        for (log, uncommitted) in parts {
            if let Some(offset) = uncommitted.find(&log)? {
                return Ok(Some((log.path().to_owned(), offset)));
            }
        }
        Ok(None)
    }

    /// Adds the progress of a part since the last call.
    fn add(&self, ranges: &[DamagedRange], stats: ScanStats) {
        let mut progress = self.lock();
        progress.damaged_ranges.extend_from_slice(ranges);
        progress.stats += stats;
    }

    /// Adds the progress of a reader of the part that follows.
    fn merge(&self, other: &Self) {
        let other = std::mem::take(&mut *other.lock());
        let mut progress = self.lock();
        progress.damaged_ranges.extend(other.damaged_ranges);
        progress.stats += other.stats;
        progress.uncommitted.extend(other.uncommitted);
    }

    /// Replaces the information about the transactions of the part that is being read.
    fn set_uncommitted(&self, scan: &Scan, index: usize) {
        let mut progress = self.lock();
        progress.uncommitted.truncate(index);
        progress.uncommitted.extend(scan.uncommitted().map(|uncommitted| (scan.log().clone(), uncommitted)));
    }

    fn parts(&self) -> usize {
        self.lock().uncommitted.len()
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
    /// As [`Scan::next_step`]; an error ends the stream.
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
                    self.running.push_back(RunningSplit::new(log.scan(scan)?));
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
                self.current = Some(Part::new(log.scan(self.options.scan)?));
            }
        }
    }
}

/// A split that is being read, with the record batches that are not returned yet.
struct RunningSplit {
    part: Part,
    ready: VecDeque<RecordBatch>,
    finished: bool,
    progress: Progress,
}

impl RunningSplit {
    fn new(scan: Scan) -> Self {
        let progress = Progress::default();
        Self { part: Part::new(scan), ready: VecDeque::new(), finished: false, progress }
    }

    /// Reads one more record batch of the split.
    fn fill(&mut self, options: &ReaderOptions, schema: &SchemaRef) -> Result<()> {
        match self.part.next_batch(options, schema, &self.progress)? {
            Some(batch) => self.ready.push_back(batch),
            None => self.finished = true,
        }
        Ok(())
    }
}

/// Reads one more record batch of each split that has fewer than [`MAX_READY`], each in its own thread, and the first in the
/// calling thread, which receives signals. If the first fails, the others stop at their next batch.
fn fill_concurrently(
    running: &mut VecDeque<RunningSplit>,
    options: &ReaderOptions,
    schema: &SchemaRef,
) -> Result<()> {
    let stop = Arc::new(AtomicBool::new(false));
    let mut unfilled = running.iter_mut().filter(|split| !split.finished && split.ready.len() < MAX_READY);
    let Some(first) = unfilled.next() else { return Ok(()) };
    std::thread::scope(|scope| {
        let threads: Vec<_> = unfilled
            .map(|split| {
                split.part.scan.stop_when(&stop);
                scope.spawn(|| split.fill(options, schema))
            })
            .collect();
        let filled = first.fill(options, schema);
        stop.store(filled.is_err(), Ordering::Relaxed);
        let others: Vec<_> = threads.into_iter().map(std::thread::ScopedJoinHandle::join).collect();
        filled?;
        // a panic of a thread is propagated: otherwise it would look like the end of the data
        others
            .into_iter()
            .try_for_each(|other| other.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}

/// A scan, and the columns that it fills.
struct Part {
    scan: Scan,
    columns: Option<Columns>,
    batches: BatchColumns,
    /// The batch that is being read.
    batch: Option<crate::segment::Batch>,
    topic: Option<String>,
    counted: (usize, ScanStats),
    /// The index of this part in [`ProgressState::uncommitted`], once it is known.
    index: Option<usize>,
}

impl Part {
    fn new(scan: Scan) -> Self {
        let topic = scan.log().topic().map(str::to_owned);
        let counted = (0, ScanStats::default());
        Self {
            scan,
            columns: None,
            batches: BatchColumns::default(),
            batch: None,
            topic,
            counted,
            index: None,
        }
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
        progress.add(
            self.scan.damaged_ranges().get(self.counted.0..).unwrap_or_default(),
            stats - self.counted.1,
        );
        self.counted = (self.scan.damaged_ranges().len(), stats);
        progress.set_uncommitted(&self.scan, *self.index.get_or_insert_with(|| progress.parts()));
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
        let max_bytes = options.max_bytes.min(MAX_BYTES);
        while columns.rows() < options.max_rows && columns.bytes() < max_bytes {
            let Some(batch) = self.batch else {
                match self.scan.next_step()? {
                    None => break,
                    Some(ScanStep::DamagedRange(range)) => columns.append_damaged_range(&range),
                    Some(ScanStep::Batch(batch)) => self.batch = Some(batch),
                }
                continue;
            };
            let partition = self.scan.log().partition();
            let segment = self.scan.segment().unwrap_or(-1);
            let origin = Origin { topic: self.topic.as_deref(), partition, segment, batch: &batch };
            let before = self.scan.damaged_ranges().len();
            let has_more = self.scan.each_record(|record| {
                columns.append(record, &origin)?;
                Ok(columns.rows() < options.max_rows && columns.bytes() < max_bytes)
            })?;
            if !has_more {
                // a batch that ends in damage is also a damaged range
                if options.reports() && self.scan.damaged_ranges().len() > before {
                    self.scan
                        .damaged_ranges()
                        .last()
                        .into_iter()
                        .for_each(|range| columns.append_damaged_range(range));
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
                ScanStep::DamagedRange(range) => self.batches.append_damaged_range(&range, segment),
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
