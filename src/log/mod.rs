//! A partition: its segments, and the answers to where an offset or a time lies in it. Kafka: `UnifiedLog`, `LocalLog`,
//! read side.
//!
//! A [`Log`] is fixed as of its opening and writes nothing; [`Log::refresh`] gives the directory as it is now.

mod continuity;
pub(crate) mod live_segments;
mod loader;
mod lookup;
mod lookup_many;
mod lost_end;
pub(crate) mod metadata;
mod plan;
mod replacement;
pub mod retention;
mod scan;
mod segments;
pub(crate) mod skip_list;
mod transactions;

use std::path::Path;
use std::sync::{Arc, OnceLock, Weak};

use crate::error::{Error, NotFound, Result};
use crate::fs::Directory;
use crate::fs::names::PartitionName;
use crate::segment::{OpenFiles, Segment, Warnings, with_descriptors};
use crate::state::checkpoint::Checkpoint;
use crate::state::offset_checkpoint::LOG_START_OFFSETS;
use crate::types::{Interrupt, Io};

use continuity::Continuity;
pub use continuity::OffsetGap;
use live_segments::LiveSegments;
use lost_end::Synced;
pub use plan::Split;
pub(crate) use replacement::Replacement;
#[cfg(feature = "arrow")]
pub(crate) use scan::Uncommitted;
pub use scan::{DamagedRange, OnDamage, Ranges, Scan, ScanOptions, ScanStats, ScanStep};
pub use segments::Segments;
pub use transactions::AbortedRange;
use transactions::{Outcome, Transactions};

/// How a log is opened.
#[derive(Debug, Clone)]
pub struct LogOptions {
    /// Which files are mapped.
    pub io: Io,
    /// Replaces the log start offset that the data directory's checkpoint (or the first segment's name) gives.
    pub log_start_offset: Option<i64>,
    /// The topic, where the directory's name does not say it.
    pub topic: Option<String>,
    /// The partition, where the directory's name does not say it.
    pub partition: Option<i32>,
    /// How many files and mappings the log keeps open at most. All logs of the process together keep no more than half of
    /// its soft limit of open files. A descriptor of the directory is open as long as the log, beside these.
    pub max_open_files: usize,
    /// Asked during long work.
    pub interrupt: Interrupt,
}

impl Default for LogOptions {
    fn default() -> Self {
        Self {
            io: Io::Auto,
            log_start_offset: None,
            topic: None,
            partition: None,
            max_open_files: 256,
            interrupt: Interrupt::NEVER,
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
    /// As of the opening; `None` for the reader of a writer in this process.
    synced: Option<Synced>,
    open_files: Arc<OpenFiles>,
    /// What was odd at the opening.
    opening: Vec<String>,
    /// What look-ups found odd; shared by refreshed logs, as the segments are.
    lookups: Arc<Warnings>,
    transactions: OnceLock<Arc<Transactions>>,
    continuity: Continuity,
    /// Of a writer in this process that gave the log to its reader.
    live: Weak<LiveSegments>,
}

impl Log {
    const ADVICE: &str = "give the path of a partition directory, such as data/orders-0";

    /// Opens a partition directory: lists it, and opens no file of a segment. Nothing is written. How far the last
    /// segment counts is settled here; where in it the data end is found when that is first asked for, so that of a
    /// preallocated file more may count by then.
    ///
    /// # Errors
    /// [`Error::LogNotFound`] where there is no directory, or no segment in it; [`Error::Io`].
    ///
    /// *Source*: Kafka's `LogLoader.load`, without its repairs.
    pub fn open(path: impl AsRef<Path>, options: LogOptions) -> Result<Self> {
        Self::open_in(with_descriptors(|| Directory::open(path.as_ref(), Self::ADVICE))?, options)
    }

    /// [`Log::open`] of a directory that is open already.
    ///
    /// # Errors
    /// As [`Log::open`].
    pub fn open_in(directory: Directory, options: LogOptions) -> Result<Self> {
        let open_files = OpenFiles::new(directory, options.io, options.max_open_files, options.interrupt);
        Self::load(&Arc::new(open_files), options, &Arc::default(), None, Weak::new())
    }

    /// [`Log::open_in`] beside the log's writer in the same process, which knows the segments: neither this log nor those
    /// refreshed from it list the directory as long as the writer has it.
    pub(crate) fn open_live(
        directory: Directory,
        options: LogOptions,
        live: Weak<LiveSegments>,
    ) -> Result<Self> {
        let open_files = OpenFiles::new(directory, options.io, options.max_open_files, options.interrupt);
        Self::load(&Arc::new(open_files), options, &Arc::default(), None, live)
    }

    /// The same directory as it is now. What has not changed is shared with this log, which stays as it is; where nothing
    /// has, it is this log.
    ///
    /// *Cost*: a listing of the directory, and a system call for each segment that was read.
    ///
    /// # Errors
    /// As [`Log::open`]; [`Error::LogNotFound`] where every segment is gone.
    pub fn refresh(&self) -> Result<Self> {
        let inner = &*self.inner;
        inner.open_files.look_for_broker();
        Self::load(&inner.open_files, inner.options.clone(), &inner.lookups, Some(self), inner.live.clone())
    }

    /// Whether a refresh that found these segments, and this of the opening, found what the log has.
    fn is_current(&self, segments: &[Arc<Segment>], claimed_start: ClaimedStart, opening: &[String]) -> bool {
        let inner = &*self.inner;
        segments.len() == inner.segments.len()
            && segments.iter().zip(inner.segments.iter()).all(|(now, known)| Arc::ptr_eq(now, known))
            && claimed_start == inner.claimed_start
            && opening == inner.opening
            && self.is_continuity_current(segments)
    }

    /// Whether this is the same handle as another: what a refresh gives where nothing has changed.
    #[cfg(feature = "python")]
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }

    /// Where files vanish or shrink meanwhile, because a writer rolls or deletes, it is looked at again.
    fn load(
        open_files: &Arc<OpenFiles>,
        options: LogOptions,
        lookups: &Arc<Warnings>,
        earlier: Option<&Self>,
        live: Weak<LiveSegments>,
    ) -> Result<Self> {
        for _ in 1..Self::MAX_LOOKS {
            match Self::look(open_files, options.clone(), lookups, earlier, live.clone()) {
                Err(Error::LogChanged { .. }) => {}
                looked => return looked,
            }
        }
        Self::look(open_files, options, lookups, earlier, live)
    }

    /// How often an opening begins anew where files changed under it.
    const MAX_LOOKS: u32 = 10;

    fn look(
        open_files: &Arc<OpenFiles>,
        options: LogOptions,
        lookups: &Arc<Warnings>,
        earlier: Option<&Self>,
        live: Weak<LiveSegments>,
    ) -> Result<Self> {
        // before the listing: what a truncation leaves has another count
        let truncations = open_files.truncations()?;
        let path = open_files.directory.path().to_owned();
        let named = path.file_name().and_then(|name| PartitionName::parse(name.to_str()?));
        let topic = options.topic.clone().or_else(|| named.as_ref().map(|named| named.topic.clone()));
        let partition = options.partition.or_else(|| named.as_ref().map(|named| named.partition));
        let synced = match live.strong_count() {
            0 => Synced::read(&open_files.directory, topic.as_deref().zip(partition)),
            _ => None,
        };
        let listing = match live.upgrade().and_then(|live| live.bases()) {
            Some(bases) => loader::of_writer(&bases),
            None => loader::list(open_files, truncations, lookups)?,
        };
        let mut opening = listing.warnings;
        let uppers: Vec<_> = listing.segments.keys().skip(1).copied().map(Some).chain([None]).collect();
        let mut loaded = Vec::with_capacity(listing.segments.len());
        for ((base_offset, files), upper) in listing.segments.into_iter().zip(uppers) {
            let fresh = Segment::new(base_offset, upper, files, open_files, truncations, lookups);
            let old = earlier.and_then(|earlier| earlier.segments().floor(base_offset));
            loaded.push(match old {
                Some(old) if fresh.is_unchanged(old)? => Arc::clone(old),
                _ => Arc::new(fresh),
            });
        }
        let (Some(first), Some(last)) = (loaded.first(), loaded.last()) else {
            return Err(Error::LogNotFound { path, found: NotFound::NoSegment, advice: Self::ADVICE });
        };
        last.pin_identity()?;
        let claimed_start = claimed_start(open_files, &options, topic.as_deref(), partition, &mut opening);
        let log_start_offset = log_start(claimed_start, first.base_offset(), last, &path, &mut opening)?;
        let segments = match earlier {
            Some(earlier) if earlier.is_current(&loaded, claimed_start, &opening) => {
                return Ok(earlier.clone());
            }
            Some(earlier) => earlier.segments().refreshed(loaded),
            None => Segments::new(loaded),
        };
        Ok(Self {
            inner: Arc::new(Inner {
                options,
                topic,
                partition,
                segments,
                log_start_offset,
                claimed_start,
                synced,
                open_files: Arc::clone(open_files),
                opening,
                lookups: Arc::clone(lookups),
                transactions: OnceLock::new(),
                continuity: Continuity::default(),
                live,
            }),
        })
    }

    /// The absolute path by which the directory was opened.
    pub fn path(&self) -> &Path {
        self.inner.open_files.directory.path()
    }

    /// How the log was opened.
    pub fn options(&self) -> &LogOptions {
        &self.inner.options
    }

    /// The topic, from the options or the directory's name; `None` where neither says it.
    pub fn topic(&self) -> Option<&str> {
        self.inner.topic.as_deref()
    }

    /// The partition, from the options or the directory's name; `None` where neither says it.
    pub fn partition(&self) -> Option<i32> {
        self.inner.partition
    }

    /// The first offset that a reader may see, inclusive.
    pub fn log_start_offset(&self) -> i64 {
        self.inner.log_start_offset
    }

    /// The offset that the next record would get, exclusive end of the log. *Cost*: the first question opens the last
    /// segment and reads its end.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::LogChanged`] where the last segment is not the file it was at the opening.
    pub fn log_end_offset(&self) -> Result<i64> {
        let start = self.log_start_offset();
        self.segments().last().map_or(Ok(start), |last| Ok(last.end_offset()?.max(start)))
    }

    /// Whether an offset lies below the log end offset, which is asked for only where the last segment's base offset does
    /// not answer.
    fn is_below_end(&self, offset: i64) -> Result<bool> {
        Ok(offset < self.last_base_offset() || offset < self.log_end_offset()?)
    }

    /// The base offset of the last segment: the log end offset is not below it.
    fn last_base_offset(&self) -> i64 {
        self.segments().last().map_or(self.log_start_offset(), |last| last.base_offset())
    }

    /// The exclusive end of what a committed reader sees: the first offset of the oldest open transaction, or the log end
    /// offset. *Cost*: the first question walks all headers of the log.
    ///
    /// # Errors
    /// [`Error::Corrupt`] where damage may have swallowed a transaction's marker; [`Error::Io`].
    pub fn last_stable_offset(&self) -> Result<i64> {
        let transactions = self.transactions()?;
        transactions.ensure_decided()?;
        Ok(transactions.last_stable_offset)
    }

    pub(crate) fn transactions(&self) -> Result<Arc<Transactions>> {
        if let Some(transactions) = self.inner.transactions.get() {
            return Ok(Arc::clone(transactions));
        }
        let transactions = Arc::new(Transactions::read(self)?);
        Ok(Arc::clone(self.inner.transactions.get_or_init(|| transactions)))
    }

    /// The same log, its transactions already known.
    fn with_transactions(&self, transactions: Transactions) -> Self {
        let Inner {
            options, topic, partition, segments, log_start_offset, open_files, opening, lookups, ..
        } = &*self.inner;
        Self {
            inner: Arc::new(Inner {
                options: options.clone(),
                topic: topic.clone(),
                partition: *partition,
                segments: segments.clone(),
                log_start_offset: *log_start_offset,
                claimed_start: self.inner.claimed_start,
                synced: self.inner.synced,
                open_files: Arc::clone(open_files),
                opening: opening.clone(),
                lookups: Arc::clone(lookups),
                transactions: OnceLock::from(Arc::new(transactions)),
                continuity: Continuity::default(),
                live: self.inner.live.clone(),
            }),
        }
    }

    /// The segments, in order.
    pub fn segments(&self) -> &Segments {
        &self.inner.segments
    }

    /// The bytes of all batches: the `.log` files without preallocated space. *Cost*: one `open` a segment at the first call,
    /// and the end of the last one is found.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::LogChanged`].
    pub fn size(&self) -> Result<u64> {
        self.segments().iter().map(|segment| segment.size()).sum()
    }

    /// What is odd but no error: a tail that is not data, an end below the offset up to which the log was synced, an index
    /// entry that the log does not confirm, records hidden below the log start offset. Grows as look-ups find more. Finds the
    /// end of the log first; where that fails, the error is one of the lines.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = self.inner.opening.clone();
        let torn = self.segments().last().and_then(|last| match last.torn_tail() {
            Ok(torn) => torn,
            Err(error) => Some(error.to_string()),
        });
        warnings.extend(torn);
        // an error of the end is one of the lines already
        let end = self.log_end_offset().ok();
        warnings
            .extend(self.inner.synced.zip(end).and_then(|(synced, end)| synced.warning(self.path(), end)));
        warnings.extend(self.inner.lookups.all());
        warnings
    }

    /// How many times a file of the log was opened so far, by this log and those it was refreshed from or to.
    pub fn files_opened(&self) -> u64 {
        self.inner.open_files.opened()
    }

    /// What a replacement of segments left in the directory, as it is now.
    pub(crate) fn replacement(&self) -> Result<Replacement> {
        let open_files = &self.inner.open_files;
        loader::replacement_in(open_files, &open_files.directory.segment_files()?, None, &self.inner.lookups)
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

/// A log start offset that is claimed, and whether it was a writer of ours that did: a log that was emptied may start after
/// its last batch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct ClaimedStart {
    offset: Option<i64>,
    is_sure: bool,
}

fn claimed_start(
    open_files: &OpenFiles,
    options: &LogOptions,
    topic: Option<&str>,
    partition: Option<i32>,
    warnings: &mut Vec<String>,
) -> ClaimedStart {
    let written = written_start(open_files, warnings);
    let offset = options
        .log_start_offset
        .or_else(|| written.max(checkpointed_start(open_files, topic, partition, warnings)));
    ClaimedStart { offset, is_sure: offset.is_some() && offset == written }
}

/// The log start offset that a writer of ours left in the partition directory, if it can be read.
fn written_start(open_files: &OpenFiles, warnings: &mut Vec<String>) -> Option<i64> {
    match with_descriptors(|| Checkpoint::read(&open_files.directory)) {
        Ok(checkpoint) => checkpoint.map(|checkpoint| checkpoint.log_start_offset),
        Err(error) => {
            warnings.push(format!("{error}; ignored"));
            None
        }
    }
}

/// The log start offset that the data directory's checkpoint gives, if it can be read.
fn checkpointed_start(
    open_files: &OpenFiles,
    topic: Option<&str>,
    partition: Option<i32>,
    warnings: &mut Vec<String>,
) -> Option<i64> {
    let (topic, partition) = (topic?, partition?);
    let read = metadata::checkpointed(&open_files.directory, LOG_START_OFFSETS, topic, partition);
    read.unwrap_or_else(|wrong| {
        warnings.push(format!("{wrong}; ignored"));
        None
    })
}

/// A claimed log start offset counts only inside the log; no claim hides everything.
fn log_start(
    claimed: ClaimedStart,
    first: i64,
    last: &Segment,
    path: &Path,
    warnings: &mut Vec<String>,
) -> Result<i64> {
    let ClaimedStart { offset: Some(claimed), is_sure } = claimed else { return Ok(first) };
    // the end is asked for only where the last segment's base offset does not answer
    let outside = match claimed {
        _ if claimed < first => Some(format!("starts at offset {first}")),
        _ if is_sure || claimed <= last.base_offset() => None,
        _ => {
            let end = last.end_offset()?;
            (claimed > end).then(|| format!("holds offsets {first} to {end}"))
        }
    };
    if let Some(outside) = outside {
        warnings.push(format!(
            "{}: log start offset {claimed} lies outside the log, which {outside}; ignored",
            path.display()
        ));
        return Ok(first);
    }
    if claimed > first {
        warnings.push(format!(
            "{}: offsets {first} to {} are hidden below the log start offset {claimed}; a log that is opened with log \
             start offset {first} shows what is left of them",
            path.display(),
            claimed - 1
        ));
    }
    Ok(claimed)
}
