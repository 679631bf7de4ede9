//! The producers of a log, batch by batch.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap, HashSet};

use super::updates::{Ended, ProducerUpdates, UpdatedEntries};
use super::{ProducerEntry, ProducerSnapshot, snapshot};
use crate::error::Malformed;
use crate::index::AbortedTransaction;
use crate::record::BatchHeader;
use crate::record::control::{ControlType, EndMarker};

/// The states of all producers at an offset.
///
/// Batches of a log are added in their order ([`ProducerStates::append`]). They are taken as they are, as a
/// follower takes batches of its leader: whether a broker would accept them from a client is not checked.
///
/// *Source*: `ProducerStateManager`, with `AppendOrigin.REPLICATION`.
#[derive(Debug, Clone, Default)]
pub struct ProducerStates {
    /// By their ids, so that snapshots have them in this order. Kafka's are in the order of a hash map.
    producers: BTreeMap<i64, ProducerEntry>,
    /// The producer of each open transaction, by the transaction's first offset.
    open: BTreeMap<i64, i64>,
}

/// A transaction that a marker has ended.
///
/// *Source*: `CompletedTxn`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EndedTransaction {
    /// The producer's id.
    pub producer_id: i64,
    /// The offset of its first batch with records.
    pub first_offset: i64,
    /// The offset of its marker.
    pub last_offset: i64,
    /// Whether the marker is an ABORT.
    pub is_aborted: bool,
    /// The first offset of the oldest transaction of another producer that is open at the marker, or the
    /// offset after the marker.
    pub last_stable_offset: i64,
}

impl EndedTransaction {
    /// Its entry in a transaction index; `None` if it was committed.
    pub(crate) fn aborted(self) -> Option<AbortedTransaction> {
        let Self { producer_id, first_offset, last_offset, is_aborted, last_stable_offset } = self;
        is_aborted.then_some(AbortedTransaction {
            producer_id,
            first_offset,
            last_offset,
            last_stable_offset,
        })
    }
}

/// The last batch with records of a producer, and its epoch.
///
/// *Source*: `LastRecord`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LastRecord {
    /// The last offset of its last batch with records; `None` if only a marker has the producer's epoch.
    pub(crate) data_offset: Option<i64>,
    pub(crate) producer_epoch: i16,
}

impl ProducerStates {
    /// The states in a snapshot.
    ///
    /// *Source*: `ProducerStateManager.loadProducerEntry`.
    pub fn from_snapshot(snapshot: &ProducerSnapshot) -> Self {
        let mut states = Self::default();
        states.reload_if(snapshot.clone(), |_| true);
        states
    }

    /// Replaces the states by the states of a snapshot that are not expired at `now`, ms since the epoch.
    ///
    /// *Source*: `ProducerStateManager.truncateAndReload`, `loadFromSnapshot`.
    pub fn reload(&mut self, snapshot: &ProducerSnapshot, now: i64, expiration_ms: i64) {
        self.reload_if(snapshot.clone(), |entry| !entry.is_expired(now, expiration_ms));
    }

    /// [`ProducerStates::reload`] of the producers that are wanted.
    pub(crate) fn reload_if(
        &mut self,
        snapshot: ProducerSnapshot,
        is_wanted: impl Fn(&ProducerEntry) -> bool,
    ) {
        let wanted = snapshot.entries.into_iter().filter(|entry| is_wanted(entry));
        // at once, which is faster than one after the other
        self.producers = wanted.map(|entry| (entry.producer_id, entry)).collect();
        let open = |entry: &ProducerEntry| Some((entry.open_transaction?, entry.producer_id));
        self.open = self.producers.values().filter_map(open).collect();
    }

    /// Removes all producers.
    ///
    /// *Source*: `ProducerStateManager.clearProducerIds`.
    pub fn clear(&mut self) {
        self.producers.clear();
        self.open.clear();
    }

    /// The number of producers.
    pub fn len(&self) -> usize {
        self.producers.len()
    }

    /// Whether there is no producer.
    pub fn is_empty(&self) -> bool {
        self.producers.is_empty()
    }

    /// A producer's state.
    pub fn get(&self, producer_id: i64) -> Option<&ProducerEntry> {
        self.producers.get(&producer_id)
    }

    /// All producers, by ascending id.
    pub fn iter(&self) -> impl Iterator<Item = &ProducerEntry> {
        self.producers.values()
    }

    /// The last record of each producer.
    ///
    /// *Source*: `UnifiedLog.lastRecordsOfActiveProducers`.
    pub(crate) fn last_records(&self) -> HashMap<i64, LastRecord> {
        let last_record = |entry: &ProducerEntry| LastRecord {
            data_offset: entry.last_batch().map(|batch| batch.last_offset),
            producer_epoch: entry.producer_epoch,
        };
        self.producers.values().map(|entry| (entry.producer_id, last_record(entry))).collect()
    }

    /// The first offset of the oldest open transaction.
    ///
    /// *Source*: `ProducerStateManager.firstUndecidedOffset`.
    pub fn first_open_offset(&self) -> Option<i64> {
        self.open.first_key_value().map(|(first_offset, _)| *first_offset)
    }

    /// Adds a batch of the log, and returns the transaction that it ends. `marker`: the end marker of a
    /// control batch; `None` for other batches, and for a control batch whose marker compaction has
    /// removed ([`EndMarker::read`]).
    ///
    /// # Errors
    /// [`Malformed`] if the log contradicts itself: records outside a transaction while the producer has one
    /// open, or two transactions with the same first offset. The states are unchanged then. Kafka does
    /// not load such a log.
    ///
    /// *Source*: `LogSegment.updateProducerState`; `ProducerAppendInfo.append`.
    pub fn append(
        &mut self,
        header: &BatchHeader,
        marker: Option<&EndMarker>,
    ) -> Result<Option<EndedTransaction>, Malformed> {
        let producer_id = header.producer_id;
        if producer_id < 0 {
            return Ok(None);
        }
        let Self { producers, open } = self;
        let open_transaction = producers.get(&producer_id).and_then(|known| known.open_transaction);
        if !header.is_control() {
            check_continuation(header, open_transaction, open)?;
        }
        let entry = producers.entry(producer_id).or_insert_with(|| ProducerEntry::new(producer_id));
        if !header.is_control() {
            entry.append(header);
            if header.is_transactional() && open_transaction.is_none() {
                open.insert(header.base_offset, producer_id);
            }
            return Ok(None);
        }
        let Some(marker) = marker else { return Ok(None) };
        let Some(first_offset) = entry.end_transaction(header.producer_epoch, marker) else {
            return Ok(None);
        };
        let is_aborted = marker.control_type == ControlType::Abort;
        Ok(Some(end(open, producer_id, first_offset, header.base_offset, is_aborted)))
    }

    /// Removes the producers that are expired at `now`, ms since the epoch.
    ///
    /// *Source*: `ProducerStateManager.removeExpiredProducers`.
    pub fn remove_expired(&mut self, now: i64, expiration_ms: i64) {
        self.retain(|entry| !entry.is_expired(now, expiration_ms));
    }

    /// Removes the producers that are not wanted.
    pub(crate) fn retain(&mut self, is_wanted: impl Fn(&ProducerEntry) -> bool) {
        self.producers.retain(|_, entry| is_wanted(entry));
    }

    /// The transactions that the batches of an append abort, in their order. All transactions that the append
    /// begins count as open, also those that begin after the marker.
    ///
    /// *Source*: `UnifiedLog.append`; `ProducerStateManager.lastStableOffset`.
    pub(crate) fn aborted_by(&self, updates: &ProducerUpdates) -> Vec<EndedTransaction> {
        if updates.ended.is_empty() {
            return Vec::new();
        }
        let (mut aborted, mut before) = (Vec::new(), HashSet::new());
        let open = self.open.iter().map(|(first, id)| (*first, *id)).chain(updates.begun.iter().copied());
        let mut open = open.peekable();
        for Ended { producer_id, first_offset, last_offset, is_aborted } in updates.ended.iter().copied() {
            if is_aborted {
                while open.next_if(|(first, _)| before.contains(first)).is_some() {}
                let mut others = open.clone();
                let other = others.find(|(first, id)| *id != producer_id && !before.contains(first));
                let last_stable_offset = other.map_or(last_offset + 1, |(first, _)| first);
                aborted.push(EndedTransaction {
                    producer_id,
                    first_offset,
                    last_offset,
                    is_aborted,
                    last_stable_offset,
                });
            }
            before.insert(first_offset);
        }
        aborted
    }

    /// Puts the batches of an append into effect.
    ///
    /// *Source*: `ProducerStateManager.update`, `completeTxn`.
    pub(crate) fn apply(&mut self, mut updates: ProducerUpdates) {
        match std::mem::take(&mut updates.entries) {
            // all batches of a log
            UpdatedEntries::Several(several) if self.producers.is_empty() => self.producers = several,
            UpdatedEntries::Several(several) => several.into_values().for_each(|update| self.update(update)),
            UpdatedEntries::One(only) => only.into_iter().for_each(|update| self.update(update)),
        }
        self.open.extend(updates.begun);
        for ended in &updates.ended {
            self.open.remove(&ended.first_offset);
        }
    }

    fn update(&mut self, update: ProducerEntry) {
        match self.producers.entry(update.producer_id) {
            Entry::Occupied(mut known) => known.get_mut().update(update),
            Entry::Vacant(place) => {
                place.insert(update);
            }
        }
    }

    /// The bytes of a snapshot of these states, by ascending producer id. Kafka writes and reads any order.
    ///
    /// *Source*: `ProducerStateManager.writeSnapshot`.
    pub fn encode(&self) -> Vec<u8> {
        snapshot::encode(self.producers.values())
    }

    /// Adds an entry of a snapshot.
    ///
    /// *Source*: `ProducerStateManager.loadProducerEntry`.
    pub(crate) fn load(&mut self, entry: ProducerEntry) {
        if let Some(first_offset) = entry.open_transaction {
            self.open.insert(first_offset, entry.producer_id);
        }
        self.producers.insert(entry.producer_id, entry);
    }
}

/// Ends a transaction of the open ones by a marker at `last_offset`.
///
/// *Source*: `ProducerStateManager.lastStableOffset`, `completeTxn`.
fn end(
    open: &mut BTreeMap<i64, i64>,
    producer_id: i64,
    first_offset: i64,
    last_offset: i64,
    is_aborted: bool,
) -> EndedTransaction {
    let other = open.iter().find(|(_, other)| **other != producer_id);
    let last_stable_offset = other.map_or(last_offset + 1, |(first_offset, _)| *first_offset);
    open.remove(&first_offset);
    EndedTransaction { producer_id, first_offset, last_offset, is_aborted, last_stable_offset }
}

/// Checks a batch with records against the open transactions.
fn check_continuation(
    header: &BatchHeader,
    open_transaction: Option<i64>,
    open: &BTreeMap<i64, i64>,
) -> Result<(), Malformed> {
    match open_transaction {
        Some(first_offset) if !header.is_transactional() => Err(outside_transaction(header, first_offset)),
        None if header.is_transactional() && open.contains_key(&header.base_offset) => Err(Malformed::new(
            "a transaction with another first offset than all open ones",
            format!("two transactions from offset {}", header.base_offset),
        )),
        _ => Ok(()),
    }
}

/// A batch outside a transaction, although its producer has one open.
pub(super) fn outside_transaction(header: &BatchHeader, first_offset: i64) -> Malformed {
    Malformed::new(
        format!(
            "a transactional batch of producer {}, whose transaction from offset {first_offset} is open",
            header.producer_id
        ),
        "a batch outside a transaction",
    )
}
