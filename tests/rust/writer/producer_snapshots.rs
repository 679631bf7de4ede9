//! The snapshots of producers: when they are written and removed, and what an opening takes from them.

use std::cell::Cell;
use std::fs;

use cordwood::fs::names::{FileKind, segment_file};
use cordwood::record::NewRecord;

use super::producers::{Log, MAX, NOW, at, batch, out_of_order, transactional};
use crate::support::batches::{ABORT, BatchV2, COMMIT, Rec};

const DAY_MS: i64 = 86_400_000;

#[test]
fn a_roll_and_a_close_write_a_snapshot_as_of_the_log_end() {
    let mut log = Log::new();
    assert!(log.snapshots().is_empty());
    for sequence in 0..3 {
        log.lead(&batch(1, 0, sequence, 1)).unwrap();
        log.writer().roll().unwrap();
    }
    assert_eq!(log.snapshots(), [1, 2, 3]);
    assert_eq!(log.snapshot(2)[0].last_batch().unwrap().last_sequence, 1);
    // nothing new since then
    log.reopen();
    assert_eq!(log.snapshots(), [1, 2, 3]);
    log.plain();
    log.reopen();
    assert_eq!(log.snapshots(), [1, 2, 3, 4]);
    // a snapshot of an earlier close remains until the next opening, unless a segment begins there
    log.plain();
    log.writer().roll().unwrap();
    assert_eq!(log.snapshots(), [1, 2, 3, 4, 5]);
    log.reopen();
    assert_eq!(log.snapshots(), [1, 2, 3, 5]);
}

#[test]
fn logs_without_producers_have_empty_snapshots() {
    let mut log = Log::new();
    log.close();
    assert!(log.snapshots().is_empty());
    log.open();
    log.plain();
    log.writer().roll().unwrap();
    let bytes = fs::read(log.path().join(segment_file(1, FileKind::Snapshot))).unwrap();
    assert_eq!(bytes, [0, 1, 0x48, 0x67, 0x4b, 0xc7, 0, 0, 0, 0]);
}

#[test]
fn an_opening_knows_the_last_batch_and_the_open_transaction_of_each_producer() {
    for crashes in [false, true] {
        let mut log = Log::new();
        log.lead(&batch(1, 0, 0, 1)).unwrap();
        log.lead(&transactional(2, 3, 8, 2)).unwrap();
        log.lead(&batch(1, 0, 1, 1)).unwrap();
        if crashes {
            log.crash();
        } else {
            log.reopen();
        }
        assert_eq!(log.writer().last_stable_offset(), 1);
        assert_eq!(log.offsets(&batch(1, 0, 1, 1)), (3, 3));
        // only the last one is in a snapshot
        assert_eq!(out_of_order(log.lead(&batch(1, 0, 0, 1))), (2, 0));
        assert_eq!(log.offsets(&transactional(2, 3, 10, 1)), (4, 4));
        log.mark(ABORT, 2, 3);
        assert_eq!(log.aborted(0), [(2, 1, 5, 6)]);
    }
}

#[test]
fn producers_expire_when_a_log_is_opened_unless_their_transaction_is_open() {
    let mut log = Log::new();
    let old = |batch: BatchV2, age: i64| BatchV2 { records: vec![Rec::at(NOW - age)], ..batch };
    log.lead(&old(batch(1, 0, 0, 0), DAY_MS - 1)).unwrap();
    log.lead(&old(batch(2, 0, 0, 0), DAY_MS)).unwrap();
    log.lead(&old(transactional(3, 0, 0, 0), 2 * DAY_MS)).unwrap();
    log.reopen();
    // the snapshot of the close still has the second one
    assert_eq!(log.snapshot(3).len(), 3);
    log.plain();
    assert_eq!(log.ids(), [1, 3]);
    assert_eq!(log.writer().last_stable_offset(), 2);
    // it may begin anywhere now
    assert_eq!(log.offsets(&old(batch(2, 0, 55, 0), 5)), (4, 4));
    log.options.producer_id_expiration_ms = 5;
    log.reopen();
    assert_eq!(log.offsets(&batch(2, 0, 99, 1)), (5, 5));
}

thread_local! {
    static CLOCK: Cell<i64> = const { Cell::new(NOW) };
}

#[test]
fn appends_forget_expired_producers_every_ten_minutes() {
    const CHECKED_EVERY_MS: i64 = 600_000;
    let mut log = Log::new();
    log.options.producer_id_expiration_ms = 5;
    log.options.clock = || CLOCK.get();
    log.reopen();
    log.lead(&batch(1, 0, 0, 1)).unwrap();
    log.lead(&batch(2, 0, 0, 1)).unwrap();
    log.lead(&transactional(3, 0, 0, 1)).unwrap();
    CLOCK.set(NOW + CHECKED_EVERY_MS - 1);
    assert_eq!(log.offsets(&batch(1, 0, 0, 1)), (0, 0));
    assert_eq!(out_of_order(log.lead(&batch(2, 0, 9, 1))), (1, 9));
    CLOCK.set(NOW + CHECKED_EVERY_MS);
    // no duplicate any more, and no gap; a producer with an open transaction stays
    assert_eq!(log.offsets(&batch(1, 0, 0, 1)), (3, 3));
    assert_eq!(log.offsets(&batch(2, 0, 9, 1)), (4, 4));
    assert_eq!(out_of_order(log.lead(&transactional(3, 0, 9, 1))), (1, 9));
    // as on a follower
    CLOCK.set(NOW + 2 * CHECKED_EVERY_MS);
    log.follow(&[at(5, batch(4, 0, 0, 1))]).unwrap();
    let end = log.writer().log_end_offset();
    log.close();
    let mut ids: Vec<_> = log.snapshot(end).iter().map(|entry| entry.producer_id).collect();
    ids.sort_unstable();
    assert_eq!(ids, [3, 4]);
}

#[test]
fn a_log_start_offset_of_a_broker_above_the_log_end_hides_no_transaction() {
    let mut log = Log::new();
    log.lead(&transactional(1, 0, 0, 1)).unwrap();
    log.writer().roll().unwrap();
    log.lead(&batch(2, 0, 0, 1)).unwrap();
    log.mark(ABORT, 1, 0);
    assert_eq!(log.aborted(1), [(1, 0, 2, 3)]);
    log.writer = None;
    let data_directory = log.path().parent().unwrap().to_owned();
    fs::write(data_directory.join("meta.properties"), "version=1\ncluster.id=c\nnode.id=1\n").unwrap();
    fs::write(data_directory.join("log-start-offset-checkpoint"), "0\n1\norders 0 1000\n").unwrap();
    log.open();
    assert_eq!((log.writer().log_start_offset(), log.writer().log_end_offset()), (0, 3));
    assert_eq!(log.aborted(1), [(1, 0, 2, 3)]);
    assert_eq!(out_of_order(log.lead(&batch(2, 0, 9, 1))), (1, 9));
}

#[test]
fn a_snapshot_that_is_not_valid_is_removed_and_the_one_before_it_is_used() {
    type Damage = fn(&mut Vec<u8>);
    let damages: [Damage; 4] = [
        |bytes| bytes.clear(),
        |bytes| bytes.truncate(bytes.len() - 4),
        |bytes| *bytes.last_mut().unwrap() ^= 1,
        |bytes| bytes.push(0),
    ];
    for damage in damages {
        let mut log = Log::new();
        for sequence in 0..4 {
            log.lead(&batch(1, 0, sequence, 1)).unwrap();
            log.writer().roll().unwrap();
        }
        log.close();
        let path = log.path().join(segment_file(4, FileKind::Snapshot));
        let mut bytes = fs::read(&path).unwrap();
        let valid = bytes.clone();
        damage(&mut bytes);
        fs::write(&path, bytes).unwrap();
        log.open();
        assert_eq!(out_of_order(log.lead(&batch(1, 0, 9, 1))), (4, 9));
        assert_eq!(log.snapshots(), [1, 2, 3, 4]);
        assert_eq!(fs::read(&path).unwrap(), valid);
    }
}

#[test]
fn a_snapshot_with_offsets_of_a_longer_log_is_not_valid() {
    let mut log = Log::new();
    log.lead(&batch(1, 0, 0, 1)).unwrap();
    log.writer().roll().unwrap();
    log.lead(&batch(1, 0, 1, 9)).unwrap();
    log.close();
    let name = |offset| log.path().join(segment_file(offset, FileKind::Snapshot));
    fs::copy(name(10), name(1)).unwrap();
    fs::remove_file(name(10)).unwrap();
    log.open();
    assert_eq!(out_of_order(log.lead(&batch(1, 0, 99, 1))), (10, 99));
}

#[test]
fn without_snapshots_all_batches_are_read() {
    for crashes in [false, true] {
        let mut log = Log::new();
        for sequence in 0..4 {
            log.lead(&transactional(sequence.into(), 0, sequence, 1)).unwrap();
            log.writer().roll().unwrap();
        }
        log.mark(COMMIT, 0, 0);
        if crashes {
            log.writer = None;
        } else {
            log.close();
        }
        for offset in log.snapshots() {
            fs::remove_file(log.path().join(segment_file(offset, FileKind::Snapshot))).unwrap();
        }
        log.open();
        assert_eq!(log.writer().last_stable_offset(), 1);
        assert_eq!(log.ids(), [0, 1, 2, 3]);
    }
}

#[test]
fn truncation_restores_the_producers_as_of_the_offset() {
    let mut log = Log::new();
    for sequence in 0..3 {
        log.lead(&batch(1, 0, sequence, 1)).unwrap();
        log.writer().roll().unwrap();
    }
    log.lead(&transactional(2, 0, 0, 2)).unwrap();
    log.mark(COMMIT, 2, 0);
    log.lead(&batch(1, 0, 3, 1)).unwrap();
    assert_eq!(log.writer().last_stable_offset(), 7);
    // the marker is removed
    log.writer().truncate_to(5).unwrap();
    assert_eq!(log.writer().last_stable_offset(), 3);
    assert_eq!(log.snapshots(), [1, 2, 3, 5]);
    assert_eq!(out_of_order(log.lead(&batch(1, 0, 9, 1))), (3, 9));
    // into an earlier segment
    log.writer().truncate_to(2).unwrap();
    assert_eq!(log.writer().last_stable_offset(), 2);
    assert_eq!(log.snapshots(), [1, 2]);
    assert_eq!(out_of_order(log.lead(&batch(1, 0, 9, 1))), (2, 9));
    assert_eq!(log.offsets(&batch(2, 0, 44, 1)), (2, 2));
    // everything
    log.writer().truncate_to(0).unwrap();
    assert!(log.snapshots().is_empty());
    assert_eq!(log.offsets(&batch(1, 0, 17, 1)), (0, 0));
}

#[test]
fn truncation_to_the_base_offset_of_a_segment_leaves_the_snapshots_of_the_last_two() {
    let mut log = Log::new();
    for sequence in 0..6 {
        log.lead(&batch(1, 0, sequence, 1)).unwrap();
        log.writer().roll().unwrap();
    }
    log.close();
    for offset in 1..4 {
        fs::remove_file(log.path().join(segment_file(offset, FileKind::Snapshot))).unwrap();
    }
    log.open();
    log.writer().truncate_to(3).unwrap();
    assert_eq!(log.snapshots(), [2, 3]);
    assert_eq!(out_of_order(log.lead(&batch(1, 0, 9, 1))), (3, 9));
}

#[test]
fn a_batch_of_a_later_format_is_not_skipped() {
    let mut log = Log::new();
    log.lead(&batch(1, 0, 0, 1)).unwrap();
    log.writer().roll().unwrap();
    log.lead(&batch(1, 0, 1, 1)).unwrap();
    log.close();
    let path = log.path().join(segment_file(0, FileKind::Log));
    let mut bytes = fs::read(&path).unwrap();
    // its magic: no single flipped bit of 2
    bytes[16] = 5;
    fs::write(&path, bytes).unwrap();
    for offset in log.snapshots() {
        fs::remove_file(log.path().join(segment_file(offset, FileKind::Snapshot))).unwrap();
    }
    assert_eq!(log.try_open().unwrap_err().code(), "unsupported_format");
}

#[test]
fn a_restart_removes_all_producers() {
    let mut log = Log::new();
    log.lead(&transactional(1, 0, 0, 5)).unwrap();
    log.writer().roll().unwrap();
    log.writer().truncate_fully_and_start_at(29).unwrap();
    assert_eq!((log.snapshots(), log.writer().last_stable_offset()), (vec![], 29));
    assert_eq!(log.offsets(&batch(1, 0, 3, 1)), (29, 29));
    assert_eq!(log.ids(), [1]);
}

#[test]
fn retention_removes_the_snapshots_of_the_deleted_segments() {
    let mut log = Log::new();
    for sequence in 0..4 {
        log.lead(&batch(1, 0, sequence, 1)).unwrap();
        log.writer().roll().unwrap();
    }
    assert_eq!(log.snapshots(), [1, 2, 3, 4]);
    log.writer().delete_before(2).unwrap();
    assert_eq!(log.snapshots(), [2, 3, 4]);
    log.options.config.retention_bytes = 0;
    log.reopen();
    // an opening removes the one at the log start
    assert_eq!(log.snapshots(), [3, 4]);
    log.writer().apply_retention(Some(NOW)).unwrap();
    assert_eq!((log.snapshots(), log.writer().log_start_offset()), (vec![4], 4));
    // a producer whose records are all deleted is known until the log is opened again
    assert_eq!(out_of_order(log.lead(&batch(1, 0, 9, 1))), (4, 9));
    log.crash();
    assert_eq!(log.offsets(&batch(1, 0, 9, 1)), (4, 4));
}

#[test]
fn an_opening_after_deletions_knows_the_producers_that_are_left() {
    // in the middle of a segment, whose batches are all read, and on its base offset
    for (rolls, expected) in [(false, &[1, 2][..]), (true, &[2])] {
        let mut log = Log::new();
        log.lead(&batch(1, 0, 0, 1)).unwrap();
        if rolls {
            log.writer().roll().unwrap();
        }
        log.lead(&batch(2, 0, 0, 1)).unwrap();
        log.writer().delete_before(1).unwrap();
        let end = log.writer().log_end_offset();
        log.close();
        fs::remove_file(log.path().join(segment_file(end, FileKind::Snapshot))).unwrap();
        log.open();
        assert_eq!(log.ids(), expected, "{rolls}");
    }
}

#[test]
fn batches_that_compaction_has_emptied_keep_their_producers() {
    let mut log = Log::new();
    let emptied = BatchV2::empty(0, 3, NOW).producer(1, 0, 0);
    let sparse = at(4, batch(2, 0, 5, 0).records([Rec::at(NOW).delta(2)]).last_offset_delta(4));
    let old_marker = at(9, BatchV2::empty(9, 0, NOW).transaction(3, 0, -1));
    log.follow(&[emptied, sparse, BatchV2 { is_control: true, ..old_marker }]).unwrap();
    log.crash();
    let producers = log.producers();
    let sequences: Vec<_> = producers
        .iter()
        .map(|entry| entry.last_batch().map(|last| (last.first_sequence(), last.last_sequence)))
        .collect();
    assert_eq!(sequences, [Some((0, 3)), Some((5, 9)), None]);
    assert_eq!(out_of_order(log.lead(&batch(1, 0, 9, 1))), (4, 9));
}

#[test]
fn a_log_that_contradicts_its_transactions_is_not_opened() {
    let mut log = Log::new();
    log.lead(&transactional(1, 0, 0, 1)).unwrap();
    log.writer = None;
    let path = log.path().join(segment_file(0, FileKind::Log));
    let mut bytes = fs::read(&path).unwrap();
    bytes.extend(at(1, batch(1, 0, 1, 1)).build().bytes);
    fs::write(&path, &bytes).unwrap();
    let before = log.files();
    let error = log.try_open().unwrap_err();
    assert_eq!((error.code(), error.offset()), ("corrupt", Some(1)));
    assert!(error.to_string().contains("whose transaction from offset 0 is open"), "{error}");
    assert_eq!(log.files(), before);
}

#[test]
fn sequences_continue_in_a_log_that_rolls_at_every_batch() {
    let mut log = Log::new();
    log.options.config.segment_bytes = 120;
    log.reopen();
    for number in 0..20_i64 {
        let sequence = i32::try_from((i64::from(MAX) - 9 + number) % (1 << 31)).unwrap();
        assert_eq!(log.offsets(&batch(1, 0, sequence, 1)), (number, number));
        match number % 5 {
            0 => log.reopen(),
            1 => log.crash(),
            _ => {}
        }
        assert_eq!(log.offsets(&batch(1, 0, sequence, 1)), (number, number));
    }
    let value = [0; 40];
    log.writer().append(&NewRecord { value: Some(&value), ..NewRecord::default() }).unwrap();
    assert_eq!(log.ids(), [1]);
}
