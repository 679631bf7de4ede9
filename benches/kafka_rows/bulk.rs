//! `Log::locate_many` and `Log::offsets_for_times` in calls of 10,000 rows, mapped, against Kafka's calls in
//! a loop.

use cordwood::types::Io;

use super::contest::{Contest, Row};
use super::log_look_ups::packed;
use super::log_targets::{LogTargets, Shape, opened};
use super::look_up::{Answer, LookUps, Mode, add};

/// The targets of a call.
const ROWS: usize = 10_000;

pub fn run(contest: &mut Contest) {
    for batch_kib in [16, 1] {
        let names = ["locate_many", "offsets_for_times"]
            .map(|method| ["unsorted", "sorted"].map(|order| format!("{method}/{batch_kib}KiB/{order}")));
        if !names.iter().flatten().any(|name| contest.wants(name)) {
            continue;
        }
        let [by_offset, by_time] = names;
        let dir = contest.log(batch_kib);
        let (log, drawn) = (opened(&dir, Io::Mmap), LogTargets::of(&dir));
        let path = dir.to_str().unwrap();
        // whole calls
        let count = contest.arguments.log_targets.next_multiple_of(ROWS);

        contest.kafka.ask(&["open", "translate-offset", path]);
        let targets = drawn.offsets(Shape::Uniform, count);
        let peer = ("LogSegment.translateOffset", 50.0);
        in_calls(contest, by_offset, peer, targets, |call| {
            log.locate_many(call).unwrap().into_iter().map(|found| packed(&found.unwrap()))
        });

        contest.kafka.ask(&["open", "find-offset", path]);
        let targets = drawn.times(Shape::Uniform, count);
        let peer = ("LogSegment.findOffsetByTimestamp", 300.0);
        in_calls(contest, by_time, peer, targets, |call| {
            let found = log.offsets_for_times(call).unwrap().into_iter();
            found.map(|found| found.unwrap()).map(|found| (found.timestamp, found.offset))
        });
    }
}

/// Two rows: the targets as they are, and sorted in each call. `peer`: Kafka's method, and the floor.
fn in_calls<Answers: Iterator<Item = Answer>>(
    contest: &mut Contest,
    names: [String; 2],
    (peer, floor): (&'static str, f64),
    mut targets: Vec<i64>,
    answers: impl Fn(&[i64]) -> Answers,
) {
    for (is_sorted, name) in [false, true].into_iter().zip(names) {
        if is_sorted {
            targets.chunks_mut(ROWS).for_each(<[i64]>::sort_unstable);
        }
        if !contest.wants(&name) {
            continue;
        }
        let look_ups = LookUps { name, peer, targets: &targets };
        let ours: Vec<Answer> = targets.chunks(ROWS).flat_map(&answers).collect();
        look_ups.compare(contest, &ours);
        let row = Row { name: look_ups.name.clone(), ..look_ups.row(Mode::Throughput, Some(floor)) };
        let pass = || targets.chunks(ROWS).flat_map(&answers).fold(0, add);
        contest.race(row, pass, &["look-up", Mode::Throughput.name(), "1"]);
    }
}
