//! The producers of a log at an offset, from the latest valid snapshot and the batches after it. Nothing is
//! changed here.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ops::Range;

use super::replay::Replayed;
use super::{Producers, is_forgotten, kept, snapshots_in};
use crate::error::{Error, Result};
use crate::fs::{Directory, Staged};
use crate::state::producers::snapshot_files::{read_valid, snapshot_name};
use crate::state::producers::{
    ProducerEntry, ProducerReplay, ProducerSnapshot, ProducerStates, RebuiltProducers, RebuiltSegments,
    SnapshotStore, WhyRemoved,
};
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
/// *Source*: `UnifiedLog.rebuildProducerState`; `LogLoader.recoverSegment`.
#[derive(Debug)]
pub(in crate::writer) struct Rebuild<'a> {
    /// Ascending.
    segments: &'a [Replayed],
    log_start_offset: i64,
    store: PlannedSnapshots<'a>,
    /// The snapshots in the directory now.
    present: BTreeSet<i64>,
    rebuilt: RebuiltProducers<Option<Vec<u8>>>,
}

/// The snapshots as planned, with their bytes if they are to be written.
#[derive(Debug)]
struct PlannedSnapshots<'a> {
    directory: &'a Directory,
    expiration_ms: i64,
    now: i64,
    /// The producers that do not expire.
    in_use: HashSet<i64>,
}

impl SnapshotStore for PlannedSnapshots<'_> {
    type Snapshot = Option<Vec<u8>>;
    type Error = Error;

    /// The producers in a snapshot that are not forgotten.
    fn read(&mut self, offset: i64, planned: &Self::Snapshot) -> Result<Option<ProducerSnapshot>> {
        let mut read = match planned {
            Some(bytes) => ProducerSnapshot::decode(bytes).ok(),
            None => read(self.directory, offset)?,
        };
        let is_kept = |entry: &ProducerEntry| {
            !is_forgotten(entry, self.now, self.expiration_ms) || self.in_use.contains(&entry.producer_id)
        };
        if let Some(snapshot) = &mut read {
            snapshot.entries.retain(is_kept);
        }
        Ok(read)
    }

    fn take(
        &mut self,
        offset: i64,
        states: &ProducerStates,
        snapshots: &mut BTreeMap<i64, Self::Snapshot>,
    ) -> Result<()> {
        snapshots.insert(offset, Some(states.encode()));
        let mut bytes = 0;
        // the newest first, which always remains
        *snapshots = std::mem::take(snapshots)
            .into_iter()
            .rev()
            .filter(|(other, planned)| {
                bytes += planned.as_ref().map_or(0, Vec::len);
                planned.is_none() || *other == offset || bytes <= MAX_PLANNED_BYTES
            })
            .collect();
        Ok(())
    }

    /// The plan has what remains.
    fn remove(&mut self, _: Self::Snapshot, _: WhyRemoved) {}
}

impl RebuiltSegments<PlannedSnapshots<'_>> for &[Replayed] {
    fn last_bases(&self) -> Vec<i64> {
        self.iter().skip(self.len().saturating_sub(2)).map(|segment| segment.base_offset).collect()
    }

    fn between(&self, offsets: Range<i64>) -> Result<Vec<i64>> {
        let from = self.partition_point(|segment| segment.base_offset <= offsets.start).saturating_sub(1);
        let bases = self.iter().skip(from).map(|segment| segment.base_offset);
        Ok(bases.take_while(|base_offset| *base_offset < offsets.end).collect())
    }

    fn add(
        &mut self,
        _: &mut PlannedSnapshots<'_>,
        producers: &mut ProducerReplay,
        base_offset: i64,
        offsets: Range<i64>,
    ) -> Result<()> {
        let mut segments = self.iter().filter(|segment| segment.base_offset == base_offset);
        segments.try_for_each(|segment| segment.load(producers, offsets.start, offsets.end))
    }
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
        let rebuilt = RebuiltProducers::new(present.iter().map(|offset| (*offset, None)).collect());
        let store = PlannedSnapshots { directory, expiration_ms, now, in_use: HashSet::new() };
        Ok(Self { segments, log_start_offset, store, present, rebuilt })
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
        let present = producers.snapshots.clone();
        let mut rebuilt = RebuiltProducers::new(present.iter().map(|offset| (*offset, None)).collect());
        rebuilt.leaves_out = !producers.states.is_empty();
        (rebuilt.map_end, rebuilt.last_snapshot) = (log_end_offset, producers.last_snapshot);
        let store = PlannedSnapshots { directory, expiration_ms: producers.expiration_ms, now, in_use };
        Self { segments, log_start_offset, store, present, rebuilt }
    }

    /// Reads a segment whose batches may not match its snapshots, and returns the bytes of its transaction
    /// index. A snapshot at its end is planned.
    ///
    /// *Source*: `LogLoader.recoverSegment`.
    pub(in crate::writer) fn recover_segment(&mut self, recovered: &Replayed) -> Result<Vec<u8>> {
        self.restart();
        self.rebuild(recovered.base_offset, false)?;
        let (end, transaction_index) = recovered.recover(&mut self.rebuilt.producers)?;
        self.rebuilt.map_end = end.unwrap_or(self.rebuilt.map_end);
        self.rebuilt.take(&mut self.store)?;
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
        self.rebuilt.remove_strays(&mut self.store, bases);
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
        kept::restore(&mut self.rebuilt.producers.states, self.store.directory, end_offset)?;
        Ok(self.plan())
    }

    fn plan(self) -> ProducerPlan {
        let RebuiltProducers { producers, snapshots, last_snapshot, .. } = self.rebuilt;
        let offsets: BTreeSet<i64> = snapshots.keys().copied().collect();
        let written = snapshots.into_iter().filter_map(|(offset, bytes)| Some((offset, bytes?)));
        ProducerPlan {
            states: producers.states,
            removed: self.present.difference(&offsets).copied().collect(),
            written: written.collect(),
            snapshots: offsets,
            last_snapshot,
            expiration_ms: self.store.expiration_ms,
            now: self.store.now,
        }
    }

    /// As a new `ProducerStateManager`, which knows only the snapshots.
    fn restart(&mut self) {
        self.rebuilt = RebuiltProducers::new(std::mem::take(&mut self.rebuilt.snapshots));
    }

    fn rebuild(&mut self, end_offset: i64, closed_cleanly: bool) -> Result<()> {
        let offsets = self.log_start_offset..end_offset;
        self.rebuilt.rebuild(&mut self.store, &mut self.segments, offsets, closed_cleanly)
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
