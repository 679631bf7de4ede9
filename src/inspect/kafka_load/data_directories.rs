//! The data directories of one broker, by their `meta.properties`.

use std::path::{Path, PathBuf};

use super::start::{Fate, PlannedDirectory};
use crate::error::Result;
use crate::fs::{Directory, META_PROPERTIES};
use crate::segment::with_descriptors;
use crate::state::meta_properties::MetaProperties;

/// Those of some data directories that are further ones of the same broker.
///
/// # Errors
/// [`Error::LogNotFound`](crate::Error::LogNotFound); [`Error::Io`](crate::Error::Io).
pub fn other_directories(path: &Path, others: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let folder = with_descriptors(|| Directory::open(path, "give the path of a data directory"))?;
    Ok(others_of_broker(&folder, others))
}

pub(super) fn others_of_broker(folder: &Directory, others: &[PathBuf]) -> Vec<PathBuf> {
    let properties = properties_of(folder);
    let place = folder.path().canonicalize().ok();
    let is_other =
        |other: &&PathBuf| other.canonicalize().ok() != place && is_same_broker(&properties, other);
    others.iter().filter(is_other).cloned().collect()
}

/// A file that cannot be read is another finding.
pub(super) fn properties_of(folder: &Directory) -> MetaProperties {
    MetaProperties::read(folder).ok().flatten().unwrap_or_default()
}

/// Whether another data directory is of the broker with these properties.
pub(super) fn is_same_broker(properties: &MetaProperties, other: &Path) -> bool {
    let Ok(other) = Directory::open(other, "") else { return false };
    let other = properties_of(&other);
    let cluster = properties.get("cluster.id");
    cluster.is_some() && cluster == other.get("cluster.id") && is_same_node(properties, &other)
}

fn is_same_node(properties: &MetaProperties, other: &MetaProperties) -> bool {
    properties.node_id().is_some() && properties.node_id() == other.node_id()
}

/// `meta.properties` with another cluster than that of another data directory with the same node: a broker
/// with both does not start.
///
/// *Source*: `MetaPropertiesEnsemble.verify`.
pub(super) fn of_two_clusters(folder: &Directory, others: &[PathBuf]) -> Option<PlannedDirectory> {
    let properties = properties_of(folder);
    let cluster = properties.get("cluster.id")?;
    let another = |path: &PathBuf| {
        let theirs = properties_of(&Directory::open(path, "").ok()?);
        let id = theirs.get("cluster.id").filter(|id| *id != cluster)?;
        is_same_node(&properties, &theirs).then(|| format!("{cluster}, and {id} in {}", path.display()))
    };
    let found = others.iter().find_map(another)?;
    Some(PlannedDirectory {
        name: META_PROPERTIES.to_owned(),
        fate: Fate::Refused,
        expected:
            "one cluster.id in all data directories of a broker (verify those of several clusters one by one)"
                .to_owned(),
        found,
    })
}

/// `meta.properties` with the `directory.id` of another data directory of the broker, as after a copy of a
/// disk: then it does not start.
///
/// *Source*: `MetaPropertiesEnsemble.verify`.
pub(super) fn copied(folder: &Directory, others: &[&Path]) -> Option<PlannedDirectory> {
    let properties = properties_of(folder);
    let id = properties.get("directory.id")?;
    let has_id = |other: &&&Path| {
        Directory::open(other, "").is_ok_and(|other| properties_of(&other).get("directory.id") == Some(id))
    };
    let other = others.iter().find(has_id)?;
    Some(PlannedDirectory {
        name: META_PROPERTIES.to_owned(),
        fate: Fate::Refused,
        expected: "a directory.id that no other data directory of the broker has".to_owned(),
        found: format!("{id}, also in {}", other.display()),
    })
}
