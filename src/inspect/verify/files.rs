//! The names and types of the files of a partition directory.

use std::iter;

use super::super::spark_writes::SparkWrite;
use super::deleted_files;
use super::finding::Finding;
use super::rule::{Rule, Severity};
use crate::error::{Error, Result};
use crate::fs::names::{CLUSTER_METADATA_DIRECTORY, FileKind, SegmentFileName, Stage};
use crate::fs::{Directory, FileAccess, FileType, META_PROPERTIES, PartitionLocks};
use crate::log::{Log, Replacement};
use crate::state::checkpoint::{CHECKPOINT, DURABLE};
use crate::state::clean_marker::CLEAN;
use crate::state::cleaner_checkpoint::CLEANED;
use crate::state::kept_files::KEPT_FILES;
use crate::state::leader_epochs::{LEADER_EPOCH_CHECKPOINT, STAGED_CHECKPOINT};
use crate::state::offset_checkpoint::{HIGH_WATERMARKS, RECOVERY_POINTS};
use crate::state::partition_metadata::PARTITION_METADATA;
use crate::state::positions::{self, CommittedOffset, POSITIONS};
use crate::state::producer_ids::PRODUCERS;
use crate::state::truncation_count::TRUNCATIONS;
use crate::state::truncation_gaps::GAPS;
use crate::state::{COPY_JOURNAL, SPARK_SINK};
use crate::writer::{KEPT_PRODUCERS, QUARANTINE, SPARE, uncommitted_only_copies};

/// The files of a partition that are no segment's.
const KNOWN: [&str; 14] = [
    LEADER_EPOCH_CHECKPOINT,
    PARTITION_METADATA,
    CHECKPOINT,
    DURABLE,
    CLEAN,
    TRUNCATIONS,
    GAPS,
    PRODUCERS,
    KEPT_PRODUCERS,
    KEPT_FILES,
    COPY_JOURNAL,
    CLEANED,
    SPARE,
    PartitionLocks::NAME,
];

/// The findings about names and types. `log`: `None` if there is no segment.
pub(super) fn check(directory: &Directory, log: Option<&Log>) -> Result<Vec<Finding>> {
    let mut entries = directory.entries()?;
    entries.sort_unstable_by(|left, right| left.0.cmp(&right.0));
    let replacement = log.map(Log::replacement).transpose()?.unwrap_or_default();
    let partition = directory.path();
    let new = |rule, name: &str, expected: &str, found: String| {
        Finding::new(rule, partition, directory.path_of(name), expected, found)
    };
    let has_log = |base_offset: i64| {
        entries.iter().any(|(name, _)| {
            SegmentFileName::parse(name)
                .is_some_and(|other| other.base_offset == base_offset && other.kind == FileKind::Log)
        })
    };
    let needed = log.map_or(Ok(Vec::new()), |log| uncommitted_only_copies(log, &replacement))?;
    let only_copies = log.map(deleted_files::only_copies).transpose()?.unwrap_or_default();
    let mut findings = Vec::new();
    let copy = unfinished_copy(directory)?;
    let is_copy = copy.is_some();
    findings.extend(copy);
    for (name, file_type) in &entries {
        if name == POSITIONS && *file_type == FileType::Directory {
            findings.extend(damaged_positions(directory)?);
            continue;
        }
        if name == SPARK_SINK && *file_type == FileType::Directory {
            findings.extend(unfinished_writes(directory)?);
            continue;
        }
        let is_file = matches!(file_type, FileType::RegularFile | FileType::Unknown);
        let Some(parsed) = SegmentFileName::parse(name) else {
            findings.extend(other(directory, name, *file_type, is_file)?);
            continue;
        };
        if *file_type == FileType::Symlink {
            findings.push(super::linked_file(partition, directory.path_of(name)));
        } else if !is_file {
            let found = format!("a {}", type_name(*file_type));
            findings.push(new(Rule::NotAFile, name, "a regular file", found));
        } else if parsed.stage == Stage::Live {
            let is_index = !matches!(parsed.kind, FileKind::Log | FileKind::Snapshot);
            if is_index && !has_log(parsed.base_offset) {
                let found = "no .log with this base offset".to_owned();
                findings.push(new(Rule::OrphanFile, name, "an index of a segment", found));
            }
        } else if !is_copy {
            let finding = staged(directory, name, parsed.stage, &replacement);
            let finding = match needed.iter().find(|copy| copy.file.name == *name) {
                Some(copy) => finding.that_is_needed(&copy.advice),
                None => finding,
            };
            findings.push(match only_copies.iter().find(|(copy, _)| copy == name) {
                Some((_, evidence)) => finding.because(evidence),
                None => finding,
            });
        }
    }
    findings.extend(other_owner(directory, &entries)?);
    Ok(findings)
}

/// The finding about files of another user than the broker: that is the owner of a checkpoint of the data
/// directory, which a broker replaces every minute, of `meta.properties` without one, or outside of a data
/// directory of the partition. A broker opens all files for writing.
fn other_owner(directory: &Directory, entries: &[(String, FileType)]) -> Result<Option<Finding>> {
    let owner_of = |name: &str| Ok(directory.access_of(name)?.map(FileAccess::owner));
    let mut broker = None;
    for name in [RECOVERY_POINTS, HIGH_WATERMARKS, META_PROPERTIES] {
        if let Some(owner) = owner_of(&format!("../{name}"))? {
            broker = Some((owner, name));
            break;
        }
    }
    let Some(owner) = broker.map_or_else(|| owner_of("."), |(owner, _)| Ok(Some(owner)))? else {
        return Ok(None);
    };
    let mut others = Vec::new();
    for name in iter::once(".").chain(entries.iter().map(|(name, _)| name.as_str())) {
        let other = owner_of(name)?.filter(|other| *other != owner);
        others.extend(other.map(|other| (name, other)));
    }
    let Some((name, other)) = others.first() else { return Ok(None) };
    let file = if *name == "." { directory.path().to_owned() } else { directory.path_of(name) };
    let whose = broker.map_or("the directory", |(_, name)| name);
    let expected = format!("files of user {owner}, who owns {whose}");
    let found = match others.len() {
        1 => format!("a file of user {other}"),
        count => format!("a file of user {other}, the first of {count} files of other users"),
    };
    Ok(Some(Finding::new(Rule::OtherOwner, directory.path(), file, expected, found)))
}

/// The finding about the directory of a copy, of a partition or of a data directory, that is not complete.
pub(super) fn unfinished_copy(directory: &Directory) -> Result<Option<Finding>> {
    Ok(directory.identity_of(COPY_JOURNAL)?.map(|_| {
        let file = directory.path_of(COPY_JOURNAL);
        let expected = "no such file, which a copy removes when it is complete";
        Finding::new(Rule::UnfinishedCopy, directory.path(), file, expected, "an unfinished copy")
    }))
}

/// The findings about writes of the Spark sink that were interrupted: no process has the lock.
fn unfinished_writes(directory: &Directory) -> Result<Vec<Finding>> {
    let writes = SparkWrite::in_partition(directory)?;
    if writes.is_empty() || directory.is_locked() {
        return Ok(Vec::new());
    }
    let expected = "no such file, which a write of Spark removes when it ends";
    let finding = |write: SparkWrite| {
        let found = format!("the write {}, which was interrupted", write.id);
        Finding::new(Rule::SparkWriteUnfinished, directory.path(), write.file, expected, found)
    };
    Ok(writes.into_iter().map(finding).collect())
}

/// A file that is being replaced or deleted.
fn staged(directory: &Directory, name: &str, stage: Stage, replacement: &Replacement) -> Finding {
    let is_committed = replacement.committed.iter().any(|file| file.name == name);
    let (rule, found) = match stage {
        Stage::Deleted | Stage::Live => (Rule::DeletedFile, "a file to be deleted"),
        Stage::Swap if is_committed => {
            (Rule::ReplacementCommitted, "a committed replacement that was not renamed")
        }
        Stage::Swap | Stage::Cleaned => {
            (Rule::ReplacementUncommitted, "a replacement that was not committed")
        }
    };
    let finding = Finding::new(rule, directory.path(), directory.path_of(name), "no such file", found);
    match replacement.ensure_consistent(directory) {
        Err(contradiction) if rule == Rule::ReplacementCommitted => {
            finding.with_severity(Severity::Error).because(contradiction.to_string())
        }
        _ => finding,
    }
}

/// Positions of consumers that cannot be read.
fn damaged_positions(directory: &Directory) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for name in positions::names(directory)? {
        match CommittedOffset::read(directory, &name) {
            Err(Error::Corrupt { place, expected, found }) => {
                let rule = Rule::PositionUnreadable;
                findings.push(Finding::new(rule, directory.path(), place.file, expected, found));
            }
            Err(error) => findings.push(super::unreadable(directory.path(), error)?),
            Ok(_) => {}
        }
    }
    Ok(findings)
}

/// A file or directory that is no segment's.
fn other(directory: &Directory, name: &str, file_type: FileType, is_file: bool) -> Result<Option<Finding>> {
    let partition = directory.path();
    if name == QUARANTINE && file_type == FileType::Directory {
        let cut = Directory::open(&directory.path_of(name), "check the permissions")?.entries()?;
        let found = format!("{} files of bytes that a recovery has cut off", cut.len());
        let finding =
            Finding::new(Rule::Quarantined, partition, directory.path_of(name), "no such directory", found);
        return Ok(Some(finding).filter(|_| !cut.is_empty()));
    }
    if name == STAGED_CHECKPOINT && file_type == FileType::Directory {
        let file = directory.path_of(name);
        return Ok(Some(Finding::new(Rule::NotAFile, partition, file, "a regular file", "a directory")));
    }
    let is_known = KNOWN.contains(&name) || is_of_metadata(partition, name);
    if is_known && file_type == FileType::Symlink {
        return Ok(Some(super::linked_file(partition, directory.path_of(name))));
    }
    Ok((!(is_file && is_known)).then(|| foreign(directory, name, is_file)))
}

/// Whether it is a file of the metadata log of a cluster: a snapshot of it, or the state of its elections.
fn is_of_metadata(partition: &std::path::Path, name: &str) -> bool {
    let is_metadata = partition.file_name().is_some_and(|name| name == CLUSTER_METADATA_DIRECTORY);
    is_metadata && (name == "quorum-state" || name.ends_with(".checkpoint"))
}

fn foreign(directory: &Directory, name: &str, is_file: bool) -> Finding {
    // Kafka takes a file for a segment's by its suffix alone
    let is_taken = is_file
        && [".log", ".index", ".timeindex", ".txnindex", ".snapshot"]
            .iter()
            .any(|suffix| name.ends_with(suffix));
    let (rule, expected) = if is_taken {
        (Rule::ForeignSegmentName, "an offset of 20 digits before the suffix")
    } else {
        (Rule::ForeignFile, "a file of the log")
    };
    Finding::new(rule, directory.path(), directory.path_of(name), expected, format!("{name:?}"))
}

fn type_name(file_type: FileType) -> &'static str {
    match file_type {
        FileType::Directory => "directory",
        FileType::Fifo => "FIFO",
        FileType::Socket => "socket",
        _ => "special file",
    }
}
