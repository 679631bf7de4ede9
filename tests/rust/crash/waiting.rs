//! Threads that wait for a sync during another operation: a close, a truncation, a roll, a failed sync.

use std::thread;

use cordwood::Error;
use cordwood::fs::mem::{Fault, FaultKind, MemoryDisk, Survivors};
use cordwood::record::NewRecord;
use cordwood::writer::{Appended, Appender, FlushMode, LogWriter, Unflushed, WriterOptions};

use crate::script::{Before, NOW, Setup};

/// A flush mode in which no append syncs: a leader waits an hour for more bytes than are appended.
const LONG_WAIT: FlushMode = FlushMode::Group { ms: 3_600_000, bytes: u64::MAX - 1 };

fn options(flush: FlushMode) -> WriterOptions {
    Setup { flush, sector: 16, before: Before::Nothing }.options()
}

fn open(disk: &MemoryDisk, flush: FlushMode) -> LogWriter {
    LogWriter::open_in(disk.directory("/orders-0"), &options(flush)).unwrap()
}

fn append(appender: &Appender, value: &[u8]) -> Result<Appended, Error> {
    appender.append(&NewRecord { timestamp: NOW, key: None, value: Some(value), headers: &[] })
}

/// A thread that appends a record. Returns once the record is written and the thread is probably waiting.
fn appending(writer: &LogWriter, value: &'static [u8]) -> thread::JoinHandle<Result<Appended, Error>> {
    let appender = writer.appender();
    let end = writer.log_end_offset();
    let thread = thread::spawn(move || append(&appender, value));
    while writer.log_end_offset() == end {
        thread::yield_now();
    }
    thread
}

/// The log end offsets after each possible power loss.
fn after_power_losses(disk: &MemoryDisk) -> Vec<i64> {
    let point = disk.crash_point();
    let all = point.survivors(8, 1).into_iter().chain([Survivors::None, Survivors::All]);
    all.map(|survivors| open(&point.image(survivors).disk(), FlushMode::Always).log_end_offset()).collect()
}

/// An append whose flush is awaited apart from it.
fn append_unflushed(writer: &LogWriter, value: &[u8]) -> Unflushed {
    let record = NewRecord { timestamp: NOW, key: None, value: Some(value), headers: &[] };
    writer.appender().append_many_unflushed(&[record]).unwrap()
}

#[test]
fn the_wait_of_an_append_makes_those_before_it_durable_and_their_waits_sync_nothing() {
    for truncates in [false, true] {
        let disk = MemoryDisk::new(16);
        let mut writer = open(&disk, FlushMode::Always);
        let mut appends = vec![append_unflushed(&writer, b"a"), append_unflushed(&writer, b"b")];
        if truncates {
            writer.truncate_to(1).unwrap();
        }
        appends.push(append_unflushed(&writer, b"c"));
        assert!(appends.is_sorted_by_key(Unflushed::order));
        let last = appends.last().unwrap();
        assert!(last.must_wait() && !last.appended().unwrap().durable);
        assert!(after_power_losses(&disk).contains(&i64::from(truncates)));
        last.wait().unwrap();
        let operations = disk.operations();
        for append in &appends {
            append.wait().unwrap();
        }
        // not the second one: it may be truncated
        assert!([0, 2].iter().all(|place| appends[*place].appended().unwrap().durable));
        assert_eq!(disk.operations(), operations);
        let end = writer.log_end_offset();
        assert_eq!(end, if truncates { 2 } else { 3 });
        assert!(after_power_losses(&disk).iter().all(|found| *found == end));
    }
}

#[test]
fn a_close_makes_an_append_durable_whose_flush_was_not_awaited() {
    let disk = MemoryDisk::new(16);
    let mut writer = open(&disk, LONG_WAIT);
    let append = append_unflushed(&writer, b"a");
    writer.close().unwrap();
    append.wait().unwrap();
    assert!(append.appended().unwrap().durable);
    assert!(after_power_losses(&disk).iter().all(|end| *end == 1));
}

#[test]
fn after_a_failed_sync_no_append_whose_flush_was_not_awaited_is_acknowledged() {
    // forever: the sync of the file fails, whatever comes before it
    let fault = Fault { at: 0, kind: FaultKind::InputOutput, forever: true };
    let disk = MemoryDisk::new(16);
    let writer = open(&disk, FlushMode::Always);
    let [first, second] = [b"a", b"b"].map(|value| append_unflushed(&writer, value));
    disk.set_fault(Some(fault));
    assert_eq!(second.wait().unwrap_err().code(), "io");
    disk.set_fault(None);
    for append in [&first, &second] {
        assert_eq!(append.wait().unwrap_err().code(), "poisoned");
        assert_eq!(append.appended().unwrap_err().code(), "poisoned");
    }
    assert_eq!(writer.durable_offset(), 0);
}

#[test]
fn a_close_ends_the_wait_of_appends_and_does_not_affect_the_next_writer() {
    let disk = MemoryDisk::new(16);
    let mut writer = open(&disk, LONG_WAIT);
    let waiting = [appending(&writer, b"first"), appending(&writer, b"second")];
    writer.close().unwrap();
    let mut next = open(&disk, FlushMode::Always);
    next.truncate_to(1).unwrap();
    for thread in waiting {
        // the close made them durable if they were already waiting; otherwise the log was closed before
        match thread.join().unwrap() {
            Ok(appended) => assert!(appended.durable),
            Err(error) => assert_eq!(error.code(), "closed", "{error}"),
        }
    }
    drop(next);
    assert_eq!(open(&disk, FlushMode::Always).log_end_offset(), 1);
    for end in after_power_losses(&disk) {
        assert_eq!(end, 1);
    }
}

#[test]
fn a_roll_and_a_new_log_start_end_the_wait_of_appends() {
    for moves_start in [false, true] {
        let disk = MemoryDisk::new(16);
        let mut writer = open(&disk, LONG_WAIT);
        let waiting = appending(&writer, b"first");
        if moves_start {
            // these sync under the lock: a flush would wait for the leader
            writer.delete_before(1).unwrap();
        } else {
            writer.roll().unwrap();
        }
        assert!(waiting.join().unwrap().unwrap().durable);
        assert!(after_power_losses(&disk).iter().all(|end| *end == 1));
    }
}

#[test]
fn a_truncation_during_waiting_appends_acknowledges_only_the_records_that_remain() {
    let disk = MemoryDisk::new(16);
    let mut writer = open(&disk, LONG_WAIT);
    let kept = appending(&writer, b"kept");
    let truncated = appending(&writer, b"truncated");
    writer.truncate_to(1).unwrap();
    assert!(kept.join().unwrap().unwrap().durable);
    truncated.join().unwrap().unwrap();
    assert_eq!((writer.log_end_offset(), writer.durable_offset()), (1, 1));
    // no close, because it would sync
    for end in after_power_losses(&disk) {
        assert_eq!(end, 1);
    }
}

#[test]
fn after_a_failed_sync_in_one_thread_no_other_thread_gets_a_success() {
    // tries operations until the fault is in the sync of the file
    for at in 0.. {
        let disk = MemoryDisk::new(16);
        let mut writer = open(&disk, LONG_WAIT);
        let waiting = appending(&writer, b"first");
        disk.set_fault(Some(Fault { at, kind: FaultKind::InputOutput, forever: false }));
        let rolled = writer.roll();
        let is_over = disk.fault_is_over();
        let has_failed_sync =
            disk.failed().iter().any(|failed| failed.to_string() == "sync 00000000000000000000.log");
        disk.set_fault(None);
        if has_failed_sync {
            rolled.unwrap_err();
            // the waiting threads, and a later attempt
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
        // the leader does not wait for the whole hour
        let _ = writer.close();
        let _ = waiting.join().unwrap();
    }
}

#[test]
fn a_failed_truncation_during_a_leaders_wait_leaves_a_log_that_opens() {
    for at in 0.. {
        let disk = MemoryDisk::new(16);
        let mut writer = open(&disk, FlushMode::Always);
        for value in [b"a", b"b", b"c"] {
            append(&writer.appender(), value).unwrap();
        }
        writer.close().unwrap();
        let mut writer = open(&disk, LONG_WAIT);
        let waiting = appending(&writer, b"d");
        let truncated_append = appending(&writer, b"e");
        disk.set_fault(Some(Fault { at, kind: FaultKind::InputOutput, forever: false }));
        let truncated = writer.truncate_to(4);
        let is_over = disk.fault_is_over();
        let failed = disk.failed().iter().map(ToString::to_string).collect::<Vec<_>>();
        disk.set_fault(None);
        let result = waiting.join().unwrap();
        let _ = truncated_append.join().unwrap();
        let _ = writer.close();
        drop(writer);
        drop(truncated);
        let end = open(&disk, FlushMode::Always).log_end_offset();
        assert!((if result.is_ok() { 4 } else { 3 }..=5).contains(&end), "{end} after {failed:?}");
        if !is_over {
            break;
        }
    }
}
