//! Records of `__cluster_metadata` with which a broker does not start. Kafka:
//! `KRaftControlRecordStateMachine`, `MetadataLoader`.

use super::super::topic_logs::{Entry, TableOptions, TopicLogs, for_each_offset};
use super::{CLUSTER_METADATA, read_snapshot};
use crate::error::{Error, Result};
use crate::fs::Directory;
use crate::log::{LogOptions, OnDamage};
use crate::types::Interrupt;

/// A record of the metadata log that a broker cannot read, or that contradicts those before it.
#[derive(Debug)]
pub(crate) struct RecordFault {
    pub(crate) offset: i64,
    /// What is wrong.
    pub(crate) found: String,
    /// Whether the record has a type that is not known: a broker of its version starts with it.
    pub(crate) is_later_version: bool,
}

/// The first record with which a broker does not start, of those that it reads: after the newest snapshot, up
/// to the first damage, at which it cuts the log. One of a later version only if there is no other. `None`
/// also if the newest snapshot cannot be read: then a broker does not read the log.
///
/// # Errors
/// [`Error::Io`]; [`Error::Interrupted`].
pub(crate) fn record_fault(directory: &Directory, interrupt: Interrupt) -> Result<Option<RecordFault>> {
    if directory.segment_bases()?.is_empty() {
        return Ok(None);
    }
    let options = TableOptions {
        log: LogOptions { interrupt, ..LogOptions::default() },
        on_damage: OnDamage::Raise,
        ..TableOptions::default()
    };
    let mut fault: Option<RecordFault> = None;
    match replay_up_to_damage(directory, &options, &mut fault) {
        Err(error @ (Error::Io { .. } | Error::Interrupted(_))) => Err(error),
        Ok(()) | Err(_) => Ok(fault),
    }
}

fn replay_up_to_damage(
    directory: &Directory,
    options: &TableOptions,
    fault: &mut Option<RecordFault>,
) -> Result<()> {
    let log = TopicLogs::open(&[directory.path()], CLUSTER_METADATA, &options.log)?.only()?;
    let Some(log) = log else { return Ok(()) };
    let (mut state, snapshot) = read_snapshot(directory, options)?;
    let start = snapshot.and_then(|snapshot| snapshot.end_offset).unwrap_or(0);
    // a fault of the snapshot is another finding
    state.take_fault();
    let take = |entry: Entry<'_>| {
        let Entry::Record(header, record) = entry else { return };
        state.take(header.is_control(), &record);
        let Some((found, is_later_version)) = state.take_fault() else { return };
        // damage counts more than a later version
        if fault.as_ref().is_none_or(|first| first.is_later_version && !is_later_version) {
            *fault = Some(RecordFault { offset: record.offset, found, is_later_version });
        }
    };
    for_each_offset(&log, options.on_damage, start, take).map(drop)
}
