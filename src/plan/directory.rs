//! Resolution of paths to partition directories: data directories, partition directories, globs of both.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use super::error::{Code, PlanError, Result};
use super::options::SourceOptions;
use super::warning::Warning;
use crate::dir::{LogDir, PathKind, classify, has_segments, live_partition};
use crate::error::Error;
use crate::fs::names::{INTERNAL_TOPICS, SegmentFileName};
use crate::log::LogOptions;

/// A partition directory: its absolute path, and the topic and partition in its name, if that is
/// `topic-partition`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PartitionDirectory {
    /// The topic in the name.
    pub topic: Option<String>,
    /// The partition in the name.
    pub partition: Option<i32>,
    /// The directory, absolute. If the last name is a link, it is kept, because the name contains the topic.
    pub path: PathBuf,
}

impl PartitionDirectory {
    /// A directory by a path or a `file:` URL.
    ///
    /// # Errors
    /// [`Code::BadOption`] for another scheme.
    pub fn of_url(path: &str) -> Result<Self> {
        local_path(path).map(|path| Self::at(&path))
    }

    /// A directory by its path.
    pub(crate) fn at(path: &Path) -> Self {
        let path = absolute(path);
        let named = path.file_name().and_then(|name| live_partition(name.to_str()?));
        let (topic, partition) = named.unzip();
        Self { topic, partition, path }
    }
}

/// Normalises a path, but keeps its last name.
pub(crate) fn absolute(path: &Path) -> PathBuf {
    let found = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let resolved = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    match (found.parent(), found.file_name()) {
        (Some(parent), Some(name)) => resolved(parent).join(name),
        // it ends in `..`
        _ => resolved(&found),
    }
}

/// The partitions that the options select, in order of topic and partition.
///
/// A partition that Kafka has just created has no segment yet, and is skipped. What is skipped because of
/// `failOnDataLoss=false` is a warning.
///
/// # Errors
/// [`Code::NotFound`] for a path that does not exist, and (with `failOnDataLoss`) for a path without a
/// partition and for a missing topic or partition; [`Code::SegmentGone`] (with `failOnDataLoss`) for a
/// partition that lost its segments; [`Code::BadOption`] for a partition under two of the paths.
pub(crate) fn find_partitions(
    options: &SourceOptions,
    warnings: &mut Vec<Warning>,
) -> Result<Vec<PartitionDirectory>> {
    let mut search = Search { options, warnings };
    let mut found = Vec::new();
    for path in &options.paths {
        found.extend(search.under(path)?);
    }
    let mut chosen = Vec::new();
    for directory in &found {
        if is_chosen(directory, options)? {
            chosen.push(directory.clone());
        }
    }
    check_once(&chosen)?;
    let missing = missing(&chosen, options);
    if !missing.is_empty() {
        let topics: BTreeSet<_> = found
            .iter()
            .map(|directory| directory.topic.clone().unwrap_or_else(|| directory.path.display().to_string()))
            .collect();
        let topics = topics.into_iter().collect::<Vec<_>>().join(", ");
        let (missing, paths) = (missing.join(", "), options.paths.join(", "));
        let reason = format!("no partition of {missing} under {paths}, found: {topics}");
        search
            .lost(PlanError::new(Code::NotFound, reason), " (failOnDataLoss=false continues without it)")?;
    }
    chosen.sort();
    Ok(chosen)
}

struct Search<'a> {
    options: &'a SourceOptions,
    warnings: &'a mut Vec<Warning>,
}

impl Search<'_> {
    /// Fails, with advice; or warns if loss is allowed.
    fn lost(&mut self, error: PlanError, advice: &str) -> Result<()> {
        if self.options.fail_on_data_loss {
            return Err(error.with_advice(advice));
        }
        self.warnings.push(Warning::of(&error, "; left out"));
        Ok(())
    }

    /// The partition directories that one of the user's paths refers to.
    fn under(&mut self, path: &str) -> Result<Vec<PartitionDirectory>> {
        let local = local_path(path)?;
        let not_found = |wanted: &str, found: &str| {
            PlanError::new(Code::NotFound, format!("{path}: expected {wanted}, found {found}"))
        };
        let has_wildcard = local.to_string_lossy().contains(['*', '?', '[']);
        let (directories, found) = if local.symlink_metadata().is_ok() || !has_wildcard {
            (vec![local], "none".to_owned())
        } else {
            let matches = matches(&local);
            let directories: Vec<_> = matches.iter().filter(|path| path.is_dir()).cloned().collect();
            if directories.is_empty() {
                let found = matches.first().map_or_else(|| "no match".to_owned(), |file| file_in_words(file));
                return Err(not_found("directories", &found));
            }
            let count = directories.len();
            (directories, format!("{count} matching directories without a partition that has segments"))
        };
        let mut partitions = Vec::new();
        for directory in directories {
            partitions.extend(self.partitions(&directory, path)?);
        }
        if partitions.is_empty() {
            let wanted =
                "a directory with segments (a .log named by 20 digits), or one with such directories in it";
            self.lost(not_found(wanted, &found), "")?;
        }
        Ok(partitions)
    }

    /// The partition directories with segments: the directory itself, or those in it.
    fn partitions(&mut self, path: &Path, given: &str) -> Result<Vec<PartitionDirectory>> {
        self.segments_under(path).map_err(|error| {
            if error.code != Code::SegmentGone && error.is_missing() {
                let wanted =
                    "a data directory, a partition directory, or a glob of either, as this machine sees it";
                let found = if path.is_file() { file_in_words(path) } else { missing_in_words(path) };
                let missing =
                    PlanError::new(Code::NotFound, format!("{given}: expected {wanted}, found {found}"));
                return PlanError { source: error.source, ..missing };
            }
            error
        })
    }

    fn segments_under(&mut self, path: &Path) -> Result<Vec<PartitionDirectory>> {
        let directory = PartitionDirectory::at(path);
        if has_segments(path)? {
            return Ok(vec![directory]);
        }
        let data = match LogDir::open(path, LogOptions::default(), &[]) {
            Ok(data) => Some(data),
            // refused are a partition, which is read, and a folder of data directories
            Err(Error::Config { .. }) if classify(path)?.kind == PathKind::Partition => None,
            Err(error) => return Err(error.into()),
        };
        let (data, found) = match data {
            Some(data) if !data.partitions().is_empty() => {
                let found =
                    data.partitions().keys().map(|name| PartitionDirectory::at(&path.join(name))).collect();
                (data, found)
            }
            // a partition directory without a segment, or an empty directory that may be one
            data if data.is_none() || directory.topic.is_some() => {
                let parent = directory.path.parent().unwrap_or(&directory.path);
                (LogDir::open(parent, LogOptions::default(), &[])?, vec![directory])
            }
            _ => return Ok(Vec::new()),
        };
        let mut read = Vec::new();
        for one in found {
            if self.should_read(&one, &data)? {
                read.push(one);
            }
        }
        Ok(read)
    }

    /// Whether a partition of a data directory has segments. A partition that Kafka has just created has none
    /// yet.
    fn should_read(&mut self, directory: &PartitionDirectory, data: &LogDir) -> Result<bool> {
        let path = &directory.path;
        match has_segments(path) {
            Ok(true) => return Ok(true),
            Ok(false) if !is_chosen(directory, self.options)? => return Ok(false),
            Ok(false) => {}
            Err(Error::LogNotFound { .. }) => return self.is_new(directory),
            Err(error) => return Err(error.into()),
        }
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        match data.log(name) {
            // its first segment has just been created
            Ok(Some(_)) => Ok(true),
            Ok(None) | Err(Error::LogNotFound { .. }) => self.is_new(directory),
            Err(error @ Error::Corrupt { .. }) => self.lost_segments(directory, &error.to_string()),
            Err(error) => Err(error.into()),
        }
    }

    /// A partition without a segment was just created, or deleted since it was listed. A directory without
    /// the name of a partition must have one.
    fn is_new(&mut self, directory: &PartitionDirectory) -> Result<bool> {
        if directory.topic.is_some() || !directory.path.is_dir() {
            return Ok(false);
        }
        let path = directory.path.display();
        let reason = format!("{path}: expected a segment in a partition directory, found none");
        self.lost_segments(directory, &reason)
    }

    fn lost_segments(&mut self, directory: &PartitionDirectory, reason: &str) -> Result<bool> {
        let error = PlanError::new(Code::SegmentGone, reason).in_log(directory);
        self.lost(error, "; failOnDataLoss=false continues without the partition")?;
        Ok(false)
    }
}

/// The paths that match a pattern, by the rules of a shell: a wildcard matches no separator and no leading
/// dot. Sorted.
fn matches(pattern: &Path) -> Vec<PathBuf> {
    let options = glob::MatchOptions {
        case_sensitive: true,
        require_literal_separator: true,
        // the crate panics with this option if a name is not UTF-8
        require_literal_leading_dot: false,
    };
    let has_literal_dots = |path: &PathBuf| {
        names_of(path).zip(names_of(pattern)).all(|(name, pattern)| match name {
            b"." | b".." => name == pattern,
            _ => !name.starts_with(b".") || pattern.starts_with(b"."),
        })
    };
    let mut text = pattern.to_string_lossy().into_owned();
    // two asterisks mean any directories to the crate, and the same as one to a shell
    while text.contains("**") {
        text = text.replace("**", "*");
    }
    let Ok(found) = glob::glob_with(&text, options) else { return Vec::new() };
    found.filter_map(std::result::Result::ok).filter(has_literal_dots).collect()
}

/// The names of a path from the last one on. [`Path::components`] would leave `.` out.
fn names_of(path: &Path) -> impl Iterator<Item = &[u8]> {
    path.as_os_str().as_encoded_bytes().split(|byte| *byte == b'/').rev().filter(|name| !name.is_empty())
}

fn check_once(chosen: &[PartitionDirectory]) -> Result<()> {
    let mut by_name: HashMap<_, &PartitionDirectory> = HashMap::new();
    for directory in chosen {
        let key = match &directory.topic {
            Some(topic) => (Some((topic.clone(), directory.partition)), None),
            None => (None, Some(directory.path.canonicalize().unwrap_or_else(|_| directory.path.clone()))),
        };
        if let Some(other) = by_name.insert(key, directory) {
            let (one, other) = (other.path.display(), directory.path.display());
            let reason = format!("path: expected each partition once, found it at {one} and at {other}");
            return Err(PlanError::new(Code::BadOption, reason).in_log(directory));
        }
    }
    Ok(())
}

/// Kafka's directories have the names of partitions: there is none of a topic.
fn missing_in_words(path: &Path) -> String {
    let Some(topic) = path.file_name().and_then(|name| name.to_str()) else {
        return "no directory".to_owned();
    };
    let beside = matches(Path::new(&format!("{}-*", glob::Pattern::escape(&path.to_string_lossy()))));
    let is_of_topic =
        |beside: &PathBuf| beside.is_dir() && PartitionDirectory::at(beside).topic.as_deref() == Some(topic);
    if beside.iter().any(is_of_topic) {
        return format!("no directory, but those of partitions of topic {topic}: load {}-*", path.display());
    }
    "no directory".to_owned()
}

fn file_in_words(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    if SegmentFileName::parse(&name).is_none() {
        return format!("the file {name}");
    }
    let parent = path.parent().unwrap_or(path).display();
    format!("the file {name} of a segment: load its directory, {parent}")
}

/// Removes `file:` from a path.
///
/// # Errors
/// [`Code::BadOption`] for another scheme.
pub fn local_path(path: &str) -> Result<PathBuf> {
    let Some((scheme, rest)) = path.split_once(":/") else { return Ok(path.into()) };
    let is_scheme = scheme.len() > 1
        && scheme.starts_with(|letter: char| letter.is_ascii_alphabetic())
        && scheme.chars().all(|letter| letter.is_ascii_alphanumeric() || "+.-".contains(letter));
    if !is_scheme {
        return Ok(path.into());
    }
    if !scheme.eq_ignore_ascii_case("file") {
        let expected = "a path that every node sees as a directory";
        let found = format!("{path:?} (mount it, or copy it)");
        return Err(PlanError::option("path", expected, found));
    }
    Ok(Path::new("/").join(rest.trim_start_matches('/')))
}

/// Whether the options select a partition.
fn is_chosen(directory: &PartitionDirectory, options: &SourceOptions) -> Result<bool> {
    let PartitionDirectory { topic, partition, .. } = directory;
    if let Some(assign) = &options.assign {
        let key = topic.clone().zip(*partition);
        return Ok(key.is_some_and(|key| assign.contains(&key)));
    }
    if let Some(topics) = &options.subscribe {
        return Ok(topic.as_ref().is_some_and(|topic| topics.contains(topic)));
    }
    let excludes_internal = options.exclude_internal_topics.unwrap_or(options.subscribe_pattern.is_some());
    if excludes_internal && topic.as_ref().is_some_and(|topic| INTERNAL_TOPICS.contains(&topic.as_str())) {
        return Ok(false);
    }
    match (&options.subscribe_pattern, topic) {
        (None, _) => Ok(true),
        (Some(_), None) => Ok(false),
        (Some(pattern), Some(topic)) => {
            let wrong = |error| {
                PlanError::option("subscribePattern", format!("a simpler expression ({error})"), pattern)
            };
            pattern.is_in(topic).map_err(wrong)
        }
    }
}

/// What the options name and no path has, in words.
fn missing(chosen: &[PartitionDirectory], options: &SourceOptions) -> Vec<String> {
    if let Some(assign) = &options.assign {
        let exists = |(topic, partition): &(String, i32)| {
            chosen.iter().any(|directory| {
                directory.topic.as_ref() == Some(topic) && directory.partition == Some(*partition)
            })
        };
        let missing = assign.iter().filter(|key| !exists(key));
        return missing.map(|(topic, partition)| format!("{topic}-{partition}")).collect();
    }
    if let Some(topics) = &options.subscribe {
        let exists = |topic: &&String| chosen.iter().any(|directory| directory.topic.as_ref() == Some(topic));
        return topics.iter().filter(|topic| !exists(topic)).cloned().collect();
    }
    match &options.subscribe_pattern {
        Some(pattern) if chosen.is_empty() => {
            let hint = match options.exclude_internal_topics {
                Some(false) => "",
                _ => " (excludeInternalTopics=false reads internal ones)",
            };
            vec![format!("a topic like {pattern}{hint}")]
        }
        _ => Vec::new(),
    }
}
