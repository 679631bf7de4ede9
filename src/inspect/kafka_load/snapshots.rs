//! The producers of the log, and their snapshots in the directory.
//!
//! Producer ids do not expire here: the plan does not depend on the time of day.
//!
//! *Source*: `ProducerStateManager`, `UnifiedLog.rebuildProducerState`.

use std::collections::BTreeMap;

use super::action::{ActionKind, ActionReason};
use super::batches::Batches;
use super::disk::{Contents, Disk};
use super::exception::{ExceptionKind, Step, Thrown};
use super::run::{Run, Segments, offset_in};
use super::segment::file_name;
use crate::error::Malformed;
use crate::fs::names::{FileKind, Stage};
use crate::inspect::batch_place::BatchPlace;
use crate::record::BatchHeader;
use crate::record::control::EndMarker;
use crate::state::producers::snapshot::{ENTRIES, ENTRY, have_same_entries};
use crate::state::producers::{
    EndedTransaction, ProducerRefusal, ProducerSnapshot, ProducerStates, ProducerUpdates,
};

/// Producers, and the snapshots that this object of Kafka's knows of.
#[derive(Debug, Default)]
pub(super) struct Snapshots {
    pub(super) states: ProducerStates,
    /// The names of the snapshots by their offsets.
    files: BTreeMap<i64, String>,
    pub(super) map_end: i64,
    last_snapshot: i64,
}

impl Snapshots {
    /// With the snapshots that are in the directory, and without producers.
    pub(super) fn list(disk: &Disk) -> Step<Self> {
        Ok(Self { files: list_files(disk)?, ..Self::default() })
    }

    /// Adds a batch. Returns the transaction that it ends.
    pub(super) fn append(
        &mut self,
        batches: &mut Batches,
        batch: &BatchPlace,
        header: &BatchHeader,
    ) -> Step<Option<EndedTransaction>> {
        if header.producer_id < 0 {
            return Ok(None);
        }
        let (header, marker) = marked(batches, batch, header)?;
        self.states
            .append(&header, marker.as_ref())
            .map_err(|malformed| contradiction(batches, batch, &malformed))
    }

    /// Writes a snapshot, if the last one is older. Kafka writes over a file that exists, and does not
    /// shorten it.
    pub(super) fn take(&mut self, run: &mut Run) -> Step<()> {
        if self.map_end <= self.last_snapshot {
            return Ok(());
        }
        let name = file_name(self.map_end, FileKind::Snapshot, Stage::Live);
        let mut bytes = self.states.encode();
        if let Some(mut before) = run.disk.reader(&name)? {
            let kept = before.size().saturating_sub(bytes.len() as u64);
            let rest = before.read(bytes.len() as u64, usize::try_from(kept).unwrap_or(usize::MAX))?;
            bytes.extend_from_slice(rest);
            let old = before.read(0, bytes.len())?;
            if have_same_entries(old, &bytes) {
                // in Kafka's order
                bytes.copy_from_slice(old);
            }
        }
        run.disk.put(&name, Contents::made(bytes));
        run.act(ActionKind::Write, &name, ActionReason::Producers)?;
        self.files.insert(self.map_end, name);
        self.last_snapshot = self.map_end;
        Ok(())
    }

    fn remove(&mut self, run: &mut Run, offset: i64, reason: ActionReason) {
        if let Some(name) = self.files.remove(&offset) {
            run.delete(&name, reason);
        }
    }

    /// Renames the snapshot of a removed segment to `.deleted`.
    pub(super) fn mark_deleted(&mut self, run: &mut Run, offset: i64, reason: ActionReason) {
        if let Some(name) = self.files.remove(&offset) {
            run.delete_later(&name, reason);
        }
    }

    /// Removes the snapshots that belong to no segment, but for the latest one above all of them.
    pub(super) fn remove_stray(&mut self, run: &mut Run, bases: &[i64]) -> Step<()> {
        let mut files = list_files(&run.disk)?;
        let strays: Vec<i64> = files.keys().copied().filter(|offset| !bases.contains(offset)).collect();
        let latest = strays.last().copied();
        let highest_base = bases.last().copied();
        for offset in strays {
            let is_kept = Some(offset) == latest && highest_base.is_none_or(|base| offset >= base);
            if !is_kept && let Some(name) = files.remove(&offset) {
                run.delete(&name, ActionReason::StraySnapshot);
            }
        }
        self.files = files;
        Ok(())
    }

    /// Forgets everything, and removes all snapshots.
    pub(super) fn start_at(&mut self, run: &mut Run, offset: i64) {
        self.states = ProducerStates::default();
        for snapshot in self.files.keys().copied().collect::<Vec<_>>() {
            self.remove(run, snapshot, ActionReason::BelowLogStart);
        }
        (self.last_snapshot, self.map_end) = (0, offset);
    }

    fn truncate_and_reload(&mut self, run: &mut Run, log_start_offset: i64, end_offset: i64) -> Step<()> {
        for offset in self.files.keys().copied().collect::<Vec<_>>() {
            if offset > end_offset || offset <= log_start_offset {
                self.remove(run, offset, ActionReason::SnapshotOutOfRange);
            }
        }
        if end_offset != self.map_end {
            self.states = ProducerStates::default();
            return self.load(run, log_start_offset);
        }
        self.map_end = self.map_end.max(log_start_offset);
        self.last_snapshot = self.files.last_key_value().map_or(log_start_offset, |(offset, _)| *offset);
        Ok(())
    }

    /// Loads the latest snapshot that is valid; removes those that are not.
    fn load(&mut self, run: &mut Run, log_start_offset: i64) -> Step<()> {
        while let Some((offset, name)) = self.files.last_key_value() {
            let offset = *offset;
            let bytes = whole(&run.disk, name)?;
            if let Ok(snapshot) = ProducerSnapshot::decode(&bytes) {
                self.states = ProducerStates::from_snapshot(&snapshot);
                (self.last_snapshot, self.map_end) = (offset, offset);
                return Ok(());
            }
            self.remove(run, offset, ActionReason::CorruptSnapshot);
        }
        (self.last_snapshot, self.map_end) = (log_start_offset, log_start_offset);
        Ok(())
    }

    /// Brings the producers to `last_offset`: from the latest snapshot, and from the batches after it.
    pub(super) fn rebuild(
        &mut self,
        run: &mut Run,
        segments: &mut Segments,
        log_start_offset: i64,
        last_offset: i64,
        was_closed_cleanly: bool,
    ) -> Step<()> {
        let mut to_snapshot: Vec<i64> = segments.bases().rev().take(2).collect();
        to_snapshot.reverse();
        to_snapshot.push(last_offset);
        if self.files.is_empty() && was_closed_cleanly {
            for offset in to_snapshot {
                self.map_end = offset;
                self.take(run)?;
            }
            return Ok(());
        }
        let was_empty = self.states.is_empty() && self.map_end >= last_offset;
        self.truncate_and_reload(run, log_start_offset, last_offset)?;
        if last_offset > self.map_end && !was_empty {
            for base_offset in segments.between(self.map_end, last_offset)? {
                let start = base_offset.max(self.map_end).max(log_start_offset);
                self.map_end = start;
                if to_snapshot.contains(&base_offset) {
                    self.take(run)?;
                }
                self.replay(run, segments, base_offset, start, last_offset)?;
            }
        }
        self.map_end = last_offset;
        self.take(run)
    }

    /// Adds the batches of a segment from `start` to below `last_offset`. Their checksums are not checked.
    fn replay(
        &mut self,
        run: &mut Run,
        segments: &mut Segments,
        base_offset: i64,
        start: i64,
        last_offset: i64,
    ) -> Step<()> {
        let has_last = segments.floor(last_offset) == Some(base_offset);
        let Some(segment) = segments.get_mut(base_offset) else { return Ok(()) };
        let mut end = segment.log_size;
        if has_last && let Some(found) = segment.translate(&mut run.disk, last_offset)? {
            end = found.position;
        }
        let Some(first) = segment.translate(&mut run.disk, start)? else { return Ok(()) };
        let mut batches = segment.batches(&run.disk)?;
        if end < first.position {
            let reason = format!("offset {last_offset} is before offset {start} in the file");
            return Err(batches.thrown(ExceptionKind::IllegalArgument, reason));
        }
        batches.limit(end);
        let mut position = first.position;
        let mut updates = ProducerUpdates::default();
        while let Some(batch) = batches.at(position)? {
            run.interrupt.check()?;
            if batch.magic >= 2 {
                let header = batches.header(&batch)?;
                if header.producer_id >= 0 {
                    let (header, marker) = marked(&mut batches, &batch, &header)?;
                    let added = updates.add(&self.states, &header, marker.as_ref(), false);
                    if let Err(ProducerRefusal::Transaction(malformed)) = added {
                        return Err(contradiction(&batches, &batch, &malformed));
                    }
                }
            }
            position = batch.end();
        }
        self.states.apply(updates);
        Ok(())
    }
}

/// The header of a producer's batch, and the end marker of a control batch.
fn marked(
    batches: &mut Batches,
    batch: &BatchPlace,
    header: &BatchHeader,
) -> Step<(BatchHeader, Option<EndMarker>)> {
    // Kafka reads any higher magic as 2
    let header = BatchHeader { magic: 2, ..*header };
    let marker = if header.is_control() { batches.end_marker(batch, &header)? } else { None };
    Ok((header, marker))
}

/// The exception of a batch that contradicts the transactions before it.
fn contradiction(batches: &Batches, batch: &BatchPlace, malformed: &Malformed) -> Thrown {
    let Malformed { expected, found, .. } = malformed;
    let reason = format!("the batch at position {}: expected {expected}, found {found}", batch.position);
    batches.thrown(ExceptionKind::InvalidTxnState, reason)
}

/// All bytes of a snapshot.
fn whole(disk: &Disk, name: &str) -> Step<Vec<u8>> {
    let mut bytes = disk.bytes(name)?.unwrap_or_default();
    let size = usize::try_from(disk.size(name).unwrap_or(0)).unwrap_or(usize::MAX);
    // the bytes are without the zeros at the end. A file of zeros beyond any snapshot is not one: its
    // checksum is wrong
    bytes.resize(size.min(bytes.len() + (1 << 20)), 0);
    Ok(bytes)
}

/// Whether a file is a snapshot of several producers. Their order in Kafka's file is that of a hash map.
pub(super) fn is_of_several_producers(name: &str, size: u64) -> bool {
    name.ends_with(FileKind::Snapshot.suffix()) && size > (ENTRIES + ENTRY) as u64
}

fn list_files(disk: &Disk) -> Step<BTreeMap<i64, String>> {
    let mut files = BTreeMap::new();
    for name in disk.names() {
        if name.ends_with(FileKind::Snapshot.suffix()) {
            files.insert(offset_in(&name)?, name);
        }
    }
    Ok(files)
}

/// The exception of a segment range that ends before it starts.
pub(super) fn reversed(from: i64, to: i64) -> Thrown {
    let reason = format!("a range of segments from offset {from} to offset {to}");
    Thrown::kafka(ExceptionKind::IllegalArgument, "", reason)
}
