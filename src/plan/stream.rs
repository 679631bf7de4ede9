//! Streams over growing logs: offsets, micro-batches, and lost data.
//!
//! An offset of a stream contains for each partition the next offset to read, and fields of the batch before
//! it ([`position`](super::position)), which detect a replaced log. Engines compare offsets as text, so
//! topics and partitions are always in the same order.
//!
//! Spark records where a micro-batch ends, but not where the first one starts: if the first micro-batch of a
//! query fails, Spark requests the start again, which may have changed. So the first micro-batch is empty,
//! and ends at the start. A partition that appears later is treated in the same way. The deprecated
//! `Trigger.Once` runs one micro-batch, so its first run reads nothing; `availableNow` continues.

use std::collections::{BTreeMap, HashSet};
use std::time::Instant;

use super::bounds::{Bounds, check_names, end_of};
use super::context::Context;
use super::cutting::Cutting;
use super::directory::{PartitionDirectory, find_partitions};
use super::error::{Code, PlanError, Result};
use super::gaps::is_compacted;
use super::options::{SourceOptions, Table};
use super::partition_offsets::{LATEST, Offsets, PartitionKey};
use super::piece::Task;
use super::position::{Mismatch, Position, Positions, read_positions, write_positions};
use super::query::Query;
use super::task_reader::START_AGAIN;
use super::warning::Warning;
use crate::log::Log;

/// The driver's side of a stream, for the lifetime of a query.
#[derive(Debug)]
pub struct Stream {
    query: Query,
    context: Context,
    initial: Option<String>,
    /// Whether the next micro-batch is the first one.
    is_first: bool,
    /// With `availableNow`, where the query ends.
    target: Option<Offsets>,
    /// The ends of the logs at the last trigger.
    latest: Offsets,
    last_trigger: Option<Instant>,
    /// A loss is reported once per query: otherwise each micro-batch would repeat the warning.
    warned: HashSet<String>,
}

type Directories = BTreeMap<PartitionKey, PartitionDirectory>;

impl Stream {
    /// A stream of a query.
    ///
    /// # Errors
    /// [`Code::BadOption`] for options that do not apply to a stream: an end, or a `table` other than
    /// `records`.
    pub fn new(query: Query, context: Context) -> Result<Self> {
        if let Some(name) = query.options.ends().next() {
            let texts = query.options.to_texts();
            let found = texts.get(name).cloned().unwrap_or_default();
            return Err(PlanError::option(name, "no end for a stream", found));
        }
        if query.options.table != Table::Records {
            return Err(PlanError::option("table", "records for a stream", query.options.table.name()));
        }
        Ok(Self {
            query: query.of_stream(),
            context,
            initial: None,
            is_first: false,
            target: None,
            latest: Offsets::new(),
            last_trigger: None,
            warned: HashSet::new(),
        })
    }

    /// The query of its micro-batches.
    pub fn query(&self) -> &Query {
        &self.query
    }

    /// The warnings since the last call.
    pub fn take_warnings(&mut self) -> Vec<Warning> {
        std::mem::take(&mut self.context.warnings)
    }

    /// The maximum number of offsets of a micro-batch; `None`: no limit.
    pub fn max_offsets_per_trigger(&self) -> Option<u64> {
        self.query.options.max_offsets_per_trigger
    }

    /// The start of a new query: by default the latest offsets. It does not change when it is called again.
    ///
    /// # Errors
    /// As [`Context::plan`].
    pub fn initial_offset(&mut self) -> Result<String> {
        if let Some(initial) = &self.initial {
            return Ok(initial.clone());
        }
        let directories = self.directories()?;
        let options = self.query.options.clone();
        let chosen: Vec<_> = directories.values().cloned().collect();
        check_names(&options, &chosen, true)?;
        let mut positions = Positions::new();
        for (key, directory) in &directories {
            let log = self.context.open(directory, &options, true)?;
            let start = self.context.starting_offset(&log, directory, &options, LATEST)?;
            positions.insert(key.clone(), position_of(&log, directory, start)?);
        }
        let initial = write_positions(&positions);
        self.initial = Some(initial.clone());
        self.is_first = true;
        Ok(initial)
    }

    /// The end of the next micro-batch, at most `max_offsets` offsets after `start`; `start` if there is
    /// nothing, or not enough, to read.
    ///
    /// # Errors
    /// [`Code::SegmentGone`] if the log was replaced or offsets are gone; as [`Context::plan`].
    pub fn latest_offset(&mut self, start: &str, max_offsets: Option<u64>) -> Result<String> {
        let directories = self.directories()?;
        self.latest = self.ends(&directories)?;
        if std::mem::take(&mut self.is_first) {
            return Ok(start.to_owned());
        }
        let mut ends = self.latest.clone();
        if let Some(target) = &self.target {
            ends.retain(|key, end| {
                let target = target.get(key);
                *end = target.map_or(*end, |target| (*end).min(*target));
                target.is_some()
            });
        }
        // a missing partition keeps its position, so that nothing is read twice if it reappears
        let begin = read_positions(start)?;
        let mut reached = begin.clone();
        let mut waiting: BTreeMap<&PartitionKey, u64> = BTreeMap::new();
        for (key, position) in &begin {
            let Some(directory) = self.directory(key, &directories, position)? else { continue };
            let log = self.context.open(directory, &self.query.options, false)?;
            let position = self.checked(directory, &log, position)?;
            let end = ends.get(key).copied().unwrap_or(0);
            waiting.insert(key, u64::try_from(end.saturating_sub(position.offset)).unwrap_or(0));
            reached.insert(key.clone(), position);
        }
        for key in ends.keys().filter(|key| !begin.contains_key(*key)) {
            let Some(directory) = directories.get(key) else { continue };
            let log = self.context.open(directory, &self.query.options, false)?;
            reached.insert(key.clone(), position_of(&log, directory, log.log_start_offset())?);
        }
        let total = waiting.values().fold(0_u64, |total, size| total.saturating_add(*size));
        if total > 0 && !self.should_wait(total) {
            self.last_trigger = Some(Instant::now());
            for (key, size) in waiting {
                let share = share_of(size, total, max_offsets);
                if let (Some(directory), Some(position), 1..) =
                    (directories.get(key), reached.get(key), share)
                {
                    let log = self.context.open(directory, &self.query.options, false)?;
                    let offset = position.offset.saturating_add_unsigned(share);
                    reached.insert(key.clone(), position_of(&log, directory, offset)?);
                }
            }
        }
        Ok(if reached == begin { start.to_owned() } else { write_positions(&reached) })
    }

    /// Stores the current ends: the query ends when it has read up to them.
    ///
    /// # Errors
    /// As [`Context::plan`].
    pub fn prepare_available_now(&mut self) -> Result<()> {
        let directories = self.directories()?;
        self.target = Some(self.ends(&directories)?);
        Ok(())
    }

    /// The ends of the logs at the last trigger, for the query's progress; `None` before the first.
    pub fn report_latest_offset(&self) -> Option<String> {
        let position = |offset: &i64| Position { offset: *offset, ..Position::default() };
        let positions: Positions =
            self.latest.iter().map(|(key, offset)| (key.clone(), position(offset))).collect();
        (!positions.is_empty()).then(|| write_positions(&positions))
    }

    /// How far a query is behind the ends of the logs at the last trigger, after it has read up to
    /// `consumed`: the smallest, the largest and the average number of offsets of a partition, with the
    /// names of Spark's Kafka source. Empty without an offset.
    ///
    /// # Errors
    /// [`Code::BadOption`](super::Code::BadOption) for an offset that this version cannot read.
    pub fn metrics(&self, consumed: Option<&str>) -> Result<Vec<(&'static str, String)>> {
        let consumed = consumed.map(read_positions).transpose()?.unwrap_or_default();
        let behind = |(key, end): (&PartitionKey, &i64)| {
            consumed.get(key).map(|position| end.saturating_sub(position.offset).max(0))
        };
        let behind: Vec<i64> = self.latest.iter().filter_map(behind).collect();
        let (Some(min), Some(max)) = (behind.iter().min(), behind.iter().max()) else {
            return Ok(Vec::new());
        };
        #[expect(clippy::cast_precision_loss, reason = "an average for people")]
        let average = behind.iter().map(|offsets| *offsets as f64).sum::<f64>() / behind.len() as f64;
        Ok(vec![
            ("minOffsetsBehindLatest", min.to_string()),
            ("maxOffsetsBehindLatest", max.to_string()),
            ("avgOffsetsBehindLatest", average.to_string()),
        ])
    }

    /// Plans a micro-batch. It may be one of an earlier run that is repeated.
    ///
    /// # Errors
    /// As [`Stream::latest_offset`].
    pub fn plan(&mut self, start: &str, end: &str) -> Result<Vec<Task>> {
        self.is_first = false;
        let (begin, stop) = (read_positions(start)?, read_positions(end)?);
        // A new partition is only in `end`, which is its start. If the first micro-batch is repeated, its
        // start may be above its end.
        let ranges: Vec<_> = begin
            .iter()
            .filter_map(|(key, begin)| Some((key, begin, stop.get(key)?)))
            .filter(|(_, begin, stop)| begin.offset < stop.offset)
            .collect();
        let directories = if ranges.is_empty() { Directories::new() } else { self.directories()? };
        let query = self.query.clone();
        let mut tasks = Cutting::new(&query.options, &query.restriction);
        let is_included = |key: &PartitionKey| {
            directories.get(key).is_none_or(|directory| query.restriction.includes(directory))
        };
        for (key, begin, stop) in ranges.into_iter().filter(|(key, ..)| is_included(key)) {
            let Some(directory) = self.directory(key, &directories, begin)? else { continue };
            let log = self.context.open(directory, &query.options, true)?;
            let start_offset = self.checked(directory, &log, begin)?.offset;
            let end_offset = self.checked(directory, &log, stop)?.offset.max(start_offset);
            let continues = start_offset > log.log_start_offset();
            let bounds = Bounds { directory: directory.clone(), start_offset, end_offset, continues };
            tasks.add(&self.context, &query.restriction.narrowed(bounds, &log)?)?;
        }
        tasks.finish(&self.context)
    }

    fn directories(&mut self) -> Result<Directories> {
        let mut warnings = Vec::new();
        let found = find_partitions(&self.query.options, &mut warnings)?;
        for warning in warnings {
            self.warn_once(warning);
        }
        let mut directories = Directories::new();
        for directory in found {
            let Some(key) = directory.topic.clone().zip(directory.partition) else {
                let path = directory.path.display();
                let expected = "directories named topic-partition for a stream";
                return Err(PlanError::option("path", expected, path));
            };
            directories.insert(key, directory);
        }
        Ok(directories)
    }

    fn ends(&mut self, directories: &Directories) -> Result<Offsets> {
        let options = &self.query.options;
        let end = |directory| end_of(&self.context.open(directory, options, true)?, directory, options);
        directories.iter().map(|(key, directory)| Ok((key.clone(), end(directory)?))).collect()
    }

    fn directory<'a>(
        &mut self,
        key: &PartitionKey,
        directories: &'a Directories,
        position: &Position,
    ) -> Result<Option<&'a PartitionDirectory>> {
        let found = directories.get(key);
        if found.is_none() {
            self.lost(key, position, "the partition is missing")?;
        }
        Ok(found)
    }

    /// The position in the current log: the same one, unless its data is lost.
    fn checked(
        &mut self,
        directory: &PartitionDirectory,
        log: &Log,
        position: &Position,
    ) -> Result<Position> {
        let compared = compared(log, position, &self.query.options);
        let (now, lost) = compared.map_err(|error| PlanError::of(error).in_log(directory))?;
        if let Some(found) = lost {
            let key = (directory.topic.clone().unwrap_or_default(), directory.partition.unwrap_or_default());
            self.lost(&key, position, &found)?;
        }
        Ok(now)
    }

    fn lost(&mut self, (topic, partition): &PartitionKey, position: &Position, found: &str) -> Result<()> {
        let reason = format!("expected to continue from offset {}, found that {found}", position.offset);
        let error = PlanError::new(Code::SegmentGone, reason);
        let error = PlanError { topic: Some(topic.clone()), partition: Some(*partition), ..error };
        if self.query.options.fail_on_data_loss {
            return Err(error.with_advice(START_AGAIN));
        }
        self.warn_once(Warning::of(&error, ""));
        Ok(())
    }

    fn warn_once(&mut self, warning: Warning) {
        if self.warned.insert(warning.text.clone()) {
            self.context.warnings.push(warning);
        }
    }

    /// Whether to wait for more offsets: for at most `maxTriggerDelay`, and not with `availableNow`.
    fn should_wait(&self, waiting: u64) -> bool {
        let SourceOptions { min_offsets_per_trigger, max_trigger_delay_ms, .. } = self.query.options;
        let (Some(minimum), None, Some(last)) = (min_offsets_per_trigger, &self.target, self.last_trigger)
        else {
            return false;
        };
        waiting < minimum && last.elapsed().as_millis() < u128::from(max_trigger_delay_ms)
    }
}

fn position_of(log: &Log, directory: &PartitionDirectory, offset: i64) -> Result<Position> {
    Position::of(log, offset).map_err(|error| PlanError::of(error).in_log(directory))
}

/// The position in the current log, and what is lost if it differs.
fn compared(
    log: &Log,
    position: &Position,
    options: &SourceOptions,
) -> crate::Result<(Position, Option<String>)> {
    let (first, last) = (log.log_start_offset(), log.log_end_offset()?);
    if position.offset < first {
        return Ok((Position::of(log, first)?, Some(format!("the log now begins at offset {first}"))));
    }
    if position.offset > last {
        // it was truncated or created again: continue from its end
        return Ok((Position::of(log, last)?, Some(format!("the log now ends at offset {last}"))));
    }
    let now = Position::of(log, position.offset)?;
    Ok(match position.mismatch(&now, || is_compacted(log, options))? {
        None => (position.clone(), None),
        Some(changed) => {
            let or_compacted = match changed {
                Mismatch::Crc { .. } => ", or it is compacted and needs the option cleanupPolicy=compact",
                Mismatch::TopicId { .. } | Mismatch::LeaderEpoch { .. } => "",
            };
            (now, Some(format!("{changed}{or_compacted}")))
        }
    })
}

/// The part of `max_offsets` for a partition in proportion to its waiting offsets, at least one if it has
/// some.
fn share_of(size: u64, total: u64, max_offsets: Option<u64>) -> u64 {
    let Some(most) = max_offsets.filter(|most| total > *most) else { return size };
    let share = u128::from(most) * u128::from(size) / u128::from(total.max(1));
    size.min(u64::try_from(share).unwrap_or(u64::MAX).max(1))
}
