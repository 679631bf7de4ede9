//! `.cordwood.producer-states`: the named producers at the log start offset, in the format of a snapshot.
//!
//! An opening does not load a snapshot at or below the log start offset, as in Kafka. The sequences of a
//! producer that was idle while its records were deleted would begin at 0 again, and an application that
//! continues there would write its records twice. So would the sequences of a producer whose records above
//! the log start offset are truncated.
//!
//! The file is written before the log start offset is moved: a snapshot at the new one, and after it a second
//! one with the producers that have another state at the present one, which is in effect if the move fails.

use std::collections::BTreeMap;

use super::Producers;
use crate::error::Result;
use crate::fs::Directory;
use crate::state::producer_ids::IdOwner;
use crate::state::producers::snapshot::encode;
use crate::state::producers::{ProducerEntry, ProducerSnapshot, ProducerStates};

/// The name of the file.
pub(crate) const KEPT_PRODUCERS: &str = ".cordwood.producer-states";
const MAX_BYTES: u64 = 64 << 20;

/// What becomes of the named producers that are stored, when a log begins again without a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::writer) enum NamedProducers {
    /// Their sequences continue.
    Kept,
    /// Their sequences begin at 0.
    Forgotten,
}

impl Producers {
    /// The named producers whose last batch is below `offset`.
    pub(in crate::writer) fn named_below(&self, offset: i64) -> Vec<ProducerEntry> {
        self.states.iter().filter(|entry| is_named(entry) && is_below(entry, offset)).cloned().collect()
    }

    /// Whether a named producer has its last batch at or above `offset`.
    pub(in crate::writer) fn has_named_from(&self, offset: i64) -> bool {
        self.states.iter().any(|entry| is_named(entry) && !is_below(entry, offset))
    }

    /// Adds the producers that were kept and that neither a snapshot nor a batch has.
    pub(in crate::writer) fn restore_named(
        &mut self,
        directory: &Directory,
        log_end_offset: i64,
    ) -> Result<()> {
        restore(&mut self.states, directory, log_end_offset)
    }

    /// Removes the file: the log has no record any more. Returns whether there was one.
    pub(super) fn remove_kept(directory: &Directory) -> Result<bool> {
        let is_present = directory.identity_of(KEPT_PRODUCERS)?.is_some();
        if is_present {
            directory.remove(KEPT_PRODUCERS)?;
        }
        Ok(is_present)
    }
}

/// Stores the named producers among `entries` durably, in a log that starts at `log_start_offset`. Called
/// before a change: the log will start, or end, at `offset`, and no entry has a batch at or above it.
pub(in crate::writer) fn keep(
    directory: &Directory,
    mut entries: Vec<ProducerEntry>,
    log_start_offset: i64,
    offset: i64,
) -> Result<()> {
    let present = kept_producers(directory)?;
    entries.retain(is_named);
    // after a change that failed, the file may have states at a higher offset
    entries.extend(present.into_iter().filter(|entry| is_below(entry, offset)));
    let in_effect = first_of_each(entries.iter().filter(|entry| is_below(entry, log_start_offset)));
    let new = first_of_each(entries.iter());
    let others = in_effect.into_iter().filter(|(id, entry)| {
        let last_offset = |entry: &ProducerEntry| entry.last_batch().map(|last| last.last_offset);
        new.get(id).is_none_or(|new| last_offset(new) != last_offset(entry))
    });
    let mut bytes = encode(new.values().copied());
    let others: Vec<_> = others.map(|(_, entry)| entry).collect();
    if !others.is_empty() {
        bytes.extend(encode(others.into_iter()));
    }
    let is_changed = match directory.read_small(KEPT_PRODUCERS, MAX_BYTES)? {
        Some(present) => present != bytes,
        None => !new.is_empty(),
    };
    if is_changed { directory.replace(KEPT_PRODUCERS, &bytes) } else { Ok(()) }
}

/// Stores the named producers at the log start offset durably, `entries` and those that are stored, as if
/// their last batches ended below `offset`, which is lower: the log will start and end there. Called before
/// the change, which may fail: they are valid at the present log start offset, too.
pub(in crate::writer) fn keep_below(
    directory: &Directory,
    mut entries: Vec<ProducerEntry>,
    log_start_offset: i64,
    offset: i64,
) -> Result<()> {
    let present = kept_producers(directory)?;
    entries.extend(present.into_iter().filter(|entry| is_below(entry, log_start_offset)));
    let as_of_start: Vec<_> =
        first_of_each(entries.iter()).into_values().map(|entry| entry.ending_before(offset)).collect();
    if as_of_start.is_empty() {
        Ok(())
    } else {
        directory.replace(KEPT_PRODUCERS, &encode(as_of_start.iter()))
    }
}

fn first_of_each<'a>(entries: impl Iterator<Item = &'a ProducerEntry>) -> BTreeMap<i64, &'a ProducerEntry> {
    let mut first = BTreeMap::new();
    entries.for_each(|entry| {
        first.entry(entry.producer_id).or_insert(entry);
    });
    first
}

fn is_named(entry: &ProducerEntry) -> bool {
    IdOwner::Producer.ids().contains(&entry.producer_id)
}

/// Whether a producer has a batch, and the last one is below `offset`.
fn is_below(entry: &ProducerEntry, offset: i64) -> bool {
    entry.last_batch().is_some_and(|last| last.last_offset < offset)
}

/// Adds the kept producers that have no newer state, in a log that ends at `log_end_offset`.
pub(super) fn restore(states: &mut ProducerStates, directory: &Directory, log_end_offset: i64) -> Result<()> {
    for entry in kept_producers(directory)? {
        if is_below(&entry, log_end_offset) && states.get(entry.producer_id).is_none() {
            states.load(entry);
        }
    }
    Ok(())
}

/// The producers in the file. One that is in it twice has the state at the higher offset first.
///
/// # Errors
/// [`Error::Corrupt`](crate::Error::Corrupt) if it is damaged; [`Error::Io`](crate::Error::Io).
pub(crate) fn kept_producers(directory: &Directory) -> Result<Vec<ProducerEntry>> {
    let Some(bytes) = directory.read_small(KEPT_PRODUCERS, MAX_BYTES)? else { return Ok(Vec::new()) };
    let (mut entries, mut rest, mut position) = (Vec::new(), &*bytes, 0);
    loop {
        let (part, after) = rest.split_at(ProducerSnapshot::size_of(rest));
        let decoded = ProducerSnapshot::decode(part).map_err(|(within, mut malformed)| {
            malformed.expected += " (remove the file to go on: then named producers without records in the log begin at sequence 0)";
            malformed.at(directory.path_of(KEPT_PRODUCERS), position + within, None)
        })?;
        entries.extend(decoded.entries);
        if after.is_empty() {
            return Ok(entries);
        }
        position += part.len() as u64;
        rest = after;
    }
}
