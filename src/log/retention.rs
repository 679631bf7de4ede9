//! Which segments of a log have expired, as a plan that changes nothing. Kafka:
//! `UnifiedLog.deleteOldSegments`.

use super::Log;
use crate::config::{CLEANUP_POLICY, LogConfig, RETENTION_MS};
use crate::error::{Error, Result};
use crate::fs::names::INTERNAL_TOPICS;
use crate::state::data_directory::DataDirectory;

/// The segments that retention would delete.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "binding", derive(serde::Deserialize, serde::Serialize))]
pub struct RetentionPlan {
    /// The log start offset afterwards.
    pub log_start_offset: i64,
    /// The base offsets of the deleted segments, oldest first.
    pub segments: Vec<i64>,
    /// The bytes of their `.log` files.
    pub bytes: u64,
    /// Whether all segments are deleted: a new segment is created first.
    pub rolls: bool,
}

/// Decides by the log start offset, then by size (`retention.bytes`), then by time (`retention.ms`). Each
/// starts at the oldest remaining segment and stops at the first one to keep. `now`: ms since the epoch.
/// Without `delete` in `cleanup.policy` only the log start offset counts.
///
/// A segment's age is that of its largest timestamp, which is read from the log, or of its file if no record
/// has a timestamp. An empty last segment stays.
///
/// # Errors
/// [`Error::Config`] if nobody has stated the policy ([`LogConfig::states`]), and the log is of Kafka's own
/// topic, or shows compaction and a segment would be deleted by its size or age; or if nobody has stated
/// `retention.ms`, and the log is in a Kafka data directory: there, Kafka's default is not the owner's limit.
/// [`Error::Io`]; [`Error::Corrupt`] if a segment's times have to be read and are damaged.
///
/// # Source
/// Kafka: `deleteLogStartOffsetBreachedSegments`, `deleteRetentionSizeBreachedSegments`,
/// `deleteRetentionMsBreachedSegments`.
pub fn plan(log: &Log, config: &LogConfig, now: i64) -> Result<RetentionPlan> {
    let segments: Vec<_> = log.segments().iter().collect();
    let start = log.log_start_offset();
    let passed = segments.iter().skip(1).take_while(|next| next.base_offset() <= start).count();
    let mut expired = passed;
    // bytes of data: a preallocated file is larger
    let sizes = segments.iter().map(|segment| segment.size()).collect::<Result<Vec<_>>>()?;
    if config.cleanup_policy.delete {
        let may_delete =
            |index: usize| index + 1 < segments.len() || sizes.get(index).is_some_and(|size| *size > 0);
        if let Ok(max) = u64::try_from(config.retention_bytes) {
            let total: u64 = sizes.iter().skip(expired).sum();
            let mut excess = total.saturating_sub(max);
            while let Some(left) = sizes.get(expired).and_then(|size| excess.checked_sub(*size)) {
                if total < max || !may_delete(expired) {
                    break;
                }
                excess = left;
                expired += 1;
            }
        }
        if config.retention_ms >= 0 {
            while let Some(segment) = segments.get(expired).filter(|_| may_delete(expired)) {
                if now.saturating_sub(segment.largest_timestamp()?) <= config.retention_ms {
                    break;
                }
                expired += 1;
            }
        }
    }
    ensure_policy(log, config, expired > passed)?;
    ensure_limit(log, config)?;
    let rolls = expired == segments.len();
    let next =
        segments.get(expired).map_or_else(|| log.log_end_offset(), |segment| Ok(segment.base_offset()))?;
    let gone = segments.get(..expired).unwrap_or_default();
    Ok(RetentionPlan {
        log_start_offset: start.max(next),
        segments: gone.iter().map(|segment| segment.base_offset()).collect(),
        bytes: sizes.iter().take(expired).sum(),
        rolls,
    })
}

/// Fails if the policy is a default that the log or its name contradicts: the records of a compacted log are
/// not deleted by age. `deletes`: whether a segment would be deleted by its size or age. If not, the log is
/// not searched, which may read much.
fn ensure_policy(log: &Log, config: &LogConfig, deletes: bool) -> Result<()> {
    let is_internal = log.topic().is_some_and(|topic| INTERNAL_TOPICS.contains(&topic));
    let is_known = config.states(CLEANUP_POLICY) || config.cleanup_policy.compact;
    let is_contradicted = !is_known && (is_internal || deletes && log.is_compacted()?);
    if !is_contradicted {
        return Ok(());
    }
    let why = if is_internal { "its topic is Kafka's own" } else { "it shows compaction" };
    let expected = format!(
        "the policy of this log, because {why}: delete, compact or \"compact,delete\" (delete, the default, would delete its oldest \
         records)"
    );
    Err(Error::config(CLEANUP_POLICY, expected, format!("none, for {}", log.path().display())))
}

/// Fails if the limit is a default, and the log is a broker's: its topic has its own limit, or the broker's
/// file has one, which is in no metadata.
fn ensure_limit(log: &Log, config: &LogConfig) -> Result<()> {
    let deletes_by_time = config.cleanup_policy.delete && config.retention_ms >= 0;
    if !deletes_by_time || config.states(RETENTION_MS) || DataDirectory::around(log.directory())?.is_none() {
        return Ok(());
    }
    let expected = "a limit that somebody has stated, because the log is in a Kafka data directory: -1 for none \
                    (a broker's server.properties, which is in no metadata, may have it: give it with --properties, or as properties \
                    of LogConfig.from_metadata)";
    let found = format!(
        "only Kafka's defaults, not this topic's settings ({} ms), for {}",
        config.retention_ms,
        log.path().display()
    );
    Err(Error::config(RETENTION_MS, expected, found))
}
