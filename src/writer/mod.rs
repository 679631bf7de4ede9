//! A durable log with one writer: append, roll, recover, retain, truncate. Kafka: `UnifiedLog`, `LocalLog`,
//! write side.
//!
//! ```text
//! LogWriter ─┐ (unique: structure)        ┌─ Partition   segments, ends, epochs: under one lock
//! Appender ──┴─▶ Shared ──────────────────┤
//!   (cloned: appends)                     └─ GroupCommit      which thread syncs, and the durable offset
//! ```

mod acknowledgement;
mod appended;
mod appender;
mod cleanable;
mod close;
mod ends;
mod flush_mode;
mod group_commit;
mod metrics;
mod options;
mod partition;
mod poison;
mod producer;
mod producers;
mod recovery;
pub(crate) mod replacement;
mod restart;
mod sessions;
mod spare;
mod transaction;
mod truncate;
mod unflushed;

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Instant;

pub use appended::Appended;
pub use appender::Appender;
pub(crate) use cleanable::Cleanable;
pub use flush_mode::FlushMode;
use group_commit::GroupCommit;
pub use metrics::WriterMetrics;
pub use options::WriterOptions;
use partition::Partition;
pub use producer::Producer;
pub use producers::ProducerState;
#[cfg(feature = "inspect")]
pub(crate) use producers::{KEPT_PRODUCERS, kept_producers};
pub use recovery::{
    FileChange, FileChangeReason, RebuildReason, RebuiltIndex, RecoveryCut, RecoveryPlan, SegmentSplit,
};
#[cfg(feature = "inspect")]
pub(crate) use recovery::{
    OnlyCopies, QUARANTINE, Quarantined, finish_replacement, refuse_missing_start, refuse_only_copies,
    refuse_remote_start, replaced, uncommitted_only_copies,
};
#[cfg(feature = "inspect")]
pub(crate) use spare::SPARE;
pub use transaction::{Transaction, TransactionVersion};

use crate::config::LogConfig;
use crate::error::{Error, IoAction, Result};
use crate::fs::{Directory, PartitionLocks, forks, forks_now};
use crate::log::live_segments::LiveSegments;
use crate::log::retention::{self, RetentionPlan};
use crate::log::{Log, LogOptions};
use crate::record::NewRecord;
use crate::state::data_directory::DataDirectory;
use crate::state::leader_epochs::LeaderEpochs;
pub use crate::state::partition_metadata::TopicId;
use crate::state::producers::ProducerEntry;
use crate::types::Interrupt;
pub use unflushed::Unflushed;

/// The end offset and the bytes of both indexes that recovery computes for the last segment of a log. For a
/// benchmark: it drops nothing from the page cache and writes nothing.
pub(crate) fn derived_indexes(log: &Log, config: &LogConfig) -> Result<(i64, [Vec<u8>; 2])> {
    let Some(segment) = log.segments().last() else { return Ok((0, [const { Vec::new() }; 2])) };
    let scanned = recovery::scan(segment, -1, None, Partition::entry_rule(config), Interrupt::NEVER)?;
    let end_offset = scanned.end_offset;
    let indexes = scanned.into_indexes();
    Ok((end_offset, [indexes.offset_index, indexes.time_index]))
}

/// The state that a writer shares with its appenders.
#[derive(Debug)]
struct Shared {
    partition: Mutex<Partition>,
    commit: Arc<GroupCommit>,
    flush: FlushMode,
    /// The number of forks when the writer was opened: a forked child must not use the writer.
    forks: u32,
    last_sync: Mutex<Instant>,
    interrupt: Interrupt,
    /// Held until the log is closed or the last appender is dropped.
    locks: Mutex<Option<PartitionLocks>>,
}

/// The one writer of a partition directory.
///
/// ```
/// use cordwood::writer::{LogWriter, WriterOptions};
/// use cordwood::record::NewRecord;
///
/// # fn main() -> cordwood::Result<()> {
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("orders-0");
/// let mut writer = LogWriter::open(&path, &WriterOptions::default())?;
/// let record = NewRecord { timestamp: 1_700_000_000_000, key: Some(b"k"), value: Some(b"v"), headers: &[] };
/// let appended = writer.append(&record)?;
/// assert_eq!((appended.first_offset, appended.last_offset, appended.durable), (0, 0, true));
/// assert_eq!(writer.reader()?.log_end_offset()?, 1);
/// writer.close()?;
/// # Ok(())
/// # }
/// ```
///
/// *Concurrency*: unique; [`LogWriter::appender`] returns handles for other threads. If a writer is dropped
/// without [`LogWriter::close`], the log is recovered when it is opened again. In a forked child every call
/// that can fail returns an error; a call that returns only a number may block, because another thread of the
/// parent may have held a lock.
#[derive(Debug)]
pub struct LogWriter {
    shared: Arc<Shared>,
    directory: Directory,
    /// Dropped when the log is closed.
    live: Weak<LiveSegments>,
    reader: Option<Log>,
    recovery: Option<RecoveryPlan>,
    /// A copy of the setting: `apply_retention` holds the lock of the settings while it opens a reader.
    is_preallocated: bool,
    reader_options: LogOptions,
}

impl LogWriter {
    /// Opens a partition directory for writing, or creates it. After an unclean stop the log is recovered
    /// first: indexes are rebuilt, and a torn write at the end is cut and kept in `quarantine/`;
    /// [`LogWriter::recovery`] returns what was changed. If a new log cannot be opened, the files created
    /// for it are removed.
    ///
    /// *Cost*: after a clean close, little. Otherwise reads the segments from the recovery point on, and the
    /// batches from the latest snapshot of the producers on; without a snapshot, the whole log.
    ///
    /// # Errors
    /// [`Error::Locked`] if another writer or a broker holds the lock; [`Error::Corrupt`] if the log is
    /// damaged, its own files or checkpoints show that a segment is missing, or a batch contradicts the
    /// transactions before it (nothing is changed); [`Error::UnsupportedFormat`] for an intact batch of a
    /// later format; [`Error::Config`], also for a directory name that Kafka does not accept in a data
    /// directory; [`Error::Io`].
    ///
    /// *Source*: `UnifiedLog.create`, `LogLoader.load`.
    pub fn open(path: impl AsRef<Path>, options: &WriterOptions) -> Result<Self> {
        let advice = "create the parent folder of the partition directory first";
        // before the directory is created
        options.check()?;
        let mut is_created = false;
        let directory = Directory::open_or_create(path.as_ref(), advice, |folder, name| {
            DataDirectory::refuse(folder, name)?;
            is_created = true;
            Ok(())
        })?;
        DataDirectory::refuse_itself(&directory)?;
        let mut locks = PartitionLocks::take(&directory)?;
        let writer = Self::start(directory.clone(), options).inspect_err(|_| {
            if is_created {
                recovery::remove_directory(&directory);
            }
        })?;
        locks.renew(&writer.directory)?;
        *writer.shared.locks.lock().unwrap_or_else(PoisonError::into_inner) = Some(locks);
        Ok(writer)
    }

    /// [`LogWriter::open`] for a directory that is already open, without a lock: the caller guarantees that
    /// there is no other writer.
    ///
    /// # Errors
    /// As [`LogWriter::open`].
    pub fn open_in(directory: Directory, options: &WriterOptions) -> Result<Self> {
        Self::start(directory, options)
    }

    /// Returns what [`LogWriter::open`] would change to recover the log, and changes nothing. It takes no
    /// lock: another process may take one before the log is opened. The directory must exist, and may be
    /// one that only may be read. If it has no segment, the plan is that of a new log.
    ///
    /// *Cost*: reads what [`LogWriter::open`] reads.
    ///
    /// # Errors
    /// As [`LogWriter::open`]; [`Error::LogNotFound`] if the directory does not exist.
    pub fn plan_recovery(path: impl AsRef<Path>, options: &WriterOptions) -> Result<RecoveryPlan> {
        Ok(Self::plan_opening(path, options)?.0)
    }

    /// The same, and the producers that had an open transaction at the opening, by its first offset: also
    /// producers whose records were all deleted from the log start, which readers do not know.
    #[doc(hidden)]
    pub fn plan_opening(
        path: impl AsRef<Path>,
        options: &WriterOptions,
    ) -> Result<(RecoveryPlan, Vec<ProducerEntry>)> {
        let directory = Directory::open(path.as_ref(), "give the path of a partition directory")?;
        DataDirectory::refuse_itself(&directory)?;
        PartitionLocks::probe(&directory)?;
        recovery::plan(&directory, options)
    }

    /// What recovery changed when the log was opened; `None` if it changed nothing.
    pub fn recovery(&self) -> Option<&RecoveryPlan> {
        self.recovery.as_ref()
    }

    fn start(directory: Directory, options: &WriterOptions) -> Result<Self> {
        let flush = match options.flush {
            FlushMode::Interval { messages: None, ms: None } => FlushMode::Interval {
                messages: u64::try_from(options.config.flush_messages).ok(),
                ms: u64::try_from(options.config.flush_ms).ok(),
            },
            flush => flush,
        };
        let (partition, recovery) = recovery::open(&directory, options)?;
        let live = Arc::downgrade(&partition.live);
        let commit = Arc::clone(partition.ends.commit());
        let last_sync = Mutex::new(Instant::now());
        let forks = forks().map_err(|error| Error::io(directory.path(), IoAction::WatchForks, error))?;
        let (partition, locks) = (Mutex::new(partition), Mutex::default());
        let shared =
            Shared { partition, commit, flush, forks, last_sync, interrupt: options.interrupt, locks };
        Ok(Self {
            shared: Arc::new(shared),
            directory,
            live,
            reader: None,
            recovery: Some(recovery).filter(|recovery| !recovery.is_clean()),
            is_preallocated: options.config.preallocate,
            reader_options: LogOptions {
                max_batch_bytes: options.max_batch_bytes,
                is_topic_compacted: options.is_topic_compacted,
                interrupt: options.interrupt,
                on_warning: options.on_warning,
                ..LogOptions::default()
            },
        })
    }

    /// Returns a handle that appends, for another thread.
    pub fn appender(&self) -> Appender {
        Appender::new(Arc::clone(&self.shared))
    }

    /// The absolute path of the partition directory, with symbolic links resolved.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Appends one record as one batch; see [`Appender::append`].
    ///
    /// # Errors
    /// Those of [`Appender::append`].
    pub fn append(&mut self, record: &NewRecord<'_>) -> Result<Appended> {
        self.appender().append(record)
    }

    /// Appends records, as one batch if they fit; see [`Appender::append_many`].
    ///
    /// # Errors
    /// Those of [`Appender::append_many`].
    pub fn append_many(&mut self, records: &[NewRecord<'_>]) -> Result<Appended> {
        self.appender().append_many(records)
    }

    /// Appends v2 batches; see [`Appender::append_batches`].
    ///
    /// # Errors
    /// Those of [`Appender::append_batches`].
    pub fn append_batches(&mut self, raw: &[u8], keep_offsets: bool) -> Result<Appended> {
        self.appender().append_batches(raw, keep_offsets)
    }

    /// Makes everything appended so far durable.
    ///
    /// # Errors
    /// [`Error::Io`]; every later call returns [`Error::Poisoned`].
    pub fn flush(&mut self) -> Result<()> {
        self.appender().flush()
    }

    /// The offset after the last record. Kafka: `logEndOffset`.
    pub fn log_end_offset(&self) -> i64 {
        self.shared.lock().ends.log_end_offset()
    }

    /// The log start offset: no record below it exists. Kafka: `logStartOffset`.
    pub fn log_start_offset(&self) -> i64 {
        self.shared.lock().ends.log_start_offset()
    }

    /// The last stable offset: the first offset of the oldest open transaction, at least the log start
    /// offset; or the log end offset. The exclusive end for a committed reader, unless all records of
    /// that transaction were deleted: readers do not know it then, nor, perhaps, does the next opening.
    /// Damaged batches are left out. Kafka: `lastStableOffset`.
    pub fn last_stable_offset(&self) -> i64 {
        self.appender().last_stable_offset()
    }

    /// The durable offset: every record below it survives a power loss. Kafka: `recoveryPoint`.
    pub fn durable_offset(&self) -> i64 {
        self.shared.commit.durable()
    }

    /// What the writer has done since it was opened.
    pub fn metrics(&self) -> WriterMetrics {
        self.appender().metrics()
    }

    /// What the log knows of each producer id, by the ids.
    pub fn producers(&self) -> Vec<ProducerState> {
        self.appender().producers()
    }

    /// The history of leader epochs.
    pub fn leader_epochs(&self) -> LeaderEpochs {
        self.shared.lock().epochs.clone()
    }

    /// Closes the active segment and creates a new one at the log end offset. An active segment that starts
    /// there, which is empty, is kept.
    ///
    /// *Cost*: syncs the segment and its indexes, and a snapshot of the producers (46 bytes each), while
    /// appends wait.
    ///
    /// # Errors
    /// [`Error::Io`], with nothing changed if the disk is full; [`Error::Poisoned`].
    ///
    /// *Source*: `UnifiedLog.roll`.
    pub fn roll(&mut self) -> Result<()> {
        self.shared.enter()?.roll_at_end()
    }

    /// Removes every batch with an offset at or above `offset`, so that the log ends at `offset`. Returns
    /// false if it already ended at or below `offset`. A batch that contains `offset` is removed as a
    /// whole. The removal is durable when this returns.
    ///
    /// *Cost*: reads the batches from the latest snapshot of the producers on.
    ///
    /// # Errors
    /// [`Error::Config`] for a negative offset; [`Error::Corrupt`] if the log is damaged before it, and
    /// [`Error::UnsupportedFormat`] if a batch before it has a later format (nothing is changed);
    /// [`Error::Io`], with nothing changed if the disk is full (a segment that is cut in the middle and
    /// is not the last needs space for a copy); [`Error::Poisoned`].
    ///
    /// *Source*: `UnifiedLog.truncateTo`.
    pub fn truncate_to(&mut self, offset: i64) -> Result<bool> {
        self.shared.enter()?.with_spare(|partition| partition.truncate_to(offset))
    }

    /// Removes every record, so that the log starts and ends at `offset`.
    ///
    /// # Errors
    /// [`Error::Config`] for an offset out of range; [`Error::Io`], with nothing changed if the disk is full;
    /// [`Error::Poisoned`].
    ///
    /// *Source*: `UnifiedLog.truncateFullyAndStartAt`.
    pub fn truncate_fully_and_start_at(&mut self, offset: i64) -> Result<()> {
        self.shared.enter()?.with_spare(|partition| partition.truncate_fully_and_start_at(offset))
    }

    /// Moves the log start offset to `offset`: records below it are removed, and segments without other
    /// records are deleted. Returns false if the log already started at or above `offset`. The removal is
    /// durable when this returns.
    ///
    /// *Cost*: with named producers, reads the batches from the latest snapshot of the producers below
    /// `offset` on.
    ///
    /// # Errors
    /// [`Error::Config`] for a negative offset; [`Error::OffsetOutOfRange`] above the log end offset;
    /// [`Error::Io`], with nothing changed if the disk is full and the space that the writer holds in
    /// reserve is not enough; [`Error::Poisoned`].
    ///
    /// *Source*: `UnifiedLog.maybeIncrementLogStartOffset`, `deleteRecords`.
    pub fn delete_before(&mut self, offset: i64) -> Result<bool> {
        self.shared.enter()?.with_spare(|partition| partition.delete_before(offset))
    }

    /// Deletes the segments that have expired under the retention settings, and returns them. `now`: ms since
    /// the epoch; `None`: the clock's time.
    ///
    /// # Errors
    /// Those of [`retention::plan`]; [`Error::Poisoned`].
    ///
    /// *Source*: `UnifiedLog.deleteOldSegments`.
    pub fn apply_retention(&mut self, now: Option<i64>) -> Result<RetentionPlan> {
        let shared = Arc::clone(&self.shared);
        let mut partition = shared.enter()?;
        // under the lock: records that are appended after the decision must not be deleted with it
        let log = self.open_reader()?;
        let mut plan = retention::plan(&log, &partition.config, now.unwrap_or_else(partition.clock))?;
        if plan.rolls {
            // after a truncation inside a batch, the log end offset is above the data end that the reader
            // finds
            plan.log_start_offset = partition.ends.log_end_offset();
        }
        partition.with_spare(|partition| partition.apply_retention(&plan))?;
        Ok(plan)
    }

    /// Returns a reader of the log in its present state. It reads without the writer's lock and does not see
    /// later appends; [`Log::refresh`] returns a reader that does.
    ///
    /// # Errors
    /// Those of [`Log::open`].
    pub fn reader(&mut self) -> Result<Log> {
        self.shared.check_process()?;
        if let Ok(mut partition) = self.shared.enter() {
            partition.active.share_index_entries();
        }
        self.open_reader()
    }

    fn open_reader(&mut self) -> Result<Log> {
        let log = match self.reader.take() {
            Some(log) => log.refresh()?,
            None => Log::open_live(self.directory.clone(), self.reader_options.clone(), self.live.clone())?,
        };
        if self.is_preallocated {
            // the size of a preallocated file is not the end of its data
            log.log_end_offset()?;
        }
        Ok(self.reader.insert(log).clone())
    }

    /// Makes everything durable and closes the log, so that the next open does not have to read it. Later
    /// appends return an error. Closing twice is not an error.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::Poisoned`]: the log is recovered when it is opened again. Every later call
    /// returns [`Error::Poisoned`].
    ///
    /// *Source*: `UnifiedLog.close`.
    pub fn close(&mut self) -> Result<()> {
        let closed = self.shared.check_process().and_then(|()| {
            let mut partition = self.shared.lock();
            // even if the writer is poisoned: its locks are released below, and another writer may open the
            // log
            partition.live.withdraw();
            self.shared.commit.check().inspect_err(|_| partition.is_closed = true)?;
            if partition.is_closed {
                return Ok(());
            }
            partition.is_closed = true;
            let closed = partition.with_spare(Partition::close);
            self.shared.commit.or_poison(closed)
        });
        *self.shared.locks.lock().unwrap_or_else(PoisonError::into_inner) = None;
        closed
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Partition> {
        self.partition.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The partition. Fails if a change of it has failed in the middle: it may not match the files.
    fn lock_unpoisoned(&self) -> Result<MutexGuard<'_, Partition>> {
        let partition = self.lock();
        self.commit.check()?;
        Ok(partition)
    }

    fn check_process(&self) -> Result<()> {
        if forks_now() == self.forks { Ok(()) } else { Err(Error::Forked { handle: "LogWriter" }) }
    }

    /// The partition, for a change. Fails if the writer is closed, poisoned, or was opened by the parent of a
    /// forked process.
    fn enter(&self) -> Result<MutexGuard<'_, Partition>> {
        // before any lock: the thread that held it may not exist in a forked child, which would wait forever
        self.check_process()?;
        let partition = self.partition.lock().unwrap_or_else(|panicked| {
            // the thread that panicked may have left a change unfinished
            self.commit.poison(&Error::config(
                "writer",
                "a change without a panic",
                "a panic in the middle of one",
            ));
            panicked.into_inner()
        });
        self.commit.check()?;
        partition.check_open()?;
        Ok(partition)
    }
}
