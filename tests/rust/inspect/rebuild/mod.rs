//! The derived files of a partition: what is reported, and what is written.

mod crashes;
mod golden;
mod reports;
mod twin;

use std::fs;
use std::path::{Path, PathBuf};

use cordwood::config::LogConfig;
use cordwood::fs::names::{FileKind, SegmentFileName, Stage};
use cordwood::inspect::rebuild::{DerivedFile, RebuildOptions, RebuildReport, rebuild};

/// A copy of a partition directory.
fn copied(partition: &Path, folder: &tempfile::TempDir) -> PathBuf {
    let copy = folder.path().join(partition.file_name().unwrap());
    fs::create_dir(&copy).unwrap();
    for entry in fs::read_dir(partition).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), copy.join(entry.file_name())).unwrap();
    }
    copy
}

fn is_derived(name: &str) -> bool {
    SegmentFileName::parse(name)
        .is_some_and(|parsed| parsed.kind != FileKind::Log && parsed.stage == Stage::Live)
}

/// Names and contents of the files of a directory, without the lock.
fn files(directory: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<_> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.file_type().unwrap().is_file() && entry.file_name() != ".cordwood.lock")
        .map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap()))
        .collect();
    files.sort();
    files
}

fn remove_derived(directory: &Path) {
    for (name, _) in files(directory) {
        if is_derived(&name) {
            fs::remove_file(directory.join(name)).unwrap();
        }
    }
}

fn options(config: Option<LogConfig>, dry_run: bool) -> RebuildOptions {
    RebuildOptions { config, dry_run, ..RebuildOptions::default() }
}

fn compared(directory: &Path, config: Option<LogConfig>) -> RebuildReport {
    rebuild(directory, &options(config, true)).unwrap_or_else(|error| panic!("{error}"))
}

fn rebuilt(directory: &Path, config: Option<LogConfig>) -> RebuildReport {
    rebuild(directory, &options(config, false)).unwrap_or_else(|error| panic!("{error}"))
}

fn name(file: &DerivedFile) -> String {
    file.file.file_name().unwrap().to_str().unwrap().to_owned()
}

/// The files that are not as the log gives them: names and states.
fn differences(report: &RebuildReport) -> Vec<(String, &'static str)> {
    let differ = report.files.iter().filter(|file| file.state.code() != "unchanged");
    differ.map(|file| (name(file), file.state.code())).collect()
}
