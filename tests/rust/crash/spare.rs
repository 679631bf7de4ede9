//! A full disk whose log has a spare file: what frees space succeeds, also if there is no free sector.

use std::collections::HashSet;

use cordwood::fs::mem::MemoryDisk;
use cordwood::writer::FlushMode;

use crate::full::{self, is_full, log_with_segments};
use crate::judge::Judge;
use crate::model::Expected;
use crate::script::{Before, Call, Client, Op, Setup};

const SPARE: &str = ".cordwood.spare";
const PLENTY: usize = 1 << 20;

/// The calls that free space.
fn calls() -> full::Calls {
    let frees = |name: &str| ["truncate_", "delete_", "apply_"].iter().any(|start| name.starts_with(start));
    full::calls().into_iter().filter(|(name, _)| frees(name)).collect()
}

/// A log of which retention deletes a segment.
fn log(flush: FlushMode) -> Client {
    let mut client = log_with_segments(flush);
    for _ in 0..3 {
        succeeds(&client.append(2), &|| "an append".to_owned());
    }
    client
}

/// A log whose spare file has reserved space, on a disk with so many free sectors besides.
fn full_disk(mut client: Client, free: usize) -> Client {
    client.disk.set_free_sectors(Some(PLENTY));
    let opened = client.reopen();
    assert!(opened.error.is_none(), "{:?}", opened.error);
    client.disk.set_free_sectors(Some(free));
    client
}

fn has_spare(disk: &MemoryDisk) -> bool {
    disk.shown().files().iter().any(|(name, _)| name == SPARE)
}

fn succeeds(called: &Call, place: &dyn Fn() -> String) {
    assert!(called.error.is_none(), "{}: {:?}", place(), called.error);
}

/// The calls run out of space at each of their operations in turn, and then run again without the spare file.
#[test]
fn what_frees_space_succeeds_on_a_full_disk_and_survives_a_crash_at_any_point() {
    let flush = FlushMode::Always;
    let mut crashes = 0;
    for (number, (name, call)) in calls().into_iter().enumerate().step_by(4) {
        let mut judge = Judge::new(log(flush).options);
        let mut judged = HashSet::new();
        for free in (0..24).step_by(4) {
            let mut client = full_disk(log(flush), free);
            let place = || format!("{name}, {free} free sectors");
            let called = call(&mut client);
            succeeds(&called, &place);
            assert!(has_spare(&client.disk), "{}", place());
            judge.judge_disk(client.disk.fork(), &[Expected::after(&client.model)], true, &place);
            for (words, point, expected) in called.points.into_iter().filter(|_| free % 8 == 0) {
                for survivors in point.survivors(2, free as u64) {
                    let image = point.image(survivors);
                    if judged.insert(image.hash()) {
                        crashes += 1;
                        let place = || format!("{}, {words}, {survivors:?}", place());
                        judge.judge(&image, &expected, false, &place);
                    }
                }
            }
            // again, without any sector that the call has freed
            client.disk.set_free_sectors(Some(0));
            let (start, end) = (client.model.start, client.model.end);
            let called = client.restart_at(if number % 8 == 0 { end + 1 } else { start });
            succeeds(&called, &|| format!("{}, then all records are removed", place()));
            client.disk.set_free_sectors(Some(PLENTY));
            succeeds(&client.append(1), &|| format!("{}, then an append with space", place()));
            judge.judge_disk(client.disk.fork(), &[Expected::after(&client.model)], true, &place);
        }
        judge.tally.assert_none();
    }
    assert!(crashes > 500, "{crashes} crashes");
}

/// The next process opens what the last one left, and deletes the log.
#[test]
fn the_log_of_a_process_that_ended_on_a_full_disk_is_opened_on_it() {
    for before in [Before::Closed, Before::Killed, Before::Shortened] {
        for free in (0..60).step_by(3) {
            let setup = Setup { flush: FlushMode::None, sector: 16, before };
            let mut client = full_disk(Client::of(setup), PLENTY);
            for op in [Op::Append, Op::Append, Op::Transact, Op::Roll, Op::Append] {
                client.apply(op, &mut |called| succeeds(&called, &|| called.name.to_owned()));
            }
            let place = || format!("{before:?}, {free} free sectors");
            client.disk.set_free_sectors(Some(free));
            if free % 2 == 0 {
                client.apply(Op::Close, &mut |called| succeeds(&called, &place));
                client.disk.set_free_sectors(Some(free));
            }
            let expected = client.model.clone();
            succeeds(&client.reopen(), &place);
            assert_eq!((client.model.start, client.model.end), (expected.start, expected.end), "{}", place());
            let mut judge = Judge::new(client.options.clone());
            judge.judge_disk(client.disk.fork(), &[Expected::after(&expected)], true, &place);
            judge.tally.assert_none();
            client.disk.set_free_sectors(Some(0));
            succeeds(&client.delete_before(expected.end), &place);
        }
    }
}

#[test]
fn appends_leave_the_spare_file_alone() {
    let mut client = full_disk(log(FlushMode::Always), 200);
    let failed = loop {
        if let Some(error) = client.append(2).error {
            break error;
        }
    };
    assert!(is_full(&failed), "{failed}");
    assert!(has_spare(&client.disk));
    succeeds(&client.delete_before(client.model.end), &|| "delete_before".to_owned());
    succeeds(&client.append(1), &|| "append".to_owned());
}

/// Nothing has changed if the space that the spare file frees is not enough, as if others take it.
#[test]
fn without_a_spare_file_a_call_on_a_full_disk_changes_nothing() {
    for (name, call) in calls() {
        let mut client = full_disk(log(FlushMode::Always), 0);
        client.disk.take(SPARE);
        client.disk.set_free_sectors(Some(0));
        let before = client.model.clone();
        let failed = call(&mut client).error.unwrap_or_else(|| panic!("{name} needs no space"));
        assert!(is_full(&failed), "{name}: {failed}");
        let writer = client.writer.as_ref().unwrap();
        assert_eq!(
            (writer.log_start_offset(), writer.log_end_offset()),
            (before.start, before.end),
            "{name}"
        );
        // the next call with space reserves it again
        client.disk.set_free_sectors(Some(PLENTY));
        succeeds(&call(&mut client), &|| name.clone());
        client.disk.set_free_sectors(Some(0));
        let end = client.model.end;
        succeeds(&client.restart_at(end), &|| name.clone());
    }
}
