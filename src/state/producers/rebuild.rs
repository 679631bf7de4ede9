//! The producers of a log at an offset, from the latest valid snapshot and the batches after it; and which
//! snapshots are taken and removed meanwhile. Kafka: `ProducerStateManager`,
//! `UnifiedLog.rebuildProducerState`.
//!
//! ```text
//!   snapshots outside (log start, end]     are removed, and so are invalid ones above the one that is loaded
//!   a snapshot                             is taken at the last two segments and at the end, if the last one is older
//! ```

use std::collections::BTreeMap;
use std::ops::Range;

use super::{ProducerReplay, ProducerSnapshot, ProducerStates};

/// The snapshots of a log: those of a directory, or as they are planned or simulated.
pub(crate) trait SnapshotStore {
    /// A snapshot in the store.
    type Snapshot;
    type Error;

    /// The producers in a snapshot; `None` if it is not valid.
    fn read(
        &mut self,
        offset: i64,
        snapshot: &Self::Snapshot,
    ) -> Result<Option<ProducerSnapshot>, Self::Error>;

    /// Takes a snapshot, and adds it to `snapshots`.
    fn take(
        &mut self,
        offset: i64,
        states: &ProducerStates,
        snapshots: &mut BTreeMap<i64, Self::Snapshot>,
    ) -> Result<(), Self::Error>;

    /// Removes a snapshot.
    fn remove(&mut self, snapshot: Self::Snapshot, why: WhyRemoved);
}

/// Why a snapshot is removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WhyRemoved {
    /// It is at or below the log start, or above the end.
    OutOfRange,
    /// It is not valid.
    Invalid,
    /// It belongs to no segment.
    Stray,
}

/// The segments of a log whose producers are rebuilt.
pub(crate) trait RebuiltSegments<S: SnapshotStore> {
    /// The base offsets of the last two segments, ascending.
    fn last_bases(&self) -> Vec<i64>;

    /// The base offsets of the segments from the one with `offsets.start` up to below `offsets.end`,
    /// ascending.
    fn between(&self, offsets: Range<i64>) -> Result<Vec<i64>, S::Error>;

    /// Adds the batches of a segment that end in `offsets`.
    fn add(
        &mut self,
        store: &mut S,
        producers: &mut ProducerReplay,
        base_offset: i64,
        offsets: Range<i64>,
    ) -> Result<(), S::Error>;
}

/// The producers up to an offset, and the snapshots.
#[derive(Debug)]
pub(crate) struct RebuiltProducers<S> {
    pub(crate) producers: ProducerReplay,
    /// Whether the log has producers that `producers` leaves out: they have to be loaded again.
    pub(crate) leaves_out: bool,
    /// By their offsets.
    pub(crate) snapshots: BTreeMap<i64, S>,
    /// The offset up to which the producers are known.
    pub(crate) map_end: i64,
    /// No snapshot is taken at or below this offset.
    pub(crate) last_snapshot: i64,
}

impl<S> RebuiltProducers<S> {
    /// No producers, in a log with these snapshots.
    pub(crate) fn new(snapshots: BTreeMap<i64, S>) -> Self {
        Self {
            producers: ProducerReplay::default(),
            leaves_out: false,
            snapshots,
            map_end: 0,
            last_snapshot: 0,
        }
    }

    /// Takes a snapshot, unless the last one is as new.
    ///
    /// *Source*: `ProducerStateManager.takeSnapshot`.
    pub(crate) fn take<T: SnapshotStore<Snapshot = S>>(&mut self, store: &mut T) -> Result<(), T::Error> {
        if self.map_end > self.last_snapshot {
            store.take(self.map_end, &self.producers.states, &mut self.snapshots)?;
            self.last_snapshot = self.map_end;
        }
        Ok(())
    }

    /// Removes the snapshots that belong to no segment, but for the latest of them if no segment begins above
    /// it: a close took it.
    ///
    /// *Source*: `ProducerStateManager.removeStraySnapshots`.
    pub(crate) fn remove_strays<T: SnapshotStore<Snapshot = S>>(&mut self, store: &mut T, bases: &[i64]) {
        let is_stray = |offset: &i64| !bases.contains(offset);
        let latest = self.snapshots.keys().copied().rfind(is_stray);
        let kept = latest.filter(|latest| bases.last().is_none_or(|last| latest >= last));
        self.remove_if(store, |offset| is_stray(&offset) && Some(offset) != kept, WhyRemoved::Stray);
    }

    /// Brings the producers to `offsets.end`, in a log that starts at `offsets.start`.
    ///
    /// *Source*: `UnifiedLog.rebuildProducerState`.
    pub(crate) fn rebuild<T: SnapshotStore<Snapshot = S>>(
        &mut self,
        store: &mut T,
        segments: &mut impl RebuiltSegments<T>,
        offsets: Range<i64>,
        was_closed_cleanly: bool,
    ) -> Result<(), T::Error> {
        let last_bases = segments.last_bases();
        let (start, end) = (offsets.start, offsets.end);
        if self.snapshots.is_empty() && was_closed_cleanly {
            // a close takes a snapshot unless nothing was written since the log began: there is no producer
            for offset in last_bases.into_iter().chain([end]) {
                self.map_end = offset;
                self.take(store)?;
            }
            return Ok(());
        }
        let was_empty = self.producers.states.is_empty() && !self.leaves_out && self.map_end >= end;
        self.truncate_and_reload(store, offsets)?;
        if end > self.map_end && !was_empty {
            for base_offset in segments.between(self.map_end..end)? {
                self.map_end = base_offset.max(self.map_end).max(start);
                if last_bases.contains(&base_offset) {
                    self.take(store)?;
                }
                segments.add(store, &mut self.producers, base_offset, self.map_end..end)?;
            }
        }
        self.map_end = end;
        self.take(store)
    }

    /// *Source*: `ProducerStateManager.truncateAndReload`.
    fn truncate_and_reload<T: SnapshotStore<Snapshot = S>>(
        &mut self,
        store: &mut T,
        offsets: Range<i64>,
    ) -> Result<(), T::Error> {
        let (start, end) = (offsets.start, offsets.end);
        self.remove_if(store, |offset| offset > end || offset <= start, WhyRemoved::OutOfRange);
        if end != self.map_end {
            return self.load(store, start);
        }
        self.map_end = self.map_end.max(start);
        self.last_snapshot = self.snapshots.last_key_value().map_or(start, |(offset, _)| *offset);
        Ok(())
    }

    /// Loads the latest valid snapshot; those after it do not remain.
    ///
    /// *Source*: `ProducerStateManager.loadFromSnapshot`.
    fn load<T: SnapshotStore<Snapshot = S>>(&mut self, store: &mut T, start: i64) -> Result<(), T::Error> {
        self.producers.states.clear();
        self.leaves_out = false;
        (self.map_end, self.last_snapshot) = (start, start);
        while let Some(latest) = self.snapshots.last_entry() {
            let offset = *latest.key();
            if let Some(snapshot) = store.read(offset, latest.get())? {
                self.producers.states.reload_if(snapshot, |_| true);
                (self.map_end, self.last_snapshot) = (offset, offset);
                break;
            }
            store.remove(latest.remove(), WhyRemoved::Invalid);
        }
        Ok(())
    }

    fn remove_if<T: SnapshotStore<Snapshot = S>>(
        &mut self,
        store: &mut T,
        is_removed: impl Fn(i64) -> bool,
        why: WhyRemoved,
    ) {
        for snapshot in self.snapshots.extract_if(.., |offset, _| is_removed(*offset)) {
            store.remove(snapshot.1, why);
        }
    }
}
