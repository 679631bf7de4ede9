//! Which files of a directory belong to the log, and logs whose directory changes.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use cordwood::log::OnDamage;
use cordwood::types::Io;
use cordwood::{Error, Log, LogOptions};

use crate::support::batches::{BatchV2, Built, Rec};
use crate::support::partition::{Indexing, PartitionBuilder, file_name, segment_files};
use crate::support::reading::{IOS, all, both, files, folder, open, write};

const EXTENSIONS: [&str; 3] = ["log", "index", "timeindex"];

/// Batches of two records from `start` to below `end`.
fn batches(start: i64, end: i64, value: &str) -> Vec<Built> {
    let record = |offset| Rec::at(1000 + offset).value(value);
    (start..end)
        .step_by(2)
        .map(|base| BatchV2::new(base).records([record(base), record(base + 1)]).build())
        .collect()
}

type Files = BTreeMap<String, Vec<u8>>;

/// The three files of a segment, with names that end in `suffix`.
fn segment(start: i64, end: i64, value: &str, suffix: &str) -> Files {
    let of = segment_files(start, &batches(start, end, value), Indexing::default());
    let bytes = [of.log, of.index, of.time_index];
    EXTENSIONS
        .iter()
        .zip(bytes)
        .map(|(extension, bytes)| (file_name(start, extension) + suffix, bytes))
        .collect()
}

/// Three segments with the value "old".
fn originals() -> Files {
    [segment(0, 10, "old", ""), segment(10, 20, "old", ""), segment(20, 30, "old", "")]
        .into_iter()
        .flatten()
        .collect()
}

fn renamed(files: &Files, start: i64, extensions: &[&str], from: &str, to: &str) -> Files {
    let name_of = |name: &String| {
        extensions
            .iter()
            .find(|extension| *name == file_name(start, extension) + from)
            .map_or_else(|| name.clone(), |extension| file_name(start, extension) + to)
    };
    files.iter().map(|(name, bytes)| (name_of(name), bytes.clone())).collect()
}

/// Offset and value of every record, and the warnings.
fn read(dir: &Path) -> (Vec<(i64, String)>, Vec<String>) {
    let mut read = None;
    for log in both(dir) {
        let records = all(&log, OnDamage::Raise).whole();
        let records: Vec<_> = records
            .records()
            .map(|record| (record.offset, String::from_utf8(record.value.clone().unwrap()).unwrap()))
            .collect();
        for (offset, _) in &records {
            assert!(log.locate(*offset).unwrap().unwrap().batch_base_offset <= *offset);
            assert_eq!(log.offset_for_time(1000 + offset).unwrap().unwrap().offset, *offset);
        }
        let found = (records, log.warnings());
        assert!(read.as_ref().is_none_or(|before| *before == found));
        read = Some(found);
    }
    read.unwrap()
}

fn values(start: i64, end: i64, value: &str) -> Vec<(i64, String)> {
    (start..end).map(|offset| (offset, value.to_owned())).collect()
}

/// Checks the records and the number of warnings of a log in a directory as a crash leaves it.
fn assert_crash_state(name: &str, left: &Files, expected: &[Vec<(i64, String)>], warnings: usize) {
    let parent = folder();
    let dir = write(parent.path(), "t-0", left);
    let (records, warned) = read(&dir);
    assert_eq!(records, expected.concat(), "{name}");
    assert_eq!(warned.len(), warnings, "{name}: {warned:?}");
    assert_eq!(files(&dir), *left, "{name}: nothing is written");
}

#[test]
fn each_crash_state_of_a_compaction_reads_as_kafka_would_recover_it() {
    let old = originals();
    // segments 0 and 10 became one with the value "new"
    let new = |suffix| segment(0, 20, "new", suffix);
    let (all_old, new_wins) = (vec![values(0, 30, "old")], vec![values(0, 20, "new"), values(20, 30, "old")]);
    let with = |files: &[&Files]| files.iter().flat_map(|files| (*files).clone()).collect::<Files>();

    assert_crash_state("only .cleaned", &with(&[&old, &new(".cleaned")]), &all_old, 0);
    let half = renamed(&new(".cleaned"), 0, &["log"], ".cleaned", ".swap");
    assert_crash_state("the log .swap, its indexes .cleaned", &with(&[&old, &half]), &all_old, 0);
    assert_crash_state("all .swap, originals there", &with(&[&old, &new(".swap")]), &new_wins, 1);
    let some_deleted = renamed(&old, 10, &EXTENSIONS, "", ".deleted");
    assert_crash_state(
        "all .swap, some originals .deleted",
        &with(&[&some_deleted, &new(".swap")]),
        &new_wins,
        1,
    );
    let all_deleted = renamed(&some_deleted, 0, &EXTENSIONS, "", ".deleted");
    assert_crash_state(
        "all .swap, all originals .deleted",
        &with(&[&all_deleted, &new(".swap")]),
        &new_wins,
        1,
    );
    let log_first = renamed(&new(".swap"), 0, &["log"], ".swap", "");
    assert_crash_state(
        "the log renamed, its indexes still .swap",
        &with(&[&all_deleted, &log_first]),
        &new_wins,
        0,
    );
    assert_crash_state(".deleted leftovers", &with(&[&all_deleted, &new("")]), &new_wins, 0);
}

#[test]
fn each_crash_state_of_a_split_reads_as_kafka_would_recover_it() {
    // segment 10 became 10 and 16
    let old = originals();
    let (low, high) = (|suffix| segment(10, 16, "new", suffix), |suffix| segment(16, 20, "new", suffix));
    let all_old = vec![values(0, 30, "old")];
    let new_wins = vec![values(0, 10, "old"), values(10, 20, "new"), values(20, 30, "old")];
    let with = |files: &[&Files]| files.iter().flat_map(|files| (*files).clone()).collect::<Files>();

    assert_crash_state("all .cleaned", &with(&[&old, &low(".cleaned"), &high(".cleaned")]), &all_old, 0);
    // renamed from the highest base offset down: the .swap is above a .cleaned
    assert_crash_state(
        "the higher .swap, the lower .cleaned",
        &with(&[&old, &low(".cleaned"), &high(".swap")]),
        &all_old,
        0,
    );
    assert_crash_state("both .swap", &with(&[&old, &low(".swap"), &high(".swap")]), &new_wins, 2);
    // renamed to the final names from the lowest base offset up
    let without: Files = renamed(&old, 10, &EXTENSIONS, "", ".deleted");
    assert_crash_state(
        "the lower final, the higher .swap",
        &with(&[&without, &low(""), &high(".swap")]),
        &new_wins,
        1,
    );
    assert_crash_state("both final", &with(&[&without, &low(""), &high("")]), &new_wins, 0);
}

#[test]
fn files_with_foreign_names_are_ignored() {
    let mut left = originals();
    for name in [
        "7.log",
        "notes.log",
        "README",
        ".DS_Store",
        "00000000000000000005.log.bak",
        "00000000000000000005.checkpoint",
        "99999999999999999999.log",
        // no offset is above this one
        "09223372036854775807.log",
        "09223372036854775807.index",
        "-0000000000000000001.log",
        "00000000000000000005.txt",
        "0000000000000000000x.log",
        "00000000000000000005.index",
        "00000000000000000099.timeindex",
        "00000000000000000030.snapshot",
        "leader-epoch-checkpoint",
    ] {
        left.insert(name.to_owned(), b"not a log".to_vec());
    }
    assert_crash_state("foreign names", &left, &[values(0, 30, "old")], 0);
    // a segment's name may have more than 20 digits
    let parent = folder();
    let dir = parent.path().join("t-0");
    fs::create_dir(&dir).unwrap();
    for (name, bytes) in segment(40, 44, "far", "") {
        fs::write(dir.join(format!("0{name}")), bytes).unwrap();
    }
    fs::create_dir(dir.join("quarantine")).unwrap();
    assert_eq!(read(&dir).0, values(40, 44, "far"));
}

#[test]
fn a_directory_without_a_segment_is_not_a_log() {
    let parent = folder();
    let names = ["7.log", "09223372036854775807.log"];
    let dir = write(parent.path(), "t-0", &names.map(|name| (name.to_owned(), Vec::new())).into());
    assert!(matches!(Log::open(&dir, LogOptions::default()), Err(Error::LogNotFound { .. })));
    assert!(matches!(Log::open(dir.join("7.log"), LogOptions::default()), Err(Error::LogNotFound { .. })));
    assert!(matches!(Log::open(dir.join("none"), LogOptions::default()), Err(Error::LogNotFound { .. })));
}

#[test]
fn empty_segments_have_no_records_and_end_the_log_at_their_base_offset() {
    for (bases, end) in [(vec![15], 30), (vec![30], 30), (vec![44], 44), (vec![12, 14, 31, 32], 32)] {
        let mut left = [segment(0, 10, "old", ""), segment(20, 30, "old", "")].concat_files();
        for base in bases {
            for extension in EXTENSIONS {
                left.insert(file_name(base, extension), Vec::new());
            }
        }
        let parent = folder();
        let dir = write(parent.path(), "t-0", &left);
        for log in both(&dir) {
            assert_eq!(log.log_end_offset().unwrap(), end);
            assert_eq!(
                all(&log, OnDamage::Raise).whole().offsets(),
                (0..10).chain(20..30).collect::<Vec<_>>()
            );
            assert_eq!(log.locate(12).unwrap().unwrap().batch_base_offset, 20);
            if end > 30 {
                assert_eq!(log.locate(30).unwrap(), None, "nothing follows");
            }
            let (of_gaps, others): (Vec<_>, Vec<_>) =
                log.warnings().into_iter().partition(|warning| warning.contains(" missing: "));
            assert_eq!(others, [""; 0]);
            assert!(!of_gaps.is_empty());
        }
    }
    let parent = folder();
    let dir = write(parent.path(), "t-0", &Files::from([(file_name(5, "log"), Vec::new())]));
    for log in both(&dir) {
        assert_eq!(
            (log.log_start_offset(), log.log_end_offset().unwrap(), log.last_stable_offset().unwrap()),
            (5, 5, 5)
        );
        assert_eq!(all(&log, OnDamage::Raise).whole().offsets(), [0; 0]);
        assert_eq!(log.offset_for_time(0).unwrap(), None);
    }
}

trait ConcatFiles {
    fn concat_files(self) -> Files;
}

impl<const N: usize> ConcatFiles for [Files; N] {
    fn concat_files(self) -> Files {
        self.into_iter().flatten().collect()
    }
}

fn append(path: &Path, built: &[Built]) {
    let mut bytes = fs::read(path).unwrap();
    bytes.extend(built.iter().flat_map(|batch| batch.bytes.clone()));
    fs::write(path, bytes).unwrap();
}

fn offsets(log: &Log) -> Vec<i64> {
    all(log, OnDamage::Raise).whole().offsets()
}

#[test]
fn a_refreshed_log_sees_changes_and_the_old_one_does_not_change() {
    // mapped files must not be rewritten under a log
    for io in [Io::Pread, Io::Auto] {
        let parent = folder();
        let dir = write(parent.path(), "t-0", &originals());
        let log = Log::open(&dir, LogOptions { io, ..LogOptions::default() }).unwrap();
        assert_eq!(offsets(&log), (0..30).collect::<Vec<_>>());

        append(&dir.join(file_name(20, "log")), &batches(30, 36, "old"));
        let grown = log.refresh().unwrap();
        assert_eq!((log.log_end_offset().unwrap(), grown.log_end_offset().unwrap()), (30, 36));
        assert_eq!((offsets(&log), offsets(&grown)), ((0..30).collect(), (0..36).collect()));
        assert_eq!(grown.locate(35).unwrap().unwrap().batch_base_offset, 34);
        assert!(log.locate(35).is_err());

        fs::write(dir.join(file_name(36, "log")), []).unwrap();
        let rolled = grown.refresh().unwrap();
        assert_eq!(
            (rolled.segments().len(), rolled.log_end_offset().unwrap(), grown.segments().len()),
            (4, 36, 3)
        );
        append(&dir.join(file_name(36, "log")), &batches(36, 40, "old"));
        let again = rolled.refresh().unwrap();
        assert_eq!(offsets(&again), (0..40).collect::<Vec<_>>());
        assert_eq!(offsets(&grown), (0..36).collect::<Vec<_>>());

        for extension in EXTENSIONS {
            fs::remove_file(dir.join(file_name(0, extension))).unwrap();
        }
        let cut = again.refresh().unwrap();
        assert_eq!((cut.log_start_offset(), cut.log_end_offset().unwrap()), (10, 40));
        assert_eq!(offsets(&cut), (10..40).collect::<Vec<_>>());
        let fresh = Log::open(&dir, LogOptions { io, ..LogOptions::default() }).unwrap();
        assert_eq!(offsets(&fresh), offsets(&cut));
        assert_eq!(fresh.warnings(), cut.warnings());

        // a compaction replaced two segments by another one
        for base in [10, 20] {
            for extension in EXTENSIONS {
                fs::remove_file(dir.join(file_name(base, extension))).unwrap();
            }
        }
        for (name, bytes) in segment(10, 34, "new", "") {
            fs::write(dir.join(name), bytes).unwrap();
        }
        assert_eq!(offsets(&cut.refresh().unwrap()), (10..34).chain(36..40).collect::<Vec<_>>());
        for path in fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().path()) {
            fs::remove_file(path).unwrap();
        }
        assert!(matches!(cut.refresh(), Err(Error::LogNotFound { .. })));
    }
}

#[test]
fn a_removed_or_shortened_segment_is_a_changed_log() {
    let parent = folder();
    let dir = write(parent.path(), "t-0", &originals());
    let log = open(&dir, Io::Pread);
    fs::remove_file(dir.join(file_name(10, "log"))).unwrap();
    let read = all(&log, OnDamage::Raise);
    assert_eq!(read.offsets(), (0..10).collect::<Vec<_>>());
    assert!(matches!(read.error, Some(Error::LogChanged { .. })), "{:?}", read.error);
    assert!(
        matches!(all(&log, OnDamage::Skip).error, Some(Error::LogChanged { .. })),
        "a removed segment is not damage"
    );

    let log = open(&dir, Io::Pread);
    fs::OpenOptions::new().write(true).open(dir.join(file_name(20, "log"))).unwrap().set_len(10).unwrap();
    assert!(matches!(all(&log, OnDamage::Raise).error, Some(Error::LogChanged { .. })));
    assert!(matches!(log.locate(29), Err(Error::LogChanged { .. })));
}

#[test]
fn a_directory_may_be_renamed_while_it_is_open() {
    for io in IOS {
        let parent = folder();
        let dir = write(parent.path(), "t-0", &originals());
        let log = open(&dir, io);
        fs::rename(&dir, parent.path().join("t-0.00ff-delete")).unwrap();
        assert_eq!(offsets(&log), (0..30).collect::<Vec<_>>());
        assert_eq!(log.locate(15).unwrap().unwrap().batch_base_offset, 14);
        assert!(matches!(log.refresh(), Err(Error::LogNotFound { .. })));
        write(parent.path(), "t-0", &originals());
        // another one: its records are not those of this log
        assert!(matches!(log.refresh(), Err(Error::LogNotFound { .. })));
        assert_eq!(offsets(&log), (0..30).collect::<Vec<_>>());
        assert_eq!(log.path(), dir);
    }
}

/// Something that has the name of a segment's file but is not a regular file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NotAFile {
    Directory,
    Fifo,
    Socket,
}

impl NotAFile {
    const ALL: [Self; 3] = [Self::Directory, Self::Fifo, Self::Socket];

    fn make(self, path: &Path) {
        match self {
            Self::Directory => fs::create_dir(path).unwrap(),
            Self::Fifo => {
                assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success());
            }
            Self::Socket => drop(std::os::unix::net::UnixListener::bind(path).unwrap()),
        }
    }
}

/// Checks all reads of these records, and that a warning contains the name of the file.
fn assert_reads_without(dir: &Path, odd: &Path, expected: &[i64], context: &str) {
    for io in [Io::Auto, Io::Mmap, Io::Pread] {
        let log = Log::open(dir, LogOptions { io, ..LogOptions::default() })
            .unwrap_or_else(|error| panic!("{context}: {error}"));
        assert_eq!(offsets(&log), expected, "{context}");
        for offset in expected {
            assert_eq!(log.locate(*offset).unwrap().unwrap().batch_base_offset, offset / 2 * 2, "{context}");
            assert_eq!(log.offset_for_time(1000 + offset).unwrap().unwrap().offset, *offset, "{context}");
        }
        let name = odd.file_name().unwrap().to_str().unwrap();
        let warnings = log.warnings();
        assert!(warnings.iter().any(|warning| warning.contains(name)), "{context}: {warnings:?}");
        assert_eq!(offsets(&log.refresh().unwrap()), expected, "{context}");
    }
}

#[test]
fn something_other_than_a_file_in_place_of_one_is_ignored_with_a_warning() {
    for odd in NotAFile::ALL {
        for extension in EXTENSIONS {
            for base in [0, 10, 20] {
                let parent = folder();
                let dir = write(parent.path(), "t-0", &originals());
                let path = dir.join(file_name(base, extension));
                fs::remove_file(&path).unwrap();
                odd.make(&path);
                // an index is only a hint; without its `.log` there is no segment
                let is_left = |offset: &i64| extension != "log" || offset / 10 * 10 != base;
                let expected: Vec<i64> = (0..30).filter(is_left).collect();
                let context = format!("{odd:?} {base} {extension}");
                assert_reads_without(&dir, &path, &expected, &context);
                assert!(!fs::symlink_metadata(&path).unwrap().is_file(), "{context}: it was changed");
            }
        }
    }
}

#[test]
fn something_other_than_a_file_next_to_the_segments_is_ignored_with_a_warning() {
    for odd in NotAFile::ALL {
        for base in [5, 30, 44] {
            let parent = folder();
            let dir = write(parent.path(), "t-0", &originals());
            let path = dir.join(file_name(base, "log"));
            odd.make(&path);
            assert_reads_without(&dir, &path, &(0..30).collect::<Vec<_>>(), &format!("{odd:?} {base}"));
        }
        let parent = folder();
        let dir = write(parent.path(), "t-0", &Files::new());
        odd.make(&dir.join(file_name(0, "log")));
        let opened = Log::open(&dir, LogOptions::default());
        assert!(matches!(opened, Err(Error::LogNotFound { .. })), "{odd:?} alone is not a log");
    }
}

#[test]
fn a_link_in_place_of_a_file_is_an_error() {
    for extension in EXTENSIONS {
        for base in [0, 20] {
            let parent = folder();
            let dir = write(parent.path(), "t-0", &originals());
            let path = dir.join(file_name(base, extension));
            let elsewhere = parent.path().join("elsewhere");
            fs::rename(&path, &elsewhere).unwrap();
            std::os::unix::fs::symlink(&elsewhere, &path).unwrap();
            if extension != "log" {
                // an index is only a hint: reads work without it
                assert_reads_without(&dir, &path, &(0..30).collect::<Vec<_>>(), extension);
                continue;
            }
            let log = Log::open(&dir, LogOptions::default()).unwrap();
            assert!(matches!(all(&log, OnDamage::Raise).error, Some(Error::Io { .. })));
            assert!(matches!(all(&log, OnDamage::Skip).error, Some(Error::Io { .. })));
        }
    }
}

#[test]
fn the_log_start_offset_comes_from_the_option_the_checkpoint_or_the_first_segment() {
    let start_of = |checkpoint: Option<&str>, option: Option<i64>, name: &str| {
        let parent = folder();
        let dir: PathBuf = PartitionBuilder::new(Indexing::default())
            .segment(10, batches(10, 20, "v"))
            .segment(20, batches(20, 30, "v"))
            .write(parent.path(), name);
        if let Some(text) = checkpoint {
            fs::write(parent.path().join("log-start-offset-checkpoint"), text).unwrap();
        }
        let log = Log::open(&dir, LogOptions { log_start_offset: option, ..LogOptions::default() }).unwrap();
        let start = log.log_start_offset();
        assert_eq!(offsets(&log), (start..30).collect::<Vec<_>>());
        assert!(log.locate(start - 1).is_err());
        assert_eq!(log.offset_for_time(0).unwrap().map_or(30, |found| found.offset), start);
        (start, log.warnings().len())
    };
    assert_eq!(start_of(None, None, "t-0"), (10, 0));
    assert_eq!(start_of(Some("0\n1\nt 0 10\n"), None, "t-0"), (10, 0));
    assert_eq!(start_of(Some("0\n2\nt 1 13\nt 0 17\n"), None, "t-0"), (17, 1), "hides seven records");
    assert_eq!(start_of(Some("0\n1\nt 0 17\n"), Some(11), "t-0"), (11, 1), "the option has priority");
    assert_eq!(start_of(Some("0\n1\nt 0 17\n"), Some(10), "t-0"), (10, 0));
    assert_eq!(start_of(Some("0\n1\nt 0 30\n"), None, "t-0"), (30, 1), "everything was deleted");
    assert_eq!(start_of(Some("0\n1\nt 0 31\n"), None, "t-0"), (10, 1), "outside the log");
    assert_eq!(start_of(Some("0\n1\nt 0 3\n"), None, "t-0"), (10, 1), "outside the log");
    assert_eq!(start_of(None, Some(-1), "t-0"), (10, 1));
    assert_eq!(start_of(None, Some(i64::MAX), "t-0"), (10, 1));
    assert_eq!(start_of(Some("0\n1\nt 0 x\n"), None, "t-0"), (10, 1), "a checkpoint that cannot be read");
    assert_eq!(start_of(Some("0\n7\nt 0 17\n"), None, "t-0"), (10, 1), "a checkpoint that cannot be read");
    assert_eq!(
        start_of(Some("0\n1\nt 0 17\n"), None, "no partition"),
        (10, 0),
        "an entry for another directory"
    );
}
