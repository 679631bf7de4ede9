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

/// How much of the log one thread takes at a time.
const THREAD_BYTES: u64 = 4 << 20;

/// How many finished record batches wait behind each thread at most.
const READY: usize = 2;

/// Binary columns count their bytes in 31 bits, and one more batch always fits.
const MAX_BYTES: usize = 1 << 30;

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
    /// About the most bytes in a record batch, 1 GiB in any case; one record may be larger.
    pub max_bytes: usize,
    /// How many threads decompress and decode side by side; they live no longer than the call that needs them.
    pub threads: usize,
    /// The most rows in all. With a limit one thread reads, so that nothing after the last row is read.
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

    /// The schema of what a reader with these options gives.
    pub fn schema(&self) -> SchemaRef {
        if self.scan.batches_only { batches::schema(self.reports()) } else { schema(self) }
    }
}

/// What a reader has met so far; shared with whoever started it.
#[derive(Debug, Clone, Default)]
pub struct Progress(Arc<Mutex<Met>>);

#[derive(Debug, Clone, Default)]
struct Met {
    damaged_ranges: Vec<DamagedRange>,
    stats: ScanStats,
    /// The parts that gave records of transactions which are not known to be committed, in order.
    uncommitted: Vec<(Log, Uncommitted)>,
}

impl Progress {
    fn met(&self) -> MutexGuard<'_, Met> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The damaged stretches passed over.
    pub fn damaged_ranges(&self) -> Vec<DamagedRange> {
        self.met().damaged_ranges.clone()
    }

    /// What was done.
    pub fn stats(&self) -> ScanStats {
        self.met().stats
    }

    /// The partition directory and the first offset given of a transaction that was aborted, or has not ended; see
    /// [`Scan::first_uncommitted`].
    ///
    /// # Errors
    /// Those of [`Scan::first_uncommitted`].
    pub fn first_uncommitted(&self) -> Result<Option<(PathBuf, i64)>> {
        let parts = self.met().uncommitted.clone();
        for (log, uncommitted) in parts {
            if let Some(offset) = uncommitted.find(&log)? {
                return Ok(Some((log.path().to_owned(), offset)));
            }
        }
        Ok(None)
    }

    /// Adds what a part did since it was asked before.
    fn add(&self, gaps: &[DamagedRange], stats: ScanStats) {
        let mut met = self.met();
        met.damaged_ranges.extend_from_slice(gaps);
        met.stats += stats;
    }

    /// Adds what another reader met, which read on from here.
    fn merge(&self, other: &Self) {
        let other = std::mem::take(&mut *other.met());
        let mut met = self.met();
        met.damaged_ranges.extend(other.damaged_ranges);
        met.stats += other.stats;
        met.uncommitted.extend(other.uncommitted);
    }

    /// Notes what is known of the transactions of the part that is read, in place of what was known before.
    fn note(&self, scan: &Scan, place: usize) {
        let mut met = self.met();
        met.uncommitted.truncate(place);
        met.uncommitted.extend(scan.uncommitted().map(|uncommitted| (scan.log().clone(), uncommitted)));
    }

    fn parts(&self) -> usize {
        self.met().uncommitted.len()
    }
}

/// Reads logs one after another as record batches; each batch holds rows of one log.
pub struct Reader {
    options: ReaderOptions,
    schema: SchemaRef,
    logs: Box<dyn Iterator<Item = Result<Log>> + Send>,
    current: Option<Part>,
    /// With several threads: the current log, its splits that are not begun, and those under way, in order.
    waiting: Option<(Log, VecDeque<Split>)>,
    lanes: VecDeque<Lane>,
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
            waiting: None,
            lanes: VecDeque::new(),
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
            (self.current, self.waiting) = (None, None);
            self.lanes.clear();
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
            if let Some((log, splits)) = &mut self.waiting {
                while self.lanes.len() < self.options.threads
                    && let Some(split) = splits.pop_front()
                {
                    let scan = ScanOptions { ranges: split.ranges(), ..self.options.scan };
                    self.lanes.push_back(Lane::new(log.scan(scan)?));
                }
                let Some(first) = self.lanes.front_mut() else {
                    self.waiting = None;
                    continue;
                };
                if let Some(batch) = first.ready.pop_front() {
                    return Ok(Some(batch));
                }
                if first.finished {
                    self.progress.merge(&first.progress);
                    self.lanes.pop_front();
                } else {
                    fill_side_by_side(&mut self.lanes, &self.options, &self.schema)?;
                }
                continue;
            }
            let Some(log) = self.logs.next() else { return Ok(None) };
            let log = log?;
            if self.options.threads > 1 && self.options.limit.is_none() && !self.options.scan.batches_only {
                let splits = log.plan(THREAD_BYTES, &self.options.scan)?;
                self.waiting = Some((log, splits.into()));
            } else {
                self.current = Some(Part::new(log.scan(self.options.scan)?));
            }
        }
    }
}

/// A split under way: what was read of it and not yet given.
struct Lane {
    part: Part,
    ready: VecDeque<RecordBatch>,
    finished: bool,
    progress: Progress,
}

impl Lane {
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

/// Reads a record batch more of each split that has room for one, each in a thread of its own; the first one in the
/// calling thread, which is the one that sees signals. If it fails, the others stop at their next batch.
fn fill_side_by_side(lanes: &mut VecDeque<Lane>, options: &ReaderOptions, schema: &SchemaRef) -> Result<()> {
    let stop = Arc::new(AtomicBool::new(false));
    let mut unfilled = lanes.iter_mut().filter(|lane| !lane.finished && lane.ready.len() < READY);
    let Some(first) = unfilled.next() else { return Ok(()) };
    std::thread::scope(|scope| {
        let threads: Vec<_> = unfilled
            .map(|lane| {
                lane.part.scan.stop_when(&stop);
                scope.spawn(|| lane.fill(options, schema))
            })
            .collect();
        let filled = first.fill(options, schema);
        stop.store(filled.is_err(), Ordering::Relaxed);
        let others: Vec<_> = threads.into_iter().map(std::thread::ScopedJoinHandle::join).collect();
        filled?;
        // a panic of ours goes on as one; it is not hidden as an end of the data
        others
            .into_iter()
            .try_for_each(|other| other.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
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
    /// Its place among the parts in [`Met::uncommitted`], once it was asked.
    place: Option<usize>,
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
            place: None,
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
        progress.note(&self.scan, *self.place.get_or_insert_with(|| progress.parts()));
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
                    Some(ScanStep::DamagedRange(gap)) => columns.append_damaged_range(&gap),
                    Some(ScanStep::Batch(batch)) => self.batch = Some(batch),
                }
                continue;
            };
            let partition = self.scan.log().partition();
            let segment = self.scan.segment().unwrap_or(-1);
            let origin = Origin { topic: self.topic.as_deref(), partition, segment, batch: &batch };
            let before = self.scan.damaged_ranges().len();
            let goes_on = self.scan.each_record(|record| {
                columns.append(record, &origin)?;
                Ok(columns.rows() < options.max_rows && columns.bytes() < max_bytes)
            })?;
            if !goes_on {
                // a batch that broke off is a gap too
                if options.reports() && self.scan.damaged_ranges().len() > before {
                    self.scan
                        .damaged_ranges()
                        .last()
                        .into_iter()
                        .for_each(|gap| columns.append_damaged_range(gap));
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
                ScanStep::DamagedRange(gap) => self.batches.append_damaged_range(&gap, segment),
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
