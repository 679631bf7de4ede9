//! Time indexes with a flipped bit, in logs in which many batches share the largest timestamp so far: an
//! entry that was moved from one of them to another agrees with the log and is still wrong.

use std::collections::BTreeSet;
use std::path::Path;

use cordwood::Log;
use cordwood::log::Ranges;

use crate::support::batches::{BatchV2, Built, Rec};
use crate::support::partition::{Indexing, PartitionBuilder, file_name, time_entry};
use crate::support::reading::{IOS, folder, open, range, time};
use crate::support::step;

fn built(timestamps: &[i64]) -> Vec<Built> {
    let record = |timestamp: &i64| Rec::at(*timestamp).value("v");
    timestamps
        .iter()
        .enumerate()
        .map(|(offset, timestamp)| BatchV2::new(offset as i64).record(record(timestamp)).build())
        .collect()
}

#[derive(Debug, PartialEq, Eq)]
struct Results {
    timed: Vec<Option<(i64, i64)>>,
    scanned: Vec<Vec<i64>>,
    largest: Vec<i64>,
}

/// Each timestamp and its neighbours.
fn targets(timestamps: &[i64]) -> BTreeSet<i64> {
    timestamps.iter().flat_map(|timestamp| [timestamp - 1, *timestamp, timestamp + 1]).collect()
}

fn results_of(log: &Log, timestamps: &[i64]) -> Results {
    let from = |target: i64| Ranges { start_time: Some(target), ..Ranges::default() };
    let targets = targets(timestamps);
    Results {
        // the scans first: a look-up keeps its result
        scanned: targets.iter().map(|target| range(log, from(*target)).whole().offsets()).collect(),
        timed: targets.iter().map(|target| time(log, *target).unwrap()).collect(),
        largest: log.segments().iter().map(|segment| segment.largest_timestamp().unwrap()).collect(),
    }
}

/// Checks that no one-bit flip of a segment's time index changes a result. Returns the number of flips.
fn assert_flips_change_nothing(dir: &Path, base: i64, timestamps: &[i64]) -> usize {
    let path = dir.join(file_name(base, "timeindex"));
    let whole = std::fs::read(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    let expected = results_of(&open(dir, IOS[0]), timestamps);
    let naive = |target: i64| {
        timestamps.iter().position(|timestamp| *timestamp >= target).map(|at| (timestamps[at], at as i64))
    };
    let found: Vec<_> = targets(timestamps).into_iter().map(naive).collect();
    assert_eq!(expected.timed, found, "without the index");
    for bit in 0..whole.len() * 8 {
        let mut damaged = whole.clone();
        damaged[bit / 8] ^= 0x80 >> (bit % 8);
        std::fs::write(&path, &damaged).unwrap();
        let log = open(dir, IOS[bit % 2]);
        assert_eq!(
            results_of(&log, timestamps),
            expected,
            "bit {bit} of {whole:?}: {timestamps:?} {:?}",
            log.warnings()
        );
        // with the largest timestamp read first
        let log = open(dir, IOS[bit % 2]);
        let largest: Vec<i64> =
            log.segments().iter().map(|segment| segment.largest_timestamp().unwrap()).collect();
        assert_eq!(largest, expected.largest, "bit {bit} of {whole:?}: {timestamps:?}");
    }
    std::fs::write(&path, &whole).unwrap();
    whole.len() * 8
}

#[test]
fn an_entry_moved_to_a_later_batch_of_the_same_time_hides_nothing() {
    // an entry for 100 at offset 8; with a flipped bit it has offset 12, and 150 lies between
    let timestamps = [10, 10, 10, 10, 10, 10, 10, 10, 100, 150, 20, 30, 100];
    for split in [13, 15] {
        let parent = folder();
        let mut timestamps = timestamps.to_vec();
        timestamps.extend([40, 45, 50]);
        let all = built(&timestamps);
        let indexing = Indexing { has_time_index: false, ..Indexing::every(200) };
        let dir = PartitionBuilder::new(indexing)
            .segment(0, all[..split].to_vec())
            .segment(split as i64, all[split..].to_vec())
            .write(parent.path(), "t-0");
        for entries in [&[(100, 8)][..], &[(10, 5), (100, 8)], &[(100, 8), (150, 14)]] {
            let bytes: Vec<u8> =
                entries.iter().flat_map(|(timestamp, offset)| time_entry(0, *timestamp, *offset)).collect();
            std::fs::write(dir.join(file_name(0, "timeindex")), bytes).unwrap();
            assert_eq!(assert_flips_change_nothing(&dir, 0, &timestamps), entries.len() * 96);
        }
    }
}

#[test]
fn no_flipped_bit_of_a_time_index_changes_a_result_if_times_repeat() {
    // a linear congruential generator: the same numbers in every run
    let mut seed = 0x5eed_u64;
    let mut next = move |below: i64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as i64 % below
    };
    let mut flips = 0;
    for n in (0..30).step_by(step(2)) {
        // most timestamps repeat after larger ones
        let timestamps: Vec<i64> =
            (0..24).map(|_| 100 + next(3) + if next(12) == 0 { 3 } else { 0 }).collect();
        let all = built(&timestamps);
        let parent = folder();
        // a roll or a clean close adds the entry of the largest timestamp; the active segment, also after a
        // broker crash, is without it
        let preallocated_bytes = (n % 3 > 0).then_some(48);
        let indexing = Indexing { preallocated_bytes, ..Indexing::every(150 + n % 5 * 150) };
        let split = if n % 3 == 2 { 4 } else { 0 };
        let mut builder = PartitionBuilder::new(indexing);
        if split > 0 {
            builder = builder.segment(0, all[..split].to_vec());
        }
        let dir = builder.segment(split as i64, all[split..].to_vec()).write(parent.path(), "t-0");
        flips += assert_flips_change_nothing(&dir, split as i64, &timestamps);
    }
    assert!(flips > 2500, "{flips}");
}

#[test]
fn an_entry_in_the_last_segment_moved_to_a_later_batch_of_the_same_time_hides_nothing() {
    let timestamps = [10, 10, 10, 10, 10, 10, 10, 10, 100, 150, 20, 30, 100];
    let parent = folder();
    let indexing = Indexing { has_time_index: false, ..Indexing::every(200) };
    let dir = PartitionBuilder::new(indexing).segment(0, built(&timestamps)).write(parent.path(), "t-0");
    std::fs::write(dir.join(file_name(0, "timeindex")), time_entry(0, 100, 8)).unwrap();
    assert_eq!(assert_flips_change_nothing(&dir, 0, &timestamps), 96);
}
