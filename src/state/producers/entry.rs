//! The state of one producer.

use smallvec::SmallVec;

use crate::record::control::EndMarker;
use crate::record::{BatchHeader, sequence_after};

/// The number of batches of a producer that are remembered to detect duplicates.
const MAX_BATCHES: usize = 5;

/// A batch of a producer: its sequences and offsets.
///
/// *Source*: `BatchMetadata`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "binding", derive(serde::Deserialize, serde::Serialize))]
pub struct SequenceRange {
    /// The sequence of its last offset; −1 if it has none.
    pub last_sequence: i32,
    /// Its last offset, inclusive.
    pub last_offset: i64,
    /// Its last offset less its first.
    pub offset_delta: i32,
    /// Its largest timestamp, ms.
    pub timestamp: i64,
}

impl SequenceRange {
    /// The sequence after its last one.
    pub fn next_sequence(&self) -> i32 {
        sequence_after(self.last_sequence, 1)
    }

    /// The sequence of its first offset. Sequences wrap from 0 to 2³¹ − 1.
    ///
    /// *Source*: `BatchMetadata.firstSeq`, `DefaultRecordBatch.decrementSequence`.
    pub fn first_sequence(&self) -> i32 {
        let first = self.last_sequence.wrapping_sub(self.offset_delta);
        // the difference to i32::MAX + 1, which Kafka adds below 0, is the sign bit
        if self.last_sequence < self.offset_delta { first ^ i32::MIN } else { first }
    }

    /// Its first offset.
    pub fn first_offset(&self) -> i64 {
        self.last_offset.wrapping_sub(i64::from(self.offset_delta))
    }
}

/// What a log knows of a producer: one entry of a snapshot.
///
/// *Source*: `ProducerStateEntry`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "binding", derive(serde::Deserialize, serde::Serialize))]
pub struct ProducerEntry {
    /// The producer's id.
    pub producer_id: i64,
    /// The epoch of its last batch or marker; −1 if there is none.
    pub producer_epoch: i16,
    /// The epoch of the coordinator that wrote its last marker; −1 if there is none.
    pub coordinator_epoch: i32,
    /// The largest timestamp of its last batch, or that of its last marker if the marker follows; ms, −1 if
    /// there is none.
    pub last_timestamp: i64,
    /// The first offset of its open transaction.
    pub open_transaction: Option<i64>,
    /// Its last batches in this epoch, the latest last: at most 5, and at most one from a snapshot, which
    /// takes no memory of its own.
    batches: SmallVec<[SequenceRange; 1]>,
}

impl ProducerEntry {
    /// A producer without a batch.
    pub fn new(producer_id: i64) -> Self {
        Self {
            producer_id,
            producer_epoch: -1,
            coordinator_epoch: -1,
            last_timestamp: -1,
            open_transaction: None,
            batches: SmallVec::new(),
        }
    }

    /// Its last batches in this epoch, the latest last.
    pub fn batches(&self) -> impl ExactSizeIterator<Item = &SequenceRange> {
        self.batches.iter()
    }

    /// Its last batch in this epoch; `None` if only a marker has this epoch.
    pub fn last_batch(&self) -> Option<&SequenceRange> {
        self.batches.last()
    }

    /// The same state, as if its last batch ended below `offset`: in a log that ends there, without that
    /// batch.
    pub(crate) fn ending_before(&self, offset: i64) -> Self {
        let last = self
            .last_batch()
            .map(|last| SequenceRange { last_offset: last.last_offset.min(offset - 1), ..*last });
        Self { batches: last.into_iter().collect(), ..self.clone() }
    }

    /// Whether the producer is forgotten at `now`, ms since the epoch: it has no open transaction, and its
    /// last batch or marker is older than `producer.id.expiration.ms`.
    ///
    /// *Source*: `ProducerStateManager.isProducerExpired`.
    pub fn is_expired(&self, now: i64, expiration_ms: i64) -> bool {
        self.open_transaction.is_none() && now.wrapping_sub(self.last_timestamp) >= expiration_ms
    }

    /// Adds a batch with records. The caller has checked that it continues an open transaction, if there is
    /// one.
    ///
    /// *Source*: `ProducerAppendInfo.appendDataBatch`.
    pub(super) fn append(&mut self, header: &BatchHeader) {
        let delta = header.last_offset - header.base_offset;
        self.add(
            header.producer_epoch,
            SequenceRange {
                last_sequence: header.last_sequence(),
                last_offset: header.last_offset,
                offset_delta: i32::try_from(delta).unwrap_or(i32::MAX),
                timestamp: header.max_timestamp,
            },
        );
        self.last_timestamp = header.max_timestamp;
        if header.is_transactional() {
            self.open_transaction.get_or_insert(header.base_offset);
        }
    }

    /// Ends the transaction, if one is open, and returns its first offset.
    ///
    /// *Source*: `ProducerAppendInfo.appendEndTxnMarker`.
    pub(super) fn end_transaction(&mut self, producer_epoch: i16, marker: &EndMarker) -> Option<i64> {
        self.set_epoch(producer_epoch);
        self.coordinator_epoch = marker.coordinator_epoch;
        self.last_timestamp = marker.timestamp;
        self.open_transaction.take()
    }

    /// The batch with exactly these sequences, if it is one of the last in this epoch.
    ///
    /// *Source*: `ProducerStateEntry.findDuplicateBatch`.
    pub(super) fn duplicate_of(&self, header: &BatchHeader) -> Option<&SequenceRange> {
        let batch = self.batch_of(header.base_sequence, header.last_sequence());
        batch.filter(|_| header.producer_epoch == self.producer_epoch)
    }

    /// The batch with exactly these sequences, both inclusive, if it is one of the last.
    pub(crate) fn batch_of(&self, first_sequence: i32, last_sequence: i32) -> Option<&SequenceRange> {
        let sequences = (first_sequence, last_sequence);
        self.batches.iter().find(|batch| (batch.first_sequence(), batch.last_sequence) == sequences)
    }

    /// The producer as it is now, without its batches: the batches of an append are added.
    ///
    /// *Source*: `ProducerStateEntry.withProducerIdAndBatchMetadata`.
    pub(super) fn without_batches(&self) -> Self {
        Self { batches: SmallVec::new(), ..*self }
    }

    /// Adds the batches of an append. `next`: the producer after it, with these batches only.
    ///
    /// *Source*: `ProducerStateEntry.update`.
    pub(super) fn update(&mut self, next: Self) {
        self.set_epoch(next.producer_epoch);
        for batch in next.batches {
            self.push(batch);
        }
        self.coordinator_epoch = next.coordinator_epoch;
        self.last_timestamp = next.last_timestamp;
        self.open_transaction = next.open_transaction;
    }

    pub(super) fn add(&mut self, producer_epoch: i16, batch: SequenceRange) {
        self.set_epoch(producer_epoch);
        self.push(batch);
    }

    fn push(&mut self, batch: SequenceRange) {
        if self.batches.len() == MAX_BATCHES {
            self.batches.remove(0);
        }
        self.batches.push(batch);
    }

    /// With another epoch, sequences start again.
    fn set_epoch(&mut self, producer_epoch: i16) {
        if self.producer_epoch != producer_epoch {
            self.batches.clear();
            self.producer_epoch = producer_epoch;
        }
    }
}
