//! The producers of a log while its batches are read: aborted transactions, and snapshots at some offsets.

use std::collections::VecDeque;

use crate::error::{Malformed, Result};
use crate::index::encode_aborted;
use crate::record::BatchHeader;
use crate::segment::{Batch, Segment, Step, Walk};
use crate::state::producers::{
    EndedTransaction, MalformedMarker, ProducerReplay, ProducerStates, RefusedBatch, ReplayedBatch,
};

/// What a segment has from its producers.
#[derive(Debug, Default)]
pub(crate) struct FromProducers {
    /// The bytes of the `.txnindex`.
    pub(crate) transaction_index: Vec<u8>,
    /// Offsets, and the bytes of a snapshot; `None` for an offset inside a batch, where there is no state.
    pub(crate) snapshots: Vec<(i64, Option<Vec<u8>>)>,
}

/// The producers of a log, segment by segment.
#[derive(Debug, Default)]
pub(crate) struct ProducerFilesReplay {
    producers: ProducerReplay,
    /// The offsets of the snapshots that are still to be taken, ascending.
    wanted: VecDeque<i64>,
    segment: FromProducers,
}

impl ProducerFilesReplay {
    /// `states`: the producers before the first batch. `snapshot_offsets`: the offsets above that at which
    /// snapshots are taken, ascending.
    pub(crate) fn new(states: ProducerStates, snapshot_offsets: Vec<i64>) -> Self {
        let producers = ProducerReplay::new(states, MalformedMarker::Refused);
        Self { producers, wanted: snapshot_offsets.into(), ..Self::default() }
    }

    /// Whether a snapshot is taken between two batches of a segment that ends at `end`.
    pub(crate) fn has_snapshot_below(&self, end: i64) -> bool {
        self.wanted.front().is_some_and(|offset| *offset < end)
    }

    /// Adds the next batch, which the walk has just returned.
    ///
    /// # Errors
    /// The inner error is damage of the batch.
    pub(super) fn add(&mut self, batch: &Batch, walk: &mut Walk) -> Result<Result<(), Malformed>> {
        let bytes = if ProducerReplay::needs_bytes(&batch.header) { walk.bytes(batch)? } else { &[] };
        Ok(self.add_header(&batch.header, bytes).map(drop).map_err(Malformed::from))
    }

    /// Adds the next batch. `bytes`: the whole batch if it [needs](ProducerReplay::needs_bytes) them.
    pub(crate) fn add_header(
        &mut self,
        header: &BatchHeader,
        bytes: &[u8],
    ) -> Result<ReplayedBatch, RefusedBatch> {
        while let Some(offset) = self.wanted.pop_front_if(|offset| *offset <= header.last_offset) {
            let bytes = (offset <= header.base_offset).then(|| self.producers.states.encode());
            self.segment.snapshots.push((offset, bytes));
        }
        let added = self.producers.add(header, bytes)?;
        let aborted = added.ended.and_then(EndedTransaction::aborted);
        self.segment.transaction_index.extend(aborted.map(encode_aborted).into_iter().flatten());
        Ok(added)
    }

    /// Ends a segment. `upper`: the base offset of the next one.
    pub(crate) fn end_segment(&mut self, upper: i64) -> FromProducers {
        while let Some(offset) = self.wanted.pop_front_if(|offset| *offset <= upper) {
            self.segment.snapshots.push((offset, Some(self.producers.states.encode())));
        }
        std::mem::take(&mut self.segment)
    }

    /// Reads a segment whose checksums were verified before.
    pub(super) fn read(&mut self, segment: &Segment, read: usize) -> Result<FromProducers> {
        let mut walk = segment.walk(-1, read)?;
        loop {
            segment.open_files().interrupt.check()?;
            let before = walk.before;
            let damage = match walk.step()? {
                Step::End => return Ok(self.end_segment(segment.upper())),
                Step::Batch(batch) => match self.add(&batch, &mut walk)? {
                    Ok(()) => continue,
                    Err(malformed) => walk.reject(&batch, before, malformed),
                },
                Step::Damage(damage) => damage,
            };
            return Err(segment.corrupt(&damage));
        }
    }
}
