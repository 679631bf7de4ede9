//! The table of options: names, and how their texts are read and written.

use serde_json::Value;

use super::error::{PlanError, Result};
use super::options::{End, Mode, SourceOptions, Start, Table};
use super::partition_offsets::{
    EARLIEST, LATEST, read_assign, read_offsets, read_paths, read_times, write_assign, write_offsets,
    write_times,
};
use super::topic_pattern::TopicPattern;
use crate::config::nearest_within;
use crate::text::{TimeText, write_time};
use crate::types::{Io, IsolationLevel};

/// An option.
pub(super) struct OptionEntry {
    pub(super) name: &'static str,
    /// The first name of the same option.
    pub(super) same_as: Option<&'static str>,
    /// Reads a text. The option's name is for the error.
    pub(super) read: fn(&mut SourceOptions, &'static str, &str) -> Result<()>,
    /// Writes the text; `None` if the option is not given.
    pub(super) write: fn(&SourceOptions) -> Option<String>,
}

/// An entry whose value is read by `$read` (a function of name and text) into a field, and written by
/// `$write`.
macro_rules! entry {
    ($name:literal, $field:ident, $read:expr, $write:expr) => {
        entry!($name, None, $field, $read, $write)
    };
    ($name:literal, $same_as:expr, $field:ident, $read:expr, $write:expr) => {
        OptionEntry {
            name: $name,
            same_as: $same_as,
            read: |options, name, text| {
                options.$field = $read(name, text)?;
                Ok(())
            },
            write: |options| $write(&options.$field),
        }
    };
}

/// [`entry!`] for a field that is an `Option`.
macro_rules! optional {
    ($name:literal, $field:ident, $read:expr, $write:expr) => {
        optional!($name, None, $field, $read, $write)
    };
    ($name:literal, $same_as:expr, $field:ident, $read:expr, $write:expr) => {
        OptionEntry {
            name: $name,
            same_as: $same_as,
            read: |options, name, text| {
                options.$field = Some($read(name, text)?);
                Ok(())
            },
            write: |options| options.$field.as_ref().map($write),
        }
    };
}

/// All options, in the order in which errors list them.
pub(super) const TABLE: [OptionEntry; 34] = [
    OptionEntry {
        name: "path",
        same_as: None,
        // before those of `paths`
        read: |options, name, text| {
            options.paths.insert(0, read_text(name, text)?);
            Ok(())
        },
        write: |_| None,
    },
    OptionEntry {
        name: "paths",
        same_as: None,
        read: |options, name, text| {
            options.paths.extend(read_paths(name, text)?);
            Ok(())
        },
        write: |options| Some(Value::from(options.paths.clone()).to_string()),
    },
    optional!("subscribe", subscribe, read_names, |names| names.join(",")),
    optional!("subscribePattern", subscribe_pattern, read_pattern, |pattern: &TopicPattern| pattern
        .to_string()),
    optional!("assign", assign, read_assign, write_assign),
    optional!(
        "kafka.exclude.internal.topics",
        Some("excludeInternalTopics"),
        exclude_internal_topics,
        read_truth,
        bool::to_string
    ),
    optional!("excludeInternalTopics", exclude_internal_topics, read_truth, bool::to_string),
    optional!("startingOffsets", starting_offsets, read_start, write_start),
    optional!("startingTimestamp", starting_timestamp, read_time, written_time),
    optional!("startingOffsetsByTimestamp", starting_offsets_by_timestamp, read_times, write_times),
    entry!(
        "startingOffsetsByTimestampStrategy",
        starts_at_latest_without_time,
        choice(&[("error", false), ("latest", true)]),
        written(&[("error", false), ("latest", true)])
    ),
    optional!("endingOffsets", ending_offsets, read_end, write_end),
    optional!("endingTimestamp", ending_timestamp, read_time, written_time),
    optional!("endingOffsetsByTimestamp", ending_offsets_by_timestamp, read_times, write_times),
    entry!("failOnDataLoss", fail_on_data_loss, read_truth, write_truth),
    optional!("minPartitions", min_partitions, read_count, u64::to_string),
    optional!("maxRecordsPerPartition", max_records_per_partition, read_count, u64::to_string),
    optional!("maxPartitionBytes", max_partition_bytes, read_count, u64::to_string),
    optional!("maxOffsetsPerTrigger", max_offsets_per_trigger, read_count, u64::to_string),
    optional!("minOffsetsPerTrigger", min_offsets_per_trigger, read_count, u64::to_string),
    entry!("maxTriggerDelay", max_trigger_delay_ms, read_delay, |ms: &u64| Some(format!("{ms}ms"))),
    entry!("table", table, choice(&TABLES), written(&TABLES)),
    optional!("columns", columns, read_names, |names| names.join(",")),
    entry!("includeHeaders", include_headers, read_truth, write_truth),
    entry!(
        "kafka.isolation.level",
        Some("isolationLevel"),
        isolation_level,
        choice(&ISOLATION_LEVELS),
        written(&ISOLATION_LEVELS)
    ),
    entry!("isolationLevel", isolation_level, choice(&ISOLATION_LEVELS), written(&ISOLATION_LEVELS)),
    optional!("cleanupPolicy", is_compacted, read_cleanup_policy, |policy| name_of(
        &CLEANUP_POLICIES,
        policy
    )),
    entry!("mode", mode, choice(&MODES), written(&MODES)),
    entry!("maxBatchRows", max_batch_rows, read_count, |count: &u64| Some(count.to_string())),
    entry!("maxBatchBytes", max_batch_bytes, read_count, |count: &u64| Some(count.to_string())),
    entry!("maxLogBatchBytes", max_log_batch_bytes, read_count, |count: &u64| Some(count.to_string())),
    entry!("checkCrc", check_crc, read_truth, write_truth),
    entry!("kafka.check.crcs", Some("checkCrc"), check_crc, read_truth, write_truth),
    entry!("io", io, choice(&IOS), written(&IOS)),
];

const TABLES: [(&str, Table); 3] =
    [("records", Table::Records), ("batches", Table::Batches), ("segments", Table::Segments)];
const ISOLATION_LEVELS: [(&str, IsolationLevel); 2] = [
    ("read_uncommitted", IsolationLevel::ReadUncommitted),
    ("read_committed", IsolationLevel::ReadCommitted),
];
const CLEANUP_POLICIES: [(&str, bool); 2] = [("delete", false), ("compact", true)];
const MODES: [(&str, Mode); 3] =
    [("FAILFAST", Mode::FailFast), ("DROPMALFORMED", Mode::DropMalformed), ("PERMISSIVE", Mode::Permissive)];
const IOS: [(&str, Io); 3] = [("auto", Io::Auto), ("mmap", Io::Mmap), ("pread", Io::Pread)];

impl Table {
    /// Its name in the option `table`.
    pub fn name(self) -> &'static str {
        TABLES.iter().find(|(_, table)| *table == self).map_or("", |(name, _)| name)
    }
}

impl Mode {
    /// Its name in the option `mode`.
    pub fn name(self) -> &'static str {
        MODES.iter().find(|(_, mode)| *mode == self).map_or("", |(name, _)| name)
    }
}

/// Options that Spark's Kafka source passes to its consumer or uses for it. Without a broker they have no
/// effect.
const BROKER_ONLY: [&str; 4] =
    ["groupIdPrefix", "kafkaConsumer.pollTimeoutMs", "fetchOffset.numRetries", "fetchOffset.retryIntervalMs"];

/// Whether an option that is not in the table has no effect without a broker.
pub(super) fn is_broker_option(name: &str) -> bool {
    let name = name.to_lowercase();
    name == "groupidprefix"
        || ["kafka.", "kafkaconsumer.", "fetchoffset."].iter().any(|start| name.starts_with(start))
}

/// Fails for an option of the source that is misspelt or has the prefix `kafka.`: it would silently have no
/// effect.
pub(super) fn check_broker_option(name: &str, text: &str) -> Result<()> {
    // One edit is allowed for four letters. max.partition.fetch.bytes, a name of Kafka's clients, has 8 edits
    // in 25 letters.
    const LETTERS: usize = 4;
    let lower = name.to_lowercase();
    let unprefixed = lower.strip_prefix("kafka.").unwrap_or(&lower);
    let known = TABLE.iter().map(|entry| entry.name.strip_prefix("kafka.").unwrap_or(entry.name));
    let Some(meant) = nearest_within(unprefixed, known, LETTERS) else { return Ok(()) };
    let named = TABLE.iter().find(|entry| entry.name == meant);
    let full = named.map_or_else(|| format!("kafka.{meant}"), |entry| entry.name.to_owned());
    Err(PlanError::option(name, format!("a known option (did you mean {full}?)"), format!("{text:?}")))
}

/// The error for an option that is not known.
pub(super) fn unknown_option(name: &str, text: &str) -> PlanError {
    let names = || TABLE.iter().map(|entry| entry.name);
    let expected = match nearest_within(name, names().chain(BROKER_ONLY), 3) {
        Some(meant) => format!("a known option (did you mean {meant}?)"),
        None => format!("one of {}", names().collect::<Vec<_>>().join(", ")),
    };
    PlanError::option(name, expected, format!("{text:?}"))
}

fn read_text(option: &str, text: &str) -> Result<String> {
    if text.is_empty() { Err(PlanError::option(option, "a path", "\"\"")) } else { Ok(text.to_owned()) }
}

/// Names separated by commas.
fn read_names(option: &str, text: &str) -> Result<Vec<String>> {
    let names: Vec<_> = text.split(',').map(|name| name.trim().to_owned()).collect();
    if names.iter().any(String::is_empty) {
        return Err(PlanError::option(option, "names with commas between them", format!("{text:?}")));
    }
    Ok(names)
}

/// A whole number, 1 or more.
fn read_count(option: &str, text: &str) -> Result<u64> {
    let trimmed = text.trim();
    let digits = trimmed.strip_prefix('+').unwrap_or(trimmed);
    let is_number = (1..=19).contains(&digits.len()) && digits.bytes().all(|digit| digit.is_ascii_digit());
    let number = trimmed.parse::<i64>().ok().filter(|number| is_number && *number >= 1);
    let wrong = || PlanError::option(option, "a whole number, 1 or more", format!("{text:?}"));
    number.map(i64::unsigned_abs).ok_or_else(wrong)
}

/// A time in one of the forms of the library, in milliseconds.
fn read_time(option: &str, text: &str) -> Result<i64> {
    TimeText::bound(text).map_err(|wrong| PlanError::option(option, wrong.expected, format!("{text:?}")))
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "fields are written by reference")]
fn written_time(time: &i64) -> String {
    write_time(*time)
}

/// A reader of one of the choices, case-insensitive.
fn choice<T: Copy>(choices: &[(&str, T)]) -> impl Fn(&str, &str) -> Result<T> {
    move |option, text| {
        let found = choices.iter().find(|(name, _)| name.eq_ignore_ascii_case(text));
        found.map(|(_, value)| *value).ok_or_else(|| {
            let names: Vec<_> = choices.iter().map(|(name, _)| *name).collect();
            PlanError::option(option, format!("one of {}", names.join(", ")), format!("{text:?}"))
        })
    }
}

/// A writer of one of the choices.
fn written<T: PartialEq>(choices: &[(&str, T)]) -> impl Fn(&T) -> Option<String> {
    move |value| Some(name_of(choices, value))
}

fn name_of<T: PartialEq>(choices: &[(&str, T)], value: &T) -> String {
    choices.iter().find(|(_, choice)| choice == value).map_or("", |(name, _)| name).to_owned()
}

fn read_truth(option: &str, text: &str) -> Result<bool> {
    choice(&[("true", true), ("false", false)])(option, text)
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "fields are written by reference")]
#[expect(clippy::unnecessary_wraps, reason = "other fields may have no text")]
fn write_truth(value: &bool) -> Option<String> {
    Some(value.to_string())
}

/// Kafka's list of policies: whether it contains `compact`.
fn read_cleanup_policy(option: &str, text: &str) -> Result<bool> {
    let mut policies = text.split(',').map(|policy| choice(&CLEANUP_POLICIES)(option, policy.trim()));
    policies.try_fold(false, |is_compacted, policy| Ok(is_compacted | policy?))
}

fn read_pattern(option: &str, text: &str) -> Result<TopicPattern> {
    TopicPattern::new(text).map_err(|error| {
        let expected = format!("a regular expression with the same meaning here and in Java ({error})");
        PlanError::option(option, expected, format!("{text:?}"))
    })
}

/// A duration such as `15m`, in milliseconds.
fn read_delay(option: &str, text: &str) -> Result<u64> {
    const UNITS: [(&str, u64); 6] =
        [("ms", 1), ("min", 60_000), ("s", 1000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];
    let lower = text.trim().to_lowercase();
    let digits = lower.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(lower.len());
    let (number, unit) = lower.split_at(digits);
    let unit = UNITS.iter().find(|(name, _)| *name == unit.trim());
    let ms = number.parse::<u64>().ok().zip(unit).and_then(|(number, (_, ms))| number.checked_mul(*ms));
    ms.ok_or_else(|| PlanError::option(option, "a time such as 500ms, 30s, 15m, 1h", format!("{text:?}")))
}

fn read_start(option: &str, text: &str) -> Result<Start> {
    Ok(match text.trim().to_lowercase().as_str() {
        "earliest" => Start::Earliest,
        "latest" => Start::Latest,
        _ => Start::Offsets(read_offsets(option, text, EARLIEST)?),
    })
}

fn write_start(start: &Start) -> String {
    match start {
        Start::Earliest => "earliest".to_owned(),
        Start::Latest => "latest".to_owned(),
        Start::Offsets(offsets) => write_offsets(offsets),
    }
}

fn read_end(option: &str, text: &str) -> Result<End> {
    if text.trim().eq_ignore_ascii_case("latest") {
        return Ok(End::Latest);
    }
    // -2 (earliest) is not allowed as an end, as in Spark's Kafka source
    read_offsets(option, text, LATEST).map(End::Offsets)
}

fn write_end(end: &End) -> String {
    match end {
        End::Latest => "latest".to_owned(),
        End::Offsets(offsets) => write_offsets(offsets),
    }
}
