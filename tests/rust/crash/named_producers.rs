//! The sequences of named producers after a crash or an error during a deletion from the log start, when all
//! records above the log start are truncated afterwards.

use cordwood::fs::mem::{Fault, FaultKind, MemoryDisk};
use cordwood::record::NewRecord;
use cordwood::writer::{FlushMode, LogWriter, Producer};

use crate::script::{Before, NOW, Setup};

/// The log start offsets of successive deletions. Each record is a batch of the same producer.
const STARTS: [i64; 3] = [2, 4, 5];

fn open(disk: &MemoryDisk) -> LogWriter {
    let setup = Setup { flush: FlushMode::None, sector: 16, before: Before::Nothing };
    LogWriter::open_in(disk.directory("/orders-0"), &setup.options()).unwrap()
}

fn appended() -> (MemoryDisk, LogWriter) {
    let disk = MemoryDisk::new(16);
    let writer = open(&disk);
    let producer = writer.producer(Some("billing")).unwrap();
    for _ in 0..8 {
        producer
            .append(&NewRecord { timestamp: NOW, value: Some(b"v"), ..NewRecord::default() }, None)
            .unwrap();
    }
    (disk, writer)
}

/// Truncates all records, and compares the sequences with the number of records that were deleted.
fn check(writer: &mut LogWriter, starts: &[i64], place: &str) {
    let start = writer.log_start_offset();
    assert!(starts.contains(&start), "{place}: {start}");
    writer.truncate_to(start).unwrap();
    let next = writer.producer(Some("billing")).unwrap().next_sequence().unwrap();
    assert_eq!(i64::from(next), start, "{place}");
}

#[test]
fn a_crash_during_a_deletion_leaves_the_sequences_as_of_either_log_start() {
    let (disk, mut writer) = appended();
    let (mut before, mut images) = (0, 0);
    for start in STARTS {
        disk.record();
        writer.delete_before(start).unwrap();
        for (step, (_, point)) in disk.recorded().into_iter().enumerate() {
            for survivors in point.survivors(20, step as u64) {
                images += 1;
                let place = format!("{start}, step {step}, {survivors:?}");
                check(&mut open(&point.image(survivors).disk()), &[before, start], &place);
            }
        }
        before = start;
    }
    assert!(images > 60, "{images}");
}

#[test]
fn a_truncation_below_the_log_start_leaves_the_sequences_of_deleted_records_after_every_crash() {
    let mut images = 0;
    for (start, offset) in [(4, 1), (4, 3), (8, 5)] {
        let (disk, mut writer) = appended();
        writer.delete_before(start).unwrap();
        writer.flush().unwrap();
        let producer = writer.producer(Some("billing")).unwrap();
        disk.record();
        assert!(writer.truncate_to(offset).unwrap());
        let next = |producer: &Producer| i64::from(producer.next_sequence().unwrap());
        assert_eq!((next(&producer), writer.log_end_offset()), (start, offset));
        for (step, (_, point)) in disk.recorded().into_iter().enumerate() {
            for survivors in point.survivors(6, step as u64) {
                images += 1;
                let image = point.image(survivors).disk();
                let place = format!("{start} {offset}, step {step}, {survivors:?}");
                let mut opened = open(&image);
                let end = opened.log_end_offset();
                assert!([offset, 8].contains(&end), "{place}: {end}");
                opened.truncate_to(offset).unwrap();
                assert_eq!(next(&opened.producer(Some("billing")).unwrap()), start, "{place}");
                drop(opened);
                assert_eq!(next(&open(&image).producer(Some("billing")).unwrap()), start, "{place}");
            }
        }
        let appended = producer.append(&NewRecord::default(), Some(i32::try_from(start).unwrap())).unwrap();
        assert_eq!((appended.first_offset, appended.is_duplicate), (offset, false));
        drop(writer);
        assert_eq!(next(&open(&disk).producer(Some("billing")).unwrap()), start + 1);
    }
    assert!(images > 60, "{images}");
}

#[test]
fn a_deletion_that_fails_leaves_the_sequences_as_of_either_log_start() {
    for kind in [FaultKind::InputOutput, FaultKind::NoSpace, FaultKind::ShortWrite] {
        for at in 0.. {
            let (disk, mut writer) = appended();
            writer.delete_before(2).unwrap();
            disk.set_fault(Some(Fault { at, kind, forever: false }));
            let _ = writer.delete_before(4);
            let is_over = disk.fault_is_over();
            disk.set_fault(None);
            let place = format!("{kind:?} {at}");
            if writer.append(&NewRecord::default()).is_err() {
                drop(writer);
                writer = open(&disk);
            }
            check(&mut writer, &[2, 4], &place);
            if !is_over {
                break;
            }
        }
    }
}
