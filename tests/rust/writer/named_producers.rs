//! The producers that a writer gives out: an append that is called again is not written twice, also after a
//! crash.

use std::fs;

use cordwood::Error;
use cordwood::config::{CompressionType, LogConfig};
use cordwood::record::NewRecord;
use cordwood::writer::{Appended, FlushMode, WriterOptions};

use super::producers::{Log, MAX, NOW};
use crate::support::batches::{BatchV2, Rec};

const FIRST_NAMED: i64 = 1_000_000_000_000_000;
const FIRST_UNNAMED: i64 = 2_000_000_000_000_000;
const FILE: &str = ".cordwood.producers";
const DAY_MS: i64 = 86_400_000;

fn record(value: &str) -> NewRecord<'_> {
    NewRecord { timestamp: NOW, value: Some(value.as_bytes()), ..NewRecord::default() }
}

fn offsets(appended: Appended) -> (i64, i64, bool) {
    (appended.first_offset, appended.last_offset, appended.is_duplicate)
}

#[test]
fn an_append_that_is_called_again_is_answered_with_its_old_offsets() {
    let mut log = Log::new();
    log.plain();
    let producer = log.writer().producer(Some("billing")).unwrap();
    assert_eq!((producer.next_sequence().unwrap(), producer.last_offset().unwrap()), (0, None));
    let records = [record("a"), record("b")];
    assert_eq!(offsets(producer.append_many(&records, None).unwrap()), (1, 2, false));
    assert_eq!(offsets(producer.append(&record("c"), Some(2)).unwrap()), (3, 3, false));
    assert_eq!(offsets(producer.append(&record("c"), Some(2)).unwrap()), (3, 3, true));
    assert_eq!(offsets(producer.append_many(&records, Some(0)).unwrap()), (1, 2, true));
    assert_eq!((producer.next_sequence().unwrap(), producer.last_offset().unwrap()), (3, Some(3)));
    assert_eq!(log.writer().log_end_offset(), 4);
    // neither a part of a call, nor a gap, nor what is no longer remembered
    for (sequence, count) in [(0, 1), (1, 1), (4, 1), (2, 2), (MAX, 1)] {
        match producer.append_many(&records[..count], Some(sequence)) {
            Err(Error::OutOfOrderSequence { position: None, expected: 3, found, .. }) => {
                assert_eq!(found, sequence);
            }
            other => panic!("{other:?}"),
        }
    }
    for sequence in 3..8 {
        producer.append(&record("x"), Some(sequence)).unwrap();
    }
    assert!(producer.append(&record("x"), Some(3)).unwrap().is_duplicate);
    assert!(matches!(producer.append(&record("c"), Some(2)), Err(Error::OutOfOrderSequence { .. })));
    assert!(matches!(producer.append(&record("c"), Some(-1)), Err(Error::Config { .. })));
    let nothing = producer.append_many(&[], Some(90)).unwrap();
    assert_eq!(offsets(nothing), (9, 8, false));
}

#[test]
fn a_name_has_the_same_id_and_its_sequences_after_a_crash_and_a_close() {
    let mut log = Log::new();
    let producer = log.writer().producer(Some("billing")).unwrap();
    let id = producer.producer_id();
    assert_eq!((id, producer.producer_epoch()), (FIRST_NAMED, 0));
    assert_eq!(log.writer().producer(Some("audit")).unwrap().producer_id(), id + 1);
    for value in ["a", "b"] {
        producer.append(&record(value), None).unwrap();
    }
    for is_crash in [true, false, true] {
        if is_crash {
            log.crash();
        } else {
            log.reopen();
        }
        let producer = log.writer().producer(Some("billing")).unwrap();
        assert_eq!((producer.producer_id(), producer.producer_epoch()), (id, 0));
        assert_eq!((producer.next_sequence().unwrap(), producer.last_offset().unwrap()), (2, Some(1)));
        assert_eq!(offsets(producer.append(&record("b"), Some(1)).unwrap()), (1, 1, true));
        // only the last batch is in a snapshot
        if !is_crash {
            assert!(matches!(
                producer.append(&record("a"), Some(0)),
                Err(Error::OutOfOrderSequence { expected: 2, found: 0, .. })
            ));
        }
    }
}

#[test]
fn a_handle_of_a_closed_or_dropped_writer_is_closed() {
    let mut log = Log::new();
    let producer = log.writer().producer(None).unwrap();
    log.close();
    assert!(matches!(producer.append(&record("a"), None), Err(Error::Closed { .. })));
    assert!(matches!(producer.next_sequence(), Err(Error::Closed { .. })));
    log.open();
    let producer = log.writer().producer(None).unwrap();
    log.crash();
    assert!(matches!(producer.append(&record("a"), None), Err(Error::Closed { .. })));
}

#[test]
fn the_bytes_are_those_of_an_idempotent_producer() {
    let mut log = Log::new();
    let producer = log.writer().producer(Some("billing")).unwrap();
    producer.append_many(&[record("a"), record("b")], None).unwrap();
    producer.append(&record("c"), None).unwrap();
    let rec = |value| Rec::at(NOW).value(value);
    let expected = [
        BatchV2::new(0).producer(FIRST_NAMED, 0, 0).records([rec("a"), rec("b")]),
        BatchV2::new(2).producer(FIRST_NAMED, 0, 2).records([rec("c")]),
    ];
    let expected: Vec<u8> = expected.iter().flat_map(|batch| batch.build().bytes).collect();
    assert_eq!(fs::read(log.path().join("00000000000000000000.log")).unwrap(), expected);
}

#[test]
fn a_second_handle_of_a_name_fences_the_first_and_continues_its_sequences() {
    let mut log = Log::new();
    let first = log.writer().producer(Some("billing")).unwrap();
    first.append(&record("a"), None).unwrap();
    let second = log.writer().producer(Some("billing")).unwrap();
    assert_eq!((second.producer_id(), second.producer_epoch()), (first.producer_id(), 1));
    let expect_fenced = |result: cordwood::Result<Appended>| match result {
        Err(error @ Error::InvalidProducerEpoch { position: None, expected: 1, found: 0, .. }) => {
            assert_eq!(error.argument(), Some("producer"));
            let text = format!("producer: expected epoch 1 or above of producer {FIRST_NAMED}, found 0");
            assert_eq!(error.to_string(), text);
        }
        other => panic!("{other:?}"),
    };
    expect_fenced(first.append(&record("a"), Some(0)));
    expect_fenced(first.append(&record("b"), None));
    assert!(matches!(first.next_sequence(), Err(Error::InvalidProducerEpoch { .. })));
    assert_eq!(second.next_sequence().unwrap(), 1);
    assert_eq!(offsets(second.append(&record("a"), Some(0)).unwrap()), (0, 0, true));
    assert_eq!(offsets(second.append(&record("b"), Some(1)).unwrap()), (1, 1, false));
    assert_eq!(offsets(second.append(&record("b"), Some(1)).unwrap()), (1, 1, true));
    drop(second);
    // no handle is in use: nothing to fence
    let third = log.writer().producer(Some("billing")).unwrap();
    assert_eq!((third.producer_epoch(), third.next_sequence().unwrap()), (1, 2));
    drop(third);
    log.crash();
    let fourth = log.writer().producer(Some("billing")).unwrap();
    assert_eq!((fourth.producer_epoch(), fourth.next_sequence().unwrap()), (1, 2));
}

#[test]
fn producers_without_a_name_are_new_and_write_no_file() {
    let mut log = Log::new();
    let one = log.writer().producer(None).unwrap();
    let other = log.writer().producer(None).unwrap();
    assert_eq!((one.producer_id(), other.producer_id()), (FIRST_UNNAMED, FIRST_UNNAMED + 1));
    assert_eq!(one.name(), None);
    other.append(&record("a"), None).unwrap();
    assert!(!log.path().join(FILE).exists());
    log.crash();
    // the id that is in the log is not given out again
    assert_eq!(log.writer().producer(None).unwrap().producer_id(), FIRST_UNNAMED + 2);
}

#[test]
fn a_named_producer_does_not_expire_and_one_without_a_name_does() {
    let mut log = Log::new();
    for name in [Some("billing"), None] {
        log.writer().producer(name).unwrap().append(&record("a"), None).unwrap();
    }
    log.options.clock = || NOW + 2 * DAY_MS;
    log.reopen();
    let producer = log.writer().producer(Some("billing")).unwrap();
    assert_eq!((producer.producer_id(), producer.next_sequence().unwrap()), (FIRST_NAMED, 1));
    // a snapshot with another offset
    log.plain();
    assert_eq!(log.ids(), [FIRST_NAMED]);
}

#[test]
fn a_producer_without_a_name_does_not_expire_while_it_is_in_use() {
    let mut log = Log::new();
    log.options.producer_id_expiration_ms = 1;
    log.reopen();
    let producer = log.writer().producer(None).unwrap();
    let old = NewRecord { timestamp: NOW - DAY_MS, ..record("a") };
    producer.append(&old, Some(0)).unwrap();
    // another id is given out, and the producers are read again from a snapshot
    log.writer().roll().unwrap();
    log.writer().producer(None).unwrap();
    log.plain();
    log.plain();
    for end in [3, 2] {
        assert_eq!(producer.next_sequence().unwrap(), 1, "{end}");
        assert!(producer.append(&old, Some(0)).unwrap().is_duplicate);
        log.writer().truncate_to(end - 1).unwrap();
    }
    drop(producer);
    log.reopen();
    log.plain();
    assert!(log.ids().is_empty());
}

#[test]
fn a_name_that_was_fenced_too_often_is_used_again_after_its_objects_were_dropped() {
    let mut log = Log::new();
    let mut producer = log.writer().producer(Some("billing")).unwrap();
    for _ in 0..i16::MAX {
        producer = log.writer().producer(Some("billing")).unwrap();
    }
    assert_eq!(producer.producer_epoch(), i16::MAX);
    let error = log.writer().producer(Some("billing")).unwrap_err();
    assert!(error.to_string().contains("drop its other objects"), "{error}");
    producer.append(&record("a"), None).unwrap();
    drop(producer);
    let producer = log.writer().producer(Some("billing")).unwrap();
    assert_eq!((producer.producer_epoch(), producer.next_sequence().unwrap()), (i16::MAX, 1));
}

#[test]
fn a_truncation_takes_the_sequences_back() {
    let mut log = Log::new();
    let producer = log.writer().producer(Some("billing")).unwrap();
    for value in ["a", "b", "c"] {
        producer.append(&record(value), None).unwrap();
    }
    log.writer().truncate_to(1).unwrap();
    assert_eq!((producer.next_sequence().unwrap(), producer.last_offset().unwrap()), (1, Some(0)));
    assert_eq!(offsets(producer.append(&record("b"), Some(1)).unwrap()), (1, 1, false));
    log.writer().truncate_fully_and_start_at(10).unwrap();
    assert_eq!((producer.next_sequence().unwrap(), producer.last_offset().unwrap()), (0, None));
    assert_eq!(offsets(producer.append(&record("a"), Some(0)).unwrap()), (10, 10, false));
}

#[test]
fn a_producer_keeps_its_sequences_when_all_its_records_are_deleted() {
    let mut log = Log::new();
    let producer = log.writer().producer(Some("billing")).unwrap();
    producer.append_many(&[record("a"), record("b")], None).unwrap();
    log.writer().producer(Some("audit")).unwrap().append(&record("c"), None).unwrap();
    log.plain();
    for is_crash in [false, true, true] {
        let end = log.writer().log_end_offset();
        log.writer().roll().unwrap();
        log.writer().delete_before(end).unwrap();
        if is_crash {
            log.crash();
        } else {
            log.reopen();
        }
        let producer = log.writer().producer(Some("billing")).unwrap();
        assert_eq!((producer.next_sequence().unwrap(), producer.last_offset().unwrap()), (2, Some(1)));
        assert!(producer.append_many(&[record("a"), record("b")], Some(0)).unwrap().is_duplicate);
        log.plain();
    }
    let producer = log.writer().producer(Some("billing")).unwrap();
    producer.append(&record("c"), Some(2)).unwrap();
    log.crash();
    // what is in the log is newer
    assert_eq!(log.writer().producer(Some("billing")).unwrap().next_sequence().unwrap(), 3);
    assert_eq!(log.writer().producer(Some("audit")).unwrap().next_sequence().unwrap(), 1);
    // nothing is kept of a log that begins again
    log.writer().truncate_fully_and_start_at(100).unwrap();
    log.reopen();
    assert_eq!(log.writer().producer(Some("billing")).unwrap().next_sequence().unwrap(), 0);
}

#[test]
fn the_use_of_another_name_and_a_truncation_leave_the_sequences_of_deleted_records() {
    let mut log = Log::new();
    let producer = log.writer().producer(Some("billing")).unwrap();
    let id = producer.producer_id();
    producer.append_many(&[record("a"), record("b")], None).unwrap();
    log.writer().delete_before(2).unwrap();
    log.reopen();
    // nothing of it is in the log or in a snapshot that is loaded
    let other = log.writer().producer(Some("audit")).unwrap();
    assert_eq!(other.producer_id(), id + 1);
    other.append(&record("c"), None).unwrap();
    log.plain();
    let producer = log.writer().producer(Some("billing")).unwrap();
    assert_eq!((producer.producer_id(), producer.next_sequence().unwrap()), (id, 2));
    // a handle that is in use
    log.writer().truncate_to(3).unwrap();
    assert_eq!((producer.next_sequence().unwrap(), producer.last_offset().unwrap()), (2, Some(1)));
    assert_eq!(offsets(producer.append(&record("c"), None).unwrap()), (3, 3, false));
    log.writer().truncate_to(3).unwrap();
    assert!(producer.append_many(&[record("a"), record("b")], Some(0)).unwrap().is_duplicate);
    log.crash();
    let producer = log.writer().producer(Some("billing")).unwrap();
    assert_eq!((producer.producer_id(), producer.next_sequence().unwrap()), (id, 2));
    // without the names, their ids are not given out again
    drop(producer);
    log.close();
    fs::remove_file(log.path().join(FILE)).unwrap();
    log.open();
    assert_eq!(log.writer().producer(Some("new")).unwrap().producer_id(), id + 2);
}

#[test]
fn a_second_truncation_below_a_snapshot_leaves_the_sequences_of_deleted_records() {
    let mut log = Log::new();
    log.writer().producer(Some("billing")).unwrap().append_many(&[record("a"), record("b")], None).unwrap();
    log.plain();
    log.plain();
    log.writer().roll().unwrap();
    let producer = log.writer().producer(Some("billing")).unwrap();
    producer.append(&record("c"), None).unwrap();
    // it has a record at or above the log start; after the truncation, only the snapshot of the roll has it
    log.writer().delete_before(2).unwrap();
    for (offset, is_crash) in [(4, false), (3, true)] {
        log.writer().truncate_to(offset).unwrap();
        assert_eq!(producer.next_sequence().unwrap(), 2, "{offset}");
        if is_crash {
            log.crash();
        }
    }
    let producer = log.writer().producer(Some("billing")).unwrap();
    assert_eq!((producer.producer_id(), producer.next_sequence().unwrap()), (FIRST_NAMED, 2));
}

#[test]
fn a_fenced_handle_stays_fenced() {
    let mut log = Log::new();
    let fenced = log.writer().producer(Some("billing")).unwrap();
    let newer = log.writer().producer(Some("billing")).unwrap();
    assert_eq!(newer.producer_epoch(), 1);
    drop(newer);
    // neither of them has written, and another producer is given out
    let other = log.writer().producer(None).unwrap();
    match fenced.append(&record("a"), None) {
        Err(Error::InvalidProducerEpoch { expected: 1, found: 0, .. }) => {}
        other => panic!("{other:?}"),
    }
    other.append(&record("a"), None).unwrap();
}

#[test]
fn a_truncation_does_not_forget_a_producer_whose_records_were_deleted() {
    for is_reopened in [false, true] {
        let mut log = Log::new();
        let producer = log.writer().producer(Some("billing")).unwrap();
        producer.append_many(&[record("a"), record("b")], None).unwrap();
        log.plain();
        log.writer().roll().unwrap();
        log.writer().delete_before(3).unwrap();
        if is_reopened {
            log.crash();
        }
        let producer = log.writer().producer(Some("billing")).unwrap();
        log.plain();
        log.plain();
        log.writer().truncate_to(4).unwrap();
        assert_eq!((producer.next_sequence().unwrap(), producer.last_offset().unwrap()), (2, Some(1)));
        log.reopen();
        let producer = log.writer().producer(Some("billing")).unwrap();
        assert_eq!((producer.next_sequence().unwrap(), producer.last_offset().unwrap()), (2, Some(1)));
    }
}

#[test]
fn a_truncation_of_all_records_above_the_log_start_leaves_the_sequences_of_the_deleted_ones() {
    for (is_rolled, is_reopened) in [(false, false), (true, false), (true, true)] {
        let mut log = Log::new();
        let producer = log.writer().producer(Some("billing")).unwrap();
        producer.append_many(&[record("a"), record("b")], None).unwrap();
        if is_rolled {
            log.writer().roll().unwrap();
        }
        producer.append(&record("c"), None).unwrap();
        producer.append(&record("d"), None).unwrap();
        log.writer().delete_before(2).unwrap();
        if is_reopened {
            log.crash();
        }
        log.writer().delete_before(3).unwrap();
        log.writer().truncate_to(3).unwrap();
        let producer = log.writer().producer(Some("billing")).unwrap();
        assert_eq!((producer.next_sequence().unwrap(), producer.last_offset().unwrap()), (3, Some(2)));
        assert!(producer.append(&record("c"), Some(2)).unwrap().is_duplicate);
        assert_eq!(offsets(producer.append(&record("d"), Some(3)).unwrap()), (3, 3, false));
    }
}

/// Of a batch that begins below the log start, the rest is in the log.
#[test]
fn a_truncation_of_a_batch_across_the_log_start_takes_all_of_its_sequences_back() {
    let mut log = Log::new();
    let producer = log.writer().producer(Some("billing")).unwrap();
    producer.append(&record("a"), None).unwrap();
    producer.append_many(&[record("b"), record("c"), record("d")], None).unwrap();
    log.writer().delete_before(2).unwrap();
    assert_eq!(producer.next_sequence().unwrap(), 4);
    log.writer().truncate_to(3).unwrap();
    assert_eq!((producer.next_sequence().unwrap(), producer.last_offset().unwrap()), (1, Some(0)));
}

/// The bytes below the log start are removed with it, whatever they are.
#[test]
fn damage_below_the_log_start_does_not_prevent_a_deletion() {
    let mut log = Log::new();
    let producer = log.writer().producer(Some("billing")).unwrap();
    let idle = log.writer().producer(Some("audit")).unwrap();
    idle.append(&record("a"), None).unwrap();
    producer.append(&record("b"), None).unwrap();
    log.plain();
    log.writer().roll().unwrap();
    producer.append(&record("c"), None).unwrap();
    let name = log.path().join("00000000000000000000.log");
    let mut bytes = fs::read(&name).unwrap();
    let end = bytes.len();
    bytes[80..end - 40].fill(0xff);
    fs::write(&name, bytes).unwrap();
    log.writer().delete_before(2).unwrap();
    assert_eq!((producer.next_sequence().unwrap(), idle.next_sequence().unwrap()), (2, 1));
    log.writer().truncate_fully_and_start_at(2).unwrap();
}

#[test]
fn records_that_need_more_than_one_batch_are_refused() {
    for compression_type in [CompressionType::Uncompressed, CompressionType::Lz4] {
        let mut log = Log::new();
        let config = LogConfig { max_message_bytes: 210, compression_type, ..LogConfig::default() };
        log.options =
            WriterOptions { config, flush: FlushMode::None, clock: || NOW, ..WriterOptions::default() };
        log.reopen();
        let producer = log.writer().producer(None).unwrap();
        let value = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_";
        for count in [2, 3] {
            let refused = producer.append_many(&vec![record(value); count], None);
            if count == 3 {
                assert!(matches!(refused, Err(Error::RecordTooLarge { .. })), "{refused:?}");
            } else {
                refused.unwrap();
            }
        }
        assert_eq!((producer.next_sequence().unwrap(), log.writer().log_end_offset()), (2, 2));
    }
}

#[test]
fn names_are_those_of_topics_and_a_damaged_file_of_names_is_an_error() {
    let mut log = Log::new();
    for name in ["", "a b", "a/b", ".."] {
        match log.writer().producer(Some(name)) {
            Err(Error::Config { argument, .. }) => assert_eq!(argument, "name"),
            other => panic!("{other:?}"),
        }
    }
    log.writer().producer(Some("billing")).unwrap();
    fs::write(log.path().join(FILE), b"0\n").unwrap();
    log.reopen();
    match log.writer().producer(Some("billing")) {
        Err(Error::Corrupt { place, .. }) => assert_eq!(place.file, log.path().join(FILE)),
        other => panic!("{other:?}"),
    }
    // the rest of the log is usable
    log.writer().producer(None).unwrap_err();
    log.plain();
    fs::remove_file(log.path().join(FILE)).unwrap();
    log.writer().producer(Some("billing")).unwrap().append(&record("a"), None).unwrap();
}

#[test]
fn sequences_wrap() {
    let mut log = Log::new();
    let producer = log.writer().producer(Some("billing")).unwrap();
    let id = producer.producer_id();
    producer.append(&record("a"), None).unwrap();
    // as if 2^31 - 2 more were written
    let end = log.writer().log_end_offset();
    log.follow(&[BatchV2::new(end).producer(id, 0, MAX - 1).records([Rec::at(NOW).value("b")])]).unwrap();
    assert_eq!(producer.next_sequence().unwrap(), MAX);
    assert_eq!(offsets(producer.append_many(&[record("c"), record("d")], Some(MAX)).unwrap()), (2, 3, false));
    assert_eq!(producer.next_sequence().unwrap(), 1);
    assert_eq!(offsets(producer.append_many(&[record("c"), record("d")], Some(MAX)).unwrap()), (2, 3, true));
}

#[test]
fn threads_share_a_producer() {
    let mut log = Log::new();
    let producer = log.writer().producer(None).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..100 {
                    assert!(!producer.append(&record("a"), None).unwrap().is_duplicate);
                }
            });
        }
    });
    assert_eq!((producer.next_sequence().unwrap(), log.writer().log_end_offset()), (400, 400));
}
