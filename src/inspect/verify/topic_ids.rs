//! The topic ids in the `partition.metadata` files of a data directory, compared with the metadata of the
//! cluster, or with each other: a topic has one id, and an id one topic.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;

use super::finding::Finding;
use super::rule::Rule;
use super::work::OF_THREAD;
use crate::error::{Error, Result};
use crate::fs::names::{PartitionName, PartitionState};
use crate::fs::{Directory, FileType};
use crate::inspect::kafka_load::{Assigned, Broker, Difference};
use crate::segment::with_descriptors;
use crate::state::partition_metadata::{PARTITION_METADATA, TopicId};

/// The topic ids of a data directory.
#[derive(Debug, Default)]
pub(super) struct TopicIds {
    /// What is wrong with a partition, by the name of its directory.
    wrong: HashMap<String, (Rule, Difference)>,
}

impl TopicIds {
    /// Reads the ids of all partitions of a data directory, and compares them with the metadata of the
    /// cluster, there or in one of `others`; without it, with each other. A file that cannot be read is a
    /// finding of its partition.
    pub(super) fn read(data_directory: &Directory, others: &[PathBuf]) -> Result<Self> {
        let mut ids = Vec::new();
        for (name, file_type) in data_directory.list_until_stable(Directory::entries)? {
            let Some(parsed) = PartitionName::parse(&name).filter(|_| file_type == FileType::Directory)
            else {
                continue;
            };
            if !matches!(parsed.state, PartitionState::Live | PartitionState::Future) {
                continue;
            }
            let path = data_directory.path_of(&name);
            let read = with_descriptors(|| Directory::open(&path, ""))
                .and_then(|partition| TopicId::read(&partition));
            match read {
                Ok(Some(id)) => ids.push((name, parsed, id)),
                Err(error @ Error::Interrupted(_)) => return Err(error),
                Ok(None) | Err(_) => {}
            }
        }
        // after the ids: a partition is in the metadata before it is a directory
        let broker = Broker::of(data_directory, others, OF_THREAD)?;
        if broker.knows_cluster() {
            return Ok(Self { wrong: ids.into_iter().filter_map(|id| compare(&broker, id)).collect() });
        }
        let mut ids: Vec<_> =
            ids.into_iter().map(|(name, parsed, id)| (name, parsed.topic, id.to_string())).collect();
        ids.sort_unstable();
        Ok(Self { wrong: contradictions(&ids) })
    }

    /// The finding about a partition.
    pub(super) fn of_partition(&self, directory: &Directory) -> Option<Finding> {
        let name = directory.path().file_name()?.to_str()?;
        let (rule, Difference { expected, found }) = self.wrong.get(name)?;
        let path = directory.path_of(PARTITION_METADATA);
        Some(Finding::new(*rule, directory.path(), path, expected, found))
    }
}

/// What is wrong with an id by the metadata of the cluster.
fn compare(
    broker: &Broker,
    (name, parsed, id): (String, PartitionName, TopicId),
) -> Option<(String, (Rule, Difference))> {
    match broker.assigned(&parsed, Some(&id)) {
        Assigned::OtherId { difference, .. } => Some((name, (Rule::TopicIdMismatch, difference))),
        Assigned::Elsewhere(difference) => Some((name, (Rule::StrayPartition, difference))),
        Assigned::Here | Assigned::Unknown | Assigned::WithoutId(_) | Assigned::WithoutMetadata(_) => None,
    }
}

/// The partitions with an id that contradicts others: names of directories, topics and ids.
fn contradictions(ids: &[(String, String, String)]) -> HashMap<String, (Rule, Difference)> {
    let mut by_topic: BTreeMap<&str, BTreeMap<&str, usize>> = BTreeMap::new();
    let mut topics: HashMap<&str, BTreeSet<&str>> = HashMap::new();
    for (_, topic, id) in ids {
        *by_topic.entry(topic).or_default().entry(id).or_default() += 1;
        topics.entry(id).or_default().insert(topic);
    }
    // the id that most partitions of the topic have, if one has most
    let usual = |topic: &str| {
        let counts = by_topic.get(topic)?;
        let most = counts.values().max()?;
        let mut of_most = counts.iter().filter(|(_, count)| *count == most).map(|(id, _)| *id);
        of_most.next().filter(|_| of_most.next().is_none())
    };
    let mut wrong = HashMap::new();
    for (name, topic, id) in ids {
        let others = topics.get(id.as_str()).into_iter().flatten().find(|other| *other != topic);
        let usual = usual(topic);
        let has_one = by_topic.get(topic.as_str()).is_some_and(|counts| counts.len() == 1);
        let (expected, found) = match (usual, others) {
            (Some(usual), _) if usual != id => (
                format!("topic id {usual}, as other partitions of topic {topic} have"),
                format!("topic id {id}"),
            ),
            (None, _) if !has_one => {
                ("one topic id in all partitions of a topic".to_owned(), format!("topic id {id}, and others"))
            }
            (_, Some(other)) if has_no_other_id(&by_topic, other, id) => {
                ("a topic id of its own".to_owned(), format!("topic id {id}, which topic {other} has too"))
            }
            _ => continue,
        };
        wrong.insert(name.clone(), (Rule::TopicIdMismatch, Difference { expected, found }));
    }
    wrong
}

/// Whether all partitions of a topic have this id: then it is not known which of the topics with it is the
/// wrong one.
fn has_no_other_id(by_topic: &BTreeMap<&str, BTreeMap<&str, usize>>, topic: &str, id: &str) -> bool {
    by_topic.get(topic).is_some_and(|ids| ids.keys().all(|known| *known == id))
}
