//! The topic ids in the `partition.metadata` files of a data directory, compared with each other: a topic has one id, and an id one topic.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::finding::Finding;
use super::rule::Rule;
use crate::error::{Error, Result};
use crate::fs::names::{PartitionName, PartitionState};
use crate::fs::{Directory, FileType};
use crate::segment::with_descriptors;
use crate::state::partition_metadata::{PARTITION_METADATA, TopicId};

/// The topic ids of a data directory.
#[derive(Debug, Default)]
pub(super) struct TopicIds {
    /// What is expected and found for a partition, by the name of its directory.
    wrong: HashMap<String, (String, String)>,
}

impl TopicIds {
    /// Reads the ids of all partitions of a data directory. A file that cannot be read is a finding of its partition.
    pub(super) fn read(data_directory: &Directory) -> Result<Self> {
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
                Ok(Some(id)) => ids.push((name, parsed.topic, id.to_string())),
                Err(error @ Error::Interrupted(_)) => return Err(error),
                Ok(None) | Err(_) => {}
            }
        }
        ids.sort_unstable();
        Ok(Self { wrong: contradictions(&ids) })
    }

    /// The finding about a partition.
    pub(super) fn of_partition(&self, directory: &Directory) -> Option<Finding> {
        let name = directory.path().file_name()?.to_str()?;
        let (expected, found) = self.wrong.get(name)?;
        let path = directory.path_of(PARTITION_METADATA);
        Some(Finding::new(Rule::TopicIdMismatch, directory.path(), path, expected, found))
    }
}

/// The partitions with an id that contradicts others: names of directories, topics and ids.
fn contradictions(ids: &[(String, String, String)]) -> HashMap<String, (String, String)> {
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
        let text = match (usual, others) {
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
        wrong.insert(name.clone(), text);
    }
    wrong
}

/// Whether all partitions of a topic have this id: then it is not known which of the topics with it is the wrong one.
fn has_no_other_id(by_topic: &BTreeMap<&str, BTreeMap<&str, usize>>, topic: &str, id: &str) -> bool {
    by_topic.get(topic).is_some_and(|ids| ids.keys().all(|known| *known == id))
}
