//! Timing of several arms at several sizes, and the record.

use std::fmt::Write;
use std::fs;
use std::hint::black_box;
use std::time::Duration;

use super::support::arguments::Arguments;
use super::turns::{Spent, Spread};

/// The minimum CPU time of a turn.
const TURN: Duration = Duration::from_millis(15);

/// Untimed turns: at most, and after the best one.
const MAX_WARM_UP: usize = 40;
const ENOUGH: usize = 3;

/// An answer: two numbers, the second never negative.
pub type Answer = (i64, i64);

/// One implementation, on one input.
pub struct Arm<'a> {
    name: String,
    /// The look-ups, batches or records of a pass.
    elements: u64,
    /// Does so many passes, and returns their time and a sum over their results.
    passes: Box<dyn Fn(i64) -> (Spent, i64) + 'a>,
}

impl<'a> Arm<'a> {
    pub fn new(name: impl Into<String>, elements: u64, pass: impl Fn() -> i64 + 'a) -> Self {
        let passes =
            move |count| Spent::on(|| (0..count).fold(0, |sum: i64, _| sum.wrapping_add(black_box(&pass)())));
        Self { name: name.into(), elements, passes: Box::new(passes) }
    }

    /// An arm with a part that is not timed: a pass returns its time.
    pub fn timed(name: impl Into<String>, elements: u64, pass: impl Fn() -> (Spent, i64) + 'a) -> Self {
        let passes = move |count| {
            (0..count).fold((Spent::ZERO, 0i64), |(mut all, sum), _| {
                let (spent, found) = pass();
                all += spent;
                (all, sum.wrapping_add(found))
            })
        };
        Self { name: name.into(), elements, passes: Box::new(passes) }
    }

    /// Look-ups, each of which waits for the previous answer.
    ///
    /// # Panics
    /// If an answer differs.
    pub fn look_ups(
        name: impl Into<String>,
        targets: &'a [i64],
        answers: &[Answer],
        look_up: impl Fn(i64) -> Answer + 'a,
    ) -> Self {
        let name = name.into();
        for (target, answer) in targets.iter().zip(answers) {
            assert_eq!(look_up(*target), *answer, "{name}: {target}; its answer, the right one");
        }
        assert_eq!(targets.len(), answers.len());
        Self::new(name, targets.len() as u64, move || latencies(targets, &look_up))
    }

    /// Does the work so often, without timing.
    pub fn repeat(&self, passes: i64) {
        (self.passes)(passes);
    }
}

/// Does look-ups, each of which waits for the previous answer, and returns a sum over the answers.
pub fn latencies(targets: &[i64], look_up: impl Fn(i64) -> Answer) -> i64 {
    let (sum, _) = black_box(targets).iter().fold((0, 0), |(sum, last): (i64, i64), target| {
        // no second number is negative, so this adds 0, but it depends on the answer
        let answer = look_up(target.wrapping_add(last >> 63));
        (sum.wrapping_add(answer.0.wrapping_mul(31)).wrapping_add(answer.1), answer.1)
    });
    sum
}

impl Arm<'_> {
    /// Does untimed turns until they do not become faster: a log builds tables after enough look-ups. Returns
    /// the number of passes in a turn, and the sum of a pass.
    fn warm_up(&self) -> (i64, i64) {
        let (spent, sum) = (self.passes)(1);
        let passes = (TURN.as_nanos() / spent.cpu.as_nanos().max(1)) as i64 + 1;
        let (mut best, mut since_best) = (f64::INFINITY, 0);
        for _ in 0..MAX_WARM_UP {
            let (time, _) = self.turn(passes, sum);
            since_best = if time < best * 0.95 { 0 } else { since_best + 1 };
            best = best.min(time);
            if since_best == ENOUGH {
                break;
            }
        }
        (passes, sum)
    }

    /// ns per element, and whether the passes had that sum.
    fn turn(&self, passes: i64, sum: i64) -> (f64, bool) {
        let (spent, sums) = (self.passes)(passes);
        let time = spent.cpu.as_secs_f64() * 1e9 / passes as f64 / self.elements as f64;
        (time, sums == sum.wrapping_mul(passes))
    }
}

/// The time of an arm at a size, ns per element.
struct Point {
    sweep: &'static str,
    arm: String,
    size: u64,
    elements: u64,
    time: Spread,
}

/// All that was measured.
pub struct Sweeps {
    arguments: Arguments,
    points: Vec<Point>,
}

impl Sweeps {
    pub fn new(arguments: Arguments) -> Self {
        println!("{:<25} {:>9} {:<40} {:>10} {:>22}", "sweep", "size", "arm", "median, ns", "(min–max)");
        Self { arguments, points: Vec::new() }
    }

    /// Whether one of the sweeps is measured.
    pub fn wants(&self, sweeps: &[&str]) -> bool {
        sweeps.iter().any(|sweep| self.arguments.wants(sweep))
    }

    /// Times arms in alternating turns, by the thread's CPU time.
    ///
    /// # Panics
    /// If a sum differs from that of the first pass.
    pub fn measure(&mut self, sweep: &'static str, size: u64, arms: &[Arm<'_>]) {
        if !self.arguments.wants(sweep) {
            return;
        }
        let passes: Vec<_> = arms.iter().map(Arm::warm_up).collect();
        let mut times = vec![Vec::new(); arms.len()];
        for _ in 0..self.arguments.repeat {
            for ((arm, (passes, sum)), times) in arms.iter().zip(&passes).zip(&mut times) {
                let (time, is_same) = arm.turn(*passes, *sum);
                assert!(is_same, "{sweep} {}: a pass had another sum", arm.name);
                times.push(time);
            }
        }
        for (arm, times) in arms.iter().zip(times) {
            let time = Spread::of(times.into_iter());
            let spread = format!("({:.1}–{:.1})", time.min, time.max);
            println!("{sweep:<25} {size:>9} {:<40} {:>10.1} {spread:>22}", arm.name, time.median);
            let (arm, elements) = (arm.name.clone(), arm.elements);
            self.points.push(Point { sweep, arm, size, elements, time });
        }
    }

    /// Writes the record: one line for each arm and size.
    pub fn finish(self) {
        let Some(path) = self.arguments.record else { return };
        let mut csv = "sweep,arm,size,elements,median_ns,min_ns,max_ns\n".to_owned();
        for Point { sweep, arm, size, elements, time } in self.points {
            let Spread { median, min, max } = time;
            writeln!(csv, "{sweep},{arm},{size},{elements},{median:.2},{min:.2},{max:.2}").unwrap();
        }
        fs::write(&path, csv).unwrap();
        println!("{}", path.display());
    }
}
