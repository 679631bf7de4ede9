//! The state of a log that the writer's lock protects; append and roll.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use super::ends::Ends;
use super::poison::is_full;
use super::producers::Producers;
use super::sessions::Sessions;
use super::{Appended, WriterMetrics};
use crate::config::LogConfig;
use crate::error::{Error, NotFound, Result, SizeLimit};
use crate::fs::{Directory, PartitionLocks, Staged, WritableFile};
use crate::index::due_entries::EntryRule;
use crate::log::live_segments::LiveSegments;
use crate::record::{BatchBuilder, BatchHeader};
use crate::segment::{RollParams, SegmentAppender, SegmentLayout, is_relative, remove_segment, should_roll};
use crate::state::checkpoint::DurableOffsetFile;
use crate::state::data_directory::DataDirectory;
use crate::state::leader_epochs::LeaderEpochs;
use crate::state::producers::{EndedTransaction, ProducerUpdates};

/// A partition directory that is being written.
#[derive(Debug)]
pub(super) struct Partition {
    pub(super) directory: Directory,
    pub(super) config: LogConfig,
    /// The largest batch that is appended as bytes, and that is read.
    pub(super) max_batch_bytes: usize,
    pub(super) clock: fn() -> i64,
    /// The leader epoch of the batches that the writer builds.
    pub(super) leader_epoch: i32,
    pub(super) epochs: LeaderEpochs,
    pub(super) producers: Producers,
    pub(super) sessions: Sessions,
    /// The base offsets of the segments before the active one.
    pub(super) sealed: BTreeSet<i64>,
    /// The inode of the writer's lock file; `None` without one.
    pub(super) lock_inode: Option<u64>,
    pub(super) active: SegmentAppender,
    /// The list of all segments, for readers in this process.
    pub(super) live: Arc<LiveSegments>,
    pub(super) ends: Ends,
    pub(super) durable_offset_file: DurableOffsetFile,
    pub(super) data_directory: Option<DataDirectory>,
    /// Counts truncations, as [`GroupCommit`](super::GroupCommit) does.
    pub(super) truncations: u64,
    pub(super) builder: BatchBuilder,
    /// Memory for the batches of a call that a leader stamps; empty between calls.
    pub(super) stamped: Vec<u8>,
    pub(super) random: u32,
    pub(super) metrics: WriterMetrics,
    pub(super) is_closed: bool,
}

/// What a sync must cover: the file, and the ends that are durable after it.
#[derive(Debug)]
pub(super) struct Unsynced {
    pub(super) file: WritableFile,
    pub(super) log_end_offset: i64,
    data_end: i64,
    truncations: u64,
}

/// The staged files of a roll.
struct StagedSeal {
    checkpoint: Staged,
    /// With its offset.
    snapshot: Option<(i64, Staged)>,
}

impl Partition {
    pub(super) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// How segment files are created under these settings.
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

    /// Fails if the writer was closed.
    pub(super) fn check_open(&self) -> Result<()> {
        if self.is_closed {
            return Err(Error::Closed { handle: "LogWriter" });
        }
        Ok(())
    }

    /// Appends whole batches whose headers have their final offsets and epochs, either all of them or none.
    /// `updates`: what they change for their producers, if one has a producer id. `now`: the time of the
    /// append, ms.
    ///
    /// *Source*: `UnifiedLog.append`, step 4 and later.
    pub(super) fn append(
        &mut self,
        bytes: &[u8],
        headers: &[BatchHeader],
        updates: Option<ProducerUpdates>,
        now: i64,
    ) -> Result<Appended> {
        let (Some(first), Some(last)) = (headers.first(), headers.last()) else {
            return Ok(Appended::nothing(self.ends.log_end_offset()));
        };
        let (began, size) = (Instant::now(), bytes.len() as u64);
        self.check_limits(size, first, last)?;
        let max_timestamp = headers.iter().map(|header| header.max_timestamp).max().unwrap_or(-1);
        let params = RollParams {
            max_segment_ms: self.config.max_segment_ms(),
            max_segment_bytes: u64::from(self.config.segment_bytes),
            max_timestamp,
            last_offset: last.last_offset,
            size,
            now,
        };
        if should_roll(&params, &self.active.roll_state()) || !self.active.has_index_room(headers) {
            self.roll(first.base_offset)?;
        }
        // after a roll before a gap of offsets, no offset below the new segment's base offset may be appended
        let is_ahead = self.active.base_offset() > self.ends.log_end_offset();
        // if it fails, the staged file is removed, so that nothing has changed
        let mut staged = self.ends.commit().or_poison_after_sync(self.stage_new_epochs(headers));
        if is_ahead {
            staged = self.ends.commit().or_poison(staged);
        }
        if let Some((staged, epochs)) = staged? {
            self.ends.commit().or_poison(staged.put())?;
            self.epochs = epochs;
        }
        let ended = updates.as_ref().map(|updates| self.producers.aborted_by(updates));
        let aborted: Vec<_> = ended.into_iter().flatten().filter_map(EndedTransaction::aborted).collect();
        self.active.append(bytes, headers, &aborted).map_err(|(error, is_torn)| {
            if is_torn || is_ahead {
                self.ends.commit().poison(&error);
            }
            error
        })?;
        if let Some(updates) = updates {
            self.producers.apply(updates);
        }
        // a batch from another leader may have a higher epoch, and epochs must not decrease
        self.leader_epoch = self.leader_epoch.max(last.leader_epoch);
        self.ends.append(size, last.last_offset + 1);
        self.metrics.appended(headers, bytes.len(), began.elapsed());
        Ok(Appended {
            first_offset: first.base_offset,
            last_offset: last.last_offset,
            max_timestamp,
            durable: false,
            is_duplicate: false,
        })
    }

    /// Fails if the batches do not fit into one segment. `size`: their total size, bytes.
    fn check_limits(&self, size: u64, first: &BatchHeader, last: &BatchHeader) -> Result<()> {
        let max = u64::from(self.config.segment_bytes);
        if size > max {
            return Err(Error::RecordTooLarge {
                limit: SizeLimit::SegmentBytes,
                max_bytes: max,
                found: format!("{size} bytes in one append"),
            });
        }
        if last.last_offset == i64::MAX {
            return Err(Error::config("offset", "an offset below 2^63 - 1", last.last_offset.to_string()));
        }
        if !is_relative(last.last_offset, first.base_offset) {
            let max = first.base_offset.saturating_add(i64::from(i32::MAX));
            let expected =
                format!("offsets up to {max} in one append: an index stores offsets relative to the first");
            let found = last.last_offset.to_string();
            return Err(Error::InvalidRecord { argument: "raw", position: None, expected, found });
        }
        Ok(())
    }

    /// Stages the history of leader epochs with the epochs that begin in these batches added. `None` if no
    /// epoch begins in them.
    fn stage_new_epochs(&self, headers: &[BatchHeader]) -> Result<Option<(Staged, LeaderEpochs)>> {
        let latest = self.epochs.latest();
        let with_epoch = || headers.iter().filter(|header| header.leader_epoch >= 0);
        if with_epoch().all(|header| Some(header.leader_epoch) == latest) {
            return Ok(None);
        }
        let mut epochs = self.epochs.clone();
        for header in with_epoch() {
            epochs.assign(header.leader_epoch, header.base_offset);
        }
        Ok(Some((self.stage_epochs(&epochs)?, epochs)))
    }

    /// Writes the history of leader epochs and makes it durable.
    pub(super) fn write_epochs(&self) -> Result<()> {
        self.stage_epochs(&self.epochs)?.put()
    }

    /// Writes the replacement of the history of leader epochs under a staged name.
    pub(super) fn stage_epochs(&self, epochs: &LeaderEpochs) -> Result<Staged> {
        epochs.stage(&self.directory)
    }

    /// Closes the active segment and creates one at `base_offset`, or at the log end offset if that is
    /// higher. An empty active segment with that base offset is kept. Everything below the base offset is
    /// durable when this returns.
    ///
    /// The steps that need disk space come first: if the disk is full, nothing has changed.
    ///
    /// *Source*: `UnifiedLog.roll`, `LocalLog.roll`.
    pub(super) fn roll(&mut self, base_offset: i64) -> Result<()> {
        let base_offset = base_offset.max(self.ends.log_end_offset());
        if base_offset == self.active.base_offset() {
            // only an empty segment has this base offset: its indexes are too small for one entry
            return Ok(());
        }
        let jitter = self.jitter();
        let layout = Self::layout(&self.config);
        let now = (self.clock)();
        // zeros after the data count as damage, except in the last segment
        self.active.trim_log()?;
        let created = SegmentAppender::create(&self.directory, base_offset, &layout, now, jitter)
            .and_then(|fresh| Ok((fresh, self.stage_seal(base_offset)?)));
        let (fresh, staged) = match created {
            Ok(created) => created,
            Err(error) => {
                // what is written to a removed log could not be found again
                self.ends.commit().or_poison(self.ensure_in_place())?;
                // a remaining file would end the active segment at its base offset
                let undone =
                    remove_segment(&self.directory, base_offset).and_then(|()| self.directory.sync());
                self.ends.commit().or_poison(undone)?;
                return self.ends.commit().or_poison_after_sync(Err(error));
            }
        };
        let sealed = self.seal(staged);
        self.ends.commit().or_poison(sealed)?;
        self.sealed.insert(self.active.base_offset());
        self.active = fresh;
        self.metrics.rolls += 1;
        self.publish_segments();
        self.ends.roll(base_offset);
        // the segment that was active may have no record at or above the log start offset
        let removed = self.remove_below_log_start();
        self.ends.commit().or_poison(removed)
    }

    /// Closes the active segment and creates one at the log end offset.
    pub(super) fn roll_at_end(&mut self) -> Result<()> {
        self.roll(self.ends.log_end_offset())
    }

    /// The base offsets of all segments, ascending.
    pub(super) fn bases(&self) -> Vec<i64> {
        self.sealed.iter().copied().chain([self.active.base_offset()]).collect()
    }

    /// Publishes the list of segments to readers in this process.
    pub(super) fn publish_segments(&self) {
        self.live.set(self.bases());
    }

    /// The steps of a roll that need disk space: the last index entries of the active segment, a snapshot of
    /// the producers, and a checkpoint with the base offset of the new segment as recovery point.
    fn stage_seal(&mut self, base_offset: i64) -> Result<StagedSeal> {
        let checkpoint = self.ends.checkpoint_at(base_offset).stage(&self.directory)?;
        let snapshot = match self.producers.stage_snapshot(&self.directory, base_offset) {
            // without it, the next opening reads more batches
            Err(error) if is_full(&error) => None,
            staged => staged?,
        };
        let snapshot = snapshot.map(|staged| (base_offset, staged));
        self.active.write_last_index_entries()?;
        Ok(StagedSeal { checkpoint, snapshot })
    }

    fn seal(&mut self, staged: StagedSeal) -> Result<()> {
        let StagedSeal { checkpoint, snapshot } = staged;
        self.active.seal()?;
        self.ensure_in_place()?;
        self.durable_offset_file.note(self.ends.data_end())?;
        // the log is durable up to the snapshot's offset
        if let Some((offset, staged)) = snapshot {
            staged.put_unsynced()?;
            self.producers.note_snapshot(offset);
        }
        // its directory sync also makes the names of the new segment's files and of the snapshot durable
        checkpoint.put()
    }

    /// What a sync must cover to make everything appended so far durable.
    pub(super) fn unsynced(&mut self) -> Unsynced {
        self.active.share_index_entries();
        Unsynced {
            file: self.active.log().clone(),
            log_end_offset: self.ends.log_end_offset(),
            data_end: self.ends.data_end(),
            truncations: self.truncations,
        }
    }

    /// Fails if the log was removed or replaced under the writer: a sync succeeds, but nobody finds the
    /// records. Also if its lock file was: another writer may append to the log. Called after each sync
    /// that makes records durable. Not after a close: the files may belong to another writer by then.
    pub(super) fn ensure_in_place(&self) -> Result<()> {
        self.directory.ensure_holds(self.active.log())?;
        let Some(inode) = self.lock_inode else { return Ok(()) };
        let found = match self.directory.identity_of(PartitionLocks::NAME)? {
            Some(lock) if lock.inode == inode => return Ok(()),
            Some(_) => NotFound::AnotherFile,
            None => NotFound::NoFile,
        };
        let path = self.directory.path_of(PartitionLocks::NAME);
        let advice = "the lock of the writer was removed, so that another one may have opened the log: what was appended since may be lost";
        Err(Error::LogNotFound { path, found, advice })
    }

    /// Writes the durable offset after a sync.
    pub(super) fn note_synced(&mut self, synced: &Unsynced) -> Result<()> {
        if self.truncations != synced.truncations {
            return Ok(());
        }
        // ignored after a close, which has written a higher offset: the file may belong to another writer by
        // now
        self.durable_offset_file.note(synced.data_end)
    }

    /// Syncs everything while the lock is held.
    pub(super) fn sync(&mut self) -> Result<()> {
        let unsynced = self.unsynced();
        let synced = unsynced.file.sync().and_then(|()| self.ensure_in_place());
        let synced = synced.and_then(|()| self.note_synced(&unsynced));
        self.ends.commit().or_poison(synced)?;
        self.ends.sync(unsynced.log_end_offset);
        Ok(())
    }

    /// An [`Error::OffsetOutOfRange`].
    pub(super) fn out_of_range(&self, offset: i64) -> Error {
        Error::OffsetOutOfRange {
            path: self.path().to_owned(),
            offset,
            log_start_offset: self.ends.log_start_offset(),
            log_end_offset: self.ends.log_end_offset(),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::fs::Directory;
    use crate::record::NewRecord;
    use crate::writer::{FlushMode, LogWriter, WriterOptions};

    #[test]
    fn a_sync_that_ends_after_the_close_does_not_change_the_files_of_the_next_writer() {
        let folder = tempfile::tempdir().unwrap();
        let directory =
            Directory::open_or_create(&folder.path().join("orders-0"), "", |_, _| Ok(())).unwrap();
        let open = || {
            let options = WriterOptions { flush: FlushMode::None, ..WriterOptions::default() };
            LogWriter::open_in(directory.clone(), &options).unwrap()
        };
        let mut writer = open();
        for value in [b"kept", b"lost"] {
            writer.append(&NewRecord { value: Some(value), ..NewRecord::default() }).unwrap();
        }
        let synced = writer.shared.lock().unsynced();
        writer.close().unwrap();
        let mut next = open();
        next.truncate_to(1).unwrap();
        writer.shared.lock().note_synced(&synced).unwrap();
        // no close, as after a kill: a durable offset above the log end would make the next open fail
        drop(next);
        assert_eq!(open().log_end_offset(), 1);
    }
}
