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
mod suggestions;
mod value;

pub use properties::PropertySource;
#[cfg(feature = "python")]
pub(crate) use settings::TIMESTAMP_TYPES;
pub use settings::{Setting, Synonym, settings};
#[cfg(feature = "python")]
pub(crate) use suggestions::nearest_within;
#[cfg(feature = "arrow")]
pub(crate) use suggestions::suggestion;
pub use value::Allowed;
#[cfg(feature = "python")]
pub(crate) use value::Value;

use crate::error::{Error, Result};
use crate::types::TimestampType;

/// What becomes of old records. Kafka: `cleanup.policy`; neither of the two keeps everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CleanupPolicy {
    /// Segments go when they are too old or the log too large.
    pub delete: bool,
    /// Of the records of a key the last one stays.
    pub compact: bool,
}

/// How batches are to be compressed. Kafka: `BrokerCompressionType`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CompressionType {
    /// Not at all.
    Uncompressed,
    /// Zstandard.
    Zstd,
    /// LZ4 frames.
    Lz4,
    /// Snappy in Xerial frames.
    Snappy,
    /// RFC 1952.
    Gzip,
    /// As the batch came; our own records go uncompressed.
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
/// Make one with `LogConfig { segment_bytes: 1 << 20, ..LogConfig::default() }`, and [`LogConfig::validate`] it: what
/// takes a `LogConfig` does so again.
///
/// *Source*: Kafka's `LogConfig`, 4.3.1.
#[derive(Debug, Clone, PartialEq)]
pub struct LogConfig {
    /// Largest size of a segment's `.log`, bytes: 14 to 2³¹−1; 1 GiB. Kafka calls one below 1 MiB
    /// `internal.segment.bytes`.
    pub segment_bytes: u32,
    /// Longest time between a segment's first record and its last, ms: ≥ 1; 7 days.
    pub segment_ms: i64,
    /// At most this much is taken from `segment_ms` at random, ms: ≥ 0; 0.
    pub segment_jitter_ms: i64,
    /// Size of each index file of the active segment, bytes: 4 to 2³¹−1; 10 MiB. Rounded down to whole entries; a writer
    /// wants room for one: 12.
    pub segment_index_bytes: u32,
    /// An index entry after more than this many bytes: 0 to 2³¹−1; 4096.
    pub index_interval_bytes: u32,
    /// Flush after this many records: ≥ 1; 2⁶³−1, which is never.
    pub flush_messages: i64,
    /// Flush after this long, ms: ≥ 0; 2⁶³−1, which is never.
    pub flush_ms: i64,
    /// Oldest segments go while the log stays at least this large, bytes; −1 (or any other negative): never.
    pub retention_bytes: i64,
    /// Segments go when all their records are older, ms: ≥ −1; 7 days. −1: never.
    pub retention_ms: i64,
    /// Largest batch, bytes: 0 to 2³¹−1; 1 MiB + 12.
    pub max_message_bytes: u32,
    /// How long compaction keeps tombstones and markers, ms: ≥ 0; 1 day.
    pub delete_retention_ms: i64,
    /// Records younger than this are not compacted, ms: ≥ 0; 0. At most `max_compaction_lag_ms`.
    pub min_compaction_lag_ms: i64,
    /// A record is not left uncompacted for longer, ms: ≥ 1; 2⁶³−1, which is no limit.
    pub max_compaction_lag_ms: i64,
    /// Share of the log that must be dirty before it is compacted: 0 to 1; 0.5.
    pub min_cleanable_dirty_ratio: f64,
    /// What becomes of old records: `delete`.
    pub cleanup_policy: CleanupPolicy,
    /// How long a deleted segment's files stay under their `.deleted` names, ms: ≥ 0; 1 minute.
    pub file_delete_delay_ms: i64,
    /// How batches are compressed: `producer`.
    pub compression_type: CompressionType,
    /// gzip's level: 1 to 9, or −1, zlib's own default; −1.
    pub compression_gzip_level: i32,
    /// LZ4's level: 1 to 17; 9. Our own compressor has one level only.
    pub compression_lz4_level: i32,
    /// Zstandard's level: −131072 to 22; 3.
    pub compression_zstd_level: i32,
    /// Whether the active segment's `.log` gets its full size when it is made: no.
    pub preallocate: bool,
    /// What a record's timestamp means: `CreateTime`. Not `NoTimestampType`.
    pub message_timestamp_type: TimestampType,
    /// A record's time may lie this far before now, ms: ≥ 0; 2⁶³−1, which is no limit.
    pub message_timestamp_before_max_ms: i64,
    /// A record's time may lie this far after now, ms: ≥ 0; 1 hour.
    pub message_timestamp_after_max_ms: i64,
    /// Replicas that must have a record before it counts as written: ≥ 1; 1. For a cluster; one log only keeps it.
    pub min_insync_replicas: u32,
    /// Whether a replica that is behind may lead: no. For a cluster; one log only keeps it.
    pub unclean_leader_election_enable: bool,
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
    /// Whether every setting is allowed, alone and beside the others.
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

    /// The age at which a segment is rolled, ms: a log that is compacted must not keep records from it for longer than
    /// `max_compaction_lag_ms`, and the active segment is never compacted. Kafka: `LogConfig.maxSegmentMs`.
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

    /// What one segment takes from its age of rolling, ms, of a random number that the caller drew for it.
    /// Kafka: `LogConfig.randomSegmentJitter`, drawn once for each segment object.
    pub fn random_segment_jitter(&self, random: i32) -> i64 {
        let most = self.segment_jitter_ms.min(self.segment_ms);
        // Kafka's abs: that of the least i32 is 0
        let random = i64::from(random.checked_abs().unwrap_or(0));
        random.checked_rem(most).unwrap_or(0)
    }
}
