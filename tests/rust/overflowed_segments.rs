//! Segments with batches more than 2^31 - 1 above their base offset: old versions of Kafka's cleaner left them, and Kafka
//! reads them and splits them when it recovers them.

use std::path::{Path, PathBuf};

use cordwood::log::{OnDamage, Ranges, ScanOptions};
use cordwood::{Log, LogOptions};

use crate::support::batches::{BatchV2, Built, Rec};
use crate::support::naive;
use crate::support::partition::{Indexing, PartitionBuilder};
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

/// Each segment's base offset and its batches: the overflow in the middle, at the end, in the first batch.
fn layouts() -> Vec<Vec<(i64, Vec<Built>)>> {
    let twice = |base: i64| [sample(base), sample(base + FAR)].concat();
    vec![
        vec![(0, sample(0)), (FAR, twice(FAR)), (3 * FAR, sample(3 * FAR))],
        vec![(0, twice(0))],
        vec![(0, vec![batch(0..1), batch(1 << 31..(1 << 31) + 2)])],
        // beyond 2^32, where no table of a segment refers to either
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
            // twice, so that the second time is answered from tables
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
                        (batch.base_offset, batch.position as u64)
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
