//! One segment: a `.log`, its indexes, and the look-ups in them. Kafka: `LogSegment`, read side.
//!
//! Indexes are hints. An index entry is used only after the batch it points to was read and agrees with it.
//! If it does not agree, the look-up walks the log without the index and records a warning.

mod appender;
mod batch_table;
mod buckets;
mod candidate;
mod cuts;
mod damage;
mod damaged_span;
mod entry_match;
mod epoch_fall;
mod file_budget;
mod file_slots;
mod hidden_times;
mod identity;
mod index_reach;
mod lazy_table;
mod leader_epochs;
mod log_file;
mod misnamed;
mod named_batch;
mod offset_lookups;
mod open_files;
mod overlap;
mod pair_cache;
mod part;
mod payload;
mod planned;
mod resync;
mod roll;
mod search;
mod shared_bytes;
mod staged;
mod tail;
mod time_buckets;
mod time_index_check;
mod time_lookups;
mod time_search;
mod time_table;
mod verified_batches;
mod walk;
mod warnings;

use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

use crate::error::{Error, Result};
use crate::fs::names::FileKind;
use crate::fs::{FileBytes, FileIdentity};
use crate::index::{OffsetIndex, TimeIndex, TransactionIndex};
use crate::types::Io;

pub(crate) use appender::{SegmentAppender, SegmentLayout, SegmentState, remove_segment};
use batch_table::BatchTable;
pub(crate) use batch_table::FoundBatch;
pub(crate) use buckets::{Bucket, Buckets};
pub(crate) use damage::{Bounds, Damage, EpochsBefore, Preceding};
pub(crate) use damaged_span::{DamagedSpan, UNSEARCHED};
pub(crate) use entry_match::OffsetMatch;
#[cfg(feature = "inspect")]
pub(crate) use entry_match::{is_time_of, time_entry_follows};
#[cfg(feature = "inspect")]
pub(crate) use epoch_fall::{WrongEpoch, wrong_epoch};
pub(crate) use file_budget::{close_deleted_files, with_descriptors};
use file_slots::{FileSlots, Slot};
use lazy_table::LazyTable;
pub(crate) use log_file::LogFile;
#[cfg(feature = "inspect")]
pub(crate) use misnamed::{BelowBase, Flip};
pub(crate) use offset_lookups::OffsetLookups;
pub(crate) use open_files::OpenFiles;
use pair_cache::RecentPairs;
pub(crate) use part::{IndexBytes, Part, PartBuilder};
pub use planned::{Change, PlannedSegment};
pub(crate) use roll::{RollParams, is_relative, should_roll};
pub(crate) use search::Found;
#[cfg(feature = "arrow")]
pub(crate) use shared_bytes::SharedBytes;
pub(crate) use shared_bytes::reusable;
pub(crate) use staged::StagedSegment;
pub(crate) use tail::Tail;
pub(crate) use time_lookups::TimeLookups;
use time_table::TimeTable;
use verified_batches::VerifiedBatches;
pub use walk::Batch;
pub(crate) use walk::{Step, Walk};
pub(crate) use warnings::Warnings;

/// Bytes that a look-up reads at a time if the file is not mapped: enough for an index interval of small
/// batches.
pub(crate) const LOOKUP_READ: usize = 8 << 10;
/// The maximum size of a batch that a look-up reads whole, with the header after it.
const MAX_LOOKUP_READ: usize = 64 << 10;
/// Bytes that a scan reads at a time if the file is not mapped: they are in the processor's second cache when
/// they are used.
pub(crate) const SCAN_READ: usize = 256 << 10;

/// The names of a segment's files in the directory. They have the suffix `.swap` if a committed replacement
/// was not renamed yet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SegmentFiles {
    pub(crate) log: String,
    pub(crate) offset_index: Option<String>,
    pub(crate) time_index: Option<String>,
    pub(crate) transaction_index: Option<String>,
}

/// A segment of a log, as it was when the log was opened. Its files are opened on first use.
#[derive(Debug)]
pub struct Segment {
    base_offset: i64,
    /// The next segment's base offset, or `i64::MAX` for the last.
    upper: i64,
    files: SegmentFiles,
    slots: Arc<FileSlots>,
    /// The truncation count before the directory was listed.
    truncations: Option<u64>,
    open_files: Arc<OpenFiles>,
    warnings: Arc<Warnings>,
    /// The identity of the `.log` at its first use; for the last segment, when the log was opened.
    identity: OnceLock<FileIdentity>,
    /// The time before the directory was listed and before any file was read.
    listed: SystemTime,
    tail: OnceLock<Tail>,
    largest: OnceLock<i64>,
    are_indexes_checked: AtomicBool,
    has_overflow: AtomicBool,
    /// Whether offsets are missing between two batches or inside one.
    compacted: OnceLock<bool>,
    begins_before_v2: OnceLock<bool>,
    hides_times: OnceLock<bool>,
    verified: VerifiedBatches,
    /// The positions of the batches of time index entries that the log confirmed, by slot.
    confirmed_times: RecentPairs,
    /// Bytes of the batches that the last look-up found and the one before it; 0 for none.
    found_bytes: [AtomicU32; 2],
    batch_table: LazyTable<BatchTable>,
    time_table: LazyTable<TimeTable>,
}

impl Segment {
    pub(crate) fn new(
        base_offset: i64,
        upper: Option<i64>,
        files: SegmentFiles,
        open_files: &Arc<OpenFiles>,
        truncations: Option<u64>,
        warnings: &Arc<Warnings>,
    ) -> Self {
        Self {
            base_offset,
            upper: upper.unwrap_or(i64::MAX),
            files,
            slots: Arc::default(),
            truncations,
            open_files: Arc::clone(open_files),
            warnings: Arc::clone(warnings),
            identity: OnceLock::new(),
            listed: SystemTime::now(),
            tail: OnceLock::new(),
            largest: OnceLock::new(),
            are_indexes_checked: AtomicBool::new(false),
            has_overflow: AtomicBool::new(false),
            compacted: OnceLock::new(),
            begins_before_v2: OnceLock::new(),
            hides_times: OnceLock::new(),
            verified: VerifiedBatches::default(),
            confirmed_times: RecentPairs::default(),
            found_bytes: Default::default(),
            batch_table: LazyTable::default(),
            time_table: LazyTable::default(),
        }
    }

    /// The base offset. All records of the segment have an offset at or above it; a record at exactly this
    /// offset need not exist.
    pub fn base_offset(&self) -> i64 {
        self.base_offset
    }

    /// The truncation count when the segment was listed.
    #[cfg(feature = "binding")]
    pub(crate) fn truncations(&self) -> u64 {
        self.truncations.unwrap_or(0)
    }

    pub(crate) fn upper(&self) -> i64 {
        self.upper
    }

    pub(crate) fn is_last(&self) -> bool {
        self.upper == i64::MAX
    }

    pub(crate) fn open_files(&self) -> &Arc<OpenFiles> {
        &self.open_files
    }

    /// The names of its files in the directory.
    #[cfg(feature = "inspect")]
    pub(crate) fn files(&self) -> &SegmentFiles {
        &self.files
    }

    pub(crate) fn warn(&self, warning: &str) {
        self.warnings.add(warning);
    }

    /// The path of the `.log`.
    pub fn path(&self) -> PathBuf {
        self.open_files.directory.path_of(&self.files.log)
    }

    /// The bytes of the segment's batches: the size of the `.log`. For the last segment, without the bytes
    /// after the last whole batch, such as the zeros of a preallocated file. The value is fixed when the
    /// log is opened for the last segment, and at the first call for others.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::LogChanged`] if the file is gone.
    ///
    /// *Source*: `LogSegment.size`.
    pub fn size(&self) -> Result<u64> {
        if self.is_last() { Ok(self.tail()?.end) } else { self.file_size() }
    }

    /// Drops the cached pages of the `.log`, so that later reads come from the disk.
    pub(crate) fn forget_cached(&self) -> Result<()> {
        self.open_log_file()?.forget_cached()
    }

    /// The bytes of the `.log`.
    pub(crate) fn log_bytes(&self) -> Result<Arc<FileBytes>> {
        self.open_files.get(
            &self.slots,
            |slots| &slots.log,
            FileKind::Log,
            || {
                let file = self.open_log_file()?;
                let identity = *self.identity.get_or_init(|| file.identity());
                // only the last segment may grow; any other with a different inode or size has been replaced
                if file.identity().inode != identity.inode || !self.is_last() && file.size() != identity.size
                {
                    return Err(self.changed("a different file with that name"));
                }
                let size = self.min_size(&identity, file.size());
                FileBytes::new(file, Some(size), self.open_files.io == Io::Mmap)
            },
        )
    }

    /// A reader of the `.log` that reads `ahead` bytes at a time.
    pub(crate) fn log_file(&self, ahead: usize) -> Result<LogFile> {
        let bytes = self.log_bytes()?;
        let is_read = bytes.mapped().is_none() && bytes.size() > 0;
        let log = LogFile::new(bytes, ahead, Arc::clone(&self.open_files), self.truncations);
        if !is_read {
            // the bytes of a mapping may have been overwritten in place, and those of an empty file removed;
            // each read checks it
            log.check_unchanged()?;
        }
        Ok(log)
    }

    /// [`Segment::log_file`] for a look-up, which calls [`Segment::check_unchanged`] at its end.
    fn look_up_file(&self, ahead: usize) -> Result<LogFile> {
        let log = LogFile::new(self.log_bytes()?, ahead, Arc::clone(&self.open_files), self.truncations);
        Ok(log.leave_check_to_caller())
    }

    /// Fails if a `LogWriter` has truncated the log since it was opened. Called before a result from memory
    /// is returned.
    #[inline]
    pub(crate) fn check_unchanged(&self) -> Result<()> {
        self.open_files.check_truncations(self.truncations, || self.path())
    }

    fn open_log_file(&self) -> Result<crate::fs::SystemFile> {
        self.open_files.directory.open_file(&self.files.log).map_err(|error| match error {
            Error::Io { source, .. } if source.kind() == io::ErrorKind::NotFound => self.changed("no file"),
            error => error,
        })
    }

    fn changed(&self, found: &str) -> Error {
        Error::LogChanged {
            file: self.path(),
            expected: "the segment as it was when the log was opened".to_owned(),
            found: found.to_owned(),
        }
    }

    /// The offset index, or `None` if there is no such file.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn offset_index(&self) -> Result<Option<Arc<OffsetIndex>>> {
        let open = |bytes| OffsetIndex::from_bytes(bytes, self.base_offset);
        self.open_index(
            self.files.offset_index.as_deref(),
            |slots| &slots.offset_index,
            FileKind::OffsetIndex,
            open,
        )
    }

    /// The time index, or `None` if there is no such file.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn time_index(&self) -> Result<Option<Arc<TimeIndex>>> {
        let open = |bytes| TimeIndex::from_bytes(bytes, self.base_offset);
        self.open_index(
            self.files.time_index.as_deref(),
            |slots| &slots.time_index,
            FileKind::TimeIndex,
            open,
        )
    }

    /// The transaction index, or `None` if there is no such file: the segment contains no abort marker, or
    /// the file was lost.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn transaction_index(&self) -> Result<Option<Arc<TransactionIndex>>> {
        let name = self.files.transaction_index.as_deref();
        let open = |bytes| Ok(TransactionIndex::from_bytes(bytes, self.base_offset));
        self.open_index(name, |slots| &slots.transaction_index, FileKind::TransactionIndex, open)
    }

    fn open_index<T>(
        &self,
        name: Option<&str>,
        slot: impl Fn(&FileSlots) -> &Slot<T>,
        kind: FileKind,
        open: impl Fn(FileBytes) -> Result<T>,
    ) -> Result<Option<Arc<T>>> {
        let Some(name) = name else { return Ok(None) };
        let opened = self.open_files.get(&self.slots, slot, kind, || {
            let file = self.open_files.directory.open_file(name)?;
            open(FileBytes::new(file, None, self.open_files.io == Io::Mmap)?)
        });
        match opened {
            Ok(opened) => Ok(Some(opened)),
            // removed with its segment, or a broker that rolls has just renamed it
            Err(Error::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The index or a part of it, for a look-up that can work without one. An error becomes a warning. Not
    /// for an interrupt, nor for an error of the `.log` on which the result depends: they have to end the
    /// look-up.
    pub(crate) fn or_warn<T>(&self, index: Result<Option<T>>) -> Option<T> {
        index.unwrap_or_else(|error| {
            self.warn(&format!("{error}; the look-up does not use it"));
            None
        })
    }

    pub(crate) fn bounds(&self) -> Result<Bounds> {
        Ok(Bounds { base_offset: self.base_offset, upper: self.upper, end: self.size()? })
    }

    /// A walk from the segment's first batch, after a segment that ended with these epochs.
    pub(crate) fn walk(&self, epochs: impl Into<EpochsBefore>, read: usize) -> Result<Walk> {
        self.walk_in(self.log_file(read)?, epochs)
    }

    /// [`Segment::walk`] with a reader of its `.log`.
    fn walk_in(&self, log: LogFile, epochs: impl Into<EpochsBefore>) -> Result<Walk> {
        let bounds = self.bounds()?;
        Ok(Walk::new(log, bounds, 0, Some(bounds.before_first(epochs))))
    }

    /// Warns about a batch that no index can refer to. Old versions of Kafka's cleaner left such batches. In
    /// the last batch of a log, whose base offset nothing else confirms, the cause may also be a flipped
    /// bit.
    pub(crate) fn note_overflow(&self, batch: &Batch) {
        if !is_relative(batch.header.last_offset, self.base_offset)
            && !self.has_overflow.swap(true, Ordering::Relaxed)
        {
            self.warn(&format!(
                "{}: has offsets more than 2^31 - 1 above its base offset, to which no index can refer; a writer splits the \
                 segment when it recovers it",
                self.path().display()
            ));
        }
    }

    /// An error of kind [`Error::Corrupt`] for damage in this segment.
    pub(crate) fn corrupt(&self, damage: &Damage) -> Error {
        damage.malformed.clone().at(self.path(), damage.position, Some(damage.offset))
    }

    /// The offset after the last batch of the segment; the base offset if it has no batch.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::LogChanged`].
    pub fn end_offset(&self) -> Result<i64> {
        Ok(self.tail()?.end_offset)
    }

    /// [`Segment::end_offset`] if it was computed.
    #[inline]
    pub(crate) fn known_end(&self) -> Option<i64> {
        self.tail.get().map(|tail| tail.end_offset)
    }

    /// The largest timestamp of the segment's records, ms since the epoch; the file's modification time if no
    /// record has a timestamp. Kafka: `LogSegment.largestTimestamp`.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if it has to be read from the log and the log is damaged; [`Error::Io`].
    pub fn largest_timestamp(&self) -> Result<i64> {
        match self.largest_record_timestamp()? {
            largest if largest >= 0 => Ok(largest),
            _ => Ok(self.identity()?.modified_ms()),
        }
    }

    /// The largest timestamp of the first batch, ms; `None` without a batch. Kafka:
    /// `LogSegment.getFirstBatchTimestamp`.
    pub(crate) fn first_batch_timestamp(&self) -> Result<Option<i64>> {
        Ok(self.walk(-1, LOOKUP_READ)?.header_at(0)?.ok().map(|header| header.max_timestamp))
    }
}
