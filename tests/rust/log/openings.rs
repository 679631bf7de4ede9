//! Opening a log opens no file of a segment, but fixes its end: later appends are not visible.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use cordwood::log::{OnDamage, Ranges, ScanOptions, Split};
use cordwood::types::{Io, IsolationLevel};
use cordwood::{Error, Log, LogOptions};

use crate::support::batches::{ABORT, BatchV2, Built, COMMIT, Rec};
use crate::support::partition::{Indexing, PartitionBuilder, file_name, offset_entry, time_entry};
use crate::support::reading::{all, folder, open, range, read, scan};

fn batch(offset: i64) -> Built {
    BatchV2::new(offset).record(Rec::at(offset * 10).value([b'v'; 50])).build()
}

/// Four segments of 25 records, one a batch; times are ten times the offsets.
fn four_segments(parent: &Path) -> PathBuf {
    let mut builder = PartitionBuilder::new(Indexing::every(300));
    for base in [0, 25, 50, 75] {
        builder = builder.segment(base, (base..base + 25).map(batch));
    }
    builder.write(parent, "t-0")
}

fn offsets(start: i64, end: i64) -> Ranges {
    Ranges { start_offset: Some(start), end_offset: Some(end), ..Ranges::default() }
}

/// Base offsets of the segments of which this process has a file open or mapped.
fn open_segments(dir: &Path) -> BTreeSet<i64> {
    let descriptors = fs::read_dir("/proc/self/fd").unwrap();
    let open = descriptors.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
    let paths = open.filter(|path| path.starts_with(dir) && path != dir);
    paths.map(|path| path.file_stem().unwrap().to_str().unwrap().parse().unwrap()).collect()
}

#[test]
fn opening_opens_no_file_of_a_segment() {
    let parent = folder();
    let dir = four_segments(parent.path());
    for io in [Io::Auto, Io::Mmap, Io::Pread] {
        for log_start_offset in [None, Some(30), Some(75)] {
            let log = Log::open(&dir, LogOptions { io, log_start_offset, ..LogOptions::default() }).unwrap();
            assert_eq!((log.files_opened(), open_segments(&dir)), (0, BTreeSet::new()));
            let again = log.refresh().unwrap();
            assert_eq!(again.files_opened(), 0);
            assert_eq!(again.log_end_offset().unwrap(), 100);
            // the last `.log` and its offset index
            assert_eq!((log.files_opened(), open_segments(&dir)), (2, BTreeSet::from([75])));
        }
    }
}

#[test]
fn a_range_below_the_last_segment_opens_only_the_segments_it_covers() {
    let parent = folder();
    let dir = four_segments(parent.path());
    for io in [Io::Auto, Io::Mmap, Io::Pread] {
        for (start, end, expected) in [
            (0, 25, vec![0]),
            (3, 7, vec![0]),
            (25, 50, vec![25]),
            (40, 60, vec![25, 50]),
            (0, 75, vec![0, 25, 50]),
        ] {
            let covered: BTreeSet<i64> = expected.iter().copied().collect();
            let expected_offsets: Vec<i64> = (start..end).collect();
            let context = format!("{io:?} {start}..{end}");
            let ranges = offsets(start, end);
            for on_damage in [OnDamage::Raise, OnDamage::Report] {
                let log = open(&dir, io);
                let options = ScanOptions { ranges, on_damage, ..ScanOptions::default() };
                assert_eq!(scan(&log, options).whole().offsets(), expected_offsets);
                assert_eq!(open_segments(&dir), covered, "{context}");
            }
            {
                let log = open(&dir, io);
                let times = Ranges { start_time: Some(start * 10), end_time: Some(end * 10), ..ranges };
                assert_eq!(range(&log, times).whole().offsets(), expected_offsets);
                assert_eq!(open_segments(&dir), covered, "{context}, by time");
            }
            {
                let log = open(&dir, io);
                log.plan(500, &ScanOptions { ranges, ..ScanOptions::default() }).unwrap();
                assert_eq!(open_segments(&dir), covered, "{context}, planned");
            }
            let log = open(&dir, io);
            assert_eq!(log.locate(start).unwrap().unwrap().batch_base_offset, start);
            assert_eq!(open_segments(&dir), BTreeSet::from([expected[0]]), "{context}, one offset");
        }
    }
}

fn append(dir: &Path, extension: &str, bytes: &[u8]) {
    let path = dir.join(file_name(75, extension));
    fs::OpenOptions::new().append(true).open(path).unwrap().write_all(bytes).unwrap();
}

#[test]
fn appends_between_the_opening_and_the_first_read_are_not_visible() {
    for io in [Io::Auto, Io::Mmap, Io::Pread] {
        let parent = folder();
        let dir = four_segments(parent.path());
        let log = open(&dir, io);
        let before = open(&dir, Io::Pread).size().unwrap();
        let size = fs::metadata(dir.join(file_name(75, "log"))).unwrap().len();
        // far more entries than a search for the end of the log tries
        let mut position = i32::try_from(size).unwrap();
        for offset in 100..200 {
            let built = batch(offset);
            append(&dir, "log", &built.bytes);
            append(&dir, "index", &offset_entry(75, offset, position));
            append(&dir, "timeindex", &time_entry(75, offset * 10, offset));
            position += i32::try_from(built.bytes.len()).unwrap();
        }
        assert_eq!(log.log_end_offset().unwrap(), 100);
        assert_eq!(all(&log, OnDamage::Raise).whole().offsets(), (0..100).collect::<Vec<_>>());
        assert!(matches!(log.locate(100), Err(Error::OffsetOutOfRange { log_end_offset: 100, .. })));
        assert_eq!(log.offset_for_time(990).unwrap().unwrap().offset, 99);
        assert_eq!(log.offset_for_time(991).unwrap(), None);
        assert_eq!(log.size().unwrap(), before);
        let largest = log.segments().last().unwrap().largest_timestamp().unwrap();
        assert_eq!(largest, 990);
        let splits = log.plan(500, &ScanOptions::default()).unwrap();
        assert_eq!(splits.last().unwrap().end_offset, 100);
        assert_eq!(log.warnings(), [""; 0]);
        let grown = log.refresh().unwrap();
        assert_eq!(grown.log_end_offset().unwrap(), 200);
        assert_eq!(grown.offset_for_time(991).unwrap().unwrap().offset, 100);
        assert_eq!(grown.warnings(), [""; 0]);
    }
}

#[test]
fn a_last_segment_that_was_replaced_or_cut_before_the_first_read_is_a_changed_log() {
    let changes: [fn(&Path); 3] = [
        |path| fs::remove_file(path).unwrap(),
        |path| fs::OpenOptions::new().write(true).open(path).unwrap().set_len(200).unwrap(),
        |path| {
            let other = path.with_extension("new");
            fs::copy(path, &other).unwrap();
            fs::rename(other, path).unwrap();
        },
    ];
    for change in changes {
        let parent = folder();
        let dir = four_segments(parent.path());
        let log = open(&dir, Io::Pread);
        change(&dir.join(file_name(75, "log")));
        assert!(matches!(log.log_end_offset(), Err(Error::LogChanged { .. })));
        assert!(matches!(log.locate(80), Err(Error::LogChanged { .. })));
        let [warning] = &log.warnings()[..] else { panic!("{:?}", log.warnings()) };
        assert!(warning.contains(&file_name(75, "log")), "{warning}");
        assert_eq!(range(&log, offsets(0, 75)).whole().offsets().len(), 75);
    }
}

#[test]
fn a_torn_tail_causes_a_warning_in_a_log_that_was_only_opened() {
    let parent = folder();
    let dir = four_segments(parent.path());
    append(&dir, "log", &batch(100).bytes[..40]);
    let log = open(&dir, Io::Auto);
    let [warning] = &log.warnings()[..] else { panic!("{:?}", log.warnings()) };
    assert!(warning.contains("no whole batch follows"), "{warning}");
    assert_eq!(log.log_end_offset().unwrap(), 100);
    assert_eq!(log.warnings().len(), 1);
    // a range that ends before the tail neither opens nor reports it
    let log = open(&dir, Io::Auto);
    let skipped = ScanOptions { ranges: offsets(0, 75), on_damage: OnDamage::Skip, ..ScanOptions::default() };
    assert_eq!(scan(&log, skipped).whole().gaps, []);
    let whole = all(&log, OnDamage::Skip).whole();
    assert_eq!((whole.offsets().len(), whole.gaps.len()), (100, 1));
}

/// Five segments of ten batches from two concurrent producers, one that aborts and one that commits, with
/// transactions that span segments.
fn transactional(parent: &Path) -> PathBuf {
    let mut builder = PartitionBuilder::new(Indexing::every(300));
    for base in (0..250).step_by(50) {
        let batch = |n: i64| {
            let (offset, producer) = (base + n * 5, 1 + n % 2);
            match (base / 50 % 2, n) {
                (1, 6) => BatchV2::marker(offset, ABORT, 1, 0, offset * 10).build(),
                (1, 7) => BatchV2::marker(offset, COMMIT, 2, 0, offset * 10).build(),
                _ => {
                    let records = (offset..offset + 5).map(|offset| Rec::at(offset * 10).value([b'v'; 50]));
                    BatchV2::new(offset).transaction(producer, 0, 0).records(records).build()
                }
            }
        };
        builder = builder.segment(base, (0..10).map(batch));
    }
    builder.write(parent, "t-0")
}

#[test]
fn a_split_of_a_committed_plan_opens_only_the_segments_it_covers() {
    let parent = folder();
    let dir = transactional(parent.path());
    let committed = ScanOptions { isolation_level: IsolationLevel::ReadCommitted, ..ScanOptions::default() };
    for io in [Io::Auto, Io::Mmap, Io::Pread] {
        let bases: Vec<i64> = (0..5).map(|segment| segment * 50).collect();
        let (splits, uncommitted) = {
            let planner = open(&dir, io);
            (planner.plan(400, &committed).unwrap(), planner.plan(400, &ScanOptions::default()).unwrap())
        };
        let all_of = |split: &Split| {
            scan(&open(&dir, io), ScanOptions { ranges: split.ranges(), ..committed }).whole().offsets()
        };
        assert!(splits.len() > 8, "{}", splits.len());
        let (mut aborted, mut without_gap) = (0, 0);
        for split in &splits {
            let expected = all_of(split);
            aborted += split.aborted.as_ref().unwrap().len();
            let log = open(&dir, io);
            let found = read(log.scan_split(split, committed)).whole();
            assert_eq!(found.offsets(), expected);
            let covered = |base: &i64| base + 50 > split.start_offset && *base < split.end_offset;
            // a gap is searched for signs of compaction in all segments
            if found.stats.lost_gaps == 0 {
                assert_eq!(open_segments(&dir), bases.iter().copied().filter(covered).collect(), "{split:?}");
                without_gap += 1;
            }
            drop(log);

            // a split without aborted transactions, and one of another log, read the whole log
            let mut without_aborted = split.clone();
            without_aborted.aborted = None;
            let log = open(&dir, io);
            assert_eq!(read(log.scan_split(&without_aborted, committed)).whole().offsets(), expected);
            assert_eq!(open_segments(&dir).len(), 5);
            drop(log);
            let mut of_another_log = split.clone();
            (of_another_log.path, of_another_log.aborted) = ("/elsewhere".into(), Some(Vec::new()));
            assert_eq!(
                read(open(&dir, io).scan_split(&of_another_log, committed)).whole().offsets(),
                expected
            );
        }
        assert!(aborted > 0 && without_gap > splits.len() / 2, "{without_gap} of {}", splits.len());
        assert!(uncommitted.iter().all(|split| split.aborted.is_none()));
    }
}

#[test]
fn a_split_has_no_aborted_transactions_if_damage_may_have_destroyed_a_marker() {
    let parent = folder();
    let dir = transactional(parent.path());
    let path = dir.join(file_name(50, "log"));
    let mut bytes = fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&path, bytes).unwrap();
    let options = ScanOptions {
        isolation_level: IsolationLevel::ReadCommitted,
        on_damage: OnDamage::Skip,
        ..ScanOptions::default()
    };
    let log = open(&dir, Io::Pread);
    let splits = log.plan(400, &options).unwrap();
    assert!(!splits.is_empty());
    assert!(splits.iter().all(|split| split.aborted.is_none()));
    let whole = scan(&log, options).whole().offsets();
    let parts = splits.iter().flat_map(|split| read(log.scan_split(split, options)).whole().offsets());
    assert_eq!(parts.collect::<Vec<_>>(), whole);
}
