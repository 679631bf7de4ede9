//! Exhaustive exploration: every short sequence of operations, a power loss at every point, and the states in
//! which it may leave the disk.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use cordwood::fs::mem::{Image, Survivors};
use cordwood::writer::FlushMode;

use crate::found;
use crate::judge::{Judge, Recovered, Tally};
use crate::producers;
use crate::script::{Before, Call, Client, Op, Setup};

/// The extent of the exploration.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// The maximum length of a sequence.
    pub length: usize,
    /// The number of random sets of survivors at each point.
    pub random: u64,
    /// Of the sequences of the maximum length, one of so many is explored; of shorter ones all.
    pub one_of: usize,
}

pub const MODES: [FlushMode; 4] = [
    FlushMode::Always,
    FlushMode::Group { ms: 0, bytes: 1 },
    FlushMode::Interval { messages: Some(4), ms: None },
    FlushMode::None,
];

/// All setups of the writer, on a disk with small sectors.
pub fn setups() -> Vec<Setup> {
    let before = [Before::Nothing, Before::Closed, Before::Killed, Before::Shortened].into_iter();
    before.flat_map(|before| MODES.map(|flush| Setup { flush, sector: 16, before })).collect()
}

/// Hashes seen by any thread.
pub struct Seen(Vec<Mutex<HashSet<u128>>>);

impl Seen {
    pub fn new() -> Self {
        Self((0..64).map(|_| Mutex::default()).collect())
    }

    /// Adds a hash. Returns whether it is new.
    pub fn insert(&self, hash: u128) -> bool {
        self.0[(hash >> 64) as usize % 64].lock().unwrap().insert(hash)
    }

    pub fn count(&self) -> usize {
        self.0.iter().map(|part| part.lock().unwrap().len()).sum()
    }
}

/// All sequences of exactly this length.
pub fn sequences(length: usize) -> Vec<Vec<Op>> {
    (0..length).fold(vec![Vec::new()], |shorter, _| {
        let longer = |ops: Vec<Op>| Op::ALL.map(|op| [&ops[..], &[op]].concat());
        shorter.into_iter().flat_map(longer).collect()
    })
}

/// Called with the result of each recovery.
pub type Visit<'a> = &'a mut dyn FnMut(&mut Judge, &Recovered, &Image);

/// Explores the crash points of the last operation of a sequence; those of earlier operations are explored
/// with shorter sequences.
pub fn explore_one(
    setup: Setup,
    sequence: &[Op],
    random: u64,
    seen: (&Seen, &Seen),
    judge: &mut Judge,
    visit: Visit<'_>,
) {
    let mut client = Client::of(setup);
    let Some((last, first)) = sequence.split_last() else {
        // only the open
        client.apply(Op::Reopen, &mut |call| judge_points(setup, sequence, random, seen, judge, call, visit));
        return;
    };
    client.apply(Op::Reopen, &mut |_| ());
    for op in first {
        client.apply(*op, &mut |_| ());
    }
    client.apply(*last, &mut |call| judge_points(setup, sequence, random, seen, judge, call, visit));
    if *last == Op::Close
        && let Err(what) = found::check_closed_indexes(&client.disk.shown().files())
    {
        judge.tally.note("misread", &|| format!("{setup:?} {sequence:?}"), &what);
    }
    if *last == Op::Roll
        && let Err(what) = producers::check_rolled(&client.disk.shown().files(), client.model.start)
    {
        judge.tally.note("lost", &|| format!("{setup:?} {sequence:?}"), &what);
    }
}

fn judge_points(
    setup: Setup,
    sequence: &[Op],
    random: u64,
    (images, pairs): (&Seen, &Seen),
    judge: &mut Judge,
    call: Call,
    visit: Visit<'_>,
) {
    for (number, (words, point, expected)) in call.points.into_iter().enumerate() {
        let print = u128::from(expected.fingerprint());
        for survivors in point.survivors(random, seed(setup, sequence, number)) {
            let image = point.image(survivors);
            judge.tally.images += 1;
            images.insert(image.hash());
            let process_only = survivors == Survivors::All;
            let pair = image.hash() ^ (print << 64 | print.rotate_left(17)) ^ u128::from(process_only);
            if !pairs.insert(pair) {
                continue;
            }
            let place = || format!("{} {:?} {sequence:?} {words} {survivors:?}", setup.flush, setup.before);
            if let Some(recovered) = judge.judge(&image, &expected, process_only, &place) {
                if let Err(what) = producers::check_not_ahead(&image.files(), &recovered) {
                    judge.tally.note("invented", &place, &what);
                }
                visit(judge, &recovered, &image);
            }
        }
    }
}

/// A different seed for each point.
fn seed(setup: Setup, sequence: &[Op], number: usize) -> u64 {
    let mut hasher = DefaultHasher::new();
    (setup.flush.to_string(), setup.before, sequence, number).hash(&mut hasher);
    hasher.finish()
}

/// Runs the whole exploration on several threads.
pub fn explore(setups: &[Setup], bounds: Bounds, threads: usize) -> (Tally, usize) {
    let longest = sequences(bounds.length).into_iter().step_by(bounds.one_of);
    let work: Vec<_> = (0..bounds.length)
        .flat_map(sequences)
        .chain(longest)
        .flat_map(|sequence| setups.iter().map(move |setup| (*setup, sequence.clone())))
        .collect();
    let (next, images, pairs) = (AtomicUsize::new(0), Seen::new(), Seen::new());
    let run = || {
        let mut judge = Judge::new(setups[0].options());
        while let Some((setup, sequence)) = work.get(next.fetch_add(1, Ordering::Relaxed)) {
            explore_one(*setup, sequence, bounds.random, (&images, &pairs), &mut judge, &mut |_, _, _| ());
        }
        judge.tally
    };
    let mut tally = Tally::default();
    if threads == 1 {
        // a bug is seeded in this thread only
        tally = run();
    } else {
        std::thread::scope(|scope| {
            let running: Vec<_> = (0..threads).map(|_| scope.spawn(run)).collect();
            for thread in running {
                tally.add(thread.join().unwrap());
            }
        });
    }
    (tally, images.count())
}

#[test]
fn nothing_acknowledged_is_lost_in_any_short_sequence() {
    let (tally, distinct) = explore(&setups(), Bounds { length: 2, random: 4, one_of: 1 }, 2);
    println!("{distinct} distinct of {}", tally.counts());
    tally.assert_none();
    assert!(distinct > 5_000, "{distinct} distinct images");
}

/// Of the sequences of four operations, one of so many is explored for the guarantees: all of them would take
/// a day. The number has no factor in common with that of the operations, so that each of them is at each
/// place.
const SAMPLE: usize = 31;

/// The exploration for the guarantees, which prints their figures. It takes half an hour; `make guarantees`
/// runs it.
#[test]
#[ignore = "takes minutes; `make guarantees` runs it"]
fn nothing_acknowledged_is_lost_in_sequences_of_up_to_four() {
    let began = std::time::Instant::now();
    let threads = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
    let bounds = Bounds { length: 4, random: 176, one_of: SAMPLE };
    let (tally, distinct) = explore(&setups(), bounds, threads);
    println!(
        "{{\"rig\": \"crash states\", \"images\": {}, \"distinct\": {distinct}, \"judged\": {}, \"lost\": {}, \"invented\": {}, \
         \"unopened\": {}, \"unstable\": {}, \"not_kept\": {}, \"misread\": {}, \"nested\": {}, \"logs_read\": {}, \"seconds\": {}}}",
        tally.images,
        tally.judged,
        tally.lost,
        tally.invented,
        tally.unopened,
        tally.unstable,
        tally.not_kept,
        tally.misread,
        tally.nested,
        tally.read,
        began.elapsed().as_secs(),
    );
    tally.assert_none();
    assert!(distinct >= 3_000_000, "{distinct} distinct images");
}
