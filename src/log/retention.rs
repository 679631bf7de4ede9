//! Which segments of a log have had their time, as a decision that changes nothing. Kafka:
//! `UnifiedLog.deleteOldSegments`.

use super::Log;
use crate::config::LogConfig;
use crate::error::Result;

/// What retention would delete.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RetentionPlan {
    /// The log start offset afterwards.
    pub log_start_offset: i64,
    /// The base offsets of the segments that go, oldest first.
    pub segments: Vec<i64>,
    /// The bytes of their `.log` files.
    pub bytes: u64,
    /// All of them go: a new segment is begun first.
    pub rolls: bool,
}

/// Decides by the log start offset, then by size (`retention.bytes`), then by time (`retention.ms`), each from the oldest
/// segment on until one has to stay. `now`: ms since the epoch. Without `delete` in `cleanup.policy` only the log start
/// offset counts.
///
/// A segment's age is that of its largest timestamp, which is read from the log; where no record has one, that of its
/// file. An empty last segment stays.
///
/// # Errors
/// [`Error::Io`](crate::Error::Io); [`Error::Corrupt`](crate::Error::Corrupt) where a segment's times have to be read and
/// are damaged.
///
/// # Source
/// Kafka: `deleteLogStartOffsetBreachedSegments`, `deleteRetentionSizeBreachedSegments`,
/// `deleteRetentionMsBreachedSegments`.
pub fn plan(log: &Log, config: &LogConfig, now: i64) -> Result<RetentionPlan> {
    let segments: Vec<_> = log.segments().iter().collect();
    let start = log.log_start_offset();
    let passed = segments.iter().skip(1).take_while(|next| next.base_offset() <= start).count();
    let mut going = passed;
    // of the data: a preallocated file is larger
    let sizes = segments.iter().map(|segment| segment.size()).collect::<Result<Vec<_>>>()?;
    if config.cleanup_policy.delete {
        let may_go =
            |index: usize| index + 1 < segments.len() || sizes.get(index).is_some_and(|size| *size > 0);
        if let Ok(most) = u64::try_from(config.retention_bytes) {
            let total: u64 = sizes.iter().skip(going).sum();
            let mut excess = total.saturating_sub(most);
            while let Some(left) = sizes.get(going).and_then(|size| excess.checked_sub(*size)) {
                if total < most || !may_go(going) {
                    break;
                }
                excess = left;
                going += 1;
            }
        }
        if config.retention_ms >= 0 {
            while let Some(segment) = segments.get(going).filter(|_| may_go(going)) {
                if now.saturating_sub(segment.largest_timestamp()?) <= config.retention_ms {
                    break;
                }
                going += 1;
            }
        }
    }
    let rolls = going == segments.len();
    let next =
        segments.get(going).map_or_else(|| log.log_end_offset(), |segment| Ok(segment.base_offset()))?;
    let gone = segments.get(..going).unwrap_or_default();
    Ok(RetentionPlan {
        log_start_offset: start.max(next),
        segments: gone.iter().map(|segment| segment.base_offset()).collect(),
        bytes: sizes.iter().take(going).sum(),
        rolls,
    })
}
