//! The options of a source: those of Spark's Kafka source, and cordwood's own.
//!
//! Options that Spark's Kafka source has keep their names, meanings and defaults. Engines pass options as
//! texts; names are case-insensitive. The table of all of them is in [`option_table`](super::option_table).

use std::collections::{BTreeMap, BTreeSet};

use super::error::{PlanError, Result};
use super::option_table::{TABLE, check_broker_option, is_broker_option, unknown_option};
use super::partition_offsets::{Offsets, PartitionKey, check_entries, keys_of};
use super::topic_pattern::TopicPattern;
use super::warning::Warning;
use crate::record::MAX_BATCH_BYTES;
use crate::text::write_time;
use crate::types::{Io, IsolationLevel};

/// Which rows a query returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Table {
    /// A row for each record.
    #[default]
    Records,
    /// A row for each batch.
    Batches,
    /// A row for each segment.
    Segments,
}

/// What a query does with damage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Mode {
    /// It fails.
    #[default]
    FailFast,
    /// It leaves damage out, with a warning.
    DropMalformed,
    /// A row for each damaged range has the column `_error`.
    Permissive,
}

/// Where a range begins by offsets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Start {
    /// At the log start offsets.
    Earliest,
    /// At the log end offsets; only for streams.
    Latest,
    /// At these offsets, or −2 and −1 for these two.
    Offsets(Offsets),
}

/// Where a range ends by offsets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// At the log end offsets.
    Latest,
    /// Before these offsets, or −1 for that.
    Offsets(Offsets),
}

/// The checked options of a query. `None` if not given.
///
/// Offsets are absolute, starts inclusive and ends exclusive; times are milliseconds since the epoch.
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option")]
pub struct SourceOptions {
    /// Data directories and partition directories, or globs of them.
    pub paths: Vec<String>,
    /// These topics.
    pub subscribe: Option<Vec<String>>,
    /// Topics whose name contains a match of this regular expression, except internal ones.
    pub subscribe_pattern: Option<TopicPattern>,
    /// Whether internal topics are excluded unless named. `None`: with `subscribe_pattern`, as in Spark's
    /// source.
    pub exclude_internal_topics: Option<bool>,
    /// These partitions.
    pub assign: Option<BTreeSet<PartitionKey>>,
    /// Where the range begins.
    pub starting_offsets: Option<Start>,
    /// It begins at the first record at or after this time.
    pub starting_timestamp: Option<i64>,
    /// The same for each partition.
    pub starting_offsets_by_timestamp: Option<Offsets>,
    /// Whether the range begins at the end if no record is at or after the time; otherwise that is an error.
    pub starts_at_latest_without_time: bool,
    /// Where the range ends.
    pub ending_offsets: Option<End>,
    /// It ends before the first record at or after this time.
    pub ending_timestamp: Option<i64>,
    /// The same for each partition.
    pub ending_offsets_by_timestamp: Option<Offsets>,
    /// Whether missing data is an error; otherwise it is a warning.
    pub fail_on_data_loss: bool,
    /// The minimum number of tasks.
    pub min_partitions: Option<u64>,
    /// The maximum number of offsets of a part of a task.
    pub max_records_per_partition: Option<u64>,
    /// The size of a task, bytes. `None`: 128 MiB, or less if some cores would have no task otherwise.
    pub max_partition_bytes: Option<u64>,
    /// The maximum number of offsets of a micro-batch.
    pub max_offsets_per_trigger: Option<u64>,
    /// The minimum number of offsets of a micro-batch.
    pub min_offsets_per_trigger: Option<u64>,
    /// How long a micro-batch waits for the minimum, ms.
    pub max_trigger_delay_ms: u64,
    /// The rows.
    pub table: Table,
    /// The columns, of records.
    pub columns: Option<Vec<String>>,
    /// Whether the column `headers` is added.
    pub include_headers: bool,
    /// Which records of transactions are returned.
    pub isolation_level: IsolationLevel,
    /// Whether the topics are compacted, so that compaction may have left gaps between segments. `None`: the
    /// files decide ([`Log::is_compacted`](crate::log::Log::is_compacted)).
    pub is_compacted: Option<bool>,
    /// What to do with damage.
    pub mode: Mode,
    /// The maximum number of rows of a record batch.
    pub max_batch_rows: u64,
    /// The approximate maximum size of a record batch, bytes.
    pub max_batch_bytes: u64,
    /// The largest batch of a log that is read, bytes, as stored and decompressed. A larger one is an error,
    /// and never left out.
    pub max_log_batch_bytes: u64,
    /// Whether the checksums of the batches whose records are returned are verified.
    pub check_crc: bool,
    /// Which files are mapped. `pread` by default: if a mapped file is shortened, the process is killed by a
    /// signal.
    pub io: Io,
}

impl Default for SourceOptions {
    fn default() -> Self {
        Self {
            paths: Vec::new(),
            subscribe: None,
            subscribe_pattern: None,
            exclude_internal_topics: None,
            assign: None,
            starting_offsets: None,
            starting_timestamp: None,
            starting_offsets_by_timestamp: None,
            starts_at_latest_without_time: false,
            ending_offsets: None,
            ending_timestamp: None,
            ending_offsets_by_timestamp: None,
            fail_on_data_loss: true,
            min_partitions: None,
            max_records_per_partition: None,
            max_partition_bytes: None,
            max_offsets_per_trigger: None,
            min_offsets_per_trigger: None,
            max_trigger_delay_ms: 15 * 60 * 1000,
            table: Table::Records,
            columns: None,
            include_headers: false,
            isolation_level: IsolationLevel::ReadUncommitted,
            is_compacted: None,
            mode: Mode::FailFast,
            max_batch_rows: 20_000,
            max_batch_bytes: 8 << 20,
            max_log_batch_bytes: MAX_BATCH_BYTES as u64,
            check_crc: true,
            io: Io::Pread,
        }
    }
}

impl SourceOptions {
    /// Checks options. Options that only a broker needs are accepted, with a warning.
    ///
    /// # Errors
    /// [`Code::BadOption`](super::Code::BadOption) for an unknown option, with the nearest name, or all names
    /// if none is similar; for a misspelt option of the source after the prefix `kafka.`, where the
    /// settings of a consumer are accepted without effect; for a value that is not allowed; and for
    /// options that contradict each other.
    pub fn from_texts<'a>(
        texts: impl IntoIterator<Item = (&'a str, &'a str)>,
        warnings: &mut Vec<Warning>,
    ) -> Result<Self> {
        let mut options = Self::default();
        // by the first name of the same option
        let mut given: BTreeMap<&str, String> = BTreeMap::new();
        let mut ignored = Vec::new();
        for (name, text) in texts {
            let Some(entry) = TABLE.iter().find(|entry| entry.name.eq_ignore_ascii_case(name)) else {
                if !is_broker_option(name) {
                    return Err(unknown_option(name, text));
                }
                check_broker_option(name, text)?;
                ignored.push(name);
                continue;
            };
            (entry.read)(&mut options, entry.name, text)?;
            if entry.same_as.is_none() && !TABLE.iter().any(|other| other.same_as == Some(entry.name)) {
                continue;
            }
            let written = (entry.write)(&options).unwrap_or_default();
            let first = given.entry(entry.same_as.unwrap_or(entry.name)).or_insert_with(|| written.clone());
            if *first != written {
                let expected = format!("the value of its other name, {first:?}");
                return Err(PlanError::option(entry.name, expected, format!("{text:?}")));
            }
        }
        if !ignored.is_empty() {
            let text = format!("ignored, because files are read and not a broker: {}", ignored.join(", "));
            warnings.push(Warning::new(text));
        }
        if options.paths.is_empty() {
            let expected = "a data directory, a partition directory, or a glob: .load(path)";
            return Err(PlanError::option("path", expected, "none"));
        }
        options.check_together()?;
        Ok(options)
    }

    /// The options as texts, from which [`SourceOptions::from_texts`] returns the same; those with their
    /// default values are left out.
    pub fn to_texts(&self) -> BTreeMap<&'static str, String> {
        let default = Self::default();
        let primary = TABLE.iter().filter(|entry| entry.same_as.is_none() && entry.name != "path");
        primary
            .filter_map(|entry| {
                let text = (entry.write)(self)?;
                ((entry.write)(&default).as_ref() != Some(&text)).then_some((entry.name, text))
            })
            .collect()
    }

    /// The names of the given options that have an effect in a stream only. Spark's Kafka source ignores the
    /// same ones.
    pub(crate) fn only_for_streams(&self) -> Vec<&'static str> {
        let names = ["maxOffsetsPerTrigger", "minOffsetsPerTrigger", "maxTriggerDelay"];
        let texts = self.to_texts();
        names.into_iter().filter(|name| texts.contains_key(name)).collect()
    }

    /// The options with an offset or a time for each partition, with their names.
    pub(crate) fn offsets_by_name(&self) -> impl Iterator<Item = (&'static str, &Offsets)> {
        let start =
            if let Some(Start::Offsets(offsets)) = &self.starting_offsets { Some(offsets) } else { None };
        let end = if let Some(End::Offsets(offsets)) = &self.ending_offsets { Some(offsets) } else { None };
        [
            ("startingOffsets", start),
            ("startingOffsetsByTimestamp", self.starting_offsets_by_timestamp.as_ref()),
            ("endingOffsets", end),
            ("endingOffsetsByTimestamp", self.ending_offsets_by_timestamp.as_ref()),
        ]
        .into_iter()
        .filter_map(|(name, offsets)| Some((name, offsets?)))
    }

    /// The options that give an end, which only a batch query may have.
    pub(crate) fn ends(&self) -> impl Iterator<Item = &'static str> {
        let given = [
            ("endingOffsets", self.ending_offsets.is_some()),
            ("endingTimestamp", self.ending_timestamp.is_some()),
            ("endingOffsetsByTimestamp", self.ending_offsets_by_timestamp.is_some()),
        ];
        given.into_iter().filter_map(|(name, is_given)| is_given.then_some(name))
    }

    fn check_together(&self) -> Result<()> {
        let chosen = [
            ("subscribe", self.subscribe.is_some()),
            ("subscribePattern", self.subscribe_pattern.is_some()),
            ("assign", self.assign.is_some()),
        ];
        let named: Vec<_> =
            chosen.into_iter().filter_map(|(name, is_given)| is_given.then_some(name)).collect();
        if named.len() > 1 {
            let expected = "at most one of subscribe, subscribePattern and assign";
            return Err(PlanError::option(&named.join(" and "), expected, named.len()));
        }
        // both may be given, as in Spark's Kafka source: the minimum decides when a micro-batch begins, the
        // maximum where it ends
        if let (Some(least), Some(most)) = (self.min_offsets_per_trigger, self.max_offsets_per_trigger)
            && least > most
        {
            let expected = format!("at most maxOffsetsPerTrigger ({most})");
            return Err(PlanError::option("minOffsetsPerTrigger", expected, least));
        }
        let mut given = self.offsets_by_name();
        if let Some((first, offsets)) = given.next() {
            let wanted = keys_of(offsets.keys());
            for (name, offsets) in given {
                let expected = format!("each partition that {first} names");
                check_entries(name, &keys_of(offsets.keys()), &wanted, &expected)?;
            }
        }
        self.check_order()?;
        if let (true, Some(columns)) = (self.table != Table::Records, &self.columns) {
            let expected = "no columns with table=batches or table=segments (use select)";
            return Err(PlanError::option("columns", expected, columns.join(",")));
        }
        Ok(())
    }

    /// Refuses an end before its start, as Spark's Kafka source does; equal ones are an empty range. A time
    /// and an offset are not compared: the records after the one and before the other may be none.
    fn check_order(&self) -> Result<()> {
        let start_times = Side {
            names: ["startingTimestamp", "startingOffsetsByTimestamp"],
            of_all: self.starting_timestamp,
            by_partition: self.starting_offsets_by_timestamp.as_ref(),
        };
        let end_times = Side {
            names: ["endingTimestamp", "endingOffsetsByTimestamp"],
            of_all: self.ending_timestamp,
            by_partition: self.ending_offsets_by_timestamp.as_ref(),
        };
        // times take precedence over offsets
        if start_times.is_given() || end_times.is_given() {
            return start_times.check_end(&end_times, write_time);
        }
        if let (Some(Start::Offsets(starts)), Some(End::Offsets(ends))) =
            (&self.starting_offsets, &self.ending_offsets)
        {
            let known = |offsets: &Offsets| -> Offsets {
                // the earliest and the latest are below 0
                offsets
                    .iter()
                    .filter(|(_, offset)| **offset >= 0)
                    .map(|(key, at)| (key.clone(), *at))
                    .collect()
            };
            let (starts, ends) = (known(starts), known(ends));
            let side =
                |name, offsets| Side { names: [name, name], of_all: None, by_partition: Some(offsets) };
            side("startingOffsets", &starts).check_end(&side("endingOffsets", &ends), |at| at.to_string())?;
        }
        Ok(())
    }
}

/// The starts, or the ends, of the partitions.
struct Side<'a> {
    /// The option for all partitions, and that for each.
    names: [&'static str; 2],
    /// That of all partitions; it takes precedence.
    of_all: Option<i64>,
    by_partition: Option<&'a Offsets>,
}

impl Side<'_> {
    fn is_given(&self) -> bool {
        self.of_all.is_some() || self.by_partition.is_some()
    }

    /// That of a partition, with the name of the option.
    fn of(&self, key: &PartitionKey) -> Option<(&'static str, i64)> {
        let [of_all, of_each] = self.names;
        let by_partition = || Some((of_each, *self.by_partition?.get(key)?));
        self.of_all.map(|at| (of_all, at)).or_else(by_partition)
    }

    /// Refuses an end that is before its start.
    fn check_end(&self, ends: &Self, text: impl Fn(i64) -> String) -> Result<()> {
        let ([start_name, _], [end_name, _]) = (self.names, ends.names);
        if let (Some(start), Some(end)) = (self.of_all, ends.of_all) {
            if end < start {
                let expected = format!("{} or later, where {start_name} begins", text(start));
                return Err(PlanError::option(end_name, expected, text(end)));
            }
            return Ok(());
        }
        for key in self.by_partition.or(ends.by_partition).into_iter().flat_map(Offsets::keys) {
            let (Some((start_name, start)), Some((end_name, end))) = (self.of(key), ends.of(key)) else {
                continue;
            };
            if end < start {
                let (topic, partition) = key;
                let start = text(start);
                let expected = format!("{start} or later for {topic}-{partition}, where {start_name} begins");
                return Err(PlanError::option(end_name, expected, text(end)));
            }
        }
        Ok(())
    }
}
