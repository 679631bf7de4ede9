//! Logs that a writer has truncated inside a batch: they end at their last batch, below the offset to which
//! they were truncated.

use std::fs;

use cordwood::inspect::verify::{Rule, Severity};
use cordwood::record::NewRecord;
use cordwood::types::Io;
use cordwood::writer::{FlushMode, LogWriter, WriterOptions};

use super::{options, verified};
use crate::support::batches::{BatchV2, Rec};
use crate::support::reading::folder;

const NOW: i64 = 1_700_000_000_000;

/// A log of five records in a data directory, which was truncated to offset 8 inside the batch after them.
fn truncated(parent: &std::path::Path) -> LogWriter {
    fs::write(parent.join("meta.properties"), "version=1\ncluster.id=c\nnode.id=1\n").unwrap();
    fs::write(parent.join("recovery-point-offset-checkpoint"), "0\n0\n").unwrap();
    let options = WriterOptions { flush: FlushMode::None, clock: || NOW, ..WriterOptions::default() };
    let mut writer = LogWriter::open(parent.join("orders-0"), &options).unwrap();
    let batch = BatchV2::new(0).producer(7, 0, 0).records((0..5).map(|_| Rec::at(NOW)));
    writer.append_batches(&batch.build().bytes, false).unwrap();
    writer.append_many(&[NewRecord { timestamp: NOW, ..NewRecord::default() }; 5]).unwrap();
    assert!(writer.truncate_to(8).unwrap());
    assert_eq!(writer.log_end_offset(), 8);
    writer
}

#[test]
fn nothing_is_found_before_and_after_it_was_closed_and_opened_again() {
    let parent = folder();
    let path = parent.path().join("orders-0");
    let assert_intact = |when: &str| {
        let found = verified(&path, &options(Io::Pread)).findings;
        assert_eq!(found, [], "{when}");
    };
    let mut writer = truncated(parent.path());
    assert_intact("open");
    writer.close().unwrap();
    assert_intact("closed");
    let recovery_points = parent.path().join("recovery-point-offset-checkpoint");
    assert_eq!(fs::read_to_string(recovery_points).unwrap(), "0\n1\norders 0 5\n");
    let mut writer = LogWriter::open(&path, &WriterOptions::default()).unwrap();
    assert_eq!((writer.log_end_offset(), writer.recovery()), (5, None));
    assert_intact("opened again");
    writer.close().unwrap();
    assert_intact("closed again");
}

#[test]
fn nothing_is_found_after_a_crash() {
    let parent = folder();
    drop(truncated(parent.path()));
    assert_eq!(verified(&parent.path().join("orders-0"), &options(Io::Pread)).findings, []);
}

#[test]
fn nothing_is_found_if_the_log_also_starts_above_its_last_batch() {
    let parent = folder();
    let mut writer = truncated(parent.path());
    writer.delete_before(7).unwrap();
    writer.close().unwrap();
    assert_eq!(verified(&parent.path().join("orders-0"), &options(Io::Pread)).findings, []);
}

#[test]
fn the_snapshot_of_a_log_that_lost_its_end_is_still_found() {
    let parent = folder();
    let path = parent.path().join("orders-0");
    truncated(parent.path()).close().unwrap();
    let log = path.join("00000000000000000000.log");
    fs::File::options().write(true).open(log).unwrap().set_len(0).unwrap();
    let found = verified(&path, &options(Io::Pread)).findings;
    let snapshot = found.iter().find(|finding| finding.rule == Rule::SnapshotBeyondEnd).unwrap();
    assert_eq!(snapshot.severity, Severity::Error);
}
