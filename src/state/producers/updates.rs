//! The producers of the batches of one append: checked before the batches are written, and put into effect
//! after.

use std::collections::BTreeMap;

use super::states::outside_transaction;
use super::{ProducerEntry, ProducerStates, SequenceRange};
use crate::error::Malformed;
use crate::record::BatchHeader;
use crate::record::control::{ControlType, EndMarker};

/// What the batches of an append change.
///
/// *Source*: `ProducerAppendInfo`; `UnifiedLog.analyzeAndValidateProducerState`.
#[derive(Debug, Default)]
pub(crate) struct ProducerUpdates {
    pub(super) entries: UpdatedEntries,
    /// The first offset and the producer of each transaction that begins.
    pub(super) begun: Vec<(i64, i64)>,
    /// The transactions that markers end, in their order.
    pub(super) ended: Vec<Ended>,
}

/// The producers after the append, with only its batches.
#[derive(Debug)]
pub(super) enum UpdatedEntries {
    /// At most one, as in most appends.
    One(Option<ProducerEntry>),
    /// By their ids.
    Several(BTreeMap<i64, ProducerEntry>),
}

impl Default for UpdatedEntries {
    fn default() -> Self {
        Self::One(None)
    }
}

impl UpdatedEntries {
    /// The entry of a producer, for its next batch. `new`: the entry of one without a batch in this append.
    fn of(&mut self, producer_id: i64, new: impl FnOnce() -> ProducerEntry) -> &mut ProducerEntry {
        if let Self::One(first) = self
            && let Some(first) = first.take_if(|first| first.producer_id != producer_id)
        {
            *self = Self::Several(BTreeMap::from([(first.producer_id, first)]));
        }
        match self {
            Self::One(only) => only.get_or_insert_with(new),
            Self::Several(several) => several.entry(producer_id).or_insert_with(new),
        }
    }
}

/// A transaction that a marker of the append ends.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ended {
    pub(super) producer_id: i64,
    pub(super) first_offset: i64,
    pub(super) last_offset: i64,
    pub(super) is_aborted: bool,
}

/// Why a batch is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ProducerRefusal {
    /// Its first sequence does not follow the last one of its producer.
    Sequence { expected: i32 },
    /// Its epoch is below that of its producer.
    Epoch { expected: i16 },
    /// It is outside a transaction, although its producer has one open.
    Transaction(Malformed),
}

impl ProducerUpdates {
    /// Adds the next batch. `marker`: the end marker of a control batch, as for [`ProducerStates::append`].
    /// `is_client`: the batch comes from a producer, and its sequence and epoch are checked. They are not
    /// checked for a leader's batches on a follower.
    ///
    /// # Errors
    /// Why the batch must not be appended.
    ///
    /// *Source*: `ProducerAppendInfo.append`, with `AppendOrigin.CLIENT` or `REPLICATION`.
    pub(crate) fn add(
        &mut self,
        states: &ProducerStates,
        header: &BatchHeader,
        marker: Option<&EndMarker>,
        is_client: bool,
    ) -> Result<(), ProducerRefusal> {
        let producer_id = header.producer_id;
        if producer_id < 0 {
            return Ok(());
        }
        let before = states.get(producer_id);
        let Self { entries, begun, ended } = self;
        let new = || ProducerEntry::new(producer_id);
        let entry = entries.of(producer_id, || before.map_or_else(new, ProducerEntry::without_batches));
        if header.is_control() {
            let Some(marker) = marker else { return Ok(()) };
            if let Some(first_offset) = entry.end_transaction(header.producer_epoch, marker) {
                let (last_offset, is_aborted) =
                    (header.base_offset, marker.control_type == ControlType::Abort);
                ended.push(Ended { producer_id, first_offset, last_offset, is_aborted });
            }
            return Ok(());
        }
        if is_client {
            check_epoch(entry, header)?;
            check_sequence(before, entry, header)?;
        }
        match entry.open_transaction {
            Some(first_offset) if !header.is_transactional() => {
                return Err(ProducerRefusal::Transaction(outside_transaction(header, first_offset)));
            }
            None if header.is_transactional() => begun.push((header.base_offset, producer_id)),
            _ => {}
        }
        entry.append(header);
        Ok(())
    }
}

impl ProducerStates {
    /// The batch of which this one is a duplicate, among the last five of its producer.
    ///
    /// *Source*: `UnifiedLog.analyzeAndValidateProducerState`.
    pub(crate) fn duplicate_of(&self, header: &BatchHeader) -> Option<&SequenceRange> {
        self.get(header.producer_id)?.duplicate_of(header)
    }
}

/// *Source*: `ProducerAppendInfo.checkProducerEpoch`.
fn check_epoch(entry: &ProducerEntry, header: &BatchHeader) -> Result<(), ProducerRefusal> {
    let expected = entry.producer_epoch;
    if header.producer_epoch < expected { Err(ProducerRefusal::Epoch { expected }) } else { Ok(()) }
}

/// `before`: the producer before the append; `entry`: after the batches so far.
///
/// *Source*: `ProducerAppendInfo.checkSequence`, `inSequence`.
fn check_sequence(
    before: Option<&ProducerEntry>,
    entry: &ProducerEntry,
    header: &BatchHeader,
) -> Result<(), ProducerRefusal> {
    // Kafka checks no batch of an unknown producer in a call, in which a client sends a single one; here
    // there may be several
    let known_epoch = before.map_or(-1, |before| before.producer_epoch);
    let expected = if header.producer_epoch != entry.producer_epoch {
        // any sequence of an unknown producer: its records may have been deleted
        if entry.producer_epoch == -1 {
            return Ok(());
        }
        0
    } else if known_epoch == -1 && entry.last_batch().is_none() {
        return Ok(());
    } else {
        let before = before.filter(|before| before.producer_epoch == header.producer_epoch);
        let last = entry.last_batch().or_else(|| before.and_then(ProducerEntry::last_batch));
        last.map_or(0, SequenceRange::next_sequence)
    };
    if header.base_sequence == expected { Ok(()) } else { Err(ProducerRefusal::Sequence { expected }) }
}
