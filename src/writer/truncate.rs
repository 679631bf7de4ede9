//! Truncation of the end and deletion of the start of a log. Each step is durable before the next: after a
//! crash at any point the files are a valid log.

use super::partition::Partition;
use super::producers::{self, ProducerPlan, Rebuild, Replayed, StagedProducers};
use super::recovery::{self, remove_newest_first};
use crate::error::{Error, Result};
use crate::fs::Staged;
use crate::fs::names::{FileKind, segment_file};
use crate::index::TransactionIndexWriter;
use crate::log::retention::RetentionPlan;
use crate::log::{Log, LogOptions};
use crate::segment::{SegmentAppender, close_deleted_files, remove_segment};
use crate::state::checkpoint::Checkpoint;
use crate::state::data_directory::StagedLines;
use crate::state::leader_epochs::LeaderEpochs;
use crate::state::producers::ProducerEntry;
use crate::state::{truncation_count, truncation_gaps};
use crate::types::Io;

impl Partition {
    /// A reader of all segments of the log, in its present state.
    fn reader(&self) -> Result<Log> {
        let first = self.sealed.first().copied().unwrap_or(self.active.base_offset());
        let options = LogOptions {
            io: Io::Pread,
            log_start_offset: Some(first),
            max_batch_bytes: self.max_batch_bytes,
            ..LogOptions::default()
        };
        Log::open_in(self.directory.clone(), options)
    }

    /// Removes every batch with an offset at or above `offset`, so that the log ends at `offset`. Returns
    /// false if it already ended at or below `offset`.
    ///
    /// First the recovery point and the history of epochs are truncated, then the segments after the one with
    /// `offset` are removed, newest first, and then that segment is cut: a crash leaves a prefix of the
    /// log.
    ///
    /// *Source*: `UnifiedLog.truncateTo`, `LocalLog.truncateTo`, `LogSegment.truncateTo`.
    pub(super) fn truncate_to(&mut self, offset: i64) -> Result<bool> {
        refuse_negative(offset)?;
        if offset >= self.ends.log_end_offset() {
            return Ok(false);
        }
        if offset < self.ends.log_start_offset() {
            // no record remains, and after a crash during a cut, records below the log start offset could
            // reappear
            self.truncate_below_start(offset)?;
            return Ok(true);
        }
        let log = self.reader()?;
        let target = self.floor(offset);
        // after the last batch there is nothing to find or to cut
        let location = if offset < self.ends.data_end() { log.locate(offset)? } else { None };
        let segment_size = log.segments().floor(offset).map_or(Ok(0), |segment| segment.size())?;
        let size = match location {
            Some(location) if location.segment_base_offset == target => location.position,
            // no batch of the segment has an offset at or above `offset`: the segment is not cut
            _ if target == self.active.base_offset() => self.active.size(),
            _ => segment_size,
        };
        let gap_end = Some(offset).filter(|_| location.is_none_or(|found| found.batch_base_offset != offset));
        // the snapshot that they were read from may be one of those that are removed
        let start = self.ends.log_start_offset();
        self.keep_named_producers(self.producers.named_below(start), offset)?;
        let producers = self.producers_as_of(&log, offset)?;
        drop(log);
        // cut later: an entry that cannot be read is an error before the first change
        let name = segment_file(target, FileKind::TransactionIndex);
        let transactions = TransactionIndexWriter::open(&self.directory, &name, target)?;
        transactions.visit(|_, _| Ok(true))?;
        let staged = self
            .stage_cut(offset, target, size, producers)
            .and_then(|staged| truncation_gaps::note(&self.directory, gap_end).map(|()| staged))
            .and_then(|staged| truncation_count::increment(&self.directory).map(|()| staged));
        let staged = self.ends.commit().or_poison_unless_full(staged)?;
        let cut = self.cut(offset, target, size, staged);
        self.ends.commit().or_poison(cut)?;
        Ok(true)
    }

    /// The producers at an offset of the log, to which it is truncated.
    fn producers_as_of(&self, log: &Log, offset: i64) -> Result<ProducerPlan> {
        // one that begins there remains, without batches
        let kept = log.segments().iter().take_while(|segment| segment.base_offset() <= offset);
        let segments = kept.map(Replayed::whole).collect::<Result<Vec<_>>>()?;
        let (start, end) = (self.ends.log_start_offset(), self.ends.log_end_offset());
        let producers = (&self.producers, self.sessions.in_use());
        Rebuild::at_truncation(&self.directory, &segments, start, end, producers, (self.clock)())
            .truncate_to(offset)
    }

    /// The steps of a truncation that need disk space. If the disk is full, the log is unchanged; only the
    /// recovery point may be lower.
    fn stage_cut(
        &mut self,
        offset: i64,
        target: i64,
        size: u64,
        producers: ProducerPlan,
    ) -> Result<StagedCut> {
        self.active.write_index_entries()?;
        self.cleaner_checkpoint().lower(target)?;
        self.write_checkpoint(self.ends.checkpoint_before(target))?;
        let mut epochs = self.epochs.clone();
        let epochs =
            if epochs.truncate_from_end(offset) { Some((self.stage_epochs(&epochs)?, epochs)) } else { None };
        let segment =
            if target == self.active.base_offset() { Vec::new() } else { self.stage_sealed(target, size)? };
        let producers = producers.stage(&self.directory)?;
        Ok(StagedCut { epochs, segment, producers })
    }

    /// Copies the remaining part of a sealed segment. Its files are not cut in place: readers may have mapped
    /// them, and an access beyond the end of a cut file kills their process.
    fn stage_sealed(&self, base_offset: i64, size: u64) -> Result<Vec<Staged>> {
        let mut staged = vec![self.directory.stage_start(&segment_file(base_offset, FileKind::Log), size)?];
        // copied as a whole: they are truncated later
        for kind in [FileKind::OffsetIndex, FileKind::TimeIndex, FileKind::TransactionIndex] {
            let name = segment_file(base_offset, kind);
            if let Some(index) = self.directory.identity_of(&name)? {
                staged.push(self.directory.stage_start(&name, index.size)?);
            }
        }
        Ok(staged)
    }

    /// The base offset of the segment that contains, or would contain, an offset.
    fn floor(&self, offset: i64) -> i64 {
        if offset >= self.active.base_offset() {
            return self.active.base_offset();
        }
        self.sealed.range(..=offset).next_back().copied().unwrap_or(0)
    }

    /// Applies a truncation. `size`: the number of bytes of the target's `.log` that remain.
    fn cut(&mut self, offset: i64, target: i64, size: u64, staged: StagedCut) -> Result<()> {
        self.truncations += 1;
        self.ends.begin_truncation(offset);
        self.live.withdraw();
        // the data end is known only after the cut
        self.durable_offset_file.set(target.min(self.ends.durable_offset()))?;
        if let Some((staged, epochs)) = staged.epochs {
            self.epochs = epochs;
            staged.put()?;
        }
        staged.producers.remove(&self.directory)?;
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
        // a new reader: the files have changed
        let log = self.reader()?;
        let last = log.segments().last();
        let last = last.ok_or_else(|| Error::config("path", "a directory with a segment", "none"))?;
        let state = recovery::closed_state(last)?;
        let data_end = last.end_offset()?;
        let before = self.active.roll_state();
        let (created, jitter) = if target == before.base_offset && state.size > 0 {
            (before.created, before.jitter_ms)
        } else {
            ((self.clock)(), self.jitter())
        };
        self.active = SegmentAppender::open(&self.directory, target, state, &layout, created, jitter)?;
        self.durable_offset_file.set(data_end)?;
        self.producers = staged.producers.put(&self.directory)?;
        self.ends.end_truncation(data_end, offset);
        close_deleted_files(&self.directory);
        self.publish_segments();
        truncation_count::increment(&self.directory)
    }

    /// Moves the log start offset to `offset`, and deletes the segments without records at or above it,
    /// oldest first. Returns false if the log already started at or above `offset`.
    ///
    /// *Source*: `UnifiedLog.maybeIncrementLogStartOffset`, `deleteOldSegments`.
    pub(super) fn delete_before(&mut self, offset: i64) -> Result<bool> {
        refuse_negative(offset)?;
        if offset > self.ends.log_end_offset() {
            return Err(self.out_of_range(offset));
        }
        if offset <= self.ends.log_start_offset() {
            return Ok(false);
        }
        if offset > self.ends.durable_offset() {
            // after a crash the log must not end below its start offset
            self.sync()?;
        }
        let named = self.named_producers_as_of(offset)?;
        if !named.is_empty() {
            self.keep_named_producers(named, offset)?;
        }
        let staged = self.stage_start(offset);
        let epochs = self.ends.commit().or_poison_unless_full(staged)?;
        let advanced = self.advance_start(epochs);
        self.ends.commit().or_poison(advanced)?;
        Ok(true)
    }

    /// The named producers at `offset`, the new log start offset: all batches of a producer from there on may
    /// be truncated later.
    fn named_producers_as_of(&self, offset: i64) -> Result<Vec<ProducerEntry>> {
        let mut named = self.producers.named_below(offset);
        if self.producers.has_named_from(offset) {
            match self.producers_as_of(&self.reader()?, offset) {
                Ok(plan) => named.extend(plan.entries().cloned()),
                // what cannot be read is deleted
                Err(Error::Corrupt { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(named)
    }

    /// Stores named producers before the log is made to start, or to end, at `offset`.
    fn keep_named_producers(&self, named: Vec<ProducerEntry>, offset: i64) -> Result<()> {
        let kept = producers::keep(&self.directory, named, self.ends.log_start_offset(), offset);
        self.ends.commit().or_poison_after_sync(kept)
    }

    /// Deletes the segments of a plan.
    pub(super) fn apply_retention(&mut self, plan: &RetentionPlan) -> Result<()> {
        if plan.rolls {
            self.roll_at_end()?;
        }
        if plan.segments.is_empty() {
            return Ok(());
        }
        self.delete_before(plan.log_start_offset)?;
        let removed = self.remove_below_log_start();
        self.ends.commit().or_poison(removed)
    }

    /// The steps of a new log start offset that need disk space: stages the history of epochs, if it changes,
    /// and writes the checkpoint, which puts the new offset into effect. If the disk is full, the log is
    /// unchanged.
    fn stage_start(&mut self, offset: i64) -> Result<Option<(Staged, LeaderEpochs)>> {
        let mut epochs = self.epochs.clone();
        let is_changed = epochs.truncate_from_start(offset);
        let staged = if is_changed { Some((self.stage_epochs(&epochs)?, epochs)) } else { None };
        self.write_checkpoint(self.ends.checkpoint_from(offset))?;
        Ok(staged)
    }

    fn advance_start(&mut self, epochs: Option<(Staged, LeaderEpochs)>) -> Result<()> {
        if let Some((staged, epochs)) = epochs {
            self.epochs = epochs;
            staged.put()?;
        }
        self.producers.start_at(self.ends.log_start_offset());
        self.remove_below_log_start()
    }

    /// Deletes the segments without records at or above the log start offset, oldest first.
    pub(super) fn remove_below_log_start(&mut self) -> Result<()> {
        let bases = self.bases();
        let is_below = |next: &i64| *next <= self.ends.log_start_offset();
        let expired = bases.iter().skip(1).take_while(|next| is_below(next)).count();
        let (expired, kept) = bases.split_at(expired);
        if !expired.is_empty() {
            self.live.set(kept.to_vec());
        }
        for base_offset in expired {
            self.producers.remove_snapshot(&self.directory, *base_offset)?;
            remove_segment(&self.directory, *base_offset)?;
            self.sealed.remove(base_offset);
        }
        if !expired.is_empty() {
            // readers in this process would keep the space of the files
            close_deleted_files(&self.directory);
            self.directory.sync()?;
        }
        Ok(())
    }

    /// Replaces the checkpoint, and the partition's lines in the checkpoints of the data directory. If the
    /// disk is full, all of them are unchanged.
    pub(super) fn write_checkpoint(&mut self, checkpoint: Checkpoint) -> Result<()> {
        let staged = checkpoint.stage(&self.directory)?;
        let lines = self.stage_lines(checkpoint)?;
        staged.put()?;
        self.ends.set_checkpoint(checkpoint);
        lines.map_or(Ok(()), StagedLines::put)
    }

    /// Stages the replacements of the data directory's checkpoints.
    pub(super) fn stage_lines(&self, checkpoint: Checkpoint) -> Result<Option<StagedLines>> {
        let data_directory = self.data_directory.as_ref();
        data_directory.map(|data_directory| data_directory.stage_checkpoint(checkpoint)).transpose()
    }
}

/// The staged files of a truncation.
struct StagedCut {
    epochs: Option<(Staged, LeaderEpochs)>,
    /// The files of the target, if it is not the active segment.
    segment: Vec<Staged>,
    producers: StagedProducers,
}

fn refuse_negative(offset: i64) -> Result<()> {
    if offset < 0 {
        return Err(Error::config("offset", "an offset, 0 or above", offset.to_string()));
    }
    Ok(())
}
