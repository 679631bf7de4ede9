//! The files next to the log are damaged in every way: a writer opens the log with all records, or refuses
//! it.

use std::fs;
use std::path::{Path, PathBuf};

use cordwood::config::LogConfig;
use cordwood::log::{Log, LogOptions, ScanOptions, ScanStep};
use cordwood::record::NewRecord;
use cordwood::writer::{LogWriter, WriterOptions};

use crate::support::step;

const RECORDS: i64 = 60;

fn options() -> WriterOptions {
    let config = LogConfig {
        segment_bytes: 900,
        index_interval_bytes: 1,
        segment_index_bytes: 1024,
        message_timestamp_after_max_ms: i64::MAX,
        ..LogConfig::default()
    };
    WriterOptions { config, clock: || 1000, ..WriterOptions::default() }
}

/// In memory if possible: these tests do not depend on a disk, and thousands of syncs would be slow.
fn folder() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap()
}

fn value(number: i64) -> Vec<u8> {
    format!("value {number:04}").into_bytes()
}

fn append(writer: &mut LogWriter, numbers: std::ops::Range<i64>) {
    for number in numbers {
        let value = value(number);
        let record = NewRecord { timestamp: 1000 + number, key: None, value: Some(&value), headers: &[] };
        assert_eq!(writer.append(&record).unwrap().first_offset, number);
    }
}

/// Checks by a scan and by look-ups that the log has every record once, and no other record.
fn assert_complete(path: &Path, end: i64, place: &str) {
    let log = Log::open(path, LogOptions::default()).unwrap();
    let mut scan = log.scan(ScanOptions::default()).unwrap();
    let mut found = Vec::new();
    while let Some(ScanStep::Batch(_)) = scan.next_step().unwrap() {
        while let Some(record) = scan.next_record().unwrap() {
            found.push((record.offset, record.value.unwrap().to_vec()));
        }
    }
    let expected: Vec<_> = (0..end).map(|number| (number, value(number))).collect();
    assert!(found == expected, "{place}: {} records, expected {end}", found.len());
    for offset in 0..end {
        let at = log.locate(offset).unwrap().unwrap();
        assert_eq!(at.batch_base_offset, offset, "{place}");
        let timed = log.offset_for_time(1000 + offset).unwrap().unwrap();
        assert_eq!(timed.offset, offset, "{place}");
    }
}

type FileList = Vec<(PathBuf, Vec<u8>)>;

fn files(path: &Path) -> FileList {
    let entries = fs::read_dir(path).unwrap().map(|entry| entry.unwrap());
    let mut files: Vec<_> = entries
        .filter(|entry| entry.file_type().unwrap().is_file())
        .map(|entry| (entry.path(), fs::read(entry.path()).unwrap()))
        .collect();
    files.sort();
    files
}

fn logs(path: &Path) -> FileList {
    files(path).into_iter().filter(|(file, _)| file.extension().is_some_and(|kind| kind == "log")).collect()
}

/// Restores the files of a directory.
fn restore(path: &Path, contents: &[(PathBuf, Vec<u8>)]) {
    let _ = fs::remove_dir_all(path);
    fs::create_dir(path).unwrap();
    for (file, bytes) in contents {
        fs::write(file, bytes).unwrap();
    }
}

/// Damaged contents of a file; `None`: the file is missing.
fn damaged_contents(contents: &[u8], older: Option<&Vec<u8>>) -> Vec<(&'static str, Option<Vec<u8>>)> {
    let mut state = 0x9e37_79b9_u32;
    let mut noise = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    let random: Vec<u8> = contents.iter().map(|_| noise()).collect();
    let mut all = vec![
        ("gone", None),
        ("empty", Some(Vec::new())),
        ("zeros", Some(vec![0; contents.len()])),
        ("noise", Some(random.clone())),
        ("more noise", Some([&random[..], &random].concat())),
        ("all ones", Some(vec![0xff; contents.len()])),
        ("half", Some(contents[..contents.len() / 2].to_vec())),
        ("longer", Some([contents, &[0; 24]].concat())),
    ];
    for bit in [0, 7, 31] {
        if let Some(byte) = contents.len().checked_sub(1).map(|last| (last * 8).min(bit * 13) / 8) {
            let mut flipped = contents.to_vec();
            flipped[byte] ^= 1 << (bit % 8);
            all.push(("a flipped bit", Some(flipped)));
        }
    }
    all.extend(older.map(|older| ("of an earlier time", Some(older.clone()))));
    all
}

fn damage(file: &Path, bytes: Option<&Vec<u8>>) {
    match bytes {
        Some(bytes) => fs::write(file, bytes).unwrap(),
        None => fs::remove_file(file).unwrap(),
    }
}

/// Opens the log and checks that it has all records, or that a refused open has changed no `.log`. Returns
/// whether the log was opened.
fn opens_completely(path: &Path, place: &str) -> bool {
    let before = logs(path);
    let opened = LogWriter::open(path, &options());
    let Ok(mut writer) = opened else {
        assert!(logs(path) == before, "{place}: refused, and a log was changed");
        return false;
    };
    assert_eq!(writer.log_end_offset(), RECORDS, "{place}");
    assert_complete(path, RECORDS, place);
    // the next writer must also open the log
    append(&mut writer, RECORDS..RECORDS + 20);
    drop(writer);
    let writer = LogWriter::open(path, &options()).unwrap();
    assert_eq!(writer.log_end_offset(), RECORDS + 20, "{place}");
    assert_complete(path, RECORDS + 20, place);
    true
}

/// Writes the log in two halves; returns the files after the first half and at the end.
fn written(path: &Path, is_closed: bool) -> (FileList, FileList) {
    let mut writer = LogWriter::open(path, &options()).unwrap();
    append(&mut writer, 0..RECORDS / 2);
    writer.close().unwrap();
    let older = files(path);
    let mut writer = LogWriter::open(path, &options()).unwrap();
    append(&mut writer, RECORDS / 2..RECORDS);
    if is_closed {
        writer.close().unwrap();
    }
    drop(writer);
    (older, files(path))
}

#[test]
fn a_damaged_file_next_to_the_log_loses_no_record() {
    let (mut opened, mut tried) = (0, 0);
    for is_closed in [false, true] {
        let folder = folder();
        let path = folder.path().join("orders-0");
        let (older, contents) = written(&path, is_closed);
        assert!(logs(&path).len() > 3);
        for (number, (file, bytes)) in contents.iter().enumerate() {
            if file.extension().is_some_and(|kind| kind == "log" || kind == "lock") {
                continue;
            }
            let older = older.iter().find(|(name, _)| name == file).map(|(_, bytes)| bytes);
            // each damage of each file, in a log that is closed or in one that is not
            let first = (number + usize::from(is_closed)) % step(2);
            for (what, bytes) in damaged_contents(bytes, older).into_iter().skip(first).step_by(step(2)) {
                restore(&path, &contents);
                damage(file, bytes.as_ref());
                tried += 1;
                opened += u32::from(opens_completely(&path, &format!("{}: {what}", file.display())));
            }
        }
    }
    // only a damaged checkpoint of cordwood, which is not a hint, and a damaged topic id are refused
    assert!(tried > 100 && opened > tried * 8 / 10, "{opened} of {tried} were opened");
}

#[test]
fn a_damaged_checkpoint_of_the_data_directory_loses_no_record() {
    let folder = folder();
    let (data, path) = (folder.path(), folder.path().join("orders-0"));
    fs::write(data.join("meta.properties"), "version=1\n").unwrap();
    let (_, contents) = written(&path, false);
    let line = |offset: i64| format!("0\n1\norders 0 {offset}\n").into_bytes();
    for name in ["recovery-point-offset-checkpoint", "log-start-offset-checkpoint"] {
        let file = data.join(name);
        let beyond =
            [RECORDS + 1, 1_000_000, i64::MAX, -1, -7].map(|offset| ("another offset", Some(line(offset))));
        let texts = ["0\n2\norders 0 5\n", "7\n1\norders 0 5\n", "0\n1\norders 0 five\n", "orders 0 5\n"];
        let texts = texts.map(|text| ("another text", Some(text.as_bytes().to_vec())));
        let damaged_contents =
            damaged_contents(&line(RECORDS), None).into_iter().filter(|(what, _)| *what != "gone");
        // a wrong recovery point inside the log must not lose records either
        let inside = (0..RECORDS).map(|offset| ("inside", Some(line(offset))));
        let inside = inside.filter(|_| name.starts_with("recovery"));
        let damages = damaged_contents.chain(beyond).chain(texts).chain(inside);
        for (number, (what, bytes)) in damages.enumerate() {
            for has_own in [true, false].into_iter().skip(number % step(2)).step_by(step(2)) {
                restore(&path, &contents);
                if !has_own {
                    // as in a directory written by Kafka: the writer has only the checkpoint
                    for (own, _) in &contents {
                        if own.file_name().unwrap().to_str().unwrap().starts_with(".cordwood.") {
                            fs::remove_file(own).unwrap();
                        }
                    }
                }
                // that of the log that was opened before
                let _ = fs::remove_file(data.join("recovery-point-offset-checkpoint"));
                damage(&file, bytes.as_ref());
                let text = bytes.as_ref().map(|bytes| String::from_utf8_lossy(bytes).into_owned());
                let place = format!("{name}: {what} {text:?}, own files: {has_own}");
                // a broker had flushed its log up to the recovery point
                let is_lost = !has_own
                    && name.starts_with("recovery")
                    && [RECORDS + 1, 1_000_000].iter().any(|offset| bytes == Some(line(*offset)));
                assert_eq!(opens_completely(&path, &place), !is_lost, "{place}");
            }
        }
        let _ = fs::remove_file(file);
    }
}
