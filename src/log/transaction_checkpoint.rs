//! A place inside a log up to which its transactions are known, so that a refreshed log reads only what
//! follows it.

use std::sync::Arc;

use super::Log;
use super::transactions::OpenTransactions;
use crate::error::Result;
use crate::segment::{Batch, EpochsBefore, LOOKUP_READ, Preceding, SCAN_READ, Segment, Walk};

/// A segment that was read, and its last batch of those that were; `None` if there was none.
#[derive(Debug, Clone)]
pub(super) struct ReadSegment {
    pub(super) segment: Arc<Segment>,
    pub(super) last: Option<Batch>,
}

/// The state of a walk before one of its last batches. That batch is read again: what follows it may show
/// that it is damaged.
#[derive(Debug, Clone)]
pub(super) struct Checkpoint {
    /// The number of segments before this one.
    pub(super) passed: usize,
    /// The segment, and the batch before the position.
    read: ReadSegment,
    position: u64,
    before: Option<Preceding>,
    /// Every batch from the position on has an offset at or above it, and those before are below it.
    pub(super) offset: i64,
    pub(super) open: OpenTransactions,
}

impl Checkpoint {
    /// The bytes between two checkpoints: what is read again after each append.
    const DISTANCE: u64 = 64 << 10;

    /// Whether a walk is far enough from the checkpoint for a new one.
    pub(super) fn is_due(last: Option<&Self>, passed: usize, walk: &Walk) -> bool {
        last.is_none_or(|last| {
            last.passed != passed || walk.position >= last.position.saturating_add(Self::DISTANCE)
        })
    }

    pub(super) fn new(passed: usize, read: ReadSegment, walk: &Walk, open: &OpenTransactions) -> Self {
        let (position, before, offset) = (walk.position, walk.before, walk.expected_offset());
        Self { passed, read, position, before, offset, open: open.clone() }
    }

    /// The same place in a refreshed log: the number of its segments before it. `passed`: the segments that
    /// were read before this one. `None` if the log has other batches before it, or if an open
    /// transaction begins below its first segment now.
    pub(super) fn find_in(&self, passed: &[ReadSegment], log: &Log) -> Result<Option<usize>> {
        let segments = log.segments();
        let Some(first) = segments.first().map(|first| first.base_offset()) else { return Ok(None) };
        if self.open.values().any(|open| open.first < first) {
            return Ok(None);
        }
        let deleted = passed.iter().take_while(|read| read.segment.base_offset() < first).count();
        let kept = passed.iter().skip(deleted).chain([&self.read]);
        let mut now = segments.iter();
        for read in kept {
            let Some(segment) = now.next() else { return Ok(None) };
            if !read.is_in(segment)? {
                return Ok(None);
            }
        }
        Ok(Some(passed.len() - deleted))
    }

    /// The same place with another number of segments before it.
    pub(super) fn after(&self, passed: usize) -> Self {
        Self { passed, ..self.clone() }
    }

    /// A walk from the position on in the segment of a refreshed log.
    pub(super) fn walk(&self, segment: &Segment) -> Result<Walk> {
        let epochs = EpochsBefore::after(self.before);
        if self.position == 0 {
            return segment.walk(epochs, SCAN_READ);
        }
        let mut walk = segment.walk(epochs, SCAN_READ)?;
        (walk.position, walk.before) = (self.position, self.before);
        Ok(walk)
    }

    /// The batch before the position.
    pub(super) fn last(&self) -> Option<Batch> {
        self.read.last
    }
}

impl ReadSegment {
    /// Whether a segment of a refreshed log has the batches that were read of this one. If it is another
    /// listing of the same file, its last batch is compared: a truncation that was written over changes
    /// the leader epoch, the truncation count or the batch.
    fn is_in(&self, now: &Arc<Segment>) -> Result<bool> {
        let read = &self.segment;
        if Arc::ptr_eq(read, now) {
            return Ok(true);
        }
        if !now.is_later_listing_of(read)? {
            return Ok(false);
        }
        let Some(last) = self.last else { return Ok(true) };
        let is_last = |header: &_| *header == last.header;
        Ok(last.end() <= now.size()?
            && now.walk(-1, LOOKUP_READ)?.header_at(last.position)?.is_ok_and(is_last))
    }
}
