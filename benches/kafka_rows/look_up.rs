//! Look-ups of one target at a time.

use std::fs;
use std::hint::black_box;
use std::ops::Range;
use std::thread;

use super::contest::{Contest, Row, numbers};
use super::turns::{Clock, Spent};

/// An answer: two numbers, the second never negative.
pub type Answer = (i64, i64);

/// Whether look-ups wait for each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// They do not.
    Throughput,
    /// Each waits for the previous answer: its sign, which is 0, is added to the target.
    Latency,
}

impl Mode {
    /// As the JVM's commands have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Throughput => "throughput",
            Self::Latency => "latency",
        }
    }

    /// The sum over the answers of a part of the targets. A look-up has the target's number and the target.
    pub fn sum(self, targets: &[i64], part: Range<usize>, look_up: &impl Fn(usize, i64) -> Answer) -> i64 {
        let numbered = black_box(targets)[part.clone()].iter().zip(part.start..);
        match self {
            Self::Throughput => numbered.fold(0, |sum, (target, number)| add(sum, look_up(number, *target))),
            Self::Latency => {
                let (sum, _) = numbered.fold((0, 0), |(sum, last): (i64, i64), (target, number)| {
                    let answer = look_up(number, target.wrapping_add(last >> 63));
                    (add(sum, answer), answer.1)
                });
                sum
            }
        }
    }
}

/// Adds an answer to a sum, as the JVM does.
#[inline]
pub fn add(sum: i64, (first, second): Answer) -> i64 {
    sum.wrapping_add(first.wrapping_mul(31)).wrapping_add(second)
}

/// Rows of one kind of look-up on the same targets.
#[derive(Debug)]
pub struct LookUps<'a> {
    /// The first part of the rows' names.
    pub name: String,
    /// The name of Kafka's method.
    pub peer: &'static str,
    pub targets: &'a [i64],
}

impl LookUps<'_> {
    /// Sends the targets to the JVM, which has opened the files, and compares its answers with ours.
    ///
    /// # Panics
    /// If an answer differs.
    pub fn compare(&self, contest: &mut Contest, ours: &[Answer]) {
        let [targets, answers] = ["targets", "answers"].map(|name| contest.data.scratch().join(name));
        let bytes: Vec<u8> = self.targets.iter().flat_map(|target| target.to_be_bytes()).collect();
        fs::write(&targets, bytes).unwrap();
        contest.kafka.ask(&["targets", targets.to_str().unwrap()]);
        contest.kafka.ask(&["answers", answers.to_str().unwrap()]);
        let bytes = fs::read(answers).unwrap();
        let mut numbers = bytes.as_chunks::<8>().0.iter().map(|bytes| i64::from_be_bytes(*bytes));
        assert_eq!(ours.len(), self.targets.len());
        for (target, answer) in self.targets.iter().zip(ours) {
            let theirs = (numbers.next().unwrap(), numbers.next().unwrap());
            assert_eq!(*answer, theirs, "{}: {target}; cordwood's answer, Kafka's", self.name);
        }
        assert_eq!(numbers.next(), None);
    }

    /// [`LookUps::compare`] with the answers of a look-up.
    pub fn compare_each(&self, contest: &mut Contest, look_up: &impl Fn(usize, i64) -> Answer) {
        let ours: Vec<_> =
            self.targets.iter().enumerate().map(|(number, target)| look_up(number, *target)).collect();
        self.compare(contest, &ours);
    }

    /// Times one thread.
    pub fn race(
        &self,
        contest: &mut Contest,
        mode: Mode,
        floor: Option<f64>,
        look_up: &impl Fn(usize, i64) -> Answer,
    ) {
        let row = self.row(mode, floor);
        if contest.wants(&row.name) {
            let pass = || mode.sum(self.targets, 0..self.targets.len(), look_up);
            contest.race(row, pass, &["look-up", mode.name(), "1"]);
        }
    }

    /// Times two threads, each of which asks all targets.
    pub fn race_two(
        &self,
        contest: &mut Contest,
        mode: Mode,
        floor: Option<f64>,
        look_up: &(impl Fn(usize, i64) -> Answer + Sync),
    ) {
        let row = self.row(mode, floor);
        let elements = 2 * row.elements;
        let row = Row { name: format!("{}/2-threads", row.name), clock: Clock::Wall, elements, ..row };
        if !contest.wants(&row.name) {
            return;
        }
        let ours = |passes: usize| {
            Spent::of_process(|| {
                thread::scope(|scope| {
                    let threads = [0, self.targets.len() / 2].map(|start| {
                        scope.spawn(move || {
                            let pass = || {
                                let first = mode.sum(self.targets, start..self.targets.len(), look_up);
                                first.wrapping_add(mode.sum(self.targets, 0..start, look_up))
                            };
                            (0..passes).fold(0, |sum: i64, _| sum.wrapping_add(pass()))
                        })
                    });
                    threads.into_iter().fold(0, |sum: i64, thread| sum.wrapping_add(thread.join().unwrap()))
                })
            })
        };
        contest.race_turns(row, ours, |kafka, passes| {
            numbers(&kafka.ask(&["look-up", mode.name(), "2", &passes.to_string()]))
        });
    }

    /// The row of one thread.
    pub fn row(&self, mode: Mode, floor: Option<f64>) -> Row {
        Row {
            name: format!("{}/{}", self.name, mode.name()),
            peer: self.peer,
            floor,
            clock: Clock::Cpu,
            elements: self.targets.len(),
        }
    }
}
