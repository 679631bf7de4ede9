//! Opening a partition directory and refreshing a log. Kafka: `LogLoader.load`, without its repairs.

use std::path::Path;
use std::sync::{Arc, OnceLock, Weak};

use super::continuity::Continuity;
use super::largest_times::LargestTimes;
use super::live_segments::LiveSegments;
use super::log_start::{ClaimedStart, claimed_start, log_start};
use super::lost_end::Synced;
use super::{Inner, Log, LogOptions, Segments, loader};
use crate::error::{Error, NotFound, Result};
use crate::fs::Directory;
use crate::fs::names::PartitionName;
use crate::segment::{OpenFiles, Segment, Warnings, with_descriptors};
use crate::state::data_directory::refuse_lost;

impl Log {
    const ADVICE: &str = "give the path of a partition directory, such as data/orders-0";

    /// Opens a partition directory: lists it, opens no file of a segment, and writes nothing. The size of the
    /// last segment's file is fixed here. The end of its data is found at its first use: in a
    /// preallocated file that may include batches that were appended in between.
    ///
    /// # Errors
    /// [`Error::LogNotFound`] if there is no directory, or no segment in it; [`Error::Corrupt`] if other
    /// files show that the partition had segments; [`Error::Io`].
    ///
    /// *Source*: Kafka's `LogLoader.load`, without its repairs.
    pub fn open(path: impl AsRef<Path>, options: LogOptions) -> Result<Self> {
        Self::open_in(with_descriptors(|| Directory::open(path.as_ref(), Self::ADVICE))?, options)
    }

    /// [`Log::open`] of an open directory.
    ///
    /// # Errors
    /// As [`Log::open`].
    pub fn open_in(directory: Directory, options: LogOptions) -> Result<Self> {
        if let Some(log) = Self::open_if_any(directory.clone(), options.clone())? {
            return Ok(log);
        }
        let refused = with_descriptors(|| refuse_lost(&directory));
        // a writer that creates its first segment makes the other files of it after the `.log`
        if refused.is_err()
            && let Some(log) = Self::open_if_any(directory.clone(), options.clone())?
        {
            return Ok(log);
        }
        refused?;
        // its first segment may exist by now
        Self::open_live(directory, options, Weak::new())
    }

    /// [`Log::open_in`]; `None` if there is no segment, whether the partition had one or not.
    ///
    /// # Errors
    /// As [`Log::open`].
    pub(crate) fn open_if_any(directory: Directory, options: LogOptions) -> Result<Option<Self>> {
        match Self::open_live(directory, options, Weak::new()) {
            Err(Error::LogNotFound { found: NotFound::NoSegment, .. }) => Ok(None),
            opened => opened.map(Some),
        }
    }

    /// [`Log::open_in`] for a reader of a writer in this process, which has the list of segments: while the
    /// writer is open, neither this log nor those refreshed from it list the directory.
    pub(crate) fn open_live(
        directory: Directory,
        options: LogOptions,
        live: Weak<LiveSegments>,
    ) -> Result<Self> {
        let LogOptions { io, max_batch_bytes, max_open_files, interrupt, .. } = options;
        let open_files = OpenFiles::new(directory, io, max_batch_bytes, max_open_files, interrupt);
        let warnings = Arc::new(Warnings::new(options.on_warning));
        Self::load(&Arc::new(open_files), options, &warnings, None, live)
    }

    /// The same directory as it is now. Unchanged segments are shared with this log, which does not change.
    /// If nothing has changed, returns this log.
    ///
    /// Closes open files of this log, and of those that it was refreshed from or to, that were deleted since:
    /// the disk gets their space back.
    ///
    /// *Cost*: a listing of the directory, and a system call for each segment that was read and for each open
    /// file.
    ///
    /// # Errors
    /// As [`Log::open`]; [`Error::LogNotFound`] if every segment is gone, or if the path leads to another
    /// directory now: the one that was opened was renamed, deleted or replaced.
    pub fn refresh(&self) -> Result<Self> {
        let inner = &*self.inner;
        // a writer in this process holds its directory, wherever it is
        if inner.live.strong_count() == 0 {
            inner.open_files.directory.ensure_in_place("open the log again")?;
        }
        inner.open_files.close_deleted();
        Self::load(&inner.open_files, inner.options.clone(), &inner.lookups, Some(self), inner.live.clone())
    }

    /// Whether a refresh found no change to this log.
    fn is_current(&self, segments: &[Arc<Segment>], claimed_start: ClaimedStart, opening: &[String]) -> bool {
        let inner = &*self.inner;
        segments.len() == inner.segments.len()
            && segments.iter().zip(inner.segments.iter()).all(|(now, known)| Arc::ptr_eq(now, known))
            && claimed_start == inner.claimed_start
            && opening == inner.opening
            && self.is_continuity_current(segments)
    }

    /// Opens the log; repeats that a few times if files vanish or shrink during the call because a writer
    /// rolls or deletes.
    fn load(
        open_files: &Arc<OpenFiles>,
        options: LogOptions,
        lookups: &Arc<Warnings>,
        earlier: Option<&Self>,
        live: Weak<LiveSegments>,
    ) -> Result<Self> {
        let opening = Opening { open_files, options, lookups, earlier, live };
        for _ in 1..Self::MAX_ATTEMPTS {
            match opening.attempt() {
                Err(Error::LogChanged { .. }) => {}
                opened => return opened,
            }
        }
        opening.attempt()
    }

    /// The maximum number of attempts to open a log while its files change.
    const MAX_ATTEMPTS: u32 = 10;
}

/// The input of an opening.
struct Opening<'a> {
    open_files: &'a Arc<OpenFiles>,
    options: LogOptions,
    lookups: &'a Arc<Warnings>,
    /// The log that is refreshed.
    earlier: Option<&'a Log>,
    live: Weak<LiveSegments>,
}

impl Opening<'_> {
    fn attempt(&self) -> Result<Log> {
        let log = self.load()?;
        if self.live.strong_count() == 0 {
            log.warn_of_lost_start(self.earlier)?;
        }
        Ok(log)
    }

    fn load(&self) -> Result<Log> {
        let Self { open_files, options, .. } = self;
        // before the listing: a truncation during it changes the count
        let truncations = open_files.truncations()?;
        let path = open_files.directory.path().to_owned();
        let named = path.file_name().and_then(|name| PartitionName::parse(name.to_str()?));
        let topic = options.topic.clone().or_else(|| named.as_ref().map(|named| named.topic.clone()));
        let partition = options.partition.or_else(|| named.as_ref().map(|named| named.partition));
        // before the listing: appends during the listing only make the log longer, and cause no warning
        let synced = match self.live.strong_count() {
            0 => Synced::read(&open_files.directory, topic.as_deref().zip(partition)),
            _ => None,
        };
        if let Some(synced) = synced {
            open_files.note_synced(synced.offset);
        }
        let (loaded, mut opening) = self.load_segments(truncations)?;
        let (Some(first), Some(last)) = (loaded.first(), loaded.last()) else {
            return Err(Error::LogNotFound { path, found: NotFound::NoSegment, advice: Log::ADVICE });
        };
        last.pin_identity()?;
        let claimed_start = claimed_start(open_files, options, topic.as_deref(), partition, &mut opening);
        let (log_start_offset, hidden) =
            log_start(claimed_start, first.base_offset(), last, &path, &mut opening)?;
        for warning in &opening {
            self.lookups.report(warning);
        }
        // not reported: it is the usual state after retention and deletions
        opening.extend(hidden);
        let segments = match self.earlier {
            Some(earlier) if earlier.is_current(&loaded, claimed_start, &opening) => {
                return Ok(earlier.clone());
            }
            Some(earlier) => earlier.segments().refreshed(loaded),
            None => Segments::new(loaded),
        };
        Ok(Log {
            inner: Arc::new(Inner {
                options: options.clone(),
                topic,
                partition,
                segments,
                log_start_offset,
                claimed_start,
                synced,
                lost_start: OnceLock::new(),
                lost_end: OnceLock::new(),
                open_files: Arc::clone(open_files),
                opening,
                lookups: Arc::clone(self.lookups),
                transactions: OnceLock::new(),
                earlier_transactions: self.earlier.and_then(Log::known_transactions),
                largest_times: LargestTimes::default(),
                continuity: Continuity::default(),
                live: self.live.clone(),
            }),
        })
    }

    /// The segments of the directory, with unchanged ones taken from the earlier log, and the warnings of the
    /// listing.
    fn load_segments(&self, truncations: Option<u64>) -> Result<(Vec<Arc<Segment>>, Vec<String>)> {
        let Self { open_files, lookups, .. } = self;
        let listing = match self.live.upgrade().and_then(|live| live.bases()) {
            Some(bases) => loader::listing_of_writer(&bases),
            None => loader::list(open_files, truncations, lookups)?,
        };
        let uppers: Vec<_> = listing.segments.keys().skip(1).copied().map(Some).chain([None]).collect();
        let mut loaded = Vec::with_capacity(listing.segments.len());
        for ((base_offset, files), upper) in listing.segments.into_iter().zip(uppers) {
            let fresh = Segment::new(base_offset, upper, files, open_files, truncations, lookups);
            let old = self.earlier.and_then(|earlier| earlier.segments().floor(base_offset));
            loaded.push(match old {
                Some(old) if fresh.is_unchanged(old)? => Arc::clone(old),
                _ => Arc::new(fresh),
            });
        }
        Ok((loaded, listing.warnings))
    }
}
