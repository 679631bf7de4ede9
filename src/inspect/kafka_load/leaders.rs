//! Partitions that a broker loads, and that get no leader there.

use std::path::Path;

use super::data_directories::properties_of;
use super::start::{Broker, Difference, Fate, LoadedDirectory, Metadata, PlannedDirectory};
use crate::error::{Error, Result};
use crate::fs::names::{CLUSTER_METADATA_DIRECTORY, PartitionName, PartitionState};
use crate::fs::{Directory, META_PROPERTIES};
use crate::segment::with_descriptors;
use crate::state::checkpoint_file::WrongTextKind;
use crate::state::offset_checkpoint::{HIGH_WATERMARKS, OffsetCheckpoint};

/// Marks the partitions without a leader among those that are kept. A `directory.id` that the metadata does
/// not have is a further [`PlannedDirectory`], `meta.properties`. `others`: the other data directories of the
/// broker.
///
/// *Source*: `DirectoryId.isOnline`, by which a controller elects leaders; `LazyOffsetCheckpoints`, whose
/// exception a broker does not expect when it makes leaders.
pub(super) fn plan_leaders(
    broker: &Broker,
    folder: &Directory,
    others: &[&Path],
    loaded: &[LoadedDirectory],
    planned: &mut Vec<PlannedDirectory>,
) -> Result<()> {
    if properties_of(folder).check().is_err() {
        // no broker starts with these partitions
        return Ok(());
    }
    let online = directory_ids(folder, others);
    let checkpoint = wrong_high_watermarks(folder, others)?;
    let mut wrong_id = None;
    for (loaded, planned) in loaded.iter().zip(planned.iter_mut()) {
        if planned.fate != Fate::Kept || loaded.partition.state != PartitionState::Live {
            continue;
        }
        let offline = broker.offline_directory(loaded, &online);
        let is_offline = offline.is_some();
        let Some(Difference { expected, found }) = offline.or_else(|| checkpoint.clone()) else { continue };
        *planned = PlannedDirectory { name: loaded.name.clone(), fate: Fate::NoLeader, expected, found };
        if is_offline && wrong_id.is_none() {
            wrong_id = Some(PlannedDirectory { name: META_PROPERTIES.to_owned(), ..planned.clone() });
        }
    }
    planned.extend(wrong_id);
    Ok(())
}

impl Broker {
    /// How the ids of the data directories differ from that at which the metadata has a partition.
    fn offline_directory(&self, loaded: &LoadedDirectory, online: &[String]) -> Option<Difference> {
        let (Metadata::Known(known), Some(node), Ok(Some(topic_id))) =
            (&self.metadata, self.node, &loaded.topic_id)
        else {
            return None;
        };
        let id = known.directory(&topic_id.to_string(), loaded.partition.partition, node)?;
        let expected = format!("directory.id {id}, at which the metadata of the cluster has {}", loaded.name);
        let found = if online.is_empty() { "none".to_owned() } else { online.join(", ") };
        (!online.iter().any(|online| online == id)).then_some(Difference { expected, found })
    }
}

fn directory_ids(folder: &Directory, others: &[&Path]) -> Vec<String> {
    let id = |folder: &Directory| properties_of(folder).directory_id();
    let others = others.iter().filter_map(|other| id(&Directory::open(other, "").ok()?));
    id(folder).into_iter().chain(others).collect()
}

/// The high watermarks of a data directory with partitions that end the making of leaders in all of them.
fn wrong_high_watermarks(folder: &Directory, others: &[&Path]) -> Result<Option<Difference>> {
    for path in std::iter::once(&folder.path()).chain(others) {
        let folder = with_descriptors(|| Directory::open(path, "give the path of a data directory"))?;
        match OffsetCheckpoint::read(&folder, HIGH_WATERMARKS) {
            Ok(Err(wrong)) if wrong.kind != WrongTextKind::Format && has_partitions(&folder)? => {
                let expected = format!("a {HIGH_WATERMARKS} that a broker can read");
                return Ok(Some(Difference { expected, found: wrong.found }));
            }
            Err(error @ Error::Interrupted(_)) => return Err(error),
            // anything else takes the data directory offline
            Ok(_) | Err(_) => {}
        }
    }
    Ok(None)
}

/// Whether a data directory has partitions for which a broker reads the high watermarks: not that of the
/// metadata.
pub(in crate::inspect) fn has_partitions(folder: &Directory) -> Result<bool> {
    let is_served = |name: &str| {
        let name = PartitionName::parse(name).filter(|name| name.state == PartitionState::Live);
        name.is_some_and(|name| !CLUSTER_METADATA_DIRECTORY.starts_with(&format!("{}-", name.topic)))
    };
    Ok(folder.entries()?.iter().any(|(name, _)| is_served(name)))
}
