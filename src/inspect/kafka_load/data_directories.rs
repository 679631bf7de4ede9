//! The data directories of one broker, by their `meta.properties`.

use std::path::{Path, PathBuf};

use super::start::{Fate, PlannedDirectory};
use crate::error::{Error, IoAction, Result};
use crate::fs::{Directory, META_PROPERTIES, is_of_link};
use crate::segment::with_descriptors;
use crate::state::data_directory::BOOTSTRAP_CHECKPOINT;
use crate::state::java_text;
use crate::state::meta_properties::MetaProperties;
use crate::state::offset_checkpoint::{CLEANED_OFFSETS, HIGH_WATERMARKS, LOG_START_OFFSETS, RECOVERY_POINTS};

/// Those of some data directories that may be further ones of the same broker: all but those with other ids.
///
/// One without an id, with which no broker starts, and one whose file a broker cannot load, which it takes
/// offline, may be of any broker.
///
/// # Errors
/// [`Error::LogNotFound`](crate::Error::LogNotFound); [`Error::Io`](crate::Error::Io).
pub fn other_directories(path: &Path, others: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let folder = with_descriptors(|| Directory::open(path, "give the path of a data directory"))?;
    let others = others.iter().filter(|other| is_elsewhere(&folder, other));
    Ok(others.filter(|other| !is_of_another_broker(&folder, other)).cloned().collect())
}

/// *Source*: `MetaPropertiesEnsemble.verify`.
fn is_of_another_broker(folder: &Directory, other: &Path) -> bool {
    let Ok(other) = Directory::open(other, "") else { return false };
    if not_loaded(folder).or_else(|| not_loaded(&other)).is_some() {
        return false;
    }
    let (ours, theirs) = (properties_of(folder), properties_of(&other));
    let is_other_cluster = ours.get("cluster.id").zip(theirs.get("cluster.id")).is_some_and(differ);
    is_other_cluster || ours.node_id().zip(theirs.node_id()).is_some_and(differ)
}

fn differ<T: PartialEq>((left, right): (T, T)) -> bool {
    left != right
}

/// Those that have the same ids. A broker looks at none that it cannot load.
pub(super) fn others_of_broker(folder: &Directory, others: &[PathBuf]) -> Vec<PathBuf> {
    if not_loaded(folder).is_some() {
        return Vec::new();
    }
    let properties = properties_of(folder);
    let is_other = |other: &&PathBuf| {
        is_elsewhere(folder, other)
            && is_same_broker(&properties, other)
            && Directory::open(other, "").is_ok_and(|other| not_loaded(&other).is_none())
    };
    others.iter().filter(is_other).cloned().collect()
}

fn is_elsewhere(folder: &Directory, other: &Path) -> bool {
    other.canonicalize().ok() != folder.path().canonicalize().ok()
}

/// What a broker expects of a data directory, and what it finds in one that nobody has formatted.
pub(in crate::inspect) const NOT_FORMATTED: (&str, &str) =
    ("the ids of the cluster and the broker", "no such file");

/// Fails at a symbolic link in the place of a file that a broker reads when it starts.
pub(super) fn refuse_links(folder: &Directory) -> Result<()> {
    let checkpoints = [CLEANED_OFFSETS, HIGH_WATERMARKS, LOG_START_OFFSETS, RECOVERY_POINTS];
    for name in [META_PROPERTIES, BOOTSTRAP_CHECKPOINT].into_iter().chain(checkpoints) {
        if let Err(error) = folder.open_file(name)
            && is_of_link(&error)
        {
            return Err(error);
        }
    }
    Ok(())
}

/// `meta.properties`, if a broker does not start with it or takes the directory offline: it is missing,
/// cannot be loaded, is a copy of another directory's, or has another `node.id` than the settings.
pub(super) fn wrong_properties(
    folder: &Directory,
    others: &[&Path],
    server_properties: Option<&Path>,
) -> Result<Option<PlannedDirectory>> {
    if folder.identity_of(META_PROPERTIES)?.is_none() {
        return Ok(Some(refused(NOT_FORMATTED.0, NOT_FORMATTED.1)));
    }
    let wrong = not_loaded(folder).or_else(|| copied(folder, others));
    wrong.map_or_else(|| of_another_node(folder, server_properties), |wrong| Ok(Some(wrong)))
}

/// *Source*: `MetaPropertiesEnsemble.verify`.
fn of_another_node(folder: &Directory, server_properties: Option<&Path>) -> Result<Option<PlannedDirectory>> {
    let Some(path) = server_properties else { return Ok(None) };
    let settings = std::fs::read(path).map_err(|error| Error::io(path, IoAction::Read, error))?;
    // what cannot be read is an error of those who read the settings
    let settings = java_text::properties(&settings).unwrap_or_default();
    let configured = settings.get("node.id").or_else(|| settings.get("broker.id"));
    // Kafka trims the values of its settings
    let other = configured
        .zip(properties_of(folder).node_id())
        .filter(|(configured, found)| configured.trim().parse::<i32>().ok() != Some(*found));
    Ok(other.map(|(configured, found)| {
        let expected = format!("node.id={}, as in {}", configured.trim(), path.display());
        refused(expected, format!("node.id={found}"))
    }))
}

fn refused(expected: impl Into<String>, found: impl Into<String>) -> PlannedDirectory {
    let (name, expected, found) = (META_PROPERTIES.to_owned(), expected.into(), found.into());
    PlannedDirectory { name, fate: Fate::Refused, expected, found }
}

/// `meta.properties`, if a broker cannot load it: then it takes the data directory offline.
///
/// *Source*: `MetaPropertiesEnsemble.Loader`.
pub(super) fn not_loaded(folder: &Directory) -> Option<PlannedDirectory> {
    let (expected, found) = match MetaProperties::read(folder) {
        Ok(properties) => {
            let wrong = properties?.check().err().filter(|wrong| !wrong.is_loaded)?;
            (wrong.expected.to_owned(), wrong.found)
        }
        Err(error) => ("a file that can be read".to_owned(), error.to_string()),
    };
    Some(PlannedDirectory { name: META_PROPERTIES.to_owned(), fate: Fate::Offline, expected, found })
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
    let is_same_node = properties.node_id().is_some() && properties.node_id() == other.node_id();
    cluster.is_some() && cluster == other.get("cluster.id") && is_same_node
}

/// `meta.properties` with the `directory.id` of another data directory of the broker, as after a copy of a
/// disk: then it does not start.
///
/// *Source*: `MetaPropertiesEnsemble.verify`.
fn copied(folder: &Directory, others: &[&Path]) -> Option<PlannedDirectory> {
    let properties = properties_of(folder);
    let id = properties.directory_id()?;
    let has_id = |other: &&&Path| {
        Directory::open(other, "")
            .is_ok_and(|other| properties_of(&other).directory_id().as_ref() == Some(&id))
    };
    let other = others.iter().find(has_id)?;
    let expected = "a directory.id that no other data directory of the broker has";
    Some(refused(expected, format!("{id}, also in {}", other.display())))
}
