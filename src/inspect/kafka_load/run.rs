//! The state of a simulated load: the files, the segments, the epochs, and what was done so far.

use std::collections::BTreeMap;

use super::action::{ActionKind, ActionReason, LoadAction};
use super::disk::Disk;
use super::epochs::Epochs;
use super::exception::{ExceptionKind, Step, Thrown};
use super::segment::Segment;
use super::snapshots;
use crate::config::LogConfig;
use crate::error::Result;
use crate::state::leader_epochs::LEADER_EPOCH_CHECKPOINT;
use crate::types::Interrupt;

/// What all steps share.
#[derive(Debug)]
pub(super) struct Run<'a> {
    pub(super) disk: Disk,
    pub(super) config: &'a LogConfig,
    pub(super) epochs: Epochs,
    pub(super) interrupt: Interrupt,
    pub(super) actions: Vec<LoadAction>,
    /// Files that are removed after `file.delete.delay.ms`.
    pub(super) deleted_later: Vec<String>,
    /// Why the last recovery of a segment ended, if that was not at the end of the file.
    pub(super) stop_reason: Option<String>,
    /// The base offsets of segments that were cut, and the offsets at which they end now.
    pub(super) cuts: Vec<(i64, i64)>,
}

impl Run<'_> {
    /// Notes what was done to a file, which has its new size by now.
    pub(super) fn act(&mut self, kind: ActionKind, name: &str, reason: ActionReason) -> Result<()> {
        let is_changed = !self.disk.is_unchanged(name)?;
        let old_size = self.disk.before().get(name).copied();
        self.note(kind, name, reason, (old_size, self.disk.size(name)), is_changed);
        Ok(())
    }

    pub(super) fn note(
        &mut self,
        kind: ActionKind,
        name: &str,
        reason: ActionReason,
        (old_size, new_size): (Option<u64>, Option<u64>),
        is_changed: bool,
    ) {
        let file = name.to_owned();
        self.actions.push(LoadAction { kind, file, new_file: None, reason, old_size, new_size, is_changed });
    }

    /// Notes the creation of a `.log`.
    pub(super) fn created(&mut self, name: &str) {
        let size = self.disk.size(name);
        self.note(ActionKind::Create, name, ActionReason::NoSegment, (None, size), true);
    }

    pub(super) fn delete(&mut self, name: &str, reason: ActionReason) {
        let size = self.disk.size(name);
        if self.disk.remove(name) {
            self.note(ActionKind::Delete, name, reason, (size, None), true);
        }
    }

    /// Renames a file to `.deleted`, which is removed later.
    pub(super) fn delete_later(&mut self, name: &str, reason: ActionReason) {
        let size = self.disk.size(name);
        let new_file = format!("{name}.deleted");
        if self.disk.rename(name, &new_file) {
            self.note(ActionKind::DeleteLater, name, reason, (size, None), true);
            self.deleted_later.push(new_file);
        }
    }

    /// Notes that the leader epochs were written.
    pub(super) fn epochs_written(&mut self) -> Result<()> {
        self.act(ActionKind::Write, LEADER_EPOCH_CHECKPOINT, ActionReason::LeaderEpochs)
    }

    pub(super) fn rename(&mut self, name: &str, new_file: String, reason: ActionReason) {
        let size = self.disk.size(name);
        if self.disk.rename(name, &new_file) {
            self.note(ActionKind::Rename, name, reason, (size, size), false);
            if let Some(action) = self.actions.last_mut() {
                action.new_file = Some(new_file);
            }
        }
    }
}

/// The segments by base offset.
///
/// *Source*: `LogSegments`.
#[derive(Debug, Default)]
pub(super) struct Segments(BTreeMap<i64, Segment>);

impl Segments {
    pub(super) fn add(&mut self, segment: Segment) {
        self.0.insert(segment.base_offset, segment);
    }

    pub(super) fn remove(&mut self, base_offset: i64) -> Option<Segment> {
        self.0.remove(&base_offset)
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn bases(&self) -> impl DoubleEndedIterator<Item = i64> {
        self.0.keys().copied()
    }

    pub(super) fn get_mut(&mut self, base_offset: i64) -> Option<&mut Segment> {
        self.0.get_mut(&base_offset)
    }

    pub(super) fn last_mut(&mut self) -> Option<&mut Segment> {
        self.0.last_entry().map(std::collections::btree_map::OccupiedEntry::into_mut)
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Segment> {
        self.0.values_mut()
    }

    /// The base offset of the segment with an offset.
    pub(super) fn floor(&self, offset: i64) -> Option<i64> {
        self.0.range(..=offset).next_back().map(|(base, _)| *base)
    }

    /// The base offsets from the segment with `from` up to below `to`.
    ///
    /// *Source*: `LogSegments.values`.
    pub(super) fn between(&self, from: i64, to: i64) -> Step<Vec<i64>> {
        if from == to {
            return Ok(Vec::new());
        }
        if to < from {
            return Err(snapshots::reversed(from, to));
        }
        let first = self.floor(from).unwrap_or(i64::MIN);
        // a floor at or above `to` does not exist: it is at or below `from`
        Ok(self.0.range(first..to).map(|(base, _)| *base).collect())
    }
}

/// The number before the first dot of a name, as Java parses it.
///
/// *Source*: `LogFileUtils.offsetFromFileName`.
pub(super) fn offset_in(name: &str) -> Step<i64> {
    let digits = name.split('.').next().unwrap_or_default();
    digits.parse().map_err(|_| {
        let reason = format!("the name must begin with an offset, found {digits:?}");
        Thrown::kafka(ExceptionKind::NumberFormat, name, reason)
    })
}
