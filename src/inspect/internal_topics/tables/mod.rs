//! What the records of an internal topic add up to, as tables.

mod arrays;
mod cluster;
mod consumer_groups;
mod consumer_offsets;
mod coordinator_states;
mod errors;
mod group_replay;
mod members;
mod open_transactions;
#[cfg(feature = "binding")]
mod stored;
mod table;
mod topic_logs;
mod transactions;

pub use cluster::known_settings;
pub(crate) use cluster::{
    Assignments, RecordFault, ReplicaPlace, SnapshotFault, SnapshotFaultKind, record_fault, snapshot_fault,
};
pub use cluster::{
    ClusterMetadata, SettingSource, TopicSettings, is_topic_compacted, metadata, metadata_records,
    topic_settings,
};
pub use consumer_groups::consumer_groups;
pub use consumer_offsets::consumer_offsets;
pub use open_transactions::open_transactions;
pub use table::{Cell, Table};
pub use topic_logs::TableOptions;
pub use transactions::transactions;

const CONSUMER_OFFSETS: &str = "__consumer_offsets";
const TRANSACTION_STATE: &str = "__transaction_state";
