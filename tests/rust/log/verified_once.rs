//! A log verifies a batch once: later look-ups do not read it again, unless the log may have been truncated,
//! they decode its records or its header has changed. Threads share what they have found.

use std::fs;
use std::path::{Path, PathBuf};

use cordwood::config::LogConfig;
use cordwood::record::NewRecord;
use cordwood::types::Io;
use cordwood::writer::{FlushMode, LogWriter, WriterOptions};
use cordwood::{Error, Log};

use crate::support::batches::{BatchV2, Built, Codec, MessageSet, Rec};
use crate::support::is_exhaustive;
use crate::support::naive;
use crate::support::partition::{Indexing, PartitionBuilder, file_name};
use crate::support::reading::{IOS, folder, locate, located, open, time, timed};

/// Batches of five records, the times ten times the offsets. `is_old`: compressed in the old format, which
/// has no tables.
fn write(parent: &Path, is_old: bool, batches: i64, segment_bytes: usize) -> PathBuf {
    let records = |base: i64| (base..base + 5).map(|offset| Rec::at(offset * 10).value([b'v'; 100]));
    let batch = |n: i64| {
        if is_old && n > 0 {
            return MessageSet::v1(n * 5).codec(Codec::Gzip).records(records(n * 5)).build();
        }
        vec![BatchV2::new(n * 5).records(records(n * 5)).build()]
    };
    let built: Vec<Built> = (0..batches).flat_map(batch).collect();
    PartitionBuilder::rolled(Indexing::every(4096), segment_bytes, built).write(parent, "t-0")
}

fn bases(naive: &naive::Log) -> Vec<i64> {
    naive.segments.iter().map(|segment| segment.base_offset).collect()
}

/// Changes the last byte of every batch.
fn damage_every_batch(dir: &Path) {
    let naive = naive::read(dir).unwrap();
    for segment in bases(&naive) {
        let path = dir.join(file_name(segment, "log"));
        let mut bytes = fs::read(&path).unwrap();
        for batch in naive.batches.iter().filter(|batch| batch.segment == segment) {
            bytes[(batch.position + batch.size) as usize - 1] ^= 1;
        }
        fs::write(&path, bytes).unwrap();
    }
}

#[test]
fn a_batch_that_was_verified_is_not_verified_again_with_or_without_a_table() {
    for io in IOS {
        // one look-up is too few for a table, a hundred are enough
        for look_ups in [1, 100] {
            let parent = folder();
            let dir = write(parent.path(), false, 100, 20_000);
            let log = open(&dir, io);
            // in different segments
            let offsets = [7, 222, 499];
            let find = |log: &Log| offsets.map(|offset| locate(log, offset).unwrap());
            let before = find(&log);
            for _ in 1..look_ups {
                assert_eq!(find(&log), before);
            }
            damage_every_batch(&dir);
            assert_eq!(find(&log), before, "{io:?} {look_ups}");
            assert!(matches!(open(&dir, io).locate(7), Err(Error::Corrupt { .. })));
            // no look-up has needed this batch
            assert!(matches!(log.locate(100), Err(Error::Corrupt { .. })), "{io:?} {look_ups}");
        }
    }
}

#[test]
fn times_that_were_found_are_found_again_with_or_without_a_table() {
    for io in IOS {
        for (look_ups, is_in_table) in [(1, false), (100, true)] {
            let parent = folder();
            let dir = write(parent.path(), false, 100, 20_000);
            let log = open(&dir, io);
            let times = [0, 71, 2_222, 2_224, 4_990];
            let naive = naive::read(&dir).unwrap();
            for _ in 0..look_ups {
                for target in times {
                    let right = timed(naive.offset_for_time(0, target));
                    assert_eq!(time(&log, target).unwrap(), right, "{io:?} {target}");
                }
            }
            damage_every_batch(&dir);
            // only a table can return a record that is not decoded again
            let again = times.map(|target| time(&log, target).ok());
            let right = times.map(|target| Some(timed(naive.offset_for_time(0, target))));
            assert_eq!(again, if is_in_table { right } else { [None; 5] }, "{io:?}");
        }
    }
}

#[test]
fn a_batch_that_changed_after_it_was_verified_gives_no_other_result() {
    let parent = folder();
    let dir = write(parent.path(), false, 40, 5_000);
    let naive = naive::read(&dir).unwrap();
    let batch = &naive.batches[12];
    let path = dir.join(file_name(batch.segment, "log"));
    let whole = fs::read(&path).unwrap();
    let (offset, target) = (batch.base_offset + 2, (batch.base_offset + 2) * 10);
    for io in IOS {
        for at in 0..batch.size as usize {
            let log = open(&dir, io);
            let right = (locate(&log, offset).unwrap(), time(&log, target).unwrap());
            assert_eq!(right.1, Some((target, offset)));
            let mut bytes = whole.clone();
            bytes[batch.position as usize + at] ^= 1 << (at % 8);
            fs::write(&path, &bytes).unwrap();
            let fresh = open(&dir, io);
            if let Ok(again) = locate(&log, offset) {
                let is_new = locate(&fresh, offset).is_ok_and(|fresh| fresh == again);
                assert!(again == right.0 || is_new, "{io:?} {at} {again:?}");
            }
            match time(&log, target) {
                Err(error) => assert_eq!(error.code(), "corrupt"),
                Ok(again) => {
                    // the records are verified whenever they are read
                    let is_new = time(&fresh, target).is_ok_and(|fresh| fresh == again);
                    assert!(at < 61 && (again == right.1 || is_new), "{io:?} {at} {again:?}");
                }
            }
            fs::write(&path, &whole).unwrap();
        }
    }
}

#[test]
fn threads_find_the_same_while_tables_are_built_and_in_formats_without_a_table() {
    for is_old in [false, true] {
        for io in IOS {
            let parent = folder();
            let dir = write(parent.path(), is_old, 2_000, 100_000);
            let naive = naive::read(&dir).unwrap();
            let log = open(&dir, io);
            let targets = if is_exhaustive() { 3_000 } else { 1_000 };
            std::thread::scope(|scope| {
                for thread in 0..4_i64 {
                    let (log, naive) = (&log, &naive);
                    scope.spawn(move || {
                        for n in 0..targets {
                            let target = (n * 37 + thread * 2_501) % 10_000;
                            assert_eq!(locate(log, target).unwrap(), located(naive.locate(target)));
                            let right = timed(naive.offset_for_time(0, target * 10));
                            assert_eq!(time(log, target * 10).unwrap(), right);
                            if n % 500 == 0 {
                                let many: Vec<i64> = (target..target + 100).collect();
                                for (offset, found) in many.iter().zip(log.locate_many(&many).unwrap()) {
                                    let right = naive.locate(*offset).map(|batch| batch.position);
                                    assert_eq!(found.map(|found| found.position), right);
                                }
                            }
                        }
                    });
                }
            });
            assert_eq!(log.warnings(), [""; 0]);
        }
    }
}

#[test]
fn results_in_memory_are_not_returned_after_a_truncation() {
    let parent = folder();
    let dir = parent.path().join("orders-0");
    let config = LogConfig { index_interval_bytes: 1, ..LogConfig::default() };
    let options =
        WriterOptions { config, flush: FlushMode::None, clock: || 1_000, ..WriterOptions::default() };
    let mut writer = LogWriter::open(&dir, &options).unwrap();
    let append = |writer: &mut LogWriter, count: i64| {
        for n in 0..count {
            writer.append(&NewRecord { timestamp: 1_000 + n, ..NewRecord::default() }).unwrap();
        }
    };
    append(&mut writer, 10);
    let readers = [writer.reader().unwrap(), open(&dir, Io::Pread), open(&dir, Io::Auto)];
    let all: Vec<i64> = (0..10).collect();
    for reader in &readers {
        for _ in 0..20 {
            for n in 0..10 {
                assert_eq!(reader.locate(n).unwrap().unwrap().batch_base_offset, n);
                assert_eq!(reader.offset_for_time(1_000 + n).unwrap().unwrap().offset, n);
            }
            assert_eq!(reader.locate_many(&all).unwrap().len(), 10);
            // no record is so late, or has such an offset
            assert_eq!(reader.offset_for_time(5_000).unwrap(), None);
            assert_eq!(reader.offsets_for_times(&[5_000]).unwrap(), [None]);
            assert_eq!(reader.locate_many(&[100]).unwrap(), [None]);
            assert_eq!(reader.locate(100).unwrap_err().code(), "offset_out_of_range");
        }
    }
    writer.truncate_to(5).unwrap();
    append(&mut writer, 5);
    let times: Vec<i64> = all.iter().map(|n| 1_000 + n).collect();
    for reader in &readers {
        for n in [0, 4, 5, 9] {
            assert_eq!(reader.locate(n).unwrap_err().code(), "log_changed");
            assert_eq!(reader.offset_for_time(1_000 + n).unwrap_err().code(), "log_changed");
        }
        assert_eq!(reader.locate_many(&all).unwrap_err().code(), "log_changed");
        assert_eq!(reader.offsets_for_times(&times).unwrap_err().code(), "log_changed");
        assert_eq!(reader.offset_for_time(5_000).unwrap_err().code(), "log_changed");
        assert_eq!(reader.offsets_for_times(&[5_000]).unwrap_err().code(), "log_changed");
        assert_eq!(reader.locate_many(&[100]).unwrap_err().code(), "log_changed");
        assert_eq!(reader.locate(100).unwrap_err().code(), "log_changed");
        let refreshed = reader.refresh().unwrap();
        for _ in 0..20 {
            assert_eq!(refreshed.offset_for_time(1_003).unwrap().unwrap().offset, 3);
            assert_eq!(refreshed.locate(9).unwrap().unwrap().batch_base_offset, 9);
        }
    }
}

#[test]
fn damage_that_hides_the_times_of_a_segment_hides_later_times_only() {
    let parent = folder();
    let dir = write(parent.path(), false, 100, 10_000);
    let segments = bases(&naive::read(&dir).unwrap());
    assert!(segments.len() > 4);
    // the batch of the third segment's last record
    let path = dir.join(file_name(segments[2], "log"));
    let mut bytes = fs::read(&path).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&path, bytes).unwrap();
    for io in IOS {
        let log = open(&dir, io);
        for _ in 0..3 {
            let inside = segments[2] * 10 + 5;
            for (target, is_found) in
                [(0, true), (segments[2] * 10 - 20, true), (inside, false), (4_990, false)]
            {
                let alone = log.offset_for_time(target);
                let many = log.offsets_for_times(&[target, 0]).unwrap();
                match alone {
                    Ok(found) => assert!(is_found && many[0] == found && found.is_some(), "{io:?} {target}"),
                    Err(error @ Error::Corrupt { .. }) => {
                        let file = error.to_string();
                        assert!(
                            !is_found && many[0].is_none() && file.contains(&*path.to_string_lossy()),
                            "{io:?} {target}"
                        );
                    }
                    Err(error) => panic!("{io:?} {target}: {error}"),
                }
                assert!(many[1].is_some());
            }
        }
    }
}

#[test]
fn the_segment_of_a_time_is_found_in_any_order_of_times_and_log_starts() {
    let parent = folder();
    // the largest times of the segments fall, rise and repeat
    let largest = [50, 20, 20, 70, 60, 70, 10, 90, 5];
    let mut builder = PartitionBuilder::new(Indexing::every(1));
    for (n, largest) in (0..).zip(largest) {
        let batch = |base: i64, time: i64| BatchV2::new(base).record(Rec::at(time).value([b'v'; 20])).build();
        builder = builder.segment(n * 10, [batch(n * 10, largest - 5), batch(n * 10 + 5, largest)]);
    }
    let dir = builder.write(parent.path(), "t-0");
    let naive = naive::read(&dir).unwrap();
    for io in IOS {
        for start in [0, 3, 10, 17, 40, 85] {
            let options = cordwood::LogOptions { io, log_start_offset: Some(start), ..Default::default() };
            // targets in rising and in falling order: the maxima are extended step by step, or all at once
            for targets in [(0..100).collect::<Vec<i64>>(), (0..100).rev().collect()] {
                let log = Log::open(&dir, options.clone()).unwrap();
                for target in &targets {
                    let right = timed(naive.offset_for_time(start, *target));
                    assert_eq!(time(&log, *target).unwrap(), right, "{io:?} {start} {target}");
                }
                let many = log.offsets_for_times(&targets).unwrap();
                let right = targets.iter().map(|target| timed(naive.offset_for_time(start, *target)));
                let found = many.iter().map(|found| found.map(|found| (found.timestamp, found.offset)));
                assert!(found.eq(right), "{io:?} {start}");
            }
        }
    }
}
