//! Compaction: only the last record of each key remains. Kafka: `LogCleaner`, `Cleaner`.
//!
//! ```text
//!   plan      which offsets are dirty, and whether a pass is due                          LogCleanerManager
//!   history   one pass over all headers and markers: transactions, producers            (Kafka trusts the transaction index)
//!   keys      the map of the dirty keys                                                   Cleaner.buildOffsetMap
//!   pass      each group of segments into one                                             Cleaner
//!   filter    what remains of a batch                                                     MemoryRecords.filterTo
//!   writer    .cleaned -> .swap -> live                                                   LocalLog.replaceSegments
//! ```
//!
//! All is read and verified before the first segment is replaced. Groups are replaced in ascending order,
//! each durably before the next, so that a record is gone before the tombstone that deleted it. A crash at
//! any point leaves a log with the same last value of each key.

mod batches;
mod dirty_keys;
mod filter;
mod history;
mod output;
mod pass;
mod plan;
mod replaced;
mod rounds;
mod transactions;

use dirty_keys::DirtyKeys;
use history::History;
use pass::{Pass, Source};
use plan::CleaningRange;
pub use plan::{CleaningBound, CompactionState};

use crate::config::LogConfig;
use crate::error::{Error, Result};
use crate::log::Log;
use crate::state::cleaner_checkpoint::CleanerCheckpoint;
use crate::state::data_directory::DataDirectory;
use crate::writer::replacement::remove_cleaned;
use crate::writer::{Cleanable, LogWriter, WriterOptions};

/// How a log is compacted. The rules are in its settings ([`LogConfig`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompactionOptions {
    /// The present time, ms since the epoch; `None`: the clock's.
    pub now: Option<i64>,
    /// The memory for the keys of a pass, bytes: 24 for each key; nine tenths of it are used. The dirty
    /// offsets take a bit each beside it, up to 1/32. Kafka: `log.cleaner.dedupe.buffer.size`.
    pub dedupe_buffer_bytes: usize,
    /// The number of threads that decompress and compress batches; the calling one is the first: with 0 and
    /// 1 there is no other, and there are at most 256. The result does not depend on it. Each of several
    /// threads keeps the batches on which it works, up to some MiB of compressed bytes and what remains
    /// of them, and one of them decompressed.
    pub threads: usize,
}

impl Default for CompactionOptions {
    fn default() -> Self {
        Self { now: None, dedupe_buffer_bytes: 128 << 20, threads: 1 }
    }
}

/// What a compaction has done, or would do.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "binding", derive(serde::Deserialize, serde::Serialize))]
pub struct Compaction {
    /// Whether a compaction is due. If not, nothing else is done.
    pub state: CompactionState,
    /// The first offset that was not cleaned before.
    pub first_dirty_offset: i64,
    /// The exclusive end of what can be cleaned: the base offset of a segment.
    pub first_uncleanable_offset: i64,
    /// What that segment has.
    pub bound: CleaningBound,
    /// The bytes of the segments below the first dirty offset.
    pub clean_bytes: u64,
    /// The bytes of the segments from there to the first uncleanable offset.
    pub cleanable_bytes: u64,
    /// The first dirty offset afterwards: below `first_uncleanable_offset` if there were more keys than the
    /// memory holds.
    pub end_offset: i64,
    /// The number of different keys in the dirty records of the pass.
    pub keys: u64,
    /// The segments that were read, oldest first.
    pub segments: Vec<CompactedSegment>,
}

impl Compaction {
    /// Whether everything that can be cleaned is clean now. If a pass was due and this is false, another call
    /// continues.
    pub fn is_complete(&self) -> bool {
        self.end_offset >= self.first_uncleanable_offset
    }

    /// The cleanable bytes as a part of the clean and the cleanable ones, from 0 to 1; 0 if there are none.
    pub fn dirty_ratio(&self) -> f64 {
        plan::ratio(self.cleanable_bytes, self.clean_bytes)
    }

    /// Whether a pass was done, or would be done.
    pub fn is_due(&self) -> bool {
        matches!(self.state, CompactionState::Dirty | CompactionState::Overdue)
    }

    fn of(range: &CleaningRange) -> Self {
        Self {
            state: range.state,
            first_dirty_offset: range.first_dirty_offset,
            first_uncleanable_offset: range.first_uncleanable_offset,
            bound: range.bound,
            clean_bytes: range.clean_bytes,
            cleanable_bytes: range.cleanable_bytes,
            end_offset: range.first_dirty_offset,
            keys: 0,
            segments: Vec::new(),
        }
    }
}

/// A segment that a compaction reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "binding", derive(serde::Deserialize, serde::Serialize))]
pub struct CompactedSegment {
    /// Its base offset.
    pub base_offset: i64,
    /// The base offset of the segment that has its records afterwards: that of the first segment of its
    /// group.
    pub new_base_offset: i64,
    /// The size of its `.log`.
    pub bytes_before: u64,
    /// The bytes of them that remain.
    pub bytes_after: u64,
    /// The number of its records, control records included.
    pub records_before: u64,
    /// The number of them that remain.
    pub records_after: u64,
}

/// Returns what [`LogWriter::compact`] would do, and changes nothing: the batches are rebuilt, and not
/// written. Producers whose last batch is older than a day count as expired.
///
/// *Cost*: as for [`LogWriter::compact`], without the writing.
///
/// # Errors
/// [`Error::Config`] if the policy is not `compact`, or the memory is too small; [`Error::Corrupt`] if the
/// log is damaged; [`Error::UnsupportedFormat`]; [`Error::Io`]; [`Error::RecordTooLarge`] if
/// [`LogWriter::compact`] splits a segment first.
///
/// # Source
/// Kafka: `LogCleanerManager.grabFilthiestCompactedLog`.
pub fn plan_compaction(log: &Log, config: &LogConfig, options: &CompactionOptions) -> Result<Compaction> {
    refuse_other_policy(config)?;
    let WriterOptions { clock, producer_id_expiration_ms, .. } = WriterOptions::default();
    let now = options.now.unwrap_or_else(clock);
    let data_directory = DataDirectory::around(log.directory())?;
    let checkpoint =
        CleanerCheckpoint { directory: log.directory(), data_directory: data_directory.as_ref() };
    let range = CleaningRange::of(log, config, checkpoint.read()?, log.last_stable_offset()?, now)?;
    let mut compaction = Compaction::of(&range);
    if !range.is_due() {
        return Ok(compaction);
    }
    let source = Source { log, config, range: &range, now };
    let (mut history, keys) = read(source, options)?;
    compaction.read(&keys);
    history.producers.remove_expired(now, producer_id_expiration_ms);
    let producers = history.producers.last_records();
    let mut pass = Pass::new(source, &history, &keys, options.threads)?;
    for group in range.groups(log, config, keys.end_offset())? {
        compaction.segments.extend(pass.clean(&group, producers.clone(), None)?);
    }
    Ok(compaction)
}

impl LogWriter {
    /// Removes the records whose key a later record has, and tombstones and transaction markers that are no
    /// longer needed, from the segments before the active one, in one pass, if one is due. Segments that
    /// become small are merged. Offsets do not change. Readers that are open keep the old segments.
    ///
    /// A pass is due if the part of the log that was not cleaned before is larger than
    /// `min.cleanable.dirty.ratio`, or older than `max.compaction.lag.ms`. Records that are younger than
    /// `min.compaction.lag.ms` and records of open transactions are left out. Records without a key are
    /// removed. A segment with offsets more than 2^31 - 1 above its base offset is split first.
    ///
    /// *Cost*: reads the log once, then again up to the end of the pass; writes what remains; needs disk
    /// space for the largest new segment, and the memory of the options. *Concurrency*: appends of other
    /// threads wait only while a segment is replaced.
    ///
    /// # Errors
    /// [`Error::Config`] if `cleanup.policy` has no `compact`, or the memory is too small for a key;
    /// [`Error::Corrupt`] if the log is damaged, with nothing changed; [`Error::Io`], with the segments
    /// replaced so far if the disk is full; [`Error::Poisoned`].
    ///
    /// # Source
    /// Kafka: `LogCleaner.cleanFilthiestLog`, `Cleaner.doClean`.
    pub fn compact(&mut self, options: &CompactionOptions) -> Result<Compaction> {
        loop {
            if let Some(compaction) = self.try_compact(options)? {
                return Ok(compaction);
            }
        }
    }

    /// `None`: a segment was split, so that the pass begins again.
    fn try_compact(&mut self, options: &CompactionOptions) -> Result<Option<Compaction>> {
        let Cleanable { log, directory, config, last_stable_offset, first_dirty_offset, now } =
            self.cleanable(options.now)?;
        refuse_other_policy(&config)?;
        let range = CleaningRange::of(&log, &config, first_dirty_offset, last_stable_offset, now)?;
        let mut compaction = Compaction::of(&range);
        if range.is_reset {
            self.set_first_dirty_offset(range.first_dirty_offset)?;
        }
        if !range.is_due() {
            return Ok(Some(compaction));
        }
        let source = Source { log: &log, config: &config, range: &range, now };
        let (history, keys) = read(source, options)?;
        compaction.read(&keys);
        if first_dirty_offset.is_none() {
            // before the first replacement: it tells readers that offsets may be missing between segments
            self.set_first_dirty_offset(range.first_dirty_offset)?;
        }
        if self.split_overflowed(&log, keys.end_offset(), &history.aborted)? {
            return Ok(None);
        }
        let mut pass = Pass::new(source, &history, &keys, options.threads)?;
        remove_cleaned(&directory)?;
        for group in range.groups(&log, &config, keys.end_offset())? {
            let cleaned = pass.clean(&group, self.last_records()?, Some(&directory))?;
            let replaced: Vec<_> = group.iter().map(|segment| segment.base_offset()).collect();
            let is_empty = cleaned.iter().all(|segment| segment.bytes_after == 0);
            self.replace_segments(&replaced, is_empty)?;
            compaction.segments.extend(cleaned);
        }
        self.set_first_dirty_offset(compaction.end_offset)?;
        Ok(Some(compaction))
    }
}

impl Compaction {
    fn read(&mut self, keys: &DirtyKeys) {
        self.end_offset = keys.end_offset();
        self.keys = keys.len() as u64;
    }
}

/// Reads everything on which the pass depends.
fn read(source: Source<'_>, options: &CompactionOptions) -> Result<(History, DirtyKeys)> {
    let Source { log, range, .. } = source;
    let dirty = range.dirty_segments(log);
    let first = dirty.first().map_or(range.first_uncleanable_offset, |(first, _)| first.base_offset());
    let history = History::read(log, &(first..range.first_uncleanable_offset))?;
    let keys = DirtyKeys::read(source, &history, options)?;
    Ok((history, keys))
}

fn refuse_other_policy(config: &LogConfig) -> Result<()> {
    if config.cleanup_policy.compact {
        return Ok(());
    }
    Err(Error::config("cleanup.policy", "compact, or compact,delete", "delete"))
}
