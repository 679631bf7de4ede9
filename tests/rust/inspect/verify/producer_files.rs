//! Producer snapshots and transaction indexes that are valid by themselves, and do not agree with the
//! batches.

use std::fs;
use std::path::{Path, PathBuf};

use cordwood::inspect::rebuild::{RebuildOptions, rebuild};
use cordwood::inspect::verify::{Finding, Rule, Severity};
use cordwood::record::NewRecord;
use cordwood::state::producers::ProducerSnapshot;
use cordwood::types::Io;
use cordwood::writer::{LogWriter, WriterOptions};

use super::{options, verified};
use crate::support::golden;
use crate::support::partition::file_name;
use crate::support::reading::{copy, folder};

fn case(parent: &Path, case: &str) -> PathBuf {
    let partition = golden::intact().into_iter().find(|partition| partition.case == case).unwrap();
    copy(&partition.dir, parent, &partition.name)
}

fn with_suffix(dir: &Path, suffix: &str) -> Vec<PathBuf> {
    let mut paths: Vec<_> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == suffix));
    paths.sort();
    paths
}

fn offset_of(path: &Path) -> i64 {
    path.file_stem().unwrap().to_str().unwrap().parse().unwrap()
}

fn snapshot(path: &Path) -> ProducerSnapshot {
    ProducerSnapshot::decode(&fs::read(path).unwrap()).unwrap()
}

fn findings(dir: &Path) -> Vec<Finding> {
    verified(dir, &options(Io::Pread)).findings
}

/// Whether a rebuild finds the same snapshot wrong, and with which state.
fn state(dir: &Path, path: &Path) -> &'static str {
    let report = rebuild(dir, &RebuildOptions::default()).unwrap();
    report.files.iter().find(|file| file.file == path).unwrap().state.code()
}

#[test]
fn a_snapshot_without_a_producer_that_has_an_open_transaction_is_wrong() {
    let parent = folder();
    let dir = case(parent.path(), "11-transactions");
    let mut lost = 0;
    for path in with_suffix(&dir, "snapshot") {
        let original = fs::read(&path).unwrap();
        let entries = snapshot(&path).entries;
        for (number, entry) in entries.iter().enumerate() {
            let mut rest = entries.clone();
            rest.remove(number);
            fs::write(&path, ProducerSnapshot { entries: rest }.encode()).unwrap();
            let found = findings(&dir);
            // a broker forgets a producer without an open transaction
            let Some(first) = entry.open_transaction else {
                assert_eq!(found, [], "{}", path.display());
                assert_eq!(state(&dir, &path), "expired");
                continue;
            };
            lost += 1;
            let [finding] = &found[..] else { panic!("{found:?}") };
            assert_eq!((finding.rule, finding.severity), (Rule::SnapshotWrong, Severity::Error));
            assert_eq!(finding.file, path);
            assert!(
                finding.expected.contains(&format!("a transaction open from offset {first}")),
                "{finding}"
            );
            assert_eq!(state(&dir, &path), "differs");
        }
        fs::write(&path, &original).unwrap();
    }
    assert!(lost > 0);
}

#[test]
fn empty_snapshots_hide_no_open_transaction() {
    for name in ["11-transactions", "14-killed-transactions"] {
        let parent = folder();
        let dir = case(parent.path(), name);
        let mut wrong: Vec<PathBuf> = Vec::new();
        for path in with_suffix(&dir, "snapshot") {
            if snapshot(&path).entries.iter().any(|entry| entry.open_transaction.is_some()) {
                wrong.push(path.clone());
            }
            fs::write(&path, ProducerSnapshot::default().encode()).unwrap();
        }
        let found = findings(&dir);
        assert!(found.iter().all(|finding| finding.rule == Rule::SnapshotWrong), "{found:?}");
        let files: Vec<_> = found.iter().map(|finding| finding.file.clone()).collect();
        assert_eq!(files, wrong, "{name}");
        assert!(!wrong.is_empty(), "{name}");
    }
}

#[test]
fn a_snapshot_above_the_log_end_shows_that_records_were_lost() {
    let parent = folder();
    let dir = case(parent.path(), "11-transactions");
    let last = offset_of(with_suffix(&dir, "log").last().unwrap());
    for extension in ["log", "index", "timeindex", "txnindex"] {
        let _ = fs::remove_file(dir.join(file_name(last, extension)));
    }
    let path = with_suffix(&dir, "snapshot").pop().unwrap();
    assert!(offset_of(&path) > last);
    let found = findings(&dir);
    let [finding] = &found[..] else { panic!("{found:?}") };
    assert_eq!((finding.rule, finding.severity), (Rule::SnapshotBeyondEnd, Severity::Error));
    assert_eq!(finding.file, path);
    assert_eq!((finding.start_offset, finding.end_offset), (Some(last), Some(offset_of(&path))));
    assert_eq!(state(&dir, &path), "stray");

    // without an entry that names a lost record, it may be left over
    fs::write(&path, ProducerSnapshot::default().encode()).unwrap();
    let found = findings(&dir);
    let [finding] = &found[..] else { panic!("{found:?}") };
    assert_eq!((finding.rule, finding.severity), (Rule::SnapshotBeyondEnd, Severity::Warning));
    rebuild(&dir, &RebuildOptions { dry_run: false, ..RebuildOptions::default() }).unwrap();
    fs::remove_dir_all(dir.join("quarantine")).unwrap();
    assert!(!path.exists());
    assert_eq!(findings(&dir), []);
}

#[test]
fn a_last_stable_offset_above_an_open_transaction_is_wrong() {
    let parent = folder();
    let dir = case(parent.path(), "11-transactions");
    assert_limited(&dir);
    // also in a log that a cleaner may have compacted
    fs::write(parent.path().join("cleaner-offset-checkpoint"), "0\n1\npayments 0 100\n").unwrap();
    assert_limited(&dir);
}

/// Each entry of a transaction index is wrong if its last stable offset is above a transaction that was open.
fn assert_limited(dir: &Path) {
    let (mut wrong, mut right) = (0, 0);
    for path in with_suffix(dir, "txnindex") {
        let original = fs::read(&path).unwrap();
        for slot in 0..original.len() / 34 {
            let at = slot * 34 + 26;
            let own = i64::from_be_bytes(original[at..at + 8].try_into().unwrap());
            let last_offset = i64::from_be_bytes(original[at - 8..at].try_into().unwrap());
            let mut bytes = original.clone();
            // no offset of the segment is above it
            bytes[at..at + 8].copy_from_slice(&(last_offset + 1).to_be_bytes());
            fs::write(&path, &bytes).unwrap();
            let found = findings(dir);
            if own == last_offset + 1 {
                assert_eq!(found, []);
                right += 1;
                continue;
            }
            wrong += 1;
            let [finding] = &found[..] else { panic!("{found:?}") };
            assert_eq!((finding.rule, &finding.file), (Rule::TransactionIndexEntryWrong, &path), "{finding}");
            assert_eq!(finding.position, Some(slot as u64 * 34), "{finding}");
            assert!(finding.expected.starts_with(&format!("a last stable offset up to {own},")), "{finding}");
        }
        fs::write(&path, &original).unwrap();
    }
    assert!(wrong > 0 && right > 0, "{wrong} {right}");
}

#[test]
fn the_files_of_named_producers_are_known_and_their_damage_is_found() {
    let parent = folder();
    let dir = parent.path().join("orders-0");
    let mut writer = LogWriter::open(&dir, &WriterOptions::default()).unwrap();
    let producer = writer.producer(Some("billing")).unwrap();
    producer.append(&NewRecord::default(), None).unwrap();
    writer.delete_before(1).unwrap();
    writer.close().unwrap();
    assert_eq!(findings(&dir), []);
    for name in [".cordwood.producers", ".cordwood.producer-states"] {
        let whole = fs::read(dir.join(name)).unwrap();
        fs::write(dir.join(name), &whole[..whole.len() - 1]).unwrap();
        let found = findings(&dir);
        let found: Vec<_> =
            found.iter().map(|finding| (finding.rule, finding.severity, finding.file.clone())).collect();
        assert_eq!(found, [(Rule::ProducerNamesUnreadable, Severity::Warning, dir.join(name))]);
        fs::write(dir.join(name), whole).unwrap();
    }
}
