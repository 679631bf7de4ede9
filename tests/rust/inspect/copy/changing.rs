//! Copies of logs that another process changes meanwhile, by other means than our writer: nothing counts its
//! truncations.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use cordwood::Error;
use cordwood::config::LogConfig;
use cordwood::inspect::copy::{CopyOptions, copy};
use cordwood::log::OnDamage;
use cordwood::record::NewRecord;
use cordwood::writer::{FlushMode, LogWriter, WriterOptions};

use super::support::{contents, copied, files, of_offsets, open, same_files};
use crate::support::reading::{all, folder};

const TIME: i64 = 1_700_000_000_000;
/// The offsets in a batch.
const BATCH: i64 = 20;

fn writer(path: &Path, segment_bytes: u32) -> LogWriter {
    let config = LogConfig { segment_bytes, ..LogConfig::default() };
    let flush = FlushMode::None;
    LogWriter::open(path, &WriterOptions { config, flush, ..WriterOptions::default() }).unwrap()
}

/// Appends a batch of values of this size.
fn append(writer: &mut LogWriter, byte: u8, size: usize, count: i64) {
    let value = vec![byte; size];
    let record = NewRecord { timestamp: TIME, key: None, value: Some(&value), headers: &[] };
    writer.append_many(&vec![record; count as usize]).unwrap();
}

/// A log of 2.5 MiB, whose last segment has about a fifth of it.
fn log(path: PathBuf) -> PathBuf {
    let mut writer = writer(&path, 1 << 20);
    for _ in 0..150 {
        append(&mut writer, b'A', 800, BATCH);
    }
    writer.close().unwrap();
    path
}

/// The `.log` of the last segment after a truncation, and after appends of other batches; with the position
/// of the truncation.
fn regrown(source: &Path, other: &Path, append_to: impl Fn(&mut LogWriter)) -> (u64, Vec<u8>) {
    let last = open(source).segments().last().unwrap().base_offset();
    same_files(source, other);
    let mut writer = writer(other, 1 << 30);
    writer.truncate_to(last + 2 * BATCH).unwrap();
    let log = other.join(format!("{last:020}.log"));
    let keep = open(other).segments().last().unwrap().size().unwrap();
    append_to(&mut writer);
    writer.close().unwrap();
    (keep, fs::read(log).unwrap())
}

#[test]
fn a_truncation_in_place_and_other_appends_are_a_changed_log() {
    let folder = folder();
    let source = log(folder.path().join("source-0"));
    let last = open(&source).segments().last().unwrap().base_offset();
    let end = open(&source).log_end_offset().unwrap();
    let name = format!("{last:020}.log");
    let original = fs::read(source.join(&name)).unwrap();
    let size = original.len() as u64;
    let larger = |writer: &mut LogWriter| (0..20).for_each(|_| append(writer, b'B', 1501, 37));
    let shorter = |writer: &mut LogWriter| (0..3).for_each(|_| append(writer, b'B', 901, 7));
    let grown = |to: &str, last_size: usize| {
        regrown(&source, &folder.path().join(to), |writer| {
            (0..4).for_each(|_| append(writer, b'B', 901, 7));
            append(writer, b'B', last_size, 1);
        })
    };
    let (_, first) = grown("probe-0", 100_000);
    let (keep, same) = grown("same-0", (100_000 + size - first.len() as u64) as usize);
    assert_eq!(same.len() as u64, size);
    let states = [
        ("larger", regrown(&source, &folder.path().join("larger-0"), larger), None),
        ("of the same size", (keep, same), None),
        // the file of a process that allocates it beforehand
        ("in allocated space", regrown(&source, &folder.path().join("shorter-0"), shorter), Some(4 << 20)),
    ];
    for (number, (state, (keep, bytes), allocated)) in states.into_iter().enumerate() {
        for (on_damage, options) in [
            (OnDamage::Raise, CopyOptions::default()),
            (OnDamage::Skip, CopyOptions::default()),
            (OnDamage::Raise, of_offsets(Some(BATCH), None)),
            (OnDamage::Raise, of_offsets(None, Some(end - 1))),
        ] {
            let what = format!("{state}, {on_damage:?}, {:?}", options.ranges);
            let log = OpenOptions::new().write(true).open(source.join(&name)).unwrap();
            log.set_len(0).unwrap();
            log.write_all_at(&original, 0).unwrap();
            if let Some(allocated) = allocated {
                log.set_len(allocated).unwrap();
            }
            let to = folder.path().join(format!("copy-{number}"));
            let options = CopyOptions { on_damage, ..options };
            let mut is_changed = false;
            let result = copy(&source, &to, &options, &mut |_| {
                // while a sealed segment is copied
                if !is_changed {
                    log.set_len(keep).unwrap();
                    log.write_all_at(&bytes[keep as usize..], keep).unwrap();
                    log.set_len(allocated.unwrap_or(bytes.len() as u64)).unwrap();
                    is_changed = true;
                }
                Ok(())
            });
            match result {
                Err(Error::LogChanged { .. }) => {}
                other => panic!("{what}: {other:?}"),
            }
            assert!(!files(&to).contains_key(&name), "{what}");
            // what was copied is used, and the result is the log as it is now
            copied(&source, &to, &options).unwrap_or_else(|error| panic!("{what}: {error}"));
            let (now, copy) = (all(&open(&source), OnDamage::Raise), all(&open(&to), OnDamage::Raise));
            let (now, copy) = (contents(&now.whole().batches), contents(&copy.whole().batches));
            assert!(now.ends_with(&copy) || now.starts_with(&copy), "{what}");
            fs::remove_dir_all(&to).unwrap();
        }
    }
}

#[test]
fn appends_during_a_copy_are_not_in_it() {
    let folder = folder();
    let source = log(folder.path().join("source-0"));
    let end = open(&source).log_end_offset().unwrap();
    let mut writer = writer(&source, 1 << 20);
    let to = folder.path().join("copy-0");
    let report = copy(&source, &to, &CopyOptions::default(), &mut |_| {
        (0..60).for_each(|_| append(&mut writer, b'C', 800, BATCH));
        Ok(())
    })
    .unwrap();
    assert_eq!(report.end_offset, Some(end));
    assert_eq!(open(&to).log_end_offset().unwrap(), end);
    assert!(open(&source).segments().last().unwrap().base_offset() > end);
}
