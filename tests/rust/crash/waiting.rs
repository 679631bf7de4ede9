//! Threads that wait for a sync while the log changes under them: a close, a truncation, a roll, a sync that fails. And a
//! disk that is full when the log is to get shorter.

use std::thread;

use cordwood::Error;
use cordwood::fs::mem::{Fault, FaultKind, MemoryDisk, Survivors};
use cordwood::log::{
    Appended, Appender, FlushMode, Log, LogOptions, LogWriter, ScanOptions, ScanStep, WriterOptions,
};
use cordwood::record::NewRecord;

use crate::script::{Before, NOW, Setup};

/// Nobody syncs but who is told to: a leader waits an hour for more bytes than there will be.
const PATIENT: FlushMode = FlushMode::Group { ms: 3_600_000, bytes: u64::MAX - 1 };

fn options(flush: FlushMode) -> WriterOptions {
    Setup { flush, sector: 16, before: Before::Nothing }.options()
}

fn open(disk: &MemoryDisk, flush: FlushMode) -> LogWriter {
    LogWriter::open_in(disk.directory("/orders-0"), &options(flush)).unwrap()
}

fn append(appender: &Appender, value: &[u8]) -> Result<Appended, Error> {
    appender.append(&NewRecord { timestamp: NOW, key: None, value: Some(value), headers: &[] })
}

/// A thread that appends a record, once the record is written and, most likely, is waited for.
fn appending(writer: &LogWriter, value: &'static [u8]) -> thread::JoinHandle<Result<Appended, Error>> {
    let appender = writer.appender();
    let end = writer.log_end_offset();
    let thread = thread::spawn(move || append(&appender, value));
    while writer.log_end_offset() == end {
        thread::yield_now();
    }
    thread
}

/// Where the log ends after each power loss that is tried.
fn after_power_losses(disk: &MemoryDisk) -> Vec<i64> {
    let point = disk.crash_point();
    let all = point.survivors(8, 1).into_iter().chain([Survivors::None, Survivors::All]);
    all.map(|survivors| open(&point.image(survivors).disk(), FlushMode::Always).log_end_offset()).collect()
}

#[test]
fn a_close_ends_the_wait_of_appends_and_leaves_the_next_writer_alone() {
    let disk = MemoryDisk::new(16);
    let mut writer = open(&disk, PATIENT);
    let waiting = [appending(&writer, b"first"), appending(&writer, b"second")];
    writer.close().unwrap();
    let mut next = open(&disk, FlushMode::Always);
    next.truncate_to(1).unwrap();
    for thread in waiting {
        // the close made them durable, if they had come to wait for it; else they find the log closed
        match thread.join().unwrap() {
            Ok(appended) => assert!(appended.durable),
            Err(error) => assert_eq!(error.code(), "config", "{error}"),
        }
    }
    drop(next);
    assert_eq!(open(&disk, FlushMode::Always).log_end_offset(), 1);
    for end in after_power_losses(&disk) {
        assert_eq!(end, 1);
    }
}

#[test]
fn a_roll_and_a_log_start_that_moves_end_the_wait_of_appends() {
    for moves_start in [false, true] {
        let disk = MemoryDisk::new(16);
        let mut writer = open(&disk, PATIENT);
        let waiting = appending(&writer, b"first");
        if moves_start {
            // which syncs under the lock: a flush would wait for the leader
            writer.delete_before(1).unwrap();
        } else {
            writer.roll().unwrap();
        }
        assert!(waiting.join().unwrap().unwrap().durable);
        assert!(after_power_losses(&disk).iter().all(|end| *end == 1));
    }
}

#[test]
fn a_truncation_under_appends_that_wait_acknowledges_what_stays_and_only_that() {
    let disk = MemoryDisk::new(16);
    let mut writer = open(&disk, PATIENT);
    let stays = appending(&writer, b"stays");
    let goes = appending(&writer, b"goes");
    writer.truncate_to(1).unwrap();
    assert!(stays.join().unwrap().unwrap().durable);
    goes.join().unwrap().unwrap();
    assert_eq!((writer.log_end_offset(), writer.durable_offset()), (1, 1));
    // no close: it would sync
    for end in after_power_losses(&disk) {
        assert_eq!(end, 1);
    }
}

#[test]
fn after_a_sync_that_failed_for_one_thread_no_other_is_told_that_it_went_well() {
    // the file's sync, counted by trying
    for at in 0.. {
        let disk = MemoryDisk::new(16);
        let mut writer = open(&disk, PATIENT);
        let waiting = appending(&writer, b"first");
        disk.set_fault(Some(Fault { at, kind: FaultKind::InputOutput, forever: false }));
        let rolled = writer.roll();
        let is_over = disk.fault_is_over();
        let has_failed_sync =
            disk.failed().iter().any(|failed| failed.to_string() == "sync 00000000000000000000.log");
        disk.set_fault(None);
        if has_failed_sync {
            rolled.unwrap_err();
            // whoever waits, and whoever tries again
            assert!(waiting.join().unwrap().is_err());
            for again in
                [writer.flush(), writer.roll(), append(&writer.appender(), b"x").map(drop), writer.close()]
            {
                assert_eq!(again.unwrap_err().code(), "poisoned");
            }
            assert_eq!(writer.durable_offset(), 0);
            return;
        }
        assert!(is_over, "a roll that syncs nothing");
        // the hour need not pass
        let _ = writer.close();
        let _ = waiting.join().unwrap();
    }
}

#[test]
fn a_truncation_that_fails_under_a_leader_that_waits_leaves_a_log_that_opens() {
    for at in 0.. {
        let disk = MemoryDisk::new(16);
        let mut writer = open(&disk, FlushMode::Always);
        for value in [b"a", b"b", b"c"] {
            append(&writer.appender(), value).unwrap();
        }
        writer.close().unwrap();
        let mut writer = open(&disk, PATIENT);
        let waiting = appending(&writer, b"d");
        let goes = appending(&writer, b"e");
        disk.set_fault(Some(Fault { at, kind: FaultKind::InputOutput, forever: false }));
        let truncated = writer.truncate_to(4);
        let is_over = disk.fault_is_over();
        let failed = disk.failed().iter().map(ToString::to_string).collect::<Vec<_>>();
        disk.set_fault(None);
        let told = waiting.join().unwrap();
        let _ = goes.join().unwrap();
        let _ = writer.close();
        drop(writer);
        drop(truncated);
        let end = open(&disk, FlushMode::Always).log_end_offset();
        assert!((if told.is_ok() { 4 } else { 3 }..=5).contains(&end), "{end} behind {failed:?}");
        if !is_over {
            break;
        }
    }
}

#[test]
fn a_disk_too_full_to_note_a_new_log_start_leaves_the_log_as_it_is() {
    let disk = MemoryDisk::new(16);
    let mut writer = open(&disk, FlushMode::Always);
    for _ in 0..3 {
        append(&writer.appender(), b"a value").unwrap();
        writer.roll().unwrap();
    }
    disk.set_fault(Some(Fault { at: 0, kind: FaultKind::NoSpace, forever: true }));
    assert_eq!(writer.delete_before(2).unwrap_err().code(), "io");
    disk.set_fault(None);
    assert_eq!(writer.log_start_offset(), 0);
    append(&writer.appender(), b"another").unwrap();
    assert!(writer.delete_before(2).unwrap());
    drop(writer);
    let writer = open(&disk, FlushMode::Always);
    assert_eq!((writer.log_start_offset(), writer.log_end_offset()), (2, 4));
}

#[test]
fn a_reader_amid_a_truncation_below_the_log_start_finds_nothing_that_was_deleted() {
    for at in 0.. {
        let disk = MemoryDisk::new(16);
        let mut writer = open(&disk, FlushMode::Always);
        for _ in 0..3 {
            for _ in 0..3 {
                append(&writer.appender(), b"a value").unwrap();
            }
            writer.roll().unwrap();
        }
        assert!(writer.delete_before(4).unwrap());
        disk.set_fault(Some(Fault { at, kind: FaultKind::InputOutput, forever: true }));
        let is_done = writer.truncate_to(3).is_ok();
        disk.set_fault(None);
        let log = Log::open_in(disk.directory("/orders-0"), LogOptions::default()).unwrap();
        let mut scan = log.scan(ScanOptions::default()).unwrap();
        while let Some(ScanStep::Batch(batch)) = scan.next_step().unwrap() {
            assert!(batch.header.base_offset >= 4, "{at}: {}", batch.header.base_offset);
        }
        if is_done {
            assert!(at > 10 && log.log_end_offset().unwrap() == 3, "{at}");
            return;
        }
    }
}

#[test]
fn what_somebody_wrote_into_a_log_that_was_being_emptied_is_not_removed() {
    let mut refused = 0;
    for at in 0.. {
        let disk = MemoryDisk::new(16);
        let directory = disk.directory("/orders-0");
        let mut writer = open(&disk, FlushMode::Always);
        for _ in 0..3 {
            append(&writer.appender(), b"a value").unwrap();
            writer.roll().unwrap();
        }
        disk.set_fault(Some(Fault { at, kind: FaultKind::InputOutput, forever: true }));
        let is_done = writer.truncate_fully_and_start_at(1).is_ok();
        disk.set_fault(None);
        drop(writer);
        if is_done {
            break;
        }
        // a broker knows nothing of our files
        let names = directory.entries().unwrap().into_iter().map(|(name, _)| name);
        let names: Vec<_> = names.filter(|name| name.starts_with(".cordwood.")).collect();
        let ours = names.iter().map(|name| (name, directory.read_small(name, 4096).unwrap().unwrap()));
        let ours: Vec<_> = ours.collect();
        for name in &names {
            directory.remove(name).unwrap();
        }
        let mut broker = open(&disk, FlushMode::Always);
        for _ in 0..9 {
            append(&broker.appender(), b"another").unwrap();
        }
        let end = broker.log_end_offset();
        broker.close().unwrap();
        for (name, bytes) in ours {
            directory.replace(name, &bytes).unwrap();
        }
        let opened = LogWriter::open_in(directory, &options(FlushMode::Always));
        match opened {
            Ok(writer) => assert_eq!(writer.log_end_offset(), end, "{at}"),
            Err(error) => {
                assert!(error.to_string().contains("was being emptied"), "{at}: {error}");
                refused += 1;
            }
        }
    }
    assert!(refused > 5, "{refused}");
}
