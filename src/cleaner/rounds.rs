//! Batches on which several threads work at the same time: in rounds, in each of which every thread has a
//! chunk of them. What needs the order of the log is done by the calling thread, before and after.

use std::ops::Range;
use std::panic::resume_unwind;
use std::thread;

use super::batches::{Place, Unusable};
use crate::record::BatchHeader;
use crate::types::MAX_THREADS;

/// The bytes of a chunk, after which the next one begins: some milliseconds of work, and less than the caches
/// of a core have room for.
const CHUNK_BYTES: usize = 512 << 10;
/// The records of a chunk, which bound what a thread keeps of them.
const CHUNK_RECORDS: usize = 64 << 10;
/// The largest batch of a chunk, bytes.
const MAX_BATCH: u32 = 4 << 20;

/// Chunks of batches. `J`: what is to be done with a batch; `S`: what a thread uses for that; `O`: what it
/// makes, any number for a batch; `R`: what else is known of the batch then.
#[derive(Debug)]
pub(super) struct Rounds<J, S, O, R> {
    chunks: Vec<Chunk<J, S, O, R>>,
    /// The chunk to which batches are added.
    filling: usize,
}

/// The batches of a thread.
#[derive(Debug)]
struct Chunk<J, S, O, R> {
    bytes: Vec<u8>,
    records: usize,
    queued: Vec<(Place, J, Range<usize>)>,
    scratch: S,
    output: Vec<O>,
    /// Of the batches up to the first one that cannot be used, with the part of the output: of that batch,
    /// what was made before.
    results: Vec<(Result<R, Unusable>, Range<usize>)>,
}

impl<J, S, O, R> Chunk<J, S, O, R> {
    /// Calls `work` for the batches that have no result yet.
    fn work(&mut self, work: &impl Fn(&Place, &J, &[u8], (&mut S, &mut Vec<O>)) -> Result<R, Unusable>) {
        if self.results.last().is_some_and(|(result, _)| result.is_err()) {
            return;
        }
        for (place, job, range) in self.queued.iter().skip(self.results.len()) {
            let bytes = self.bytes.get(range.clone()).unwrap_or_default();
            let start = self.output.len();
            let result = work(place, job, bytes, (&mut self.scratch, &mut self.output));
            let is_last = result.is_err();
            self.results.push((result, start..self.output.len()));
            if is_last {
                return;
            }
        }
    }

    /// Calls `finish` for each batch, and empties the chunk.
    fn finish(
        &mut self,
        finish: &mut impl FnMut(&Place, Result<R, Unusable>, &[O]) -> Result<(), Unusable>,
    ) -> Result<(), Box<(Place, Unusable)>> {
        for ((place, ..), (result, range)) in self.queued.drain(..).zip(self.results.drain(..)) {
            let output = self.output.get(range).unwrap_or_default();
            finish(&place, result, output).map_err(|unusable| Box::new((place, unusable)))?;
        }
        self.bytes.clear();
        self.output.clear();
        self.records = 0;
        Ok(())
    }
}

impl<J, S, O, R> Rounds<J, S, O, R>
where
    J: Send + Sync,
    S: Default + Send,
    O: Send,
    R: Send,
{
    /// For a number of threads; the calling one is the first.
    pub(super) fn new(threads: usize) -> Self {
        let chunk = || Chunk {
            bytes: Vec::new(),
            records: 0,
            queued: Vec::new(),
            scratch: S::default(),
            output: Vec::new(),
            results: Vec::new(),
        };
        Self { chunks: std::iter::repeat_with(chunk).take(threads.min(MAX_THREADS)).collect(), filling: 0 }
    }

    /// Adds a batch that [`accepts`] allows. Returns whether [`Rounds::work`] is to be called, because all
    /// chunks are full.
    pub(super) fn add(&mut self, place: Place, bytes: &[u8], job: J) -> bool {
        let last = self.chunks.len() - 1;
        if let Some(chunk) = self.chunks.get_mut(self.filling.min(last)) {
            let start = chunk.bytes.len();
            chunk.bytes.extend_from_slice(bytes);
            chunk.records += count(&place.batch.header).unwrap_or(0);
            chunk.queued.push((place, job, start..chunk.bytes.len()));
            self.filling += usize::from(chunk.bytes.len() >= CHUNK_BYTES || chunk.records >= CHUNK_RECORDS);
        }
        self.filling >= self.chunks.len()
    }

    /// Calls `work` for each batch, with its bytes, in several threads.
    pub(super) fn work(
        &mut self,
        work: impl Fn(&Place, &J, &[u8], (&mut S, &mut Vec<O>)) -> Result<R, Unusable> + Sync,
    ) {
        thread::scope(|scope| {
            let mut filled = self.chunks.iter_mut().filter(|chunk| !chunk.queued.is_empty());
            let first = filled.next();
            let start = |chunk| thread::Builder::new().spawn_scoped(scope, || Chunk::work(chunk, &work));
            let others: Vec<_> = filled.map(start).collect();
            if let Some(first) = first {
                first.work(&work);
            }
            for other in others.into_iter().flatten() {
                if let Err(panic) = other.join() {
                    resume_unwind(panic);
                }
            }
        });
        // those for which the system had no thread
        self.chunks.iter_mut().for_each(|chunk| chunk.work(&work));
    }

    /// Calls `finish` for each batch in the order of the log, with what [`Rounds::work`] has returned and
    /// made. Nothing is left in the chunks.
    ///
    /// # Errors
    /// The first one of `finish`, with its batch. The batches after one that cannot be used have no result,
    /// and are omitted.
    pub(super) fn finish(
        &mut self,
        mut finish: impl FnMut(&Place, Result<R, Unusable>, &[O]) -> Result<(), Unusable>,
    ) -> Result<(), Box<(Place, Unusable)>> {
        self.filling = 0;
        self.chunks.iter_mut().try_for_each(|chunk| chunk.finish(&mut finish))
    }
}

/// Whether a batch can be added to a chunk: what is kept of a very large one, or of one with an unknown
/// number of records, could take any memory.
pub(super) fn accepts(header: &BatchHeader) -> bool {
    header.size <= MAX_BATCH && count(header).is_some_and(|count| count <= CHUNK_RECORDS)
}

fn count(header: &BatchHeader) -> Option<usize> {
    header.count.and_then(|count| usize::try_from(count).ok())
}
