//! The settings of a log, under Kafka's names, with the defaults and limits of Kafka 4.3.1.
//!
//! ```
//! use cordwood::config::{LogConfig, PropertySource};
//!
//! # fn main() -> cordwood::Result<()> {
//! let broker = [("log.roll.ms", "5000"), ("log.roll.hours", "1"), ("log.dirs", "/data")];
//! let broker = broker.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
//! assert_eq!(LogConfig::from_properties(&broker, Some(PropertySource::Broker))?.segment_ms, 5000);
//! # Ok(())
//! # }
//! ```

mod properties;
mod settings;
mod stated;
mod suggestions;
mod value;

pub(crate) use properties::INDEX_INTERVAL;
pub use properties::PropertySource;
#[doc(hidden)]
pub use properties::{CLEANUP_POLICY, RETENTION_MS};
#[doc(hidden)]
pub use settings::TIMESTAMP_TYPES;
pub use settings::{Setting, Synonym, settings};
pub use stated::StatedSettings;
#[cfg(feature = "plan")]
pub(crate) use suggestions::nearest;
#[doc(hidden)]
pub use suggestions::nearest_within;
#[doc(hidden)]
pub use suggestions::suggestion;
pub use value::Allowed;
#[cfg(feature = "binding")]
#[doc(hidden)]
pub use value::Value;

use crate::error::{Error, Result};
use crate::types::TimestampType;

/// What happens to old records. Kafka: `cleanup.policy`; without either policy everything is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CleanupPolicy {
    /// Segments are deleted when they are too old or the log is too large.
    pub delete: bool,
    /// The last record of each key is kept.
    pub compact: bool,
}

/// How batches are compressed. Kafka: `BrokerCompressionType`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CompressionType {
    /// No compression.
    Uncompressed,
    /// Zstandard.
    Zstd,
    /// LZ4 frames.
    Lz4,
    /// Snappy in Xerial frames.
    Snappy,
    /// Gzip, RFC 1952.
    Gzip,
    /// A batch keeps its codec; batches built by the writer are uncompressed.
    Producer,
}

impl CompressionType {
    /// Kafka's name: `uncompressed`, `zstd`, `lz4`, `snappy`, `gzip`, `producer`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Uncompressed => "uncompressed",
            Self::Zstd => "zstd",
            Self::Lz4 => "lz4",
            Self::Snappy => "snappy",
            Self::Gzip => "gzip",
            Self::Producer => "producer",
        }
    }
}

/// The settings of one log. Each field's Kafka name has dots for its underscores.
///
/// Create it as `LogConfig { segment_bytes: 1 << 20, ..LogConfig::default() }`. [`LogConfig::validate`]
/// checks it; functions that take a `LogConfig` also validate it.
///
/// *Source*: Kafka's `LogConfig`, 4.3.1.
#[derive(Debug, Clone)]
pub struct LogConfig {
    /// Maximum size of a segment's `.log`, bytes: 14 to 2³¹−1; default 1 GiB. Below 1 MiB, Kafka's name is
    /// `internal.segment.bytes`.
    pub segment_bytes: u32,
    /// Maximum time between a segment's first record and its last, ms: ≥ 1; default 7 days.
    pub segment_ms: i64,
    /// Maximum random reduction of `segment_ms`, ms: ≥ 0; default 0.
    pub segment_jitter_ms: i64,
    /// Size of each index file of the active segment, bytes: 4 to 2³¹−1; default 10 MiB. Rounded down to
    /// whole entries; a writer requires space for one entry: 12.
    pub segment_index_bytes: u32,
    /// Minimum distance of two index entries, bytes of the `.log`, exclusive: 0 to 2³¹−1; default 4096.
    pub index_interval_bytes: u32,
    /// Flush after this many records: ≥ 1; default 2⁶³−1, which is never.
    pub flush_messages: i64,
    /// Flush after this time, ms: ≥ 0; default 2⁶³−1, which is never.
    pub flush_ms: i64,
    /// The oldest segments are deleted while the log remains at least this large, bytes; default −1.
    /// Negative: never.
    pub retention_bytes: i64,
    /// Segments are deleted when all their records are older, ms: ≥ −1; default 7 days. −1: never.
    pub retention_ms: i64,
    /// Maximum size of a batch, bytes: 0 to 2³¹−1; default 1 MiB + 12.
    pub max_message_bytes: u32,
    /// Time for which compaction keeps tombstones and markers, ms: ≥ 0; default 1 day.
    pub delete_retention_ms: i64,
    /// Records younger than this are not compacted, ms: ≥ 0; default 0. At most `max_compaction_lag_ms`.
    pub min_compaction_lag_ms: i64,
    /// Maximum time for which a record stays uncompacted, ms: ≥ 1; default 2⁶³−1, which is no limit.
    pub max_compaction_lag_ms: i64,
    /// Fraction of the log that must be dirty before it is compacted: 0 to 1; default 0.5.
    pub min_cleanable_dirty_ratio: f64,
    /// What happens to old records; default `delete`.
    pub cleanup_policy: CleanupPolicy,
    /// The settings that are known to hold for this log although they equal Kafka's defaults; default none.
    /// Properties and a topic's metadata set them. Retention refuses a policy or a limit that nobody has
    /// stated where it may be wrong: [`retention::plan`](crate::log::retention::plan).
    /// [`LogConfig::states`] also counts values that are not the defaults.
    pub stated: StatedSettings,
    /// Time for which a deleted segment's files keep their `.deleted` names, ms: ≥ 0; default 1 minute.
    pub file_delete_delay_ms: i64,
    /// How batches are compressed; default `producer`.
    pub compression_type: CompressionType,
    /// Gzip level: 1 to 9, or −1 for zlib's default; default −1.
    pub compression_gzip_level: i32,
    /// LZ4 level: 1 to 17; default 9. Cordwood's compressor has only one level.
    pub compression_lz4_level: i32,
    /// Zstandard level: −131072 to 22; default 3.
    pub compression_zstd_level: i32,
    /// Whether the active segment's `.log` has its full size from its creation; default false.
    pub preallocate: bool,
    /// The meaning of a record's timestamp; default `CreateTime`. Not `NoTimestampType`.
    pub message_timestamp_type: TimestampType,
    /// Maximum difference of a timestamp before the present time, ms: ≥ 0; default 2⁶³−1, which is no limit.
    pub message_timestamp_before_max_ms: i64,
    /// Maximum difference of a timestamp after the present time, ms: ≥ 0; default 1 hour.
    pub message_timestamp_after_max_ms: i64,
    /// Number of replicas that must have a record before it counts as written: ≥ 1; default 1. Stored only;
    /// it applies to a cluster.
    pub min_insync_replicas: u32,
    /// Whether an out-of-sync replica may become the leader; default false. Stored only; it applies to a
    /// cluster.
    pub unclean_leader_election_enable: bool,
}

/// Whether all settings are equal. Which of them are stated is no setting.
impl PartialEq for LogConfig {
    fn eq(&self, other: &Self) -> bool {
        settings().all(|setting| setting.value(self) == setting.value(other))
    }
}

impl Default for LogConfig {
    fn default() -> Self {
        const HOUR: i64 = 3_600_000;
        Self {
            segment_bytes: 1 << 30,
            segment_ms: 168 * HOUR,
            segment_jitter_ms: 0,
            segment_index_bytes: 10 << 20,
            index_interval_bytes: 4096,
            flush_messages: i64::MAX,
            flush_ms: i64::MAX,
            retention_bytes: -1,
            retention_ms: 168 * HOUR,
            max_message_bytes: (1 << 20) + 12,
            delete_retention_ms: 24 * HOUR,
            min_compaction_lag_ms: 0,
            max_compaction_lag_ms: i64::MAX,
            min_cleanable_dirty_ratio: 0.5,
            cleanup_policy: CleanupPolicy { delete: true, compact: false },
            stated: StatedSettings::default(),
            file_delete_delay_ms: 60_000,
            compression_type: CompressionType::Producer,
            compression_gzip_level: -1,
            compression_lz4_level: 9,
            compression_zstd_level: 3,
            preallocate: false,
            message_timestamp_type: TimestampType::CreateTime,
            message_timestamp_before_max_ms: i64::MAX,
            message_timestamp_after_max_ms: HOUR,
            min_insync_replicas: 1,
            unclean_leader_election_enable: false,
        }
    }
}

impl LogConfig {
    /// Checks that every setting is in its range, and that the settings are consistent.
    ///
    /// # Errors
    /// [`Error::Config`] with the field's name.
    pub fn validate(&self) -> Result<()> {
        for setting in settings() {
            let value = setting.value(self);
            if !setting.allowed.admits(&value) {
                return Err(Error::config(setting.field(), setting.allowed.to_string(), value.to_string()));
            }
        }
        if self.min_compaction_lag_ms > self.max_compaction_lag_ms {
            return Err(Error::config(
                "min_compaction_lag_ms",
                format!("at most max_compaction_lag_ms, which is {}", self.max_compaction_lag_ms),
                self.min_compaction_lag_ms.to_string(),
            ));
        }
        Ok(())
    }

    /// The age at which a segment is rolled, ms: in a compacted log, no record may stay uncompacted for
    /// longer than `max_compaction_lag_ms`, and the active segment is never compacted. Kafka:
    /// `LogConfig.maxSegmentMs`.
    pub fn max_segment_ms(&self) -> i64 {
        if self.cleanup_policy.compact {
            self.segment_ms.min(self.max_compaction_lag_ms)
        } else {
            self.segment_ms
        }
    }

    /// The size of a new segment's `.log`, bytes. Kafka: `LogConfig.initFileSize`.
    pub fn init_file_size(&self) -> u32 {
        if self.preallocate { self.segment_bytes } else { 0 }
    }

    /// The reduction of one segment's age of rolling, ms. `random`: a random number, drawn once per segment.
    /// Kafka: `LogConfig.randomSegmentJitter`.
    pub fn random_segment_jitter(&self, random: i32) -> i64 {
        let max = self.segment_jitter_ms.min(self.segment_ms);
        // as in Kafka's `Utils.abs`, the absolute value of i32::MIN is 0
        let random = i64::from(random.checked_abs().unwrap_or(0));
        random.checked_rem(max).unwrap_or(0)
    }
}
