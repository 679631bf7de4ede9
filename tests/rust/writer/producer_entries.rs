//! What a log knows of a producer: the behaviours of Kafka's `ProducerStateManagerTest`, and of
//! `UnifiedLogTest` and `LogLoaderTest` on producers, by their names there.

use std::fs;

use cordwood::Error;
use cordwood::fs::names::{FileKind, segment_file};
use cordwood::log::{LogOptions, ScanOptions, ScanStep};
use cordwood::state::producers::ProducerEntry;

use super::producers::{Log, NOW, at, batch, out_of_order, transactional};
use crate::support::batches::{ABORT, BatchV2, COMMIT, Rec};

const DAY_MS: i64 = 86_400_000;

/// A marker of a coordinator.
fn marker(
    offset: i64,
    kind: i16,
    (id, epoch): (i64, i16),
    coordinator_epoch: i32,
    timestamp: i64,
) -> BatchV2 {
    let value = [&0i16.to_be_bytes()[..], &coordinator_epoch.to_be_bytes()].concat();
    BatchV2::marker(offset, kind, id, epoch, timestamp).control(kind, timestamp, value)
}

/// Last sequence, open transaction, epoch of the coordinator.
fn fields(entry: &ProducerEntry) -> (Option<i32>, Option<i64>, i32) {
    let last = entry.last_batch().map(|batch| batch.last_sequence);
    (last, entry.open_transaction, entry.coordinator_epoch)
}

/// `UnifiedLogTest.testActiveProducers`, `testRecoverFromSnapshotUnfinishedTransaction`,
/// `testRecoverFromSnapshotFinishedTransaction`.
#[test]
fn a_marker_ends_the_transaction_of_a_producer_and_leaves_its_last_batch() {
    let mut log = Log::new();
    log.lead(&transactional(1, 5, 0, 1)).unwrap();
    log.lead(&transactional(1, 5, 1, 4)).unwrap();
    log.writer().roll().unwrap();
    let entry = &log.snapshot(5)[0];
    assert_eq!((entry.producer_epoch, fields(entry)), (5, (Some(4), Some(0), -1)));
    log.follow(&[marker(5, COMMIT, (1, 5), 15, NOW)]).unwrap();
    log.lead(&batch(2, 7, 0, 3)).unwrap();
    let producers = log.producers();
    assert_eq!(fields(&producers[0]), (Some(4), None, 15));
    let last = producers[0].last_batch().unwrap();
    // of several batches, the last
    assert_eq!((last.first_sequence(), last.first_offset(), last.last_offset), (1, 1, 4));
    assert_eq!((producers[1].producer_epoch, fields(&producers[1])), (7, (Some(2), None, -1)));
    // after the opening as before
    assert_eq!(log.writer().last_stable_offset(), 9);
    assert_eq!(log.offsets(&transactional(1, 5, 5, 1)), (9, 9));
}

/// `testProducerStateAfterFencingAbortMarker`, `testOutOfSequenceAfterControlRecordEpochBump`,
/// `testRecoverFromSnapshotEmptyTransaction`.
#[test]
fn after_a_marker_with_a_higher_epoch_only_that_epoch_is_known_and_sequences_begin_at_0() {
    let mut log = Log::new();
    log.lead(&transactional(1, 0, 0, 1)).unwrap();
    log.lead(&transactional(1, 0, 1, 1)).unwrap();
    log.mark(ABORT, 1, 1);
    let entry = &log.producers()[0];
    assert_eq!((entry.producer_epoch, entry.last_timestamp, fields(entry)), (1, NOW, (None, None, 0)));
    for epoch in [1, 2] {
        assert_eq!(out_of_order(log.lead(&transactional(1, epoch, 2, 1))), (0, 2));
    }
    assert!(matches!(log.lead(&transactional(1, 0, 2, 1)), Err(Error::InvalidProducerEpoch { .. })));
    assert_eq!(log.offsets(&transactional(1, 1, 0, 1)), (3, 3));
    assert_eq!(fields(&log.producers()[0]), (Some(0), Some(3), 0));
}

/// `testCoordinatorFencing`, `testCoordinatorFencedAfterReload`, `testOldEpochForControlRecord`,
/// `UnifiedLogTest.testZombieCoordinatorFenced`, `testZombieCoordinatorFencedEmptyTransaction`,
/// `testEndTxnWithFencedProducerEpoch`, `LogLoaderTest.testRecoverAfterNonMonotonicCoordinatorEpochWrite`: a
/// leader checks the markers of coordinators. This writer gets markers from a leader only, as a follower in
/// Kafka, where the last one counts.
#[test]
fn markers_are_taken_from_a_leader_whatever_their_epochs_and_from_no_client() {
    let mut log = Log::new();
    log.follow(&[marker(0, ABORT, (1, 3), 5, NOW)]).unwrap();
    let refused = log.lead(&marker(1, COMMIT, (1, 3), 6, NOW));
    assert!(matches!(refused, Err(Error::InvalidRecord { .. })), "{refused:?}");
    let later = NOW + DAY_MS;
    log.follow(&[marker(1, ABORT, (1, 2), 4, later)]).unwrap();
    for crashes in [true, false] {
        if crashes {
            log.crash();
        }
        let entry = &log.producers()[0];
        assert_eq!((entry.producer_epoch, entry.coordinator_epoch), (2, 4));
        assert_eq!(entry.last_timestamp, later);
    }
}

/// `testSequenceNotValidatedForGroupMetadataTopic`.
#[test]
fn batches_of_a_group_coordinator_have_no_sequence() {
    let mut log = Log::new();
    log.follow(&[at(0, transactional(1, 0, -1, 1)), at(1, transactional(1, 0, -1, 1))]).unwrap();
    log.mark(COMMIT, 1, 0);
    log.crash();
    assert_eq!(log.writer().last_stable_offset(), 3);
    assert_eq!(fields(&log.producers()[0]), (Some(-1), None, 0));
    // not from a client
    let refused = log.lead(&transactional(1, 0, -1, 1));
    assert!(matches!(refused, Err(Error::InvalidRecord { .. })), "{refused:?}");
}

/// `testAcceptAppendWithoutProducerStateOnReplica`, `testAcceptAppendWithSequenceGapsOnReplica`,
/// `testNoValidationOnFirstEntryWhenLoadingLog`.
#[test]
fn a_follower_takes_sequences_that_a_leader_refuses() {
    let mut log = Log::new();
    let old = BatchV2 { records: vec![Rec::at(NOW - DAY_MS)], ..batch(1, 0, 0, 0) };
    log.lead(&old).unwrap();
    log.reopen();
    // expired
    log.follow(&[at(1, batch(1, 0, 2, 1))]).unwrap();
    assert_eq!(fields(&log.producers()[0]), (Some(2), None, -1));
    assert_eq!(out_of_order(log.lead(&batch(1, 0, 6, 1))), (3, 6));
    assert_eq!(log.writer().log_end_offset(), 2);
    log.follow(&[at(2, batch(1, 0, 6, 1))]).unwrap();
    assert_eq!(log.offsets(&batch(1, 0, 7, 1)), (3, 3));
    log.crash();
    assert_eq!(fields(&log.producers()[0]), (Some(7), None, -1));
}

/// `UnifiedLogTest.testMultipleProducersWithDuplicatesInSingleAppend`, `testDuplicateAppendToFollower`,
/// `testMultipleProducerIdsPerMemoryRecord`.
#[test]
fn one_append_of_a_follower_has_batches_of_several_producers_and_duplicates() {
    let mut log = Log::new();
    let sent = [(1, 0), (2, 0), (1, 1), (2, 1), (1, 1)];
    let batches: Vec<_> = sent
        .iter()
        .zip(0..)
        .map(|((producer, sequence), offset)| at(offset, batch(*producer, 0, *sequence, 1)))
        .collect();
    log.follow(&batches).unwrap();
    assert_eq!(log.writer().log_end_offset(), 5);
    log.writer().flush().unwrap();
    let reader = cordwood::Log::open(log.path(), LogOptions::default()).unwrap();
    let mut scan = reader.scan(ScanOptions { batches_only: true, ..ScanOptions::default() }).unwrap();
    let mut found = Vec::new();
    while let Some(ScanStep::Batch(batch)) = scan.next_step().unwrap() {
        found.push((batch.header.producer_id, batch.header.base_sequence));
    }
    assert_eq!(found, sent);
}

/// `testLastStableOffsetCompletedTxn`.
#[test]
fn the_last_stable_offset_of_an_aborted_transaction_is_that_of_the_oldest_other_one() {
    let mut log = Log::new();
    for producer in 1..4 {
        log.lead(&transactional(producer, 0, 0, 1)).unwrap();
        log.plain();
    }
    for (producer, stable) in [(1, 2), (3, 2), (2, 9)] {
        log.mark(ABORT, producer, 0);
        assert_eq!(log.writer().last_stable_offset(), stable);
    }
    assert_eq!(log.aborted(0), [(1, 0, 6, 2), (3, 4, 7, 2), (2, 2, 8, 9)]);
}

/// `testSkipEmptyTransactions`.
#[test]
fn one_append_ends_and_begins_transactions_and_has_empty_ones() {
    let mut log = Log::new();
    log.lead(&transactional(1, 0, 0, 5)).unwrap();
    assert_eq!(log.writer().last_stable_offset(), 0);
    let end = |offset, kind| BatchV2::marker(offset, kind, 1, 0, NOW);
    log.follow(&[
        end(5, COMMIT),
        end(6, COMMIT),
        end(7, ABORT),
        at(8, transactional(1, 0, 5, 4)),
        end(12, ABORT),
        end(13, ABORT),
        at(14, transactional(1, 0, 9, 2)),
    ])
    .unwrap();
    assert_eq!((log.writer().last_stable_offset(), log.aborted(0)), (14, vec![(1, 8, 12, 13)]));
    log.crash();
    assert_eq!((log.writer().last_stable_offset(), log.aborted(0)), (14, vec![(1, 8, 12, 13)]));
}

/// `UnifiedLogTest.testTruncateBelowFirstUnstableOffset`,
/// `testTruncateFullyAndStartBelowFirstUnstableOffset`, `testTruncateFullyAndStart`.
#[test]
fn a_truncation_below_a_transaction_that_was_open_at_the_opening_leaves_no_producer() {
    for restarts in [false, true] {
        let mut log = Log::new();
        (0..3).for_each(|_| log.plain());
        log.lead(&transactional(17, 10, 0, 2)).unwrap();
        log.reopen();
        assert_eq!(log.writer().last_stable_offset(), 3);
        let end = if restarts { 2 } else { 0 };
        if restarts {
            log.writer().truncate_fully_and_start_at(end).unwrap();
        } else {
            log.writer().truncate_to(end).unwrap();
        }
        let writer = log.writer();
        assert_eq!(
            (writer.log_start_offset(), writer.log_end_offset(), writer.last_stable_offset()),
            (end, end, end)
        );
        log.plain();
        assert_eq!(log.ids(), [0; 0]);
    }
}

/// `UnifiedLogTest.testRebuildTransactionalState`.
#[test]
fn an_aborted_transaction_is_not_open_after_a_crash() {
    let mut log = Log::new();
    log.lead(&transactional(137, 5, 0, 3)).unwrap();
    log.mark(ABORT, 137, 5);
    for _ in 0..2 {
        assert_eq!((log.writer().last_stable_offset(), log.aborted(0)), (4, vec![(137, 0, 3, 4)]));
        log.crash();
    }
}

/// `UnifiedLogTest.testRebuildProducerIdMapWithCompactedData`,
/// `testRebuildProducerStateWithEmptyCompactedBatch`, `testUpdateProducerIdMapWithCompactedData`.
#[test]
fn sequences_are_those_of_the_batch_although_compaction_has_removed_records() {
    let sparse = batch(1, 0, 0, 0).records([Rec::at(NOW), Rec::at(NOW).delta(2)]).last_offset_delta(3);
    let empty = BatchV2::empty(23, 1, NOW).producer(1, 0, 0);
    for (compacted, last_sequence) in [(at(23, sparse), 3), (empty, 1)] {
        let mut log = Log::new();
        log.follow(&[compacted]).unwrap();
        let end = log.writer().log_end_offset();
        assert_eq!(end, 24 + i64::from(last_sequence));
        let expected = (last_sequence + 1, 9);
        assert_eq!(out_of_order(log.lead(&batch(1, 0, 9, 1))), expected);
        log.plain();
        log.plain();
        log.writer().truncate_to(end).unwrap();
        assert_eq!(out_of_order(log.lead(&batch(1, 0, 9, 1))), expected);
        assert_eq!(log.producers()[0].last_batch().unwrap().last_sequence, last_sequence);
    }
}

/// `UnifiedLogTest.testAppendToTransactionIndexFailure`. Kafka writes the marker to the log before the entry;
/// here the entry is first, and without it the marker is not written.
#[test]
fn a_marker_whose_entry_cannot_be_written_is_not_in_the_log() {
    let mut log = Log::new();
    log.lead(&transactional(1, 0, 0, 10)).unwrap();
    let index = log.path().join(segment_file(0, FileKind::TransactionIndex));
    fs::create_dir(&index).unwrap();
    let abort = BatchV2::marker(10, ABORT, 1, 0, NOW);
    for _ in 0..2 {
        let failed = log.follow(std::slice::from_ref(&abort));
        assert!(matches!(failed, Err(Error::Io { .. } | Error::Poisoned { .. })), "{failed:?}");
        assert_eq!((log.writer().log_end_offset(), log.writer().last_stable_offset()), (10, 0));
    }
    log.writer = None;
    fs::remove_dir(&index).unwrap();
    log.open();
    assert_eq!((log.writer().log_end_offset(), log.writer().last_stable_offset()), (10, 0));
    log.follow(&[abort]).unwrap();
    assert_eq!((log.writer().last_stable_offset(), log.aborted(0)), (11, vec![(1, 0, 10, 11)]));
}
