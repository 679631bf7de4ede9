//! How a log gets shorter, from either end. Each step is durable before the next, so that what a crash leaves is a log.

use std::io::ErrorKind;

use super::Commit;
use super::checkpoint::Checkpoint;
use super::partition::Partition;
use super::scan;
use crate::error::{Error, Result};
use crate::fs::Directory;
use crate::fs::names::{FileKind, SegmentFileName, Stage, segment_file};
use crate::fs::planted::{self, Planted};
use crate::log::{Log, LogOptions};
use crate::segment::{SegmentAppender, TRUNCATIONS, remove_segment};
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
    pub(super) fn truncate_to(&mut self, offset: i64, commit: &Commit) -> Result<bool> {
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
            Some(location) if location.segment == target => location.position,
            // a gap up to the segment's end: all of it stays
            _ if target == self.active.base_offset() => self.active.size(),
            _ => held,
        };
        drop(log);
        self.cut(offset, target, size, commit).inspect_err(|error| commit.poison(error))?;
        Ok(true)
    }

    /// Cuts a segment that is not written any more. Readers may have mapped its files, and a mapping of a file that is cut
    /// ends their process.
    fn replace_sealed(&self, base_offset: i64, size: u64) -> Result<()> {
        self.directory.replace_by_start(&segment_file(base_offset, FileKind::Log), size)?;
        // to be truncated, too
        for kind in [FileKind::OffsetIndex, FileKind::TimeIndex] {
            let name = segment_file(base_offset, kind);
            if let Some(index) = self.directory.identity_of(&name)? {
                self.directory.replace_by_start(&name, index.size)?;
            }
        }
        Ok(())
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
    pub(super) fn announce(&self) -> Result<()> {
        let file = self.directory.open_writable(TRUNCATIONS)?;
        // only the length counts: a zero is what is left of a byte that was lost
        file.write_all_at(&[0], file.identity()?.size)
    }

    /// `size`: of what stays of the target's `.log`.
    fn cut(&mut self, offset: i64, target: i64, size: u64, commit: &Commit) -> Result<()> {
        self.truncations += 1;
        commit.truncated(offset);
        self.announce()?;
        let file = self.directory.open_writable(&segment_file(target, FileKind::Log))?;
        if planted::is(Planted::SwappedDeleteOrder) {
            file.set_size(size)?;
        }
        // where the batch before the cut ends is known once it is done
        self.watermark.set(target.min(commit.durable()))?;
        let recovery_point = self.checkpoint.recovery_point.min(target);
        self.write_checkpoint(Checkpoint { recovery_point, ..self.checkpoint })?;
        if self.epochs.truncate_from_end(offset) {
            self.write_epochs()?;
        }
        self.remove_snapshots_above(offset)?;
        let newer = self.sealed.split_off(&target);
        let newest_first = [self.active.base_offset()].into_iter().chain(newer.into_iter().rev());
        remove_newest_first(&self.directory, newest_first.filter(|base_offset| *base_offset > target))?;
        if target == self.active.base_offset() {
            file.set_size(size)?;
            file.sync()?;
        } else {
            self.replace_sealed(target, size)?;
        }
        let layout = Self::layout(&self.config);
        self.active.truncate_indexes(&self.directory, target, offset, &layout)?;
        // the reader looks at what is there now
        let log = self.as_read()?;
        let last = log.segments().last();
        let last = last.ok_or_else(|| Error::config("path", "a directory with a segment", "none"))?;
        let held = scan::held(last)?;
        self.data_end = last.end_offset()?;
        let before = self.active.roll_state();
        let (created, jitter) = if target == before.base_offset && held.size > 0 {
            (before.created, before.jitter_ms)
        } else {
            ((self.clock)(), self.jitter())
        };
        self.active = SegmentAppender::open(&self.directory, target, held, &layout, created, jitter)?;
        self.log_end_offset = offset;
        self.watermark.set(self.data_end)?;
        commit.synced(offset);
        self.announce()
    }

    /// Removes every record; the log starts and ends at `offset` then.
    ///
    /// *Source*: `UnifiedLog.truncateFullyAndStartAt`.
    pub(super) fn truncate_fully_and_start_at(&mut self, offset: i64, commit: &Commit) -> Result<()> {
        if !(0..i64::MAX).contains(&offset) {
            return Err(Error::config("offset", "an offset from 0 to 2^63 - 2", offset.to_string()));
        }
        self.restart(offset, commit).inspect_err(|error| commit.poison(error))
    }

    fn restart(&mut self, offset: i64, commit: &Commit) -> Result<()> {
        self.truncations += 1;
        commit.truncated(offset.min(commit.durable()));
        self.announce()?;
        // from here on whoever opens the log goes on with this
        self.watermark.set(0)?;
        let checkpoint =
            Checkpoint { recovery_point: offset, log_start_offset: offset, ..Checkpoint::default() };
        // what was deleted is not to be seen while its files are still there
        let log_start_offset = offset.max(self.log_start_offset);
        let (starting_at, ended_at) = (Some(offset), Some(self.log_end_offset));
        self.write_checkpoint(Checkpoint { log_start_offset, starting_at, ended_at, ..checkpoint })?;
        self.epochs.clear();
        self.write_epochs()?;
        self.remove_snapshots_above(-1)?;
        let mut old: Vec<_> = std::mem::take(&mut self.sealed).into_iter().collect();
        old.push(self.active.base_offset());
        // else it would lie in the middle of what is to go
        let is_ahead = offset > self.active.base_offset() && offset >= self.log_end_offset;
        if is_ahead {
            // zeros behind the data of a segment before the last one would be damage
            self.active.trim_log()?;
        } else {
            remove_newest_first(&self.directory, old.split_off(1).into_iter().rev())?;
        }
        let (now, jitter) = ((self.clock)(), self.jitter());
        let make = if old == [offset] { SegmentAppender::replace } else { SegmentAppender::create };
        self.active = make(&self.directory, offset, &Self::layout(&self.config), now, jitter)?;
        self.directory.sync()?;
        // last, so that who opens the log meanwhile finds one
        remove_newest_first(
            &self.directory,
            old.into_iter().rev().filter(|base_offset| *base_offset != offset),
        )?;
        self.log_start_offset = offset;
        self.log_end_offset = offset;
        self.data_end = offset;
        self.watermark.set(offset)?;
        commit.synced(offset);
        self.write_checkpoint(checkpoint)?;
        self.announce()
    }

    /// Lets the log start at `offset`: records below are gone, and segments of which none is left are deleted, oldest
    /// first. False where it started there or above already.
    ///
    /// *Source*: `UnifiedLog.maybeIncrementLogStartOffset`, `deleteOldSegments`.
    pub(super) fn delete_before(&mut self, offset: i64, commit: &Commit) -> Result<bool> {
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
        let before = self.checkpoint;
        self.advance(offset).inspect_err(|error| {
            // where there was no room to note the new start, nothing has begun
            let is_full =
                matches!(error, Error::Io { source, .. } if source.kind() == ErrorKind::StorageFull);
            if !(is_full && matches!(Checkpoint::read(&self.directory), Ok(Some(held)) if held == before)) {
                commit.poison(error);
            }
        })?;
        Ok(true)
    }

    fn advance(&mut self, offset: i64) -> Result<()> {
        self.write_checkpoint(Checkpoint { log_start_offset: offset, ..self.checkpoint })?;
        self.log_start_offset = offset;
        if self.epochs.truncate_from_start(offset) {
            self.write_epochs()?;
        }
        self.remove_passed()
    }

    /// Deletes the segments that hold nothing at or above the log start, oldest first.
    pub(super) fn remove_passed(&mut self) -> Result<()> {
        let bases: Vec<_> = self.sealed.iter().copied().chain([self.active.base_offset()]).collect();
        let mut is_changed = false;
        for (base_offset, next) in bases.iter().zip(bases.iter().skip(1)) {
            if *next <= self.log_start_offset {
                remove_segment(&self.directory, *base_offset)?;
                self.sealed.remove(base_offset);
                is_changed = true;
            }
        }
        if is_changed && !planted::is(Planted::NoDirectorySyncOnDelete) {
            self.directory.sync()
        } else {
            Ok(())
        }
    }

    /// Replaces the checkpoint, and the lines of the data directory's that would contradict it.
    pub(super) fn write_checkpoint(&mut self, checkpoint: Checkpoint) -> Result<()> {
        checkpoint.write(&self.directory)?;
        if let Some(data_directory) = &self.data_directory {
            data_directory.write_recovery_point(checkpoint.recovery_point)?;
            data_directory.write_log_start_offset(checkpoint.log_start_offset)?;
        }
        self.checkpoint = checkpoint;
        Ok(())
    }

    /// Snapshots of producer state beyond an offset speak of records that are not there.
    fn remove_snapshots_above(&self, offset: i64) -> Result<()> {
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

/// Removes segments, each durably before the next: whatever a crash leaves has no hole.
pub(super) fn remove_newest_first(
    directory: &Directory,
    newest_first: impl Iterator<Item = i64>,
) -> Result<()> {
    let mut bases: Vec<_> = newest_first.collect();
    if planted::is(Planted::SwappedDeleteOrder) {
        bases.reverse();
    }
    for base_offset in bases {
        remove_segment(directory, base_offset)?;
        if !planted::is(Planted::NoDirectorySyncOnDelete) {
            directory.sync()?;
        }
    }
    Ok(())
}

fn refuse_negative(offset: i64) -> Result<()> {
    if offset < 0 {
        return Err(Error::config("offset", "an offset, 0 or above", offset.to_string()));
    }
    Ok(())
}
