//! Committed reads of logs in which the last marker of a producer is damaged: the records after it are read,
//! the undecided ones are reported as left out, and a range that ends before both needs no skipping.

use std::path::{Path, PathBuf};

use cordwood::log::{DamagedRange, OnDamage, Ranges, ScanOptions};
use cordwood::types::IsolationLevel;
use cordwood::{Error, Log};

use crate::support::batches::{ABORT, BatchV2, Built, COMMIT, Rec};
use crate::support::partition::{Indexing, PartitionBuilder, file_name};
use crate::support::reading::{Read, all, both, folder, scan};

fn records(base: i64, count: i64) -> impl Iterator<Item = Rec> {
    (base..base + count).map(|offset| Rec::at(1000 + offset).value(format!("v{offset}")))
}

fn data(base: i64, producer: i64, count: i64) -> Built {
    BatchV2::new(base).transaction(producer, 0, 0).records(records(base, count)).build()
}

fn plain(base: i64, count: i64) -> Built {
    BatchV2::new(base).records(records(base, count)).build()
}

fn marker(base: i64, kind: i16, producer: i64) -> Built {
    BatchV2::marker(base, kind, producer, 0, 1000 + base).build()
}

/// Transactions of producer 7: offsets 0 to 2 committed, 7 to 9 aborted, 13 to 15 ended by the marker at 16.
fn history(kind: i16) -> Vec<Built> {
    vec![
        data(0, 7, 3),
        marker(3, COMMIT, 7),
        plain(4, 3),
        data(7, 7, 3),
        marker(10, ABORT, 7),
        plain(11, 2),
        data(13, 7, 3),
        marker(16, kind, 7),
        plain(17, 4),
    ]
}

/// The bytes of a marker's batch in which a bit is flipped: offset, length, CRC, attributes, producer, key,
/// value.
const DAMAGED_BYTES: [usize; 10] = [0, 7, 11, 18, 22, 26, 50, 61, 70, 77];

/// The log with one bit of the batch at `offset` flipped.
fn damaged(parent: &Path, name: &str, built: &[Built], offset: i64, byte: usize, has_index: bool) -> PathBuf {
    let dir = PartitionBuilder::new(Indexing::every(200)).segment(0, built.to_vec()).write(parent, name);
    if !has_index {
        // Kafka deletes an empty one; a lost one looks the same
        let _ = std::fs::remove_file(dir.join(file_name(0, "txnindex")));
    }
    let before: usize =
        built.iter().take_while(|batch| batch.base_offset != offset).map(|batch| batch.bytes.len()).sum();
    let path = dir.join(file_name(0, "log"));
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[before + byte] ^= 1 << (byte % 3);
    std::fs::write(path, bytes).unwrap();
    dir
}

fn read(log: &Log, end_offset: Option<i64>, on_damage: OnDamage) -> Read {
    let ranges = Ranges { end_offset, ..Ranges::default() };
    let isolation_level = IsolationLevel::ReadCommitted;
    scan(log, ScanOptions { ranges, isolation_level, on_damage, ..ScanOptions::default() })
}

fn is_reported(gaps: &[DamagedRange], offset: i64) -> bool {
    gaps.iter().any(|gap| gap.start_offset <= offset && gap.end_offset.is_none_or(|end| offset < end))
}

/// Runs `check` for each damaged byte, with and without a transaction index.
fn in_each_case(built: &[Built], marker: i64, check: impl Fn(&Log, bool, &str)) {
    for has_index in [false, true] {
        for byte in DAMAGED_BYTES {
            let parent = folder();
            let dir = damaged(parent.path(), "t-0", built, marker, byte, has_index);
            for log in both(&dir) {
                let context = format!("byte {byte}, transaction index {has_index}");
                let raised = all(&log, OnDamage::Raise);
                assert!(matches!(raised.error, Some(Error::Corrupt { .. })), "{context}: the log is damaged");
                check(&log, has_index, &context);
            }
        }
    }
}

#[test]
fn after_a_damaged_last_marker_of_a_producer_everything_else_is_read() {
    in_each_case(&history(COMMIT), 16, |log, has_index, context| {
        for on_damage in [OnDamage::Skip, OnDamage::Report] {
            let read = read(log, None, on_damage).whole();
            let offsets = read.offsets();
            let decided: Vec<i64> =
                offsets.iter().copied().filter(|offset| !(13..16).contains(offset)).collect();
            assert_eq!(decided, [0, 1, 2, 4, 5, 6, 11, 12, 17, 18, 19, 20], "{context}: {:?}", read.gaps);
            for undecided_offset in 13..16 {
                // a transaction index without an abort there may decide it
                let may_be_returned = has_index && offsets.contains(&undecided_offset);
                assert!(
                    may_be_returned || is_reported(&read.gaps, undecided_offset),
                    "{context}: {undecided_offset}: {:?}",
                    read.gaps
                );
            }
            assert!(is_reported(&read.gaps, 16), "{context}: {:?}", read.gaps);
            let undecided = offsets.iter().filter(|offset| (13..16).contains(*offset)).count();
            assert!(
                undecided == 0 || undecided == 3,
                "{context}: a transaction is returned in whole or not at all"
            );
        }
    });
}

#[test]
fn records_aborted_by_a_damaged_last_marker_are_not_returned() {
    in_each_case(&history(ABORT), 16, |log, has_index, context| {
        for on_damage in [OnDamage::Skip, OnDamage::Report] {
            let read = read(log, None, on_damage).whole();
            assert_eq!(
                read.offsets(),
                [0, 1, 2, 4, 5, 6, 11, 12, 17, 18, 19, 20],
                "{context}: {:?}",
                read.gaps
            );
            for undecided_offset in 13..16 {
                assert!(
                    has_index || is_reported(&read.gaps, undecided_offset),
                    "{context}: {undecided_offset}: {:?}",
                    read.gaps
                );
            }
        }
    });
}

#[test]
fn a_later_open_transaction_of_the_same_producer_ends_the_read_before_it() {
    let mut built = history(COMMIT);
    built.extend([data(21, 7, 2), plain(23, 5)]);
    in_each_case(&built, 16, |log, has_index, context| {
        let read = read(log, None, OnDamage::Skip).whole();
        let offsets = read.offsets();
        let decided: Vec<i64> = offsets.iter().copied().filter(|offset| !(13..16).contains(offset)).collect();
        assert_eq!(decided, [0, 1, 2, 4, 5, 6, 11, 12, 17, 18, 19, 20], "{context}: {:?}", read.gaps);
        for undecided_offset in 13..16 {
            let may_be_returned = has_index && offsets.contains(&undecided_offset);
            assert!(
                may_be_returned || is_reported(&read.gaps, undecided_offset),
                "{context}: {undecided_offset}: {:?}",
                read.gaps
            );
        }
    });
}

#[test]
fn another_producers_open_transaction_still_ends_the_read() {
    let mut built = history(COMMIT);
    built.extend([data(21, 8, 2), plain(23, 5)]);
    in_each_case(&built, 16, |log, _, context| {
        let offsets = read(log, None, OnDamage::Skip).whole().offsets();
        assert_eq!(offsets.last(), Some(&20), "{context}: {offsets:?}");
    });
}

#[test]
fn a_range_below_the_damage_and_below_its_open_transaction_is_read_without_skipping() {
    for kind in [COMMIT, ABORT] {
        in_each_case(&history(kind), 16, |log, has_index, context| {
            for end in [1, 4, 7, 8, 11, 13] {
                let expected: Vec<i64> =
                    [0, 1, 2, 4, 5, 6, 11, 12].into_iter().filter(|offset| *offset < end).collect();
                let read = read(log, Some(end), OnDamage::Raise);
                assert!(read.error.is_none(), "{context} to {end}: {:?}", read.error);
                assert_eq!(read.offsets(), expected, "{context} to {end}");
            }
            for end in [14, 16] {
                // undecided, unless an index contains the abort
                let read = read(log, Some(end), OnDamage::Raise);
                match &read.error {
                    Some(Error::Corrupt { .. }) => {}
                    None if has_index => {}
                    other => panic!("{context} to {end}: {other:?}"),
                }
            }
            for end in [Some(18), None] {
                let read = read(log, end, OnDamage::Raise);
                assert!(matches!(read.error, Some(Error::Corrupt { .. })), "{context} to {end:?}");
            }
        });
    }
}
