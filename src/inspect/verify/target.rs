//! What a path to be verified stands for: a partition, all partitions of a data directory, or one segment.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use super::finding::Finding;
use super::rule::Rule;
use crate::dir::{DirectoryEntry, PathKind, classify};
use crate::error::{Error, Result};
use crate::fs::names::{PartitionName, PartitionState, Stage};
use crate::fs::{Directory, FileType};
use crate::segment::with_descriptors;
use crate::state::COPY_JOURNAL;

/// A partition to be verified.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Target {
    /// Its directory.
    pub(super) path: PathBuf,
    /// The base offset of the only segment to be verified; `None`: all, and what is beside them.
    pub(super) only: Option<i64>,
}

/// The partitions of some paths, each once, in the order of the paths, and findings about the data
/// directories.
///
/// # Errors
/// [`Error::Config`] for a path that is none of these; [`Error::LogNotFound`]; [`Error::Io`].
pub(super) fn targets(paths: &[PathBuf]) -> Result<(Vec<Target>, Vec<Finding>, Vec<PathBuf>)> {
    let (mut targets, mut findings, mut data_directories) = (Vec::new(), Vec::new(), Vec::new());
    let mut known = HashSet::new();
    for path in paths {
        let path = std::path::absolute(path)
            .map_err(|error| Error::io(path, crate::error::IoAction::Resolve, error))?;
        let info = classify(&path)?;
        match info.kind {
            PathKind::DataDirectory => {
                if !known.insert(path.canonicalize().unwrap_or_else(|_| path.clone())) {
                    continue;
                }
                let (found, foreign) = partitions(&path)?;
                targets.extend(found);
                findings.extend(foreign);
                data_directories.push(path);
            }
            PathKind::Partition => targets.push(Target { path, only: None }),
            PathKind::Other if is_unfinished_copy(&path)? => targets.push(Target { path, only: None }),
            PathKind::Segment(_) if info.stage == Some(Stage::Live) && info.base_offset.is_some() => {
                let directory = path.parent().unwrap_or(Path::new("/")).to_owned();
                targets.push(Target { path: directory, only: info.base_offset });
            }
            _ => {
                let expected = "a partition directory, a data directory, or the .log file of a segment, whose name is an offset of 20 digits";
                return Err(Error::config("path", expected, path.display().to_string()));
            }
        }
    }
    let mut known = HashSet::new();
    targets.retain(|target: &Target| known.insert((resolved(&target.path), target.only)));
    Ok((targets, findings, data_directories))
}

/// The path without symbolic links but that of the directory itself, whose name counts.
fn resolved(path: &Path) -> PathBuf {
    let (folder, name) = (path.parent().and_then(|parent| parent.canonicalize().ok()), path.file_name());
    folder.zip(name).map_or_else(|| path.to_owned(), |(folder, name)| folder.join(name))
}

/// Whether it is the directory of a copy that has no segment yet.
fn is_unfinished_copy(path: &Path) -> Result<bool> {
    match with_descriptors(|| Directory::open(path, "give the path of a partition directory")) {
        Ok(directory) => Ok(directory.identity_of(COPY_JOURNAL)?.is_some()),
        Err(Error::LogNotFound { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

/// The live partitions of a data directory and those that are being moved, and findings about other
/// directories.
fn partitions(path: &Path) -> Result<(Vec<Target>, Vec<Finding>)> {
    let directory = with_descriptors(|| Directory::open(path, "give the path of a data directory"))?;
    let mut entries = directory.list_until_stable(|directory| {
        let mut entries = directory.entries()?;
        entries.retain(|(name, file_type)| {
            match file_type {
                FileType::Directory => true,
                // Kafka follows it
                FileType::Symlink => directory.path_of(name).is_dir(),
                _ => false,
            }
        });
        entries.sort_unstable_by(|left, right| left.0.cmp(&right.0));
        Ok(entries)
    })?;
    let (mut found, mut foreign) = (Vec::new(), Vec::new());
    entries.sort_by_key(|(name, _)| PartitionName::parse(name).map(|name| (name.topic, name.partition)));
    for (name, _) in entries {
        match DirectoryEntry::of(&name, true) {
            DirectoryEntry::Partition(PartitionName {
                state: PartitionState::Live | PartitionState::Future,
                ..
            }) => {
                found.push(Target { path: directory.path_of(&name), only: None });
            }
            DirectoryEntry::Partition(_) | DirectoryEntry::Known => {}
            DirectoryEntry::Foreign => {
                let expected = "the name of a topic, a dash and a number";
                let file = directory.path_of(&name);
                let finding = Finding::new(Rule::ForeignDirectory, path, file, expected, format!("{name:?}"));
                foreign.push(finding.that_stops_a_broker());
            }
        }
    }
    Ok((found, foreign))
}
