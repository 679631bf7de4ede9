//! The records of Kafka's internal topics: `__consumer_offsets`, `__transaction_state`, `__cluster_metadata`,
//! `__share_group_state` and `__remote_log_metadata`.
//!
//! One decoder reads all of them, by Kafka's published schemas of 4.3.1:
//!
//! ```text
//!   tables                  what the records of a topic add up to: the last value of each key, the state after each change
//!   parser · control        the texts of kafka-dump-log
//!        │
//!   json · remote_log       messages as JSON, and as Java's toString
//!        │
//!     records               the type and the version in front of a message ── record_types
//!        │
//!     message               a message as values, by its schema             ── schemas ── schema
//!        │
//!     readable              primitive types, with Kafka's errors
//! ```

mod control;
mod fields;
mod java;
mod json;
mod message;
mod parser;
mod readable;
mod record_types;
mod records;
mod remote_log;
mod schema;
mod schemas;
mod tables;

pub use control::control_record_text;
pub(super) use java::write_double;
pub use parser::{MessageParser, MissingKey, ParsedRecord};
pub use readable::DecodeError;
#[doc(hidden)]
pub use tables::known_settings;
pub(crate) use tables::{
    Assignments, RecordFault, ReplicaPlace, SnapshotFault, SnapshotFaultKind, record_fault, snapshot_fault,
};
pub use tables::{
    Cell, ClusterMetadata, SettingSource, Table, TableOptions, TopicSettings, consumer_groups,
    consumer_offsets, is_topic_compacted, metadata, metadata_records, open_transactions, topic_settings,
    transactions,
};
