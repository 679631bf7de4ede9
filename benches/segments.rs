//! Floor by base offset among the segments of a log: the skip list's view and reader, compared with a sorted
//! array, searched by the standard library, and with a locked map.
//!
//! Each arm is timed twice. *Latency*: each look-up waits for the result of the previous one. *Throughput*:
//! they do not wait. Both read a field of the segment that was found, and every result is compared with a
//! walk along the segments first. There are more targets than a branch predictor can learn: with 4,096 of
//! them the map seemed four times as fast.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::sync::{Arc, PoisonError, RwLock};

use cordwood::bench::SkipList;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

/// Look-ups per round.
const TARGETS: usize = 1 << 16;

/// The part of a segment that a look-up reads.
struct Segment {
    base: i64,
}

/// A fixed sequence (splitmix64), so that every run has the same targets.
struct Random(u64);

impl Random {
    fn below(&mut self, end: i64) -> i64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        i64::try_from((z ^ (z >> 31)) >> 1).unwrap_or(0) % end
    }
}

/// Bases with uneven distances, the first 0.
fn segments(count: usize) -> Vec<(i64, Arc<Segment>)> {
    let mut random = Random(1);
    let mut base = 0;
    let mut next = || {
        let segment = (base, Arc::new(Segment { base }));
        base += 500 + random.below(1000);
        segment
    };
    (0..count).map(|_| next()).collect()
}

/// Offsets below `active` + 1,000: uniform over the log, or 95 of 100 in the active segment.
fn targets(active: i64, is_tail: bool) -> Vec<i64> {
    let mut random = Random(2);
    let mut next = || {
        if is_tail && random.below(100) < 95 {
            active + random.below(1000)
        } else {
            random.below(active + 1000)
        }
    };
    (0..TARGETS).map(|_| next()).collect()
}

/// The floor of each target by a walk along the segments; −1 if there is none.
fn walk(entries: &[(i64, Arc<Segment>)], targets: &[i64]) -> Vec<i64> {
    let mut sorted: Vec<_> = targets.iter().enumerate().collect();
    sorted.sort_by_key(|(_, target)| **target);
    let mut bases = entries.iter().map(|(base, _)| *base).peekable();
    let mut floor = -1;
    let mut answers: Vec<_> = sorted
        .into_iter()
        .map(|(place, target)| {
            while let Some(base) = bases.next_if(|base| base <= target) {
                floor = base;
            }
            (place, floor)
        })
        .collect();
    answers.sort_unstable();
    answers.into_iter().map(|(_, floor)| floor).collect()
}

/// A log of `count` segments, with targets.
struct Race<'a> {
    shape: &'static str,
    count: usize,
    targets: &'a [i64],
    answers: &'a [i64],
}

impl Race<'_> {
    /// Checks one way to find a floor, then times it.
    fn run(&self, criterion: &mut Criterion, arm: &str, mut floor: impl FnMut(i64) -> i64) {
        let Self { shape, count, targets, answers } = self;
        for (target, answer) in targets.iter().zip(*answers) {
            assert_eq!(floor(*target), *answer, "{arm} of {count}: floor({target})");
        }

        let mut group = criterion.benchmark_group(format!("{shape}/{count}"));
        group.throughput(Throughput::Elements(TARGETS as u64));
        group.bench_function(format!("{arm}/latency"), |bencher| {
            bencher.iter(|| {
                // no base offset is negative, so this adds 0, but it depends on the result
                black_box(*targets).iter().fold(0, |last, target| floor(target + (last >> 63)))
            });
        });
        group.bench_function(format!("{arm}/throughput"), |bencher| {
            bencher.iter(|| black_box(*targets).iter().map(|target| floor(*target)).sum::<i64>());
        });
        group.finish();
    }
}

fn floor(criterion: &mut Criterion) {
    for (shape, is_tail) in [("uniform", false), ("tail", true)] {
        for count in [10, 1_000, 100_000] {
            let entries = segments(count);
            let targets = targets(entries.last().map_or(0, |(base, _)| *base), is_tail);
            let answers = walk(&entries, &targets);
            let race = Race { shape, count, targets: &targets, answers: &answers };

            let list =
                SkipList::from_sorted(entries.iter().cloned()).unwrap_or_else(|error| panic!("{error}"));
            let view = list.view();
            race.run(criterion, "view", |target| view.floor(target).map_or(-1, |segment| segment.base));
            let mut reader = list.reader();
            race.run(criterion, "reader", |target| reader.floor(target).map_or(-1, |segment| segment.base));
            race.run(criterion, "vec", |target| {
                let after = entries.partition_point(|(base, _)| *base <= target);
                let found = after.checked_sub(1).and_then(|at| entries.get(at));
                found.map_or(-1, |(_, segment)| segment.base)
            });
            let map: RwLock<BTreeMap<_, _>> = RwLock::new(entries.iter().cloned().collect());
            race.run(criterion, "btreemap", |target| {
                let map = map.read().unwrap_or_else(PoisonError::into_inner);
                map.range(..=target).next_back().map_or(-1, |(_, segment)| segment.base)
            });
        }
    }
}

criterion_group!(benches, floor);
criterion_main!(benches);
