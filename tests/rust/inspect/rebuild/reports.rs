//! What is reported and changed for damage, snapshots and a part of the segments.

use std::collections::HashMap;
use std::fs;

use cordwood::Error;
use cordwood::config::{LogConfig, StatedSettings};
use cordwood::fs::PartitionLocks;
use cordwood::inspect::rebuild::{RebuildOptions, rebuild};
use cordwood::record::NewRecord;
use cordwood::state::producers::{ProducerSnapshot, ProducerStates};
use cordwood::writer::{LogWriter, WriterOptions};

use super::{compared, copied, differences, files, name, options, rebuilt, remove_derived};
use crate::support::golden::{self, Partition, sorted_snapshot};
use crate::support::reading::folder;

fn case(case: &str) -> Partition {
    golden::intact().into_iter().find(|partition| partition.case == case).unwrap()
}

#[test]
fn every_case_has_the_same_report_and_files_with_any_number_of_threads() {
    for partition in golden::intact() {
        let folders = [folder(), folder()];
        let [one, several] = folders.each_ref().map(|folder| copied(&partition.dir, folder));
        remove_derived(&several);
        rebuilt(&one, None);
        let report = compared(&one, None);
        assert!(report.is_clean());
        let interval = u32::try_from(report.index_interval_bytes).unwrap();
        let config =
            LogConfig { index_interval_bytes: interval, stated: StatedSettings::ALL, ..LogConfig::default() };
        for (threads, dry_run) in [(3, false), (2, true), (64, true)] {
            let options = RebuildOptions { threads, ..options(Some(config.clone()), dry_run) };
            rebuild(&several, &options).unwrap();
        }
        let rebuilt: HashMap<_, _> = files(&several).into_iter().collect();
        for (name, bytes) in files(&one) {
            let place = format!("{} {name}", partition.case);
            match rebuilt.get(&name) {
                // one that exists keeps its order
                Some(rebuilt) if name.ends_with(".snapshot") => {
                    assert_eq!(sorted_snapshot(rebuilt), sorted_snapshot(&bytes), "{place}");
                }
                Some(rebuilt) => assert_eq!(rebuilt, &bytes, "{place}"),
                // snapshots of the first segment and between segments are rebuilt only if they exist
                None => assert!(name.ends_with(".snapshot") || bytes.is_empty(), "{place}"),
            }
        }
    }
}

#[test]
fn damage_in_a_log_is_an_error_with_its_position_and_changes_nothing() {
    let folder = folder();
    let directory = copied(&case("01-plain").dir, &folder);
    remove_derived(&directory);
    let log = directory.join("00000000000000000807.log");
    let mut bytes = fs::read(&log).unwrap();
    bytes[5000] ^= 1;
    fs::write(&log, &bytes).unwrap();
    let before = files(&directory);
    for threads in [1, 3] {
        for dry_run in [true, false] {
            let options = RebuildOptions { threads, ..options(None, dry_run) };
            let error = rebuild(&directory, &options).unwrap_err();
            let Error::Corrupt { place, .. } = &error else { panic!("{error}") };
            assert_eq!(place.file, log);
            assert!(place.position <= 5000, "{error}");
            assert_eq!(files(&directory), before);
        }
    }
}

#[test]
fn a_torn_tail_of_the_last_segment_is_left_and_not_indexed() {
    let folder = folder();
    let directory = copied(&case("01-plain").dir, &folder);
    let log = directory.join("00000000000000001217.log");
    let mut bytes = fs::read(&log).unwrap();
    bytes.extend([7; 100]);
    fs::write(&log, &bytes).unwrap();
    assert!(compared(&directory, None).is_clean());
    remove_derived(&directory);
    rebuilt(&directory, Some(LogConfig { index_interval_bytes: 1024, ..LogConfig::default() }));
    assert_eq!(fs::read(&log).unwrap(), bytes);
    let original = files(&case("01-plain").dir);
    let now = files(&directory);
    let others = |files: Vec<(String, Vec<u8>)>| {
        files
            .into_iter()
            .filter(|(name, _)| !name.starts_with("00000000000000001217.log"))
            .collect::<Vec<_>>()
    };
    assert_eq!(others(now), others(original));
}

#[test]
fn a_dry_run_creates_and_changes_no_file() {
    for partition in golden::intact() {
        let folder = folder();
        let directory = copied(&partition.dir, &folder);
        remove_derived(&directory);
        let list = || -> Vec<_> {
            let mut names: Vec<_> =
                fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().file_name()).collect();
            names.sort();
            names
        };
        let before = list();
        assert!(!compared(&directory, None).is_clean() || partition.case.starts_with("15-empty"));
        assert_eq!(list(), before);
    }
}

#[test]
fn the_old_file_is_kept_and_a_second_run_changes_nothing() {
    let folder = folder();
    let directory = copied(&case("01-plain").dir, &folder);
    let index = directory.join("00000000000000000400.index");
    let right = fs::read(&index).unwrap();
    let mut wrong = right.clone();
    wrong[17] ^= 4;
    fs::write(&index, &wrong).unwrap();
    let report = rebuilt(&directory, None);
    let [file] = &report.files.iter().filter(|file| file.state.code() != "unchanged").collect::<Vec<_>>()[..]
    else {
        panic!("{report:?}")
    };
    assert_eq!((name(file), file.state.code()), ("00000000000000000400.index".to_owned(), "differs"));
    assert_eq!(
        (file.old_size, file.new_size, file.first_difference),
        (Some(right.len() as u64), Some(right.len() as u64), Some(17))
    );
    assert_eq!(fs::read(file.quarantine.as_ref().unwrap()).unwrap(), wrong);
    assert_eq!(fs::read(&index).unwrap(), right);
    let after = files(&directory);
    assert!(rebuilt(&directory, None).is_clean());
    assert_eq!(files(&directory), after);
}

#[test]
fn only_the_files_of_the_selected_segments_are_compared() {
    let folder = folder();
    let directory = copied(&case("11-transactions").dir, &folder);
    remove_derived(&directory);
    let of = |segments: &[i64]| RebuildOptions { segments: Some(segments.to_vec()), ..options(None, false) };
    let config = Some(LogConfig { index_interval_bytes: 1024, ..LogConfig::default() });
    let report = rebuild(&directory, &RebuildOptions { config, ..of(&[389, 12]) }).unwrap();
    let names: Vec<_> =
        report.files.iter().map(|file| name(file).trim_start_matches('0').to_owned()).collect();
    let expected = [
        "12.index",
        "12.snapshot",
        "12.timeindex",
        "12.txnindex",
        "389.index",
        "389.snapshot",
        "389.timeindex",
        "389.txnindex",
    ];
    assert_eq!(names, expected);
    // as the broker wrote them
    let original = case("11-transactions").dir;
    for file in &report.files {
        assert_eq!(fs::read(&file.file).unwrap(), fs::read(original.join(name(file))).unwrap());
    }
    let error = rebuild(&directory, &of(&[12, 13])).unwrap_err();
    assert!(
        matches!(&error, Error::Config { argument, found, .. } if argument == "segments" && found == "13"),
        "{error}"
    );
}

#[test]
fn the_producers_before_the_first_segment_are_those_of_its_snapshot() {
    let folder = folder();
    let directory = copied(&case("11-transactions").dir, &folder);
    // retention has removed the first two segments
    for (name, _) in files(&directory) {
        if name.starts_with("00000000000000000000.") || name.starts_with("00000000000000000012.") {
            fs::remove_file(directory.join(name)).unwrap();
        }
    }
    assert!(compared(&directory, None).is_clean());
    // without the snapshot, the producers and transactions of the removed segments are not known
    let first = directory.join("00000000000000000356.snapshot");
    let bytes = fs::read(&first).unwrap();
    assert!(
        ProducerSnapshot::decode(&bytes)
            .unwrap()
            .entries
            .iter()
            .any(|entry| entry.open_transaction.is_some())
    );
    fs::write(&first, &bytes[..bytes.len() - 1]).unwrap();
    let found = differences(&compared(&directory, None));
    assert_eq!(found[0], ("00000000000000000356.snapshot".to_owned(), "damaged"));
    assert!(found.len() > 1, "{found:?}");
    rebuilt(&directory, None);
    assert!(!first.exists());
    assert!(compared(&directory, None).is_clean());
}

#[test]
fn a_snapshot_inside_a_batch_or_above_the_end_is_stray_and_one_at_the_end_is_compared() {
    let folder = folder();
    let directory = copied(&case("10-idempotent").dir, &folder);
    let log = cordwood::Log::open(&directory, cordwood::LogOptions::default()).unwrap();
    let end = log.log_end_offset().unwrap();
    let first = log.segments().first().unwrap().base_offset();
    assert_eq!(first, 0);
    let put = |offset: i64, bytes: &[u8]| {
        fs::write(directory.join(format!("{offset:020}.snapshot")), bytes).unwrap();
    };
    let last = fs::read(directory.join(format!("{end:020}.snapshot"))).unwrap();
    put(end + 10, &last);
    put(1, &ProducerStates::default().encode());
    let states: Vec<_> = compared(&directory, None)
        .files
        .iter()
        .filter(|file| {
            [1, end, end + 10].map(|offset| format!("{offset:020}.snapshot")).contains(&name(file))
        })
        .map(|file| file.state.code())
        .collect();
    assert_eq!(states, ["stray", "unchanged", "stray"]);
}

#[test]
fn a_writer_opens_a_rebuilt_log_as_closed_cleanly_if_it_was() {
    let folder = folder();
    let path = folder.path().join("orders-0");
    let config = LogConfig { index_interval_bytes: 100, segment_bytes: 2000, ..LogConfig::default() };
    let writer_options = WriterOptions { config: config.clone(), ..WriterOptions::default() };
    let mut writer = LogWriter::open(&path, &writer_options).unwrap();
    for number in 0..60_i64 {
        let value = number.to_string().repeat(40);
        let record =
            NewRecord { timestamp: 1000 + number, value: Some(value.as_bytes()), ..NewRecord::default() };
        writer.append(&record).unwrap();
    }
    writer.close().unwrap();
    // a writer writes no snapshots, and none are missing without producers
    assert!(compared(&path, Some(config.clone())).is_clean());
    assert!(compared(&path, None).is_clean());
    let index = path.join("00000000000000000000.index");
    let right = fs::read(&index).unwrap();
    let mut wrong = right.clone();
    wrong[3] ^= 1;
    fs::write(&index, &wrong).unwrap();
    assert_eq!(
        differences(&rebuilt(&path, Some(config.clone()))),
        [("00000000000000000000.index".to_owned(), "differs")]
    );
    assert_eq!(fs::read(&index).unwrap(), right);
    let plan = LogWriter::plan_recovery(&path, &writer_options).unwrap();
    assert!(plan.closed_cleanly && plan.is_clean(), "{plan:?}");
    // a marker that does not match the files stays so
    fs::write(&index, &right[..8]).unwrap();
    rebuilt(&path, Some(config));
    assert_eq!(fs::read(&index).unwrap(), right);
    LogWriter::open(&path, &writer_options).unwrap().close().unwrap();
}

#[test]
fn a_lock_keeps_a_rebuild_out_and_not_a_dry_run() {
    let folder = folder();
    let directory = copied(&case("01-small").dir, &folder);
    let opened = cordwood::fs::Directory::open(&directory, "").unwrap();
    let locks = PartitionLocks::take(&opened).unwrap();
    assert!(compared(&directory, None).is_clean());
    assert!(matches!(rebuild(&directory, &options(None, false)), Err(Error::Locked { .. })));
    drop(locks);
    assert!(rebuilt(&directory, None).is_clean());
}
