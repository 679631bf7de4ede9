//! How a log is emptied, to begin anew at an offset. Each step is durable before the next, so that what a crash leaves is the
//! log as it was or an empty one, once it is opened again.

use super::GroupCommit;
use super::partition::Partition;
use super::recovery::remove_newest_first;
use super::truncate::poison_unless_full;
use crate::error::{Error, Result};
use crate::fs::Staged;
use crate::segment::{SegmentAppender, SegmentState, StagedSegment};
use crate::state::checkpoint::Checkpoint;
use crate::state::data_directory::StagedLines;
use crate::state::leader_epochs::LeaderEpochs;

/// The files of a log that begins anew, which wait for their names.
struct StagedRestart {
    /// In force while the old segments go, and after that.
    during: Staged,
    after: Staged,
    checkpoint: Checkpoint,
    epochs: Staged,
    segment: StagedSegment,
    /// Last, because others wait for them.
    lines: Option<StagedLines>,
}

impl Partition {
    /// Removes every record; the log starts and ends at `offset` then.
    ///
    /// *Source*: `UnifiedLog.truncateFullyAndStartAt`.
    pub(super) fn truncate_fully_and_start_at(&mut self, offset: i64, commit: &GroupCommit) -> Result<()> {
        if !(0..i64::MAX).contains(&offset) {
            return Err(Error::config("offset", "an offset from 0 to 2^63 - 2", offset.to_string()));
        }
        let staged = self.stage_restart(offset).inspect_err(|error| poison_unless_full(commit, error))?;
        self.restart(offset, staged, commit).inspect_err(|error| commit.poison(error))
    }

    /// What needs space of a new beginning at `offset`, and the announcement of it. Where the disk has none, the log is as it
    /// was.
    fn stage_restart(&mut self, offset: i64) -> Result<StagedRestart> {
        let checkpoint =
            Checkpoint { recovery_point: offset, log_start_offset: offset, ..Checkpoint::default() };
        // what was deleted is not to be seen while its files are still there
        let during = Checkpoint {
            log_start_offset: offset.max(self.log_start_offset),
            starting_at: Some(offset),
            ended_at: Some(self.log_end_offset),
            ..checkpoint
        };
        let staged = StagedRestart {
            during: during.stage(&self.directory)?,
            after: checkpoint.stage_next(&self.directory)?,
            checkpoint,
            epochs: self.stage_epochs(&LeaderEpochs::default())?,
            segment: StagedSegment::make(&self.directory, offset, &Self::layout(&self.config))?,
            // a reader takes the larger log start, so that of `during` holds until `after` is in place
            lines: self.stage_lines(checkpoint)?,
        };
        self.bump_truncation_count()?;
        Ok(staged)
    }

    fn restart(&mut self, offset: i64, staged: StagedRestart, commit: &GroupCommit) -> Result<()> {
        self.truncations += 1;
        commit.truncated(offset.min(commit.durable()));
        self.live.withdraw();
        // from here on the next opening completes this
        self.durable_offset_file.set(0)?;
        staged.during.put()?;
        staged.lines.map_or(Ok(()), StagedLines::put)?;
        self.epochs.clear();
        staged.epochs.put()?;
        self.remove_snapshots_above(-1)?;
        let mut old: Vec<_> = std::mem::take(&mut self.sealed).into_iter().collect();
        old.push(self.active.base_offset());
        // otherwise its offsets would be among those that go
        let is_ahead = offset > self.active.base_offset() && offset >= self.log_end_offset;
        if is_ahead {
            // zeros after the data of a segment that is not the last would be damage
            self.active.trim_log()?;
        } else {
            remove_newest_first(&self.directory, old.split_off(1).into_iter().rev())?;
        }
        staged.segment.put()?;
        self.directory.sync()?;
        let (now, jitter) = ((self.clock)(), self.jitter());
        let (held, layout) = (SegmentState::nothing(offset), Self::layout(&self.config));
        self.active = SegmentAppender::open(&self.directory, offset, held, &layout, now, jitter)?;
        // last, so that a reader that opens the log meanwhile finds a segment
        remove_newest_first(
            &self.directory,
            old.into_iter().rev().filter(|base_offset| *base_offset != offset),
        )?;
        self.log_start_offset = offset;
        self.log_end_offset = offset;
        self.data_end = offset;
        self.durable_offset_file.set(offset)?;
        commit.synced(offset);
        staged.after.put()?;
        self.checkpoint = staged.checkpoint;
        self.publish_segments();
        self.bump_truncation_count()
    }
}
