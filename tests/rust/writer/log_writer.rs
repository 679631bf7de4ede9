//! The writer on real files: appended records are read, before and after a close, a drop and a recovery.

use std::path::{Path, PathBuf};

use cordwood::config::LogConfig;
use cordwood::log::{Log, LogOptions, ScanOptions, ScanStep};
use cordwood::record::NewRecord;
use cordwood::writer::{FlushMode, LogWriter, WriterOptions};

fn small() -> WriterOptions {
    let config = LogConfig {
        segment_bytes: 400,
        index_interval_bytes: 1,
        segment_index_bytes: 1024,
        message_timestamp_after_max_ms: i64::MAX,
        ..LogConfig::default()
    };
    WriterOptions { config, clock: || 1000, ..WriterOptions::default() }
}

fn record(number: i64) -> (i64, Vec<u8>) {
    (1000 + number, format!("value {number:04}").into_bytes())
}

fn append(writer: &mut LogWriter, numbers: impl Iterator<Item = i64>) {
    for number in numbers {
        let (timestamp, value) = record(number);
        let record = NewRecord { timestamp, key: None, value: Some(&value), headers: &[] };
        let appended = writer.append(&record).unwrap();
        assert_eq!(
            (appended.first_offset, appended.last_offset, appended.max_timestamp),
            (number, number, timestamp)
        );
        assert!(appended.durable);
    }
}

/// Offset, timestamp and value of every record that a reader finds.
fn read(path: &Path) -> Vec<(i64, i64, Vec<u8>)> {
    let log = Log::open(path, LogOptions::default()).unwrap();
    let mut scan = log.scan(ScanOptions::default()).unwrap();
    let mut found = Vec::new();
    while let Some(ScanStep::Batch(_)) = scan.next_step().unwrap() {
        while let Some(record) = scan.next_record().unwrap() {
            found.push((record.offset, record.timestamp, record.value.unwrap().to_vec()));
        }
    }
    // a warning about hidden records below the log start offset is expected
    let warnings: Vec<_> =
        log.warnings().into_iter().filter(|warning| !warning.contains(" hidden below")).collect();
    assert_eq!(warnings, [""; 0]);
    found
}

fn expected(numbers: impl Iterator<Item = i64>) -> Vec<(i64, i64, Vec<u8>)> {
    numbers.map(|number| (number, record(number).0, record(number).1)).collect()
}

fn partition(folder: &tempfile::TempDir) -> PathBuf {
    folder.path().join("orders-0")
}

/// Writes five batches of one record to one segment, without a close. Returns the options, the `.log` and its
/// bytes.
fn unclosed(path: &Path) -> (WriterOptions, PathBuf, Vec<u8>) {
    let config = LogConfig { segment_bytes: 1 << 20, ..small().config };
    let options = WriterOptions { config, ..small() };
    append(&mut LogWriter::open(path, &options).unwrap(), 0..5);
    let log = path.join("00000000000000000000.log");
    let whole = std::fs::read(&log).unwrap();
    (options, log, whole)
}

fn bytes_of(path: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<_> = std::fs::read_dir(path)
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.file_type().unwrap().is_file())
        .map(|entry| (entry.file_name().into_string().unwrap(), std::fs::read(entry.path()).unwrap()))
        .collect();
    files.sort();
    files
}

#[test]
fn appended_records_are_read_after_a_clean_close() {
    let folder = tempfile::tempdir().unwrap();
    let path = partition(&folder);
    for round in 0..4 {
        let mut writer = LogWriter::open(&path, &small()).unwrap();
        assert_eq!(writer.log_end_offset(), round * 20);
        append(&mut writer, round * 20..(round + 1) * 20);
        assert_eq!(read(&path), expected(0..(round + 1) * 20));
        writer.close().unwrap();
        assert_eq!(read(&path), expected(0..(round + 1) * 20));
    }
}

#[test]
fn appended_records_are_read_after_a_drop_without_a_close() {
    let folder = tempfile::tempdir().unwrap();
    let path = partition(&folder);
    for round in 0..4 {
        let mut writer = LogWriter::open(&path, &small()).unwrap();
        assert_eq!(writer.log_end_offset(), round * 20);
        append(&mut writer, round * 20..(round + 1) * 20);
    }
    assert_eq!(read(&path), expected(0..80));
}

#[test]
fn a_torn_tail_is_cut_and_kept_in_quarantine() {
    let folder = tempfile::tempdir().unwrap();
    let path = partition(&folder);
    let (options, log, whole) = unclosed(&path);
    let torn = [&whole[..], &whole[..70]].concat();
    std::fs::write(&log, torn).unwrap();
    let mut writer = LogWriter::open(&path, &options).unwrap();
    assert_eq!(writer.log_end_offset(), 5);
    assert_eq!(std::fs::read(&log).unwrap(), whole);
    let kept: Vec<_> =
        std::fs::read_dir(path.join("quarantine")).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(kept.len(), 1);
    assert_eq!(std::fs::read(&kept[0]).unwrap(), whole[..70]);
    append(&mut writer, 5..9);
    writer.close().unwrap();
    assert_eq!(read(&path), expected(0..9));
}

#[test]
fn a_damaged_record_is_an_error_that_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = partition(&folder);
    let (options, log, whole) = unclosed(&path);
    let batch = whole.len() / 5;
    for damaged in [2, 4] {
        let mut flipped = whole.clone();
        flipped[damaged * batch + 65] ^= 1;
        std::fs::write(&log, &flipped).unwrap();
        let before = bytes_of(&path);
        let error = LogWriter::open(&path, &options).unwrap_err();
        assert_eq!((error.code(), error.position()), ("corrupt", Some((damaged * batch) as u64)), "{error}");
        assert_eq!(bytes_of(&path), before);
    }
}

#[test]
fn a_log_is_truncated_at_both_ends() {
    let folder = tempfile::tempdir().unwrap();
    let path = partition(&folder);
    let mut writer = LogWriter::open(&path, &small()).unwrap();
    append(&mut writer, 0..40);
    assert!(writer.truncate_to(25).unwrap());
    assert!(!writer.truncate_to(25).unwrap());
    assert_eq!(read(&path), expected(0..25));
    append(&mut writer, 25..30);
    assert!(writer.delete_before(12).unwrap());
    assert!(!writer.delete_before(12).unwrap());
    assert_eq!(read(&path), expected(12..30));
    assert_eq!(writer.delete_before(31).unwrap_err().code(), "offset_out_of_range");
    drop(writer);
    let mut writer = LogWriter::open(&path, &small()).unwrap();
    assert_eq!((writer.log_start_offset(), writer.log_end_offset()), (12, 30));
    writer.truncate_fully_and_start_at(100).unwrap();
    assert_eq!(read(&path), []);
    append(&mut writer, 100..110);
    writer.close().unwrap();
    assert_eq!(read(&path), expected(100..110));
}

#[test]
fn retention_applies_by_size_and_by_time() {
    let folder = tempfile::tempdir().unwrap();
    let path = partition(&folder);
    let config = LogConfig { retention_bytes: 1000, retention_ms: -1, ..small().config };
    let mut writer = LogWriter::open(&path, &WriterOptions { config, ..small() }).unwrap();
    append(&mut writer, 0..40);
    let plan = writer.apply_retention(None).unwrap();
    assert!(plan.bytes > 1000 && !plan.rolls);
    assert_eq!(read(&path), expected(plan.log_start_offset..40));
    writer.close().unwrap();
    let config = LogConfig { retention_ms: 10, ..small().config };
    let mut writer = LogWriter::open(&path, &WriterOptions { config, ..small() }).unwrap();
    let plan = writer.apply_retention(Some(2000)).unwrap();
    assert!(plan.rolls);
    assert_eq!((writer.log_start_offset(), writer.log_end_offset()), (40, 40));
    assert_eq!(read(&path), []);
    append(&mut writer, 40..50);
    assert_eq!(read(&path), expected(40..50));
}

#[test]
fn appends_of_many_threads_are_all_durable_and_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let path = partition(&folder);
    let options = WriterOptions { flush: FlushMode::Group { ms: 1, bytes: 1 << 20 }, ..small() };
    let mut writer = LogWriter::open(&path, &options).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let appender = writer.appender();
            scope.spawn(move || {
                let mut last = -1;
                for number in 0..25 {
                    let value = format!("{thread} {number}").into_bytes();
                    let record = NewRecord { timestamp: -1, key: None, value: Some(&value), headers: &[] };
                    let done = appender.append(&record).unwrap();
                    assert!(done.durable && done.first_offset > last);
                    assert!(appender.durable_offset() > done.last_offset);
                    last = done.last_offset;
                }
            });
        }
    });
    writer.close().unwrap();
    let found = read(&path);
    assert_eq!(found.len(), 200);
    for thread in 0..8 {
        let prefix = format!("{thread} ").into_bytes();
        let own: Vec<_> = found.iter().filter(|(_, _, value)| value.starts_with(&prefix)).collect();
        let expected: Vec<_> = (0..25).map(|number| format!("{thread} {number}").into_bytes()).collect();
        assert_eq!(own.iter().map(|(_, _, value)| value.clone()).collect::<Vec<_>>(), expected);
    }
}
