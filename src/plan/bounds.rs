//! Resolution of the options to ranges of offsets, from the current logs. Names, sizes and indexes are read;
//! no record is, and batch headers only to find committed offsets.

use std::collections::BTreeSet;

use super::context::Context;
use super::directory::PartitionDirectory;
use super::error::{Code, PlanError, Result};
use super::options::{End, Mode, SourceOptions, Start};
use super::partition_offsets::{DirectoryKey, EARLIEST, LATEST, PartitionKey, check_entries, keys_of};
use super::warning::Warning;
use crate::log::{Log, OnDamage, ScanOptions};
use crate::types::{IsolationLevel, TimestampOffset};

/// The range of one partition to read: offsets `[start_offset, end_offset)`.
#[derive(Debug, Clone)]
pub struct Bounds {
    /// The partition.
    pub directory: PartitionDirectory,
    /// Inclusive.
    pub start_offset: i64,
    /// Exclusive.
    pub end_offset: i64,
    /// Whether it continues an earlier range, whose reading reported damage that extends into this one.
    pub continues: bool,
}

/// Refuses a start that is only allowed for a stream.
pub(crate) fn check_start(options: &SourceOptions) -> Result<()> {
    match &options.starting_offsets {
        Some(Start::Latest) => {
            let expected = "earliest or offsets (latest is for streams)";
            Err(PlanError::option("startingOffsets", expected, "latest"))
        }
        Some(Start::Offsets(offsets)) if offsets.values().any(|offset| *offset == LATEST) => {
            let expected = "offsets, or -2 for the earliest (-1 is for streams)";
            Err(PlanError::option("startingOffsets", expected, LATEST))
        }
        _ => Ok(()),
    }
}

/// Refuses offsets for partitions that are not read; with `is_whole` also if a partition that is read has
/// none.
///
/// With `failOnDataLoss=false`, offsets for a missing partition are ignored.
pub(crate) fn check_names(
    options: &SourceOptions,
    chosen: &[PartitionDirectory],
    is_whole: bool,
) -> Result<()> {
    let existing: BTreeSet<DirectoryKey> =
        chosen.iter().map(|directory| (directory.topic.clone(), directory.partition)).collect();
    for (option, offsets) in options.offsets_by_name() {
        let given = keys_of(offsets.keys());
        let known: BTreeSet<_> = existing.intersection(&given).cloned().collect();
        let named = if options.fail_on_data_loss { &given } else { &known };
        let wanted = if is_whole { &existing } else { &known };
        check_entries(option, named, wanted, "each partition that is read, and no other")?;
    }
    Ok(())
}

/// The key of a directory in the options; a directory without the name of a partition has none of them.
fn key_of(directory: &PartitionDirectory) -> PartitionKey {
    (directory.topic.clone().unwrap_or_default(), directory.partition.unwrap_or_default())
}

impl Context {
    /// The range to read of a partition, from the options and the current log.
    ///
    /// # Errors
    /// [`Code::OffsetOutOfRange`] for an offset outside the log (with `failOnDataLoss=false` it is clipped,
    /// with a warning); [`Code::TimeNotFound`]; the errors of opening a log.
    pub(crate) fn bounds_of(
        &mut self,
        directory: &PartitionDirectory,
        options: &SourceOptions,
    ) -> Result<Bounds> {
        let log = self.open(directory, options, true)?;
        let start_offset = self.starting_offset(&log, directory, options, EARLIEST)?;
        let end = self.ending_offset(&log, directory, options)?;
        let end_offset = end.max(start_offset);
        Ok(Bounds { directory: directory.clone(), start_offset, end_offset, continues: false })
    }

    /// The start by the options: by the common time, by the partition's time, or by its offset. `default`:
    /// [`EARLIEST`] or [`LATEST`].
    pub(crate) fn starting_offset(
        &mut self,
        log: &Log,
        directory: &PartitionDirectory,
        options: &SourceOptions,
        default: i64,
    ) -> Result<i64> {
        let in_log = |error: crate::Error| PlanError::of(error).in_log(directory);
        let key = key_of(directory);
        let by_partition = options.starting_offsets_by_timestamp.as_ref();
        let time = options.starting_timestamp.or_else(|| by_partition?.get(&key).copied());
        if let Some(time) = time {
            if let Some(found) = first_from(log, time, options).map_err(in_log)? {
                return Ok(found.offset);
            }
            if options.starts_at_latest_without_time {
                return end_of(log, directory, options);
            }
            let reason = format!(
                "no record at or after {time} ms (startingOffsetsByTimestampStrategy=latest starts at the end)"
            );
            return Err(PlanError::new(Code::TimeNotFound, reason).in_log(directory));
        }
        let offset = match &options.starting_offsets {
            None => default,
            Some(Start::Earliest) => EARLIEST,
            Some(Start::Latest) => LATEST,
            // a partition that appeared after the offsets were written is read from its beginning
            Some(Start::Offsets(offsets)) => offsets.get(&key).copied().unwrap_or(EARLIEST),
        };
        match offset {
            LATEST => end_of(log, directory, options),
            EARLIEST => Ok(log.log_start_offset()),
            offset => self.inside(offset, "start", log, directory, options),
        }
    }

    fn ending_offset(
        &mut self,
        log: &Log,
        directory: &PartitionDirectory,
        options: &SourceOptions,
    ) -> Result<i64> {
        let in_log = |error: crate::Error| PlanError::of(error).in_log(directory);
        let key = key_of(directory);
        let by_partition = options.ending_offsets_by_timestamp.as_ref();
        let time = options.ending_timestamp.or_else(|| by_partition?.get(&key).copied());
        if let Some(time) = time {
            let found = first_from(log, time, options).map_err(in_log)?;
            return found.map_or_else(|| end_of(log, directory, options), |found| Ok(found.offset));
        }
        match &options.ending_offsets {
            Some(End::Offsets(offsets)) => match offsets.get(&key).copied().unwrap_or(LATEST) {
                LATEST => end_of(log, directory, options),
                offset => self.inside(offset, "end", log, directory, options),
            },
            Some(End::Latest) | None => end_of(log, directory, options),
        }
    }

    /// An offset of the options, which must be in the log. With `failOnDataLoss=false` it is clipped.
    fn inside(
        &mut self,
        offset: i64,
        which: &str,
        log: &Log,
        directory: &PartitionDirectory,
        options: &SourceOptions,
    ) -> Result<i64> {
        let start = log.log_start_offset();
        let end = log.log_end_offset().map_err(|error| PlanError::of(error).in_log(directory))?;
        if (start..=end).contains(&offset) {
            return Ok(offset);
        }
        let reason = format!(
            "{which} offset {offset} is outside the log, which has offsets {start} to {end} (exclusive)"
        );
        let error = PlanError::new(Code::OffsetOutOfRange, reason).in_log(directory);
        if options.fail_on_data_loss {
            return Err(error.with_advice("; failOnDataLoss=false reads the existing offsets"));
        }
        self.warnings.push(Warning::of(&error, "; clipped"));
        Ok(offset.clamp(start, end))
    }
}

/// The current end: the log end offset, or for `read_committed` the last stable offset.
pub(crate) fn end_of(log: &Log, directory: &PartitionDirectory, options: &SourceOptions) -> Result<i64> {
    let end = || {
        if options.mode == Mode::FailFast {
            log.refuse_uncertain_end()?;
        }
        match (options.isolation_level, options.mode) {
            (IsolationLevel::ReadUncommitted, _) => log.log_end_offset(),
            (IsolationLevel::ReadCommitted, Mode::FailFast) => log.last_stable_offset(),
            (IsolationLevel::ReadCommitted, _) => {
                // damage may hide the end of a transaction: a plan has the last stable offset of a scan that
                // skips damage
                let committed = ScanOptions {
                    isolation_level: IsolationLevel::ReadCommitted,
                    on_damage: OnDamage::Skip,
                    ..ScanOptions::default()
                };
                let splits = log.plan(u64::MAX, &committed)?;
                Ok(splits.last().map_or(log.log_start_offset(), |last| last.end_offset))
            }
        }
    };
    end().map_err(|error| PlanError::of(error).in_log(directory))
}

/// The first record at or after a time. Damage at the end of the log is left to a mode that skips it.
fn first_from(
    log: &Log,
    time: i64,
    options: &SourceOptions,
) -> Result<Option<TimestampOffset>, crate::Error> {
    if options.mode == Mode::FailFast { log.offset_for_time(time) } else { log.first_from(time) }
}
