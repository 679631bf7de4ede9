//! Committed positions after a crash, after a failed operation and with damage.

use std::collections::BTreeSet;

use cordwood::fs::mem::{Fault, FaultKind, MemoryDisk, Operation, Survivors};
use cordwood::log::Position;
use cordwood::{Error, Log, LogOptions};

use crate::batches::{BatchV2, Rec};
use crate::judge::Tally;
use crate::script::NOW;

const NAMES: [&str; 2] = ["billing", "a.tmp"];

/// A disk with a log that ends at this offset.
fn disk(end: i64) -> MemoryDisk {
    let disk = MemoryDisk::new(16);
    let batch = (0..end).fold(BatchV2::new(0), |batch, _| batch.record(Rec::at(NOW).value("v")));
    disk.put("00000000000000000000.log", &batch.build().bytes);
    disk
}

fn position(disk: &MemoryDisk, name: &str) -> Position {
    let log = Log::open_in(disk.directory("/orders-0"), LogOptions::default()).unwrap();
    log.position(name).unwrap()
}

fn commit(disk: &MemoryDisk, name: &str, offset: i64) -> cordwood::Result<()> {
    position(disk, name).commit(offset)
}

fn offset(disk: &MemoryDisk, name: &str) -> Option<i64> {
    position(disk, name).committed().unwrap().map(|committed| committed.offset)
}

/// Commits to two positions, and calls a function for every image of a crash, with the offset that was
/// acknowledged last and the one that is being committed.
fn crash(mut check: impl FnMut(&MemoryDisk, &[Option<i64>; 2], &[Option<i64>; 2])) -> usize {
    let disk = disk(10);
    let mut seen = BTreeSet::new();
    let mut acknowledged = [None; 2];
    for (round, position) in [0, 1, 0, 0, 1, 0, 1, 1, 0, 0].into_iter().enumerate() {
        let round = i64::try_from(round).unwrap();
        disk.record();
        commit(&disk, NAMES[position], round).unwrap();
        let points: Vec<_> = disk.recorded().into_iter().map(|(_, point)| point).collect();
        let before = acknowledged;
        acknowledged[position] = Some(round);
        for (number, point) in points.iter().enumerate() {
            for survivors in point.survivors(20, number as u64) {
                let image = point.image(survivors);
                seen.insert(image.hash());
                check(&image.disk(), &before, &acknowledged);
            }
        }
        let point = disk.crash_point();
        for survivors in point.survivors(20, 1) {
            let image = point.image(survivors);
            seen.insert(image.hash());
            check(&image.disk(), &acknowledged, &acknowledged);
        }
    }
    seen.len()
}

#[test]
fn an_acknowledged_commit_survives_every_crash_and_another_one_is_old_or_new() {
    let images = crash(|disk, before, after| {
        for (number, name) in NAMES.into_iter().enumerate() {
            let found = offset(disk, name);
            assert!(
                found == before[number] || found == after[number],
                "{name}: {found:?}, {before:?}, {after:?}"
            );
        }
        // what the crash has left is no obstacle
        commit(disk, NAMES[0], 10).unwrap();
        assert_eq!(offset(&disk.crash_point().image(Survivors::None).disk(), NAMES[0]), Some(10));
    });
    assert!(images > 60, "{images}");
}

/// Crashes after which a position is neither the old nor the new one.
pub fn lost_commits() -> Tally {
    let mut tally = Tally::default();
    crash(|disk, before, after| {
        for (number, name) in NAMES.into_iter().enumerate() {
            let found = offset(disk, name);
            if found != before[number] && found != after[number] {
                let what = format!("{found:?}, {before:?}, {after:?}");
                tally.note("lost", &|| format!("the position {name}"), &what);
            }
        }
    });
    tally
}

#[test]
fn a_failed_operation_leaves_the_old_or_the_new_offset_and_the_next_commit_works() {
    for kind in [FaultKind::InputOutput, FaultKind::NoSpace, FaultKind::ShortWrite, FaultKind::Killed] {
        for at in 0.. {
            let disk = disk(10);
            commit(&disk, "billing", 1).unwrap();
            disk.set_fault(Some(Fault { at, kind, forever: false }));
            let done = commit(&disk, "billing", 2);
            let is_over = disk.fault_is_over();
            disk.set_fault(None);
            let found = offset(&disk, "billing");
            match done {
                Ok(()) => assert_eq!(found, Some(2), "{kind:?} {at}"),
                Err(_) => assert!(matches!(found, Some(1 | 2)), "{kind:?} {at}: {found:?}"),
            }
            commit(&disk, "audit", 3).unwrap();
            let files: Vec<_> = disk.shown().files().into_iter().map(|(name, _)| name).collect();
            let expected =
                [".cordwood.positions/audit", ".cordwood.positions/billing", "00000000000000000000.log"];
            let files: Vec<_> =
                files.iter().map(String::as_str).filter(|name| !name.ends_with("~lock")).collect();
            assert_eq!(files, expected, "{kind:?} {at}");
            if !is_over {
                break;
            }
        }
    }
}

#[test]
fn no_flipped_bit_changes_the_offset_and_every_cut_is_an_error_that_names_the_file() {
    let disk = disk(10);
    let billing = position(&disk, "billing");
    let directory = disk.directory("/orders-0");
    for offset in [7, 8] {
        billing.commit(offset).unwrap();
        let folder = directory.existing_folder(".cordwood.positions").unwrap().unwrap();
        let whole = folder.read_small("billing", 8192).unwrap().unwrap();
        let written: Vec<_> = (0..whole.len()).filter(|at| whole[*at] != 0).collect();
        // zeros, too
        for at in written.iter().flat_map(|at| [*at, *at + 200]) {
            for bit in 0..8 {
                let mut flipped = whole.clone();
                flipped[at] ^= 1 << bit;
                folder.replace("billing", &flipped).unwrap();
                assert_eq!(self::offset(&disk, "billing"), Some(offset), "bit {bit} of {at}");
            }
        }
        let ends = (0..1200).chain((1200..whole.len()).step_by(97)).chain([whole.len() - 1]);
        let mut damaged: Vec<_> = ends.map(|end| whole[..end].to_vec()).collect();
        damaged.extend([
            b"1234\n".to_vec(),
            b"0\n1\nbilling 1234\n".to_vec(),
            vec![0; 64],
            vec![0; 8192],
            [&whole[..], b"\n"].concat(),
            whole.iter().map(|byte| if *byte == b'7' || *byte == b'8' { b'6' } else { *byte }).collect(),
        ]);
        for contents in damaged {
            folder.replace("billing", &contents).unwrap();
            match position(&disk, "billing").committed() {
                Err(Error::Corrupt { place, .. }) => {
                    assert!(place.file.ends_with(".cordwood.positions/billing"), "{place:?}");
                }
                // longer than every file of this format
                Err(Error::Io { .. }) if contents.len() > 8192 => {}
                other => panic!("{other:?} of {} bytes", contents.len()),
            }
        }
        folder.replace("billing", &whole).unwrap();
    }
}

#[test]
fn a_commit_after_that_of_a_killed_process_survives_a_crash_of_both() {
    // the half that the killed process wrote is not durable, and that of the commit before is overwritten
    let disk = disk(10);
    let first = position(&disk, "billing");
    first.commit(1).unwrap();
    first.commit(2).unwrap();
    for at in 0.. {
        let killed = disk.crash_point().image(Survivors::All).disk();
        killed.set_fault(Some(Fault { at, kind: FaultKind::Killed, forever: true }));
        let done = commit(&killed, "billing", 3);
        killed.set_fault(None);
        let before = offset(&killed, "billing");
        killed.record();
        commit(&killed, "billing", 4).unwrap();
        for (number, (_, point)) in killed.recorded().into_iter().enumerate() {
            for survivors in point.survivors(20, number as u64) {
                let found = offset(&point.image(survivors).disk(), "billing");
                let is_known = found == before || found == Some(4) || (done.is_err() && found == Some(2));
                assert!(is_known, "{found:?} after {before:?}, {done:?}");
            }
        }
        if done.is_ok() {
            break;
        }
    }
}

#[test]
fn no_crash_after_a_failed_sync_of_a_commit_loses_the_position() {
    // after a failed sync, the system may report the next one as a success: the half that is durable must not
    // be overwritten
    let mut failed = 0;
    for at in 0.. {
        let disk = disk(10);
        let [billing, other] = [(); 2].map(|()| position(&disk, "billing"));
        billing.commit(1).unwrap();
        billing.commit(2).unwrap();
        disk.set_fault(Some(Fault { at, kind: FaultKind::InputOutput, forever: false }));
        let done = billing.commit(3);
        let is_over = disk.fault_is_over();
        disk.set_fault(None);
        failed += usize::from(disk.failed().iter().any(|failed| matches!(failed, Operation::Sync(_))));
        let acknowledged = if done.is_ok() { 3 } else { 2 };
        disk.record();
        // of this process or of another one
        let next = if at % 2 == 0 { &billing } else { &other };
        next.commit(4).unwrap();
        for (number, (_, point)) in disk.recorded().into_iter().enumerate() {
            for survivors in point.survivors(20, number as u64) {
                let found = offset(&point.image(survivors).disk(), "billing");
                assert!(found >= Some(acknowledged), "{found:?} after {done:?}, fault {at}");
            }
        }
        let last = offset(&disk.crash_point().image(Survivors::None).disk(), "billing");
        assert_eq!(last, Some(4), "fault {at}");
        if !is_over {
            break;
        }
    }
    assert!(failed > 0);
}
