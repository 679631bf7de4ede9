//! The writes of the Spark sink that have not ended, by their files in the partition directories:
//! `.cordwood.spark/unfinished/<write>.json`, in the first partition of the write, with the names of all of
//! its partitions. `python/cordwood/spark/write` writes these files.

use std::path::PathBuf;

use serde_json::Value;

use super::copy::CopyReport;
use crate::error::Result;
use crate::fs::names::{PartitionName, PartitionState};
use crate::fs::{Directory, FileType};
use crate::state::SPARK_SINK;

const UNFINISHED: &str = "unfinished";

/// The maximum size of the file of a write, bytes.
const MAX_BYTES: u64 = 256 << 20;

/// A write that is going on or was interrupted: readers may see a part of its records.
#[derive(Debug)]
pub(super) struct SparkWrite {
    pub(super) id: String,
    /// The path of its file.
    pub(super) file: PathBuf,
    /// The names of its partition directories; `None` if its file cannot be read.
    names: Option<Vec<String>>,
}

impl SparkWrite {
    /// The writes whose files are in a partition directory.
    pub(super) fn in_partition(partition: &Directory) -> Result<Vec<Self>> {
        let Some(own) = partition.existing_folder(SPARK_SINK)? else { return Ok(Vec::new()) };
        let Some(folder) = own.existing_folder(UNFINISHED)? else { return Ok(Vec::new()) };
        let mut found = Vec::new();
        for (name, _) in folder.entries()? {
            if let Some(id) = name.strip_suffix(".json") {
                let text = folder.read_small(&name, MAX_BYTES).ok().flatten();
                let names = text.and_then(|text| names_in(&text));
                found.push(Self { id: id.to_owned(), file: folder.path_of(&name), names });
            }
        }
        Ok(found)
    }

    /// The writes to the partitions of a data directory. What cannot be read has none.
    fn in_data_directory(directory: &Directory) -> Vec<Self> {
        let is_live = |name: &str| {
            PartitionName::parse(name).is_some_and(|parsed| parsed.state == PartitionState::Live)
        };
        let mut found = Vec::new();
        for (name, file_type) in directory.entries().unwrap_or_default() {
            if is_live(&name) && matches!(file_type, FileType::Directory | FileType::Unknown) {
                let partition = directory.existing_folder(&name).ok().flatten();
                found.extend(partition.and_then(|one| Self::in_partition(&one).ok()).unwrap_or_default());
            }
        }
        found
    }

    /// Whether it may have records in the partition directory of this name.
    fn is_to(&self, name: &str) -> bool {
        self.names.as_ref().is_none_or(|names| names.iter().any(|own| own == name))
    }
}

/// Warns of the writes that have not ended in the reports of the copies of partitions, each in the first one:
/// a copy has their records and not their files, so that nothing takes the records back there.
pub(super) fn warn_of_copies(data_directory: &Directory, copies: &mut [CopyReport]) {
    for write in SparkWrite::in_data_directory(data_directory) {
        let is_of = |copy: &&mut CopyReport| {
            copy.source.file_name().is_some_and(|name| write.is_to(&name.to_string_lossy()))
        };
        if let Some(copy) = copies.iter_mut().find(is_of) {
            let (file, id, path) = (write.file.display(), &write.id, data_directory.path().display());
            copy.warnings.push(format!(
                "{file}: the write {id} of Spark has not ended, and the copy may have a part of its records, which stay there: take \
                 them back with cordwood spark-writes {path} --undo {id} --apply, and copy again to another directory"
            ));
        }
    }
}

/// The names of the partition directories in the file of a write.
fn names_in(text: &[u8]) -> Option<Vec<String>> {
    let document: Value = serde_json::from_slice(text).ok()?;
    let changes = document.get("changes")?.as_array()?;
    changes.iter().map(|change| Some(change.get("name")?.as_str()?.to_owned())).collect()
}
