//! The directories of a data directory that a broker loads without serving them, those with which it does not start, and those that it
//! misses.

use std::path::PathBuf;

use super::finding::Finding;
use super::loading;
use super::rule::{Rule, Severity};
use super::work::OF_THREAD;
use crate::error::Result;
use crate::fs::Directory;
use crate::inspect::kafka_load::{Fate, plan_start};

/// The findings about these directories. `others`: data directories, one of which may have the metadata of the cluster.
pub(super) fn check(folder: &Directory, others: &[PathBuf]) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for planned in plan_start(folder.path(), others, OF_THREAD)? {
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
            Fate::Kept | Fate::Metadata | Fate::Stray | Fate::Unserved | Fate::Refused => {}
        }
    }
    Ok(findings)
}
