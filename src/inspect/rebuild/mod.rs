//! The files that are derived from the `.log` files of a partition: `.index`, `.timeindex`, `.txnindex` and
//! `.snapshot`.
//!
//! They are computed from the batches alone and have the bytes that Kafka's recovery writes. Kafka:
//! `LogSegment.recover`, `ProducerStateManager`.
//!
//! ```text
//!   derive      one segment ──▶ DerivedFiles        DerivedLog: all segments, in order, on several threads
//!       │                                           ProducerFilesReplay: transactions and snapshots, in the order of the log
//!   compare     with the file in the directory
//!       │
//!   apply       the old file to quarantine/, the new one in its place
//! ```

mod apply;
mod derive;
mod derived_log;
mod existing_files;
mod producer_replay;
mod report;

use std::path::Path;

pub use crate::log::IntervalSource;
pub use derive::DerivedFiles;
pub(crate) use derived_log::DerivedLog;
pub(crate) use existing_files::{end_of_snapshots, is_empty_snapshot, lost_transaction};
pub(crate) use producer_replay::{FromProducers, ProducerFilesReplay};
pub use report::{DerivedFile, FileState, RebuildReport};

use self::apply::Replacements;
use self::existing_files::ExistingFiles;
use crate::config::{INDEX_INTERVAL, LogConfig};
use crate::error::{Error, Malformed, Result};
use crate::fs::{Directory, PartitionLocks};
use crate::index::due_entries::EntryRule;
use crate::inspect::internal_topics::{TopicSettings, known_settings};
use crate::log::{Log, LogOptions, shown_interval};
use crate::record::MAX_BATCH_BYTES;
use crate::types::{Interrupt, OnWarning};

/// How the derived files of a partition are rebuilt.
#[derive(Debug, Clone)]
pub struct RebuildOptions {
    /// The settings, of which `index.interval.bytes` and `segment.index.bytes` are used. Those that it does
    /// not state ([`LogConfig::states`]), and all for `None`: the topic's in the metadata of the data
    /// directory; otherwise the interval that the existing offset indexes show, and Kafka's defaults.
    pub config: Option<LogConfig>,
    /// Whether files are only compared, and nothing is changed.
    pub dry_run: bool,
    /// The base offsets of the segments whose files are rebuilt; `None`: all.
    pub segments: Option<Vec<i64>>,
    /// The number of threads that read segments; 0 counts as 1.
    pub threads: usize,
    /// The largest batch, bytes, as stored and decompressed. See [`LogOptions::max_batch_bytes`].
    pub max_batch_bytes: usize,
    /// Called during long work.
    pub interrupt: Interrupt,
    /// Receives the warnings about the log.
    pub on_warning: OnWarning,
}

impl Default for RebuildOptions {
    fn default() -> Self {
        Self {
            config: None,
            dry_run: true,
            segments: None,
            threads: 1,
            max_batch_bytes: MAX_BATCH_BYTES,
            interrupt: Interrupt::NEVER,
            on_warning: OnWarning::IGNORE,
        }
    }
}

/// Compares the derived files of a partition with those that its `.log` files give, and replaces those that
/// differ, unless it is a dry run.
///
/// All segments are read before the first file is replaced. The old bytes are kept in `quarantine/`. Each
/// file is replaced as a whole: a crash at any point leaves the old or the new one, and the call can be
/// repeated. The `.log` files are not changed.
///
/// The state of producers before the first segment is taken from the snapshot with its base offset, if there
/// is a valid one, because the records before it are gone. That snapshot is not rebuilt, nor are leader
/// epochs.
///
/// *Cost*: reads every batch up to the last of `segments`, because a transaction may begin in an earlier
/// segment.
///
/// # Errors
/// [`Error::Corrupt`] if a `.log` is damaged, or if transactions in it contradict each other; nothing is
/// changed then. Bytes after the last whole batch of the last segment are not damage.
/// [`Error::UnsupportedFormat`] for a segment that recovery would split, and after an interrupted
/// compaction. [`Error::Locked`] if a writer or a broker holds a lock, unless it is a dry run.
/// [`Error::BatchTooLarge`] for a batch of v0 or v1 above the limit, whose offsets are in its compressed
/// records. [`Error::LogNotFound`], [`Error::Config`], [`Error::Io`].
///
/// *Source*: `LogSegment.recover`.
pub fn rebuild(path: impl AsRef<Path>, options: &RebuildOptions) -> Result<RebuildReport> {
    // also for a directory without a segment, in which no lock file is created
    let log = Log::open(path, log_options(options))?;
    if options.dry_run { compare(&log, options, None) } else { rebuild_in(log.directory(), options) }
}

/// [`rebuild`] in an open directory.
///
/// # Errors
/// As [`rebuild`].
pub fn rebuild_in(directory: &Directory, options: &RebuildOptions) -> Result<RebuildReport> {
    if options.dry_run {
        return compare(&Log::open_in(directory.clone(), log_options(options))?, options, None);
    }
    let mut locks = PartitionLocks::take(directory)?;
    let log = Log::open_in(directory.clone(), log_options(options))?;
    let mut replacements = Replacements::new(directory)?;
    let report = compare(&log, options, Some(&mut replacements))?;
    locks.renew(directory)?;
    replacements.apply(report.index_interval_bytes)?;
    Ok(report)
}

fn log_options(options: &RebuildOptions) -> LogOptions {
    let RebuildOptions { max_batch_bytes, interrupt, on_warning, .. } = *options;
    LogOptions { max_batch_bytes, interrupt, on_warning, ..LogOptions::default() }
}

/// Compares all files. The replacements of those that differ are prepared.
fn compare(
    log: &Log,
    options: &RebuildOptions,
    mut replacements: Option<&mut Replacements>,
) -> Result<RebuildReport> {
    refuse_unfinished_replacement(log)?;
    let (rule, interval_source) = entry_rule(log, options.config.as_ref())?;
    let existing = ExistingFiles::of(log, options.segments.as_deref())?;
    let mut files = Vec::new();
    let mut add = |file: Option<DerivedFile>, contents: Option<&[u8]>| {
        let Some(mut file) = file else { return Ok(()) };
        if let Some(replacements) = &mut replacements {
            replacements.prepare(&mut file, contents)?;
        }
        files.push(file);
        Ok(())
    };
    for file in existing.unusable_snapshots()? {
        add(Some(file), None)?;
    }
    let derived_log = DerivedLog {
        log,
        rule,
        threads: options.threads,
        replay: ProducerFilesReplay::new(existing.producers_before()?, existing.snapshot_offsets()?),
        last_base_offset: existing.last_selected(),
    };
    derived_log.for_each(|derived| {
        for (name, contents) in derived.files() {
            add(existing.compare(name, contents)?, contents)?;
        }
        Ok(())
    })?;
    files.sort_by(|one, other| one.file.cmp(&other.file));
    Ok(RebuildReport {
        path: log.path().to_owned(),
        index_interval_bytes: rule.interval_bytes,
        interval_source,
        log_end_offset: log.log_end_offset()?,
        dry_run: options.dry_run,
        files,
    })
}

/// The rule for index entries, and where its interval is from: the settings that were given, the topic's
/// settings, or the existing offset indexes.
///
/// # Errors
/// [`Error::Config`] for a wrong setting; as [`Log::open`].
pub(crate) fn entry_rule(log: &Log, given: Option<&LogConfig>) -> Result<(EntryRule, IntervalSource)> {
    let given = given.cloned().unwrap_or_default();
    given.validate()?;
    let known = known_settings(log.path(), log.options())?.settings;
    let (config, stated) = topics_index_settings(&given, known.as_ref())?;
    let (interval_bytes, source) = match stated {
        Some(source) => (u64::from(config.index_interval_bytes), source),
        None => shown_interval(log)?,
    };
    Ok((EntryRule { interval_bytes, max_index_size: u64::from(config.segment_index_bytes) }, source))
}

/// The settings that were given, with the topic's settings of index files where they state none; and where
/// `index.interval.bytes` is from, `None` if neither has it. A value of the topic that Kafka refuses does not
/// count.
///
/// # Errors
/// [`Error::Config`] for a wrong setting that was given.
#[doc(hidden)]
pub fn topics_index_settings(
    given: &LogConfig,
    known: Option<&TopicSettings>,
) -> Result<(LogConfig, Option<IntervalSource>)> {
    let is_given = given.states(INDEX_INTERVAL).then_some(IntervalSource::Given);
    let Some(known) = known else { return Ok((given.clone(), is_given)) };
    let topics = match known.index_config(&LogConfig::default()) {
        Err(Error::Config { .. }) => return Ok((given.clone(), is_given)),
        found => found?,
    };
    let config = known.index_config(given)?;
    let is_topics =
        topics.states(INDEX_INTERVAL) && topics.index_interval_bytes == config.index_interval_bytes;
    Ok((config, if is_topics { Some(IntervalSource::Topic) } else { is_given }))
}

/// Fails if files of an interrupted compaction or split have to be renamed or deleted first.
fn refuse_unfinished_replacement(log: &Log) -> Result<()> {
    let replacement = log.replacement()?;
    let Some(file) = replacement.committed.first() else { return Ok(()) };
    let expected = "no file of an interrupted compaction or split (recover the log first)";
    let found = file.name.clone();
    Err(Malformed::unsupported(expected, found).at(log.directory().path_of(&file.name), 0, None))
}
