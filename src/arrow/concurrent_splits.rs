//! The splits of a log that several threads read at the same time.

use std::collections::VecDeque;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use super::columns::Columns;
use super::part::Part;
use super::reader_options::ReaderOptions;
use super::running_split::{RunningSplit, Split, max_ready_bytes};
use crate::error::Result;
use crate::log::{Log, OnDamage, Progress, ScanOptions};
use crate::types::MAX_THREADS;

/// The maximum size of a split, bytes of the log.
const SPLIT_BYTES: u64 = 4 << 20;

/// Splits are not made smaller than this: each begins with a look-up.
const MIN_SPLIT_BYTES: u64 = 128 << 10;

/// The number of splits of each thread that are started or ready. A thread that has read one reads another
/// while the calling thread still reads the first.
const SPLITS_PER_THREAD: usize = 2;

/// A log that several threads read. The record batches are returned in the order of the log.
pub(super) struct ConcurrentSplits {
    log: Log,
    threads: usize,
    /// The splits that are not started, in order.
    waiting: VecDeque<Split>,
    running: VecDeque<RunningSplit>,
    /// The columns of splits that have ended, the latest last: their memory is probably still in the caches.
    columns: Vec<Columns>,
    /// The bytes of the log in the splits that have ended, and the memory of their columns.
    log_bytes: u64,
    column_bytes: u64,
    /// Whether splits are divided: not after one whose begin took longer to find than its rest, or that had
    /// damage.
    divides: bool,
}

impl ConcurrentSplits {
    /// # Errors
    /// As [`Log::plan`], which opens all segments of the range.
    pub(super) fn new(log: Log, options: &ReaderOptions) -> Result<Self> {
        Ok(Self {
            threads: options.threads.min(MAX_THREADS),
            waiting: plan(&log, SPLIT_BYTES, options.scan)?,
            log,
            running: VecDeque::new(),
            columns: Vec::new(),
            log_bytes: 0,
            column_bytes: 0,
            divides: true,
        })
    }

    /// The next record batch; `None` at the end of the log.
    ///
    /// # Errors
    /// As [`Scan::next_step`](crate::log::Scan::next_step). The record batches before the error were
    /// returned, unless it is [`Error::Interrupted`](crate::Error::Interrupted).
    pub(super) fn next_batch(
        &mut self,
        options: &ReaderOptions,
        schema: &SchemaRef,
        progress: &Progress,
    ) -> Result<Option<RecordBatch>> {
        loop {
            self.check_interrupted(progress)?;
            while let Some(split) = self.running.pop_front_if(|split| split.is_finished()) {
                self.finish(split, options, schema, progress)?;
            }
            if let Some(batch) = self.running.front_mut().and_then(RunningSplit::pop) {
                return Ok(Some(batch));
            }
            self.start(options, schema);
            if self.running.is_empty() {
                return Ok(None);
            }
            self.read(options);
        }
    }

    /// Fails if a signal ended a split. Only the first split has rows that were returned, so its progress
    /// counts.
    fn check_interrupted(&mut self, progress: &Progress) -> Result<()> {
        let Some(at) = self.running.iter().position(RunningSplit::is_interrupted) else { return Ok(()) };
        if let Some(first) = self.running.front() {
            first.add_to(progress);
        }
        self.running.remove(at).map_or(Ok(()), |split| split.finish().map(drop))
    }

    fn finish(
        &mut self,
        split: RunningSplit,
        options: &ReaderOptions,
        schema: &SchemaRef,
        progress: &Progress,
    ) -> Result<()> {
        self.log_bytes += split.split.size;
        self.column_bytes += split.column_bytes;
        let damage_end = split.damage_end();
        // without an index, and in damage, further splits would read the same bytes again
        self.divides &= split.bytes_read / 2 <= split.split.size && damage_end.is_none();
        split.add_to(progress);
        self.columns.extend(split.finish()?);
        if let Some(offset) = damage_end {
            self.skip_to(offset, options, schema);
        }
        Ok(())
    }

    /// Omits what is before an offset from the splits that follow: it is damage that was found.
    fn skip_to(&mut self, offset: i64, options: &ReaderOptions, schema: &SchemaRef) {
        let mut last = None;
        while let Some(running) = self.running.pop_front_if(|running| running.split.is_before(offset)) {
            last = Some(running.split);
        }
        while self.running.is_empty() && self.waiting.front().is_some_and(|split| split.is_before(offset)) {
            last = self.waiting.pop_front();
        }
        if let Some(rest) = last.and_then(|split| split.after_damage(offset)) {
            let started = self.begin(rest, options, schema);
            self.running.push_front(started);
        }
    }

    /// Starts splits until each thread has its number, or until one has failed.
    fn start(&mut self, options: &ReaderOptions, schema: &SchemaRef) {
        while self.running.len() < self.threads * SPLITS_PER_THREAD
            && !self.running.iter().any(RunningSplit::has_failed)
            && let Some(&split) = self.waiting.front()
        {
            let started = match self.next_waiting(options) {
                Ok(Some(part)) => self.begin(part, options, schema),
                Ok(None) => break,
                Err(error) => RunningSplit::failed(split, error),
            };
            self.running.push_back(started);
        }
    }

    fn begin(&mut self, split: Split, options: &ReaderOptions, schema: &SchemaRef) -> RunningSplit {
        let mut scan = match self.log.scan(ScanOptions { ranges: split.ranges, ..options.scan }) {
            Ok(scan) => scan,
            Err(error) => return RunningSplit::failed(split, error),
        };
        if split.follows_damage {
            scan.include_tail();
        }
        let columns = self.columns.pop().unwrap_or_else(|| Columns::new(schema.clone(), options));
        RunningSplit::new(split, Part::new(scan, columns))
    }

    /// The range of the next split, divided if it is larger than [`ConcurrentSplits::split_bytes`].
    fn next_waiting(&mut self, options: &ReaderOptions) -> Result<Option<Split>> {
        let Some(split) = self.waiting.pop_front() else { return Ok(None) };
        let max_bytes = self.split_bytes(options);
        if !self.divides || split.size <= max_bytes + max_bytes / 4 {
            return Ok(Some(split));
        }
        let scan = ScanOptions { ranges: split.ranges, ..options.scan };
        let mut parts = plan(&self.log, even(split.size, max_bytes), scan)?;
        let first = parts.pop_front();
        parts.append(&mut self.waiting);
        self.waiting = parts;
        Ok(first)
    }

    /// The size of a split, bytes of the log, whose columns are probably a quarter of a full record batch:
    /// the columns of all splits then fit into the caches as well as the record batches of one thread.
    fn split_bytes(&self, options: &ReaderOptions) -> u64 {
        if self.log_bytes == 0 {
            return MIN_SPLIT_BYTES;
        }
        let quarter = options.byte_limit() as u64 / 4;
        let fitting = quarter.saturating_mul(self.log_bytes) / self.column_bytes.max(1);
        fitting.clamp(MIN_SPLIT_BYTES, SPLIT_BYTES)
    }

    /// Reads until all splits have enough record batches. The calling thread, which receives signals, reads
    /// the first.
    fn read(&mut self, options: &ReaderOptions) {
        let ready_bytes = self.running.iter().map(RunningSplit::ready_bytes).sum();
        let max_ready_bytes = max_ready_bytes(options).saturating_mul(self.running.len());
        let needing = self.running.iter_mut().filter(|split| split.needs_more(options)).collect::<Vec<_>>();
        let threads = self.threads.min(needing.len());
        let work = Work {
            splits: Mutex::new(needing.into_iter()),
            ready_bytes: AtomicUsize::new(ready_bytes),
            max_ready_bytes,
            has_first: AtomicBool::new(false),
            pause: AtomicBool::new(false),
        };
        thread::scope(|scope| {
            let first = work.take();
            // if the system refuses a thread, those that there are read more
            let others: Vec<_> = (1..threads)
                .map_while(|_| thread::Builder::new().spawn_scoped(scope, || work.read(None, options)).ok())
                .collect();
            work.read(first, options);
            for other in others {
                // otherwise a panic would look like the end of the data
                other.join().unwrap_or_else(|panic| resume_unwind(panic));
            }
        });
    }
}

/// [`Log::plan`], with the end of the last split as in the options, so that its scan also reports damage at
/// the end of the log. At least one split.
fn plan(log: &Log, max_bytes: u64, scan: ScanOptions) -> Result<VecDeque<Split>> {
    // the scan of the last split fails at the end of the log, after all records before it
    let splits = log.plan(max_bytes, &ScanOptions { on_damage: OnDamage::Skip, ..scan })?;
    let mut splits: VecDeque<_> = splits
        .iter()
        .map(|split| Split { ranges: split.ranges(), size: split.size, ..Split::default() })
        .collect();
    match splits.back_mut() {
        Some(last) => last.ranges.end_offset = scan.ranges.end_offset,
        None => splits.push_back(Split { ranges: scan.ranges, ..Split::default() }),
    }
    Ok(splits)
}

/// The size of parts of a split that are about as large as each other: a short rest costs as much as a part.
/// They are cut at batches, so an eighth is added.
fn even(size: u64, max_bytes: u64) -> u64 {
    let part = size.div_ceil(size.div_ceil(max_bytes));
    part + part / 8
}

/// What the threads of one call share.
struct Work<'a> {
    /// The splits that no thread has taken.
    splits: Mutex<std::vec::IntoIter<&'a mut RunningSplit>>,
    /// The memory of all record batches that are ready.
    ready_bytes: AtomicUsize,
    /// The memory after which no further split is read: splits with batches that expand a lot would take too
    /// much.
    max_ready_bytes: usize,
    /// Whether the first split has enough record batches.
    has_first: AtomicBool,
    /// Whether the threads end before their splits have enough.
    pause: AtomicBool,
}

impl<'a> Work<'a> {
    fn take(&self) -> Option<&'a mut RunningSplit> {
        self.splits.lock().unwrap_or_else(PoisonError::into_inner).next()
    }

    /// The next split to read, unless too much is ready.
    fn next(&self) -> Option<&'a mut RunningSplit> {
        (self.ready_bytes.load(Ordering::Relaxed) < self.max_ready_bytes).then(|| self.take()).flatten()
    }

    /// Reads one split after another, from `first` on. Once none is left and a record batch can be returned,
    /// the other threads pause: they would make the caller wait.
    fn read(&self, first: Option<&'a mut RunningSplit>, options: &ReaderOptions) {
        let is_first = first.is_some();
        let mut next = first.or_else(|| self.next());
        while let Some(split) = next {
            let before = split.ready_bytes();
            split.read(options, &self.pause);
            self.ready_bytes.fetch_add(split.ready_bytes() - before, Ordering::Relaxed);
            if split.is_interrupted() {
                self.pause.store(true, Ordering::Relaxed);
                return;
            }
            if is_first {
                self.has_first.store(true, Ordering::Relaxed);
            }
            next = self.next();
        }
        if self.has_first.load(Ordering::Relaxed) {
            self.pause.store(true, Ordering::Relaxed);
        }
    }
}
