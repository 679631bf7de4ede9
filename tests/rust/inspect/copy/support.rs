//! Copies, and comparisons of a copy with its source.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use cordwood::inspect::copy::{CopyOptions, CopyReport, copy};
use cordwood::log::Ranges;
use cordwood::{Error, Log, LogOptions};

use crate::support::naive::Batch;

pub fn copied(source: &Path, destination: &Path, options: &CopyOptions) -> Result<CopyReport, Error> {
    copy(source, destination, options, &mut |_| Ok(()))
}

pub fn of_offsets(start: Option<i64>, end: Option<i64>) -> CopyOptions {
    CopyOptions {
        ranges: Ranges { start_offset: start, end_offset: end, ..Ranges::default() },
        ..CopyOptions::default()
    }
}

pub fn open(path: &Path) -> Log {
    Log::open(path, LogOptions::default()).unwrap_or_else(|error| panic!("{error}"))
}

/// The log from its first segment on, also what the log start offset hides.
pub fn open_from_first_segment(path: &Path) -> Log {
    let first = open(path).segments().first().unwrap().base_offset();
    Log::open(path, LogOptions { log_start_offset: Some(first), ..LogOptions::default() }).unwrap()
}

/// The files of a directory with their contents, but those of ours that are no part of the log.
pub fn files(path: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(path).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        if name != ".cordwood.lock" && entry.file_type().unwrap().is_file() {
            files.insert(name, fs::read(entry.path()).unwrap());
        }
    }
    files
}

/// A partition directory that is a copy of another one's files.
pub fn same_files(source: &Path, to: &Path) -> PathBuf {
    fs::create_dir_all(to).unwrap();
    for (name, bytes) in files(source) {
        fs::write(to.join(name), bytes).unwrap();
    }
    to.to_owned()
}

/// Batches without their places.
pub fn contents(batches: &[Batch]) -> Vec<Batch> {
    batches.iter().map(|batch| Batch { segment: 0, position: 0, ..batch.clone() }).collect()
}
