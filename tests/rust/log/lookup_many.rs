//! Many look-ups at once, and single ones after others, return the same results as the first look-up in a log
//! that was just opened: for any log, any damage, and any order of the targets.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::fs;
use std::path::Path;

use cordwood::types::{Io, Location, TimestampOffset};
use cordwood::{Error, Log, LogOptions};
use proptest::prelude::*;

use crate::log::searches;
use crate::support::batches::{BatchV2, Built, Codec, Rec};
use crate::support::golden;
use crate::support::partition::{Indexing, PartitionBuilder, file_name};
use crate::support::reading::{IOS, folder, open};
use crate::support::{fixed_seed, is_exhaustive, reading, step};

/// The expected result in a call with many targets, from that of the single look-up.
fn none_if_invalid<T>(result: Result<Option<T>, Error>) -> Result<Option<T>, Error> {
    match result {
        Err(
            Error::OffsetOutOfRange { .. }
            | Error::Config { .. }
            | Error::Corrupt { .. }
            | Error::UnsupportedFormat { .. },
        ) => Ok(None),
        result => result,
    }
}

fn shuffled(targets: &[i64]) -> Vec<i64> {
    let mut targets = targets.to_vec();
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    for index in (1..targets.len()).rev() {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        targets.swap(index, (state >> 33) as usize % (index + 1));
    }
    targets
}

/// Calls with the targets sorted, reversed, shuffled, and twice each: on one log, whose tables the first
/// calls build.
fn calls(targets: &[i64]) -> [Vec<i64>; 5] {
    let twice = targets.iter().flat_map(|target| [*target; 2]).collect();
    let reversed = targets.iter().rev().copied().collect();
    let few = targets.iter().copied().step_by(7).collect();
    [few, shuffled(targets), targets.to_vec(), reversed, twice]
}

/// One way of reading the log after the other, or both.
fn ios(number: usize) -> impl Iterator<Item = Io> {
    IOS.into_iter().cycle().skip(number % 2).take(if is_exhaustive() { 2 } else { 1 })
}

/// The number of look-ups in a log after which no segment has a table yet.
const TOO_FEW: usize = 7;

/// Compares single look-ups and calls with many targets, in `log`, with the results in logs that were just
/// opened and have no tables.
fn assert_same<T: Clone + PartialEq + Debug>(
    context: &str,
    log: &Log,
    targets: &[i64],
    single: impl Fn(&Log, i64) -> Result<Option<T>, Error>,
    many: impl Fn(&[i64]) -> Result<Vec<Option<T>>, Error>,
) {
    let mut right = BTreeMap::new();
    for few in targets.chunks(TOO_FEW) {
        let fresh = Log::open(log.path(), log.options().clone()).unwrap();
        for target in few {
            let result = single(&fresh, *target);
            let alone = result.as_ref().map(Clone::clone).map_err(Error::to_string);
            right.insert(*target, (none_if_invalid(result).unwrap(), alone));
        }
    }
    for call in calls(targets) {
        let found = many(&call).unwrap_or_else(|error| panic!("{context}: {error}"));
        assert_eq!(found.len(), call.len());
        for (target, found) in call.iter().zip(&found) {
            let (in_call, alone) = &right[target];
            assert_eq!(found, in_call, "{context}: target {target}");
            assert_eq!(
                &single(log, *target).map_err(|error| error.to_string()),
                alone,
                "{context}: target {target} alone"
            );
        }
    }
}

fn assert_matches_single_look_ups(log: &Log, offsets: &[i64], times: &[i64], context: &str) {
    assert_same::<Location>(context, log, offsets, Log::locate, |offsets| log.locate_many(offsets));
    assert_same::<TimestampOffset>(context, log, times, Log::offset_for_time, |times| {
        log.offsets_for_times(times)
    });
}

const EXTREMES: [i64; 5] = [i64::MIN, -1, 0, 1, i64::MAX];

#[test]
fn look_ups_match_in_the_golden_corpus_intact_and_damaged() {
    let intact = golden::intact().into_iter().map(|case| (case.case, case.dir, case.log_start_offset, false));
    let damaged = golden::damaged().into_iter().map(|case| (case.case, case.dir, None, true));
    let mut partitions = 0;
    for (number, (case, dir, log_start_offset, is_damaged)) in intact.chain(damaged).enumerate() {
        for io in ios(number) {
            let Ok(log) = Log::open(&dir, LogOptions { io, log_start_offset, ..LogOptions::default() })
            else {
                continue;
            };
            let (start, end) = (log.segments().first().unwrap().base_offset(), log.log_end_offset().unwrap());
            let step = ((end - start) as usize / 200).max(1);
            let offsets: Vec<i64> = (start - 3..end + 3).step_by(step).chain(EXTREMES).collect();
            let read = reading::all(&log, cordwood::log::OnDamage::Skip);
            let mut times: Vec<i64> = read.records().map(|record| record.timestamp).collect();
            times.sort_unstable();
            times.dedup();
            let step = (times.len() / 80).max(1);
            let near = |time: &i64| [time.saturating_sub(1), *time, time.saturating_add(1)];
            let times: Vec<i64> = times.iter().step_by(step).flat_map(near).chain(EXTREMES).collect();
            assert_matches_single_look_ups(&log, &offsets, &times, &format!("{case} {io:?}"));
            let is_of_an_index = |warning: &String| warning.contains("does not agree");
            assert!(is_damaged || !log.warnings().iter().any(is_of_an_index), "{case}: {:?}", log.warnings());
            partitions += 1;
        }
    }
    assert!(partitions > 60, "{partitions}");
}

/// Two segments: gaps between and inside batches, an emptied batch, times out of order and missing.
fn small() -> [(i64, Vec<Built>); 2] {
    let batch = |base: i64, times: &[i64]| {
        BatchV2::new(base).leader_epoch(3).records(times.iter().map(|time| Rec::at(*time).value([b'v'; 9])))
    };
    let first = vec![
        batch(0, &[10, 12, 11]).build(),
        batch(3, &[13]).build(),
        batch(8, &[20, -1]).build(),
        BatchV2::empty(10, 4, 25).leader_epoch(3).build(),
        batch(15, &[18, 30, 19]).codec(Codec::Gzip).build(),
    ];
    let second = vec![
        batch(25, &[29, 31]).build(),
        batch(27, &[31, 31, 40]).log_append_time(35).build(),
        batch(30, &[33]).build(),
    ];
    [(0, first), (20, second)]
}

#[test]
fn look_ups_match_after_any_flipped_bit() {
    let offsets: Vec<i64> = (-1..34).collect();
    let times: Vec<i64> = (8..42).collect();
    let parent = folder();
    let mut builder = PartitionBuilder::new(Indexing::every(150));
    for (base, batches) in small() {
        builder = builder.segment(base, batches);
    }
    let dir = builder.write(parent.path(), "t-0");
    assert_matches_single_look_ups(&open(&dir, Io::Pread), &offsets, &times, "whole");
    for base in [0, 20] {
        let path = dir.join(file_name(base, "log"));
        let whole = fs::read(&path).unwrap();
        for index in 0..whole.len() {
            for bit in [index % 8, (index + 3) % 8].into_iter().step_by(step(2)) {
                let mut bytes = whole.clone();
                bytes[index] ^= 1 << bit;
                fs::write(&path, &bytes).unwrap();
                let context = format!("{base}: bit {bit} of byte {index}");
                assert_matches_single_look_ups(&open(&dir, Io::Pread), &offsets, &times, &context);
            }
        }
        fs::write(&path, &whole).unwrap();
    }
}

/// Three segments of about 400 KiB: one look-up is not enough to build a table.
fn large(parent: &Path) -> std::path::PathBuf {
    let batch = |n: i64| {
        let records = (n * 10..n * 10 + 10).map(|offset| Rec::at(offset * 3 + offset % 7).value([b'v'; 100]));
        BatchV2::new(n * 10).records(records).build()
    };
    let built: Vec<Built> = (0..1000).map(batch).collect();
    PartitionBuilder::rolled(Indexing::every(4096), 400 << 10, built).write(parent, "t-0")
}

#[test]
fn look_ups_match_before_and_after_the_tables_are_built() {
    let parent = folder();
    let dir = large(parent.path());
    for (number, log_start_offset) in [None, Some(4_321)].into_iter().enumerate() {
        for io in ios(number) {
            let log = Log::open(&dir, LogOptions { io, log_start_offset, ..LogOptions::default() }).unwrap();
            assert!(log.segments().len() > 2);
            for target in shuffled(&(0..10_000).step_by(17).collect::<Vec<_>>()) {
                let (located, timed) = (log.locate(target), log.offset_for_time(target * 3));
                assert_eq!(log.locate_many(&[target]).unwrap(), [none_if_invalid(located).unwrap()]);
                assert_eq!(log.offsets_for_times(&[target * 3]).unwrap(), [timed.unwrap()]);
            }
            let all: Vec<i64> = (-2..10_002).step_by(step(7)).collect();
            assert_matches_single_look_ups(&log.refresh().unwrap(), &all, &all, "refreshed");
        }
    }
}

/// Differences of times and of offsets that do and do not fit into two bytes, singly and summed over a few
/// records.
#[test]
fn look_ups_match_when_times_and_offsets_jump() {
    const JUMPS: [i64; 7] = [1, 5_957, 32_768, 65_534, 65_535, 65_536, 1 << 40];
    let (mut time, mut offset, mut times) = (0, 0, Vec::new());
    let mut built = Vec::new();
    for turn in 0..3_000_usize {
        time += JUMPS[turn % 7] / if turn % 3 == 0 { 13 } else { 1 };
        offset += JUMPS[turn / 7 % 6];
        built.push(BatchV2::new(offset).record(Rec::at(time).value([b'v'; 400])).build());
        times.extend([time - 1, time, time + 1]);
    }
    let parent = folder();
    let dir = PartitionBuilder::rolled(Indexing::every(4096), 600 << 10, built).write(parent.path(), "t-0");
    for io in IOS {
        let log = open(&dir, io);
        assert_matches_single_look_ups(&log, &[], &times, "leaps");
        assert_matches_single_look_ups(&log, &[], &times, "again");
    }
}

#[test]
fn look_ups_match_in_threads_that_share_a_log() {
    let parent = folder();
    let dir = large(parent.path());
    let log = open(&dir, Io::Auto);
    let all: Vec<i64> = (0..10_000).collect();
    let fresh = open(&dir, Io::Pread);
    let located: Vec<_> = all.iter().map(|offset| fresh.locate(*offset).unwrap()).collect();
    let timed: Vec<_> = all.iter().map(|time| fresh.offset_for_time(*time).unwrap()).collect();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                assert_eq!(log.locate_many(&all).unwrap(), located);
                assert_eq!(log.offsets_for_times(&all).unwrap(), timed);
            });
        }
    });
}

#[test]
fn a_removed_segment_is_an_error_of_many_look_ups_too() {
    let parent = folder();
    let dir = large(parent.path());
    let log = open(&dir, Io::Pread);
    let second = log.segments().get(1).unwrap();
    fs::remove_file(second.path()).unwrap();
    let inside = second.base_offset() + 5;
    assert!(matches!(log.locate_many(&[1, inside, 2]), Err(Error::LogChanged { .. })));
    assert_eq!(log.locate_many(&[1]).unwrap(), [log.locate(1).unwrap()]);
    assert!(matches!(log.offsets_for_times(&[i64::MAX]), Err(Error::LogChanged { .. })));
}

proptest! {
    #![proptest_config(fixed_seed(120))]

    #[test]
    fn look_ups_match_in_random_logs_intact_and_damaged(
        recipe in searches::recipe(),
        flips in proptest::collection::vec((any::<proptest::sample::Index>(), any::<proptest::sample::Index>(), 0u8..8), 0..3),
        start in proptest::option::weighted(0.3, any::<proptest::sample::Index>()),
    ) {
        let parent = folder();
        let dir = searches::write(&recipe, parent.path());
        let end = open(&dir, Io::Pread).log_end_offset().unwrap();
        let mut logs: Vec<_> = fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().path()).collect();
        logs.retain(|path| path.extension().is_some_and(|extension| extension == "log"));
        logs.sort();
        for (log, index, bit) in &flips {
            let path = log.get(&logs);
            let mut bytes = fs::read(path).unwrap();
            if !bytes.is_empty() {
                *index.get_mut(&mut bytes) ^= 1 << bit;
                fs::write(path, bytes).unwrap();
            }
        }
        let log_start_offset = start.map(|start| start.index(end as usize + 1) as i64);
        for io in ios(end as usize) {
            let log = Log::open(&dir, LogOptions { io, log_start_offset, ..LogOptions::default() }).unwrap();
            let offsets: Vec<i64> = (-2..end + 3).chain(EXTREMES).collect();
            let times: Vec<i64> = (-2..64).chain(EXTREMES).collect();
            assert_matches_single_look_ups(&log, &offsets, &times, &format!("{io:?} {log_start_offset:?}"));
        }
    }
}
