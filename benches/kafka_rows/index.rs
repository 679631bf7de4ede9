//! Look-ups in an index: mapped, by the default method.
//!
//! *Tail* targets are between the keys of the last 1,024 entries, *uniform* ones between the first key and
//! the last.

use std::path::PathBuf;

use cordwood::index::{Method, OffsetIndex, TimeIndex};

use super::contest::Contest;
use super::data::Kind;
use super::look_up::{LookUps, Mode};
use super::random::Random;

const OFFSET_PEER: &str = "OffsetIndex.lookup";
const TIME_PEER: &str = "TimeIndex.lookup";

/// The entries whose keys are *tail* targets.
const TAIL: u64 = 1024;
/// The distance between the base offsets of files.
const APART: i64 = 1 << 32;

/// Floors of throughput and latency.
type Floors = [f64; 2];
const MODES: [Mode; 2] = [Mode::Throughput, Mode::Latency];

pub fn run(contest: &mut Contest) {
    offset_index(contest, 2, [[12.0, 4.5], [9.0, 4.5]], Some([40.0, 40.0]));
    offset_index(contest, 10, [[10.0, 4.5], [6.0, 2.5]], None);
    many_offset_indexes(contest, [[8.0, 3.5], [7.0, 2.3]]);
    time_index(contest, 3, [[7.0, 3.0], [6.0, 2.5]]);
}

/// Tail and uniform: the name, and the first and the last key of the targets.
fn ranges(entries: u64, key: impl Fn(u64) -> i64) -> [(&'static str, [i64; 2]); 2] {
    let last = entries - 1;
    [("tail", [entries - TAIL, last]), ("uniform", [0, last])].map(|(shape, slots)| (shape, slots.map(&key)))
}

fn wants(contest: &Contest, name: &str) -> bool {
    let rows = MODES.map(|mode| format!("{name}/{}", mode.name()));
    rows.iter().any(|row| contest.wants(row) || contest.wants(&format!("{row}/2-threads")))
}

/// Keys around the ends of the index, for the comparison.
fn edges(index_ends: [i64; 2]) -> impl Iterator<Item = i64> {
    let around = index_ends.into_iter().flat_map(|key| [key - 1, key, key + 1]);
    around.chain([0, i64::MAX])
}

fn offset_index(contest: &mut Contest, mib: u64, floors: [Floors; 2], of_two: Option<[f64; 2]>) {
    let path = contest.data.index(&mut contest.kafka, Kind::Offset, mib, 0);
    let index = OffsetIndex::open(&path, None, true).unwrap();
    let look_up = |_: usize, target: i64| {
        let found = index.lookup(target, Method::default()).unwrap();
        (found.offset, i64::from(found.position))
    };
    let count = contest.arguments.index_targets;
    let key = |slot| index.entry(slot).unwrap().offset;
    for (place, (shape, [first, last])) in ranges(index.entries(), key).into_iter().enumerate() {
        let name = format!("offset-index/{mib}MiB/{shape}");
        if !wants(contest, &name) {
            continue;
        }
        contest.kafka.ask(&["open", Kind::Offset.command(), path.to_str().unwrap()]);
        let mut targets = Random(3).between(first, last + 1, count);
        targets.extend(edges([key(0), last]));
        let mut look_ups = LookUps { name, peer: OFFSET_PEER, targets: &targets };
        look_ups.compare_each(contest, &look_up);
        look_ups.targets = &targets[..count];
        look_ups.compare_each(contest, &look_up);
        for (mode, floor) in MODES.into_iter().zip(floors[place]) {
            look_ups.race(contest, mode, Some(floor), &look_up);
        }
        if let Some(floors) = of_two {
            look_ups.race_two(contest, Mode::Throughput, Some(floors[place]), &look_up);
        }
    }
}

fn time_index(contest: &mut Contest, mib: u64, floors: [Floors; 2]) {
    let path = contest.data.index(&mut contest.kafka, Kind::Time, mib, 0);
    let index = TimeIndex::open(&path, None, true).unwrap();
    let look_up = |_: usize, target: i64| {
        let found = index.lookup(target, Method::default()).unwrap();
        (found.timestamp, found.offset)
    };
    let count = contest.arguments.index_targets;
    let key = |slot| index.entry(slot).unwrap().timestamp;
    for (place, (shape, [first, last])) in ranges(index.entries(), key).into_iter().enumerate() {
        let name = format!("time-index/{mib}MiB/{shape}");
        if !wants(contest, &name) {
            continue;
        }
        contest.kafka.ask(&["open", Kind::Time.command(), path.to_str().unwrap()]);
        let mut targets = Random(3).between(first, last + 1, count);
        targets.extend(edges([key(0), last]));
        let mut look_ups = LookUps { name, peer: TIME_PEER, targets: &targets };
        look_ups.compare_each(contest, &look_up);
        look_ups.targets = &targets[..count];
        look_ups.compare_each(contest, &look_up);
        for (mode, floor) in MODES.into_iter().zip(floors[place]) {
            look_ups.race(contest, mode, Some(floor), &look_up);
        }
    }
}

/// Many files of 10 MiB, each target in one of them: the targets' numbers determine which, in no order.
fn many_offset_indexes(contest: &mut Contest, floors: [Floors; 2]) {
    const MIB: u64 = 10;
    let files = contest.arguments.files;
    let names = ["tail", "uniform"].map(|shape| format!("offset-index/{files}x{MIB}MiB/{shape}"));
    if !names.iter().any(|name| wants(contest, name)) {
        return;
    }
    let paths: Vec<PathBuf> = (0..files as i64)
        .map(|file| contest.data.index(&mut contest.kafka, Kind::Offset, MIB, file * APART))
        .collect();
    let indexes: Vec<_> = paths.iter().map(|path| OffsetIndex::open(path, None, true).unwrap()).collect();
    let ranges: Vec<_> = indexes
        .iter()
        .map(|index| ranges(index.entries(), |slot| index.entry(slot).unwrap().offset))
        .collect();
    let look_up = |number: usize, target: i64| {
        let found = indexes[file(number, files)].lookup(target, Method::default()).unwrap();
        (found.offset, i64::from(found.position))
    };
    let words = ["open", Kind::Offset.command()].into_iter();
    let open: Vec<&str> = words.chain(paths.iter().map(|path| path.to_str().unwrap())).collect();
    contest.kafka.ask(&open);
    for (place, name) in names.into_iter().enumerate() {
        if !wants(contest, &name) {
            continue;
        }
        let mut random = Random(3);
        let target = |number| {
            let [first, last] = ranges[file(number, files)][place].1;
            first + random.below(last + 1 - first)
        };
        let targets: Vec<i64> = (0..contest.arguments.many_targets).map(target).collect();
        let look_ups = LookUps { name, peer: OFFSET_PEER, targets: &targets };
        look_ups.compare_each(contest, &look_up);
        for (mode, floor) in MODES.into_iter().zip(floors[place]) {
            look_ups.race(contest, mode, Some(floor), &look_up);
        }
    }
}

/// The file that has a target, as in the JVM.
#[inline]
fn file(number: usize, files: usize) -> usize {
    let hash = (number as u32).wrapping_mul(0x9E37_79B1);
    ((u64::from(hash) * files as u64) >> 32) as usize
}
