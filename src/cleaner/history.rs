//! The transactions and the producers of a log, from its batches: read before anything is changed.

use std::collections::HashMap;
use std::ops::Range;

use super::batches::{BytesOf, SegmentBatches};
use crate::error::{Malformed, Result};
use crate::index::AbortedTransaction;
use crate::log::Log;
use crate::segment::{EpochsBefore, Segment};
use crate::state::producers::{EndedTransaction, ProducerReplay, ProducerStates};

/// What a pass over all headers finds.
#[derive(Debug, Default)]
pub(super) struct History {
    /// The aborted transactions, in the order of their markers. Also those below the log start offset, which
    /// Kafka leaves out: if it keeps their records in the first segment, and removes the marker, they
    /// look like the records of an open transaction.
    pub(super) aborted: Vec<AbortedTransaction>,
    /// The producers at the end of the log.
    pub(super) producers: ProducerStates,
    /// The number of records of the dirty segments, or more.
    pub(super) dirty_records: u64,
}

impl History {
    /// Reads a log. `dirty`: the base offsets of the dirty segments. In them only the checksums of markers
    /// are verified, because the keys are read from them next, which verifies all. In the others all are
    /// verified here: a damaged marker could make the records of an aborted transaction look committed,
    /// and then they would replace committed ones.
    ///
    /// # Errors
    /// As [`SegmentBatches::next`].
    pub(super) fn read(log: &Log, dirty: &Range<i64>) -> Result<Self> {
        let mut history = Self::default();
        let mut producers = ProducerReplay::default();
        let mut ended_at = HashMap::new();
        let mut epochs = EpochsBefore::UNKNOWN;
        for segment in log.segments().iter() {
            let indexed = indexed(segment)?;
            let is_dirty = dirty.contains(&segment.base_offset());
            let bytes_of = if is_dirty { BytesOf::Markers } else { BytesOf::AllBatches };
            let mut batches = SegmentBatches::new(segment, log, epochs, bytes_of)?;
            while let Some(place) = batches.next()? {
                let header = &place.batch.header;
                if is_dirty {
                    // the entries of a wrapper are not counted without decompressing them
                    let count = header.count.map_or(u64::MAX, |count| u64::try_from(count).unwrap_or(0));
                    history.dirty_records = history.dirty_records.saturating_add(count);
                }
                if header.producer_id < 0 {
                    continue;
                }
                let bytes = if header.is_control() { batches.bytes(&place)? } else { &[] };
                let ended = match producers.add(header, bytes) {
                    Ok(added) => added.ended,
                    Err(refused) => return Err(batches.error(&place, Malformed::from(refused).into())),
                };
                if !header.is_control() {
                    continue;
                }
                let before = ended_at.insert(header.producer_id, header.last_offset).unwrap_or(-1);
                let aborted = ended.and_then(EndedTransaction::aborted);
                history.aborted.extend(aborted.map(|aborted| entry(aborted, before, &indexed)));
            }
            epochs = batches.epochs();
        }
        history.producers = producers.states;
        Ok(history)
    }
}

/// The entry of an aborted transaction. That of the segment's transaction index is taken if the log does not
/// contradict it: compaction may have removed the first batches of the transaction, and what its last stable
/// offset was depends on how appends were grouped. `before`: the offset of the producer's marker before.
fn entry(
    aborted: AbortedTransaction,
    before: i64,
    indexed: &HashMap<(i64, i64), AbortedTransaction>,
) -> AbortedTransaction {
    let AbortedTransaction { producer_id, first_offset, last_offset, .. } = aborted;
    let found = indexed.get(&(producer_id, last_offset)).copied();
    let found = found.filter(|found| {
        (before + 1..=first_offset).contains(&found.first_offset)
            && (0..=last_offset + 1).contains(&found.last_stable_offset)
    });
    found.unwrap_or(aborted)
}

/// The entries of a segment's transaction index, by producer and marker; those that can be read.
fn indexed(segment: &Segment) -> Result<HashMap<(i64, i64), AbortedTransaction>> {
    let Some(index) = segment.transaction_index()? else { return Ok(HashMap::new()) };
    let entries = index.iter().map_while(Result::ok);
    Ok(entries.map(|entry| ((entry.producer_id, entry.last_offset), entry)).collect())
}
