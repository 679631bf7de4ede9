//! The history of leader epochs at the open of a writer: wrong, outdated or missing.

use std::fs;
use std::path::Path;

use cordwood::config::LogConfig;
use cordwood::log::OnDamage;
use cordwood::record::NewRecord;
use cordwood::types::Io;
use cordwood::writer::{LogWriter, WriterOptions};

use crate::support::golden;
use crate::support::reading::{all, folder, open};

fn options(leader_epoch: impl Into<Option<i32>>) -> WriterOptions {
    let config = LogConfig { message_timestamp_after_max_ms: i64::MAX, ..LogConfig::default() };
    let leader_epoch = leader_epoch.into();
    WriterOptions { config, leader_epoch, clock: || 1_000_000, ..WriterOptions::default() }
}

fn append(writer: &mut LogWriter, count: usize) {
    let record = NewRecord { timestamp: 1_000_000, value: Some(b"a value"), ..NewRecord::default() };
    for _ in 0..count {
        writer.append(&record).unwrap();
    }
}

fn assert_reads(path: &Path, records: usize) {
    assert_eq!(all(&open(path, Io::Pread), OnDamage::Raise).whole().records().count(), records);
}

#[test]
fn a_history_without_the_last_epoch_is_rebuilt() {
    // the last segment has all records, or none
    for rolls in [false, true] {
        for contents in
            [Some(""), Some("0\n0\n"), Some("0\n1\n0 0\n"), Some("0\n2\n0 0\n2 3\n"), Some("0\n1\n3 "), None]
        {
            let folder = folder();
            let path = folder.path().join("orders-0");
            let mut writer = LogWriter::open(&path, &options(3)).unwrap();
            append(&mut writer, 4);
            if rolls {
                writer.roll().unwrap();
            }
            writer.close().unwrap();
            let checkpoint = path.join("leader-epoch-checkpoint");
            match contents {
                Some(contents) => fs::write(&checkpoint, contents).unwrap(),
                None => fs::remove_file(&checkpoint).unwrap(),
            }
            let mut writer = LogWriter::open(&path, &options(None)).unwrap();
            append(&mut writer, 1);
            assert_eq!(writer.leader_epochs().latest(), Some(3), "{contents:?}, {rolls}");
            assert_reads(&path, 5);
            writer.close().unwrap();
            assert_eq!(fs::read_to_string(&checkpoint).unwrap(), "0\n1\n3 0\n");
            LogWriter::open(&path, &options(None)).unwrap();
            assert_reads(&path, 5);
        }
    }
}

#[test]
fn a_torn_tail_after_batches_of_any_magic_is_cut_at_the_first_open() {
    let mut tried = 0;
    for partition in golden::intact() {
        if !partition.case.starts_with("17-") && partition.case != "01-plain" {
            continue;
        }
        let folder = folder();
        let path = folder.path().join(&partition.name);
        fs::create_dir(&path).unwrap();
        for entry in fs::read_dir(&partition.dir).unwrap() {
            let entry = entry.unwrap();
            // without the history, the writer reads the batches again
            if entry.file_name() != "leader-epoch-checkpoint" {
                fs::copy(entry.path(), path.join(entry.file_name())).unwrap();
            }
        }
        let log = open(&path, Io::Pread).segments().last().unwrap().path();
        let whole = fs::read(&log).unwrap();
        fs::write(&log, [&whole[..], &whole[..40.min(whole.len())]].concat()).unwrap();
        let writer = LogWriter::open(&path, &options(None));
        let writer = writer.unwrap_or_else(|error| panic!("{}: {error}", partition.case));
        assert_eq!(fs::read(&log).unwrap(), whole, "{}", partition.case);
        drop(writer);
        assert_reads(&path, usize::try_from(partition.records - partition.control_records).unwrap());
        tried += 1;
    }
    assert!(tried > 10, "{tried}");
}

#[test]
fn an_epoch_below_the_latest_epoch_is_refused_and_changes_nothing() {
    // closed or killed; with records in the last segment or with an empty last segment
    for (is_closed, rolls) in [(true, false), (false, false), (true, true), (false, true)] {
        let folder = folder();
        let path = folder.path().join("orders-0");
        let mut writer = LogWriter::open(&path, &options(5)).unwrap();
        append(&mut writer, 2);
        if rolls {
            writer.roll().unwrap();
        }
        if is_closed {
            writer.close().unwrap();
        }
        drop(writer);
        let before = files(&path);
        for epoch in [0, 4] {
            let refused = LogWriter::open(&path, &options(epoch)).unwrap_err();
            let expected = format!(
                "leader_epoch: expected 5 or above, the latest epoch of the log (or none, to continue with it), found {epoch}"
            );
            assert_eq!(refused.to_string(), expected);
            assert_eq!(files(&path), before);
        }
        // the same epoch, a higher epoch, and none
        for (epoch, stamped) in [(Some(5), 5), (Some(8), 8), (None, 8)] {
            let mut writer = LogWriter::open(&path, &options(epoch)).unwrap();
            append(&mut writer, 1);
            assert_eq!(writer.leader_epochs().latest(), Some(stamped));
            writer.close().unwrap();
        }
        assert_reads(&path, 5);
    }
}

#[test]
fn an_epoch_without_records_is_ignored() {
    let folder = folder();
    let path = folder.path().join("orders-0");
    let mut writer = LogWriter::open(&path, &options(5)).unwrap();
    append(&mut writer, 2);
    writer.close().unwrap();
    // as after a leader that was elected and wrote nothing: Kafka removes such a line when it opens the log
    fs::write(path.join("leader-epoch-checkpoint"), "0\n2\n5 0\n7 2\n").unwrap();
    let writer = LogWriter::open(&path, &options(6)).unwrap();
    assert_eq!(writer.leader_epochs().entries(), [(5, 0)]);
}

fn files(path: &Path) -> Vec<(std::ffi::OsString, Vec<u8>)> {
    let read = |entry: fs::DirEntry| (entry.file_name(), fs::read(entry.path()).unwrap());
    let mut files: Vec<_> = fs::read_dir(path).unwrap().map(|entry| read(entry.unwrap())).collect();
    files.sort();
    files
}
