//! Removal of every record; the log continues, empty, at a given offset. Each step is durable before the
//! next: after a crash the next open finds the old log or an empty one.

use super::partition::Partition;
use super::producers::{self, NamedProducers};
use super::recovery::remove_newest_first;
use crate::error::{Error, Result};
use crate::fs::Staged;
use crate::segment::{SegmentAppender, SegmentState, StagedSegment, close_deleted_files};
use crate::state::checkpoint::Checkpoint;
use crate::state::data_directory::StagedLines;
use crate::state::leader_epochs::LeaderEpochs;
use crate::state::{truncation_count, truncation_gaps};

/// The staged files of the removal.
struct StagedRestart {
    /// The checkpoint while the old segments are removed, and the one after that.
    during: Staged,
    after: Staged,
    epochs: Staged,
    segment: StagedSegment,
    /// Staged last: other writers of the data directory wait until they are in place.
    lines: Option<StagedLines>,
}

impl Partition {
    /// Removes every record, so that the log starts and ends at `offset`.
    ///
    /// *Source*: `UnifiedLog.truncateFullyAndStartAt`.
    pub(super) fn truncate_fully_and_start_at(&mut self, offset: i64) -> Result<()> {
        self.start_again_at(offset, NamedProducers::Forgotten)
    }

    /// Removes every record, in a log that starts above `offset`, at which it starts and ends then. The
    /// sequences of the records that were deleted from the start stay, unless `offset` is 0.
    ///
    /// *Source*: `UnifiedLog.truncateTo`, of an offset below the log start offset.
    pub(super) fn truncate_below_start(&mut self, offset: i64) -> Result<()> {
        let start = self.ends.log_start_offset();
        let kept = producers::keep_below(&self.directory, self.producers.named_below(start), start, offset);
        self.ends.commit().or_poison_after_sync(kept)?;
        self.start_again_at(offset, NamedProducers::Kept)
    }

    fn start_again_at(&mut self, offset: i64, named: NamedProducers) -> Result<()> {
        if !(0..i64::MAX).contains(&offset) {
            return Err(Error::config("offset", "an offset from 0 to 2^63 - 2", offset.to_string()));
        }
        let staged = self.stage_restart(offset, named);
        let staged = self.ends.commit().or_poison_unless_full(staged)?;
        let restarted = self.restart(offset, named, staged);
        self.ends.commit().or_poison(restarted)
    }

    /// The steps that need disk space, and the increment of the truncation count. If the disk is full, the
    /// log is unchanged.
    fn stage_restart(&mut self, offset: i64, named: NamedProducers) -> Result<StagedRestart> {
        let checkpoint =
            Checkpoint { recovery_point: offset, log_start_offset: offset, ..Checkpoint::default() };
        // deleted records must stay hidden while their files exist
        let during = Checkpoint {
            log_start_offset: offset.max(self.ends.log_start_offset()),
            starting_at: Some(offset),
            ended_at: Some(self.ends.log_end_offset()),
            keeps_producers: named == NamedProducers::Kept,
            ..checkpoint
        };
        self.cleaner_checkpoint().lower(offset)?;
        let staged = StagedRestart {
            during: during.stage(&self.directory)?,
            after: checkpoint.stage_next(&self.directory)?,
            epochs: self.stage_epochs(&LeaderEpochs::default())?,
            segment: StagedSegment::make(&self.directory, offset, &Self::layout(&self.config))?,
            // a reader takes the larger log start offset, so that of `during` is in effect until `after` is
            // in place
            lines: self.stage_lines(checkpoint)?,
        };
        truncation_gaps::note(&self.directory, None)?;
        truncation_count::increment(&self.directory)?;
        Ok(staged)
    }

    fn restart(&mut self, offset: i64, named: NamedProducers, staged: StagedRestart) -> Result<()> {
        self.truncations += 1;
        self.ends.begin_restart(offset);
        self.live.withdraw();
        // once `during` is in place, the next open completes an interrupted removal
        self.durable_offset_file.set(0)?;
        staged.during.put()?;
        staged.lines.map_or(Ok(()), StagedLines::put)?;
        self.epochs.clear();
        staged.epochs.put()?;
        self.producers.restart(&self.directory, offset, named)?;
        let mut old: Vec<_> = std::mem::take(&mut self.sealed).into_iter().collect();
        old.push(self.active.base_offset());
        // the new segment may exist together with the old ones only if its offsets are above theirs
        let is_ahead = offset > self.active.base_offset() && offset >= self.ends.log_end_offset();
        if is_ahead {
            // zeros after the data count as damage, except in the last segment
            self.active.trim_log()?;
        } else {
            remove_newest_first(&self.directory, old.split_off(1).into_iter().rev())?;
        }
        staged.segment.put()?;
        self.directory.sync()?;
        let (now, jitter) = ((self.clock)(), self.jitter());
        let (state, layout) = (SegmentState::empty(offset), Self::layout(&self.config));
        self.active = SegmentAppender::open(&self.directory, offset, state, &layout, now, jitter)?;
        // last, so that a reader that opens the log during the removal finds a segment
        remove_newest_first(
            &self.directory,
            old.into_iter().rev().filter(|base_offset| *base_offset != offset),
        )?;
        self.durable_offset_file.set(offset)?;
        self.ends.restart(offset);
        staged.after.put()?;
        close_deleted_files(&self.directory);
        self.publish_segments();
        truncation_count::increment(&self.directory)
    }
}
