//! Reads the batches of segments for the states of their producers.

use std::ops::Range;
use std::sync::Arc;

use crate::error::{Malformed, Result};
use crate::index::{AbortedTransaction, encode_aborted};
use crate::record::BatchHeader;
use crate::record::control::EndMarker;
use crate::segment::{Batch, Bounds, SCAN_READ, Segment, Step, Walk};
use crate::state::producers::{EndedTransaction, ProducerRefusal, ProducerStates, ProducerUpdates};

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

    /// Adds the batches that end at or above `start` and below `end` to the states, all at once.
    ///
    /// # Errors
    /// [`Error::Corrupt`](crate::Error::Corrupt) if the log contradicts itself.
    ///
    /// *Source*: `UnifiedLog.loadProducersFromRecords`.
    pub(super) fn load(&self, states: &mut ProducerStates, start: i64, end: i64) -> Result<()> {
        let mut updates = ProducerUpdates::default();
        self.read(start, end, |header, marker| match updates.add(states, header, marker, false) {
            Err(ProducerRefusal::Transaction(malformed)) => Err(malformed),
            // sequences and epochs are not checked
            _ => Ok(()),
        })?;
        states.apply(updates);
        Ok(())
    }

    /// Adds all batches to the states, one after another. Returns the offset after the last one, and the
    /// bytes of the transaction index.
    ///
    /// # Errors
    /// As [`Replayed::load`].
    ///
    /// *Source*: `LogSegment.recover`.
    pub(super) fn recover(&self, states: &mut ProducerStates) -> Result<(Option<i64>, Vec<u8>)> {
        let mut transaction_index = Vec::new();
        let end_offset = self.read(i64::MIN, i64::MAX, |header, marker| {
            let ended = states.append(header, marker)?;
            transaction_index.extend(ended.and_then(aborted).map(encode_aborted).into_iter().flatten());
            Ok(())
        })?;
        Ok((end_offset, transaction_index))
    }

    /// Reads the batches of producers that end at or above `start` and below `end`, with the markers of
    /// control batches. Returns the offset after the last batch below `end`, of any kind.
    ///
    /// Damage is skipped, as readers skip it: the producers come from the batches that are left. An intact
    /// batch of a later format is an error.
    fn read(
        &self,
        start: i64,
        end: i64,
        mut add: impl FnMut(&BatchHeader, Option<&EndMarker>) -> Result<(), Malformed>,
    ) -> Result<Option<i64>> {
        if self.end_without_producers.is_some() {
            return Ok(self.end_without_producers);
        }
        let segment = &*self.segment;
        let (base_offset, upper, end_position) = (segment.base_offset(), segment.upper(), self.bytes.end);
        let bounds = Bounds { base_offset, upper, end: end_position };
        let before = (self.bytes.start == 0).then(|| bounds.before_first(-1));
        let mut walk = Walk::new(segment.log_file(SCAN_READ)?, bounds, self.bytes.start, before);
        let (mut end_offset, mut buffer) = (None, Vec::new());
        loop {
            segment.open_files().interrupt.check()?;
            let before = walk.before;
            let damage = match walk.step()? {
                Step::End => return Ok(end_offset),
                Step::Batch(batch) if batch.header.last_offset >= end => return Ok(end_offset),
                Step::Batch(batch) => {
                    let header = &batch.header;
                    let is_wanted = header.producer_id >= 0 && header.last_offset >= start;
                    if !is_wanted && (self.is_verified || walk.is_continued(&batch)?) {
                        end_offset = Some(header.last_offset + 1);
                        continue;
                    }
                    match self.marker(&batch, &mut walk, &mut buffer)? {
                        Err(malformed) if malformed.is_too_large() => {
                            return Err(malformed.at(
                                segment.path(),
                                batch.position,
                                Some(header.base_offset),
                            ));
                        }
                        Err(malformed) => walk.reject(&batch, before, malformed),
                        Ok(marker) => {
                            if is_wanted {
                                add(header, marker.as_ref()).map_err(|malformed| {
                                    malformed.at(segment.path(), batch.position, Some(header.base_offset))
                                })?;
                            }
                            end_offset = Some(header.last_offset + 1);
                            continue;
                        }
                    }
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

    /// The marker of a control batch. The inner error is damage.
    fn marker(
        &self,
        batch: &Batch,
        walk: &mut Walk,
        buffer: &mut Vec<u8>,
    ) -> Result<Result<Option<EndMarker>, Malformed>> {
        if !self.is_verified
            && let Err(malformed) = walk.verify(batch)?
        {
            return Ok(Err(malformed));
        }
        let header = batch.header;
        if !header.is_control() || header.producer_id < 0 {
            return Ok(Ok(None));
        }
        Ok(EndMarker::read(header, walk.bytes(batch)?, buffer))
    }
}

/// The entry of an aborted transaction.
pub(in crate::writer) fn aborted(ended: EndedTransaction) -> Option<AbortedTransaction> {
    let EndedTransaction { producer_id, first_offset, last_offset, is_aborted, last_stable_offset } = ended;
    is_aborted.then_some(AbortedTransaction { producer_id, first_offset, last_offset, last_stable_offset })
}
