//! The splits that several threads read at the same time.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use super::part::Part;
use super::reader::ReaderOptions;
use crate::error::Result;
use crate::log::{Progress, Scan};

/// The maximum number of finished record batches of each split that wait to be returned.
const MAX_READY: usize = 2;

/// A split that is being read, with the record batches that are not returned yet.
pub(super) struct RunningSplit {
    part: Part,
    pub(super) ready: VecDeque<RecordBatch>,
    pub(super) finished: bool,
    pub(super) progress: Progress,
}

impl RunningSplit {
    pub(super) fn new(scan: Scan, options: &ReaderOptions) -> Self {
        let progress = Progress::default();
        Self { part: Part::new(scan, options), ready: VecDeque::new(), finished: false, progress }
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
pub(super) fn fill_concurrently(
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
                split.part.stop_when(&stop);
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
