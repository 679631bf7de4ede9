//! The arguments of `LogWriter`.

use std::path::Path;

use pyo3::prelude::*;

use super::arguments::{self, Defaulted, epoch, optional};
use super::config::{TopicConfig, to_python};
use super::enter::{SIGNALS, WARNINGS};
use super::{error, flush_mode};
use crate::inspect::internal_topics::is_topic_compacted;
use crate::record::MAX_BATCH_BYTES;
use crate::state::partition_metadata::TopicId;
use crate::state::producers::ProducerEntry;
use crate::writer::WriterOptions;

/// The arguments after the path, as they were given.
pub(super) struct Given<'a, 'py> {
    pub(super) config: Option<Bound<'py, PyAny>>,
    pub(super) flush: Defaulted<'a, 'py>,
    pub(super) topic_id: Option<&'a Bound<'py, PyAny>>,
    pub(super) leader_epoch: Option<&'a Bound<'py, PyAny>>,
    pub(super) producer_id_expiration_ms: Defaulted<'a, 'py>,
    pub(super) max_batch_bytes: Defaulted<'a, 'py>,
}

/// With what a log is opened.
pub(super) struct OpeningOptions<'py> {
    pub(super) options: WriterOptions,
    /// The `LogConfig`.
    pub(super) config: Bound<'py, PyAny>,
    /// The settings, also those of the topic.
    pub(super) found: TopicConfig,
    /// Why retention is refused: damaged metadata does not tell the settings of the topic.
    pub(super) retention_error: Option<PyErr>,
}

impl<'py> Given<'_, 'py> {
    pub(super) fn options(self, py: Python<'py>, path: &Path) -> PyResult<OpeningOptions<'py>> {
        let id = |name, given: &Bound<'_, PyAny>| {
            let id = arguments::text(name, "a str of 22 letters, as Kafka prints a topic's id", given)?;
            id.parse::<TopicId>().map_err(|wrong| error::to_python(py, wrong))
        };
        let defaults = WriterOptions::default();
        let mut found = TopicConfig::of(py, self.config.as_ref(), path)?;
        let retention_error = found.retention_error();
        let given =
            self.config.filter(|_| !found.has_topics).map_or_else(|| to_python(py, &found.config), Ok)?;
        let options = WriterOptions {
            config: found.config.clone(),
            flush: self.flush.or("flush", defaults.flush, flush_mode::flush)?,
            topic_id: optional("topic_id", self.topic_id, id)?,
            leader_epoch: optional("leader_epoch", self.leader_epoch, epoch)?,
            producer_id_expiration_ms: self.producer_id_expiration_ms.or(
                "producer_id_expiration_ms",
                defaults.producer_id_expiration_ms,
                |name, given| arguments::whole(name, "a whole number of ms, 1 or more", given),
            )?,
            max_batch_bytes: self.max_batch_bytes.or(
                "max_batch_bytes",
                defaults.max_batch_bytes,
                arguments::positive,
            )?,
            interrupt: SIGNALS,
            on_warning: WARNINGS,
            is_topic_compacted,
            ..defaults
        };
        Ok(OpeningOptions { options, config: given, found, retention_error })
    }
}

/// With what the recovery of a log is planned, and its settings.
pub(super) fn planning_options(
    py: Python<'_>,
    path: &Path,
    config: Option<&Bound<'_, PyAny>>,
    max_batch_bytes: Defaulted<'_, '_>,
) -> PyResult<(WriterOptions, TopicConfig)> {
    let found = TopicConfig::of(py, config, path)?;
    let max_batch_bytes = max_batch_bytes.or("max_batch_bytes", MAX_BATCH_BYTES, arguments::positive)?;
    let config = found.config.clone();
    let options = WriterOptions { config, max_batch_bytes, interrupt: SIGNALS, ..WriterOptions::default() };
    Ok((options, found))
}

/// A producer's id and epoch, and the first and last offset of its open transaction.
pub(super) type OpenTransaction = (i64, i16, Option<i64>, Option<i64>);

pub(super) fn open_transaction(entry: &ProducerEntry) -> OpenTransaction {
    let last = entry.last_batch().map(|batch| batch.last_offset);
    (entry.producer_id, entry.producer_epoch, entry.open_transaction, last)
}
