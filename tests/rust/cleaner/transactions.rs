//! Transactions and producers in compacted logs: the behaviours of Kafka's `LogCleanerTest`, by their names
//! there.

use cordwood::Error;
use cordwood::fs::names::{FileKind, SegmentFileName};

use super::case::{ALL, Case, NOW, RETENTION_MS, keyed, memory_for};
use crate::support::batches::{ABORT, BatchV2, COMMIT, Rec};

/// Later than any delete horizon.
const FAR: i64 = 2 * NOW;

fn log() -> Case {
    Case::in_data_directory(|_| ())
}

/// `testMultiPassSegmentCleaningWithAbortedTransactions`.
#[test]
fn several_passes_over_one_segment_keep_what_is_known_of_aborted_transactions() {
    let mut case = log();
    case.send(1, &[1, 2]);
    case.send(2, &[2, 3]);
    case.send(1, &[3, 4]);
    case.end(COMMIT, 1);
    case.end(COMMIT, 2);
    case.send(1, &[2, 3]);
    case.end(ABORT, 1);
    case.send(2, &[4, 5]);
    case.send(1, &[5, 6]);
    case.end(COMMIT, 1);
    case.end(ABORT, 2);
    case.send(2, &[6, 7]);
    case.end(COMMIT, 2);
    case.roll();
    assert_eq!(case.writer.log_end_offset(), 20);
    let aborted = vec![(1, 8, 10), (2, 11, 16)];
    assert_eq!(case.aborted(), aborted);
    // the records of the aborted transactions go at once, although their keys are not in the map yet
    assert_eq!(case.compact_at(NOW, memory_for(3)).end_offset, 4);
    assert_eq!(case.base_offsets(), [0, 2, 4, 6, 7, 10, 13, 15, 16, 17, 19]);
    assert_eq!(case.offsets_in_log(), [0, 2, 3, 4, 5, 6, 7, 10, 13, 14, 15, 16, 17, 18, 19]);
    assert_eq!(case.aborted(), aborted);
    // the markers remain, and are of no use to a reader any more
    assert_eq!(case.compact_at(NOW, memory_for(3)).end_offset, 14);
    assert_eq!(case.base_offsets(), [0, 2, 4, 6, 7, 10, 13, 15, 16, 17, 19]);
    assert_eq!(case.offsets_in_log(), [0, 2, 4, 5, 6, 7, 10, 13, 14, 15, 16, 17, 18, 19]);
    assert_eq!(case.aborted(), []);
    assert_eq!(case.compact_at(NOW + RETENTION_MS, memory_for(3)).end_offset, 20);
    assert_eq!(case.base_offsets(), [0, 2, 4, 6, 7, 13, 15, 17, 19]);
    assert_eq!(case.offsets_in_log(), [0, 2, 4, 5, 6, 7, 13, 15, 17, 18, 19]);
    assert_eq!(case.aborted(), []);
    assert_eq!((case.writer.last_stable_offset(), case.log().last_stable_offset().unwrap()), (20, 20));
}

/// `testBasicTransactionAwareCleaning`.
#[test]
fn an_aborted_record_does_not_replace_a_committed_one() {
    let mut case = log();
    case.send(1, &[1, 2]);
    case.send(2, &[2, 3]);
    case.send(1, &[3, 4]);
    case.end(ABORT, 1);
    case.end(COMMIT, 2);
    case.send(1, &[2]);
    case.end(COMMIT, 1);
    case.roll();
    case.compact();
    assert_eq!((case.keys_in_log(), case.offsets_in_log()), (vec![3, 2], vec![3, 6, 7, 8, 9]));
    assert_eq!(case.aborted(), [(1, 0, 6)]);
}

/// `testCleanWithTransactionsSpanningSegments`.
#[test]
fn transactions_whose_markers_are_in_the_active_segment_are_known() {
    let mut case = log();
    case.send(1, &[1, 2]);
    case.send(3, &[2, 3]);
    case.send(2, &[3, 4]);
    case.roll();
    case.send(2, &[5, 6]);
    case.send(3, &[6, 7]);
    case.send(1, &[7, 8]);
    case.end(ABORT, 2);
    case.send(3, &[8, 9]);
    case.end(COMMIT, 3);
    case.send(1, &[9, 10]);
    case.end(ABORT, 1);
    // only the first segment is cleaned
    case.compact();
    assert_eq!(case.keys_in_log(), [2, 3, 5, 6, 6, 7, 7, 8, 8, 9, 9, 10]);
    case.roll();
    case.send(2, &[11]);
    case.send(1, &[12]);
    case.compact();
    assert_eq!(case.keys_in_log(), [2, 3, 6, 7, 8, 9, 11, 12]);
}

/// `testDeletedBatchesWithNoMessagesRead`.
#[test]
fn a_segment_that_begins_with_removed_batches_is_cleaned_to_its_end() {
    let mut case = log();
    case.send(1, &[1]);
    case.end(ABORT, 1);
    case.send(1, &[2]);
    case.send(1, &[2]);
    case.end(COMMIT, 1);
    case.roll();
    case.compact();
    assert_eq!((case.keys_in_log(), case.offsets_in_log()), (vec![2], vec![1, 3, 4]));
    case.compact_twice();
    assert_eq!((case.keys_in_log(), case.offsets_in_log()), (vec![2], vec![3, 4]));
}

/// `testCommitMarkerRetentionWithEmptyBatch`.
#[test]
fn a_commit_marker_remains_while_an_empty_batch_of_its_transaction_does() {
    let mut case = log();
    case.send(1, &[2, 3]);
    case.roll();
    case.send(2, &[2, 3]);
    case.end(COMMIT, 2);
    case.roll();
    case.keys(&[2]);
    case.keys(&[3]);
    case.end(COMMIT, 1);
    case.roll();
    // the batches of both producers hold their last sequences
    for _ in 0..2 {
        case.compact_from(0, NOW, ALL);
        assert_eq!((case.keys_in_log(), case.offsets_in_log()), (vec![2, 3], vec![4, 5, 6, 7]));
        assert_eq!(case.last_offsets(), [1, 3, 4, 5, 6, 7]);
        assert_eq!(case.last_sequences(), [(1, 1), (2, 1)]);
    }
    case.send(2, &[1]);
    case.end(COMMIT, 2);
    case.roll();
    case.compact();
    assert_eq!((case.keys_in_log(), case.offsets_in_log()), (vec![2, 3, 1], vec![4, 5, 6, 7, 8, 9]));
    assert_eq!(case.last_offsets(), [1, 4, 5, 6, 7, 8, 9]);
    case.compact_twice();
    assert_eq!((case.keys_in_log(), case.offsets_in_log()), (vec![2, 3, 1], vec![5, 6, 7, 8, 9]));
    assert_eq!(case.last_offsets(), [1, 5, 6, 7, 8, 9]);
}

/// `testCleanEmptyControlBatch`.
#[test]
fn a_marker_that_is_all_of_its_producer_becomes_an_empty_batch() {
    let mut case = log();
    case.put(&BatchV2::marker(0, COMMIT, 1, 2, NOW));
    case.keys(&[2]);
    case.keys(&[3]);
    case.roll();
    case.compact_twice();
    for _ in 0..2 {
        assert_eq!((case.keys_in_log(), case.offsets_in_log()), (vec![2, 3], vec![1, 2]));
        assert_eq!((case.last_offsets(), case.markers()), (vec![0, 1, 2], vec![0]));
        case.compact_from(0, FAR, ALL);
    }
    assert_eq!(case.last_offsets(), [0, 1, 2]);
    // the epoch is known from it
    case.reopen();
    let old = case.batch().producer(1, 1, 0).records(keyed(&[2]));
    let refused = case.writer.append_batches(&old.build().bytes, false);
    assert!(matches!(refused, Err(Error::InvalidProducerEpoch { expected: 2, found: 1, .. })), "{refused:?}");
}

/// `testCommittedTransactionSpanningSegments`.
#[test]
fn a_committed_transaction_and_its_marker_in_another_segment_remain() {
    let mut case = log();
    case.send(1, &[1]);
    case.roll();
    case.end(COMMIT, 1);
    case.roll();
    case.compact_twice();
    assert_eq!((case.offsets_in_log(), case.last_offsets()), (vec![0, 1], vec![0, 1]));
}

/// `testAbortedTransactionSpanningSegments`.
#[test]
fn an_aborted_batch_that_is_the_last_of_its_producer_remains_without_its_records_and_keeps_the_marker() {
    let mut case = log();
    case.send(1, &[1]);
    case.roll();
    case.end(ABORT, 1);
    case.roll();
    for now in [NOW, FAR] {
        case.compact_from(0, now, ALL);
        assert_eq!((case.offsets_in_log(), case.last_offsets()), (vec![1], vec![0, 1]));
        assert_eq!(case.aborted(), [(1, 0, 1)]);
    }
}

/// `testAbortMarkerRemoval`.
#[test]
fn an_abort_marker_is_removed_in_the_second_pass_after_its_records() {
    let mut case = log();
    case.send(1, &[1]);
    case.send(1, &[2, 3]);
    case.end(ABORT, 1);
    case.send(1, &[3]);
    case.end(COMMIT, 1);
    case.roll();
    case.compact();
    assert_eq!((case.keys_in_log(), case.offsets_in_log()), (vec![3], vec![3, 4, 5]));
    case.compact_twice();
    assert_eq!((case.keys_in_log(), case.offsets_in_log()), (vec![3], vec![4, 5]));
}

/// `testEmptyBatchRemovalWithSequenceReuse`.
#[test]
fn of_batches_with_one_sequence_only_the_last_remains_empty() {
    let mut case = log();
    // a group coordinator begins each batch with sequence 0
    for key in [1, 2] {
        case.in_transaction(1, 0, &[key]);
        case.end(COMMIT, 1);
    }
    case.keys(&[1]);
    case.keys(&[2]);
    case.roll();
    case.compact();
    assert_eq!((case.offsets_in_log(), case.last_offsets()), (vec![1, 3, 4, 5], vec![1, 2, 3, 4, 5]));
    case.compact_twice();
    assert_eq!((case.offsets_in_log(), case.last_offsets()), (vec![3, 4, 5], vec![2, 3, 4, 5]));
}

/// `testLogCleanerRetainsLastSequenceEvenIfTransactionAborted`.
#[test]
fn the_last_sequence_of_an_aborted_transaction_remains_until_the_producer_continues() {
    let mut case = log();
    case.send(1, &[1]);
    case.send(1, &[2, 3]);
    case.end(ABORT, 1);
    case.roll();
    case.compact();
    assert_eq!((case.last_offsets(), case.last_sequences()), (vec![2, 3], vec![(1, 2)]));
    assert_eq!((case.keys_in_log(), case.offsets_in_log()), (vec![], vec![3]));
    case.send(1, &[1, 5]);
    case.roll();
    case.compact_from(0, NOW, ALL);
    assert_eq!((case.last_offsets(), case.last_sequences()), (vec![3, 5], vec![(1, 4)]));
    assert_eq!((case.keys_in_log(), case.offsets_in_log()), (vec![1, 5], vec![3, 4, 5]));
}

/// `testLogCleanerRetainsProducerLastSequence`.
#[test]
fn the_last_batch_of_each_producer_remains() {
    let mut case = log();
    case.keys(&[0]);
    for producer in 1..4 {
        case.put(&case.batch().producer(producer, 0, 0).records(keyed(&[0])));
    }
    case.put(&case.batch().producer(2, 0, 1).records(keyed(&[1])));
    case.roll();
    case.compact();
    assert_eq!((case.last_offsets(), case.last_sequences()), (vec![1, 3, 4], vec![(1, 0), (2, 1), (3, 0)]));
    assert_eq!((case.keys_in_log(), case.offsets_in_log()), (vec![0, 1], vec![3, 4]));
}

/// `testDuplicateCheckAfterCleaning`.
#[test]
fn duplicates_of_cleaned_batches_are_answered_with_their_offsets() {
    let mut case = log();
    let all: [(i64, &[i64]); 3] = [(1, &[1, 2, 3]), (2, &[3, 1, 4]), (3, &[1, 4])];
    let send = |case: &mut Case, (producer, keys): (i64, &[i64])| {
        let batch = BatchV2::new(0).producer(producer, 0, 0).records(keyed(keys));
        let appended = case.writer.append_batches(&batch.build().bytes, false).unwrap();
        (appended.first_offset, appended.last_offset, appended.is_duplicate)
    };
    for one in all {
        assert!(!send(&mut case, one).2);
    }
    case.roll();
    case.compact();
    assert_eq!((case.last_offsets(), case.keys_in_log()), (vec![2, 5, 7], vec![2, 3, 1, 4]));
    assert_eq!(case.last_sequences(), [(1, 2), (2, 2), (3, 1)]);
    assert_eq!(case.offsets_in_log(), [1, 3, 6, 7]);
    case.reopen();
    for (one, offsets) in all.into_iter().zip([(0, 2, true), (3, 5, true), (6, 7, true)]) {
        assert_eq!(send(&mut case, one), offsets);
    }
    // removes another record of the first batch
    send(&mut case, (4, &[2]));
    case.roll();
    case.compact_from(0, NOW, ALL);
    assert_eq!((case.last_offsets(), case.keys_in_log()), (vec![2, 5, 7, 8], vec![3, 1, 4, 2]));
    assert_eq!(case.last_sequences(), [(1, 2), (2, 2), (3, 1), (4, 0)]);
    assert_eq!(case.offsets_in_log(), [3, 6, 7, 8]);
    case.reopen();
    assert_eq!(send(&mut case, all[0]), (0, 2, true));
}

/// `testCleaningWithKeysConflictingWithTxnMarkerKeys`.
#[test]
fn a_record_with_the_key_of_a_marker_does_not_replace_the_marker() {
    let mut case = log();
    case.send(1, &[1]);
    case.end(COMMIT, 1);
    let record = Rec::at(NOW).key([0, 0, 0, 1]).value("foo");
    case.put(&case.batch().transaction(2, 0, 0).record(record));
    case.end(COMMIT, 2);
    case.roll();
    case.compact();
    assert_eq!((case.last_offsets(), case.offsets_in_log()), (vec![0, 1, 2, 3], vec![0, 1, 2, 3]));
}

/// `UnifiedLogTest.testCompactionDeletesProducerStateSnapshots`.
#[test]
fn the_snapshots_of_replaced_segments_are_removed() {
    let snapshots = |case: &Case| {
        let names = std::fs::read_dir(case.path()).unwrap().map(|entry| entry.unwrap().file_name());
        let parsed = names.filter_map(|name| SegmentFileName::parse(name.to_str().unwrap()));
        let mut offsets: Vec<_> = parsed
            .filter(|parsed| parsed.kind == FileKind::Snapshot)
            .map(|parsed| parsed.base_offset)
            .collect();
        offsets.sort_unstable();
        offsets
    };
    let mut case = log();
    for sequence in 0..3 {
        if sequence > 0 {
            case.roll();
        }
        case.put(&case.batch().producer(1, 0, sequence).records(keyed(&[1])));
    }
    assert_eq!((case.segments(), snapshots(&case)), (vec![0, 1, 2], vec![1, 2]));
    case.compact();
    assert_eq!((case.segments(), snapshots(&case)), (vec![0, 2], vec![2]));
}
