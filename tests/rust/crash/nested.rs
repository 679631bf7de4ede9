//! The power goes again while the log is recovered, up to three times: what comes out is what the recovery would have
//! left that was not disturbed, byte for byte.

use cordwood::fs::mem::{Image, Survivors};
use cordwood::writer::LogWriter;

use crate::explore::{MODES, Seen, explore_one, sequences};
use crate::judge::{Judge, Recovered, Tally, differs};
use crate::script::{Before, Setup};

/// Crashes the recovery of an image at every operation, some times over.
pub fn crash(image: &Image, whole: &Recovered, depth: u32, seen: &Seen, judge: &mut Judge, place: &str) {
    let disk = image.disk();
    disk.record();
    let options = judge.options();
    drop(LogWriter::open_in(disk.directory("/orders-0"), &options));
    for (number, (operation, point)) in disk.recorded().into_iter().enumerate().skip(1) {
        let sets = [Survivors::None, Survivors::All, Survivors::NoContents]
            .into_iter()
            .chain(
                (0..point.changes()).flat_map(|change| [Survivors::AllBut(change), Survivors::Only(change)]),
            )
            .chain([Survivors::Random(number as u64), Survivors::Random(u64::from(depth) + 1000)]);
        for survivors in sets {
            let crashed = point.image(survivors);
            // what it is to become is a part of what it is
            if !seen.insert(crashed.hash() ^ whole.hash.rotate_left(depth * 7)) {
                continue;
            }
            judge.tally.nested += 1;
            let place = format!("{place}; recovering, before \"{operation}\" {survivors:?}");
            match judge.recover(crashed.disk()) {
                Err(error) => judge.tally.note("unopened", &|| place.clone(), &error),
                Ok(again) => {
                    if let Some(what) = differs(whole, &again) {
                        judge.tally.note("unstable", &|| place.clone(), &what);
                    }
                }
            }
            // one in a few goes deeper
            if depth > 1 && crashed.hash().is_multiple_of(5) {
                crash(&crashed, whole, depth - 1, seen, judge, &place);
            }
        }
    }
}

/// Of the images of all sequences of a length, one in `one_in` is recovered under crashes.
fn nest(length: usize, one_in: u128, threads: usize) -> Tally {
    let before = [Before::Nothing, Before::Closed, Before::Killed];
    let setups = before
        .iter()
        .flat_map(|before| [MODES[0], MODES[3]].map(|flush| Setup { flush, sector: 16, before: *before }));
    let work: Vec<_> = setups
        .flat_map(|setup| (0..=length).flat_map(sequences).map(move |sequence| (setup, sequence)))
        .collect();
    let (images, pairs, nested) = (Seen::new(), Seen::new(), Seen::new());
    let mut tally = Tally::default();
    std::thread::scope(|scope| {
        let part = work.len().div_ceil(threads);
        let running: Vec<_> = work
            .chunks(part)
            .map(|work| {
                let (images, pairs, nested) = (&images, &pairs, &nested);
                scope.spawn(move || {
                    let mut judge = Judge::new(work[0].0.options());
                    for (setup, sequence) in work {
                        let mut visit = |judge: &mut Judge, recovered: &Recovered, image: &Image| {
                            // a clean marker leaves indexes as they were, and is gone after a crash
                            let was_closed = image.files().iter().any(|(name, _)| name == ".cordwood.clean");
                            if was_closed || !image.hash().is_multiple_of(one_in) {
                                return;
                            }
                            let place = format!("{} {:?} {sequence:?}", setup.flush, setup.before);
                            crash(image, recovered, 3, nested, judge, &place);
                        };
                        explore_one(*setup, sequence, 6, (images, pairs), &mut judge, &mut visit);
                    }
                    judge.tally
                })
            })
            .collect();
        for thread in running {
            tally.add(thread.join().unwrap());
        }
    });
    tally
}

#[test]
fn a_crash_while_a_crash_is_recovered_changes_nothing() {
    let tally = nest(2, 97, 2);
    println!("{{\"rig\": \"nested crashes\", \"recoveries\": {}}}", tally.nested);
    tally.assert_none();
    assert!(tally.nested > 5_000, "{} nested recoveries", tally.nested);
}

#[test]
#[ignore = "takes a minute; `make guarantees` runs it"]
fn crashes_up_to_three_deep_change_nothing() {
    let tally = nest(3, 7, 2);
    println!("{{\"rig\": \"nested crashes\", \"recoveries\": {}}}", tally.nested);
    tally.assert_none();
    assert!(tally.nested > 200_000, "{} nested recoveries", tally.nested);
}
