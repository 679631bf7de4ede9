//! The files of a compaction: the behaviours of Kafka's `LogCleanerTest` on sizes, damage, overflow and
//! crashes, by their names there.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use cordwood::Error;
use cordwood::cleaner::{CompactionOptions, plan_compaction};
use cordwood::error::SizeLimit;
use cordwood::log::Log;
use cordwood::types::{Interrupt, IsolationLevel};
use cordwood::writer::{LogWriter, WriterOptions};

use super::case::{ALL, Case, NOW, write_segments};
use crate::support::batches::{ABORT, BatchV2, Built, Rec};
use crate::support::partition::{file_name, time_entry};
use crate::support::reading::folder;

const FAR: i64 = i32::MAX as i64;
const OPTIONS: CompactionOptions = CompactionOptions { now: Some(NOW), dedupe_buffer_bytes: ALL, threads: 1 };

/// `testSizeTrimmedForPreallocatedAndCompactedTopic`.
#[test]
fn a_cleaned_segment_of_a_preallocated_log_has_the_size_of_its_batches() {
    let mut case = Case::new(|config| {
        config.segment_bytes = 1024;
        config.preallocate = true;
    });
    for key in [0, 1, 0, 1, 0] {
        case.keys(&[key]);
    }
    case.roll();
    case.compact_at(NOW, 72);
    let length = fs::metadata(case.path().join(file_name(0, "log"))).unwrap().len();
    assert_eq!(length, case.headers().iter().map(|header| u64::from(header.size)).sum::<u64>());
    assert!(0 < length && length < 1024);
}

/// `testLargeMessage`, `testMessageLargerThanMaxMessageSize`.
#[test]
fn batches_larger_than_a_message_may_be_now_are_cleaned() {
    let mut case = Case::new(|config| {
        config.segment_bytes = 16 << 20;
        config.max_message_bytes = 2 << 20;
    });
    let value = vec![7; 1 << 20];
    for key in [0, 1, 2, 1, 0] {
        case.put(&case.batch().record(Rec::at(NOW).key(key.to_string()).value(&value)));
    }
    case.roll();
    case.options.config.max_message_bytes = 1 << 19;
    case.reopen();
    let compaction = case.compact();
    assert_eq!((compaction.end_offset, compaction.keys), (5, 3));
    assert_eq!((case.keys_in_log(), case.offsets_in_log()), (vec![2, 1, 0], vec![2, 3, 4]));
}

/// `testMessageLargerThanMaxMessageSizeWithCorruptHeader`, `testCorruptMessageSizeLargerThanBytesAvailable`.
#[test]
fn a_damaged_header_and_a_file_that_ends_in_a_batch_are_errors() {
    type Damage = fn(&mut Vec<u8>);
    let damages: [Damage; 3] = [
        |bytes| bytes[16] = 0xff,
        |bytes| bytes.truncate(1024),
        // a size beyond the end of the file
        |bytes| bytes[8] = 0x10,
    ];
    for damage in damages {
        let mut case = Case::new(|config| config.max_message_bytes = 2 << 20);
        for _ in 0..3 {
            case.put(&case.batch().record(Rec::at(NOW).key("1").value(vec![7; 100_000])));
        }
        case.roll();
        let path = case.path().join(file_name(0, "log"));
        let mut bytes = fs::read(&path).unwrap();
        damage(&mut bytes);
        fs::write(&path, &bytes).unwrap();
        match plan_compaction(&case.log(), &case.options.config, &OPTIONS) {
            Err(Error::Corrupt { .. } | Error::UnsupportedFormat { .. }) => {}
            other => panic!("{other:?}"),
        }
    }
}

fn keyed(offset: i64, key: i64) -> Built {
    BatchV2::new(offset).record(Rec::at(NOW).key(key.to_string()).value(offset.to_string())).build()
}

/// A segment whose offsets overflow its indexes, between two that do not. Every other key is in the last
/// segment again.
fn overflowed() -> Vec<(i64, Vec<Built>)> {
    let offsets = |base: i64| [base, base + 1, base + FAR - 1];
    let of = |bases: &[i64], first_key: i64| -> Vec<Built> {
        let offsets = bases.iter().flat_map(|base| offsets(*base));
        offsets.zip(first_key..).map(|(offset, key)| keyed(offset, key)).collect()
    };
    let again = (0..9).step_by(2).zip(3 * FAR..).map(|(key, offset)| keyed(offset, key)).collect();
    vec![
        (0, of(&[0], 0)),
        (FAR, of(&[FAR, 2 * FAR], 3)),
        (3 * FAR, again),
        (3 * FAR + 5, vec![keyed(3 * FAR + 5, 100)]),
    ]
}

/// Writes segments that no opening reads, because they are below the recovery point of a broker.
fn write_recovered(parent: &Path, segments: &[(i64, Vec<Built>)]) -> PathBuf {
    fs::write(parent.join("meta.properties"), "version=1\ncluster.id=c\nnode.id=1\n").unwrap();
    let path = write_segments(parent, segments);
    for (base, batches) in segments {
        // the first batch has the largest timestamp: all are the same
        let closing = time_entry(*base, batches[0].max_timestamp, batches[0].last_offset);
        fs::write(path.join(file_name(*base, "timeindex")), closing).unwrap();
    }
    let end = segments.last().unwrap().1.last().unwrap().next_offset();
    fs::write(parent.join("recovery-point-offset-checkpoint"), format!("0\n1\norders 0 {end}\n")).unwrap();
    path
}

const KEPT: [i64; 10] = [1, 3, 5, 7, 0, 2, 4, 6, 8, 100];

/// `testSegmentWithOffsetOverflow`. Kafka's cleaner splits the segment itself, and then begins again.
#[test]
fn an_overflowed_segment_is_split_before_it_is_cleaned() {
    // recovered: split when the log is opened
    let mut case = Case::with_segments(&overflowed());
    assert_eq!(case.segments(), [0, FAR, 2 * FAR + 1, 3 * FAR, 3 * FAR + 5]);
    case.compact();
    assert_eq!(case.keys_in_log(), KEPT);
    let is_near = |(base, next): (&i64, &i64)| next - 1 - base <= FAR;
    let bases = case.segments();
    assert!(bases.iter().zip(&bases[1..]).all(is_near), "{bases:?}");
    let compacted = case.segments();
    case.writer.close().unwrap();
    // not recovered: split by the compaction, and not by its plan
    let folder = folder();
    let path = write_recovered(folder.path(), &overflowed());
    let mut writer = LogWriter::open(&path, &case.options).unwrap();
    let reader = writer.reader().unwrap();
    let bases = |log: &Log| log.segments().iter().map(|segment| segment.base_offset()).collect::<Vec<_>>();
    assert_eq!(bases(&reader), [0, FAR, 3 * FAR, 3 * FAR + 5]);
    let before = files(&path);
    match plan_compaction(&reader, &case.options.config, &OPTIONS) {
        Err(error @ Error::RecordTooLarge { limit: SizeLimit::SegmentBytes, .. }) => {
            assert!(error.to_string().contains("a compaction splits it first"), "{error}");
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(files(&path), before);
    let compaction = writer.compact(&OPTIONS).unwrap();
    let cleaned: Vec<_> = compaction.segments.iter().map(|segment| segment.base_offset).collect();
    assert_eq!(cleaned, [0, FAR, 2 * FAR + 1, 3 * FAR]);
    let reader = writer.reader().unwrap();
    assert_eq!(bases(&reader), compacted);
    writer.close().unwrap();
    let of_segments = |dir: &Path| {
        files(dir)
            .into_iter()
            .filter(|(name, _)| ends_in(name, &["log", "index", "timeindex"]))
            .collect::<Vec<_>>()
    };
    assert!(of_segments(&path) == of_segments(&case.path()));
}

/// The files of Kafka in a directory.
fn files(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_file());
    let named = entries.map(|path| (path.file_name().unwrap().to_str().unwrap().to_owned(), path));
    named
        .filter(|(name, _)| !name.starts_with(".cordwood"))
        .map(|(name, path)| (name, fs::read(path).unwrap()))
        .collect()
}

/// What is after the last dot of a name.
fn ends_in(name: &str, endings: &[&str]) -> bool {
    name.rsplit_once('.').is_some_and(|(_, ending)| endings.contains(&ending))
}

type Renamed = fn(&str) -> String;

/// `testRecoveryAfterCrash`.
#[test]
fn a_compaction_that_a_crash_of_kafka_interrupted_is_undone_or_completed() {
    let mut case = Case::new(|_| ());
    for key in 0..18 {
        case.keys(&[key]);
        case.roll();
    }
    for key in (1..18).step_by(2) {
        case.keys(&[key]);
    }
    case.roll();
    case.keys(&[100]);
    let (all, active) = (case.keys_in_log(), file_name(27, ""));
    let before = files(&case.path());
    case.compact();
    let cleaned = case.keys_in_log();
    assert_eq!((case.segments(), cleaned.len(), all.len()), (vec![0, 27], 19, 28));
    let after = files(&case.path());
    let is_segment = |name: &str| ends_in(name, &["log", "index", "timeindex"]) && !name.starts_with(&active);
    let kept: Vec<_> = before.iter().filter(|(name, _)| !is_segment(name)).collect();
    let of = |files: &BTreeMap<String, Vec<u8>>, renamed: Renamed| -> Vec<(String, Vec<u8>)> {
        let segments = files.iter().filter(|(name, _)| is_segment(name));
        segments.map(|(name, bytes)| (renamed(name), bytes.clone())).collect()
    };
    let live: Renamed = str::to_owned;
    let deleted: Renamed = |name| format!("{name}.deleted");
    let to_swap: Renamed = |name| format!("{name}.swap");
    let to_cleaned: Renamed = |name| format!("{name}.cleaned");
    let log_to_swap: Renamed =
        |name| if ends_in(name, &["log"]) { format!("{name}.swap") } else { format!("{name}.cleaned") };
    let time_index_to_swap: Renamed =
        |name| if ends_in(name, &["timeindex"]) { format!("{name}.swap") } else { name.to_owned() };
    for (number, (old, new, expected)) in [
        (live, to_cleaned, &all),
        (live, log_to_swap, &all),
        (live, to_swap, &cleaned),
        (deleted, to_swap, &cleaned),
        (deleted, time_index_to_swap, &cleaned),
        (deleted, live, &cleaned),
    ]
    .into_iter()
    .enumerate()
    {
        let kept = kept.iter().map(|(name, bytes)| ((*name).clone(), (*bytes).clone()));
        let crashed = Case::with_files(kept.chain(of(&before, old)).chain(of(&after, new)));
        assert_eq!(&crashed.keys_in_log(), expected, "{}", number + 1);
        // files that Kafka had renamed to `.deleted` are no part of the log, and stay
        let left: Vec<_> = files(&crashed.path()).into_keys().collect();
        let is_temporary = |name: &String| ends_in(name, &["cleaned", "swap"]);
        assert!(!left.iter().any(is_temporary), "{}: {left:?}", number + 1);
    }
}

thread_local! {
    /// The checks before the one that stops.
    static LEFT: Cell<u32> = const { Cell::new(u32::MAX) };
}

fn stop_after_the_last() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let left = LEFT.get();
    LEFT.set(left.wrapping_sub(1));
    if left == 0 { Err("stop".into()) } else { Ok(()) }
}

/// `testCleanSegmentsWithAbort`.
#[test]
fn each_check_of_an_interrupt_ends_a_compaction_and_the_next_one_completes_it() {
    let mut interrupted = 0;
    for before in 0.. {
        // three segments become one
        let mut case = Case::new(|config| config.segment_bytes = 300);
        case.options.interrupt = Interrupt(stop_after_the_last);
        case.reopen();
        for key in [1, 2, 3, 1, 2, 4, 1] {
            case.keys(&[key]);
            case.roll();
        }
        LEFT.set(before);
        let stopped = case.writer.compact(&OPTIONS);
        let left = LEFT.replace(u32::MAX);
        if stopped.is_ok() {
            assert!(left <= before, "the interrupt was ignored");
            break;
        }
        assert!(matches!(stopped, Err(Error::Interrupted(_))), "{before}: {stopped:?}");
        interrupted += 1;
        let seen = case.seen(IsolationLevel::ReadUncommitted).into_iter();
        let last: BTreeMap<_, _> = seen.map(|record| (record.key.unwrap(), record.offset)).collect();
        assert_eq!(last.into_values().collect::<Vec<_>>(), [6, 4, 2, 5], "{before}");
        assert!(!files(&case.path()).into_keys().any(|name| ends_in(&name, &["cleaned"])), "{before}");
        case.keys(&[5]);
        case.roll();
        case.compact();
        assert_eq!(case.keys_in_log(), [3, 2, 4, 1, 5], "{before}");
    }
    assert!(interrupted > 20, "{interrupted}");
}

#[test]
fn the_parts_of_a_segment_that_a_compaction_splits_are_those_of_a_recovery() {
    let in_transaction = BatchV2::new(FAR + 1).transaction(9, 0, 0).record(Rec::at(NOW).key("9")).build();
    let marker = BatchV2::marker(2 * FAR + 5, ABORT, 9, 0, NOW).build();
    let segments = [
        (0, vec![keyed(0, 0)]),
        (FAR, vec![keyed(FAR, 1), in_transaction, keyed(2 * FAR + 4, 2), marker, keyed(2 * FAR + 6, 1)]),
        (3 * FAR, vec![keyed(3 * FAR, 2)]),
    ];
    let options = Case::new(|_| ()).options;
    let parts = |path: &Path| -> BTreeMap<String, Vec<u8>> {
        let of_parts = |name: &str| [0, 3 * FAR].iter().all(|base| !name.starts_with(&format!("{base:020}")));
        let endings = ["log", "index", "timeindex", "txnindex"];
        files(path).into_iter().filter(|(name, _)| of_parts(name) && ends_in(name, &endings)).collect()
    };
    let recovered = folder();
    let path = write_recovered(recovered.path(), &segments);
    fs::remove_file(path.join(file_name(FAR, "index"))).unwrap();
    LogWriter::open(&path, &options).unwrap().close().unwrap();
    let expected = parts(&path);
    assert!(!expected[&file_name(2 * FAR + 4, "txnindex")].is_empty());
    let (mut whole, mut split) = (0, 0);
    for before in 0.. {
        let folder = folder();
        let path = write_recovered(folder.path(), &segments);
        let mut writer = LogWriter::open(
            &path,
            &WriterOptions { interrupt: Interrupt(stop_after_the_last), ..options.clone() },
        )
        .unwrap();
        LEFT.set(before);
        let stopped = writer.compact(&OPTIONS);
        LEFT.set(u32::MAX);
        if stopped.is_ok() {
            break;
        }
        let found = parts(&path);
        let of_logs = |files: &BTreeMap<String, Vec<u8>>| -> Vec<_> {
            files.iter().filter(|(name, _)| ends_in(name, &["log"])).map(|(_, bytes)| bytes.clone()).collect()
        };
        if found.len() < expected.len() {
            whole += 1;
        } else if of_logs(&found) == of_logs(&expected) {
            // nothing is cleaned yet
            assert!(found == expected, "{before}");
            split += 1;
        }
    }
    assert!(whole > 3 && split > 3, "{whole} {split}");
}
