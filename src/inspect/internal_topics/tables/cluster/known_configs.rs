//! The settings in the metadata of a cluster, read once for all partitions of a data directory.
//!
//! A replay of the metadata takes as long as its log is large, and every partition asks for the settings of
//! its topic. So the process keeps the settings of the logs that were read last, while no file of the log
//! changes.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;

use arc_swap::ArcSwapOption;

use super::super::errors::LogError;
use super::super::topic_logs::TableOptions;
use super::state::State;
use super::{Replayed, replay};
use crate::error::Result;
use crate::fs::names::{CLUSTER_METADATA_DIRECTORY, FileKind, metadata_snapshot};
use crate::fs::{Directory, FileIdentity};
use crate::log::{LogOptions, OnDamage};
use crate::record::MAX_BATCH_BYTES;

/// The number of logs whose settings are kept.
const MAX_KEPT: usize = 4;

/// The settings that were read last, the oldest first. Replaced as a whole, and read without a lock, which a
/// fork could copy while a thread holds it.
static KEPT: ArcSwapOption<Vec<(LogFiles, Arc<KnownConfigs>)>> = ArcSwapOption::const_empty();

/// The topics and the settings in the metadata of a cluster.
#[derive(Debug)]
pub(super) struct KnownConfigs {
    /// Ids by name, as Kafka prints them.
    ids: HashMap<String, String>,
    /// By the type and name of the resource and the name of the setting.
    configs: BTreeMap<(i64, String, String), String>,
    /// The first thing that is wrong in the metadata.
    pub(super) error: Option<LogError>,
}

impl KnownConfigs {
    /// Reads the settings; `source`: a path as for [`metadata`](super::metadata()). Damage is an error among
    /// them. A limit of `max_batch_bytes` below the default does not count. `None` if the log has no
    /// segment.
    ///
    /// # Errors
    /// As [`metadata`](super::metadata()).
    pub(super) fn read(source: &Path, options: &LogOptions) -> Result<Option<Arc<Self>>> {
        // before the log is read: what changes meanwhile makes the result outdated
        let files = LogFiles::of(source)?;
        let kept = KEPT.load();
        let known = files.as_ref().zip(kept.as_ref()).and_then(|(files, kept)| {
            kept.iter().find_map(|(of, configs)| (of == files).then(|| Arc::clone(configs)))
        });
        if known.is_some() {
            return Ok(known);
        }
        let options = LogOptions {
            topic: None,
            partition: None,
            log_start_offset: None,
            // a limit for the batches of the partition: the settings must not depend on it
            max_batch_bytes: options.max_batch_bytes.max(MAX_BATCH_BYTES),
            ..options.clone()
        };
        let options = TableOptions { log: options, on_damage: OnDamage::Skip, ..TableOptions::default() };
        let Some(Replayed { mut state, .. }) = replay(&[source], &options)? else { return Ok(None) };
        state.finish();
        let found = Arc::new(Self::of(state));
        if let Some(files) = files {
            files.keep(&found);
        }
        Ok(Some(found))
    }

    fn of(state: State) -> Self {
        Self { ids: state.topic_ids(), configs: state.configs, error: state.errors.into_iter().next() }
    }

    /// The id of a topic, as Kafka prints it.
    pub(super) fn topic_id(&self, name: &str) -> Option<&str> {
        self.ids.get(name).map(String::as_str)
    }

    /// The settings of a resource.
    pub(super) fn of_resource(&self, kind: i64, resource: &str) -> BTreeMap<String, String> {
        let start = (kind, resource.to_owned(), String::new());
        let from = self.configs.range(start..);
        from.take_while(|((found, name, _), _)| *found == kind && name == resource)
            .map(|((_, _, name), value)| (name.clone(), value.clone()))
            .collect()
    }
}

/// A metadata log, and its files from which the settings are read.
#[derive(Debug, Clone, PartialEq, Eq)]
struct LogFiles {
    /// Resolved. A directory at another path is another log, also one with the same files.
    path: std::path::PathBuf,
    /// Segments and snapshots, by name.
    files: BTreeMap<String, FileIdentity>,
}

impl LogFiles {
    /// `None` for a path that is neither the directory of a metadata log nor a directory with one.
    fn of(source: &Path) -> Result<Option<Self>> {
        let within = source.join(CLUSTER_METADATA_DIRECTORY);
        let path = if within.is_dir() { &within } else { source };
        let Ok(path) = path.canonicalize() else { return Ok(None) };
        let Some(directory) = path.is_dir().then(|| Directory::open(&path, "")).transpose()? else {
            return Ok(None);
        };
        let mut files = BTreeMap::new();
        for (name, _) in directory.entries()? {
            if (name.ends_with(FileKind::Log.suffix()) || metadata_snapshot(&name).is_some())
                && let Some(identity) = directory.identity_of(&name)?
            {
                files.insert(name, identity);
            }
        }
        Ok(Some(Self { path, files }))
    }

    fn keep(self, configs: &Arc<KnownConfigs>) {
        KEPT.rcu(|kept| {
            let others = kept.iter().flat_map(|kept| kept.iter());
            let mut kept: Vec<_> = others.filter(|(files, _)| files.path != self.path).cloned().collect();
            kept.push((self.clone(), Arc::clone(configs)));
            let excess = kept.len().saturating_sub(MAX_KEPT);
            kept.drain(..excess);
            Some(Arc::new(kept))
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A copy of a broker's metadata log.
    fn metadata(parent: &Path) -> std::path::PathBuf {
        let golden =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/16-data-dir/__cluster_metadata-0");
        let copy = parent.join(CLUSTER_METADATA_DIRECTORY);
        std::fs::create_dir(&copy).unwrap();
        for entry in std::fs::read_dir(golden).unwrap() {
            let entry = entry.unwrap();
            std::fs::copy(entry.path(), copy.join(entry.file_name())).unwrap();
        }
        copy
    }

    #[test]
    fn the_settings_are_read_once_while_no_file_of_the_log_changes() {
        let folder = tempfile::tempdir().unwrap();
        let path = metadata(folder.path());
        let read = || KnownConfigs::read(&path, &LogOptions::default()).unwrap().unwrap();
        let first = read();
        assert!(first.topic_id("cities").is_some());
        assert!(Arc::ptr_eq(&first, &read()));
        // a data directory is another name of the log in it
        let same = KnownConfigs::read(folder.path(), &LogOptions::default()).unwrap().unwrap();
        assert!(Arc::ptr_eq(&first, &same));
        for name in ["00000000000000000000.log", "00000000000000000084-0000000001.checkpoint"] {
            let before = read();
            let bytes = std::fs::read(path.join(name)).unwrap();
            std::fs::remove_file(path.join(name)).unwrap();
            std::fs::write(path.join(name), bytes).unwrap();
            assert!(!Arc::ptr_eq(&before, &read()), "{name}");
        }
    }
}
