//! Positions of consumers: names, ranges, and directories in which nothing is written.

use std::fs;
use std::path::Path;

use cordwood::record::NewRecord;
use cordwood::types::Io;
use cordwood::writer::{LogWriter, WriterOptions};
use cordwood::{Error, Log};

use crate::support::reading::{folder, open};

fn writer(path: &Path, records: usize) -> LogWriter {
    let mut writer = LogWriter::open(path, &WriterOptions::default()).unwrap();
    for _ in 0..records {
        writer.append(&NewRecord { value: Some(b"v"), ..NewRecord::default() }).unwrap();
    }
    writer
}

fn committed(log: &Log, name: &str) -> Option<i64> {
    log.position(name).unwrap().committed().unwrap().map(|committed| committed.offset)
}

#[test]
fn a_committed_offset_is_read_by_every_log_of_the_directory() {
    let folder = folder();
    let path = folder.path().join("orders-0");
    let mut writer = writer(&path, 5);
    let log = open(&path, Io::Auto);
    let position = log.position("billing").unwrap();
    assert_eq!((position.name(), position.committed().unwrap()), ("billing", None));
    assert!(!path.join(".cordwood.positions").exists());
    position.commit(5).unwrap();
    position.commit(3).unwrap();
    // it may be committed through a log that was opened before the records were appended
    writer.append(&NewRecord::default()).unwrap();
    log.position("audit").unwrap().commit(6).unwrap();
    assert_eq!(
        (committed(&log, "billing"), committed(&writer.reader().unwrap(), "audit")),
        (Some(3), Some(6))
    );
    let names: Vec<_> = log.positions().unwrap().iter().map(|position| position.name().to_owned()).collect();
    assert_eq!(names, ["audit", "billing"]);
}

#[test]
fn an_offset_outside_the_log_is_refused_with_the_limits() {
    let folder = folder();
    let path = folder.path().join("orders-0");
    let mut writer = writer(&path, 5);
    let log = open(&path, Io::Auto);
    writer.roll().unwrap();
    writer.delete_before(2).unwrap();
    for offset in [-1, 0, 1, 6, i64::MAX] {
        match log.position("billing").unwrap().commit(offset) {
            Err(Error::OffsetOutOfRange {
                offset: found, log_start_offset: 2, log_end_offset: 5, ..
            }) => {
                assert_eq!(found, offset);
            }
            other => panic!("{offset}: {other:?}"),
        }
    }
    assert!(!path.join(".cordwood.positions").exists());
}

#[test]
fn a_name_is_one_that_kafka_allows_for_a_topic() {
    let folder = folder();
    let path = folder.path().join("orders-0");
    drop(writer(&path, 1));
    let log = open(&path, Io::Auto);
    let longest = "x".repeat(249);
    for name in ["a", "A.b_c-9", "...", ".lock", "a.tmp", &longest] {
        log.position(name).unwrap().commit(1).unwrap();
        assert_eq!(committed(&log, name), Some(1), "{name}");
    }
    for name in ["", ".", "..", "a/b", "a~", "~lock", "t\u{e4}", "a b", "a\0", &"x".repeat(250)] {
        assert!(
            matches!(log.position(name), Err(Error::Config { argument, .. }) if argument == "name"),
            "{name}"
        );
    }
    assert_eq!(log.positions().unwrap().len(), 6);
}

#[test]
fn files_that_a_killed_process_has_left_are_no_positions_and_are_removed_by_the_next_commit() {
    let folder = folder();
    let path = folder.path().join("orders-0");
    drop(writer(&path, 1));
    let positions = path.join(".cordwood.positions");
    fs::create_dir(&positions).unwrap();
    for name in ["billing~", "audit~"] {
        fs::write(positions.join(name), "0\noffs").unwrap();
    }
    let log = open(&path, Io::Auto);
    assert_eq!((log.positions().unwrap().len(), committed(&log, "billing")), (0, None));
    log.position("billing").unwrap().commit(1).unwrap();
    let mut left: Vec<_> = fs::read_dir(positions).unwrap().map(|file| file.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["billing", "~lock"]);
}

#[test]
fn a_position_is_kept_by_the_writer_and_by_a_truncation() {
    let folder = folder();
    let path = folder.path().join("orders-0");
    let mut writer = writer(&path, 5);
    open(&path, Io::Auto).position("billing").unwrap().commit(5).unwrap();
    writer.truncate_to(2).unwrap();
    writer.close().unwrap();
    drop(writer);
    let writer = LogWriter::open(&path, &WriterOptions::default()).unwrap();
    assert!(writer.recovery().is_none());
    let log = open(&path, Io::Auto);
    assert_eq!((committed(&log, "billing"), log.log_end_offset().unwrap()), (Some(5), 2));
}
