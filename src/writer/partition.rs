//! The log as its one writer has it: what is under the writer's lock.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use super::{Appended, GroupCommit};
use crate::config::LogConfig;
use crate::error::{Error, IoAction, Result, SizeLimit};
use crate::fs::seeded_bugs::{self, SeededBug};
use crate::fs::{Directory, Staged, WritableFile};
use crate::index::entries::EntryRule;
use crate::log::live_segments::LiveSegments;
use crate::record::{BatchBuilder, BatchHeader};
use crate::segment::{RollParams, SegmentAppender, SegmentLayout, is_relative, remove_segment, should_roll};
use crate::state::checkpoint::{Checkpoint, DurableOffsetFile};
use crate::state::data_directory::DataDirectory;
use crate::state::leader_epochs::LeaderEpochs;

/// A partition directory that is being written.
#[derive(Debug)]
pub(super) struct Partition {
    pub(super) directory: Directory,
    pub(super) config: LogConfig,
    pub(super) clock: fn() -> i64,
    /// What the log's own batches are stamped with.
    pub(super) leader_epoch: i32,
    pub(super) epochs: LeaderEpochs,
    /// The base offsets of the segments before the active one.
    pub(super) sealed: BTreeSet<i64>,
    pub(super) active: SegmentAppender,
    /// The same segments, for readers in this process.
    pub(super) live: Arc<LiveSegments>,
    pub(super) log_start_offset: i64,
    pub(super) log_end_offset: i64,
    /// The offset after the last batch that lies in a file (or the base offset of an empty last segment): where the log
    /// would be found to end. Lower than the log's end behind a truncation inside a batch.
    pub(super) data_end: i64,
    pub(super) checkpoint: Checkpoint,
    pub(super) durable_offset_file: DurableOffsetFile,
    pub(super) data_directory: Option<DataDirectory>,
    /// Counts truncations, as [`GroupCommit`] does.
    pub(super) truncations: u64,
    pub(super) builder: BatchBuilder,
    pub(super) random: u32,
    pub(super) is_closed: bool,
}

/// What is to be synced, and what that makes durable.
#[derive(Debug)]
pub(super) struct Unsynced {
    pub(super) file: WritableFile,
    pub(super) log_end_offset: i64,
    data_end: i64,
    truncations: u64,
}

impl Partition {
    pub(super) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// How segments are made under these settings.
    pub(super) fn layout(config: &LogConfig) -> SegmentLayout {
        SegmentLayout {
            entry_rule: Self::entry_rule(config),
            initial_size: u64::from(config.init_file_size()),
        }
    }

    /// How the indexes of a segment are filled under these settings.
    pub(super) fn entry_rule(config: &LogConfig) -> EntryRule {
        EntryRule {
            interval_bytes: u64::from(config.index_interval_bytes),
            max_index_size: u64::from(config.segment_index_bytes),
        }
    }

    /// The jitter of a new segment, ms.
    pub(super) fn jitter(&mut self) -> i64 {
        // xorshift: it only has to spread rolls
        self.random ^= self.random << 13;
        self.random ^= self.random >> 17;
        self.random ^= self.random << 5;
        self.config.random_segment_jitter(self.random.cast_signed())
    }

    /// Fails where the writer was closed.
    pub(super) fn check_open(&self) -> Result<()> {
        if self.is_closed {
            return Err(Error::Closed { handle: "LogWriter" });
        }
        Ok(())
    }

    /// Appends whole batches, whose headers have their final offsets and epochs, at `now` (ms). All are there afterwards, or
    /// none.
    ///
    /// *Source*: `UnifiedLog.append`, from its step 4 on.
    pub(super) fn append(
        &mut self,
        bytes: &[u8],
        headers: &[BatchHeader],
        now: i64,
        commit: &GroupCommit,
    ) -> Result<Appended> {
        let (Some(first), Some(last)) = (headers.first(), headers.last()) else {
            let next = self.log_end_offset;
            return Ok(Appended {
                first_offset: next,
                last_offset: next - 1,
                max_timestamp: -1,
                durable: true,
            });
        };
        let size = bytes.len() as u64;
        let most = u64::from(self.config.segment_bytes);
        if size > most {
            return Err(Error::RecordTooLarge {
                limit: SizeLimit::SegmentBytes,
                max_bytes: most,
                found: format!("{size} bytes in one append"),
            });
        }
        if last.last_offset == i64::MAX {
            return Err(Error::config("offset", "an offset below 2^63 - 1", last.last_offset.to_string()));
        }
        if !is_relative(last.last_offset, first.base_offset) {
            let most = first.base_offset.saturating_add(i64::from(i32::MAX));
            let expected = format!("offsets up to {most} in one append: an index has no room for others");
            let found = last.last_offset.to_string();
            return Err(Error::InvalidRecord { argument: "raw", position: None, expected, found });
        }
        let max_timestamp = headers.iter().map(|header| header.max_timestamp).max().unwrap_or(-1);
        let params = RollParams {
            max_segment_ms: self.config.max_segment_ms(),
            max_segment_bytes: most,
            max_timestamp,
            last_offset: last.last_offset,
            size,
            now,
        };
        if should_roll(&params, &self.active.roll_state()) || !self.active.has_index_room(headers) {
            self.roll(first.base_offset, commit)?;
        }
        // a segment that was begun for what follows a gap must not be followed by what lies in that gap
        let is_ahead = self.active.base_offset() > self.log_end_offset;
        self.assign_epochs(headers).inspect_err(|error| {
            // what was staged in vain is not there
            if is_ahead || !matches!(error, Error::Io { action: IoAction::Create | IoAction::Write, .. }) {
                commit.poison(error);
            }
        })?;
        self.active.append(bytes, headers).map_err(|(error, is_torn)| {
            if is_torn || is_ahead {
                commit.poison(&error);
            }
            error
        })?;
        self.log_end_offset = last.last_offset + 1;
        self.data_end = self.log_end_offset;
        // what another leader wrote is not followed by a lower epoch
        self.leader_epoch = self.leader_epoch.max(last.leader_epoch);
        commit.appended(size, self.log_end_offset);
        Ok(Appended {
            first_offset: first.base_offset,
            last_offset: last.last_offset,
            max_timestamp,
            durable: false,
        })
    }

    /// Notes the epochs that begin with these batches, before anything of them is written.
    fn assign_epochs(&mut self, headers: &[BatchHeader]) -> Result<()> {
        let latest = self.epochs.latest();
        let timed = || headers.iter().filter(|header| header.leader_epoch >= 0);
        if timed().all(|header| Some(header.leader_epoch) == latest) {
            return Ok(());
        }
        let mut epochs = self.epochs.clone();
        for header in timed() {
            epochs.assign(header.leader_epoch, header.base_offset);
        }
        std::mem::swap(&mut self.epochs, &mut epochs);
        self.write_epochs().inspect_err(|_| self.epochs = epochs)
    }

    /// Writes the history of leader epochs, durably.
    pub(super) fn write_epochs(&self) -> Result<()> {
        self.stage_epochs(&self.epochs)?.put()
    }

    /// Writes a history of leader epochs that is to replace the one that is there.
    pub(super) fn stage_epochs(&self, epochs: &LeaderEpochs) -> Result<Staged> {
        epochs.stage(&self.directory)
    }

    /// Ends the active segment and begins one at `base_offset`, or at the log's end where that is higher. An empty active
    /// segment with that base is kept. Everything before is durable afterwards.
    ///
    /// What needs space comes first: where the disk has no room for it, nothing has changed.
    ///
    /// *Source*: `UnifiedLog.roll`, `LocalLog.roll`.
    pub(super) fn roll(&mut self, base_offset: i64, commit: &GroupCommit) -> Result<()> {
        let base_offset = base_offset.max(self.log_end_offset);
        if base_offset == self.active.base_offset() {
            // only an empty one can have it: its indexes are too small to hold an entry, and stay so
            return Ok(());
        }
        let jitter = self.jitter();
        let layout = Self::layout(&self.config);
        let now = (self.clock)();
        // zeros behind the data of a segment that is not the last one would be damage
        self.active.trim_log()?;
        let made = SegmentAppender::create(&self.directory, base_offset, &layout, now, jitter)
            .and_then(|fresh| Ok((fresh, self.stage_seal(base_offset)?)));
        let (fresh, checkpoint) = match made {
            Ok(made) => made,
            Err(error) => {
                // what is left of it would end the segment before it, which goes on
                let undone =
                    remove_segment(&self.directory, base_offset).and_then(|()| self.directory.sync());
                undone.inspect_err(|error| commit.poison(error))?;
                return Err(error);
            }
        };
        self.seal(checkpoint).inspect_err(|error| commit.poison(error))?;
        self.checkpoint = Checkpoint { recovery_point: base_offset, ..self.checkpoint };
        self.sealed.insert(self.active.base_offset());
        self.active = fresh;
        self.publish_segments();
        if base_offset == self.log_end_offset {
            // an empty segment says so by its name
            self.data_end = base_offset;
        }
        commit.synced(self.log_end_offset);
        // the segment that was active may hold nothing at or above the log start
        self.remove_passed().inspect_err(|error| commit.poison(error))
    }

    /// Base offsets of all segments, rising.
    pub(super) fn bases(&self) -> Vec<i64> {
        self.sealed.iter().copied().chain([self.active.base_offset()]).collect()
    }

    /// Shows readers in this process which segments there are.
    pub(super) fn publish_segments(&self) {
        self.live.set(self.bases());
    }

    /// What needs space of the end of the active segment, before one that begins at `base_offset`: its last index entries,
    /// and the checkpoint that says that recovery may begin with the new segment, which is empty.
    fn stage_seal(&mut self, base_offset: i64) -> Result<Staged> {
        let checkpoint = Checkpoint { recovery_point: base_offset, ..self.checkpoint };
        let staged = checkpoint.stage(&self.directory)?;
        self.active.write_last_index_entries()?;
        Ok(staged)
    }

    fn seal(&mut self, checkpoint: Staged) -> Result<()> {
        if seeded_bugs::is(SeededBug::RecoveryPointBeforeFsync) {
            checkpoint.put()?;
            self.durable_offset_file.set(self.data_end)?;
            return self.active.seal();
        }
        self.active.seal()?;
        self.durable_offset_file.note(self.data_end)?;
        // this also makes the names of the new segment's files durable
        checkpoint.put()
    }

    /// What a sync of everything appended so far has to sync, and how far it will reach.
    pub(super) fn unsynced(&mut self) -> Unsynced {
        self.active.share_index_entries();
        Unsynced {
            file: self.active.log().clone(),
            log_end_offset: self.log_end_offset,
            data_end: self.data_end,
            truncations: self.truncations,
        }
    }

    /// A sync has been done.
    pub(super) fn note_synced(&mut self, synced: &Unsynced) -> Result<()> {
        if self.truncations != synced.truncations {
            return Ok(());
        }
        // no news after a close, which noted the log's end: the file may be another writer's by then
        self.durable_offset_file.note(synced.data_end)
    }

    /// Syncs everything under the lock.
    pub(super) fn sync(&mut self, commit: &GroupCommit) -> Result<()> {
        let unsynced = self.unsynced();
        unsynced
            .file
            .sync()
            .and_then(|()| self.note_synced(&unsynced))
            .inspect_err(|error| commit.poison(error))?;
        commit.synced(unsynced.log_end_offset);
        Ok(())
    }

    /// An [`Error::OffsetOutOfRange`].
    pub(super) fn out_of_range(&self, offset: i64) -> Error {
        Error::OffsetOutOfRange {
            path: self.path().to_owned(),
            offset,
            log_start_offset: self.log_start_offset,
            log_end_offset: self.log_end_offset,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::fs::Directory;
    use crate::record::NewRecord;
    use crate::writer::{FlushMode, LogWriter, WriterOptions};

    #[test]
    fn a_sync_that_ends_after_the_log_was_closed_writes_nothing_into_the_next_writers_files() {
        let folder = tempfile::tempdir().unwrap();
        let directory =
            Directory::open_or_create(&folder.path().join("orders-0"), "", |_, _| Ok(())).unwrap();
        let open = || {
            let options = WriterOptions { flush: FlushMode::None, ..WriterOptions::default() };
            LogWriter::open_in(directory.clone(), &options).unwrap()
        };
        let mut writer = open();
        for value in [b"stays", b"goes!"] {
            writer.append(&NewRecord { value: Some(value), ..NewRecord::default() }).unwrap();
        }
        let synced = writer.shared.lock().unsynced();
        writer.close().unwrap();
        let mut next = open();
        next.truncate_to(1).unwrap();
        writer.shared.lock().note_synced(&synced).unwrap();
        // without a close, as a killed process leaves it: where more was noted than is there, it would be refused
        drop(next);
        assert_eq!(open().log_end_offset(), 1);
    }
}
