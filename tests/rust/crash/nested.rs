//! Up to three more power losses during recovery. The result equals that of an uninterrupted recovery, byte
//! for byte.

use cordwood::fs::mem::{Image, MemoryDisk, Survivors};
use cordwood::writer::LogWriter;

use crate::explore::{MODES, Seen, explore_one, sequences};
use crate::judge::{Judge, Recovered, Tally, differs};
use crate::script::{Before, Op, Setup};

/// Crashes the recovery of an image at every operation, recursively.
pub fn crash(
    image: &Image,
    undisturbed: &Recovered,
    depth: u32,
    seen: &Seen,
    judge: &mut Judge,
    place: &str,
) {
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
            // the expected result is part of the key
            if !seen.insert(crashed.hash() ^ undisturbed.hash.rotate_left(depth * 7)) {
                continue;
            }
            judge.tally.nested += 1;
            let place = format!("{place}; recovering, before \"{operation}\" {survivors:?}");
            match judge.recover(crashed.disk()) {
                Err(error) => judge.tally.note("unopened", &|| place.clone(), &error),
                Ok(again) => {
                    if let Some(what) = differs(undisturbed, &again) {
                        judge.tally.note("unstable", &|| place.clone(), &what);
                    }
                }
            }
            // crashes a sample again
            if depth > 1 && crashed.hash().is_multiple_of(5) {
                crash(&crashed, undisturbed, depth - 1, seen, judge, &place);
            }
        }
    }
}

/// Crashes the recovery of one in `one_in` images of all sequences up to a length.
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
                            // with a clean marker the indexes are not rebuilt, but after a crash there is no
                            // clean marker
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
fn a_crash_during_recovery_changes_nothing() {
    let tally = nest(2, 97, 2);
    println!("{{\"rig\": \"nested crashes\", \"recoveries\": {}}}", tally.nested);
    tally.assert_none();
    assert!(tally.nested > 5_000, "{} nested recoveries", tally.nested);
}

#[test]
fn crashes_while_a_log_is_created_beside_an_index_without_a_log_change_nothing() {
    let setup = Setup { flush: MODES[0], sector: 16, before: Before::Nothing };
    let mut judge = Judge::new(setup.options());
    let disk = MemoryDisk::new(16);
    for kind in ["index", "timeindex", "txnindex"] {
        disk.put(&format!("{:020}.{kind}", 0), &[1; 72]);
    }
    let image = disk.crash_point().image(Survivors::All);
    let undisturbed = judge.recover(image.disk()).unwrap();
    assert!(undisturbed.files.iter().all(|(name, _)| !name.ends_with(".txnindex")));
    crash(&image, &undisturbed, 3, &Seen::new(), &mut judge, "a new log");
    judge.tally.assert_none();
    assert!(judge.tally.nested > 20, "{} nested recoveries", judge.tally.nested);
}

/// Crashes the recovery of every image of the last operation, two deep.
fn nest_one(sequence: &[Op]) {
    let setup = Setup { flush: MODES[0], sector: 16, before: Before::Nothing };
    let (images, pairs, nested) = (Seen::new(), Seen::new(), Seen::new());
    let mut judge = Judge::new(setup.options());
    let place = format!("{sequence:?}");
    let mut visit = |judge: &mut Judge, recovered: &Recovered, image: &Image| {
        crash(image, recovered, 2, &nested, judge, &place);
    };
    explore_one(setup, sequence, 6, (&images, &pairs), &mut judge, &mut visit);
    judge.tally.assert_none();
    assert!(judge.tally.nested > 1_000, "{} nested recoveries", judge.tally.nested);
}

// the deletion raises the recovery point to the end of a segment that is not sealed
#[test]
fn a_crash_while_a_roll_after_a_deletion_is_recovered_changes_nothing() {
    nest_one(&[Op::Transact, Op::Retain, Op::Roll]);
}

#[test]
fn a_crash_while_a_truncation_below_the_log_start_is_recovered_changes_no_named_producer() {
    nest_one(&[Op::Transact, Op::Retain, Op::Truncate]);
}

#[test]
#[ignore = "takes a minute; `make guarantees` runs it"]
fn crashes_up_to_three_deep_change_nothing() {
    let tally = nest(3, 7, 2);
    println!("{{\"rig\": \"nested crashes\", \"recoveries\": {}}}", tally.nested);
    tally.assert_none();
    assert!(tally.nested > 200_000, "{} nested recoveries", tally.nested);
}
