//! How a log gets shorter, from either end. Each step is durable before the next, so that what a crash leaves is a log.

use std::io::ErrorKind;

use super::GroupCommit;
use super::partition::Partition;
use super::recovery::{self, remove_newest_first};
use crate::error::{Error, Result};
use crate::fs::Staged;
use crate::fs::names::{FileKind, SegmentFileName, Stage, segment_file};
use crate::fs::seeded_bugs::{self, SeededBug};
use crate::log::{Log, LogOptions};
use crate::segment::{SegmentAppender, TRUNCATIONS, remove_segment};
use crate::state::checkpoint::Checkpoint;
use crate::state::data_directory::StagedLines;
use crate::state::leader_epochs::LeaderEpochs;
use crate::types::Io;

impl Partition {
    /// The log as a reader finds it now, from its first segment on.
    fn as_read(&self) -> Result<Log> {
        let first = self.sealed.first().copied().unwrap_or(self.active.base_offset());
        let options = LogOptions { io: Io::Pread, log_start_offset: Some(first), ..LogOptions::default() };
        Log::open_in(self.directory.clone(), options)
    }

    /// Removes every batch that reaches to `offset` or beyond; the log ends at `offset` then. False where it ended there
    /// or before already.
    ///
    /// The recovery point and the history of epochs are lowered first, then the newest segments go first, then the rest is
    /// cut: a crash leaves a prefix of the log.
    ///
    /// *Source*: `UnifiedLog.truncateTo`, `LocalLog.truncateTo`, `LogSegment.truncateTo`.
    pub(super) fn truncate_to(&mut self, offset: i64, commit: &GroupCommit) -> Result<bool> {
        refuse_negative(offset)?;
        if offset >= self.log_end_offset {
            return Ok(false);
        }
        if offset < self.log_start_offset {
            // nothing stays, and a crash amid a cut would bring back what was deleted before
            self.truncate_fully_and_start_at(offset, commit)?;
            return Ok(true);
        }
        let log = self.as_read()?;
        let target = self.floor(offset);
        // behind the last batch there is nothing to be found, nor to be cut
        let location = if offset < self.data_end { log.locate(offset)? } else { None };
        let held = log.segments().floor(offset).map_or(Ok(0), |segment| segment.size())?;
        let size = match location {
            Some(location) if location.segment_base_offset == target => location.position,
            // a gap up to the segment's end: all of it stays
            _ if target == self.active.base_offset() => self.active.size(),
            _ => held,
        };
        drop(log);
        let staged = self
            .stage_cut(offset, target, size)
            .and_then(|staged| self.bump_truncation_count().map(|()| staged));
        let staged = staged.inspect_err(|error| poison_unless_full(commit, error))?;
        self.cut(offset, target, size, staged, commit).inspect_err(|error| commit.poison(error))?;
        Ok(true)
    }

    /// What needs space of a truncation. Where the disk has none, the log is as it was; only recovery would begin earlier.
    fn stage_cut(&mut self, offset: i64, target: i64, size: u64) -> Result<StagedCut> {
        if seeded_bugs::is(SeededBug::SwappedDeleteOrder) {
            self.directory.open_writable(&segment_file(target, FileKind::Log))?.set_size(size)?;
        }
        self.active.write_index_entries()?;
        let recovery_point = self.checkpoint.recovery_point.min(target);
        self.write_checkpoint(Checkpoint { recovery_point, ..self.checkpoint })?;
        let mut epochs = self.epochs.clone();
        let epochs =
            if epochs.truncate_from_end(offset) { Some((self.stage_epochs(&epochs)?, epochs)) } else { None };
        let segment =
            if target == self.active.base_offset() { Vec::new() } else { self.stage_sealed(target, size)? };
        Ok(StagedCut { epochs, segment })
    }

    /// Copies what stays of a segment that is not written any more. Readers may have mapped its files, and a mapping of a
    /// file that is cut ends their process.
    fn stage_sealed(&self, base_offset: i64, size: u64) -> Result<Vec<Staged>> {
        let mut staged = vec![self.directory.stage_start(&segment_file(base_offset, FileKind::Log), size)?];
        // to be truncated, too
        for kind in [FileKind::OffsetIndex, FileKind::TimeIndex] {
            let name = segment_file(base_offset, kind);
            if let Some(index) = self.directory.identity_of(&name)? {
                staged.push(self.directory.stage_start(&name, index.size)?);
            }
        }
        Ok(staged)
    }

    /// The base offset of the segment that would hold an offset.
    fn floor(&self, offset: i64) -> i64 {
        if offset >= self.active.base_offset() {
            return self.active.base_offset();
        }
        self.sealed.range(..=offset).next_back().copied().unwrap_or(0)
    }

    /// Tells those who have the log open that what they opened is about to change, and then, for those who opened it
    /// meanwhile, that it has.
    pub(super) fn bump_truncation_count(&self) -> Result<()> {
        let file = self.directory.open_writable(TRUNCATIONS)?;
        let end = file.identity()?.size;
        // and the one after the change must find room: in the same block, as a rule
        file.reserve(end, 2);
        // only the length counts: a zero is what is left of a byte that was lost
        file.write_all_at(&[0], end)
    }

    /// `size`: of what stays of the target's `.log`.
    fn cut(
        &mut self,
        offset: i64,
        target: i64,
        size: u64,
        staged: StagedCut,
        commit: &GroupCommit,
    ) -> Result<()> {
        self.truncations += 1;
        commit.truncated(offset);
        self.live.withdraw();
        // where the batch before the cut ends is known once it is done
        self.durable_offset_file.set(target.min(commit.durable()))?;
        if let Some((staged, epochs)) = staged.epochs {
            self.epochs = epochs;
            staged.put()?;
        }
        self.remove_snapshots_above(offset)?;
        let newer = self.sealed.split_off(&target);
        let newest_first = [self.active.base_offset()].into_iter().chain(newer.into_iter().rev());
        remove_newest_first(&self.directory, newest_first.filter(|base_offset| *base_offset > target))?;
        if target == self.active.base_offset() {
            self.active.log().set_size(size)?;
            self.active.log().sync()?;
        }
        staged.segment.into_iter().try_for_each(Staged::put)?;
        let layout = Self::layout(&self.config);
        self.active.truncate_indexes(&self.directory, target, offset, &layout)?;
        // the reader looks at what is there now
        let log = self.as_read()?;
        let last = log.segments().last();
        let last = last.ok_or_else(|| Error::config("path", "a directory with a segment", "none"))?;
        let held = recovery::held(last)?;
        self.data_end = last.end_offset()?;
        let before = self.active.roll_state();
        let (created, jitter) = if target == before.base_offset && held.size > 0 {
            (before.created, before.jitter_ms)
        } else {
            ((self.clock)(), self.jitter())
        };
        self.active = SegmentAppender::open(&self.directory, target, held, &layout, created, jitter)?;
        self.log_end_offset = offset;
        self.durable_offset_file.set(self.data_end)?;
        commit.synced(offset);
        self.publish_segments();
        self.bump_truncation_count()
    }

    /// Lets the log start at `offset`: records below are gone, and segments of which none is left are deleted, oldest
    /// first. False where it started there or above already.
    ///
    /// *Source*: `UnifiedLog.maybeIncrementLogStartOffset`, `deleteOldSegments`.
    pub(super) fn delete_before(&mut self, offset: i64, commit: &GroupCommit) -> Result<bool> {
        refuse_negative(offset)?;
        if offset > self.log_end_offset {
            return Err(self.out_of_range(offset));
        }
        if offset <= self.log_start_offset {
            return Ok(false);
        }
        if offset > commit.durable() {
            // the log must not end below its start after a crash
            self.sync(commit)?;
        }
        let epochs = self.stage_start(offset).inspect_err(|error| poison_unless_full(commit, error))?;
        self.advance(offset, epochs).inspect_err(|error| commit.poison(error))?;
        Ok(true)
    }

    /// What needs space of a new log start: the history of epochs, where it changes, and the checkpoint, which is in force
    /// then. Where the disk has none, the log is as it was.
    fn stage_start(&mut self, offset: i64) -> Result<Option<(Staged, LeaderEpochs)>> {
        let mut epochs = self.epochs.clone();
        let is_changed = epochs.truncate_from_start(offset);
        let staged = if is_changed { Some((self.stage_epochs(&epochs)?, epochs)) } else { None };
        self.write_checkpoint(Checkpoint { log_start_offset: offset, ..self.checkpoint })?;
        Ok(staged)
    }

    fn advance(&mut self, offset: i64, epochs: Option<(Staged, LeaderEpochs)>) -> Result<()> {
        self.log_start_offset = offset;
        if let Some((staged, epochs)) = epochs {
            self.epochs = epochs;
            staged.put()?;
        }
        self.remove_passed()
    }

    /// Deletes the segments that hold nothing at or above the log start, oldest first.
    pub(super) fn remove_passed(&mut self) -> Result<()> {
        let bases = self.bases();
        let is_passed = |next: &i64| *next <= self.log_start_offset;
        let passed = bases.iter().skip(1).take_while(|next| is_passed(next)).count();
        let (passed, kept) = bases.split_at(passed);
        if !passed.is_empty() {
            self.live.set(kept.to_vec());
        }
        for base_offset in passed {
            remove_segment(&self.directory, *base_offset)?;
            self.sealed.remove(base_offset);
        }
        if !passed.is_empty() && !seeded_bugs::is(SeededBug::NoDirectorySyncOnDelete) {
            self.directory.sync()
        } else {
            Ok(())
        }
    }

    /// Replaces the checkpoint, and the lines of the data directory's that would contradict it. Where the disk has no room,
    /// all of them are as they were.
    pub(super) fn write_checkpoint(&mut self, checkpoint: Checkpoint) -> Result<()> {
        let staged = checkpoint.stage(&self.directory)?;
        let lines = self.stage_lines(checkpoint)?;
        staged.put()?;
        self.checkpoint = checkpoint;
        lines.map_or(Ok(()), StagedLines::put)
    }

    /// Writes what is to replace the data directory's checkpoints.
    pub(super) fn stage_lines(&self, checkpoint: Checkpoint) -> Result<Option<StagedLines>> {
        let data_directory = self.data_directory.as_ref();
        data_directory.map(|data_directory| data_directory.stage_checkpoint(checkpoint)).transpose()
    }

    /// Snapshots of producer state beyond an offset speak of records that are not there.
    pub(super) fn remove_snapshots_above(&self, offset: i64) -> Result<()> {
        let mut is_changed = false;
        for (name, _) in self.directory.entries()? {
            let is_snapshot = SegmentFileName::parse(&name).is_some_and(|parsed| {
                parsed.kind == FileKind::Snapshot
                    && parsed.stage == Stage::Live
                    && parsed.base_offset > offset
            });
            if is_snapshot {
                self.directory.remove(&name)?;
                is_changed = true;
            }
        }
        if is_changed { self.directory.sync() } else { Ok(()) }
    }
}

/// The files of a truncation, which wait for their names.
struct StagedCut {
    epochs: Option<(Staged, LeaderEpochs)>,
    /// Of a target that is not the active segment.
    segment: Vec<Staged>,
}

/// What failed before anything had changed need not end the writer, where all it needs is space.
pub(super) fn poison_unless_full(commit: &GroupCommit, error: &Error) {
    const FULL: [ErrorKind; 3] = [ErrorKind::StorageFull, ErrorKind::QuotaExceeded, ErrorKind::FileTooLarge];
    if !matches!(error, Error::Io { source, .. } if FULL.contains(&source.kind())) {
        commit.poison(error);
    }
}

fn refuse_negative(offset: i64) -> Result<()> {
    if offset < 0 {
        return Err(Error::config("offset", "an offset, 0 or above", offset.to_string()));
    }
    Ok(())
}
