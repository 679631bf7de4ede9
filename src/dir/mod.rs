//! A broker's data directory and its partitions. Kafka: `LogManager`, read side.

mod classify;
mod entries;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

#[cfg(feature = "plan")]
#[doc(hidden)]
pub use classify::has_segments;
#[cfg(feature = "plan")]
pub(crate) use classify::live_partition;
pub use classify::{PathInfo, PathKind, classify};
pub use entries::DirectoryEntry;

use crate::error::{Error, NotFound, Result};
use crate::fs::names::{PartitionName, PartitionState};
use crate::fs::{Directory, is_data_directory};
use crate::log::{Log, LogOptions};
use crate::segment::with_descriptors;
use crate::state::data_directory::is_partition;

/// A data directory, listed when it was opened. Its partitions are opened on request.
#[derive(Debug)]
pub struct LogDir {
    directory: Directory,
    options: LogOptions,
    partitions: BTreeMap<String, PartitionName>,
}

impl LogDir {
    /// Lists a data directory. Partition directories that are being deleted or moved (`-delete`, `-future`,
    /// `-stray`) are left out unless their state is in `include`. Other directories and files are
    /// ignored.
    ///
    /// # Errors
    /// [`Error::LogNotFound`] if there is no directory; [`Error::Io`]; [`Error::Config`] if it is a partition
    /// directory, if it has no partition and its folders are data directories, or if the
    /// options have a topic, a partition or a log start offset, which apply to one log only;
    /// [`Error::LogChanged`] if partitions are created and deleted so fast that no two listings agree.
    pub fn open(path: impl AsRef<Path>, options: LogOptions, include: &[PartitionState]) -> Result<Self> {
        if options.topic.is_some() || options.partition.is_some() || options.log_start_offset.is_some() {
            return Err(Error::config("options", "options of a data directory", "options of one partition"));
        }
        let advice = "give the path of a broker's data directory (its log.dirs)";
        let directory = with_descriptors(|| Directory::open(path.as_ref(), advice))?;
        let entries = with_descriptors(|| directory.entries())?;
        if is_partition(entries.iter().map(|(name, _)| name.as_str())) {
            let found = format!("{}, which is a partition directory: use Log", directory.path().display());
            return Err(Error::config("path", "a broker's data directory (its log.dirs)", found));
        }
        // one pass may miss a partition that is renamed or created during it
        let partitions = directory.list_until_stable(|directory| list(directory, include))?;
        if partitions.is_empty() && !is_data_directory(&directory, "")? {
            refuse_parent(&directory, entries.iter().map(|(name, _)| name.as_str()))?;
        }
        Ok(Self { directory, options, partitions })
    }

    /// The absolute path.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// The options with which logs are opened.
    pub fn options(&self) -> &LogOptions {
        &self.options
    }

    /// The partition directories by name, in the names' order.
    pub fn partitions(&self) -> &BTreeMap<String, PartitionName> {
        &self.partitions
    }

    /// Opens a partition by its directory's name; `None` if there is no partition of this name.
    ///
    /// # Errors
    /// As [`Log::open`]: [`Error::LogNotFound`] with [`NotFound::NoSegment`] for a partition that Kafka has
    /// just created; [`Error::Corrupt`] if its segments are missing.
    pub fn log(&self, name: &str) -> Result<Option<Log>> {
        if !self.partitions.contains_key(name) {
            return Ok(None);
        }
        Log::open(self.directory.path_of(name), self.options.clone()).map(Some)
    }

    /// Opens the partitions of some topics (`None`: all), by topic and then by the partition's number, each
    /// when the iterator reaches it. A partition that Kafka has just created has no segment and is left
    /// out.
    pub fn logs(self: Arc<Self>, topics: Option<&[String]>) -> impl Iterator<Item = Result<Log>> + use<> {
        self.logs_of(topics, None)
    }

    /// The same of the partitions with these numbers (`None`: all).
    pub fn logs_of(
        self: Arc<Self>,
        topics: Option<&[String]>,
        partitions: Option<&[i32]>,
    ) -> impl Iterator<Item = Result<Log>> + use<> {
        self.opened(topics, partitions).map(|(_, opened)| opened)
    }

    /// The same with the parsed names of their directories.
    #[cfg(feature = "inspect")]
    pub(crate) fn named_logs(
        self: Arc<Self>,
        topics: Option<&[String]>,
    ) -> impl Iterator<Item = (PartitionName, Result<Log>)> + use<> {
        self.opened(topics, None)
    }

    fn opened(
        self: Arc<Self>,
        topics: Option<&[String]>,
        partitions: Option<&[i32]>,
    ) -> impl Iterator<Item = (PartitionName, Result<Log>)> + use<> {
        self.selected(topics, partitions).into_iter().filter_map(move |name| {
            let parsed = self.partitions.get(&name)?.clone();
            match self.log(&name) {
                Err(Error::LogNotFound { found: NotFound::NoSegment, .. }) => None,
                opened => Some((parsed, opened.transpose()?)),
            }
        })
    }

    /// The names of the partition directories of some topics and numbers (`None`: all), by topic and then by
    /// the number.
    fn selected(&self, topics: Option<&[String]>, partitions: Option<&[i32]>) -> Vec<String> {
        let is_selected = |parsed: &PartitionName| {
            topics.is_none_or(|topics| topics.contains(&parsed.topic))
                && partitions.is_none_or(|partitions| partitions.contains(&parsed.partition))
        };
        let mut selected: Vec<_> = self.partitions.iter().filter(|(_, parsed)| is_selected(parsed)).collect();
        selected.sort_by_key(|(_, parsed)| (&parsed.topic, parsed.partition, parsed.state));
        selected.into_iter().map(|(name, _)| name.clone()).collect()
    }
}

/// Fails if folders of a directory are data directories: its path is one level too high.
fn refuse_parent<'a>(directory: &Directory, names: impl Iterator<Item = &'a str>) -> Result<()> {
    let is_data_directory = |path: &PathBuf| {
        path.is_dir() && classify(path).is_ok_and(|found| found.kind == PathKind::DataDirectory)
    };
    let Some(folder) = names.map(|name| directory.path_of(name)).find(is_data_directory) else {
        return Ok(());
    };
    let found = format!(
        "{}, which has none and whose folder {} is one: give the path of the folder",
        directory.path().display(),
        folder.display()
    );
    Err(Error::config("path", "a broker's data directory (its log.dirs), with its partitions", found))
}

fn list(directory: &Directory, include: &[PartitionState]) -> Result<BTreeMap<String, PartitionName>> {
    let names = directory.entries()?.into_iter();
    Ok(names
        .filter_map(|(name, _)| PartitionName::parse(&name).map(|parsed| (name, parsed)))
        .filter(|(_, parsed)| parsed.state == PartitionState::Live || include.contains(&parsed.state))
        .filter(|(name, _)| directory.path_of(name).is_dir())
        .collect())
}
