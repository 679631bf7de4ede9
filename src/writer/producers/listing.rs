//! The producers of a log, for users.

use std::sync::Arc;

use super::rebuild::read;
use super::{Producers, Replayed, kept, snapshots_in};
use crate::error::Result;
use crate::log::Log;
use crate::state::producer_ids::IdOwner;
use crate::state::producers::{ProducerEntry, ProducerReplay, ProducerStates};

/// What a log knows of a producer id.
///
/// *Source*: `ProducerStateEntry`; `kafka-transactions.sh describe-producers`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "binding", derive(serde::Deserialize, serde::Serialize))]
pub struct ProducerState {
    /// The producer's id.
    pub producer_id: i64,
    /// The epoch of its last batch or marker; `None` if only markers that compaction emptied are left of it.
    pub producer_epoch: Option<i16>,
    /// The last sequence in this epoch; `None` if only a marker has the epoch.
    pub last_sequence: Option<i32>,
    /// The offset of that record.
    pub last_offset: Option<i64>,
    /// The largest timestamp of its last batch, or that of its last marker if the marker follows, ms; `None`
    /// if it has none.
    pub last_timestamp: Option<i64>,
    /// The first offset of its open transaction.
    pub open_transaction: Option<i64>,
    /// The epoch of the coordinator that wrote its last marker; `None` if there is none.
    pub coordinator_epoch: Option<i32>,
    /// When it expires, ms since the epoch: `producer.id.expiration.ms` after `last_timestamp`. `None` if it
    /// does not: its transaction is open, or it is a producer with a name.
    pub expires: Option<i64>,
}

impl ProducerState {
    fn of(entry: &ProducerEntry, expiration_ms: i64) -> Self {
        let last = entry.last_batch();
        let is_named = IdOwner::Producer.ids().contains(&entry.producer_id);
        let is_kept = is_named || entry.open_transaction.is_some();
        Self {
            producer_id: entry.producer_id,
            producer_epoch: Some(entry.producer_epoch).filter(|epoch| *epoch >= 0),
            last_sequence: last.map(|last| last.last_sequence).filter(|sequence| *sequence >= 0),
            last_offset: last.map(|last| last.last_offset),
            last_timestamp: Some(entry.last_timestamp).filter(|time| *time != -1),
            open_transaction: entry.open_transaction,
            coordinator_epoch: Some(entry.coordinator_epoch).filter(|epoch| *epoch >= 0),
            expires: (!is_kept).then(|| entry.last_timestamp.saturating_add(expiration_ms)),
        }
    }

    /// The producers of a log, by their ids: from the latest valid snapshot and the batches after it, as an
    /// opening finds them, but with those that have expired. Writes nothing. `expiration_ms`:
    /// `producer.id.expiration.ms`.
    ///
    /// *Cost*: reads the headers of the batches after the snapshot, which a roll and a close take.
    ///
    /// # Errors
    /// [`Error::Corrupt`](crate::Error::Corrupt) if the log contradicts itself, or cannot be read as far as
    /// its end; [`Error::Io`](crate::Error::Io).
    ///
    /// *Source*: `ProducerStateManager.truncateAndReload`; `UnifiedLog.rebuildProducerState`.
    pub fn of_log(log: &Log, expiration_ms: i64) -> Result<Vec<Self>> {
        let (directory, start, end) = (log.directory(), log.log_start_offset(), log.log_end_offset()?);
        let (mut producers, mut from) = (ProducerReplay::default(), start);
        // a snapshot at or below the log start offset is not loaded
        let snapshots = snapshots_in(directory)?;
        for offset in snapshots.into_iter().rev().filter(|offset| *offset > start && *offset <= end) {
            if let Some(snapshot) = read(directory, offset)? {
                (producers.states, from) = (ProducerStates::from_snapshot(&snapshot), offset);
                break;
            }
        }
        for segment in log.segments().iter().filter(|segment| segment.upper() > from) {
            let bytes = 0..segment.bounds()?.end;
            let segment = Arc::clone(segment);
            let (base_offset, end_without_producers) = (segment.base_offset(), None);
            let replayed =
                Replayed { segment, base_offset, bytes, is_verified: false, end_without_producers };
            replayed.load(&mut producers, from, end)?;
        }
        kept::restore(&mut producers.states, directory, end)?;
        Ok(listed(producers.states.iter(), expiration_ms))
    }
}

impl Producers {
    pub(in crate::writer) fn listed(&self) -> Vec<ProducerState> {
        listed(self.states.iter(), self.expiration_ms)
    }
}

fn listed<'a>(entries: impl Iterator<Item = &'a ProducerEntry>, expiration_ms: i64) -> Vec<ProducerState> {
    let mut listed: Vec<_> = entries.map(|entry| ProducerState::of(entry, expiration_ms)).collect();
    listed.sort_unstable_by_key(|state| state.producer_id);
    listed
}
