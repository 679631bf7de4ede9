//! What a broker does with the directories of a data directory when it starts: which partitions it keeps, and
//! which it renames.
//!
//! Every directory with a partition's name is loaded, also those to be deleted and those that were set aside.
//! Then a broker keeps a partition if the metadata of the cluster has a replica with its topic id and number
//! on this broker. The name of the topic is not compared.
//!
//! *Source*: `LogManager.loadLogs`, `LogManager.recoverAbandonedFutureLogs`, `LogManager.isStrayReplica`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::data_directories::{
    is_same_broker, others_of_broker, properties_of, refuse_links, wrong_properties,
};
use super::leaders::plan_leaders;
use crate::error::{Error, Result};
use crate::fs::Directory;
use crate::fs::names::{CLUSTER_METADATA_DIRECTORY, PartitionName, PartitionState};
use crate::inspect::internal_topics::{Assignments, ReplicaPlace};
use crate::segment::with_descriptors;
use crate::state::offset_checkpoint::{
    HIGH_WATERMARKS, LOG_START_OFFSETS, OffsetCheckpoint, RECOVERY_POINTS,
};
use crate::state::partition_metadata::TopicId;
use crate::types::Interrupt;

/// What becomes of a directory with a partition's name that a broker can load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fate {
    /// It stays what it is.
    Kept,
    /// It is the metadata log of the cluster, which is recovered at each start.
    Metadata,
    /// It is renamed to `-stray`: its records are not served, and no broker deletes it.
    Stray,
    /// It stays, but its topic id is another topic's: its records are not served.
    Unserved,
    /// It stays, but gets no leader on this broker: its records are not served. Also `meta.properties`, with
    /// the `directory.id` that is the reason.
    NoLeader,
    /// It is named `-delete`, and deleted.
    Deleted,
    /// It is named `-stray`, and stays.
    SetAside,
    /// The broker does not start with it.
    Refused,
    /// It is `meta.properties`, which the broker cannot load: it takes the data directory offline, and looks
    /// at nothing in it.
    Offline,
    /// There is no directory, although the metadata has the partition here and it had records: an empty
    /// partition takes its place.
    Missing,
    /// There is no directory, but nothing shows that there was one: the partition is created.
    Created,
}

impl Fate {
    /// A stable name, such as `kept`.
    pub fn code(self) -> &'static str {
        match self {
            Self::Kept => "kept",
            Self::Metadata => "metadata",
            Self::Stray => "stray",
            Self::Unserved => "unserved",
            Self::NoLeader => "no_leader",
            Self::Deleted => "deleted",
            Self::SetAside => "set_aside",
            Self::Refused => "refused",
            Self::Offline => "offline",
            Self::Missing => "missing",
            Self::Created => "created",
        }
    }
}

/// A directory of a data directory, and what becomes of it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PlannedDirectory {
    /// Its name.
    pub name: String,
    /// What becomes of it.
    pub fate: Fate,
    /// What a broker expects of it; empty if it has that.
    pub expected: String,
    /// What is there instead.
    pub found: String,
}

/// What a broker does with the directories of a data directory when it starts, by topic, partition and name;
/// after them, the partitions that the metadata has there and that have no directory. Directories that it
/// ignores, and those without a partition's name, with which it does not start, are left out. At the end,
/// `meta.properties`, if a broker does not start with it or takes the directory offline.
/// `others`: further data directories, one of which may have the metadata log of the broker.
/// `server_properties`: the file of the broker's settings, whose `node.id` is compared.
///
/// # Errors
/// [`Error::LogNotFound`]; [`Error::Io`], also for a symbolic link in the place of a file of the data
/// directory, which a broker follows; [`Error::Interrupted`].
pub fn plan_start(
    path: &Path,
    others: &[PathBuf],
    server_properties: Option<&Path>,
    interrupt: Interrupt,
) -> Result<Vec<PlannedDirectory>> {
    let folder = with_descriptors(|| Directory::open(path, "give the path of a data directory"))?;
    refuse_links(&folder)?;
    let loaded = loaded_directories(&folder)?;
    // after the topic ids: a partition is in the metadata before it is a directory
    let broker = Broker::of(&folder, others, interrupt)?;
    let mut planned: Vec<_> = loaded.iter().map(|loaded| broker.plan(loaded)).collect();
    refuse_duplicates(&loaded, &mut planned);
    for place in 0..loaded.len() {
        broker.refuse_abandoned(&loaded, &mut planned, place);
    }
    let others = others_of_broker(&folder, others);
    let others: Vec<_> = others.iter().map(PathBuf::as_path).collect();
    refuse_elsewhere(&loaded, &mut planned, &others);
    plan_leaders(&broker, &folder, &others, &loaded, &mut planned)?;
    planned.extend(broker.absent(&folder, &others, &loaded)?);
    planned.extend(wrong_properties(&folder, &others, server_properties)?);
    Ok(planned)
}

/// A directory that a broker loads.
#[derive(Debug)]
pub(super) struct LoadedDirectory {
    pub(super) name: String,
    pub(super) partition: PartitionName,
    pub(super) topic_id: std::result::Result<Option<TopicId>, Unreadable>,
}

/// `partition.metadata` cannot be read: then the loading fails.
#[derive(Debug)]
pub(super) struct Unreadable;

fn loaded_directories(folder: &Directory) -> Result<Vec<LoadedDirectory>> {
    let entries = with_descriptors(|| folder.list_until_stable(Directory::entries))?;
    let mut loaded = Vec::new();
    for (name, _) in entries {
        let Some(partition) = PartitionName::parse(&name) else { continue };
        // Kafka follows links
        let is_directory = folder.path_of(&name).is_dir();
        let is_ignored = partition.topic == METADATA_TOPIC && name != CLUSTER_METADATA_DIRECTORY;
        if !is_directory || is_ignored {
            continue;
        }
        let topic_id = match topic_id(&folder.path_of(&name)) {
            Err(error @ Error::Interrupted(_)) => return Err(error),
            read => read.map_err(|_| Unreadable),
        };
        loaded.push(LoadedDirectory { name, partition, topic_id });
    }
    let key = |loaded: &LoadedDirectory| {
        let PartitionName { topic, partition, .. } = &loaded.partition;
        (topic.clone(), *partition, loaded.name.clone())
    };
    loaded.sort_by_key(key);
    Ok(loaded)
}

fn topic_id(path: &Path) -> Result<Option<TopicId>> {
    with_descriptors(|| Directory::open(path, "")).and_then(|partition| TopicId::read(&partition))
}

const METADATA_TOPIC: &str = "__cluster_metadata";

/// Two directories of one partition: Kafka has one log for it.
fn refuse_duplicates(loaded: &[LoadedDirectory], planned: &mut [PlannedDirectory]) {
    let mut by_partition: BTreeMap<_, Vec<usize>> = BTreeMap::new();
    for (place, (loaded, planned)) in loaded.iter().zip(planned.iter()).enumerate() {
        if matches!(planned.fate, Fate::Kept | Fate::Unserved) {
            let PartitionName { topic, partition, state } = &loaded.partition;
            by_partition.entry((topic, *partition, *state)).or_default().push(place);
        }
    }
    for places in by_partition.values().filter(|places| places.len() > 1) {
        let names: Vec<_> =
            places.iter().filter_map(|place| Some(loaded.get(*place)?.name.as_str())).collect();
        for place in places {
            if let Some(planned) = planned.get_mut(*place) {
                planned.refuse("one directory for each partition", &names.join(", "));
            }
        }
    }
}

/// A partition with directories in two data directories of a broker. A broker has the metadata log only in
/// the one that is configured, or the first.
fn refuse_elsewhere(loaded: &[LoadedDirectory], planned: &mut [PlannedDirectory], others: &[&Path]) {
    for (loaded, planned) in loaded.iter().zip(planned) {
        let is_live = loaded.partition.state == PartitionState::Live;
        // instead of a second metadata log, also a file prevents a start
        let is_there = |path: &PathBuf| path.is_dir() || planned.fate == Fate::Metadata && path.exists();
        let elsewhere = others.iter().map(|other| other.join(&loaded.name)).find(is_there);
        let is_used = is_live && matches!(planned.fate, Fate::Kept | Fate::Metadata);
        if let Some(elsewhere) = elsewhere.filter(|_| is_used) {
            let expected = "one directory for each partition in all data directories of a broker";
            planned.refuse(expected, &elsewhere.display().to_string());
        }
    }
}

impl PlannedDirectory {
    fn refuse(&mut self, expected: &str, found: &str) {
        self.fate = Fate::Refused;
        expected.clone_into(&mut self.expected);
        found.clone_into(&mut self.found);
    }
}

/// A difference from what the metadata says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::inspect) struct Difference {
    pub(in crate::inspect) expected: String,
    pub(in crate::inspect) found: String,
}

impl Difference {
    fn new(expected: impl Into<String>, found: impl Into<String>) -> Self {
        Self { expected: expected.into(), found: found.into() }
    }
}

/// What the metadata of the cluster says about a partition directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::inspect) enum Assigned {
    /// The broker has this replica.
    Here,
    /// It is not known.
    Unknown,
    /// There is no topic id.
    WithoutId(Difference),
    /// There is no metadata.
    WithoutMetadata(Difference),
    /// The topic has another id. `is_stray`: and the broker has no replica with this one.
    OtherId { is_stray: bool, difference: Difference },
    /// The broker has no such replica.
    Elsewhere(Difference),
}

/// The broker to which a data directory belongs.
#[derive(Debug)]
pub(in crate::inspect) struct Broker {
    /// `None` if `meta.properties` does not say it: then no broker starts.
    pub(super) node: Option<i32>,
    directory_id: Option<String>,
    pub(super) metadata: Metadata,
}

#[derive(Debug)]
pub(super) enum Metadata {
    Missing,
    /// Not all of it can be read.
    Unknown,
    Known(Assignments),
}

impl Broker {
    /// The broker of a data directory, with the metadata there or in one of the `others` that belong to the
    /// same broker.
    pub(in crate::inspect) fn of(
        folder: &Directory,
        others: &[PathBuf],
        interrupt: Interrupt,
    ) -> Result<Self> {
        let properties = properties_of(folder);
        let mut of_same = others.iter().filter(|other| is_same_broker(&properties, other));
        let metadata_in =
            |path: &Path| Some(path.join(CLUSTER_METADATA_DIRECTORY)).filter(|path| path.is_dir());
        let place = metadata_in(folder.path()).or_else(|| of_same.find_map(|other| metadata_in(other)));
        let metadata = match place.map(|path| Assignments::read(&path, interrupt)).transpose() {
            Ok(None) => Metadata::Missing,
            Ok(Some(Some(assignments))) => Metadata::Known(assignments),
            Err(error @ Error::Interrupted(_)) => return Err(error),
            Ok(Some(None)) | Err(_) => Metadata::Unknown,
        };
        let directory_id = properties.directory_id();
        Ok(Self { node: properties.node_id(), directory_id, metadata })
    }

    /// Whether the metadata of the cluster is there, and can be read.
    pub(in crate::inspect) fn knows_cluster(&self) -> bool {
        self.node.is_some() && matches!(self.metadata, Metadata::Known(_))
    }

    /// What the metadata says about a directory with this name and topic id.
    pub(in crate::inspect) fn assigned(&self, name: &PartitionName, topic_id: Option<&TopicId>) -> Assigned {
        if name.topic == METADATA_TOPIC {
            // it is in no metadata, and has its own id
            return Assigned::Here;
        }
        let Some(node) = self.node else { return Assigned::Unknown };
        let Some(id) = topic_id.map(ToString::to_string) else {
            let expected = "a topic id in partition.metadata, by which the cluster knows the partition";
            return Assigned::WithoutId(Difference::new(expected, "none"));
        };
        match &self.metadata {
            Metadata::Known(known) => compare(known, node, name, &id),
            Metadata::Unknown => Assigned::Unknown,
            Metadata::Missing => {
                let expected = "the metadata of the cluster, without which a broker that is its own controller starts as an empty \
                                cluster";
                let found = format!(
                    "no {CLUSTER_METADATA_DIRECTORY} (if another data directory of the broker has it, give both together)"
                );
                Assigned::WithoutMetadata(Difference::new(expected, found))
            }
        }
    }

    /// How a directory without a topic id differs from the partitions of a topic in the metadata.
    pub(super) fn expected_id(&self, topic: &str) -> Option<Difference> {
        let Metadata::Known(known) = &self.metadata else { return None };
        let difference = if let Some(id) = known.topic_id(topic) {
            let expected = format!("topic id {id}, which topic {topic} has in the metadata of the cluster");
            Difference::new(expected, "none")
        } else {
            let expected = "a topic of the metadata of the cluster (a broker creates it)";
            Difference::new(expected, format!("topic {topic}, which is not there"))
        };
        Some(difference)
    }

    fn plan(&self, loaded: &LoadedDirectory) -> PlannedDirectory {
        let (fate, difference) = match loaded.partition.state {
            _ if loaded.name == CLUSTER_METADATA_DIRECTORY => (Fate::Metadata, None),
            PartitionState::Delete => (Fate::Deleted, None),
            PartitionState::Stray => (Fate::SetAside, None),
            PartitionState::Live | PartitionState::Future => match &loaded.topic_id {
                Err(Unreadable) => (Fate::Kept, None),
                Ok(id) => match self.assigned(&loaded.partition, id.as_ref()) {
                    Assigned::Here | Assigned::Unknown => (Fate::Kept, None),
                    Assigned::OtherId { is_stray: false, difference } => (Fate::Unserved, Some(difference)),
                    Assigned::WithoutId(difference)
                    | Assigned::WithoutMetadata(difference)
                    | Assigned::OtherId { is_stray: true, difference }
                    | Assigned::Elsewhere(difference) => (Fate::Stray, Some(difference)),
                },
            },
        };
        let Difference { expected, found } = difference.unwrap_or_else(|| Difference::new("", ""));
        PlannedDirectory { name: loaded.name.clone(), fate, expected, found }
    }

    /// A partition that was being moved into this data directory becomes the live one if the metadata has it
    /// here, which fails beside a live one.
    fn refuse_abandoned(&self, loaded: &[LoadedDirectory], planned: &mut [PlannedDirectory], place: usize) {
        let (Some(future), Metadata::Known(known), Some(node)) =
            (loaded.get(place), &self.metadata, self.node)
        else {
            return;
        };
        let name = &future.partition;
        let id = future.topic_id.as_ref().ok().and_then(Option::as_ref).map(ToString::to_string);
        let is_future = name.state == PartitionState::Future;
        let Some(id) = id.filter(|_| is_future && self.directory_id.is_some()) else { return };
        if known.directory(&id, name.partition, node) != self.directory_id.as_deref() {
            return;
        }
        let is_live = |(other, planned): (&LoadedDirectory, &PlannedDirectory)| {
            other.partition == PartitionName { state: PartitionState::Live, ..name.clone() }
                && planned.fate != Fate::Stray
        };
        let live = loaded.iter().zip(planned.iter()).find(|pair| is_live(*pair));
        let live = live.map(|(live, _)| live.name.clone());
        if let (Some(live), Some(planned)) = (live, planned.get_mut(place)) {
            planned.refuse(
                "no live directory of this partition, because a broker renames this one to it",
                &live,
            );
        }
    }
}

impl Broker {
    /// The partitions that the metadata has in this data directory, and that have no directory in it or in
    /// another one of the broker.
    fn absent(
        &self,
        folder: &Directory,
        others: &[&Path],
        loaded: &[LoadedDirectory],
    ) -> Result<Vec<PlannedDirectory>> {
        let (Metadata::Known(known), Some(node)) = (&self.metadata, self.node) else { return Ok(Vec::new()) };
        let had = Traces::read(folder)?;
        let mut absent = Vec::new();
        for ReplicaPlace { topic, partition, is_known } in
            known.in_directory(node, self.directory_id.as_deref())
        {
            let of_it = directories_of(loaded, topic, partition);
            let is_live = |loaded: &LoadedDirectory| {
                matches!(loaded.partition.state, PartitionState::Live | PartitionState::Future)
            };
            let name = format!("{topic}-{partition}");
            // a broker may have created it since the directories were listed
            let exists = of_it.iter().any(is_live)
                || folder.path_of(&name).is_dir()
                || others.iter().any(|other| other.join(&name).is_dir());
            if exists {
                continue;
            }
            let twin = of_it.first().map(|twin| format!("only {}", twin.name));
            let trace = twin.or_else(|| had.of(topic, partition));
            // without an id of the directory, the broker may have it in another one
            if !is_known && trace.is_none() {
                continue;
            }
            absent.push(PlannedDirectory {
                name,
                fate: if trace.is_some() { Fate::Missing } else { Fate::Created },
                expected: format!(
                    "a directory of the partition, which the metadata of the cluster has {}",
                    if is_known { "in this data directory" } else { "on this broker" }
                ),
                found: trace.unwrap_or_else(|| "none".to_owned()),
            });
        }
        Ok(absent)
    }
}

/// The directories of a partition, of those in the order of [`loaded_directories`].
fn directories_of<'a>(loaded: &'a [LoadedDirectory], topic: &str, partition: i32) -> &'a [LoadedDirectory] {
    let order = |loaded: &LoadedDirectory| {
        let PartitionName { topic: name, partition: number, .. } = &loaded.partition;
        (name.as_str(), *number).cmp(&(topic, partition))
    };
    let start = loaded.partition_point(|loaded| order(loaded).is_lt());
    let end = loaded.partition_point(|loaded| order(loaded).is_le());
    loaded.get(start..end).unwrap_or_default()
}

/// What shows that a partition had records: its lines in the checkpoints of the data directory.
struct Traces(Vec<(&'static str, OffsetCheckpoint)>);

impl Traces {
    /// A checkpoint that cannot be read is another finding.
    fn read(folder: &Directory) -> Result<Self> {
        let mut checkpoints = Vec::new();
        for name in [HIGH_WATERMARKS, RECOVERY_POINTS, LOG_START_OFFSETS] {
            match OffsetCheckpoint::read(folder, name) {
                Ok(Ok(checkpoint)) => checkpoints.push((name, checkpoint)),
                Err(error @ Error::Interrupted(_)) => return Err(error),
                Ok(Err(_)) | Err(_) => {}
            }
        }
        Ok(Self(checkpoints))
    }

    fn of(&self, topic: &str, partition: i32) -> Option<String> {
        self.0.iter().find_map(|(name, checkpoint)| {
            let offset = checkpoint.offset_of(topic, partition).filter(|offset| *offset > 0)?;
            Some(format!("none, and offset {offset} of it in {name}"))
        })
    }
}

/// Compares the name and the topic id of a partition directory with the metadata.
fn compare(known: &Assignments, node: i32, name: &PartitionName, id: &str) -> Assigned {
    let number = name.partition;
    let brokers = known.brokers(id, number);
    let is_here = brokers.as_ref().is_some_and(|brokers| brokers.contains(&node.into()));
    match (known.topic(id), known.topic_id(&name.topic)) {
        (Some(topic), _) if topic == name.topic => {}
        (other, Some(usual)) => {
            let expected =
                format!("topic id {usual}, which topic {} has in the metadata of the cluster", name.topic);
            let found = match other {
                Some(topic) => format!("topic id {id}, which is that of topic {topic}"),
                None => format!("topic id {id}, which no topic has there"),
            };
            let difference = Difference::new(expected, found);
            return Assigned::OtherId { is_stray: !is_here, difference };
        }
        (Some(topic), None) => {
            let expected = "a topic of the metadata of the cluster";
            let found = format!("topic {}, with the id {id} of topic {topic}", name.topic);
            return Assigned::OtherId { is_stray: !is_here, difference: Difference::new(expected, found) };
        }
        (None, None) => {
            let expected = "a topic of the metadata of the cluster";
            let found = format!("topic {} with the id {id}, which is not there", name.topic);
            return Assigned::Elsewhere(Difference::new(expected, found));
        }
    }
    match brokers {
        _ if is_here => Assigned::Here,
        Some(brokers) => {
            let expected = format!("a partition that the metadata of the cluster has on broker {node}");
            let brokers: Vec<_> = brokers.iter().map(ToString::to_string).collect();
            let found = format!("one that it has on other brokers: {}", brokers.join(", "));
            Assigned::Elsewhere(Difference::new(expected, found))
        }
        None => {
            let expected = format!("a partition of topic {} in the metadata of the cluster", name.topic);
            Assigned::Elsewhere(Difference::new(expected, format!("partition {number}, which is not there")))
        }
    }
}
