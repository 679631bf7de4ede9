//! A partition: its segments, look-ups by offset and by time, scans. Kafka: `UnifiedLog`, `LocalLog`, read
//! side.
//!
//! A [`Log`] shows the directory as it was when it was opened, and writes nothing; [`Log::refresh`] returns
//! the directory as it is now.

mod column;
mod continuity;
mod deleted_files;
mod index_interval;
mod largest_times;
mod last_records;
mod latest;
pub(crate) mod live_segments;
mod loader;
mod log_start;
mod lookup;
mod lookup_many;
mod lost_end;
mod lost_start;
pub(crate) mod metadata;
#[cfg(feature = "inspect")]
mod misnamed;
mod offset_map;
mod opening;
mod plan;
mod position;
mod record_filter;
mod record_offsets;
mod replacement;
pub mod retention;
mod scan;
mod segments;
pub(crate) mod skip_list;
mod split;
#[cfg(feature = "plan")]
mod start_of_records;
mod transaction_checkpoint;
mod transactions;

use std::path::Path;
use std::sync::{Arc, OnceLock, Weak};

use crate::error::{Error, Result};
use crate::record::MAX_BATCH_BYTES;
pub use crate::segment::{Change, PlannedSegment};
use crate::segment::{OpenFiles, Warnings};
use crate::state::checkpoint::DurableOffsetFile;
#[cfg(feature = "binding")]
use crate::state::truncation_count;
use crate::types::{Interrupt, Io, OnWarning};

pub use column::Column;
pub(crate) use column::Origin;
use continuity::Continuity;
pub use continuity::OffsetGap;
pub(crate) use deleted_files::{LiveOffsets, OffsetRun};
pub use index_interval::IntervalSource;
pub(crate) use index_interval::shown_interval;
use largest_times::LargestTimes;
use live_segments::LiveSegments;
use log_start::ClaimedStart;
use lost_end::Synced;
pub(crate) use lost_start::LostStart;
pub(crate) use offset_map::{KeyHash, OffsetMap};
pub use position::Position;
pub use record_filter::RecordFilter;
pub(crate) use record_offsets::RecordOffsets;
pub(crate) use replacement::Replacement;
pub(crate) use scan::Counted;
#[cfg(feature = "plan")]
pub(crate) use scan::LostGap;
pub use scan::{
    DamagedRange, OnDamage, Progress, Ranges, RecordOffsetRange, Scan, ScanOptions, ScanStats, ScanStep,
};
pub use segments::Segments;
pub use split::Split;
pub use transactions::AbortedRange;
use transactions::{Outcome, Transactions};

/// How a log is opened.
#[derive(Debug, Clone)]
pub struct LogOptions {
    /// Which files are mapped.
    pub io: Io,
    /// Replaces the log start offset from the data directory's checkpoint (or the first segment's name).
    pub log_start_offset: Option<i64>,
    /// The topic, if the directory's name does not contain it.
    pub topic: Option<String>,
    /// The partition, if the directory's name does not contain it.
    pub partition: Option<i32>,
    /// The maximum number of files and mappings that the log keeps open. All logs of the process together
    /// keep no more than half of its soft limit of open files. In addition, a log keeps a descriptor of
    /// its directory open. An open index with many look-ups has up to 10 % of its size in memory: 1 MiB
    /// for the largest that Kafka writes by default.
    pub max_open_files: usize,
    /// The largest batch that is read, bytes: as stored, and decompressed. A larger one is an
    /// [`Error::BatchTooLarge`], and never skipped. It bounds the memory of a reader, which has one
    /// batch at a time. Default: [`MAX_BATCH_BYTES`].
    pub max_batch_bytes: usize,
    /// Tells whether the topic of a partition directory is compacted; `None` if that is not known. Called
    /// when it matters, at most once per log. Default: not known. With the feature `inspect`,
    /// `inspect::internal_topics::is_topic_compacted`.
    pub is_topic_compacted: fn(&Path) -> Option<bool>,
    /// Called during long work.
    pub interrupt: Interrupt,
    /// Receives the warnings.
    pub on_warning: OnWarning,
}

impl Default for LogOptions {
    fn default() -> Self {
        Self {
            io: Io::Auto,
            log_start_offset: None,
            topic: None,
            partition: None,
            max_open_files: 256,
            max_batch_bytes: MAX_BATCH_BYTES,
            is_topic_compacted: |_| None,
            interrupt: Interrupt::NEVER,
            on_warning: OnWarning::IGNORE,
        }
    }
}

/// A partition directory, open for reading.
///
/// *Concurrency*: cheap to clone, and every method may be called from many threads at once.
#[derive(Debug, Clone)]
pub struct Log {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    options: LogOptions,
    topic: Option<String>,
    partition: Option<i32>,
    segments: Segments,
    log_start_offset: i64,
    claimed_start: ClaimedStart,
    /// Read when the log was opened; `None` for the reader of a writer in this process.
    synced: Option<Synced>,
    /// The warning that the first segments are missing, if they are.
    lost_start: OnceLock<String>,
    /// The warning that the log ends before that; computed with the log end offset.
    lost_end: OnceLock<Option<String>>,
    open_files: Arc<OpenFiles>,
    /// The warnings of the opening.
    opening: Vec<String>,
    /// The warnings of look-ups. Refreshed logs share them, like the segments.
    lookups: Arc<Warnings>,
    transactions: OnceLock<Arc<Transactions>>,
    /// Those of a log that it was refreshed from.
    earlier_transactions: Option<Arc<Transactions>>,
    largest_times: LargestTimes,
    continuity: Continuity,
    /// The segments of the writer in this process that opened the log as its reader.
    live: Weak<LiveSegments>,
}

impl Log {
    /// Whether this is the same handle as `other`, as after a refresh that found no change.
    #[cfg(feature = "binding")]
    #[doc(hidden)]
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }

    /// The truncation count when the log was opened.
    #[cfg(feature = "binding")]
    #[doc(hidden)]
    pub fn truncations(&self) -> u64 {
        self.segments().first().map_or(0, |segment| segment.truncations())
    }

    /// Whether a writer was truncating the log when it was opened, or a crash has interrupted that: its end
    /// may still fall.
    #[cfg(feature = "binding")]
    #[doc(hidden)]
    pub fn is_being_truncated(&self) -> bool {
        truncation_count::is_in_progress(self.truncations())
    }

    /// The absolute path by which the directory was opened.
    pub fn path(&self) -> &Path {
        self.inner.open_files.directory.path()
    }

    pub(crate) fn directory(&self) -> &crate::fs::Directory {
        &self.inner.open_files.directory
    }

    /// How the log was opened.
    pub fn options(&self) -> &LogOptions {
        &self.inner.options
    }

    /// The topic, from the options or the directory's name; `None` if neither contains it.
    pub fn topic(&self) -> Option<&str> {
        self.inner.topic.as_deref()
    }

    /// The partition, from the options or the directory's name; `None` if neither contains it.
    pub fn partition(&self) -> Option<i32> {
        self.inner.partition
    }

    /// The first offset that a reader may see, inclusive.
    pub fn log_start_offset(&self) -> i64 {
        self.inner.log_start_offset
    }

    /// The offset that the next record gets: the exclusive end of the log. *Cost*: the first call opens the
    /// last segment and reads its end.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::LogChanged`] if the last segment is not the file it was when the log was
    /// opened.
    pub fn log_end_offset(&self) -> Result<i64> {
        let start = self.log_start_offset();
        let end = self.segments().last().map_or(Ok(start), |last| Ok(last.end_offset()?.max(start)))?;
        self.inner.lost_end.get_or_init(|| {
            let warning = self.inner.synced.and_then(|synced| synced.warning(self.path(), end));
            warning.inspect(|warning| self.inner.lookups.report(warning))
        });
        Ok(end)
    }

    /// Whether [`Log::log_end_offset`] was called and has returned the end.
    #[inline]
    fn is_end_known(&self) -> bool {
        self.inner.lost_end.get().is_some()
    }

    /// Whether an offset is below the log end offset, which is read only if the last segment's base offset
    /// does not decide.
    fn is_below_end(&self, offset: i64) -> Result<bool> {
        Ok(offset < self.last_base_offset() || offset < self.log_end_offset()?)
    }

    /// The base offset of the last segment: the log end offset is not below it.
    fn last_base_offset(&self) -> i64 {
        self.segments().last().map_or(self.log_start_offset(), |last| last.base_offset())
    }

    /// The offset up to which the [`LogWriter`](crate::writer::LogWriter) of this log has synced it, as its
    /// small file says now, at most the log end offset: records below it survive a power loss. `None` if
    /// no such writer has opened the log, or if a broker holds the lock of the data directory: it does
    /// not continue the file.
    ///
    /// # Errors
    /// As [`Log::log_end_offset`].
    pub fn durable_offset(&self) -> Result<Option<i64>> {
        let end = self.log_end_offset()?;
        if self.directory().is_locked_by_broker() {
            return Ok(None);
        }
        Ok(DurableOffsetFile::read(self.directory())?.map(|offset| offset.min(end)))
    }

    /// The exclusive end of what a committed reader sees: the first offset of the oldest open transaction, or
    /// the log end offset. *Cost*: the first call walks all headers of the log.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if damage may have destroyed a transaction's marker; [`Error::Io`].
    pub fn last_stable_offset(&self) -> Result<i64> {
        let transactions = self.transactions()?;
        transactions.ensure_decided()?;
        Ok(transactions.last_stable_offset)
    }

    pub(crate) fn transactions(&self) -> Result<Arc<Transactions>> {
        if let Some(transactions) = self.inner.transactions.get() {
            return Ok(Arc::clone(transactions));
        }
        let earlier = self.inner.earlier_transactions.as_deref();
        let transactions = Arc::new(Transactions::read(self, earlier)?);
        Ok(Arc::clone(self.inner.transactions.get_or_init(|| transactions)))
    }

    /// The transactions of this log, or of one that it was refreshed from; `None` if they were never read.
    fn known_transactions(&self) -> Option<Arc<Transactions>> {
        self.inner.transactions.get().or(self.inner.earlier_transactions.as_ref()).cloned()
    }

    /// The same log with these transactions.
    fn with_transactions(&self, transactions: Transactions) -> Self {
        self.with(self.inner.log_start_offset, OnceLock::from(Arc::new(transactions)))
    }

    /// The same log from the base offset of its first segment on, with the records that the log start offset
    /// hides.
    #[cfg(feature = "inspect")]
    pub(crate) fn with_hidden_records(&self) -> Self {
        let first = self.segments().first().map_or(self.log_start_offset(), |first| first.base_offset());
        self.with(first.min(self.log_start_offset()), OnceLock::new())
    }

    fn with(&self, log_start_offset: i64, transactions: OnceLock<Arc<Transactions>>) -> Self {
        let Inner { options, topic, partition, segments, open_files, opening, lookups, .. } = &*self.inner;
        Self {
            inner: Arc::new(Inner {
                options: options.clone(),
                topic: topic.clone(),
                partition: *partition,
                segments: segments.clone(),
                log_start_offset,
                claimed_start: self.inner.claimed_start,
                synced: self.inner.synced,
                lost_start: self.inner.lost_start.clone(),
                lost_end: self.inner.lost_end.clone(),
                open_files: Arc::clone(open_files),
                opening: opening.clone(),
                lookups: Arc::clone(lookups),
                transactions,
                earlier_transactions: None,
                largest_times: LargestTimes::default(),
                continuity: Continuity::default(),
                live: self.inner.live.clone(),
            }),
        }
    }

    /// The segments, in order.
    pub fn segments(&self) -> &Segments {
        &self.inner.segments
    }

    /// The bytes of all batches: the `.log` files without preallocated space. *Cost*: the first call opens
    /// each segment's `.log`, and finds the end of the last one.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::LogChanged`].
    pub fn size(&self) -> Result<u64> {
        self.segments().iter().map(|segment| segment.size()).sum()
    }

    /// Warnings about conditions that are not errors: a tail that is not data (unless a broker or a writer
    /// has the log open: it is being written), missing first segments, an end below the offset up to which
    /// the log was synced, an index entry that the log does not confirm, records hidden below the log start
    /// offset. Look-ups add to them. Finds the end of the log first; if that fails, the error is one of the
    /// warnings.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = self.inner.opening.clone();
        warnings.extend(self.inner.lost_start.get().cloned());
        let torn = self.segments().last().and_then(|last| match last.torn_tail_warning() {
            Ok(torn) => torn,
            Err(error) => Some(error.to_string()),
        });
        warnings.extend(torn);
        // an error is one of the warnings already
        let _ = self.log_end_offset();
        warnings.extend(self.inner.lost_end.get().cloned().flatten());
        warnings.extend(self.inner.lookups.all());
        warnings
    }

    /// The number of times a file of the log was opened so far, by this log and those it was refreshed from
    /// or to.
    pub fn files_opened(&self) -> u64 {
        self.inner.open_files.open_count()
    }

    /// The state of a segment replacement in the directory, as it is now.
    pub(crate) fn replacement(&self) -> Result<Replacement> {
        let open_files = &self.inner.open_files;
        let (files, truncations) = (open_files.directory.segment_files()?, open_files.truncations()?);
        loader::replacement_in(open_files, &files, truncations, &self.inner.lookups)
    }

    /// Fails if a `LogWriter` has truncated the log since it was opened. Called before a result from memory
    /// is returned.
    pub(crate) fn check_unchanged(&self) -> Result<()> {
        // the count was read once for all segments
        self.segments().last().map_or(Ok(()), |segment| segment.check_unchanged())
    }

    /// Fails if valid batches may follow the end of the log.
    pub(crate) fn refuse_uncertain_end(&self) -> Result<()> {
        self.segments().last().map_or(Ok(()), |last| last.refuse_uncertain_end())
    }

    fn out_of_range(&self, offset: i64) -> Error {
        match self.log_end_offset() {
            Ok(end) => {
                let (path, log_start_offset) = (self.path().to_owned(), self.log_start_offset());
                Error::OffsetOutOfRange { path, offset, log_start_offset, log_end_offset: end }
            }
            Err(error) => error,
        }
    }
}
