//! Segments that overflow are split during recovery, with power losses during the split. The result equals
//! that of an uninterrupted recovery and contains every record.

use cordwood::fs::mem::{Fault, FaultKind, Image, MemoryDisk, Survivors};
use cordwood::writer::{FlushMode, LogWriter};

use crate::batches::{ABORT, BatchV2, Built, Rec};
use crate::explore::Seen;
use crate::found::{Reader, checkpointed, records, segments};
use crate::judge::{Judge, Recovered, differs};
use crate::nested::crash;
use crate::script::{Before, NOW, Setup};

const MAX_RELATIVE: i64 = i32::MAX as i64;
const IN_TRANSACTION: i64 = 11;
const ABORTED_AT: i64 = MAX_RELATIVE + 21;

/// In one segment, a batch of a transaction and the marker that aborts it, in the second part.
fn batch(offset: i64) -> Built {
    let batch = match offset {
        IN_TRANSACTION => BatchV2::new(offset).transaction(9, 0, 0),
        ABORTED_AT => return BatchV2::marker(offset, ABORT, 9, 0, NOW).build(),
        _ => BatchV2::new(offset).leader_epoch(0),
    };
    batch.record(Rec::at(NOW).value(offset.to_string())).build()
}

/// Base offsets and the offsets of their one-record batches.
fn layouts() -> Vec<Vec<(i64, Vec<i64>)>> {
    vec![
        // a middle segment, into two; its first batch is at its base offset
        vec![
            (0, vec![0, 1]),
            (10, vec![10, IN_TRANSACTION, MAX_RELATIVE + 20, ABORTED_AT]),
            (2 * MAX_RELATIVE, vec![2 * MAX_RELATIVE]),
        ],
        // the last segment, into three
        vec![(0, vec![0, 1, MAX_RELATIVE + 1, MAX_RELATIVE + 2, 2 * MAX_RELATIVE + 9])],
        // no part begins at the segment's base offset: even the first batch is too far above it
        vec![(5, vec![MAX_RELATIVE + 9, MAX_RELATIVE + 10])],
        vec![(5, vec![7, 8, MAX_RELATIVE + 9])],
    ]
}

fn disk_of(layout: &[(i64, Vec<i64>)]) -> MemoryDisk {
    let disk = MemoryDisk::new(16);
    for (base, offsets) in layout {
        let bytes: Vec<u8> = offsets.iter().flat_map(|offset| batch(*offset).bytes).collect();
        disk.put(&format!("{base:020}.log"), &bytes);
        disk.put(&format!("{base:020}.index"), &[]);
        disk.put(&format!("{base:020}.timeindex"), &[]);
    }
    disk
}

/// Calls a function for each layout, with a judge and the result of an uninterrupted recovery.
fn each(mut check: impl FnMut(&[(i64, Vec<i64>)], &Image, &Recovered, &mut Judge)) {
    let setup = Setup { flush: FlushMode::Always, sector: 16, before: Before::Nothing };
    let mut judge = Judge::new(setup.options());
    for layout in layouts() {
        let image = disk_of(&layout).crash_point().image(Survivors::All);
        let undisturbed = judge.recover(image.disk()).unwrap();
        check(&layout, &image, &undisturbed, &mut judge);
    }
    judge.tally.assert_none();
}

#[test]
fn a_split_keeps_every_record_and_leaves_nothing_else() {
    each(|layout, _, undisturbed, _| {
        let batches = Reader::default().read(&undisturbed.files).unwrap();
        let expected: Vec<i64> = layout.iter().flat_map(|(_, offsets)| offsets.clone()).collect();
        assert_eq!(records(&batches).iter().map(|(offset, _)| *offset).collect::<Vec<_>>(), expected);
        let names: Vec<_> = undisturbed.files.iter().map(|(name, _)| name).collect();
        assert!(!names.iter().any(|name| name.ends_with(".swap") || name.ends_with(".cleaned")), "{names:?}");
        let bases: Vec<i64> = segments(&undisturbed.files).into_iter().map(|(base, _)| base).collect();
        assert!(bases.len() > layout.len() || !bases.contains(&5), "{bases:?}");
    });
}

#[test]
fn crashes_up_to_three_deep_while_a_segment_is_split_change_nothing() {
    let (seen, mut recoveries) = (Seen::new(), 0);
    each(|layout, image, undisturbed, judge| {
        crash(image, undisturbed, 3, &seen, judge, &format!("{layout:?}"));
        recoveries = judge.tally.nested;
    });
    println!("{{\"rig\": \"splits\", \"recoveries\": {recoveries}}}");
    assert!(recoveries > 3_000, "{recoveries}");
}

#[test]
fn crashes_while_a_segment_below_the_recovery_point_is_split_lose_no_aborted_transaction() {
    let setup = Setup { flush: FlushMode::Always, sector: 16, before: Before::Nothing };
    let (layout, mut judge) = (&layouts()[0], Judge::new(setup.options()));
    // a checkpoint of a log that rolled at the same offset
    let other = MemoryDisk::new(16);
    let mut writer = LogWriter::open_in(other.directory("/orders-0"), &setup.options()).unwrap();
    for offset in [0, 2 * MAX_RELATIVE] {
        writer.append_batches(&batch(offset).bytes, true).unwrap();
    }
    let files = other.shown().files();
    let checkpoint = files.iter().find(|(name, _)| name == ".cordwood.checkpoint").unwrap();
    assert_eq!(checkpointed(&files, "recovery-point"), Some(2 * MAX_RELATIVE));
    let disk = disk_of(layout);
    disk.put(".cordwood.checkpoint", &checkpoint.1);
    // the segment is read, because it is missing
    disk.take("00000000000000000010.index");
    let image = disk.crash_point().image(Survivors::All);
    let undisturbed = judge.recover(image.disk()).unwrap();
    let name = format!("{:020}.txnindex", MAX_RELATIVE + 20);
    let index = undisturbed.files.iter().find(|(file, _)| *file == name).unwrap();
    assert_eq!(index.1[10..26], [IN_TRANSACTION.to_be_bytes(), ABORTED_AT.to_be_bytes()].concat());
    crash(&image, &undisturbed, 2, &Seen::new(), &mut judge, "below the recovery point");
    judge.tally.assert_none();
}

#[test]
fn crashes_while_a_replacement_with_a_snapshot_inside_its_last_segment_is_finished_change_nothing() {
    let setup = Setup { flush: FlushMode::Always, sector: 16, before: Before::Nothing };
    let mut judge = Judge::new(setup.options());
    let of_producer =
        |offset: i64| BatchV2::new(offset).leader_epoch(0).producer(9, 0, offset as i32).record(Rec::at(NOW));
    let bytes =
        |batches: &[BatchV2]| -> Vec<u8> { batches.iter().flat_map(|batch| batch.build().bytes).collect() };
    // a log of the same batches that rolled at offset 3
    let other = MemoryDisk::new(16);
    let mut writer = LogWriter::open_in(other.directory("/orders-0"), &setup.options()).unwrap();
    writer.append_batches(&bytes(&[0, 1, 2].map(of_producer)), true).unwrap();
    writer.roll().unwrap();
    let snapshot = format!("{:020}.snapshot", 3);
    let files = other.shown().files();
    let (_, contents) = files.iter().find(|(name, _)| *name == snapshot).unwrap();
    let disk = MemoryDisk::new(16);
    disk.put(&snapshot, contents);
    let segments = [
        // it replaces the next two, of which these batches remain
        (0, ".swap", vec![of_producer(1), of_producer(4)]),
        (0, "", vec![of_producer(0), of_producer(1)]),
        (2, "", vec![of_producer(2), of_producer(3), of_producer(4)]),
        (9, "", vec![of_producer(9)]),
    ];
    for (base, stage, batches) in segments {
        disk.put(&format!("{base:020}.log{stage}"), &bytes(&batches));
        disk.put(&format!("{base:020}.index{stage}"), &[]);
        disk.put(&format!("{base:020}.timeindex{stage}"), &[]);
    }
    let image = disk.crash_point().image(Survivors::All);
    let undisturbed = judge.recover(image.disk()).unwrap();
    let batches = Reader::default().read(&undisturbed.files).unwrap();
    assert_eq!(batches.iter().map(|batch| batch.base_offset).collect::<Vec<_>>(), [1, 4, 9]);
    assert!(undisturbed.files.iter().all(|(name, _)| *name != snapshot));
    crash(&image, &undisturbed, 2, &Seen::new(), &mut judge, "a replacement");
    judge.tally.assert_none();
    assert!(judge.tally.nested > 100, "{}", judge.tally.nested);
}

#[test]
fn no_failed_operation_of_a_split_costs_a_record() {
    for kind in [FaultKind::InputOutput, FaultKind::NoSpace, FaultKind::ShortWrite, FaultKind::Interrupted] {
        for forever in [false, true] {
            each(|layout, image, undisturbed, judge| {
                for at in 0.. {
                    let disk = image.disk();
                    disk.set_fault(Some(Fault { at, kind, forever }));
                    drop(LogWriter::open_in(disk.directory("/orders-0"), &judge.options()));
                    let is_over = disk.fault_is_over();
                    disk.set_fault(None);
                    // the durable contents, not those that are only visible after a failed sync
                    let disk = disk.crash_point().image(Survivors::All).disk();
                    let again = judge
                        .recover(disk)
                        .unwrap_or_else(|error| panic!("{layout:?} {at} {kind:?}: {error}"));
                    assert_eq!(differs(undisturbed, &again), None, "{layout:?} {at} {kind:?} {forever}");
                    if !is_over {
                        break;
                    }
                }
            });
        }
    }
}
