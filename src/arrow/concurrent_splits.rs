//! The splits of a log that several threads read at the same time.

use std::collections::VecDeque;
use std::num::NonZero;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use super::columns::Columns;
use super::reader::ReaderOptions;
use super::running_split::RunningSplit;
use crate::error::Result;
use crate::log::{Log, Progress, ScanOptions, Split};

/// The maximum size of a split, bytes of the log.
const SPLIT_BYTES: u64 = 4 << 20;

/// Splits are not made smaller than this: each begins with a look-up.
const MIN_SPLIT_BYTES: u64 = 128 << 10;

/// The number of splits of each thread that are started or ready. A thread that has read one reads another while the calling
/// thread still reads the first.
const SPLITS_PER_THREAD: usize = 2;

/// A log that several threads read. The record batches are returned in the order of the log.
pub(super) struct ConcurrentSplits {
    log: Log,
    threads: NonZero<usize>,
    /// The splits that are not started, in order.
    waiting: VecDeque<Split>,
    running: VecDeque<RunningSplit>,
    /// The columns of splits that have ended, the latest last: their memory is probably still in the caches.
    columns: Vec<Columns>,
    /// What columns took for each byte of the log in the splits that have ended: the totals of both.
    expansion: (usize, u64),
}

impl ConcurrentSplits {
    /// # Errors
    /// As [`Log::plan`].
    pub(super) fn new(log: Log, threads: NonZero<usize>, options: &ReaderOptions) -> Result<Self> {
        Ok(Self {
            threads,
            waiting: log.plan(SPLIT_BYTES, &options.scan)?.into(),
            log,
            running: VecDeque::new(),
            columns: Vec::new(),
            expansion: (0, 0),
        })
    }

    /// The next record batch; `None` at the end of the log.
    ///
    /// # Errors
    /// As [`Scan::next_step`](crate::log::Scan::next_step). The rows of the splits before the error were returned.
    pub(super) fn next_batch(
        &mut self,
        options: &ReaderOptions,
        schema: &SchemaRef,
        progress: &Progress,
    ) -> Result<Option<RecordBatch>> {
        loop {
            while let Some(split) = self.running.pop_front_if(|split| split.is_finished()) {
                let (columns, bytes) = split.expansion;
                self.expansion = (self.expansion.0 + columns, self.expansion.1 + bytes);
                self.columns.extend(split.finish(progress)?);
            }
            if let Some(batch) = self.running.front_mut().and_then(RunningSplit::pop) {
                return Ok(Some(batch));
            }
            self.start(options, schema)?;
            if self.running.is_empty() {
                return Ok(None);
            }
            self.read(options);
            if let Some(at) = self.running.iter().position(RunningSplit::is_interrupted)
                && let Some(split) = self.running.remove(at)
            {
                split.finish(progress)?;
            }
        }
    }

    /// Starts splits until each thread has its number.
    fn start(&mut self, options: &ReaderOptions, schema: &SchemaRef) -> Result<()> {
        while self.running.len() < self.threads.get().saturating_mul(SPLITS_PER_THREAD)
            && let Some(split) = self.next_split(options)?
        {
            let columns = self.columns.pop();
            let columns = columns.unwrap_or_else(|| Columns::new(schema.clone(), options));
            self.running.push_back(RunningSplit::new(&self.log, split.ranges(), columns));
        }
        Ok(())
    }

    /// The next split to start, divided if its columns would not fit into one record batch: the rest of a split is read by one
    /// thread once the others have as much as they may hold.
    fn next_split(&mut self, options: &ReaderOptions) -> Result<Option<Split>> {
        while let Some(split) = self.waiting.pop_front() {
            let max_bytes = self.split_bytes(options);
            if split.size <= max_bytes + max_bytes / 4 {
                return Ok(Some(split));
            }
            let max_bytes = even(split.size, max_bytes);
            let scan = ScanOptions { ranges: split.ranges(), ..options.scan };
            let parts = self.log.plan(max_bytes, &scan)?;
            for part in parts.into_iter().rev() {
                self.waiting.push_front(part);
            }
            if let Some(part) = self.waiting.pop_front() {
                return Ok(Some(part));
            }
        }
        Ok(None)
    }

    /// The size of a split, bytes of the log, whose columns are probably a quarter of a full record batch: those of all splits
    /// then fit into the caches as well as the record batches of one thread.
    fn split_bytes(&self, options: &ReaderOptions) -> u64 {
        let (columns, bytes) = self.expansion;
        let limit = options.byte_limit() as u64 / 4;
        let fitting = limit.saturating_mul(bytes).checked_div(columns as u64).unwrap_or(MIN_SPLIT_BYTES);
        fitting.clamp(MIN_SPLIT_BYTES, SPLIT_BYTES)
    }

    /// Reads until all splits have enough record batches. The calling thread, which receives signals, reads the first.
    fn read(&mut self, options: &ReaderOptions) {
        let ready_bytes = self.running.iter().map(RunningSplit::ready_bytes).sum();
        let max_ready_bytes = options.byte_limit().saturating_mul(self.running.len());
        let needing = self.running.iter_mut().filter(|split| split.needs_more(options)).collect::<Vec<_>>();
        let threads = self.threads.get().min(needing.len());
        let work = Work {
            ready_bytes: AtomicUsize::new(ready_bytes),
            max_ready_bytes,
            splits: Mutex::new(needing.into_iter()),
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

/// The size of parts of a split that are about as large as each other: a short rest costs as much as a part. They are cut at
/// batches, so an eighth is added.
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
    /// The memory after which no further split is read: those of batches that expand a lot would take too much.
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

    /// Reads one split after another, from `first` on. Once none is left and a record batch can be returned, the other threads
    /// pause: they would make the caller wait.
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
