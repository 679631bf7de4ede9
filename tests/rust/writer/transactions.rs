//! The transactions of a writer: markers, the last stable offset, fencing, and what a crash and a close leave
//! open.

use std::fs;

use cordwood::config::{CompressionType, LogConfig};
use cordwood::fs::names::{FileKind, SegmentFileName};
use cordwood::log::OnDamage;
use cordwood::record::NewRecord;
use cordwood::types::{Io, TimestampType};
use cordwood::writer::{Appended, FlushMode, LogWriter, Transaction, TransactionVersion, WriterOptions};
use cordwood::{Error, Result};

use super::producers::{Log, NOW, transactional};
use crate::support::batches::{ABORT, BatchV2, COMMIT, Rec};
use crate::support::reading::{committed, open};

const V1: TransactionVersion = TransactionVersion::V1;
const V2: TransactionVersion = TransactionVersion::V2;
const FIRST: i64 = 2_000_000_000_000_000;
const FILE: &str = ".cordwood.producers";

fn record(value: &str) -> NewRecord<'_> {
    NewRecord { timestamp: NOW, value: Some(value.as_bytes()), ..NewRecord::default() }
}

fn begin(log: &mut Log, id: &str) -> Transaction {
    log.writer().transaction(id, V2).unwrap()
}

fn begun(log: &mut Log, id: &str) -> Transaction {
    let mut transaction = begin(log, id);
    transaction.append(&record("x")).unwrap();
    transaction
}

fn stable(log: &mut Log) -> i64 {
    let of_reader = log.writer().reader().unwrap().last_stable_offset().unwrap();
    let of_writer = log.writer().last_stable_offset();
    assert_eq!(of_writer, of_reader);
    of_writer
}

/// The offsets that a committed reader sees.
fn visible(log: &mut Log) -> Vec<i64> {
    log.writer().flush().unwrap();
    committed(&open(&log.path(), Io::Pread), OnDamage::Raise).whole().offsets()
}

/// The entries of all transaction indexes.
fn aborted(log: &Log) -> Vec<(i64, i64, i64, i64)> {
    let names = log.files().into_keys().filter_map(|name| SegmentFileName::parse(name.to_str()?));
    let indexes = names.filter(|name| name.kind == FileKind::TransactionIndex);
    indexes.flat_map(|name| log.aborted(name.base_offset)).collect()
}

fn expect_fenced<T: std::fmt::Debug>(result: Result<T>, epochs: (i16, i16)) {
    match result {
        Err(Error::InvalidProducerEpoch { position: None, expected, found, .. }) => {
            assert_eq!((expected, found), epochs);
        }
        other => panic!("{other:?}"),
    }
}

fn expect_ended(result: &Result<Appended>) {
    assert!(matches!(result, Err(Error::Closed { handle: "Transaction" })), "{result:?}");
}

#[test]
fn committed_records_become_visible_together_and_aborted_ones_never() {
    let mut log = Log::new();
    log.plain();
    let mut transaction = begin(&mut log, "billing");
    assert_eq!((transaction.first_offset(), transaction.is_open()), (None, true));
    assert_eq!(stable(&mut log), 1);
    let appended = transaction.append_many(&[record("a"), record("b")]).unwrap();
    assert_eq!((appended.first_offset, appended.last_offset), (1, 2));
    log.plain();
    transaction.append(&record("c")).unwrap();
    assert_eq!((transaction.first_offset(), stable(&mut log)), (Some(1), 1));
    assert_eq!(visible(&mut log), [0]);
    let marker = transaction.commit().unwrap();
    assert_eq!((marker.first_offset, marker.last_offset, marker.max_timestamp), (5, 5, NOW));
    assert_eq!((stable(&mut log), transaction.is_open()), (6, false));
    assert_eq!(visible(&mut log), [0, 1, 2, 3, 4]);
    let mut transaction = begin(&mut log, "billing");
    transaction.append(&record("d")).unwrap();
    transaction.abort().unwrap();
    log.plain();
    assert_eq!(visible(&mut log), [0, 1, 2, 3, 4, 8]);
    assert_eq!(aborted(&log), [(FIRST, 6, 7, 8)]);
    for _ in 0..2 {
        expect_ended(&transaction.append(&record("e")));
        expect_ended(&transaction.commit());
        expect_ended(&transaction.abort());
    }
}

#[test]
fn the_bytes_of_version_2_are_those_of_kafka() {
    let mut log = Log::new();
    for is_commit in [true, false] {
        let mut transaction = begin(&mut log, "billing");
        transaction.append_many(&[record("a"), record("b")]).unwrap();
        transaction.append(&record("c")).unwrap();
        let end = if is_commit { Transaction::commit } else { Transaction::abort };
        end(&mut transaction).unwrap();
    }
    let rec = |value| Rec::at(NOW).value(value);
    let expected = [
        BatchV2::new(0).transaction(FIRST, 0, 0).records([rec("a"), rec("b")]),
        BatchV2::new(2).transaction(FIRST, 0, 2).records([rec("c")]),
        BatchV2::marker(3, COMMIT, FIRST, 1, NOW),
        BatchV2::new(4).transaction(FIRST, 1, 0).records([rec("a"), rec("b")]),
        BatchV2::new(6).transaction(FIRST, 1, 2).records([rec("c")]),
        BatchV2::marker(7, ABORT, FIRST, 2, NOW),
    ];
    let expected: Vec<u8> = expected.iter().flat_map(|batch| batch.build().bytes).collect();
    assert_eq!(fs::read(log.path().join("00000000000000000000.log")).unwrap(), expected);
}

#[test]
fn the_bytes_of_version_1_keep_the_epoch_and_the_sequences_run_on() {
    let mut log = Log::new();
    for is_commit in [true, false] {
        let mut transaction = log.writer().transaction("billing", V1).unwrap();
        transaction.append_many(&[record("a"), record("b")]).unwrap();
        let end = if is_commit { Transaction::commit } else { Transaction::abort };
        end(&mut transaction).unwrap();
    }
    let rec = |value| Rec::at(NOW).value(value);
    let expected = [
        BatchV2::new(0).transaction(FIRST, 0, 0).records([rec("a"), rec("b")]),
        BatchV2::marker(2, COMMIT, FIRST, 0, NOW),
        BatchV2::new(3).transaction(FIRST, 0, 2).records([rec("a"), rec("b")]),
        BatchV2::marker(5, ABORT, FIRST, 0, NOW),
    ];
    let expected: Vec<u8> = expected.iter().flat_map(|batch| batch.build().bytes).collect();
    assert_eq!(fs::read(log.path().join("00000000000000000000.log")).unwrap(), expected);
}

#[test]
fn a_marker_is_not_compressed_and_has_the_time_of_the_log() {
    let mut log = Log::new();
    let config = LogConfig {
        compression_type: CompressionType::Lz4,
        message_timestamp_type: TimestampType::LogAppendTime,
        ..LogConfig::default()
    };
    log.options =
        WriterOptions { config, flush: FlushMode::None, clock: || NOW + 7, ..WriterOptions::default() };
    log.reopen();
    begun(&mut log, "billing").commit().unwrap();
    let bytes = fs::read(log.path().join("00000000000000000000.log")).unwrap();
    let mut marker = BatchV2::marker(1, COMMIT, FIRST, 1, NOW + 7);
    marker.log_append_time = Some(NOW + 7);
    assert!(bytes.ends_with(&marker.build().bytes));
}

#[test]
fn an_empty_transaction_writes_nothing() {
    let mut log = Log::new();
    for end in [Transaction::commit, Transaction::abort] {
        let mut transaction = begin(&mut log, "billing");
        transaction.append_many(&[]).unwrap();
        let appended = end(&mut transaction).unwrap();
        let nothing = Appended {
            first_offset: 0,
            last_offset: -1,
            max_timestamp: -1,
            durable: true,
            is_duplicate: false,
        };
        assert_eq!((appended, transaction.is_open()), (nothing, false));
    }
    assert_eq!(log.writer().log_end_offset(), 0);
}

#[test]
fn a_commit_is_durable_as_the_flush_mode_says_and_an_append_in_a_transaction_does_not_wait() {
    for (flush, is_durable) in [(FlushMode::Always, true), (FlushMode::None, false)] {
        let mut log = Log::new();
        log.options.flush = flush;
        log.reopen();
        let mut transaction = begin(&mut log, "billing");
        assert!(!transaction.append(&record("a")).unwrap().durable);
        assert_eq!(log.writer().durable_offset(), 0);
        assert_eq!(transaction.commit().unwrap().durable, is_durable);
        assert_eq!(log.writer().durable_offset(), if is_durable { 2 } else { 0 });
        let mut transaction = begun(&mut log, "billing");
        assert_eq!(transaction.abort().unwrap().durable, is_durable);
    }
}

#[test]
fn a_new_transaction_of_an_id_aborts_the_open_one_and_fences_its_handle() {
    for version in [V1, V2] {
        let mut log = Log::new();
        let mut old = log.writer().transaction("billing", version).unwrap();
        old.append(&record("a")).unwrap();
        let mut new = log.writer().transaction("billing", version).unwrap();
        assert_eq!((new.producer_id(), new.producer_epoch()), (old.producer_id(), 1));
        assert_eq!(aborted(&log), [(FIRST, 0, 1, 2)]);
        expect_fenced(old.append(&record("b")), (1, 0));
        expect_fenced(old.commit(), (1, 0));
        expect_fenced(old.abort(), (1, 0));
        new.append(&record("c")).unwrap();
        expect_fenced(old.append(&record("b")), (1, 0));
        new.commit().unwrap();
        assert_eq!(visible(&mut log), [2]);
        // one without a record is fenced, too
        let mut old = log.writer().transaction("billing", version).unwrap();
        let epoch = old.producer_epoch();
        let mut new = log.writer().transaction("billing", version).unwrap();
        assert_eq!(new.producer_epoch(), epoch + 1);
        expect_fenced(old.append(&record("d")), (epoch + 1, epoch));
        new.append(&record("e")).unwrap();
        new.commit().unwrap();
        assert_eq!(visible(&mut log), [2, 4]);
    }
}

#[test]
fn transactions_of_several_ids_are_open_at_once() {
    let mut log = Log::new();
    let (mut one, mut other) = (begun(&mut log, "a"), begun(&mut log, "b"));
    assert_eq!((one.producer_id(), other.producer_id()), (FIRST, FIRST + 1));
    one.append(&record("y")).unwrap();
    assert_eq!(stable(&mut log), 0);
    one.abort().unwrap();
    assert_eq!(stable(&mut log), 1);
    other.commit().unwrap();
    assert_eq!(stable(&mut log), 5);
    assert_eq!(aborted(&log), [(FIRST, 0, 3, 1)]);
    assert_eq!(visible(&mut log), [1]);
}

#[test]
fn a_transaction_that_is_open_at_a_close_or_a_crash_stays_open_until_the_next_of_its_id() {
    for is_crash in [true, false] {
        let mut log = Log::new();
        log.plain();
        let mut old = begun(&mut log, "billing");
        log.plain();
        if is_crash {
            log.crash();
        } else {
            log.reopen();
        }
        expect_closed(&old.append(&record("a")));
        assert_eq!((stable(&mut log), visible(&mut log)), (1, vec![0]));
        // of another id
        begun(&mut log, "audit").commit().unwrap();
        assert_eq!(stable(&mut log), 1);
        let mut new = begin(&mut log, "billing");
        assert_eq!((new.producer_id(), new.producer_epoch()), (FIRST, 1));
        assert_eq!(stable(&mut log), 6);
        new.append(&record("a")).unwrap();
        new.commit().unwrap();
        assert_eq!(visible(&mut log), [0, 2, 3, 6]);
    }
}

fn expect_closed(result: &Result<Appended>) {
    assert!(matches!(result, Err(Error::Closed { handle: "LogWriter" })), "{result:?}");
}

#[test]
fn a_transaction_that_is_dropped_stays_open() {
    let mut log = Log::new();
    drop(begun(&mut log, "billing"));
    assert_eq!(stable(&mut log), 0);
    begin(&mut log, "billing").abort().unwrap();
    assert_eq!(stable(&mut log), 2);
}

#[test]
fn an_open_transaction_is_aborted_by_its_producer_id() {
    let mut log = Log::new();
    // of another writer, such as a Kafka client
    log.lead(&transactional(7, 3, 0, 1)).unwrap();
    let mut ours = begun(&mut log, "billing");
    match log.writer().abort_transaction(8) {
        Err(Error::Config { argument, found, .. }) => {
            assert_eq!((&argument[..], &found[..]), ("producer_id", "8"));
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(log.writer().abort_transaction(7).unwrap().first_offset, 2);
    assert_eq!(stable(&mut log), 1);
    assert!(matches!(log.writer().abort_transaction(7), Err(Error::Config { .. })));
    // it goes on in its epoch
    log.lead(&transactional(7, 3, 1, 1)).unwrap();
    log.mark(COMMIT, 7, 3);
    log.writer().abort_transaction(FIRST).unwrap();
    expect_fenced(ours.append(&record("a")), (1, 0));
    expect_fenced(ours.commit(), (1, 0));
    assert_eq!(stable(&mut log), 6);
    assert_eq!(visible(&mut log), [3]);
}

#[test]
fn the_marker_has_the_coordinator_epoch_of_the_last_one() {
    let mut log = Log::new();
    log.lead(&transactional(7, 3, 0, 1)).unwrap();
    let mut marker = BatchV2::marker(1, COMMIT, 7, 3, NOW);
    let value = [&0i16.to_be_bytes()[..], &5i32.to_be_bytes()].concat();
    marker = marker.control(COMMIT, NOW, value);
    log.follow(&[marker]).unwrap();
    log.lead(&transactional(7, 3, 1, 1)).unwrap();
    log.writer().abort_transaction(7).unwrap();
    assert_eq!(log.producers()[0].coordinator_epoch, 5);
}

fn expect_truncated(result: Result<Appended>) {
    match result {
        Err(Error::Config { argument, found, .. }) => {
            assert_eq!(argument, "transaction");
            assert!(found.ends_with("abort it, and begin another one"), "{found}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn truncated_records_of_a_transaction_cannot_be_committed() {
    let mut log = Log::new();
    log.plain();
    let mut transaction = begun(&mut log, "billing");
    transaction.append(&record("y")).unwrap();
    log.writer().truncate_to(2).unwrap();
    for _ in 0..2 {
        expect_truncated(transaction.append(&record("z")));
        expect_truncated(transaction.commit());
    }
    transaction.abort().unwrap();
    assert_eq!((visible(&mut log), stable(&mut log)), (vec![0], 3));
    // all of them
    let mut transaction = begun(&mut log, "billing");
    log.writer().truncate_to(3).unwrap();
    log.plain();
    expect_truncated(transaction.commit());
    assert_eq!(transaction.abort().unwrap().last_offset, 3);
    assert_eq!((visible(&mut log), log.writer().log_end_offset()), (vec![0, 3], 4));
    // records before it are no part of it
    let mut transaction = begun(&mut log, "billing");
    log.writer().delete_before(4).unwrap();
    transaction.commit().unwrap();
    assert_eq!(visible(&mut log), [4]);
}

#[test]
fn a_transaction_spans_segments_and_several_batches_of_one_call() {
    let mut log = Log::new();
    let config = LogConfig { segment_bytes: 300, max_message_bytes: 200, ..LogConfig::default() };
    log.options = WriterOptions { config, flush: FlushMode::None, clock: || NOW, ..WriterOptions::default() };
    log.reopen();
    let mut transaction = begin(&mut log, "billing");
    let value = "v".repeat(60);
    let appended = transaction.append_many(&vec![record(&value); 9]).unwrap();
    assert_eq!((appended.first_offset, appended.last_offset), (0, 8));
    let mut other = begun(&mut log, "audit");
    transaction.abort().unwrap();
    other.commit().unwrap();
    assert!(log.snapshots().len() > 2);
    assert_eq!(visible(&mut log), [9]);
    assert_eq!(aborted(&log), [(FIRST, 0, 10, 9)]);
    let producers = log.producers();
    assert_eq!((producers[0].producer_epoch, producers[0].last_batch()), (1, None));
}

#[test]
fn used_up_epochs_are_followed_by_a_new_producer_id() {
    let mut log = Log::new();
    begun(&mut log, "billing").commit().unwrap();
    log.mark(ABORT, FIRST, i16::MAX - 1);
    let mut last = begun(&mut log, "billing");
    assert_eq!((last.producer_id(), last.producer_epoch()), (FIRST, i16::MAX - 1));
    last.commit().unwrap();
    let mut next = begun(&mut log, "billing");
    assert_eq!((next.producer_id(), next.producer_epoch()), (FIRST + 1, 0));
    next.commit().unwrap();
    log.reopen();
    assert_eq!(begin(&mut log, "billing").producer_id(), FIRST + 1);
    // fenced with the last epoch
    log.mark(ABORT, FIRST + 1, i16::MAX - 1);
    let mut old = begun(&mut log, "billing");
    let new = begin(&mut log, "billing");
    assert_eq!((new.producer_id(), new.producer_epoch()), (FIRST + 2, 0));
    expect_fenced(old.commit(), (i16::MAX, i16::MAX - 1));
}

#[test]
fn an_id_that_has_expired_is_not_used_again_and_its_name_is_forgotten() {
    let mut log = Log::new();
    begun(&mut log, "billing").commit().unwrap();
    begun(&mut log, "audit").commit().unwrap();
    let names = |log: &Log| {
        let text = fs::read_to_string(log.path().join(FILE)).unwrap();
        text.lines().filter_map(|line| Some(line.split_once('/')?.1.to_owned())).collect::<Vec<_>>()
    };
    assert_eq!(names(&log), [format!("audit {}", FIRST + 1), format!("billing {FIRST}")]);
    log.options.clock = || NOW + 86_400_000;
    log.reopen();
    let transaction = begin(&mut log, "billing");
    assert_eq!((transaction.producer_id(), transaction.producer_epoch()), (FIRST + 2, 0));
    assert_eq!(names(&log), [format!("billing {}", FIRST + 2)]);
}

#[test]
fn the_file_of_names_is_written_once_for_each_id() {
    let mut log = Log::new();
    begun(&mut log, "billing").commit().unwrap();
    let path = log.path().join(FILE);
    fs::remove_file(&path).unwrap();
    for _ in 0..3 {
        begun(&mut log, "billing").commit().unwrap();
    }
    assert!(!path.exists());
    begun(&mut log, "audit").commit().unwrap();
    assert!(path.exists());
}

#[test]
fn an_intruding_batch_with_the_id_of_a_transaction_is_noticed() {
    let mut log = Log::new();
    let mut transaction = begun(&mut log, "billing");
    log.lead(&transactional(FIRST, 0, 1, 1)).unwrap();
    expect_truncated(transaction.commit());
    transaction.abort().unwrap();
    // outside of a transaction while one is open
    let mut transaction = begun(&mut log, "billing");
    let producer = BatchV2::new(0).producer(FIRST, 1, 1).records([Rec::at(NOW).value("x")]);
    assert!(matches!(log.lead(&producer), Err(Error::InvalidRecord { .. })));
    transaction.commit().unwrap();
}

#[test]
fn ids_of_transactions_are_names_of_topics() {
    let mut log = Log::new();
    for id in ["", "a b", "/"] {
        match log.writer().transaction(id, V2) {
            Err(Error::Config { argument, .. }) => assert_eq!(argument, "transactional_id"),
            other => panic!("{other:?}"),
        }
    }
    assert!(!log.path().join(FILE).exists());
}

#[test]
fn opening_again_without_the_names_leaves_the_transaction_to_be_aborted_by_its_id() {
    let mut log = Log::new();
    let old = begun(&mut log, "billing").producer_id();
    fs::remove_file(log.path().join(FILE)).unwrap();
    log.reopen();
    let mut new = begin(&mut log, "billing");
    assert_eq!(new.producer_id(), old + 1);
    new.append(&record("a")).unwrap();
    new.commit().unwrap();
    assert_eq!(stable(&mut log), 0);
    LogWriter::abort_transaction(log.writer(), old).unwrap();
    assert_eq!((stable(&mut log), visible(&mut log)), (4, vec![1]));
}
