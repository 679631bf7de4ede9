//! A snapshot of more than two million producers, 100 MiB: everything that reads snapshots reads it.

use std::fs;
use std::path::Path;

use cordwood::inspect::copy::{CopyOptions, copy};
use cordwood::inspect::rebuild::{RebuildOptions, rebuild};
use cordwood::inspect::repair::{RepairOptions, plan_repair};
use cordwood::inspect::verify::{Rule, VerifyOptions, verify};
use cordwood::log::{Log, LogOptions};
use cordwood::record::{NewRecord, crc};
use cordwood::writer::{LogWriter, ProducerState, WriterOptions};

use crate::support::partition::file_name;
use crate::support::reading::folder;

const PRODUCERS: i32 = 2_280_000;

/// The snapshot of producers without a batch, from id 0 on.
fn large() -> Vec<u8> {
    let mut bytes = [0, 1, 0, 0, 0, 0].to_vec();
    bytes.extend(PRODUCERS.to_be_bytes());
    for id in 0..i64::from(PRODUCERS) {
        bytes.extend(id.to_be_bytes());
        bytes.extend([0; 2]);
        // no last sequence and no last offset
        bytes.extend([0xff; 12]);
        bytes.extend([0; 4]);
        // long after today
        bytes.extend(4_000_000_000_000_i64.to_be_bytes());
        // no coordinator epoch and no open transaction
        bytes.extend([0xff; 12]);
    }
    let checksum = crc::crc32c(&bytes[6..]);
    bytes[2..6].copy_from_slice(&checksum.to_be_bytes());
    bytes
}

/// Writes a log of three segments of one record, and replaces the snapshot at the second one.
fn write(dir: &Path, snapshot: &[u8]) {
    let mut writer = LogWriter::open(dir, &WriterOptions::default()).unwrap();
    for timestamp in 1..=3 {
        let record = NewRecord { timestamp, key: None, value: Some(b"value"), headers: &[] };
        writer.append(&record).unwrap();
        if timestamp < 3 {
            writer.roll().unwrap();
        }
    }
    writer.close().unwrap();
    for offset in [2, 3] {
        fs::remove_file(dir.join(file_name(offset, "snapshot"))).unwrap();
    }
    fs::write(dir.join(file_name(1, "snapshot")), snapshot).unwrap();
}

#[test]
fn a_snapshot_of_100_mib_is_read_by_writers_verify_rebuild_repair_and_copy() {
    let (folder, snapshot) = (folder(), large());
    assert!(snapshot.len() > 100 << 20);
    let dir = folder.path().join("orders-0");
    write(&dir, &snapshot);
    let log = Log::open(&dir, LogOptions::default()).unwrap();
    let listed = ProducerState::of_log(&log, 86_400_000).unwrap();
    assert_eq!(listed.len(), PRODUCERS as usize);
    // it is a valid snapshot of producers that the log does not have
    let verified = verify(std::slice::from_ref(&dir), &VerifyOptions::default(), |_| Ok(())).unwrap();
    let rules: Vec<_> = verified.findings.iter().map(|finding| finding.rule).collect();
    assert!(rules.contains(&Rule::SnapshotWrong) && !rules.contains(&Rule::SnapshotUnreadable), "{rules:?}");
    let rebuilt = rebuild(&dir, &RebuildOptions { dry_run: true, ..RebuildOptions::default() }).unwrap();
    let found = rebuilt.files.iter().find(|file| file.file.ends_with(file_name(1, "snapshot"))).unwrap();
    assert_eq!(found.state.code(), "differs");
    let plan = plan_repair(&dir, &RepairOptions::default()).unwrap();
    assert!(plan.actions.iter().all(|action| !action.file.ends_with(file_name(1, "snapshot"))), "{plan:#?}");
    let copied = folder.path().join("copied-0");
    copy(&dir, &copied, &CopyOptions::default(), &mut |_| Ok(())).unwrap();
    assert!(fs::read(copied.join(file_name(1, "snapshot"))).unwrap() == snapshot);
    let producers = LogWriter::open(&dir, &WriterOptions::default()).unwrap().producers();
    assert_eq!(producers.len(), PRODUCERS as usize);
}
