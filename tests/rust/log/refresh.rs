//! After files were replaced, grew inside, or were cut and written again, `refresh` returns the same as a new
//! log.

use std::fs;
use std::io::{Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use cordwood::error::NotFound;
use cordwood::log::{OnDamage, Ranges};
use cordwood::types::Io;
use cordwood::writer::{LogWriter, WriterOptions};
use cordwood::{Error, Log};

use crate::support::batches::{BatchV2, Built, Rec};
use crate::support::naive::Record;
use crate::support::partition::{Indexing, file_name, segment_files};
use crate::support::reading::{all, folder, locate, open, range, time};

fn built(offset: i64, timestamp: i64, value: &str) -> Built {
    BatchV2::new(offset).record(Rec::at(timestamp).value(value)).build()
}

fn plain(start: i64, end: i64, value: &str) -> Vec<Built> {
    (start..end).map(|offset| built(offset, 1000 + offset, value)).collect()
}

fn put_segment(dir: &Path, base: i64, built: &[Built]) {
    let files = segment_files(base, built, Indexing::every(150));
    for (extension, bytes) in [("log", files.log), ("index", files.index), ("timeindex", files.time_index)] {
        // a new file replaces the old one, as in every replacement by Kafka
        let path = dir.join(file_name(base, extension));
        let new = path.with_extension("new");
        fs::write(&new, bytes).unwrap();
        fs::rename(new, path).unwrap();
    }
}

/// The results of all reads: records, the size, the end, the batch of each offset, times, the largest ones,
/// scans by time.
#[derive(Debug, PartialEq, Eq)]
struct Results {
    records: Vec<(i64, i64, String)>,
    size: u64,
    end: i64,
    located: Vec<Option<i64>>,
    timed: Vec<Option<(i64, i64)>>,
    largest: Vec<i64>,
    by_time: Vec<Vec<i64>>,
}

fn results_of(log: &Log) -> Result<Results, Error> {
    let read = all(log, OnDamage::Raise);
    let records = read
        .records()
        .map(|record| {
            let value = String::from_utf8(record.value.clone().unwrap()).unwrap();
            (record.offset, record.timestamp, value)
        })
        .collect();
    if let Some(error) = read.error {
        return Err(error);
    }
    let end = log.log_end_offset().unwrap();
    let located: Result<_, _> =
        (0..end).map(|offset| Ok(locate(log, offset)?.map(|found| found.1))).collect();
    let targets = [0, 1005, 1012, 1022, 1027, 2000, 5000, 9000];
    let timed: Result<_, _> = targets.iter().map(|target| time(log, *target)).collect();
    let largest: Result<_, _> = log.segments().iter().map(|segment| segment.largest_timestamp()).collect();
    let by_time =
        |start: &i64| range(log, Ranges { start_time: Some(*start), ..Ranges::default() }).whole().offsets();
    Ok(Results {
        records,
        size: log.size()?,
        end,
        located: located?,
        timed: timed?,
        largest: largest?,
        by_time: targets.iter().map(by_time).collect(),
    })
}

/// What was read of the log before its files changed.
#[derive(Debug, Clone, Copy)]
enum ReadBefore {
    Nothing,
    Size,
    Everything,
}

impl ReadBefore {
    const ALL: [Self; 3] = [Self::Nothing, Self::Size, Self::Everything];

    fn read(self, log: &Log) {
        match self {
            Self::Nothing => {}
            Self::Size => {
                log.size().unwrap();
            }
            Self::Everything => {
                results_of(log).unwrap();
            }
        }
    }
}

/// Opens a log, reads some of it, changes its files, refreshes it: the refreshed log must return the same as
/// a newly opened one. Once with files that were just created, and once with files that are an hour old.
fn assert_refresh_follows(
    name: &str,
    make: impl Fn(&Path),
    change: impl Fn(&Path),
    is_replaced: bool,
    after: impl Fn(&Log) -> bool,
) {
    assert_refresh_follows_from(name, &make, &change, is_replaced, &after);
    let make_an_hour_ago = |dir: &Path| {
        make(dir);
        age(dir);
    };
    assert_refresh_follows_from(
        &format!("{name}, an hour later"),
        make_an_hour_ago,
        change,
        is_replaced,
        after,
    );
}

fn assert_refresh_follows_from(
    name: &str,
    make: impl Fn(&Path),
    change: impl Fn(&Path),
    is_replaced: bool,
    after: impl Fn(&Log) -> bool,
) {
    for io in [Io::Pread, Io::Auto, Io::Mmap] {
        // mapped files must not be changed in place
        if io == Io::Mmap && !is_replaced {
            continue;
        }
        for read_before in ReadBefore::ALL {
            let context = format!("{name}: {io:?} {read_before:?}");
            let parent = folder();
            let dir = parent.path().join("t-0");
            fs::create_dir(&dir).unwrap();
            make(&dir);
            let log = open(&dir, io);
            read_before.read(&log);
            let before = results_of(&open(&dir, Io::Pread)).unwrap();
            change(&dir);
            let refreshed = log.refresh().unwrap();
            let fresh = open(&dir, io);
            let new = results_of(&fresh).unwrap();
            let ours = results_of(&refreshed).unwrap_or_else(|error| panic!("{context}: {error}"));
            assert_eq!(ours, new, "{context}: refreshed, and opened now");
            assert_eq!(refreshed.warnings(), fresh.warnings(), "{context}");
            assert_eq!(results_of(&refreshed.refresh().unwrap()).unwrap(), new, "{context}: again");
            assert!(after(&fresh), "{context}: the change has no effect");
            if is_replaced && !matches!(read_before, ReadBefore::Nothing) {
                match results_of(&log) {
                    Ok(still) => assert_eq!(still, before, "{context}: the old log"),
                    Err(Error::LogChanged { .. }) => {}
                    Err(error) => panic!("{context}: the old log: {error}"),
                }
            }
        }
    }
}

fn three_segments(dir: &Path) {
    for base in [0, 10, 20] {
        put_segment(dir, base, &plain(base, base + 10, "old"));
    }
}

fn offsets(log: &Log) -> Vec<i64> {
    all(log, OnDamage::Raise).whole().offsets()
}

#[test]
fn a_compacted_segment_of_the_same_name_is_followed() {
    for base in [0, 10] {
        assert_refresh_follows(
            "smaller",
            three_segments,
            |dir| {
                let left: Vec<Built> = plain(base, base + 10, "old").into_iter().step_by(3).collect();
                put_segment(dir, base, &left);
            },
            true,
            |log| offsets(log).len() == 24,
        );
    }
}

#[test]
fn a_rewritten_segment_of_the_same_name_and_size_is_followed() {
    assert_refresh_follows(
        "as large",
        three_segments,
        |dir| put_segment(dir, 10, &plain(10, 20, "new")),
        true,
        |log| all(log, OnDamage::Raise).records().any(|record| record.value.as_deref() == Some(b"new")),
    );
}

/// Rewrites a segment's `.log` in the same file. If it was modified within the last minute, its modification
/// time is kept, as for two writes within a tick of the clock.
fn write_in_place(dir: &Path, base: i64, built: &[Built]) {
    let mut file = fs::OpenOptions::new().write(true).open(dir.join(file_name(base, "log"))).unwrap();
    let before = file.metadata().unwrap().modified().unwrap();
    file.set_len(0).unwrap();
    file.write_all(&bytes_of(built)).unwrap();
    if before.elapsed().unwrap() < Duration::from_mins(1) {
        file.set_modified(before).unwrap();
    }
}

#[test]
fn a_sealed_segment_that_changed_in_place_is_followed() {
    for (name, built) in [
        ("shortened", plain(10, 13, "old")),
        ("as large", plain(10, 20, "new")),
        ("longer", plain(10, 20, "longer")),
    ] {
        let change = |dir: &Path| write_in_place(dir, 10, &built);
        assert_refresh_follows(name, three_segments, change, false, |log| log.segments().len() == 3);
    }
}

/// Sets the modification times of a directory and its files to an hour ago.
fn age(dir: &Path) {
    set_time(dir, SystemTime::now() - Duration::from_hours(1));
}

#[test]
fn segments_unchanged_for_longer_than_a_tick_are_shared() {
    let parent = folder();
    let dir = parent.path().join("t-0");
    fs::create_dir(&dir).unwrap();
    three_segments(&dir);
    let shared = |old: &Log, new: &Log| {
        let pairs = old.segments().iter().zip(new.segments().iter());
        pairs.map(|(old, new)| Arc::ptr_eq(old, new)).collect::<Vec<_>>()
    };
    let recent = open(&dir, Io::Pread);
    results_of(&recent).unwrap();
    assert_eq!(shared(&recent, &recent.refresh().unwrap()), [false; 3], "within a tick");
    age(&dir);
    let aged = recent.refresh().unwrap();
    results_of(&aged).unwrap();
    assert_eq!(shared(&aged, &aged.refresh().unwrap()), [true; 3], "the last one, too");
    write_in_place(&dir, 10, &plain(10, 20, "longer"));
    assert_eq!(shared(&aged, &aged.refresh().unwrap()), [true, false, true], "another size");
    fs::OpenOptions::new()
        .write(true)
        .open(dir.join(file_name(20, "log")))
        .unwrap()
        .set_modified(SystemTime::now())
        .unwrap();
    assert_eq!(shared(&aged, &aged.refresh().unwrap()), [true, false, false], "another time");
}

#[test]
fn segments_are_shared_with_a_log_from_before_the_first_writer() {
    let parent = folder();
    let dir = parent.path().join("t-0");
    fs::create_dir(&dir).unwrap();
    three_segments(&dir);
    age(&dir);
    let before = open(&dir, Io::Pread);
    results_of(&before).unwrap();
    let mut writer = LogWriter::open(&dir, &WriterOptions::default()).unwrap();
    let refreshed = before.refresh().unwrap();
    let is_shared =
        |log: &Log| Arc::ptr_eq(before.segments().first().unwrap(), log.segments().first().unwrap());
    assert!(is_shared(&refreshed));
    // the count is no longer the one that both began with
    writer.truncate_to(25).unwrap();
    assert!(!is_shared(&refreshed.refresh().unwrap()));
}

#[test]
fn segments_merged_into_the_first_ones_name_are_followed() {
    assert_refresh_follows(
        "larger",
        three_segments,
        |dir| {
            put_segment(dir, 0, &plain(0, 20, "old"));
            for extension in ["log", "index", "timeindex"] {
                fs::remove_file(dir.join(file_name(10, extension))).unwrap();
            }
        },
        true,
        |log| log.segments().len() == 2 && offsets(log).len() == 30,
    );
}

fn bytes_of(built: &[Built]) -> Vec<u8> {
    built.iter().flat_map(|batch| batch.bytes.clone()).collect()
}

#[test]
fn a_preallocated_last_segment_that_fills_up_is_followed() {
    assert_refresh_follows(
        "preallocated",
        |dir| {
            put_segment(dir, 0, &plain(0, 10, "old"));
            let mut bytes = bytes_of(&plain(10, 14, "old"));
            bytes.resize(16 << 10, 0);
            fs::write(dir.join(file_name(10, "log")), bytes).unwrap();
        },
        |dir| {
            let mut file = fs::OpenOptions::new().write(true).open(dir.join(file_name(10, "log"))).unwrap();
            file.seek(SeekFrom::Start(bytes_of(&plain(10, 14, "old")).len() as u64)).unwrap();
            file.write_all(&bytes_of(&plain(14, 28, "new"))).unwrap();
        },
        false,
        |log| log.log_end_offset().unwrap() == 28,
    );
}

#[test]
fn a_last_segment_that_was_cut_and_written_to_the_same_size_is_followed() {
    assert_refresh_follows(
        "truncated",
        |dir| {
            put_segment(dir, 0, &plain(0, 10, "old"));
            put_segment(dir, 10, &plain(10, 30, "old"));
        },
        |dir| {
            // as a follower does that had records which the new leader does not have
            let again: Vec<Built> = (25..30).map(|offset| built(offset, 9000 - offset, "new")).collect();
            let kept = bytes_of(&plain(10, 25, "old"));
            let path = dir.join(file_name(10, "log"));
            let size = fs::metadata(&path).unwrap().len();
            let mut file = fs::OpenOptions::new().write(true).open(&path).unwrap();
            file.set_len(kept.len() as u64).unwrap();
            file.seek(SeekFrom::End(0)).unwrap();
            file.write_all(&bytes_of(&again)).unwrap();
            assert_eq!(file.metadata().unwrap().len(), size);
            for extension in ["index", "timeindex"] {
                fs::write(dir.join(file_name(10, extension)), []).unwrap();
            }
        },
        false,
        |log| all(log, OnDamage::Raise).records().any(|record: &Record| record.timestamp == 8973),
    );
}

#[test]
fn a_last_segment_that_was_cut_to_other_offsets_of_the_same_size_is_followed() {
    assert_refresh_follows(
        "truncated",
        |dir| put_segment(dir, 0, &plain(0, 20, "old")),
        |dir| {
            // the last record's batch has the same size and two more offsets
            let mut all = plain(0, 19, "old");
            all.push(BatchV2::new(19).record(Rec::at(1030).value("new")).last_offset_delta(2).build());
            let path = dir.join(file_name(0, "log"));
            let size = fs::metadata(&path).unwrap().len();
            fs::write(&path, bytes_of(&all)).unwrap();
            assert_eq!(fs::metadata(&path).unwrap().len(), size);
        },
        false,
        |log| log.log_end_offset().unwrap() == 22,
    );
}

#[test]
fn a_changed_log_start_is_followed_if_nothing_else_changed() {
    let parent = folder();
    let dir = parent.path().join("t-0");
    fs::create_dir(&dir).unwrap();
    three_segments(&dir);
    age(&dir);
    let log = open(&dir, Io::Pread);
    assert_eq!(log.refresh().unwrap().log_start_offset(), 0);
    for start in [7, 13] {
        fs::write(parent.path().join("log-start-offset-checkpoint"), format!("0\n1\nt 0 {start}\n")).unwrap();
        assert_eq!(log.refresh().unwrap().log_start_offset(), start);
    }
    fs::write(parent.path().join("log-start-offset-checkpoint"), "broken").unwrap();
    assert_eq!(log.refresh().unwrap().warnings().len(), 1);
}

/// A partition of one segment on a disk whose directories keep their size, unlike those of `/dev/shm`.
fn on_disk() -> (tempfile::TempDir, PathBuf) {
    let parent = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let dir = parent.path().join("t-0");
    fs::create_dir(&dir).unwrap();
    put_segment(&dir, 0, &plain(0, 10, "old"));
    age(&dir);
    (parent, dir)
}

/// Sets the modification times of a directory and its files, as a copying tool does.
fn set_time(dir: &Path, time: SystemTime) {
    let paths = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    for path in paths.chain([dir.to_owned()]) {
        fs::File::open(path).unwrap().set_modified(time).unwrap();
    }
}

#[test]
fn a_new_segment_is_found_if_the_time_of_the_directory_is_restored() {
    let (_parent, dir) = on_disk();
    let time = fs::metadata(&dir).unwrap().modified().unwrap();
    let log = open(&dir, Io::Pread);
    assert_eq!(offsets(&log), (0..10).collect::<Vec<_>>());
    put_segment(&dir, 10, &plain(10, 20, "new"));
    set_time(&dir, time);
    assert_eq!(offsets(&log.refresh().unwrap()), (0..20).collect::<Vec<_>>());
}

#[test]
fn a_segment_rewritten_in_place_is_followed_if_its_time_is_restored() {
    let (_parent, dir) = on_disk();
    put_segment(&dir, 10, &plain(10, 20, "old"));
    age(&dir);
    for base in [0, 10] {
        let path = dir.join(file_name(base, "log"));
        let before = fs::metadata(&path).unwrap();
        let rewritten: Vec<Built> =
            (base..base + 10).map(|offset| built(offset, 3000 + offset, "new")).collect();
        let log = open(&dir, Io::Pread);
        let old = results_of(&log).unwrap();
        assert_eq!(results_of(&log.refresh().unwrap()).unwrap(), old);
        loop {
            let mut file = fs::OpenOptions::new().write(true).open(&path).unwrap();
            file.write_all(&bytes_of(&rewritten)).unwrap();
            file.set_modified(before.modified().unwrap()).unwrap();
            let now = file.metadata().unwrap();
            assert_eq!((now.len(), now.mtime_nsec()), (before.len(), before.mtime_nsec()));
            // until the next tick of the file system's clock
            if (now.ctime(), now.ctime_nsec()) != (before.ctime(), before.ctime_nsec()) {
                break;
            }
        }
        let new = results_of(&open(&dir, Io::Pread)).unwrap();
        assert_ne!(old, new);
        assert_eq!(results_of(&log.refresh().unwrap()).unwrap(), new, "segment {base}");
    }
}

#[test]
fn a_directory_that_was_renamed_or_replaced_is_not_refreshed() {
    let parent = folder();
    let dir = parent.path().join("t-0");
    fs::create_dir(&dir).unwrap();
    put_segment(&dir, 0, &plain(0, 5, "old"));
    let log = open(&dir, Io::Pread);
    let found = || match log.refresh().unwrap_err() {
        Error::LogNotFound { path, found, .. } => {
            assert_eq!(path, dir);
            found
        }
        error => panic!("{error}"),
    };
    let elsewhere = parent.path().join("t-0.0123456789abcdef0123456789abcdef-delete");
    fs::rename(&dir, &elsewhere).unwrap();
    assert_eq!(found(), NotFound::NoDirectory);
    fs::create_dir(&dir).unwrap();
    put_segment(&dir, 0, &plain(0, 5, "new"));
    assert_eq!(found(), NotFound::AnotherDirectory);
    fs::remove_dir_all(&dir).unwrap();
    fs::rename(&elsewhere, &dir).unwrap();
    assert_eq!(log.refresh().unwrap().log_end_offset().unwrap(), 5);
}
