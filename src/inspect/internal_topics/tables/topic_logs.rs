//! The logs of an internal topic, and their records.

use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::errors::LogErrors;
use crate::dir::{LogDir, PathKind, classify};
use crate::error::{Error, Result};
use crate::log::{DamagedRange, Log, LogOptions, OnDamage, Ranges, ScanOptions, ScanStep};
use crate::record::{BatchHeader, RecordRef};
use crate::types::{is_or_are, offsets_in_words};

/// How a table is read.
#[derive(Debug, Clone, Default)]
pub struct TableOptions {
    /// How the logs are opened.
    pub log: LogOptions,
    /// What to do with damage. With [`OnDamage::Report`], a damaged range is also a row of the table, with
    /// its text as the error.
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

/// The partitions of a topic in data directories, or some of them.
pub(super) struct TopicLogs {
    places: Vec<Place>,
    topic: &'static str,
    /// The data directories that were given, also those without a partition of the topic, and the
    /// directories of single partitions.
    pub(super) directories: Vec<Arc<LogDir>>,
}

enum Place {
    /// All partitions of the topic in a data directory.
    Directory(Arc<LogDir>),
    /// One partition, which may be a copy outside of a data directory.
    Log(Log),
}

impl TopicLogs {
    /// Finds the logs of `topic` at data directories, such as all of a broker's, or partition directories.
    ///
    /// # Errors
    /// [`Error::Config`] if a path is a partition of another topic, or no data directory has one of this
    /// topic; as [`Log::open`] and [`LogDir::open`].
    pub(super) fn open(
        paths: &[impl AsRef<Path>],
        topic: &'static str,
        options: &LogOptions,
    ) -> Result<Self> {
        let wrong = |found: String| {
            let expected = format!("a partition directory of {topic}, or a data directory with one");
            Error::config("path", expected, found)
        };
        let mut found = Self { places: Vec::new(), topic, directories: Vec::new() };
        for path in distinct(paths) {
            if classify(&path)?.kind == PathKind::DataDirectory {
                let directory = Arc::new(LogDir::open(&path, options.clone(), &[])?);
                if directory.partitions().values().any(|partition| partition.topic == topic) {
                    found.places.push(Place::Directory(Arc::clone(&directory)));
                }
                found.directories.push(directory);
                continue;
            }
            let log = Log::open(&path, options.clone())?;
            if log.topic().is_some_and(|found| found != topic) {
                return Err(wrong(log.path().display().to_string()));
            }
            found.directories.extend(directory_of(&log, options));
            found.places.push(Place::Log(log));
        }
        if found.places.is_empty() {
            let paths: Vec<_> = paths.iter().map(|path| path.as_ref().display().to_string()).collect();
            return Err(wrong(format!("{}, which has none", paths.join(", "))));
        }
        Ok(found)
    }

    /// The only log, of a topic with one partition; `None` if it has no segment yet.
    ///
    /// # Errors
    /// [`Error::Config`] if there are several, or another data directory has something else of its name: a
    /// broker does not start with either. As [`Log::open`].
    pub(super) fn only(self) -> Result<Option<Log>> {
        let paths = self.places.iter().map(Place::path);
        let name = format!("{}-0", self.topic);
        let others = self.directories.iter().map(|directory| directory.path());
        let is_blocked = |path: &Path| path.symlink_metadata().is_ok() && !path.is_dir();
        let others = others.filter(|path| is_blocked(&path.join(&name)));
        let paths: BTreeSet<_> = paths.chain(others).map(|path| path.display().to_string()).collect();
        match <[Place; 1]>::try_from(self.places) {
            Ok([Place::Directory(directory)]) if paths.len() == 1 => {
                directory.logs(Some(&[self.topic.to_owned()])).next().transpose()
            }
            Ok([Place::Log(log)]) if paths.len() == 1 => Ok(Some(log)),
            _ => {
                let expected = format!("one directory with a partition of {}", self.topic);
                Err(Error::config("path", expected, Vec::from_iter(paths).join(", ")))
            }
        }
    }

    /// Calls a function for each log; see [`for_each_log`].
    pub(super) fn for_each(
        self,
        options: &TableOptions,
        errors: &mut LogErrors,
        mut read: impl FnMut(&Log) -> Result<()>,
    ) -> Result<()> {
        for place in self.places {
            match place {
                Place::Directory(directory) => {
                    for_each_log(directory, Some(&[self.topic.to_owned()]), options, errors, &mut read)?;
                }
                Place::Log(log) => read(&log)?,
            }
        }
        Ok(())
    }
}

impl Place {
    fn path(&self) -> &Path {
        match self {
            Self::Directory(directory) => directory.path(),
            Self::Log(log) => log.path(),
        }
    }
}

/// Each path once, also if it was given in two ways.
pub(super) fn distinct(paths: &[impl AsRef<Path>]) -> Vec<PathBuf> {
    let mut known = HashSet::new();
    let paths = paths.iter().map(|path| path.as_ref().to_owned());
    // a path that cannot be resolved has an error when it is opened
    paths.filter(|path| known.insert(path.canonicalize().unwrap_or_else(|_| path.clone()))).collect()
}

/// The data directory that a log is in, if it is in one.
pub(super) fn directory_of(log: &Log, options: &LogOptions) -> Option<Arc<LogDir>> {
    let parent = log.path().parent()?;
    let is_directory = classify(parent).is_ok_and(|parent| parent.kind == PathKind::DataDirectory);
    is_directory.then(|| LogDir::open(parent, options.clone(), &[]).ok().map(Arc::new))?
}

/// Calls a function for each log of a data directory. Each is opened when it is read, so that what it lists
/// is not outdated under a live broker. One that has lost its segments is an error, and unless damage raises
/// a text of `errors`.
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

/// Calls a function for each record of a log, control records included, and for each damaged range. Returns
/// the damaged ranges.
pub(super) fn for_each_record(
    log: &Log,
    on_damage: OnDamage,
    take: impl FnMut(Entry<'_>),
) -> Result<Vec<DamagedRange>> {
    for_each_in(log, Ranges::default(), on_damage, take)
}

fn for_each_in(
    log: &Log,
    ranges: Ranges,
    on_damage: OnDamage,
    mut take: impl FnMut(Entry<'_>),
) -> Result<Vec<DamagedRange>> {
    let options = ScanOptions { ranges, include_control: true, on_damage, ..ScanOptions::default() };
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

/// The same from an offset on, of a log that is never compacted: what is not there is [`Entry::Missing`],
/// unless damage covers it. Returns also the exclusive end of the records.
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
    let first = start.max(log.log_start_offset());
    if first >= end {
        go_to(end, end, &mut take);
        return Ok((Vec::new(), next));
    }
    // what is below is not read: the metadata of a cluster has it in a snapshot
    let ranges = Ranges { start_offset: Some(first), ..Ranges::default() };
    let damaged = for_each_in(log, ranges, on_damage, |entry| {
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
    format!("{} {} missing in the log", offsets_in_words(start, Some(end)), is_or_are(start, end))
}
