//! A durable log with one writer: append, roll, recover, retain, truncate. Kafka: `UnifiedLog`, `LocalLog`, write side.
//!
//! ```text
//! LogWriter ─┐ (unique: structure)        ┌─ Partition   segments, ends, epochs: under one lock
//! Appender ──┴─▶ Shared ──────────────────┤
//!   (cloned: appends)                     └─ GroupCommit      which thread syncs, and the durable offset
//! ```

mod appender;
mod close;
mod ends;
mod flush_mode;
mod group_commit;
mod options;
mod partition;
mod poison;
mod recovery;
mod restart;
mod truncate;

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use crate::state::data_directory::DataDirectory;
pub use appender::Appender;
pub use flush_mode::FlushMode;
use group_commit::GroupCommit;
pub use options::WriterOptions;
use partition::Partition;
pub use recovery::{
    FileChange, FileChangeReason, RebuildReason, RebuiltIndex, RecoveryCut, RecoveryPlan, SegmentSplit,
};

use crate::config::LogConfig;
use crate::error::{Error, IoAction, Result};
use crate::fs::seeded_bugs::{self, SeededBug};
use crate::fs::{Directory, PartitionLocks, forks, forks_now};
use crate::log::live_segments::LiveSegments;
use crate::log::retention::{self, RetentionPlan};
use crate::log::{Log, LogOptions};
use crate::record::NewRecord;
use crate::state::leader_epochs::LeaderEpochs;
pub use crate::state::partition_metadata::TopicId;
use crate::types::Interrupt;

/// The end offset and the bytes of both indexes that recovery computes for the last segment of a log. For a benchmark: nothing is
/// dropped from the page cache, and nothing is written.
pub(crate) fn derived_indexes(log: &Log, config: &LogConfig) -> Result<(i64, [Vec<u8>; 2])> {
    let Some(segment) = log.segments().last() else { return Ok((0, [const { Vec::new() }; 2])) };
    let scanned = recovery::scan(segment, -1, None, Partition::entry_rule(config), Interrupt::NEVER)?;
    let end_offset = scanned.end_offset;
    let indexes = scanned.into_indexes();
    Ok((end_offset, [indexes.offset_index, indexes.time_index]))
}

/// The result of an append. Kafka: `LogAppendInfo`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Appended {
    /// The offset of the first record.
    pub first_offset: i64,
    /// The offset of the last record, inclusive; below `first_offset` where no record was given.
    pub last_offset: i64,
    /// The largest timestamp as it was stored, ms; −1 where no record has one.
    pub max_timestamp: i64,
    /// Whether the records survive a power loss.
    pub durable: bool,
}

impl Appended {
    /// The result of this append and a later one together.
    pub(crate) fn followed_by(self, later: Self) -> Self {
        let is_empty = self.last_offset < self.first_offset;
        let first_offset = if is_empty { later.first_offset } else { self.first_offset };
        Self { first_offset, max_timestamp: self.max_timestamp.max(later.max_timestamp), ..later }
    }
}

/// The state that a writer shares with its appenders.
#[derive(Debug)]
struct Shared {
    partition: Mutex<Partition>,
    commit: Arc<GroupCommit>,
    flush: FlushMode,
    /// The number of forks when the writer was opened: a forked child must not use it.
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
/// *Concurrency*: unique; [`LogWriter::appender`] returns handles for other threads. A log that is dropped without
/// [`LogWriter::close`] is recovered when it is opened again. In a forked child every call that can fail is an error; a call that
/// only returns a number may block there, because another thread of the parent held a lock.
#[derive(Debug)]
pub struct LogWriter {
    shared: Arc<Shared>,
    directory: Directory,
    /// Dropped when the log is closed.
    live: Weak<LiveSegments>,
    reader: Option<Log>,
    recovery: Option<RecoveryPlan>,
    /// A copy of the setting: `apply_retention` holds the lock of the settings when it opens a reader.
    is_preallocated: bool,
    interrupt: Interrupt,
}

impl LogWriter {
    /// Opens a partition directory for writing, or creates it. After an unclean stop the log is recovered first: indexes are
    /// rebuilt, and a torn write at the end is cut and kept in `quarantine/`; [`LogWriter::recovery`] returns what was changed.
    /// Where the opening of a new log fails, the files that it created are removed.
    ///
    /// # Errors
    /// [`Error::Locked`] where another writer or a broker has it; [`Error::Corrupt`] where it is damaged, or a segment is
    /// missing: nothing is changed then; [`Error::UnsupportedFormat`] where its batches have producer ids; [`Error::Config`],
    /// also for a directory name that Kafka does not accept in a data directory; [`Error::Io`].
    ///
    /// *Source*: `UnifiedLog.create`, `LogLoader.load`.
    pub fn open(path: impl AsRef<Path>, options: &WriterOptions) -> Result<Self> {
        let advice = "make the folder that is to hold the partition directory first";
        // before the directory is created
        options.check()?;
        let mut is_made = false;
        let directory = Directory::open_or_create(path.as_ref(), advice, |folder, name| {
            DataDirectory::refuse(folder, name)?;
            is_made = true;
            Ok(())
        })?;
        DataDirectory::refuse_itself(&directory)?;
        let mut locks = PartitionLocks::take(&directory)?;
        let writer = Self::start(directory.clone(), options).inspect_err(|_| {
            if is_made {
                recovery::remove_directory(&directory);
            }
        })?;
        locks.renew(&writer.directory)?;
        *writer.shared.locks.lock().unwrap_or_else(PoisonError::into_inner) = Some(locks);
        Ok(writer)
    }

    /// [`LogWriter::open`] of a directory that is open already, without a lock: the caller guarantees that there is no other
    /// writer.
    ///
    /// # Errors
    /// As [`LogWriter::open`].
    pub fn open_in(directory: Directory, options: &WriterOptions) -> Result<Self> {
        Self::start(directory, options)
    }

    /// Returns what [`LogWriter::open`] would change to recover the log, and changes nothing. It takes no lock: another process
    /// may take one before the log is opened. The directory has to exist. Without a segment, the plan is that of a new log.
    ///
    /// *Cost*: reads what [`LogWriter::open`] reads.
    ///
    /// # Errors
    /// As [`LogWriter::open`]; [`Error::LogNotFound`] where the directory does not exist.
    pub fn plan_recovery(path: impl AsRef<Path>, options: &WriterOptions) -> Result<RecoveryPlan> {
        let directory = Directory::open(path.as_ref(), "give the path of a partition directory")?;
        DataDirectory::refuse_itself(&directory)?;
        PartitionLocks::probe(&directory)?;
        directory.check_writable()?;
        recovery::plan(&directory, options)
    }

    /// What opening the log changed to recover it; `None` where it changed nothing.
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
        let (partition, recovery) = recovery::open(directory.clone(), options)?;
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
            interrupt: options.interrupt,
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

    /// Appends one record, as a batch of its own; see [`Appender::append`].
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

    /// Appends v2 batches as they are; see [`Appender::append_batches`].
    ///
    /// # Errors
    /// Those of [`Appender::append_batches`].
    pub fn append_batches(&mut self, raw: &[u8], keep_offsets: bool) -> Result<Appended> {
        self.appender().append_batches(raw, keep_offsets)
    }

    /// Makes everything appended so far durable.
    ///
    /// # Errors
    /// [`Error::Io`], and from then on [`Error::Poisoned`].
    pub fn flush(&mut self) -> Result<()> {
        self.appender().flush()
    }

    /// The offset after the last record. Kafka: `logEndOffset`.
    pub fn log_end_offset(&self) -> i64 {
        self.shared.lock().ends.log_end_offset()
    }

    /// The log start offset: no record below exists. Kafka: `logStartOffset`.
    pub fn log_start_offset(&self) -> i64 {
        self.shared.lock().ends.log_start_offset()
    }

    /// The durable offset: everything below survives a power loss. Kafka: `recoveryPoint`.
    pub fn durable_offset(&self) -> i64 {
        self.shared.commit.durable()
    }

    /// The history of leader epochs.
    pub fn leader_epochs(&self) -> LeaderEpochs {
        self.shared.lock().epochs.clone()
    }

    /// Ends the active segment and begins a new one at the log end offset. An empty active segment stays.
    ///
    /// # Errors
    /// [`Error::Io`]: where the disk is full nothing has changed; [`Error::Poisoned`].
    ///
    /// *Source*: `UnifiedLog.roll`.
    pub fn roll(&mut self) -> Result<()> {
        self.shared.enter()?.roll_at_end()
    }

    /// Removes every batch with an offset at or above `offset`: the log ends at `offset` then. False where it ended there or below
    /// already. A batch that holds `offset` is removed as a whole. The removal is durable when this returns.
    ///
    /// # Errors
    /// [`Error::Config`] for a negative offset; [`Error::Corrupt`] where the log is damaged before it; [`Error::Io`]: where the
    /// disk is full nothing has changed (a segment that is cut in the middle, and is not the last, needs room for a copy);
    /// [`Error::Poisoned`].
    ///
    /// *Source*: `UnifiedLog.truncateTo`.
    pub fn truncate_to(&mut self, offset: i64) -> Result<bool> {
        self.shared.enter()?.truncate_to(offset)
    }

    /// Removes every record; the log starts and ends at `offset` then.
    ///
    /// # Errors
    /// [`Error::Config`] for an offset out of range; [`Error::Io`]: where the disk is full nothing has changed;
    /// [`Error::Poisoned`].
    ///
    /// *Source*: `UnifiedLog.truncateFullyAndStartAt`.
    pub fn truncate_fully_and_start_at(&mut self, offset: i64) -> Result<()> {
        self.shared.enter()?.truncate_fully_and_start_at(offset)
    }

    /// Moves the log start offset to `offset`: records below are removed, and segments without other records are deleted. False
    /// where the log started there or above already. The removal is durable when this returns.
    ///
    /// # Errors
    /// [`Error::Config`] for a negative offset; [`Error::OffsetOutOfRange`] above the log end offset; [`Error::Io`]: where the
    /// disk is full nothing has changed; [`Error::Poisoned`].
    ///
    /// *Source*: `UnifiedLog.maybeIncrementLogStartOffset`, `deleteRecords`.
    pub fn delete_before(&mut self, offset: i64) -> Result<bool> {
        self.shared.enter()?.delete_before(offset)
    }

    /// Deletes the segments that the retention settings allow to delete, and returns which. `now`: ms since the epoch; `None`: the
    /// clock's time.
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
            // after a truncation inside a batch the log ends above the data end that the reader finds
            plan.log_start_offset = partition.ends.log_end_offset();
            partition.roll_at_end()?;
        }
        if !plan.segments.is_empty() {
            partition.delete_before(plan.log_start_offset)?;
            let removed = partition.remove_passed();
            shared.commit.or_poison(removed)?;
        }
        Ok(plan)
    }

    /// Returns a reader of the log as of now. It reads beside the writer, without its lock, and does not see later appends;
    /// [`Log::refresh`] returns one that does.
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
            None => Log::open_live(
                self.directory.clone(),
                LogOptions { interrupt: self.interrupt, ..LogOptions::default() },
                self.live.clone(),
            )?,
        };
        if self.is_preallocated {
            // the size of a preallocated file is not the end of its data
            log.log_end_offset()?;
        }
        Ok(self.reader.insert(log).clone())
    }

    /// Makes everything durable and closes the log, so that the next opening need not read it. Appends are errors from then on.
    /// Closing twice is no error.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::Poisoned`]: the log is recovered when it is opened again. Every later call is
    /// [`Error::Poisoned`].
    ///
    /// *Source*: `UnifiedLog.close`.
    pub fn close(&mut self) -> Result<()> {
        let closed = self.shared.check_process().and_then(|()| {
            let mut partition = self.shared.lock();
            // also where the writer is poisoned: its locks are released below, and another writer may open the log
            partition.live.withdraw();
            self.shared.commit.check().inspect_err(|_| partition.is_closed = true)?;
            if partition.is_closed {
                return Ok(());
            }
            partition.is_closed = true;
            let closed = partition.close();
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

    /// The partition, where no change of it has failed in the middle: only then does it match the files.
    fn lock_sound(&self) -> Result<MutexGuard<'_, Partition>> {
        let partition = self.lock();
        self.commit.check()?;
        Ok(partition)
    }

    fn check_process(&self) -> Result<()> {
        if forks_now() == self.forks { Ok(()) } else { Err(Error::Forked { handle: "LogWriter" }) }
    }

    /// The partition, where it may be changed.
    fn enter(&self) -> Result<MutexGuard<'_, Partition>> {
        // before any lock: a thread that held one may not exist in a forked child
        self.check_process()?;
        let partition = self.partition.lock().unwrap_or_else(|panicked| {
            // the thread that panicked may have left it half changed
            self.commit.poison(&Error::config(
                "writer",
                "a change that ends",
                "a panic in the middle of one",
            ));
            panicked.into_inner()
        });
        self.commit.check()?;
        partition.check_open()?;
        Ok(partition)
    }

    /// Returns once everything below `offset` is durable. `truncations`: their number when the log reached `offset`.
    fn wait_durable(&self, offset: i64, truncations: u64, wait: Option<(Duration, u64)>) -> Result<()> {
        self.commit.wait_durable(offset, truncations, wait, self.interrupt, || {
            let unsynced = self.lock_sound()?.unsynced();
            if !seeded_bugs::is(SeededBug::AckBeforeFsync) {
                let synced = unsynced.file.sync();
                if seeded_bugs::is(SeededBug::FsyncRetriedAfterError) && synced.is_err() {
                    unsynced.file.sync()?;
                } else {
                    synced?;
                }
            }
            self.lock_sound()?.note_synced(&unsynced)?;
            Ok(unsynced.log_end_offset)
        })
    }

    /// Waits as the flush mode requires before an append returns; true where its records are durable.
    fn await_flush(&self, appended: &Appended, truncations: u64) -> Result<bool> {
        let end = appended.last_offset + 1;
        match self.flush {
            FlushMode::None => {}
            FlushMode::Always => self.wait_durable(end, truncations, None)?,
            FlushMode::Group { ms, bytes } => {
                self.wait_durable(end, truncations, Some((Duration::from_millis(ms), bytes)))?;
            }
            FlushMode::Interval { messages, ms } => {
                let mut last = self.last_sync.lock().unwrap_or_else(PoisonError::into_inner);
                let since = u64::try_from(end - self.commit.durable()).unwrap_or(0);
                let waited = u64::try_from(last.elapsed().as_millis()).unwrap_or(u64::MAX);
                if messages.is_some_and(|most| since >= most) || ms.is_some_and(|most| waited >= most) {
                    *last = Instant::now();
                    drop(last);
                    self.wait_durable(end, truncations, None)?;
                }
            }
        }
        Ok(self.commit.durable() >= end)
    }
}
