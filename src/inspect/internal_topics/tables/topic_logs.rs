//! The logs of an internal topic, and their records.

use std::path::Path;
use std::sync::Arc;

use crate::dir::{LogDir, PathKind, classify};
use crate::error::{Error, Result};
use crate::log::{DamagedRange, Log, LogOptions, OnDamage, ScanOptions, ScanStep};
use crate::record::{BatchHeader, RecordRef};

/// How a table is read.
#[derive(Debug, Clone, Default)]
pub struct TableOptions {
    /// How the logs are opened.
    pub log: LogOptions,
    /// What to do with damage. With [`OnDamage::Report`], a damaged range is also a row of the table, with its text as the error.
    pub on_damage: OnDamage,
    /// Only these groups (or transactional ids); `None`: all.
    pub groups: Option<Vec<String>>,
    /// Only these topics; `None`: all.
    pub topics: Option<Vec<String>>,
}

impl TableOptions {
    pub(super) fn has_group(&self, group: &str) -> bool {
        self.groups.as_ref().is_none_or(|groups| groups.iter().any(|wanted| wanted == group))
    }

    pub(super) fn has_topic(&self, topic: &str) -> bool {
        self.topics.as_ref().is_none_or(|topics| topics.iter().any(|wanted| wanted == topic))
    }
}

/// The partitions of a topic in a data directory, or one of them.
pub(super) struct TopicLogs {
    pub(super) logs: Vec<Log>,
    /// The data directory of the logs, if there is one.
    pub(super) directory: Option<LogDir>,
}

impl TopicLogs {
    /// Opens the logs of `topic` at a data directory or a partition directory.
    ///
    /// # Errors
    /// [`Error::Config`] if the path is a partition of another topic, or a data directory without one of this topic; as
    /// [`Log::open`] and [`LogDir::open`].
    pub(super) fn open(path: &Path, topic: &str, options: &LogOptions) -> Result<Self> {
        let wrong = |found: String| {
            let expected = format!("a partition directory of {topic}, or a data directory with one");
            Err(Error::config("path", expected, found))
        };
        if classify(path)?.kind == PathKind::DataDirectory {
            let directory = Arc::new(LogDir::open(path, options.clone(), &[])?);
            let topics = [topic.to_owned()];
            let logs = Arc::clone(&directory).logs(Some(&topics)).collect::<Result<Vec<_>>>()?;
            if logs.is_empty() {
                return wrong(format!("{}, which has none", directory.path().display()));
            }
            return Ok(Self { logs, directory: Arc::into_inner(directory) });
        }
        let log = Log::open(path, options.clone())?;
        if log.topic().is_some_and(|found| found != topic) {
            return wrong(format!("{}", log.path().display()));
        }
        // the partition may be a copy without a data directory around it
        let directory = log
            .path()
            .parent()
            .filter(|parent| classify(parent).is_ok_and(|parent| parent.kind == PathKind::DataDirectory))
            .and_then(|parent| LogDir::open(parent, options.clone(), &[]).ok());
        Ok(Self { logs: vec![log], directory })
    }
}

/// A record of a log, or a damaged range that is reported at its place.
pub(super) enum Entry<'a> {
    Record(&'a BatchHeader, RecordRef<'a>),
    Damage(DamagedRange),
}

/// Calls a function for each record of a log, control records included. Returns the damaged ranges.
pub(super) fn for_each_record(
    log: &Log,
    on_damage: OnDamage,
    mut take: impl FnMut(Entry<'_>),
) -> Result<Vec<DamagedRange>> {
    let options = ScanOptions { include_control: true, on_damage, ..ScanOptions::default() };
    let mut scan = log.scan(options)?;
    while let Some(step) = scan.next_step()? {
        match step {
            ScanStep::Batch(batch) => {
                while let Some(record) = scan.next_record()? {
                    take(Entry::Record(&batch.header, record));
                }
            }
            ScanStep::DamagedRange(range) => take(Entry::Damage(range)),
        }
    }
    Ok(scan.damaged_ranges().to_vec())
}

/// A damaged range as the text of an error.
pub(super) fn damage_text(range: &DamagedRange) -> String {
    format!("{} is damaged at position {}: {}", range.file.display(), range.start_position, range.reason)
}
