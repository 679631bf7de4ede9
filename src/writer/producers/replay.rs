//! Reads the batches of segments for the states of their producers.

use std::ops::Range;
use std::sync::Arc;

use crate::error::{Malformed, Result};
use crate::index::encode_aborted;
use crate::segment::{Batch, Bounds, SCAN_READ, Segment, Step, Walk};
use crate::state::producers::{EndedTransaction, ProducerReplay, RefusedBatch, ReplayedBatch};

/// A segment whose batches are read, or a part of one that is split.
#[derive(Debug)]
pub(in crate::writer) struct Replayed {
    pub(in crate::writer) segment: Arc<Segment>,
    /// The base offset of the part.
    pub(in crate::writer) base_offset: i64,
    /// The start and the end of its data, bytes.
    pub(in crate::writer) bytes: Range<u64>,
    /// Whether its checksums were verified.
    pub(in crate::writer) is_verified: bool,
    /// The offset after its last batch, if no batch has a producer id. `None`: it is read.
    pub(in crate::writer) end_without_producers: Option<i64>,
}

impl Replayed {
    /// The whole segment, whose checksums are still to be verified.
    pub(in crate::writer) fn whole(segment: &Arc<Segment>) -> Result<Self> {
        let (base_offset, bytes) = (segment.base_offset(), 0..segment.size()?);
        let segment = Arc::clone(segment);
        Ok(Self { segment, base_offset, bytes, is_verified: false, end_without_producers: None })
    }

    /// Adds the batches that end at or above `start` and below `end`, all at once.
    ///
    /// # Errors
    /// [`Error::Corrupt`](crate::Error::Corrupt) if the log contradicts itself.
    ///
    /// *Source*: `UnifiedLog.loadProducersFromRecords`.
    pub(super) fn load(&self, producers: &mut ProducerReplay, start: i64, end: i64) -> Result<()> {
        producers.add_at_once(|producers| self.read(start, end, producers, drop)).map(drop)
    }

    /// Adds all batches, one after another. Returns the offset after the last one, and the
    /// bytes of the transaction index.
    ///
    /// # Errors
    /// As [`Replayed::load`].
    ///
    /// *Source*: `LogSegment.recover`.
    pub(super) fn recover(&self, producers: &mut ProducerReplay) -> Result<(Option<i64>, Vec<u8>)> {
        let mut transaction_index = Vec::new();
        let end_offset = self.read(i64::MIN, i64::MAX, producers, |batch| {
            let aborted = batch.ended.and_then(EndedTransaction::aborted);
            transaction_index.extend(aborted.map(encode_aborted).into_iter().flatten());
        })?;
        Ok((end_offset, transaction_index))
    }

    /// Adds the batches of producers that end at or above `start` and below `end`. Returns the offset after
    /// the last batch below `end`, of any kind.
    ///
    /// Damage is skipped, as readers skip it: the producers come from the batches that are left. An intact
    /// batch of a later format is an error.
    fn read(
        &self,
        start: i64,
        end: i64,
        producers: &mut ProducerReplay,
        mut each: impl FnMut(ReplayedBatch),
    ) -> Result<Option<i64>> {
        if self.end_without_producers.is_some() {
            return Ok(self.end_without_producers);
        }
        let segment = &*self.segment;
        let (base_offset, upper, end_position) = (segment.base_offset(), segment.upper(), self.bytes.end);
        let bounds = Bounds { base_offset, upper, end: end_position };
        let before = (self.bytes.start == 0).then(|| bounds.before_first(-1));
        let mut walk = Walk::new(segment.log_file(SCAN_READ)?, bounds, self.bytes.start, before);
        let mut end_offset = None;
        loop {
            segment.open_files().interrupt.check()?;
            let before = walk.before;
            let damage = match walk.step()? {
                Step::End => return Ok(end_offset),
                Step::Batch(batch) if batch.header.last_offset >= end => return Ok(end_offset),
                Step::Batch(batch) => {
                    let header = &batch.header;
                    let is_wanted = header.producer_id >= 0 && header.last_offset >= start;
                    let is_intact = self.is_verified || !is_wanted && walk.is_continued(&batch)?;
                    let added = match if is_intact { Ok(()) } else { walk.verify(&batch)? } {
                        Ok(()) if is_wanted => self.add(&batch, &mut walk, producers)?.map(&mut each),
                        verified => verified,
                    };
                    let Err(malformed) = added else {
                        end_offset = Some(header.last_offset + 1);
                        continue;
                    };
                    walk.reject(&batch, before, malformed)
                }
                Step::Damage(damage) => damage,
            };
            let span = segment.resume(&mut walk, &damage)?;
            if let Some(newer) = span.unsupported() {
                return Err(segment.corrupt(&newer));
            }
            if !span.is_searched {
                // batches after it may be intact, and the states would be wrong without them
                return Err(segment.corrupt(&span.describe(&damage)));
            }
            segment.warn(&format!(
                "{}: what producers wrote in the damaged bytes {} to {} is not known",
                segment.path().display(),
                span.start_position,
                span.end_position
            ));
        }
    }

    /// Adds a batch. The inner error is damage.
    fn add(
        &self,
        batch: &Batch,
        walk: &mut Walk,
        producers: &mut ProducerReplay,
    ) -> Result<Result<ReplayedBatch, Malformed>> {
        let bytes = if ProducerReplay::needs_bytes(&batch.header) { walk.bytes(batch)? } else { &[] };
        let malformed = match producers.add(&batch.header, bytes) {
            Ok(added) => return Ok(Ok(added)),
            Err(RefusedBatch::Marker(malformed)) if !malformed.is_too_large() => return Ok(Err(malformed)),
            Err(refused) => Malformed::from(refused),
        };
        Err(malformed.at(self.segment.path(), batch.position, Some(batch.header.base_offset)))
    }
}
