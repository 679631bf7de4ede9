//! The states that a snapshot may have of a producer, other than the one that all batches of the log give.
//!
//! Brokers and writers forget a producer that is expired, and know only its later batches afterwards. So does
//! a recovery that reads the batches from the log start offset on, also inside a transaction. Neither the
//! time of the recovery nor `producer.id.expiration.ms` is in the log: a producer may have been forgotten
//! whenever it had no transaction open.

use std::collections::HashMap;

use crate::record::BatchHeader;
use crate::record::control::EndMarker;
use crate::state::producers::ProducerEntry;

/// The producers of a log, batch by batch.
#[derive(Debug)]
pub(super) struct Restarts {
    log_start_offset: i64,
    producers: HashMap<i64, Restarted>,
}

/// What a producer's state may lack.
#[derive(Debug, Default)]
struct Restarted {
    /// The last offset of its last batch or marker.
    last_offset: i64,
    /// Whether it may be without the last marker.
    lacks_marker: bool,
    /// Whether it may be without the last batch with records.
    lacks_batch: bool,
    /// Batches of the open transaction that may be the first known of it.
    open_from: Vec<i64>,
}

impl Restarts {
    pub(super) fn new(log_start_offset: i64) -> Self {
        Self { log_start_offset, producers: HashMap::new() }
    }

    /// Adds the next batch of the log. `is_open`: whether its producer has a transaction open before it.
    pub(super) fn add(&mut self, header: &BatchHeader, marker: Option<&EndMarker>, is_open: bool) {
        if header.producer_id < 0 || header.is_control() && marker.is_none() {
            return;
        }
        let log_start_offset = self.log_start_offset;
        let producer = self
            .producers
            .entry(header.producer_id)
            .or_insert_with(|| Restarted { last_offset: -1, ..Restarted::default() });
        // whether this may be the first batch that is known
        let is_first = !is_open || producer.last_offset < log_start_offset;
        if marker.is_some() {
            producer.lacks_batch |= is_first;
            producer.lacks_marker = false;
            producer.open_from.clear();
        } else {
            producer.lacks_marker |= is_first;
            producer.lacks_batch = false;
            if header.is_transactional() && is_first {
                producer.open_from.push(header.base_offset);
            }
        }
        producer.last_offset = header.last_offset;
    }

    /// Whether the producer's batches and markers are all below the log start offset: no snapshot needs it.
    pub(super) fn is_deleted(&self, producer_id: i64) -> bool {
        self.producers.get(&producer_id).is_some_and(|producer| producer.last_offset < self.log_start_offset)
    }

    /// Whether an entry may be without the marker that `known` has.
    pub(super) fn may_lack_marker(&self, entry: &ProducerEntry) -> bool {
        entry.coordinator_epoch < 0
            && self.producers.get(&entry.producer_id).is_some_and(|producer| producer.lacks_marker)
    }

    /// Whether an entry may be without the batch that `known` has.
    pub(super) fn may_lack_batch(&self, entry: &ProducerEntry) -> bool {
        entry.last_batch().is_none()
            && self.producers.get(&entry.producer_id).is_some_and(|producer| producer.lacks_batch)
    }

    /// Whether the open transaction of an entry may begin where the entry says. A producer that is known from
    /// there on has no marker.
    pub(super) fn may_begin(&self, entry: &ProducerEntry) -> bool {
        let producer = self.producers.get(&entry.producer_id);
        let is_begin = |producer: &Restarted| {
            entry.open_transaction.is_some_and(|open| producer.open_from.binary_search(&open).is_ok())
        };
        entry.coordinator_epoch < 0 && producer.is_some_and(is_begin)
    }
}
