//! The options of a writer.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use super::{FlushMode, TopicId};
use crate::config::LogConfig;
use crate::error::{Error, Result};
use crate::index::TIME_ENTRY_BYTES;
use crate::record::MAX_BATCH_BYTES;
use crate::types::{Interrupt, OnWarning};

/// The size of a time index entry, the larger of the two kinds, bytes.
const MAX_ENTRY_BYTES: u64 = TIME_ENTRY_BYTES as u64;

/// How a log is opened for writing.
#[derive(Debug, Clone)]
pub struct WriterOptions {
    /// The log's settings, under Kafka's names.
    pub config: LogConfig,
    /// When an append is acknowledged.
    pub flush: FlushMode,
    /// The topic id, written to `partition.metadata`; a partition that already has an id must have the same.
    pub topic_id: Option<TopicId>,
    /// The leader epoch of the batches: 0 or above, and not below the latest epoch of the log; `None`: the
    /// latest epoch, or 0 in a new log.
    pub leader_epoch: Option<i32>,
    /// A producer id without an open transaction is forgotten when its last batch or marker is this old, ms,
    /// at least 1: by the next opening or truncation, and by an append of batches, which checks this
    /// every ten minutes. Kafka: the broker's setting `producer.id.expiration.ms`.
    pub producer_id_expiration_ms: i64,
    /// The largest batch, bytes, as stored and decompressed, that is appended as bytes, that a compaction
    /// reads, and that [`LogWriter::reader`](super::LogWriter::reader) reads. The writer's own batches
    /// have at most [`MAX_BATCH_BYTES`].
    pub max_batch_bytes: usize,
    /// The clock, ms since the epoch.
    pub clock: fn() -> i64,
    /// The seed of the jitter.
    pub random: u32,
    /// As [`LogOptions::is_topic_compacted`](crate::log::LogOptions::is_topic_compacted), for the writer's
    /// readers.
    pub is_topic_compacted: fn(&Path) -> Option<bool>,
    /// Called during long operations.
    pub interrupt: Interrupt,
    /// Receives the warnings of the writer's readers.
    pub on_warning: OnWarning,
}

impl Default for WriterOptions {
    fn default() -> Self {
        Self {
            config: LogConfig::default(),
            flush: FlushMode::default(),
            topic_id: None,
            leader_epoch: None,
            producer_id_expiration_ms: 86_400_000,
            max_batch_bytes: MAX_BATCH_BYTES,
            clock: system_time,
            random: std::process::id(),
            is_topic_compacted: |_| None,
            interrupt: Interrupt::NEVER,
            on_warning: OnWarning::IGNORE,
        }
    }
}

impl WriterOptions {
    /// Checks the options, without access to the log.
    ///
    /// # Errors
    /// [`Error::Config`] for a setting out of its range; for a `segment.index.bytes` too small for one entry,
    /// which Kafka accepts and then rolls at each append; for a negative epoch; for an expiration below 1
    /// ms.
    pub(crate) fn check(&self) -> Result<()> {
        self.config.validate()?;
        if u64::from(self.config.segment_index_bytes) < MAX_ENTRY_BYTES {
            return Err(Error::config(
                "segment.index.bytes",
                format!(
                    "at least {MAX_ENTRY_BYTES} for a writer: a time index entry has {MAX_ENTRY_BYTES} bytes"
                ),
                self.config.segment_index_bytes.to_string(),
            ));
        }
        if let Some(epoch) = self.leader_epoch.filter(|epoch| *epoch < 0) {
            return Err(Error::config("leader_epoch", "an epoch, 0 or above", epoch.to_string()));
        }
        if self.producer_id_expiration_ms < 1 {
            let found = self.producer_id_expiration_ms.to_string();
            return Err(Error::config("producer_id_expiration_ms", "milliseconds, 1 or above", found));
        }
        Ok(())
    }
}

/// The time of the system clock, ms since the epoch.
fn system_time() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::WriterOptions;
    use crate::config::LogConfig;

    #[test]
    fn an_index_too_small_for_one_entry_is_refused() {
        for (bytes, is_allowed) in [(3, false), (4, false), (11, false), (12, true)] {
            let config = LogConfig { segment_index_bytes: bytes, ..LogConfig::default() };
            let checked = WriterOptions { config, ..WriterOptions::default() }.check();
            assert_eq!(checked.is_ok(), is_allowed, "{bytes}: {checked:?}");
        }
    }

    #[test]
    fn a_negative_epoch_is_refused() {
        assert!(WriterOptions { leader_epoch: Some(-1), ..WriterOptions::default() }.check().is_err());
    }
}
