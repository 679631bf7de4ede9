//! Segments and batches outside a range are not opened or decompressed, and few files are open.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use cordwood::log::Ranges;
use cordwood::types::Io;
use cordwood::{Log, LogOptions};

use crate::support::batches::{BatchV2, Built, Codec, Rec};
use crate::support::golden;
use crate::support::naive;
use crate::support::partition::{Indexing, PartitionBuilder};
use crate::support::reading::{IOS, all, folder, open, range};

/// 20 segments of 10 gzip batches of 5 records; times are ten times the offsets.
fn twenty_segments(parent: &Path) -> PathBuf {
    let mut builder = PartitionBuilder::new(Indexing::every(100));
    for segment in 0..20i64 {
        let batch = |n: i64| -> Built {
            let base = segment * 50 + n * 5;
            let records = (base..base + 5).map(|offset| Rec::at(offset * 10).value([b'v'; 50]));
            BatchV2::new(base).codec(Codec::Gzip).records(records).build()
        };
        builder = builder.segment(segment * 50, (0..10).map(batch));
    }
    builder.write(parent, "t-0")
}

fn offsets(start: i64, end: i64) -> Ranges {
    Ranges { start_offset: Some(start), end_offset: Some(end), ..Ranges::default() }
}

fn times(start: i64, end: i64) -> Ranges {
    Ranges { start_time: Some(start), end_time: Some(end), ..Ranges::default() }
}

#[test]
fn a_range_of_offsets_opens_and_decompresses_only_its_segments_and_batches() {
    let parent = folder();
    let dir = twenty_segments(parent.path());
    for io in IOS {
        for (start, end, segments, batches) in [
            (0, 0, 0, 0),
            (0, 1, 1, 1),
            (523, 524, 1, 1),
            (524, 526, 1, 2),
            (548, 552, 2, 2),
            (500, 550, 1, 10),
            (549, 601, 3, 12),
            (0, 1000, 20, 200),
        ] {
            let log = open(&dir, io);
            let read = range(&log, offsets(start, end)).whole();
            assert_eq!(read.offsets(), (start..end).collect::<Vec<_>>());
            let stats = read.stats;
            assert_eq!(
                (stats.segments_opened, stats.batches_decompressed, stats.batches),
                (segments, batches, batches),
                "{start}..{end}"
            );
            // a `.log` and two indexes for each: the end of a segment is compared with its indexes
            assert!(log.files_opened() <= 3 * segments, "{start}..{end}");
        }
    }
}

#[test]
fn a_range_of_times_skips_segments_and_batches_below_it() {
    let parent = folder();
    let dir = twenty_segments(parent.path());
    for io in IOS {
        for (start, end, segments, batches) in
            [(9_950, 10_000, 1, 1), (9_499, 9_501, 1, 1), (5_230, 5_240, 10, 1), (0, 20_000, 20, 200)]
        {
            let log = open(&dir, io);
            let read = range(&log, times(start, end)).whole();
            let expected: Vec<i64> =
                (0..1000).filter(|offset| (start..end).contains(&(offset * 10))).collect();
            assert_eq!(read.offsets(), expected);
            let stats = read.stats;
            // segments above the range must be read: their times may decrease
            assert!(stats.segments_opened <= segments, "{start}..{end}: {stats:?}");
            assert!(stats.batches_decompressed >= batches, "{start}..{end}: {stats:?}");
            let below = start / 10 / 5;
            assert!(stats.batches_decompressed <= 200 - below as u64, "{start}..{end}: {stats:?}");
        }
        // with both, no segment outside the offsets is opened
        let log = open(&dir, io);
        let both = Ranges { start_time: Some(5_230), end_time: Some(5_250), ..offsets(500, 550) };
        let read = range(&log, both).whole();
        assert_eq!((read.offsets(), read.stats.segments_opened), (vec![523, 524], 1));
    }
}

#[test]
fn a_plan_reads_no_record() {
    let parent = folder();
    let dir = twenty_segments(parent.path());
    let log = open(&dir, Io::Pread);
    let splits = log.plan(1000, &cordwood::log::ScanOptions::default()).unwrap();
    assert!(splits.len() > 20, "{splits:#?}");
    assert_eq!((splits[0].start_offset, splits[splits.len() - 1].end_offset), (0, 1000));
    assert!(splits.windows(2).all(|pair| pair[0].end_offset == pair[1].start_offset));
}

/// Files of a directory that this process has open or mapped.
fn open_or_mapped(dir: &Path) -> BTreeSet<PathBuf> {
    let descriptors = std::fs::read_dir("/proc/self/fd").unwrap();
    let open = descriptors.filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok());
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let mapped = maps.lines().filter_map(|line| line.split_whitespace().nth(5)).map(PathBuf::from);
    open.chain(mapped).filter(|path| path.starts_with(dir) && path != dir).collect()
}

#[test]
fn a_limit_of_two_open_files_reads_everything_with_few_open() {
    let partitions = golden::intact();
    let partition = partitions.iter().find(|p| p.case == "20-many-segments").unwrap();
    let naive = naive::read(&partition.dir).unwrap();
    assert!(naive.segments.len() > 50);
    for io in IOS {
        // a private copy: other tests have files of the corpus open
        let parent = folder();
        let dir = crate::support::reading::copy(&partition.dir, parent.path(), &partition.name);
        let log = Log::open(&dir, LogOptions { io, max_open_files: 2, ..LogOptions::default() }).unwrap();
        let done = AtomicBool::new(false);
        let max = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    max.fetch_max(open_or_mapped(&dir).len(), Ordering::Relaxed);
                    std::thread::yield_now();
                }
            });
            let read = all(&log, cordwood::log::OnDamage::Raise).whole();
            assert!(read.records().eq(naive.records()));
            for offset in log.log_start_offset()..log.log_end_offset().unwrap() {
                assert_eq!(
                    log.locate(offset).unwrap().unwrap().batch_base_offset,
                    naive.locate(offset).unwrap().base_offset
                );
            }
            for record in naive.records().step_by(5) {
                let found = log.offset_for_time(record.timestamp).unwrap().unwrap();
                assert_eq!(found.offset, naive.offset_for_time(0, record.timestamp).unwrap().offset);
            }
            // on a busy machine the watcher may not have looked yet
            for _ in 0..1000 {
                if max.load(Ordering::Relaxed) > 0 {
                    break;
                }
                assert!(all(&log, cordwood::log::OnDamage::Raise).whole().records().eq(naive.records()));
            }
            done.store(true, Ordering::Relaxed);
        });
        let max = max.into_inner();
        assert!((1..=6).contains(&max), "{max} files of the log at once");
        assert!(log.files_opened() > 100);
        // the files that are kept while nothing is read
        assert!(open_or_mapped(&dir).len() <= 2, "{:?}", open_or_mapped(&dir));
    }
}
