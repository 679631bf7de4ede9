//! A broker's data directory: which partitions lie in it. Kafka: `LogManager`, read side.

use std::collections::BTreeMap;
use std::path::Path;

use crate::error::{Error, Result};
use crate::fs::Directory;
use crate::fs::names::{PartitionName, PartitionState};
use crate::log::{Log, LogOptions};

/// A data directory, listed when it was opened. Its partitions are opened when asked for.
#[derive(Debug)]
pub struct LogDir {
    directory: Directory,
    options: LogOptions,
    partitions: BTreeMap<String, PartitionName>,
}

impl LogDir {
    /// Lists a data directory. Partition directories on their way in or out (`-delete`, `-future`, `-stray`) are left out
    /// unless their state is in `include`; other directories and files are foreign.
    ///
    /// # Errors
    /// [`Error::LogNotFound`] where there is no directory; [`Error::Io`]; [`Error::Config`] where the options fix a topic,
    /// a partition or a log start offset, which only one log can have.
    pub fn open(path: impl AsRef<Path>, options: LogOptions, include: &[PartitionState]) -> Result<Self> {
        if options.topic.is_some() || options.partition.is_some() || options.log_start_offset.is_some() {
            return Err(Error::config("options", "those of a data directory", "those of one partition"));
        }
        let advice = "give the path of a broker's data directory (its log.dirs)";
        let directory = Directory::open(path.as_ref(), advice)?;
        let partitions = directory
            .entries()?
            .into_iter()
            .filter_map(|(name, _)| PartitionName::parse(&name).map(|parsed| (name, parsed)))
            .filter(|(_, parsed)| parsed.state == PartitionState::Live || include.contains(&parsed.state))
            .filter(|(name, _)| directory.path_of(name).is_dir())
            .collect();
        Ok(Self { directory, options, partitions })
    }

    /// The absolute path.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// How its logs are opened.
    pub fn options(&self) -> &LogOptions {
        &self.options
    }

    /// The partition directories by name, in the names' order.
    pub fn partitions(&self) -> &BTreeMap<String, PartitionName> {
        &self.partitions
    }

    /// The names of the partition directories of some topics (`None`: all), by topic and then by the partition's number.
    pub fn of_topics(&self, topics: Option<&[String]>) -> Vec<String> {
        let is_wanted = |parsed: &PartitionName| topics.is_none_or(|topics| topics.contains(&parsed.topic));
        let mut wanted: Vec<_> = self.partitions.iter().filter(|(_, parsed)| is_wanted(parsed)).collect();
        wanted.sort_by_key(|(_, parsed)| (&parsed.topic, parsed.partition, parsed.state));
        wanted.into_iter().map(|(name, _)| name.clone()).collect()
    }

    /// Opens a partition by its directory's name; `None` where there is none of that name.
    ///
    /// # Errors
    /// As [`Log::open`].
    pub fn log(&self, name: &str) -> Result<Option<Log>> {
        if !self.partitions.contains_key(name) {
            return Ok(None);
        }
        Log::open(self.directory.path_of(name), self.options.clone()).map(Some)
    }
}
