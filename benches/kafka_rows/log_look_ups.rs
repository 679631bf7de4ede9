//! `Log::locate` and `Log::offset_for_time`, one at a time, in a log of one segment, which `io=auto` does not
//! map.
//!
//! Each look-up waits for the previous answer. *First*: every look-up is the first one in its batch since the
//! log was opened; the others ask the same places again and again.

use std::path::Path;

use cordwood::Log;
use cordwood::types::{Io, Location};

use super::contest::{Contest, Row, numbers};
use super::log_targets::{LogTargets, Shape, opened};
use super::look_up::{Answer, LookUps, Mode};
use super::turns::Spent;

/// The rows *first*: the number of logs that are opened, and the look-ups in each.
const FIRST: [usize; 2] = [64, 256];
const IOS: [(Io, &str); 2] = [(Io::Mmap, "mmap"), (Io::Auto, "auto")];

pub fn run(contest: &mut Contest) {
    for (batch_kib, first) in [(16, 2.5), (1, 2.0)] {
        let locate = Method {
            name: "locate",
            peer: "LogSegment.translateOffset",
            command: "translate-offset",
            is_time: false,
            floors: [[50.0, 12.0], [50.0, 12.0]],
            first,
            look_up: locate,
        };
        locate.run(contest, batch_kib);
        let offset_for_time = Method {
            name: "offset_for_time",
            peer: "LogSegment.findOffsetByTimestamp",
            command: "find-offset",
            is_time: true,
            floors: [[10.0, 3.0], [2.5, 2.5]],
            first: 2.5,
            look_up: offset_for_time,
        };
        offset_for_time.run(contest, batch_kib);
    }
}

fn locate(log: &Log, offset: i64) -> Answer {
    packed(&log.locate(offset).unwrap().unwrap())
}

/// Base offset and size of the batch, packed as in the JVM, and its position.
pub fn packed(found: &Location) -> Answer {
    (found.batch_base_offset + (i64::from(found.size) << 40), found.position as i64)
}

fn offset_for_time(log: &Log, timestamp: i64) -> Answer {
    let found = log.offset_for_time(timestamp).unwrap().unwrap();
    (found.timestamp, found.offset)
}

/// A method of `Log`, and Kafka's.
#[derive(Debug)]
struct Method<F> {
    name: &'static str,
    peer: &'static str,
    /// The JVM's command for it.
    command: &'static str,
    is_time: bool,
    /// By `io`, mapped and `auto`, then by targets, tail and uniform.
    floors: [[f64; 2]; 2],
    /// With `io=auto`, the first time.
    first: f64,
    look_up: F,
}

impl<F: Fn(&Log, i64) -> Answer> Method<F> {
    fn run(&self, contest: &mut Contest, batch_kib: usize) {
        let mut cases = Vec::new();
        for (io, floors) in IOS.into_iter().zip(self.floors) {
            for (shape, floor) in Shape::ALL.into_iter().zip(floors) {
                let name = format!("{}/{batch_kib}KiB/{}/{}", self.name, shape.name(), io.1);
                cases.push((io.0, shape, floor, name));
            }
        }
        let rows = |name: &str| [format!("{name}/latency"), format!("{name}/first")];
        cases.retain(|(.., name)| rows(name).iter().any(|row| contest.wants(row)));
        if cases.is_empty() {
            return;
        }
        let dir = contest.log(batch_kib);
        let drawn = LogTargets::of(&dir);
        contest.kafka.ask(&["open", self.command, dir.to_str().unwrap()]);
        for (io, shape, floor, name) in cases {
            let [hot, first] = rows(&name).map(|row| contest.wants(&row));
            if hot {
                let count = contest.arguments.log_targets;
                let targets =
                    if self.is_time { drawn.times(shape, count) } else { drawn.offsets(shape, count) };
                let look_ups = LookUps { name: name.clone(), peer: self.peer, targets: &targets };
                self.race_hot(contest, &look_ups, &opened(&dir, io), floor);
            }
            if first {
                let targets = drawn.distinct(shape, self.is_time, FIRST);
                let look_ups = LookUps { name, peer: self.peer, targets: &targets };
                self.race_first(contest, &look_ups, &dir, io);
            }
        }
    }

    fn race_hot(&self, contest: &mut Contest, look_ups: &LookUps<'_>, log: &Log, floor: f64) {
        let look_up = |_: usize, target| (self.look_up)(log, target);
        look_ups.compare_each(contest, &look_up);
        look_ups.race(contest, Mode::Latency, Some(floor), &look_up);
        assert!(log.warnings().is_empty(), "{:?}", log.warnings());
    }

    fn race_first(&self, contest: &mut Contest, look_ups: &LookUps<'_>, dir: &Path, io: Io) {
        let log = opened(dir, io);
        look_ups.compare_each(contest, &|_, target| (self.look_up)(&log, target));
        let floor = (io == Io::Auto).then_some(self.first);
        let row = look_ups.row(Mode::Latency, floor);
        let row = Row { name: format!("{}/first", look_ups.name), ..row };
        let ours = |passes: usize| {
            let (mut spent, mut sum) = (Spent::ZERO, 0i64);
            for _ in 0..passes {
                for targets in look_ups.targets.chunks(FIRST[1]) {
                    let log = opened(dir, io);
                    // opens the files; the first batch is not a target of the tail, and one of many otherwise
                    (self.look_up)(&log, 0);
                    let look_up = |_: usize, target| (self.look_up)(&log, target);
                    let (time, part) = Spent::on(|| Mode::Latency.sum(targets, 0..targets.len(), &look_up));
                    spent += time;
                    sum = sum.wrapping_add(part);
                }
            }
            (spent, sum)
        };
        contest.race_turns(row, ours, |kafka, passes| {
            numbers(&kafka.ask(&["look-up", Mode::Latency.name(), "1", &passes.to_string()]))
        });
    }
}
