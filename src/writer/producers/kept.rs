//! `.cordwood.producer-states`: the named producers whose last batch was deleted from the log start, in the format of a snapshot.
//!
//! An opening does not load a snapshot at or below the log start offset, as in Kafka. The sequences of a producer that was idle while
//! its records were deleted would begin at 0 again, and an application that continues there would write its records twice.

use super::Producers;
use crate::error::Result;
use crate::fs::Directory;
use crate::state::producer_ids::IdOwner;
use crate::state::producers::{ProducerEntry, ProducerSnapshot, ProducerStates};

/// The name of the file.
pub(crate) const KEPT_PRODUCERS: &str = ".cordwood.producer-states";
const MAX_BYTES: u64 = 64 << 20;

impl Producers {
    /// Writes the named producers without a batch at or above `log_start_offset`, durably. Called before it comes into
    /// effect, and before a truncation.
    pub(in crate::writer) fn keep_named(&self, directory: &Directory, log_start_offset: i64) -> Result<()> {
        let is_kept = |entry: &&ProducerEntry| {
            IdOwner::Producer.ids().contains(&entry.producer_id)
                && entry.last_batch().is_some_and(|last| last.last_offset < log_start_offset)
        };
        let mut entries: Vec<_> = self.states.iter().filter(is_kept).cloned().collect();
        if entries.is_empty() {
            return Ok(());
        }
        let present = kept_producers(directory)?;
        let others = present.iter().filter(|entry| self.states.get(entry.producer_id).is_none());
        entries.extend(others.cloned());
        entries.sort_unstable_by_key(|entry| entry.producer_id);
        if entries == present {
            return Ok(());
        }
        directory.replace(KEPT_PRODUCERS, &ProducerSnapshot { entries }.encode())
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

/// Adds the kept producers that have no newer state, in a log that ends at `log_end_offset`.
pub(super) fn restore(states: &mut ProducerStates, directory: &Directory, log_end_offset: i64) -> Result<()> {
    for entry in kept_producers(directory)? {
        let is_in_log = entry.last_batch().is_some_and(|last| last.last_offset < log_end_offset);
        if is_in_log && states.get(entry.producer_id).is_none() {
            states.load(entry);
        }
    }
    Ok(())
}

/// The producers in the file.
///
/// # Errors
/// [`Error::Corrupt`](crate::Error::Corrupt) if it is damaged; [`Error::Io`](crate::Error::Io).
pub(crate) fn kept_producers(directory: &Directory) -> Result<Vec<ProducerEntry>> {
    let Some(bytes) = directory.read_small(KEPT_PRODUCERS, MAX_BYTES)? else { return Ok(Vec::new()) };
    let decoded = ProducerSnapshot::decode(&bytes).map(|snapshot| snapshot.entries);
    decoded.map_err(|(position, mut malformed)| {
        malformed.expected += " (remove the file to go on: then named producers without records in the log begin at sequence 0)";
        malformed.at(directory.path_of(KEPT_PRODUCERS), position, None)
    })
}
