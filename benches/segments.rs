//! Floor by base offset among the segments of a log: the skip list's view and reader against a sorted array, searched by
//! the standard library, and a locked map.
//!
//! Each arm is timed twice. *Latency*: each look-up waits for the answer of the one before it. *Throughput*: they
//! do not wait. Both read a field of the segment that was found, and every answer was checked before, against a walk along
//! the segments. There are more targets than a branch predictor learns by heart: with 4,096 of them the map looked four times as fast.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::sync::{Arc, PoisonError, RwLock};

use cordwood::bench::SkipList;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

/// Look-ups a round.
const TARGETS: usize = 1 << 16;

/// What a log keeps of a segment, as far as a look-up touches it.
struct Segment {
    base: i64,
}

/// A fixed sequence (splitmix64), so that every run asks the same.
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

/// Offsets below `active` + 1,000: all over the log, or 95 of 100 in the active segment.
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

/// What a walk along the segments says of each target; −1 where nothing is at or below it.
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

/// A log of `count` segments and what is asked of it.
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
                // no base is negative, so this adds 0, but it has to wait to know that
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
