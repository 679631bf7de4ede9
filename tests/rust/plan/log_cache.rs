//! The cache of open logs: bounded, current when it is refreshed, and shared by threads.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use cordwood::Log;
use cordwood::plan::LogAccess;
use cordwood::types::Io;

use crate::support::batches::{BatchV2, Built, Rec};
use crate::support::partition::{Indexing, PartitionBuilder, file_name};
use crate::support::planning::cache;
use crate::support::reading::{all, folder};
use cordwood::log::OnDamage;

fn batch(offset: i64, value: &str) -> Built {
    BatchV2::new(offset).record(Rec::at(1000 + offset).value(value)).build()
}

fn write(parent: &Path, name: &str, records: i64, value: &str) -> PathBuf {
    let batches = (0..records).map(|offset| batch(offset, value));
    PartitionBuilder::new(Indexing::every(100)).segment(0, batches).write(parent, name)
}

fn append(dir: &Path, offset: i64, value: &str) {
    let path = dir.join(file_name(0, "log"));
    fs::OpenOptions::new().append(true).open(path).unwrap().write_all(&batch(offset, value).bytes).unwrap();
}

/// Another directory takes the place of one, as when a topic is created again.
fn replace(parent: &Path, name: &str, records: i64, value: &str) {
    fs::remove_dir_all(parent.join(name)).unwrap();
    write(parent, name, records, value);
}

fn values(log: &Log) -> Vec<String> {
    let read = all(log, OnDamage::Raise).whole();
    read.records().map(|record| String::from_utf8(record.value.clone().unwrap()).unwrap()).collect()
}

#[test]
fn an_unchanged_log_is_opened_once() {
    let (logs, folder) = (cache(), folder());
    let dir = write(folder.path(), "a-0", 5, "old");
    for refresh in [true, false, true, true, false] {
        let log = logs.open(&dir, LogAccess::of(Io::Pread), refresh).unwrap();
        assert_eq!((log.log_end_offset().unwrap(), logs.opened()), (5, 1));
    }
    // other names of the same directory
    for other in [folder.path().join("./a-0"), folder.path().join("a-0/"), folder.path().join("a-0/../a-0")] {
        logs.open(&other, LogAccess::of(Io::Pread), true).unwrap();
    }
    assert_eq!(logs.opened(), 1);
    logs.open(&dir, LogAccess::of(Io::Mmap), true).unwrap();
    assert_eq!(logs.opened(), 2, "one for each kind of access");
}

#[test]
fn a_log_grows_when_it_is_refreshed() {
    let (logs, folder) = (cache(), folder());
    let dir = write(folder.path(), "a-0", 5, "old");
    let first = logs.open(&dir, LogAccess::of(Io::Pread), true).unwrap();
    append(&dir, 5, "new");
    assert_eq!(logs.open(&dir, LogAccess::of(Io::Pread), false).unwrap().log_end_offset().unwrap(), 5);
    assert_eq!(logs.open(&dir, LogAccess::of(Io::Pread), true).unwrap().log_end_offset().unwrap(), 6);
    assert_eq!(logs.open(&dir, LogAccess::of(Io::Pread), false).unwrap().log_end_offset().unwrap(), 6);
    assert_eq!((first.log_end_offset().unwrap(), logs.opened()), (5, 1));
}

#[test]
fn a_replaced_directory_is_opened_again_when_it_is_refreshed() {
    let (logs, folder) = (cache(), folder());
    let dir = write(folder.path(), "a-0", 5, "old");
    logs.open(&dir, LogAccess::of(Io::Pread), true).unwrap();
    for round in 0..5 {
        let value = format!("round {round}");
        replace(folder.path(), "a-0", round, &value);
        let log = logs.open(&dir, LogAccess::of(Io::Pread), true).unwrap();
        assert_eq!(values(&log), vec![value; round as usize]);
        assert_eq!(values(&logs.open(&dir, LogAccess::of(Io::Pread), false).unwrap()), values(&log));
    }
    assert_eq!(logs.opened(), 6);
}

#[test]
fn a_missing_log_is_an_error_until_it_exists() {
    let (logs, folder) = (cache(), folder());
    let dir = folder.path().join("a-0");
    for refresh in [true, false] {
        logs.open(&dir, LogAccess::of(Io::Pread), refresh).unwrap_err();
    }
    write(folder.path(), "a-0", 2, "new");
    for refresh in [false, true] {
        assert_eq!(values(&logs.open(&dir, LogAccess::of(Io::Pread), refresh).unwrap()), ["new", "new"]);
    }
    fs::remove_dir_all(&dir).unwrap();
    // open files keep their content; a refresh notices
    assert_eq!(values(&logs.open(&dir, LogAccess::of(Io::Pread), false).unwrap()).len(), 2);
    for refresh in [true, false] {
        logs.open(&dir, LogAccess::of(Io::Pread), refresh).unwrap_err();
    }
}

/// The one that was used least recently is dropped. Descriptors are limited by the system.
#[test]
fn the_number_of_open_logs_is_bounded() {
    const MOST: u64 = 64;
    let (logs, folder) = (cache(), folder());
    let dirs: Vec<PathBuf> =
        (0..MOST as usize + 6).map(|number| write(folder.path(), &format!("a-{number}"), 1, "x")).collect();
    for dir in &dirs {
        logs.open(dir, LogAccess::of(Io::Pread), true).unwrap();
        // the first one is used all the time
        logs.open(&dirs[0], LogAccess::of(Io::Pread), false).unwrap();
    }
    assert_eq!(logs.opened(), MOST + 6);
    logs.open(&dirs[0], LogAccess::of(Io::Pread), true).unwrap();
    dirs.iter().skip(7).for_each(|dir| drop(logs.open(dir, LogAccess::of(Io::Pread), true).unwrap()));
    assert_eq!(logs.opened(), MOST + 6, "still open");
    logs.open(&dirs[1], LogAccess::of(Io::Pread), false).unwrap();
    assert_eq!(logs.opened(), MOST + 7, "dropped before");
    let open = fs::read_dir("/proc/self/fd").unwrap().filter_map(Result::ok);
    let open = open.filter_map(|entry| fs::read_link(entry.path()).ok());
    let open = open.filter(|path| path.starts_with(folder.path())).count();
    assert!(open <= 3 * MOST as usize, "{open} descriptors");
}

/// Four threads open logs that grow and are replaced. Each result is one of the states that a log had.
#[test]
fn threads_share_the_cache_while_logs_change() {
    let (logs, folder) = (cache(), folder());
    let names = ["a-0", "a-1", "a-2"];
    for name in names {
        write(folder.path(), name, 3, "0");
    }
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let readers: Vec<_> = (0..4)
            .map(|thread| {
                let (logs, folder, is_done) = (&logs, folder.path(), &is_done);
                scope.spawn(move || {
                    let mut opened = 0;
                    let mut last = [0; 3];
                    while !is_done.load(Ordering::Relaxed) || opened == 0 {
                        let which = (opened + thread) % 3;
                        let log =
                            logs.open(&folder.join(names[which]), LogAccess::of(Io::Pread), opened % 2 == 0);
                        // a directory is missing for a moment when it is replaced
                        let Ok(log) = log else { continue };
                        opened += 1;
                        let read = all(&log, OnDamage::Raise);
                        if read.error.is_some() {
                            continue;
                        }
                        let values: Vec<i64> = values_of(&read);
                        assert!(values.len() >= 3 || which == 2, "{which}: {values:?}");
                        assert!(values.windows(2).all(|pair| pair[0] == pair[1]), "one state: {values:?}");
                        if opened % 2 == 1 && which < 2 {
                            // a log that only grows never shrinks
                            assert!(values.len() >= last[which], "{values:?}");
                            last[which] = values.len();
                        }
                    }
                    opened
                })
            })
            .collect();
        for round in 1..60 {
            append(&folder.path().join("a-0"), 2 + round, "0");
            append(&folder.path().join("a-1"), 2 + round, "0");
            // the new directory is complete when it gets its name
            let new = write(folder.path(), "new", round % 4, &round.to_string());
            fs::rename(folder.path().join("a-2"), folder.path().join(format!("old{round}"))).unwrap();
            fs::rename(new, folder.path().join("a-2")).unwrap();
        }
        is_done.store(true, Ordering::Relaxed);
        assert!(readers.into_iter().all(|reader| reader.join().unwrap() > 0));
    });
    let log = logs.open(&folder.path().join("a-2"), LogAccess::of(Io::Pread), true).unwrap();
    assert_eq!(values(&log), vec!["59"; 3]);
}

fn values_of(read: &crate::support::reading::Read) -> Vec<i64> {
    read.records()
        .map(|record| String::from_utf8(record.value.clone().unwrap()).unwrap().parse().unwrap())
        .collect()
}
