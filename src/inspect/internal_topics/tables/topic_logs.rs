//! The logs of an internal topic, and their records.

use std::path::Path;
use std::sync::Arc;

use super::errors::LogErrors;
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
pub(super) enum TopicLogs {
    /// All partitions of the topic.
    Directory { directory: Arc<LogDir>, topic: &'static str },
    /// One of them, and its data directory: the partition may be a copy without one.
    Log { log: Log, directory: Option<Arc<LogDir>> },
}

impl TopicLogs {
    /// Finds the logs of `topic` at a data directory or a partition directory.
    ///
    /// # Errors
    /// [`Error::Config`] if the path is a partition of another topic, or a data directory without one of this topic; as
    /// [`Log::open`] and [`LogDir::open`].
    pub(super) fn open(path: &Path, topic: &'static str, options: &LogOptions) -> Result<Self> {
        let wrong = |found: String| {
            let expected = format!("a partition directory of {topic}, or a data directory with one");
            Err(Error::config("path", expected, found))
        };
        if classify(path)?.kind == PathKind::DataDirectory {
            let directory = Arc::new(LogDir::open(path, options.clone(), &[])?);
            if !directory.partitions().values().any(|partition| partition.topic == topic) {
                return wrong(format!("{}, which has none", directory.path().display()));
            }
            return Ok(Self::Directory { directory, topic });
        }
        let log = Log::open(path, options.clone())?;
        if log.topic().is_some_and(|found| found != topic) {
            return wrong(format!("{}", log.path().display()));
        }
        let directory = log
            .path()
            .parent()
            .filter(|parent| classify(parent).is_ok_and(|parent| parent.kind == PathKind::DataDirectory))
            .and_then(|parent| LogDir::open(parent, options.clone(), &[]).ok());
        Ok(Self::Log { log, directory: directory.map(Arc::new) })
    }

    /// The data directory of the logs, if there is one.
    pub(super) fn directory(&self) -> Option<Arc<LogDir>> {
        match self {
            Self::Directory { directory, .. } => Some(Arc::clone(directory)),
            Self::Log { directory, .. } => directory.clone(),
        }
    }

    /// The first log; `None` if it has no segment yet.
    pub(super) fn first(self) -> Result<Option<Log>> {
        match self {
            Self::Directory { directory, topic } => {
                directory.logs(Some(&[topic.to_owned()])).next().transpose()
            }
            Self::Log { log, .. } => Ok(Some(log)),
        }
    }

    /// Calls a function for each log; see [`for_each_log`].
    pub(super) fn for_each(
        self,
        options: &TableOptions,
        errors: &mut LogErrors,
        mut read: impl FnMut(&Log) -> Result<()>,
    ) -> Result<()> {
        match self {
            Self::Directory { directory, topic } => {
                for_each_log(directory, Some(&[topic.to_owned()]), options, errors, read)
            }
            Self::Log { log, .. } => read(&log),
        }
    }
}

/// Calls a function for each log of a data directory. Each is opened when it is read, so that what it lists is not outdated under a live
/// broker. One that has lost its segments is an error, and unless damage raises a text of `errors`.
pub(super) fn for_each_log(
    directory: Arc<LogDir>,
    topics: Option<&[String]>,
    options: &TableOptions,
    errors: &mut LogErrors,
    mut read: impl FnMut(&Log) -> Result<()>,
) -> Result<()> {
    for log in directory.logs(topics) {
        match log {
            Err(lost @ Error::Corrupt { .. }) if options.on_damage != OnDamage::Raise => {
                errors.add(None, lost.to_string());
            }
            log => read(&log?)?,
        }
    }
    Ok(())
}

/// A record of a log, or what is wrong at its place.
pub(super) enum Entry<'a> {
    Record(&'a BatchHeader, RecordRef<'a>),
    /// A damaged range that is left out.
    Damage(&'a DamagedRange),
    /// Offsets without a record, in a log that is never compacted; the end is exclusive.
    Missing {
        start: i64,
        end: i64,
    },
}

/// Calls a function for each record of a log, control records included, and for each damaged range. Returns the damaged ranges.
pub(super) fn for_each_record(
    log: &Log,
    on_damage: OnDamage,
    mut take: impl FnMut(Entry<'_>),
) -> Result<Vec<DamagedRange>> {
    let options = ScanOptions { include_control: true, on_damage, ..ScanOptions::default() };
    let mut scan = log.scan(options)?;
    let mut known = 0;
    loop {
        let step = scan.next_step()?;
        // also the rest of a batch, which is known after its records, and not a step of a scan that skips it
        for range in scan.damaged_ranges().iter().skip(known) {
            take(Entry::Damage(range));
        }
        known = scan.damaged_ranges().len();
        match step {
            Some(ScanStep::Batch(batch)) => {
                while let Some(record) = scan.next_record()? {
                    take(Entry::Record(&batch.header, record));
                }
            }
            Some(ScanStep::DamagedRange(_)) => {}
            None => return Ok(scan.damaged_ranges().to_vec()),
        }
    }
}

/// The same from an offset on, of a log that is never compacted: what is not there is [`Entry::Missing`], unless damage covers it. Returns
/// also the exclusive end of the records.
pub(super) fn for_each_offset(
    log: &Log,
    on_damage: OnDamage,
    start: i64,
    mut take: impl FnMut(Entry<'_>),
) -> Result<(Vec<DamagedRange>, i64)> {
    // before the records, because a log grows
    let end = log.log_end_offset()?;
    let mut next = start;
    let mut go_to = |first: i64, end: i64, take: &mut dyn FnMut(Entry<'_>)| {
        if next < first {
            take(Entry::Missing { start: next, end: first });
        }
        next = next.max(end);
    };
    let damaged = for_each_record(log, on_damage, |entry| {
        let (first, end) = match &entry {
            Entry::Record(_, record) => (record.offset, record.offset.saturating_add(1)),
            Entry::Damage(range) => (range.start_offset, range.end_offset.unwrap_or(range.start_offset)),
            Entry::Missing { start, end } => (*start, *end),
        };
        if first >= start || end > start {
            go_to(first, end, &mut take);
            take(entry);
        }
    })?;
    go_to(end, end, &mut take);
    Ok((damaged, next))
}

/// A damaged range as the text of an error.
pub(super) fn damage_text(range: &DamagedRange) -> String {
    format!("{} is damaged at position {}: {}", range.file.display(), range.start_position, range.reason)
}

/// Missing offsets as the text of an error. The end is exclusive.
pub(super) fn missing_text(start: i64, end: i64) -> String {
    match end.saturating_sub(1) {
        last if last <= start => format!("offset {start} is missing in the log"),
        last => format!("the offsets {start} to {last} are missing in the log"),
    }
}
