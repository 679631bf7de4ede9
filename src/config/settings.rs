//! The table of all settings: names, names in a broker's file, allowed values.

use super::value::{Allowed, Value};
use super::{CleanupPolicy, CompressionType, LogConfig};
use crate::types::TimestampType;

/// One setting of a log.
#[derive(Debug)]
pub struct Setting {
    /// Kafka's name for a topic: `segment.bytes`.
    pub name: &'static str,
    /// The names in a broker's file; the first one present takes precedence.
    pub synonyms: &'static [Synonym],
    /// The allowed values.
    pub allowed: Allowed,
    get: fn(&LogConfig) -> Value,
    set: fn(&mut LogConfig, &Value) -> Option<()>,
}

impl Setting {
    /// The name of its field in [`LogConfig`]: `segment_bytes`.
    pub fn field(&self) -> String {
        self.name.replace('.', "_")
    }

    /// The text of its value in a configuration, as in properties.
    pub fn text(&self, config: &LogConfig) -> String {
        self.value(config).to_string()
    }

    #[doc(hidden)]
    pub fn value(&self, config: &LogConfig) -> Value {
        (self.get)(config)
    }

    /// Sets the field. `None` if the value has another type than the field.
    #[doc(hidden)]
    pub fn store(&self, config: &mut LogConfig, value: &Value) -> Option<()> {
        (self.set)(config, value)
    }
}

/// A setting's name in a broker's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Synonym {
    /// The name: `log.roll.hours`.
    pub name: &'static str,
    /// The number of the setting's units in one unit of the synonym: 3,600,000 for hours.
    pub factor: i64,
    /// The values that the broker allows in the file, if they differ from the values of the setting.
    pub allowed: Option<Allowed>,
}

/// All settings.
pub fn settings() -> impl Iterator<Item = &'static Setting> {
    SETTINGS.iter()
}

const INT: i64 = i32::MAX as i64;
const LONG: i64 = i64::MAX;

const fn at_least(min: i64) -> Allowed {
    Allowed::Integer { min, max: LONG }
}

const fn int(min: i64, max: i64) -> Allowed {
    Allowed::Integer { min, max }
}

const fn synonym(name: &'static str) -> Synonym {
    Synonym { name, factor: 1, allowed: None }
}

/// A synonym whose range is checked only if it takes precedence.
const fn any(name: &'static str) -> Synonym {
    Synonym { name, factor: 1, allowed: Some(at_least(i64::MIN)) }
}

const fn hours(name: &'static str, min: i64) -> Synonym {
    Synonym { name, factor: 3_600_000, allowed: Some(int(min, INT)) }
}

const fn minutes(name: &'static str, min: i64) -> Synonym {
    Synonym { name, factor: 60_000, allowed: Some(int(min, INT)) }
}

macro_rules! integer {
    ($name:literal, $field:ident, $allowed:expr, $synonyms:expr) => {
        Setting {
            name: $name,
            synonyms: &$synonyms,
            allowed: $allowed,
            get: |config| Value::Integer(config.$field.into()),
            set: |config, value| value.integer()?.try_into().ok().map(|number| config.$field = number),
        }
    };
}

macro_rules! flag {
    ($name:literal, $field:ident, $synonyms:expr) => {
        Setting {
            name: $name,
            synonyms: &$synonyms,
            allowed: Allowed::Flag,
            get: |config| Value::Flag(config.$field),
            set: |config, value| value.flag().map(|flag| config.$field = flag),
        }
    };
}

const DELETE: &str = "delete";
const COMPACT: &str = "compact";

/// The types that a log can have.
pub const TIMESTAMP_TYPES: [TimestampType; 2] = [TimestampType::CreateTime, TimestampType::LogAppendTime];
const COMPRESSION_TYPES: [CompressionType; 6] = [
    CompressionType::Uncompressed,
    CompressionType::Zstd,
    CompressionType::Lz4,
    CompressionType::Snappy,
    CompressionType::Gzip,
    CompressionType::Producer,
];

/// The number of settings.
pub(super) const COUNT: usize = 26;

static SETTINGS: [Setting; COUNT] = [
    // below 1 MiB it is `internal.segment.bytes` in properties; 14 is the lowest limit of any Kafka version
    integer!("segment.bytes", segment_bytes, int(14, INT), [synonym("log.segment.bytes")]),
    integer!("segment.ms", segment_ms, at_least(1), [synonym("log.roll.ms"), hours("log.roll.hours", 1)]),
    integer!(
        "segment.jitter.ms",
        segment_jitter_ms,
        at_least(0),
        [synonym("log.roll.jitter.ms"), hours("log.roll.jitter.hours", 0)]
    ),
    integer!("segment.index.bytes", segment_index_bytes, int(4, INT), [synonym("log.index.size.max.bytes")]),
    integer!(
        "index.interval.bytes",
        index_interval_bytes,
        int(0, INT),
        [synonym("log.index.interval.bytes")]
    ),
    integer!("flush.messages", flush_messages, at_least(1), [synonym("log.flush.interval.messages")]),
    integer!(
        "flush.ms",
        flush_ms,
        at_least(0),
        [synonym("log.flush.interval.ms"), any("log.flush.scheduler.interval.ms")]
    ),
    integer!("retention.bytes", retention_bytes, at_least(i64::MIN), [synonym("log.retention.bytes")]),
    integer!(
        "retention.ms",
        retention_ms,
        at_least(-1),
        [
            any("log.retention.ms"),
            minutes("log.retention.minutes", i32::MIN as i64),
            hours("log.retention.hours", i32::MIN as i64),
        ]
    ),
    integer!("max.message.bytes", max_message_bytes, int(0, INT), [synonym("message.max.bytes")]),
    integer!(
        "delete.retention.ms",
        delete_retention_ms,
        at_least(0),
        [synonym("log.cleaner.delete.retention.ms")]
    ),
    integer!(
        "min.compaction.lag.ms",
        min_compaction_lag_ms,
        at_least(0),
        [synonym("log.cleaner.min.compaction.lag.ms")]
    ),
    integer!(
        "max.compaction.lag.ms",
        max_compaction_lag_ms,
        at_least(1),
        [synonym("log.cleaner.max.compaction.lag.ms")]
    ),
    Setting {
        name: "min.cleanable.dirty.ratio",
        synonyms: &[synonym("log.cleaner.min.cleanable.ratio")],
        allowed: Allowed::Ratio,
        get: |config| Value::Ratio(config.min_cleanable_dirty_ratio),
        set: |config, value| value.ratio().map(|ratio| config.min_cleanable_dirty_ratio = ratio),
    },
    Setting {
        name: "cleanup.policy",
        synonyms: &[synonym("log.cleanup.policy")],
        allowed: Allowed::ListOf(&[COMPACT, DELETE]),
        get: |config| {
            let CleanupPolicy { delete, compact } = config.cleanup_policy;
            let words = [(compact, COMPACT), (delete, DELETE)];
            Value::Words(words.into_iter().filter(|(is_set, _)| *is_set).map(|(_, word)| word).collect())
        },
        set: |config, value| {
            config.cleanup_policy =
                CleanupPolicy { delete: value.has_word(DELETE), compact: value.has_word(COMPACT) };
            matches!(value, Value::Words(_)).then_some(())
        },
    },
    integer!(
        "file.delete.delay.ms",
        file_delete_delay_ms,
        at_least(0),
        [synonym("log.segment.delete.delay.ms")]
    ),
    Setting {
        name: "compression.type",
        synonyms: &[synonym("compression.type")],
        allowed: Allowed::OneOf(&["uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"]),
        get: |config| Value::Word(config.compression_type.name()),
        set: |config, value| {
            let word = value.word()?;
            let found = COMPRESSION_TYPES.into_iter().find(|kind| kind.name() == word);
            found.map(|kind| config.compression_type = kind)
        },
    },
    integer!(
        "compression.gzip.level",
        compression_gzip_level,
        Allowed::IntegerOr { min: 1, max: 9, or: -1 },
        [synonym("compression.gzip.level")]
    ),
    integer!("compression.lz4.level", compression_lz4_level, int(1, 17), [synonym("compression.lz4.level")]),
    integer!(
        "compression.zstd.level",
        compression_zstd_level,
        int(-131_072, 22),
        [synonym("compression.zstd.level")]
    ),
    flag!("preallocate", preallocate, [synonym("log.preallocate")]),
    Setting {
        name: "message.timestamp.type",
        synonyms: &[synonym("log.message.timestamp.type")],
        allowed: Allowed::OneOf(&["CreateTime", "LogAppendTime"]),
        get: |config| Value::TimestampType(config.message_timestamp_type),
        set: |config, value| {
            let found = match value {
                Value::TimestampType(kind) => Some(*kind),
                value => TIMESTAMP_TYPES.into_iter().find(|kind| value.word() == Some(kind.name())),
            };
            found.map(|kind| config.message_timestamp_type = kind)
        },
    },
    integer!(
        "message.timestamp.before.max.ms",
        message_timestamp_before_max_ms,
        at_least(0),
        [synonym("log.message.timestamp.before.max.ms")]
    ),
    integer!(
        "message.timestamp.after.max.ms",
        message_timestamp_after_max_ms,
        at_least(0),
        [synonym("log.message.timestamp.after.max.ms")]
    ),
    integer!("min.insync.replicas", min_insync_replicas, int(1, INT), [synonym("min.insync.replicas")]),
    flag!(
        "unclean.leader.election.enable",
        unclean_leader_election_enable,
        [synonym("unclean.leader.election.enable")]
    ),
];
