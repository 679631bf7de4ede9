//! The producers of a log at an offset, from the latest valid snapshot and the batches after it. Nothing is
//! changed here.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use super::replay::Replayed;
use super::{Producers, is_forgotten, kept, snapshots_in};
use crate::error::Result;
use crate::fs::{Directory, Staged};
use crate::state::producers::snapshot_files::{read_valid, snapshot_name};
use crate::state::producers::{ProducerEntry, ProducerSnapshot, ProducerStates};
use crate::writer::poison::is_full;

/// Snapshots that are planned take at most this much memory; the oldest are left out. They are hints.
const MAX_PLANNED_BYTES: usize = 64 << 20;

/// A plan for the producers: the states, and what changes in the directory.
#[derive(Debug)]
pub(in crate::writer) struct ProducerPlan {
    states: ProducerStates,
    removed: BTreeSet<i64>,
    written: Vec<(i64, Vec<u8>)>,
    snapshots: BTreeSet<i64>,
    last_snapshot: i64,
    expiration_ms: i64,
    now: i64,
}

impl ProducerPlan {
    /// The producers.
    pub(in crate::writer) fn entries(&self) -> impl Iterator<Item = &ProducerEntry> {
        self.states.iter()
    }

    /// Stages the snapshots that are written. If the disk is full, some are left out, and taken later.
    pub(in crate::writer) fn stage(self, directory: &Directory) -> Result<StagedProducers> {
        let Self { states, mut removed, written, mut snapshots, mut last_snapshot, expiration_ms, now } =
            self;
        let mut staged = Vec::with_capacity(written.len());
        for (offset, bytes) in written {
            match directory.stage(&snapshot_name(offset), &bytes) {
                Ok(file) => staged.push(file),
                // without it, the next opening reads more batches. A file of this name was not checked
                Err(error) if is_full(&error) => {
                    snapshots.remove(&offset);
                    removed.insert(offset);
                    last_snapshot = last_snapshot.min(offset - 1);
                }
                Err(error) => return Err(error),
            }
        }
        let producers = Producers { states, snapshots, last_snapshot, expiration_ms, checked: now };
        Ok(StagedProducers { producers, removed, staged })
    }
}

/// The producers of a plan, and the staged files of its snapshots.
#[derive(Debug)]
pub(in crate::writer) struct StagedProducers {
    producers: Producers,
    removed: BTreeSet<i64>,
    staged: Vec<Staged>,
}

impl StagedProducers {
    /// Removes the snapshots that do not remain, durably.
    pub(in crate::writer) fn remove(&self, directory: &Directory) -> Result<()> {
        for offset in &self.removed {
            directory.remove(&snapshot_name(*offset))?;
        }
        if self.removed.is_empty() { Ok(()) } else { directory.sync() }
    }

    /// Puts the snapshots in place, durably. The log must be durable up to their offsets.
    pub(in crate::writer) fn put(self, directory: &Directory) -> Result<Producers> {
        let is_empty = self.staged.is_empty();
        self.staged.into_iter().try_for_each(Staged::put_unsynced)?;
        if !is_empty {
            directory.sync()?;
        }
        Ok(self.producers)
    }
}

/// Makes the plan.
///
/// *Source*: `ProducerStateManager`; `UnifiedLog.rebuildProducerState`; `LogLoader.recoverSegment`.
#[derive(Debug)]
pub(in crate::writer) struct Rebuild<'a> {
    directory: &'a Directory,
    /// Ascending.
    segments: &'a [Replayed],
    log_start_offset: i64,
    expiration_ms: i64,
    now: i64,
    /// The producers that do not expire.
    in_use: HashSet<i64>,
    /// The snapshots in the directory now.
    present: BTreeSet<i64>,
    /// The snapshots as planned, with their bytes if they are to be written.
    snapshots: BTreeMap<i64, Option<Vec<u8>>>,
    states: ProducerStates,
    /// Whether the log has producers that `states` leaves out: a truncation loads them again.
    leaves_out: bool,
    map_end: i64,
    last_snapshot: i64,
}

impl<'a> Rebuild<'a> {
    /// The plan for an opening begins without producers. `now`: ms since the epoch.
    pub(in crate::writer) fn at_opening(
        directory: &'a Directory,
        segments: &'a [Replayed],
        log_start_offset: i64,
        expiration_ms: i64,
        now: i64,
    ) -> Result<Self> {
        let present = snapshots_in(directory)?;
        let snapshots = present.iter().map(|offset| (*offset, None)).collect();
        let (states, map_end, last_snapshot) = (ProducerStates::default(), 0, 0);
        Ok(Self {
            directory,
            segments,
            log_start_offset,
            expiration_ms,
            now,
            in_use: HashSet::new(),
            present,
            snapshots,
            states,
            leaves_out: false,
            map_end,
            last_snapshot,
        })
    }

    /// The plan for a truncation begins with the producers at the log end offset. `in_use`: those that do not
    /// expire.
    pub(in crate::writer) fn at_truncation(
        directory: &'a Directory,
        segments: &'a [Replayed],
        log_start_offset: i64,
        log_end_offset: i64,
        (producers, in_use): (&Producers, HashSet<i64>),
        now: i64,
    ) -> Self {
        Self {
            directory,
            segments,
            log_start_offset,
            expiration_ms: producers.expiration_ms,
            now,
            in_use,
            present: producers.snapshots.clone(),
            snapshots: producers.snapshots.iter().map(|offset| (*offset, None)).collect(),
            states: ProducerStates::default(),
            leaves_out: !producers.states.is_empty(),
            map_end: log_end_offset,
            last_snapshot: producers.last_snapshot,
        }
    }

    /// Reads a segment whose batches may not match its snapshots, and returns the bytes of its transaction
    /// index. A snapshot at its end is planned.
    ///
    /// *Source*: `LogLoader.recoverSegment`.
    pub(in crate::writer) fn recover_segment(&mut self, recovered: &Replayed) -> Result<Vec<u8>> {
        self.restart();
        self.rebuild(recovered.base_offset, false)?;
        let (end, transaction_index) = recovered.recover(&mut self.states)?;
        self.map_end = end.unwrap_or(self.map_end);
        self.take();
        Ok(transaction_index)
    }

    /// Plans the states at the end of a log that is opened. `bases`: the base offsets of its segments;
    /// `log_start_offset`: at least the first of them.
    ///
    /// *Source*: `LogLoader.load`, its last steps.
    pub(in crate::writer) fn open(
        mut self,
        bases: &[i64],
        log_start_offset: i64,
        end_offset: i64,
        closed_cleanly: bool,
    ) -> Result<ProducerPlan> {
        self.log_start_offset = log_start_offset;
        self.remove_strays(bases);
        self.restart();
        self.rebuild(end_offset, closed_cleanly)?;
        Ok(self.plan())
    }

    /// Plans the states at an end below the log end. The batches at or above it still exist.
    ///
    /// *Source*: `UnifiedLog.truncateTo`. Kafka removes the snapshots of the removed segments first; all are
    /// above the new end.
    pub(in crate::writer) fn truncate_to(mut self, end_offset: i64) -> Result<ProducerPlan> {
        self.rebuild(end_offset, false)?;
        // the lower snapshots may be without them, and their handles may be in use. Read here: an error
        // changes nothing
        kept::restore(&mut self.states, self.directory, end_offset)?;
        Ok(self.plan())
    }

    fn plan(self) -> ProducerPlan {
        let snapshots: BTreeSet<i64> = self.snapshots.keys().copied().collect();
        let removed = self.present.difference(&snapshots).copied().collect();
        let written = self.snapshots.into_iter().filter_map(|(offset, bytes)| Some((offset, bytes?)));
        ProducerPlan {
            states: self.states,
            removed,
            written: written.collect(),
            snapshots,
            last_snapshot: self.last_snapshot,
            expiration_ms: self.expiration_ms,
            now: self.now,
        }
    }

    /// As a new `ProducerStateManager`, which knows only the snapshots.
    fn restart(&mut self) {
        (self.states, self.map_end, self.last_snapshot) = (ProducerStates::default(), 0, 0);
    }

    /// *Source*: `ProducerStateManager.takeSnapshot`.
    fn take(&mut self) {
        if self.map_end <= self.last_snapshot {
            return;
        }
        self.snapshots.insert(self.map_end, Some(self.states.encode()));
        self.last_snapshot = self.map_end;
        let (mut bytes, newest) = (0, self.map_end);
        // the newest first, which always remains
        self.snapshots = std::mem::take(&mut self.snapshots)
            .into_iter()
            .rev()
            .filter(|(offset, planned)| {
                bytes += planned.as_ref().map_or(0, Vec::len);
                planned.is_none() || *offset == newest || bytes <= MAX_PLANNED_BYTES
            })
            .collect();
    }

    /// Removes the snapshots that belong to no segment, but for the latest of them if no segment begins above
    /// it: a close took it.
    ///
    /// *Source*: `ProducerStateManager.removeStraySnapshots`.
    fn remove_strays(&mut self, bases: &[i64]) {
        let is_stray = |offset: &i64| !bases.contains(offset);
        let latest = self.snapshots.keys().copied().rfind(is_stray);
        let kept = latest.filter(|latest| bases.last().is_none_or(|last| latest >= last));
        self.snapshots.retain(|offset, _| !is_stray(offset) || Some(*offset) == kept);
    }

    /// *Source*: `ProducerStateManager.truncateAndReload`.
    fn truncate_and_reload(&mut self, end_offset: i64) -> Result<()> {
        let start = self.log_start_offset;
        self.snapshots.retain(|offset, _| *offset <= end_offset && *offset > start);
        if end_offset != self.map_end {
            return self.load();
        }
        self.map_end = self.map_end.max(start);
        self.last_snapshot = self.snapshots.last_key_value().map_or(start, |(offset, _)| *offset);
        Ok(())
    }

    /// Loads the latest valid snapshot; those after it do not remain.
    ///
    /// *Source*: `ProducerStateManager.loadFromSnapshot`.
    fn load(&mut self) -> Result<()> {
        self.states.clear();
        self.leaves_out = false;
        while let Some((offset, planned)) = self.snapshots.last_key_value() {
            let offset = *offset;
            let read = match planned {
                Some(bytes) => ProducerSnapshot::decode(bytes).ok(),
                None => read(self.directory, offset)?,
            };
            if let Some(snapshot) = read {
                let (now, expiration_ms) = (self.now, self.expiration_ms);
                let in_use = &self.in_use;
                self.states.reload_if(snapshot, |entry| {
                    !is_forgotten(entry, now, expiration_ms) || in_use.contains(&entry.producer_id)
                });
                (self.map_end, self.last_snapshot) = (offset, offset);
                return Ok(());
            }
            self.snapshots.remove(&offset);
        }
        (self.map_end, self.last_snapshot) = (self.log_start_offset, self.log_start_offset);
        Ok(())
    }

    /// *Source*: `UnifiedLog.rebuildProducerState`.
    fn rebuild(&mut self, end_offset: i64, closed_cleanly: bool) -> Result<()> {
        let bases = self.segments.iter().rev().map(|segment| segment.base_offset);
        let last_bases: Vec<_> = bases.take(2).collect();
        if self.snapshots.is_empty() && closed_cleanly {
            // a close takes a snapshot unless nothing was written since the log began: there is no producer
            for offset in last_bases.into_iter().rev().chain([end_offset]) {
                self.map_end = offset;
                self.take();
            }
            return Ok(());
        }
        let was_empty = self.states.is_empty() && !self.leaves_out && self.map_end >= end_offset;
        self.truncate_and_reload(end_offset)?;
        if end_offset > self.map_end && !was_empty {
            let from = self.segments.partition_point(|segment| segment.base_offset <= self.map_end);
            for segment in self.segments.get(from.saturating_sub(1)..).unwrap_or_default() {
                if segment.base_offset >= end_offset {
                    break;
                }
                let start = segment.base_offset.max(self.map_end).max(self.log_start_offset);
                self.map_end = start;
                if last_bases.contains(&segment.base_offset) {
                    self.take();
                }
                segment.load(&mut self.states, start, end_offset)?;
            }
        }
        self.map_end = end_offset;
        self.take();
        Ok(())
    }
}

/// The snapshot at an offset; `None` if it is not valid: damaged, too large, or not a snapshot at this
/// offset.
pub(super) fn read(directory: &Directory, offset: i64) -> Result<Option<ProducerSnapshot>> {
    let is_below = |other: i64| other < offset;
    let valid = read_valid(directory, &snapshot_name(offset))?;
    Ok(valid.filter(|snapshot| {
        snapshot.entries.iter().all(|entry| {
            entry.last_batch().is_none_or(|batch| is_below(batch.last_offset))
                && entry.open_transaction.is_none_or(is_below)
        })
    }))
}
