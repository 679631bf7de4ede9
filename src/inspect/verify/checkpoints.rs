//! The files of a data directory, and a partition's lines in them.

use std::path::Path;

use super::finding::Finding;
use super::rule::Rule;
use super::topic_ids::TopicIds;
use crate::error::Result;
use crate::fs::{Directory, META_PROPERTIES};
use crate::log::Log;
use crate::state::offset_checkpoint::{
    CLEANED_OFFSETS, HIGH_WATERMARKS, LOG_START_OFFSETS, OffsetCheckpoint, RECOVERY_POINTS,
};

/// The checkpoints of one data directory, and the findings about the files themselves.
#[derive(Debug)]
pub(super) struct Checkpoints {
    recovery_points: OffsetCheckpoint,
    log_start_offsets: OffsetCheckpoint,
    high_watermarks: OffsetCheckpoint,
    topic_ids: TopicIds,
    pub(super) findings: Vec<Finding>,
}

/// The maximum size of `meta.properties`, bytes.
const MAX_BYTES: u64 = 64 << 10;

impl Checkpoints {
    /// Reads the files at `up`: `""` in the data directory itself, `"../"` from a partition, then with the topic ids of all
    /// partitions. They are read before the segments: a running broker writes its offsets after the records.
    pub(super) fn read(directory: &Directory, up: &str) -> Result<Self> {
        let mut findings = Vec::new();
        let path = if up.is_empty() {
            directory.path()
        } else {
            directory.path().parent().unwrap_or(Path::new("/"))
        };
        let mut read = |name: &str| -> Result<OffsetCheckpoint> {
            let file = path.join(name);
            match OffsetCheckpoint::read(directory, &format!("{up}{name}")) {
                Ok(Ok(checkpoint)) => Ok(checkpoint),
                Ok(Err(wrong)) => {
                    let expected = "a version, a count, and lines of a topic, a partition and an offset";
                    findings.push(Finding::new(Rule::CheckpointUnreadable, path, file, expected, wrong));
                    Ok(OffsetCheckpoint::default())
                }
                Err(error) => {
                    findings.push(super::unreadable(path, error)?);
                    Ok(OffsetCheckpoint::default())
                }
            }
        };
        let recovery_points = read(RECOVERY_POINTS)?;
        let log_start_offsets = read(LOG_START_OFFSETS)?;
        let high_watermarks = read(HIGH_WATERMARKS)?;
        read(CLEANED_OFFSETS)?;
        match directory.read_small(&format!("{up}{META_PROPERTIES}"), MAX_BYTES) {
            Ok(Some(text)) => {
                if let Err((expected, found)) = check_meta_properties(&text) {
                    let file = path.join(META_PROPERTIES);
                    findings.push(Finding::new(Rule::MetaPropertiesUnreadable, path, file, expected, found));
                }
            }
            Ok(None) => {}
            Err(error) => findings.push(super::unreadable(path, error)?),
        }
        let topic_ids = match directory.parent()?.filter(|_| !up.is_empty()) {
            Some(data_directory) => TopicIds::read(&data_directory)?,
            None => TopicIds::default(),
        };
        Ok(Self { recovery_points, log_start_offsets, high_watermarks, topic_ids, findings })
    }

    /// Compares the partition's lines with its log.
    pub(super) fn of_partition(&self, log: &Log, directory: &Directory) -> Result<Vec<Finding>> {
        let (Some(topic), Some(partition)) = (log.topic(), log.partition()) else { return Ok(Vec::new()) };
        let end = log.log_end_offset()?;
        let first = log.segments().first().map_or(0, |first| first.base_offset());
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
                findings.push(new(Rule::CheckpointUnreadable, "an offset, 0 or above".to_owned()));
            } else if offset > end {
                findings.push(new(rule, format!("an offset up to the log end offset, {end}")));
            } else if rule == Rule::LogStartBeyondEnd && offset < first {
                let expected = format!("an offset at or above {first}, where the first segment begins");
                findings.push(new(Rule::CheckpointUnreadable, expected).with_severity(super::Severity::Info));
            }
        }
        Ok(findings)
    }
}

/// Checks what a broker needs of `meta.properties`: its version, the cluster's id and the broker's.
///
/// *Source*: `MetaProperties`.
fn check_meta_properties(text: &[u8]) -> std::result::Result<(), (&'static str, String)> {
    let text = std::str::from_utf8(text).map_err(|error| ("text in UTF-8", error.to_string()))?;
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with(['#', '!']));
    let mut properties = std::collections::BTreeMap::new();
    for line in lines {
        let Some((name, value)) = line.split_once('=') else {
            return Err(("lines of a name, = and a value", format!("{line:?}")));
        };
        properties.insert(name.trim(), value.trim());
    }
    let number = |name: &str| properties.get(name).map(|value| value.parse::<i32>());
    let id = match number("version") {
        None | Some(Ok(0)) => "broker.id",
        Some(Ok(1)) => "node.id",
        _ => {
            return Err(("version 0 or 1", format!("version {:?}", properties.get("version"))));
        }
    };
    match number(id) {
        Some(Ok(0..)) => {}
        // version 0 may have been written before the broker had an id
        None if id == "broker.id" => {}
        _ => return Err(("the number of the broker", format!("{id} {:?}", properties.get(id)))),
    }
    let cluster = properties.get("cluster.id");
    if cluster.is_some_and(|id| id.is_empty()) || cluster.is_none() && id == "node.id" {
        return Err(("cluster.id with the id of the cluster", format!("cluster.id {cluster:?}")));
    }
    Ok(())
}
