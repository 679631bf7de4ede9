//! The metadata of a cluster, from `__cluster_metadata` and its snapshots.

mod assignments;
mod columns;
mod known_configs;
mod log_fault;
mod names;
mod records;
mod settings;
mod snapshot;
mod state;

use std::path::Path;

use super::super::message::Value;
use super::super::schema::Kind::{Int64, Text};
use super::super::schema::{Struct, field};
use super::errors::LogErrors;
use super::table::Table;
use super::topic_logs::{
    Entry, TableOptions, TopicLogs, damage_text, distinct, for_each_offset, missing_text,
};
use crate::error::{Error, Result};
use crate::fs::Directory;
use crate::fs::names::CLUSTER_METADATA_DIRECTORY;
use crate::log::{DamagedRange, OnDamage};
pub(crate) use assignments::{Assignments, ReplicaPlace};
#[cfg(feature = "binding")]
pub(super) use columns::COLUMNS;
pub(crate) use log_fault::{RecordFault, record_fault};
pub use records::metadata_records;
pub use settings::known_settings;
pub use settings::{SettingSource, TopicSettings, is_topic_compacted, topic_settings};
use snapshot::{Snapshot, snapshots_in};
pub(crate) use snapshot::{SnapshotFault, SnapshotFaultKind, snapshot_fault};
use state::State;

const CLUSTER_METADATA: &str = "__cluster_metadata";
const ADVICE: &str = "give the path of a partition directory";

static ERRORS: Struct = Struct::shared("errors", &[field("offset", Int64), field("error", Text)]);

/// The metadata of a cluster at an offset of its log.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "binding", derive(serde::Deserialize, serde::Serialize))]
pub struct ClusterMetadata {
    /// The exclusive end: every record below it is applied, except the records in `errors`.
    pub offset: i64,
    /// The file of the snapshot from which the replay began; `None` if it began with the log.
    #[cfg_attr(feature = "binding", serde(with = "crate::types::paths"))]
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
    /// What is missing, not decodable, or contradicts the records before it.
    pub errors: Table,
}

impl ClusterMetadata {
    fn add_damage(&mut self, damaged: &[DamagedRange]) {
        let tables = [
            &mut self.topics,
            &mut self.partitions,
            &mut self.brokers,
            &mut self.controllers,
            &mut self.configs,
            &mut self.features,
            &mut self.acls,
            &mut self.client_quotas,
            &mut self.scram_credentials,
            &mut self.delegation_tokens,
            &mut self.producer_ids,
            &mut self.errors,
        ];
        for table in tables {
            table.add_damage(damaged.to_vec());
        }
    }
}

/// Reads the metadata of a cluster: from the last whole snapshot and the log after it, if it has a segment.
/// The paths are data directories, one of them with `__cluster_metadata-0`; or one path is this partition
/// directory, or a snapshot (`.checkpoint`), which is then read alone.
///
/// `options.topics` selects rows of topics, partitions and configs; `options.groups` has no effect.
///
/// The log is read to its end. A controller applies a record when the quorum has it, so the last records may
/// not be applied there, and may disappear. Records of a metadata transaction that has not ended are left
/// out.
///
/// With [`OnDamage::Skip`] and [`OnDamage::Report`], a damaged snapshot is replaced by the one before it, and
/// damage of the log is left out: it is an error, and one of the damaged ranges of every table. Offsets that
/// are missing are errors too, because the log is never compacted. With an error, each table may be wrong.
///
/// *Source*: `MetadataBatchLoader`, `MetadataDelta.replay`.
///
/// # Errors
/// [`Error::Config`] if the path is none of these; [`Error::Corrupt`]; [`Error::BatchTooLarge`];
/// [`Error::Io`].
pub fn metadata(paths: &[impl AsRef<Path>], options: &TableOptions) -> Result<ClusterMetadata> {
    let Some(Replayed { state, snapshot, end, damaged }) = replay(paths, options)? else {
        return Err(Error::config("path", "a __cluster_metadata-0 with records", "one without a segment"));
    };
    let mut metadata = state.tables(end, snapshot.as_ref(), options);
    metadata.add_damage(&damaged);
    Ok(metadata)
}

/// The state after the last record of a log or of a snapshot.
struct Replayed {
    state: State,
    /// The snapshot from which the replay began.
    snapshot: Option<Snapshot>,
    /// The exclusive end of the records.
    end: i64,
    damaged: Vec<DamagedRange>,
}

impl Replayed {
    /// What a snapshot has without a log after it.
    fn alone(state: State, snapshot: Option<Snapshot>) -> Self {
        let end = snapshot.as_ref().and_then(|snapshot| snapshot.end_offset).unwrap_or(0);
        Self { state, snapshot, end, damaged: Vec::new() }
    }
}

/// Reads a snapshot, or the last whole snapshot of a log and the log after it. `None` if there is neither a
/// segment nor a snapshot.
fn replay(paths: &[impl AsRef<Path>], options: &TableOptions) -> Result<Option<Replayed>> {
    let single = if let [path] = paths { Snapshot::at(path.as_ref())? } else { None };
    if let Some(snapshot) = single {
        let mut state = State::default();
        snapshot.read(&mut state, options.log.max_batch_bytes)?;
        return Ok(Some(Replayed::alone(state, Some(snapshot))));
    }
    if let Some(directory) = without_segment(paths)? {
        let (state, snapshot) = read_snapshot(&directory, options)?;
        return Ok(Some(Replayed::alone(state, snapshot)));
    }
    let log = TopicLogs::open(paths, CLUSTER_METADATA, &options.log)?.only()?;
    let Some(log) = log else { return Ok(None) };
    let directory = Directory::open(log.path(), ADVICE)?;
    let (mut state, snapshot) = read_snapshot(&directory, options)?;
    let start = snapshot.as_ref().and_then(|snapshot| snapshot.end_offset).unwrap_or(0);
    let (damaged, end) = for_each_offset(&log, options.on_damage, start, |entry| match entry {
        Entry::Record(header, record) => state.take(header.is_control(), &record),
        Entry::Damage(range) => state.errors.add(range.start_offset, damage_text(range)),
        Entry::Missing { start, end } => state.errors.add(start, missing_text(start, end)),
    })?;
    Ok(Some(Replayed { state, snapshot, end, damaged }))
}

/// The directory of the metadata log, if it has snapshots and no segment: a broker begins with the newest
/// one. `None` also if the paths have several metadata logs.
fn without_segment(paths: &[impl AsRef<Path>]) -> Result<Option<Directory>> {
    let is_named = |path: &Path| path.file_name().is_some_and(|name| name == CLUSTER_METADATA_DIRECTORY);
    let mut places = Vec::new();
    for path in distinct(paths) {
        // "." has another name
        let resolved = path.canonicalize().unwrap_or_else(|_| path.clone());
        let within = resolved.join(CLUSTER_METADATA_DIRECTORY);
        // what is no directory there is an error, and not the log of another directory
        if within.symlink_metadata().is_ok() {
            places.push(within);
        } else if resolved.is_dir() && (is_named(&path) || is_named(&resolved)) {
            places.push(resolved);
        }
    }
    let places = distinct(&places);
    let [place] = places.as_slice() else { return Ok(None) };
    let directory = Directory::open(place, ADVICE)?;
    let has_snapshots = directory.segment_bases()?.is_empty() && !snapshots_in(&directory)?.is_empty();
    Ok(has_snapshots.then_some(directory))
}

/// The state of the last whole snapshot of a metadata log, and the snapshot; an empty state if there is none.
fn read_snapshot(directory: &Directory, options: &TableOptions) -> Result<(State, Option<Snapshot>)> {
    let mut errors = LogErrors::default();
    for snapshot in snapshots_in(directory)?.into_iter().rev() {
        let mut state = State::default();
        match snapshot.read(&mut state, options.log.max_batch_bytes) {
            Err(error @ Error::Corrupt { .. }) if options.on_damage != OnDamage::Raise => {
                errors.add(snapshot.end_offset, error.to_string());
            }
            read => {
                read?;
                state.errors.prepend(errors);
                return Ok((state, Some(snapshot)));
            }
        }
    }
    let mut state = State::default();
    state.errors.prepend(errors);
    Ok((state, None))
}

/// A text as a value.
fn text(text: &str) -> Value<'static> {
    Value::Text(text.to_owned().into())
}
