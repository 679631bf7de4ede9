//! Segments with batches more than 2^31 - 1 above their base offset, which old versions of Kafka's cleaner
//! left. Kafka reads them, and splits them when it recovers them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use cordwood::config::LogConfig;
use cordwood::log::{OnDamage, Ranges, ScanOptions};
use cordwood::record::NewRecord;
use cordwood::types::Io;
use cordwood::writer::{LogWriter, WriterOptions};
use cordwood::{Log, LogOptions};

use crate::support::batches::{BatchV2, Built, Rec};
use crate::support::naive;
use crate::support::partition::{Indexing, PartitionBuilder, file_name, segment_files};
use crate::support::reading::{IOS, all, folder, open, read, scan};

const FAR: i64 = i32::MAX as i64;

fn batch(offsets: std::ops::Range<i64>) -> Built {
    let mut batch = BatchV2::new(offsets.start);
    for offset in offsets {
        batch = batch.record(Rec::at(1000 + offset % 1_000_000).value(offset.to_string()));
    }
    batch.build()
}

/// The batches that Kafka's own tests write at a base offset.
fn sample(base: i64) -> Vec<Built> {
    vec![batch(base..base + 1), batch(base + 1..base + 3), batch(base + FAR - 1..base + FAR)]
}

/// The base offset and the batches of each segment: the overflow is in the middle, at the end, or in the
/// first batch.
fn layouts() -> Vec<Vec<(i64, Vec<Built>)>> {
    let twice = |base: i64| [sample(base), sample(base + FAR)].concat();
    vec![
        vec![(0, sample(0)), (FAR, twice(FAR)), (3 * FAR, sample(3 * FAR))],
        vec![(0, twice(0))],
        vec![(0, vec![batch(0..1), batch(1 << 31..(1 << 31) + 2)])],
        // beyond 2^32, to which no table of a segment can refer either
        vec![
            (5, vec![batch(7..9), batch(1 << 33..(1 << 33) + 2), batch(1 << 40..(1 << 40) + 1)]),
            (1 << 41, sample(1 << 41)),
        ],
        vec![(0, vec![batch(FAR + 1..FAR + 2)])],
        vec![(0, vec![batch(FAR..FAR + 2)])],
        vec![(0, vec![batch(FAR - 1..FAR + 9)]), (3 * FAR, vec![])],
    ]
}

fn write(parent: &Path, segments: &[(i64, Vec<Built>)]) -> PathBuf {
    let mut builder = PartitionBuilder::new(Indexing { has_time_index: false, ..Indexing::every(1 << 20) });
    for (base, batches) in segments {
        builder = builder.segment(*base, batches.iter().cloned());
    }
    builder.write(parent, "t-0")
}

#[test]
fn every_record_is_read_and_found() {
    for segments in layouts() {
        let parent = folder();
        let dir = write(parent.path(), &segments);
        let naive = naive::read(&dir).unwrap();
        let offsets: Vec<i64> = naive.records().map(|record| record.offset).collect();
        for io in IOS {
            let log = open(&dir, io);
            for on_damage in [OnDamage::Raise, OnDamage::Report] {
                let read = all(&log, on_damage).whole();
                assert!(read.records().eq(naive.records()) && read.gaps.is_empty(), "{:?}", log.segments());
            }
            assert_eq!(log.log_end_offset().unwrap(), naive.end_offset());
            // twice, so that the second time uses tables
            for _ in 0..2 {
                let many: Vec<i64> = offsets.iter().cycle().take(5000).copied().collect();
                let found = log.locate_many(&many).unwrap();
                for (offset, found) in many.iter().zip(found) {
                    let location = log.locate(*offset).unwrap();
                    assert_eq!(found, location, "{offset}");
                    let batch = naive.batches.iter().find(|batch| batch.last_offset >= *offset).unwrap();
                    let location = location.unwrap();
                    assert_eq!(
                        (location.batch_base_offset, location.position),
                        (batch.base_offset, batch.position)
                    );
                }
            }
            let times: Vec<i64> = naive.records().map(|record| record.timestamp).collect();
            let times: Vec<i64> = times.iter().cycle().take(5000).copied().collect();
            for (time, found) in times.iter().zip(log.offsets_for_times(&times).unwrap()) {
                let first = naive.records().find(|record| record.timestamp >= *time).unwrap();
                assert_eq!(found.unwrap().offset, first.offset);
                assert_eq!(found, log.offset_for_time(*time).unwrap());
            }
            for start in offsets
                .iter()
                .flat_map(|offset| [*offset, offset + 1])
                .filter(|start| *start < naive.end_offset())
            {
                let ranges = Ranges { start_offset: Some(start), ..Ranges::default() };
                let expected: Vec<i64> = offsets.iter().copied().filter(|offset| *offset >= start).collect();
                assert_eq!(
                    scan(&log, ScanOptions { ranges, ..ScanOptions::default() }).whole().offsets(),
                    expected
                );
            }
            for max_bytes in [1, 150, 1 << 20] {
                let mut planned = Vec::new();
                for split in log.plan(max_bytes, &ScanOptions::default()).unwrap() {
                    planned.extend(read(log.scan_split(&split, ScanOptions::default())).whole().offsets());
                }
                assert_eq!(planned, offsets);
            }
            let odd: Vec<_> = log
                .warnings()
                .into_iter()
                .filter(|warning| {
                    !warning.contains("are missing") && !warning.contains("above its base offset")
                })
                .collect();
            assert_eq!(odd, [""; 0]);
            assert_eq!(
                Log::open(&dir, LogOptions::default()).unwrap().refresh().unwrap().segments().len(),
                segments.len()
            );
        }
    }
}

/// Names and contents of the files, without those of `LogWriter`.
fn files(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let named = entries.map(|path| (path.file_name().unwrap().to_str().unwrap().to_owned(), path));
    named
        .filter(|(name, path)| !name.starts_with(".cordwood") && path.is_file())
        .map(|(name, path)| (name, fs::read(path).unwrap()))
        .collect()
}

fn writer_options() -> WriterOptions {
    let config = LogConfig { index_interval_bytes: 1, segment_index_bytes: 1200, ..LogConfig::default() };
    WriterOptions { config, clock: || 1000, ..WriterOptions::default() }
}

/// The segments into which Kafka's rule splits a segment.
fn split(base: i64, batches: &[Built]) -> Vec<(i64, Vec<Built>)> {
    if batches.iter().all(|batch| batch.last_offset - base <= FAR) {
        return vec![(base, batches.to_vec())];
    }
    let mut parts: Vec<(i64, Vec<Built>)> = Vec::new();
    for batch in batches {
        match parts.last_mut() {
            Some((base, part)) if batch.last_offset - *base <= FAR => part.push(batch.clone()),
            _ => parts.push((batch.base_offset, vec![batch.clone()])),
        }
    }
    parts
}

#[test]
fn a_writer_splits_an_overflowed_segment_and_keeps_every_batch() {
    for segments in layouts() {
        let parent = folder();
        let dir = write(parent.path(), &segments);
        let naive = naive::read(&dir).unwrap();
        let mut writer = LogWriter::open(&dir, &writer_options()).unwrap();
        assert_eq!(writer.log_end_offset(), naive.end_offset());
        let expected: Vec<_> = segments.iter().flat_map(|(base, batches)| split(*base, batches)).collect();
        let mut reader = writer.reader().unwrap();
        let bases: Vec<i64> = reader.segments().iter().map(|segment| segment.base_offset()).collect();
        assert_eq!(bases, expected.iter().map(|(base, _)| *base).collect::<Vec<_>>());
        assert!(all(&reader, OnDamage::Raise).whole().records().eq(naive.records()));
        let odd = |warning: &String| !warning.contains("are missing");
        assert_eq!(reader.warnings().into_iter().filter(odd).collect::<Vec<_>>(), [""; 0]);
        // the log can be appended to, and is the same when it is opened again
        let record = NewRecord { timestamp: 1000, value: Some(b"more"), ..NewRecord::default() };
        assert_eq!(writer.append(&record).unwrap().first_offset, naive.end_offset());
        writer.close().unwrap();
        reader = Log::open(&dir, LogOptions::default()).unwrap();
        assert_eq!(all(&reader, OnDamage::Raise).whole().offsets().len(), naive.records().count() + 1);
        // a segment that was not appended to has the files that its batches define
        let left = files(&dir);
        for (base, batches) in &expected[..expected.len() - 1] {
            let indexing = Indexing { interval_bytes: 1, ..Indexing::default() };
            let expected = segment_files(*base, batches, indexing);
            assert_eq!(left[&file_name(*base, "log")], expected.log);
            assert_eq!(left[&file_name(*base, "index")], expected.index);
            assert_eq!(left[&file_name(*base, "timeindex")], expected.time_index);
        }
        assert!(!dir.join("quarantine").exists());
        LogWriter::open(&dir, &writer_options()).unwrap();
    }
}

#[test]
fn a_writer_completes_a_split_that_kafka_did_not_finish() {
    let old = [sample(0), sample(FAR)].concat();
    let new = split(0, &old);
    assert_eq!(new.len(), 2);
    let of = |segments: &[(i64, Vec<Built>)], suffix: &str| -> BTreeMap<String, Vec<u8>> {
        let named = segments.iter().flat_map(|(base, batches)| {
            let log: Vec<u8> = batches.iter().flat_map(|batch| batch.bytes.clone()).collect();
            [("log", log), ("index", vec![]), ("timeindex", vec![])]
                .map(|(extension, bytes)| (format!("{}{suffix}", file_name(*base, extension)), bytes))
        });
        named.collect()
    };
    let (low, high) = (&new[..1], &new[1..]);
    let whole = of(&[(0, old.clone())], "");
    // if two files have the same name, the later one is used
    let states = [
        vec![whole.clone(), of(&new, ".cleaned")],
        vec![whole.clone(), of(low, ".cleaned"), of(high, ".swap")],
        vec![whole.clone(), of(&new, ".swap")],
        vec![of(&[(0, old.clone())], ".deleted"), of(&new, ".swap")],
        vec![of(&[(0, old)], ".deleted"), of(low, ""), of(high, ".swap")],
        vec![of(low, ""), of(high, "")],
    ];
    for (number, state) in states.iter().enumerate() {
        let parent = folder();
        let dir = parent.path().join("t-0");
        fs::create_dir(&dir).unwrap();
        for (name, bytes) in state.iter().flatten() {
            fs::write(dir.join(name), bytes).unwrap();
        }
        drop(LogWriter::open(&dir, &writer_options()).unwrap());
        let left = files(&dir);
        for (base, batches) in &new {
            let log: Vec<u8> = batches.iter().flat_map(|batch| batch.bytes.clone()).collect();
            assert_eq!(left.get(&file_name(*base, "log")), Some(&log), "{number}: {:?}", left.keys());
        }
        let with = |ending: &[&str]| {
            let name =
                |name: &&String| ending.contains(&name.rsplit_once('.').map_or("", |(_, ending)| ending));
            left.keys().filter(name).count()
        };
        assert_eq!((with(&["swap", "cleaned"]), with(&["log"])), (0, 2), "{number}: {:?}", left.keys());
    }
}

/// The offsets that a reader finds that skips damage.
fn readable(dir: &Path) -> Vec<i64> {
    all(&open(dir, Io::Pread), OnDamage::Skip).offsets()
}

#[test]
fn a_damaged_segment_that_is_not_recovered_is_not_split() {
    let parent = folder();
    let mut damaged = batch(FAR + 6..FAR + 7);
    *damaged.bytes.last_mut().unwrap() ^= 1;
    let overflowed =
        vec![batch(0..1), batch(FAR + 5..FAR + 6), damaged, batch(FAR + 7..FAR + 8), batch(FAR + 8..FAR + 9)];
    let dir = write(parent.path(), &[(0, overflowed), (FAR + 9, vec![batch(FAR + 9..FAR + 10)])]);
    fs::remove_file(dir.join(file_name(0, "index"))).unwrap();
    fs::write(parent.path().join("meta.properties"), "version=0\nbroker.id=1\n").unwrap();
    let recovery_point = format!("0\n1\nt 0 {}\n", FAR + 10);
    fs::write(parent.path().join("recovery-point-offset-checkpoint"), recovery_point).unwrap();
    let before = (readable(&dir), files(&dir));
    assert_eq!(before.0, [0, FAR + 5, FAR + 7, FAR + 8, FAR + 9]);
    LogWriter::open(&dir, &writer_options()).unwrap_err();
    assert_eq!((readable(&dir), files(&dir)), before);
}

#[test]
fn a_batch_far_above_the_base_that_continues_the_previous_one_is_intact_whatever_follows() {
    let batches = [batch(0..1), batch(1..2), batch(FAR + 20..FAR + 21), batch(FAR + 21..FAR + 22)];
    // without zeros at its end, which quarantine omits
    let torn = batch(FAR + 22..FAR + 23).bytes[..35].to_vec();
    for (tail, quarantined) in [(torn.clone(), vec![torn]), (vec![0; 4096], vec![])] {
        let parent = folder();
        let dir = write(parent.path(), &[(0, batches.to_vec())]);
        let mut log = fs::read(dir.join(file_name(0, "log"))).unwrap();
        log.extend(tail);
        fs::write(dir.join(file_name(0, "log")), log).unwrap();
        let whole = [0, 1, FAR + 20, FAR + 21];
        assert_eq!(readable(&dir), whole);
        drop(LogWriter::open(&dir, &writer_options()).unwrap());
        assert_eq!(readable(&dir), whole);
        let kept = fs::read_dir(dir.join("quarantine")).into_iter().flatten();
        let kept: Vec<_> = kept.map(|entry| fs::read(entry.unwrap().path()).unwrap()).collect();
        assert_eq!(kept, quarantined);
    }
}

#[test]
fn a_flipped_base_offset_among_batches_far_above_the_base_loses_one_batch() {
    let parent = folder();
    let mut flipped = batch(FAR + 24..FAR + 25);
    flipped.bytes[4] ^= 0x80;
    let after = [batch(FAR + 25..FAR + 26), batch(FAR + 26..FAR + 27)];
    let before = [batch(0..1), batch(FAR + 22..FAR + 23), batch(FAR + 23..FAR + 24)];
    let batches = [&before[..], &[flipped], &after].concat();
    let dir = write(parent.path(), &[(0, batches), (FAR + 27, vec![batch(FAR + 27..FAR + 28)])]);
    assert_eq!(readable(&dir), [0, FAR + 22, FAR + 23, FAR + 25, FAR + 26, FAR + 27]);
}

#[test]
fn a_writer_refuses_its_log_if_the_last_batch_has_another_base_offset() {
    let record = NewRecord { timestamp: 1000, value: Some(b"v"), ..NewRecord::default() };
    for is_closed in [true, false] {
        for (byte, mask) in [(7usize, 0x10u8), (6, 1), (4, 0x80), (2, 1)] {
            let parent = folder();
            let dir = parent.path().join("orders-0");
            let mut writer = LogWriter::open(&dir, &writer_options()).unwrap();
            for _ in 0..9 {
                writer.append(&record).unwrap();
            }
            let path = dir.join(file_name(0, "log"));
            let last = usize::try_from(fs::metadata(&path).unwrap().len()).unwrap();
            writer.append(&record).unwrap();
            if is_closed {
                writer.close().unwrap();
            }
            drop(writer);
            let mut bytes = fs::read(&path).unwrap();
            bytes[last + byte] ^= mask;
            fs::write(&path, &bytes).unwrap();
            LogWriter::open(&dir, &writer_options()).unwrap_err();
            assert_eq!(fs::read(&path).unwrap(), bytes);
        }
    }
}
