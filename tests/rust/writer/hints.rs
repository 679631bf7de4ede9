//! What lies beside the log is spoilt in every way, and a writer opens it: with all records, or not at all.

use std::fs;
use std::path::{Path, PathBuf};

use cordwood::config::LogConfig;
use cordwood::log::{Log, LogOptions, ScanOptions, ScanStep};
use cordwood::record::NewRecord;
use cordwood::writer::{LogWriter, WriterOptions};

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

/// In memory where that is to be had: nothing here is about what a disk does, and thousands of syncs take their time.
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

/// Every record is there once, by reading all and by looking each up; nothing else is.
fn assert_whole(path: &Path, end: i64, place: &str) {
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

type Held = Vec<(PathBuf, Vec<u8>)>;

fn files(path: &Path) -> Held {
    let entries = fs::read_dir(path).unwrap().map(|entry| entry.unwrap());
    let mut files: Vec<_> = entries
        .filter(|entry| entry.file_type().unwrap().is_file())
        .map(|entry| (entry.path(), fs::read(entry.path()).unwrap()))
        .collect();
    files.sort();
    files
}

fn logs(path: &Path) -> Held {
    files(path).into_iter().filter(|(file, _)| file.extension().is_some_and(|kind| kind == "log")).collect()
}

/// Puts a directory back to what it was.
fn restore(path: &Path, held: &[(PathBuf, Vec<u8>)]) {
    let _ = fs::remove_dir_all(path);
    fs::create_dir(path).unwrap();
    for (file, bytes) in held {
        fs::write(file, bytes).unwrap();
    }
}

/// What a file may have become; `None`: it is gone.
fn spoilt(held: &[u8], older: Option<&Vec<u8>>) -> Vec<(&'static str, Option<Vec<u8>>)> {
    let mut state = 0x9e37_79b9_u32;
    let mut noise = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    let random: Vec<u8> = held.iter().map(|_| noise()).collect();
    let mut all = vec![
        ("gone", None),
        ("empty", Some(Vec::new())),
        ("zeros", Some(vec![0; held.len()])),
        ("noise", Some(random.clone())),
        ("more noise", Some([&random[..], &random].concat())),
        ("all ones", Some(vec![0xff; held.len()])),
        ("half", Some(held[..held.len() / 2].to_vec())),
        ("longer", Some([held, &[0; 24]].concat())),
    ];
    for bit in [0, 7, 31] {
        if let Some(byte) = held.len().checked_sub(1).map(|last| (last * 8).min(bit * 13) / 8) {
            let mut flipped = held.to_vec();
            flipped[byte] ^= 1 << (bit % 8);
            all.push(("a flipped bit", Some(flipped)));
        }
    }
    all.extend(older.map(|older| ("of an earlier time", Some(older.clone()))));
    all
}

fn spoil(file: &Path, bytes: Option<&Vec<u8>>) {
    match bytes {
        Some(bytes) => fs::write(file, bytes).unwrap(),
        None => fs::remove_file(file).unwrap(),
    }
}

/// Opens the log as it is, which has all records afterwards; or does not, and has changed no `.log`. Whether it did.
fn is_opened_whole(path: &Path, place: &str) -> bool {
    let before = logs(path);
    let opened = LogWriter::open(path, &options());
    let Ok(mut writer) = opened else {
        assert!(logs(path) == before, "{place}: refused, and a log was changed");
        return false;
    };
    assert_eq!(writer.log_end_offset(), RECORDS, "{place}");
    assert_whole(path, RECORDS, place);
    // whatever it took over is not what the next one stumbles over
    append(&mut writer, RECORDS..RECORDS + 20);
    drop(writer);
    let writer = LogWriter::open(path, &options()).unwrap();
    assert_eq!(writer.log_end_offset(), RECORDS + 20, "{place}");
    assert_whole(path, RECORDS + 20, place);
    true
}

/// Writes the log, in two halves; gives the files as they were after the first, and at the end.
fn written(path: &Path, is_closed: bool) -> (Held, Held) {
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
fn a_spoilt_file_beside_the_log_costs_no_record() {
    let (mut opened, mut tried) = (0, 0);
    for is_closed in [false, true] {
        let folder = folder();
        let path = folder.path().join("orders-0");
        let (older, held) = written(&path, is_closed);
        assert!(logs(&path).len() > 3);
        for (file, bytes) in &held {
            if file.extension().is_some_and(|kind| kind == "log" || kind == "lock") {
                continue;
            }
            let older = older.iter().find(|(name, _)| name == file).map(|(_, bytes)| bytes);
            for (what, bytes) in spoilt(bytes, older) {
                restore(&path, &held);
                spoil(file, bytes.as_ref());
                tried += 1;
                opened += u32::from(is_opened_whole(&path, &format!("{}: {what}", file.display())));
            }
        }
    }
    // only our own checkpoint, which is no hint, and a topic's id are refused
    assert!(tried > 200 && opened > tried * 8 / 10, "{opened} of {tried} were opened");
}

#[test]
fn a_spoilt_checkpoint_of_the_data_directory_costs_no_record() {
    let folder = folder();
    let (data, path) = (folder.path(), folder.path().join("orders-0"));
    fs::write(data.join("meta.properties"), "version=1\n").unwrap();
    let (_, held) = written(&path, false);
    let line = |offset: i64| format!("0\n1\norders 0 {offset}\n").into_bytes();
    for name in ["recovery-point-offset-checkpoint", "log-start-offset-checkpoint"] {
        let file = data.join(name);
        let beyond =
            [RECORDS + 1, 1_000_000, i64::MAX, -1, -7].map(|offset| ("another offset", Some(line(offset))));
        let texts = ["0\n2\norders 0 5\n", "7\n1\norders 0 5\n", "0\n1\norders 0 five\n", "orders 0 5\n"];
        let texts = texts.map(|text| ("another text", Some(text.as_bytes().to_vec())));
        let spoilt = spoilt(&line(RECORDS), None).into_iter().filter(|(what, _)| *what != "gone");
        // what holds for a recovery point that is inside the log holds for one that is wrong
        let inside = (0..RECORDS).map(|offset| ("inside", Some(line(offset))));
        let inside = inside.filter(|_| name.starts_with("recovery"));
        for (what, bytes) in spoilt.chain(beyond).chain(texts).chain(inside) {
            for has_own in [true, false] {
                restore(&path, &held);
                if !has_own {
                    // as in a directory that Kafka wrote: there is nothing else to go by
                    for (own, _) in &held {
                        if own.file_name().unwrap().to_str().unwrap().starts_with(".cordwood.") {
                            fs::remove_file(own).unwrap();
                        }
                    }
                }
                spoil(&file, bytes.as_ref());
                let text = bytes.as_ref().map(|bytes| String::from_utf8_lossy(bytes).into_owned());
                let place = format!("{name}: {what} {text:?}, own files: {has_own}");
                assert!(is_opened_whole(&path, &place), "{place}: was refused");
            }
        }
        fs::remove_file(file).unwrap();
    }
}
