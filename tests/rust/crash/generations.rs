//! Long-lived logs: random operations, a power loss during one, recovery, then more operations on the
//! recovered log.

use std::fmt::Write;

use cordwood::fs::mem::{MemoryDisk, Survivors};

use crate::explore::MODES;
use crate::judge::{Judge, Tally};
use crate::script::{Before, Call, Client, Op, Setup};

/// A pseudo-random number generator with a seed.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((word ^ (word >> 31)) % end as u64) as usize
    }
}

/// Operations with weights: frequent ones are listed several times.
const OPS: [Op; 12] = [
    Op::Append,
    Op::Append,
    Op::Append,
    Op::Append,
    Op::Append,
    Op::Flush,
    Op::Roll,
    Op::Retain,
    Op::Truncate,
    Op::Truncate,
    Op::Close,
    Op::Reopen,
];

/// Runs one log through a number of crashes, with some operations before each.
fn run_log(seed: u64, crashes: usize, tally: &mut Tally) {
    let mut random = Random(seed);
    let setup = Setup {
        flush: MODES[random.below(MODES.len())],
        sector: [16, 64, 512][random.below(3)],
        before: Before::Nothing,
    };
    let mut judge = Judge::new(setup.options());
    let mut client = Client::new(MemoryDisk::new(setup.sector), setup.options());
    client.apply(Op::Reopen, &mut |_| ());
    let mut history = format!("seed {seed}, {}, sectors of {}:", setup.flush, setup.sector);
    for _ in 0..crashes {
        let mut calls: Vec<Call> = Vec::new();
        for _ in 0..=random.below(6) {
            // reopens a closed writer
            let was_closed = calls.last().is_some_and(|call| call.name == "close");
            let op = if was_closed { Op::Reopen } else { OPS[random.below(OPS.len())] };
            write!(history, " {op:?}").unwrap();
            calls.clear();
            client.apply(op, &mut |call| calls.push(call));
        }
        let mut points: Vec<_> = calls.into_iter().flat_map(|call| call.points).collect();
        let (words, point, expected) = points.swap_remove(random.below(points.len()));
        let survivors = match random.below(8) {
            0 => Survivors::None,
            1 => Survivors::All,
            2 => Survivors::AllBut(random.below(point.changes() + 1)),
            3 => Survivors::Only(random.below(point.changes() + 1)),
            _ => Survivors::Random(random.below(usize::MAX) as u64),
        };
        write!(history, " [crash in {words}, {survivors:?}]").unwrap();
        client.writer = None;
        let image = point.image(survivors);
        let place = || history.clone();
        tally.images += 1;
        let Some(recovered) = judge.judge(&image, &expected, survivors == Survivors::All, &place) else {
            break;
        };
        if judge.tally.violations() > 0 {
            break;
        }
        client.model = expected.left(recovered.bounds);
        client.disk = recovered.disk;
        client.apply(Op::Reopen, &mut |_| ());
    }
    tally.add(judge.tally);
}

fn run_logs(count: u64, crashes: usize, threads: u64) -> Tally {
    let mut tally = Tally::default();
    std::thread::scope(|scope| {
        let run = |thread: u64| {
            let mut tally = Tally::default();
            (0..count)
                .filter(|seed| seed % threads == thread)
                .for_each(|seed| run_log(seed, crashes, &mut tally));
            tally
        };
        let running: Vec<_> = (0..threads).map(|thread| scope.spawn(move || run(thread))).collect();
        for thread in running {
            tally.add(thread.join().unwrap());
        }
    });
    println!(
        "{{\"rig\": \"lives\", \"crashes\": {}, \"lost\": {}, \"invented\": {}}}",
        tally.images, tally.lost, tally.invented
    );
    tally.assert_none();
    tally
}

#[test]
fn a_log_that_crashes_repeatedly_loses_nothing() {
    assert!(run_logs(200, 20, 2).images >= 4_000);
}

#[test]
#[ignore = "takes a minute; `make guarantees` runs it"]
fn logs_that_crash_a_hundred_times_lose_nothing() {
    assert!(run_logs(5_000, 100, 2).images >= 500_000);
}
