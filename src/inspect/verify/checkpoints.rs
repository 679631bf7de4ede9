//! The files of a data directory, and a partition's lines in them.

use std::path::{Path, PathBuf};

use super::finding::Finding;
use super::rule::{Remedy, Rule, Severity};
use super::topic_ids::TopicIds;
use crate::error::Result;
use crate::fs::Directory;
use crate::inspect::kafka_load::has_partitions;
use crate::log::Log;
use crate::segment::with_descriptors;
use crate::state::checkpoint_file::{WrongText, WrongTextKind};
use crate::state::offset_checkpoint::{
    CLEANED_OFFSETS, HIGH_WATERMARKS, LOG_START_OFFSETS, OffsetCheckpoint, RECOVERY_POINTS,
};

/// What to do about a checkpoint that cannot be read. Only log start offsets are nowhere else.
fn remedy(name: &str) -> Remedy {
    Remedy::manual(match name {
        LOG_START_OFFSETS => {
            "restore the file from a copy, or write it again: a line 0, a line with the number of the lines after it, and a line of \
             topic, partition and log start offset for each partition whose first segment has deleted records; without its line a \
             broker returns them again"
        }
        RECOVERY_POINTS => "remove the file: after a crash the broker then recovers whole logs",
        HIGH_WATERMARKS => "remove the file: the broker finds the high watermarks again",
        _ => "remove the file: the cleaner then begins at the start of each log",
    })
}

/// A finding about a text that takes no data directory offline, with what a broker does.
fn with_effect(finding: Finding, name: &str) -> Finding {
    match name {
        RECOVERY_POINTS => {
            finding.with_severity(Severity::Warning).because("all recovery points of the file count as 0")
        }
        LOG_START_OFFSETS => finding.because(
            "a broker starts, all log start offsets are those of the first segments, and deleted records can be read again",
        ),
        HIGH_WATERMARKS => finding.because("a broker starts, but none of its partitions gets a leader"),
        _ => finding
            .with_severity(Severity::Warning)
            .because("a broker starts, but its cleaner ends, and nothing is compacted"),
    }
}

const NOT_READ: &str = "a broker without partitions does not read it, and starts";

fn path_of(directory: &Directory, up: &str) -> PathBuf {
    let partition = directory.path();
    let folder = if up.is_empty() { partition } else { partition.parent().unwrap_or(Path::new("/")) };
    folder.to_owned()
}

/// Whether a broker reads the high watermarks of a data directory.
fn are_high_watermarks_read(folder: &Path) -> Result<bool> {
    has_partitions(&with_descriptors(|| Directory::open(folder, "give the path of a data directory"))?)
}

/// The checkpoints of one data directory, and the findings about the files themselves.
#[derive(Debug)]
pub(super) struct Checkpoints {
    recovery_points: OffsetCheckpoint,
    log_start_offsets: OffsetCheckpoint,
    high_watermarks: OffsetCheckpoint,
    topic_ids: TopicIds,
    pub(super) findings: Vec<Finding>,
}

impl Checkpoints {
    /// Reads the files at `up`: `""` in the data directory itself, `"../"` from a partition, then with the
    /// topic ids of all partitions. They are read before the segments: a running broker writes its
    /// offsets after the records. `others`: data directories, one of which may have the metadata of the
    /// cluster.
    pub(super) fn read(directory: &Directory, up: &str, others: &[PathBuf]) -> Result<Self> {
        let mut findings = Vec::new();
        let path = path_of(directory, up);
        let mut read = |name: &str| -> Result<OffsetCheckpoint> {
            let file = path.join(name);
            match OffsetCheckpoint::read(directory, &format!("{up}{name}")) {
                Ok(Ok(checkpoint)) => Ok(checkpoint),
                Ok(Err(WrongText { found, kind })) => {
                    let expected = "a version, a count, and lines of a topic, a partition and an offset";
                    let finding = Finding::new(Rule::CheckpointUnreadable, &path, file, expected, found);
                    let finding = finding.with_remedy(remedy(name));
                    findings.push(if name == HIGH_WATERMARKS && !are_high_watermarks_read(&path)? {
                        finding.with_severity(Severity::Warning).because(NOT_READ)
                    } else if kind != WrongTextKind::Format {
                        with_effect(finding, name)
                    } else {
                        finding.that_takes_a_directory_offline()
                    });
                    Ok(OffsetCheckpoint::default())
                }
                Err(error) => {
                    findings.push(super::unreadable(&path, error)?.that_takes_a_directory_offline());
                    Ok(OffsetCheckpoint::default())
                }
            }
        };
        let recovery_points = read(RECOVERY_POINTS)?;
        let log_start_offsets = read(LOG_START_OFFSETS)?;
        let high_watermarks = read(HIGH_WATERMARKS)?;
        read(CLEANED_OFFSETS)?;
        let topic_ids = match directory.parent()?.filter(|_| !up.is_empty()) {
            Some(data_directory) => TopicIds::read(&data_directory, others)?,
            None => TopicIds::default(),
        };
        Ok(Self { recovery_points, log_start_offsets, high_watermarks, topic_ids, findings })
    }

    /// Compares the partition's lines with its log.
    pub(super) fn of_partition(&self, log: &Log, directory: &Directory) -> Result<Vec<Finding>> {
        let (Some(topic), Some(partition)) = (log.topic(), log.partition()) else { return Ok(Vec::new()) };
        let end = log.log_end_offset()?;
        let mut findings = Vec::from_iter(self.topic_ids.of_partition(directory));
        let checks = [
            (&self.recovery_points, RECOVERY_POINTS, Rule::RecoveryPointBeyondEnd),
            (&self.log_start_offsets, LOG_START_OFFSETS, Rule::LogStartBeyondEnd),
            (&self.high_watermarks, HIGH_WATERMARKS, Rule::HighWatermarkBeyondEnd),
        ];
        for (checkpoint, name, rule) in checks {
            let Some(offset) = checkpoint.offset_of(topic, partition) else { continue };
            let file = directory.path().parent().unwrap_or(Path::new("/")).join(name);
            let new = |rule, expected: String| {
                let found = format!("offset {offset} for {topic}-{partition}");
                Finding::new(rule, log.path(), &file, expected, found)
                    .offsets(end.min(offset), Some(end.max(offset)))
            };
            if offset < 0 {
                findings.push(new(Rule::CheckpointOffsetNegative, "an offset, 0 or above".to_owned()));
            } else if offset > end {
                findings.push(new(rule, format!("an offset up to the log end offset, {end}")));
            }
        }
        Ok(findings)
    }
}
