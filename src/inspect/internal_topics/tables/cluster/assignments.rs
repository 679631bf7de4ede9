//! The replicas that the metadata of a cluster assigns to its brokers. Kafka: `TopicsImage`.

use std::collections::HashMap;
use std::path::Path;

use super::super::super::json::uuid_text;
use super::super::super::message::{Message, Value};
use super::super::topic_logs::TableOptions;
use super::snapshot::snapshots_in;
use super::state::State;
use super::{Replayed, replay};
use crate::error::{Error, Result};
use crate::fs::Directory;
use crate::log::LogOptions;
use crate::types::Interrupt;

/// The topics of a cluster, and the brokers and data directories of their replicas. Ids are texts, as Kafka
/// prints them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Assignments {
    names: HashMap<String, String>,
    ids: HashMap<String, String>,
    partitions: HashMap<(String, i64), Vec<Replica>>,
}

/// A replica that is, or may be, in a data directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ReplicaPlace<'a> {
    pub(crate) topic: &'a str,
    pub(crate) partition: i32,
    /// Whether the metadata says that it is there.
    pub(crate) is_known: bool,
}

/// `DirectoryId.MIGRATING` and `DirectoryId.UNASSIGNED`.
const NO_DIRECTORY: [&str; 2] = ["AAAAAAAAAAAAAAAAAAAAAA", "AAAAAAAAAAAAAAAAAAAAAQ"];

#[derive(Debug, Clone, PartialEq, Eq)]
struct Replica {
    broker: i64,
    directory: String,
}

impl Assignments {
    /// Reads a `__cluster_metadata-0`. `None` if not all of it can be read: then a topic or a replica may be
    /// missing.
    ///
    /// # Errors
    /// [`Error::Io`] and [`Error::Interrupted`].
    pub(crate) fn read(metadata: &Path, interrupt: Interrupt) -> Result<Option<Self>> {
        let directory = Directory::open(metadata, "give the path of a partition directory")?;
        if directory.segment_bases()?.is_empty() && snapshots_in(&directory)?.is_empty() {
            return Ok(Some(Self::default()));
        }
        let log = LogOptions { interrupt, ..LogOptions::default() };
        let replayed = match replay(&[metadata], &TableOptions { log, ..TableOptions::default() }) {
            Ok(Some(replayed)) => replayed,
            Err(error @ (Error::Io { .. } | Error::Interrupted(_))) => return Err(error),
            Ok(None) | Err(_) => return Ok(None),
        };
        let Replayed { state, .. } = replayed;
        Ok(state.errors.is_empty().then(|| Self::of(&state)))
    }

    fn of(state: &State) -> Self {
        let mut assignments = Self::default();
        for (id, name) in &state.topics {
            assignments.names.insert(uuid_text(*id), name.clone());
            assignments.ids.insert(name.clone(), uuid_text(*id));
        }
        for ((id, partition), record) in &state.partitions {
            assignments.partitions.insert((uuid_text(*id), *partition), replicas(record));
        }
        assignments
    }

    /// The name of the topic with an id.
    pub(crate) fn topic(&self, id: &str) -> Option<&str> {
        self.names.get(id).map(String::as_str)
    }

    /// The id of the topic with a name.
    pub(crate) fn topic_id(&self, topic: &str) -> Option<&str> {
        self.ids.get(topic).map(String::as_str)
    }

    /// The ids of the brokers with a replica of a partition; `None` if there is no such partition.
    pub(crate) fn brokers(&self, topic_id: &str, partition: i32) -> Option<Vec<i64>> {
        let replicas = self.partitions.get(&(topic_id.to_owned(), partition.into()))?;
        Some(replicas.iter().map(|replica| replica.broker).collect())
    }

    /// The id of the data directory in which a broker has its replica of a partition; `None` if it has none,
    /// or if it is not known in which one.
    pub(crate) fn directory(&self, topic_id: &str, partition: i32, broker: i32) -> Option<&str> {
        let replicas = self.partitions.get(&(topic_id.to_owned(), partition.into()))?;
        let replica = replicas.iter().find(|replica| replica.broker == i64::from(broker))?;
        Some(replica.directory.as_str()).filter(|directory| !NO_DIRECTORY.contains(directory))
    }

    /// The partitions that a broker has in a data directory, or may have there: those of versions without
    /// directories, and those that have not been placed. `directory`: its id; `None` if it has none.
    /// Sorted.
    pub(crate) fn in_directory(&self, broker: i32, directory: Option<&str>) -> Vec<ReplicaPlace<'_>> {
        let mut found = Vec::new();
        for ((id, partition), replicas) in &self.partitions {
            let replica = replicas.iter().find(|replica| replica.broker == i64::from(broker));
            let (Some(replica), Some(topic)) = (replica, self.topic(id)) else { continue };
            let is_here = directory == Some(&replica.directory);
            let is_open = directory.is_none() || NO_DIRECTORY.contains(&replica.directory.as_str());
            if let Ok(partition) = i32::try_from(*partition)
                && (is_here || is_open)
            {
                found.push(ReplicaPlace { topic, partition, is_known: is_here });
            }
        }
        found.sort_unstable();
        found
    }
}

fn replicas(record: &Message<'_>) -> Vec<Replica> {
    let list = |name| match record.get(name) {
        Some(Value::Array(values)) => values.as_slice(),
        _ => &[],
    };
    let directories = list("directories").iter();
    let replica = |(broker, directory): (&Value<'_>, &Value<'_>)| match (broker, directory) {
        (Value::Number(broker), Value::Uuid(directory)) => {
            Some(Replica { broker: *broker, directory: uuid_text(*directory) })
        }
        _ => None,
    };
    list("replicas").iter().zip(directories).filter_map(replica).collect()
}
