//! The transactions and the producers of a log, from its batches: read before anything is changed.

use std::collections::HashMap;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::index::AbortedTransaction;
use crate::log::Log;
use crate::record::control::EndMarker;
use crate::segment::{Batch, Damage, SCAN_READ, Segment, Step, Walk};
use crate::state::producers::{EndedTransaction, ProducerStates};

/// What a pass over all batches finds. The pass verifies every checksum: a damaged marker could make the records of an aborted
/// transaction look committed, and then they would replace committed ones.
#[derive(Debug, Default)]
pub(super) struct History {
    /// The aborted transactions, in the order of their markers. Also those below the log start offset, which Kafka leaves out: if it
    /// keeps their records in the first segment, and removes the marker, they look like those of an open transaction.
    pub(super) aborted: Vec<AbortedTransaction>,
    /// The producers as of the end of the log.
    pub(super) producers: ProducerStates,
    /// The number of records of the segments from `first_dirty` on, or more.
    pub(super) dirty_records: u64,
}

impl History {
    /// Reads a log. `first_dirty`: the base offset of the first dirty segment.
    ///
    /// # Errors
    /// [`Error::Corrupt`] at the first damage; [`Error::UnsupportedFormat`]; [`Error::Io`].
    pub(super) fn read(log: &Log, first_dirty: i64) -> Result<Self> {
        let mut history = Self::default();
        let mut ended_at = HashMap::new();
        let mut leader_epoch = -1;
        for segment in log.segments().iter() {
            let indexed = indexed(segment)?;
            leader_epoch = for_each_batch(segment, log, leader_epoch, |batch, bytes| {
                let header = &batch.header;
                if segment.base_offset() >= first_dirty {
                    // the entries of a wrapper are not counted without decompressing them
                    let count = header.count.map_or(u64::MAX, |count| u64::try_from(count).unwrap_or(0));
                    history.dirty_records = history.dirty_records.saturating_add(count);
                }
                if header.producer_id < 0 {
                    return Ok(());
                }
                let mut marker = None;
                if header.is_control() {
                    marker = EndMarker::read(*header, bytes, &mut Vec::new())?;
                }
                let ended = history.producers.append(header, marker.as_ref())?;
                if marker.is_none() {
                    return Ok(());
                }
                let before = ended_at.insert(header.producer_id, header.last_offset).unwrap_or(-1);
                if let Some(ended) = ended.filter(|ended| ended.is_aborted) {
                    history.aborted.push(entry(ended, before, &indexed));
                }
                Ok(())
            })?;
        }
        Ok(history)
    }
}

/// The entry of an aborted transaction. That of the segment's transaction index is taken if the log does not contradict it: compaction
/// may have removed the first batches of the transaction, and what its last stable offset was depends on how appends were grouped.
/// `before`: the offset of the producer's marker before.
fn entry(
    ended: EndedTransaction,
    before: i64,
    indexed: &HashMap<(i64, i64), AbortedTransaction>,
) -> AbortedTransaction {
    let EndedTransaction { producer_id, first_offset, last_offset, last_stable_offset, .. } = ended;
    let found = indexed.get(&(producer_id, last_offset)).copied();
    let found = found.filter(|found| {
        (before + 1..=first_offset).contains(&found.first_offset)
            && (0..=last_offset + 1).contains(&found.last_stable_offset)
    });
    found.unwrap_or(AbortedTransaction { producer_id, first_offset, last_offset, last_stable_offset })
}

/// The entries of a segment's transaction index, by producer and marker; those that can be read.
fn indexed(segment: &Segment) -> Result<HashMap<(i64, i64), AbortedTransaction>> {
    let Some(index) = segment.transaction_index()? else { return Ok(HashMap::new()) };
    let entries = index.iter().map_while(Result::ok);
    Ok(entries.map(|entry| ((entry.producer_id, entry.last_offset), entry)).collect())
}

/// Calls `use_batch` with each batch of a segment, and its bytes, whose checksum was verified. Returns the leader epoch at its end.
///
/// # Errors
/// [`Error::Corrupt`] at damage, also where `use_batch` finds it; [`Error::UnsupportedFormat`]; [`Error::Io`].
pub(super) fn for_each_batch(
    segment: &Arc<Segment>,
    log: &Log,
    leader_epoch: i32,
    mut use_batch: impl FnMut(&Batch, &[u8]) -> std::result::Result<(), Unusable>,
) -> Result<i32> {
    let mut walk = segment.walk(leader_epoch, SCAN_READ)?;
    loop {
        log.options().interrupt.check()?;
        let before = walk.before;
        let damage = match walk.step_through()? {
            Step::End => return Ok(walk.before.map_or(-1, |before| before.leader_epoch)),
            Step::Damage(damage) => damage,
            Step::Batch(batch) => match use_batch(&batch, walk.bytes(&batch)?) {
                Ok(()) => continue,
                Err(Unusable::Error(error)) => return Err(*error),
                Err(Unusable::Malformed(malformed)) => walk.reject(&batch, before, malformed),
            },
        };
        return Err(damaged(segment, &mut walk, &damage)?);
    }
}

/// Why a batch cannot be used.
pub(super) enum Unusable {
    Malformed(crate::error::Malformed),
    Error(Box<Error>),
}

impl From<crate::error::Malformed> for Unusable {
    fn from(malformed: crate::error::Malformed) -> Self {
        Self::Malformed(malformed)
    }
}

impl From<Error> for Unusable {
    fn from(error: Error) -> Self {
        Self::Error(Box::new(error))
    }
}

fn damaged(segment: &Segment, walk: &mut Walk, damage: &Damage) -> Result<Error> {
    let span = segment.resume(walk, damage)?;
    let found = span.unsupported().unwrap_or_else(|| damage.clone());
    Ok(segment.corrupt(&found))
}
