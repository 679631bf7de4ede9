//! Truncation and deletion: on a full disk, with a concurrent reader, and with a broker that writes during an
//! interruption.

use cordwood::fs::mem::{Fault, FaultKind, MemoryDisk};
use cordwood::log::{Log, LogOptions, ScanOptions, ScanStep};
use cordwood::record::NewRecord;
use cordwood::writer::{FlushMode, LogWriter, WriterOptions};

use crate::script::{Before, NOW, Setup};

fn options() -> WriterOptions {
    Setup { flush: FlushMode::Always, sector: 16, before: Before::Nothing }.options()
}

fn open(disk: &MemoryDisk) -> LogWriter {
    LogWriter::open_in(disk.directory("/orders-0"), &options()).unwrap()
}

fn append(writer: &mut LogWriter, count: usize) {
    for _ in 0..count {
        let record = NewRecord { timestamp: NOW, key: None, value: Some(b"a value"), headers: &[] };
        writer.append(&record).unwrap();
    }
}

#[test]
fn a_disk_too_full_for_a_new_log_start_leaves_the_log_unchanged() {
    let disk = MemoryDisk::new(16);
    let mut writer = open(&disk);
    for _ in 0..3 {
        append(&mut writer, 1);
        writer.roll().unwrap();
    }
    disk.set_fault(Some(Fault { at: 0, kind: FaultKind::NoSpace, forever: true }));
    assert_eq!(writer.delete_before(2).unwrap_err().code(), "io");
    disk.set_fault(None);
    assert_eq!(writer.log_start_offset(), 0);
    append(&mut writer, 1);
    assert!(writer.delete_before(2).unwrap());
    drop(writer);
    let writer = open(&disk);
    assert_eq!((writer.log_start_offset(), writer.log_end_offset()), (2, 4));
}

#[test]
fn a_reader_during_a_truncation_below_the_log_start_finds_no_deleted_record() {
    for at in 0.. {
        let disk = MemoryDisk::new(16);
        let mut writer = open(&disk);
        for _ in 0..3 {
            append(&mut writer, 3);
            writer.roll().unwrap();
        }
        assert!(writer.delete_before(4).unwrap());
        disk.set_fault(Some(Fault { at, kind: FaultKind::InputOutput, forever: true }));
        let is_complete = writer.truncate_to(3).is_ok();
        disk.set_fault(None);
        let log = Log::open_in(disk.directory("/orders-0"), LogOptions::default()).unwrap();
        let mut scan = log.scan(ScanOptions::default()).unwrap();
        while let Some(ScanStep::Batch(batch)) = scan.next_step().unwrap() {
            assert!(batch.header.base_offset >= 4, "{at}: {}", batch.header.base_offset);
        }
        if is_complete {
            assert!(at > 10 && log.log_end_offset().unwrap() == 3, "{at}");
            return;
        }
    }
}

#[test]
fn records_that_a_broker_wrote_during_an_interrupted_removal_of_all_records_are_kept() {
    let mut refused = 0;
    for at in 0.. {
        let disk = MemoryDisk::new(16);
        let directory = disk.directory("/orders-0");
        let mut writer = open(&disk);
        for _ in 0..3 {
            append(&mut writer, 1);
            writer.roll().unwrap();
        }
        disk.set_fault(Some(Fault { at, kind: FaultKind::InputOutput, forever: true }));
        let is_complete = writer.truncate_fully_and_start_at(1).is_ok();
        disk.set_fault(None);
        drop(writer);
        if is_complete {
            break;
        }
        // a broker ignores cordwood's files
        let names = directory.entries().unwrap().into_iter().map(|(name, _)| name);
        let names: Vec<_> = names.filter(|name| name.starts_with(".cordwood.")).collect();
        let ours = names.iter().map(|name| (name, directory.read_small(name, 4096).unwrap().unwrap()));
        let ours: Vec<_> = ours.collect();
        for name in &names {
            directory.remove(name).unwrap();
        }
        let mut broker = open(&disk);
        append(&mut broker, 9);
        let end = broker.log_end_offset();
        broker.close().unwrap();
        for (name, bytes) in ours {
            directory.replace(name, &bytes).unwrap();
        }
        let opened = LogWriter::open_in(directory, &options());
        match opened {
            Ok(writer) => assert_eq!(writer.log_end_offset(), end, "{at}"),
            Err(error) => {
                assert!(error.to_string().contains("all records were being removed"), "{at}: {error}");
                refused += 1;
            }
        }
    }
    assert!(refused > 5, "{refused}");
}
