//! Which snapshots of producers are in the directory, and transactions that are found without them: the
//! behaviours of Kafka's `UnifiedLogTest`, `LogLoaderTest` and `ProducerStateManagerTest`, by their names
//! there.

use std::fs;

use cordwood::fs::names::{FileKind, segment_file};
use cordwood::record::NewRecord;

use super::producers::{Log, NOW, batch, out_of_order, transactional};
use crate::support::batches::{ABORT, BatchV2, COMMIT, Rec};

fn bases(log: &mut Log) -> Vec<i64> {
    let reader = log.writer().reader().unwrap();
    reader.segments().iter().map(|segment| segment.base_offset()).collect()
}

fn remove_snapshots(log: &Log, is_removed: impl Fn(i64) -> bool) {
    for offset in log.snapshots().into_iter().filter(|offset| is_removed(*offset)) {
        fs::remove_file(log.path().join(segment_file(offset, FileKind::Snapshot))).unwrap();
    }
}

/// Leaves only the files of Kafka, in a data directory with this recovery point, as after an unclean shutdown
/// of a broker.
fn crash_of_a_broker(log: &mut Log, recovery_point: i64) {
    log.writer = None;
    for name in log.files().into_keys() {
        if name.to_str().unwrap().starts_with(".cordwood") {
            fs::remove_file(log.path().join(name)).unwrap();
        }
    }
    let data = log.path().parent().unwrap().to_owned();
    fs::write(data.join("meta.properties"), "version=1\ncluster.id=c\nnode.id=1\n").unwrap();
    for name in [".kafka_cleanshutdown", "log-start-offset-checkpoint"] {
        let _ = fs::remove_file(data.join(name));
    }
    let line = format!("0\n1\norders 0 {recovery_point}\n");
    fs::write(data.join("recovery-point-offset-checkpoint"), line).unwrap();
}

/// A log of 101 records without producers in segments of 640 bytes.
fn without_producers() -> Log {
    let mut log = Log::new();
    log.options.config.segment_bytes = 640;
    log.reopen();
    for number in 0..101 {
        let value = number.to_string();
        let record = NewRecord { value: Some(value.as_bytes()), timestamp: NOW, ..NewRecord::default() };
        log.writer().append(&record).unwrap();
    }
    log
}

fn last(bases: &[i64], count: usize, end: i64) -> Vec<i64> {
    [&bases[bases.len() - count..], &[end]].concat()
}

/// `UnifiedLogTest.testInitializationOfProducerSnapshotsUpgradePath`.
#[test]
fn a_log_without_snapshots_gets_those_of_the_recovered_segments_and_of_the_last_two() {
    let mut log = without_producers();
    let bases = bases(&mut log);
    assert!(bases.len() > 5);
    log.close();
    remove_snapshots(&log, |_| true);
    log.open();
    assert_eq!(log.snapshots(), last(&bases, 2, 101));
    log.close();
    remove_snapshots(&log, |_| true);
    crash_of_a_broker(&mut log, 101);
    log.open();
    assert_eq!(log.snapshots(), last(&bases, 2, 101));
    log.close();
    remove_snapshots(&log, |_| true);
    crash_of_a_broker(&mut log, 0);
    log.open();
    assert_eq!(log.snapshots(), last(&bases, bases.len() - 1, 101));
}

/// `LogLoaderTest.testProducerSnapshotsRecoveryAfterUncleanShutdownCurrentMessageFormat`.
#[test]
fn a_recovery_takes_a_snapshot_at_each_segment_from_the_recovery_point_on() {
    let mut log = without_producers();
    let bases = bases(&mut log);
    let number = bases.len();
    log.close();
    // behind the recovery point, and the segments below it are read again
    remove_snapshots(&log, |offset| offset < bases[number - 2]);
    crash_of_a_broker(&mut log, bases[number - 4]);
    log.open();
    assert_eq!(log.snapshots(), last(&bases, 4, 101));
    log.close();
    remove_snapshots(&log, |offset| offset < bases[number - 4]);
    crash_of_a_broker(&mut log, bases[number - 4] + 1);
    log.open();
    assert_eq!(log.snapshots(), last(&bases, 4, 101));
}

/// `LogLoaderTest.testLoadingLogKeepsLargestStrayProducerStateSnapshot`,
/// `testRemoveStraySnapshotsKeepCleanShutdownSnapshot`, `testRemoveAllStraySnapshots`,
/// `UnifiedLogTest.testLoadingLogDeletesProducerStateSnapshotsPastLogEndOffset`.
#[test]
fn snapshots_that_belong_to_no_segment_are_removed_but_for_that_of_a_close() {
    let mut log = Log::new();
    let stray = |log: &Log, offset| {
        fs::write(log.path().join(segment_file(offset, FileKind::Snapshot)), "").unwrap();
    };
    log.close();
    stray(&log, 42);
    log.open();
    assert_eq!(log.snapshots(), [0; 0]);
    for sequence in 0..4 {
        log.lead(&batch(1, 0, sequence, 1)).unwrap();
        if sequence < 2 {
            log.writer().roll().unwrap();
        }
    }
    log.close();
    assert_eq!(log.snapshots(), [1, 2, 4]);
    for is_closed in [false, true] {
        stray(&log, 3);
        stray(&log, 42);
        log.open();
        assert_eq!(log.snapshots(), [1, 2, 4]);
        assert_eq!(out_of_order(log.lead(&batch(1, 0, 9, 1))), (4, 9));
        if is_closed {
            log.close();
        } else {
            log.writer = None;
        }
    }
}

/// `UnifiedLogTest.testProducerIdMapTruncateToWithNoSnapshots`.
#[test]
fn a_truncation_without_snapshots_reads_the_batches() {
    let mut log = Log::new();
    log.lead(&batch(1, 0, 0, 1)).unwrap();
    log.lead(&batch(1, 0, 1, 1)).unwrap();
    log.writer().roll().unwrap();
    log.lead(&batch(1, 0, 2, 1)).unwrap();
    remove_snapshots(&log, |_| true);
    log.writer().truncate_to(1).unwrap();
    assert_eq!(out_of_order(log.lead(&batch(1, 0, 9, 1))), (1, 9));
    assert_eq!(log.producers()[0].last_batch().unwrap().last_sequence, 0);
}

/// `UnifiedLogTest.testProducerSnapshotAfterSegmentRollOnAppend`.
#[test]
fn the_snapshot_of_a_roll_has_no_batch_of_the_append_that_caused_it() {
    let mut log = Log::new();
    log.options.config.segment_bytes = 1024;
    log.reopen();
    for sequence in 0..2 {
        let large = batch(1, 0, sequence, 0).record(Rec::at(NOW).value([0; 512]));
        log.lead(&large).unwrap();
    }
    assert_eq!((bases(&mut log), log.snapshots()), (vec![0, 1], vec![1]));
    let entry = log.snapshot(1).remove(0);
    let last = entry.last_batch().unwrap();
    assert_eq!((last.first_offset(), last.last_offset, last.last_sequence), (0, 0, 0));
    log.writer().truncate_to(1).unwrap();
    assert_eq!((bases(&mut log), log.snapshots()), (vec![0, 1], vec![1]));
    assert_eq!(out_of_order(log.lead(&batch(1, 0, 9, 1))), (1, 9));
}

/// `UnifiedLogTest.testRetentionDeletesProducerStateSnapshots`.
#[test]
fn retention_by_time_leaves_one_snapshot_whether_or_not_the_active_segment_is_empty() {
    for is_empty in [true, false] {
        let mut log = Log::new();
        log.options.config.retention_ms = 60_000;
        log.options.config.retention_bytes = 0;
        log.reopen();
        for sequence in 0..3 {
            log.lead(&batch(1, 0, sequence, 1)).unwrap();
            if sequence < 2 || is_empty {
                log.writer().roll().unwrap();
            }
        }
        assert_eq!(log.snapshots().len(), if is_empty { 3 } else { 2 });
        log.writer().apply_retention(Some(NOW + 60_001)).unwrap();
        assert_eq!((log.snapshots(), log.writer().log_start_offset()), (vec![3], 3));
        assert_eq!(out_of_order(log.lead(&batch(1, 0, 9, 1))), (3, 9));
    }
}

/// `testRemoveAndMarkSnapshotForDeletion`, `testRemoveAndMarkSnapshotForDeletionAlreadyDeleted`.
#[test]
fn a_snapshot_that_is_gone_does_not_hinder_the_deletion_of_its_segment() {
    let mut log = Log::new();
    for sequence in 0..3 {
        log.lead(&batch(1, 0, sequence, 1)).unwrap();
        log.writer().roll().unwrap();
    }
    remove_snapshots(&log, |offset| offset == 1);
    log.writer().delete_before(2).unwrap();
    assert_eq!((bases(&mut log), log.snapshots()), (vec![2, 3], vec![2, 3]));
}

/// The transactions of `UnifiedLogTest.testTransactionIndexUpdated`, in segments of 640 bytes.
fn transactions() -> Log {
    let mut log = Log::new();
    log.options.config.segment_bytes = 640;
    log.reopen();
    let mut sequences = [0; 5];
    let mut send = |log: &mut Log, producer: usize, count: i32| {
        log.lead(&transactional(producer as i64, 0, sequences[producer], count as usize)).unwrap();
        sequences[producer] += count;
    };
    let plain = |log: &mut Log, count: usize| (0..count).for_each(|_| log.plain());
    send(&mut log, 1, 5);
    plain(&mut log, 3);
    send(&mut log, 2, 2);
    send(&mut log, 1, 4);
    send(&mut log, 3, 3);
    plain(&mut log, 2);
    send(&mut log, 1, 10);
    log.mark(ABORT, 1, 0);
    assert_eq!((log.writer().log_end_offset(), log.writer().last_stable_offset()), (30, 8));
    send(&mut log, 2, 6);
    send(&mut log, 4, 3);
    plain(&mut log, 10);
    send(&mut log, 3, 9);
    log.mark(COMMIT, 3, 0);
    send(&mut log, 4, 8);
    send(&mut log, 2, 7);
    log.mark(ABORT, 2, 0);
    assert_eq!((log.writer().log_end_offset(), log.writer().last_stable_offset()), (75, 36));
    plain(&mut log, 10);
    send(&mut log, 4, 4);
    log.mark(COMMIT, 4, 0);
    assert_eq!((log.writer().log_end_offset(), log.writer().last_stable_offset()), (90, 90));
    log
}

/// The entries of all transaction indexes.
fn aborted(log: &Log) -> Vec<(i64, i64, i64, i64)> {
    let index = |base: &i64| log.path().join(segment_file(*base, FileKind::TransactionIndex)).exists();
    let bases: Vec<_> = bases_on_disk(log).into_iter().filter(index).collect();
    bases.into_iter().flat_map(|base| log.aborted(base)).collect()
}

fn bases_on_disk(log: &Log) -> Vec<i64> {
    let names = log.files().into_keys();
    let logs = names.filter_map(|name| name.to_str()?.strip_suffix(".log")?.parse().ok());
    logs.collect()
}

/// `UnifiedLogTest.testTransactionIndexUpdated`, `LogLoaderTest.testFullTransactionIndexRecovery`,
/// `testRecoverOnlyLastSegment`, `testRecoverLastSegmentWithNoSnapshots`.
#[test]
fn aborted_transactions_over_several_segments_are_found_again_without_their_indexes() {
    const EXPECTED: [(i64, i64, i64, i64); 2] = [(1, 0, 29, 8), (2, 8, 74, 36)];
    for (only_last, has_snapshots) in [(false, true), (true, true), (true, false)] {
        let mut log = transactions();
        assert_eq!(aborted(&log), EXPECTED);
        let bases = bases(&mut log);
        assert!(bases.len() > 3, "{bases:?}");
        log.writer = None;
        if !has_snapshots {
            remove_snapshots(&log, |_| true);
        }
        let active = *bases.last().unwrap();
        for base in bases.into_iter().filter(|base| !only_last || *base == active) {
            for kind in [FileKind::OffsetIndex, FileKind::TransactionIndex] {
                let _ = fs::remove_file(log.path().join(segment_file(base, kind)));
            }
        }
        crash_of_a_broker(&mut log, if only_last { active } else { 0 });
        log.options.config.segment_bytes = 5 * 1024;
        log.open();
        assert_eq!(aborted(&log), EXPECTED, "{only_last} {has_snapshots}");
        assert_eq!(log.writer().last_stable_offset(), 90);
    }
}

/// `UnifiedLogTest.testAbortedTransactionSpanningMultipleSegments`.
#[test]
fn an_aborted_transaction_is_in_the_index_of_its_marker_and_counts_for_earlier_segments() {
    let mut log = Log::new();
    let first = transactional(137, 5, 0, 3);
    log.options.config.segment_bytes = u32::try_from(first.build().bytes.len()).unwrap();
    log.reopen();
    log.lead(&first).unwrap();
    log.lead(&transactional(137, 5, 3, 3)).unwrap();
    assert_eq!((bases(&mut log), log.writer().last_stable_offset()), (vec![0, 3], 0));
    log.follow(&[BatchV2::marker(6, ABORT, 137, 5, NOW)]).unwrap();
    assert_eq!((aborted(&log), log.writer().last_stable_offset()), (vec![(137, 0, 6, 7)], 7));
    log.writer().flush().unwrap();
    let seen = crate::support::reading::committed(
        &crate::support::reading::open(&log.path(), cordwood::types::Io::Pread),
        cordwood::log::OnDamage::Raise,
    );
    assert_eq!(seen.whole().offsets(), [0; 0]);
}
