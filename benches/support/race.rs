//! Several implementations of the same look-up: each is checked on all targets, then timed.

use std::fmt::Debug;
use std::hint::black_box;
use std::time::Duration;

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion, Throughput};

/// Targets, with the expected answers. Every arm is timed twice. *Latency*: each look-up waits for the result
/// of the previous one. *Throughput*: they do not wait.
pub struct Race<'a, Answer> {
    /// The first part of the benchmarks' names.
    pub name: String,
    pub targets: &'a [i64],
    pub answers: &'a [Answer],
    /// A non-negative number from an answer, on which the next look-up depends.
    pub number: fn(&Answer) -> i64,
}

impl<Answer: PartialEq + Debug> Race<'_, Answer> {
    /// Checks one implementation, then times it.
    pub fn run(&self, criterion: &mut Criterion, arm: &str, answer: impl FnMut(i64) -> Answer) {
        self.run_few(criterion, arm, usize::MAX, answer);
    }

    /// [`Race::run`] on only the first targets, for an arm that is very slow.
    pub fn run_few(
        &self,
        criterion: &mut Criterion,
        arm: &str,
        few: usize,
        mut answer: impl FnMut(i64) -> Answer,
    ) {
        let targets = &self.targets[..few.min(self.targets.len())];
        for (target, right) in targets.iter().zip(self.answers) {
            assert_eq!(answer(*target), *right, "{} {arm} {target}", self.name);
        }
        let number = self.number;
        let mut group = group(criterion, &self.name);
        group.throughput(Throughput::Elements(targets.len() as u64));
        group.bench_function(format!("{arm}/latency"), |bencher| {
            bencher.iter(|| {
                // no answer is negative, so this adds 0, but it depends on the answer
                black_box(targets).iter().fold(0, |last, target| number(&answer(target + (last >> 63))))
            });
        });
        group.bench_function(format!("{arm}/throughput"), |bencher| {
            bencher.iter(|| {
                black_box(targets).iter().fold(0i64, |sum, target| sum.wrapping_add(number(&answer(*target))))
            });
        });
        group.finish();
    }
}

/// A group of short measurements: there are many, and the results of interest are orders of magnitude or
/// ratios.
pub fn group<'a>(criterion: &'a mut Criterion, name: &str) -> BenchmarkGroup<'a, WallTime> {
    let mut group = criterion.benchmark_group(name);
    group
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_millis(800))
        .sample_size(10);
    group
}
