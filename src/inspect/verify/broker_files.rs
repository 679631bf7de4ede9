//! The files with which a broker starts: `meta.properties`, `bootstrap.checkpoint`, and those of the metadata
//! log of the cluster.

use std::path::Path;

use super::finding::Finding;
use super::quorum_state;
use super::rule::{Remedy, Rule, Severity};
use super::work::OF_THREAD;
use crate::error::{Error, Result};
use crate::fs::names::{CLUSTER_METADATA_DIRECTORY, FileKind, Stage, metadata_snapshot, segment_file};
use crate::fs::{Directory, META_PROPERTIES};
use crate::inspect::internal_topics::{
    RecordFault, SnapshotFault, SnapshotFaultKind, record_fault, snapshot_fault,
};
use crate::inspect::kafka_load::NOT_FORMATTED;
use crate::segment::with_descriptors;
use crate::state::data_directory::{BOOTSTRAP_CHECKPOINT, CLEAN_SHUTDOWN};
use crate::state::meta_properties::{MetaProperties, WrongProperties};

/// The findings about these files of a data directory. `has_metadata`: whether it, or another data directory
/// that is verified, has the metadata log: of several data directories, a broker has it in one.
pub(super) fn check(directory: &Directory, has_metadata: bool) -> Result<Vec<Finding>> {
    let path = directory.path();
    let mut findings = Vec::from_iter(meta_properties(directory)?);
    let marker = directory_to_be_removed(directory, CLEAN_SHUTDOWN)?;
    findings.extend(marker.map(Finding::that_takes_a_directory_offline));
    let metadata = match with_descriptors(|| Directory::open(&path.join(CLUSTER_METADATA_DIRECTORY), "")) {
        Ok(metadata) => Some(metadata),
        Err(Error::LogNotFound { .. }) => None,
        Err(error) => {
            findings.push(super::unreadable(path, error)?.that_takes_a_directory_offline());
            None
        }
    };
    if directory.identity_of(BOOTSTRAP_CHECKPOINT)?.is_some() {
        let finding = snapshot(directory, BOOTSTRAP_CHECKPOINT)?;
        let has_records = metadata.as_ref().is_some_and(|log| has_records(log).unwrap_or(false));
        findings.extend(finding.map(|finding| {
            let is_removable = has_records && finding.rule != Rule::LinkedFile;
            if is_removable { finding.with_remedy(NOT_NEEDED) } else { finding }
        }));
        if !has_metadata {
            let file = path.join(CLUSTER_METADATA_DIRECTORY);
            let expected = "the metadata log of the cluster, here or in another data directory of the broker";
            findings.push(Finding::new(
                Rule::ClusterMetadataMissing,
                path,
                file,
                expected,
                "no such directory",
            ));
        }
    }
    if let Some(metadata) = metadata {
        findings.extend(quorum_state::check(&metadata)?);
        findings.extend(
            directory_to_be_removed(&metadata, quorum_state::STAGED)?.map(Finding::that_stops_a_broker),
        );
        findings.extend(newest_snapshot(&metadata)?);
        findings.extend(first_wrong_record(&metadata)?);
        findings.extend(wrong_names(&metadata)?);
    }
    Ok(findings)
}

const NOT_NEEDED: Remedy =
    Remedy::manual("remove the file: the broker has its metadata in __cluster_metadata-0");

/// Whether the log has a segment with bytes.
fn has_records(log: &Directory) -> Result<bool> {
    for file in log.segment_files()? {
        let is_log = file.parsed.kind == FileKind::Log && file.parsed.stage == Stage::Live;
        if is_log && log.identity_of(&file.name)?.is_some_and(|file| file.size > 0) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn meta_properties(directory: &Directory) -> Result<Option<Finding>> {
    let new = |expected: &str, found: String| {
        let file = directory.path_of(META_PROPERTIES);
        Finding::new(Rule::MetaPropertiesUnreadable, directory.path(), file, expected, found)
    };
    match MetaProperties::read(directory) {
        Ok(Some(properties)) => Ok(match properties.check() {
            Err(WrongProperties { expected, found, is_loaded: true }) => {
                Some(new(expected, found).that_stops_a_broker())
            }
            Err(WrongProperties { expected, found, is_loaded: false }) => {
                Some(new(expected, found).that_takes_a_directory_offline())
            }
            Ok(()) => None,
        }),
        Ok(None) => {
            let of_broker = [CLEAN_SHUTDOWN, BOOTSTRAP_CHECKPOINT, CLUSTER_METADATA_DIRECTORY];
            let mut is_of_broker = false;
            for name in of_broker {
                is_of_broker |= directory.identity_of(name)?.is_some();
            }
            // without these it may be a folder of a writer of this library
            Ok(is_of_broker.then(|| new(NOT_FORMATTED.0, NOT_FORMATTED.1.to_owned()).that_stops_a_broker()))
        }
        Err(error) => super::unreadable(directory.path(), error)
            .map(|found| Some(found.that_takes_a_directory_offline())),
    }
}

/// A directory with the name of a file that a broker removes when it starts. It also removes a directory, but
/// only an empty one.
///
/// *Source*: `Files.deleteIfExists`.
fn directory_to_be_removed(folder: &Directory, name: &str) -> Result<Option<Finding>> {
    let path = folder.path_of(name);
    if !path.is_dir() {
        return Ok(None);
    }
    let entries = with_descriptors(|| Directory::open(&path, "")).and_then(|directory| directory.entries());
    let found = match entries {
        Ok(entries) if entries.is_empty() => return Ok(None),
        Ok(_) => "a directory that is not empty".to_owned(),
        Err(error @ Error::Interrupted(_)) => return Err(error),
        Err(error) => error.to_string(),
    };
    Ok(Some(Finding::new(Rule::NotAFile, folder.path(), path, "a regular file", found)))
}

/// The first record of the metadata log with which a broker does not start.
fn first_wrong_record(metadata: &Directory) -> Result<Option<Finding>> {
    let fault = match record_fault(metadata, OF_THREAD) {
        Err(error @ Error::Interrupted(_)) => return Err(error),
        // a file that cannot be read is a finding of the partition
        fault => fault.ok().flatten(),
    };
    let Some(RecordFault { offset, found, is_later_version }) = fault else { return Ok(None) };
    let base = metadata.segment_bases()?.into_iter().rev().find(|base| *base <= offset).unwrap_or(offset);
    let expected = "a record of the metadata of the cluster";
    let file = metadata.path_of(&segment_file(base, FileKind::Log));
    let finding = Finding::new(Rule::MetadataRecordUnreadable, metadata.path(), file, expected, found)
        .offsets(offset, offset.checked_add(1))
        .that_stops_a_broker();
    Ok(Some(if is_later_version { of_later_version(finding) } else { finding }))
}

/// A finding about records of a type that is not known, in a file that is whole.
fn of_later_version(finding: Finding) -> Finding {
    finding
        .with_severity(Severity::Warning)
        .with_remedy(Remedy::manual("start a broker of the version that wrote it"))
        .because("the file is whole, and a broker of a later version of Kafka may know these records")
}

/// The newest snapshot of the metadata log, from which a broker starts.
fn newest_snapshot(metadata: &Directory) -> Result<Option<Finding>> {
    let entries = metadata.entries()?;
    let mut names: Vec<_> =
        entries.iter().filter_map(|(name, _)| Some((metadata_snapshot(name)?, name.as_str()))).collect();
    names.sort_unstable();
    let Some((_, newest)) = names.pop() else { return Ok(None) };
    let Some(finding) = snapshot(metadata, newest)? else { return Ok(None) };
    // the log continues every snapshot that ends within it
    let first = metadata.segment_bases()?.first().copied().unwrap_or(i64::MAX);
    let before = names.pop();
    let is_continued = match before {
        Some(((end_offset, _), name)) => end_offset >= first && snapshot(metadata, name)?.is_none(),
        None => first == 0,
    };
    // of a later version, the file is right
    let is_removable =
        is_continued && finding.severity == Severity::Error && finding.rule != Rule::LinkedFile;
    Ok(Some(if is_removable { finding.with_remedy(Remedy::manual(START_EARLIER)) } else { finding }))
}

/// Files that a broker takes for snapshots of the metadata log by their suffix alone.
///
/// *Source*: `Snapshots.parse`.
fn wrong_names(metadata: &Directory) -> Result<Vec<Finding>> {
    let names = metadata.entries()?.into_iter().map(|(name, _)| name);
    let wrong = names.filter(|name| name.ends_with(".checkpoint") && metadata_snapshot(name).is_none());
    let finding = |name: String| {
        let expected = "20 digits, a dash and 10 digits before the suffix";
        let file = metadata.path_of(&name);
        let finding =
            Finding::new(Rule::ForeignSegmentName, metadata.path(), file, expected, format!("{name:?}"));
        finding.that_stops_a_broker()
    };
    Ok(wrong.map(finding).collect())
}

const START_EARLIER: &str =
    "remove the file: the broker then starts from the snapshot before it, or from the start of the log";

/// The finding about a snapshot or `bootstrap.checkpoint`.
fn snapshot(directory: &Directory, name: &str) -> Result<Option<Finding>> {
    let partition: &Path = directory.path();
    let file = directory.path_of(name);
    match snapshot_fault(directory, name) {
        Ok(None) => Ok(None),
        Ok(Some(SnapshotFault { position, malformed, kind })) => {
            let finding = Finding::malformed(Rule::MetadataSnapshotDamaged, partition, file, malformed);
            let finding = finding.at(position, position);
            Ok(Some(match kind {
                SnapshotFaultKind::Damage => finding.that_stops_a_broker(),
                SnapshotFaultKind::Accepted => finding
                    .with_severity(Severity::Warning)
                    .because("a broker starts with what is before that position"),
                SnapshotFaultKind::LaterVersion => of_later_version(finding.that_stops_a_broker()),
            }))
        }
        Err(error) => {
            super::unreadable(partition, error).map(|found| Some(found.that_takes_a_directory_offline()))
        }
    }
}
