//! A full disk: a call that fails because there is no space changes nothing, and succeeds once there is
//! space.

use cordwood::fs::mem::{Fault, FaultKind, MemoryDisk};
use cordwood::writer::{FlushMode, LogWriter, WriterOptions};

use crate::judge::Judge;
use crate::model::{Expected, Model};
use crate::script::{Before, Call, Client, Op, Setup};

fn options() -> WriterOptions {
    Setup { flush: FlushMode::Always, sector: 16, before: Before::Nothing }.options()
}

fn open(disk: &MemoryDisk) -> cordwood::Result<LogWriter> {
    LogWriter::open_in(disk.directory("/orders-0"), &options())
}

pub fn is_full(error: &cordwood::Error) -> bool {
    matches!(error, cordwood::Error::Io { source, .. } if source.kind() == std::io::ErrorKind::StorageFull)
}

/// A fault: no space for this operation and all later ones.
fn from(at: u64) -> Fault {
    Fault { at, kind: FaultKind::NoSpace, forever: true }
}

#[test]
fn a_failed_first_open_without_disk_space_leaves_the_directory_unchanged() {
    let contents: [&[(&str, &[u8])]; 2] = [
        &[],
        &[("partition.metadata", b"version: 0\ntopic_id: aFsHoJ8mSkaI5w7rWQb5Qg"), ("notes.txt", b"kept")],
    ];
    for contents in contents {
        let mut refused = 0;
        for at in 0.. {
            let disk = MemoryDisk::new(16);
            for (name, bytes) in contents {
                disk.put(name, bytes);
            }
            let before = disk.shown().files();
            disk.set_fault(Some(from(at)));
            let opened = open(&disk);
            disk.set_fault(None);
            match opened {
                Ok(_) => break,
                Err(error) => assert!(is_full(&error), "{at}: {error}"),
            }
            assert_eq!(disk.shown().files(), before, "{at}");
            assert_eq!(open(&disk).unwrap().log_end_offset(), 0, "{at}");
            refused += 1;
        }
        assert!(refused > 5, "{refused}");
    }
}

#[test]
fn an_opening_leaves_out_snapshots_for_which_there_is_no_space() {
    let mut client = log_with_segments(FlushMode::Always);
    client.writer = None;
    let mut left_out = 0;
    for at in 0.. {
        let disk = client.disk.fork();
        disk.set_fault(Some(Fault { at, kind: FaultKind::NoSpace, forever: false }));
        let opened = open(&disk);
        let (is_over, failed) = (disk.fault_is_over(), disk.failed());
        disk.set_fault(None);
        if !is_over {
            break;
        }
        if failed.iter().any(|operation| operation.to_string().contains(".snapshot")) {
            let mut writer = opened.unwrap_or_else(|error| panic!("{at}: {error}"));
            // the close takes it
            writer.close().unwrap();
            let name = format!("{:020}.snapshot", writer.log_end_offset());
            assert!(disk.shown().files().iter().any(|(file, _)| *file == name), "{at}: {name}");
            left_out += 1;
        }
    }
    assert!(left_out > 0);
}

#[test]
fn a_roll_leaves_out_a_snapshot_for_which_there_is_no_space() {
    let mut left_out = 0;
    for at in 0.. {
        let mut client = log_with_segments(FlushMode::Always);
        client.disk.set_fault(Some(Fault { at, kind: FaultKind::NoSpace, forever: false }));
        let called = client.roll();
        let (is_over, failed) = (client.disk.fault_is_over(), client.disk.failed());
        client.disk.set_fault(None);
        if !is_over {
            break;
        }
        if failed.iter().any(|operation| operation.to_string().contains(".snapshot")) {
            assert!(called.error.is_none(), "{at}: {:?}", called.error);
            let end = client.model.end;
            // the next opening takes it
            assert!(client.reopen().error.is_none(), "{at}");
            let name = format!("{end:020}.snapshot");
            assert!(client.disk.shown().files().iter().any(|(file, _)| *file == name), "{at}: {name}");
            left_out += 1;
        }
    }
    assert!(left_out > 0);
}

/// A log with four segments; the first segments are below the log start offset.
pub fn log_with_segments(flush: FlushMode) -> Client {
    let setup = Setup { flush, sector: 16, before: Before::Nothing };
    let mut client = Client::of(setup);
    for op in [Op::Reopen, Op::Append, Op::Append, Op::Roll, Op::Append, Op::Retain, Op::Roll, Op::Append] {
        client.apply(op, &mut |call| assert!(call.error.is_none(), "{}: {:?}", call.name, call.error));
    }
    client
}

pub type Calls = Vec<(String, Box<dyn Fn(&mut Client) -> Call>)>;

/// The calls that change the structure of a log, with one offset of each kind.
pub fn calls() -> Calls {
    let mut calls: Calls = Vec::new();
    let Model { start, end, .. } = log_with_segments(FlushMode::Always).model;
    for offset in 0..end {
        calls.push((format!("truncate_to({offset})"), Box::new(move |client| client.truncate_to(offset))));
    }
    for offset in 0..end + 4 {
        let name = format!("truncate_fully_and_start_at({offset})");
        calls.push((name, Box::new(move |client| client.restart_at(offset))));
    }
    for offset in start + 1..=end {
        calls
            .push((format!("delete_before({offset})"), Box::new(move |client| client.delete_before(offset))));
    }
    calls.push(("apply_retention".to_owned(), Box::new(Client::retain)));
    calls.push(("roll".to_owned(), Box::new(Client::roll)));
    calls.push(("append".to_owned(), Box::new(|client| client.append(2))));
    calls.push(("append of a producer".to_owned(), Box::new(Client::produce)));
    calls.push(("append of a named producer".to_owned(), Box::new(Client::produce_named)));
    calls.push(("append, which rolls".to_owned(), Box::new(|client| client.append_of(&[b'v'; 300]))));
    calls
}

/// A call that finds no space changes nothing. Once there is space, the writer continues and the same call
/// succeeds.
#[test]
fn a_call_without_disk_space_changes_nothing_and_succeeds_once_there_is_space() {
    let mut refused = 0;
    for (name, call) in calls() {
        for flush in [FlushMode::Always, FlushMode::None] {
            let mut judge = Judge::new(log_with_segments(flush).options);
            for at in 0.. {
                let mut client = log_with_segments(flush);
                let place = || format!("{name}, {flush}, no space from operation {at} on");
                let before = client.model.clone();
                client.disk.set_fault(Some(from(at)));
                let called = call(&mut client);
                client.disk.set_fault(None);
                let Some(error) = called.error else { break };
                assert!(is_full(&error), "{}: {error}", place());
                refused += 1;
                // the visible state, and the state after a kill
                let writer = client.writer.as_mut().unwrap();
                let bounds = (writer.log_start_offset(), writer.log_end_offset());
                assert_eq!(bounds, (before.start, before.end), "{}", place());
                judge.judge_disk(client.disk.fork(), &[Expected::after(&before)], true, &place);
                client.unsure.clear();
                let called = call(&mut client);
                assert!(called.error.is_none(), "{}, then with space: {:?}", place(), called.error);
                let called = client.append(1);
                assert!(called.error.is_none(), "{}, then an append: {:?}", place(), called.error);
                judge.judge_disk(client.disk.fork(), &[Expected::after(&client.model)], true, &place);
            }
            judge.tally.assert_none();
        }
    }
    println!("{{\"rig\": \"full disk\", \"refused\": {refused}}}");
    assert!(refused > 500, "{refused}");
}
