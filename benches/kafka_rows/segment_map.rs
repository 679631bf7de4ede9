//! The segment of an offset: `Log::segments`, against the map that Kafka's `LogSegments` asks.
//!
//! Offsets are *uniform* over the log, or 95 of 100 are in the active segment (*tail*).

use std::fs;

use cordwood::types::Io;

use super::contest::Contest;
use super::log_targets::opened;
use super::look_up::{LookUps, Mode};
use super::random::Random;

/// More targets than a branch predictor can learn.
const TARGETS: usize = 1 << 16;
const PEER: &str = "ConcurrentSkipListMap.floorEntry";

/// Floors of one thread, and of two.
#[derive(Debug, Clone, Copy)]
struct Floors {
    one: Option<f64>,
    two: Option<f64>,
}

pub fn run(contest: &mut Contest) {
    let none = Floors { one: None, two: None };
    let only = |one| Floors { one: Some(one), two: None };
    let [tail, uniform] = [7.0, 6.0].map(|one| Floors { one: Some(one), two: Some(6.0) });
    for (count, floors) in [(10, [none, only(2.2)]), (1_000, [tail, uniform]), (100_000, [none, only(4.0)])] {
        for (shape, floors) in ["tail", "uniform"].into_iter().zip(floors) {
            of_log(contest, count, shape, floors);
        }
    }
}

fn of_log(contest: &mut Contest, count: usize, shape: &str, floors: Floors) {
    let name = format!("segments/{count}/{shape}");
    let rows = ["latency", "throughput", "throughput/2-threads"].map(|row| format!("{name}/{row}"));
    if !rows.iter().any(|row| contest.wants(row)) {
        return;
    }
    let log = opened(&contest.data.segments(count), Io::Mmap);
    assert_eq!(log.segments().len(), count);
    let bases: Vec<i64> = log.segments().iter().map(|segment| segment.base_offset()).collect();
    let file = contest.data.scratch().join("bases");
    fs::write(&file, bases.iter().flat_map(|base| base.to_be_bytes()).collect::<Vec<u8>>()).unwrap();
    contest.kafka.ask(&["open", "floor-entry", file.to_str().unwrap()]);

    let (active, mut random) = (bases[count - 1], Random(2));
    let mut target = || {
        if shape == "tail" && random.below(100) < 95 {
            active + random.below(1000)
        } else {
            random.below(active + 1000)
        }
    };
    let targets: Vec<i64> = (0..TARGETS).map(|_| target()).collect();
    let look_ups = LookUps { name, peer: PEER, targets: &targets };
    let look_up = |_: usize, target| {
        let base = log.segments().floor(target).unwrap().base_offset();
        (base, base)
    };
    look_ups.compare_each(contest, &look_up);
    for mode in [Mode::Throughput, Mode::Latency] {
        look_ups.race(contest, mode, floors.one, &look_up);
    }
    look_ups.race_two(contest, Mode::Throughput, floors.two, &look_up);
}
