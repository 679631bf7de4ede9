//! The producers of a log that is written, and their snapshots in its directory. Kafka:
//! `ProducerStateManager`.
//!
//! A snapshot is written at each roll and at the close, also without producers. A change that needs the
//! producers at a lower offset (a truncation, an opening) is planned in memory first ([`Rebuild`]), from the
//! latest valid snapshot and the batches after it.
//!
//! The log is synced up to a snapshot's offset before the snapshot is written, so that no snapshot is ahead
//! of its log after a crash.

mod kept;
mod listing;
mod rebuild;
mod replay;

use std::collections::{BTreeSet, HashMap};

#[cfg(feature = "inspect")]
pub(crate) use kept::{KEPT_PRODUCERS, kept_producers};
pub(super) use kept::{NamedProducers, keep, keep_below};
pub use listing::ProducerState;
pub(super) use rebuild::{ProducerPlan, Rebuild, StagedProducers};
pub(super) use replay::Replayed;

use crate::error::{Error, Result};
use crate::fs::{Directory, Staged};
use crate::record::control::EndMarker;
use crate::record::{Analyzed, BatchHeader};
use crate::state::producer_ids::IdOwner;
use crate::state::producers::snapshot_files::{self, snapshot_name};
use crate::state::producers::{
    EndedTransaction, LastRecord, ProducerEntry, ProducerRefusal, ProducerStates, ProducerUpdates,
};
use crate::writer::Appended;

/// The interval at which expired producers are removed, ms. Kafka:
/// `producer.id.expiration.check.interval.ms`.
const EXPIRATION_CHECK_MS: i64 = 600_000;

/// The producers of a log at its end.
#[derive(Debug)]
pub(super) struct Producers {
    states: ProducerStates,
    /// The offsets of the snapshots in the directory.
    snapshots: BTreeSet<i64>,
    /// No snapshot is taken at or below this offset.
    last_snapshot: i64,
    expiration_ms: i64,
    /// When expired producers were removed last, ms.
    checked: i64,
}

impl Producers {
    /// The producers of a new log that starts at `offset`. Removes the snapshots that an earlier log left.
    pub(super) fn of_new_log(
        directory: &Directory,
        offset: i64,
        expiration_ms: i64,
        named: NamedProducers,
    ) -> Result<Self> {
        let (states, snapshots) = (ProducerStates::default(), BTreeSet::new());
        let mut producers = Self { states, snapshots, last_snapshot: offset, expiration_ms, checked: 0 };
        producers.restart(directory, offset, named)?;
        Ok(producers)
    }

    /// A producer.
    pub(super) fn get(&self, producer_id: i64) -> Option<&ProducerEntry> {
        self.states.get(producer_id)
    }

    /// The ids of all producers.
    pub(super) fn ids(&self) -> impl Iterator<Item = i64> {
        self.states.iter().map(|entry| entry.producer_id)
    }

    /// What a batch that the writer builds changes. `marker`: if it is one.
    ///
    /// # Errors
    /// [`Error::InvalidRecord`] for a batch outside its producer's open transaction.
    pub(super) fn updates_of(
        &self,
        header: &BatchHeader,
        marker: Option<&EndMarker>,
    ) -> Result<ProducerUpdates> {
        let mut updates = ProducerUpdates::default();
        updates.add(&self.states, header, marker, false).map_err(|refusal| to_error(refusal, header, 0))?;
        Ok(updates)
    }

    /// The first offset of the oldest open transaction.
    pub(super) fn first_open_offset(&self) -> Option<i64> {
        self.states.first_open_offset()
    }

    /// The last record of each producer.
    pub(super) fn last_records(&self) -> HashMap<i64, LastRecord> {
        self.states.last_records()
    }

    /// Removes the producers that are expired at `now`, ms, if that was not done in the last ten minutes.
    /// Kafka: a timer. One whose handle is in use stays.
    ///
    /// *Source*: `ProducerStateManager.removeExpiredProducers`.
    pub(super) fn remove_expired(&mut self, now: i64, is_in_use: impl Fn(i64) -> bool) {
        if now.saturating_sub(self.checked) >= EXPIRATION_CHECK_MS {
            self.states.retain(|entry| {
                !is_forgotten(entry, now, self.expiration_ms) || is_in_use(entry.producer_id)
            });
            self.checked = now;
        }
    }

    /// Checks the batches of an append against the producers, and returns what they change, `None` if none
    /// has a producer id.
    ///
    /// # Errors
    /// [`Error::OutOfOrderSequence`] and [`Error::InvalidProducerEpoch`] for a client's batches;
    /// [`Error::InvalidRecord`] for a batch outside its producer's open transaction, and for a control
    /// batch without a valid marker.
    ///
    /// *Source*: `UnifiedLog.analyzeAndValidateProducerState`.
    pub(super) fn check(
        &self,
        batches: &[Analyzed],
        headers: &[BatchHeader],
        raw: &[u8],
        is_client: bool,
    ) -> Result<Option<ProducerUpdates>> {
        if headers.iter().all(|header| header.producer_id < 0) {
            return Ok(None);
        }
        let (mut updates, mut buffer) = (ProducerUpdates::default(), Vec::new());
        for (batch, header) in batches.iter().zip(headers) {
            let position = batch.range.start as u64;
            let mut marker = None;
            if header.producer_id >= 0 && header.is_control() {
                let bytes = raw.get(batch.range.clone()).unwrap_or_default();
                marker = EndMarker::read(batch.header, bytes, &mut buffer)
                    .map_err(|malformed| refused(position, malformed))?;
            }
            updates
                .add(&self.states, header, marker.as_ref(), is_client)
                .map_err(|refusal| to_error(refusal, header, position))?;
        }
        Ok(Some(updates))
    }

    /// If all batches are duplicates of earlier ones: from the first offset to the last of those, and their
    /// largest timestamp.
    ///
    /// *Source*: `UnifiedLog.analyzeAndValidateProducerState`; Kafka answers with the first of them.
    pub(super) fn duplicates_of(&self, batches: &[Analyzed]) -> Option<Appended> {
        let mut total = None::<Appended>;
        for batch in batches {
            let old = self.states.duplicate_of(&batch.header)?;
            let (first_offset, last_offset, max_timestamp) =
                (old.first_offset(), old.last_offset, old.timestamp);
            let before = total.unwrap_or_else(|| Appended::duplicate(old));
            total = Some(Appended {
                first_offset: before.first_offset.min(first_offset),
                last_offset: before.last_offset.max(last_offset),
                max_timestamp: before.max_timestamp.max(max_timestamp),
                ..before
            });
        }
        total
    }

    /// The transactions that the append aborts.
    pub(super) fn aborted_by(&self, updates: &ProducerUpdates) -> Vec<EndedTransaction> {
        self.states.aborted_by(updates)
    }

    /// Puts the batches of an append into effect.
    pub(super) fn apply(&mut self, updates: ProducerUpdates) {
        self.states.apply(updates);
    }

    /// Stages a snapshot at `offset`, the log end offset or the base offset of a new segment; `None` if there
    /// is one already.
    ///
    /// *Source*: `ProducerStateManager.takeSnapshot`.
    pub(super) fn stage_snapshot(&self, directory: &Directory, offset: i64) -> Result<Option<Staged>> {
        if offset <= self.last_snapshot {
            return Ok(None);
        }
        directory.stage(&snapshot_name(offset), &self.states.encode()).map(Some)
    }

    /// Records that the snapshot at `offset` was put in place.
    pub(super) fn note_snapshot(&mut self, offset: i64) {
        self.snapshots.insert(offset);
        self.last_snapshot = offset;
    }

    /// Records a new log start offset.
    ///
    /// *Source*: `ProducerStateManager.onLogStartOffsetIncremented`.
    pub(super) fn start_at(&mut self, log_start_offset: i64) {
        self.last_snapshot = self.snapshots.last().copied().unwrap_or(log_start_offset);
    }

    /// Removes the snapshot of a deleted segment.
    ///
    /// *Source*: `UnifiedLog.deleteProducerSnapshots`.
    pub(super) fn remove_snapshot(&mut self, directory: &Directory, offset: i64) -> Result<()> {
        if self.snapshots.remove(&offset) {
            directory.remove(&snapshot_name(offset))?;
        }
        Ok(())
    }

    /// Removes everything, perhaps but the named producers that were kept: the log is empty and starts at
    /// `offset`.
    ///
    /// *Source*: `ProducerStateManager.truncateFullyAndStartAt`.
    pub(super) fn restart(
        &mut self,
        directory: &Directory,
        offset: i64,
        named: NamedProducers,
    ) -> Result<()> {
        self.states.clear();
        self.snapshots.clear();
        self.last_snapshot = offset;
        let present = snapshots_in(directory)?;
        for snapshot in &present {
            directory.remove(&snapshot_name(*snapshot))?;
        }
        let had_kept = match named {
            NamedProducers::Kept => false,
            NamedProducers::Forgotten => Self::remove_kept(directory)?,
        };
        if !present.is_empty() || had_kept {
            directory.sync()?;
        }
        self.restore_named(directory, offset)
    }
}

/// Whether a producer is expired. A named one never is: its sequences tell an application what was written.
fn is_forgotten(entry: &ProducerEntry, now: i64, expiration_ms: i64) -> bool {
    entry.is_expired(now, expiration_ms) && !IdOwner::Producer.ids().contains(&entry.producer_id)
}

/// The offsets of the snapshots in a directory.
fn snapshots_in(directory: &Directory) -> Result<BTreeSet<i64>> {
    Ok(snapshot_files::list(directory)?.into_keys().collect())
}

#[cold]
fn to_error(refusal: ProducerRefusal, header: &BatchHeader, position: u64) -> Error {
    let BatchHeader { producer_id, producer_epoch, base_sequence, .. } = *header;
    match refusal {
        ProducerRefusal::Sequence { expected } => Error::OutOfOrderSequence {
            position: Some(position),
            producer_id,
            producer_epoch,
            expected,
            found: base_sequence,
        },
        ProducerRefusal::Epoch { expected } => {
            let position = Some(position);
            Error::InvalidProducerEpoch { position, producer_id, expected, found: producer_epoch }
        }
        ProducerRefusal::Transaction(malformed) => refused(position, malformed),
    }
}

#[cold]
fn refused(position: u64, malformed: crate::error::Malformed) -> Error {
    let (expected, found) = (malformed.expected, format!("{} at position {position}", malformed.found));
    Error::InvalidRecord { argument: "raw", position: Some(position), expected, found }
}
