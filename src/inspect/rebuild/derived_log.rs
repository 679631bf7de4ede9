//! The derived files of all segments, in order.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::DerivedFiles;
use super::derive::{ReadSegment, read_segment};
use super::producer_replay::{FromProducers, ProducerFilesReplay};
use crate::error::{Error, Result};
use crate::index::due_entries::EntryRule;
use crate::log::Log;
use crate::segment::{SCAN_READ, Segment};
use crate::types::MAX_THREADS;

/// The number of segments of each thread that are read before the first of them is returned.
const SEGMENTS_PER_THREAD: usize = 2;

/// The segments of a log whose derived files are wanted.
#[derive(Debug)]
pub(crate) struct DerivedLog<'a> {
    pub(crate) log: &'a Log,
    pub(crate) rule: EntryRule,
    /// The number of threads that read segments; 0 counts as 1.
    pub(crate) threads: usize,
    pub(crate) replay: ProducerFilesReplay,
    /// The base offset of the last segment that is read.
    pub(crate) last_base_offset: i64,
}

impl DerivedLog<'_> {
    /// Calls `each` with the files of each segment, in the order of the log.
    ///
    /// One thread reads each segment once. Several read the segments at the same time, and then the calling
    /// thread reads the headers of those with producers again, in order.
    ///
    /// # Errors
    /// [`Error::Corrupt`], [`Error::UnsupportedFormat`] at the first damage; the errors of `each`;
    /// [`Error::Io`].
    pub(crate) fn for_each(mut self, mut each: impl FnMut(&DerivedFiles) -> Result<()>) -> Result<()> {
        let segments: Vec<_> = self.log.segments().iter().cloned().collect();
        let count = segments.partition_point(|segment| segment.base_offset() <= self.last_base_offset);
        let segments = segments.get(..count).unwrap_or_default();
        let threads = self.threads.clamp(1, MAX_THREADS);
        if threads == 1 {
            for segment in segments {
                let never = AtomicBool::new(false);
                let read = read_segment(segment, self.rule, Some(&mut self.replay), &never)?;
                let Some(read) = read else { continue };
                each(&read.files)?;
            }
            return Ok(());
        }
        for segments in segments.chunks(threads * SEGMENTS_PER_THREAD) {
            for (segment, read) in segments.iter().zip(read_together(segments, self.rule, threads)?) {
                let mut files = read.files;
                let FromProducers { transaction_index, snapshots } =
                    if read.has_producers || self.replay.has_snapshot_below(files.end_offset) {
                        self.replay.read(segment, SCAN_READ)?
                    } else {
                        self.replay.end_segment(segment.upper())
                    };
                (files.transaction_index, files.snapshots) = (transaction_index, snapshots);
                each(&files)?;
            }
        }
        Ok(())
    }
}

/// Reads segments on several threads, the calling one among them. The result is in the order of the segments.
/// The first error in that order is returned, so that it does not depend on the number of threads.
fn read_together(segments: &[Arc<Segment>], rule: EntryRule, threads: usize) -> Result<Vec<ReadSegment>> {
    let next = AtomicUsize::new(0);
    let is_interrupted = AtomicBool::new(false);
    let results: Mutex<Vec<(usize, Result<Option<ReadSegment>>)>> = Mutex::default();
    let work = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(segment) = segments.get(number) else { return };
            let read = read_segment(segment, rule, None, &is_interrupted);
            if matches!(read, Err(Error::Interrupted(_))) {
                is_interrupted.store(true, Ordering::Relaxed);
            }
            results.lock().unwrap_or_else(PoisonError::into_inner).push((number, read));
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads.min(segments.len()) {
            scope.spawn(work);
        }
        work();
    });
    let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.sort_unstable_by_key(|(number, _)| *number);
    let interrupted = results.iter().position(|(_, read)| matches!(read, Err(Error::Interrupted(_))));
    if let Some(at) = interrupted {
        let (_, Err(error)) = results.swap_remove(at) else { return Ok(Vec::new()) };
        return Err(error);
    }
    let mut read = Vec::with_capacity(results.len());
    for (_, result) in results {
        read.extend(result?);
    }
    Ok(read)
}
