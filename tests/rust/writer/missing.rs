//! Segments that were removed or truncated while no writer had the log open: a writer reports this and
//! changes nothing.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use cordwood::config::{CleanupPolicy, LogConfig};
use cordwood::error::Error;
use cordwood::record::NewRecord;
use cordwood::writer::{LogWriter, WriterOptions};
use cordwood::{Log, LogOptions};

use crate::support::reading::folder;

const RECORDS: i64 = 40;

fn options() -> WriterOptions {
    let config = LogConfig { segment_bytes: 500, index_interval_bytes: 1, ..LogConfig::default() };
    WriterOptions { config, clock: || 1_000_000, ..WriterOptions::default() }
}

fn append(writer: &mut LogWriter, count: i64) {
    let record = NewRecord { timestamp: 1_000_000, value: Some(b"a value"), ..NewRecord::default() };
    for _ in 0..count {
        writer.append(&record).unwrap();
    }
}

/// Writes a log with several segments. Returns their paths.
fn written(path: &Path, is_closed: bool) -> Vec<PathBuf> {
    let mut writer = LogWriter::open(path, &options()).unwrap();
    append(&mut writer, RECORDS);
    if is_closed {
        writer.close().unwrap();
    }
    drop(writer);
    let logs: Vec<_> =
        files(path).into_keys().filter(|file| file.extension().is_some_and(|kind| kind == "log")).collect();
    assert!(logs.len() > 4, "{logs:?}");
    logs
}

fn files(path: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let entries = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.is_file()).map(|path| (path.clone(), fs::read(&path).unwrap())).collect()
}

fn remove_segment(log: &Path) {
    for kind in ["log", "index", "timeindex"] {
        fs::remove_file(log.with_extension(kind)).unwrap();
    }
}

fn base_offset(log: &Path) -> i64 {
    log.file_stem().unwrap().to_str().unwrap().parse().unwrap()
}

/// The text of the error of a refused open, which must not change the directory.
fn refused(path: &Path) -> String {
    let before = files(path);
    match LogWriter::open(path, &options()) {
        Err(Error::Corrupt { place, expected, found }) => {
            assert_eq!(place.file, path);
            assert!(files(path) == before);
            format!("expected {expected}, found {found}")
        }
        opened => panic!("{:?}", opened.map(|writer| (writer.log_start_offset(), writer.log_end_offset()))),
    }
}

#[test]
fn a_segment_missing_from_the_middle_of_a_closed_log_is_reported() {
    for number in 1..4 {
        let folder = folder();
        let path = folder.path().join("orders-0");
        let removed = written(&path, true).swap_remove(number);
        let size = fs::metadata(&removed).unwrap().len();
        remove_segment(&removed);
        let words = refused(&path);
        let name = removed.file_name().unwrap().to_str().unwrap();
        assert!(
            words.contains(&format!("{name} of {size} bytes")) && words.ends_with("no such file"),
            "{words}"
        );
        // as the error advises
        fs::remove_file(path.join(".cordwood.clean")).unwrap();
        assert_eq!(LogWriter::open(&path, &options()).unwrap().log_end_offset(), RECORDS);
    }
}

#[test]
fn a_sealed_segment_of_another_size_is_reported() {
    for number in 0..4 {
        let folder = folder();
        let path = folder.path().join("orders-0");
        let log = written(&path, true).swap_remove(number);
        let bytes = fs::read(&log).unwrap();
        // between two batches
        let first = 12 + usize::try_from(u32::from_be_bytes(bytes[8..12].try_into().unwrap())).unwrap();
        assert!(first < bytes.len());
        for found in [&bytes[..first], &[&bytes[..], &[0; 100]].concat()] {
            fs::write(&log, found).unwrap();
            assert!(refused(&path).ends_with(&format!("found {} bytes", found.len())));
        }
    }
}

#[test]
fn a_closed_log_that_lost_its_last_segments_is_refused_without_the_durable_offset_file() {
    for all in [false, true] {
        let folder = folder();
        let path = folder.path().join("orders-0");
        let logs = written(&path, true);
        fs::remove_file(path.join(".cordwood.durable")).unwrap();
        for log in if all { &logs[..] } else { &logs[logs.len() - 1..] } {
            remove_segment(log);
        }
        let words = refused(&path);
        let expected = if all {
            format!(
                "expected a segment with the offsets 0 to {RECORDS}, because the log was synced up to there"
            )
        } else {
            format!("expected a log that ends at offset {RECORDS} or above")
        };
        assert!(words.starts_with(&expected), "{words}");
        // as the error advises
        fs::remove_file(path.join(".cordwood.clean")).unwrap();
        LogWriter::open(&path, &options()).unwrap();
    }
}

#[test]
fn records_truncated_and_replaced_by_a_broker_are_not_reported_as_lost() {
    let folder = folder();
    let path = folder.path().join("orders-0");
    written(&path, true);
    let is_ours = |file: &Path| file.file_name().unwrap().to_str().unwrap().starts_with(".cordwood.");
    let ours: BTreeMap<_, _> = files(&path).into_iter().filter(|(file, _)| is_ours(file)).collect();
    // a broker ignores these files
    for file in ours.keys() {
        fs::remove_file(file).unwrap();
    }
    let mut broker = LogWriter::open(&path, &options()).unwrap();
    assert!(broker.truncate_to(RECORDS / 2).unwrap());
    let record = NewRecord { timestamp: 1_000_000, value: Some(b"another value"), ..NewRecord::default() };
    for _ in 0..RECORDS {
        broker.append(&record).unwrap();
    }
    broker.close().unwrap();
    for (file, bytes) in &ours {
        fs::write(file, bytes).unwrap();
    }
    assert_eq!(LogWriter::open(&path, &options()).unwrap().log_end_offset(), RECORDS / 2 + RECORDS);
}

#[test]
fn missing_first_segments_are_reported_also_after_a_crash() {
    for is_closed in [true, false] {
        let folder = folder();
        let path = folder.path().join("orders-0");
        let logs = written(&path, is_closed);
        remove_segment(&logs[0]);
        remove_segment(&logs[1]);
        let words = refused(&path);
        assert!(words.starts_with("expected a segment with offset 0, the log start offset"), "{words}");
        fs::remove_file(path.join(".cordwood.checkpoint")).unwrap();
        let writer = LogWriter::open(&path, &options()).unwrap();
        assert_eq!((writer.log_start_offset(), writer.log_end_offset()), (base_offset(&logs[2]), RECORDS));
    }
}

#[test]
fn segments_deleted_or_compacted_by_a_broker_are_not_reported_as_lost() {
    let folder = folder();
    let path = folder.path().join("orders-0");
    fs::write(folder.path().join("meta.properties"), "version=1\n").unwrap();
    let logs = written(&path, true);
    remove_segment(&logs[0]);
    let line = folder.path().join("log-start-offset-checkpoint");
    assert_eq!(fs::read_to_string(&line).unwrap(), "0\n1\norders 0 0\n");
    refused(&path);
    // a broker has no line for a log that starts at its first segment
    fs::write(&line, "0\n0\n").unwrap();
    let writer = LogWriter::open(&path, &options()).unwrap();
    assert_eq!(writer.log_start_offset(), base_offset(&logs[1]));
    drop(writer);

    let compacted = self::folder();
    let path = compacted.path().join("orders-0");
    let logs = written(&path, true);
    remove_segment(&logs[2]);
    let mut options = options();
    options.config.cleanup_policy = CleanupPolicy { delete: false, compact: true };
    assert_eq!(LogWriter::open(&path, &options).unwrap().log_end_offset(), RECORDS);
}

/// A broker's data directory whose checkpoints have these offsets for `orders-0`, and a line for another
/// partition.
fn data_directory(start: Option<i64>, recovery_point: Option<i64>) -> tempfile::TempDir {
    let data = folder();
    fs::write(data.path().join("meta.properties"), "version=1\n").unwrap();
    fs::write(data.path().join(".lock"), "").unwrap();
    for (name, offset) in [(STARTS, start), (RECOVERY_POINTS, recovery_point)] {
        let line = offset.map_or_else(String::new, |offset| format!("orders 0 {offset}\n"));
        let count = 1 + line.lines().count();
        fs::write(data.path().join(name), format!("0\n{count}\n{line}orders 1 70000\n")).unwrap();
    }
    data
}

const STARTS: &str = "log-start-offset-checkpoint";
const RECOVERY_POINTS: &str = "recovery-point-offset-checkpoint";

/// The remaining files of partitions without segments.
const REMAINING_FILES: [&[(&str, &str)]; 3] = [
    &[],
    &[("leader-epoch-checkpoint", "0\n1\n0 0\n")],
    &[
        ("leader-epoch-checkpoint", ""),
        ("partition.metadata", "version: 0\ntopic_id: aFsHoJ8mSkaI5w7rWQb5Qg"),
        ("00000000000000000700.snapshot", "of a producer"),
    ],
];

fn write_files(path: &Path, remaining: &[(&str, &str)]) {
    fs::create_dir(path).unwrap();
    for (name, text) in remaining {
        fs::write(path.join(name), text).unwrap();
    }
}

#[test]
fn a_partition_of_a_broker_without_segments_continues_at_its_log_start_offset() {
    for remaining in [None, Some(REMAINING_FILES[0]), Some(REMAINING_FILES[1]), Some(REMAINING_FILES[2])] {
        for recovery_point in [None, Some(0), Some(300), Some(500)] {
            let data = data_directory(Some(500), recovery_point);
            let path = data.path().join("orders-0");
            if let Some(remaining) = remaining {
                write_files(&path, remaining);
            }
            // a snapshot above the start, and no recovery point that contradicts it
            if recovery_point.is_none() && remaining == Some(REMAINING_FILES[2]) {
                assert_eq!(LogWriter::open(&path, &options()).unwrap_err().code(), "corrupt");
                continue;
            }
            let mut writer = LogWriter::open(&path, &options()).unwrap();
            assert_eq!(
                (writer.log_start_offset(), writer.log_end_offset()),
                (500, 500),
                "{recovery_point:?}"
            );
            append(&mut writer, 3);
            assert_eq!(writer.reader().unwrap().segments().first().unwrap().base_offset(), 500);
            writer.close().unwrap();
            let lines = |name: &str| fs::read_to_string(data.path().join(name)).unwrap();
            assert_eq!(lines(RECOVERY_POINTS), "0\n2\norders 1 70000\norders 0 503\n");
            assert!(lines(STARTS).contains("orders 0 500\n") && lines(STARTS).contains("orders 1 70000\n"));
        }
    }
}

#[test]
fn a_partition_of_a_broker_that_lost_records_is_refused_until_its_recovery_point_is_lowered() {
    for start in [None, Some(0), Some(500), Some(899)] {
        for remaining in [None, Some(REMAINING_FILES[0]), Some(REMAINING_FILES[1]), Some(REMAINING_FILES[2])]
        {
            let data = data_directory(start, Some(900));
            let path = data.path().join("orders-0");
            if let Some(remaining) = remaining {
                write_files(&path, remaining);
            }
            let before = (files(data.path()), remaining.map(|_| files(&path)));
            let error = LogWriter::open(&path, &options()).unwrap_err();
            assert_eq!(error.code(), "corrupt", "{error}");
            let checkpoint = data.path().join(RECOVERY_POINTS);
            let begin = start.unwrap_or(0);
            for words in [
                &*path.to_string_lossy(),
                &*checkpoint.to_string_lossy(),
                "\"orders 0 900\"",
                &format!("\"orders 0 {begin}\""),
                &format!("offsets {begin} to 900"),
            ] {
                assert!(error.to_string().contains(words), "no {words} in {error}");
            }
            // except for the lock file
            let now = remaining.map(|_| {
                let mut now = files(&path);
                now.retain(|file, _| !file.ends_with(".cordwood.lock"));
                now
            });
            assert_eq!((files(data.path()), now), before);
            // as the error advises
            let text = fs::read_to_string(&checkpoint).unwrap();
            fs::write(&checkpoint, text.replace("orders 0 900", &format!("orders 0 {begin}"))).unwrap();
            let writer = LogWriter::open(&path, &options()).unwrap();
            assert_eq!((writer.log_start_offset(), writer.log_end_offset()), (begin, begin));
        }
    }
}

#[test]
fn a_log_of_a_broker_that_ends_below_its_recovery_point_is_refused() {
    for is_emptied in [false, true] {
        let data = data_directory(None, None);
        let path = data.path().join("orders-0");
        let segments = written(&path, true);
        for file in files(&path).into_keys() {
            if file.file_name().unwrap().to_string_lossy().starts_with(".cordwood") {
                fs::remove_file(file).unwrap();
            }
        }
        let last = segments.last().unwrap();
        let whole = fs::read(last).unwrap();
        if is_emptied {
            fs::write(last, "").unwrap();
        } else {
            remove_segment(last);
        }
        let end = base_offset(last);
        let lines = fs::read_to_string(data.path().join(RECOVERY_POINTS)).unwrap();
        // leaves the lock file
        LogWriter::open(&path, &options()).unwrap_err();
        let words = refused(&path);
        for part in [
            &*data.path().join(RECOVERY_POINTS).to_string_lossy(),
            &format!("\"orders 0 {RECORDS}\""),
            &format!("found its end at offset {end}"),
        ] {
            assert!(words.contains(part), "no {part} in {words}");
        }
        assert_eq!(fs::read_to_string(data.path().join(RECOVERY_POINTS)).unwrap(), lines);
        fs::write(last, &whole).unwrap();
        assert_eq!(LogWriter::open(&path, &options()).unwrap().log_end_offset(), RECORDS);
    }
}

#[test]
fn a_new_partition_in_a_data_directory_of_a_broker_starts_at_zero() {
    let data = data_directory(None, None);
    let path = data.path().join("orders-0");
    assert_eq!(LogWriter::open(&path, &options()).unwrap().log_end_offset(), 0);
    // a line with an invalid offset is ignored
    let data = data_directory(Some(-3), Some(i64::MIN));
    assert_eq!(LogWriter::open(data.path().join("orders-0"), &options()).unwrap().log_end_offset(), 0);
}

#[test]
fn a_reader_warns_of_a_log_that_ends_below_its_durable_offset() {
    for is_closed in [true, false] {
        let parent = folder();
        let path = parent.path().join("orders-0");
        let logs = written(&path, is_closed);
        assert_eq!(Log::open(&path, LogOptions::default()).unwrap().warnings(), [""; 0]);
        remove_segment(logs.last().unwrap());
        let log = Log::open(&path, LogOptions::default()).unwrap();
        let end = log.log_end_offset().unwrap();
        let [warning] = &log.warnings()[..] else { panic!("{:?}", log.warnings()) };
        let expected = format!(
            "ends at offset {end}, but .cordwood.durable says that it was synced up to offset {RECORDS}"
        );
        assert!(end < RECORDS && warning.contains(&expected), "{warning}");
    }
}

#[test]
fn a_reader_warns_of_a_log_that_ends_below_its_recovery_point() {
    let parent = folder();
    let path = parent.path().join("orders-0");
    drop(written(&path, true));
    for (name, _) in files(&path) {
        if name.file_name().unwrap().to_string_lossy().starts_with(".cordwood") {
            fs::remove_file(name).unwrap();
        }
    }
    for (recovery_point, warnings) in [(RECORDS, 0), (RECORDS + 1, 1)] {
        let line = format!("0\n1\norders 0 {recovery_point}\n");
        fs::write(parent.path().join("recovery-point-offset-checkpoint"), line).unwrap();
        let log = Log::open(&path, LogOptions::default()).unwrap();
        assert_eq!(log.warnings().len(), warnings, "{:?}", log.warnings());
    }
}

#[test]
fn a_missing_segment_after_a_truncation_inside_a_batch_does_not_count_as_compaction() {
    let parent = folder();
    let path = parent.path().join("orders-0");
    let mut writer = LogWriter::open(&path, &options()).unwrap();
    let record = NewRecord { timestamp: 1_000_000, value: Some(b"a value"), ..NewRecord::default() };
    for _ in 0..4 {
        writer.append_many(&[record; 10]).unwrap();
    }
    writer.truncate_to(35).unwrap();
    append(&mut writer, RECORDS);
    writer.close().unwrap();
    let log = Log::open(&path, LogOptions::default()).unwrap();
    assert_eq!((log.is_compacted().unwrap(), log.offset_gaps(0..i64::MAX).unwrap()), (false, vec![]));
    let bases: Vec<_> = log.segments().iter().map(|segment| segment.base_offset()).collect();
    let missing = bases[bases.len() - 2];
    remove_segment(&path.join(format!("{missing:020}.log")));
    let log = Log::open(&path, LogOptions::default()).unwrap();
    let gaps = log.offset_gaps(0..i64::MAX).unwrap();
    assert_eq!(gaps.iter().map(|gap| gap.start_offset).collect::<Vec<_>>(), [missing]);
    assert!(!log.is_compacted().unwrap());
}
