//! The transaction indexes of a writer: written with the markers, and derived again if they are damaged.

use std::fs;
use std::path::Path;

use cordwood::fs::names::{FileKind, segment_file};

use super::producers::{Log, NOW, at, batch, out_of_order, transactional};
use crate::support::batches::{ABORT, BatchV2, COMMIT};

#[test]
fn aborted_transactions_are_in_the_transaction_index() {
    for in_one_append in [false, true] {
        let mut log = Log::new();
        let batches = [
            at(0, transactional(1, 0, 0, 8)),
            at(8, transactional(2, 0, 0, 8)),
            at(16, transactional(1, 0, 8, 13)),
            BatchV2::marker(29, ABORT, 1, 0, NOW),
            at(30, batch(3, 0, 0, 6)),
            at(36, transactional(4, 0, 0, 38)),
            BatchV2::marker(74, ABORT, 2, 0, NOW),
            BatchV2::marker(75, COMMIT, 4, 0, NOW),
        ];
        if in_one_append {
            log.follow(&batches).unwrap();
        } else {
            for one in &batches {
                log.follow(std::slice::from_ref(one)).unwrap();
            }
        }
        let expected = [(1, 0, 29, 8), (2, 8, 74, 36)];
        assert_eq!(log.aborted(0), expected);
        assert_eq!(log.writer().last_stable_offset(), 76);
        // it is derived again after a crash, also if it was lost or damaged
        let path = log.path().join(segment_file(0, FileKind::TransactionIndex));
        log.crash();
        assert_eq!(log.aborted(0), expected);
        for damage in [None, Some(&[0xff; 50][..]), Some(&[]), Some(&[0; 340])] {
            log.writer = None;
            match damage {
                None => fs::remove_file(&path).unwrap(),
                Some(bytes) => fs::write(&path, bytes).unwrap(),
            }
            log.open();
            assert!(log.writer().recovery().is_some(), "{damage:?}");
            assert_eq!(log.aborted(0), expected, "{damage:?}");
        }
        log.writer().truncate_to(74).unwrap();
        assert_eq!(log.aborted(0), expected[..1]);
        assert_eq!(log.writer().last_stable_offset(), 8);
        log.mark(COMMIT, 2, 0);
        assert_eq!(log.aborted(0), expected[..1]);
    }
}

#[test]
fn a_damaged_transaction_index_of_a_closed_log_is_derived_again() {
    let mut log = Log::new();
    log.lead(&transactional(1, 0, 0, 1)).unwrap();
    log.mark(ABORT, 1, 0);
    log.close();
    let path = log.path().join(segment_file(0, FileKind::TransactionIndex));
    let mut bytes = fs::read(&path).unwrap();
    // the last offset of its entry
    bytes[20] = 1;
    fs::write(&path, bytes).unwrap();
    log.open();
    assert_eq!(log.aborted(0), [(1, 0, 1, 2)]);
    log.lead(&transactional(1, 0, 1, 1)).unwrap();
    log.mark(ABORT, 1, 0);
    assert_eq!(log.aborted(0), [(1, 0, 1, 2), (1, 2, 3, 4)]);
}

#[test]
fn the_transaction_index_of_a_sealed_segment_is_derived_again_if_it_or_the_offset_index_is_damaged() {
    type Damage = fn(&Path);
    let damages: [Damage; 4] = [
        |path| {
            fs::remove_file(path).unwrap();
            fs::remove_file(path.with_extension("index")).unwrap();
        },
        // the last offset is below the base offset; a later version; an entry that cannot be
        |path| damage_at(path, 18, 0x80),
        |path| damage_at(path, 0, 1),
        |path| damage_at(path, 1, 1),
    ];
    for crashes in [false, true] {
        for damage in damages {
            let mut log = Log::new();
            log.plain();
            log.writer().roll().unwrap();
            log.lead(&transactional(1, 0, 0, 1)).unwrap();
            log.mark(ABORT, 1, 0);
            log.writer().roll().unwrap();
            log.lead(&batch(2, 0, 0, 1)).unwrap();
            log.writer().roll().unwrap();
            log.plain();
            if crashes {
                log.writer = None;
            } else {
                log.close();
            }
            damage(&log.path().join(segment_file(1, FileKind::TransactionIndex)));
            log.open();
            assert!(log.writer().recovery().is_some());
            assert_eq!(log.aborted(1), [(1, 1, 2, 3)]);
            assert_eq!(out_of_order(log.lead(&batch(2, 0, 9, 1))), (1, 9));
            // it reads every entry of the segment
            log.writer().truncate_to(2).unwrap();
            assert_eq!((log.aborted(1), log.writer().last_stable_offset()), (vec![], 1));
        }
    }
}

#[test]
fn the_transaction_index_of_a_damaged_segment_keeps_the_entry_of_a_marker_that_the_damage_destroyed() {
    let mut log = Log::new();
    log.lead(&transactional(1, 0, 0, 1)).unwrap();
    log.mark(ABORT, 1, 0);
    log.lead(&batch(2, 0, 0, 1)).unwrap();
    log.writer().roll().unwrap();
    log.plain();
    log.close();
    let reader = cordwood::Log::open(log.path(), cordwood::LogOptions::default()).unwrap();
    let marker = reader.locate(1).unwrap().unwrap();
    let path = log.path().join(segment_file(0, FileKind::Log));
    damage_at(&path, usize::try_from(marker.position).unwrap() + 30, 1);
    fs::remove_file(path.with_extension("index")).unwrap();
    log.open();
    assert!(path.with_extension("index").exists());
    assert_eq!(log.aborted(0), [(1, 0, 1, 2)]);
}

fn damage_at(path: &Path, position: usize, bits: u8) {
    let mut bytes = fs::read(path).unwrap();
    bytes[position] ^= bits;
    fs::write(path, bytes).unwrap();
}
