//! A partition that a writer creates in a data directory whose cluster does not know it.

use std::path::Path;

use super::start::{Assigned, Broker, Difference};
use crate::error::Result;
use crate::fs::names::{PartitionName, PartitionState};
use crate::fs::{Directory, is_data_directory};
use crate::state::partition_metadata::TopicId;
use crate::types::Interrupt;

const STRAY: &str = "renames this partition to -stray and does not serve its records";

/// Why a broker does not serve a partition directory of its data directory, in a sentence, if the metadata of
/// the cluster is there and does not have the partition on this broker. `None` also if it is not known.
///
/// # Errors
/// [`Error::LogNotFound`](crate::Error::LogNotFound) without the directory; [`Error::Io`](crate::Error::Io);
/// [`Error::Interrupted`](crate::Error::Interrupted).
pub fn unserved_partition(partition: &Path, interrupt: Interrupt) -> Result<Option<String>> {
    let directory = Directory::open(partition, "give the path of a partition directory")?;
    let name = directory.path().file_name().and_then(|name| PartitionName::parse(name.to_str()?));
    let Some(name) = name.filter(|name| name.state == PartitionState::Live) else { return Ok(None) };
    if !is_data_directory(&directory, "../")? {
        return Ok(None);
    }
    let Some(folder) = directory.parent()? else { return Ok(None) };
    let broker = Broker::of(&folder, &[], interrupt)?;
    if !broker.knows_cluster() {
        return Ok(None);
    }
    let becomes = |fate: &str, Difference { expected, found }| {
        let path = directory.path().display();
        Some(format!(
            "{path}: a broker that starts with this data directory {fate}: expected {expected}, found {found}"
        ))
    };
    Ok(match broker.assigned(&name, TopicId::read(&directory)?.as_ref()) {
        Assigned::Here | Assigned::Unknown | Assigned::WithoutMetadata(_) => None,
        Assigned::OtherId { is_stray: false, difference } => {
            becomes("does not serve the records of this partition", difference)
        }
        Assigned::WithoutId(difference) => {
            becomes(STRAY, broker.expected_id(&name.topic).unwrap_or(difference))
        }
        Assigned::OtherId { is_stray: true, difference } | Assigned::Elsewhere(difference) => {
            becomes(STRAY, difference)
        }
    })
}
