//! The metadata of a cluster, from `__cluster_metadata` and its snapshots.

mod columns;
mod names;
mod records;
mod snapshot;
mod state;

use std::path::Path;

use super::super::message::Value;
use super::super::schema::Kind::{Int64, Text};
use super::super::schema::{Struct, field};
use super::table::Table;
use super::topic_logs::{Entry, TableOptions, TopicLogs, damage_text, for_each_record};
use crate::error::{Error, Result};
use crate::fs::Directory;
use crate::log::{Log, OnDamage};
pub use records::metadata_records;
use snapshot::{Snapshot, snapshots_in};
use state::State;

const CLUSTER_METADATA: &str = "__cluster_metadata";

static ERRORS: Struct = Struct::shared("errors", &[field("offset", Int64), field("error", Text)]);

/// The metadata of a cluster as of an offset of its log.
#[derive(Debug, Clone)]
pub struct ClusterMetadata {
    /// The exclusive end: every record below it is applied.
    pub offset: i64,
    /// The file of the snapshot from which the replay began; `None` if it began with the log.
    pub snapshot: Option<std::path::PathBuf>,
    /// Topics: name, id, number of partitions, largest number of replicas.
    pub topics: Table,
    /// Partitions: leader, epochs, replicas, in-sync replicas, directories.
    pub partitions: Table,
    /// Registered brokers.
    pub brokers: Table,
    /// Registered controllers.
    pub controllers: Table,
    /// Settings of topics, brokers, groups and client metrics that differ from the default.
    pub configs: Table,
    /// Levels of the features, `metadata.version` and `kraft.version` among them.
    pub features: Table,
    /// Access control entries.
    pub acls: Table,
    /// Quotas of users, clients and addresses.
    pub client_quotas: Table,
    /// Users with SCRAM credentials. Salts and keys are left out.
    pub scram_credentials: Table,
    /// Delegation tokens.
    pub delegation_tokens: Table,
    /// The first producer id of the next block: at most one row.
    pub producer_ids: Table,
    /// Records that are not decodable, or that contradict the ones before them.
    pub errors: Table,
}

/// Reads the metadata of a cluster: from the last whole snapshot and the log after it. The path is a data directory with
/// `__cluster_metadata-0`, this partition directory, or a snapshot (`.checkpoint`), which is then read alone.
///
/// `options.topics` selects rows of topics, partitions and configs; `options.groups` has no effect.
///
/// The log is read to its end. A controller applies a record when the quorum has it, so the last records may not be applied there, and may
/// disappear. Records of a metadata transaction that has not ended are left out.
///
/// With [`OnDamage::Skip`] and [`OnDamage::Report`], a damaged snapshot is replaced by the one before it.
///
/// *Source*: `MetadataBatchLoader`, `MetadataDelta.replay`.
///
/// # Errors
/// [`Error::Config`] if the path is none of these; [`Error::Corrupt`]; [`Error::Io`].
pub fn metadata(path: impl AsRef<Path>, options: &TableOptions) -> Result<ClusterMetadata> {
    if let Some(snapshot) = Snapshot::at(path.as_ref())? {
        let mut state = State::default();
        snapshot.read(&mut state)?;
        return Ok(state.tables(snapshot.end_offset.unwrap_or(0), Some(&snapshot), options));
    }
    let TopicLogs { logs, .. } = TopicLogs::open(path.as_ref(), CLUSTER_METADATA, &options.log)?;
    let Some(log) = logs.first() else {
        return Err(Error::config("path", "a directory with __cluster_metadata-0", "none"));
    };
    let (mut state, snapshot) = read_snapshot(log, options)?;
    let start = snapshot.as_ref().and_then(|snapshot| snapshot.end_offset).unwrap_or(0);
    if log.log_start_offset() > start {
        let text = format!("the log has no records before {}", log.log_start_offset());
        state.add_error(start, text);
    }
    let damaged = for_each_record(log, options.on_damage, |entry| match entry {
        Entry::Record(_, record) if record.offset < start => {}
        Entry::Record(header, record) => state.take(header.is_control(), &record),
        Entry::Damage(range) => state.add_error(range.start_offset, damage_text(&range)),
    })?;
    let end = log.log_end_offset()?.max(start);
    let mut metadata = state.tables(end, snapshot.as_ref(), options);
    metadata.errors.add_damage(damaged);
    Ok(metadata)
}

/// The state of the last whole snapshot that the log reaches, and the snapshot; an empty state if there is none.
fn read_snapshot(log: &Log, options: &TableOptions) -> Result<(State, Option<Snapshot>)> {
    let directory = Directory::open(log.path(), "give the path of a partition directory")?;
    let mut errors = Vec::new();
    for snapshot in snapshots_in(&directory)?.into_iter().rev() {
        let mut state = State::default();
        match snapshot.read(&mut state) {
            Err(error @ Error::Corrupt { .. }) if options.on_damage != OnDamage::Raise => {
                errors.push((snapshot.end_offset.unwrap_or(0), error.to_string()));
            }
            read => {
                read?;
                state.add_errors(errors);
                return Ok((state, Some(snapshot)));
            }
        }
    }
    let mut state = State::default();
    state.add_errors(errors);
    Ok((state, None))
}

/// A text as a value.
fn text(text: &str) -> Value<'static> {
    Value::Text(text.to_owned().into())
}
