//! `partition.metadata`, and the files of a [`LogWriter`](crate::writer::LogWriter).

use super::deleted_files;
use super::finding::Finding;
use super::rule::{Remedy, Rule, Severity};
use crate::error::{Error, Result};
use crate::fs::Directory;
use crate::fs::names::CLUSTER_METADATA_DIRECTORY;
use crate::log::Log;
use crate::state::checkpoint::{CHECKPOINT, Checkpoint, DURABLE, DurableOffsetFile};
use crate::state::clean_marker::{CLEAN, CleanMarker};
use crate::state::data_directory::DataDirectory;
use crate::state::leader_epochs::LEADER_EPOCH_CHECKPOINT;
use crate::state::partition_metadata::{PARTITION_METADATA, TopicId};
use crate::state::producer_ids::{PRODUCERS, ProducerIds};
use crate::state::truncation_count::{self, TRUNCATIONS};
use crate::writer::{KEPT_PRODUCERS, kept_producers, refuse_missing_start, refuse_remote_start};

/// What the small files said before the segments were listed: a writer writes them after the records.
#[derive(Debug)]
pub(super) struct WriterFiles {
    /// Offsets up to which the log was synced, and the files.
    synced: Vec<(i64, &'static str)>,
    /// Of a log that is not being emptied.
    checkpoint: Option<Checkpoint>,
    is_emptied: bool,
    pub(super) findings: Vec<Finding>,
}

/// Whether the cluster's metadata, which has the ids of its topics, are in the same data directory.
fn is_of_a_cluster(directory: &Directory) -> Result<bool> {
    let is_metadata = directory.path().ends_with(CLUSTER_METADATA_DIRECTORY);
    Ok(!is_metadata && directory.identity_of(&format!("../{CLUSTER_METADATA_DIRECTORY}"))?.is_some())
}

impl WriterFiles {
    pub(super) fn read(directory: &Directory) -> Result<Self> {
        let mut found =
            Self { synced: Vec::new(), checkpoint: None, is_emptied: false, findings: Vec::new() };
        let partition = directory.path();
        match Checkpoint::read(directory) {
            Ok(checkpoint) => {
                found.is_emptied = checkpoint.is_some_and(|checkpoint| checkpoint.starting_at.is_some());
                let checkpoint = checkpoint.filter(|checkpoint| checkpoint.starting_at.is_none());
                found.synced.extend(checkpoint.map(|checkpoint| (checkpoint.recovery_point, CHECKPOINT)));
                found.checkpoint = checkpoint;
            }
            Err(error) => {
                found.damaged(Rule::WriterFileUnreadable, directory, CHECKPOINT, error)?;
                let unreadable = found.findings.pop().map(|finding| {
                    // unlike the others, this file is needed
                    finding
                        .with_severity(Severity::Error)
                        .with_remedy(Remedy::manual("restore the file, or remove it"))
                });
                found.findings.extend(unreadable);
            }
        }
        match DurableOffsetFile::read(directory) {
            Ok(Some(offset)) => found.synced.push((offset, DURABLE)),
            Ok(None) => found.unless_missing(directory, DURABLE, "an offset and its checksum")?,
            Err(error) => found.findings.push(super::unreadable(partition, error)?),
        }
        match CleanMarker::read(directory) {
            Ok(Some(marker)) => {
                if let Err(error) = marker.refuse_missing(directory) {
                    found.damaged(Rule::NotAsClosed, directory, CLEAN, error)?;
                }
            }
            Ok(None) => found.unless_missing(directory, CLEAN, "sizes of files, with a valid checksum")?,
            Err(error) => found.findings.push(super::unreadable(partition, error)?),
        }
        found.topic_id(directory)?;
        if let Err(error) = ProducerIds::read(directory) {
            found.damaged(Rule::ProducerNamesUnreadable, directory, PRODUCERS, error)?;
        }
        if let Err(error) = kept_producers(directory) {
            found.damaged(Rule::ProducerNamesUnreadable, directory, KEPT_PRODUCERS, error)?;
        }
        if let Some(count) = truncation_count::open(directory)?
            && count.size() % 2 == 1
            && !directory.is_locked()
        {
            let text = format!("an odd count, {}", count.size());
            let path = directory.path_of(TRUNCATIONS);
            let expected = "an even number of bytes: each truncation adds two";
            found.findings.push(Finding::new(Rule::TruncationInterrupted, partition, path, expected, text));
        }
        Ok(found)
    }

    fn topic_id(&mut self, directory: &Directory) -> Result<()> {
        match TopicId::read(directory) {
            Err(error) => {
                self.damaged(Rule::PartitionMetadataUnreadable, directory, PARTITION_METADATA, error)?;
            }
            Ok(None) if is_of_a_cluster(directory)? => {
                let expected = "the topic id, by which the cluster knows the partition";
                let (path, rule) = (directory.path_of(PARTITION_METADATA), Rule::PartitionMetadataMissing);
                self.findings.push(Finding::new(rule, directory.path(), path, expected, "no such file"));
            }
            Ok(_) => {}
        }
        Ok(())
    }

    /// The findings, after the log was opened.
    pub(super) fn compare(mut self, log: &Log) -> Result<Vec<Finding>> {
        let end = log.log_end_offset()?;
        let (directory, segments) = (log.directory(), log.segments().iter().cloned().collect::<Vec<_>>());
        let data_directory = DataDirectory::with_lines_of(directory)?;
        // a log that is being emptied has lost its records on purpose
        if !self.is_emptied {
            let of_start = if self.checkpoint.is_some() { CHECKPOINT } else { LEADER_EPOCH_CHECKPOINT };
            if let Err(error) = refuse_missing_start(log, self.checkpoint, data_directory.as_ref()) {
                self.damaged(Rule::LostStart, directory, of_start, error)?;
                if self.checkpoint.is_none() && data_directory.is_none() {
                    self.findings = may_be_remote(std::mem::take(&mut self.findings));
                }
                let last = self
                    .findings
                    .pop()
                    .map(|finding| deleted_files::beside(finding, log, &(0..i64::MAX)))
                    .transpose()?;
                self.findings.extend(last);
            } else if let Some(start) = log.unfinished_deletion(data_directory.as_ref())? {
                let remedy = match self.checkpoint {
                    _ if !deleted_files::can_be_renamed(log)? => READ_ELSEWHERE,
                    Some(_) => TAKE_BACK_FROM_WRITER,
                    None => TAKE_BACK,
                };
                let finding = in_deletion(log, start).with_remedy(remedy);
                self.findings.push(deleted_files::beside(finding, log, &(0..i64::MAX))?);
            }
        }
        if let Err(error) = refuse_remote_start(directory, &segments, data_directory.as_ref()) {
            self.damaged(Rule::RemoteStart, directory, LEADER_EPOCH_CHECKPOINT, error)?;
        }
        let Self { synced, mut findings, .. } = self;
        for (offset, name) in synced.into_iter().filter(|(offset, _)| *offset > end) {
            let expected = format!("a log end offset of at least {offset}, up to which the log was synced");
            let path = log.path().join(name);
            let finding =
                Finding::new(Rule::LostEnd, log.path(), path, expected, format!("log end offset {end}"));
            findings.push(finding.offsets(end, Some(offset)));
        }
        Ok(findings)
    }

    fn damaged(&mut self, rule: Rule, directory: &Directory, name: &str, error: Error) -> Result<()> {
        self.findings.push(match error {
            Error::Corrupt { expected, found, .. } => {
                Finding::new(rule, directory.path(), directory.path_of(name), expected, found)
            }
            error => super::unreadable(directory.path(), error)?,
        });
        Ok(())
    }

    fn unless_missing(&mut self, directory: &Directory, name: &str, expected: &str) -> Result<()> {
        if let Some(file) = directory.identity_of(name)? {
            let found = format!("{} other bytes", file.size);
            let path = directory.path_of(name);
            let rule = Rule::WriterFileUnreadable;
            self.findings.push(Finding::new(rule, directory.path(), path, expected, found));
        }
        Ok(())
    }
}

/// The findings, the last of which is about a start that only the leader epochs show. Beside the checkpoints
/// of its data directory, the log of a tiered topic is known by them ([`Rule::RemoteStart`]).
fn may_be_remote(mut findings: Vec<Finding>) -> Vec<Finding> {
    let last = findings.pop().map(|finding| match finding.rule {
        Rule::LostStart => finding.because(LIKE_REMOTE).with_remedy(UNLESS_REMOTE),
        _ => finding,
    });
    findings.extend(last);
    findings
}

const LIKE_REMOTE: &str = "a log of a topic with remote.storage.enable=true that was copied without its data directory looks the same, and \
     has lost nothing";

const UNLESS_REMOTE: Remedy = Remedy::manual(
    "of a topic with remote.storage.enable=true, nothing: its start is in remote storage, and a repair would remove the leader epochs of \
     those offsets. Otherwise restore the first segments from a copy, or continue without them: cordwood repair with --policy salvage",
);

/// The finding about a log whose first segments are in `.deleted` files alone.
fn in_deletion(log: &Log, start: i64) -> Finding {
    let first = log.segments().first().map_or(start, |first| first.base_offset());
    let path = log.path().join(LEADER_EPOCH_CHECKPOINT);
    let expected = format!("a segment with offset {start}, with which the file begins");
    let found = format!("these offsets in files named .deleted, and the first segment at offset {first}");
    let finding = Finding::new(Rule::LostStart, log.path(), path, expected, found);
    let finding = finding.offsets(start, Some(first)).with_severity(Severity::Warning);
    finding.because("a broker that stops while it deletes segments leaves this")
}

const TAKE_BACK: Remedy = Remedy::manual(
    "nothing, if a broker was deleting the segments; otherwise remove the suffix .deleted from the names of their files, which takes the \
     records back",
);

/// Not all of the files can be segments again.
const READ_ELSEWHERE: Remedy = Remedy::manual(
    "nothing, if a broker was deleting the segments; otherwise copy the files named .deleted to a directory of their own, without this suffix, \
     and read their records there",
);

/// The writer has noted the log start offset that it has found.
const TAKE_BACK_FROM_WRITER: Remedy = Remedy::manual(
    "nothing, if a broker was deleting the segments; otherwise, to take the records back, remove the suffix .deleted from the names of their \
     files, then .cordwood.checkpoint, .cordwood.clean and the partition's line in log-start-offset-checkpoint, if there are any",
);
