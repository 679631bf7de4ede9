//! Readers that were opened before the log was truncated: none returns data that was written over the removed
//! data.

use std::path::{Path, PathBuf};

use cordwood::config::LogConfig;
use cordwood::index::OffsetIndex;
use cordwood::log::{Log, OnDamage, ScanOptions, ScanStep};
use cordwood::record::NewRecord;
use cordwood::types::Io;
use cordwood::writer::{FlushMode, LogWriter, WriterOptions};

use crate::support::batches::{BatchV2, Rec};
use crate::support::partition::{Indexing, PartitionBuilder};
use crate::support::reading::{all, folder, open};

fn writing(path: &Path, segment_bytes: u32) -> LogWriter {
    let config = LogConfig { segment_bytes, index_interval_bytes: 1, ..LogConfig::default() };
    let options =
        WriterOptions { config, flush: FlushMode::None, clock: || 1_000_000, ..WriterOptions::default() };
    LogWriter::open(path, &options).unwrap()
}

fn append(writer: &mut LogWriter, value: &[u8], count: usize) {
    for _ in 0..count {
        writer
            .append(&NewRecord { timestamp: 1_000_000, value: Some(value), ..NewRecord::default() })
            .unwrap();
    }
}

/// The values up to the first error, and the code of the error.
fn values(log: &Log) -> (String, Option<&'static str>) {
    let read = all(log, OnDamage::Raise);
    let values =
        read.records().map(|record| String::from_utf8(record.value.clone().unwrap()).unwrap()).collect();
    (values, read.error.map(|error| error.code()))
}

#[test]
fn a_reader_detects_a_truncation_even_if_the_file_has_the_same_size() {
    for has_read in [false, true] {
        let folder = folder();
        let path = folder.path().join("orders-0");
        let mut writer = writing(&path, 1 << 20);
        append(&mut writer, b"x", 10);
        let readers = [writer.reader().unwrap(), open(&path, Io::Pread), open(&path, Io::Auto)];
        if has_read {
            for reader in &readers {
                assert_eq!(values(reader), ("x".repeat(10), None));
            }
        }
        writer.truncate_to(5).unwrap();
        append(&mut writer, b"y", 5);
        for reader in &readers {
            assert_eq!(values(reader), (String::new(), Some("log_changed")));
            assert_eq!(reader.locate(7).unwrap_err().code(), "log_changed");
            assert_eq!(reader.offset_for_time(1_000_000).unwrap_err().code(), "log_changed");
            assert_eq!(values(&reader.refresh().unwrap()), ("xxxxxyyyyy".to_owned(), None));
        }
        assert_eq!(values(&writer.reader().unwrap()), ("xxxxxyyyyy".to_owned(), None));
    }
}

#[test]
fn a_reader_detects_a_truncation_that_emptied_a_segment_before_its_file_was_opened() {
    let folder = folder();
    let path = folder.path().join("orders-0");
    let mut writer = writing(&path, 1 << 20);
    append(&mut writer, b"x", 5);
    writer.roll().unwrap();
    append(&mut writer, b"y", 5);
    // the active segment is empty: its file tells nothing
    writer.truncate_to(5).unwrap();
    let readers = [Io::Pread, Io::Auto].map(|io| open(&path, io));
    for reader in &readers {
        assert_eq!(reader.log_end_offset().unwrap(), 5);
    }
    writer.truncate_to(0).unwrap();
    for reader in &readers {
        assert_eq!(values(reader), (String::new(), Some("log_changed")));
        assert_eq!(reader.locate(0).unwrap_err().code(), "log_changed");
        assert_eq!(reader.offset_for_time(0).unwrap_err().code(), "log_changed");
    }
}

/// Ten batches of one record, as Kafka writes them, and no file of a `LogWriter`.
fn written_by_kafka(folder: &Path) -> PathBuf {
    let batch = |offset| BatchV2::new(offset).record(Rec::at(1_000 + offset).value(b"x")).build();
    PartitionBuilder::new(Indexing::every(1)).segment(0, (0..10).map(batch)).write(folder, "orders-0")
}

#[test]
fn a_reader_that_was_opened_before_any_writer_detects_a_truncation() {
    for has_tables in [false, true] {
        let folder = folder();
        let path = written_by_kafka(folder.path());
        let readers = [Io::Pread, Io::Auto].map(|io| open(&path, io));
        let assert_all_found = |reader: &Log| {
            for n in 0..10 {
                assert_eq!(reader.locate(n).unwrap().unwrap().batch_base_offset, n);
                assert_eq!(reader.offset_for_time(1_000 + n).unwrap().unwrap().offset, n);
            }
        };
        for reader in readers.iter().filter(|_| has_tables) {
            (0..20).for_each(|_| assert_all_found(reader));
        }
        let mut writer = writing(&path, 1 << 20);
        readers.iter().for_each(assert_all_found);
        assert_eq!(values(&readers[0]), ("x".repeat(10), None));
        writer.truncate_to(5).unwrap();
        append(&mut writer, b"y", 5);
        if has_tables {
            // its look-ups are in memory, and nothing was read since the writer has the log
            assert_all_found(&readers[1]);
        }
        for reader in &readers {
            // nothing is so late: no file is read, but the count
            assert_eq!(reader.offset_for_time(i64::MAX).unwrap_err().code(), "log_changed");
            for n in [0, 7] {
                assert_eq!(reader.locate(n).unwrap_err().code(), "log_changed");
                assert_eq!(reader.offset_for_time(1_000 + n).unwrap_err().code(), "log_changed");
            }
            assert_eq!(reader.locate_many(&[0]).unwrap_err().code(), "log_changed");
            assert_eq!(values(reader), (String::new(), Some("log_changed")));
            assert_eq!(values(&reader.refresh().unwrap()), ("xxxxxyyyyy".to_owned(), None));
        }
    }
}

#[test]
fn a_reader_detects_that_a_log_was_emptied_and_restarted() {
    let folder = folder();
    let path = folder.path().join("orders-0");
    let mut writer = writing(&path, 1 << 20);
    append(&mut writer, b"x", 10);
    let reader = open(&path, Io::Pread);
    writer.truncate_fully_and_start_at(0).unwrap();
    append(&mut writer, b"y", 10);
    assert_eq!(values(&reader), (String::new(), Some("log_changed")));
    assert_eq!(values(&reader.refresh().unwrap()), ("y".repeat(10), None));
}

#[test]
fn a_truncation_counts_as_two_changes_and_the_next_opening_ends_an_unfinished_one() {
    let folder = folder();
    let path = folder.path().join("orders-0");
    let count = || std::fs::metadata(path.join(".cordwood.truncations")).unwrap().len();
    let mut writer = writing(&path, 1 << 20);
    append(&mut writer, b"x", 10);
    assert_eq!(count(), 0);
    writer.truncate_to(5).unwrap();
    assert_eq!(count(), 2);
    writer.truncate_fully_and_start_at(3).unwrap();
    assert_eq!(count(), 4);
    append(&mut writer, b"x", 1);
    drop(writer);
    std::fs::write(path.join(".cordwood.truncations"), b"\n\n\n\n\n").unwrap();
    let during_truncation = open(&path, Io::Pread);
    drop(writing(&path, 1 << 20));
    assert_eq!((count(), values(&during_truncation).1), (6, Some("log_changed")));
}

#[test]
fn a_mapped_segment_stays_valid_after_a_truncation_inside_it() {
    let folder = folder();
    let path = folder.path().join("orders-0");
    // nine segments of several pages each
    let (segment, value) = (1 << 16, [b'x'; 1000]);
    let mut writer = writing(&path, segment);
    append(&mut writer, &value, 500);
    writer.close().unwrap();
    // without a writer, older segments are mapped
    let reader = open(&path, Io::Auto);
    let entries =
        |index: &OffsetIndex| -> Vec<_> { (0..index.entries()).map(|at| index.entry(at).unwrap()).collect() };
    let index = reader.segments().first().unwrap().offset_index().unwrap().unwrap();
    let before = entries(&index);
    let mut scan = reader.scan(ScanOptions::default()).unwrap();
    assert!(matches!(scan.next_step(), Ok(Some(ScanStep::Batch(_)))));
    let mut writer = writing(&path, segment);
    writer.truncate_to(5).unwrap();
    append(&mut writer, b"y", 1);
    // reading the removed part of a mapped file would kill this process
    let mut returned = 1;
    let error = loop {
        match scan.next_step() {
            Ok(Some(_)) => returned += 1,
            Ok(None) => panic!("{returned} batches and no error"),
            Err(error) => break error,
        }
    };
    assert_eq!((error.code(), returned), ("log_changed", before.len() + 1));
    assert_eq!(entries(&index), before);
    writer.close().unwrap();
    assert_eq!(values(&reader.refresh().unwrap()), ("x".repeat(5000) + "y", None));
}

#[test]
fn files_of_an_unfinished_truncation_are_removed_at_the_next_opening() {
    let folder = folder();
    let path = folder.path().join("orders-0");
    let mut writer = writing(&path, 1 << 20);
    append(&mut writer, b"x", 1);
    writer.close().unwrap();
    let left = path.join("00000000000000000000.log.tmp");
    let foreign = path.join("notes.tmp");
    for file in [&left, &foreign] {
        std::fs::write(file, b"half").unwrap();
    }
    drop(writing(&path, 1 << 20));
    assert_eq!((left.exists(), foreign.exists()), (false, true));
}
