//! The directories of a data directory that a broker loads without serving them, those with which it does not
//! start, and those that it misses.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use super::finding::Finding;
use super::loading;
use super::rule::{Remedy, Rule, Severity};
use super::work::OF_THREAD;
use crate::error::Result;
use crate::fs::names::PartitionName;
use crate::fs::{Directory, is_of_link};
use crate::inspect::kafka_load::{Fate, plan_start};
use crate::segment::with_descriptors;
use crate::state::meta_properties::MetaProperties;

/// The findings about these directories. `others`: data directories, one of which may have the metadata of
/// the cluster.
pub(super) fn check(folder: &Directory, others: &[PathBuf]) -> Result<Vec<Finding>> {
    let planned = match plan_start(folder.path(), others, None, OF_THREAD) {
        // a finding about the file
        Err(error) if is_of_link(&error) => return Ok(Vec::new()),
        planned => planned?,
    };
    let mut findings = Vec::new();
    for planned in planned {
        let path = folder.path_of(&planned.name);
        match planned.fate {
            // meta.properties: it may be a folder of a writer of this library
            Fate::Refused if path.is_dir() => {
                let rule = Rule::DuplicateDirectory;
                let finding = Finding::new(rule, &path, &path, planned.expected, planned.found);
                findings.push(finding.that_stops_a_broker());
            }
            Fate::Deleted | Fate::SetAside => findings.extend(loading::failure(&path, &[])?),
            Fate::Missing | Fate::Created => {
                let rule = Rule::PartitionMissing;
                let finding = Finding::new(rule, &path, &path, planned.expected, planned.found);
                findings.push(match planned.fate {
                    Fate::Created => finding
                        .with_severity(Severity::Info)
                        .because("nothing shows that it had records: it may be a new partition"),
                    _ => finding,
                });
            }
            Fate::NoLeader if !path.is_dir() => {
                let rule = Rule::MetaPropertiesUnreadable;
                findings.push(Finding::new(rule, folder.path(), &path, planned.expected, planned.found));
            }
            // other findings are about these
            Fate::Kept
            | Fate::Metadata
            | Fate::Stray
            | Fate::Unserved
            | Fate::NoLeader
            | Fate::Refused
            | Fate::Offline => {}
        }
    }
    Ok(findings)
}

/// The findings about partitions that are in several of the folders: of one broker, or at least one of them
/// does not say of which it is. Those of the findings are left out.
pub(super) fn copies(partitions: &[&Path], found: &[Finding]) -> Vec<Finding> {
    let mut known: HashMap<_, Vec<&Path>> = HashMap::new();
    for path in partitions {
        let name = path.file_name().and_then(|name| PartitionName::parse(name.to_str()?));
        if let Some(PartitionName { topic, partition, state }) = name {
            known.entry((topic, partition, state)).or_default().push(path);
        }
    }
    let mut findings = Vec::new();
    for paths in known.values().filter(|paths| paths.len() > 1) {
        let mut folders = HashMap::new();
        for path in paths {
            folders.entry(path.parent()).or_insert(*path);
        }
        let brokers: HashSet<_> = folders.values().filter_map(|path| broker_of(path)).collect();
        let Some(first) = paths.first().filter(|_| brokers.len() < folders.len()) else { continue };
        let is_known = |path: &Path| {
            found.iter().any(|found| found.rule == Rule::DuplicateDirectory && found.file == path)
        };
        let others = paths.iter().filter(|path| path.parent() != first.parent());
        for path in others.filter(|path| !is_known(path)) {
            let expected = "one directory of the partition, or replicas of several brokers";
            let found = format!("it and {}", first.display());
            let finding = Finding::new(Rule::DuplicateDirectory, path, *path, expected, found);
            findings.push(finding.with_severity(Severity::Warning).with_remedy(COPIES));
        }
    }
    findings.sort_by(|left, right| left.file.cmp(&right.file));
    findings
}

const COPIES: Remedy =
    Remedy::manual("compare them with cordwood diff; commands that are given both read the records of both");

/// The cluster and the broker of the folder of a partition; `None` if it does not say them.
fn broker_of(partition: &Path) -> Option<(Option<String>, i32)> {
    let folder = partition.parent()?;
    let folder = with_descriptors(|| Directory::open(folder, "")).ok()?;
    let properties = MetaProperties::read(&folder).ok().flatten()?;
    Some((properties.get("cluster.id").map(str::to_owned), properties.node_id()?))
}
